//! How fast counters grow: samples of them, taken while somebody asks.
//!
//! Every few seconds one page after the other of all queues is looked at; five minutes after the last question that ends. So
//! a broker that nobody watches pays nothing, and one that is watched a look at each queue. What is kept is bounded: five minutes
//! of samples while there are few queues, fewer samples each when there are many.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use overtake_engine::{Engine, every_queue_everywhere};
use overtake_lane::{QueueId, QueueView, VhostView};
use serde_json::{Map, Value, json};
use tokio::time::Instant;

/// After so long without a question nobody watches.
const UNWATCHED_AFTER: Duration = Duration::from_secs(300);
/// Samples kept of one queue at most.
const SAMPLES_MAX: usize = 61;
/// Samples kept of all queues together, but two of each.
const ALL_SAMPLES_MAX: usize = 100_000;

/// What is counted of a queue, or of all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) publish: u64,
    pub(crate) deliver: u64,
    pub(crate) ack: u64,
    pub(crate) redeliver: u64,
    pub(crate) ready: u64,
    pub(crate) unacked: u64,
    pub(crate) consumers: u64,
}

type Count = fn(&Counts) -> u64;

/// What grows, as RabbitMQ calls it. What a consumer is given and what is fetched is one number here.
const FLOWS: [(&str, Count); 6] = [
    ("publish", |counts| counts.publish),
    ("deliver_get", |counts| counts.deliver),
    ("deliver", |counts| counts.deliver),
    ("ack", |counts| counts.ack),
    ("redeliver", |counts| counts.redeliver),
    ("get", |_| 0),
];

/// What is there, and comes and goes.
const STOCKS: [(&str, Count); 3] = [
    ("messages", |counts| counts.ready + counts.unacked),
    ("messages_ready", |counts| counts.ready),
    ("messages_unacknowledged", |counts| counts.unacked),
];

impl Counts {
    /// Of a queue as it is now. What is delayed is not ready, and waits all the same.
    pub(crate) fn of(queue: &QueueView) -> Self {
        queue.lanes.iter().fold(Self { consumers: queue.consumers, ..Self::default() }, |sum, lane| Self {
            publish: sum.publish + lane.published,
            deliver: sum.deliver + lane.delivered,
            ack: sum.ack + lane.settled,
            redeliver: sum.redeliver + lane.redelivered,
            ready: sum.ready + lane.ready + lane.delayed,
            unacked: sum.unacked + lane.leased,
            ..sum
        })
    }

    /// Both together.
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            publish: self.publish + other.publish,
            deliver: self.deliver + other.deliver,
            ack: self.ack + other.ack,
            redeliver: self.redeliver + other.redeliver,
            ready: self.ready + other.ready,
            unacked: self.unacked + other.unacked,
            consumers: self.consumers + other.consumers,
        }
    }

    /// What has come since, where counters began anew: nothing.
    fn grown_since(self, before: Self) -> Self {
        Self {
            publish: self.publish.saturating_sub(before.publish),
            deliver: self.deliver.saturating_sub(before.deliver),
            ack: self.ack.saturating_sub(before.ack),
            redeliver: self.redeliver.saturating_sub(before.redeliver),
            ..Self::default()
        }
    }
}

/// Samples of one thing, the oldest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Samples(VecDeque<(Instant, Counts)>);

impl Samples {
    fn take(&mut self, now: Instant, counts: Counts, most: usize) {
        while self.0.len() >= most {
            self.0.pop_front();
        }
        self.0.push_back((now, counts));
    }

    /// Per second, between the last two samples.
    fn rate(&self, count: Count) -> f64 {
        let mut last = self.0.iter().rev();
        let (Some((now, here)), Some((before, there))) = (last.next(), last.next()) else { return 0.0 };
        let change = count(here) as f64 - count(there) as f64;
        change / now.duration_since(*before).as_secs_f64().max(f64::EPSILON)
    }

    /// `publish`, `publish_details` and so on.
    pub(crate) fn flows(&self, now: &Counts) -> Value {
        self.shown(&FLOWS, now).into()
    }

    /// `messages`, `messages_details` and so on.
    pub(crate) fn stocks(&self, now: &Counts) -> Map<String, Value> {
        self.shown(&STOCKS, now)
    }

    fn shown(&self, counts: &[(&str, Count)], now: &Counts) -> Map<String, Value> {
        let of = |(name, count): &(&str, Count)| {
            let rate = json!({ "rate": self.rate(*count) });
            [((*name).to_owned(), count(now).into()), (format!("{name}_details"), rate)]
        };
        counts.iter().flat_map(of).collect()
    }

    /// How much of the time a message that came could have been given out at once: 1 while consumers keep up.
    pub(crate) fn capacity(&self, now: &Counts) -> f64 {
        let keeps_up = |counts: &&Counts| counts.consumers > 0 && counts.ready == 0;
        let all: Vec<&Counts> = self.0.iter().map(|(_, counts)| counts).chain([now]).collect();
        all.iter().copied().filter(keeps_up).count() as f64 / all.len() as f64
    }
}

