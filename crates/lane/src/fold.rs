//! Facts folded into a broker: how a recovery makes the broker anew, and how a test sees that facts say everything.

use std::sync::Arc;

use crate::broker::Broker;
use crate::clock::{CLOCK_KEY, Noted};
use crate::command::{Effect, Step};
use crate::entries::Slot;
use crate::fact::Fact;
use crate::identity::Identity;
use crate::ids::{Place, QueueId, Seq, Time, VhostId};
use crate::message::{Located, Message};
use crate::metadata::MetadataEntry;
use crate::queue::{Described, Queue};
use crate::run::{Rewritten, RunRecord};
use crate::vhosts::Vhost;

/// The messages that a [`Broker::scan`] found, and where to go on.
pub type Scan = (Vec<(QueueId, Seq)>, Option<(QueueId, Seq)>);

/// The sequences that a log may name. One beyond them is damage, and would leave none for the next message.
const SEQS: std::ops::Range<Seq> = Seq(1)..Seq(u64::MAX / 2);

/// A fact is about something that is not there: the log it comes from has a hole before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unfounded;

impl std::fmt::Display for Unfounded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the record is about a queue or message that is not there")
    }
}

impl std::error::Error for Unfounded {}

impl Broker {
    /// Takes one fact for true. Effects say which content is no longer needed.
    ///
    /// # Errors
    /// [`Unfounded`]; then nothing has changed, but that the sequences the fact names are not used again.
    pub fn fold(&mut self, fact: Fact, step: &mut Step) -> Result<(), Unfounded> {
        match fact {
            Fact::VhostStored { vhost, name, settings } => {
                self.vhosts.fold_stored(vhost, name, *settings).ok_or(Unfounded)?;
            }
            Fact::VhostDeleted { vhost } => self.fold_vhost_deleted(vhost, step).ok_or(Unfounded)?,
            Fact::QueueStored { queue: id, vhost, name, settings, identity, next_seq } => {
                self.fold_queue(id, Described { vhost, name, settings, identity, next_seq })?;
            }
            // It went with its virtual host.
            Fact::QueueDeleted { queue } if self.unsaid.remove(&queue) => {}
            Fact::QueueDeleted { queue } => {
                self.known(queue)?;
                self.fold_queue_deleted(queue, step);
            }
            Fact::ExchangeStored { vhost, name, settings } => {
                self.known_vhost(vhost)?.topology.store(name, *settings);
            }
            Fact::ExchangeDeleted { vhost, name } => {
                self.known_vhost(vhost)?.topology.delete(&name);
            }
            Fact::Bound { vhost, binding } => {
                self.known_vhost(vhost)?.topology.bind(*binding);
            }
            Fact::Unbound { vhost, binding } => {
                self.known_vhost(vhost)?.topology.unbind(&binding);
            }
            Fact::PolicyStored { vhost, kind, name, policy } => {
                self.fold_policy(vhost, kind, name, policy).ok_or(Unfounded)?;
            }
            Fact::PolicyRemoved { vhost, kind, name } => {
                self.fold_policy_removed(vhost, kind, &name).ok_or(Unfounded)?;
            }
            Fact::MetadataStored { key, value } => self.fold_metadata(key, value)?,
            // It may be gone already, where what set it was given back.
            Fact::MetadataRemoved { key } => self.metadata.remove(&key),
            Fact::Stored { message, .. } if !SEQS.contains(&message.seq) => return Err(Unfounded),
            Fact::Stored { queue, message } => {
                let freed = self.known_or_nameless(queue).fold_stored(message);
                step.effects.extend(freed.map(Effect::Released));
            }
            Fact::Leased { queue, seq, lease, deadline, count, work } => {
                let (queue, slot) = self.known_message(queue, seq)?;
                queue.fold_leased(slot, lease, deadline, count, work);
            }
            Fact::PutBack { queue, seq, count, due, attempts } => {
                let (queue, slot) = self.known_message(queue, seq)?;
                queue.set_attempts(slot, attempts);
                queue.fold_put_back(slot, count, due);
            }
            Fact::Reprioritised { queue, seq, priority, original } => {
                let (queue, slot) = self.known_message(queue, seq)?;
                queue.set_priority(slot, priority, original);
            }
            Fact::Settled { queue, seq, how } => {
                let (queue, slot) = self.known_message(queue, seq)?;
                queue.lanes.count_settled(queue.entries[slot].lane, how);
                step.effects.push(Effect::Released(queue.take_out(slot).place));
            }
            Fact::Died { queue, seq, count, deaths, attempts } => {
                let (queue, slot) = self.known_message(queue, seq)?;
                queue.set_attempts(slot, attempts);
                queue.fold_died(slot, count, deaths);
            }
            Fact::Replayed { queue, seq, priority, original, expires } => {
                let (queue, slot) = self.known_message(queue, seq)?;
                queue.revive(slot, priority, original, expires);
            }
            Fact::RunStored { queue, run } => self.fold_run(queue, &run, &[], true, step)?,
            Fact::RunRestated { queue, run } => self.fold_run(queue, &run, &[], false, step)?,
            Fact::RunsRewritten { queue, run, of } => self.fold_run(queue, &run, &of, true, step)?,
            Fact::RunFetched { queue, run } => self.known(queue)?.bring_run(run),
            Fact::LanesChanged { queue } => self.known(queue)?.fold_lanes_changed(),
            Fact::RunSettled { queue, run, how } => {
                self.known(queue)?.settle_run(run, how, step);
            }
            Fact::Purged { before, .. } if !SEQS.contains(&before) => return Err(Unfounded),
            Fact::Purged { queue, before, kept } => self.known(queue)?.fold_purged(before, &kept, step),
            Fact::Moved { from, seq, to } => self.fold_moved(from, seq, to, step)?,
        }
        Ok(())
    }

