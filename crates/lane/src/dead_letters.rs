//! What becomes of a message that may not go on: it stays, dead, or moves, or is gone.
//!
//! It ends: each time a message dies unrejected it goes to a queue where it has not died since it was last rejected, and not more
//! often than it remembers; and one that was evicted evicts only what is then dropped.

use std::sync::Arc;

use crate::broker::Broker;
use crate::command::{Effect, Publish, Step};
use crate::deaths::{Death, DeathReason, Deaths};
use crate::entries::{Entry, Slot};
use crate::fact::Fact;
use crate::history::End;
use crate::ids::{QueueId, Seq, VhostId};
use crate::letters::{Letter, Route};
use crate::message::{Located, Message, Settled, State};
use crate::priority::{Given, Original, Priority};
use crate::queue::Queue;
use crate::record::{Attempts, Ending, Record, Report};
use crate::refusal::Refusal;
use crate::settings::{DeadLetterTo, LastValue, Overflow};
use crate::topology::Envelope;

/// What becomes of a message that dies.
enum Fate {
    /// It is gone.
    Gone,
    /// It stays where it is, dead.
    Stays(Arc<Deaths>),
    /// It moves to these queues.
    Moves(Vec<QueueId>, Arc<Deaths>),
}

/// Where a dead letter goes, as far as names tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Onward {
    /// It is dropped, or would go round.
    Gone,
    /// It stays in its queue, dead.
    Stays,
    /// To these queues, by this way; it stays where none of them takes it.
    Goes(Vec<QueueId>, Route),
}

impl Broker {
    pub(crate) fn end_all(&mut self, id: QueueId, ending: Vec<(Seq, End)>, step: &mut Step) {
        for (seq, end) in ending {
            // One that came here in the same moment may have evicted or replaced it.
            let Some(slot) = self.queues.get(&id).and_then(|queue| queue.by_seq.get(seq)) else { continue };
            match end {
                End::Dies(reason) => {
                    // A consumer that worked on it for too long does not know, and may still be at work.
                    let is_overrun = reason == DeathReason::Timeout;
                    let held = is_overrun.then(|| self.queue_ref(id).held_by_consumer(slot)).flatten();
                    self.dead_letter(id, seq, reason, Report::default(), step);
                    self.queue_mut(id).withdraw(held);
                }
                End::Spent(why) => {
                    let report = Report::of_error(why.error());
                    self.dead_letter(id, seq, DeathReason::DeliveryLimit, report, step);
                }
                End::Cancelled => {
                    self.end(id, slot, Ending::Cancelled, Settled::Removed, Report::default(), step);
                }
            }
        }
    }

    /// Does with what was evicted here in this step, or was over when its turn came, what the queue says.
    pub(crate) fn dead_letter_dying(&mut self, id: QueueId, step: &mut Step) {
        let queue = self.queues.get_mut(&id).filter(|queue| !queue.dying.is_empty());
        let Some(queue) = queue else { return };
        let dying = std::mem::take(&mut queue.dying).into_iter();
        self.end_all(id, dying.map(|(seq, reason)| (seq, End::Dies(reason))).collect(), step);
    }

    /// Does with the message of a refused publish what its queue says. Answers the refusal.
    pub(crate) fn refuse(
        &mut self,
        id: QueueId,
        publish: &Publish,
        refusal: Refusal,
        step: &mut Step,
    ) -> Refusal {
        let (now, default_ttl_ms) = (self.now, self.options.default_ttl_ms);
        let queue = self.queue_mut(id);
        let settings = &queue.settings;
        let is_dead_lettered =
            settings.overflow == Overflow::RejectDeadLetter && settings.dead_letter != DeadLetterTo::Drop;
        if refusal == Refusal::QueueFull && is_dead_lettered {
            let priority =
                queue.settings.map_priority(&publish.priority).expect("a full queue has understood it");
            // The publisher lets go of the content when it sees the refusal.
            step.effects.push(Effect::Shared(publish.place));
            let seq = queue.lay_down(now, publish, priority, default_ttl_ms, step);
            self.dead_letter(id, seq, DeathReason::Maxlen, Report::default(), step);
        }
        refusal
    }

