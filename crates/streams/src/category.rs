//! The streams of a category that are there: its own lanes, and those of its partitions.

use redis::{Value, cmd};

use crate::lanes::{Lane, Lanes};
use crate::layout::{check_key, partitions_of};
use crate::link::Link;

/// So many streams are named in one command.
pub(crate) const CHUNK: usize = 64;

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
