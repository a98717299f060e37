//! What a move has under way, in a file, so that a move that was cut off goes on and nothing comes twice.
//!
//! Whoever dies between the publish there and the removal here leaves messages in both places. The next run finds them here again, and in the
//! file by which number they were published; there they are known by it. A message is told from others by its sequence and the moment it was
//! published: sequences are used again where a queue is made anew. Invariant: nothing is published before its number is in the file.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::failure::{Exit, Failure};

/// Which message of the queue.
type Which = (u64, String);

/// A message that is perhaps in both places.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct InDoubt {
    seq: u64,
    published_at: String,
    producer: String,
    number: u64,
    /// Of its lease here.
    receipt: Option<String>,
}

/// The file.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Kept {
    from: String,
    to: String,
    /// This move paused the queue.
    paused: bool,
    in_doubt: Vec<InDoubt>,
}

/// The file, and what it says.
#[derive(Debug)]
pub(super) struct Ledger {
    path: PathBuf,
    from: String,
    to: String,
    producer: String,
    next: u64,
    paused: bool,
    /// No run before left a message in doubt.
    is_new: bool,
    in_doubt: BTreeMap<Which, InDoubt>,
}

impl Ledger {
    /// That of a move from here to there: what a run before left, or nothing yet.
    ///
    /// # Errors
    /// When the file cannot be read, or is of another move.
    pub(super) fn open(path: PathBuf, from: String, to: String) -> Result<Self, Failure> {
        let kept = match fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|why| {
                bad(&path, format!("cannot be read: {why}"))
                    .hint("name another file with --state; what was under way may then come there twice")
            })?,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                Kept { from: from.clone(), to: to.clone(), ..Kept::default() }
            }
            Err(error) => return Err(bad(&path, format!("cannot be read: {error}"))),
        };
        if (&kept.from, &kept.to) != (&from, &to) {
            let what = format!("is of a move from {} to {}", kept.from, kept.to);
            return Err(bad(&path, what).hint("finish that one first, or name another file with --state"));
        }
        let is_new = kept.in_doubt.is_empty();
        let in_doubt =
            kept.in_doubt.into_iter().map(|one| (which(one.seq, &one.published_at), one)).collect();
        Ok(Self { path, from, to, producer: name(), next: 0, paused: kept.paused, is_new, in_doubt })
    }

    /// The receipts of leases that a run before held.
    pub(super) fn receipts(&self) -> Vec<&str> {
        self.in_doubt.values().filter_map(|one| one.receipt.as_deref()).collect()
    }

    /// Whether messages are perhaps in both places.
    pub(super) fn has_any_in_doubt(&self) -> bool {
        !self.in_doubt.is_empty()
    }

    /// Whether this move paused the queue, in this run or one before.
    pub(super) fn has_paused(&self) -> bool {
        self.paused
    }

    /// That this move pauses the queue, or does no more. Durable when it returns.
    pub(super) fn pauses(&mut self, paused: bool) -> Result<(), Failure> {
        self.paused = paused;
        self.write()
    }

    /// By which number each is published: as the API takes it. Durable when it returns.
    pub(super) fn number(&mut self, messages: &[Value]) -> Result<Vec<Value>, Failure> {
        let floor = self.next;
        let mut numbers = Vec::with_capacity(messages.len());
        for message in messages {
            let which = of(message);
            let receipt = message["receipt"].as_str().map(str::to_owned);
            let (producer, next) = (&self.producer, &mut self.next);
            let one = self.in_doubt.entry(which.clone()).or_insert_with(|| {
                let number = *next;
                *next += 1;
                InDoubt {
                    seq: which.0,
                    published_at: which.1,
                    producer: producer.clone(),
                    number,
                    receipt: None,
                }
            });
            one.receipt = receipt;
            let floor = if one.producer == self.producer { floor } else { 0 };
            numbers.push(json!({ "name": one.producer, "sequence": one.number, "floor": floor }));
        }
        self.write()?;
        Ok(numbers)
    }

    /// It is there, and here no more. Written with what is under way next.
    pub(super) fn is_over(&mut self, message: &Value) {
        self.in_doubt.remove(&of(message));
    }

    /// The broker there declined all of these: none is in doubt, but those that a run before may have published.
    pub(super) fn are_not_there(&mut self, messages: &[Value]) {
        if self.is_new {
            messages.iter().for_each(|message| self.is_over(message));
        }
    }

    /// None of the messages that were in doubt is here: others had what this run did not find.
    pub(super) fn none_is_here(&mut self) {
        self.in_doubt.clear();
    }

    /// Nothing is under way: the file goes, unless something is still in doubt.
    pub(super) fn close(self) -> Result<(), Failure> {
        if !self.in_doubt.is_empty() || self.paused {
            return self.write();
        }
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(bad(&self.path, format!("cannot be removed: {error}")))
            }
            _ => Ok(()),
        }
    }

    /// In place of what was there, or not at all.
    fn write(&self) -> Result<(), Failure> {
        let in_doubt = self.in_doubt.values().cloned().collect();
        let kept = Kept { from: self.from.clone(), to: self.to.clone(), paused: self.paused, in_doubt };
        let beside = self.path.with_added_extension("new");
        let written = || {
            let mut file = File::create(&beside)?;
            file.write_all(&serde_json::to_vec(&kept)?)?;
            file.sync_all()?;
            fs::rename(&beside, &self.path)?;
            let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
            File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
        };
        written().map_err(|error: std::io::Error| {
            bad(&self.path, format!("cannot be written: {error}")).hint(
                "nothing was moved since; name a file that can be written with --state, and run it again",
            )
        })
    }
}

