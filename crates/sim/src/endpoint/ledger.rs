//! What a receiver has, and whether it may have it: told from leases, answers and the clock, and from nothing that the forwarder says of itself.
//!
//! A message may come again while its last coming is in doubt: its answer was lost, or its settlement was not durable when the engine died.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use overtake_lane::{ConsumerId, LaneChoice, LeaseId, Outcome, Priority, QueueId, Receipt, Seq, State, Time};

use super::line::Link;
use super::{Endpoint, Open};
use crate::book::{lane_name, lane_of, takes};
use crate::check::awake;
use crate::failure::{Checked, Promise, broken, hold};
use crate::keys::speaks_of_keys;
use crate::refold::mark_of;
use crate::world::World;

/// A message, and the mark that tells it from one of a later queue with the same number.
type Name = (QueueId, Seq, u64);

/// What a receiver has.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    came: BTreeMap<Name, Coming>,
    /// The marks of what is leased.
    marks: BTreeMap<Receipt, u64>,
    /// Put back as they were, and leased to nobody since, each with its lane.
    put_back: BTreeMap<(QueueId, Seq), Arc<str>>,
    /// Lanes of which something failed and nothing was accepted since: nothing of them need be sent.
    troubled: BTreeSet<Arc<str>>,
    /// What failed, or was refused, since the calm began.
    let_go: BTreeSet<(QueueId, Seq)>,
    told: u64,
}

/// How a message came last.
#[derive(Clone, Copy, Debug)]
struct Coming {
    lease: LeaseId,
    stand: Stand,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stand {
    InDoubt,
    /// The endpoint knows that it came.
    Known,
    /// It has asked to settle it.
    Settling,
    /// That is durable.
    Settled,
}

impl Ledger {
    /// Counts what the forwarder is told of.
    pub(super) fn next_nth(&mut self) -> u64 {
        self.told += 1;
        self.told
    }

    pub(super) fn lent(&mut self, receipt: &Receipt) {
        self.put_back.remove(&(receipt.queue, receipt.seq));
    }

    pub(super) fn crashed(&mut self) {
        for coming in self.came.values_mut().filter(|coming| coming.stand != Stand::Settled) {
            coming.stand = Stand::InDoubt;
        }
        self.marks.clear();
        self.put_back.clear();
        self.troubled.clear();
    }

    /// Something of a lane failed.
    pub(super) fn trouble(&mut self, lane: &Arc<str>) {
        self.troubled.insert(Arc::clone(lane));
    }

    /// From now on whatever waits comes.
    pub(super) fn begin_calm(&mut self) {
        self.let_go.clear();
    }

    /// Whether a message came, or need not.
    pub(super) fn has(&self, queue: QueueId, seq: Seq) -> bool {
        let came = self.came.range((queue, seq, 0)..=(queue, seq, u64::MAX)).next();
        came.is_some() || self.let_go.contains(&(queue, seq))
    }

    /// The receiver has it.
    pub(super) fn arrives(&mut self, receipt: &Receipt, mark: u64) {
        let name = (receipt.queue, receipt.seq, mark);
        self.marks.insert(*receipt, mark);
        self.came.insert(name, Coming { lease: receipt.lease, stand: Stand::InDoubt });
    }

    fn coming(&mut self, receipt: &Receipt) -> Option<&mut Coming> {
        let mark = self.marks.get(receipt)?;
        self.came.get_mut(&(receipt.queue, receipt.seq, *mark))
    }

    /// The endpoint hears that the receiver has it.
    pub(super) fn accepted(&mut self, receipt: &Receipt, lane: &str) {
        self.troubled.remove(lane);
        self.coming(receipt).expect("what is accepted came").stand = Stand::Known;
    }

    pub(super) fn settles(&mut self, receipt: &Receipt, outcome: Outcome, lane: Option<Arc<str>>) {
        match outcome {
            Outcome::Ack => {
                if let Some(coming) = self.coming(receipt).filter(|coming| coming.stand == Stand::Known) {
                    coming.stand = Stand::Settling;
                }
            }
            Outcome::Release => {
                self.put_back.extend(lane.map(|lane| ((receipt.queue, receipt.seq), lane)));
            }
            Outcome::Nack { .. } | Outcome::Reject | Outcome::Timeout => {
                self.let_go.insert((receipt.queue, receipt.seq));
            }
        }
    }

    /// The lease of a message that was to be put back had ended before: the message waited for as long as one does whose time is over.
    pub(super) fn was_over(&mut self, receipt: &Receipt) {
        self.put_back.remove(&(receipt.queue, receipt.seq));
    }

    /// The settlement of what came is durable; or the lease was over, and the message may come again.
    pub(super) fn settled(&mut self, receipt: &Receipt, is_done: bool) -> Checked {
        let Some(coming) = self.coming(receipt) else { return Ok(()) };
        let is_same = coming.lease == receipt.lease;
        if is_same {
            coming.stand = if is_done { Stand::Settled } else { Stand::InDoubt };
        }
        self.marks.remove(receipt);
        hold(is_same || !is_done, Promise::Gone, || format!("{receipt} was settled and sent again"))
    }

