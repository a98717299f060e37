//! Runs: messages of one lane that only wait, and are not in memory.
//!
//! A run names the messages of one segment, by their ordinals in it, that nothing has happened to since it was written. One
//! that something happens to is *fetched*: it has an entry again, and the run counts it as taken.

use std::fmt;
use std::ops::Range;

use crate::ids::{QueueId, Seq, Time};
use crate::message::Message;
use crate::ordinals::Ordinals;
use crate::priority::Priority;

/// How many messages leave memory for one run, and how many stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpillBounds {
    /// The oldest messages of a lane stay, since they are leased next: at most so many,
    pub keep: usize,
    /// and no more than have so many bytes of content together.
    pub keep_bytes: u64,
    /// Messages of the run, at most.
    pub most: usize,
    /// Once the run has so many bytes of content, no message more.
    pub most_bytes: u64,
    /// So many messages that stay may be passed over in search of them.
    pub looks: usize,
}

/// What is to be written to a segment next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SpillPlan {
    /// These messages of a queue, by sequence.
    Run(QueueId, Vec<Message>),
    /// None were found yet: there were more to be looked at than might be. The next plan goes on.
    Unfinished,
    /// No message may leave memory.
    Nothing,
}

/// Names a run: the number of its segment. No number is used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId(pub u64);

/// Where the messages of runs are read. Asked while a command is done, so it must not keep anybody waiting for long.
pub trait Backlog: fmt::Debug + Send + Sync {
    /// At most `max` messages from this ordinal on, in order, as they were spilled. Fewer than there are only before one that is
    /// [lost](Backlog::lost), or when they cannot be read at all; then the implementation must see to it that nothing the
    /// broker does afterwards becomes durable.
    fn read(&self, run: RunId, from: u32, max: usize) -> Vec<Message>;

    /// How many messages from this ordinal on are lost, because what held them is damaged; 0 when this one can be read. The broker
    /// passes over lost messages.
    fn lost(&self, run: RunId, ordinal: u32) -> u32 {
        let _ = (run, ordinal);
        0
    }

    /// Whether something was asked for that must be read from a disk first. Then no answer since says anything, and the step of a look ends before the message for which it was
    /// asked. Only while the implementation was told to read nothing itself.
    fn awaits_disk(&self) -> bool {
        false
    }

    /// The ordinals that are read from the disk together with this one. Told without reading any.
    fn block(&self, run: RunId, ordinal: u32) -> Range<u32> {
        let _ = (run, ordinal);
        0..u32::MAX
    }

    /// The step of a look that ends because of [`Backlog::awaits_disk`] does not need this message yet; the look will, if it goes on as it has so far.
    fn expect(&self, run: RunId, ordinal: u32) {
        let _ = (run, ordinal);
    }

    /// How many messages of the run have a lesser sequence.
    fn rank(&self, run: RunId, seq: Seq) -> u32;

    /// The ordinal of the message with this sequence. `None`: the run has no such message, or the message is lost. Only sequences are compared, no message
    /// is decoded: one run of each lane is asked.
    fn find(&self, run: RunId, seq: Seq) -> Option<u32>;

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

    fn find(&self, _: RunId, _: Seq) -> Option<u32> {
        None
    }
}

/// What is said of a run so that a recovery finds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunRecord {
    /// Which.
    pub run: RunId,
    /// The priority of its messages; where they have several, that of one of them.
    pub priority: Priority,
    /// Messages in the segment.
    pub count: u32,
    /// No more of those that wait have an id.
    pub ids: u32,
    /// No more of those that wait came from another queue, where they died or were worked on.
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
    /// Ordinals taken beyond it.
    pub holes: Ordinals,
    /// Its messages may be of several lanes, since the queue had other ones when it was written: they wait until they are moved into theirs.
    pub is_mixed: bool,
}

/// Most messages of a run.
pub const RUN_LEN_MAX: u32 = 1 << 24;
/// More bytes of content than a segment ever has.
const RUN_BYTES_MAX: u64 = 1 << 48;

impl RunRecord {
    /// Whether a run can be so. Whoever made it up, or damaged it, rarely meets all of this.
    #[must_use]
    pub fn makes_sense(&self) -> bool {
        let beyond = self.holes.first().is_none_or(|hole| hole > self.next);
        let within = self.holes.last().is_none_or(|hole| hole < self.count);
        let fits = self.count <= RUN_LEN_MAX && self.bytes <= RUN_BYTES_MAX;
        let are_part = self.ids <= self.count && self.deaths <= self.count;
        let is_ordered = self.first <= self.last && self.next <= self.count && beyond && within && are_part;
        is_ordered && fits && self.bytes <= self.waiting() * u64::from(u32::MAX)
    }