    /// Does with a message that may not go on what its queue says, and records it where that has a history. If neither can be done it
    /// stays, as a dead letter. Where it goes nothing is leased yet: more may come in the same step, and more urgent.
    pub(crate) fn dead_letter(
        &mut self,
        id: QueueId,
        seq: Seq,
        reason: DeathReason,
        report: Report,
        step: &mut Step,
    ) {
        let slot = self.queue_ref(id).by_seq.get(seq).expect("a dying message is there");
        let history = self.history_of_death(id, slot, reason);
        match (self.fate(id, slot, reason), history) {
            (Fate::Gone, None) => self.queue_mut(id).settle(slot, gone_by(reason), step),
            (Fate::Stays(deaths), None) => {
                let attempts = self.attempts_of_death(id, slot, reason, &report);
                self.queue_mut(id).bury(slot, deaths, attempts, step);
            }
            (Fate::Moves(targets, deaths), None) => {
                let attempts = self.attempts_of_death(id, slot, reason, &report);
                let mut message = self.queue_mut(id).move_away(slot, true);
                let extras = message.extras.get_or_insert_default();
                extras.deaths = Some(deaths);
                extras.attempts = attempts.or(extras.attempts.take());
                self.stirred.extend(&targets);
                let targets = self.as_urgent_in(id, targets, &message);
                self.arrive(id, targets, message, step);
            }
            (fate, Some(history)) => {
                let record = self.record(id, slot, reason.ending(), &report.or_error(reason.error()));
                let died = Arc::new(self.deaths_of(self.queue_ref(id), slot, reason));
                let queue = self.queue_mut(id);
                let (mut message, mut targets, deaths) = match fate {
                    Fate::Gone => (queue.retire(slot, gone_by(reason)), Vec::new(), died),
                    Fate::Stays(deaths) => (queue.move_away(slot, true), Vec::new(), deaths),
                    Fate::Moves(targets, deaths) => (queue.move_away(slot, true), targets, deaths),
                };
                message.keep(record);
                message.extras.get_or_insert_default().deaths = Some(deaths);
                if !targets.contains(&history) {
                    targets.push(history);
                }
                self.record_in(history, id, targets, message, step);
            }
        }
    }

    /// The attempts of a message that dies and has no record that would say how the last one went.
    fn attempts_of_death(
        &mut self,
        id: QueueId,
        slot: Slot,
        reason: DeathReason,
        report: &Report,
    ) -> Option<Arc<Attempts>> {
        let queue = self.queues.get(&id).expect("a dying message is in a queue");
        let message = &queue.entries[slot].message;
        message.attempts_after(reason.ending(), self.now, report, reason.error(), &mut self.work_notes)
    }

    /// The history into which a message goes that dies. As with dead letters, a round in which nobody rejects it ends.
    fn history_of_death(&self, id: QueueId, slot: Slot, reason: DeathReason) -> Option<QueueId> {
        let history = self.history_for(id, slot, Some(reason))?;
        let deaths = self.deaths_of(self.queue_ref(id), slot, reason);
        let message = &self.queue_ref(id).entries[slot].message;
        let is_round = is_round(message, &deaths, reason, &self.queue_ref(history).name);
        (!deaths.is_spent() && !is_round).then_some(history)
    }

    fn fate(&self, id: QueueId, slot: Slot, reason: DeathReason) -> Fate {
        let queue = self.queue_ref(id);
        if *queue.settings.dead_letter_for(reason) == DeadLetterTo::Drop {
            return Fate::Gone;
        }
        let mut deaths = self.deaths_of(queue, slot, reason);
        let message = &queue.entries[slot].message;
        let (open, route) =
            match self.onward(id, message, &deaths, reason, || self.letters.read(message.place)) {
                Onward::Gone => return Fate::Gone,
                Onward::Stays => return Fate::Stays(deaths.into()),
                Onward::Goes(open, route) => (open, route),
            };
        let takes = |target: &QueueId| {
            let priority = self.priority_in(id, *target, message);
            let (priority, _) = priority.expect("a queue that is bound is there");
            self.queue_ref(*target).can_take(message, priority, *target == id, reason)
        };
        let targets: Vec<QueueId> = open.into_iter().filter(takes).collect();
        if targets.is_empty() {
            return Fate::Stays(deaths.into());
        }
        deaths.goes_by(route);
        Fate::Moves(targets, deaths.into())
    }

    /// Where the dead letter of a queue goes, with these deaths, the last of which it died now: as far as names tell, and not whether it is taken there.
    fn onward(
        &self,
        id: QueueId,
        message: &Message,
        deaths: &Deaths,
        reason: DeathReason,
        letter: impl FnOnce() -> Letter,
    ) -> Onward {
        let queue = self.queue_ref(id);
        let to = queue.settings.dead_letter_for(reason);
        if *to == DeadLetterTo::Drop {
            return Onward::Gone;
        }
        let Some(route) = route_of(to, deaths).filter(|_| !deaths.is_spent()) else { return Onward::Stays };
        let bound = self.queues_bound(queue.vhost, &route, letter);
        // A queue that is its own dead-letter queue keeps them.
        let others =
            bound.into_iter().filter(|target| !matches!(to, DeadLetterTo::Queue(_)) || *target != id);
        let is_round = |target: &QueueId| is_round(message, deaths, reason, &self.queue_ref(*target).name);
        let (rounds, open): (Vec<QueueId>, Vec<QueueId>) = others.partition(is_round);
        match (open.is_empty(), rounds.is_empty()) {
            (true, false) => Onward::Gone,
            (true, true) => Onward::Stays,
            _ => Onward::Goes(open, route),
        }
    }

