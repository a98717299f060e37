//! Where the content of a message is: what a [`Place`] means to this engine.
//!
//! | bits | in memory | on the shelf |
//! |---|---|---|
//! | 63 | 0 | 1 |
//! | 32–62 | the *chunk* of the journal, `LSN / chunk length`, at or before the one with its record | number of the run |
//! | 0–31 | slot of the contents | ordinal in the segment |

use overtake_lane::{Place, RunId};

const ON_SHELF: u64 = 1 << 63;
/// Chunks and runs have lesser numbers: 128 TiB of journal in the shortest files there are.
const UPPER_MAX: u64 = 1 << 31;

/// A place, taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Where {
    /// In memory.
    Here {
        /// The chunk with its record, or one before.
        chunk: u32,
        /// Its slot.
        slot: u32,
    },
    /// In a segment.
    Shelf {
        /// Of which run.
        run: RunId,
        /// Which of its messages.
        ordinal: u32,
    },
}

impl Where {
    pub(crate) fn of(place: Place) -> Self {
        let (upper, lower) = ((place.0 & !ON_SHELF) >> 32, place.0 as u32);
        if place.0 & ON_SHELF == 0 {
            Self::Here { chunk: upper as u32, slot: lower }
        } else {
            Self::Shelf { run: RunId(upper), ordinal: lower }
        }
    }

    pub(crate) fn place(self) -> Place {
        match self {
            Self::Here { chunk, slot } => Place(upper(u64::from(chunk)) | u64::from(slot)),
            Self::Shelf { run, ordinal } => Place(ON_SHELF | upper(run.0) | u64::from(ordinal)),
        }
    }

    /// The chunk with the record of content in memory, or one before.
    pub(crate) fn chunk(self) -> Option<u32> {
        match self {
            Self::Here { chunk, .. } => Some(chunk),
            Self::Shelf { .. } => None,
        }
    }

    /// The run in whose segment the content is.
    pub(crate) fn run(self) -> Option<RunId> {
        match self {
            Self::Here { .. } => None,
            Self::Shelf { run, .. } => Some(run),
        }
    }
}

fn upper(number: u64) -> u64 {
    assert!(number < UPPER_MAX, "a store has fewer than 2^31 chunks of journal and runs");
    number << 32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_says_what_it_was_made_of() {
        let most = UPPER_MAX - 1;
        for upper in [0, 1, most] {
            for lower in [0, 1, u32::MAX] {
                let here = Where::Here { chunk: upper as u32, slot: lower };
                let shelf = Where::Shelf { run: RunId(upper), ordinal: lower };
                assert_eq!((Where::of(here.place()), Where::of(shelf.place())), (here, shelf));
            }
        }
    }
}
