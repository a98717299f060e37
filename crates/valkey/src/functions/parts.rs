//! Messages and settlements that are done together: in one place, or in several, where each first says that it can.

use bytes::Bytes;
use overtake_lane::{LeaseId, Origin, Original, Outcome, Part as Fault, Priority, Seq};
use redis::Value as Reply;
use serde_json::{Map, Value, json};

use super::arrival::Arrival;
use super::ask::{Asked, given, how_words, maybe, text};
use super::told::{Admitted, Declined, Malformed, Part};

/// A message to admit.
#[derive(Clone, Debug)]
pub struct Admission {
    /// What it means here.
    pub priority: Priority,
    /// What was given.
    pub original: Original,
    /// The id its publisher gave it.
    pub id: Option<Box<str>>,
    /// Its key.
    pub key: Option<Box<str>>,
    /// The weight that its publisher gave its key.
    pub key_weight: Option<u32>,
    /// Its own time to live, ms.
    pub ttl_ms: Option<u64>,
    /// The time to live that stands in for the queue's, ms.
    pub base_ttl_ms: Option<u64>,
    /// Not before so many ms from now.
    pub delay_ms: u64,
    /// Bytes that count against limits.
    pub bytes: u32,
    /// What it says.
    pub content: Bytes,
    /// If its producer numbers what it publishes, how: what was taken here by a number is not taken again.
    pub origin: Option<Box<Origin>>,
    /// When its publisher says that it comes, µs since 1970: what orders it among messages of other places ([`Terms::of_several`](super::Terms::of_several)). `None`, or
    /// more than a second off: as the server says.
    pub at: Option<u64>,
    /// If it left another place, how, and nobody numbered it: only for [`Admit`](super::Admit).
    pub arrival: Option<Box<Arrival>>,
}

impl Admission {
    pub(super) fn add(&self, arguments: &mut Vec<Vec<u8>>) {
        let key = self.key.as_deref().map(|key| [b"k", key.as_bytes()].concat());
        arguments.extend([
            text(self.priority.0),
            given(self.original),
            self.id.as_deref().unwrap_or_default().into(),
            key.unwrap_or_default(),
            maybe(self.ttl_ms),
            maybe(self.base_ttl_ms),
            text(self.delay_ms),
            text(self.bytes),
            self.content.to_vec(),
            self.further().into_bytes(),
        ]);
    }

    fn further(&self) -> String {
        /// Numbers by which a place keeps those that are taken together.
        const BLOCK: u64 = 4_096;
        let origin = self.origin.as_ref().map(|origin| {
            let (sequence, floor) = (origin.sequence(), origin.floor());
            let [block, least] = [sequence, floor].map(|number| (number / BLOCK, number % BLOCK));
            json!([origin.producer(), block.0, block.1, least.0, least.1])
        });
        let mut said = self.arrival.as_ref().map_or_else(Map::new, |arrival| arrival.json());
        said.extend(origin.map(|origin| ("origin".to_owned(), origin)));
        said.extend(self.at.map(|at| ("at".to_owned(), at.into())));
        said.extend(self.key_weight.map(|weight| ("key_weight".to_owned(), weight.into())));
        if said.is_empty() { String::new() } else { Value::Object(said).to_string() }
    }
}

/// What a place does of a transaction.
#[derive(Clone, Debug, Default)]
pub struct Parts {
    /// What is published there.
    pub messages: Vec<Admission>,
    /// Then the leases that end.
    pub settlements: Vec<(Outcome, Seq, LeaseId)>,
}

impl Parts {
    fn add(&self, arguments: &mut Vec<Vec<u8>>) {
        arguments.push(text(self.messages.len()));
        self.messages.iter().for_each(|message| message.add(arguments));
        for (outcome, seq, lease) in &self.settlements {
            let (how, delay_ms) = how_words(*outcome);
            arguments.extend([how.into(), maybe(delay_ms), text(seq.0), text(lease.0)]);
        }
    }

    /// Which of them is refused, and why, if that is what is said.
    fn fault(what: Part<'_>) -> Result<Option<AtFault>, Malformed> {
        let [why @ Reply::BulkString(word), at] = what.parts()? else { return Ok(None) };
        let at = usize::try_from(Part(at).number()?).map_err(|_| Malformed)?;
        if word == b"stale_receipt" {
            return Ok(Some(AtFault { part: Fault::Settlement(at), why: Declined::STALE }));
        }
        Ok(Some(AtFault { part: Fault::Publish(at), why: Part(why).declined()? }))
    }
}

