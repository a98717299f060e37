//! The life of a queue: declared, found again, deleted by request or by itself.

use std::sync::Arc;

use crate::broker::{Broker, Totals};
use crate::command::{Effect, Existing, Reply, Step};
use crate::fact::Fact;
use crate::identity::Identity;
use crate::ids::{QueueId, Seq, SessionId};
use crate::queue::{Described, Queue};
use crate::refusal::Refusal;
use crate::settings::Settings;
use crate::topology::Destination;

impl Broker {
    pub(crate) fn declare_queue(
        &mut self,
        name: Arc<str>,
        settings: Box<Settings>,
        identity: Identity,
        existing: Existing,
        step: &mut Step,
    ) -> Result<Reply, Refusal> {
        crate::check_queue_name(&name)?;
        let is_change = matches!(existing, Existing::From(_));
        if self.vhosts.get(self.asking.vhost)?.queue(&name).is_err() && !is_change {
            self.check_history(&name, &settings)?;
            return self.make_queue(name, settings, identity, step);
        }
        let id = self.usable(&name, step)?;
        match existing {
            Existing::Same => {
                let queue = self.queue_ref(id);
                // With the same arguments its settings are others only where somebody has changed them since.
                let is_asked_for =
                    queue.identity.arguments == identity.arguments || queue.own().is_declared_as(&settings);
                if !is_asked_for || !queue.identity.is_same(&identity) {
                    return Err(Refusal::QueueDiffers);
                }
            }
            Existing::From(before) if *self.queue_ref(id).own() != *before => {
                return Err(Refusal::QueueDiffers);
            }
            Existing::Update | Existing::From(_) => self.change_queue(id, settings, step)?,
        }
        self.use_queue(id);
        Ok(self.declared(id, false))
    }

    fn make_queue(
        &mut self,
        name: Arc<str>,
        settings: Box<Settings>,
        identity: Identity,
        step: &mut Step,
    ) -> Result<Reply, Refusal> {
        if self.queues.len() >= crate::QUEUES_MAX {
            return Err(Refusal::TooManyQueues);
        }
        let id = self.free_number().ok_or(Refusal::TooManyQueues)?;
        let vhost = self.asking.vhost;
        self.vhosts.get(vhost)?.check_queues()?;
        let owner = self.asking.session.filter(|_| identity.exclusive);
        self.store_queue(id, Described { vhost, name, settings, identity, next_seq: Seq(1) });
        if let Some(session) = owner {
            self.sessions.own(session, id);
        }
        self.queue_mut(id).owner = owner;
        step.facts.push(self.queue_ref(id).fact());
        self.use_queue(id);
        Ok(self.declared(id, true))
    }

    /// The number of the next queue.
    fn free_number(&self) -> Option<QueueId> {
        (self.next_queue..self.options.numbers.end).map(QueueId).find(|id| !self.queues.contains_key(id))
    }

    fn change_queue(&mut self, id: QueueId, settings: Box<Settings>, step: &mut Step) -> Result<(), Refusal> {
        let queue = self.queues.get_mut(&id).expect("a queue that may be used is there");
        if *queue.own() == *settings {
            return Ok(());
        }
        if queue.own().history != settings.history {
            let name = Arc::clone(&queue.name);
            self.check_history(&name, &settings)?;
        }
        let queue = self.queues.get_mut(&id).expect("a queue that may be used is there");
        let there = self.vhosts.get(queue.vhost).expect("what is in a virtual host goes with it");
        let ruled = there.policies.rule(&queue.name, settings);
        queue.check_settings(&ruled)?;
        queue.rule(ruled);
        step.facts.push(queue.fact());
        queue.move_former(&mut step.room, self.fetches);
        queue.tell_runs(step);
        self.dispatch(id, step);
        Ok(())
    }

    /// Refuses settings by which a queue would be its own history, or that of one of the histories that follow it.
    fn check_history(&self, name: &str, settings: &Settings) -> Result<(), Refusal> {
        let there = self.vhosts.get(self.asking.vhost)?;
        let mut next = settings.history.as_deref();
        // Histories that were stored before circles were refused may follow each other without an end.
        for _ in 0..=self.queues.len() {
            match next {
                None => return Ok(()),
                Some(history) if history == name => return Err(Refusal::HistoryCircular),
                Some(history) => {
                    let queue = there.queue(history).ok();
                    next = queue.and_then(|id| self.queue_ref(id).settings.history.as_deref());
                }
            }
        }
        Ok(())
    }

    pub(crate) fn check_queue(&mut self, name: &str, step: &mut Step) -> Result<Reply, Refusal> {
        let id = self.usable(name, step)?;
        self.use_queue(id);
        Ok(self.declared(id, false))
    }

    fn declared(&self, queue: QueueId, made: bool) -> Reply {
        let there = self.queue_ref(queue);
        Reply::Declared { queue, made, ready: there.ready(), consumers: there.roster.counts().0 }
    }

    /// It was used now: its time begins anew.
    pub(crate) fn use_queue(&mut self, id: QueueId) {
        let now = self.now;
        self.queue_mut(id).used = now;
        self.reschedule(id);
    }

