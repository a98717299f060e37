//! From the disk to a broker: every record folded, then time let pass.

use std::fmt;
use std::sync::Arc;

use overtake_lane::{Asker, Broker, Effect, Fact, Place, Step, Time};
use overtake_store::record::Decoder;
use overtake_store::{Committer, Disk, IdIndex, Journal, Lsn, OnDamage, Report, Segments, StoreError};

use super::runs::Runs;
use super::{Core, bulk, house, spill};
use crate::api::Content;
use crate::contents::Contents;
use crate::damage::DamageHealth;
use crate::options::Options;
use crate::place::Where;
use crate::post::Post;
use crate::routing::Routes;
use crate::shelf::{Quarantine, Shelf, ShelfOnDisk, Spiller};
use crate::traces::Origin;

/// Why a store could not be opened.
#[derive(Debug)]
pub enum OpenError {
    /// The store refuses.
    Store(StoreError),
    /// A record is intact and makes no sense: it was written by a newer version.
    Unknown {
        /// Which.
        lsn: Lsn,
        /// From which byte on.
        at: usize,
    },
    /// A segment is not the one that the journal speaks of.
    OtherSegment {
        /// Its number.
        number: u64,
    },
    /// Messages of a segment could not be read.
    Unreadable(Arc<str>),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Store(error) => error.fmt(f),
            Self::Unknown { lsn, at } => write!(
                f,
                "the record at {} makes no sense from its byte {at} on: it was written by a newer version",
                lsn.0
            ),
            Self::OtherSegment { number } => {
                write!(f, "segment {number} is not the one that the journal speaks of")
            }
            Self::Unreadable(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for OpenError {}

impl From<StoreError> for OpenError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// What cannot be read of segments any more.
#[derive(Clone, Debug, Default)]
pub struct Lost {
    /// Segments that are gone, or of which nothing can be read.
    pub segments: Vec<LostMessages>,
    /// Segments of which some messages cannot be read.
    pub messages: Vec<LostMessages>,
    /// Segments that the journal no longer mentions, because the records that did are damaged, and how many messages were taken from
    /// each. Some of them may have been settled before.
    pub adopted: Vec<LostMessages>,
}

impl Lost {
    /// Whether nothing was skipped and nothing had to be found elsewhere.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.segments.is_empty() && self.messages.is_empty() && self.adopted.is_empty()
    }
}

/// What damage to a segment cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostMessages {
    /// Number of the segment.
    pub segment: u64,
    /// Name of the queue whose messages waited in it.
    pub queue: String,
    /// Messages that waited in it and are lost.
    pub messages: u64,
    /// Messages that could not be read there either, and were found in the journal.
    pub salvaged: u64,
}

/// A segment that the journal does not mention, and that no crash can have left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownSegment {
    /// Number of the segment.
    pub segment: u64,
    /// Name of the queue of its messages.
    pub queue: String,
    /// Messages in the segment, some or all of which may have been settled.
    pub messages: u64,
    /// The file name under which it is kept until somebody removes it.
    pub kept_as: String,
}

/// What a recovery found.
#[derive(Clone, Debug)]
pub struct Recovered {
    /// Queues.
    pub queues: usize,
    /// Messages, whatever their state.
    pub messages: u64,
    /// Those of them that wait in segments.
    pub spilled: u64,
    /// Segments that are needed.
    pub segments: usize,
    /// What of segments was skipped; nothing unless damage may be.
    pub lost: Lost,
    /// Segments that nobody knows of.
    pub unknown: Vec<UnknownSegment>,
    /// How often the store has been opened, this time included.
    pub life: u32,
    /// Facts about what is no longer kept: leases and settlements of messages whose records are gone.
    pub left_over: u64,
    /// What the journal found.
    pub journal: Report,
    /// Whether the store was written again without the damage that was skipped, so that it need not be skipped again; `None` when
    /// nothing was. It is not when there was no room for that.
    pub renewed: Option<bool>,
}

/// An open store.
pub struct Opened<T, D: Disk> {
    /// What decides.
    pub core: Core<T>,
    /// What makes durable.
    pub committer: Committer<D>,
    /// What does the jobs beside that.
    pub spiller: Spiller<D>,
    /// What was found.
    pub recovered: Recovered,
}

