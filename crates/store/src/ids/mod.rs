//! Ids of messages in segments.
mod hash;

pub(crate) use hash::{IdEntry, IdHasher};
