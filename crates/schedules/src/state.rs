//! A schedule over time: which occurrence is ahead, whether it is in its queue, and when to look again. Whoever asks says what time
//! it is.

use std::sync::Arc;

use overtake_lane::{QueueId, Time};

use crate::cron::Cron;

/// After the first refusal it is tried again so soon; after each further one twice as late.
const RETRY_MS: u64 = 1_000;
/// But not later than that.
const RETRY_MS_MAX: u64 = 60_000;
/// A clock that goes back by more than this was wrong before: what it said then holds no more. By less, it is set right a little, and
/// nothing is to come twice.
const SET_BACK_MS: u64 = 3_600_000;

/// How far a schedule is.
#[derive(Clone, Debug)]
pub(crate) struct State {
    /// The occurrence that is to be in the queue; `None`: there is none any more.
    ahead: Option<Time>,
    /// It is.
    is_published: bool,
    /// The queue that it was put into last.
    queue: Option<QueueId>,
    /// How often it was refused, one after the other.
    refusals: u32,
    /// When to try again.
    retry: Time,
    /// What is wrong.
    error: Option<Arc<str>>,
    /// The latest that it was.
    seen: Time,
}

impl State {
    /// The first occurrence after now is ahead.
    pub(crate) fn new(now: Time, cron: &Cron) -> Self {
        let ahead = cron.after(now);
        Self { ahead, is_published: false, queue: None, refusals: 0, retry: Time(0), error: None, seen: now }
    }

    /// The occurrence that is ahead. Its instant may have passed: then it is owed.
    pub(crate) fn ahead(&self) -> Option<Time> {
        self.ahead
    }

    /// What is wrong, if something is.
    pub(crate) fn error(&self) -> Option<&Arc<str>> {
        self.error.as_ref()
    }

    /// Whether the clock was wrong until now, so that what is ahead may be far off.
    pub(crate) fn is_astray(&self, now: Time) -> bool {
        self.seen.since(now) > SET_BACK_MS
    }

    /// What is to be published now. Where the occurrence before has had its instant, that is the first one after now: those between
    /// are left out.
    pub(crate) fn due(&mut self, now: Time, cron: &Cron) -> Option<Time> {
        if self.is_published && self.ahead.is_some_and(|ahead| ahead <= now) {
            (self.ahead, self.is_published) = (cron.after(now), false);
        }
        self.seen = self.seen.max(now);
        let wait = self.retry.since(now);
        self.ahead.filter(|_| !self.is_published && (wait == 0 || wait > RETRY_MS_MAX))
    }

    /// The occurrence is in this queue, though something may be wrong with it. Answers whether it had been refused.
    pub(crate) fn published(&mut self, queue: Option<QueueId>, error: Option<Arc<str>>) -> bool {
        let was_refused = self.refusals > 0;
        self.queue = queue;
        (self.is_published, self.refusals, self.retry, self.error) = (true, 0, Time(0), error);
        was_refused
    }

    /// It was refused. Answers whether that is news.
    pub(crate) fn refused(&mut self, now: Time, why: Arc<str>) -> bool {
        let is_news = self.error.as_ref() != Some(&why);
        let wait = RETRY_MS.saturating_mul(1 << self.refusals.min(20)).min(RETRY_MS_MAX);
        (self.refusals, self.retry, self.error) =
            (self.refusals.saturating_add(1), now.after(wait), Some(why));
        is_news
    }

    /// The queue in which the occurrence ahead waits.
    pub(crate) fn waits_in(&self) -> Option<QueueId> {
        self.queue.filter(|_| self.is_published && self.ahead.is_some())
    }

    /// It is in the queue no more.
    pub(crate) fn withdrawn(&mut self) {
        self.is_published = false;
    }

    /// When there may be something to do.
    pub(crate) fn wake(&self) -> Time {
        match self.ahead {
            None => Time::NEVER,
            Some(ahead) if self.is_published => ahead,
            Some(_) => self.retry,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: u64 = 3_600_000;

    fn hourly() -> Cron {
        Cron::parse("0 * * * *", "UTC").expect("a line")
    }

    #[test]
    fn an_occurrence_is_published_once_and_the_next_when_it_has_passed() {
        let (cron, mut state) = (hourly(), State::new(Time(1), &hourly()));
        assert_eq!(state.due(Time(1), &cron), Some(Time(HOUR)));
        assert!(!state.published(None, None));
        assert_eq!((state.due(Time(HOUR - 1), &cron), state.wake()), (None, Time(HOUR)));
        assert_eq!(state.due(Time(HOUR), &cron), Some(Time(2 * HOUR)));
    }

    #[test]
    fn what_was_missed_is_left_out() {
        let (cron, mut state) = (hourly(), State::new(Time(1), &hourly()));
        state.published(None, None);
        assert_eq!(state.due(Time(7 * HOUR + 5), &cron), Some(Time(8 * HOUR)));
    }

    #[test]
    fn what_is_refused_is_owed_and_tried_again_ever_later_up_to_a_minute() {
        let (cron, mut state) = (hourly(), State::new(Time(1), &hourly()));
        let mut now = Time(1);
        for wait in [1, 2, 4, 8, 16, 32, 60, 60] {
            assert_eq!(state.due(now, &cron), Some(Time(HOUR)));
            assert_eq!(state.refused(now, "full".into()), wait == 1, "only the first is news");
            assert_eq!((state.due(now, &cron), state.wake().since(now)), (None, wait * 1_000));
            now = state.wake();
        }
        assert_eq!(state.due(Time(5 * HOUR), &cron), Some(Time(HOUR)), "it is owed still");
        assert!(state.published(None, None));
        assert_eq!((state.due(Time(5 * HOUR), &cron), state.error()), (Some(Time(6 * HOUR)), None));
    }

    #[test]
    fn a_clock_that_is_set_back_brings_nothing_twice() {
        let (cron, mut state) = (hourly(), State::new(Time(1), &hourly()));
        state.published(None, None);
        assert_eq!(state.due(Time(HOUR), &cron), Some(Time(2 * HOUR)));
        state.published(None, None);
        assert_eq!(state.due(Time(1), &cron), None);
        assert_eq!(state.wake(), Time(2 * HOUR));
        assert!(!state.is_astray(Time(0)), "by an hour");
        assert_eq!(state.due(Time(2 * HOUR), &cron), Some(Time(3 * HOUR)));
        assert!(state.is_astray(Time(HOUR - 1)), "by more than that");
    }

    #[test]
    fn a_clock_that_is_set_back_keeps_nobody_waiting_for_another_try() {
        let (cron, mut state) = (hourly(), State::new(Time(HOUR), &hourly()));
        state.refused(Time(HOUR), "full".into());
        assert_eq!(state.due(Time(HOUR), &cron), None);
        assert_eq!(state.due(Time(HOUR / 2), &cron), Some(Time(2 * HOUR)));
    }
}
