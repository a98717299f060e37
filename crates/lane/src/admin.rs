//! What administrators do to messages: other priority, remove, purge, replay.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::broker::Broker;
use crate::command::{Reply, Step, Which};
use crate::entries::Slot;
use crate::fact::Fact;
use crate::ids::{Asker, QueueId, Seq, VhostId};
use crate::message::{Settled, State, Status};
use crate::priority::{Given, Priority};
use crate::queue::{Admitted, Queue};
use crate::refusal::Refusal;

impl Broker {
    pub(crate) fn reprioritise(
        &mut self,
        name: &str,
        which: &Which,
        given: &Given,
        step: &mut Step,
    ) -> Result<Reply, Refusal> {
        let id = self.named(name, step)?;
        let queue = self.queue_ref(id);
        let priority = queue.settings.map_priority(given)?;
        queue.lanes.check(priority)?;
        let queue = self.bring_chosen(id, which);
        let slots = queue.chosen(which, |queue, slot| queue.check_waiting(slot))?;
        for slot in &slots {
            queue.reprioritise(*slot, priority, given, step);
        }
        self.dispatch(id, step);
        Ok(Reply::Count(slots.len() as u64))
    }

    pub(crate) fn remove(&mut self, name: &str, which: &Which, step: &mut Step) -> Result<Reply, Refusal> {
        let id = self.named(name, step)?;
        let queue = self.bring_chosen(id, which);
        let slots = queue.chosen(which, |_, _| Ok(()))?;
        for slot in &slots {
            let held = queue.held_by_consumer(*slot);
            queue.settle(*slot, Settled::Removed, step);
            queue.withdraw(held);
        }
        self.dispatch(id, step);
        Ok(Reply::Count(slots.len() as u64))
    }

    pub(crate) fn purge(
        &mut self,
        name: &str,
        status: Option<Status>,
        expect: Option<u64>,
        step: &mut Step,
    ) -> Result<Reply, Refusal> {
        let id = self.usable(name, step)?;
        let queue = self.queue_mut(id);
        let count = queue.purgeable_count(status);
        if expect.is_some_and(|expect| expect != count) {
            return Err(Refusal::CountDiffers { count });
        }
        let (count, left) = queue.purge(status, step);
        self.remains.add(left);
        self.dispatch(id, step);
        Ok(Reply::Count(count))
    }

    /// How many messages a purge takes that is asked for so.
    ///
    /// # Errors
    /// [`Refusal::NoSuchVhost`], [`Refusal::NoSuchQueue`], [`Refusal::QueueLocked`].
    pub fn purgeable(&self, asker: Asker, name: &str, status: Option<Status>) -> Result<u64, Refusal> {
        Ok(self.queue_ref(self.usable_by(asker, name)?).purgeable_count(status))
    }

    /// Whether a purge takes so many messages one by one that it is better done step by step, by removing them.
    #[must_use]
    pub fn is_purge_long(&self, vhost: VhostId, name: &str, status: Option<Status>) -> bool {
        let queue = self.id_of(vhost, name).map(|id| self.queue_ref(id));
        queue.is_ok_and(|queue| queue.is_purge_long(status, self.room()))
    }

    /// Puts dead letters back: those that stayed in their queue, and those that were moved into this one.
    pub(crate) fn replay(
        &mut self,
        name: &str,
        which: &Which,
        promote: Option<&Given>,
        step: &mut Step,
    ) -> Result<Reply, Refusal> {
        let id = self.named(name, step)?;
        match which {
            // Dead letters are in memory; that another message is none can be said only of one that is.
            Which::Id(_) => _ = self.bring_chosen(id, which),
            // So are not those that were moved here.
            Which::Seqs(seqs) => self.queue_mut(id).bring_died_of(seqs),
            Which::All => self.queue_mut(id).bring_died(),
        }
        let seqs: Vec<Seq> = {
            let queue = self.queue_ref(id);
            let slots =
                queue.chosen(which, |queue, slot| self.check_replay(queue, slot, promote).map(drop))?;
            slots.iter().map(|slot| queue.entries[*slot].message.seq).collect()
        };
        let mut touched = BTreeSet::from([id]);
        let mut count = 0;
        for seq in seqs {
            let queue = self.queue_ref(id);
            let Some(slot) = queue.by_seq.get(seq) else { continue };
            // Asked again: one replayed before may have the same id, or may have filled the queue.
            let Ok((home, priority)) = self.check_replay(queue, slot, promote) else { continue };
            count += 1;
            touched.insert(home);
            self.bring_home(id, slot, home, promote.map(|given| (priority, given)), step);
        }
        self.dispatch_all(touched.into_iter(), step);
        Ok(Reply::Count(count))
    }