impl<T> Core<T> {
    /// Opens the store on a disk and makes the broker that it describes.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open<D: Disk>(disk: D, options: &Options, now: Time) -> Result<Opened<T, D>, OpenError> {
        let overtake_store::Opened { writer, mut committer, mut recovery, report, life, store_id } =
            Journal::open(disk.clone(), &options.journal())?;
        let blocks_max = usize::try_from(options.memory_bytes / BLOCKS_SHARE).unwrap_or(usize::MAX);
        let segments = Arc::new(Segments::open(disk, store_id, life, SEGMENTS_OPEN, blocks_max)?);
        let ids = Arc::new(IdIndex::open(Arc::clone(&segments), ID_FILTER_BYTES_MAX)?);
        let quarantine = Arc::new(Quarantine::new(options.on_damage));
        let shelf = ShelfOnDisk::new(Arc::clone(&segments), Arc::clone(&ids), Arc::clone(&quarantine));
        let shelf = Arc::new(shelf);
        let contents = Arc::new(Contents::default());
        let broker = Broker::with_backlog(options.broker(life, writer.record_len_max()), shelf.clone());
        let mut folding = Folding {
            broker: broker.with_letters(Arc::new(Post::new(Arc::clone(&contents), shelf.clone()))),
            contents,
            runs: Runs::new(options.on_damage, Arc::clone(&quarantine), !report.damage.is_empty()),
            step: Step::default(),
            left_over: 0,
            is_damaged: !report.damage.is_empty(),
        };
        let (first, tail) = (writer.oldest_lsn(), writer.tail());
        while let Some((lsn, payload)) = recovery.next_record()? {
            folding.record(lsn, payload, options, &segments)?;
            if let Some(why) = shelf.failure() {
                return Err(OpenError::Unreadable(why));
            }
        }
        drop(recovery);
        let Folding { mut broker, contents, mut runs, mut step, left_over, .. } = folding;
        let (adopted, facts) = runs.adopt(&mut broker, &segments, chunk_of(tail, options))?;
        step.facts.extend(facts);
        let mut damage = DamageHealth::default();
        let lost = Lost { adopted, ..runs.check_lost(&mut broker, &mut damage) };
        // What the journal still has of a damaged segment is settled by name, so it must not wait in the segment, too, until that can be read again.
        for (queue, run) in runs.found_elsewhere(&lost) {
            step.facts.extend(broker.replace_quarantined(queue, run));
            damage.given_up(run);
        }
        let damaged = runs.damaged();
        for (queue, run) in &damaged {
            // What can be read of a damaged segment leaves it. Of one that is over there is nothing to be brought.
            let _ = broker.fold(Fact::RunFetched { queue: *queue, run: *run }, &mut step);
        }
        if options.on_damage == OnDamage::Skip {
            broker.give_up_quarantined();
        }
        let (holds, mut over) = runs.held(&broker, &segments.numbers()?);
        let unknown = runs.set_unknown_aside(&broker, &segments, report.previous_life, &mut over)?;
        runs.find_ids(&ids)?;
        broker.wake(now, &mut step);
        let routes = Routes::recover(&broker);
        let (jobs, jobs_over) = bulk::recover(&broker);
        let mut core = Self {
            broker,
            writer,
            contents,
            shelf,
            holds,
            ended: Vec::new(),
            lost: Vec::new(),
            damage,
            missing: runs.missing(),
            spilling: spill::Spilling::new(over),
            options: options.clone(),
            pulls: std::collections::BTreeMap::new(),
            scans: jobs.into(),
            reads: 0,
            looked: 0,
            jobs_over,
            holders: super::holders::Holders::default(),
            routes,
            tracer: None,
            asking: Asker::default(),
            withdrawals: 0,
            feed: None,
            unpushed: Vec::new(),
            clock_ahead_ms: 0,
            got: None,
            outs: Vec::new(),
            released: Vec::new(),
            step,
            record: Vec::new(),
            overdue: std::collections::VecDeque::new(),
            scratch: Vec::new(),
            house: house::House::new(chunk_of(first, options), tail),
        };
        core.end_idle_runs();
        core.keep(false);
        if let Some(why) = core.failure() {
            return Err(OpenError::Unreadable(why));
        }
        let was_skipped = !report.damage.is_empty() || !lost.is_empty();
        let must_renew = options.on_damage == OnDamage::Skip && (was_skipped || !damaged.is_empty());
        let renewed = must_renew.then(|| core.renew(&mut committer)).transpose()?;
        if let Some(why) = core.failure() {
            return Err(OpenError::Unreadable(why));
        }
        let mut spiller = Spiller::new(segments, ids, quarantine);
        if renewed == Some(true) {
            // A start before the next commit would take damaged files for ones that are over.
            for job in core.take_late_jobs() {
                let done = spiller.perform(job)?;
                core.done(done);
            }
            core.damage.all_given_up();
        }
        let origin = Origin { store: store_id, life };
        let is_partial = core.messages() > 0;
        let tracer = |traces| Box::new(super::tracer::Tracer::new(traces, origin, is_partial));
        core.tracer = options.traces.clone().map(tracer);
        let recovered = Recovered {
            queues: core.broker.queue_count(),
            messages: core.messages(),
            spilled: core.broker.spilled_count(),
            segments: core.holds.len(),
            lost,
            unknown,
            life,
            left_over,
            journal: report,
            renewed,
        };
        Ok(Opened { core, committer, spiller, recovered })
    }

    /// Runs whose last message was settled before the store was closed, which nobody could say any more.
    pub(super) fn end_idle_runs(&mut self) {
        self.ended = self.holds.idle();
        self.end_runs();
    }
}

