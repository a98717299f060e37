//! Small named values that last and mean nothing here: what front ends have to remember, as users, rights and policies.
//!
//! Many are set and removed in one step, or none is. Invariant: `size` is what the entries take.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use crate::broker::Broker;
use crate::command::{Reply, Step};
use crate::fact::Fact;
use crate::producers;
use crate::refusal::Refusal;

/// Longest key of metadata, bytes.
pub const METADATA_KEY_LEN_MAX: usize = 1_024;
/// Longest value of metadata, bytes.
pub const METADATA_VALUE_LEN_MAX: usize = 64 << 10;
/// Most bytes of metadata of one broker: keys, values, and [`METADATA_ENTRY_COST`] for each.
pub const METADATA_BYTES_MAX: u64 = 16 << 20;
/// Bytes that an entry counts for beside its key and value, so that there are never too many small ones.
pub const METADATA_ENTRY_COST: u64 = 64;

/// A value to set, or to remove.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetadataEntry {
    /// Its name: 1 to [`METADATA_KEY_LEN_MAX`] bytes without control characters.
    pub key: Arc<str>,
    /// At most [`METADATA_VALUE_LEN_MAX`] bytes; `None` removes it.
    pub value: Option<Arc<[u8]>>,
}

impl MetadataEntry {
    /// Sets a value.
    #[must_use]
    pub fn set(key: &str, value: &[u8]) -> Self {
        Self { key: key.into(), value: Some(value.into()) }
    }

    /// Removes a value, if there is one.
    #[must_use]
    pub fn remove(key: &str) -> Self {
        Self { key: key.into(), value: None }
    }

    /// Bytes that it counts for.
    #[must_use]
    pub fn cost(&self) -> u64 {
        cost(&self.key, self.value.as_deref().unwrap_or_default())
    }
}

/// How much metadata there is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MetadataSize {
    /// Entries.
    pub entries: u64,
    /// Bytes of their keys.
    pub key_bytes: u64,
    /// Bytes of their values.
    pub value_bytes: u64,
}

impl MetadataSize {
    /// What counts against [`METADATA_BYTES_MAX`].
    #[must_use]
    pub fn cost(self) -> u64 {
        self.key_bytes + self.value_bytes + self.entries * METADATA_ENTRY_COST
    }
}

/// All metadata of a broker.
#[derive(Clone, Debug, Default)]
pub(crate) struct Metadata {
    values: BTreeMap<Arc<str>, Arc<[u8]>>,
    size: MetadataSize,
    /// Of them, what is kept of producers, as [`MetadataSize::cost`].
    producers: u64,
}

impl Metadata {
    fn get(&self, key: &str) -> Option<&Arc<[u8]>> {
        self.values.get(key)
    }

    /// What it would count for when all of these are done, in order.
    fn cost_after(&self, entries: &[MetadataEntry]) -> u64 {
        let mut changed = BTreeSet::new();
        let mut total = self.size.cost();
        // From the last on: what is said last of a key is what is true of it.
        for entry in entries.iter().rev().filter(|entry| changed.insert(&entry.key)) {
            total -= self.get(&entry.key).map_or(0, |value| cost(&entry.key, value));
            total += entry.value.as_deref().map_or(0, |value| cost(&entry.key, value));
        }
        total
    }

    /// A value is there, and is so.
    pub(crate) fn store(&mut self, key: Arc<str>, value: Arc<[u8]>) {
        self.remove(&key);
        self.size.entries += 1;
        self.size.key_bytes += key.len() as u64;
        self.size.value_bytes += value.len() as u64;
        self.producers += cost_of_producer(&key, &value);
        self.values.insert(key, value);
    }

    /// A value is not there.
    pub(crate) fn remove(&mut self, key: &str) {
        if let Some((key, value)) = self.values.remove_entry(key) {
            self.size.entries -= 1;
            self.size.key_bytes -= key.len() as u64;
            self.size.value_bytes -= value.len() as u64;
            self.producers -= cost_of_producer(&key, &value);
        }
    }

