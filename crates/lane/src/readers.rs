//! Messages that wait in runs, in order.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::iter::Peekable;

use crate::ids::Seq;
use crate::message::Message;
use crate::run::{Backlog, Run};

/// The messages of a run that wait, in order, read a few at a time.
pub(crate) struct Reader<'a> {
    backlog: &'a dyn Backlog,
    run: &'a Run,
    at: u32,
    end: u32,
    /// So many are read next.
    chunk: usize,
    read: VecDeque<Message>,
}

/// Messages that are read at once.
pub(crate) const CHUNK: usize = 64;
/// The first time so many, and each time twice as many: where many runs are read side by side, a step needs few of each.
const FIRST_CHUNK: usize = 2;

impl<'a> Reader<'a> {
    pub(crate) fn new(backlog: &'a dyn Backlog, run: &'a Run, from: u32) -> Self {
        let (at, end) = (from.max(run.next()), run.count());
        Self { backlog, run, at, end, chunk: FIRST_CHUNK, read: VecDeque::new() }
    }

    /// The messages from one sequence to another, both included. No block behind the last of them is read.
    pub(crate) fn between(backlog: &'a dyn Backlog, run: &'a Run, first: Seq, last: Seq) -> Self {
        let before = |seq| backlog.rank(run.id, seq);
        let from = if run.first < first { before(first) } else { 0 };
        let end = if last < run.last { before(Seq(last.0 + 1)) } else { run.count() };
        Self { end, ..Self::new(backlog, run, from) }
    }
}

impl Iterator for Reader<'_> {
    type Item = (u32, Message);

    fn next(&mut self) -> Option<(u32, Message)> {
        loop {
            while self.read.is_empty() && self.at < self.end {
                let most = self.chunk.min((self.end - self.at) as usize);
                self.read = self.run.read(self.backlog, self.at, most).into();
                self.chunk = (2 * self.chunk).min(CHUNK);
                if self.read.is_empty() {
                    let lost = self.backlog.lost(self.run.id, self.at);
                    if lost == 0 {
                        break;
                    }
                    self.at = self.at.saturating_add(lost);
                }
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

/// The messages of a run that wait, the last first, read a few at a time.
pub(crate) struct BackReader<'a> {
    backlog: &'a dyn Backlog,
    run: &'a Run,
    end: u32,
    /// So many are read next.
    chunk: u32,
    read: Vec<(u32, Message)>,
}

impl<'a> BackReader<'a> {
    /// The messages before this ordinal.
    pub(crate) fn new(backlog: &'a dyn Backlog, run: &'a Run, end: u32) -> Self {
        Self { backlog, run, end, chunk: FIRST_CHUNK as u32, read: Vec::new() }
    }
}

impl Iterator for BackReader<'_> {
    type Item = (u32, Message);

    fn next(&mut self) -> Option<(u32, Message)> {
        loop {
            while self.read.is_empty() && self.end > self.run.next() {
                let from = self.end.saturating_sub(self.chunk).max(self.run.next());
                self.chunk = (2 * self.chunk).min(CHUNK as u32);
                self.read = self.run.read_between(self.backlog, from..self.end);
                self.end = from;
            }
            let (ordinal, message) = self.read.pop()?;
            if self.run.waits(ordinal) {
                return Some((ordinal, message));
            }
        }
    }
}

/// An order in which the messages of runs are merged.
pub(crate) trait Order<'a> {
    /// The key by which messages are compared: the least comes first.
    type Key: Ord + Copy;
    /// The messages of a run that wait and are in the order, the first of them first.
    type Messages: Iterator<Item = (u32, Message)>;

    fn key(seq: Seq) -> Self::Key;

    /// No message of the run comes before.
    fn bound(&self, run: &Run) -> Self::Key;

    fn begin(&self, run: &'a Run) -> Self::Messages;
}

/// By sequence, from this one on.
pub(crate) struct Upwards<'a> {
    pub(crate) backlog: &'a dyn Backlog,
    pub(crate) from: Seq,
}

