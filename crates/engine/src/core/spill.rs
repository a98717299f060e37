//! Keeping the memory that messages take within its bound: what waits longest goes to the shelf.

use std::collections::BTreeSet;
use std::sync::Arc;

use overtake_lane::{
    Broker, Command, Effect, Fact, Place, QueueId, Refusal, RunId, Seq, Settled, SpillBounds, SpillPlan, Step,
};
use overtake_store::SegmentInfo;

use super::Core;
use super::clean::Fetched;
use super::runs::Missing;
use crate::api::{BytesInUse, Content, MemoryHealth};
use crate::damage::DamageHealth;
use crate::place::Where;
use crate::shelf::{ContentAt, Done, File, Job, Spill};

/// Bytes that a message in memory takes beside its content, about: its entry, its place in the index, and where its content is.
const ENTRY_BYTES: u64 = 320;
/// Bytes of memory that one run frees, at most.
pub(super) const RUN_BYTES_MAX: u64 = 16 << 20;
/// And at least, so that a small memory does not make many small segments.
const RUN_BYTES_MIN: u64 = 4 << 10;
/// Messages of one run, at most: they leave memory in one step, in which nobody is served, a quarter of a ms, and in another the next run is planned, a
/// third of a ms.
const RUN_MESSAGES_MAX: u64 = 2 << 10;
/// Messages that stay and are passed over in one step to find those of a run: up to a ms. With debug assertions few, as queues of tests are not deep.
const PLAN_LOOKS: usize = if cfg!(debug_assertions) { 256 } else { 2 << 10 };
/// The oldest messages of each lane stay, as they are leased next: at most so many,
const KEEP_MAX: u64 = 64;
/// and this part of the memory for messages, so that large ones in many lanes do not take it all.
const KEEP_BYTES: u64 = 256;
/// Beyond its bound by a quarter and so much, memory holds up publishes until a segment is written.
const EXCESS_MAX: u64 = 8 << 20;

/// Contents that nobody has taken away to free them are freed when there are so many.
const RELEASED_MAX: usize = 4 * RUN_MESSAGES_MAX as usize;

/// What is known of spilling.
#[derive(Debug, Default)]
pub(super) struct Spilling {
    /// A segment is being written.
    pub(super) is_writing: bool,
    /// What to write next is still looked for.
    is_planning: bool,
    /// The disk has no room for a segment.
    is_full: bool,
    /// So much was in memory when nothing could be spilled.
    in_vain: u64,
    /// So many bytes were in files when nothing could be rewritten.
    pub(super) rewritten_in_vain: u64,
    /// How far the segment is that is being emptied.
    pub(super) fetched: Fetched,
    /// Jobs to hand out now.
    pub(super) jobs: Vec<Job>,
    /// Runs nobody needs any more; their segments go when that is durable.
    over: Vec<RunId>,
    /// Runs that linger, by the chunk of their first record.
    lingering: BTreeSet<(u32, RunId)>,
}

impl Spilling {
    pub(super) fn new(over: Vec<RunId>) -> Self {
        Self { over, ..Self::default() }
    }
}

impl<T> Core<T> {
    /// Jobs to be done now, in order, beside what is committed. What comes of each is told to [`Core::done`].
    pub fn take_jobs(&mut self) -> Vec<Job> {
        if let Some((run, ordinal)) = self.shelf.take_begun() {
            let next = self.holds.get(run).and_then(|held| self.broker.run_after(held.queue, run));
            self.spilling.jobs.push(Job::ReadAhead { run, ordinal, next });
        }
        std::mem::take(&mut self.spilling.jobs)
    }

    /// Jobs to be done once the batch that is taken next, and every one before it, is durable.
    pub fn take_late_jobs(&mut self) -> Vec<Job> {
        if self.is_behind() {
            return Vec::new();
        }
        let oldest = self.chunk_of(self.writer.stated_oldest_lsn());
        let lingering = &mut self.spilling.lingering;
        while let Some((_, run)) = lingering.first().copied().filter(|(chunk, _)| *chunk < oldest) {
            lingering.pop_first();
            self.spilling.over.push(run);
        }
        std::mem::take(&mut self.spilling.over).into_iter().map(Job::Remove).collect()
    }

    /// A job is done.
    pub fn done(&mut self, done: Done) {
        self.house.room.set(None);
        self.take_in(done);
        self.tell_memory();
    }

