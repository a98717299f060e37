//! *Cap*: leases never go over what a queue, a lane or a consumer allows.

use std::collections::{BTreeMap, BTreeSet};

use overtake_engine::core::Request;
use overtake_lane::{ConsumerId, Message, Overflow, QueueId, Seq, Settings, State};

use crate::audit::{Audit, Seen};
use crate::book::{Book, lane_cap, lane_name};
use crate::check::Step;
use crate::failure::{Checked, Promise, hold};
use crate::round::{Lent, Round};

/// Messages that wait, and their bytes; and how many of them could be evicted.
#[derive(Default)]
struct Waiting {
    count: u64,
    bytes: u64,
    ready: u64,
}

/// What waits in a queue, without those that are `out`. What is over at once was taken at once, and takes no room.
fn waiting(book: &Book, queue: QueueId, seen: &Seen, is_out: impl Fn(&Message) -> bool) -> Waiting {
    let waiting = seen.messages.iter().filter(|message| {
        matches!(message.state, State::Ready | State::Delayed { .. })
            && !message.is_at_once()
            && !book.holds.contains_key(&(queue, message.seq))
            && !is_out(message)
    });
    waiting.fold(Waiting::default(), |Waiting { count, bytes, ready }, message| Waiting {
        count: count + 1,
        bytes: bytes + u64::from(message.bytes),
        ready: ready + u64::from(message.state == State::Ready),
    })
}

/// Whether a message was lent in this step, and put back since nobody waited for it any more: what was decided meanwhile took it for out.
fn came_back(step: &Step<'_>, queue: QueueId, message: &Message) -> bool {
    message.count > step.before.find(queue, message.seq).map_or(0, |before| before.count)
}

/// Whether a queue that evicts has more than its limits allow: then what is too much goes step by step.
pub(crate) fn has_too_many(book: &Book, queue: QueueId, seen: &Seen) -> bool {
    let settings = &book.settings[&queue];
    let waiting = waiting(book, queue, seen, |_| false);
    settings.overflow == Overflow::Evict && is_over(settings, &waiting)
}

/// Whether a queue evicts and has more than its limits allow, or will have when what is lent comes back.
pub(crate) fn may_evict(book: &Book, queue: QueueId, seen: &Seen) -> bool {
    let Some(settings) = book.settings.get(&queue) else { return false };
    let left = seen.messages.iter().filter(|message| message.state != State::Dead);
    let waiting = left.fold(Waiting::default(), |Waiting { count, bytes, ready }, message| Waiting {
        count: count + 1,
        bytes: bytes + u64::from(message.bytes),
        ready,
    });
    settings.overflow == Overflow::Evict && is_over(settings, &waiting)
}

fn is_over(settings: &Settings, waiting: &Waiting) -> bool {
    let is_over = |most: u64, now: u64| most > 0 && now > most;
    is_over(settings.max_length, waiting.count) || is_over(settings.max_bytes, waiting.bytes)
}

/// A publish leaves no more waiting than the queue allows, or than waited before.
///
/// `lent` is what was given to whoever stays since then: dead letters may have taken its room.
pub(crate) fn check_length(book: &Book, step: &Step<'_>, lent: &BTreeSet<(QueueId, Seq)>) -> Checked {
    match step.request {
        Some(Request::Publish { settlements, .. }) if settlements.is_empty() => {}
        Some(Request::PublishOne(_)) => {}
        _ => return Ok(()),
    }
    // Which messages are least urgent is known when all have moved to their lanes: until then a queue may hold more.
    let moves = |queue: &QueueId| step.before.is_moving(*queue) || step.after.is_moving(*queue);
    for (queue, settings) in book.settings.iter().filter(|(queue, _)| !moves(queue)) {
        // Of what came back a dead letter may have taken the room meanwhile.
        let waits = |audit: &Audit, lent: &BTreeSet<(QueueId, Seq)>| {
            audit.queues.get(queue).map_or_else(Waiting::default, |seen| {
                waiting(book, *queue, seen, |message| {
                    lent.contains(&(*queue, message.seq)) || came_back(step, *queue, message)
                })
            })
        };
        let (before, after) = (waits(step.before, &BTreeSet::new()), waits(step.after, lent));
        let over = |most: u64, before: u64, after: u64| most > 0 && after > most.max(before);
        let is_over = over(settings.max_length, before.count, after.count)
            || over(settings.max_bytes, before.bytes, after.bytes);
        hold(!is_over, Promise::Cap, || {
            let told = |waiting: &Waiting| format!("{} messages of {} bytes", waiting.count, waiting.bytes);
            format!("queue {} holds {} after a publish, {} before", queue.0, told(&after), told(&before))
        })?;
    }
    Ok(())
}

