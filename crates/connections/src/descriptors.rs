//! File descriptors that connections may take, of those that the process may have.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The number of file descriptors that the connections of all listeners may take together. Clones share it.
///
/// The rest is for the store: a broker that cannot open a file cannot take messages, so connections are refused first.
#[derive(Clone, Debug)]
pub struct Descriptors(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    left: Arc<Semaphore>,
    refused: AtomicU64,
}

impl Descriptors {
    /// At most so many connections at once.
    #[must_use]
    pub fn new(most: usize) -> Self {
        let left = Arc::new(Semaphore::new(most.min(Semaphore::MAX_PERMITS)));
        Self(Arc::new(Shared { left, refused: AtomicU64::new(0) }))
    }

    /// Connections that were refused so far, since all that may be open were.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.0.refused.load(Ordering::Relaxed)
    }

    /// One for a connection, if there is one left. Dropped, it is given back.
    pub(crate) fn take(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.0.left).try_acquire_owned().ok()
    }

    /// Counts a connection that is refused.
    pub(crate) fn refuse(&self) {
        self.0.refused.fetch_add(1, Ordering::Relaxed);
    }
}
