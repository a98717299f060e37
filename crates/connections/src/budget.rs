//! The memory that all connections together may hold for what is on its way in: contents that have not come whole, publishes that wait for a
//! commit, bodies of requests.
//!
//! Every connection counts what it holds. While the budget is used up, a connection that holds more than its share, which is the budget over
//! all that hold something, is not read: so one that holds little goes on, whatever the others hold. What is waited for may never come, since
//! those who hold the rest may wait, too; so a connection is refused after [`PATIENCE`], which gives back what it holds.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::sync::futures::OwnedNotified;

/// How long a connection that holds more than its share is not read before it is refused.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// The memory that all connections together may hold. Clones share it.
#[derive(Clone, Debug)]
pub struct Budget(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    limit: u64,
    bytes: AtomicU64,
    holders: AtomicU64,
    waits: AtomicU64,
    refused: AtomicU64,
    freed: Arc<Notify>,
}

/// What connections hold of a [`Budget`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// Bytes that are held.
    pub bytes: u64,
    /// The most there may be, about.
    pub limit: u64,
    /// How often a connection was not read for lack of memory.
    pub waits: u64,
    /// How often one was refused for it.
    pub refused: u64,
}

/// What one connection, or one request, holds. Dropped, it is given back.
#[derive(Debug)]
pub(crate) struct Holding {
    budget: Budget,
    bytes: u64,
}

impl Budget {
    /// So many bytes.
    #[must_use]
    pub fn new(limit: u64) -> Self {
        Self(Arc::new(Shared {
            limit,
            bytes: AtomicU64::new(0),
            holders: AtomicU64::new(0),
            waits: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            freed: Arc::default(),
        }))
    }

    /// What is held now.
    #[must_use]
    pub fn held(&self) -> Held {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let Shared { limit, bytes, waits, refused, .. } = &*self.0;
        Held { bytes: of(bytes), limit: *limit, waits: of(waits), refused: of(refused) }
    }

    /// Nothing yet, of one connection or request.
    pub(crate) fn hold(&self) -> Holding {
        Holding { budget: self.clone(), bytes: 0 }
    }
}

impl Holding {
    /// It holds so many bytes now.
    pub(crate) fn set(&mut self, bytes: u64) {
        // Most connections hold nothing, before and after.
        if bytes == self.bytes {
            return;
        }
        let (shared, before) = (&self.budget.0, std::mem::replace(&mut self.bytes, bytes));
        match (before, bytes) {
            (0, 1..) => drop(shared.holders.fetch_add(1, Ordering::Relaxed)),
            (1.., 0) => drop(shared.holders.fetch_sub(1, Ordering::Relaxed)),
            _ => {}
        }
        if bytes >= before {
            shared.bytes.fetch_add(bytes - before, Ordering::Relaxed);
        } else {
            shared.bytes.fetch_sub(before - bytes, Ordering::Relaxed);
            shared.freed.notify_waiters();
        }
    }

    /// It holds so many bytes more.
    pub(crate) fn add(&mut self, bytes: u64) {
        self.set(self.bytes + bytes);
    }

    /// Whether it may hold more.
    pub(crate) fn may_grow(&self) -> bool {
        if self.bytes == 0 {
            return true;
        }
        let shared = &self.budget.0;
        let holders = shared.holders.load(Ordering::Relaxed).max(1);
        self.bytes < shared.limit / holders || shared.bytes.load(Ordering::Relaxed) < shared.limit
    }

    /// Counts that it is not read for now.
    pub(crate) fn count_wait(&self) {
        self.budget.0.waits.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts that it is refused.
    pub(crate) fn count_refusal(&self) {
        self.budget.0.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// Ready when something was given back since this was called: whether it may grow now is to be asked after the call.
    pub(crate) fn freed(&self) -> OwnedNotified {
        Arc::clone(&self.budget.0.freed).notified_owned()
    }
}

impl Drop for Holding {
    fn drop(&mut self) {
        self.set(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn while_the_budget_is_used_up_those_who_hold_less_than_their_share_go_on() {
        let budget = Budget::new(100);
        let (mut large, mut small, mut new) = (budget.hold(), budget.hold(), budget.hold());
        large.set(99);
        assert!(large.may_grow(), "nobody else holds anything");
        large.set(120);
        small.set(10);
        assert!(!large.may_grow() && small.may_grow() && new.may_grow());
        new.set(40);
        assert!(!new.may_grow(), "a third of 100 is its share");
        drop(large);
        assert!(new.may_grow() && small.may_grow());
        assert_eq!(budget.held().bytes, 50);
        drop((small, new));
        assert_eq!((budget.held().bytes, budget.0.holders.load(Ordering::Relaxed)), (0, 0));
    }

    #[tokio::test]
    async fn whoever_waits_hears_that_something_was_given_back() {
        let budget = Budget::new(10);
        let (mut one, mut two) = (budget.hold(), budget.hold());
        one.set(10);
        two.set(10);
        let freed = tokio::spawn(two.freed());
        while !freed.is_finished() {
            one.add(1);
            one.set(1);
            tokio::task::yield_now().await;
        }
        assert!(two.may_grow() || budget.held().bytes >= 10);
    }
}
