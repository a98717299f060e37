//! `overtake store stats`

use std::path::Path;

use overtake_store::{Files, RealDisk, SegmentStats, Stats, StoreError};
use serde_json::{Value, json};

use super::Ended;
use super::store::{cannot, of_shards, shards_as_json, shards_as_text};
use crate::failure::Exit;
use crate::out::{BAD, Out, RESET};
use crate::table::{Side, Table, count, number};

/// Looks at a directory; no broker is asked.
pub(super) fn run(dir: &Path, out: Out) -> Ended {
    let stats = of_shards(dir, |dir| {
        let stats = RealDisk::existing(dir).and_then(|disk| overtake_store::stats(&disk));
        stats.map_err(|error| match &error {
            StoreError::Corrupt { .. } => cannot("count", dir, &error)
                .hint(format!("see all of it with `overtake store check {}`", dir.display())),
            _ => cannot("count", dir, &error),
        })
    })?;
    out.answer(&shards_as_json(&stats, as_json, json!({})), |_| shards_as_text(&stats, as_text))?;
    Ok(Exit::Done)
}

fn as_json(stats: &Stats) -> Value {
    let files = |files: &Files| json!({ "files": files.count, "bytes": files.bytes });
    let queues = stats.queues.iter().map(|queue| {
        json!({
            "queue": queue.queue.0,
            "vhost": queue.vhost_name,
            "name": queue.name,
            "segments": segments(&queue.segments),
        })
    });
    json!({
        "locked": stats.is_locked,
        "store": format!("{:016x}", stats.store_id),
        "life": stats.life,
        "format": stats.format,
        "disk": stats.space.map(|space| json!({ "free": space.free, "total": space.total })),
        "journal": {
            "needed": files(&stats.needed),
            "ahead": files(&stats.ahead),
            "spare": files(&stats.spare),
            "oldest_lsn": stats.oldest.0,
            "tail_lsn": stats.tail.0,
            "records": stats.records,
            "record_bytes": stats.record_bytes,
            "damaged": stats.damaged,
        },
        "segments": segments(&stats.segments),
        "unreadable_segments": stats.unreadable_segments,
        "queues": queues.collect::<Vec<_>>(),
    })
}

fn segments(stats: &SegmentStats) -> Value {
    let SegmentStats { files, messages, bytes } = stats;
    json!({ "files": files.count, "bytes": files.bytes, "messages": messages, "content_bytes": bytes })
}

fn as_text(dir: &Path, stats: &Stats) -> String {
    let life = stats.life.map_or_else(String::new, |life| format!(", life {life}"));
    let mut text = format!("store {:016x}, format {}{life}\n", stats.store_id, stats.format);
    if stats.is_locked {
        text.push_str("a broker has it open: this is how it was a moment ago\n");
    }
    if let Some(space) = stats.space {
        text.push_str(&format!(
            "{} free on its disk of {}\n",
            count(space.free, "byte"),
            count(space.total, "byte")
        ));
    }
    text.push_str(&format!("\n{}", files(stats)));
    text.push_str(&format!(
        "\nthe log from {} to {}: {}, {} of payload\n",
        number(stats.oldest.0),
        number(stats.tail.0),
        count(stats.records, "record"),
        count(stats.record_bytes, "byte"),
    ));
    if !stats.queues.is_empty() {
        text.push_str(&format!("\n{}", queues(stats)));
    }
    if stats.damaged + stats.unreadable_segments > 0 {
        text.push_str(&format!(
            "\n{BAD}damaged:{RESET} see where with `overtake store check {}`\n",
            dir.display()
        ));
    }
    text
}

fn files(stats: &Stats) -> String {
    let mut table = Table::new(&[("FILES", Side::Left), ("COUNT", Side::Right), ("BYTES", Side::Right)]);
    for (what, files) in [
        ("journal, needed", stats.needed),
        ("journal, prepared", stats.ahead),
        ("spare", stats.spare),
        ("segments", stats.segments.files),
    ] {
        table.row(vec![what.to_owned(), number(files.count as u64), number(files.bytes)]);
    }
    table.text()
}

fn queues(stats: &Stats) -> String {
    let mut table = Table::new(&[
        ("VHOST", Side::Left),
        ("QUEUE", Side::Left),
        ("NUMBER", Side::Right),
        ("SEGMENTS", Side::Right),
        ("BYTES", Side::Right),
        ("MESSAGES IN THEM", Side::Right),
        ("BYTES OF CONTENT", Side::Right),
    ]);
    for queue in &stats.queues {
        let SegmentStats { files, messages, bytes } = queue.segments;
        table.row(vec![
            queue.vhost_name.clone().unwrap_or_else(|| "-".to_owned()),
            queue.name.clone().unwrap_or_else(|| "-".to_owned()),
            queue.queue.0.to_string(),
            number(files.count as u64),
            number(files.bytes),
            number(messages),
            number(bytes),
        ]);
    }
    table.text()
}
