//! Publishing: where to, whether all of it is taken, then all of it.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use smallvec::SmallVec;

use crate::broker::{Broker, Options};
use crate::command::{
    Address, Copy, Effect, Few, Outcome, Part, Publish, Published, Reply, RouteCopy, Step, Urgency,
};
use crate::ids::{Asker, QueueId, Receipt, VhostId};
use crate::priority::{Given, Priority};
use crate::queue::{Admission, Admitted, Copied, Queue};
use crate::record::Report;
use crate::refusal::Refusal;
use crate::topology::Envelope;
use crate::vhosts::Vhost;

/// The queues of one publish. Nearly always one.
enum Targets {
    One(QueueId),
    Many(Vec<QueueId>),
    /// Those of the second come through delayed exchanges, and wait so many ms.
    Delayed(Vec<QueueId>, BTreeSet<QueueId>, u64),
    /// Each with its own urgency and time to live.
    Routed(Vec<QueueId>, Vec<(Urgency, Option<u64>)>),
}

impl Targets {
    fn as_slice(&self) -> &[QueueId] {
        match self {
            Self::One(id) => std::slice::from_ref(id),
            Self::Many(ids) | Self::Delayed(ids, ..) | Self::Routed(ids, _) => ids,
        }
    }

    /// The message as the queue of this place gets it.
    fn copy<'p>(&self, at: usize, queue: &Queue, publish: &'p Publish) -> Cow<'p, Publish> {
        let (priority, base_ttl_ms, delay_ms) = match self {
            Self::Delayed(_, later, delay_ms) if later.contains(&queue.id) => {
                (publish.priority.clone(), publish.base_ttl_ms, publish.delay_ms.max(*delay_ms))
            }
            Self::Routed(_, stamps) => {
                let (urgency, ttl_ms) = stamps[at];
                let priority = match urgency {
                    Urgency::Own => publish.priority.clone(),
                    Urgency::Level(level) => Given::of_route(level),
                };
                (priority, ttl_ms, publish.delay_ms)
            }
            _ => return Cow::Borrowed(publish),
        };
        let to = Address::Queue(Arc::clone(&queue.name));
        let Publish { id, key, key_weight, ttl_ms, bytes, place, .. } = publish;
        Cow::Owned(Publish {
            to,
            priority,
            id: id.clone(),
            origin: None,
            key: key.clone(),
            key_weight: *key_weight,
            ttl_ms: *ttl_ms,
            base_ttl_ms,
            delay_ms,
            bytes: *bytes,
            place: *place,
        })
    }
}

/// The targets of one publish whose queues evict their copy at once, because they are full of more urgent messages. They keep
/// the message from no other queue; a message that no queue keeps is refused.
struct LeftOut {
    at: SmallVec<[usize; 4]>,
    targets: usize,
}

impl LeftOut {
    fn new(targets: &Targets) -> Self {
        Self { at: SmallVec::new(), targets: targets.as_slice().len() }
    }

    /// # Errors
    /// The refusal, if it is one of the whole publish.
    fn add(&mut self, at: usize, queue: &Queue, copy: &Publish, refusal: Refusal) -> Result<(), Refusal> {
        if self.at.len() + 1 == self.targets || !queue.evicts_instead(copy, refusal) {
            return Err(refusal);
        }
        self.at.push(at);
        Ok(())
    }
}

