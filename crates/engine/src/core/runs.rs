//! What the journal says of runs, while it is read: which segments are needed, and which of them are there.
//!
//! A damaged block costs its messages, but for those that the journal still has: they stay in memory, as they were published. When
//! damage may be skipped each segment is looked through, as long as that takes; else damage is found when it is come across.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use overtake_lane::{Broker, Fact, Ordinals, Priority, QueueId, RunId, RunRecord, Seq, State, Step};
use overtake_store::{Aside, Block, Disk, IdIndex, OnDamage, Segment, SegmentInfo, Segments};

use super::recover::{Lost, LostMessages, OpenError, UnknownSegment};
use super::salvage::Salvage;
use crate::api::Content;
use crate::damage::DamageHealth;
use crate::place::Where;
use crate::shelf::{File, Holds, Quarantine};

/// What the journal says of runs.
pub(super) struct Runs {
    on_damage: OnDamage,
    /// The last record of each that is not said to be over.
    stored: BTreeMap<RunId, Told>,
    /// Those of them whose segment is not there, or of which nothing can be read. It is gone because they are over, which is said
    /// later, or lost.
    missing: BTreeMap<RunId, Missing>,
    /// Messages that make no sense in segments that were looked through, though their blocks are whole.
    unreadable: BTreeMap<RunId, Ordinals>,
    quarantine: Arc<Quarantine>,
    /// Segments that were looked through and of which something is damaged, whatever it costs.
    damaged: BTreeSet<RunId>,
    /// The runs that are said to be over,
    over: BTreeSet<RunId>,
    /// and the queues that are said to be gone.
    deleted: BTreeSet<QueueId>,
    /// Records are missing, so that there may be segments of which nothing is said.
    is_damaged: bool,
    /// Of a journal in which records are missing: the messages that are said to be gone.
    gone: BTreeSet<(QueueId, Seq)>,
    /// Of a journal in which records are missing: the last purge of each queue, of which all before a sequence is gone, but for these.
    purged: BTreeMap<QueueId, (Seq, Vec<Seq>)>,
    /// Messages of damaged blocks and missing segments that the journal still has.
    salvage: Salvage,
}

/// A run whose segment is not there, or of which nothing can be read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Missing {
    pub(super) queue: QueueId,
    pub(super) run: RunId,
    /// Messages that waited in it. Of those that [`Runs::missing`] answers: without those that were found in the journal.
    pub(super) waiting: u64,
    /// Where the journal speaks of it first.
    pub(super) chunk: u32,
    /// Whether the journal still speaks of this run.
    pub(super) is_mentioned: bool,
}

struct Told {
    queue: QueueId,
    chunk: u32,
    first_chunk: u32,
    holes: usize,
    /// What waited in it is gone, by one word.
    is_settled: bool,
    segment: SegmentInfo,
}

impl Runs {
    pub(super) fn new(on_damage: OnDamage, quarantine: Arc<Quarantine>, is_damaged: bool) -> Self {
        Self {
            on_damage,
            stored: BTreeMap::new(),
            missing: BTreeMap::new(),
            unreadable: BTreeMap::new(),
            quarantine,
            damaged: BTreeSet::new(),
            over: BTreeSet::new(),
            deleted: BTreeSet::new(),
            is_damaged,
            gone: BTreeSet::new(),
            purged: BTreeMap::new(),
            salvage: Salvage::default(),
        }
    }

    /// Remembers what a fact says is over: runs and queues, and where records are missing messages, too.
    pub(super) fn note_ended(&mut self, fact: &Fact) {
        match fact {
            Fact::RunSettled { run, .. } => drop(self.over.insert(*run)),
            Fact::RunsRewritten { of, .. } => self.over.extend(of.iter().map(|old| old.run)),
            Fact::Settled { queue, seq, .. } | Fact::Moved { from: queue, seq, .. } if self.is_damaged => {
                self.gone.insert((*queue, *seq));
            }
            Fact::Purged { queue, before, kept } if self.is_damaged => {
                self.purged.insert(*queue, (*before, kept.clone()));
            }
            Fact::QueueDeleted { queue } => drop(self.deleted.insert(*queue)),
            Fact::QueueStored { queue, .. } => drop(self.deleted.remove(queue)),
            _ => {}
        }
    }

