//! Permits of an inbox: they bound how many requests wait in line, and how many bytes of messages they bring.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::api::BytesInUse;

/// The permits of an inbox: one for each request, and one for each KiB of the messages that it publishes.
#[derive(Clone, Debug)]
pub struct Places {
    free: Arc<Semaphore>,
    count: usize,
    free_kib: Arc<Semaphore>,
    kib: u32,
    waits: Arc<AtomicU64>,
}

/// Places taken, until this is dropped.
#[derive(Debug)]
pub struct Taken {
    _places: OwnedSemaphorePermit,
    _bytes: Option<OwnedSemaphorePermit>,
}

impl Places {
    /// For so many requests, one at least, with so many bytes of messages.
    #[must_use]
    pub fn new(count: usize, bytes: u64) -> Self {
        let count = count.clamp(1, Semaphore::MAX_PERMITS);
        let kib = u32::try_from((bytes >> 10).max(1)).unwrap_or(u32::MAX >> 4);
        let free_kib = Arc::new(Semaphore::new(kib as usize));
        Self { free: Arc::new(Semaphore::new(count)), count, free_kib, kib, waits: Arc::default() }
    }

    /// Waits until so many requests have room, with so many bytes of messages, in turn. Requests that need more than there is at all wait for all
    /// of it.
    ///
    /// # Panics
    /// Never: nobody closes the semaphores.
    pub async fn take(&self, requests: usize, bytes: u64) -> Taken {
        let taken = requests.min(self.count).try_into().unwrap_or(u32::MAX);
        let free = Arc::clone(&self.free).acquire_many_owned(taken).await;
        let places = free.expect("places are never closed");
        let kib = u32::try_from(bytes.div_ceil(1 << 10)).unwrap_or(u32::MAX).min(self.kib);
        if kib == 0 {
            return Taken { _places: places, _bytes: None };
        }
        let bytes = match Arc::clone(&self.free_kib).try_acquire_many_owned(kib) {
            Ok(bytes) => bytes,
            Err(_) => {
                self.waits.fetch_add(1, Ordering::Relaxed);
                let free = Arc::clone(&self.free_kib).acquire_many_owned(kib).await;
                free.expect("places are never closed")
            }
        };
        Taken { _places: places, _bytes: Some(bytes) }
    }

    /// Bytes of messages that wait in line, the most there may be, and how often somebody waited for room for them.
    #[must_use]
    pub fn bytes(&self) -> BytesInUse {
        let limit = u64::from(self.kib) << 10;
        let free = (self.free_kib.available_permits() as u64) << 10;
        BytesInUse { bytes: limit.saturating_sub(free), limit, waits: self.waits.load(Ordering::Relaxed) }
    }
}
