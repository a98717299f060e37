//! How often, where and why a message died: one entry for each queue and reason, the newest first.
//!
//! Invariants: there is one at least; no two are of the same queue and reason; the first death ever is among them.

use std::sync::Arc;

use crate::ids::Time;
use crate::letters::Route;

/// Most entries a message keeps. Beyond that the oldest is forgotten, but never the first death.
pub const DEATHS_MAX: usize = 32;
/// A message that died so often without a consumer rejecting it in between goes no further.
const UNREJECTED_MAX: usize = DEATHS_MAX - 1;

/// Why a message became a dead letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeathReason {
    /// A consumer rejected it.
    Rejected,
    /// It failed as often as the queue allows.
    DeliveryLimit,
    /// Its time to live was over.
    Expired,
    /// Its queue was full.
    Maxlen,
    /// Somebody worked on it for longer than the queue allows.
    Timeout,
}

/// One death, or several in the same queue for the same reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Death {
    /// Why.
    pub reason: DeathReason,
    /// The queue it died in.
    pub queue: Arc<str>,
    /// The lane it died in, the last time.
    pub lane: Arc<str>,
    /// When it died so first.
    pub first_at: Time,
    /// When it died so last.
    pub at: Time,
    /// How often it died so.
    pub times: u32,
    /// How often it had been leased there, the last time.
    pub count: u32,
    /// How it had come there, the first time.
    pub route: Route,
    /// The time to live of its own that it lost by this, ms.
    pub ttl_ms: Option<u64>,
}

/// Every death of a message that is remembered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deaths {
    /// The newest first.
    list: Vec<Death>,
    /// Where in it the first death ever is.
    first: usize,
    /// How it had come to where it died last.
    from: Route,
    /// How it came to where it is.
    route: Route,
}

impl Deaths {
    /// A history as it was told. `None` if there can be none like it.
    #[must_use]
    pub fn new(list: Vec<Death>, first: usize, from: Route, route: Route) -> Option<Self> {
        let fits = first < list.len() && list.len() <= DEATHS_MAX;
        fits.then_some(Self { list, first, from, route })
    }

    /// Another death, by which it loses the way by which it came. It stays where it is.
    pub(crate) fn another(before: Option<&Self>, death: Death, from: Route) -> Self {
        let from = from.bounded();
        let route = from.clone();
        let (mut list, first) = before.map_or((Vec::new(), 0), |before| (before.list.clone(), before.first));
        let same = list.iter().position(|old| old.reason == death.reason && old.queue == death.queue);
        let (death, first) = match same {
            None => (death, if before.is_some() { first + 1 } else { 0 }),
            Some(at) => {
                let old = list.remove(at);
                let times = old.times.saturating_add(1);
                let Death { lane, at: when, count, .. } = death;
                let first = match at.cmp(&first) {
                    std::cmp::Ordering::Less => first,
                    std::cmp::Ordering::Equal => 0,
                    std::cmp::Ordering::Greater => first + 1,
                };
                (Death { lane, at: when, count, times, ..old }, first)
            }
        };
        list.insert(0, death);
        let mut deaths = Self { list, first, from, route };
        deaths.forget();
        deaths
    }

    /// Forgets the oldest beyond what is kept.
    fn forget(&mut self) {
        if self.list.len() <= DEATHS_MAX {
            return;
        }
        let oldest = self.list.len() - 1;
        if self.first == oldest {
            self.list.remove(oldest - 1);
            self.first -= 1;
        } else {
            self.list.pop();
        }
    }

    /// The newest.
    #[must_use]
    pub fn last(&self) -> &Death {
        self.list.first().expect("who has a history died")
    }

    /// The first ever.
    #[must_use]
    pub fn first(&self) -> &Death {
        &self.list[self.first]
    }

