//! Which lane's head goes next. A picker sees heads, never messages, and is charged only once the lease has happened.

use crate::bitmap::Bitmap;
use crate::ids::{Seq, Time};
use crate::lane::Lane;
use crate::message::Message;
use crate::settings::PickerKind;

/// All a picker may know of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// How urgent its lane is, larger first.
    pub level: i32,
    /// When the message was published.
    pub since: Time,
    /// Its sequence.
    pub seq: Seq,
}

/// A picker and, for the weighted one, whose turn it is.
#[derive(Clone, Debug)]
pub(crate) enum Picker {
    Strict,
    Aging { step_ms: u64 },
    Weighted { turn: Option<Turn> },
}

/// The lane that is being served, and how many more it may give before the next.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn {
    pub(crate) rank: usize,
    pub(crate) left: u32,
}

impl Picker {
    pub(crate) fn new(kind: &PickerKind) -> Self {
        match kind {
            PickerKind::Strict => Self::Strict,
            PickerKind::AgingMs(step_ms) => Self::Aging { step_ms: *step_ms },
            PickerKind::Weighted(_) => Self::Weighted { turn: None },
        }
    }

    /// The rank of the lane to take from, among those `eligible`; each of them has a head.
    pub(crate) fn pick(&self, eligible: Bitmap, head: impl Fn(usize) -> Head) -> Option<usize> {
        match self {
            Self::Strict => eligible.first(),
            Self::Aging { step_ms } => eligible.iter().min_by_key(|rank| urgency(&head(*rank), *step_ms)),
            Self::Weighted { turn } => match turn {
                Some(Turn { rank, left }) if *left > 0 && eligible.below(rank + 1).last() == Some(*rank) => {
                    Some(*rank)
                }
                Some(Turn { rank, .. }) => eligible.next_in_ring(*rank),
                None => eligible.first(),
            },
        }
    }

    /// Records that the lane of this rank gave a message.
    pub(crate) fn charge(&mut self, rank: usize, weight: u32) {
        let Self::Weighted { turn } = self else { return };
        let left = match turn {
            Some(turn) if turn.rank == rank && turn.left > 0 => turn.left,
            _ => weight,
        };
        *turn = Some(Turn { rank, left: left - 1 });
    }

    /// How many messages the lane of this rank may give, now that it is picked, before another may be: one where that depends on what it shows next.
    pub(crate) fn turns(&self, rank: usize, weight: u32) -> u32 {
        match self {
            Self::Strict => u32::MAX,
            Self::Aging { .. } => 1,
            Self::Weighted { turn: Some(turn) } if turn.rank == rank && turn.left > 0 => turn.left,
            Self::Weighted { .. } => weight,
        }
    }

    /// The rank whose turn it is.
    pub(crate) fn turn(&self) -> Option<usize> {
        if let Self::Weighted { turn } = self { turn.map(|turn| turn.rank) } else { None }
    }

    /// Goes on with this turn, where the picker goes by turns.
    pub(crate) fn set_turn(&mut self, to: Option<Turn>) {
        if let Self::Weighted { turn } = self {
            *turn = to;
        }
    }

    /// Lanes have other ranks now; the one whose turn it is, this one.
    pub(crate) fn ranks_changed(&mut self, to: Option<usize>) {
        if let Self::Weighted { turn } = self {
            *turn = turn.zip(to).map(|(turn, rank)| Turn { rank, ..turn });
        }
    }
}

/// `since − level · step`, the least first. Of two lanes alike the more urgent one, which has the lower rank and comes first.
pub(crate) fn urgency(head: &Head, step_ms: u64) -> i128 {
    i128::from(head.since.0) - i128::from(head.level) * i128::from(step_ms)
}

impl Lane {
    /// What a picker sees of the lane when this is its head.
    pub(crate) fn head_of(&self, message: &Message) -> Head {
        Head { level: self.level, since: message.since, seq: message.seq }
    }
}