/// A part that cannot be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AtFault {
    /// Which.
    pub part: Fault,
    /// Why.
    pub why: Declined,
}

fn read_admitted(what: Part<'_>) -> Result<Vec<Option<Admitted>>, Malformed> {
    what.parts()?.iter().map(|part| Admitted::read_some(Part(part).parts()?)).collect()
}

/// Does all of it in one place, or none.
#[derive(Clone, Debug)]
pub struct Transact {
    /// What.
    pub parts: Parts,
    /// Says how many messages are ahead.
    pub tells: bool,
}

impl Asked for Transact {
    const FUNCTION: &'static str = "ot_transact";
    /// One for each message; `None`: it was taken before, by its number.
    type Answer = Result<Vec<Option<Admitted>>, AtFault>;

    fn function(&self) -> &'static str {
        if self.parts.messages.is_empty() { "ot_settle_all" } else { Self::FUNCTION }
    }

    fn arguments(&self, arguments: &mut Vec<Vec<u8>>) {
        arguments.push(text(u8::from(self.tells)));
        self.parts.add(arguments);
    }

    fn read(&self, what: Part<'_>) -> Result<Self::Answer, Malformed> {
        match Parts::fault(what)? {
            Some(fault) => Ok(Err(fault)),
            None => read_admitted(what).map(Ok),
        }
    }
}

/// Keeps a part of a transaction of several places: what it takes is there when it is [committed](Commit).
#[derive(Clone, Debug)]
pub struct Prepare {
    /// The transaction.
    pub name: String,
    /// When its end is overdue, ms from now.
    pub within_ms: u64,
    /// What.
    pub parts: Parts,
}

impl Asked for Prepare {
    const FUNCTION: &'static str = "ot_prepare";
    type Answer = Result<(), AtFault>;

    fn function(&self) -> &'static str {
        if self.parts.messages.is_empty() { "ot_prepare_settlements" } else { Self::FUNCTION }
    }

    fn arguments(&self, arguments: &mut Vec<Vec<u8>>) {
        arguments.extend([self.name.clone().into_bytes(), text(self.within_ms)]);
        self.parts.add(arguments);
    }

    fn read(&self, what: Part<'_>) -> Result<Self::Answer, Malformed> {
        Ok(Parts::fault(what)?.map_or(Ok(()), Err))
    }
}

/// Does what was prepared. Answers nothing where that was done before.
#[derive(Clone, Debug)]
pub struct Commit {
    /// The transaction.
    pub name: String,
    /// Says how many messages are ahead.
    pub tells: bool,
}

impl Asked for Commit {
    const FUNCTION: &'static str = "ot_commit";
    /// One for each message; `None`: it was taken before, by its number.
    type Answer = Vec<Option<Admitted>>;

    fn arguments(&self, arguments: &mut Vec<Vec<u8>>) {
        arguments.extend([self.name.clone().into_bytes(), text(u8::from(self.tells))]);
    }

    fn read(&self, what: Part<'_>) -> Result<Self::Answer, Malformed> {
        read_admitted(what)
    }
}

/// Does nothing of what was prepared.
#[derive(Clone, Debug)]
pub struct Abort {
    /// The transaction.
    pub name: String,
}

impl Asked for Abort {
    const FUNCTION: &'static str = "ot_abort";
    type Answer = ();

    fn arguments(&self, arguments: &mut Vec<Vec<u8>>) {
        arguments.push(self.name.clone().into_bytes());
    }

    fn read(&self, _: Part<'_>) -> Result<(), Malformed> {
        Ok(())
    }
}

/// Transactions whose end is overdue.
#[derive(Clone, Copy, Debug)]
pub struct Overdue;

impl Asked for Overdue {
    const FUNCTION: &'static str = "ot_overdue";
    const IS_PROMISE: bool = false;
    type Answer = Vec<String>;

    fn arguments(&self, _: &mut Vec<Vec<u8>>) {}

    fn read(&self, what: Part<'_>) -> Result<Self::Answer, Malformed> {
        what.parts()?.iter().map(|name| Ok(Part(name).text()?.to_owned())).collect()
    }
}
