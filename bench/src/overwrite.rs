//! What the disk allows at most: one write and one `fdatasync` after the other, over a file that was written before.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

const FILE_BYTES: u64 = 64 << 20;

pub(crate) struct Overwrite {
    file: File,
    /// Where the next write goes.
    at: u64,
}

impl Overwrite {
    /// The file, from its beginning; filled with zeros and synced if it is new.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        if file.metadata()?.len() == 0 {
            file.write_all_at(&vec![0; FILE_BYTES as usize], 0)?;
            file.sync_all()?;
        }
        Ok(Self { file, at: 0 })
    }

    /// Begins again where the file ends.
    pub(crate) fn write_and_sync(&mut self, block: &[u8]) -> io::Result<()> {
        if self.at + block.len() as u64 > FILE_BYTES {
            self.at = 0;
        }
        self.file.write_all_at(block, self.at)?;
        self.at += block.len() as u64;
        self.file.sync_data()
    }
}
