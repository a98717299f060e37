//! Calls that go out in one write, and the wait behind them.
//!
//! ```text
//!  FCALL …  [ASKING] FCALL …  FCALL_RO …  │  FCALL overtake_mark  WAIT n t  [WAITAOF 1 n t]
//! ```
//!
//! `WAIT` waits for what its own connection wrote, and from Redis 7.2 and Valkey 7.2 on a call that finds its work done writes nothing: it would be confirmed while what was
//! done earlier, over a connection that broke, is on no replica. So something is written before each `WAIT`, the mark, into any slot of the node;
//! replicas acknowledge all that came before it, whoever wrote it.

use std::collections::VecDeque;

use overtake_peer::redis::Fault;
use redis::{Value, cmd};
use tokio::time::Instant;

use super::asked::Errand;
use super::call::asking;
use super::nodes::Durability;

/// Most calls in one write.
const CALLS_MAX: usize = 512;
/// Most bytes in one write, but for a single call that has more.
const LEN_MAX: usize = 1 << 20;

/// A call for a lane.
pub(super) struct Entry {
    pub(super) errand: Errand,
    /// It is to be asked for here, though its slot is elsewhere.
    pub(super) is_asking: bool,
}

/// A write that was done, and that not enough replicas have.
pub(super) struct Unacked {
    pub(super) entry: Entry,
    pub(super) value: Value,
    /// When it was written.
    pub(super) since: Instant,
}

/// A call, and what the server says to it.
pub(super) type Answered = (Entry, Result<Value, Fault>);

/// What is to be written before a wait.
pub(super) struct Mark {
    pub(super) function: String,
    pub(super) key: String,
    pub(super) is_asking: bool,
}

/// Calls that are written together.
pub(super) struct Batch {
    pub(super) entries: Vec<Entry>,
    /// Of earlier batches.
    pub(super) unacked: Vec<Unacked>,
    durability: Option<Durability>,
    is_mark_asking: bool,
    answers: Vec<Result<Value, Fault>>,
    expected: usize,
    pub(super) sent_at: Instant,
}

/// What the wait behind a batch came to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Wait {
    /// Nothing was written.
    None,
    /// All writes before it are where they must be.
    Enough,
    /// They are not, and why, as a phrase.
    Short(String),
    /// Nothing could be marked, so it says nothing.
    Unmarked(Fault),
}

/// What is gathered of a queue for one write, and what nobody waits for any more.
pub(super) fn gather(queue: &mut VecDeque<Entry>) -> (Vec<Entry>, Vec<Entry>) {
    let (mut taken, mut over, mut len) = (Vec::new(), Vec::new(), 0);
    while let Some(entry) = queue.front() {
        len += entry.errand.call().len();
        let is_full = taken.len() == CALLS_MAX || len > LEN_MAX;
        if is_full && !taken.is_empty() {
            break;
        }
        let entry = queue.pop_front().expect("it was looked at");
        if entry.errand.set_out() { taken.push(entry) } else { over.push(entry) }
    }
    (taken, over)
}

impl Batch {
    /// With the bytes to write, behind what is there.
    pub(super) fn new(
        entries: Vec<Entry>,
        unacked: Vec<Unacked>,
        waits: Option<(Durability, u64, Mark)>,
        out: &mut Vec<u8>,
    ) -> Self {
        let mut expected = 0;
        let mut write = |command: redis::Cmd| {
            command.write_packed_command(out);
            expected += 1;
        };
        for entry in &entries {
            if entry.is_asking {
                write(asking());
            }
            write(entry.errand.call().command());
        }
        let (mut durability, mut is_mark_asking) = (None, false);
        if let Some((promised, patience_ms, mark)) = waits {
            if mark.is_asking {
                write(asking());
            }
            write(cmd("FCALL").arg(mark.function).arg(1).arg(mark.key).take());
            if promised.replicas_acked > 0 {
                write(cmd("WAIT").arg(promised.replicas_acked).arg(patience_ms).take());
            }
            if promised.is_fsync_acked {
                write(cmd("WAITAOF").arg(1).arg(promised.replicas_acked).arg(patience_ms).take());
            }
            (durability, is_mark_asking) = (Some(promised), mark.is_asking);
        }
        let answers = Vec::with_capacity(expected);
        Self { entries, unacked, durability, is_mark_asking, answers, expected, sent_at: Instant::now() }
    }

    pub(super) fn is_waiting(&self) -> bool {
        self.durability.is_some()
    }

    /// Whether it was the last.
    pub(super) fn answered(&mut self, answer: Result<Value, Fault>) -> bool {
        self.answers.push(answer);
        self.answers.len() == self.expected
    }

    /// The answers to its calls, what it confirms of others, and what the wait came to.
    pub(super) fn take_apart(self) -> (Vec<Answered>, Vec<Unacked>, Wait) {
        let mut answers = self.answers.into_iter();
        let mut of_calls = Vec::with_capacity(self.entries.len());
        for entry in self.entries {
            if entry.is_asking {
                answers.next();
            }
            of_calls.push((entry, answers.next().expect("each has an answer")));
        }
        let wait = match self.durability {
            None => Wait::None,
            Some(promised) => {
                if self.is_mark_asking {
                    answers.next();
                }
                wait(promised, &mut answers)
            }
        };
        (of_calls, self.unacked, wait)
    }
}