    /// Nobody waits during a recovery, so nothing is left for later.
    pub(crate) fn fold_queue_deleted(&mut self, id: QueueId, step: &mut Step) {
        let heap = self.forget_queue(id).into_heap(step);
        self.remains.add(heap);
        self.clear_remains(usize::MAX, step);
    }

    fn fold_queue(&mut self, id: QueueId, described: Described) -> Result<(), Unfounded> {
        crate::check_queue_name(&described.name).map_err(|_| Unfounded)?;
        if !SEQS.contains(&described.next_seq) {
            return Err(Unfounded);
        }
        let vhost = self.vhosts.known_or_nameless(described.vhost).ok_or(Unfounded)?;
        let named = vhost.queue(&described.name).is_ok();
        match self.known(id) {
            Ok(queue) if queue.name.is_empty() && !named => self.describe(id, described),
            Ok(queue) if queue.name == described.name && queue.vhost == described.vhost => {
                queue.next_seq = queue.next_seq.max(described.next_seq);
                let there = self.vhosts.get(described.vhost).expect("it was just there");
                let (version, ruled) =
                    (there.ruling.version, there.policies.rule(&described.name, described.settings));
                let queue = self.queue_mut(id);
                queue.rule(ruled);
                queue.ruled_at = version;
            }
            Ok(_) => return Err(Unfounded),
            Err(_) if named => return Err(Unfounded),
            Err(_) => self.store_queue(id, described),
        }
        Ok(())
    }

    /// A virtual host, which may be described later.
    fn known_vhost(&mut self, vhost: VhostId) -> Result<&mut Vhost, Unfounded> {
        self.vhosts.known_or_nameless(vhost).ok_or(Unfounded)
    }

