//! What can be seen of a connection: computed from its state when somebody asks, so that nothing is kept for it.

use std::collections::HashMap;

use overtake_lane::{ConsumerId, Time};
use overtake_properties::Table;

use super::asks::Consume;
use super::channel::Channel;
use super::{Connection, Stage};

/// A connection as it is now.
#[derive(Clone, Debug, PartialEq)]
pub struct View {
    /// How far it is.
    pub state: ConnectionState,
    /// The virtual host it is in.
    pub vhost: String,
    /// By which mechanism the client logged in (5.1.4).
    pub mechanism: &'static str,
    /// Most channels.
    pub channel_max: u16,
    /// The longest frame, bytes.
    pub frame_max: u32,
    /// Seconds between signs of life; 0: none.
    pub heartbeat_s: u64,
    /// What the client says of itself.
    pub client_properties: Table,
    /// Its channels, by their numbers.
    pub channels: Vec<ChannelView>,
}

/// How far a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionState {
    /// The client has not got as far as opening a virtual host.
    Starting,
    /// It is open.
    Running,
    /// It is open and publishes, and the broker refuses publishes for now; or it is not read.
    Blocked,
    /// It is being closed, or is over.
    Closing,
}

/// A channel as it is now.
#[derive(Clone, Debug, PartialEq)]
pub struct ChannelView {
    /// Its number.
    pub number: u16,
    /// Its publishes are confirmed.
    pub confirms: bool,
    /// Its publishes and settlements wait for `tx.commit`.
    pub transactional: bool,
    /// Most messages that each consumer to come holds; 0: no limit.
    pub prefetch: u16,
    /// That limit is one for all its consumers together.
    pub shares_prefetch: bool,
    /// Messages out and not settled.
    pub unacked: usize,
    /// What it has carried.
    pub counts: ChannelCounts,
    /// When something last came or went on it, by the clock that the connection is driven by.
    pub active_at: Time,
    /// Publishes that are not answered.
    pub unconfirmed: u32,
    /// Publishes that wait for `tx.commit`.
    pub uncommitted: usize,
    /// Settlements that wait for `tx.commit`.
    pub uncommitted_acks: usize,
    /// It is being closed.
    pub is_closing: bool,
    /// Its consumers, the oldest first.
    pub consumers: Vec<ConsumerView>,
}

/// Messages that a channel has carried since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChannelCounts {
    /// Publishes that the broker has answered.
    pub published: u64,
    /// Publishes confirmed by `basic.ack`.
    pub confirmed: u64,
    /// Mandatory publishes that no queue got: they came back.
    pub returned: u64,
    /// Other publishes that no queue got.
    pub dropped: u64,
    /// Deliveries to consumers that acknowledge.
    pub delivered: u64,
    /// Deliveries to consumers that do not acknowledge.
    pub delivered_no_ack: u64,
    /// Messages fetched with `basic.get`, to be acknowledged.
    pub got: u64,
    /// Messages fetched with `basic.get` that need no acknowledgement.
    pub got_no_ack: u64,
    /// Times that `basic.get` found nothing.
    pub got_nothing: u64,
    /// Deliveries and fetched messages with the flag `redelivered`.
    pub redelivered: u64,
    /// Messages that the client acknowledged.
    pub acked: u64,
}

impl ChannelCounts {
    /// Messages sent to the client: to consumers, and in answer to `basic.get`.
    #[must_use]
    pub fn sent(&self) -> u64 {
        self.delivered + self.delivered_no_ack + self.got + self.got_no_ack
    }
}

/// A consumer as it is now.
#[derive(Clone, Debug, PartialEq)]
pub struct ConsumerView {
    /// Its number at the engine; a later one has a higher number.
    pub id: ConsumerId,
    /// Its tag.
    pub tag: String,
    /// What the client asked for.
    pub consume: Consume,
    /// Messages out and not settled, also those that `tx.commit` will settle.
    pub unacked: usize,
    /// Messages it was sent since it was there.
    pub delivered: u64,
}

impl Connection {
    /// What can be seen of it. Takes as long as it has channels and consumers.
    #[must_use]
    pub fn view(&self) -> View {
        let is_refused = self.blocked.is_some() && self.is_publisher;
        let state = match self.stage {
            Stage::Running if is_refused || !self.wants_bytes() => ConnectionState::Blocked,
            Stage::Running => ConnectionState::Running,
            Stage::Closing | Stage::Over => ConnectionState::Closing,
            _ => ConnectionState::Starting,
        };
        View {
            state,
            vhost: self.vhost.clone(),
            mechanism: self.mechanism,
            channel_max: self.channel_max,
            frame_max: self.frame_max,
            heartbeat_s: self.pulse.interval_s(),
            client_properties: self.client_properties.clone(),
            channels: self.channels.iter().map(|(number, channel)| self.look_at(*number, channel)).collect(),
        }
    }

    /// The consumers there are, and the queue of each as the client named it, in the order of their ids.
    #[must_use]
    pub fn consumers(&self) -> Vec<(ConsumerId, &str)> {
        let feeds = self.feeds.iter().map(|(id, feed)| (*id, &*feed.consume.queue));
        let mut consumers: Vec<_> = feeds.collect();
        consumers.sort_unstable();
        consumers
    }

    /// The queue of a consumer as the client named it.
    #[must_use]
    pub fn queue_of(&self, consumer: ConsumerId) -> Option<&str> {
        self.feeds.get(&consumer).map(|feed| &*feed.consume.queue)
    }

    fn look_at(&self, number: u16, channel: &Channel) -> ChannelView {
        let transaction = channel.transaction.as_ref();
        let mut held: HashMap<ConsumerId, usize> = HashMap::new();
        let of_transaction = transaction.into_iter().flat_map(|open| &open.taken);
        for id in channel.unacked.iter().chain(of_transaction).filter_map(|held| held.consumer) {
            *held.entry(id).or_default() += 1;
        }
        let feed = |id: ConsumerId| {
            let feed = self.feeds.get(&id).expect("a consumer of a channel has its feed");
            let consume = (*feed.consume).clone();
            let unacked = held.get(&id).copied().unwrap_or_default();
            ConsumerView { id, tag: feed.tag.to_string(), consume, unacked, delivered: feed.delivered }
        };
        ChannelView {
            number,
            confirms: channel.confirms.is_some(),
            transactional: transaction.is_some(),
            prefetch: channel.prefetch,
            shares_prefetch: channel.is_shared,
            unacked: channel.unacked.iter().count(),
            counts: channel.counts,
            active_at: channel.active_at,
            unconfirmed: channel.in_flight,
            uncommitted: transaction.map_or(0, |open| open.publishes.len()),
            uncommitted_acks: transaction.map_or(0, |open| open.settlements.len()),
            is_closing: channel.is_closing,
            consumers: self.feeds_of(number).into_iter().map(feed).collect(),
        }
    }
}
