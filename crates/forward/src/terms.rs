//! How an endpoint sends.

use std::fmt;

use overtake_lane::{Backoff, Priority};
use serde::{Deserialize, Serialize};

/// Most lines of an endpoint.
const FAN_OUT_MAX: u16 = 64;
/// Most messages of a batch.
const BATCH_MAX: u32 = 10_000;
/// Messages of a batch for each line, where nothing is said.
const BATCH_PER_LINE: u32 = 10;

/// How an endpoint sends: how much at once, how fast, and what happens when it fails.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Terms {
    /// Connections to the receiver, 1 to 64. With one the order of each lane is kept; with more it is not.
    pub fan_out: u16,
    /// Most messages of a batch; `None`: ten for each connection.
    pub batch: Option<u32>,
    /// Most bytes of content of a batch, but one message at least.
    pub batch_bytes: u64,
    /// A batch is given up when it takes longer, ms: the connection is closed, and what has no answer is sent again.
    pub batch_ms: u64,
    /// Connecting is given up when it takes longer, ms.
    pub connect_ms: u64,
    /// How long to wait before the next attempt to connect.
    pub reconnect: Backoff,
    /// How long a message that failed waits aside. How often it is tried is its queue's `delivery_limit`.
    pub retry: Backoff,
    /// So many failures of a lane in a row open its breaker: nothing of it is sent for a while.
    pub breaker_failures: u32,
    /// How long a breaker is open.
    pub breaker: Backoff,
    /// Bytes a second; 0: no limit.
    pub bytes_per_second: u64,
    /// Messages a second; 0: no limit.
    pub messages_per_second: u64,
    /// Bytes a day, which begins at midnight UTC; 0: no limit.
    pub daily_bytes: u64,
    /// The last so many bytes of a day are for messages at or above [`Terms::reserve_from`] only.
    pub reserve_bytes: u64,
    /// The least urgent priority inside that may use the reserve; whoever reads the terms says it in the words of the queue.
    #[serde(skip)]
    pub reserve_from: Option<Priority>,
}

impl Default for Terms {
    fn default() -> Self {
        let backoff = |initial_ms, max_ms| Backoff { initial_ms, multiplier: 2, max_ms };
        Self {
            fan_out: 1,
            batch: None,
            batch_bytes: 262_144,
            batch_ms: 30_000,
            connect_ms: 10_000,
            reconnect: backoff(200, 10_000),
            retry: backoff(1_000, 300_000),
            breaker_failures: 5,
            breaker: backoff(1_000, 60_000),
            bytes_per_second: 0,
            messages_per_second: 0,
            daily_bytes: 0,
            reserve_bytes: 0,
            reserve_from: None,
        }
    }
}

/// Why terms cannot hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadTerms {
    /// Which of them.
    pub key: &'static str,
    /// What it must be.
    pub must: String,
}

impl fmt::Display for BadTerms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` must be {}", self.key, self.must)
    }
}

impl std::error::Error for BadTerms {}

impl Terms {
    /// Most messages of a batch.
    #[must_use]
    pub fn batch(&self) -> u32 {
        self.batch.unwrap_or(BATCH_PER_LINE * u32::from(self.fan_out))
    }

    /// Whether they can hold.
    ///
    /// # Errors
    /// [`BadTerms`]: the first that cannot.
    pub fn check(&self) -> Result<(), BadTerms> {
        let must = |holds: bool, key, must: String| if holds { Ok(()) } else { Err(BadTerms { key, must }) };
        must((1..=FAN_OUT_MAX).contains(&self.fan_out), "fan_out", format!("1 to {FAN_OUT_MAX}"))?;
        must((1..=BATCH_MAX).contains(&self.batch()), "batch", format!("1 to {BATCH_MAX}"))?;
        must(self.batch_bytes > 0, "batch_bytes", "1 or more".into())?;
        must(self.batch_ms > 0, "batch_ms", "1 or more".into())?;
        must(self.connect_ms > 0, "connect_ms", "1 or more".into())?;
        must(self.breaker_failures > 0, "breaker_failures", "1 or more".into())?;
        must(self.reconnect.initial_ms > 0, "reconnect.initial_ms", "1 or more".into())?;
        must(self.breaker.initial_ms > 0, "breaker.initial_ms", "1 or more".into())?;
        must(self.reserve_bytes <= self.daily_bytes, "reserve_bytes", "no more than `daily_bytes`".into())
    }
}
