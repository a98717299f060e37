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

impl ReadsAhead for Reader<'_> {
    fn read_ahead(&self) {
        let next = self.at + self.read.len() as u32;
        let behind = self.backlog.block(self.run.id, next).end;
        for next in [next, behind].into_iter().filter(|next| *next < self.end) {
            self.backlog.expect(self.run.id, next);
        }
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
                // Blocks before this one are not needed yet.
                let block = self.backlog.block(self.run.id, self.end - 1);
                let from = self.end.saturating_sub(self.chunk).max(self.run.next()).max(block.start);
                self.chunk = (2 * self.chunk).min(CHUNK as u32);
                self.read = self.run.read_between(self.backlog, from..self.end);
                if self.backlog.awaits_disk() {
                    return None;
                }
                self.end = from;
            }
            let (ordinal, message) = self.read.pop()?;
            if self.run.waits(ordinal) {
                return Some((ordinal, message));
            }
        }
    }
}

impl ReadsAhead for BackReader<'_> {
    fn read_ahead(&self) {
        let Some(next) = self.end.checked_sub(1) else { return };
        let before = self.backlog.block(self.run.id, next).start.checked_sub(1);
        for next in [Some(next), before].into_iter().flatten().filter(|next| *next >= self.run.next()) {
            self.backlog.expect(self.run.id, next);
        }
    }
}

/// Reads the messages of a run that wait, in an order.
pub(crate) trait ReadsAhead: Iterator<Item = (u32, Message)> {
    /// Names what [comes next](Backlog::expect): the messages that are not read yet and are read together, and those behind them.
    fn read_ahead(&self);
}

/// An order in which the messages of runs are merged.
pub(crate) trait Order<'a> {
    /// The key by which messages are compared: the least comes first.
    type Key: Ord + Copy;
    /// The messages of a run that wait and are in the order, the first of them first.
    type Messages: ReadsAhead;

    fn key(seq: Seq) -> Self::Key;

    fn backlog(&self) -> &dyn Backlog;

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

    fn backlog(&self) -> &dyn Backlog {
        self.backlog
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

    fn backlog(&self) -> &dyn Backlog {
        self.backlog
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
    begun: Vec<Option<Begun<O::Messages>>>,
    next: BinaryHeap<Reverse<(O::Key, Next)>>,
    /// A run has no more before [something is read](Backlog::awaits_disk).
    is_short: bool,
}

/// A run of which messages are read.
struct Begun<M> {
    lane: u16,
    /// The next message of the run.
    head: Option<Message>,
    /// The messages behind the head.
    rest: M,
    /// A message of it was the next of all.
    is_used: bool,
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
        let mut merged = Self {
            order,
            lanes: lanes.map(boxed).collect(),
            begun: Vec::new(),
            next: BinaryHeap::new(),
            is_short: false,
        };
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
                    let begun =
                        Begun { lane: run.lane, head: None, rest: self.order.begin(run), is_used: false };
                    self.begun.push(Some(begun));
                    self.expect_begun(self.begun.len() - 1);
                }
                Next::Begun(at) => {
                    let begun = self.begun[at].as_mut()?;
                    begun.is_used = true;
                    let found = begun.head.take().map(|message| (begun.lane, message));
                    self.expect_begun(at);
                    if self.is_short {
                        // The step ends before the message that was found.
                        self.read_ahead();
                        return None;
                    }
                    return found;
                }
            }
        }
    }

    /// Names what comes next in the runs that are in use: they were begun at one time, and mostly their blocks end at one time.
    fn read_ahead(&self) {
        self.begun.iter().flatten().filter(|begun| begun.is_used).for_each(|begun| begun.rest.read_ahead());
    }

    fn expect_lane(&mut self, lane: usize) {
        if let Some(run) = self.lanes[lane].peek() {
            self.next.push(Reverse((self.order.bound(run), Next::OfLane(lane))));
        }
    }

    fn expect_begun(&mut self, at: usize) {
        let Some(begun) = &mut self.begun[at] else { return };
        begun.head = begun.rest.next().map(|(_, message)| message);
        match &begun.head {
            Some(message) => self.next.push(Reverse((O::key(message.seq), Next::Begun(at)))),
            None if self.order.backlog().awaits_disk() => self.is_short = true,
            None => self.begun[at] = None,
        }
    }
}
