//! What an administrator does to the messages of a place.

use overtake_lane::{Original, Outcome, Priority, Report, Seq, Status};

use super::ask::{Asked, add_report, given, how_words, maybe, text, word};
use super::told::{Declined, Malformed, Part};

/// Which messages.
#[derive(Clone, Debug)]
pub enum Which {
    /// The one of this id; refused if it cannot be done.
    Id(Box<str>),
    /// These; what cannot be done is left out.
    Seqs(Vec<Seq>),
}

impl Which {
    fn add(&self, arguments: &mut Vec<Vec<u8>>) {
        match self {
            Self::Id(id) => arguments.extend([b"id".to_vec(), id.as_bytes().to_vec()]),
            Self::Seqs(seqs) => {
                arguments.push(b"seqs".to_vec());
                arguments.extend(seqs.iter().map(|seq| text(seq.0)));
            }
        }
    }
}

/// To how many it was done.
fn touched(what: &Part<'_>) -> Result<Result<u64, Declined>, Malformed> {
    what.or_declined(|first| first.count())
}

/// A promotion, if there is one.
fn add_promotion(promote: Option<(Priority, Original)>, arguments: &mut Vec<Vec<u8>>) {
    arguments.push(maybe(promote.map(|(priority, _)| priority.0)));
    arguments.push(promote.map(|(_, original)| given(original)).unwrap_or_default());
}

/// Gives messages another priority. Answers to how many.
#[derive(Clone, Debug)]
pub struct Reprioritise {
    /// The priority they get.
    pub priority: Priority,
    /// As it was given.
    pub original: Original,
    /// Which.
    pub which: Which,
}

impl Asked for Reprioritise {
    const FUNCTION: &'static str = "ot_reprioritise";
    type Answer = Result<u64, Declined>;

    fn arguments(&self, arguments: &mut Vec<Vec<u8>>) {
        arguments.extend([text(self.priority.0), given(self.original)]);
        self.which.add(arguments);
    }

    fn read(&self, what: Part<'_>) -> Result<Self::Answer, Malformed> {
        touched(&what)
    }
}

/// Takes messages out, however they stand. Answers how many.
#[derive(Clone, Debug)]
pub struct Remove(pub Which);

impl Asked for Remove {
    const FUNCTION: &'static str = "ot_remove";
    type Answer = Result<u64, Declined>;

    fn arguments(&self, arguments: &mut Vec<Vec<u8>>) {
        self.0.add(arguments);
    }

    fn read(&self, what: Part<'_>) -> Result<Self::Answer, Malformed> {
        touched(&what)
    }
}

/// Takes messages back: who works on one by a lease of its own is told when it asks for more time. Answers how many.
#[derive(Clone, Debug)]
pub struct Cancel(pub Which);

impl Asked for Cancel {
    const FUNCTION: &'static str = "ot_cancel";
    type Answer = Result<u64, Declined>;

    fn arguments(&self, arguments: &mut Vec<Vec<u8>>) {
        self.0.add(arguments);
    }

    fn read(&self, what: Part<'_>) -> Result<Self::Answer, Malformed> {
        touched(&what)
    }
}

/// Ends a message that waits, as its last attempt says late. Answers 1.
#[derive(Clone, Debug)]
pub struct FinishLate {
    /// The attempt, from 1.
    pub attempt: u32,
    /// How it ended.
    pub outcome: Outcome,
    /// How the work went.
    pub report: Report,
    /// The message.
    pub which: Which,
}

impl Asked for FinishLate {
    const FUNCTION: &'static str = "ot_finish_late";
    type Answer = Result<u64, Declined>;

    fn arguments(&self, arguments: &mut Vec<Vec<u8>>) {
        arguments.extend([text(u64::from(self.attempt)), how_words(self.outcome).0.into()]);
        add_report(&self.report, arguments);
        self.which.add(arguments);
    }

    fn read(&self, what: Part<'_>) -> Result<Self::Answer, Malformed> {
        touched(&what)
    }
}

/// Puts dead letters back into their lanes. Answers how many.
#[derive(Clone, Debug)]
pub struct Replay {
    /// With another priority, as it was given.
    pub promote: Option<(Priority, Original)>,
    /// Which.
    pub which: Which,
}

impl Asked for Replay {
    const FUNCTION: &'static str = "ot_replay";
    type Answer = Result<u64, Declined>;

    fn arguments(&self, arguments: &mut Vec<Vec<u8>>) {
        add_promotion(self.promote, arguments);
        self.which.add(arguments);
    }

    fn read(&self, what: Part<'_>) -> Result<Self::Answer, Malformed> {
        touched(&what)
    }
}

/// What came from another place, as a dead letter or a record, [leaves](super::Leaving) to go back there. Answers how many.
#[derive(Clone, Debug)]
pub struct SendHome {
    /// With another priority, as it was given.
    pub promote: Option<(Priority, Original)>,
    /// Which.
    pub which: Which,
}

impl Asked for SendHome {
    const FUNCTION: &'static str = "ot_send_home";
    type Answer = Result<u64, Declined>;

    fn arguments(&self, arguments: &mut Vec<Vec<u8>>) {
        add_promotion(self.promote, arguments);
        self.which.add(arguments);
    }

    fn read(&self, what: Part<'_>) -> Result<Self::Answer, Malformed> {
        touched(&what)
    }
}

/// Takes out what stands so. Answers how many, and whether there may be more.
#[derive(Clone, Copy, Debug)]
pub struct Purge {
    /// `None`: what is ready and delayed.
    pub status: Option<Status>,
    /// Most messages.
    pub limit: u32,
}

impl Asked for Purge {
    const FUNCTION: &'static str = "ot_purge";
    type Answer = (u64, bool);

    fn arguments(&self, arguments: &mut Vec<Vec<u8>>) {
        arguments.extend([self.status.map_or("waiting", word).into(), text(self.limit)]);
    }

    fn read(&self, what: Part<'_>) -> Result<Self::Answer, Malformed> {
        let [touched, more] = what.parts()? else { return Err(Malformed) };
        Ok((Part(touched).count()?, Part(more).number()? == 1))
    }
}
