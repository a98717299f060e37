//! What is where: the streams of a category, and how an entry looks.
//!
//! | stream | what |
//! |---|---|
//! | `CATEGORY` | the primary lane |
//! | `CATEGORY:SUFFIX` | the backfill lane |
//! | `CATEGORY:KEY`, `CATEGORY:KEY:SUFFIX` | the lanes of one partition, where streams are parted by keys |
//! | `CATEGORY:__partitions__` | a set: the keys there are |
//! | any of these, and `:dlq` | its dead letters |
//!
//! An entry has one field, [`FIELD`], with a JSON object: `data` and `metadata`; as a dead letter also [`DEATH`], which says how it came to that.

use std::borrow::Cow;

use overtake_lane::DEAD_LETTERS;
use serde_json::{Value, json};

use crate::lanes::Lanes;

/// The one field of an entry.
pub const FIELD: &str = "data";
/// After a category: the set of the keys that have streams of their own.
pub const PARTITIONS: &str = "__partitions__";
/// In a dead letter's JSON object: how it died.
pub(crate) const DEATH: &str = "_dlq_metadata";
/// Longest key of a partition, characters.
const KEY_LEN_MAX: usize = 255;

/// To which streams entries go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    /// The lanes of each category.
    pub lanes: Lanes,
    /// What has a key goes to the streams of that key.
    pub is_partitioned: bool,
}

impl Layout {
    /// The stream of something so urgent; without a key, or where streams are not parted, the category's own.
    ///
    /// # Errors
    /// The category or the key cannot be part of a stream's name, as a phrase.
    pub fn stream_of(&self, category: &str, key: Option<&str>, priority: i32) -> Result<String, String> {
        if category.trim().is_empty() {
            return Err("a stream needs a name".to_owned());
        }
        match key.filter(|_| self.is_partitioned) {
            None => Ok(self.lanes.stream_of(category, priority)),
            Some(key) => {
                check_key(&self.lanes, key)?;
                Ok(self.lanes.stream_of(&format!("{category}:{key}"), priority))
            }
        }
    }
}

/// Whether a key can be part of a stream's name: such as `backfill` would be the category's own backfill lane.
///
/// # Errors
/// The rule that it breaks, as a phrase.
pub(crate) fn check_key(lanes: &Lanes, key: &str) -> Result<(), String> {
    let is_inner = key.len() >= 4 && key.starts_with("__") && key.ends_with("__");
    if key.is_empty() || key.chars().count() > KEY_LEN_MAX {
        return Err(format!("a partition key must have 1 to {KEY_LEN_MAX} characters"));
    }
    if key.contains(':') || key == DEAD_LETTERS || key == lanes.suffix() || is_inner {
        return Err(format!(
            "the partition key `{key}` cannot be part of a stream's name: it must have no colon, and be neither `{DEAD_LETTERS}`, nor `{}`, nor \
             between two underscores on either side",
            lanes.suffix()
        ));
    }
    Ok(())
}

/// The set of a category's partition keys.
pub(crate) fn partitions_of(category: &str) -> String {
    format!("{category}:{PARTITIONS}")
}

/// Where the dead letters of a stream are.
#[must_use]
pub fn dead_letters_of(stream: &str) -> String {
    Lanes::dead_letters_of(stream)
}

/// What [`FIELD`] holds.
#[must_use]
pub fn envelope(data: &Value, metadata: &Value) -> String {
    json!({ "data": data, "metadata": metadata }).to_string()
}

/// An entry's metadata (JSON) with who it is: its id and type at `/headers`, where they say none, and its priority at `/domain`, which handlers run with and the next hop inherits.
/// The priority goes before one that they say if it is known for sure; else it stands where they say none. Everything else stays as it is.
///
/// # Errors
/// The metadata are no JSON, as a phrase.
pub fn describe<'m>(
    metadata: &'m str,
    id: &str,
    kind: &str,
    priority: i32,
    is_sure: bool,
) -> Result<Cow<'m, str>, String> {
    let mut all: Value =
        serde_json::from_str(metadata).map_err(|error| format!("its metadata is no JSON: {error}"))?;
    if all.is_null() {
        all = json!({});
    }
    let ours = [
        ("headers", "id", json!(id), false),
        ("headers", "type", json!(kind), false),
        ("domain", "priority", json!(priority), is_sure),
    ];
    let mut is_changed = false;
    for (section, key, value, goes_first) in ours {
        let Some(section) = all.as_object_mut().map(|all| all.entry(section).or_insert_with(|| json!({})))
        else {
            break;
        };
        if let Some(section) = section.as_object_mut()
            && section.get(key).is_none_or(|said| said.is_null() || (goes_first && *said != value))
        {
            section.insert(key.to_owned(), value);
            is_changed = true;
        }
    }
    Ok(if is_changed { Cow::Owned(all.to_string()) } else { Cow::Borrowed(metadata) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_a_key_has_lanes_of_its_own_where_that_is_asked_for() {
        let layout = Layout { lanes: Lanes::enabled(), is_partitioned: true };
        let stream = |key, priority| layout.stream_of("order", key, priority).expect("a stream");
        assert_eq!(stream(Some("k1"), 0), "order:k1");
        assert_eq!(stream(Some("k1"), -50), "order:k1:backfill");
        assert_eq!(stream(None, -50), "order:backfill");
        let whole = Layout { lanes: Lanes::enabled(), is_partitioned: false };
        assert_eq!(whole.stream_of("order", Some("a:b"), 0).as_deref(), Ok("order"));
    }

    #[test]
    fn a_key_that_would_be_taken_for_another_stream_is_refused() {
        let layout = Layout { lanes: Lanes::enabled(), is_partitioned: true };
        for key in ["", "a:b", "dlq", "backfill", "__partitions__", &"k".repeat(256)] {
            assert!(layout.stream_of("order", Some(key), 0).is_err(), "{key}");
        }
        assert!(layout.stream_of(" ", None, 0).is_err());
    }
}
