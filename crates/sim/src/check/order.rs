//! *Order*: in a lane nothing older is passed over.

use std::collections::BTreeMap;

use crate::failure::{Checked, Promise, hold};
use crate::round::Round;

/// Each message leased was the oldest of its lane.
pub(crate) fn check(round: &Round<'_>) -> Checked {
    if round.is_blurred {
        return Ok(());
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
