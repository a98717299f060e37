//! Streams of Redis or Valkey, read as a consumer of a group.
//!
//! ```text
//!   connect ─▶ own entries that were never acknowledged (XREADGROUP … 0)
//!                  │ no more
//!                  ▼
//!          ┌▶ entries of consumers that are gone (XAUTOCLAIM) ─▶ new ones, waited for (XREADGROUP … >) ─┐
//!          └──────────────────────── once in `claim_idle_ms` ───────────────────────────────────────────┘
//! ```

mod reader;

use std::sync::Arc;

use overtake_engine::Clock;
use overtake_peer::redis::{RedisServer, Wire};
use overtake_peer::{Named, Secret, Tls, Vault};
use redis::cmd;
use serde::{Deserialize, Serialize};

use self::reader::Reader;
use super::{Inlet, Origin};
use crate::sink::{LinkError, Work};

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
    /// The group of consumers that shares them; it is made where it is not there yet. By default one of the source's own
    /// (`overtake-NAME`), so that each of several sources has all entries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Our name in it; by default `overtake-NAME`, too. Two brokers that share a group must have different ones.
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
            group: None,
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
    /// `known_as` is the group, and our name in it, where none is named.
    ///
    /// # Errors
    /// What is wrong with it, as a phrase.
    pub(crate) fn origin(
        &self,
        vault: Vault,
        known_as: &str,
        clock: &Arc<dyn Clock>,
    ) -> Result<RedisOrigin, String> {
        if !(1..=STREAMS_MAX).contains(&self.streams.len()) || self.streams.iter().any(String::is_empty) {
            return Err(format!("`streams` must be the keys of 1 to {STREAMS_MAX} streams"));
        }
        if self.group.as_deref() == Some("") || self.consumer.as_deref() == Some("") {
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
        let group = self.group.clone().or_else(|| Some(known_as.to_owned()));
        let consumer = self.consumer.clone().or_else(|| Some(known_as.to_owned()));
        let source = Arc::new(Self { group, consumer, ..self.clone() });
        Ok(RedisOrigin { server, source, clock: Arc::clone(clock) })
    }

    fn group(&self) -> &str {
        self.group.as_deref().expect("an origin has given one")
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
            let wire = self.server.connect().await?;
            let mut reader = Reader::new(wire, Arc::clone(&self.source), Arc::clone(&self.clock));
            reader.begin().await?;
            Ok(Box::new(reader) as Box<dyn Inlet>)
        })
    }
}

impl RedisSource {
    /// Makes the group of one stream, where it is not there; within: why that stream cannot be read, as a phrase.
    ///
    /// # Errors
    /// The connection is lost.
    async fn make_group(&self, wire: &mut Wire, stream: &str) -> Result<Result<(), String>, LinkError> {
        if let Err(why) = wire.check_stream(stream).await {
            return Ok(Err(why));
        }
        let start = match self.start {
            StreamStart::New => "$",
            StreamStart::Beginning => "0",
        };
        let mut make = cmd("XGROUP");
        make.arg("CREATE").arg(stream).arg(self.group()).arg(start).arg("MKSTREAM");
        match wire.ask(&make).await? {
            Err(fault) if !fault.is_group_there() => Ok(Err(wire.says(format!("{stream}: {fault}")))),
            _ => Ok(Ok(())),
        }
    }
}

#[cfg(test)]
mod tests;