    fn fold_metadata(&mut self, key: Arc<str>, value: Arc<[u8]>) -> Result<(), Unfounded> {
        let entry = MetadataEntry { key: Arc::clone(&key), value: Some(Arc::clone(&value)) };
        self.check_metadata(&[entry]).map_err(|_| Unfounded)?;
        if &*key == CLOCK_KEY {
            self.clock = Noted::decode(&value).unwrap_or_default();
        }
        self.metadata.store(key, value);
        Ok(())
    }

    fn fold_run(
        &mut self,
        queue: QueueId,
        run: &RunRecord,
        of: &[Rewritten],
        may_be_here: bool,
        step: &mut Step,
    ) -> Result<(), Unfounded> {
        let makes_sense = SEQS.contains(&run.first) && SEQS.contains(&run.last) && run.makes_sense();
        if !makes_sense || self.known(queue).is_ok_and(|queue| !queue.can_count(run)) {
            return Err(Unfounded);
        }
        self.known_or_nameless(queue).fold_run(run, of, may_be_here, step);
        Ok(())
    }

    fn fold_moved(
        &mut self,
        from: QueueId,
        seq: Seq,
        to: Vec<Located>,
        step: &mut Step,
    ) -> Result<(), Unfounded> {
        if to.iter().any(|target| !SEQS.contains(&target.message.seq)) {
            return Err(Unfounded);
        }
        let Ok((queue, slot)) = self.known_message(from, seq) else {
            // Its record was given back, since what it became is written anew or has left. No sequence is used twice.
            for Located { queue, message } in to {
                let queue = self.known_or_nameless(queue);
                queue.next_seq = queue.next_seq.max(message.seq.next());
            }
            return Err(Unfounded);
        };
        let place = queue.move_away(slot, false).place;
        let copies = to.len();
        for Located { queue, message } in to {
            let freed = self.known_or_nameless(queue).fold_stored(Message { place, ..message });
            step.effects.extend(freed.map(Effect::Released));
        }
        step.effects.extend((1..copies).map(|_| Effect::Shared(place)));
        if copies == 0 {
            step.effects.push(Effect::Released(place));
        }
        Ok(())
    }

    /// The queue of a message. One that is not described yet has no name: a log whose head was given back may say later what
    /// its queues are.
    fn known_or_nameless(&mut self, id: QueueId) -> &mut Queue {
        if self.known(id).is_err() {
            self.insert_queue(id, undescribed(""));
        }
        self.queue_mut(id)
    }

    /// Says what a nameless queue is. Its messages come in again, so that they stand as its settings say.
    fn describe(&mut self, id: QueueId, described: Described) {
        let nameless = self.forget_queue(id);
        let next_seq = described.next_seq.max(nameless.next_seq);
        self.store_queue(id, Described { next_seq, ..described });
        let queue = self.queue_mut(id);
        for slot in nameless.by_seq.from(Seq(0)) {
            queue.insert(nameless.entries[slot].message.clone());
        }
        for (id, run) in nameless.runs {
            queue.enter_run(&run.record());
            queue.keep_quarantine(id, run);
        }
        queue.quarantined.extend(nameless.quarantined);
    }

    /// Queues that the log never described, because that part of it is damaged: their messages are not lost with it.
    fn name_the_nameless(&mut self, step: &mut Step) {
        let nameless = self.queues.values().filter(|queue| queue.name.is_empty());
        let ids: Vec<QueueId> = nameless.map(|queue| queue.id).collect();
        for id in ids {
            if self.queue_ref(id).is_empty() {
                self.forget_queue(id);
                continue;
            }
            let mut names = (0..).map(|again| format!("recovered-{}{}", id.0, "+".repeat(again)));
            let is_free = |name: &String| self.id_of(VhostId::DEFAULT, name).is_err();
            let name = names.find(is_free).expect("a name is free");
            self.describe(id, undescribed(&name));
            step.facts.push(self.queue_ref(id).fact());
        }
    }

    fn known(&mut self, id: QueueId) -> Result<&mut Queue, Unfounded> {
        self.queues.get_mut(&id).map(|queue| &mut **queue).ok_or(Unfounded)
    }

