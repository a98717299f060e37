//! Reading a whole store without changing it.

use std::collections::BTreeMap;

use overtake_lane::{Fact, QueueId, RunId, RunRecord, Seq};

use crate::catalog::Catalog;
use crate::decide::Sight;
use crate::disk::Disk;
use crate::error::StoreError;
use crate::file::Name;
use crate::ids;
use crate::journal::{Tail, first_file};
use crate::record::Decoder;
use crate::recovery::Recovery;
use crate::segment::{Segment, examine};
use crate::survey::{Damage, Survey, survey};

/// What [`check`] found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckReport {
    /// Whether someone has the store open; what is being written may then look torn.
    pub is_locked: bool,
    /// The store's id, when a header says it.
    pub store_id: Option<u64>,
    /// The last life that wrote.
    pub life: Option<u32>,
    /// Files that hold records still needed.
    pub files: usize,
    /// Spares, half-made files, and files before or after the log.
    pub idle_files: usize,
    /// Records still needed.
    pub records: u64,
    /// Bytes of payload in them.
    pub bytes: u64,
    /// Segments, damaged or not.
    pub segments: usize,
    /// Messages in them that can be read, whether they still wait or not.
    pub segment_messages: u64,
    /// Bytes of their contents.
    pub segment_bytes: u64,
    /// Where the log ends; `None` when that cannot be told.
    pub tail: Option<Tail>,
    /// What is wrong: something durable cannot be read. In the order of the log, then of the segments.
    pub damage: Vec<Damage>,
    /// What is not as it was written, but costs nothing, as files of ids do; segments that were being made; and damage to segments of
    /// which the journal needs nothing.
    pub notes: Vec<Damage>,
}

impl CheckReport {
    /// Whether nothing is wrong.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.damage.is_empty()
    }
}

/// Reads everything, lists what is wrong and where, changes nothing. Takes no lock, and works beside a process that has it.
///
/// # Errors
/// [`StoreError::NotAStore`]; [`StoreError::JournalMissing`]; [`StoreError::Io`] when a file cannot be read. Damage is no error but a finding.
pub fn check<D: Disk>(disk: &D) -> Result<CheckReport, StoreError> {
    let is_locked =
        disk.is_locked().map_err(|source| StoreError::io("look at the lock of", "the directory", source))?;
    let catalog = Catalog::read(disk, None)?;
    let Some((&lowest, entry)) = catalog.journals.first_key_value() else {
        return Err(catalog.no_journal());
    };
    let mut report = CheckReport {
        is_locked,
        store_id: catalog.store_id,
        life: None,
        files: 0,
        idle_files: catalog.spares.len() + catalog.half_made.len(),
        records: 0,
        bytes: 0,
        segments: 0,
        segment_messages: 0,
        segment_bytes: 0,
        tail: None,
        damage: Vec::new(),
        notes: Vec::new(),
    };
    let fresh = first_file(0, crate::file::SEGMENT_BYTES_MIN);
    let mut needed = None;
    match survey(disk, &catalog, fresh) {
        Ok(found) => {
            report.life = found.life;
            report.files = found.files.len();
            report.idle_files += found.below.len() + found.beyond.len();
            report.records = found.records;
            report.bytes = found.bytes;
            report.tail = Some(Tail::of(&found));
            report.damage.clone_from(&found.damage);
            report.notes.clone_from(&found.notes);
            // Of a store that someone has open this cannot be told: one may have come or gone meanwhile.
            if !is_locked {
                let is_whole = found.damage.is_empty();
                let found = needed_segments(disk, found)?;
                report.damage.extend(missing_segments(disk, &catalog, &found));
                // What a damaged record said of segments is not known.
                needed = is_whole.then_some(found);
            }
        }
        Err(StoreError::Corrupt { file, at, what }) => {
            report.damage.push(Damage { file, at, bytes: entry.len, what });
            report.damage.extend(unreadable_headers(&catalog, lowest + 1));
        }
        Err(error) => return Err(error),
    }
    check_segments(disk, &catalog, needed.as_ref(), &mut report)?;
    Ok(report)
}

/// What the journal says of a segment.
struct Needed {
    queue: QueueId,
    messages: u64,
    first: Seq,
    last: Seq,
    /// Nothing waits in its run. The contents of messages that were fetched from it before may be needed all the same.
    is_over: bool,
}

impl Needed {
    fn new(queue: QueueId, run: &RunRecord) -> Self {
        let (messages, is_over) = (u64::from(run.count), false);
        Self { queue, messages, first: run.first, last: run.last, is_over }
    }
}

