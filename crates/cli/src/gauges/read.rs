//! A queue as the broker tells it, as much of it as is shown.

use serde::Deserialize;
use serde_json::Value;

/// `GET /v1/queues/{queue}`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct QueueIn {
    pub(crate) name: String,
    settings: SettingsIn,
    /// Those that hold, where policies make them other ones.
    effective_settings: Option<SettingsIn>,
    pub(crate) consumers: u64,
    /// Requests that wait for a message.
    pub(crate) waiting: u64,
    /// The most urgent first.
    pub(crate) lanes: Vec<LaneIn>,
}

/// The settings that say how a queue is looked at.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct SettingsIn {
    pub(crate) scheme: String,
    pub(crate) order: Value,
    pub(crate) paused: bool,
    /// Most messages waiting; 0 or missing: any number.
    pub(crate) max_length: Option<u64>,
    /// Most bytes waiting; 0 or missing: any number.
    pub(crate) max_bytes: Option<u64>,
}

/// A lane. Counters count since the broker started.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct LaneIn {
    pub(crate) lane: String,
    pub(crate) level: i32,
    pub(crate) ready: u64,
    pub(crate) delayed: u64,
    pub(crate) leased: u64,
    pub(crate) dead: u64,
    /// Of what is ready, delayed and leased.
    pub(crate) bytes: u64,
    pub(crate) oldest_age_ms: u64,
    /// 0: no cap.
    pub(crate) max_active: u64,
    pub(crate) published: u64,
    pub(crate) delivered: u64,
    pub(crate) settled: u64,
    pub(crate) evicted: u64,
    pub(crate) dead_lettered: u64,
    pub(crate) wait: WaitIn,
}

/// A histogram of waiting times.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct WaitIn {
    /// An upper bound in ms, and how many waited at most so long.
    pub(crate) buckets: Vec<(u64, u64)>,
    /// How many in all.
    pub(crate) count: u64,
}

impl QueueIn {
    /// The settings that hold.
    pub(crate) fn settings(&self) -> &SettingsIn {
        self.effective_settings.as_ref().unwrap_or(&self.settings)
    }
}
