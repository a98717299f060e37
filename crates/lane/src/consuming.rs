//! Those who take: consumers that stay, pulls, gets; the windows they share; and what becomes of it all when a session ends.

use std::collections::BTreeSet;

use crate::broker::Broker;
use crate::command::{Consume, Get, Reply, Step};
use crate::ids::{ConsumerId, FeedId, LeaseId, QueueId, Seq, SessionId, Time, VhostId, WindowId};
use crate::message::State;
use crate::pulling::Pull;
use crate::pushes::PushedView;
use crate::refusal::Refusal;
use crate::settings::WINDOW_MAX;

/// Window of a consumer that asks for none where no acknowledgement, or no window of bytes, bounds what is pushed to it: one without
/// acknowledgements, and one of a queue whose messages are kept elsewhere.
const UNREAD_WINDOW: u32 = 10_000;

/// Where somebody takes, and for whom.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seat {
    pub(crate) queue: QueueId,
    pub(crate) session: Option<SessionId>,
}

impl Broker {
    pub(crate) fn consume(&mut self, consume: &Consume, step: &mut Step) -> Result<Reply, Refusal> {
        let id = self.usable(&consume.queue, step)?;
        let roster = &self.queue_ref(id).roster;
        if roster.has_exclusive() || (consume.exclusive && roster.counts().0 > 0) {
            return Err(Refusal::ConsumerExclusive);
        }
        self.check_consumers(id)?;
        self.admit_consumer(consume.consumer, id)?;
        if let Some(window) = consume.shared {
            self.windows.join(window, id);
            let (size, elsewhere) = self.windows.outside(window, id);
            self.queue_mut(id).roster.share(window, size, elsewhere);
        }
        let queue = self.queue_mut(id);
        let unasked = if consume.no_ack || queue.is_remote() { UNREAD_WINDOW } else { u32::MAX };
        let window = consume.window.map_or(unasked, |window| window.clamp(1, WINDOW_MAX));
        queue.was_consumed = true;
        queue.roster.consume(consume, window);
        self.dispatch(id, step);
        Ok(Reply::Done)
    }

    pub(crate) fn pull(&mut self, pull: &Pull, step: &mut Step) -> Result<Reply, Refusal> {
        let id = self.usable(&pull.queue, step)?;
        if pull.until > self.now {
            self.check_consumers(id)?;
        }
        self.admit_consumer(pull.consumer, id)?;
        let roster = &mut self.queue_mut(id).roster;
        let max = pull.max.min(roster.most_held());
        roster.pull(&Pull { max, ..pull.clone() });
        self.dispatch(id, step);
        Ok(Reply::Done)
    }

    pub(crate) fn get(&mut self, get: &Get, step: &mut Step) -> Result<Reply, Refusal> {
        let id = self.usable(&get.queue, step)?;
        if self.seats.contains_key(&get.consumer) {
            return Err(Refusal::ConsumerKnown);
        }
        let (now, held) = (self.now, self.held);
        let queue = self.queues.get_mut(&id).expect("a queue that may be used is there");
        queue.used = now;
        let is_given = !held && queue.get(now, get, &mut self.leases, step);
        let ready = is_given.then(|| queue.ready());
        if !queue.dying.is_empty() {
            // What was over when its turn came.
            self.stirred.push(id);
        }
        if is_given && !get.no_ack {
            self.admit_consumer(get.consumer, id)?;
        }
        self.reschedule(id);
        Ok(Reply::Got(ready))
    }

    /// Whether one more may consume from a queue, or wait for its messages.
    fn check_consumers(&self, queue: QueueId) -> Result<(), Refusal> {
        let queue = self.queue_ref(queue);
        let (consumers, pulls) = queue.roster.counts();
        let most = u64::from(queue.settings.max_consumers);
        if most > 0 && consumers + pulls >= most { Err(Refusal::TooManyConsumers) } else { Ok(()) }
    }

    pub(crate) fn admit_consumer(&mut self, consumer: ConsumerId, queue: QueueId) -> Result<(), Refusal> {
        if self.seats.contains_key(&consumer) {
            return Err(Refusal::ConsumerKnown);
        }
        self.seats.insert(consumer, Seat { queue, session: self.asking.session });
        self.sessions.take(self.asking.session, consumer);
        Ok(())
    }

    // ---- who took what ----

    /// The lease of a message; and who took it, and when, if that was in this life of the broker.
    #[must_use]
    pub fn lease_of(
        &self,
        vhost: VhostId,
        name: &str,
        seq: Seq,
    ) -> Option<(LeaseId, Option<(ConsumerId, Time)>)> {
        let queue = self.queue_ref(self.id_of(vhost, name).ok()?);
        let entry = &queue.entries[queue.by_seq.get(seq)?];
        let State::Leased { lease, .. } = entry.message.state else { return None };
        Some((lease, entry.taken()))
    }

