//! *Kept*: what was confirmed is never lost; and nothing leaves a live broker but for a reason that a client can know.

use std::collections::{BTreeMap, BTreeSet};

use overtake_engine::core::{Answer, Request};
use overtake_engine::{Change, NewMessage, PublishedCopy};
use overtake_lane::{
    Broker, Command, ConsumerId, DeadLetterTo, DeathReason, Message, Outcome, Overflow, QueueId, Receipt,
    Seq, Settings, State, Time,
};

use crate::audit::{Audit, Seen};
use crate::book::{Book, Hold, lane_of};
use crate::check::Step;
use crate::check::cap::has_too_many;
use crate::failure::{Checked, Promise, broken, hold};
use crate::refold::{Refold, mark_of};

/// Copies of messages, each with its mark unless it was there before.
type Copies = Vec<((QueueId, Seq), Option<u64>)>;

/// What was confirmed.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    answered: BTreeMap<u64, Copies>,
    confirmed: BTreeMap<(QueueId, Seq), Option<u64>>,
}

impl Kept {
    /// A publish was answered, and the answer is on its way.
    pub(crate) fn answered(
        &mut self,
        broker: &Broker,
        ticket: u64,
        step: &Step<'_>,
        request: &Request,
        answer: &Answer,
    ) {
        if let Request::PublishOne(message) = request {
            self.answered.insert(ticket, untold_copies(step, message));
            return;
        }
        let (Request::Publish { messages, .. }, Answer::Copies(copies)) = (request, answer) else { return };
        let named = copies.iter().filter_map(|copy: &PublishedCopy| {
            let queue = broker.id_of(step.vhost, &copy.queue).ok()?;
            let message = &messages[copy.publish];
            let mark = if copy.duplicate { None } else { mark_of(message.content.content_type()) };
            Some(((queue, copy.seq), mark))
        });
        self.answered.insert(ticket, named.collect());
    }

    /// The answer arrived.
    pub(crate) fn told(&mut self, ticket: u64) {
        for (name, mark) in self.answered.remove(&ticket).unwrap_or_default() {
            let known = self.confirmed.entry(name).or_default();
            *known = mark.or(*known);
        }
    }

    /// What was there when the engine stopped, and confirmed, is there again.
    pub(crate) fn check_recovered(&self, refold: &Refold, last: &Audit) -> Checked {
        let marks = refold.marks();
        for ((queue, seq), mark) in &self.confirmed {
            let found = marks.get(&(*queue, *seq));
            let is_lost = found.is_none() && last.find(*queue, *seq).is_some();
            hold(!is_lost, Promise::Kept, || {
                format!("message {} of queue {} was confirmed and is lost", seq.0, queue.0)
            })?;
            let is_other = found.zip(mark.as_ref()).is_some_and(|(found, mark)| found != mark);
            hold(!is_other, Promise::Kept, || {
                format!(
                    "message {} of queue {} was confirmed as {mark:?} and is now {found:?}",
                    seq.0, queue.0
                )
            })?;
        }
        Ok(())
    }

    /// A new life begins with what the recovery found.
    pub(crate) fn recovered(&mut self, refold: &Refold) {
        self.answered.clear();
        let marks = refold.marks();
        self.confirmed.retain(|name, _| marks.contains_key(name));
    }
}

/// The copies of a message of which nothing was told but how many: what came with it, and what was pending under its id.
fn untold_copies(step: &Step<'_>, message: &NewMessage) -> Copies {
    let mark = mark_of(message.content.content_type());
    let new = step.arrivals().map(|(queue, copy)| ((queue, copy.seq), mark));
    let pending = message.id.iter().flat_map(|id| {
        let there = step.before.messages().filter(move |(_, copy)| copy.id() == Some(id));
        there.filter(|(_, copy)| copy.state != State::Dead).map(|(queue, copy)| ((queue, copy.seq), None))
    });
    pending.chain(new).collect()
}