impl Broker {
    /// What a publish would put where, in the order in which it is stored, without looking at messages: what a queue already
    /// holds refuses nothing here and takes nothing for known, and neither does what is kept of producers. Nothing changes.
    ///
    /// # Errors
    /// As [`Command::Publish`](crate::Command::Publish), but for those that depend on what is stored:
    /// [`Refusal::QueueFull`], [`Refusal::BelowPriority`], [`Refusal::TooManyLanes`] and [`Refusal::MetadataFull`].
    pub fn copies(&self, asker: Asker, publish: &Publish) -> Result<Few<Copy>, Refusal> {
        let targets = self.targets(asker.vhost, &publish.to)?;
        self.check_copies(targets.as_slice().len())?;
        let Options { max_message_bytes, default_ttl_ms, .. } = self.options;
        let mut left_out = LeftOut::new(&targets);
        let mut copies = Few::with_capacity(targets.as_slice().len());
        for (at, id) in targets.as_slice().iter().enumerate() {
            let queue = self.queue_ref(*id);
            let copy = targets.copy(at, queue, publish);
            match queue.copy_of(&copy, max_message_bytes, default_ttl_ms) {
                Ok(copy) => copies.push(copy),
                Err(refusal) => left_out.add(at, queue, &copy, refusal)?,
            }
        }
        Ok(copies)
    }

    pub(crate) fn publish(&mut self, publish: Publish, step: &mut Step) -> Result<Reply, Refusal> {
        if self.was_taken(&publish, &mut BTreeSet::new())? {
            step.effects.push(Effect::Released(publish.place));
            return Ok(Reply::Published(Few::new()));
        }
        let targets = self.ruled_targets(&publish.to, step)?;
        if let Targets::One(id) = targets {
            return self.publish_to_one(id, &publish, step);
        }
        self.publish_to_many(&targets, &publish, step).map(Reply::Published)
    }

    fn publish_to_many(
        &mut self,
        targets: &Targets,
        publish: &Publish,
        step: &mut Step,
    ) -> Result<Few<Published>, Refusal> {
        self.check_copies(targets.as_slice().len())?;
        let mut left_out = LeftOut::new(targets);
        for (at, id) in targets.as_slice().iter().enumerate() {
            let queue = self.queue_ref(*id);
            let copy = targets.copy(at, queue, publish);
            if let Err(refusal) =
                queue.admit(self.now, &copy, self.options.max_message_bytes, Admitted::default())
                && let Err(refusal) = left_out.add(at, queue, &copy, refusal)
            {
                return Err(self.refuse(*id, &copy, refusal, step));
            }
        }
        let mut copies = Few::with_capacity(targets.as_slice().len());
        self.store_copies(0, publish, targets, &left_out.at, &mut copies, step);
        self.dispatch_all(targets.as_slice().iter().copied(), step);
        Ok(copies)
    }

    /// As [`Broker::publish`], but where copies stand is not looked for.
    pub(crate) fn publish_untold(&mut self, publish: Publish, step: &mut Step) -> Result<Reply, Refusal> {
        if self.was_taken(&publish, &mut BTreeSet::new())? {
            step.effects.push(Effect::Released(publish.place));
            return Ok(Reply::Count(1));
        }
        let targets = self.ruled_targets(&publish.to, step)?;
        // One queue alone may be one that it waits in, too.
        let Targets::One(id) = targets else {
            return Ok(Reply::Count(self.publish_to_many(&targets, &publish, step)?.len() as u64));
        };
        self.copy_to_one(id, &publish, step)?;
        self.dispatch_all(std::iter::once(id), step);
        Ok(Reply::Count(1))
    }

    fn publish_to_one(&mut self, id: QueueId, publish: &Publish, step: &mut Step) -> Result<Reply, Refusal> {
        let copied = self.copy_to_one(id, publish, step)?;
        let copy = self.queue_ref(id).published(0, copied);
        self.dispatch_all(std::iter::once(id), step);
        Ok(Reply::Published(Few::from_buf([copy])))
    }

    fn copy_to_one(&mut self, id: QueueId, publish: &Publish, step: &mut Step) -> Result<Copied, Refusal> {
        let (now, options) = (self.now, self.options);
        let admitted =
            self.queue_ref(id).admit(self.now, publish, options.max_message_bytes, Admitted::default());
        let Admission { priority, pending, .. } =
            admitted.map_err(|refusal| self.refuse(id, publish, refusal, step))?;
        let queue = self.queue_mut(id);
        let copied = match pending {
            Some(pending) => {
                step.effects.push(Effect::Released(publish.place));
                pending
            }
            None => queue.publish(now, publish, priority, options.default_ttl_ms, step),
        };
        self.take_of(publish, step);
        Ok(copied)
    }

