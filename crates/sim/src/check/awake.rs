//! *Awake*: the engine says when it must be called again, and nobody waits for what is there.

use std::sync::Arc;

use overtake_lane::{QueueId, State, Time};

use crate::audit::Audit;
use crate::book::{Book, lane_cap, lane_name};
use crate::failure::{Checked, Promise, hold};
use crate::keys::may_be_held_back;
use crate::round::{Candidate, ready};

/// The first thing that must happen by itself: something expires, is due, comes back; a pull gives up.
pub(crate) fn first_due(book: &Book, audit: &Audit) -> Time {
    let due = audit.messages().map(|(queue, message)| match message.state {
        State::Ready => book
            .holds
            .get(&(queue, message.seq))
            .map_or(message.expires, |hold| hold.until.min(hold.work_ends)),
        State::Delayed { due } => due.min(message.expires),
        State::Leased { deadline, .. } => message.work().map_or(deadline, |work| deadline.min(work.ends)),
        State::Dead => Time::NEVER,
    });
    due.chain(book.takers.values().map(|taker| taker.until)).min().unwrap_or(Time::NEVER)
}

/// The deadline that the engine names is not after the first thing that must happen; what is late happens now.
pub(crate) fn check_deadline(now: Time, first: Time, named: Option<Time>) -> Checked {
    hold(first == Time::NEVER || named.is_some_and(|named| named <= first.max(now)), Promise::Awake, || {
        format!("something happens at {}, the engine wants to be called at {named:?}", first.0)
    })
}

/// What somebody with room could be given of a queue, each with its lane.
pub(crate) fn free(book: &Book, audit: &Audit, queue: QueueId) -> Vec<(Candidate, (Arc<str>, i64))> {
    let Some(settings) = book.settings.get(&queue) else { return Vec::new() };
    let (leased, lanes) = book.leased(queue);
    let is_full = settings.max_active > 0 && leased >= u64::from(settings.max_active);
    // Nothing is known here of tokens, nor of which messages have moved to other lanes.
    if is_full || settings.paused || settings.rate_limit.is_some() || audit.is_moving(queue) {
        return Vec::new();
    }
    let out = book.out(queue);
    let is_free = |one: &Candidate| {
        let cap = lane_cap(settings, one.lane);
        let is_capped = cap > 0 && lanes.get(&one.lane).is_some_and(|leased| *leased >= cap);
        !is_capped && !may_be_held_back(settings, one, &out)
    };
    let free = ready(book, audit, queue).into_iter().filter(is_free);
    free.map(|one| (one, lane_name(settings, one.lane))).collect()
}

/// Whoever has room has got what there is.
pub(crate) fn check_idle(book: &Book, audit: &Audit) -> Checked {
    let mut queues: Vec<QueueId> = book.takers.values().map(|taker| taker.queue).collect();
    queues.sort_unstable();
    queues.dedup();
    for queue in queues {
        let takers: Vec<_> = book.takers.iter().filter(|(_, taker)| taker.queue == queue).collect();
        for (one, lane) in free(book, audit, queue) {
            let waits = takers.iter().find(|(id, taker)| book.has_room(**id, taker, &lane));
            hold(waits.is_none(), Promise::Awake, || {
                format!(
                    "{:?} waits while {} of lane {} of queue {} is ready",
                    waits, one.seq.0, one.lane, queue.0
                )
            })?;
        }
    }
    Ok(())
}
