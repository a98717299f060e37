//! Named pipes: a program and a test wait for each other without looking at a clock.

use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, mknodat};

/// A pipe with a name. Opening it waits for the other side.
pub struct Fifo(PathBuf);

impl Fifo {
    /// Makes one.
    pub fn make(path: PathBuf) -> Self {
        mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a fifo");
        Self(path)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Waits until a program has written something and closed it.
    pub fn read(&self) -> String {
        std::fs::read_to_string(&self.0).expect("a fifo").trim().to_owned()
    }

    /// Waits until a program reads, and gives it a line.
    pub fn open(&self) {
        std::fs::write(&self.0, "go\n").expect("a fifo");
    }
}