    /// Where a message goes that has ended in a queue and is kept elsewhere, `died` of this or not, which is the last of its deaths then; `letter` says how it was published.
    /// Whether it is taken there is not known here. `None`: there is no such queue.
    #[must_use]
    pub fn onward_of(
        &self,
        id: QueueId,
        message: &Message,
        died: Option<DeathReason>,
        letter: Letter,
    ) -> Option<(Onward, Option<QueueId>)> {
        let queue = self.queues.get(&id)?;
        let history = queue.settings.history.as_deref().and_then(|name| self.id_of(queue.vhost, name).ok());
        let history = history.filter(|history| *history != id);
        let (Some(reason), Some(deaths)) = (died, message.deaths()) else {
            return Some((Onward::Gone, history));
        };
        let is_closed = |history: &QueueId| {
            deaths.is_spent() || is_round(message, deaths, reason, &self.queue_ref(*history).name)
        };
        let history = history.filter(|history| !is_closed(history));
        Some((self.onward(id, message, deaths, reason, || letter), history))
    }

    /// The history of a message with this death.
    fn deaths_of(&self, queue: &Queue, slot: Slot, reason: DeathReason) -> Deaths {
        let Entry { message, lane, .. } = &queue.entries[slot];
        let before = message.deaths();
        let (from, ttl_ms) = match before {
            Some(before) => (before.route().clone(), None),
            None => {
                let letter = self.letters.read(message.place);
                let has_key = !letter.route.keys.is_empty();
                (if has_key { letter.route } else { Route::by("", Arc::clone(&queue.name)) }, letter.ttl_ms)
            }
        };
        let death = Death {
            reason,
            queue: Arc::clone(&queue.name),
            lane: Arc::clone(&queue.lanes.lane(*lane).name),
            first_at: self.now,
            at: self.now,
            times: 1,
            count: message.count,
            route: from.clone().bounded(),
            ttl_ms,
        };
        Deaths::another(before, death, from)
    }

    /// The queues that a route leads to in a virtual host, by name.
    fn queues_bound(&self, vhost: VhostId, route: &Route, letter: impl FnOnce() -> Letter) -> Vec<QueueId> {
        let letter = if route.exchange.is_empty() { Letter::default() } else { letter() };
        let keys: Vec<&str> = route.keys.iter().map(|key| &**key).collect();
        let envelope = Envelope { keys: &keys, marks: &*letter.marks };
        let vhost = self.vhosts.get(vhost).expect("a queue is in a virtual host");
        let routed = vhost.topology.route(&route.exchange, &envelope).unwrap_or_default();
        routed.queues.iter().filter_map(|name| vhost.queue(name).ok()).collect()
    }

    /// The priority of a message of one queue in another, and what was given: where their schemes differ, what is as urgent there. The history of a queue keeps
    /// what it was. `None`: one of the queues is not there.
    #[must_use]
    pub fn priority_in(&self, from: QueueId, to: QueueId, message: &Message) -> Option<(Priority, Original)> {
        let (here, there) = (self.queues.get(&from)?, self.queues.get(&to)?);
        let is_history = |of: &Queue, other: &Queue| of.settings.history.as_deref() == Some(&*other.name);
        let (ours, theirs) = (here.settings.scheme, there.settings.scheme);
        if ours == theirs || is_history(here, there) || is_history(there, here) {
            return Some((message.priority, message.original));
        }
        let given = theirs.words_for(ours, message.priority);
        let priority = there.settings.map_priority(&given).expect("a scheme knows its own words");
        Some((priority, there.settings.original(&given)))
    }

    /// As [`Broker::priority_in`], of a message that goes back to its home: into the lane where it was, unless its priority was changed meanwhile.
    #[must_use]
    pub fn priority_at_home(
        &self,
        from: QueueId,
        home: QueueId,
        message: &Message,
    ) -> Option<(Priority, Original)> {
        let (here, there) = (self.queues.get(&from)?, self.queues.get(&home)?);
        let (ours, theirs) = (here.settings.scheme, there.settings.scheme);
        match message.home_lane().and_then(|lane| theirs.named(lane)) {
            // As dead letters that were not translated have it.
            Some(was) if was == message.priority => Some((was, message.original)),
            Some(was) if ours != theirs && ours.map(&Given::Of(theirs, was)) == Ok(message.priority) => {
                Some((was, Original::Name))
            }
            _ => self.priority_in(from, home, message),
        }
    }

