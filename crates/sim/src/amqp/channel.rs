//! What a client knows of one of its channels.

use std::collections::{BTreeMap, VecDeque};

use overtake_engine::NewMessage;
use overtake_lane::QueueId;
use overtake_properties::Properties;

/// A channel that the client has opened.
#[derive(Debug, Default)]
pub(super) struct Channel {
    /// The client has closed it, and waits for the broker to agree.
    pub(super) is_closing: bool,
    pub(super) mode: Mode,
    /// What must be answered, in order; each with how much had been said before.
    pub(super) expects: VecDeque<(u64, Expect)>,
    /// How much has been said.
    pub(super) said: u64,
    /// Publishes that were not confirmed, by their number.
    pub(super) unconfirmed: BTreeMap<u64, Sent>,
    pub(super) published: u64,
    /// What waits for `tx.commit`.
    pub(super) transaction: Transaction,
    pub(super) takers: BTreeMap<String, Taking>,
    pub(super) next_tag: u64,
    /// What it was given and has not settled.
    pub(super) out: BTreeMap<u64, Out>,
    /// The tag of the last delivery.
    pub(super) last: u64,
    /// Acknowledged, and not known to be done; with how much had been said before.
    pub(super) acked: Vec<(u64, Out)>,
    /// For consumers to come, if it was set.
    pub(super) prefetch: u16,
    /// The largest window its consumers ever shared; `None`: they share none.
    pub(super) shared: Option<u16>,
    pub(super) content: Option<Incoming>,
    /// It has settled all that was out, whether it had come or not: since then it does not know what it has.
    pub(super) is_unsure: bool,
    /// It has said so to throw it away, or back: what it acknowledges since then may not have been its own any more.
    pub(super) has_refused_all: bool,
}

/// What becomes of what is published.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Mode {
    #[default]
    Plain,
    Confirms,
    Transacts,
}

/// What is waited for.
#[derive(Clone, Debug)]
pub(super) enum Expect {
    ChannelOpen,
    ConfirmSelect,
    TxSelect,
    Qos,
    Declare,
    Bind,
    Purge,
    Delete,
    Consume(String),
    Cancel(String),
    Get { no_ack: bool, queue: Queue },
    Recover,
    Commit(Transaction),
    Rollback,
}

/// A queue as a client thinks of it.
#[derive(Clone, Debug)]
pub(super) struct Queue {
    pub(super) name: String,
    /// Who it is now, if it is there.
    pub(super) id: Option<QueueId>,
}

/// A publish on its way.
#[derive(Clone, Debug)]
pub(super) struct Sent {
    /// How much had been said before.
    pub(super) said: u64,
    /// The message; `None`: an order.
    pub(super) message: Option<NewMessage>,
}

/// A transaction so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Transaction {
    pub(super) marks: Vec<u64>,
    pub(super) settled: Vec<(u64, Out)>,
    /// Those of them that are acknowledged.
    pub(super) acked: Vec<Out>,
}

/// A consumer.
#[derive(Clone, Debug)]
pub(super) struct Taking {
    pub(super) queue: Queue,
    pub(super) no_ack: bool,
    /// 0: the broker says.
    pub(super) prefetch: u16,
    pub(super) extra: u16,
    pub(super) is_shared: bool,
    /// The client has cancelled it.
    pub(super) is_leaving: bool,
}

/// A message that is out.
#[derive(Clone, Debug)]
pub(super) struct Out {
    pub(super) mark: Option<u64>,
    pub(super) queue: Queue,
    pub(super) taker: Option<String>,
}

/// A content on its way in.
#[derive(Debug)]
pub(super) struct Incoming {
    pub(super) what: What,
    pub(super) exchange: Vec<u8>,
    pub(super) routing_key: Vec<u8>,
    pub(super) properties: Option<Properties>,
    pub(super) body_len: u64,
    pub(super) body: Vec<u8>,
}

/// What has a content.
#[derive(Clone, Debug)]
pub(super) enum What {
    Deliver { taker: String, tag: u64, redelivered: bool },
    Got { queue: Queue, no_ack: bool, tag: u64, redelivered: bool },
    Returned,
}

impl Channel {
    pub(super) fn expect(&mut self, what: Expect) {
        self.expects.push_back((self.said, what));
        self.said += 1;
    }

    /// The client cancels a consumer. What that still has counts in no window of the client's any more.
    pub(super) fn leaves(&mut self, tag: &str) {
        self.takers.get_mut(tag).expect("it is there").is_leaving = true;
        let transaction = &mut self.transaction;
        let outs = self.out.values_mut().chain(self.acked.iter_mut().map(|(_, out)| out));
        let outs =
            outs.chain(transaction.settled.iter_mut().map(|(_, out)| out)).chain(&mut transaction.acked);
        for out in outs.filter(|out| out.taker.as_deref() == Some(tag)) {
            out.taker = None;
        }
    }

    /// What a consumer has and has not settled, as far as the client knows.
    pub(super) fn held_by(&self, tag: &str) -> usize {
        self.out.values().filter(|out| out.taker.as_deref() == Some(tag)).count()
    }

    pub(super) fn held_in_share(&self) -> usize {
        let is_shared =
            |tag: &String| self.takers.get(tag).is_some_and(|taker| taker.is_shared && !taker.no_ack);
        self.out.values().filter(|out| out.taker.as_ref().is_some_and(is_shared)).count()
    }

    /// Whether nothing is waited for.
    pub(super) fn is_content(&self) -> bool {
        !self.is_closing && self.expects.is_empty() && self.unconfirmed.is_empty()
    }

    /// What is in doubt when the channel ends.
    pub(super) fn doubts(&mut self) -> Vec<NewMessage> {
        std::mem::take(&mut self.unconfirmed).into_values().filter_map(|sent| sent.message).collect()
    }
}