    /// Whoever took by a pull what is leased, once for each message. Every message is walked that pulls hold.
    pub fn pullers(&self) -> impl Iterator<Item = ConsumerId> + '_ {
        self.queues.values().flat_map(|queue| queue.pullers())
    }

    // ---- going ----

    pub(crate) fn cancel(&mut self, consumer: ConsumerId, step: &mut Step) -> Result<Reply, Refusal> {
        let Seat { queue, .. } = *self.seats.get(&consumer).ok_or(Refusal::NoSuchConsumer)?;
        self.end_taker(consumer, step);
        self.dispatch_left(BTreeSet::from([queue]), step);
        Ok(Reply::Done)
    }

    pub(crate) fn leave(&mut self, consumer: ConsumerId, step: &mut Step) -> Result<Reply, Refusal> {
        let Seat { queue: id, session } = *self.seats.get(&consumer).ok_or(Refusal::NoSuchConsumer)?;
        if session.is_none() {
            return self.cancel(consumer, step);
        }
        let now = self.now;
        let queue = self.queue_mut(id);
        queue.used = now;
        if !queue.roster.leave(consumer) {
            return self.cancel(consumer, step);
        }
        self.dispatch_left(BTreeSet::from([id]), step);
        Ok(Reply::Done)
    }

    /// Whoever was connected is gone: nothing more is leased to it, its queues are deleted, and what it held is put back, in steps ([`Options::step_max`]) of which
    /// this is the first.
    ///
    /// [`Options::step_max`]: crate::Options::step_max
    pub(crate) fn end_session(&mut self, session: SessionId, step: &mut Step) -> Result<Reply, Refusal> {
        self.windows.end(session);
        let belongings = self.sessions.end(session);
        let (now, mut left) = (self.now, BTreeSet::new());
        for consumer in belongings.takers {
            let id = self.seats[&consumer].queue;
            let queue = self.queue_mut(id);
            queue.used = now;
            step.effects.extend(queue.roster.farewell(consumer));
            if queue.roster.retire(consumer) {
                self.sessions.retired.push_back(consumer);
            } else {
                self.seats.remove(&consumer);
            }
            left.insert(id);
        }
        self.put_back_some(&mut left, step);
        for id in belongings.queues {
            left.extend(self.end_queue(id, step));
        }
        self.dispatch_left(left, step);
        Ok(Reply::Done)
    }

    /// Whether something is still to be put back that sessions held which have ended ([`Broker::put_back`]).
    #[must_use]
    pub fn has_retired(&self) -> bool {
        !self.sessions.retired.is_empty()
    }

    /// Puts back some more of what sessions held that have ended: at most [`Options::step_max`] messages.
    ///
    /// [`Options::step_max`]: crate::Options::step_max
    pub fn put_back(&mut self, now: Time, step: &mut Step) {
        self.keep_up(now, step);
        step.room = self.room();
        let mut left = BTreeSet::new();
        self.put_back_some(&mut left, step);
        self.dispatch_left(left, step);
        // What nobody took at once, and was to be taken at once, is over.
        self.keep_up(now, step);
    }

    /// Puts back what may be put back in one step, and adds the queues in which that was.
    fn put_back_some(&mut self, left: &mut BTreeSet<QueueId>, step: &mut Step) {
        let now = self.now;
        let mut room = self.room();
        while room > 0
            && let Some(consumer) = self.sessions.retired.front().copied()
        {
            // It is gone with its queue, or holds nothing any more.
            if let Some(Seat { queue: id, .. }) = self.seats.get(&consumer).copied() {
                self.rule_late(id, step);
                let queue = self.queues.get_mut(&id).expect("a queue with a consumer is there");
                queue.used = now;
                let (done, dying) = queue.give_back(now, consumer, room, &mut self.work_notes, step);
                room -= done;
                self.end_all(id, dying, step);
                left.insert(id);
            }
            if room > 0 {
                self.sessions.retired.pop_front();
            }
        }
    }

    /// Takes somebody off; what it held is put back, and waits for the next dispatch.
    fn end_taker(&mut self, consumer: ConsumerId, step: &mut Step) {
        let seat = self.seats.remove(&consumer).expect("whoever takes has a seat");
        self.sessions.forget_taker(seat.session, consumer);
        self.rule_late(seat.queue, step);
        let now = self.now;
        let queue = self.queues.get_mut(&seat.queue).expect("a queue with a consumer is there");
        queue.used = now;
        let (_, dying) = queue.give_back(now, consumer, usize::MAX, &mut self.work_notes, step);
        self.end_all(seat.queue, dying, step);
        self.queue_mut(seat.queue).roster.remove(consumer);
    }

    /// Somebody has left these queues: those that go with their last consumer are gone, the others lease what there is.
    fn dispatch_left(&mut self, left: BTreeSet<QueueId>, step: &mut Step) {
        let mut touched = left.clone();
        for id in left {
            let is_over = self.queues.get(&id).is_some_and(|queue| {
                queue.identity.auto_delete && queue.was_consumed && queue.roster.counts().0 == 0
            });
            if is_over {
                touched.extend(self.end_queue(id, step));
            }
        }
        self.dispatch_all(touched.into_iter(), step);
    }

    // ---- windows ----

    pub(crate) fn took(
        &mut self,
        consumer: ConsumerId,
        messages: u32,
        step: &mut Step,
    ) -> Result<Reply, Refusal> {
        let Seat { queue, .. } = *self.seats.get(&consumer).ok_or(Refusal::NoSuchConsumer)?;
        self.queue_mut(queue).took(consumer, messages);
        self.dispatch_all(std::iter::once(queue), step);
        Ok(Reply::Done)
    }

    /// A connection has taken some of what was pushed to it: those of its consumers that waited for that have their turn.
    pub(crate) fn taken(&mut self, feed: FeedId, bytes: u64, step: &mut Step) -> Result<Reply, Refusal> {
        self.pushes.taken(feed, bytes);
        self.resume(feed, step);
        Ok(Reply::Done)
    }

    pub(crate) fn end_feed(&mut self, feed: FeedId, step: &mut Step) -> Result<Reply, Refusal> {
        self.pushes.end(feed);
        self.resume(feed, step);
        Ok(Reply::Done)
    }

    /// Leases to consumers that were held back, as long as their connections have room.
    fn resume(&mut self, feed: FeedId, step: &mut Step) {
        loop {
            let resumed = self.pushes.resume_some(feed);
            if resumed.is_empty() {
                return;
            }
            let mut queues = BTreeSet::new();
            for (id, consumer) in resumed {
                if let Some(queue) = self.queues.get_mut(&id) {
                    queue.roster.hold_back(consumer, false);
                    queues.insert(id);
                }
            }
            self.dispatch_all(queues.into_iter(), step);
        }
    }

    /// Bytes that are pushed to connections and not taken by them.
    #[must_use]
    pub fn pushed(&self) -> PushedView {
        self.pushes.view()
    }

    /// The feed of a consumer that is there.
    #[must_use]
    pub fn feed_of(&self, consumer: ConsumerId) -> Option<FeedId> {
        let queue = self.seats.get(&consumer)?.queue;
        self.queues.get(&queue)?.roster.feed(consumer)
    }

    pub(crate) fn set_window(
        &mut self,
        window: WindowId,
        size: u32,
        joining: &[ConsumerId],
        step: &mut Step,
    ) -> Result<Reply, Refusal> {
        for consumer in joining {
            self.join_window(window, *consumer);
        }
        let queues = self.windows.set(window, size);
        self.tell_windows(window, &queues);
        self.dispatch_all(queues.into_iter(), step);
        Ok(Reply::Done)
    }

    /// Has a consumer of the window's session share it, with what it holds.
    fn join_window(&mut self, window: WindowId, consumer: ConsumerId) {
        let seat = self.seats.get(&consumer).filter(|seat| seat.session == Some(window.session));
        let Some(id) = seat.map(|seat| seat.queue) else { return };
        if !self.queue_ref(id).roster.may_join(consumer) {
            return;
        }
        self.windows.join(window, id);
        let (size, elsewhere) = self.windows.outside(window, id);
        let roster = &mut self.queue_mut(id).roster;
        roster.share(window, size, elsewhere);
        roster.join(window, consumer);
        self.tell_shares(id);
    }

    /// Tells the other queues what this one holds of the windows it shares with them.
    pub(crate) fn tell_shares(&mut self, id: QueueId) {
        let Some(queue) = self.queues.get_mut(&id) else { return };
        for (window, share) in queue.roster.take_changed_shares() {
            let others = self.windows.tell(window, id, &share);
            self.tell_windows(window, &others);
        }
    }

    /// A queue is gone. Answers those that it shared windows with.
    pub(crate) fn forget_shares(&mut self, id: QueueId) -> Vec<QueueId> {
        let mut all = Vec::new();
        for (window, others) in self.windows.forget_queue(id) {
            self.tell_windows(window, &others);
            all.extend(others);
        }
        all
    }

    fn tell_windows(&mut self, window: WindowId, queues: &[QueueId]) {
        for id in queues {
            let (size, elsewhere) = self.windows.outside(window, *id);
            if let Some(queue) = self.queues.get_mut(id) {
                queue.roster.share(window, size, elsewhere);
            }
        }
    }
}
