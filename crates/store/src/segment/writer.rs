//! Writing a segment.

use overtake_lane::{Message, QueueId, Seq, Time};

use super::block::{Draft, encode_message};
use super::footer::Footer;
use super::header::SegmentHeader;
use super::ids;
use super::index::Entry;
use super::info::SegmentInfo;
use crate::disk::{Disk, DiskFile, SYNC_LEN};
use crate::error::StoreError;
use crate::file::SEGMENT_BYTES_MAX;
use crate::ids::{IdEntry, IdHasher};

/// A block is closed before it has more payload than this, unless it has one message only; bytes.
const BLOCK_LEN: usize = 32 << 10;
/// Bytes written at once.
const WRITE_LEN: usize = 256 << 10;

/// Writes a segment, message by message; made by [`Segments::writer`](crate::Segments::writer).
///
/// Its memory is less than a MiB, the longest message, 32 bytes for each block, and 16 for each message with an id. A writer that is dropped, or fails, leaves
/// a half-made file behind that the next [`Journal::open`](crate::Journal::open) removes; [`SegmentWriter::abandon`] and a full
/// disk leave nothing.
pub struct SegmentWriter<D: Disk> {
    disk: D,
    header: SegmentHeader,
    name: String,
    file: D::File,
    salt: u32,
    /// What is not written yet, and where it goes.
    out: Vec<u8>,
    out_at: u64,
    synced: u64,
    draft: Option<Draft>,
    encoded: Vec<u8>,
    index: Vec<Entry>,
    hasher: IdHasher,
    ids: Vec<IdEntry>,
    count: u64,
    bytes: u64,
    expires: Time,
    first: Seq,
    last: Option<Seq>,
    end: Option<End>,
}

/// Why nothing more is written.
#[derive(Clone)]
enum End {
    Full,
    Poisoned(String),
}

impl<D: Disk> SegmentWriter<D> {
    pub(super) fn create(disk: D, header: SegmentHeader) -> Result<Self, StoreError> {
        let name = header.name_while_made();
        let file = disk.create(&name).map_err(|source| full_or(StoreError::io("create", &name, source)))?;
        let hasher = header.id_hasher();
        let mut out = header.encode();
        // The buffer does not grow while blocks have the usual length.
        out.reserve(WRITE_LEN + BLOCK_LEN);
        Ok(Self {
            disk,
            name,
            file,
            salt: header.salt(),
            out,
            header,
            out_at: 0,
            synced: 0,
            draft: None,
            encoded: Vec::new(),
            index: Vec::new(),
            hasher,
            ids: Vec::new(),
            count: 0,
            bytes: 0,
            expires: Time::NEVER,
            first: Seq(0),
            last: None,
            end: None,
        })
    }

