//! Between finding the end of the log and writing on from there.
//!
//! The order is what makes it safe to be interrupted anywhere: first all that will be shown is made durable, then files are
//! put in order, and only then is a byte of the new life written. What stands beyond the tail need not be wiped: its records
//! are bound to an older life, and a commit there would have proven that the log goes on.

use std::collections::VecDeque;

use crate::catalog::Catalog;
use crate::committer::Committer;
use crate::decide::{Decision, Proof, Sight, decide};
use crate::disk::{Disk, DiskFile};
use crate::error::{StoreError, is_unreadable};
use crate::file::{FileHeader, HEADER_LEN, Name, PAGE_LEN};
use crate::journal::Options;
use crate::lsn::Lsn;
use crate::pool::{Live, Pool, ReadyFile, write_zeros};
use crate::survey::Survey;
use crate::writer::{Start, Writer};

/// Mends the store and writes the `Born` record of `life`.
pub(crate) fn begin_life<D: Disk>(
    disk: &D,
    catalog: &Catalog,
    survey: &Survey,
    life: u32,
    options: &Options,
    guard: D::Guard,
) -> Result<(Writer, Committer<D>), StoreError> {
    write_again(disk, survey)?;
    if !survey.end.is_fresh {
        restore_length(disk, catalog, survey)?;
    }
    let mut pool = make_pool(disk, guard, survey, catalog, life, options);
    put_aside(disk, catalog, survey, &mut pool)?;
    let committer = Committer::new(pool, survey.end.lsn(), survey.oldest);
    be_born(disk, survey, life, options, committer)
}

/// Makes what was found since the last known sync durable.
///
/// A sync alone would not do: after a sync that failed in an earlier process the system may call pages clean that are not on
/// the disk. So they are written again, with what they hold, and then synced.
fn write_again<D: Disk>(disk: &D, survey: &Survey) -> Result<(), StoreError> {
    let end = &survey.end;
    for header in survey.files.iter().filter(|header| header.end_lsn() > survey.synced) {
        let from = header.offset_of(survey.synced.max(header.first_lsn));
        let to = if header.number == end.file.number { end.at } else { header.segment_bytes };
        let name = header.name();
        let file = open(disk, &name)?;
        copy_onto_itself(&file, from, to).map_err(|source| StoreError::io("write to", &name, source))?;
        file.sync_all().map_err(|source| StoreError::io("sync", &name, source))?;
    }
    Ok(())
}

/// What the disk cannot read stays as it is: it was skipped.
fn copy_onto_itself<F: DiskFile>(file: &F, from: u64, to: u64) -> std::io::Result<()> {
    const CHUNK: u64 = 1 << 20;
    let mut buffer = vec![0; CHUNK.min(to.saturating_sub(from)) as usize];
    let (mut at, mut by_pages_until) = (from, from);
    while at < to {
        let page = PAGE_LEN - at % PAGE_LEN;
        let len = if at < by_pages_until { page } else { CHUNK }.min(to - at);
        let read = match file.read_at(at, &mut buffer[..len as usize]) {
            Err(source) if is_unreadable(&source) => {
                if at >= by_pages_until {
                    by_pages_until = at + len;
                } else {
                    at += len;
                }
                continue;
            }
            read => read?,
        };
        if read == 0 {
            break;
        }
        file.write_at(at, &buffer[..read])?;
        at += read as u64;
    }
    Ok(())
}

/// Gives the tail's file its full length, should it have been cut, so that commits go on overwriting.
fn restore_length<D: Disk>(disk: &D, catalog: &Catalog, survey: &Survey) -> Result<(), StoreError> {
    let header = survey.end.file;
    let len = catalog.journals[&header.number].len;
    if len >= header.segment_bytes {
        return Ok(());
    }
    let name = header.name();
    let extended = write_zeros(&open(disk, &name)?, &name, len, header.segment_bytes);
    extended.map_err(|error| if error.is_full() { StoreError::Full } else { error })
}