    /// Segments of which the journal says nothing, because those records are missing: what of them is neither elsewhere nor said to be
    /// gone waits in them. The newest first, since what was rewritten is in the newer one. `chunk` is where it will be said.
    pub(super) fn adopt<D: Disk>(
        &mut self,
        broker: &mut Broker,
        segments: &Segments<D>,
        chunk: u32,
    ) -> Result<(Vec<LostMessages>, Vec<Fact>), OpenError> {
        let (mut adopted, mut facts) = (Vec::new(), Vec::new());
        if !self.is_damaged {
            return Ok((adopted, facts));
        }
        for number in segments.numbers()?.into_iter().rev().map(RunId) {
            if self.stored.contains_key(&number) || self.over.contains(&number) {
                continue;
            }
            let segment = match segments.get(number.0) {
                Ok(Some(segment)) => segment,
                Ok(None) => continue,
                Err(error) if self.quarantine.segment(number, &error) => continue,
                Err(error) => return Err(error.into()),
            };
            let queue = segment.info().queue;
            if self.deleted.contains(&queue) {
                continue;
            }
            let Some(mut record) = self.record_of(broker, &segment) else { continue };
            self.stored(queue, &mut record, chunk, segments)?;
            let fact = Fact::RunStored { queue, run: Box::new(record.clone()) };
            let mut step = Step::default();
            if broker.fold(fact.clone(), &mut step).is_ok() {
                facts.push(fact);
                let salvaged = record.waiting();
                let queue = name_of(broker, queue);
                adopted.push(LostMessages { segment: number.0, queue, messages: 0, salvaged });
            }
        }
        Ok((adopted, facts))
    }

    /// Whether a journal in which records are missing says that a message is gone.
    fn is_gone(&self, queue: QueueId, seq: Seq) -> bool {
        let is_purged = |(before, kept): &(Seq, Vec<Seq>)| seq < *before && kept.binary_search(&seq).is_err();
        self.gone.contains(&(queue, seq)) || self.purged.get(&queue).is_some_and(is_purged)
    }

    /// What waits in a segment of which the journal says nothing; `None` if nothing does.
    fn record_of<D: Disk>(&self, broker: &Broker, segment: &Segment<D>) -> Option<RunRecord> {
        let info = segment.info();
        let (mut holes, mut bytes, mut priority, mut is_mixed) = (BTreeSet::new(), 0, None, false);
        for block in segment.blocks() {
            // What cannot be read stays in: it is found in quarantine then.
            let Ok(Some(block)) = segment.block(block.ordinals.start) else { continue };
            for ordinal in block.ordinals() {
                let seq = block.seq(ordinal);
                let is_known = || broker.message_at(info.queue, seq).is_some();
                match block.message(ordinal) {
                    Ok(message) if !self.is_gone(info.queue, seq) && !is_known() => {
                        bytes += u64::from(message.bytes);
                        is_mixed |= priority.is_some_and(|other| other != message.priority);
                        priority = priority.or(Some(message.priority));
                    }
                    _ => drop(holes.insert(ordinal as u32)),
                }
            }
        }
        let mut next = 0;
        while holes.contains(&next) {
            next += 1;
        }
        let record = RunRecord {
            run: RunId(info.number),
            priority: priority?,
            count: u32::try_from(info.count).ok()?,
            ids: u32::try_from(info.ids).ok()?,
            deaths: u32::try_from(info.count).ok()?,
            bytes,
            expires: info.expires,
            first: info.first,
            last: info.last,
            next,
            holes: holes.range(next..).copied().collect(),
            is_mixed,
        };
        (record.waiting() > 0).then_some(record)
    }

    /// Takes note of a fact; answers whether it is to be folded.
    pub(super) fn take<D: Disk>(
        &mut self,
        fact: &mut Fact,
        chunk: u32,
        segments: &Segments<D>,
    ) -> Result<bool, OpenError> {
        match fact {
            Fact::RunStored { queue, run } | Fact::RunRestated { queue, run } => {
                self.stored(*queue, run, chunk, segments)
            }
            Fact::RunsRewritten { queue, run, .. } => {
                if !self.stored(*queue, run, chunk, segments)? {
                    // What went from the old ones is not there either.
                    (run.next, run.bytes, run.holes) = (run.count, 0, Ordinals::default());
                }
                Ok(true)
            }
            Fact::RunSettled { run, .. } => {
                segments.keep_free(run.0);
                self.missing.remove(run);
                if let Some(told) = self.stored.get_mut(run) {
                    told.is_settled = true;
                }
                Ok(true)
            }
            Fact::QueueDeleted { queue } => {
                self.missing.retain(|_, missing| missing.queue != *queue);
                Ok(true)
            }
            _ => Ok(true),
        }
    }

