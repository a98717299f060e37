//! How lanes have stood: an hour, ten seconds a sample.
//!
//! A lane has samples from the moment on at which there is something to tell of it, until there has been nothing for an hour. There are
//! places for so many lanes; those that find none are counted, not forgotten in silence.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use overtake_lane::{LaneView, QueueId, Time};
use serde::Serialize;

use crate::look::{LaneLook, Look};

/// From one sample to the next, ms.
pub const SAMPLE_MS: u64 = 10_000;
/// Samples kept.
pub const SAMPLES_MAX: usize = 360;
/// Lanes that have samples at once, at most: each takes about 12 KiB when its hour is full.
const LANES_MAX: usize = 4_000;

/// A lane at one time, and what had moved since the sample before. Numbers are for a chart: exact up to 2²⁴.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Sample {
    ready: f32,
    leased: f32,
    dead: f32,
    oldest_age_ms: f32,
    published: f32,
    delivered: f32,
    settled: f32,
    wait_p95_ms: f32,
}

/// What a chart shows of something: one number a sample, the newest last; 0 where nothing was there.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Series {
    /// Messages ready.
    pub ready: Vec<f32>,
    /// Messages leased.
    pub leased: Vec<f32>,
    /// Dead letters.
    pub dead: Vec<f32>,
    /// Age of the oldest ready message, ms.
    pub oldest_age_ms: Vec<f32>,
    /// Messages published per second.
    pub published: Vec<f32>,
    /// Messages leased per second.
    pub delivered: Vec<f32>,
    /// Messages acknowledged per second.
    pub settled: Vec<f32>,
    /// 95 of 100 that were leased had waited no longer, ms; 0 when none was.
    pub wait_p95_ms: Vec<f32>,
}

/// How a lane has stood.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LaneSeries {
    /// Its name.
    pub lane: Arc<str>,
    /// How urgent it is: larger is more urgent.
    pub level: i32,
    /// Its samples.
    #[serde(flatten)]
    pub series: Series,
}

/// How all queues have stood that somebody may see.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Totals {
    /// When the last sample was taken, Unix ms.
    pub until: u64,
    /// Sums over all lanes; of waits and ages the longest.
    #[serde(flatten)]
    pub series: Series,
}

impl Sample {
    fn of(view: &LaneView, look: &LaneLook) -> Self {
        Self {
            ready: view.ready as f32,
            leased: view.leased as f32,
            dead: view.dead as f32,
            oldest_age_ms: view.oldest_age_ms as f32,
            published: look.flow.published as f32,
            delivered: look.flow.delivered as f32,
            settled: look.flow.settled as f32,
            wait_p95_ms: look.wait_p95_ms.unwrap_or_default() as f32,
        }
    }

    fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    fn and(self, other: Self) -> Self {
        Self {
            ready: self.ready + other.ready,
            leased: self.leased + other.leased,
            dead: self.dead + other.dead,
            oldest_age_ms: self.oldest_age_ms.max(other.oldest_age_ms),
            published: self.published + other.published,
            delivered: self.delivered + other.delivered,
            settled: self.settled + other.settled,
            wait_p95_ms: self.wait_p95_ms.max(other.wait_p95_ms),
        }
    }
}

impl Series {
    fn push(&mut self, sample: Sample) {
        self.ready.push(sample.ready);
        self.leased.push(sample.leased);
        self.dead.push(sample.dead);
        self.oldest_age_ms.push(sample.oldest_age_ms);
        self.published.push(sample.published);
        self.delivered.push(sample.delivered);
        self.settled.push(sample.settled);
        self.wait_p95_ms.push(sample.wait_p95_ms);
    }
}

/// The samples of one lane, the newest last.
#[derive(Debug, Default)]
struct Ring {
    samples: VecDeque<Sample>,
    /// At which of all turns the last was taken.
    last: u64,
    /// How many of the last were nothing.
    idle: usize,
}

impl Ring {
    /// The sample of a turn; turns between that it does not have were nothing.
    fn take(&mut self, turn: u64, sample: Sample) {
        let missed = if self.samples.is_empty() { 0 } else { turn.saturating_sub(self.last + 1) };
        for _ in 0..missed.min(SAMPLES_MAX as u64) {
            self.push(Sample::default());
        }
        self.push(sample);
        self.last = turn;
    }

    fn push(&mut self, sample: Sample) {
        if self.samples.len() == SAMPLES_MAX {
            self.samples.pop_front();
        }
        self.samples.push_back(sample);
        self.idle = if sample.is_nothing() { self.idle + 1 } else { 0 };
    }

    /// Its sample of so many turns before this one.
    fn at(&self, turn: u64, before: usize) -> Sample {
        let behind = turn.saturating_sub(self.last) as usize;
        let index = before.checked_sub(behind).and_then(|back| self.samples.len().checked_sub(back + 1));
        index.and_then(|index| self.samples.get(index)).copied().unwrap_or_default()
    }
}

type Key = (QueueId, i32, Arc<str>);

/// How all lanes have stood.
#[derive(Debug, Default)]
pub(crate) struct History {
    rings: HashMap<Key, Ring>,
    turn: u64,
    until: Time,
    /// Lanes with something to tell that found no place, the last time.
    untold: usize,
}

