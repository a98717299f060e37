//! Streams of Redis or Valkey, read as a consumer of a group.
//!
//! ```text
//!   connect ─▶ own entries that were never acknowledged (XREADGROUP … 0)
//!                  │ no more
//!                  ▼
//!          ┌▶ entries of consumers that are gone (XAUTOCLAIM) ─▶ new ones, waited for (XREADGROUP … >) ─┐
//!          └──────────────────────── once in `claim_idle_ms` ───────────────────────────────────────────┘
//! ```
//!
//! An entry is acknowledged when it is settled here, whatever became of it; until then it is pending under our name, and comes again after whatever
//! happens. At most one read is under way, and it stays so when nobody waits for it any more: what it brings is kept for whoever asks next.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use overtake_engine::Clock;
use redis::{Cmd, Pipeline, Value, cmd};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::{Fate, Incoming, Inlet, Origin};
use crate::peer::Named;
use crate::redis::{RedisServer, Wire, entries, fields};
use crate::secret::{Secret, Vault};
use crate::sink::{LinkError, Work};
use crate::tls::Tls;

/// A read waits for new entries for so long at least and at most, ms; in between as long as until the next look at what others have left.
const BLOCK_MS: (u64, u64) = (100, 5_000);
/// A server that says nothing for so long after that is gone.
const GRACE: Duration = Duration::from_secs(30);
/// Most streams of a source.
const STREAMS_MAX: usize = 100;

/// Streams of Redis or Valkey.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RedisSource {
    /// Where: `redis://HOST:6379/DATABASE`, or `rediss://` for TLS; `valkey://` and `valkeys://` mean the same.
    pub url: String,
    /// The keys of the streams; those that are not there yet are made.
    pub streams: Vec<String>,
    /// The group of consumers that shares them; it is made where it is not there yet.
    pub group: String,
    /// Our name in it; by default `overtake-` and the name of the source. Two brokers that share a group must have different ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub consumer: Option<String>,
    /// Where a group begins that is made here.
    pub start: StreamStart,
    /// Entries that another consumer took and did not acknowledge for so long are taken over, ms.
    pub claim_idle_ms: u64,
    /// The user; by default that of the URL, else the one without a name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub username: Option<String>,
    /// Its password.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password: Option<Secret>,
    /// Under `rediss://`.
    #[serde(skip_serializing_if = "Tls::is_plain")]
    pub tls: Tls,
}

/// Where a group begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StreamStart {
    /// With what is written from now on.
    #[default]
    New,
    /// With the oldest entry.
    Beginning,
}

impl Default for RedisSource {
    fn default() -> Self {
        Self {
            url: String::new(),
            streams: Vec::new(),
            group: "overtake".to_owned(),
            consumer: None,
            start: StreamStart::default(),
            claim_idle_ms: 60_000,
            username: None,
            password: None,
            tls: Tls::default(),
        }
    }
}

impl RedisSource {
    /// # Errors
    /// What is wrong with it, as a phrase.
    pub(crate) fn origin(
        &self,
        vault: Vault,
        name: &str,
        clock: &Arc<dyn Clock>,
    ) -> Result<RedisOrigin, String> {
        if !(1..=STREAMS_MAX).contains(&self.streams.len()) || self.streams.iter().any(String::is_empty) {
            return Err(format!("`streams` must be the keys of 1 to {STREAMS_MAX} streams"));
        }
        if self.group.is_empty() || self.consumer.as_deref() == Some("") {
            return Err("`group` and `consumer` must be names".to_owned());
        }
        if self.claim_idle_ms == 0 {
            return Err(
                "`claim_idle_ms` must be at least 1: with 0 consumers would take from each other what \
                        they work on"
                    .to_owned(),
            );
        }
        let server = RedisServer::new(
            vault,
            &Named {
                url: &self.url,
                username: self.username.as_deref(),
                password: self.password.as_ref(),
                tls: &self.tls,
            },
        )?;
        let consumer = self.consumer.clone().unwrap_or_else(|| format!("overtake-{name}"));
        let source = Arc::new(Self { consumer: Some(consumer), ..self.clone() });
        Ok(RedisOrigin { server, source, clock: Arc::clone(clock) })
    }