    /// Has in memory what is meant. What waited in a former lane may be leased from then on, even if nothing else can be done with it.
    pub(crate) fn bring_chosen(&mut self, id: QueueId, which: &Which) -> &mut Queue {
        self.stirred.push(id);
        let queue = self.queue_mut(id);
        queue.bring_chosen(which);
        queue
    }

    /// Where a dead letter would go back to, and with which priority.
    fn check_replay(
        &self,
        queue: &Queue,
        slot: Slot,
        promote: Option<&Given>,
    ) -> Result<(QueueId, Priority), Refusal> {
        let message = &queue.entries[slot].message;
        let name = message.home().ok_or(Refusal::NotDead)?;
        let home = match message.state {
            State::Dead => queue.id,
            State::Leased { .. } => return Err(Refusal::Leased),
            State::Ready | State::Delayed { .. } if *name == queue.name => {
                return Err(Refusal::NotDead);
            }
            State::Ready | State::Delayed { .. } => self.id_of(queue.vhost, name)?,
        };
        let target = self.queue_ref(home);
        let priority = match promote {
            Some(given) => target.settings.map_priority(given)?,
            None => self.priority_at_home(queue.id, home, message).ok_or(Refusal::NoSuchQueue)?.0,
        };
        target.check_return(message.id().filter(|_| home != queue.id || message.state == State::Dead))?;
        target.check_value(message.key())?;
        target.lanes.check(priority)?;
        if home != queue.id && !target.fits(message) {
            return Err(Refusal::MessageTooLarge);
        }
        target.admit_depth(priority, u64::from(message.bytes), Admitted::default(), None)?;
        Ok((home, priority))
    }

    fn bring_home(
        &mut self,
        id: QueueId,
        slot: Slot,
        home: QueueId,
        promote: Option<(Priority, &Given)>,
        step: &mut Step,
    ) {
        let now = self.now;
        if home == id {
            self.queue_mut(id).replay(now, slot, promote, step);
            return;
        }
        let mut message = self.queue_mut(id).move_away(slot, false);
        let priority = match promote {
            Some((priority, given)) => (priority, self.queue_ref(home).settings.original(given)),
            None => self.priority_at_home(id, home, &message).expect("its home was looked for"),
        };
        if let Some(extras) = &mut message.extras {
            if let Some(deaths) = &mut extras.deaths {
                Arc::make_mut(deaths).comes_home();
            }
            if let Some(record) = extras.record.take() {
                message.try_again(&record);
            }
        }
        self.arrive(id, vec![(home, priority)], message, step);
    }
}

impl Queue {
    fn bring_chosen(&mut self, which: &Which) {
        match which {
            Which::Id(id) => {
                if let Ok(seq) = self.find(id) {
                    self.bring(seq);
                }
            }
            Which::Seqs(seqs) => self.bring_each(seqs),
            Which::All => self.bring_all(),
        }
    }

    /// The slots that are meant and for which it can be done.
    pub(crate) fn chosen(
        &self,
        which: &Which,
        can: impl Fn(&Self, Slot) -> Result<(), Refusal>,
    ) -> Result<Vec<Slot>, Refusal> {
        let all: Vec<Slot> = match which {
            Which::Id(id) => {
                let seq = self.find(id)?;
                let slot = self.by_seq.get(seq).ok_or(Refusal::NoSuchMessage)?;
                can(self, slot)?;
                return Ok(vec![slot]);
            }
            Which::Seqs(seqs) => {
                let seqs: BTreeSet<Seq> = seqs.iter().copied().collect();
                seqs.into_iter().filter_map(|seq| self.by_seq.get(seq)).collect()
            }
            Which::All => self.slots_with(|_| true),
        };
        Ok(all.into_iter().filter(|slot| can(self, *slot).is_ok()).collect())
    }

    /// The queue's own record of itself.
    pub(crate) fn fact(&self) -> Fact {
        Fact::QueueStored {
            queue: self.id,
            vhost: self.vhost,
            name: Arc::clone(&self.name),
            settings: Box::new(self.own().clone()),
            identity: self.identity.clone(),
            next_seq: self.next_seq,
        }
    }
}