    fn known_message(&mut self, id: QueueId, seq: Seq) -> Result<(&mut Queue, Slot), Unfounded> {
        let queue = self.known(id)?;
        let slot = queue.bring(seq).ok_or(Unfounded)?;
        Ok((queue, slot))
    }

    /// After the last fact: deletes the queues that do not outlive their broker, has leases and delays end as if the clock had been
    /// right when they began, catches up with the time that has passed, and
    /// counts anew for how long queues are unused.
    pub fn wake(&mut self, now: Time, step: &mut Step) {
        step.facts.extend(self.vhosts.name_the_nameless());
        self.name_the_nameless(step);
        let unsaid = std::mem::take(&mut self.unsaid).into_iter();
        step.facts.extend(unsaid.map(|queue| Fact::QueueDeleted { queue }));
        let passing = self.queues.values().filter(|queue| !queue.identity.is_lasting()).map(|queue| queue.id);
        for id in passing.collect::<Vec<_>>() {
            self.end_queue(id, step);
        }
        self.clear_remains(usize::MAX, step);
        self.drop_transient_exchanges(step);
        self.set_right(now, step);
        let ids: Vec<QueueId> = self.vhosts.queues().collect();
        for id in ids {
            let queue = self.queue_mut(id);
            queue.used = now;
            queue.lanes.count_from_here();
            queue.begin(now);
            queue.drop_outdated(step);
            (queue.active_at, queue.is_active) = (now, false);
            self.reschedule(id);
        }
        self.tick(now, step);
    }

    /// The fact that stores one message as a recovery must find it. A lease that ends with its consumer is none.
    #[must_use]
    pub fn stored_fact(&self, queue: QueueId, seq: Seq) -> Option<Fact> {
        let there = self.queues.get(&queue)?;
        let slot = there.by_seq.get(seq)?;
        Some(Fact::Stored { queue, message: there.entries[slot].durable() })
    }

    /// Looks at up to `budget` messages in the order of queues and sequences, from `from` on, and answers those whose
    /// place `wanted` takes, and where to go on; `None` when all were seen.
    #[must_use]
    pub fn scan(&self, from: (QueueId, Seq), mut budget: usize, wanted: impl Fn(Place) -> bool) -> Scan {
        let mut found = Vec::new();
        for (_, queue) in self.queues.range(from.0..) {
            let start = if queue.id == from.0 { from.1 } else { Seq(0) };
            for slot in queue.by_seq.from(start) {
                let message = &queue.entries[slot].message;
                if budget == 0 {
                    return (found, Some((queue.id, message.seq)));
                }
                budget -= 1;
                if wanted(message.place) {
                    found.push((queue.id, message.seq));
                }
            }
        }
        (found, None)
    }

    /// Tells the broker that the content of a message is elsewhere now. Answers where it was.
    pub fn relocate(&mut self, queue: QueueId, seq: Seq, place: Place) -> Option<Place> {
        let (queue, slot) = self.known_message(queue, seq).ok()?;
        Some(std::mem::replace(&mut queue.entries[slot].message.place, place))
    }

    /// Queues.
    #[must_use]
    pub fn queue_count(&self) -> usize {
        self.queues.len()
    }

    /// How much the records of virtual hosts, policies, queues, exchanges, bindings and metadata take, in KiB, about: of metadata and
    /// policies the bytes, of the others mostly as many as there are.
    #[must_use]
    pub fn topology_len(&self) -> usize {
        let bytes = self.metadata_size().cost().div_ceil(1_024) + self.policies_size().cost().div_ceil(1_024);
        self.queues.len() + self.vhosts.cost() + bytes as usize
    }

    /// The facts that store every message, by virtual host, queue name and sequence.
    pub fn message_facts(&self) -> impl Iterator<Item = Fact> + '_ {
        self.vhosts.queues().flat_map(|id| {
            let queue = self.queue_ref(id);
            queue.durable_messages().map(|message| Fact::Stored { queue: queue.id, message })
        })
    }
}

