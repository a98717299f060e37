//! How far a group is.

use std::collections::BTreeSet;

use overtake_peer::redis::RedisServer;
use redis::{Cmd, Value, cmd};

use crate::category::{CHUNK, streams_of};
use crate::dead_letters::order;
use crate::lanes::{Lane, Lanes};
use crate::link::Link;
use crate::scripts;

/// Where the server does not know how many entries are left, so many are counted at once, and so many times at most.
const COUNT: (u32, u32) = (10_000, 100);

/// How far a group is in one lane, of all partitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lag {
    /// The lane.
    pub lane: Lane,
    /// Entries that were handed to nobody yet; of more than a million that had to be counted, a million.
    pub waiting: u64,
    /// Entries that were handed over and are not settled.
    pub pending: u64,
    /// How long the oldest of both has been in the stream, seconds; 0 where there is none.
    pub oldest_s: u64,
    /// Its dead letters, of all groups.
    pub dead: u64,
}

/// Asks how far groups are.
pub struct Lags {
    link: Link,
}

impl Lags {
    /// Connects when it is asked something.
    #[must_use]
    pub fn new(server: &RedisServer) -> Self {
        Self { link: Link::new(server.clone()) }
    }

    /// How far a group is, in each lane; where the category is parted by keys, in the lanes of all partitions together. A group that is not there yet has everything before it.
    ///
    /// # Errors
    /// The server does not answer, or declines.
    pub async fn of(&self, category: &str, group: &str, lanes: &Lanes) -> Result<Vec<Lag>, String> {
        let of_lane = |&lane: &Lane| Lag { lane, waiting: 0, pending: 0, oldest_s: 0, dead: 0 };
        let mut all: Vec<Lag> = lanes.all().iter().map(of_lane).collect();
        let now_ms = self.now_ms(category).await?;
        for some in streams_of(&self.link, category, lanes).await?.chunks(CHUNK) {
            let streams: Vec<String> = some.iter().map(|(_, stream)| stream.clone()).collect();
            let told = self.ask(&scripts::far(&streams, group), category).await?;
            let Value::Array(told) = told else { continue };
            for ((lane, stream), told) in some.iter().zip(told) {
                let Some(told) = Told::read(&told) else { continue };
                let waiting = match told.waiting {
                    Some(waiting) => waiting,
                    None => self.count(stream, &told.at).await?,
                };
                let age_s = told.oldest_ms.map_or(0, |oldest_ms| now_ms.saturating_sub(oldest_ms) / 1_000);
                let lag = &mut all[*lane as usize];
                lag.waiting += waiting;
                lag.pending += told.pending;
                lag.dead += told.dead;
                lag.oldest_s = lag.oldest_s.max(age_s);
            }
        }
        Ok(all)
    }

    /// The groups that a category has in any of its streams, by name.
    ///
    /// # Errors
    /// The server does not answer, or declines.
    pub async fn groups(&self, category: &str, lanes: &Lanes) -> Result<Vec<String>, String> {
        let mut all = BTreeSet::new();
        for some in streams_of(&self.link, category, lanes).await?.chunks(CHUNK) {
            let streams: Vec<String> = some.iter().map(|(_, stream)| stream.clone()).collect();
            if let Value::Array(names) = self.ask(&scripts::groups(&streams), category).await? {
                all.extend(names.iter().filter_map(text));
            }
        }
        Ok(all.into_iter().collect())
    }

    /// Deletes the entries that every group has settled, in all streams of a category, up to the first that any group has not read or not settled; how many. A stream stays
    /// whole where one of the category's groups is missing. Without any group nothing is deleted. A group that nobody reads any more keeps everything: `XGROUP DESTROY` it. A group
    /// that is made later does not get what is gone. Dead letters stay.
    ///
    /// # Errors
    /// The server does not answer, or declines.
    pub async fn trim(&self, category: &str, lanes: &Lanes) -> Result<u64, String> {
        let groups = self.groups(category, lanes).await?;
        let mut gone = 0;
        if groups.is_empty() {
            return Ok(gone);
        }
        for some in streams_of(&self.link, category, lanes).await?.chunks(CHUNK) {
            let streams: Vec<String> = some.iter().map(|(_, stream)| stream.clone()).collect();
            gone += number(&self.ask(&scripts::trim(&streams, &groups), category).await?);
        }
        Ok(gone)
    }

    async fn ask(&self, command: &Cmd, stream: &str) -> Result<Value, String> {
        self.link.ask(command).await?.map_err(|fault| format!("{stream}: {fault}"))
    }

    async fn count(&self, stream: &str, at: &str) -> Result<u64, String> {
        let (mut count, mut from) = (0, format!("({at}"));
        for _ in 0..COUNT.1 {
            let answer = self.ask(&scripts::count(stream, &from, COUNT.0), stream).await?;
            let Value::Array(parts) = answer else { break };
            let here = parts.first().map_or(0, number);
            count += here;
            match parts.get(1).and_then(text) {
                Some(last) if here == u64::from(COUNT.0) => from = format!("({last}"),
                _ => break,
            }
        }
        Ok(count)
    }

    /// The server's own time: ids are made of that.
    async fn now_ms(&self, stream: &str) -> Result<u64, String> {
        let answer = self.ask(&cmd("TIME"), stream).await?;
        let Value::Array(parts) = answer else { return Ok(0) };
        let part = |at: usize| parts.get(at).and_then(text).and_then(|text| text.parse::<u64>().ok());
        Ok(part(0).unwrap_or(0) * 1_000 + part(1).unwrap_or(0) / 1_000)
    }
}

/// What the server says of a group in one stream.
struct Told {
    dead: u64,
    pending: u64,
    /// Entries that nobody got yet, where the server knows.
    waiting: Option<u64>,
    /// The id behind which those are.
    at: String,
    oldest_ms: Option<u64>,
}

impl Told {
    fn read(value: &Value) -> Option<Self> {
        let Value::Array(parts) = value else { return None };
        let [dead, pending, waiting, at, oldest] = &parts[..] else { return None };
        Some(Self {
            dead: number(dead),
            pending: number(pending),
            waiting: (*waiting != Value::Int(-1)).then(|| number(waiting)),
            at: text(at)?,
            oldest_ms: text(oldest).and_then(|id| order(&id)).map(|(ms, _)| ms),
        })
    }
}

fn number(value: &Value) -> u64 {
    match value {
        Value::Int(number) => u64::try_from(*number).unwrap_or_default(),
        _ => 0,
    }
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::BulkString(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
        _ => None,
    }
}
