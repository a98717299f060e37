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

/// Adds an entry behind a version, if that is the last one.
#[derive(Clone, Debug)]
pub struct Define {
    /// The version.
    pub after: u64,
    /// The entry: no two are the same.
    pub entry: Vec<u8>,
}

impl Define {
    /// As a call.
    #[must_use]
    pub fn call(self) -> Call {
        call("ot_define", vec![text(self.after), self.entry])
    }

    /// Whether it is the last one now.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn is_added(value: &Value) -> Result<bool, Malformed> {
        let [_, added] = Part(value).parts()? else { return Err(Malformed) };
        Ok(Part(added).number()? == 1)
    }
}

/// Asks for what was said after a version.
#[derive(Clone, Copy, Debug)]
pub struct Read {
    /// The version; 0: everything.
    pub after: u64,
    /// Most entries.
    pub limit: u32,
}

/// What was said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Defined {
    /// The version of the last entry there is.
    pub last: u64,
    /// The entries are those after this version.
    pub after: u64,
    /// What was true then, where it must be known anew.
    pub base: Option<Vec<u8>>,
    /// Entries, in order.
    pub entries: Vec<Vec<u8>>,
}

impl Read {
    /// As a call.
    #[must_use]
    pub fn call(self) -> Call {
        let call = call("ot_defined", vec![text(self.after), text(self.limit)]);
        Call { is_write: false, ..call }
    }

    /// What it comes to.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn read(value: &Value) -> Result<Defined, Malformed> {
        let [last, after, base, entries] = Part(value).parts()? else { return Err(Malformed) };
        let base = if let Value::Nil = base { None } else { Some(Part(base).bytes()?.to_vec()) };
        let entries = Part(entries).parts()?.iter().map(|entry| Ok(Part(entry).bytes()?.to_vec()));
        Ok(Defined {
            last: Part(last).count()?,
            after: Part(after).count()?,
            base,
            entries: entries.collect::<Result<_, Malformed>>()?,
        })
    }
}

/// Says all that is true at a version in one.
#[derive(Clone, Debug)]
pub struct Rebase {
    /// The version.
    pub at: u64,
    /// What is true.
    pub base: Vec<u8>,
}

impl Rebase {
    /// As a call.
    #[must_use]
    pub fn call(self) -> Call {
        call("ot_rebase", vec![text(self.at), self.base])
    }
}

/// A process of a broker, by a name of 128 random bits: none that comes later has the same, whatever the servers forget.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Process(Box<str>);

impl Process {
    /// A new one.
    #[must_use]
    pub fn random() -> Self {
        let mut bits = [0; 16];
        getrandom::fill(&mut bits).expect("the system has random bits");
        Self(format!("{:032x}", u128::from_be_bytes(bits)).into())
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
}

/// Who is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Enrolled {
    /// Whether the servers knew the process before this: a new one they do not.
    pub was_known: bool,
    /// How many others are there.
    pub others: u64,
    /// Those that are gone without a word, until somebody says of each that it is gone.
    pub gone: Vec<Process>,
}

impl Enrol {
    /// As a call.
    #[must_use]
    pub fn call(self) -> Call {
        call("ot_enrol", vec![self.process.0.into_string().into_bytes(), text(self.ms)])
    }

    /// What it comes to.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn read(value: &Value) -> Result<Enrolled, Malformed> {
        let [was_known, others, gone] = Part(value).parts()? else { return Err(Malformed) };
        let process = |part: &Value| Ok(Process(Part(part).text()?.into()));
        let gone = Part(gone).parts()?.iter().map(process).collect::<Result<_, _>>()?;
        Ok(Enrolled { was_known: Part(was_known).count()? > 0, others: Part(others).count()?, gone })
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
