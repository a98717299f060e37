//! One channel: what it has open, and what is out to it.

use std::collections::BTreeMap;

use overtake_lane::{ConsumerId, Outcome, Receipt, Time};

use super::asks::{Publish, Token};
use super::confirms::Confirms;
use super::unacked::{Held, Unacked};
use super::view::ChannelCounts;
use crate::frame::{Frame, FrameKind};
use crate::incoming::{Incoming, Names};
use crate::method::{MethodId, basic, exchange, queue, tx};
use crate::reply::ReplyCode;
use crate::violation::Violation;

/// Contents below this, and so many bytes of a transaction, are taken without a look at what all channels hold.
pub(super) const LOOKED_AT_EVERY: u64 = 64 << 10;
/// What a tag that is made up begins with.
const TAG_PREFIX: &str = "amq.ctag-";

/// A channel that is open, or being closed by us.
#[derive(Debug)]
pub(super) struct Channel {
    /// Tells it from one of the same number that was closed.
    pub(super) life: u64,
    /// We have closed it, and wait for the client to agree: until then nothing it says counts.
    pub(super) is_closing: bool,
    /// An operation is under way; what the client says next waits for its answer.
    pub(super) waits: Option<Token>,
    /// Publishes that are not answered, and those of them that may come back.
    pub(super) in_flight: u32,
    pub(super) may_return: u32,
    /// For consumers to come.
    pub(super) prefetch: u16,
    /// Consumers to come share a window.
    pub(super) is_shared: bool,
    /// The queue declared last, which an empty name means.
    pub(super) last_queue: String,
    pub(super) consumers: BTreeMap<String, Consumer>,
    pub(super) names: Names,
    /// What is being published, and whether it is mandatory.
    pub(super) incoming: Option<Incoming<bool>>,
    pub(super) confirms: Option<Confirms>,
    pub(super) transaction: Option<Transaction>,
    pub(super) unacked: Unacked,
    pub(super) counts: ChannelCounts,
    /// When something last came or went on it.
    pub(super) active_at: Time,
    next_tag: u64,
    next_consumer: u64,
}

/// A consumer by its tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Consumer {
    /// The broker has not answered.
    Asked,
    /// It is there.
    Here(ConsumerId),
}

/// What waits for `tx.commit` (1.9).
#[derive(Debug, Default)]
pub(super) struct Transaction {
    pub(super) publishes: Vec<Publish>,
    /// Bytes that the publishes take, about.
    pub(super) bytes: u64,
    pub(super) settlements: Vec<(Receipt, Outcome)>,
    /// What the settlements are of, to be put back by `tx.rollback`.
    pub(super) taken: Vec<Held>,
}

impl Transaction {
    /// One more publish. Answers whether it is time to look at how much all channels hold: now and then, since that takes a while.
    pub(super) fn add(&mut self, publish: Publish) -> bool {
        let before = self.bytes / LOOKED_AT_EVERY;
        self.bytes += publish.len();
        self.publishes.push(publish);
        before != self.bytes / LOOKED_AT_EVERY
    }
}

impl Channel {
    /// Bytes of the content that is being received, and of the publishes that wait for a commit.
    pub(super) fn held_bytes(&self) -> u64 {
        let incoming = self.incoming.as_ref().map_or(0, Incoming::len);
        incoming + self.transaction.as_ref().map_or(0, |transaction| transaction.bytes)
    }

    /// Bytes that have come of the content that is being received, and of the publishes that wait for a commit.
    pub(super) fn bytes_here(&self) -> u64 {
        let incoming = self.incoming.as_ref().map_or(0, Incoming::come);
        incoming + self.transaction.as_ref().map_or(0, |transaction| transaction.bytes)
    }

    /// Whether it holds nothing, and has not begun what it would have to end.
    pub(super) fn is_idle(&self) -> bool {
        let in_transaction = |transaction: &Transaction| {
            !(transaction.publishes.is_empty() && transaction.settlements.is_empty())
        };
        self.unacked.iter().next().is_none()
            && self.incoming.is_none()
            && !self.transaction.as_ref().is_some_and(in_transaction)
    }

    /// Whether it has nothing to settle, nobody who consumes, and waits for no confirm or commit.
    pub(super) fn only_publishes(&self) -> bool {
        let settles = !self.consumers.is_empty() || self.unacked.iter().next().is_some();
        !settles && self.confirms.is_none() && self.transaction.is_none()
    }

    pub(super) fn new(now: Time, life: u64) -> Self {
        Self {
            life,
            is_closing: false,
            waits: None,
            in_flight: 0,
            may_return: 0,
            prefetch: 0,
            is_shared: false,
            last_queue: String::new(),
            consumers: BTreeMap::new(),
            names: Names::default(),
            incoming: None,
            confirms: None,
            transaction: None,
            unacked: Unacked::default(),
            counts: ChannelCounts::default(),
            active_at: now,
            next_tag: 1,
            next_consumer: 1,
        }
    }