    /// Messages that wait.
    #[must_use]
    pub fn waiting(&self) -> u64 {
        u64::from(self.count.saturating_sub(self.next)).saturating_sub(self.holes.len() as u64)
    }

    /// The same run, if what is in quarantine waits, too.
    fn with(mut self, quarantine: &Quarantined) -> Self {
        let Some(first) = quarantine.ordinals.first() else { return self };
        let taken = (first..self.next).chain(self.holes.iter());
        self.holes = taken.filter(|ordinal| !quarantine.ordinals.contains(*ordinal)).collect();
        self.next = self.next.min(first);
        self.bytes += quarantine.bytes;
        self.expires = self.expires.min(quarantine.expires);
        self.first = self.first.min(quarantine.first);
        self
    }
}

/// Messages of a run that cannot be read for now. The run counts them as taken, and its record as waiting: they wait again
/// should they be readable after a start.
#[derive(Clone, Debug)]
struct Quarantined {
    ordinals: Ordinals,
    /// Bytes of content, about.
    bytes: u64,
    /// None of them expires before.
    expires: Time,
    /// None of them has a lesser sequence.
    first: Seq,
}

/// What went from a run into the one that it was rewritten into: all of it that still waited then. The rest was taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rewritten {
    /// The run, which is over.
    pub run: RunId,
    /// Messages before this ordinal were taken.
    pub next: u32,
    /// Ordinals taken beyond it.
    pub holes: Ordinals,
}

impl Rewritten {
    /// Nothing went from it.
    pub(crate) fn nothing(run: RunId) -> Self {
        Self { run, next: u32::MAX, holes: Ordinals::default() }
    }
}

/// A run as it is now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunView {
    /// Its queue.
    pub queue: QueueId,
    /// Its lane: the same number for all runs of one lane of a queue, as long as they are there.
    pub lane: u16,
    /// Which.
    pub run: RunId,
    /// Messages that wait in it.
    pub waiting: u64,
    /// Messages in its segment.
    pub count: u32,
    /// Messages of it that cannot be read for now: see [`Broker::lose`](crate::Broker::lose).
    pub quarantined: u64,
    /// All of them come before those of the next run of its lane, so that both can be rewritten into one.
    pub is_before_next: bool,
    /// Its messages wait to move to other lanes: it is not rewritten.
    pub is_mixed: bool,
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
    holes: Ordinals,
    /// Bytes of content of those that wait.
    pub(crate) bytes: u64,
    pub(crate) expires: Time,
    /// A lower bound of the sequences that wait.
    pub(crate) first: Seq,
    pub(crate) last: Seq,
    /// As in the record.
    pub(crate) is_mixed: bool,
    /// None of its messages had a lesser sequence.
    pub(crate) begins: Seq,
    quarantine: Option<Box<Quarantined>>,
}

impl Run {
    pub(crate) fn new(record: &RunRecord, lane: u16) -> Self {
        Self {
            id: record.run,
            lane,
            priority: record.priority,
            count: record.count,
            ids: record.ids,
            deaths: record.deaths,
            next: record.next,
            holes: record.holes.clone(),
            bytes: record.bytes,
            expires: record.expires,
            first: record.first,
            last: record.last,
            is_mixed: record.is_mixed,
            begins: record.first,
            quarantine: None,
        }
    }

    /// This run of before, now in another lane, had these messages in quarantine.
    pub(crate) fn take_quarantine_of(&mut self, before: Self) {
        self.quarantine = before.quarantine;
    }

    /// What is in quarantine is given up.
    pub(crate) fn give_up_quarantined(&mut self) {
        self.quarantine = None;
    }

    /// Whether all messages that it ever had wait in it: then a fact that ends all of it ends none that was taken from it without a fact and may be held, or be in memory.
    pub(crate) fn is_untouched(&self) -> bool {
        self.waiting() == u64::from(self.count)
    }

    /// Messages in quarantine.
    pub(crate) fn quarantined(&self) -> u64 {
        self.quarantine.as_ref().map_or(0, |quarantine| quarantine.ordinals.len() as u64)
    }

    /// What a recovery must know of it: what is in quarantine waits there.
    pub(crate) fn durable_record(&self) -> RunRecord {
        match &self.quarantine {
            Some(quarantine) => self.record().with(quarantine),
            None => self.record(),
        }
    }

