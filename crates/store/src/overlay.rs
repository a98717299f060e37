//! A disk whose changes stay in memory: to see what something would do to a store, without doing it.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

use crate::disk::{Disk, DiskFile, Space};

const PAGE: u64 = 4096;

/// A [`Disk`] that shows the files of another and keeps every change to itself, in memory. Pages of zeros take none.
pub struct Overlay<D: Disk> {
    base: D,
    locks: bool,
    files: Arc<Mutex<BTreeMap<String, Arc<Node<D>>>>>,
}

impl<D: Disk> Clone for Overlay<D> {
    fn clone(&self) -> Self {
        Self { base: self.base.clone(), locks: self.locks, files: Arc::clone(&self.files) }
    }
}

struct Node<D: Disk> {
    base: Option<D::File>,
    content: Mutex<Content>,
}

#[derive(Default)]
struct Content {
    len: u64,
    /// So much of the file below shows through where there is no page.
    shown: u64,
    pages: BTreeMap<u64, Vec<u8>>,
}

impl<D: Disk> Overlay<D> {
    /// The files of a disk as they are now.
    ///
    /// # Errors
    /// Whatever the disk says.
    pub fn new(base: D) -> io::Result<Self> {
        let mut files = BTreeMap::new();
        for name in base.list()? {
            let file = base.open_to_read(&name)?;
            let len = file.len()?;
            let content = Mutex::new(Content { len, shown: len, pages: BTreeMap::new() });
            files.insert(name, Arc::new(Node { base: Some(file), content }));
        }
        Ok(Self { base, locks: true, files: Arc::new(Mutex::new(files)) })
    }

    /// A disk without files on the filesystem of another, for what is not there yet.
    pub fn without_files(base: D) -> Self {
        Self { base, locks: true, files: Arc::default() }
    }

    /// The same without the lock of the disk below: nobody is kept from opening it, and it may change meanwhile.
    #[must_use]
    pub fn without_lock(self) -> Self {
        Self { locks: false, ..self }
    }

