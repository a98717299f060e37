//! What is sampled of queues, channels, connections, exchanges and the broker itself, each with its names in RabbitMQ.

use overtake_amqp::connection::ChannelCounts;
use overtake_lane::{ExchangeView, QueueView};
use serde_json::{Map, Value};

use super::samples::{Key, Samples};
use crate::connections::Looks;

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

/// What grows, as RabbitMQ calls it. What a consumer is given and what is fetched is one number here.
const FLOWS: [Key<Counts>; 5] = [
    ("publish", |counts| counts.publish),
    ("deliver_get", |counts| counts.deliver),
    ("deliver", |counts| counts.deliver),
    ("ack", |counts| counts.ack),
    ("redeliver", |counts| counts.redeliver),
];

/// What is there, and comes and goes.
const STOCKS: [Key<Counts>; 3] = [
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
    pub(super) fn grown_since(self, before: Self) -> Self {
        Self {
            publish: self.publish.saturating_sub(before.publish),
            deliver: self.deliver.saturating_sub(before.deliver),
            ack: self.ack.saturating_sub(before.ack),
            redeliver: self.redeliver.saturating_sub(before.redeliver),
            ..Self::default()
        }
    }
}

impl Samples<Counts> {
    /// `publish`, `publish_details` and so on.
    pub(crate) fn flows(&self, now: &Counts) -> Value {
        self.counters(&FLOWS, now).into()
    }

    /// `messages`, `messages_details` and so on.
    pub(crate) fn stocks(&self, now: &Counts) -> Map<String, Value> {
        self.gauges(&STOCKS, now)
    }

    /// How much of the time a message that came could have been given out at once: 1 while consumers keep up.
    pub(crate) fn capacity(&self, now: &Counts) -> f64 {
        let keeps_up = |counts: &&Counts| counts.consumers > 0 && counts.ready == 0;
        let all: Vec<&Counts> = self.0.iter().map(|(_, counts)| counts).chain([now]).collect();
        all.iter().copied().filter(keeps_up).count() as f64 / all.len() as f64
    }
}

/// The `message_stats` of a channel.
pub(crate) const OF_CHANNELS: [Key<ChannelCounts>; 12] = [
    ("publish", |counts| counts.published),
    ("confirm", |counts| counts.confirmed),
    ("return_unroutable", |counts| counts.returned),
    ("drop_unroutable", |counts| counts.dropped),
    ("deliver_get", ChannelCounts::sent),
    ("deliver", |counts| counts.delivered),
    ("deliver_no_ack", |counts| counts.delivered_no_ack),
    ("get", |counts| counts.got),
    ("get_no_ack", |counts| counts.got_no_ack),
    ("get_empty", |counts| counts.got_nothing),
    ("redeliver", |counts| counts.redelivered),
    ("ack", |counts| counts.acked),
];

/// What is counted of an exchange.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ExchangeCounts {
    published: u64,
    routed: u64,
}

impl ExchangeCounts {
    pub(crate) fn of(exchange: &ExchangeView) -> Self {
        Self { published: exchange.published, routed: exchange.routed }
    }
}

/// The `message_stats` of an exchange.
pub(crate) const OF_EXCHANGES: [Key<ExchangeCounts>; 2] =
    [("publish_in", |counts| counts.published), ("publish_out", |counts| counts.routed)];

/// Bytes over a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Octets {
    received: u64,
    sent: u64,
}

impl Octets {
    pub(crate) fn of(looks: &Looks) -> Self {
        Self { received: looks.received, sent: looks.sent }
    }
}

/// What a connection says of its bytes.
pub(crate) const OF_CONNECTIONS: [Key<Octets>; 2] =
    [("recv_oct", |octets| octets.received), ("send_oct", |octets| octets.sent)];

/// What is measured of the broker itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct NodeCounts {
    pub(crate) memory: u64,
    pub(crate) disk_free: u64,
    pub(crate) open_files: u64,
    pub(crate) sockets: u64,
    pub(crate) threads: u64,
    pub(crate) connected: u64,
    pub(crate) disconnected: u64,
}

/// What a node uses.
pub(crate) const OF_NODES: [Key<NodeCounts>; 5] = [
    ("mem_used", |node| node.memory),
    ("disk_free", |node| node.disk_free),
    ("fd_used", |node| node.open_files),
    ("sockets_used", |node| node.sockets),
    ("proc_used", |node| node.threads),
];

/// The `churn_rates` that are counted.
pub(crate) const CHURN: [Key<NodeCounts>; 2] =
    [("connection_created", |node| node.connected), ("connection_closed", |node| node.disconnected)];
