//! Counts, in tests, what is done for several consumers at a time: so that they compare many with few without a clock.

#[cfg(test)]
use std::cell::Cell;

#[cfg(test)]
thread_local! {
    pub(super) static DONE: Cell<u64> = const { Cell::new(0) };
}

#[cfg(test)]
pub(super) fn count_work(steps: usize) {
    DONE.with(|done| done.set(done.get() + steps as u64));
}

#[cfg(not(test))]
#[inline]
pub(super) fn count_work(_: usize) {}