    /// What is kept of producers counts for so much.
    pub(crate) fn producers(&self) -> u64 {
        self.producers
    }

    /// Values by key, from one up to another, which is not before it.
    pub(crate) fn range<'a>(
        &'a self,
        from: &'a str,
        to: &'a str,
    ) -> impl Iterator<Item = (&'a Arc<str>, &'a Arc<[u8]>)> {
        let from = self.values.range::<str, _>((Bound::Included(from), Bound::Unbounded));
        from.take_while(move |(key, _)| &***key < to)
    }

    /// The first value at this key or after it.
    pub(crate) fn first_from(&self, key: &str) -> Option<(&Arc<str>, &Arc<[u8]>)> {
        self.values.range::<str, _>((Bound::Included(key), Bound::Unbounded)).next()
    }

    /// Values whose keys begin so.
    pub(crate) fn of_room<'a>(
        &'a self,
        room: &'a str,
    ) -> impl Iterator<Item = (&'a Arc<str>, &'a Arc<[u8]>)> {
        let from = self.values.range::<str, _>((Bound::Included(room), Bound::Unbounded));
        from.take_while(move |(key, _)| key.starts_with(room))
    }

    /// Values by key, those after this one.
    pub(crate) fn after(&self, key: Option<&str>) -> impl Iterator<Item = (&Arc<str>, &Arc<[u8]>)> {
        let from = key.map_or(Bound::Unbounded, Bound::Excluded);
        self.values.range::<str, _>((from, Bound::Unbounded))
    }
}

impl Broker {
    pub(crate) fn set_metadata(
        &mut self,
        entries: Vec<MetadataEntry>,
        step: &mut Step,
    ) -> Result<Reply, Refusal> {
        self.check_metadata(&entries)?;
        let after = self.metadata.cost_after(&entries);
        if after > METADATA_BYTES_MAX && after > self.metadata.size.cost() {
            return Err(Refusal::MetadataFull);
        }
        for MetadataEntry { key, value } in entries {
            if self.metadata.get(&key) == value.as_ref() {
                continue;
            }
            step.facts.push(match value {
                Some(value) => {
                    self.metadata.store(Arc::clone(&key), Arc::clone(&value));
                    Fact::MetadataStored { key, value }
                }
                None => {
                    self.metadata.remove(&key);
                    Fact::MetadataRemoved { key }
                }
            });
        }
        Ok(Reply::Done)
    }

    /// Whether these can be set, and all at once.
    pub(crate) fn check_metadata(&self, entries: &[MetadataEntry]) -> Result<(), Refusal> {
        let most = self.options.metadata_step_max;
        let len: u64 = entries.iter().map(MetadataEntry::cost).sum();
        let fits = entries.iter().all(fits) && (most == 0 || len <= most);
        fits.then_some(()).ok_or(Refusal::MetadataInvalid)
    }

    /// All metadata, by key.
    pub fn metadata(&self) -> impl Iterator<Item = (&Arc<str>, &Arc<[u8]>)> {
        self.metadata.values.iter()
    }

    /// The value of a key.
    #[must_use]
    pub fn metadata_of(&self, key: &str) -> Option<&Arc<[u8]>> {
        self.metadata.get(key)
    }

    /// How much metadata there is.
    #[must_use]
    pub fn metadata_size(&self) -> MetadataSize {
        self.metadata.size
    }
}

fn cost(key: &str, value: &[u8]) -> u64 {
    (key.len() + value.len()) as u64 + METADATA_ENTRY_COST
}

fn cost_of_producer(key: &str, value: &[u8]) -> u64 {
    if key.starts_with(producers::ROOM) { cost(key, value) } else { 0 }
}

fn fits(entry: &MetadataEntry) -> bool {
    let MetadataEntry { key, value } = entry;
    let has_name = !key.is_empty() && key.len() <= METADATA_KEY_LEN_MAX && !key.chars().any(char::is_control);
    has_name && value.as_ref().is_none_or(|value| value.len() <= METADATA_VALUE_LEN_MAX)
}
