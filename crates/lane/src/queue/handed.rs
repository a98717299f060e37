//! What is handed out here of a queue whose messages are kept elsewhere.
//!
//! Such a queue has no messages but those that somebody of this broker holds. They come in leased, by leases of the place where they are kept, and go
//! back there; none is ever ready here. Invariant: what is handed out is found by its receipt alone, since places of one queue may use a sequence
//! twice; `by_seq` stays empty.

use std::collections::BTreeMap;

use super::Queue;
use super::lease::deadline;
use crate::command::{Delivery, Effect, Few, Gone, Step};
use crate::entries::Slot;
use crate::ids::{ConsumerId, LeaseId, Receipt, Seq, Time};
use crate::message::{Message, PutBack, State};
use crate::roster::Terms;

/// What somebody here holds of a queue whose messages are kept elsewhere.
#[derive(Clone, Debug, Default)]
pub(crate) struct Handed(BTreeMap<(Seq, LeaseId), Slot>);

impl Queue {
    /// Whether its messages are kept elsewhere.
    pub(crate) fn is_remote(&self) -> bool {
        self.handed.is_some()
    }

    /// Hands messages, in this order, each to whoever of those with these terms is to have it. Answers the places in the order of those that nobody
    /// took. A pull that got one waits no more.
    pub(crate) fn hand(
        &mut self,
        now: Time,
        messages: impl IntoIterator<Item = (Message, LeaseId)>,
        terms: Terms,
        step: &mut Step,
    ) -> Few<usize> {
        let (mut untaken, mut served) = (Few::new(), Vec::new());
        for (at, (message, lease)) in messages.into_iter().enumerate() {
            let (lane, bytes) = (self.open_lane(message.priority), message.bytes);
            let taker = self.taker_of(lane, bytes, terms).filter(|_| !self.is_handed(message.seq, lease));
            let Some(consumer) = taker else {
                untaken.push(at);
                continue;
            };
            self.hand_to(now, message, lease, consumer, terms, step);
            if self.roster.pulled(consumer, lane, bytes) && served.last() != Some(&consumer) {
                served.push(consumer);
            }
        }
        for consumer in served {
            self.roster.wait_no_more(consumer, now);
        }
        untaken
    }

    fn is_handed(&self, seq: Seq, lease: LeaseId) -> bool {
        self.handed.as_ref().is_some_and(|handed| handed.0.contains_key(&(seq, lease)))
    }

    /// Who takes the next message of a lane, of those with these terms.
    fn taker_of(&mut self, lane: u16, bytes: u32, terms: Terms) -> Option<ConsumerId> {
        loop {
            let fits = |consumer: ConsumerId| self.terms(consumer) == terms;
            let consumer = self.roster.next_of(self.lanes.lane(lane), fits)?;
            if !self.roster.has_enough(consumer, lane, bytes) {
                return Some(consumer);
            }
        }
    }

    /// Gives one message to somebody, who is on the roster if it is to hold it.
    pub(crate) fn hand_to(
        &mut self,
        now: Time,
        message: Message,
        lease: LeaseId,
        consumer: ConsumerId,
        terms: Terms,
        step: &mut Step,
    ) {
        let lane = self.open_lane(message.priority);
        let Message { seq, place, priority, count, .. } = message;
        let receipt = Receipt { queue: self.id, seq, lease };
        let (deadline, settled) = match terms {
            Terms::Held => (deadline(now, self.settings.consumer_timeout_ms), None),
            Terms::Ms(ms) => (deadline(now, ms), None),
            Terms::Settled => {
                let message = Message { state: State::Ready, ..message.clone() };
                let view = self.view_message(lane, &message);
                (Time::NEVER, Some(Box::new(Gone { message, view })))
            }
        };
        step.effects.push(Effect::Deliver(Delivery {
            consumer,
            receipt,
            place,
            priority,
            deadline,
            count,
            settled,
        }));
        match terms {
            Terms::Held => self.keep(now, message, lane, consumer, State::Leased { lease, deadline }),
            // It is leased where it is kept, and ends there.
            Terms::Ms(_) => {}
            Terms::Settled => self.roster.gave(consumer),
        }
    }

    /// Somebody holds a message from now on. What few messages have is not needed for that.
    fn keep(&mut self, now: Time, message: Message, lane: u16, consumer: ConsumerId, state: State) {
        let State::Leased { lease, .. } = state else { unreachable!("what is held is leased") };
        let seq = message.seq;
        let slot = self.enter(Message { state, extras: None, ..message }, lane);
        self.entries[slot].take(now, consumer, true);
        self.attach(slot);
        self.handed.get_or_insert_default().0.insert((seq, lease), slot);
    }

    /// What is held by this receipt, if it is.
    pub(crate) fn handed(&self, receipt: &Receipt) -> Option<Slot> {
        self.handed.as_ref()?.0.get(&(receipt.seq, receipt.lease)).copied()
    }

    /// Whether somebody holds this message, by whatever lease.
    pub(crate) fn is_out(&self, seq: Seq) -> bool {
        let leases = (seq, LeaseId(0))..=(seq, LeaseId(u64::MAX));
        self.handed.as_ref().is_some_and(|handed| handed.0.range(leases).next().is_some())
    }

    /// Nobody holds it any more. Answers by which receipt somebody did.
    pub(crate) fn take_back(&mut self, slot: Slot) -> Receipt {
        let Message { seq, state, .. } = self.entries[slot].message;
        let State::Leased { lease, .. } = state else { unreachable!("what is held is leased") };
        self.detach(slot);
        self.entries.remove(slot);
        if let Some(handed) = &mut self.handed {
            handed.0.remove(&(seq, lease));
        }
        Receipt { queue: self.id, seq, lease }
    }

    /// It goes back to where it is kept.
    pub(super) fn hand_back(&mut self, slot: Slot, why: PutBack, step: &mut Step) {
        let receipt = self.take_back(slot);
        step.effects.push(Effect::Returned { receipt, why });
    }
}