fn wait(promised: Durability, answers: &mut impl Iterator<Item = Result<Value, Fault>>) -> Wait {
    let Durability { replicas_acked: wanted, is_fsync_acked } = promised;
    if let Some(Err(fault)) = answers.next() {
        return Wait::Unmarked(fault);
    }
    let mut next = |what: &str| match answers.next() {
        Some(Ok(value)) => Ok(value),
        Some(Err(fault)) => {
            Err(Wait::Short(format!("to {what} it answers {} {}", fault.code(), fault.details())))
        }
        None => Err(Wait::Short(format!("it does not answer {what}"))),
    };
    let mut check = || {
        if wanted > 0 {
            match next("WAIT")? {
                Value::Int(count) if count >= i64::from(wanted) => {}
                Value::Int(count) => {
                    return Err(Wait::Short(format!("{count} of {wanted} replicas have acknowledged it")));
                }
                _ => return Err(Wait::Short("it answers WAIT without a number".to_owned())),
            }
        }
        if is_fsync_acked {
            let Value::Array(counts) = next("WAITAOF")? else {
                return Err(Wait::Short("it answers WAITAOF without numbers".to_owned()));
            };
            let [Value::Int(own), Value::Int(count)] = counts[..] else {
                return Err(Wait::Short("it answers WAITAOF without numbers".to_owned()));
            };
            if own < 1 || count < i64::from(wanted) {
                return Err(Wait::Short(format!(
                    "it is in {own} of 1 logs of the primary and in {count} of {wanted} of replicas"
                )));
            }
        }
        Ok(())
    };
    match check() {
        Ok(()) => Wait::Enough,
        Err(wait) => wait,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::asked::Asked;
    use crate::cluster::call::Call;

    fn entries(calls: Vec<Call>) -> VecDeque<Entry> {
        Asked::new(calls).errands().map(|errand| Entry { errand, is_asking: false }).collect()
    }

    fn call(len: usize) -> Call {
        Call::write("f", vec!["k".into()], vec![vec![b'x'; len].into()])
    }

    fn waits(replicas_acked: u32, is_fsync_acked: bool) -> Option<(Durability, u64, Mark)> {
        let mark = Mark { function: "overtake_mark".into(), key: "m".into(), is_asking: false };
        Some((Durability { replicas_acked, is_fsync_acked }, 50, mark))
    }

    fn came_to(waits: Option<(Durability, u64, Mark)>, answers: Vec<Result<Value, Fault>>) -> Wait {
        let entries = gather(&mut entries(vec![call(1)])).0;
        let mut batch = Batch::new(entries, Vec::new(), waits, &mut Vec::new());
        let count = answers.len();
        for (at, answer) in answers.into_iter().enumerate() {
            assert_eq!(batch.answered(answer), at + 1 == count, "answer {at}");
        }
        let (of_calls, _, wait) = batch.take_apart();
        assert_eq!(of_calls[0].1, Ok(Value::Int(7)));
        wait
    }

    #[test]
    fn what_is_gathered_has_a_limit_and_a_long_call_goes_alone() {
        let mut queue = entries(vec![call(1); CALLS_MAX + 1]);
        assert_eq!((gather(&mut queue).0.len(), queue.len()), (CALLS_MAX, 1));
        let mut queue = entries(vec![call(LEN_MAX), call(1), call(1)]);
        assert_eq!((gather(&mut queue).0.len(), gather(&mut queue).0.len()), (1, 2));
    }

    #[test]
    fn a_wait_confirms_only_where_enough_replicas_say_so() {
        let seven = || Ok(Value::Int(7));
        let own = |own, count| Ok(Value::Array(vec![Value::Int(own), Value::Int(count)]));
        assert_eq!(came_to(None, vec![seven()]), Wait::None);
        assert_eq!(came_to(waits(2, false), vec![seven(), Ok(Value::Okay), Ok(Value::Int(2))]), Wait::Enough);
        let short = came_to(waits(2, false), vec![seven(), Ok(Value::Okay), Ok(Value::Int(1))]);
        assert_eq!(short, Wait::Short("1 of 2 replicas have acknowledged it".to_owned()));
        let both =
            |counts| came_to(waits(1, true), vec![seven(), Ok(Value::Okay), Ok(Value::Int(1)), counts]);
        assert_eq!(both(own(1, 1)), Wait::Enough);
        assert!(matches!(both(own(0, 1)), Wait::Short(_)));
        assert!(matches!(both(Err(Fault::new("ERR", "appendonly is disabled"))), Wait::Short(_)));
        let moved = Fault::new("MOVED", "1 a:1");
        let unmarked = came_to(waits(1, false), vec![seven(), Err(moved.clone()), Ok(Value::Int(1))]);
        assert_eq!(unmarked, Wait::Unmarked(moved), "whatever WAIT says: it waited for nothing");
    }
}