    /// Whether a frame waits for the answers to what was said before.
    pub(super) fn must_wait(&self, frame: &Frame<'_>) -> bool {
        if self.waits.is_some() {
            return true;
        }
        if self.in_flight == 0 || frame.kind != FrameKind::Method {
            return false;
        }
        match MethodId::peek(frame.payload) {
            Some(basic::Publish::ID | basic::Ack::ID | basic::Nack::ID | basic::Reject::ID) | None => false,
            // The broker answers these, in its order; but what comes back of a publish is told first.
            Some(id) if is_asked(id) => self.may_return > 0,
            Some(_) => true,
        }
    }

    /// The queue that a name means.
    pub(super) fn queue(&self, name: &str) -> Result<String, Violation> {
        match name {
            "" if self.last_queue.is_empty() => {
                Err(Violation::of(ReplyCode::NotFound, "no previously declared queue"))
            }
            "" => Ok(self.last_queue.clone()),
            name => Ok(name.to_owned()),
        }
    }

    /// The tag of a new consumer: the client's, or one made up.
    pub(super) fn consumer_tag(&mut self, wanted: &str, connection: u64) -> Result<String, Violation> {
        if !wanted.is_empty() {
            return match self.consumers.contains_key(wanted) {
                true => Err(Violation::of(
                    ReplyCode::NotAllowed,
                    format!("attempt to reuse consumer tag '{wanted}'"),
                )),
                false => Ok(wanted.to_owned()),
            };
        }
        loop {
            let tag = format!("{TAG_PREFIX}{connection:x}-{}-{}", self.life, self.next_consumer);
            self.next_consumer += 1;
            if !self.consumers.contains_key(&tag) {
                return Ok(tag);
            }
        }
    }

    /// A tag for one more message; it is out until it is settled.
    pub(super) fn lend(&mut self, receipt: Receipt, consumer: Option<ConsumerId>) -> u64 {
        let tag = self.next_tag();
        self.unacked.push(Held { tag, receipt, consumer });
        tag
    }

    /// A tag for one more message.
    pub(super) fn next_tag(&mut self) -> u64 {
        self.next_tag += 1;
        self.next_tag - 1
    }

    /// Settles what a tag names. Answers the receipts, but in a transaction, which keeps them.
    pub(super) fn settle(
        &mut self,
        tag: u64,
        multiple: bool,
        outcome: Outcome,
    ) -> Result<Vec<Receipt>, Violation> {
        let Some(taken) = self.unacked.take(tag, multiple) else {
            return Err(Violation::of(ReplyCode::PreconditionFailed, format!("unknown delivery tag {tag}")));
        };
        if outcome == Outcome::Ack {
            self.counts.acked += taken.len() as u64;
        }
        let receipts = taken.iter().map(|held| held.receipt);
        let Some(transaction) = &mut self.transaction else { return Ok(receipts.collect()) };
        transaction.settlements.extend(receipts.map(|receipt| (receipt, outcome)));
        transaction.taken.extend(taken);
        Ok(Vec::new())
    }

    /// Everything that is out, also what a transaction would have settled.
    pub(super) fn take_all(&mut self) -> Vec<Receipt> {
        if let Some(transaction) = self.transaction.take() {
            self.unacked.restore(transaction.taken);
        }
        self.unacked.take_all().iter().map(|held| held.receipt).collect()
    }

    pub(super) fn select_confirms(&mut self) -> Result<(), Violation> {
        if self.transaction.is_some() {
            return Err(Violation::of(
                ReplyCode::PreconditionFailed,
                "cannot switch from tx to confirm mode",
            ));
        }
        self.confirms.get_or_insert_default();
        Ok(())
    }

    pub(super) fn select_transactions(&mut self) -> Result<(), Violation> {
        if self.confirms.is_some() {
            return Err(Violation::of(
                ReplyCode::PreconditionFailed,
                "cannot switch from confirm to tx mode",
            ));
        }
        self.transaction.get_or_insert_default();
        Ok(())
    }

    /// The transaction so far, and a new one.
    pub(super) fn end_transaction(&mut self) -> Result<Transaction, Violation> {
        let open = self.transaction.as_mut().map(std::mem::take);
        open.ok_or_else(|| Violation::of(ReplyCode::PreconditionFailed, "channel is not transactional"))
    }
}

/// Whether the broker answers a method, not the connection.
fn is_asked(id: MethodId) -> bool {
    let classes = [exchange::Declare::ID.class, queue::Declare::ID.class];
    classes.contains(&id.class)
        || [basic::Consume::ID, basic::Cancel::ID, basic::Get::ID, tx::Commit::ID].contains(&id)
}

/// Windows as the method sets them (1.8.3.1; `global` as in RabbitMQ). Returns the consumers that were started before the channel had a
/// window for all of its consumers.
pub(super) fn set_qos(channel: &mut Channel, qos: &basic::Qos) -> Result<Vec<ConsumerId>, Violation> {
    if qos.prefetch_size != 0 {
        let text = format!("prefetch_size!=0 ({})", qos.prefetch_size);
        return Err(Violation::of(ReplyCode::NotImplemented, text));
    }
    if !qos.global {
        channel.prefetch = qos.prefetch_count;
        return Ok(Vec::new());
    }
    let was_shared = std::mem::replace(&mut channel.is_shared, true);
    let here = channel.consumers.values().filter(|_| !was_shared);
    Ok(here.filter_map(|one| if let Consumer::Here(id) = one { Some(*id) } else { None }).collect())
}
