//! Streams of Redis and Valkey, in the layout that `overtake-streams` reads.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use overtake_peer::redis::{Fault, RedisServer};
use overtake_streams::{CategoryLag, FIELD, Lag, Lags, Lanes, Layout, Writer, describe};
use tokio::task::AbortHandle;
use tokio::time::timeout_at;

use super::{Answer, Groups, Sink, envelope};
use crate::metrics::GroupLag;
use crate::row::{Outcome, Row};

/// How rows become entries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamsSettings {
    /// Which priority takes which stream.
    pub layout: Layout,
    /// Streams are trimmed to about so many entries, and lose the oldest, read or not; nothing: never.
    pub len_max: Option<u64>,
    /// How often entries are deleted that every group has settled, of the categories that are written; nothing: never.
    pub trim_every: Option<Duration>,
}

/// A server, reached whenever it is needed.
pub struct StreamsSink {
    server: RedisServer,
    settings: StreamsSettings,
    writer: Option<Writer>,
    categories: Arc<Mutex<Categories>>,
    /// Trims beside what is published, and ends with the sink.
    trimming: Option<Trimming>,
}

/// Most categories that are remembered. The category that was written longest ago is forgotten first.
const CATEGORIES_MAX: usize = 10_000;
/// Most categories whose groups are counted, those that were written last.
const COUNTED_MAX: usize = 100;

/// The categories that were written since the relay began.
#[derive(Default)]
struct Categories {
    /// With the number of the batch that wrote each last.
    written: BTreeMap<String, u64>,
    batch: u64,
}

impl Categories {
    fn note(&mut self, rows: &[&Row]) {
        self.batch += 1;
        for category in rows.iter().filter_map(|row| row.stream.as_ref().ok()) {
            match self.written.get_mut(category) {
                Some(batch) => *batch = self.batch,
                None => {
                    if self.written.len() >= CATEGORIES_MAX {
                        let oldest = self.written.iter().min_by_key(|(_, batch)| **batch);
                        let oldest = oldest.map(|(category, _)| category.clone());
                        oldest.map(|category| self.written.remove(&category));
                    }
                    self.written.insert(category.clone(), self.batch);
                }
            }
        }
    }

    /// At most `max` categories, the last written first.
    fn last(&self, max: usize) -> Vec<String> {
        let mut all: Vec<_> = self.written.iter().collect();
        all.sort_by_key(|(_, batch)| Reverse(**batch));
        all.into_iter().take(max).map(|(category, _)| category.clone()).collect()
    }
}

/// A task that ends when this is dropped.
struct Trimming(AbortHandle);

impl Drop for Trimming {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Deletes what every group has settled, again and again.
async fn trim(server: RedisServer, lanes: Lanes, categories: Arc<Mutex<Categories>>, every: Duration) {
    let lags = Lags::new(&server);
    loop {
        tokio::time::sleep(every).await;
        let written = lock(&categories).last(CATEGORIES_MAX);
        for category in written {
            match lags.trim(&category, &lanes).await {
                Ok(entries) => tracing::debug!(category, entries, "settled entries are deleted"),
                Err(why) => tracing::warn!(category, why, "settled entries are not deleted"),
            }
        }
    }
}

fn lock(categories: &Mutex<Categories>) -> MutexGuard<'_, Categories> {
    categories.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How far groups are, asked over a connection of its own.
struct StreamGroups {
    lags: Lags,
    lanes: Lanes,
    categories: Arc<Mutex<Categories>>,
}

impl StreamGroups {
    fn of(&self, category: &str, told: CategoryLag) -> Vec<GroupLag> {
        let of_group = |(group, lags): (String, Vec<Lag>)| {
            let in_primary = lags.first().is_some_and(|lag| lag.has_group);
            let of_lane = |lag: &Lag| GroupLag {
                category: category.to_owned(),
                group: Some(group.clone()),
                lane: lag.lane.name(),
                stream: self.lanes.stream(category, lag.lane),
                waiting: lag.waiting,
                pending: lag.pending,
                oldest_s: lag.oldest_s,
                is_unread: in_primary && !lag.has_group && lag.waiting > 0,
            };
            lags.iter().map(of_lane).collect::<Vec<_>>()
        };
        told.groups.into_iter().flat_map(of_group).collect()
    }
}

impl Groups for StreamGroups {
    fn count<'a>(&'a self, also: &'a [String]) -> Answer<'a, (Vec<GroupLag>, Vec<String>)> {
        Box::pin(async move {
            let mut asked = lock(&self.categories).last(COUNTED_MAX);
            let more =
                also.iter().filter(|category| !asked.contains(category)).cloned().collect::<BTreeSet<_>>();
            asked.extend(more);
            asked.truncate(COUNTED_MAX);
            let (mut groups, mut faults) = (Vec::new(), Vec::new());
            for category in asked {
                match self.lags.of_all(&category, &self.lanes).await {
                    Ok(mut told) => {
                        faults.append(&mut told.broken);
                        groups.append(&mut self.of(&category, told));
                    }
                    Err(why) => faults.push(why),
                }
            }
            (groups, faults)
        })
    }
}

impl StreamsSink {
    /// Rows become entries of the server's streams.
    #[must_use]
    pub fn new(server: RedisServer, settings: StreamsSettings) -> Self {
        Self { server, settings, writer: None, categories: Arc::default(), trimming: None }
    }