/// Bytes of memory that help to see that an id is new without reading the disk, at most: ten bits for 26 million ids.
const ID_FILTER_BYTES_MAX: usize = 32 << 20;
/// Segments kept open at once: a look at a queue of 64 lanes reads one of each side by side, and others read, too.
const SEGMENTS_OPEN: usize = 256;
/// The blocks that these keep in memory take this part of what messages may, at most, beside it.
const BLOCKS_SHARE: u64 = 4;

fn chunk_of(lsn: Lsn, options: &Options) -> u32 {
    u32::try_from(lsn.0 / options.segment_bytes).expect("a journal has fewer than 2^31 chunks")
}

/// A recovery on its way through the journal.
struct Folding {
    broker: Broker,
    contents: Arc<Contents>,
    runs: Runs,
    step: Step,
    left_over: u64,
    /// Records are missing.
    is_damaged: bool,
}

impl Folding {
    fn record<D: Disk>(
        &mut self,
        lsn: Lsn,
        payload: &[u8],
        options: &Options,
        segments: &Segments<D>,
    ) -> Result<(), OpenError> {
        let chunk = chunk_of(lsn, options);
        let mut content = None;
        for fact in Decoder::new(payload) {
            let (mut fact, bytes) = fact.map_err(|malformed| OpenError::Unknown { lsn, at: malformed.at })?;
            if let (Fact::Stored { message, .. }, Some(bytes)) = (&mut fact, bytes) {
                let said = match &content {
                    Some((same, said)) if *same == bytes.as_ptr() => Arc::clone(said),
                    _ => Arc::new(Content::decode(bytes).ok_or(OpenError::Unknown { lsn, at: 0 })?),
                };
                content = Some((bytes.as_ptr(), Arc::clone(&said)));
                message.place = self.contents.insert(said, chunk);
            }
            if self.is_damaged
                && let Fact::RunRestated { queue, run } = fact
            {
                // What said it first may be what is damaged, and what was published before that is there.
                fact = Fact::RunStored { queue, run };
            }
            self.runs.note_ended(&fact);
            for ended in self.runs.ended_by(&fact) {
                // The log doesn't have it: it is about messages that may be gone with their queue.
                let _ = self.fold(ended);
            }
            let is_whole = self.runs.take(&mut fact, chunk, segments)?;
            let told = match &fact {
                Fact::RunStored { queue, run }
                | Fact::RunRestated { queue, run }
                | Fact::RunsRewritten { queue, run, .. } => Some((*queue, run.clone())),
                _ => None,
            };
            let fetched = if let Fact::RunFetched { queue, run } = fact { Some((queue, run)) } else { None };
            if is_whole {
                self.left_over += u64::from(self.fold(fact));
            }
            if let Some((queue, run)) = fetched
                && self.runs.is_found_elsewhere(run, self.broker.quarantined(queue, run))
            {
                // As when that was said.
                let _ = self.broker.replace_quarantined(queue, run);
            }
            if let Some((queue, run)) = told {
                self.runs.note_salvaged(&self.broker, queue, &run);
            }
        }
        Ok(())
    }

    /// Applies a fact. Returns whether it is left over: it is about something that is not there.
    fn fold(&mut self, fact: Fact) -> bool {
        let place = if let Fact::Stored { message, .. } = &fact { Some(message.place) } else { None };
        // That a run is over may be said more than once, and when it is gone with its queue.
        let counts = !matches!(fact, Fact::RunSettled { .. });
        let unfounded = self.broker.fold(fact, &mut self.step).is_err();
        for effect in self.step.effects.drain(..) {
            match effect {
                Effect::Released(place) => release(&self.contents, place),
                Effect::Shared(place) => {
                    if let Where::Here { chunk, slot } = Where::of(place) {
                        self.contents.share(chunk, slot);
                    }
                }
                // Who holds a segment is counted at the end.
                Effect::Forgotten { .. } => {}
                Effect::Deliver(_)
                | Effect::Served { .. }
                | Effect::Cancelled { .. }
                | Effect::TimedOut { .. }
                | Effect::Returned { .. } => {
                    unreachable!("nobody consumes during a recovery")
                }
            }
        }
        if let Some(place) = place.filter(|_| unfounded) {
            release(&self.contents, place);
        }
        unfounded && counts
    }
}

fn release(contents: &Contents, place: Place) {
    if let Where::Here { chunk, slot } = Where::of(place) {
        contents.release(chunk, slot);
    }
}
