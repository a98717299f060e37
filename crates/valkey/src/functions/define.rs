//! Definitions: a log in one slot that every process reads, and the roll of processes.

use std::fmt;

use bytes::Bytes;
use redis::Value;

use super::ask::text;
use super::told::{Malformed, Part};
use crate::cluster::Call;

/// The key that everything about definitions begins with, and the channel on which a new entry is told.
pub const DEFINITIONS: &str = "{overtake}:definitions";

fn call(function: &'static str, arguments: Vec<Vec<u8>>) -> Call {
    Call::write_below(function, DEFINITIONS, arguments.into_iter().map(Bytes::from).collect())
}

/// Where definitions are in their history. Two of one version and one tag say the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    /// How many entries there were. 0: none.
    pub number: u64,
    /// Made of all entries so far, and random where the first one was written. Empty: there is none.
    pub tag: Box<str>,
}

impl Version {
    /// That of no definitions.
    #[must_use]
    pub fn none() -> Self {
        Self { number: 0, tag: "".into() }
    }

    fn arguments(self) -> [Vec<u8>; 2] {
        [text(self.number), self.tag.into_string().into_bytes()]
    }
}

/// 128 random bits, in hexadecimal.
#[must_use]
pub fn random() -> String {
    let mut bits = [0; 16];
    getrandom::fill(&mut bits).expect("the system has random bits");
    format!("{:032x}", u128::from_be_bytes(bits))
}

/// Whose a place is: the queue of this name, in the virtual host of this name, by definitions of this incarnation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Of(Box<str>);

impl Of {
    /// Of this queue.
    #[must_use]
    pub fn queue(incarnation: &str, vhost: &str, name: &str) -> Self {
        Self(format!("{incarnation}/{vhost}/{name}").into())
    }

    /// As places are told.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Where definitions are now: the version, the incarnation, which is empty where there are none, and whether some of them are lost.
fn read_where(value: &Value) -> Result<(Version, Box<str>, bool), Malformed> {
    let [number, tag, incarnation, damaged] = Part(value).parts()? else { return Err(Malformed) };
    let version = Version { number: Part(number).count()?, tag: Part(tag).text()?.into() };
    Ok((version, Part(incarnation).text()?.into(), Part(damaged).number()? == 1))
}

/// Adds an entry behind a version, if that is the last one.
#[derive(Clone, Debug)]
pub struct Define {
    /// The version.
    pub after: Version,
    /// The entry: no two are the same.
    pub entry: Vec<u8>,
}

impl Define {
    /// As a call.
    #[must_use]
    pub fn call(self) -> Call {
        let [number, tag] = self.after.arguments();
        call("ot_define", vec![number, tag, self.entry])
    }

    /// Its version, if it is the last one now.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn added(value: &Value) -> Result<Option<Version>, Malformed> {
        let [now, added] = Part(value).parts()? else { return Err(Malformed) };
        let (last, ..) = read_where(now)?;
        Ok((Part(added).number()? == 1).then_some(last))
    }
}

/// Asks for what was said after a version.
#[derive(Clone, Debug)]
pub struct Read {
    /// The version; none: everything.
    pub after: Version,
    /// Most entries.
    pub limit: u32,
}

/// What was said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Defined {
    /// The version of the last entry there is.
    pub last: Version,
    /// The incarnation of the definitions. Empty: there are none.
    pub incarnation: Box<str>,
    /// Some of them are lost, and nothing else is said.
    pub is_damaged: bool,
    /// The entries are those after this version.
    pub after: Version,
    /// What was true then, where they do not go on from what was asked for.
    pub base: Option<Vec<u8>>,
    /// Entries, in order, each with the tag of its version.
    pub entries: Vec<(Vec<u8>, Box<str>)>,
}

impl Read {
    /// As a call.
    #[must_use]
    pub fn call(self) -> Call {
        let [number, tag] = self.after.arguments();
        let call = call("ot_defined", vec![number, tag, text(self.limit)]);
        Call { is_write: false, ..call }
    }

    /// What it comes to, of what was asked for after this version.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn read(value: &Value, after: &Version) -> Result<Defined, Malformed> {
        let [now, since, root, base, entries, tags] = Part(value).parts()? else { return Err(Malformed) };
        let (last, incarnation, is_damaged) = read_where(now)?;
        let base = if let Value::Nil = base { None } else { Some(Part(base).bytes()?.to_vec()) };
        let after = match &base {
            None => after.clone(),
            Some(_) => Version { number: Part(since).count()?, tag: Part(root).text()?.into() },
        };
        let entries = Part(entries).parts()?.iter().zip(Part(tags).parts()?);
        let entries =
            entries.map(|(entry, tag)| Ok((Part(entry).bytes()?.to_vec(), Part(tag).text()?.into())));
        let entries = entries.collect::<Result<_, Malformed>>()?;
        Ok(Defined { last, incarnation, is_damaged, after, base, entries })
    }
}