    /// Takes note of the record of a run. False: its segment is not there.
    fn stored<D: Disk>(
        &mut self,
        queue: QueueId,
        record: &mut RunRecord,
        chunk: u32,
        segments: &Segments<D>,
    ) -> Result<bool, OpenError> {
        let run = record.run;
        segments.keep_free(run.0);
        let found = match segments.get(run.0) {
            Ok(found) => found,
            Err(error) if self.quarantine.segment(run, &error) => None,
            Err(error) => return Err(error.into()),
        };
        let found = found.filter(|segment| is_of(record, queue, segment.info()) || !self.may_skip());
        let Some(segment) = found else {
            let chunk = self.missing.get(&run).map_or(chunk, |missing| missing.chunk);
            self.missing
                .insert(run, Missing { queue, run, waiting: record.waiting(), chunk, is_mentioned: true });
            return Ok(false);
        };
        if !is_of(record, queue, segment.info()) {
            return Err(OpenError::OtherSegment { number: run.0 });
        }
        if segment.info().count < u64::from(record.count) {
            self.quarantine.missing_end(record, segment.info());
        }
        if self.may_skip() {
            let quarantine = &self.quarantine;
            if !self.unreadable.contains_key(&run) && !segment.has_whole_ids() {
                self.damaged.insert(run);
            }
            let lost = self.unreadable.entry(run).or_insert_with(|| unreadable(&segment, quarantine));
            if !lost.is_empty() || quarantine.has(run) {
                self.damaged.insert(run);
            }
            leave_out(record, lost);
        }
        let segment = *segment.info();
        let first_chunk = self.stored.get(&run).map_or(chunk, |told| told.first_chunk);
        let holes = record.holes.len();
        self.stored.insert(run, Told { queue, chunk, first_chunk, holes, is_settled: false, segment });
        Ok(true)
    }

    fn may_skip(&self) -> bool {
        self.on_damage == OnDamage::Skip
    }

    /// After a fact that says what waits in a run: notes which messages of its damaged blocks are in memory, since the journal
    /// still has them.
    pub(super) fn note_salvaged(&mut self, broker: &Broker, queue: QueueId, record: &RunRecord) {
        let run = record.run;
        let mut blocks: Vec<(Range<u32>, (Seq, Seq))> = self
            .quarantine
            .of(run)
            .into_iter()
            .map(|block| (block.ordinals.start..block.ordinals.end.min(record.count), block.seqs))
            .collect();
        // In a store that is whole, a segment is missing because a later record says that it is over. By then the journal said of each of its
        // messages what became of it, and none that is in memory for another reason may end with it.
        let is_missing = blocks.is_empty() && self.missing.contains_key(&run);
        if is_missing {
            blocks.push((0..record.count, (record.first, record.last)));
        }
        if blocks.is_empty() || self.salvage.has(run) {
            return;
        }
        let (mut count, mut seqs) = (0, BTreeSet::new());
        for (ordinals, (first, last)) in blocks {
            let waits = |ordinal: &u32| *ordinal >= record.next && !record.holes.contains(*ordinal);
            let waiting = ordinals.clone().filter(waits).count();
            let here =
                in_memory(broker, queue, first.max(record.first), last.min(record.last), record.priority);
            count += here.len().min(waiting) as u64;
            // Where some were taken, nobody knows which of them these are: rather they come twice than not at all.
            if waiting == ordinals.len() && !is_missing {
                seqs.extend(here);
            }
        }
        self.salvage.add(run, queue, count, seqs);
    }

    /// Before a fact is folded: the messages that it ends without naming them, because they were in a damaged block.
    pub(super) fn ended_by(&mut self, fact: &Fact) -> Vec<Fact> {
        self.salvage.ended_by(fact)
    }

