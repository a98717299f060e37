//! An engine as whoever runs it sees it: how full it is, when it fails, how it ends.
//!
//! Front ends see an [`Engine`] and no more, wherever it keeps its messages.

use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use overtake_engine::{Engine, Full, LocalEngine};
use tokio::sync::watch::Receiver;

use crate::ServeError;

/// Something that is waited for.
pub(crate) type Waiting<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// An engine that this process runs.
pub(crate) trait Running: Engine {
    /// Why publishes are refused, now and whenever it changes; `None` while they are taken. Where room is not the broker's to see to, nobody
    /// says anything.
    fn full(&self) -> Receiver<Option<Full>>;

    /// Waits until it can serve no more, and answers why. Never ends while all is well.
    fn failed(&self) -> Waiting<'_, Arc<str>>;

    /// Does what was asked before, makes it durable, and ends.
    fn close(self: Arc<Self>) -> Waiting<'static, Result<(), ServeError>>;
}

/// An engine that was opened.
pub(crate) struct Opened {
    /// It.
    pub(crate) running: Arc<dyn Running>,
    /// Where its messages are.
    pub(crate) found: Found,
}

/// Where messages are kept, and what was found there.
#[derive(Clone, Debug)]
pub enum Found {
    /// In a directory, which is this process's own.
    Store(FoundStore),
    /// On servers of Redis or Valkey, which other processes share.
    Servers {
        /// Where those are that take writes.
        primaries: Vec<String>,
    },
}

/// A store that was opened.
#[derive(Clone, Debug)]
pub struct FoundStore {
    /// Its directory.
    pub dir: PathBuf,
    /// Queues that were in it.
    pub queues: u64,
    /// Messages that were in them.
    pub messages: u64,
    /// How often it was opened, this time included.
    pub life: u32,
    /// Damage that was skipped, one sentence each.
    pub skipped: Vec<String>,
}

impl Running for LocalEngine {
    fn full(&self) -> Receiver<Option<Full>> {
        Self::full(self)
    }

    fn failed(&self) -> Waiting<'_, Arc<str>> {
        Box::pin(Self::failed(self))
    }

    fn close(self: Arc<Self>) -> Waiting<'static, Result<(), ServeError>> {
        Box::pin(crate::open::blocking(move || Self::close(&self)))
    }
}
