//! What is asked of a memory disk, and what may go wrong with it.

use std::io;

/// How many operations of each kind there have been.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Reads.
    pub reads: u64,
    /// Writes, and changes of length.
    pub writes: u64,
    /// Bytes written.
    pub bytes_written: u64,
    /// Syncs of files.
    pub syncs: u64,
    /// Syncs of the directory.
    pub dir_syncs: u64,
    /// Files created, renamed and removed.
    pub names: u64,
}

impl Counts {
    /// All operations together.
    #[must_use]
    pub fn operations(&self) -> u64 {
        self.reads + self.writes + self.syncs + self.dir_syncs + self.names
    }

    pub(super) fn count(&mut self, kind: OperationKind, len: u64) {
        match kind {
            OperationKind::Read => self.reads += 1,
            OperationKind::Write => {
                self.writes += 1;
                self.bytes_written += len;
            }
            OperationKind::SetLen => self.writes += 1,
            OperationKind::SyncData | OperationKind::SyncAll => self.syncs += 1,
            OperationKind::Create | OperationKind::Rename | OperationKind::Remove => self.names += 1,
            OperationKind::SyncDir => self.dir_syncs += 1,
        }
    }
}

/// An operation about to be done.
#[derive(Clone, Copy, Debug)]
pub struct Operation<'a> {
    /// How many came before it.
    pub index: u64,
    /// What it is.
    pub kind: OperationKind,
    /// The file's name; empty for the directory.
    pub name: &'a str,
    /// Where in the file, bytes.
    pub offset: u64,
    /// How many bytes.
    pub len: u64,
}

/// The kinds of operation.
#[expect(missing_docs, reason = "the names are those of the traits' methods")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperationKind {
    Read,
    Write,
    SetLen,
    SyncData,
    SyncAll,
    Create,
    Rename,
    Remove,
    SyncDir,
}

/// What shall go wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing.
    None,
    /// The operation fails and has no effect.
    Error(io::ErrorKind),
    /// As [`Fault::Error`]: the medium has lost what is to be read.
    Unreadable,
    /// As [`Fault::Error`]: the process has as many files open as it may.
    TooManyFiles,
    /// A sync fails, and later ones lie; any other operation fails and has no effect.
    FailSync,
    /// The power fails, after a write or a change of name was issued, before a sync is done.
    PowerCut,
    /// The process is killed, at the same point.
    Kill,
}