/// Everything that is no longer there had a reason to go.
pub(crate) fn check_leaving(book: &Book, step: &Step<'_>) -> Checked {
    let ended = Ended::of(book, step);
    let ruled = book.ruled_by(step);
    for (queue, seen) in &step.before.queues {
        let Some(after) = step.after.queues.get(queue) else {
            let deleted = match step.request {
                Some(Request::Do(Command::DeleteQueue { name, .. })) => is_meant(step, name, seen),
                Some(Request::Do(Command::DeleteVhost { name })) => step.before.vhosts[&seen.vhost] == *name,
                _ => false,
            };
            let is_ruled = ruled.get(queue).is_some_and(|settings| settings.expires_ms > 0);
            let ended = deleted || is_ruled || book.may_end(*queue, step.request);
            hold(ended, Promise::Kept, || format!("queue {} is gone and nobody deleted it", seen.name))?;
            continue;
        };
        let has_arrivals = after.next_seq > seen.next_seq;
        let newest: Vec<&Message> =
            step.newest().filter(|(at, _)| at == queue).map(|(_, message)| message).collect();
        let came = after.next_seq.0 - seen.next_seq.0;
        let records = newest.iter().filter(|message| message.record().is_some());
        let recorded: BTreeSet<&str> = records.filter_map(|message| message.id()).collect();
        // A history has the last of each id; of what came and is gone already nobody can see it.
        let is_blurred = is_history(book, seen) && came > newest.len() as u64;
        let trimmed = has_too_many(book, *queue, seen).then(|| &book.settings[queue]);
        let is_recorded_again =
            |message: &Message| message.id().is_some_and(|id| is_blurred || recorded.contains(id));
        let gone = seen.messages.iter().filter(|message| after.find(message.seq).is_none());
        for message in gone.filter(|message| !is_recorded_again(message)) {
            // A lease or a delay that ends puts its message back, and a queue that has too many may evict it in the same step.
            let is_back = match message.state {
                State::Leased { deadline: end, .. } | State::Delayed { due: end } => end <= step.now,
                State::Ready | State::Dead => false,
            };
            let is_held = book.holds.contains_key(&(*queue, message.seq));
            let is_free = is_back || (message.state == State::Ready && !is_held);
            if let Some(settings) = ruled.get(queue)
                && is_free
                && settings.overflow == Overflow::Evict
                && is_bounded(settings)
            {
                check_evicted(book, step, settings, (*queue, &seen.name), message)?;
                continue;
            }
            if !may_leave(book, step, &ended, (*queue, seen), message, has_arrivals) {
                let Some(settings) = trimmed.filter(|_| is_free) else {
                    return broken(
                        Promise::Kept,
                        format!("message {message:?} left {} for no reason", seen.name),
                    );
                };
                check_evicted(book, step, settings, (*queue, &seen.name), message)?;
            }
            check_payer(book, step, (*queue, &seen.name), message)?;
        }
        for message in seen.messages.iter().filter(|message| is_evicted(message, after)) {
            // The limit is no messages: nobody else need come.
            if message.is_at_once() && ruled.get(queue).unwrap_or(&book.settings[queue]).evict_at_once {
                continue;
            }
            if let Some(settings) = ruled.get(queue).or(trimmed) {
                let is_right = settings.dead_letter_evicted && (is_bounded(settings) || has_arrivals);
                hold(is_right, Promise::Kept, || format!("message {message:?} paid for no policy"))?;
                continue;
            }
            let settings = &book.settings[queue];
            let came_back =
                step.request.and_then(replayed_queue).is_some_and(|queue| is_meant(step, queue, seen));
            hold(settings.dead_letter_evicted && (has_arrivals || came_back), Promise::Kept, || {
                format!("message {message:?} of {} paid for nobody", seen.name)
            })?;
            check_payer(book, step, (*queue, &seen.name), message)?;
        }
    }
    Ok(())
}

/// Whether records of other queues come into this one.
fn is_history(book: &Book, seen: &Seen) -> bool {
    book.settings.values().any(|settings| settings.history.as_deref() == Some(&*seen.name))
}

/// The queue whose dead letters a request replays.
pub(super) fn replayed_queue(request: &Request) -> Option<&str> {
    match request {
        Request::Change { queue, change: Change::Replay(_), .. }
        | Request::Do(Command::Replay { queue, .. }) => Some(queue),
        _ => None,
    }
}

/// Whether a name that was asked for is that of a queue.
fn is_meant(step: &Step<'_>, name: &str, seen: &Seen) -> bool {
    seen.vhost == step.vhost && *seen.name == *name
}

fn is_bounded(settings: &Settings) -> bool {
    settings.max_length > 0 || settings.max_bytes > 0
}

/// Whether a message is a dead letter since this step, because its queue was full.
fn is_evicted(message: &Message, after: &Seen) -> bool {
    let dead =
        after.find(message.seq).filter(|after| after.state == State::Dead && after.state != message.state);
    dead.and_then(Message::death).is_some_and(|death| death.reason == DeathReason::Maxlen)
}

/// When a queue is full the least urgent pays, and of its lane the oldest: what stayed ready all the time must not be
/// less urgent than what was dropped.
fn check_payer(book: &Book, step: &Step<'_>, queue: (QueueId, &str), gone: &Message) -> Checked {
    let settings = &book.settings[&queue.0];
    let is_paid = matches!(step.request, Some(Request::Publish { .. } | Request::PublishOne(_)));
    if !is_paid || settings.last_value.is_some() {
        return Ok(());
    }
    check_cheapest(book, step, settings, queue, gone)
}

/// What is too much in a queue is the least urgent. Where only the newest value is kept, one may have come from another queue and taken its place.
fn check_evicted(
    book: &Book,
    step: &Step<'_>,
    settings: &Settings,
    queue: (QueueId, &str),
    gone: &Message,
) -> Checked {
    if settings.last_value.is_some() { Ok(()) } else { check_cheapest(book, step, settings, queue, gone) }
}