    /// The same queues, with the priority of a message in each.
    pub(crate) fn as_urgent_in(
        &self,
        from: QueueId,
        targets: Vec<QueueId>,
        message: &Message,
    ) -> Vec<(QueueId, (Priority, Original))> {
        let priority = |to| self.priority_in(from, to, message).expect("a queue that is named is there");
        targets.into_iter().map(|target| (target, priority(target))).collect()
    }

    /// Puts a message that left one queue into others, as new there but for what it is, with a priority for each.
    pub(crate) fn arrive(
        &mut self,
        from: QueueId,
        targets: Vec<(QueueId, (Priority, Original))>,
        mut gone: Message,
        step: &mut Step,
    ) {
        gone.set_work(None);
        let (now, default_ttl_ms) = (self.now, self.options.default_ttl_ms);
        for (target, _) in &targets {
            self.rule_late(*target, step);
        }
        let at = step.facts.len();
        let mut to = Vec::new();
        // Shared before the first copy is in: that one may be gone again before the next comes.
        step.effects.extend((1..targets.len()).map(|_| Effect::Shared(gone.place)));
        step.room = step.room.saturating_sub(targets.len());
        for (target, (priority, original)) in targets {
            let queue = self.queue_mut(target);
            let message = Message {
                priority,
                original,
                seq: queue.next_seq,
                since: now,
                expires: queue.expiry(now, None, None, default_ttl_ms),
                count: 0,
                state: State::Ready,
                extras: gone.extras.clone(),
                ..gone
            };
            to.push(Located { queue: target, message: message.clone() });
            queue.arrive(message, step);
        }
        // One fact for the whole move, before what it brought about.
        step.facts.insert(at, Fact::Moved { from, seq: gone.seq, to });
    }
}

impl Queue {
    /// Whether a dead letter can be written here, which `is_of_here` or not.
    fn can_take(&self, message: &Message, priority: Priority, is_of_here: bool, reason: DeathReason) -> bool {
        let keyed = self.settings.last_value != Some(LastValue::Key) || message.key().is_some();
        // Else what one eviction begins might go round through all queues.
        let others_may_pay = reason != DeathReason::Maxlen || !self.leaves_evicted();
        keyed
            && self.fits(message)
            && (is_of_here || self.check_return(message.id()).is_ok())
            && self.lanes.check(priority).is_ok()
            && self.has_room_for(message, priority)
            && (others_may_pay || self.has_free_room(message.bytes))
    }

    /// Whether a message that ended, perhaps because it died, can be recorded here. What has its id gives way.
    pub(crate) fn can_record(&self, message: &Message, reason: Option<DeathReason>) -> bool {
        let keyed = self.settings.last_value != Some(LastValue::Key) || message.key().is_some();
        let others_may_pay = reason != Some(DeathReason::Maxlen) || !self.leaves_evicted();
        keyed
            && self.fits(message)
            && self.lanes.check(message.priority).is_ok()
            && self.has_room_for(message, message.priority)
            && (others_may_pay || self.has_free_room(message.bytes))
    }

    /// Whether it is small enough for this queue.
    pub(crate) fn fits(&self, message: &Message) -> bool {
        let most = [self.settings.max_message_bytes, self.settings.max_bytes];
        most.iter().all(|most| *most == 0 || u64::from(message.bytes) <= *most)
    }
}

/// Whether a message that dies of this would come to a queue for the second time in a round in which nobody rejects it: where it died,
/// or where the work on it ended well. A death that was the end of it is among its deaths.
fn is_round(message: &Message, deaths: &Deaths, reason: DeathReason, queue: &str) -> bool {
    let has_ended_in = |record: &Record| {
        matches!(record.ending, Ending::Completed | Ending::Cancelled) && *record.queue == *queue
    };
    let was_there = || message.record().is_some_and(|record| has_ended_in(record));
    reason != DeathReason::Rejected && (deaths.comes_round_to(queue) || was_there())
}

/// The way that dead letters go on; `None`: they stay.
fn route_of(to: &DeadLetterTo, deaths: &Deaths) -> Option<Route> {
    match to {
        DeadLetterTo::Keep | DeadLetterTo::Drop => None,
        DeadLetterTo::Queue(name) => Some(Route::by("", &**name)),
        DeadLetterTo::Exchange { name, routing_key: Some(key) } => Some(Route::by(&**name, &**key)),
        DeadLetterTo::Exchange { name, routing_key: None } => {
            Some(Route { exchange: name.as_str().into(), keys: deaths.from().keys.clone() })
        }
    }
}

/// How a message is counted that is gone where dead letters are dropped.
fn gone_by(reason: DeathReason) -> Settled {
    match reason {
        DeathReason::Expired => Settled::Expired,
        DeathReason::Maxlen => Settled::Evicted,
        DeathReason::Rejected | DeathReason::DeliveryLimit | DeathReason::Timeout => Settled::Dropped,
    }
}