    fn consumer(&self) -> &str {
        self.consumer.as_deref().expect("an origin has given one")
    }
}

/// Streams, once their settings are read.
pub(crate) struct RedisOrigin {
    server: RedisServer,
    source: Arc<RedisSource>,
    clock: Arc<dyn Clock>,
}

impl Origin for RedisOrigin {
    fn connect(&self) -> Work<'_, Result<Box<dyn Inlet>, LinkError>> {
        Box::pin(async {
            let mut wire = self.server.connect().await?;
            for stream in &self.source.streams {
                self.make_group(&mut wire, stream).await?;
            }
            let cursors = self.source.streams.iter().map(|stream| (stream.clone(), Some("0".to_owned())));
            let inlet = RedisInlet {
                wire,
                source: Arc::clone(&self.source),
                clock: Arc::clone(&self.clock),
                own: cursors.clone().collect(),
                left: cursors.collect(),
                claim_at: Instant::now(),
                waiting: None,
                here: VecDeque::new(),
                handed: Vec::new(),
            };
            Ok(Box::new(inlet) as Box<dyn Inlet>)
        })
    }
}

impl RedisOrigin {
    async fn make_group(&self, wire: &mut Wire, stream: &str) -> Result<(), LinkError> {
        wire.check_stream(stream).await?;
        let start = match self.source.start {
            StreamStart::New => "$",
            StreamStart::Beginning => "0",
        };
        let mut make = cmd("XGROUP");
        make.arg("CREATE").arg(stream).arg(&self.source.group).arg(start).arg("MKSTREAM");
        match wire.ask(&make).await? {
            Err(fault) if !fault.is_group_there() => Err(wire.says(format!("{stream}: {fault}"))),
            _ => Ok(()),
        }
    }
}

/// A stream, and after which entry to go on; `None`: there is no more.
type Cursor = (String, Option<String>);

struct RedisInlet {
    wire: Wire,
    source: Arc<RedisSource>,
    clock: Arc<dyn Clock>,
    /// What was ours before this connection.
    own: Vec<Cursor>,
    /// What others have left.
    left: Vec<Cursor>,
    /// When to look for that again.
    claim_at: Instant,
    /// The read that is under way.
    waiting: Option<Work<'static, Result<Value, LinkError>>>,
    /// What is here and was not handed over: each stream brings as much as was asked for of all.
    here: VecDeque<Entry>,
    /// What was handed over and is not settled.
    handed: Vec<(String, String)>,
}

/// An entry and its stream.
type Entry = (String, entries::Entry);

impl Inlet for RedisInlet {
    fn receive(&mut self, max: usize) -> Work<'_, Result<Vec<Incoming>, LinkError>> {
        Box::pin(async move {
            while self.here.is_empty() {
                self.read(max).await?;
            }
            let now = self.clock.now();
            let taken = self.here.drain(..max.min(self.here.len()));
            let mut all = Vec::with_capacity(taken.len());
            for (stream, entries::Entry { id, fields }) in taken {
                all.push(fields::read(&stream, &id, fields, now));
                self.handed.push((stream, id));
            }
            Ok(all)
        })
    }

    fn settle(&mut self, fates: Vec<Fate>) -> Work<'_, Result<(), LinkError>> {
        Box::pin(async move {
            assert_eq!(fates.len(), self.handed.len(), "all that was handed over is settled together");
            let handed = std::mem::take(&mut self.handed);
            self.acknowledge(&handed).await
        })
    }
}

impl RedisInlet {
    async fn read(&mut self, max: usize) -> Result<(), LinkError> {
        if let Some(at) = open(&self.own) {
            return self.read_own(at, max).await;
        }
        if self.waiting.is_none() {
            if let Some(at) = open(&self.left) {
                return self.claim(at, max).await;
            }
            if self.claim_at <= Instant::now() {
                self.claim_at = Instant::now() + Duration::from_millis(self.source.claim_idle_ms);
                self.left.iter_mut().for_each(|(_, cursor)| *cursor = Some("0".to_owned()));
                return Ok(());
            }
        }
        self.read_new(max).await
    }

