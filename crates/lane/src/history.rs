//! The end of a message: with a history it moves there with a record of how it went, else it is gone.

use std::sync::Arc;

use crate::QUEUE_NAME_LEN_MAX;
use crate::broker::Broker;
use crate::command::{Few, Outcome, Reply, Step, Which};
use crate::deaths::DeathReason;
use crate::entries::{Entry, Slot};
use crate::ids::{QueueId, Receipt, Seq, Time};
use crate::message::{Message, PutBack, Settled, State};
use crate::record::{Ending, Record, Report, Work};
use crate::refusal::Refusal;

/// How a message ends of which its queue alone cannot dispose.
#[derive(Clone, Copy, Debug)]
pub(crate) enum End {
    /// It is a dead letter.
    Dies(DeathReason),
    /// A dead letter, after as many attempts as its queue allows. The last attempt came back for this reason.
    Spent(PutBack),
    /// It comes back, and somebody wanted it back.
    Cancelled,
}

impl Broker {
    /// Settles one lease and says how the work went.
    pub(crate) fn finish(
        &mut self,
        receipt: &Receipt,
        outcome: Outcome,
        report: Report,
        step: &mut Step,
    ) -> Result<Reply, Refusal> {
        report.check()?;
        let result = self.settle_receipt(receipt, outcome, report, step);
        self.dispatch_all([receipt.queue].into_iter(), step);
        Ok(Reply::Each(Few::from_buf([result])))
    }

    /// Ends a message that waits after this attempt, as the attempt says late.
    ///
    /// # Errors
    /// [`Refusal::NoSuchMessage`], [`Refusal::Dead`]; [`Refusal::Leased`]: the next attempt is under way; [`Refusal::StaleReceipt`]: the message waits
    /// after another attempt, or after none.
    pub(crate) fn finish_late(
        &mut self,
        name: &str,
        message: Box<str>,
        attempt: u32,
        outcome: Outcome,
        report: Report,
        step: &mut Step,
    ) -> Result<Reply, Refusal> {
        report.check()?;
        let id = self.named(name, step)?;
        let which = Which::Id(message);
        let slots = self.bring_chosen(id, &which).chosen(&which, |queue, slot| {
            queue.check_waiting(slot)?;
            let is_last = attempt > 0 && queue.entries[slot].message.count == attempt;
            if is_last { Ok(()) } else { Err(Refusal::StaleReceipt) }
        })?;
        if !matches!(outcome, Outcome::Nack { .. } | Outcome::Release) {
            let message = &mut self.queue_mut(id).entries[slots[0]].message;
            let last = message.attempts().and_then(|attempts| attempts.iter().next_back());
            let started = last.and_then(|attempt| attempt.started);
            message.set_work(started.map(|started| Work { started, ends: Time::NEVER, is_cancelled: false }));
            self.settle(id, slots[0], outcome, report, step);
        }
        self.dispatch(id, step);
        Ok(Reply::Done)
    }

    /// Takes back what nobody works on, and asks back what somebody works on by a pull. What a consumer that stays holds is taken
    /// from it; its place in the window is free when the consumer settles it.
    pub(crate) fn cancel_messages(
        &mut self,
        name: &str,
        which: &Which,
        step: &mut Step,
    ) -> Result<Reply, Refusal> {
        let id = self.named(name, step)?;
        let now = self.now;
        let queue = self.bring_chosen(id, which);
        let slots = queue.chosen(which, |queue, slot| match queue.entries[slot].message.state {
            State::Dead => Err(Refusal::Dead),
            _ => Ok(()),
        })?;
        let seqs: Vec<Seq> = slots.iter().map(|slot| queue.entries[*slot].message.seq).collect();
        for seq in &seqs {
            let queue = self.queue_mut(id);
            let Some(slot) = queue.by_seq.get(*seq) else { continue };
            if !queue.ask_back(now, slot, step) {
                let held = queue.held_by_consumer(slot);
                self.end(id, slot, Ending::Cancelled, Settled::Removed, Report::default(), step);
                self.queue_mut(id).withdraw(held);
            }
        }
        self.dispatch(id, step);
        Ok(Reply::Count(seqs.len() as u64))
    }

