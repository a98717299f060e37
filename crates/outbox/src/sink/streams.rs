//! Streams of Redis and Valkey, in the layout that `overtake-streams` reads.

use std::collections::BTreeMap;
use std::time::Instant;

use overtake_peer::redis::{Fault, RedisServer};
use overtake_streams::{FIELD, Layout, Writer};
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
}

/// A server, reached whenever it is needed.
pub struct StreamsSink {
    server: RedisServer,
    settings: StreamsSettings,
    writer: Option<Writer>,
}

impl StreamsSink {
    /// Rows become entries of the server's streams.
    #[must_use]
    pub fn new(server: RedisServer, settings: StreamsSettings) -> Self {
        Self { server, settings, writer: None }
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
        Ok((stream, vec![(FIELD.into(), envelope(row)?)]))
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
        Box::pin(self.publish_all(rows, until))
    }
}
