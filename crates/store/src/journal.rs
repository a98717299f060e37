//! Opening a journal: survey, mend, and the first words of a new life.

use crate::catalog::Catalog;
use crate::committer::Committer;
use crate::decide::Sight;
use crate::disk::Disk;
use crate::error::StoreError;
use crate::file::{FileHeader, Name, segment_bytes_are_valid};
use crate::lsn::Lsn;
use crate::mend;
use crate::recovery::Recovery;
use crate::survey::{Damage, Survey, survey};
use crate::writer::Writer;

/// How to open a journal.
#[derive(Clone, Debug)]
pub struct Options {
    /// Length of a journal file in bytes, a multiple of 4,096 from 64 KiB to 1 GiB. Holds for files made from now on.
    pub segment_bytes: u64,
    /// How many prepared files should stand ready after the one being written; see [`Writer::needs_files`].
    pub files_ahead: u64,
    /// How many files no longer needed are kept for use, the rest is removed.
    pub spares_max: usize,
    /// The id given to the store when there is none yet. Draw it at random.
    pub store_id: u64,
    /// The id the store must have; `None` takes the one that is there.
    pub expected_id: Option<u64>,
    /// What to do about damage.
    pub on_damage: OnDamage,
}

impl Options {
    /// Files of 64 MiB, one ahead, four spares; refuses damage.
    #[must_use]
    pub fn new(store_id: u64) -> Self {
        Self {
            segment_bytes: 64 << 20,
            files_ahead: 1,
            spares_max: 4,
            store_id,
            expected_id: None,
            on_damage: OnDamage::Refuse,
        }
    }
}

/// What to do about bytes that were durable and can no longer be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnDamage {
    /// Refuse to open: [`StoreError::Corrupt`] names the first place.
    #[default]
    Refuse,
    /// Leave out just the records that cannot be read, and report them. The damage stays in its file until that file is
    /// retired, so later openings must skip it, too.
    Skip,
}

/// The journal of a store; see [`Journal::open`].
#[derive(Clone, Copy, Debug)]
pub struct Journal;

/// An open journal.
pub struct Opened<D: Disk> {
    /// The front half.
    pub writer: Writer,
    /// The back half. It holds the lock.
    pub committer: Committer<D>,
    /// Every record there is. Read it to its end before the first [`Committer::retire`].
    pub recovery: Recovery<D>,
    /// What was found.
    pub report: Report,
    /// Counts the openings of this store, from 1.
    pub life: u32,
    /// The store's id.
    pub store_id: u64,
}

/// What was found when a journal was opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Files that hold records still needed.
    pub files: usize,
    /// Records in them.
    pub records: u64,
    /// Bytes of payload in them.
    pub bytes: u64,
    /// The life before this one; `None` for a new store.
    pub previous_life: Option<u32>,
    /// Where the log ended.
    pub tail: Tail,
    /// Files that were put aside: below the oldest needed one, never confirmed, or half-made.
    pub put_aside: usize,
    /// What could not be read, in order; empty unless [`OnDamage::Skip`] was given.
    pub damage: Vec<Damage>,
    /// What is not as it was written, but costs nothing.
    pub notes: Vec<Damage>,
}

/// Where a log ended, and why there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tail {
    /// Name of the file.
    pub file: String,
    /// Offset in the file, bytes.
    pub at: u64,
    /// The place as an LSN: every record recovered is below it.
    pub lsn: Lsn,
    /// What stands there; `None` where the file does not exist yet.
    pub sight: Option<Sight>,
}

impl Tail {
    pub(crate) fn of(survey: &Survey) -> Self {
        let end = &survey.end;
        Self { file: end.file.name(), at: end.at, lsn: end.lsn(), sight: end.sight }
    }
}

impl Journal {
    /// Locks the store, finds what it holds, and begins a new life in it; makes a new one in an empty directory.
    ///
    /// When it returns, all that [`Opened::recovery`] will show is durable, and so is the statement of where the log ended: what
    /// is not shown now is never shown later.
    ///
    /// # Errors
    /// [`StoreError::Locked`]; [`StoreError::JournalMissing`]; [`StoreError::Corrupt`]; [`StoreError::Newer`]; [`StoreError::OtherStore`];
    /// [`StoreError::Full`] when there is no room for a file that has to be made; [`StoreError::Io`].
    pub fn open<D: Disk>(disk: D, options: &Options) -> Result<Opened<D>, StoreError> {
        if !segment_bytes_are_valid(options.segment_bytes) {
            return Err(StoreError::BadSegmentBytes { asked: options.segment_bytes });
        }
        let guard = lock(&disk)?;
        let catalog = Catalog::read(&disk, options.expected_id)?;
        if let Some(refusal) = catalog.refusal() {
            return Err(refusal);
        }
        if catalog.lacks_journal() && options.on_damage == OnDamage::Refuse {
            return Err(catalog.no_journal());
        }
        let store_id = catalog.store_id.unwrap_or(options.store_id);
        let mut survey = survey(&disk, &catalog, first_file(store_id, options.segment_bytes))?;
        if catalog.lacks_journal() {
            let (file, what) = (Name::Journal(1).to_string(), Sight::FileMissing);
            survey.damage.push(Damage { file, at: 0, bytes: 0, what });
        }
        if let Some(first) = survey.damage.first().filter(|_| options.on_damage == OnDamage::Refuse) {
            return Err(StoreError::Corrupt { file: first.file.clone(), at: first.at, what: first.what });
        }
        let life = survey.life.unwrap_or(0).max(catalog.life()) + 1;
        let (writer, committer) = mend::begin_life(&disk, &catalog, &survey, life, options, guard)?;
        Ok(Opened {
            writer,
            committer,
            report: report(&catalog, &survey),
            recovery: Recovery::new(disk, survey),
            life,
            store_id,
        })
    }
}

fn lock<D: Disk>(disk: &D) -> Result<D::Guard, StoreError> {
    disk.lock().map_err(|source| match source.kind() {
        std::io::ErrorKind::WouldBlock => StoreError::Locked,
        _ => StoreError::io("lock", "the directory", source),
    })
}

/// The header of the first file of a new store.
pub(crate) fn first_file(store_id: u64, segment_bytes: u64) -> FileHeader {
    FileHeader { store_id, number: 1, life: 1, first_lsn: Lsn(0), segment_bytes }
}

fn report(catalog: &Catalog, survey: &Survey) -> Report {
    Report {
        files: survey.files.len(),
        records: survey.records,
        bytes: survey.bytes,
        previous_life: survey.life,
        tail: Tail::of(survey),
        put_aside: survey.below.len() + survey.beyond.len() + catalog.half_made.len(),
        damage: survey.damage.clone(),
        notes: survey.notes.clone(),
    }
}
