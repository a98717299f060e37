//! What a broker remembers of the clock that it was handed the time from, so that after a restart nothing waits for a clock that was
//! ahead and has been set right meanwhile.
//!
//! Deadlines of leases and delays are stored as moments. A moment that a wrong clock gave lies far off when the right clock reads it.
//! So while something is leased or delayed, the time is noted as metadata with the next change once [`NOTE_MS`] have passed, in the same record and
//! before it, so that no crash comes between the two:
//!
//! | key | value |
//! |---|---|
//! | `broker/clock` | the time of the broker, ms since 1970, and by how much it was ahead of the wall clock, ms: two numbers of 8 bytes, the lowest byte first |
//!
//! When a store is opened, the larger of two is how far its clock was ahead: the noted time minus now, and what was noted as ahead. All
//! leases of pulls and all delays end so much earlier. So none waits longer than it would have, but for [`NOTE_MS`] at most.

use std::sync::Arc;

use crate::broker::Broker;
use crate::command::Step;
use crate::fact::Fact;
use crate::ids::{QueueId, Time};

/// The key of what is noted. Whoever lists metadata leaves it out.
pub const CLOCK_KEY: &str = "broker/clock";
/// The time is noted so often at most, ms.
const NOTE_MS: u64 = 60_000;
/// A clock that is off by no more is right, ms.
pub const CLOCK_STEP_MS: u64 = 1_000;

/// The time noted last, and how far ahead of the wall clock it was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Noted {
    at: Time,
    ahead_ms: u64,
}

impl Noted {
    /// `None`: it makes no sense.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let (at, ahead) = bytes.split_at_checked(8)?;
        let number = |bytes: &[u8]| Some(u64::from_le_bytes(bytes.try_into().ok()?));
        Some(Self { at: Time(number(at)?), ahead_ms: number(ahead)? })
    }

    fn encode(self) -> Arc<[u8]> {
        [self.at.0, self.ahead_ms].into_iter().flat_map(u64::to_le_bytes).collect()
    }

    /// By how much the clock of then was ahead of the one that says that it is now, ms.
    fn ahead_of(self, now: Time) -> u64 {
        self.at.since(now).max(self.ahead_ms)
    }
}

impl Broker {
    /// Whether the time is to be [noted](Broker::note_clock): something is leased or delayed, and what was noted last does not say well enough how far
    /// the time handed in, which is ahead of the wall clock by so much, is now.
    #[must_use]
    pub fn must_note_clock(&self, ahead_ms: u64) -> bool {
        let Noted { at, ahead_ms: before } = self.clock;
        let is_due = self.now.since(at) >= NOTE_MS || ahead_ms.abs_diff(before) > CLOCK_STEP_MS;
        is_due && self.outstanding() > 0
    }

    /// Notes the time; the time handed in is ahead of the wall clock by so much. A fact says so.
    pub fn note_clock(&mut self, ahead_ms: u64, step: &mut Step) {
        self.set_clock(Noted { at: self.now, ahead_ms }, step);
    }

    fn set_clock(&mut self, noted: Noted, step: &mut Step) {
        let (key, value): (Arc<str>, _) = (CLOCK_KEY.into(), noted.encode());
        self.clock = noted;
        self.metadata.store(Arc::clone(&key), Arc::clone(&value));
        step.facts.push(Fact::MetadataStored { key, value });
    }

    /// After the last fact: where the clock was ahead, what it gave an end ends so much earlier.
    pub(crate) fn set_right(&mut self, now: Time, step: &mut Step) {
        let ahead_ms = self.clock.ahead_of(now);
        if ahead_ms <= CLOCK_STEP_MS {
            return;
        }
        for id in self.vhosts.queues().collect::<Vec<QueueId>>() {
            self.queue_mut(id).set_back(ahead_ms, step);
        }
        self.set_clock(Noted { at: now, ahead_ms: 0 }, step);
    }
}