/// Of what was ready all the time nothing that is less urgent than what was dropped, under these settings, is left.
fn check_cheapest(
    book: &Book,
    step: &Step<'_>,
    settings: &Settings,
    queue: (QueueId, &str),
    gone: &Message,
) -> Checked {
    let is_free = |message: &Message| {
        message.state == State::Ready && !book.holds.contains_key(&(queue.0, message.seq))
    };
    let is_evicted = is_free(gone) && gone.expires > step.now && !step.given.contains(&(queue.0, gone.seq));
    if !is_evicted || step.before.may_move(queue.0, step.after) {
        return Ok(());
    }
    let lane = |message: &Message| (lane_of(settings, message.priority), message.seq);
    let before = step.before.queues[&queue.0].messages.iter().filter(|message| is_free(message));
    // What was lent in this step, and came back since nobody waited for it any more, was out of the way meanwhile.
    let cheaper = before.filter(|message| lane(message) < lane(gone)).find(|message| {
        let after = step.after.find(queue.0, message.seq);
        after.is_some_and(|after| after.state == State::Ready && after.count == message.count)
    });
    hold(cheaper.is_none(), Promise::Kept, || {
        format!("message {} of {} paid although {cheaper:?} is less urgent", gone.seq.0, queue.1)
    })
}

/// Leases that the request of a step ended.
pub(super) struct Ended {
    settled: BTreeMap<Receipt, Outcome>,
    cancelled: BTreeSet<ConsumerId>,
}

impl Ended {
    pub(super) fn of(book: &Book, step: &Step<'_>) -> Self {
        let mut settled = BTreeMap::new();
        let mut cancelled: BTreeSet<ConsumerId> = book.retired().collect();
        match (step.request, step.result) {
            (Some(Request::Do(Command::Settle { receipts, outcome })), Some(Ok(Answer::Each(results)))) => {
                let done = receipts.iter().zip(results).filter(|(_, result)| result.is_ok());
                settled.extend(done.map(|(receipt, _)| (*receipt, *outcome)));
            }
            (
                Some(Request::Do(Command::Finish { receipt, outcome, .. })),
                Some(Ok(Answer::Each(results))),
            ) => {
                settled.extend(results.iter().filter(|result| result.is_ok()).map(|_| (*receipt, *outcome)));
            }
            (Some(Request::Publish { settlements, .. }), Some(Ok(_))) => {
                settled.extend(settlements.iter().copied())
            }
            (Some(Request::Do(Command::Cancel { consumer })), _) => {
                cancelled.insert(*consumer);
            }
            (Some(Request::Do(Command::EndSession { session })), _) => {
                cancelled.extend(book.of_session(*session));
            }
            _ => {}
        }
        Self { settled, cancelled }
    }

    /// How a lease ended, if it did. One that ran out, or whose consumer is gone, is a failed delivery.
    pub(super) fn outcome(&self, lease: &Hold, message: &Message, now: Time) -> Option<Outcome> {
        let outcome = self.settled.get(&lease.receipt).copied();
        let ran_out = matches!(message.state, State::Leased { deadline, .. } if deadline <= now)
            || lease.until <= now
            || lease.work_ends <= now;
        let was_lost = lease.consumer.is_some_and(|consumer| self.cancelled.contains(&consumer));
        outcome.or((ran_out || was_lost).then_some(Outcome::Nack { delay_ms: None }))
    }
}

/// `book` is as it was before the step.
fn may_leave(
    book: &Book,
    step: &Step<'_>,
    ended: &Ended,
    queue: (QueueId, &Seen),
    message: &Message,
    has_arrivals: bool,
) -> bool {
    let is_named = match step.request {
        Some(
            Request::Change { queue: name, change: Change::Remove | Change::Cancel, .. }
            | Request::Do(
                Command::Remove { queue: name, .. }
                | Command::CancelMessages { queue: name, .. }
                | Command::FinishLate { queue: name, .. }
                | Command::Purge { queue: name, .. },
            ),
        ) => is_meant(step, name, queue.1),
        Some(request) => replayed_queue(request).is_some_and(|name| is_meant(step, name, queue.1)),
        None => false,
    };
    if is_named || step.given.contains(&(queue.0, message.seq)) {
        return true;
    }
    let settings = &book.settings[&queue.0];
    let is_bounded = is_bounded(settings);
    let hold = book.holds.get(&(queue.0, message.seq));
    let is_over = message.expires <= step.now;
    let Some(lease) = hold else {
        let makes_room = has_arrivals && (is_bounded || settings.last_value.is_some());
        let stands = matches!(message.state, State::Ready | State::Delayed { .. });
        return stands && (is_over || makes_room);
    };
    if ended.outcome(lease, message, step.now).is_none() {
        return false;
    }
    let outcome = ended.settled.get(&lease.receipt).copied();
    let limit = settings.delivery_limit;
    let is_late = lease.work_ends <= step.now;
    let dies = matches!(outcome, Some(Outcome::Reject | Outcome::Timeout))
        || (outcome.is_none() && is_late)
        || (outcome != Some(Outcome::Release) && limit > 0 && message.count >= limit);
    outcome == Some(Outcome::Ack)
        || is_over
        || settings.last_value.is_some()
        || message.work().is_some_and(|work| work.is_cancelled)
        || (dies && (settings.dead_letter != DeadLetterTo::Keep || settings.history.is_some()))
        // Put back into a queue that is over its limits, while another arrives.
        || (has_arrivals && is_bounded)
}
