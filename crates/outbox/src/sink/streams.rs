//! Streams of Redis and Valkey, in the layout that `overtake-streams` reads.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use overtake_peer::redis::{Fault, RedisServer};
use overtake_streams::{FIELD, Lags, Layout, Writer, describe};
use tokio::task::JoinHandle;
use tokio::time::timeout_at;

use super::{Answer, Sink, envelope};
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
    trimming: Trimming,
}

/// Which categories are to be trimmed, and when.
struct Trimming {
    /// When it was begun last, or when the sink was made.
    begun_at: Instant,
    /// Those that were written since.
    categories: BTreeSet<String>,
    task: Option<JoinHandle<()>>,
}

impl StreamsSink {
    /// Rows become entries of the server's streams.
    #[must_use]
    pub fn new(server: RedisServer, settings: StreamsSettings) -> Self {
        let trimming = Trimming { begun_at: Instant::now(), categories: BTreeSet::new(), task: None };
        Self { server, settings, writer: None, trimming }
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

    /// Begins to trim, when it is time to, beside what is published.
    fn trim(&mut self, rows: &[&Row]) {
        let Some(every) = self.settings.trim_every else { return };
        let Trimming { begun_at, categories, task } = &mut self.trimming;
        categories.extend(rows.iter().filter_map(|row| row.stream.as_ref().ok().cloned()));
        if begun_at.elapsed() < every || task.as_ref().is_some_and(|task| !task.is_finished()) {
            return;
        }
        *begun_at = Instant::now();
        let (lags, lanes) = (Lags::new(&self.server), self.settings.layout.lanes.clone());
        let categories = std::mem::take(categories);
        *task = Some(tokio::spawn(async move {
            for category in categories {
                match lags.trim(&category, &lanes).await {
                    Ok(entries) => tracing::debug!(category, entries, "settled entries are deleted"),
                    Err(why) => tracing::warn!(category, why, "settled entries are not deleted"),
                }
            }
        }));
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
            Ok(())
        })
    }

    fn publish<'a>(&'a mut self, rows: &'a [&'a Row], until: Instant) -> Answer<'a, Vec<Outcome>> {
        Box::pin(async move {
            let outcomes = self.publish_all(rows, until).await;
            self.trim(rows);
            outcomes
        })
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