/// Says all that is true at a version in one.
#[derive(Clone, Debug)]
pub struct Rebase {
    /// The version.
    pub at: Version,
    /// What is true.
    pub base: Vec<u8>,
}

impl Rebase {
    /// As a call.
    #[must_use]
    pub fn call(self) -> Call {
        let [number, tag] = self.at.arguments();
        call("ot_rebase", vec![number, tag, self.base])
    }
}

/// Has definitions begin, or those that went back or are damaged be of a version, and say this.
#[derive(Clone, Debug)]
pub struct Restate {
    /// Where they are now; nothing is done where they are elsewhere.
    pub now: Version,
    /// The incarnation.
    pub incarnation: Box<str>,
    /// The version that they have from now on.
    pub at: Version,
    /// What is true.
    pub base: Vec<u8>,
}

impl Restate {
    /// As a call.
    #[must_use]
    pub fn call(self) -> Call {
        let ([now, tag], [number, new_tag]) = (self.now.arguments(), self.at.arguments());
        let incarnation = self.incarnation.into_string().into_bytes();
        call("ot_restate", vec![now, tag, incarnation, number, new_tag, self.base])
    }

    /// Whether it is done.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn is_done(value: &Value) -> Result<bool, Malformed> {
        Ok(Part(value).number()? == 1)
    }
}

/// A process of a broker, by a name of 128 random bits: none that comes later has the same, whatever the servers forget.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Process(Box<str>);

impl Process {
    /// A new one.
    #[must_use]
    pub fn random() -> Self {
        Self(random().into())
    }

    /// The one of this name.
    pub(super) fn named(name: &str) -> Self {
        Self(name.into())
    }

    /// Its name for people: the first eight digits.
    #[must_use]
    pub fn short(&self) -> &str {
        self.0.get(..8).unwrap_or(&self.0)
    }

    /// Its name at places.
    #[must_use]
    pub fn caller(&self) -> String {
        format!("p{}", self.0)
    }

    /// The upper half of the numbers of its sessions: 32 of the bits, or the number of a process of a version that counted them.
    #[must_use]
    pub fn number(&self) -> u32 {
        let bits = self.0.get(..8).and_then(|digits| u32::from_str_radix(digits, 16).ok());
        bits.filter(|_| self.0.len() == 32).or_else(|| self.0.parse().ok()).unwrap_or_default()
    }
}

impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A process is there, or gone.
#[derive(Clone, Debug)]
pub struct Enrol {
    /// The process.
    pub process: Process,
    /// It is believed to be there for so long from now, ms; 0: it is gone.
    pub ms: u64,
    /// The incarnation of the definitions that it knows; empty: it knows none yet.
    pub incarnation: Box<str>,
}

/// Who is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Enrolled {
    /// Whether the servers knew the process before this, and their definitions are of the incarnation that it knows: a new one they do not.
    pub was_known: bool,
    /// How many others are there.
    pub others: u64,
    /// Those that are gone without a word, until somebody says of each that it is gone.
    pub gone: Vec<Process>,
    /// There are no definitions, and so many processes were told that: they may have known some.
    pub told: u64,
}

impl Enrol {
    /// As a call.
    #[must_use]
    pub fn call(self) -> Call {
        let words = [self.process.0, self.ms.to_string().into(), self.incarnation, random().into()];
        let call = call("ot_enrol", words.map(|word| word.into_string().into_bytes()).to_vec());
        Call { is_promise: false, ..call }
    }

    /// What it comes to.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn read(value: &Value) -> Result<Enrolled, Malformed> {
        let [was_known, others, gone, told] = Part(value).parts()? else { return Err(Malformed) };
        let process = |part: &Value| Ok(Process(Part(part).text()?.into()));
        let gone = Part(gone).parts()?.iter().map(process).collect::<Result<_, _>>()?;
        let (was_known, others) = (Part(was_known).count()? > 0, Part(others).count()?);
        Ok(Enrolled { was_known, others, gone, told: Part(told).count()? })
    }
}

/// How a transaction over several places ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// All of it is done.
    Commit,
    /// Nothing of it is.
    Abort,
}

/// Decides how a transaction ends, unless that is decided. It is remembered for a day.
#[derive(Clone, Debug)]
pub struct Decide {
    /// The transaction.
    pub name: String,
    /// How.
    pub decision: Decision,
}

impl Decide {
    /// As a call, in a slot of the transaction's own.
    #[must_use]
    pub fn call(self) -> Call {
        let word = match self.decision {
            Decision::Commit => "commit",
            Decision::Abort => "abort",
        };
        Call::write("ot_decide", vec![format!("{{{}}}:decision", self.name).into()], vec![word.into()])
    }

    /// What was decided.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn read(value: &Value) -> Result<Decision, Malformed> {
        match Part(value).bytes()? {
            b"commit" => Ok(Decision::Commit),
            b"abort" => Ok(Decision::Abort),
            _ => Err(Malformed),
        }
    }
}