/// A queue of which only this name is known; empty: not even that.
fn undescribed(name: &str) -> Described {
    Described {
        vhost: VhostId::DEFAULT,
        name: name.into(),
        settings: Box::default(),
        identity: Identity::default(),
        next_seq: Seq(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Address, Command, Given, Options, Outcome, Place, Publish, Reply, Settings};

    fn publish(to: &str) -> Command {
        Command::Publish(Publish {
            to: Address::Queue(to.into()),
            priority: Given::Missing,
            id: None,
            origin: None,
            key: None,
            key_weight: None,
            ttl_ms: None,
            base_ttl_ms: None,
            delay_ms: 0,
            bytes: 0,
            place: Place(0),
        })
    }

    /// The record of the first queue is given back, that of its binding is not.
    #[test]
    fn a_later_queue_does_not_inherit_bindings() {
        let (mut broker, mut step) = (Broker::new(Options::default()), Step::default());
        let mut apply = |command| broker.apply(Time(1), command, &mut step).expect("it is taken");
        let binding = crate::Binding::new("amq.topic", crate::Destination::Queue("q".into()), "a");
        apply(Command::declare("q".into(), Box::default()));
        apply(Command::Bind(Box::new(binding)));
        apply(Command::DeleteQueue { name: "q".into(), if_empty: false, if_unused: false });

        let mut again = Broker::new(Options::default());
        for fact in step.facts.drain(..).filter(|fact| !matches!(fact, Fact::QueueStored { .. })) {
            // That the queue is deleted is about what is no longer there.
            let _ = again.fold(fact, &mut Step::default());
        }
        again.apply(Time(2), Command::declare("q".into(), Box::default()), &mut step).expect("it is taken");
        let is_bound = |fact: &Fact| matches!(fact, Fact::Bound { .. });
        assert!(!again.topology_facts().iter().any(is_bound));
    }

    /// The record of the message that was moved is given back, that of the move is not.
    #[test]
    fn a_sequence_is_not_used_again_when_only_the_move_of_its_message_is_left() {
        let (mut broker, mut step) = (Broker::new(Options::default()), Step::default());
        let mut apply = |command| broker.apply(Time(1), command, &mut step).expect("it is taken");
        let dead_letter = crate::DeadLetterTo::Queue("dead".into());
        let settings = Settings { dead_letter, ..Settings::default() };
        apply(Command::declare("dead".into(), Box::default()));
        apply(Command::declare("q".into(), Box::new(settings)));
        apply(publish("q"));
        let consumer = crate::ConsumerId(1);
        let pull = crate::Pull {
            consumer,
            queue: "q".into(),
            max: 1,
            max_bytes: 0,
            term: crate::LeaseTerm::OfQueue,
            lanes: crate::LaneChoice::default(),
            until: Time(1),
        };
        apply(Command::Pull(pull));
        let receipt = step.effects.iter().find_map(|effect| match effect {
            Effect::Deliver(delivery) => Some(delivery.receipt),
            _ => None,
        });
        let receipts = vec![receipt.expect("a lease")];
        broker
            .apply(Time(1), Command::Settle { receipts, outcome: Outcome::Reject }, &mut step)
            .expect("it is taken");

        let (mut again, mut unfounded) = (Broker::new(Options::default()), 0);
        for fact in step.facts.drain(..).filter(|fact| !matches!(fact, Fact::Stored { .. })) {
            unfounded += u32::from(again.fold(fact, &mut Step::default()).is_err());
        }
        assert!(unfounded > 0, "the move is about what is no longer there");
        let Ok(Reply::Published(copies)) = again.apply(Time(2), publish("dead"), &mut step) else {
            panic!("a publish answers with its copies");
        };
        assert_eq!(copies[0].seq, Seq(2));
    }
}