    /// All, the newest first.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Death> {
        self.list.iter()
    }

    /// Where among all, counted from the newest, the first ever is.
    #[must_use]
    pub fn first_at(&self) -> usize {
        self.first
    }

    /// How it had come to where it died last.
    #[must_use]
    pub fn from(&self) -> &Route {
        &self.from
    }

    /// How it came to where it is.
    #[must_use]
    pub fn route(&self) -> &Route {
        &self.route
    }

    /// Bytes that it takes in a record, about: each name once, and the rest of each entry.
    pub(crate) fn size(&self) -> u64 {
        const ENTRY_LEN: usize = 40;
        let names = |death: &Death| death.queue.len() + death.lane.len() + death.route.size() + ENTRY_LEN;
        (self.route.size() + self.list.iter().map(names).sum::<usize>()) as u64
    }

    /// It goes on by another way.
    pub(crate) fn goes_by(&mut self, route: Route) {
        self.route = route.bounded();
    }

    /// It is back where it died last.
    pub(crate) fn comes_home(&mut self) {
        self.route = self.from.clone();
    }

    /// Whether it would come back to a queue that it died in, with no rejection from then on.
    pub(crate) fn comes_round_to(&self, queue: &str) -> bool {
        let there = self.list.iter().position(|death| &*death.queue == queue);
        there.is_some_and(|there| there < self.unrejected())
    }

    /// Whether it died so often without a rejection that it goes no further: a round of more queues than are remembered
    /// would never end.
    pub(crate) fn is_spent(&self) -> bool {
        self.unrejected() >= UNREJECTED_MAX
    }

    /// Deaths since it was last rejected.
    fn unrejected(&self) -> usize {
        self.list.iter().take_while(|death| death.reason != DeathReason::Rejected).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use DeathReason::{Expired, Rejected};

    fn died(at: &mut Option<Deaths>, queue: &str, reason: DeathReason) {
        let (queue, lane) = (queue.into(), "4".into());
        let (when, route) = (Time(7), Route::by("x", "k"));
        let death = Death {
            reason,
            queue,
            lane,
            first_at: when,
            at: when,
            times: 1,
            count: 0,
            route: route.clone(),
            ttl_ms: None,
        };
        *at = Some(Deaths::another(at.as_ref(), death, route));
    }

    /// `a b*2 | a`: the entries from the newest on, then the first death.
    fn after(story: &str) -> String {
        let mut deaths = None;
        for word in story.split_whitespace() {
            let (queue, reason) = word.strip_suffix('!').map_or((word, Expired), |queue| (queue, Rejected));
            died(&mut deaths, queue, reason);
        }
        let deaths = deaths.expect("it died");
        let shown = deaths.iter().map(|death| match (death.reason, death.times) {
            (Rejected, 1) => format!("{}!", death.queue),
            (_, 1) => death.queue.to_string(),
            (_, times) => format!("{}*{times}", death.queue),
        });
        format!("{} | {}", shown.collect::<Vec<_>>().join(" "), deaths.first().queue)
    }

    #[test]
    fn a_history_has_one_entry_for_each_queue_and_reason_the_newest_first() {
        assert_eq!(after("a"), "a | a");
        assert_eq!(after("a b"), "b a | a");
        assert_eq!(after("a b a"), "a*2 b | a");
        assert_eq!(after("a b c b"), "b*2 c a | a");
        assert_eq!(after("a a!"), "a! a | a");
        assert_eq!(after("a b c a b"), "b*2 a*2 c | a");
    }

    #[test]
    fn a_long_history_forgets_the_oldest_but_never_the_first() {
        let mut deaths = None;
        for at in 0..100 {
            died(&mut deaths, &format!("q{at}"), Rejected);
        }
        let deaths = deaths.expect("it died");
        assert_eq!((deaths.iter().len(), &*deaths.first().queue), (DEATHS_MAX, "q0"));
        assert_eq!(&*deaths.iter().nth(DEATHS_MAX - 2).expect("the oldest but one").queue, "q69");
    }

    #[test]
    fn a_round_without_a_rejection_ends() {
        let check = |story: &[(&str, DeathReason)], queue, expect| {
            let mut deaths = None;
            for (queue, reason) in story {
                died(&mut deaths, queue, *reason);
            }
            assert_eq!(deaths.expect("it died").comes_round_to(queue), expect, "{story:?} to {queue}");
        };
        check(&[("a", Expired)], "b", false);
        check(&[("a", Expired)], "a", true);
        check(&[("a", Expired), ("b", Expired)], "a", true);
        check(&[("a", Expired), ("b", Rejected)], "a", false);
        check(&[("a", Rejected), ("b", Expired)], "a", false);
        check(&[("a", Rejected), ("a", Expired), ("b", Expired)], "a", true);
    }

    #[test]
    fn a_round_of_more_queues_than_are_remembered_ends_too() {
        let mut deaths = None;
        for at in 0.. {
            died(&mut deaths, &format!("q{at}"), Expired);
            if deaths.as_ref().is_some_and(Deaths::is_spent) {
                break;
            }
        }
        assert_eq!(deaths.expect("it died").iter().len(), UNREJECTED_MAX);
    }
}
