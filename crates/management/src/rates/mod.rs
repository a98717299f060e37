//! How fast counters grow: samples of them, taken while somebody asks.
//!
//! Every few seconds one page after the other of all queues is looked at, or each connection, or each exchange, whichever somebody
//! asks for; five minutes after the last question that ends. So a broker that nobody watches pays nothing. What is kept is bounded:
//! five minutes of samples while there are few things, fewer samples each when there are many.

mod counts;
mod samples;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use overtake_amqp::connection::ChannelCounts;
use overtake_engine::{Engine, Failure, every_queue_everywhere};
use overtake_lane::{ExchangeView, QueueId, QueueView, VhostView};
use overtake_telemetry::process;
use tokio::time::Instant;

use self::samples::{SAMPLES_MAX, Series};
use crate::connections::Connections;

pub(crate) use self::counts::{
    CHURN, Counts, ExchangeCounts, NodeCounts, OF_CHANNELS, OF_CONNECTIONS, OF_EXCHANGES, OF_NODES, Octets,
};
pub(crate) use self::samples::Samples;

/// After so long without a question nobody watches.
const UNWATCHED_AFTER: Duration = Duration::from_secs(300);

/// What somebody asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Watched {
    Queues,
    Connections,
    Exchanges,
    Node,
}

const ALL: [Watched; 4] = [Watched::Queues, Watched::Connections, Watched::Exchanges, Watched::Node];

/// An exchange, by its virtual host and its name.
type ExchangeKey = (Arc<str>, Arc<str>);

/// Where samples come from.
#[derive(Clone)]
pub(crate) struct Sources {
    pub(crate) engine: Arc<dyn Engine>,
    pub(crate) connections: Connections,
}

impl Sources {
    /// What is measured of the broker itself.
    pub(crate) fn node(&self) -> NodeCounts {
        let (connected, disconnected) = self.connections.churn();
        NodeCounts {
            memory: process::memory(),
            disk_free: self.engine.health().disk.map_or(0, |disk| disk.free),
            open_files: process::open_files() as u64,
            sockets: self.connections.open() as u64,
            threads: process::threads(),
            connected,
            disconnected,
        }
    }

    async fn exchanges(&self) -> Result<Vec<(ExchangeKey, ExchangeCounts)>, Failure> {
        let mut all = Vec::new();
        for vhost in self.engine.vhosts().await? {
            let engine = self.engine.in_vhost(vhost.vhost);
            // It may be gone since.
            let (Ok(nameless), Ok(named)) = (engine.exchange("").await, engine.exchanges().await) else {
                continue;
            };
            let of = |view: &ExchangeView| {
                ((Arc::clone(&vhost.name), Arc::clone(&view.name)), ExchangeCounts::of(view))
            };
            all.extend(named.iter().chain([&nameless]).map(of));
        }
        Ok(all)
    }
}

/// Samples of everything that is watched. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct Rates(Arc<Mutex<Taken>>);

#[derive(Default)]
struct Taken {
    watched_at: [Option<Instant>; ALL.len()],
    is_sampling: bool,
    queues: Series<QueueId, Counts>,
    /// What has grown in all queues since the first sample, those that are gone included.
    grown: Counts,
    whole: Samples<Counts>,
    connections: Series<u64, Octets>,
    channels: Series<(u64, u16), ChannelCounts>,
    exchanges: Series<ExchangeKey, ExchangeCounts>,
    node: Samples<NodeCounts>,
}

impl Taken {
    /// Whether somebody watches. The samples of what nobody watches are forgotten.
    fn is_watched(&mut self, what: Watched, now: Instant) -> bool {
        let at = &mut self.watched_at[what as usize];
        if at.is_some_and(|at| now.duration_since(at) <= UNWATCHED_AFTER) {
            return true;
        }
        if at.take().is_some() {
            match what {
                Watched::Queues => {
                    (self.queues, self.whole, self.grown) = Default::default();
                }
                Watched::Connections => (self.connections, self.channels) = Default::default(),
                Watched::Exchanges => self.exchanges = Series::default(),
                Watched::Node => self.node = Samples::default(),
            }
        }
        false
    }
}

impl Rates {
    /// Somebody watches this: from now on samples of it are taken.
    pub(crate) fn watch(&self, what: Watched, sources: impl FnOnce() -> Sources, every: Duration) {
        let mut taken = self.taken();
        taken.watched_at[what as usize] = Some(Instant::now());
        if !std::mem::replace(&mut taken.is_sampling, true) {
            tokio::spawn(self.clone().sample(sources(), every));
        }
    }

    async fn sample(self, sources: Sources, every: Duration) {
        let mut ticks = tokio::time::interval(every);
        loop {
            let now = ticks.tick().await;
            let watched = {
                let mut taken = self.taken();
                let watched = ALL.map(|what| taken.is_watched(what, now).then_some(what));
                if watched.iter().all(Option::is_none) {
                    taken.is_sampling = false;
                    return;
                }
                watched
            };
            for what in watched.into_iter().flatten() {
                self.sample_one(what, now, &sources).await;
            }
        }
    }