    async fn publish_all(&mut self, rows: &[&Row], until: Instant) -> Vec<Outcome> {
        let mut outcomes: Vec<_> = rows.iter().map(|_| Outcome::Untried).collect();
        let mut entries = Vec::with_capacity(rows.len());
        let mut places = Vec::with_capacity(rows.len());
        for (at, row) in rows.iter().enumerate() {
            match self.entry(row) {
                Ok(entry) => {
                    places.push(at);
                    entries.push(entry);
                }
                Err(why) => outcomes[at] = Outcome::Refused(why),
            }
        }
        let keys = self.keys(&places.iter().map(|at| rows[*at]).collect::<Vec<_>>());
        let lost = |why: &str| Outcome::Lost(why.to_owned());
        let added = match &mut self.writer {
            None => Err("there is no connection to Redis".to_owned()),
            Some(writer) => match timeout_at(until.into(), add(writer, &keys, &entries)).await {
                Ok(added) => added,
                Err(_) => Err("Redis did not answer in time".to_owned()),
            },
        };
        match added {
            Ok(answers) => {
                for (at, answer) in places.into_iter().zip(answers) {
                    outcomes[at] = answer.map_or_else(|fault| outcome(&fault), |_| Outcome::Published);
                }
            }
            Err(why) => {
                self.writer = None;
                places.into_iter().for_each(|at| outcomes[at] = lost(&why));
            }
        }
        outcomes
    }

    fn entry(&self, row: &Row) -> Result<(String, overtake_streams::Fields), String> {
        let category = row.stream.as_ref().map_err(Clone::clone)?;
        let stream = self.settings.layout.stream_of(category, row.partition_key.as_deref(), row.priority)?;
        Ok((stream, vec![(FIELD.into(), envelope(row, Some(&metadata(row)?))?)]))
    }

    /// The keys of each category, where keys have streams of their own.
    fn keys<'r>(&self, rows: &[&'r Row]) -> BTreeMap<&'r str, Vec<&'r str>> {
        let mut keys: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        if self.settings.layout.is_partitioned {
            for row in rows {
                if let (Ok(category), Some(key)) = (&row.stream, &row.partition_key) {
                    keys.entry(category).or_default().push(key);
                }
            }
        }
        keys
    }
}

/// The row's own metadata, and who it is. A table without a column for the priority leaves what they say of it.
fn metadata(row: &Row) -> Result<Cow<'_, str>, String> {
    let said = row.metadata.as_deref().unwrap_or("null");
    describe(said, &row.message_id, &row.kind, row.priority, row.is_prioritized)
}

