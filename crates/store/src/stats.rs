//! What a store takes, and what for, without changing it.

use std::collections::BTreeMap;
use std::io;

use overtake_lane::{Fact, QueueId, VHOST_DEFAULT_NAME, VhostId};

use crate::catalog::Catalog;
use crate::disk::{Disk, DiskFile, Space};
use crate::error::StoreError;
use crate::file::{FORMAT_VERSION, Name, SEGMENT_BYTES_MIN};
use crate::journal::first_file;
use crate::lsn::Lsn;
use crate::record::Decoder;
use crate::recovery::Recovery;
use crate::segment::{Segment, SegmentInfo};
use crate::survey::{Survey, survey};

/// A running broker may give a file back while it is read; then it is read anew, so often at most.
const ATTEMPTS: usize = 5;

/// What [`stats`] found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stats {
    /// Whether someone has the store open; then it is as it was a moment ago.
    pub is_locked: bool,
    /// The store's id.
    pub store_id: u64,
    /// The last life that wrote; `None` when none has.
    pub life: Option<u32>,
    /// The version of its format.
    pub format: u32,
    /// The room on its disk, where that can be told.
    pub space: Option<Space>,
    /// Journal files with records still needed.
    pub needed: Files,
    /// Journal files prepared for what comes next.
    pub ahead: Files,
    /// Files that are not needed: spares, half-made ones, and journal files nobody has got round to.
    pub spare: Files,
    /// The LSN at which the oldest needed file begins.
    pub oldest: Lsn,
    /// Where the log ends.
    pub tail: Lsn,
    /// Records still needed.
    pub records: u64,
    /// Bytes of payload in them.
    pub record_bytes: u64,
    /// Places in the journal that cannot be read; [`check`](crate::check) names them.
    pub damaged: usize,
    /// Segments that can be opened, of all queues.
    pub segments: SegmentStats,
    /// Segments that cannot.
    pub unreadable_segments: usize,
    /// Every queue the journal knows or a segment is of, by number.
    pub queues: Vec<QueueStats>,
}

/// Some files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Files {
    /// How many.
    pub count: usize,
    /// Their length, bytes.
    pub bytes: u64,
}

impl Files {
    fn add(&mut self, bytes: u64) {
        self.count += 1;
        self.bytes += bytes;
    }
}

/// Some segments. What they hold is counted whether it still waits or not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SegmentStats {
    /// The files.
    pub files: Files,
    /// Messages in them.
    pub messages: u64,
    /// Bytes of the messages' contents.
    pub bytes: u64,
}

impl SegmentStats {
    fn add(&mut self, info: &SegmentInfo) {
        self.files.add(info.file_len);
        self.messages += info.count;
        self.bytes += info.bytes;
    }
}

/// What a queue takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueStats {
    /// Its number.
    pub queue: QueueId,
    /// The virtual host it is in; `/` when the journal does not say it.
    pub vhost: VhostId,
    /// The name of that; `None` when the journal does not say it.
    pub vhost_name: Option<String>,
    /// Its name; `None` when the journal does not say it: its segments are left over, or the place is damaged.
    pub name: Option<String>,
    /// Its segments.
    pub segments: SegmentStats,
}

/// Counts what is in a store. Reads the journal, and of segments what they say of themselves; changes nothing, takes no
/// lock, and works beside a process that has it.
///
/// # Errors
/// [`StoreError::NotAStore`]; [`StoreError::JournalMissing`]; [`StoreError::Corrupt`] when not even the place of the log can be told; [`StoreError::Newer`];
/// [`StoreError::OtherStore`]; [`StoreError::Io`]. Other damage is counted.
pub fn stats<D: Disk>(disk: &D) -> Result<Stats, StoreError> {
    let mut attempt = 1;
    loop {
        match look(disk) {
            Err(error) if attempt < ATTEMPTS && is_gone(&error) => attempt += 1,
            result => return result,
        }
    }
}