    /// After the last record: what is lost leaves the broker, and is counted.
    pub(super) fn check_lost(&self, broker: &mut Broker, damage: &mut DamageHealth) -> Lost {
        let mut lost = Lost::default();
        for Missing { queue, run, waiting, .. } in self.missing.values() {
            let salvaged = self.salvage.count(*run).min(*waiting);
            let (queue, messages) = (name_of(broker, *queue), waiting - salvaged);
            damage.found(&self.quarantine.whole(*run), &queue, messages);
            lost.segments.push(LostMessages { segment: run.0, queue, messages, salvaged });
        }
        let mut step = Step::default();
        for block in self.quarantine.take_fresh() {
            let Some(told) = self.stored.get(&block.run) else { continue };
            let before = broker.run_waiting(told.queue, block.run);
            broker.lose(told.queue, block.run, block.ordinals.clone(), &mut step);
            let messages = before - broker.run_waiting(told.queue, block.run);
            if messages == 0 {
                continue;
            }
            let queue = name_of(broker, told.queue);
            damage.found(&block, &queue, messages);
            match lost.messages.iter_mut().find(|lost| lost.segment == block.run.0) {
                Some(lost) => lost.messages += messages,
                None => {
                    lost.messages.push(LostMessages { segment: block.run.0, queue, messages, salvaged: 0 });
                }
            }
        }
        for part in &mut lost.messages {
            part.salvaged = self.salvage.count(RunId(part.segment)).min(part.messages);
            part.messages -= part.salvaged;
            damage.salvaged(RunId(part.segment), part.salvaged);
        }
        for (run, nonsense) in
            self.unreadable.iter().filter(|(run, lost)| !lost.is_empty() && self.stored.contains_key(run))
        {
            let (queue, messages) = (name_of(broker, self.stored[run].queue), nonsense.len() as u64);
            lost.messages.push(LostMessages { segment: run.0, queue, messages, salvaged: 0 });
        }
        lost
    }

    /// The runs whose segments may come back; none where damage is skipped.
    pub(super) fn missing(&self) -> Vec<Missing> {
        if self.may_skip() {
            return Vec::new();
        }
        let lost = |missing: &Missing| missing.waiting.saturating_sub(self.salvage.count(missing.run));
        self.missing.values().map(|missing| Missing { waiting: lost(missing), ..*missing }).collect()
    }

    /// Whether so many messages of a run were found in the journal.
    pub(super) fn is_found_elsewhere(&self, run: RunId, quarantined: u64) -> bool {
        (1..=self.salvage.count(run)).contains(&quarantined)
    }

    /// The runs of which all that is damaged was found in the journal, with their queues.
    pub(super) fn found_elsewhere(&self, lost: &Lost) -> Vec<(QueueId, RunId)> {
        let whole = lost.messages.iter().filter(|part| part.messages == 0 && part.salvaged > 0);
        let runs = whole.map(|part| RunId(part.segment));
        runs.filter_map(|run| Some((self.stored.get(&run)?.queue, run))).collect()
    }

    /// The runs whose segments are damaged, as far as they were looked through, with their queues.
    pub(super) fn damaged(&self) -> Vec<(QueueId, RunId)> {
        let there = self.damaged.iter().filter_map(|run| Some((self.stored.get(run)?.queue, *run)));
        there.collect()
    }

    /// Has the ids of what waits found.
    pub(super) fn find_ids<D: Disk>(&self, ids: &IdIndex<D>) -> Result<(), OpenError> {
        ids.retain(|number| self.stored.contains_key(&RunId(number)));
        let with_ids = self.stored.iter().filter(|(_, told)| told.segment.ids > 0);
        for (run, _) in with_ids {
            ids.add(run.0)?;
        }
        Ok(())
    }

    /// Sets those of the segments that nobody knows of aside that no crash can have left, and keeps the rest in the list. A crash leaves a
    /// segment of the life before this one of which nothing was said yet, or one that is said to be over; another was put there by
    /// somebody, perhaps after it had been missing for so long that the journal no longer mentions it.
    pub(super) fn set_unknown_aside<D: Disk>(
        &self,
        broker: &Broker,
        segments: &Segments<D>,
        previous_life: Option<u32>,
        over: &mut Vec<RunId>,
    ) -> Result<Vec<UnknownSegment>, OpenError> {
        let mut unknown = Vec::new();
        for run in std::mem::take(over) {
            let found = segments.get(run.0).inspect_err(|error| _ = self.quarantine.segment(run, error));
            let is_left = |segment: &Segment<D>| {
                let is_over = self.over.contains(&run) || self.deleted.contains(&segment.info().queue);
                let is_new = Some(segment.life()) == previous_life;
                !self.missing.contains_key(&run) && (is_over || is_new || self.is_damaged)
            };
            match found {
                Ok(Some(segment)) if !is_left(&segment) => {
                    let (queue, messages) = (name_of(broker, segment.info().queue), segment.info().count);
                    let kept_as = segments.set_aside(run.0, Aside::Unknown)?;
                    unknown.push(UnknownSegment { segment: run.0, queue, messages, kept_as });
                }
                _ => over.push(run),
            }
        }
        Ok(unknown)
    }

