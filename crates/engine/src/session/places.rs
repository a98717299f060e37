//! Places in line: what bounds an inbox.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The places of an inbox, for one request each.
#[derive(Clone, Debug)]
pub struct Places {
    free: Arc<Semaphore>,
    count: usize,
}

/// Places taken, until this is dropped.
#[derive(Debug)]
pub struct Taken(#[expect(dead_code, reason = "held until it is dropped")] OwnedSemaphorePermit);

impl Places {
    /// So many, one at least.
    #[must_use]
    pub fn new(count: usize) -> Self {
        let count = count.clamp(1, Semaphore::MAX_PERMITS);
        Self { free: Arc::new(Semaphore::new(count)), count }
    }

    /// Waits for so many, in turn; for all of them if there are not as many.
    ///
    /// # Panics
    /// Never: nobody closes them.
    pub async fn take(&self, requests: usize) -> Taken {
        let taken = requests.min(self.count).try_into().unwrap_or(u32::MAX);
        let free = Arc::clone(&self.free).acquire_many_owned(taken).await;
        Taken(free.expect("places are never closed"))
    }
}