    /// Publishes and settles, all or none: everything is checked before anything is done.
    pub(crate) fn transact(
        &mut self,
        publishes: Vec<Publish>,
        settlements: &[(Receipt, Outcome)],
        step: &mut Step,
    ) -> Result<Reply, Refusal> {
        let mut before: BTreeMap<QueueId, (Admitted, BTreeSet<Priority>)> = BTreeMap::new();
        let (mut routed, mut taken) = (Vec::with_capacity(publishes.len()), BTreeSet::new());
        let mut copies = 0;
        for (at, publish) in publishes.iter().enumerate() {
            step.at_fault = Some(Part::Publish(at));
            if self.was_taken(publish, &mut taken)? {
                routed.push((publish, Targets::Many(Vec::new())));
                continue;
            }
            let targets = self.ruled_targets(&publish.to, step)?;
            for (at, id) in targets.as_slice().iter().enumerate() {
                let (tally, priorities) = before.entry(*id).or_default();
                let queue = self.queue_ref(*id);
                let copy = targets.copy(at, queue, publish);
                let Admission { priority, pending, at_once } =
                    queue.admit(self.now, &copy, self.options.max_message_bytes, *tally)?;
                if pending.is_none() {
                    tally.messages += u64::from(!at_once);
                    tally.bytes += if at_once { 0 } else { u64::from(publish.bytes) };
                    if priorities.insert(priority) {
                        queue.lanes.check_all(priorities)?;
                    }
                }
            }
            copies += targets.as_slice().len();
            self.check_copies(copies)?;
            routed.push((publish, targets));
        }
        self.check_settlements(settlements, step)?;
        step.at_fault = None;

        let mut copies = Few::with_capacity(routed.len());
        for (at, (publish, targets)) in routed.iter().enumerate() {
            self.store_copies(at, publish, targets, &[], &mut copies, step);
        }
        for (receipt, outcome) in settlements {
            let slot = self.check_receipt(receipt).expect("a checked receipt holds");
            self.settle(receipt.queue, slot, *outcome, Report::default(), step);
        }
        let settled = settlements.iter().map(|(receipt, _)| receipt.queue);
        let touched: BTreeSet<QueueId> = before.into_keys().chain(settled).collect();
        self.dispatch_all(touched.into_iter(), step);
        Ok(Reply::Published(copies))
    }

    fn check_copies(&self, copies: usize) -> Result<(), Refusal> {
        let most = self.options.copies_max;
        if most > 0 && copies > most { Err(Refusal::TooManyCopies) } else { Ok(()) }
    }

    fn check_settlements(&self, settlements: &[(Receipt, Outcome)], step: &mut Step) -> Result<(), Refusal> {
        let mut seen = BTreeSet::new();
        for (at, (receipt, _)) in settlements.iter().enumerate() {
            step.at_fault = Some(Part::Settlement(at));
            self.check_receipt(receipt)?;
            if !seen.insert(*receipt) {
                return Err(Refusal::StaleReceipt);
            }
        }
        Ok(())
    }

    /// The queues that a publish goes into, each as the policies have it now.
    fn ruled_targets(&mut self, to: &Address, step: &mut Step) -> Result<Targets, Refusal> {
        let targets = self.targets(self.asking.vhost, to)?;
        for id in targets.as_slice() {
            self.rule_late(*id, step);
        }
        Ok(targets)
    }