/// A name that no producer has.
fn name() -> String {
    format!("move-{:016x}", RandomState::new().build_hasher().finish())
}

fn which(seq: u64, published_at: &str) -> Which {
    (seq, published_at.to_owned())
}

fn of(message: &Value) -> Which {
    // As text, or, from a broker of a version before this, as a number.
    let seq = &message["seq"];
    let seq = seq.as_u64().or_else(|| seq.as_str()?.parse().ok()).unwrap_or_default();
    which(seq, message["published_at"].as_str().unwrap_or_default())
}

fn bad(path: &Path, what: String) -> Failure {
    Failure::new(Exit::Error, format!("{} {what}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(path: &Path) -> Ledger {
        Ledger::open(path.to_owned(), "a".to_owned(), "b".to_owned()).expect("it can be read")
    }

    fn message(seq: u64, minute: u32) -> Value {
        json!({ "seq": seq, "published_at": format!("12:{minute}"), "receipt": format!("r{seq}") })
    }

    #[test]
    fn what_was_under_way_keeps_its_number_and_another_message_of_its_sequence_gets_its_own() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("state");
        let mut ledger = open(&path);
        let first = ledger.number(&[message(7, 1), message(8, 1)]).expect("it is written");
        ledger.is_over(&message(8, 1));
        let second = ledger.number(&[message(9, 1)]).expect("it is written");
        assert_eq!(second[0]["sequence"], 2);
        drop(ledger);

        let mut ledger = open(&path);
        assert_eq!(ledger.receipts(), ["r7", "r9"]);
        let again = ledger.number(&[message(7, 2), message(7, 1), message(9, 1)]).expect("it is written");
        assert_ne!(again[0]["name"], first[0]["name"], "another message has a number of this run");
        let known = |number: &Value| (number["name"].clone(), number["sequence"].clone());
        assert_eq!((known(&again[1]), known(&again[2])), (known(&first[0]), known(&second[0])));

        ledger.is_over(&message(7, 1));
        ledger.is_over(&message(7, 2));
        ledger.close().expect("it is written");
        let mut ledger = open(&path);
        assert_eq!(ledger.receipts(), ["r9"]);
        ledger.none_is_here();
        ledger.close().expect("it is removed");
        assert!(!path.exists(), "nothing is in doubt");
    }

    #[test]
    fn a_file_of_another_move_or_no_file_of_a_move_is_not_taken() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("state");
        open(&path).pauses(true).expect("it is written");
        assert!(open(&path).has_paused());
        let other = Ledger::open(path.clone(), "a".to_owned(), "c".to_owned()).expect_err("it is of another");
        assert!(other.what().ends_with("is of a move from a to b"), "{}", other.what());
        fs::write(&path, "{").expect("it is written");
        Ledger::open(path, "a".to_owned(), "b".to_owned()).expect_err("it cannot be read");
    }
}
