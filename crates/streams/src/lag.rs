//! How far a group is.

use overtake_peer::redis::RedisServer;
use overtake_peer::redis::entries::{self, Found};
use redis::{Cmd, Value, cmd};

use crate::dead_letters::order;
use crate::lanes::{Lane, Lanes};
use crate::layout::dead_letters_of;
use crate::link::Link;
use crate::scripts;

/// Where the server does not know how many entries are left, so many are counted at once, and so many times at most.
const COUNT: (u32, u32) = (10_000, 100);

/// How far a group is in one lane.
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

    /// How far a group is, in each lane. One that is not there yet has everything before it.
    ///
    /// # Errors
    /// The server does not answer, or declines.
    pub async fn of(&self, category: &str, group: &str, lanes: &Lanes) -> Result<Vec<Lag>, String> {
        let mut all = Vec::new();
        for &lane in lanes.all() {
            all.push(self.of_lane(lane, &lanes.stream(category, lane), group).await?);
        }
        Ok(all)
    }

    async fn of_lane(&self, lane: Lane, stream: &str, group: &str) -> Result<Lag, String> {
        let dead = number(&self.ask(cmd("XLEN").arg(dead_letters_of(stream)), stream).await?);
        let told = self.group(stream, group).await?;
        let at = told.as_ref().map_or("0-0", |told| told.at.as_str());
        let waiting = match &told {
            Some(Told { lag: Some(lag), .. }) => *lag,
            Some(_) => self.count(stream, at).await?,
            None => number(&self.ask(cmd("XLEN").arg(stream), stream).await?),
        };
        let pending = told.as_ref().map_or(0, |told| told.pending);
        let mut oldest = self.first_after(stream, at).await?;
        if pending > 0 {
            oldest = oldest.into_iter().chain(self.first_pending(stream, group).await?).min();
        }
        let oldest_s = match oldest {
            Some(oldest_ms) => self.now_ms(stream).await?.saturating_sub(oldest_ms) / 1_000,
            None => 0,
        };
        Ok(Lag { lane, waiting, pending, oldest_s, dead })
    }

    async fn ask(&self, command: &Cmd, stream: &str) -> Result<Value, String> {
        self.link.ask(command).await?.map_err(|fault| format!("{stream}: {fault}"))
    }

    async fn group(&self, stream: &str, group: &str) -> Result<Option<Told>, String> {
        let answer = self.link.ask(cmd("XINFO").arg("GROUPS").arg(stream)).await?;
        let groups = match answer {
            Ok(Value::Array(groups)) => groups,
            // There is no such stream.
            Err(fault) if fault.code() == "ERR" => return Ok(None),
            Err(fault) => return Err(format!("{stream}: {fault}")),
            Ok(_) => return Ok(None),
        };
        Ok(groups.into_iter().filter_map(Told::read).find(|told| told.name == group))
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

    /// When the first entry behind an id was added, ms.
    async fn first_after(&self, stream: &str, at: &str) -> Result<Option<u64>, String> {
        let mut range = cmd("XRANGE");
        range.arg(stream).arg(format!("({at}")).arg("+").arg("COUNT").arg(1);
        let found = entries::of_entries(self.ask(&range, stream).await?);
        Ok(found.first().map(Found::id).and_then(order).map(|(ms, _)| ms))
    }

    async fn first_pending(&self, stream: &str, group: &str) -> Result<Option<u64>, String> {
        let answer = self.ask(cmd("XPENDING").arg(stream).arg(group), stream).await?;
        let Value::Array(parts) = answer else { return Ok(None) };
        Ok(parts.get(1).and_then(text).and_then(|id| order(&id)).map(|(ms, _)| ms))
    }

    /// The server's own time: ids are made of that.
    async fn now_ms(&self, stream: &str) -> Result<u64, String> {
        let answer = self.ask(&cmd("TIME"), stream).await?;
        let Value::Array(parts) = answer else { return Ok(0) };
        let part = |at: usize| parts.get(at).and_then(text).and_then(|text| text.parse::<u64>().ok());
        Ok(part(0).unwrap_or(0) * 1_000 + part(1).unwrap_or(0) / 1_000)
    }
}

/// What the server says of a group.
struct Told {
    name: String,
    pending: u64,
    at: String,
    lag: Option<u64>,
}

impl Told {
    fn read(value: Value) -> Option<Self> {
        let Value::Array(parts) = value else { return None };
        let of = |name: &str| parts.chunks(2).find(|pair| text(&pair[0]).as_deref() == Some(name))?.get(1);
        let lag = of("lag").filter(|lag| matches!(lag, Value::Int(_))).map(number);
        Some(Self {
            name: text(of("name")?)?,
            pending: number(of("pending")?),
            at: text(of("last-delivered-id")?)?,
            lag,
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