/// Where a policy was set or removed, no queue for which something else holds now is over its limits and drops what could go.
pub(crate) fn check_ruled(book: &Book, step: &Step<'_>) -> Checked {
    for (queue, settings) in book.ruled_by(step) {
        let Some(seen) = step.after.queues.get(&queue) else { continue };
        if book.settings[&queue] == settings || settings.overflow != Overflow::Evict || seen.is_moving {
            continue;
        }
        // What was lent in this step counted when it was decided; it only makes less of it.
        let waiting = waiting(book, queue, seen, |message| came_back(step, queue, message));
        hold(!is_over(&settings, &waiting) || waiting.ready == 0, Promise::Cap, || {
            let Waiting { count, bytes, .. } = waiting;
            format!("queue {} holds {count} messages of {bytes} bytes under a new policy", queue.0)
        })?;
    }
    Ok(())
}

/// What is out may be over a cap that was lowered; but then nothing more goes out.
pub(crate) fn check(book: &Book, round: &Round<'_>) -> Checked {
    let settings = round.settings;
    hold(!settings.paused || round.picks.is_empty(), Promise::Cap, || {
        format!("queue {} is paused, and lends", round.queue.0)
    })?;
    let (mut leased, mut lanes) = book.leased(round.queue);
    let mut out = book.out(round.queue);
    let mut held: BTreeMap<ConsumerId, u32> = BTreeMap::new();
    for (pick, lent) in round.picks.iter().rev() {
        let cap = u64::from(settings.max_active);
        // What is settled as it is given takes no place, but needs one.
        let own = u64::from(lent.is_given);
        hold(cap == 0 || leased + own <= cap, Promise::Cap, || {
            format!("queue {} has {leased} leases out, its cap is {cap}", round.queue.0)
        })?;
        if let Some(group) = pick.group {
            let (of_group, cap) = (out.entry(group).or_default(), u64::from(settings.out_per_key()));
            hold(cap == 0 || *of_group + own <= cap, Promise::Cap, || {
                format!("a group of queue {} has {of_group} leases out, its limit is {cap}", round.queue.0)
            })?;
            if !lent.is_given {
                *of_group -= 1;
            }
        }
        let (of_lane, cap) = (lanes.entry(pick.lane).or_default(), lane_cap(settings, pick.lane));
        hold(cap == 0 || *of_lane + own <= cap, Promise::Cap, || {
            format!(
                "lane {} of queue {} has {of_lane} leases out, its cap is {cap}",
                pick.lane, round.queue.0
            )
        })?;
        if !lent.is_given {
            *of_lane = of_lane.saturating_sub(1);
            leased = leased.saturating_sub(1);
        }
        let Some(taker) = book.takers.get(&lent.consumer) else { continue };
        let Some(window) = taker.window else { continue };
        let len = book.window_of(taker, window);
        let held = held.entry(lent.consumer).or_insert(window.held);
        let floor = lane_name(settings, pick.lane).1;
        let urgent =
            window.urgent.filter(|urgent| floor >= i64::from(urgent.at.0)).map_or(0, |urgent| urgent.extra);
        hold(*held <= len.saturating_add(urgent), Promise::Cap, || {
            format!("consumer {} holds {held} in a window of {len} and {urgent}", lent.consumer.0)
        })?;
        *held -= 1;
    }
    Ok(())
}

/// Consumers that share a window hold no more together than it allows each of them that was given something, at that moment: what is
/// urgent to one may be given to it beyond what is allowed to the others.
pub(crate) fn check_shared(book: &Book, lent: &[Lent]) -> Checked {
    let sharer = |one: &Lent| book.takers.get(&one.consumer).filter(|taker| !taker.no_ack);
    for (at, one) in lent.iter().enumerate() {
        let Some(taker) = sharer(one) else { continue };
        let Some((id, window)) = taker.shared.zip(taker.window) else { continue };
        let size = book.windows.get(&id).copied().unwrap_or(0);
        let most = size.saturating_add(window.urgent.map_or(0, |urgent| urgent.extra));
        let later = lent[at + 1..].iter().filter_map(sharer).filter(|taker| taker.shared == Some(id));
        let held = book.shared_held(id).saturating_sub(later.count() as u32);
        hold(size == 0 || held <= most, Promise::Cap, || {
            format!("consumers that share {id:?} hold {held}, {most} is the most")
        })?;
    }
    Ok(())
}

/// Where only one consumer is served, nobody else gets anything. Before the book learns of what was lent.
pub(crate) fn check_single(book: &Book, one: &Lent) -> Checked {
    let Some(taker) = book.takers.get(&one.consumer).filter(|taker| taker.stays()) else { return Ok(()) };
    hold(!taker.is_stopped && book.singles.serves(taker.queue, one.consumer), Promise::Cap, || {
        format!("consumer {} is given {}, and is not served", one.consumer.0, one.message.receipt)
    })
}