    /// What waits in segments and is to move to other lanes waits there while memory is full.
    pub(super) fn tell_memory(&mut self) {
        let is_full = self.is_memory_full();
        self.broker.let_fetch(!is_full);
    }

    fn take_in(&mut self, done: Done) {
        match done {
            Done::Spilled(segment) => {
                self.spilling.is_writing = false;
                self.spilling.is_full = false;
                self.written(&segment, Broker::spilled);
                // Until the next is planned, what waited for this one waits: else all of it would come before that.
                self.spilling.is_planning = true;
            }
            Done::Rewritten(segment) => {
                self.spilling.is_writing = false;
                self.spilling.is_full = false;
                self.written(&segment, Broker::rewritten);
            }
            Done::NoRoom { queue, run } => {
                self.spilling.is_writing = false;
                self.spilling.is_full = true;
                self.broker.unspilled(queue, run);
            }
            Done::Lost { queue, run, seqs } => {
                self.spilling.is_writing = false;
                self.broker.unspilled(queue, run);
                // A message that has gone meanwhile is not lost.
                let is_there = |seq: &Seq| self.broker.message_at(queue, *seq).is_some();
                self.lost.extend(seqs.into_iter().filter(is_there).map(|seq| (queue, seq)));
            }
            Done::Unreadable { queue, run } => {
                self.spilling.is_writing = false;
                self.broker.unspilled(queue, run);
                // What it came across leaves the old runs; then there may be another plan.
                self.keep(false);
            }
            Done::Read { number } => self.has_read(number),
            Done::Removed | Done::ReadAhead => {}
        }
    }

    /// There may be room on the disk again.
    pub fn try_spilling_again(&mut self) {
        self.spilling.is_full = false;
    }

    /// Whether segments wait for room on the disk.
    pub(super) fn is_spilling_held(&self) -> bool {
        self.spilling.is_full || self.is_short()
    }

    /// Segments that are needed, and those that stay until the journal no longer speaks of what was in them.
    #[must_use]
    pub fn segments(&self) -> (usize, usize) {
        (self.holds.len(), self.spilling.lingering.len())
    }

    /// Why the engine can go on no longer: what it should read cannot be read. Nothing goes out any more.
    #[must_use]
    pub fn failure(&self) -> Option<Arc<str>> {
        self.shelf.failure()
    }

    /// A segment is durable, and its messages are what the broker makes of its plan now.
    fn written(&mut self, segment: &SegmentInfo, take: fn(&mut Broker, QueueId, RunId, &mut Step)) {
        let mut step = std::mem::take(&mut self.step);
        take(&mut self.broker, segment.queue, RunId(segment.number), &mut step);
        let chunk = self.chunk();
        for fact in &step.facts {
            if let Fact::RunStored { queue, run } | Fact::RunsRewritten { queue, run, .. } = fact {
                let file = File { count: segment.count, len: segment.file_len };
                self.holds.begin(run.run, *queue, file, run.waiting(), chunk, run.holes.len());
            }
        }
        self.step = step;
        self.keep(false);
    }

    /// Plans a run when messages take more memory than they may.
    pub(super) fn spill(&mut self) {
        self.spilling.is_planning = false;
        let (bytes, bound) = (self.memory_bytes(), self.options.memory_bytes);
        if bytes <= bound {
            self.spilling.in_vain = 0;
            return;
        }
        let is_worth_it = self.spilling.in_vain == 0 || bytes > self.spilling.in_vain + bound / 32;
        if self.spilling.is_writing || self.is_spilling_held() || !is_worth_it {
            return;
        }
        let run = self.shelf.take_number();
        let most_bytes = (bound / 16).clamp(RUN_BYTES_MIN, RUN_BYTES_MAX);
        let bounds = SpillBounds {
            keep: (bound >> 16).min(KEEP_MAX) as usize,
            keep_bytes: bound / KEEP_BYTES,
            most: (most_bytes / ENTRY_BYTES).min(RUN_MESSAGES_MAX) as usize,
            most_bytes,
            looks: PLAN_LOOKS,
        };
        let plan = self.broker.plan_spill(run, bounds);
        self.spilling.is_planning = plan == SpillPlan::Unfinished;
        let SpillPlan::Run(queue, messages) = plan else {
            self.spilling.in_vain = if self.spilling.is_planning { 0 } else { bytes };
            return;
        };
        let messages = messages.into_iter().map(|message| {
            let content = match Where::of(message.place) {
                Where::Here { slot, .. } => ContentAt::Memory(self.contents.get(slot)),
                // The spill thread reads it.
                Where::Shelf { run, ordinal } => ContentAt::Segment { run, ordinal },
            };
            (message, content)
        });
        let messages = messages.collect();
        self.spilling.is_writing = true;
        self.spilling.jobs.push(Job::Spill(Spill { queue, run, messages }));
    }