impl<'a> Order<'a> for Upwards<'a> {
    type Key = Seq;
    type Messages = Reader<'a>;

    fn key(seq: Seq) -> Seq {
        seq
    }

    fn bound(&self, run: &Run) -> Seq {
        run.first.max(self.from)
    }

    fn begin(&self, run: &'a Run) -> Reader<'a> {
        let skip = if run.first < self.from { self.backlog.rank(run.id, self.from) } else { 0 };
        Reader::new(self.backlog, run, skip)
    }
}

/// By sequence, the greatest first, before this one.
pub(crate) struct Downwards<'a> {
    pub(crate) backlog: &'a dyn Backlog,
    pub(crate) before: Seq,
}

impl<'a> Order<'a> for Downwards<'a> {
    type Key = Reverse<Seq>;
    type Messages = BackReader<'a>;

    fn key(seq: Seq) -> Reverse<Seq> {
        Reverse(seq)
    }

    fn bound(&self, run: &Run) -> Reverse<Seq> {
        Reverse(run.last.min(self.before))
    }

    fn begin(&self, run: &'a Run) -> BackReader<'a> {
        let end = if run.last < self.before { run.count() } else { self.backlog.rank(run.id, self.before) };
        BackReader::new(self.backlog, run, end)
    }
}

/// The messages of several lanes that wait in runs, merged. A run is begun only when its first message may be the next of all.
pub(crate) struct MergedRuns<'a, O: Order<'a>> {
    order: O,
    /// The runs of each lane that are not begun, by their bounds.
    lanes: Vec<Peekable<Box<dyn Iterator<Item = &'a Run> + 'a>>>,
    /// The runs that are begun, until they have no more.
    begun: Vec<Option<(u16, Peekable<O::Messages>)>>,
    next: BinaryHeap<Reverse<(O::Key, Next)>>,
}

/// A source of the next message of all.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Next {
    /// The run that is to be begun next in this lane.
    OfLane(usize),
    /// The run at this place of `begun`.
    Begun(usize),
}

impl<'a, O: Order<'a>> MergedRuns<'a, O> {
    /// The messages of these runs, each lane's in the order of their bounds.
    pub(crate) fn new<L>(order: O, lanes: impl Iterator<Item = L>) -> Self
    where
        L: Iterator<Item = &'a Run> + 'a,
    {
        let boxed = |runs: L| (Box::new(runs) as Box<dyn Iterator<Item = &'a Run> + 'a>).peekable();
        let mut merged =
            Self { order, lanes: lanes.map(boxed).collect(), begun: Vec::new(), next: BinaryHeap::new() };
        (0..merged.lanes.len()).for_each(|lane| merged.expect_lane(lane));
        merged
    }

    /// The next message with the index of its lane, if it comes before this one; `None`: any does.
    pub(crate) fn next_before(&mut self, before: Option<Seq>) -> Option<(u16, Message)> {
        let before = before.map(O::key);
        loop {
            let Reverse((key, next)) = *self.next.peek()?;
            if before.is_some_and(|before| before < key) {
                return None;
            }
            self.next.pop();
            match next {
                Next::OfLane(lane) => {
                    let run = self.lanes[lane].next()?;
                    self.expect_lane(lane);
                    self.begun.push(Some((run.lane, self.order.begin(run).peekable())));
                    self.expect_begun(self.begun.len() - 1);
                }
                Next::Begun(at) => {
                    let (lane, messages) = self.begun[at].as_mut()?;
                    let found = messages.next().map(|(_, message)| (*lane, message));
                    self.expect_begun(at);
                    return found;
                }
            }
        }
    }

    fn expect_lane(&mut self, lane: usize) {
        if let Some(run) = self.lanes[lane].peek() {
            self.next.push(Reverse((self.order.bound(run), Next::OfLane(lane))));
        }
    }

    fn expect_begun(&mut self, at: usize) {
        match self.begun[at].as_mut().and_then(|(_, messages)| messages.peek()) {
            Some((_, message)) => self.next.push(Reverse((O::key(message.seq), Next::Begun(at)))),
            None => self.begun[at] = None,
        }
    }
}
