//! `overtake store repair`

use std::fs;
use std::io;
use std::path::Path;

use overtake_engine::core::{Core, LostMessages, OpenError, Opened, Recovered, UnknownSegment};
use overtake_engine::{Clock, Options, SystemClock, shard_dir};
use overtake_store::{
    Damage, Disk, OnDamage, Overlay, RealDisk, SEGMENT_BYTES_MAX, SEGMENT_BYTES_MIN, StoreError,
};
use serde_json::{Value, json};

use super::Ended;
use super::store::{cannot, of_shards, shards_as_json, shards_as_text};
use crate::failure::{Exit, Failure};
use crate::out::Out;
use crate::table::count;

/// What becomes of the repaired store.
#[derive(Clone, Copy)]
enum Goal<'a> {
    /// Nothing is written.
    Nothing,
    /// It takes the place of the damaged one.
    Here,
    /// It goes into another directory.
    Copy(&'a Path),
}

/// Repairs a store, or says what that would come to.
pub(super) fn run(dir: &Path, to: Option<&Path>, apply: bool, out: Out) -> Ended {
    let goal = match to {
        Some(to) => Goal::Copy(to),
        None if apply => Goal::Here,
        None => Goal::Nothing,
    };
    if let Goal::Copy(to) = goal {
        check_target(to)?;
    }
    let shards = of_shards(dir, |_| Ok(()))?;
    let mut found = Vec::new();
    for (shard, (from, ())) in shards.into_iter().enumerate() {
        let target = if let Goal::Copy(to) = goal { Some(shard_dir(to, shard)) } else { None };
        let recovered = repair(&from, goal, target.as_deref())?;
        found.push((from, recovered));
    }
    let is_damaged = found.iter().any(|(_, recovered)| is_damaged(recovered));
    let json = shards_as_json(&found, as_json, json!({ "damaged": is_damaged }));
    out.answer(&json, |_| {
        let mut text = shards_as_text(&found, as_text);
        text.push_str(&next_step(dir, goal, is_damaged));
        text
    })?;
    Ok(if is_damaged && matches!(goal, Goal::Nothing) { Exit::Error } else { Exit::Done })
}

/// Opens one shard as a broker would that goes on without what is damaged.
fn repair(from: &Path, goal: Goal<'_>, target: Option<&Path>) -> Result<Recovered, Failure> {
    let failed = |error: &dyn std::fmt::Display| {
        Failure::new(Exit::Error, format!("cannot repair {}: {error}", from.display()))
    };
    let disk = RealDisk::existing(from).map_err(|error| cannot("repair", from, &error))?;
    match overtake_store::check(&disk) {
        // What the segments have can be taken from them.
        Ok(_) | Err(StoreError::JournalMissing { .. }) => {}
        Err(error) => return Err(cannot("repair", from, &error)),
    }
    let options = Options { on_damage: OnDamage::Skip, segment_bytes: file_len(from), ..Options::default() };
    match (goal, target) {
        (Goal::Nothing, _) => {
            let overlay = Overlay::new(disk).map_err(|error| failed(&error))?;
            open(overlay, &options).map_err(|error| refused(from, &error))
        }
        (_, None) => open(disk, &options).map_err(|error| refused(from, &error)),
        (_, Some(target)) => {
            let _guard = disk.lock().map_err(|error| match error.kind() {
                io::ErrorKind::WouldBlock => in_use(from),
                _ => failed(&error),
            })?;
            let copy = copy(&disk, from, target).map_err(|error| failed(&error))?;
            open(copy, &options).map_err(|error| refused(from, &error))
        }
    }
}

fn open<D: Disk>(disk: D, options: &Options) -> Result<Recovered, OpenError> {
    let Opened { mut core, mut committer, mut spiller, recovered } =
        Core::<()>::open(disk, options, SystemClock.now())?;
    // The last commit proves the one before it, so that damage to it can be told from a torn write.
    while let Some(batch) = core.take_batch() {
        committer.commit(&batch)?;
    }
    for job in core.take_late_jobs() {
        spiller.perform(job)?;
    }
    if let Some(batch) = core.take_proof() {
        committer.commit(&batch)?;
    }
    Ok(recovered)
}

/// Copies the files of a store.
fn copy(disk: &RealDisk, from: &Path, to: &Path) -> io::Result<RealDisk> {
    let copy = RealDisk::create(to).map_err(io::Error::other)?;
    for name in disk.list()? {
        if name != "LOCK" {
            fs::copy(from.join(&name), to.join(&name))?;
            fs::File::open(to.join(&name))?.sync_all()?;
        }
    }
    copy.sync_dir()?;
    Ok(copy)
}

/// The length of the store's journal files.
fn file_len(dir: &Path) -> u64 {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let journals = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("journal-"));
    let lens = journals.filter_map(|entry| entry.metadata().ok()).map(|metadata| metadata.len());
    let is_valid =
        |len: &u64| (SEGMENT_BYTES_MIN..=SEGMENT_BYTES_MAX).contains(len) && len.is_multiple_of(4_096);
    lens.filter(is_valid).max().unwrap_or(Options::default().segment_bytes)
}

fn check_target(to: &Path) -> Result<(), Failure> {
    let is_free = match fs::read_dir(to) {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    };
    let taken = || {
        Failure::new(Exit::Error, format!("{} is not an empty directory", to.display()))
            .hint("name a directory that is empty, or is not there yet")
    };
    if is_free { Ok(()) } else { Err(taken()) }
}