fn is_gone(error: &StoreError) -> bool {
    matches!(error, StoreError::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
}

fn look<D: Disk>(disk: &D) -> Result<Stats, StoreError> {
    let of_dir = |op| move |source| StoreError::io(op, "the directory", source);
    let is_locked = disk.is_locked().map_err(of_dir("look at the lock of"))?;
    let space = disk.space().map_err(of_dir("look at the room of"))?;
    let catalog = Catalog::read(disk, None)?;
    if catalog.journals.is_empty() {
        return Err(catalog.no_journal());
    }
    if let Some(refusal) = catalog.refusal() {
        return Err(refusal);
    }
    let survey = survey(disk, &catalog, first_file(0, SEGMENT_BYTES_MIN))?;
    let store_id = survey.end.file.store_id;
    let mut stats = Stats {
        is_locked,
        store_id,
        life: survey.life,
        format: FORMAT_VERSION,
        space,
        needed: journals(&catalog, survey.files.iter().map(|header| header.number)),
        ahead: journals(&catalog, survey.beyond.iter().copied()),
        spare: journals(&catalog, survey.below.iter().copied()),
        oldest: survey.files.first().map_or(survey.end.lsn(), |header| header.first_lsn),
        tail: survey.end.lsn(),
        records: survey.records,
        record_bytes: survey.bytes,
        damaged: survey.damage.len(),
        segments: SegmentStats::default(),
        unreadable_segments: 0,
        queues: Vec::new(),
    };
    stats.count_spares(disk, &catalog)?;
    let mut queues = queues(disk, survey)?;
    stats.count_segments(disk, &catalog, &mut queues)?;
    stats.queues = queues.into_values().collect();
    Ok(stats)
}

fn journals(catalog: &Catalog, numbers: impl Iterator<Item = u64>) -> Files {
    let mut files = Files::default();
    numbers.filter_map(|number| catalog.journals.get(&number)).for_each(|entry| files.add(entry.len));
    files
}

/// The queues the journal knows, by number.
fn queues<D: Disk>(disk: &D, survey: Survey) -> Result<BTreeMap<QueueId, QueueStats>, StoreError> {
    let mut queues = BTreeMap::new();
    let mut vhosts = BTreeMap::from([(VhostId::DEFAULT, VHOST_DEFAULT_NAME.to_owned())]);
    name_queues(disk, survey, &mut queues, &mut vhosts)?;
    for queue in queues.values_mut().filter(|queue| queue.name.is_some()) {
        queue.vhost_name = vhosts.get(&queue.vhost).cloned();
    }
    Ok(queues)
}

fn name_queues<D: Disk>(
    disk: &D,
    survey: Survey,
    queues: &mut BTreeMap<QueueId, QueueStats>,
    vhosts: &mut BTreeMap<VhostId, String>,
) -> Result<(), StoreError> {
    let mut recovery = Recovery::new(disk.clone(), survey);
    loop {
        let payload = match recovery.next_record() {
            Ok(Some((_, payload))) => payload,
            // A file that is written to meanwhile may look torn: what was read before still holds.
            Ok(None) | Err(StoreError::Corrupt { .. }) => return Ok(()),
            Err(error) => return Err(error),
        };
        // A record of a newer version is left at the first fact that is not known.
        for (fact, _) in Decoder::new(payload).map_while(Result::ok) {
            match fact {
                Fact::VhostStored { vhost, name, .. } => _ = vhosts.insert(vhost, name.to_string()),
                Fact::VhostDeleted { vhost } => {
                    vhosts.remove(&vhost);
                    queues.retain(|_, queue| queue.vhost != vhost);
                }
                Fact::QueueStored { queue, vhost, name, .. } => {
                    let queue = named(queues, queue);
                    (queue.vhost, queue.name) = (vhost, Some(name.to_string()));
                }
                Fact::QueueDeleted { queue } => _ = queues.remove(&queue),
                _ => {}
            }
        }
    }
}

fn named(queues: &mut BTreeMap<QueueId, QueueStats>, queue: QueueId) -> &mut QueueStats {
    let unknown = || QueueStats {
        queue,
        vhost: VhostId::DEFAULT,
        vhost_name: None,
        name: None,
        segments: SegmentStats::default(),
    };
    queues.entry(queue).or_insert_with(unknown)
}

impl Stats {
    fn count_spares<D: Disk>(&mut self, disk: &D, catalog: &Catalog) -> Result<(), StoreError> {
        let spares = catalog.spares.iter().map(|id| Name::Spare(*id));
        for name in spares.chain(catalog.half_made.iter().copied()) {
            let name = name.to_string();
            match disk.open_to_read(&name).and_then(|file| file.len()) {
                Ok(len) => self.spare.add(len),
                // It has just been used, or removed.
                Err(source) if source.kind() == io::ErrorKind::NotFound => {}
                Err(source) => return Err(StoreError::io("read", &name, source)),
            }
        }
        Ok(())
    }

    fn count_segments<D: Disk>(
        &mut self,
        disk: &D,
        catalog: &Catalog,
        queues: &mut BTreeMap<QueueId, QueueStats>,
    ) -> Result<(), StoreError> {
        for &number in &catalog.segments {
            match Segment::open(disk, number, self.store_id) {
                Ok(segment) => {
                    self.segments.add(segment.info());
                    named(queues, segment.info().queue).segments.add(segment.info());
                }
                Err(error) if is_gone(&error) => {}
                Err(error @ StoreError::Io { .. }) => return Err(error),
                Err(_) => self.unreadable_segments += 1,
            }
        }
        Ok(())
    }
}
