//! What can go wrong with a store: never retried, never logged and carried on from.

use std::path::Path;
use std::{fmt, io};

use crate::decide::Sight;

/// The store failed, or refuses.
#[derive(Debug)]
pub enum StoreError {
    /// A write or sync failed earlier: what is on the disk is unknown until the store is opened anew.
    Poisoned {
        /// The failure.
        why: String,
    },
    /// There is no room. Asking again later is allowed.
    Full,
    /// The process, or the system, may open no more files. Nothing has changed; asking again later is allowed.
    TooManyFiles {
        /// What was tried, as a verb.
        op: &'static str,
        /// Name or path of the file.
        file: String,
    },
    /// Bytes that were once durable are no longer what was written.
    Corrupt {
        /// Name of the file.
        file: String,
        /// Offset in the file, bytes.
        at: u64,
        /// What is there instead.
        what: Sight,
    },
    /// Another process, or another part of this one, has the store open.
    Locked,
    /// The store was written by a newer version of the program.
    Newer {
        /// Name of the file.
        file: String,
        /// The format it is written in.
        found: u32,
        /// The newest format known here.
        known: u32,
    },
    /// The file belongs to another store.
    OtherStore {
        /// Name of the file.
        file: String,
        /// The store it belongs to.
        found: u64,
        /// The store that was expected.
        wanted: u64,
    },
    /// The directory holds no journal.
    NotAStore,
    /// The directory holds segments and no journal: it was a store, and is not begun anew.
    JournalMissing {
        /// How many segments.
        segments: usize,
    },
    /// The disk said no.
    Io {
        /// What was tried, as a verb: "write to", "sync".
        op: &'static str,
        /// Name or path of the file.
        file: String,
        /// What the disk said.
        source: io::Error,
    },
    /// The record is longer than a journal file can hold.
    RecordTooLong {
        /// Its length, bytes.
        len: usize,
        /// The longest allowed, bytes.
        max: usize,
    },
    /// `segment_bytes` is outside what the format allows, or not a multiple of its page.
    BadSegmentBytes {
        /// What was asked for, bytes.
        asked: u64,
    },
}

impl StoreError {
    pub(crate) fn io(op: &'static str, file: &str, source: io::Error) -> Self {
        let file = file.to_owned();
        if is_too_many_files(&source) {
            Self::TooManyFiles { op, file }
        } else {
            Self::Io { op, file, source }
        }
    }

    /// As [`StoreError::io`] of a read at this place: what the disk cannot read is damage there.
    pub(crate) fn read(file: &str, at: u64, source: io::Error) -> Self {
        if is_unreadable(&source) {
            return Self::Corrupt { file: file.to_owned(), at, what: Sight::Unreadable };
        }
        Self::io("read", file, source)
    }

    pub(crate) fn at(op: &'static str, path: &Path, source: io::Error) -> Self {
        Self::io(op, &path.display().to_string(), source)
    }

    /// Whether nothing has changed, and trying again later may do: there is no room, or too many files are open.
    #[must_use]
    pub fn is_passing(&self) -> bool {
        matches!(self, Self::Full | Self::TooManyFiles { .. })
    }

    /// Whether one file cannot be read because of what it is: it may not be read, or is none. Other files of the store can be.
    #[must_use]
    pub fn is_of_its_file(&self) -> bool {
        use io::ErrorKind::{IsADirectory, NotADirectory, PermissionDenied};
        let Self::Io { op: "open" | "read" | "remove", source, .. } = self else { return false };
        matches!(source.kind(), PermissionDenied | IsADirectory | NotADirectory)
    }

    /// Whether the cause is a full disk: [`StoreError::Full`], or an [`StoreError::Io`] that says so.
    #[must_use]
    pub fn is_full(&self) -> bool {
        match self {
            Self::Full => true,
            Self::Io { source, .. } => {
                matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
            }
            _ => false,
        }
    }

    /// Whether the cause is a file or directory that is not there.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Poisoned { why } => {
                write!(f, "the store stopped after a failure ({why}): restart to recover what is on the disk")
            }
            Self::TooManyFiles { op, file } => write!(
                f,
                "cannot {op} {file}: too many files are open; raise the limit (ulimit -n, LimitNOFILE) or allow fewer connections"
            ),
            Self::Full => f.write_str("no room left in the journal: free disk space, or settle messages"),
            Self::Corrupt { file, at, what } => {
                write!(
                    f,
                    "damage in {file} at byte {at}: {what}; restore a backup, or open skipping what is damaged"
                )
            }
            Self::Locked => f.write_str("another process has this store open"),
            Self::Newer { file, found, known } => {
                write!(
                    f,
                    "{file} has format {found}, this program knows formats up to {known}: use a newer one"
                )
            }
            Self::OtherStore { file, found, wanted } => {
                write!(f, "{file} belongs to store {found:016x}, not to {wanted:016x}")
            }
            Self::JournalMissing { segments } => {
                let plural = if *segments == 1 { "" } else { "s" };
                write!(
                    f,
                    "the journal is missing: {segments} segment{plural} with messages and no journal file are here"
                )
            }
            Self::NotAStore => f.write_str("no journal in this directory: not a store"),
            Self::Io { op, file, source } => write!(f, "cannot {op} {file}: {source}"),
            Self::RecordTooLong { len, max } => write!(f, "record of {len} bytes, at most {max} fit"),
            Self::BadSegmentBytes { asked } => write!(
                f,
                "journal files of {asked} bytes: use a multiple of {} from {} to {}",
                crate::file::PAGE_LEN,
                crate::file::SEGMENT_BYTES_MIN,
                crate::file::SEGMENT_BYTES_MAX
            ),
        }
    }
}

impl std::error::Error for StoreError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}

/// Whether the process (EMFILE) or the system (ENFILE) has as many files open as it may.
pub(crate) fn is_too_many_files(error: &io::Error) -> bool {
    let codes = [rustix::io::Errno::MFILE, rustix::io::Errno::NFILE].map(rustix::io::Errno::raw_os_error);
    error.raw_os_error().is_some_and(|code| codes.contains(&code))
}

/// Whether the medium has lost what was to be read, in the words of the block layer and of file systems with checksums of their own.
/// Anything else may be about the whole disk, or this process.
pub(crate) fn is_unreadable(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let codes = [Errno::IO, Errno::NODATA, Errno::ILSEQ, Errno::REMOTEIO, Errno::BADMSG, Errno::UCLEAN];
    error.raw_os_error().is_some_and(|code| codes.map(Errno::raw_os_error).contains(&code))
}