    /// The number of the segment.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.header.number
    }

    /// The queue of the messages.
    #[must_use]
    pub fn queue(&self) -> QueueId {
        self.header.queue
    }

    /// How many messages it has so far.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Appends a message with its content. All but its place is kept.
    ///
    /// # Errors
    /// [`StoreError::Full`]: the half-made file is gone, the store goes on, try again with another writer later.
    /// [`StoreError::RecordTooLong`] when message and content have more than a GiB: nothing is appended, go on without it.
    /// Anything else is what the disk said, once, and then [`StoreError::Poisoned`]: nothing is known about the disk any more, as
    /// after a failed [`Committer::commit`](crate::Committer::commit).
    ///
    /// # Panics
    /// When sequences do not ascend.
    pub fn push(&mut self, message: &Message, content: &[u8]) -> Result<(), StoreError> {
        self.check_health()?;
        assert!(self.last < Some(message.seq), "messages come in the order of their sequences");
        self.encoded.clear();
        encode_message(message, &mut self.encoded);
        // Two numbers of at most ten bytes say how long the two are.
        let len = self.encoded.len() + content.len() + 20;
        if len as u64 > SEGMENT_BYTES_MAX {
            return Err(StoreError::RecordTooLong { len, max: SEGMENT_BYTES_MAX as usize });
        }
        if self.draft.as_ref().is_some_and(|draft| draft.len(&self.out) + len > BLOCK_LEN) {
            self.end_block()?;
        }
        let draft = match &mut self.draft {
            Some(draft) => draft,
            none => none.insert(Draft::begin(&mut self.out, self.count, message.seq)),
        };
        draft.push(&mut self.out, &self.encoded, message.expires, content);
        if let Some(id) = message.id() {
            let ordinal = u32::try_from(self.count).expect("a segment has fewer than 2^32 messages");
            self.ids.push(IdEntry { hash: self.hasher.hash(id), ordinal });
        }
        if self.last.is_none() {
            self.first = message.seq;
        }
        self.last = Some(message.seq);
        self.count += 1;
        self.bytes += content.len() as u64;
        self.expires = self.expires.min(message.expires);
        Ok(())
    }

    /// Makes the segment durable and gives it its name.
    ///
    /// # Errors
    /// As [`SegmentWriter::push`]. After [`StoreError::Full`] there is no segment; after another error there may be one, whole,
    /// that nobody knows of.
    ///
    /// # Panics
    /// When there is no message.
    pub fn finish(mut self) -> Result<SegmentInfo, StoreError> {
        self.check_health()?;
        let last = self.last.expect("a segment has a message");
        if self.draft.is_some() {
            self.end_block()?;
        }
        self.append_end(last);
        let file_len = self.out_at + self.out.len() as u64;
        let written = self.write().and_then(|()| {
            self.file.sync_all().map_err(|source| StoreError::io("sync", &self.name, source))?;
            let renamed = self.disk.rename(&self.name, &self.header.name());
            renamed.map_err(|source| StoreError::io("rename", &self.name, source))
        });
        self.or_end(written)?;
        let name = self.header.name();
        self.disk.sync_dir().map_err(|source| StoreError::io("sync the directory of", &name, source))?;
        Ok(SegmentInfo {
            number: self.header.number,
            queue: self.header.queue,
            count: self.count,
            ids: self.ids.len() as u64,
            bytes: self.bytes,
            file_len,
            expires: self.expires,
            first: self.first,
            last,
            is_rebuilt: false,
        })
    }

    /// Removes what was written: it is no longer wanted.
    ///
    /// # Errors
    /// [`StoreError::Io`] when the disk says so; that is no reason to stop, the file is removed at the next opening.
    pub fn abandon(self) -> Result<(), StoreError> {
        match self.end {
            None => self.remove(),
            Some(_) => Ok(()),
        }
    }

    fn end_block(&mut self) -> Result<(), StoreError> {
        let draft = self.draft.take().expect("only an open block is ended");
        self.index.push(draft.end(&mut self.out, self.out_at, self.salt));
        if self.out.len() < WRITE_LEN {
            return Ok(());
        }
        let written = self.write().and_then(|()| self.sync_sometimes());
        self.or_end(written)
    }

    /// Appends the table of ids, the index and the footer.
    fn append_end(&mut self, last: Seq) {
        self.ids.sort_unstable();
        let firsts = ids::append(&mut self.out, self.out_at, &self.ids, self.salt);
        let start = self.out.len();
        for entry in &self.index {
            entry.encode(&mut self.out);
        }
        for first in firsts {
            self.out.extend_from_slice(&first.to_le_bytes());
        }
        let footer = Footer {
            count: self.count,
            bytes: self.bytes,
            first: self.first,
            last,
            expires: self.expires,
            index_at: self.out_at + start as u64,
            blocks: u32::try_from(self.index.len()).expect("so many blocks would be 256 TiB"),
            ids: u32::try_from(self.ids.len()).expect("each has an ordinal of its own"),
            index_crc: crc32c::crc32c_append(self.salt, &self.out[start..]),
        };
        self.out.extend_from_slice(&footer.encode(self.salt));
    }

    fn write(&mut self) -> Result<(), StoreError> {
        let written = self.file.write_at(self.out_at, &self.out);
        written.map_err(|source| StoreError::io("write to", &self.name, source))?;
        self.out_at += self.out.len() as u64;
        self.out.clear();
        // A long message must not stay in memory until the end.
        self.out.shrink_to(2 * WRITE_LEN);
        self.encoded.shrink_to(WRITE_LEN);
        Ok(())
    }

    fn sync_sometimes(&mut self) -> Result<(), StoreError> {
        if self.out_at - self.synced >= SYNC_LEN {
            self.file.sync_data().map_err(|source| StoreError::io("sync", &self.name, source))?;
            self.synced = self.out_at;
        }
        Ok(())
    }

    fn check_health(&self) -> Result<(), StoreError> {
        match &self.end {
            None => Ok(()),
            Some(End::Full) => Err(StoreError::Full),
            Some(End::Poisoned(why)) => Err(StoreError::Poisoned { why: why.clone() }),
        }
    }

    /// The first error is the last: a full disk keeps nothing half-made, any other may mean anything.
    fn or_end(&mut self, result: Result<(), StoreError>) -> Result<(), StoreError> {
        let Err(error) = result else { return Ok(()) };
        let error = if error.is_full() { self.remove().err().unwrap_or(StoreError::Full) } else { error };
        self.end = Some(match &error {
            StoreError::Full => End::Full,
            error => End::Poisoned(error.to_string()),
        });
        Err(error)
    }

    fn remove(&self) -> Result<(), StoreError> {
        let removed = self.disk.remove(&self.name).and_then(|()| self.disk.sync_dir());
        removed.map_err(|source| StoreError::io("remove", &self.name, source))
    }
}

fn full_or(error: StoreError) -> StoreError {
    if error.is_full() { StoreError::Full } else { error }
}
