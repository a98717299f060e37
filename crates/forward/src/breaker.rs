//! Breakers: one for each lane that fails, and none for those that do not.
//!
//! ```text
//!   closed ── so many failures in a row, or the receiver is busy ──▶ open ── time passes ──▶ half open: one message goes
//!     ▲                                                               ▲                        │ it fails
//!     └──────────────────────── a message is accepted ────────────────┴────────────────────────┘
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;

use overtake_lane::{Backoff, Time};

/// What a lane that failed lately has behind it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Breaker {
    /// Failures since something of the lane was accepted.
    pub(crate) failures: u32,
    /// How often it was opened since then.
    opened: u32,
    /// Until when it is open; over: half open.
    pub(crate) until: Option<Time>,
    /// The one message that is tried is under way.
    is_tried: bool,
}

/// The breakers of an endpoint, by lane.
#[derive(Clone, Debug)]
pub(crate) struct Breakers {
    failures_max: u32,
    open: Backoff,
    all: BTreeMap<Arc<str>, Breaker>,
}

impl Breakers {
    pub(crate) fn new(failures_max: u32, open: Backoff) -> Self {
        Self { failures_max, open, all: BTreeMap::new() }
    }

    /// Lanes of which nothing may be sent now.
    pub(crate) fn shut(&self, now: Time) -> impl Iterator<Item = &Arc<str>> {
        let is_shut = move |one: &Breaker| one.until.is_some_and(|until| now < until || one.is_tried);
        self.all.iter().filter(move |(_, one)| is_shut(one)).map(|(lane, _)| lane)
    }

    /// Whether nothing more of a lane is to be begun.
    pub(crate) fn is_open(&self, now: Time, lane: &str) -> bool {
        self.get(lane).and_then(|one| one.until).is_some_and(|until| now < until)
    }

    /// When the next of them is half open.
    pub(crate) fn wakes_at(&self, now: Time) -> Time {
        let until = self.all.values().filter_map(|one| one.until).filter(|until| *until > now);
        until.min().unwrap_or(Time::NEVER)
    }

    pub(crate) fn get(&self, lane: &str) -> Option<&Breaker> {
        self.all.get(lane)
    }

    /// Something of the lane is about to be sent. True: one message is enough, to see whether it works again.
    pub(crate) fn tries(&mut self, lane: &str) -> bool {
        match self.all.get_mut(lane) {
            Some(one) if one.until.is_some() => {
                one.is_tried = true;
                true
            }
            _ => false,
        }
    }

    /// Nothing of what was tried is under way any more.
    pub(crate) fn tried(&mut self, lane: &str) {
        if let Some(one) = self.all.get_mut(lane) {
            one.is_tried = false;
        }
    }

    pub(crate) fn accepted(&mut self, lane: &str) {
        self.all.remove(lane);
    }

    pub(crate) fn failed(&mut self, now: Time, lane: &Arc<str>) {
        let (failures_max, open) = (self.failures_max, self.open);
        let one = self.all.entry(Arc::clone(lane)).or_default();
        one.failures += 1;
        // What was under way already when it opened says nothing new.
        if one.until.is_none_or(|until| until <= now) && (one.until.is_some() || one.failures >= failures_max)
        {
            one.opened += 1;
            one.until = Some(now.after(open.wait_ms(one.opened)));
        }
    }

    /// The receiver says when to come again.
    pub(crate) fn busy(&mut self, now: Time, lane: &Arc<str>, ms: u64) {
        let one = self.all.entry(Arc::clone(lane)).or_default();
        one.until = Some(one.until.unwrap_or(now).max(now.after(ms)));
    }

    /// All are closed.
    pub(crate) fn reset(&mut self) {
        self.all.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn breakers() -> Breakers {
        Breakers::new(2, Backoff { initial_ms: 100, multiplier: 2, max_ms: 1_000 })
    }

    fn shut(breakers: &Breakers, now: u64) -> String {
        breakers.shut(Time(now)).map(|lane| &**lane).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_lane_that_fails_is_shut_for_longer_and_longer_and_no_other_lane() {
        let (mut breakers, low): (_, Arc<str>) = (breakers(), "low".into());
        breakers.failed(Time(0), &low);
        assert_eq!(shut(&breakers, 0), "");
        breakers.failed(Time(0), &low);
        assert_eq!((shut(&breakers, 99), shut(&breakers, 100)), ("low".to_owned(), String::new()));
        assert!(breakers.tries("low"));
        assert!(!breakers.tries("high"));
        assert_eq!(shut(&breakers, 100), "low", "one message is tried, and no more");
        breakers.failed(Time(100), &low);
        breakers.tried("low");
        assert_eq!((shut(&breakers, 299), shut(&breakers, 300)), ("low".to_owned(), String::new()));
        breakers.accepted("low");
        assert_eq!(breakers.wakes_at(Time(300)), Time::NEVER);
        assert!(!breakers.tries("low"));
    }

    #[test]
    fn who_is_busy_is_asked_again_when_it_said() {
        let (mut breakers, low): (_, Arc<str>) = (breakers(), "low".into());
        breakers.busy(Time(0), &low, 5_000);
        breakers.busy(Time(0), &low, 1);
        assert_eq!(breakers.wakes_at(Time(0)), Time(5_000));
        breakers.tries("low");
        breakers.tried("low");
        assert_eq!(shut(&breakers, 5_000), "");
    }
}
