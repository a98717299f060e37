//! How far a group is.

use std::collections::BTreeSet;

use overtake_peer::redis::RedisServer;
use redis::{Cmd, Value, cmd};

use crate::category::{CHUNK, streams_of};
use crate::dead_letters::order;
use crate::lanes::{Lane, Lanes};
use crate::layout::dead_letters_of;
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
    /// Any stream of the lane has the group. A group that reads one lane only has none in the backfill lane.
    pub has_group: bool,
}

/// How far all groups of a category are, as far as its streams can be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CategoryLag {
    /// Each group by its name, with its lag in each lane. A stream that cannot be read is not counted.
    pub groups: Vec<(String, Vec<Lag>)>,
    /// The streams that cannot be read, those of dead letters among them, each as `STREAM: WHY`.
    pub broken: Vec<String>,
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
    /// The server does not answer, or declines; a stream cannot be read, which is named.
    pub async fn of(&self, category: &str, group: &str, lanes: &Lanes) -> Result<Vec<Lag>, String> {
        let mut broken = BTreeSet::new();
        let streams = streams_of(&self.link, category, lanes).await?;
        let lags = self.far(category, &streams, group, lanes, &mut broken).await?;
        broken.pop_first().map_or(Ok(lags), Err)
    }

    /// How far all groups are that a category has in any of its streams. A stream that cannot be read (its key is none) does not keep the others from being told.
    ///
    /// # Errors
    /// The server does not answer, or declines.
    pub async fn of_all(&self, category: &str, lanes: &Lanes) -> Result<CategoryLag, String> {
        let mut broken = BTreeSet::new();
        let streams = streams_of(&self.link, category, lanes).await?;
        let mut groups = Vec::new();
        for group in self.names(category, &streams, &mut broken).await? {
            let lags = self.far(category, &streams, &group, lanes, &mut broken).await?;
            groups.push((group, lags));
        }
        Ok(CategoryLag { groups, broken: broken.into_iter().collect() })
    }

    /// The groups that a category has in any of its streams, by name.
    ///
    /// # Errors
    /// The server does not answer, or declines; a stream cannot be read, which is named.
    pub async fn groups(&self, category: &str, lanes: &Lanes) -> Result<Vec<String>, String> {
        let mut broken = BTreeSet::new();
        let streams = streams_of(&self.link, category, lanes).await?;
        let names = self.names(category, &streams, &mut broken).await?;
        broken.pop_first().map_or(Ok(names.into_iter().collect()), Err)
    }

    /// How far a group is in the streams that can be read; the others are put among the broken ones.
    async fn far(
        &self,
        category: &str,
        streams: &[(Lane, String)],
        group: &str,
        lanes: &Lanes,
        broken: &mut BTreeSet<String>,
    ) -> Result<Vec<Lag>, String> {
        let of_lane =
            |&lane: &Lane| Lag { lane, waiting: 0, pending: 0, oldest_s: 0, dead: 0, has_group: false };
        let mut all: Vec<Lag> = lanes.all().iter().map(of_lane).collect();
        let now_ms = self.now_ms(category).await?;
        for some in streams.chunks(CHUNK) {
            let names: Vec<String> = some.iter().map(|(_, stream)| stream.clone()).collect();
            let told = self.ask(&scripts::far(&names, group), category).await?;
            let Value::Array(told) = told else { continue };
            for ((lane, stream), told) in some.iter().zip(told) {
                if let Some(why) = text(&told) {
                    broken.insert(format!("{stream}: {why}"));
                }
                let Some(told) = Told::read(&told) else { continue };
                if let Some(why) = told.no_letters {
                    broken.insert(format!("{}: {why}", dead_letters_of(stream)));
                }
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
                lag.has_group |= told.has_group;
            }
        }
        Ok(all)
    }

    async fn names(
        &self,
        category: &str,
        streams: &[(Lane, String)],
        broken: &mut BTreeSet<String>,
    ) -> Result<BTreeSet<String>, String> {
        let mut names = BTreeSet::new();
        for some in streams.chunks(CHUNK) {
            let streams: Vec<String> = some.iter().map(|(_, stream)| stream.clone()).collect();
            let Value::Array(told) = self.ask(&scripts::groups(&streams), category).await? else { continue };
            names.extend(told.iter().filter_map(text));
            broken.extend(told.iter().filter_map(fault));
        }
        Ok(names)
    }

    /// Deletes the entries that every group has settled, in all streams of a category, up to the first that any group has not read or not settled; how many. A stream stays
    /// whole where one of the category's groups is missing. Without any group nothing is deleted. A group that nobody reads any more keeps everything: `XGROUP DESTROY` it. A group
    /// that is made later does not get what is gone. Dead letters stay.
    ///
    /// # Errors
    /// The server does not answer, or declines; a stream cannot be read, which is named: then the others are done.
    pub async fn trim(&self, category: &str, lanes: &Lanes) -> Result<u64, String> {
        let mut broken = BTreeSet::new();
        let streams = streams_of(&self.link, category, lanes).await?;
        let groups: Vec<_> = self.names(category, &streams, &mut broken).await?.into_iter().collect();
        let mut gone = 0;
        for some in streams.chunks(CHUNK).filter(|_| !groups.is_empty()) {
            let streams: Vec<String> = some.iter().map(|(_, stream)| stream.clone()).collect();
            let told = self.ask(&scripts::trim(&streams, &groups), category).await?;
            let Value::Array(told) = told else { continue };
            gone += told.first().map_or(0, number);
            broken.extend(told.iter().filter_map(fault));
        }
        broken.pop_first().map_or(Ok(gone), Err)
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

/// The server's answer about a group in one stream.
struct Told {
    dead: u64,
    pending: u64,
    /// Entries that nobody got yet, where the server knows.
    waiting: Option<u64>,
    /// The id behind which those are.
    at: String,
    oldest_ms: Option<u64>,
    has_group: bool,
    /// Why its dead letters cannot be read.
    no_letters: Option<String>,
}

impl Told {
    fn read(value: &Value) -> Option<Self> {
        let Value::Array(parts) = value else { return None };
        let [dead, pending, waiting, at, oldest, has_group] = &parts[..] else { return None };
        Some(Self {
            dead: number(dead),
            pending: number(pending),
            waiting: (*waiting != Value::Int(-1)).then(|| number(waiting)),
            at: text(at)?,
            oldest_ms: text(oldest).and_then(|id| order(&id)).map(|(ms, _)| ms),
            has_group: number(has_group) == 1,
            no_letters: text(dead),
        })
    }
}

/// A stream that cannot be read, and why.
fn fault(value: &Value) -> Option<String> {
    let Value::Array(pair) = value else { return None };
    let [stream, why] = &pair[..] else { return None };
    Some(format!("{}: {}", text(stream)?, text(why)?))
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
