//! `overtake store`

use std::path::{Path, PathBuf};

use clap::Subcommand;
use overtake_engine::{shard_dir, shards_in};
use overtake_store::{CheckReport, Damage, RealDisk, StoreError};
use serde_json::{Value, json};

use super::Ended;
use crate::args::Global;
use crate::failure::{Exit, Failure};
use crate::out::{BAD, Out, RESET};
use crate::table::{Side, Table, count, number};

#[derive(Debug, Subcommand)]
pub(crate) enum StoreCommand {
    /// Read everything in a store and say what is wrong and where. Changes nothing.
    ///
    /// Exit code 0 when nothing is wrong, 1 when something is damaged. Works beside a running broker, too, but what is being
    /// written may then look torn.
    #[command(after_help = "\
Examples:
  overtake store check /var/lib/overtake
  overtake store check ./data --json | jq '.damage[]'")]
    Check {
        /// The data directory.
        dir: PathBuf,
    },
    /// Show what a store takes of its disk, and what for. Changes nothing.
    ///
    /// Works beside a running broker, too: then it is as it was a moment ago. Reads the whole journal, but of segments only
    /// what they say of themselves.
    #[command(after_help = "\
Examples:
  overtake store stats /var/lib/overtake
  overtake store stats ./data --json | jq '.disk.free'")]
    Stats {
        /// The data directory.
        dir: PathBuf,
    },
    /// Copy the store of a running broker, as it is at one moment, into a directory.
    ///
    /// The broker goes on meanwhile. Everything confirmed before is in the copy; it is checked, and can be restored or served as it
    /// is. When it fails nothing is left. --timeout is how long nothing may come.
    #[command(after_help = "\
Examples:
  overtake store snapshot /backup/overtake-monday
  overtake store snapshot /backup/today --url http://127.0.0.1:15672 --json
  overtake store snapshot /backup/today --data-dir /var/lib/overtake    # while no broker runs")]
    Snapshot {
        /// Where to: a directory that is empty, or is not there yet.
        dir: PathBuf,
        /// Copy this data directory, which no broker has open, and ask no broker.
        #[arg(long, value_name = "PATH")]
        data_dir: Option<PathBuf>,
    },
    /// Say what is damaged in a store and what can be saved of it; with --to or --apply, write that.
    ///
    /// Without either it changes nothing. No broker may have the store open. Exit code 0 when nothing is damaged, or the repaired
    /// store was written; 1 when something is damaged and nothing was written. docs/damage.md says what each kind of damage costs.
    #[command(after_help = "\
Examples:
  overtake store repair /var/lib/overtake
  overtake store repair /var/lib/overtake --to /var/lib/overtake-repaired
  overtake store repair ./data --apply --json | jq .damaged")]
    Repair {
        /// The data directory.
        dir: PathBuf,
        /// Write the repaired store into this directory, which is empty or not there yet.
        #[arg(long, value_name = "PATH", conflicts_with = "apply")]
        to: Option<PathBuf>,
        /// Repair the store where it is. What is damaged cannot be looked at again afterwards: copy it first, or use --to.
        #[arg(long)]
        apply: bool,
    },
    /// Copy a snapshot to where a broker can be started on it.
    ///
    /// Every file is compared with what the snapshot says of it, and the copy is checked. When it fails nothing is left.
    #[command(after_help = "\
Examples:
  overtake store restore /backup/overtake-monday /var/lib/overtake
  overtake store restore /backup/today ./data --json | jq .check.clean")]
    Restore {
        /// The snapshot.
        snapshot: PathBuf,
        /// Where to: a directory that is empty, or is not there yet.
        dir: PathBuf,
    },
}

/// Looks at a directory; only for a snapshot a broker is asked.
pub(crate) fn run(command: &StoreCommand, global: &Global, out: Out) -> Ended {
    match command {
        StoreCommand::Check { dir } => check(dir, out),
        StoreCommand::Stats { dir } => super::store_stats::run(dir, out),
        StoreCommand::Snapshot { dir, data_dir: Some(data_dir) } => {
            super::store_snapshot::run_offline(dir, data_dir, out)
        }
        StoreCommand::Snapshot { dir, data_dir: None } => {
            super::ask(global, async |session| super::store_snapshot::run(dir, session).await)
        }
        StoreCommand::Repair { dir, to, apply } => super::store_repair::run(dir, to.as_deref(), *apply, out),
        StoreCommand::Restore { snapshot, dir } => super::store_restore::run(snapshot, dir, out),
    }
}

