//! *Order*: in a lane nothing older is passed over.

use std::collections::BTreeMap;

use overtake_engine::PublishedCopy;
use overtake_lane::{PickerKind, QueueId};

use crate::book::{Book, lane_of};
use crate::check::Step;
use crate::failure::{Checked, Promise, hold};
use crate::keys::{rivals, speaks_of_keys};
use crate::round::{Round, ready};

/// A message that is published alone stands behind everything of its urgency, and says so.
pub(crate) fn check_position(book: &Book, step: &Step<'_>, queue: QueueId, copy: &PublishedCopy) -> Checked {
    let settings = &book.settings[&queue];
    let Some(message) = step.after.find(queue, copy.seq) else { return Ok(()) };
    let is_simple = settings.max_length == 0 && settings.max_bytes == 0 && settings.last_value.is_none();
    let Some(told) = copy.position_in_priority.filter(|_| is_simple) else { return Ok(()) };
    let lane = lane_of(settings, message.priority);
    let ready = ready(book, step.before, queue);
    let in_lane = ready.iter().filter(|other| other.lane == lane).count() as u64;
    let ahead = ready.iter().filter(|other| other.lane >= lane).count() as u64;
    let is_right = told == in_lane && (settings.picker != PickerKind::Strict || copy.position == Some(ahead));
    hold(is_right, Promise::Order, || {
        format!(
            "message {} of {} stands at {in_lane} and {ahead}, its answer says {told} and {:?}",
            copy.seq.0, copy.queue, copy.position
        )
    })
}

/// Each message leased was the oldest of its lane.
pub(crate) fn check(book: &Book, round: &Round<'_>) -> Checked {
    if round.is_blurred {
        return Ok(());
    }
    if speaks_of_keys(round.settings) {
        return check_by_keys(book, round);
    }
    let mut oldest = BTreeMap::new();
    for other in &round.rest {
        let seq = oldest.entry(other.lane).or_insert(other.seq);
        *seq = other.seq.min(*seq);
    }
    for (pick, _) in round.picks.iter().rev() {
        let seq = oldest.entry(pick.lane).or_insert(pick.seq);
        *seq = pick.seq.min(*seq);
        hold(*seq == pick.seq, Promise::Order, || {
            format!("queue {} leased {} of lane {} before {}", round.queue.0, pick.seq.0, pick.lane, seq.0)
        })?;
    }
    Ok(())
}

/// Each message leased was the oldest of those of its lane that nothing held back, unless keys take turns.
fn check_by_keys(book: &Book, round: &Round<'_>) -> Checked {
    if round.settings.fair_keys {
        return Ok(());
    }
    for ((pick, _), rivals) in round.picks.iter().zip(rivals(book, round)) {
        let older = rivals.iter().find(|other| other.lane == pick.lane && other.seq < pick.seq);
        hold(older.is_none(), Promise::Order, || {
            format!("queue {} leased {pick:?} before {older:?}", round.queue.0)
        })?;
    }
    Ok(())
}