    async fn read_own(&mut self, at: usize, max: usize) -> Result<(), LinkError> {
        let (stream, cursor) = &self.own[at];
        let (stream, after) = (stream.clone(), cursor.clone().expect("it is open"));
        let command = self.group_read(max, None, &[(&stream, &after)]);
        let answer = self.wire.ask(&command).await?.map_err(|fault| self.wire.says(fault))?;
        let found = entries::of_streams(answer);
        let last = found.iter().flat_map(|(_, entries)| entries).next_back();
        self.own[at].1 = last.map(|entry| entry.id().to_owned());
        self.keep(found).await
    }

    async fn claim(&mut self, at: usize, max: usize) -> Result<(), LinkError> {
        let (stream, cursor) = &self.left[at];
        let (stream, from) = (stream.clone(), cursor.clone().expect("it is open"));
        let mut command = cmd("XAUTOCLAIM");
        command.arg(&stream).arg(&self.source.group).arg(self.source.consumer());
        command.arg(self.source.claim_idle_ms).arg(from).arg("COUNT").arg(max);
        let answer = self.wire.ask(&command).await?.map_err(|fault| self.wire.says(fault))?;
        let (next, found) = entries::of_claim(answer);
        self.left[at].1 = next;
        self.keep(vec![(stream, found)]).await
    }

    async fn read_new(&mut self, max: usize) -> Result<(), LinkError> {
        if self.waiting.is_none() {
            let streams: Vec<_> = self.source.streams.iter().map(|stream| (stream.as_str(), ">")).collect();
            let block_ms = self.source.claim_idle_ms.clamp(BLOCK_MS.0, BLOCK_MS.1);
            let command = self.group_read(max, Some(block_ms), &streams);
            self.waiting = Some(self.wire.ask_alone(command, Duration::from_millis(block_ms) + GRACE));
        }
        let waiting = self.waiting.as_mut().expect("it has just begun");
        let answer = waiting.await;
        self.waiting = None;
        self.keep(entries::of_streams(answer?)).await
    }

    fn group_read(&self, max: usize, block_ms: Option<u64>, streams: &[(&str, &str)]) -> Cmd {
        let mut command = cmd("XREADGROUP");
        command.arg("GROUP").arg(&self.source.group).arg(self.source.consumer()).arg("COUNT").arg(max);
        if let Some(ms) = block_ms {
            command.arg("BLOCK").arg(ms);
        }
        command.arg("STREAMS");
        for (stream, _) in streams {
            command.arg(*stream);
        }
        for (_, after) in streams {
            command.arg(*after);
        }
        command
    }

    /// What was pending and has been deleted from the stream meanwhile is let go of.
    async fn keep(&mut self, found: Vec<(String, Vec<entries::Found>)>) -> Result<(), LinkError> {
        let mut deleted = Vec::new();
        for (stream, entries) in found {
            for entry in entries {
                match entry {
                    entries::Found::Entry(entry) => self.here.push_back((stream.clone(), entry)),
                    entries::Found::Deleted(id) => deleted.push((stream.clone(), id)),
                }
            }
        }
        self.acknowledge(&deleted).await
    }

    async fn acknowledge(&mut self, entries: &[(String, String)]) -> Result<(), LinkError> {
        if entries.is_empty() {
            return Ok(());
        }
        let mut commands = Pipeline::new();
        for stream in &self.source.streams {
            let ids: Vec<&str> =
                entries.iter().filter(|(of, _)| of == stream).map(|(_, id)| id.as_str()).collect();
            if !ids.is_empty() {
                let mut ack = cmd("XACK");
                ack.arg(stream).arg(&self.source.group).arg(ids);
                commands.add_command(ack);
            }
        }
        let answers = self.wire.ask_all(&commands).await?;
        match answers.into_iter().find_map(Result::err) {
            Some(fault) => Err(self.wire.says(format!("it does not take acknowledgements: {fault}"))),
            None => Ok(()),
        }
    }
}

fn open(cursors: &[Cursor]) -> Option<usize> {
    cursors.iter().position(|(_, cursor)| cursor.is_some())
}

#[cfg(test)]
mod tests;
