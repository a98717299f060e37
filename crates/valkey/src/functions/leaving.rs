//! Messages that have left their queue and are on their way: dead letters and records that go elsewhere.

use overtake_lane::{DeathReason, Record, Time};

use super::ask::{Asked, text};
use super::told::{Malformed, Part, Shown, read_reason, read_record};

/// A message on its way. In its place nothing counts or finds it any more; it is kept there until it is said what [became](Left) of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leaver {
    /// Which of all that ever left the place.
    pub number: u64,
    /// The message, as dead, its deaths with this one; and what it says.
    pub shown: Shown,
    /// Why it died; `None`: it did not, the work on it ended otherwise.
    pub died: Option<DeathReason>,
    /// It was sent back to the queue that it came from.
    pub goes_home: bool,
    /// When.
    pub at: Time,
    /// How the work on it went, where the queue has a history: for that one, and for whoever else gets it if the history takes it. What ended before is with the message.
    pub record: Option<Record>,
}

/// What is on its way, what left first before the rest.
#[derive(Clone, Copy, Debug)]
pub struct Leaving {
    /// So many at most, and no more than 4,000.
    pub limit: u32,
}

impl Asked for Leaving {
    const FUNCTION: &'static str = "ot_leaving";
    const IS_PROMISE: bool = false;
    type Answer = Vec<Leaver>;

    fn arguments(&self, arguments: &mut Vec<Vec<u8>>) {
        arguments.push(text(self.limit));
    }

    fn read(&self, what: Part<'_>) -> Result<Self::Answer, Malformed> {
        let one = |part| {
            let part = Part(part);
            let [_, _, _, number, died, at, record] = part.parts()? else { return Err(Malformed) };
            let goes_home = Part(died).is() && Part(died).bytes()? == b"home";
            Ok(Leaver {
                number: Part(number).count()?,
                shown: Shown::read(&part)?,
                died: if goes_home { None } else { Part(died).some(read_reason)? },
                goes_home,
                at: Part(at).time()?,
                record: Part(record).some(|record| read_record(&record))?,
            })
        };
        what.parts()?.iter().map(one).collect()
    }
}

/// What became of a message on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is elsewhere; or nothing but the history takes it, where else it would stay.
    Moved,
    /// Its queue drops it, or it would go round for ever: it is nowhere, or only in the history.
    Gone,
    /// Nothing takes it: it is a dead letter of its own queue. One that did not die is gone.
    Stays,
}

/// Says what became of messages, each by the number of its leave. Said again it changes nothing.
#[derive(Clone, Debug)]
pub struct Left {
    /// Which, and what.
    pub fates: Vec<(u64, Fate)>,
}

impl Asked for Left {
    const FUNCTION: &'static str = "ot_left";
    type Answer = ();

    fn arguments(&self, arguments: &mut Vec<Vec<u8>>) {
        for (number, fate) in &self.fates {
            let word: &[u8] = match fate {
                Fate::Moved => b"moved",
                Fate::Gone => b"gone",
                Fate::Stays => b"stays",
            };
            arguments.extend([text(number), word.to_vec()]);
        }
    }

    fn read(&self, _: Part<'_>) -> Result<(), Malformed> {
        Ok(())
    }
}