    /// A message is about to be sent.
    fn check_once(&self, receipt: &Receipt, mark: u64) -> Checked {
        let Some(coming) = self.came.get(&(receipt.queue, receipt.seq, mark)) else { return Ok(()) };
        hold(matches!(coming.stand, Stand::InDoubt | Stand::Settling), Promise::Gone, || {
            format!("{receipt} is sent again, and its first coming is {:?}", coming.stand)
        })
    }
}

impl World {
    /// Every promise that sending one message can break.
    pub(super) fn check_begun(&self, one: &Endpoint, at: usize, receipt: &Receipt) -> Checked {
        let running = one.running.as_ref().expect("it sends");
        let held = &running.held[receipt];
        let message = &held.message.message;
        let mark = mark_of(held.message.content.content_type());
        let letter = mark.and_then(|mark| self.book.letters.get(mark as usize));
        hold(letter.is_some_and(|letter| letter.says() == *held.message.content), Promise::Kept, || {
            format!("{receipt} is sent and says what nobody published")
        })?;
        let now = self.true_clock();
        hold(message.expires.unwrap_or(Time::NEVER) > now, Promise::Expiry, || {
            format!("{receipt} is sent at {} though it expired at {:?}", now.0, message.expires)
        })?;
        one.ledger.check_once(receipt, mark.unwrap_or_default())?;
        let Link::Up(Some(sending)) = &running.lines[at].link else {
            return broken(Promise::Alive, format!("{receipt} is sent on a line that is down"));
        };
        let waits = running.held.values().filter(|other| other.line == at && !other.is_begun);
        for other in waits.filter(|other| other.message.receipt != *receipt) {
            let is_before = other.message.message.lane == message.lane && other.nth < held.nth;
            hold(!is_before, Promise::Order, || {
                format!("{receipt} is sent before {}, which was leased before it", other.message.receipt)
            })?;
            let is_urgent = other.message.message.level > sending.level;
            hold(!is_urgent, Promise::Pick, || {
                format!("{receipt} is sent though {} is in hand", other.message.receipt)
            })?;
        }
        self.check_places(one, receipt)?;
        if sending.next > 1 { self.check_urgent(one, sending.level) } else { Ok(()) }
    }

    /// What was put back goes before what is younger in its lane.
    fn check_places(&self, one: &Endpoint, receipt: &Receipt) -> Checked {
        let queue = receipt.queue;
        let lane_here = |seq: Seq| {
            let (settings, message) = (self.book.settings.get(&queue)?, self.audit.find(queue, seq)?);
            let is_free = message.state == State::Ready && !self.book.holds.contains_key(&(queue, seq));
            let lane = lane_name(settings, lane_of(settings, message.priority)).0;
            (is_free && message.expires > self.true_clock()).then_some(lane)
        };
        let is_plain =
            |settings: &overtake_lane::Settings| !speaks_of_keys(settings) && settings.last_value.is_none();
        if one.terms.fan_out > 1
            || self.plan.is_meddled
            || !self.book.settings.get(&queue).is_some_and(is_plain)
        {
            return Ok(());
        }
        let running = one.running.as_ref().expect("it sends");
        let lane = &running.held[receipt].message.message.lane;
        let older = one.ledger.put_back.range((queue, Seq(0))..(queue, receipt.seq));
        let passed =
            older.filter(|(_, of)| *of == lane).find(|((_, seq), _)| lane_here(*seq).as_ref() == Some(lane));
        hold(passed.is_none(), Promise::Order, || {
            format!("{receipt} is sent before {passed:?}, which was put back at its place")
        })
    }

    /// In the midst of a batch: nothing more urgent that could go waits in the queue. Whoever looks ahead has a lease waiting for
    /// it, and got it; unless what the endpoint asked has not been looked at yet.
    fn check_urgent(&self, one: &Endpoint, level: Priority) -> Checked {
        let Some(running) = &one.running else { return Ok(()) };
        let Some(at_least) = level.0.checked_add(1).map(Priority) else { return Ok(()) };
        let is_limited =
            one.terms.bytes_per_second > 0 || one.terms.messages_per_second > 0 || one.terms.daily_bytes > 0;
        let is_held = self.life.as_ref().is_none_or(|life| life.core.is_held());
        if is_limited || is_held || one.paused_until.is_some() || !running.heard.is_empty() {
            return Ok(());
        }
        // It is on its way to the engine, or its answer is on its way back: that of a lease that is noted waits for the disk.
        let waits = |id: &ConsumerId| self.book.takers.get(id).is_some_and(|taker| taker.window.is_none());
        let is_on_its_way = |open: &Open| matches!(open, Open::Lease { consumer, .. } if !waits(consumer));
        let will_ask = running.lines.iter().any(|line| line.wanted.is_some());
        if will_ask || running.open.values().any(is_on_its_way) {
            return Ok(());
        }
        let Some((queue, _)) = self.audit.named(overtake_lane::VhostId::DEFAULT, &one.queue) else {
            return Ok(());
        };
        let except = one.ledger.troubled.iter().cloned().collect();
        let choice = LaneChoice { at_least, except, one: true };
        let waits =
            awake::free(&self.book, &self.audit, queue).into_iter().find(|(_, lane)| takes(&choice, lane));
        hold(waits.is_none(), Promise::Pick, || {
            format!("{} goes on with a batch at {} though {waits:?} waits", one.queue, level.0)
        })
    }

    /// Whoever is not connected has nothing in hand.
    pub(super) fn check_hand(&self, one: &Endpoint) -> Checked {
        let Some(running) = one.running.as_ref().filter(|running| !running.is_up()) else { return Ok(()) };
        hold(running.held.is_empty(), Promise::Alive, || {
            format!("{} has {:?} in hand and no line", one.queue, running.held.keys())
        })?;
        if !running.open.is_empty() {
            return Ok(());
        }
        let of_it = self.book.of_session(running.session);
        let leased =
            self.book.holds.values().find(|hold| hold.consumer.is_some_and(|id| of_it.contains(&id)));
        hold(leased.is_none(), Promise::Alive, || {
            format!("{} has no line, and {:?} is leased to it", one.queue, leased.map(|hold| hold.receipt))
        })
    }
}
