//! Why there is no whole snapshot.

use std::{fmt, io};

use crate::error::StoreError;

/// A snapshot cannot be written, or is not what it should be.
#[derive(Debug)]
pub enum SnapshotError {
    /// The directory it should go to has something in it.
    NotEmpty {
        /// The name of something that is there.
        name: String,
    },
    /// Where it comes from ended, or said no.
    Read(io::Error),
    /// The disk it goes to, or comes from, said no.
    Store(StoreError),
    /// The end is missing: there is no manifest.
    Unfinished,
    /// The manifest makes no sense.
    BadManifest {
        /// What is wrong with it.
        why: String,
    },
    /// A file is not the one the manifest tells of.
    Differs {
        /// Its name.
        file: String,
        /// In which way.
        what: &'static str,
    },
    /// A name that no file of a snapshot has.
    BadName {
        /// The name.
        name: String,
    },
}

impl SnapshotError {
    /// Whether the disk it goes to is full.
    #[must_use]
    pub fn is_full(&self) -> bool {
        matches!(self, Self::Store(error) if error.is_full())
    }
}

impl From<StoreError> for SnapshotError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl fmt::Display for SnapshotError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotEmpty { name } => write!(f, "the directory is not empty: it has {name}"),
            Self::Read(source) => write!(f, "the snapshot cannot be read to its end: {source}"),
            Self::Store(error) => error.fmt(f),
            Self::Unfinished => {
                write!(f, "the snapshot is not whole: {} is missing", super::MANIFEST_NAME)
            }
            Self::BadManifest { why } => write!(f, "{} makes no sense: {why}", super::MANIFEST_NAME),
            Self::Differs { file, what } => {
                write!(f, "{file} is not as {} says: {what}", super::MANIFEST_NAME)
            }
            Self::BadName { name } => write!(f, "no file of a snapshot is called {name:?}"),
        }
    }
}

impl std::error::Error for SnapshotError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Read(source) => Some(source),
            Self::Store(error) => Some(error),
            _ => None,
        }
    }
}