/// The segments that may be needed, by number, as far as the journal can be read: all that it names, but for those of which nothing can be left.
fn needed_segments<D: Disk>(disk: &D, survey: Survey) -> Result<BTreeMap<u64, Needed>, StoreError> {
    let mut needed = BTreeMap::new();
    let mut recovery = Recovery::new(disk.clone(), survey);
    loop {
        let payload = match recovery.next_record() {
            Ok(Some((_, payload))) => payload,
            // What cannot be read is damage that is listed already.
            Ok(None) | Err(StoreError::Corrupt { .. }) => return Ok(needed),
            Err(error) => return Err(error),
        };
        for (fact, _) in Decoder::new(payload).map_while(Result::ok) {
            note(&mut needed, fact);
        }
    }
}

/// Nothing waits in the run any more.
fn end(needed: &mut BTreeMap<u64, Needed>, run: RunId) {
    if let Some(said) = needed.get_mut(&run.0) {
        said.is_over = true;
    }
}

/// Takes over what a fact says of segments.
fn note(needed: &mut BTreeMap<u64, Needed>, fact: Fact) {
    match fact {
        Fact::RunStored { queue, run } | Fact::RunRestated { queue, run } => {
            needed.insert(run.run.0, Needed::new(queue, &run));
        }
        Fact::RunsRewritten { queue, run, of } => {
            of.iter().for_each(|old| end(needed, old.run));
            needed.insert(run.run.0, Needed::new(queue, &run));
        }
        Fact::RunSettled { run, .. } => end(needed, run),
        Fact::QueueDeleted { queue } => needed.retain(|_, said| said.queue != queue),
        Fact::Purged { queue, before, kept } => {
            let is_kept = |said: &Needed| {
                let next = kept.partition_point(|seq| *seq < said.first);
                said.last >= before || kept.get(next).is_some_and(|seq| *seq <= said.last)
            };
            needed.retain(|_, said| said.queue != queue || is_kept(said));
        }
        _ => {}
    }
}

/// The needed segments that are not there, or are not those that the journal speaks of.
fn missing_segments<D: Disk>(
    disk: &D,
    catalog: &Catalog,
    needed: &BTreeMap<u64, Needed>,
) -> impl Iterator<Item = Damage> {
    needed.iter().filter(|(_, said)| !said.is_over).filter_map(|(&number, said)| {
        let what = match Segment::open(disk, number, catalog.store_id.unwrap_or_default()) {
            _ if !catalog.segments.contains(&number) => Sight::FileMissing,
            Ok(segment) => {
                let info = segment.info();
                let is_it = (info.queue, info.count, info.last) == (said.queue, said.messages, said.last);
                (!info.is_rebuilt && !is_it).then_some(Sight::HeaderMisplaced)?
            }
            // Whatever is wrong with the file itself is found when it is read.
            Err(_) => return None,
        };
        Some(Damage { file: Name::Segment(number).to_string(), at: 0, bytes: 0, what })
    })
}

/// Reads every segment. Damage to one that is not among the `needed` costs nothing; without them, every one may be needed.
fn check_segments<D: Disk>(
    disk: &D,
    catalog: &Catalog,
    needed: Option<&BTreeMap<u64, Needed>>,
    report: &mut CheckReport,
) -> Result<(), StoreError> {
    for name in catalog.half_made.iter().filter(|name| matches!(name, Name::NewSegment(_) | Name::NewIds(_)))
    {
        let what = Sight::HalfMade;
        report.notes.push(Damage { file: name.to_string(), at: 0, bytes: 0, what });
    }
    for &number in &catalog.segments {
        let is_needed = needed.is_none_or(|needed| needed.contains_key(&number));
        let damage = if is_needed { &mut report.damage } else { &mut report.notes };
        let found = match examine(disk, number, catalog.store_id) {
            Err(error) if error.is_of_its_file() => {
                let (file, what) = (Name::Segment(number).to_string(), Sight::Unreadable);
                damage.push(Damage { file, at: 0, bytes: 0, what });
                continue;
            }
            found => found?,
        };
        let Some(found) = found else { continue };
        damage.extend(found.damage);
        report.segments += 1;
        report.segment_messages += found.messages;
        report.segment_bytes += found.bytes;
        report.notes.extend(found.notes);
    }
    for &number in &catalog.ids {
        report.notes.extend(ids::examine(disk, number, catalog.store_id)?);
    }
    Ok(())
}

fn unreadable_headers(catalog: &Catalog, from: u64) -> impl Iterator<Item = Damage> {
    catalog.journals.range(from..).filter_map(|(&number, entry)| {
        let what: Sight = catalog.header(number).err()?;
        Some(Damage { file: Name::Journal(number).to_string(), at: 0, bytes: entry.len, what })
    })
}