    fn files(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Node<D>>>> {
        self.files.lock().expect("nobody panics while holding it")
    }
}

impl<D: Disk> Disk for Overlay<D> {
    type File = OverlayFile<D>;
    type Guard = Option<D::Guard>;

    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.files().keys().cloned().collect())
    }

    fn open(&self, name: &str) -> io::Result<OverlayFile<D>> {
        let node = self.files().get(name).cloned();
        node.map(OverlayFile).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn open_to_read(&self, name: &str) -> io::Result<OverlayFile<D>> {
        self.open(name)
    }

    fn create(&self, name: &str) -> io::Result<OverlayFile<D>> {
        let mut files = self.files();
        if files.contains_key(name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let node = Arc::new(Node { base: None, content: Mutex::default() });
        files.insert(name.to_owned(), Arc::clone(&node));
        Ok(OverlayFile(node))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut files = self.files();
        let node = files.remove(from).ok_or(io::ErrorKind::NotFound)?;
        files.insert(to.to_owned(), node);
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.files().remove(name).map(drop).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn sync_dir(&self) -> io::Result<()> {
        Ok(())
    }

    fn lock(&self) -> io::Result<Option<D::Guard>> {
        self.locks.then(|| self.base.lock()).transpose()
    }

    fn is_locked(&self) -> io::Result<bool> {
        self.base.is_locked()
    }

    fn space(&self) -> io::Result<Option<Space>> {
        self.base.space()
    }
}

/// A file of an [`Overlay`].
pub struct OverlayFile<D: Disk>(Arc<Node<D>>);

impl<D: Disk> Node<D> {
    fn content(&self) -> MutexGuard<'_, Content> {
        self.content.lock().expect("nobody panics while holding it")
    }

    /// A whole page as it is now, zeros behind the end.
    fn page(&self, content: &Content, number: u64) -> io::Result<Vec<u8>> {
        if let Some(page) = content.pages.get(&number) {
            return Ok(page.clone());
        }
        let mut page = vec![0; PAGE as usize];
        let start = number * PAGE;
        if let Some(base) = self.base.as_ref().filter(|_| start < content.shown) {
            let len = PAGE.min(content.shown - start) as usize;
            base.read_at(start, &mut page[..len])?;
        }
        Ok(page)
    }
}

impl<D: Disk> DiskFile for OverlayFile<D> {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
        let content = self.0.content();
        let end = content.len.min(offset.saturating_add(buf.len() as u64));
        let mut at = offset;
        while at < end {
            let page = self.0.page(&content, at / PAGE)?;
            let within = (at % PAGE) as usize;
            let len = (PAGE - at % PAGE).min(end - at) as usize;
            let to = (at - offset) as usize;
            buf[to..to + len].copy_from_slice(&page[within..within + len]);
            at += len as u64;
        }
        Ok(end.saturating_sub(offset) as usize)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut content = self.0.content();
        let end = offset + bytes.len() as u64;
        let mut at = offset;
        while at < end {
            let number = at / PAGE;
            let mut page = self.0.page(&content, number)?;
            let within = (at % PAGE) as usize;
            let len = (PAGE - at % PAGE).min(end - at) as usize;
            let from = (at - offset) as usize;
            page[within..within + len].copy_from_slice(&bytes[from..from + len]);
            let is_plain = number * PAGE >= content.shown && page.iter().all(|byte| *byte == 0);
            if is_plain {
                content.pages.remove(&number);
            } else {
                content.pages.insert(number, page);
            }
            at += len as u64;
        }
        content.len = content.len.max(end);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn sync_all(&self) -> io::Result<()> {
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.0.content().len)
    }

    /// Never: an overlay has no files that somebody could remove.
    fn is_removed(&self) -> io::Result<bool> {
        Ok(false)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut content = self.0.content();
        if len < content.len {
            let keep = len.div_ceil(PAGE);
            content.pages.split_off(&keep);
            if !len.is_multiple_of(PAGE)
                && let Some(page) = content.pages.get_mut(&(len / PAGE))
            {
                page[(len % PAGE) as usize..].fill(0);
            }
            content.shown = content.shown.min(len);
        }
        content.len = len;
        Ok(())
    }
}

#[cfg(all(test, feature = "memory-disk"))]
mod tests {
    use super::*;
    use crate::MemoryDisk;

    #[test]
    fn changes_stay_above_and_the_rest_shows_through() {
        let base = MemoryDisk::new(1);
        base.put("one", vec![7; 10_000]);
        base.put("two", vec![8; 10]);
        let overlay = Overlay::new(base.clone()).expect("listed");
        let one = overlay.open("one").expect("there");
        one.write_at(5_000, &[1, 2, 3]).expect("written");
        one.write_at(9_999, &[4, 5]).expect("written");
        let mut bytes = vec![0; 20_000];
        assert_eq!(one.read_at(0, &mut bytes).expect("read"), 10_001);
        let mut expected = vec![7; 10_001];
        expected[5_000..5_003].copy_from_slice(&[1, 2, 3]);
        expected[9_999..].copy_from_slice(&[4, 5]);
        assert_eq!(bytes[..10_001], expected);
        one.set_len(5_001).expect("cut");
        one.set_len(5_003).expect("longer");
        assert_eq!(one.read_at(4_999, &mut bytes).expect("read"), 4);
        assert_eq!(bytes[..4], [7, 1, 0, 0]);
        overlay.rename("two", "three").expect("renamed");
        overlay.create("two").expect("free").write_at(0, &[0; 9_000]).expect("written");
        assert_eq!(overlay.open("two").expect("there").len().expect("known"), 9_000);
        overlay.remove("one").expect("removed");
        assert_eq!(overlay.list().expect("listed"), ["three", "two"]);
        assert_eq!((base.read("one"), base.read("two")), (Some(vec![7; 10_000]), Some(vec![8; 10])));
    }
}