impl History {
    /// Takes a sample of each lane: what it is now, and what moved since the sample before.
    pub(crate) fn take(&mut self, look: &Look) {
        // A machine that slept has a hole as long as its sleep.
        let passed = look.at.0.saturating_sub(self.until.0) / SAMPLE_MS;
        self.turn += if self.until.0 == 0 { 1 } else { passed.clamp(1, SAMPLES_MAX as u64) };
        self.until = look.at;
        self.untold = 0;
        for queue in &look.queues {
            for (view, lane) in queue.view.lanes.iter().zip(&queue.lanes) {
                let sample = Sample::of(view, lane);
                let key = (queue.view.queue, view.level, Arc::clone(&view.lane));
                let has_room = self.rings.len() < LANES_MAX;
                match self.rings.get_mut(&key) {
                    Some(ring) => ring.take(self.turn, sample),
                    None if sample.is_nothing() => {}
                    None if !has_room => self.untold += 1,
                    None => self.rings.entry(key).or_default().take(self.turn, sample),
                }
            }
        }
        let (turn, most) = (self.turn, SAMPLES_MAX as u64);
        self.rings.retain(|_, ring| ring.idle < SAMPLES_MAX && turn - ring.last < most);
    }

    /// When the last sample was taken.
    pub(crate) fn until(&self) -> Time {
        self.until
    }

    /// Lanes with something to tell of which nothing is kept, because there are too many.
    pub(crate) fn untold(&self) -> usize {
        self.untold
    }

    fn len(&self) -> usize {
        usize::try_from(self.turn).unwrap_or(SAMPLES_MAX).min(SAMPLES_MAX)
    }

    /// How a lane has stood.
    pub(crate) fn lane(&self, queue: QueueId, view: &LaneView) -> LaneSeries {
        let mut series = Series::default();
        let ring = self.rings.get(&(queue, view.level, Arc::clone(&view.lane)));
        for before in (0..self.len()).rev() {
            series.push(ring.map(|ring| ring.at(self.turn, before)).unwrap_or_default());
        }
        LaneSeries { lane: Arc::clone(&view.lane), level: view.level, series }
    }

    /// How these queues have stood together.
    pub(crate) fn totals(&self, sees: impl Fn(QueueId) -> bool) -> Totals {
        let rings: Vec<&Ring> =
            self.rings.iter().filter(|(key, _)| sees(key.0)).map(|(_, ring)| ring).collect();
        let mut series = Series::default();
        for before in (0..self.len()).rev() {
            let all = rings.iter().map(|ring| ring.at(self.turn, before));
            series.push(all.fold(Sample::default(), Sample::and));
        }
        Totals { until: self.until.0, series }
    }

    /// How many more dead letters a queue has than so many samples ago.
    pub(crate) fn new_dead(&self, queue: QueueId, view: &LaneView, samples: usize) -> u64 {
        let Some(ring) = self.rings.get(&(queue, view.level, Arc::clone(&view.lane))) else { return 0 };
        if ring.samples.len() <= samples {
            return 0;
        }
        view.dead.saturating_sub(ring.at(self.turn, samples).dead as u64)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::overview::tests::queue;

    fn look(at_s: u64, lanes: &[(&str, u64, u64)]) -> Look {
        Look::after(None, Time(at_s * 1_000), vec![("/".into(), queue(1, lanes))])
    }

    #[test]
    fn samples_are_kept_in_order_and_holes_are_holes() {
        let mut history = History::default();
        history.take(&look(10, &[("high", 1, 1)]));
        history.take(&look(20, &[("high", 1, 2)]));
        history.take(&look(50, &[("high", 1, 3)]));
        let shown = history.lane(QueueId(1), &queue(1, &[("high", 0, 0)]).lanes[0]);
        assert_eq!(shown.series.ready, [1.0, 2.0, 0.0, 0.0, 3.0]);
        assert_eq!(history.totals(|_| true).series.ready, [1.0, 2.0, 0.0, 0.0, 3.0]);
        assert_eq!(history.totals(|_| false).series.ready, [0.0; 5]);
        let other = history.lane(QueueId(2), &queue(2, &[("high", 0, 0)]).lanes[0]);
        assert_eq!(other.series.ready, [0.0; 5]);
    }

    #[test]
    fn an_hour_is_kept_and_what_is_idle_for_an_hour_is_not() {
        let mut history = History::default();
        for turn in 1..=2 * SAMPLES_MAX as u64 {
            let ready = u64::from(turn <= 10);
            history.take(&look(turn * 10, &[("high", 1, ready)]));
            assert!(history.rings.values().all(|ring| ring.samples.len() <= SAMPLES_MAX));
            assert_eq!(history.rings.len(), usize::from(turn < 10 + SAMPLES_MAX as u64), "{turn}");
        }
        assert_eq!(history.totals(|_| true).series.ready.len(), SAMPLES_MAX);
    }

    #[test]
    fn lanes_that_find_no_place_are_counted() {
        let mut history = History::default();
        let queues = (0..LANES_MAX as u32 + 7).map(|number| ("/".into(), queue(number, &[("high", 1, 1)])));
        history.take(&Look::after(None, Time(10_000), queues.collect()));
        assert_eq!((history.rings.len(), history.untold()), (LANES_MAX, 7));
    }

    #[test]
    fn new_dead_letters_are_those_since_then() {
        let mut history = History::default();
        let mut now = queue(1, &[("high", 1, 1)]);
        for dead in [5, 5, 9] {
            now.lanes[0].dead = dead;
            let before = Look::after(None, history.until(), Vec::new());
            let at = Time(history.until().0 + 10_000);
            history.take(&Look::after(
                Some((&before, Duration::from_secs(10))),
                at,
                vec![("/".into(), now.clone())],
            ));
        }
        assert_eq!(history.new_dead(QueueId(1), &now.lanes[0], 2), 4);
        assert_eq!(history.new_dead(QueueId(1), &now.lanes[0], 3), 0, "so far it does not go back");
        assert_eq!(history.new_dead(QueueId(2), &now.lanes[0], 2), 0);
    }
}
