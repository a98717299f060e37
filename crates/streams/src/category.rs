//! The streams of a category that are there: its own lanes, and those of its partitions.

use std::collections::BTreeSet;

use redis::{Value, cmd};

use crate::scripts;
use crate::subscriber::SubscribeOptions;

use crate::lanes::{Lane, Lanes};
use crate::layout::{check_key, partitions_of};
use crate::link::Link;

/// Most streams named in one command.
pub(crate) const CHUNK: usize = 64;

/// Most streams named in a sentence.
const SHOWN: usize = 3;

/// The streams of a category with these partition keys, the lanes of the category first. Keys that no partition can have are left out.
pub(crate) fn streams_with(category: &str, lanes: &Lanes, keys: Value) -> Vec<(Lane, String)> {
    let keys = match keys {
        Value::Array(keys) => keys,
        _ => Vec::new(),
    };
    let keys = keys.into_iter().filter_map(|key| match key {
        Value::BulkString(key) => String::from_utf8(key).ok(),
        _ => None,
    });
    let parts = keys.filter(|key| check_key(lanes, key).is_ok()).map(|key| format!("{category}:{key}"));
    let of = |part: String| lanes.all().iter().map(move |&lane| (lane, lanes.stream(&part, lane)));
    [category.to_owned()].into_iter().chain(parts).flat_map(of).collect()
}

/// All streams of a category.
///
/// # Errors
/// The server does not answer, or declines.
pub(crate) async fn streams_of(
    link: &Link,
    category: &str,
    lanes: &Lanes,
) -> Result<Vec<(Lane, String)>, String> {
    let set = partitions_of(category);
    let keys = link.ask(cmd("SMEMBERS").arg(&set)).await?.map_err(|fault| format!("{set}: {fault}"))?;
    Ok(streams_with(category, lanes, keys))
}

/// The streams with entries that a subscriber with these options never reads, in a sentence that says what to set; `None`: there are none.
///
/// # Errors
/// The server does not answer, or declines.
pub(crate) async fn unread(link: &Link, options: &SubscribeOptions) -> Result<Option<String>, String> {
    let SubscribeOptions { category, lanes, partitions, .. } = options;
    let both = Lanes::new(true, lanes.threshold(), lanes.suffix())?;
    let is_of_category = |stream: &str| both.all().iter().any(|&lane| both.stream(category, lane) == stream);
    let mut all = streams_of(link, category, &both).await?;
    all.retain(|(lane, stream)| !lanes.all().contains(lane) || !partitions && !is_of_category(stream));
    let (mut found, mut settings) = (Vec::new(), BTreeSet::new());
    for some in all.chunks(CHUNK) {
        let streams: Vec<String> = some.iter().map(|(_, stream)| stream.clone()).collect();
        let answer = link.ask(&scripts::lengths(&streams)).await?;
        let Value::Array(lengths) = answer.map_err(|fault| format!("{category}: {fault}"))? else { continue };
        for ((lane, stream), length) in some.iter().zip(lengths) {
            if let Value::Int(length @ 1..) = length {
                found.push(format!("{stream} ({length} {})", if length == 1 { "entry" } else { "entries" }));
                settings.extend((!lanes.all().contains(lane)).then_some("lanes"));
                settings.extend((!partitions && !is_of_category(stream)).then_some("partitions"));
            }
        }
    }
    if found.is_empty() {
        return Ok(None);
    }
    let more = found.len().saturating_sub(SHOWN);
    found.truncate(SHOWN);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let settings: Vec<_> = settings.into_iter().collect();
    Ok(Some(format!(
        "this subscriber never reads {}{more}: set `{}` as whoever writes them has it",
        found.join(", "),
        settings.join("` and `"),
    )))
}
