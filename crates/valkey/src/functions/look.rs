//! A look at a bounded number of messages, and where the next one goes on.

use overtake_lane::{Seq, Status};

use super::ask::{Asked, maybe, text, word};
use super::told::{Malformed, Part, Shown};

/// Most messages that one [`Look`] answers. Where a place has more than 32 lanes, or messages are large and their contents are asked for, it answers fewer.
pub const LOOKS_MAX: u32 = 128;

/// A list of messages of a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum List {
    /// All messages that stand so.
    Standing(Status),
    /// The ready messages of the lane of this level.
    Lane(i32),
}

/// Looks at messages by sequence, at no more than [`LOOKS_MAX`], however many there are.
#[derive(Clone, Debug)]
pub struct Look {
    /// The last ones first.
    pub newest: bool,
    /// Where the look before ended.
    pub after: Option<Seq>,
    /// Most messages, 1 or more.
    pub most: u32,
    /// With their contents: of no more than 1 MiB in all, but for the first.
    pub with_content: bool,
    /// The lists that are looked through.
    pub lists: Vec<List>,
}

/// The messages that a [`Look`] saw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Looked {
    /// Where to go on; `None`: nothing is left.
    pub next: Option<Seq>,
    /// The messages, in the order that was asked for.
    pub shown: Vec<Shown>,
}

impl Asked for Look {
    const FUNCTION: &'static str = "ot_look";
    const IS_PROMISE: bool = false;
    type Answer = Looked;

    fn arguments(&self, arguments: &mut Vec<Vec<u8>>) {
        arguments.push(if self.newest { b"newest".to_vec() } else { b"published".to_vec() });
        arguments.push(maybe(self.after.map(|after| after.0)));
        arguments.extend([text(self.most), text(u8::from(self.with_content))]);
        arguments.extend(self.lists.iter().map(|list| match list {
            List::Standing(status) => word(*status).into(),
            List::Lane(level) => text(level),
        }));
    }

    fn read(&self, what: Part<'_>) -> Result<Self::Answer, Malformed> {
        let [next, shown] = what.parts()? else { return Err(Malformed) };
        let next = Part(next).some(|next| Ok(Seq(next.count()?)))?;
        let shown = Part(shown).parts()?.iter().map(|part| Shown::read(&Part(part)));
        Ok(Looked { next, shown: shown.collect::<Result<_, _>>()? })
    }
}

/// Finds one message. A dead letter that gave up its id to another message is found by its sequence only.
#[derive(Clone, Debug)]
pub struct Find {
    /// The id that the message is called by: that of its publisher, else `seq-` and its sequence.
    pub id: Box<str>,
}

/// A message that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Single {
    /// The message, with its content.
    pub shown: Shown,
    /// The level of its lane.
    pub level: i32,
    /// How many messages of the partition go before it, in all and in its lane; `None`: that is not known.
    pub position: (Option<u64>, Option<u64>),
}

impl Asked for Find {
    const FUNCTION: &'static str = "ot_find";
    const IS_PROMISE: bool = false;
    type Answer = Option<Single>;

    fn arguments(&self, arguments: &mut Vec<Vec<u8>>) {
        arguments.push(self.id.as_bytes().to_vec());
    }

    fn read(&self, what: Part<'_>) -> Result<Self::Answer, Malformed> {
        let [shown, level, ahead, in_lane] = what.parts()? else {
            return if what.parts()?.is_empty() { Ok(None) } else { Err(Malformed) };
        };
        let known = |part| Ok(u64::try_from(Part(part).number()?).ok());
        Ok(Some(Single {
            shown: Shown::read(&Part(shown))?,
            level: i32::try_from(Part(level).number()?).map_err(|_| Malformed)?,
            position: (known(ahead)?, known(in_lane)?),
        }))
    }
}

/// Counts the ready messages that go before a sequence in the lane of a level, where the most urgent lane goes first. Answers how many, in all and in the lane.
#[derive(Clone, Copy, Debug)]
pub struct Ahead {
    /// The level of the lane.
    pub level: i32,
    /// The sequence.
    pub seq: Seq,
}

impl Asked for Ahead {
    const FUNCTION: &'static str = "ot_ahead";
    const IS_PROMISE: bool = false;
    type Answer = (u64, u64);

    fn arguments(&self, arguments: &mut Vec<Vec<u8>>) {
        arguments.extend([text(self.level), text(self.seq.0)]);
    }

    fn read(&self, what: Part<'_>) -> Result<Self::Answer, Malformed> {
        let [ahead, in_lane] = what.parts()? else { return Err(Malformed) };
        Ok((Part(ahead).count()?, Part(in_lane).count()?))
    }
}