/// Samples of every queue, and of all together. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct Rates(Arc<Mutex<Taken>>);

#[derive(Default)]
struct Taken {
    watched_at: Option<Instant>,
    is_sampling: bool,
    queues: HashMap<QueueId, Samples>,
    /// What has grown in all queues since the first sample, those that are gone included.
    grown: Counts,
    whole: Samples,
}

impl Rates {
    /// Somebody watches: from now on samples are taken.
    pub(crate) fn watch(&self, engine: &Arc<dyn Engine>, every: Duration) {
        let mut taken = self.taken();
        taken.watched_at = Some(Instant::now());
        if !std::mem::replace(&mut taken.is_sampling, true) {
            tokio::spawn(self.clone().sample(Arc::clone(engine), every));
        }
    }

    async fn sample(self, engine: Arc<dyn Engine>, every: Duration) {
        let mut ticks = tokio::time::interval(every);
        loop {
            let now = ticks.tick().await;
            {
                let mut taken = self.taken();
                if taken.watched_at.is_none_or(|at| now.duration_since(at) > UNWATCHED_AFTER) {
                    *taken = Taken::default();
                    return;
                }
            }
            let mut all = Vec::new();
            let show = |_: &VhostView, queue: QueueView| all.push((queue.queue, Counts::of(&queue)));
            if every_queue_everywhere(&*engine, show).await.is_ok() {
                self.take(now, &all);
            }
        }
    }

    /// A sample of all queues.
    fn take(&self, now: Instant, all: &[(QueueId, Counts)]) {
        let mut taken = self.taken();
        let most = (ALL_SAMPLES_MAX / all.len().max(1)).clamp(2, SAMPLES_MAX);
        let mut before = std::mem::take(&mut taken.queues);
        let mut whole = Counts::default();
        for (queue, counts) in all {
            let mut samples = before.remove(queue).unwrap_or_default();
            if let Some((_, last)) = samples.0.back() {
                taken.grown = taken.grown.and(counts.grown_since(*last));
            }
            samples.take(now, *counts, most);
            whole = whole.and(*counts);
            taken.queues.insert(*queue, samples);
        }
        let grown = taken.grown;
        let stocks =
            Counts { ready: whole.ready, unacked: whole.unacked, consumers: whole.consumers, ..grown };
        taken.whole.take(now, stocks, SAMPLES_MAX);
    }

    /// Of one queue.
    pub(crate) fn queue(&self, queue: QueueId) -> Samples {
        self.taken().queues.get(&queue).cloned().unwrap_or_default()
    }

    /// Of all together.
    pub(crate) fn whole(&self) -> Samples {
        self.taken().whole.clone()
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(publish: u64, ready: u64) -> Counts {
        Counts { publish, ready, consumers: 1, ..Counts::default() }
    }

    #[tokio::test(start_paused = true)]
    async fn a_rate_is_what_came_between_the_last_two_samples() {
        let (rates, start) = (Rates::default(), Instant::now());
        for (at, publish, ready) in [(0, 100, 5), (5, 150, 0), (10, 160, 10)] {
            rates.take(start + Duration::from_secs(at), &[(QueueId(1), counts(publish, ready))]);
        }
        let (samples, now) = (rates.queue(QueueId(1)), counts(170, 10));
        let flows = samples.flows(&now);
        assert_eq!(
            (flows["publish"].as_u64(), flows["publish_details"]["rate"].as_f64()),
            (Some(170), Some(2.0))
        );
        assert_eq!(samples.stocks(&now)["messages_ready_details"]["rate"].as_f64(), Some(2.0));
        assert!((samples.capacity(&now) - 0.25).abs() < 1e-9, "it kept up in one of four looks");
    }

    #[tokio::test(start_paused = true)]
    async fn a_queue_that_goes_takes_nothing_back_from_the_whole() {
        let (rates, start) = (Rates::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        rates.take(at(0), &[(QueueId(1), counts(100, 0)), (QueueId(2), counts(7, 0))]);
        rates.take(at(5), &[(QueueId(1), counts(110, 0)), (QueueId(2), counts(7, 0))]);
        rates.take(at(10), &[(QueueId(2), counts(12, 0))]);
        let flows = rates.whole().flows(&Counts::default());
        assert_eq!(flows["publish_details"]["rate"].as_f64(), Some(1.0));
        assert!(rates.queue(QueueId(1)).0.is_empty(), "it is forgotten");
    }

    #[test]
    fn few_samples_are_kept_of_many_queues() {
        let (rates, start) = (Rates::default(), Instant::now());
        let all: Vec<_> =
            (0..ALL_SAMPLES_MAX as u32).map(|queue| (QueueId(queue), Counts::default())).collect();
        for second in 0..3 {
            rates.take(start + Duration::from_secs(second), &all);
        }
        assert_eq!(rates.queue(QueueId(0)).0.len(), 2);
    }
}