    /// The run as it is now.
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
            holes: self.holes.clone(),
            is_mixed: self.is_mixed,
        }
    }

    /// Messages that wait.
    pub(crate) fn waiting(&self) -> u64 {
        u64::from(self.count - self.next) - self.holes.len() as u64
    }

    /// Those of them before this ordinal.
    pub(crate) fn waiting_before(&self, ordinal: u32) -> u64 {
        let before = u64::from(ordinal.clamp(self.next, self.count) - self.next);
        before - self.holes.before(ordinal) as u64
    }

    pub(crate) fn waits(&self, ordinal: u32) -> bool {
        (self.next..self.count).contains(&ordinal) && !self.holes.contains(ordinal)
    }

    pub(crate) fn next(&self) -> u32 {
        self.next
    }

    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    pub(crate) fn priority(&self) -> Priority {
        self.priority
    }

    /// The ordinals that wait, as few ranges as there are.
    pub(crate) fn ranges(&self) -> impl Iterator<Item = Range<u32>> + '_ {
        let mut from = self.next;
        let ends = self.holes.iter().chain([self.count]);
        let ranges = ends.map(move |end| std::mem::replace(&mut from, end.saturating_add(1))..end);
        ranges.filter(|range| !range.is_empty())
    }

    /// The ordinals that wait here and are taken by another account.
    pub(crate) fn ordinals_taken<'a>(
        &'a self,
        next: u32,
        holes: &'a Ordinals,
    ) -> impl Iterator<Item = u32> + 'a {
        let before = self.next..next.min(self.count);
        let beyond = holes.iter().filter(move |hole| *hole >= next);
        before.chain(beyond).filter(|ordinal| self.waits(*ordinal))
    }

    /// What went from it into another.
    pub(crate) fn rewritten(&self) -> Rewritten {
        Rewritten { run: self.id, next: self.next, holes: self.holes.clone() }
    }

    /// Takes one that waits. Answers its bytes, which are no more than the run was said to have.
    pub(crate) fn take(&mut self, ordinal: u32, message: &Message) -> u64 {
        let bytes = self.bytes.min(u64::from(message.bytes));
        self.bytes -= bytes;
        if ordinal == self.next {
            self.next = self.holes.take_row(self.next + 1);
            self.first = message.seq.next();
        } else {
            self.holes.insert(ordinal);
        }
        bytes
    }

    /// Puts those of these ordinals that wait into quarantine. Returns how many they were, and how many bytes they had: their share, since
    /// nothing says how long each was.
    pub(crate) fn lose(&mut self, lost: Range<u32>) -> (u64, u64) {
        let before = self.waiting();
        let within = lost.start.max(self.next)..lost.end.min(self.count);
        let lost: Vec<u32> = within.filter(|ordinal| self.waits(*ordinal)).collect();
        if lost.is_empty() {
            return (0, 0);
        }
        for ordinal in &lost {
            if *ordinal == self.next {
                self.next = self.holes.take_row(self.next + 1);
            } else {
                self.holes.insert(*ordinal);
            }
        }
        let messages = lost.len() as u64;
        let bytes = if messages == before { self.bytes } else { self.bytes / before * messages };
        self.bytes -= bytes;
        let quarantine = self.quarantine.get_or_insert_with(|| {
            let (expires, first) = (self.expires, self.first);
            Box::new(Quarantined { ordinals: Ordinals::default(), bytes: 0, expires, first })
        });
        quarantine.bytes += bytes;
        quarantine.expires = quarantine.expires.min(self.expires);
        for ordinal in lost {
            quarantine.ordinals.insert(ordinal);
        }
        (messages, bytes)
    }

    /// The messages from an ordinal on, up to another, with their ordinals; without those that are lost. Reading ends early when
    /// nothing more can be read.
    pub(crate) fn read_between(&self, backlog: &dyn Backlog, ordinals: Range<u32>) -> Vec<(u32, Message)> {
        let mut found = Vec::with_capacity(ordinals.len());
        let mut at = ordinals.start;
        while at < ordinals.end {
            let read = self.read(backlog, at, (ordinals.end - at) as usize);
            let passed = if read.is_empty() { backlog.lost(self.id, at) } else { read.len() as u32 };
            if passed == 0 {
                break;
            }
            found.extend((at..).zip(read));
            at = at.saturating_add(passed);
        }
        found
    }

    /// At most `max` messages from an ordinal on that is not before the first that waits. What is not within the sequences
    /// of the run is not of it, and cannot be read.
    pub(crate) fn read(&self, backlog: &dyn Backlog, from: u32, max: usize) -> Vec<Message> {
        let mut messages = backlog.read(self.id, from, max.min((self.count - from) as usize));
        let within = |message: &Message| self.first <= message.seq && message.seq <= self.last;
        messages.truncate(messages.iter().take_while(|message| within(message)).count());
        messages
    }
}