    /// Ends a message: it goes into the history of its queue, or is gone.
    pub(crate) fn end(
        &mut self,
        id: QueueId,
        slot: Slot,
        ending: Ending,
        how: Settled,
        report: Report,
        step: &mut Step,
    ) {
        let Some(history) = self.history_for(id, slot, None) else {
            return self.queue_mut(id).settle(slot, how, step);
        };
        let record = self.record(id, slot, ending, &report);
        let mut message = self.queue_mut(id).retire(slot, how);
        message.keep(record);
        self.record_in(history, id, vec![history], message, step);
    }

    /// Moves a message with its record into these queues, one of which is a history. There it takes the place of what waits with its
    /// id; where somebody holds that, it has none.
    pub(crate) fn record_in(
        &mut self,
        history: QueueId,
        from: QueueId,
        targets: Vec<QueueId>,
        mut message: Message,
        step: &mut Step,
    ) {
        let notes = &mut self.work_notes;
        notes.room = notes.room.saturating_sub(record_cost(&message));
        let queue = self.queue_mut(history);
        let older = queue.pending_of(message.id()).map(|pending| pending.seq);
        if let Some(older) = older.and_then(|seq| queue.bring(seq)) {
            if queue.is_waiting(older) {
                queue.settle(older, Settled::Replaced, step);
            } else if let Some(extras) = &mut message.extras {
                extras.id = None;
            }
        }
        self.stirred.extend(&targets);
        let targets = self.as_urgent_in(from, targets, &message);
        self.arrive(from, targets, message, step);
    }

    /// The record of a message that ends now, with the output reported so far where the report has none.
    pub(crate) fn record(&self, id: QueueId, slot: Slot, ending: Ending, report: &Report) -> Arc<Record> {
        let queue = self.queue_ref(id);
        let Entry { message, lane, .. } = &queue.entries[slot];
        Arc::new(Record {
            ending,
            queue: Arc::clone(&queue.name),
            lane: Arc::clone(&queue.lanes.lane(*lane).name),
            queued: message.since,
            started: message.work().map(|work: &Work| work.started),
            finished: self.now,
            attempts: message.count,
            report: self.work_notes.complete(message, report),
        })
    }

    /// The queue into which this message goes when it ends, perhaps because it dies, if there is one that takes it.
    pub(crate) fn history_for(
        &self,
        id: QueueId,
        slot: Slot,
        reason: Option<DeathReason>,
    ) -> Option<QueueId> {
        let queue = self.queue_ref(id);
        let name = queue.settings.history.as_deref()?;
        let history = self.id_of(queue.vhost, name).ok().filter(|history| *history != id)?;
        let message = &queue.entries[slot].message;
        let cost = record_cost(message) + self.work_notes.output_len(message);
        let takes = cost <= self.work_notes.room && self.queue_ref(history).can_record(message, reason);
        takes.then_some(history)
    }
}

/// Bytes that the move of a message with its record takes in a store, at most, about; a report not counted that is still to come.
fn record_cost(message: &Message) -> u64 {
    let texts = message.id().map_or(0, str::len) + message.key().map_or(0, str::len) + 3 * QUEUE_NAME_LEN_MAX;
    message.history_size() + 256 + texts as u64
}

impl Message {
    /// The work on it is over, and went so.
    pub(crate) fn keep(&mut self, record: Arc<Record>) {
        let extras = self.extras.get_or_insert_default();
        (extras.work, extras.record) = (None, Some(record));
    }
}

impl DeathReason {
    /// How the work on a message ended that died of this.
    #[must_use]
    pub fn ending(self) -> Ending {
        match self {
            Self::Rejected | Self::DeliveryLimit => Ending::Failed,
            Self::Expired | Self::Timeout => Ending::Timeout,
            Self::Maxlen => Ending::Cancelled,
        }
    }

    /// What a report says of it that says nothing else.
    #[must_use]
    pub fn error(self) -> &'static str {
        match self {
            Self::Rejected => "rejected",
            Self::DeliveryLimit => "delivery limit",
            Self::Expired => "expired before it was done",
            Self::Timeout => "ran too long",
            Self::Maxlen => "the queue was full",
        }
    }
}