    fn targets(&self, vhost: VhostId, to: &Address) -> Result<Targets, Refusal> {
        let here = self.vhosts.get(vhost)?;
        match to {
            Address::Queue(name) => here.queue(name).map(Targets::One),
            Address::Exchange { name, routing_key, more_keys, marks, mandatory } => {
                let targets = if name.is_empty() && more_keys.is_empty() {
                    let one = here.queue(routing_key);
                    here.topology.nameless.count(usize::from(one.is_ok()));
                    one.map_or_else(|_| Targets::Many(Vec::new()), Targets::One)
                } else {
                    let first = std::iter::once(routing_key).chain(more_keys);
                    let keys: SmallVec<[&str; 4]> = first.map(|key| &**key).collect();
                    route(here, name, &Envelope { keys: &keys, marks: &**marks })?
                };
                unless_lost(*mandatory, targets)
            }
            Address::Copies { copies, mandatory } => unless_lost(*mandatory, routed(here, copies)),
        }
    }

    /// Puts a copy into each queue, except at the targets `left_out`, whose queues evict theirs at once. The publisher's hold on the
    /// content goes to the first; without one it is let go.
    fn store_copies(
        &mut self,
        at: usize,
        publish: &Publish,
        targets: &Targets,
        left_out: &[usize],
        copies: &mut Few<Published>,
        step: &mut Step,
    ) {
        let (now, default_ttl_ms) = (self.now, self.options.default_ttl_ms);
        // Shared before the first copy is in: that one may be gone again before the next comes.
        let pending =
            |broker: &Self, id: &QueueId| broker.queue_ref(*id).pending_at(now, publish.id.as_deref());
        let stored = targets.as_slice().iter().filter(|id| pending(self, id).is_none()).count();
        step.effects.extend((1..stored).map(|_| Effect::Shared(publish.place)));
        for (which, id) in targets.as_slice().iter().enumerate() {
            let queue = self.queue_mut(*id);
            let copied = match queue.pending_at(now, publish.id.as_deref()) {
                Some(pending) => pending,
                None => {
                    let copy = targets.copy(which, queue, publish);
                    let priority =
                        queue.settings.map_priority(&copy.priority).expect("an admitted priority maps");
                    if left_out.contains(&which) {
                        queue.leave_out(now, &copy, priority, default_ttl_ms, step);
                        continue;
                    }
                    queue.publish(now, &copy, priority, default_ttl_ms, step)
                }
            };
            copies.push(queue.published(at, copied));
        }
        if stored == 0 {
            step.effects.push(Effect::Released(publish.place));
        }
        // What no queue got may have one the next time.
        if !targets.as_slice().is_empty() {
            self.take_of(publish, step);
        }
    }
}

fn unless_lost(mandatory: bool, targets: Targets) -> Result<Targets, Refusal> {
    if mandatory && targets.as_slice().is_empty() { Err(Refusal::Unroutable) } else { Ok(targets) }
}

fn routed(here: &Vhost, copies: &[RouteCopy]) -> Targets {
    let known = |copy: &RouteCopy| Some((here.queue(&copy.queue).ok()?, (copy.urgency, copy.ttl_ms)));
    let (ids, stamps) = copies.iter().filter_map(known).unzip();
    Targets::Routed(ids, stamps)
}

fn route(here: &Vhost, exchange: &str, letter: &Envelope<'_>) -> Result<Targets, Refusal> {
    let there = here.topology.exchange(exchange);
    if there.is_some_and(|exchange| exchange.settings.internal) {
        return Err(Refusal::ExchangeInternal);
    }
    let route = here.topology.route(exchange, letter)?;
    let known = |queue: &Arc<str>| here.queue(queue).ok();
    let ids: Vec<QueueId> = route.queues.iter().filter_map(known).collect();
    there.map_or(&here.topology.nameless, |exchange| &exchange.traffic).count(ids.len());
    if route.delayed.is_empty() {
        return Ok(if let [one] = *ids { Targets::One(one) } else { Targets::Many(ids) });
    }
    let delay_ms = letter.delay_ms();
    Ok(Targets::Delayed(ids, route.delayed.iter().filter_map(known).collect(), delay_ms))
}