    pub(crate) fn store_queue(&mut self, id: QueueId, described: Described) {
        let vhost = self.vhosts.get_mut(described.vhost).expect("a queue is made in one that is there");
        vhost.queues.insert(Arc::clone(&described.name), id);
        self.insert_queue(id, described);
    }

    /// As [`Broker::store_queue`], but its name is not yet known.
    pub(crate) fn insert_queue(&mut self, id: QueueId, described: Described) {
        self.next_queue = self.next_queue.max(id.0.saturating_add(1));
        // Only a damaged log speaks of one again that went with its virtual host.
        self.unsaid.remove(&id);
        let (backlog, seed) = (Arc::clone(&self.backlog), self.options.seed);
        let there = self.vhosts.get(described.vhost).expect("a queue is made in one that is there");
        let mut queue = Queue::new(id, described, &there.policies, seed, backlog);
        queue.ruled_at = there.ruling.version;
        self.queues.insert(id, Box::new(queue));
    }

    pub(crate) fn delete_queue(
        &mut self,
        name: &str,
        if_empty: bool,
        if_unused: bool,
        step: &mut Step,
    ) -> Result<Reply, Refusal> {
        let id = self.usable(name, step)?;
        let queue = self.queue_ref(id);
        if if_empty && !queue.is_empty() {
            return Err(Refusal::NotEmpty);
        }
        if if_unused && !queue.roster.is_unused() {
            return Err(Refusal::InUse);
        }
        let ready = queue.ready();
        let shared = self.end_queue(id, step);
        self.dispatch_all(shared.into_iter(), step);
        Ok(Reply::Count(ready))
    }

    /// A queue is gone with all that is in it, and those who take from it. Answers the queues that it shared windows with,
    /// where there may be room now.
    pub(crate) fn end_queue(&mut self, id: QueueId, step: &mut Step) -> Vec<QueueId> {
        let losers = self.unbind_all(id, step);
        let vhost = self.queue_ref(id).vhost;
        let shared = self.drop_queue(id, step);
        self.drop_unbound(vhost, losers, step);
        shared
    }

    /// As [`Broker::end_queue`], but nothing is said of its bindings.
    pub(crate) fn drop_queue(&mut self, id: QueueId, step: &mut Step) -> Vec<QueueId> {
        let (queue, shared) = self.unseat_queue(id, step);
        self.remains.add(queue.into_heap(step));
        shared
    }

    /// A queue is gone, and those who took from it take no more. Answers all that is left of it, and the queues that it shared windows with.
    pub(crate) fn unseat_queue(&mut self, id: QueueId, step: &mut Step) -> (Box<Queue>, Vec<QueueId>) {
        let queue = self.forget_queue(id);
        self.sessions.forget_queue(queue.owner, id);
        for consumer in queue.roster.ids() {
            let seat = self.seats.remove(&consumer).expect("whoever takes has a seat");
            self.sessions.forget_taker(seat.session, consumer);
            // A pull is cancelled, too: it did not end, its queue did.
            step.effects.extend(queue.roster.farewell(consumer).map(|_| Effect::Cancelled { consumer }));
        }
        step.facts.push(Fact::QueueDeleted { queue: id });
        (queue, self.forget_shares(id))
    }

    /// Says whose a queue is, which is one session's own or nobody's.
    pub fn own(&mut self, id: QueueId, session: Option<SessionId>) {
        let Some(queue) = self.queues.get_mut(&id) else { return };
        let before = std::mem::replace(&mut queue.owner, session);
        self.sessions.forget_queue(before, id);
        if let Some(session) = session {
            self.sessions.own(session, id);
        }
    }

    /// The queues that are one session's own, and whose.
    pub fn owned(&self) -> impl Iterator<Item = (QueueId, SessionId)> + '_ {
        self.queues.values().filter_map(|queue| Some((queue.id, queue.owner?)))
    }

    /// The queues that are kept in several places, and how many.
    pub fn partitioned(&self) -> impl Iterator<Item = (QueueId, u16)> + '_ {
        let all = self.queues.values().map(|queue| (queue.id, queue.settings.partitions.places()));
        all.filter(|(_, places)| *places > 1)
    }

    /// The next queue or virtual host has this number, or the first one after it that is free. For whoever cannot count the numbers that were in use, and draws them at random.
    pub fn number_from(&mut self, number: u32) {
        self.next_queue = number;
        self.vhosts.number_from(number);
    }

    pub(crate) fn forget_queue(&mut self, id: QueueId) -> Box<Queue> {
        let queue = self.queues.remove(&id).expect("a named queue is there");
        // That of one without a name yet is not there before it is described.
        if let Ok(vhost) = self.vhosts.get_mut(queue.vhost) {
            vhost.queues.remove(&queue.name);
            vhost.topology.forget(&Destination::Queue(Arc::clone(&queue.name)));
        }
        if let Some(when) = queue.scheduled {
            self.schedule.remove(&(when, id));
        }
        self.totals.change(queue.noted, Totals::default());
        queue
    }
}