fn check(dir: &Path, out: Out) -> Ended {
    let check = |dir: &Path| RealDisk::existing(dir).and_then(|disk| overtake_store::check(&disk));
    let reports = of_shards(dir, |dir| check(dir).map_err(|error| cannot("check", dir, &error)))?;
    let clean = reports.iter().all(|(_, report)| report.is_clean());
    let json = shards_as_json(&reports, as_json, json!({ "clean": clean }));
    out.answer(&json, |_| shards_as_text(&reports, as_text))?;
    Ok(if clean { Exit::Done } else { Exit::Error })
}

/// What is found in each shard of the store in this directory, the first of which is the directory itself.
pub(super) fn of_shards<T>(
    dir: &Path,
    look: impl Fn(&Path) -> Result<T, Failure>,
) -> Result<Vec<(PathBuf, T)>, Failure> {
    // One that cannot be read is told of by whoever looks into it.
    let count = shards_in(dir).unwrap_or(1);
    (0..count).map(|shard| shard_dir(dir, shard)).map(|dir| look(&dir).map(|found| (dir, found))).collect()
}

/// Of one shard what is said of it; of several, what is said of all, and a list.
pub(super) fn shards_as_json<T>(
    shards: &[(PathBuf, T)],
    one: impl Fn(&T) -> Value,
    mut of_all: Value,
) -> Value {
    if let [(_, alone)] = shards {
        return one(alone);
    }
    let each = shards.iter().map(|(dir, found)| {
        let mut shard = one(found);
        shard["dir"] = json!(dir);
        shard
    });
    of_all["shards"] = each.collect();
    of_all
}

/// One shard after the other.
pub(super) fn shards_as_text<T>(shards: &[(PathBuf, T)], one: impl Fn(&Path, &T) -> String) -> String {
    if let [(dir, alone)] = shards {
        return one(dir, alone);
    }
    let each: Vec<String> =
        shards.iter().map(|(dir, found)| format!("{}:\n{}", dir.display(), one(dir, found))).collect();
    each.join("\n")
}

/// A store that cannot be looked at.
pub(super) fn cannot(what: &str, dir: &Path, error: &StoreError) -> Failure {
    let hint = match error {
        StoreError::JournalMissing { .. } => format!(
            "put the journal files back, or see with `overtake store repair {}` what can be taken from the segments alone",
            dir.display()
        ),
        _ => "give the directory the broker was started with (--data-dir), and run as a user who may read it"
            .to_owned(),
    };
    Failure::new(Exit::Error, format!("cannot {what} {}: {error}", dir.display())).hint(hint)
}

pub(super) fn as_json(report: &CheckReport) -> Value {
    let places = |damage: &[Damage]| -> Vec<Value> {
        let place = |damage: &Damage| json!({ "file": damage.file, "at": damage.at, "bytes": damage.bytes, "what": damage.what.to_string() });
        damage.iter().map(place).collect()
    };
    json!({
        "clean": report.is_clean(),
        "locked": report.is_locked,
        "store": report.store_id.map(|id| format!("{id:016x}")),
        "life": report.life,
        "files": report.files,
        "idle_files": report.idle_files,
        "records": report.records,
        "bytes": report.bytes,
        "segments": report.segments,
        "segment_messages": report.segment_messages,
        "segment_bytes": report.segment_bytes,
        "damage": places(&report.damage),
        "notes": places(&report.notes),
    })
}

pub(super) fn as_text(dir: &Path, report: &CheckReport) -> String {
    let mut text = format!(
        "{} in {}, {} of payload; {} idle\n",
        count(report.records, "record"),
        count(report.files as u64, "file"),
        count(report.bytes, "byte"),
        count(report.idle_files as u64, "file"),
    );
    if report.segments > 0 {
        text.push_str(&format!(
            "{} in {}, {} of content\n",
            count(report.segment_messages, "message"),
            count(report.segments as u64, "segment"),
            count(report.segment_bytes, "byte"),
        ));
    }
    if report.is_locked {
        text.push_str("a broker has it open: what it is writing may look torn\n");
    }
    if !report.notes.is_empty() {
        text.push_str("\nnot as it was written, but nothing is lost by it:\n");
        text.push_str(&table(&report.notes));
    }
    if report.is_clean() {
        text.push_str(&format!("{} is clean\n", dir.display()));
    } else {
        text.push_str(&format!("\n{BAD}damaged:{RESET}\n"));
        text.push_str(&table(&report.damage));
        text.push_str(&format!(
            "`overtake store repair {}` says what can be saved; docs/damage.md says what each kind of damage means\n",
            dir.display()
        ));
    }
    text
}

fn table(damage: &[Damage]) -> String {
    let mut table = Table::new(&[
        ("FILE", Side::Left),
        ("AT BYTE", Side::Right),
        ("BYTES", Side::Right),
        ("WHAT", Side::Left),
    ]);
    for place in damage {
        table.row(vec![place.file.clone(), number(place.at), number(place.bytes), place.what.to_string()]);
    }
    table.text()
}