    async fn sample_one(&self, what: Watched, now: Instant, sources: &Sources) {
        match what {
            Watched::Queues => {
                let mut all = Vec::new();
                let show = |_: &VhostView, queue: QueueView| all.push((queue.queue, Counts::of(&queue)));
                if every_queue_everywhere(&*sources.engine, show).await.is_ok() {
                    self.take(now, all);
                }
            }
            Watched::Connections => {
                let all = sources.connections.look().await;
                let octets = all.iter().map(|one| (one.number, Octets::of(&one.looks))).collect();
                let channels = all.iter().flat_map(|one| {
                    let of_one = one.looks.view.channels.iter();
                    of_one.map(|channel| ((one.number, channel.number), channel.counts))
                });
                let channels = channels.collect();
                let mut taken = self.taken();
                taken.connections.take(now, octets);
                taken.channels.take(now, channels);
            }
            Watched::Exchanges => {
                if let Ok(all) = sources.exchanges().await {
                    self.taken().exchanges.take(now, all);
                }
            }
            Watched::Node => {
                let node = sources.node();
                self.taken().node.take(now, node, SAMPLES_MAX);
            }
        }
    }

    /// A sample of all queues.
    fn take(&self, now: Instant, all: Vec<(QueueId, Counts)>) {
        let mut taken = self.taken();
        let mut whole = Counts::default();
        for (queue, counts) in &all {
            if let Some(last) = taken.queues.last(queue) {
                taken.grown = taken.grown.and(counts.grown_since(*last));
            }
            whole = whole.and(*counts);
        }
        taken.queues.take(now, all);
        let grown = taken.grown;
        let stocks =
            Counts { ready: whole.ready, unacked: whole.unacked, consumers: whole.consumers, ..grown };
        taken.whole.take(now, stocks, SAMPLES_MAX);
    }

    /// Of one queue.
    pub(crate) fn queue(&self, queue: QueueId) -> Samples<Counts> {
        self.taken().queues.of(&queue)
    }

    /// Of these queues together: the last two samples.
    pub(crate) fn queues(&self, queues: &[QueueView]) -> Samples<Counts> {
        let taken = self.taken();
        let mut together = Samples::default();
        for (moment, _) in taken.whole.last(2) {
            let all = taken.queues.at(moment, queues.iter().map(|queue| queue.queue));
            together.take(moment, all.copied().fold(Counts::default(), Counts::and), 2);
        }
        together
    }

    /// Of all queues together.
    pub(crate) fn whole(&self) -> Samples<Counts> {
        self.taken().whole.clone()
    }

    /// Of one connection.
    pub(crate) fn connection(&self, number: u64) -> Samples<Octets> {
        self.taken().connections.of(&number)
    }

    /// Of one channel of a connection.
    pub(crate) fn channel(&self, connection: u64, number: u16) -> Samples<ChannelCounts> {
        self.taken().channels.of(&(connection, number))
    }

    /// Of one exchange.
    pub(crate) fn exchange(&self, vhost: &Arc<str>, name: &Arc<str>) -> Samples<ExchangeCounts> {
        self.taken().exchanges.of(&(Arc::clone(vhost), Arc::clone(name)))
    }

    /// Of the broker itself.
    pub(crate) fn node(&self) -> Samples<NodeCounts> {
        self.taken().node.clone()
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::samples::ALL_SAMPLES_MAX;
    use super::*;

    fn counts(publish: u64, ready: u64) -> Counts {
        Counts { publish, ready, consumers: 1, ..Counts::default() }
    }

    #[tokio::test(start_paused = true)]
    async fn a_rate_is_what_came_between_the_last_two_samples() {
        let (rates, start) = (Rates::default(), Instant::now());
        for (at, publish, ready) in [(0, 100, 5), (5, 150, 0), (10, 160, 10)] {
            rates.take(start + Duration::from_secs(at), vec![(QueueId(1), counts(publish, ready))]);
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
        rates.take(at(0), vec![(QueueId(1), counts(100, 0)), (QueueId(2), counts(7, 0))]);
        rates.take(at(5), vec![(QueueId(1), counts(110, 0)), (QueueId(2), counts(7, 0))]);
        rates.take(at(10), vec![(QueueId(2), counts(12, 0))]);
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
            rates.take(start + Duration::from_secs(second), all.clone());
        }
        assert_eq!(rates.queue(QueueId(0)).0.len(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_channel_that_was_opened_anew_has_no_rate_below_zero() {
        let start = Instant::now();
        let mut channels: Series<(u64, u16), ChannelCounts> = Series::default();
        let counts = |acked| ChannelCounts { acked, ..ChannelCounts::default() };
        for (at, acked) in [(0, 100), (5, 150), (10, 3)] {
            channels.take(start + Duration::from_secs(at), vec![((7, 1), counts(acked))]);
            let shown = channels.of(&(7, 1)).counters(&OF_CHANNELS, &counts(acked));
            let rate = [0.0, 10.0, 0.0][at as usize / 5];
            assert_eq!(
                (shown["ack"].as_u64(), shown["ack_details"]["rate"].as_f64()),
                (Some(acked), Some(rate))
            );
        }
    }
}