fn make_pool<D: Disk>(
    disk: &D,
    guard: D::Guard,
    survey: &Survey,
    catalog: &Catalog,
    life: u32,
    options: &Options,
) -> Pool<D> {
    let next = if survey.end.is_fresh {
        FileHeader { life, segment_bytes: options.segment_bytes, ..survey.end.file }
    } else {
        survey.end.file.next(life, options.segment_bytes)
    };
    let live = live_files(catalog, survey);
    Pool::new(disk.clone(), guard, live, next, options.spares_max, catalog.last_id())
}

/// Makes spares of the files that are not part of the log, and removes what cannot be one.
fn put_aside<D: Disk>(
    disk: &D,
    catalog: &Catalog,
    survey: &Survey,
    pool: &mut Pool<D>,
) -> Result<(), StoreError> {
    for name in &catalog.half_made {
        apply(disk, pool, Sight::HalfMade, &name.to_string())?;
    }
    for &id in &catalog.spares {
        apply(disk, pool, Sight::Spare, &Name::Spare(id).to_string())?;
    }
    // The last file first, so that an interruption leaves no gap before files that remain.
    for &number in survey.beyond.iter().rev() {
        apply(disk, pool, Sight::BeyondTail, &Name::Journal(number).to_string())?;
    }
    for &number in &survey.below {
        apply(disk, pool, Sight::BelowOldest, &Name::Journal(number).to_string())?;
    }
    pool.sync()
}

fn apply<D: Disk>(disk: &D, pool: &mut Pool<D>, sight: Sight, name: &str) -> Result<(), StoreError> {
    match decide(sight, Proof::Unproven) {
        Decision::Reuse => {
            let file = disk.open_to_read(name).and_then(|file| file.len());
            pool.recycle(name, file.map_err(|source| StoreError::io("read", name, source))?).map(drop)
        }
        Decision::Remove => disk.remove(name).map_err(|source| StoreError::io("remove", name, source)),
        Decision::End | Decision::Damage | Decision::Refuse | Decision::Note => Ok(()),
    }
}

/// Every file of the log on the disk, readable or not, so that each is retired one day.
fn live_files(catalog: &Catalog, survey: &Survey) -> VecDeque<Live> {
    let end = survey.end.file.number + u64::from(!survey.end.is_fresh);
    let files = catalog.journals.range(survey.oldest.min(end)..end);
    files.map(|(&number, entry)| Live { number, segment_bytes: entry.len }).collect()
}

fn be_born<D: Disk>(
    disk: &D,
    survey: &Survey,
    life: u32,
    options: &Options,
    mut committer: Committer<D>,
) -> Result<(Writer, Committer<D>), StoreError> {
    let mut file = survey.end.file;
    if survey.end.is_fresh {
        committer.prepare_file()?;
        file = FileHeader { life, segment_bytes: options.segment_bytes, ..file };
    } else {
        committer.add_open(ReadyFile { number: file.number, file: open(disk, &file.name())? });
    }
    let mut writer = Writer::new(start(survey, file, life, options));
    if !writer.born_fits() {
        writer.file_ready(committer.prepare_file()?);
    }
    writer.append_born()?;
    let batch = writer.take_batch().expect("a batch with the born record");
    committer.commit(&batch)?;
    Ok((writer, committer))
}

fn start(survey: &Survey, file: FileHeader, life: u32, options: &Options) -> Start {
    let earlier = survey.files.iter().filter(|header| header.number < file.number);
    Start {
        file,
        offset: if survey.end.is_fresh { HEADER_LEN } else { survey.end.at },
        life,
        chain: survey.chain,
        oldest: survey.oldest,
        before: earlier.map(|header| (header.number, header.first_lsn)).collect::<Vec<(u64, Lsn)>>(),
        segment_bytes: options.segment_bytes,
        files_ahead: options.files_ahead,
    }
}

fn open<D: Disk>(disk: &D, name: &str) -> Result<D::File, StoreError> {
    disk.open(name).map_err(|source| StoreError::io("open", name, source))
}
