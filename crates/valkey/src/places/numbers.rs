//! Numbers of calls, so that one that is asked again is known.

use std::sync::Mutex;

use tokio::sync::{Semaphore, SemaphorePermit};

use crate::functions::CALLS_MAX;

/// The numbers of one caller's calls to one place: [`CALLS_MAX`] at once, and each remembered there until its caller has its answer.
#[derive(Debug)]
pub(super) struct Numbers {
    /// The next number of each slot in which a call is remembered, where that is free.
    free: Mutex<Vec<u64>>,
    room: Semaphore,
}

/// A number in use.
pub(super) struct Number<'n> {
    pub(super) value: u64,
    numbers: &'n Numbers,
    _room: SemaphorePermit<'n>,
}

impl Numbers {
    pub(super) fn new() -> Self {
        let free = (CALLS_MAX..2 * CALLS_MAX).rev().collect();
        Self { free: Mutex::new(free), room: Semaphore::new(CALLS_MAX as usize) }
    }

    /// As soon as one is free.
    pub(super) async fn take(&self) -> Number<'_> {
        let room = self.room.acquire().await.expect("it is never closed");
        let value = self.free.lock().expect("nobody panics with it").pop().expect("there is room");
        Number { value, numbers: self, _room: room }
    }
}

impl Drop for Number<'_> {
    fn drop(&mut self) {
        let mut free = self.numbers.free.lock().expect("nobody panics with it");
        free.push(self.value + CALLS_MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn no_two_calls_under_way_are_remembered_in_one_slot() {
        let numbers = Numbers::new();
        let mut slow = Vec::new();
        for _ in 0..CALLS_MAX - 1 {
            slow.push(numbers.take().await);
        }
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..100 {
            let number = numbers.take().await;
            assert!(seen.insert(number.value), "none is used twice");
            assert!(slow.iter().all(|other| other.value % CALLS_MAX != number.value % CALLS_MAX));
        }
    }
}
