//! What is asked, and what becomes of it.

use std::fmt;

use bytes::Bytes;
use overtake_peer::redis::Fault;
use redis::{Cmd, cmd};

use super::slot::Slot;

/// A function of a library, its keys, all of one slot, and its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Where its keys are.
    pub slot: Slot,
    /// Its name.
    pub function: &'static str,
    /// What it reads or writes.
    pub keys: Vec<Bytes>,
    /// What else it is told.
    pub args: Vec<Bytes>,
    /// A call that says it is none must be to a function with the flag `no-writes`.
    pub is_write: bool,
    /// The effect must outlive the primary: such a write waits for replicas, any other is answered as soon as the primary has done it.
    pub is_promise: bool,
    /// Where it is not known whether it was done, it is asked for again: it must be that doing it twice is doing it once.
    pub retry_in_doubt: bool,
}

impl Call {
    /// One that writes, once however often it is done.
    ///
    /// # Panics
    /// Without a key: then say the slot.
    #[must_use]
    pub fn write(function: &'static str, keys: Vec<Bytes>, args: Vec<Bytes>) -> Self {
        let slot = Slot::of(keys.first().expect("a call without keys says its slot"));
        Self { slot, function, keys, args, is_write: true, is_promise: true, retry_in_doubt: true }
    }

    /// One that writes, once however often it is done, at keys that all begin with `base`; which of them are there the function alone knows.
    ///
    /// While a slot is on its way each of two nodes has some of its keys, and a node looks only for those that a call names. So another is named that nobody ever writes: then neither node does the call
    /// (`ASK` here, `TRYAGAIN` there) before all of the slot has come, and the function never takes a part for the whole.
    #[must_use]
    pub fn write_below(function: &'static str, base: &str, args: Vec<Bytes>) -> Self {
        Self::write(function, vec![base.to_owned().into(), format!("{base}:nothing").into()], args)
    }

    /// One that only reads.
    ///
    /// # Panics
    /// Without a key: then say the slot.
    #[must_use]
    pub fn read(function: &'static str, keys: Vec<Bytes>, args: Vec<Bytes>) -> Self {
        Self { is_write: false, ..Self::write(function, keys, args) }
    }

    /// Whether its answer waits for what [`Durability`](super::Durability) says.
    pub(super) fn waits(&self) -> bool {
        self.is_write && self.is_promise
    }

    pub(super) fn command(&self) -> Cmd {
        let len = self.keys.iter().chain(&self.args).map(Bytes::len).sum::<usize>();
        let mut command = Cmd::with_capacity(3 + self.keys.len() + self.args.len(), len + 32);
        command.arg(if self.is_write { "FCALL" } else { "FCALL_RO" });
        command.arg(self.function).arg(self.keys.len());
        for part in self.keys.iter().chain(&self.args) {
            command.arg(&part[..]);
        }
        command
    }

    /// Bytes it takes on its way, nearly.
    pub(super) fn len(&self) -> usize {
        self.keys.iter().chain(&self.args).map(|part| part.len() + 16).sum::<usize>()
            + self.function.len()
            + 32
    }
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallError {
    /// The function said no, or the server before it. Asking again as it stands will not help.
    Refused(Fault),
    /// It was not done, and why not, as a phrase.
    NotDone(String),
    /// It may have been done, or not, or may be lost again; and why that is not known, as a phrase.
    InDoubt(String),
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(fault) => {
                write!(f, "the server answers {} {}", fault.code(), fault.details())?;
                match fault.code() {
                    "OOM" => f.write_str("; give it more memory (maxmemory), or let what waits be consumed"),
                    "NOPERM" => f.write_str("; give the user this right (ACL SETUSER)"),
                    _ => Ok(()),
                }
            }
            Self::NotDone(why) => write!(f, "it was not done: {why}"),
            Self::InDoubt(why) => write!(f, "it is not known whether it was done: {why}"),
        }
    }
}

impl std::error::Error for CallError {}

pub(super) fn asking() -> Cmd {
    cmd("ASKING")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_a_command_and_reads_are_told_from_writes() {
        let call = Call::write("admit", vec!["{p}q".into()], vec!["1".into(), "".into()]);
        let packed = call.command().get_packed_command();
        let text = "*6\r\n$5\r\nFCALL\r\n$5\r\nadmit\r\n$1\r\n1\r\n$4\r\n{p}q\r\n$1\r\n1\r\n$0\r\n\r\n";
        assert_eq!(String::from_utf8_lossy(&packed), text);
        let read = Call { is_write: false, ..call };
        assert!(read.command().get_packed_command().starts_with(b"*6\r\n$8\r\nFCALL_RO\r\n"));
    }

    #[test]
    fn an_error_says_what_to_do() {
        let full = CallError::Refused(Fault::new("OOM", "command not allowed"));
        assert!(full.to_string().contains("more memory"), "{full}");
    }
}