    /// Whether [`Core::keep_house`] has messages to look at before it knows what leaves memory next.
    #[must_use]
    pub fn has_more_to_plan(&self) -> bool {
        self.spilling.is_planning
    }

    /// Where messages are.
    #[must_use]
    pub fn memory(&self) -> MemoryHealth {
        let pushed = self.broker.pushed();
        MemoryHealth {
            bytes: self.memory_bytes(),
            spilled: self.broker.spilled_count(),
            segments: self.holds.len() as u64,
            segment_bytes: self.holds.bytes().0,
            limit: self.options.memory_bytes,
            // Those who drive it know who waits in line.
            inbox: BytesInUse::default(),
            pushed: BytesInUse { bytes: pushed.bytes, limit: pushed.limit, waits: pushed.waits },
        }
    }

    /// Bytes of memory that messages take, about.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        let said = self.contents.cost() + self.broker.history_bytes();
        said + (self.contents.messages() + self.fetched()) * ENTRY_BYTES
    }

    /// Messages in memory whose content is on the shelf.
    pub(super) fn fetched(&self) -> u64 {
        // The broker counts as of the last command, the shelf is always exact.
        self.holds.messages().saturating_sub(self.broker.spilled_count())
    }

    /// Whether changes of many messages, and what moves to other lanes, which bring messages back into memory, should wait for the segment that is being
    /// written, so that publishes need not.
    pub(super) fn is_memory_full(&self) -> bool {
        self.is_spilling() && self.memory_bytes() > self.options.memory_bytes
    }

    /// Whether publishes should wait for a segment that is being written.
    pub(super) fn is_overfull(&self) -> bool {
        self.is_spilling() && self.is_too_much()
    }

    /// Whether a segment is being written, or may be planned.
    fn is_spilling(&self) -> bool {
        self.spilling.is_writing || self.spilling.is_planning
    }

    fn is_too_much(&self) -> bool {
        let bound = self.options.memory_bytes;
        self.memory_bytes() > bound.saturating_add(bound / 4).saturating_add(EXCESS_MAX)
    }

    /// Messages may not take much more memory than they should while the disk has no room for them.
    pub(super) fn check_memory(&self) -> Result<(), Refusal> {
        if self.is_spilling_held() && self.is_too_much() { Err(Refusal::StoreFull) } else { Ok(()) }
    }

    // ---- what messages say ----

    /// What a message says; of one that is lost nothing.
    pub(super) fn content(&self, place: Place) -> Arc<Content> {
        self.find_content(place).unwrap_or_default()
    }

    /// What a message says; `None` when it is lost.
    pub(super) fn find_content(&self, place: Place) -> Option<Arc<Content>> {
        match Where::of(place) {
            Where::Here { slot, .. } => Some(self.contents.get(slot)),
            Where::Shelf { run, ordinal } => self.shelf.content(run, ordinal),
        }
    }

    // ---- damage ----

    /// What was found damaged leaves the broker, and nothing else does.
    pub(super) fn put_aside(&mut self, step: &mut Step) {
        for block in self.shelf.take_damaged() {
            // One of a segment that nobody needs harms nobody.
            let Some(held) = self.holds.get(block.run) else { continue };
            let before = step.effects.len();
            self.broker.lose(held.queue, block.run, block.ordinals.clone(), step);
            let lost = step.effects[before..].iter().map(|effect| match effect {
                Effect::Forgotten { messages, .. } => *messages,
                _ => 0,
            });
            let messages = lost.sum();
            let queue = self.broker.name(held.queue).cloned().unwrap_or_default();
            self.damage.found(&block, &queue, messages);
        }
    }

    /// Messages whose content could not be read are gone.
    pub(super) fn drop_lost(&mut self) {
        if self.lost.is_empty() && self.unpushed.is_empty() {
            return;
        }
        let mut step = std::mem::take(&mut self.step);
        // So that what they cost is counted with the place that is damaged.
        self.put_aside(&mut step);
        for (queue, seq) in std::mem::take(&mut self.lost) {
            let place = self.broker.message_at(queue, seq).map(|message| message.place);
            self.broker.lose_message(queue, seq, &mut step);
            match place.map(Where::of) {
                Some(Where::Shelf { run, ordinal }) => self.damage.lost(run, ordinal),
                _ => self.damage.lost_messages += 1,
            }
        }
        for (feed, bytes) in std::mem::take(&mut self.unpushed) {
            let taken = self.broker.apply(self.broker.now(), Command::Taken { feed, bytes }, &mut step);
            assert!(taken.is_ok(), "what is taken is never refused");
        }
        self.step = step;
        self.keep(false);
    }

    /// Messages of a queue that wait in segments which were missing when the store was opened.
    pub(super) fn missing_in(&self, queue: QueueId) -> u64 {
        self.missing.iter().filter(|missing| missing.queue == queue).map(|missing| missing.waiting).sum()
    }

    /// Says of missing segments that the journal does not mention them any more, once that is so.
    pub(super) fn forget_missing(&mut self) {
        let oldest = self.chunk_of(self.writer.oldest_lsn());
        for missing in &mut self.missing {
            if missing.is_mentioned && missing.chunk < oldest {
                missing.is_mentioned = false;
                self.damage.unmentioned(missing.run);
            }
        }
    }

    /// Stops telling of missing segments whose queue was purged, or is gone. Answers how many messages waited in those that were purged.
    pub(super) fn give_up_missing(&mut self, purged: Option<QueueId>) -> u64 {
        if self.missing.is_empty() {
            return 0;
        }
        let messages = purged.map_or(0, |queue| self.missing_in(queue));
        let (over, left): (Vec<_>, Vec<_>) = std::mem::take(&mut self.missing)
            .into_iter()
            .partition(|it| purged == Some(it.queue) || self.broker.name(it.queue).is_none());
        self.missing = left;
        for Missing { queue, run, .. } in over {
            self.damage.given_up(run);
            self.record(&[Fact::RunSettled { queue, run, how: Settled::Removed }], false);
        }
        messages
    }

    /// What of segments was found damaged since the store was opened.
    #[must_use]
    pub fn damage(&self) -> &DamageHealth {
        &self.damage
    }

    /// One message more says this.
    pub(super) fn share(&mut self, place: Place) {
        match Where::of(place) {
            Where::Here { chunk, slot } => self.contents.share(chunk, slot),
            Where::Shelf { run, .. } => self.holds.share(run),
        }
    }

    /// One message fewer says this.
    pub(super) fn release(&mut self, place: Place) {
        match Where::of(place) {
            Where::Here { chunk, slot } => {
                self.released.extend(self.contents.release(chunk, slot));
                if self.released.len() > RELEASED_MAX {
                    self.released.clear();
                }
            }
            Where::Shelf { run, .. } => self.forget(run, 1),
        }
    }

    /// Contents that no message says any more. Freeing them is most of the time in which a run leaves memory, so a caller with a thread to spare frees
    /// them there. Those that are not taken are freed here once there are many.
    pub fn take_released(&mut self) -> Vec<Arc<Content>> {
        std::mem::take(&mut self.released)
    }

    /// So many messages fewer hold the segment of a run.
    pub(super) fn forget(&mut self, run: RunId, messages: u64) {
        if self.holds.get(run).is_none() {
            // Nothing of its plan was left, so it never began.
            self.spilling.over.push(run);
        } else if self.holds.release(run, messages) {
            self.ended.push(run);
        }
    }

    /// Says of runs that nobody needs any more that their segments go. One of which messages are in quarantine stays until they are given up.
    pub(super) fn end_runs(&mut self) {
        for run in std::mem::take(&mut self.ended) {
            let is_free = self
                .holds
                .get(run)
                .is_some_and(|held| held.messages == 0 && self.broker.quarantined(held.queue, run) == 0);
            if is_free && let Some(held) = self.holds.end(run) {
                self.damage.given_up(run);
                let (queue, how) = (held.queue, Settled::Removed);
                self.record(&[Fact::RunSettled { queue, run, how }], false);
                if held.is_settled {
                    self.spilling.lingering.insert((held.first_chunk, run));
                } else {
                    self.spilling.over.push(run);
                }
            }
        }
    }
}