    /// Who holds which segment, and the segments that nobody knows of.
    pub(super) fn held(&self, broker: &Broker, there: &[u64]) -> (Holds, Vec<RunId>) {
        let mut messages: BTreeMap<RunId, u64> = self.stored.keys().map(|run| (*run, 0)).collect();
        for view in broker.runs() {
            *messages.entry(view.run).or_default() += view.waiting;
        }
        let on_shelf = |place| Where::of(place).run().is_some();
        for (queue, seq) in broker.scan((QueueId(0), Seq(0)), usize::MAX, on_shelf).0 {
            let place = broker.message_at(queue, seq).map(|message| message.place);
            if let Some(run) = place.and_then(|place| Where::of(place).run()) {
                *messages.entry(run).or_default() += 1;
            }
        }
        let mut holds = Holds::default();
        for (run, told) in &self.stored {
            let Told { queue, chunk, first_chunk, holes, is_settled, segment } = *told;
            let file = File { count: segment.count, len: segment.file_len };
            holds.begin(*run, queue, file, messages[run], chunk, holes);
            holds.began(*run, first_chunk);
            if is_settled || messages[run] == 0 {
                // One that is at its end may linger, too: nobody knows how it came to it.
                holds.settle(*run);
            }
        }
        // One of which nothing can be read stays, should that change; but a store that is written again says nothing of it any more.
        let is_kept = |run: &RunId| !self.may_skip() && self.missing.contains_key(run);
        let unknown = there.iter().map(|number| RunId(*number));
        let unknown = unknown.filter(|run| !self.stored.contains_key(run) && !is_kept(run));
        (holds, unknown.collect())
    }
}

/// The name of a queue, or the one that it gets where the journal never says it.
fn name_of(broker: &Broker, queue: QueueId) -> String {
    let name = broker.name(queue).filter(|name| !name.is_empty());
    name.map_or_else(|| format!("recovered-{}", queue.0), |name| name.to_string())
}

/// Whether a record speaks of this segment, or of one of which this is what is left.
fn is_of(record: &RunRecord, queue: QueueId, segment: &SegmentInfo) -> bool {
    let is_whole = u64::from(record.count) == segment.count && record.last == segment.last;
    let is_left = segment.is_rebuilt && u64::from(record.count) > segment.count && record.last > segment.last;
    queue == segment.queue && (is_whole || is_left) && record.first >= segment.first
}

/// The ready messages of a queue that are in memory, between these sequences and of this priority.
fn in_memory(broker: &Broker, queue: QueueId, first: Seq, last: Seq, priority: Priority) -> Vec<Seq> {
    const AT_ONCE: usize = 1_024;
    let mut found = Vec::new();
    let mut next = Some((queue, first));
    while let Some(from) = next.filter(|(of, seq)| *of == queue && *seq <= last) {
        let (here, then) = broker.scan(from, AT_ONCE, |_| true);
        let here = here.into_iter().filter(|(of, seq)| *of == queue && *seq <= last);
        found.extend(here.map(|(_, seq)| seq).filter(|seq| match broker.stored_fact(queue, *seq) {
            Some(Fact::Stored { message, .. }) => {
                message.priority == priority && message.state == State::Ready
            }
            _ => false,
        }));
        next = then;
    }
    found
}

/// Looks through a whole segment: puts its damaged blocks into quarantine, and answers the messages of the others that make no sense.
fn unreadable<D: Disk>(segment: &Segment<D>, quarantine: &Quarantine) -> Ordinals {
    let can_be_read = |block: &Block, ordinal: u64| {
        block.message(ordinal).is_ok() && Content::decode(block.content(ordinal)).is_some()
    };
    let of_block = |ordinals: Range<u64>| match segment.block(ordinals.start) {
        Ok(Some(block)) => ordinals.filter(|ordinal| !can_be_read(&block, *ordinal)).collect::<Vec<_>>(),
        Ok(None) => Vec::new(),
        Err(error) if quarantine.block(segment, ordinals.start, &error).is_some() => Vec::new(),
        Err(_) => ordinals.collect(),
    };
    segment.blocks().flat_map(|block| of_block(block.ordinals)).map(|ordinal| ordinal as u32).collect()
}

/// Says of messages that they are taken.
fn leave_out(record: &mut RunRecord, lost: &Ordinals) {
    if lost.is_empty() {
        return;
    }
    let before = record.waiting();
    let taken: BTreeSet<u32> = record.holes.iter().chain(lost.iter()).collect();
    while taken.contains(&record.next) {
        record.next += 1;
    }
    record.holes = taken.range(record.next..).copied().collect();
    // Nobody knows how many bytes the lost ones had.
    let each = record.bytes / before.max(1);
    record.bytes = each * record.waiting();
}