fn in_use(dir: &Path) -> Failure {
    Failure::new(Exit::Error, format!("a broker has {} open", dir.display())).hint("stop that broker first")
}

fn refused(dir: &Path, error: &OpenError) -> Failure {
    match error {
        OpenError::Store(StoreError::Locked) => in_use(dir),
        error => Failure::new(Exit::Error, format!("cannot repair {}: {error}", dir.display())).hint(
            "docs/damage.md says what each message means; without a way forward there, restore a backup",
        ),
    }
}

fn is_damaged(recovered: &Recovered) -> bool {
    recovered.renewed.is_some()
}

fn as_json(recovered: &Recovered) -> Value {
    let place = |damage: &Damage| {
        let what = damage.what.to_string();
        json!({ "file": damage.file, "at": damage.at, "bytes": damage.bytes, "what": what })
    };
    let part = |lost: &LostMessages| {
        let LostMessages { segment, queue, messages, salvaged } = lost;
        json!({ "segment": segment, "queue": queue, "lost": messages, "salvaged": salvaged })
    };
    let unknown = |UnknownSegment { segment, queue, messages, kept_as }: &UnknownSegment| json!({ "segment": segment, "queue": queue, "messages": messages, "kept_as": kept_as });
    let parts = |all: &[LostMessages]| -> Vec<Value> { all.iter().map(part).collect() };
    json!({
        "damaged": is_damaged(recovered),
        "written_again": recovered.renewed,
        "journal": recovered.journal.damage.iter().map(place).collect::<Vec<_>>(),
        "unreadable_segments": parts(&recovered.lost.segments),
        "damaged_segments": parts(&recovered.lost.messages),
        "segments_taken_over": parts(&recovered.lost.adopted),
        "unknown_segments": recovered.unknown.iter().map(unknown).collect::<Vec<_>>(),
        "queues": recovered.queues,
        "messages": recovered.messages,
        "lost_messages": lost_messages(recovered),
    })
}

fn as_text(dir: &Path, recovered: &Recovered) -> String {
    if !is_damaged(recovered) && recovered.unknown.is_empty() {
        return format!("{} is not damaged\n", dir.display());
    }
    let mut text = String::new();
    for Damage { file, at, bytes, what } in &recovered.journal.damage {
        // A file that is missing has none.
        let lost = if *bytes == 0 { "it".to_owned() } else { count(*bytes, "byte") };
        text.push_str(&format!(
            "{file} at byte {at}: {what}; what {lost} said is lost: messages, settlements (these messages come again), or queues and users\n"
        ));
    }
    for lost in &recovered.lost.segments {
        text.push_str(&format!("segment {} cannot be read: {}\n", lost.segment, cost(lost)));
    }
    for lost in &recovered.lost.messages {
        text.push_str(&format!("segment {} is damaged: {}\n", lost.segment, cost(lost)));
    }
    for found in &recovered.lost.adopted {
        text.push_str(&format!(
            "segment {} is no longer mentioned in the journal: {} of queue `{}` can be taken from it, some of which may have been settled\n",
            found.segment,
            count(found.salvaged, "message"),
            found.queue
        ));
    }
    for UnknownSegment { segment, queue, messages, kept_as } in &recovered.unknown {
        text.push_str(&format!(
            "segment {segment} ({} of queue `{queue}`) is not mentioned in the journal any more: it is kept as {kept_as} and not read\n",
            count(*messages, "message")
        ));
    }
    text.push_str(&format!(
        "saved: {} in {}\n",
        count(recovered.messages, "message"),
        count(recovered.queues as u64, "queue")
    ));
    text.push_str(&lost_in_all(recovered));
    if recovered.renewed == Some(false) {
        text.push_str("there is no room on the disk to write the store again: free some, or use --to with another disk\n");
    }
    text
}

/// Messages of segments that are lost, as far as they can be counted.
fn lost_messages(recovered: &Recovered) -> u64 {
    let lost = &recovered.lost;
    lost.segments.iter().chain(&lost.messages).map(|lost| lost.messages).sum()
}

/// All that is lost, in a line.
fn lost_in_all(recovered: &Recovered) -> String {
    let messages = count(lost_messages(recovered), "message");
    match recovered.journal.damage.len() as u64 {
        0 => format!("lost: {messages}\n"),
        places => format!(
            "lost: {messages} of segments, and what the journal said in {}: that cannot be counted\n",
            count(places, "place")
        ),
    }
}

fn cost(lost: &LostMessages) -> String {
    format!(
        "{} of queue `{}` lost, {} found in the journal",
        count(lost.messages, "message"),
        lost.queue,
        count(lost.salvaged, "message")
    )
}

fn next_step(dir: &Path, goal: Goal<'_>, is_damaged: bool) -> String {
    let dir = dir.display();
    match goal {
        Goal::Copy(to) => format!("written: start the broker with --data-dir {}\n", to.display()),
        Goal::Here if is_damaged => format!("repaired: start the broker with --data-dir {dir}\n"),
        Goal::Nothing if is_damaged => format!(
            "nothing was changed: write it with `overtake store repair {dir} --to {dir}-repaired`, or with --apply where it is\n"
        ),
        Goal::Here | Goal::Nothing => String::new(),
    }
}
