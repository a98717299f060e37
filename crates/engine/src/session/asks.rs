//! The half of a session that asks.

use std::sync::Arc;

use overtake_lane::ConsumerId;
use tokio::sync::{Semaphore, SemaphorePermit};

use super::{Line, Taken};
use crate::core::Request;

/// Most requests of one batch.
pub const BATCH_MAX: usize = 1_024;
/// Most answers of one session that were asked for and have not been taken from [`Events`](super::Events).
pub const UNHEARD_MAX: usize = 16_384;

/// One request of a session.
#[derive(Clone, Debug)]
pub struct Ask {
    /// What its answer is called; `None`: it is not answered, whatever comes of it.
    pub token: Option<u64>,
    /// What is asked.
    pub request: Request,
}

/// Where a session asks.
pub struct Asks {
    line: Arc<dyn Line>,
    unheard: Arc<Semaphore>,
}

impl Asks {
    pub(super) fn new(line: Arc<dyn Line>, unheard: Arc<Semaphore>) -> Self {
        Self { line, unheard }
    }

    /// A number for a lease or a consumer that nobody else has.
    #[must_use]
    pub fn next_consumer(&self) -> ConsumerId {
        self.line.next_consumer()
    }

    /// Waits until so many requests have room, [`BATCH_MAX`] at most. Given up at any moment it takes nothing.
    ///
    /// # Panics
    /// If there are more.
    pub async fn room(&self, requests: usize) -> Room<'_> {
        self.room_with(requests, 0).await
    }

    /// As [`Asks::room`], for these requests, with the bytes of the messages that they publish.
    ///
    /// # Panics
    /// If there are too many.
    pub async fn room_for(&self, asks: &[Ask]) -> Room<'_> {
        self.room_with(asks.len(), asks.iter().map(|ask| ask.request.published_bytes()).sum()).await
    }

    async fn room_with(&self, requests: usize, bytes: u64) -> Room<'_> {
        assert!(requests <= BATCH_MAX, "a batch has at most {BATCH_MAX} requests");
        let unheard = self.unheard.acquire_many(requests as u32).await;
        let unheard = unheard.expect("it is never closed");
        Room { line: &*self.line, unheard, places: self.line.places().take(requests, bytes).await }
    }

    /// Asks as soon as there is room, [`BATCH_MAX`] requests at a time. Given up it has asked for some and not for others: who
    /// may give up waits for [`Asks::room`] first.
    pub async fn ask(&self, asks: Vec<Ask>) {
        let mut asks = asks;
        while !asks.is_empty() {
            let rest = asks.split_off(asks.len().min(BATCH_MAX));
            self.room_for(&asks).await.ask(asks);
            asks = rest;
        }
    }
}

/// Room for a batch. Dropped, it is given back.
pub struct Room<'a> {
    line: &'a dyn Line,
    unheard: SemaphorePermit<'a>,
    places: Taken,
}

impl Room<'_> {
    /// Asks. What comes of it is among the events; nothing, if the engine is gone.
    ///
    /// # Panics
    /// If there is not so much room.
    pub fn ask(mut self, asks: Vec<Ask>) {
        let answered = asks.iter().filter(|ask| ask.token.is_some()).count();
        // What is not answered need not be heard.
        self.unheard.split(answered).expect("there is room for the batch").forget();
        assert!(asks.len() <= BATCH_MAX, "there is room for the batch");
        self.line.ask(asks, self.places);
    }
}
