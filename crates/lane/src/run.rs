//! Runs: messages of one lane that only wait, and are not in memory.
//!
//! A run names the messages of one segment, by their ordinals in it, that nothing has happened to since it was written. One
//! that something happens to is *fetched*: it has an entry again, and the run counts it as taken.

use std::collections::{BTreeSet, VecDeque};
use std::fmt;

use crate::ids::{QueueId, Seq, Time};
use crate::message::Message;
use crate::priority::Priority;

/// Names a run: the number of its segment. No number is used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId(pub u64);

/// Where the messages of runs are read. Asked while a command is done, so it must not keep anybody waiting for long.
pub trait Backlog: fmt::Debug + Send + Sync {
    /// At most `max` messages from this ordinal on, in order, as they were spilled. Fewer than there are only when they cannot
    /// be read; whoever stands here must see to it that nothing the broker then does becomes durable.
    fn read(&self, run: RunId, from: u32, max: usize) -> Vec<Message>;

    /// How many messages of the run have a lesser sequence.
    fn rank(&self, run: RunId, seq: Seq) -> u32;

    /// Messages of this queue that may have this id: every one that has it in any run, and others, which do no harm but must be
    /// read. Asked only where a run of the queue has a message with an id. For what cannot be read, as [`Backlog::read`].
    fn find_id(&self, queue: QueueId, id: &str) -> Vec<(RunId, u32)> {
        let _ = (queue, id);
        Vec::new()
    }
}

/// Nothing was ever spilled.
#[derive(Clone, Copy, Debug)]
pub struct NoBacklog;

impl Backlog for NoBacklog {
    fn read(&self, _: RunId, _: u32, _: usize) -> Vec<Message> {
        Vec::new()
    }

    fn rank(&self, _: RunId, _: Seq) -> u32 {
        0
    }
}

/// What is said of a run so that a recovery finds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunRecord {
    /// Which.
    pub run: RunId,
    /// The priority of its messages; of a lane of several priorities that of one of them.
    pub priority: Priority,
    /// Messages in the segment.
    pub count: u32,
    /// No more of those that wait have an id.
    pub ids: u32,
    /// No more of those that wait died in another queue.
    pub deaths: u32,
    /// Bytes of content of those that wait.
    pub bytes: u64,
    /// None of those that wait expires before.
    pub expires: Time,
    /// None of those that wait has a lesser sequence.
    pub first: Seq,
    /// The sequence of the last message of the segment.
    pub last: Seq,
    /// Messages before this ordinal are taken.
    pub next: u32,
    /// Ordinals taken beyond it, ascending.
    pub holes: Vec<u32>,
}

/// Messages of one lane that are not in memory.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) id: RunId,
    pub(crate) lane: u16,
    priority: Priority,
    count: u32,
    /// As in the record.
    pub(crate) ids: u32,
    /// As in the record.
    pub(crate) deaths: u32,
    next: u32,
    holes: BTreeSet<u32>,
    /// Bytes of content of those that wait.
    pub(crate) bytes: u64,
    pub(crate) expires: Time,
    /// A lower bound of the sequences that wait.
    pub(crate) first: Seq,
    pub(crate) last: Seq,
}

impl Run {
    pub(crate) fn new(record: &RunRecord, lane: u16) -> Self {
        let RunRecord { run, priority, count, ids, deaths, bytes, expires, first, last, next, ref holes } =
            *record;
        Self {
            id: run,
            lane,
            priority,
            count,
            ids,
            deaths,
            next: next.min(count),
            holes: holes.iter().copied().filter(|hole| (next..count).contains(hole)).collect(),
            bytes,
            expires,
            first,
            last,
        }
    }

    pub(crate) fn record(&self) -> RunRecord {
        RunRecord {
            run: self.id,
            priority: self.priority,
            count: self.count,
            ids: self.ids,
            deaths: self.deaths,
            bytes: self.bytes,
            expires: self.expires,
            first: self.first,
            last: self.last,
            next: self.next,
            holes: self.holes.iter().copied().collect(),
        }
    }

    /// Messages that wait.
    pub(crate) fn waiting(&self) -> u64 {
        u64::from(self.count - self.next) - self.holes.len() as u64
    }

    /// Those of them before this ordinal.
    pub(crate) fn waiting_before(&self, ordinal: u32) -> u64 {
        let before = u64::from(ordinal.clamp(self.next, self.count) - self.next);
        before - self.holes.range(..ordinal).count() as u64
    }

    pub(crate) fn waits(&self, ordinal: u32) -> bool {
        (self.next..self.count).contains(&ordinal) && !self.holes.contains(&ordinal)
    }

    pub(crate) fn next(&self) -> u32 {
        self.next
    }

    /// Takes one that waits.
    pub(crate) fn take(&mut self, ordinal: u32, message: &Message) {
        self.bytes -= u64::from(message.bytes);
        if ordinal != self.next {
            self.holes.insert(ordinal);
            return;
        }
        self.next += 1;
        while self.holes.remove(&self.next) {
            self.next += 1;
        }
        self.first = message.seq.next();
    }
}

/// The messages of a run that wait, in order, read a few at a time.
pub(crate) struct Reader<'a> {
    backlog: &'a dyn Backlog,
    run: &'a Run,
    at: u32,
    read: VecDeque<Message>,
}

/// Messages that are read at once.
pub(crate) const CHUNK: usize = 64;

impl<'a> Reader<'a> {
    pub(crate) fn new(backlog: &'a dyn Backlog, run: &'a Run, from: u32) -> Self {
        Self { backlog, run, at: from.max(run.next), read: VecDeque::new() }
    }
}

impl Iterator for Reader<'_> {
    type Item = (u32, Message);

    fn next(&mut self) -> Option<(u32, Message)> {
        loop {
            if self.read.is_empty() && self.at < self.run.count {
                self.read = self.backlog.read(self.run.id, self.at, CHUNK).into();
            }
            let message = self.read.pop_front()?;
            let ordinal = self.at;
            self.at += 1;
            if self.run.waits(ordinal) {
                return Some((ordinal, message));
            }
        }
    }
}