/// Who reads all streams of keys must know of a key before there is something in its stream.
async fn add(
    writer: &mut Writer,
    keys: &BTreeMap<&str, Vec<&str>>,
    entries: &[(String, overtake_streams::Fields)],
) -> Result<Vec<Result<String, Fault>>, String> {
    for (category, keys) in keys {
        if let Err(fault) = writer.record_keys(category, keys).await? {
            return Ok(entries.iter().map(|_| Err(fault.clone())).collect());
        }
    }
    writer.add(entries).await
}

/// What a server says of one entry may change: room, rights, what a key holds. One that starts or changes its role is not there.
fn outcome(fault: &Fault) -> Outcome {
    match fault.code() {
        "LOADING" | "READONLY" | "MASTERDOWN" | "CLUSTERDOWN" => Outcome::Lost(fault.to_string()),
        _ => Outcome::Failed(fault.to_string()),
    }
}

impl Sink for StreamsSink {
    fn ready(&mut self) -> Answer<'_, Result<(), String>> {
        Box::pin(async {
            if self.writer.is_none() {
                let writer = Writer::connect(&self.server).await?;
                self.writer = Some(match self.settings.len_max {
                    Some(entries) => writer.len_max(entries),
                    None => writer,
                });
            }
            if let (Some(every), None) = (self.settings.trim_every, &self.trimming) {
                let lanes = self.settings.layout.lanes.clone();
                let trimming = trim(self.server.clone(), lanes, Arc::clone(&self.categories), every);
                self.trimming = Some(Trimming(tokio::spawn(trimming).abort_handle()));
            }
            Ok(())
        })
    }

    fn publish<'a>(&'a mut self, rows: &'a [&'a Row], until: Instant) -> Answer<'a, Vec<Outcome>> {
        Box::pin(async move {
            let outcomes = self.publish_all(rows, until).await;
            lock(&self.categories).note(rows);
            outcomes
        })
    }

    fn groups(&self) -> Option<Box<dyn Groups>> {
        Some(Box::new(StreamGroups {
            lags: Lags::new(&self.server),
            lanes: self.settings.layout.lanes.clone(),
            categories: Arc::clone(&self.categories),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::Key;

    fn row(said: Option<&str>) -> Row {
        Row {
            key: Key::Number(1),
            message_id: "m".into(),
            stream: Ok("order".into()),
            kind: "Placed".into(),
            data: b"1".into(),
            metadata: said.map(ToOwned::to_owned),
            priority: -50,
            is_prioritized: true,
            partition_key: None,
            attempts: 0,
            max_attempts: None,
        }
    }

    fn told(said: Option<&str>) -> String {
        metadata(&row(said)).expect("metadata").into_owned()
    }

    #[test]
    fn the_priority_of_the_table_goes_before_that_of_the_metadata() {
        let said = r#"{"domain":{"priority":0,"stream_category":"shop::order"},"headers":{"id":"m","type":"Placed"}}"#;
        assert_eq!(told(Some(said)), said.replace(":0", ":-50"));
        let silent = Row { is_prioritized: false, ..row(Some(said)) };
        assert_eq!(metadata(&silent).expect("metadata"), said);
    }

    #[test]
    fn a_reader_knows_id_type_and_priority_also_where_the_application_says_nothing() {
        let all = r#"{"domain":{"priority":-50},"headers":{"id":"m","type":"Placed"}}"#;
        assert_eq!(told(None), all);
        assert_eq!(told(Some("null")), all);
        let own = r#"{"domain":{"priority":-50},"headers":{"id":"own","type":"Placed"},"trace":7}"#;
        assert_eq!(told(Some(r#"{"trace":7,"headers":{"id":"own"}}"#)), own);
    }

    #[test]
    fn what_says_it_all_or_is_no_object_stays_as_it_is() {
        let whole = r#"{ "headers": {"id": "a", "type": "b"}, "domain": {"priority": -50} }"#;
        for said in [whole, "[1,  2]", "7"] {
            assert_eq!(told(Some(said)), said);
        }
    }
}
