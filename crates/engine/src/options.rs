//! How to open an engine.

use overtake_lane::{Numbers, PushLimits};
use overtake_store::OnDamage;

use crate::traces::Traces;
use crate::watermarks::Watermarks;

/// Bytes that may be pushed to one connection and not taken: at least four times what it takes without saying so.
const FEED_BYTES_MIN: u64 = 512 << 10;
const FEED_BYTES_MAX: u64 = 1 << 20;

/// How to open an engine on the embedded store.
#[derive(Clone, Debug)]
pub struct Options {
    /// Length of a journal file, bytes: a multiple of 4,096 from 64 KiB to 1 GiB. Fixed when the store is made.
    pub segment_bytes: u64,
    /// What to do when the journal is damaged.
    pub on_damage: OnDamage,
    /// When publishes are refused for the sake of the disk.
    pub watermarks: Watermarks,
    /// Largest body of a message, bytes; at most a quarter of `segment_bytes`, which is also what 0 means.
    pub max_message_bytes: u64,
    /// Time to live of messages that neither bring one nor find one at their queue, ms; 0: none.
    pub default_ttl_ms: u64,
    /// Most requests that wait in line; whoever asks more waits.
    pub inbox: usize,
    /// Most messages that one step ends, moves or puts back without being asked for each: those that came due, those of ended sessions, those
    /// that a queue has too many of; 0: no limit.
    pub step_max: usize,
    /// Bytes of memory that messages may take, about: when they take more, those that will wait longest are written to segments
    /// and leave memory. Messages that are leased, delayed, dead or of a last-value queue never do.
    pub memory_bytes: u64,
    /// Bytes of messages that requests in line may bring; whoever asks more waits.
    pub inbox_bytes: u64,
    /// Bytes of messages that may be pushed to connections that have not taken them yet, about; 0: no limit. Each has a quarter of them, 1 MiB at
    /// most: then its consumers are leased nothing more.
    pub pushed_bytes: u64,
    /// A number others cannot guess.
    pub seed: u64,
    /// How messages are traced; `None`: not at all.
    pub traces: Option<Traces>,
    /// The numbers of its queues and virtual hosts.
    pub numbers: Numbers,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            segment_bytes: 64 << 20,
            on_damage: OnDamage::Refuse,
            watermarks: Watermarks::default(),
            max_message_bytes: 16 << 20,
            default_ttl_ms: 0,
            inbox: 4_096,
            step_max: 256,
            memory_bytes: 128 << 20,
            inbox_bytes: 16 << 20,
            pushed_bytes: 64 << 20,
            seed: 0,
            traces: None,
            numbers: Numbers::default(),
        }
    }
}

impl Options {
    pub(crate) fn journal(&self) -> overtake_store::Options {
        overtake_store::Options {
            segment_bytes: self.segment_bytes,
            on_damage: self.on_damage,
            files_ahead: 2,
            ..overtake_store::Options::new(self.seed)
        }
    }

    fn pushes(&self) -> PushLimits {
        let all = self.pushed_bytes;
        // A reader is always left more than it may have taken without saying so.
        let feed = if all == 0 { 0 } else { (all / 4).clamp(FEED_BYTES_MIN, FEED_BYTES_MAX) };
        PushLimits { feed, all }
    }

    pub(crate) fn broker(&self, life: u32, record_len_max: usize) -> overtake_lane::Options {
        let fits = (record_len_max / 4) as u64;
        // A quarter of the file, to the byte: that is what `max_message_bytes` may be configured as. Half of a record is left for
        // headers, and records are a few bytes shorter than files.
        let quarter = self.segment_bytes / 4;
        let asked = if self.max_message_bytes == 0 { quarter } else { self.max_message_bytes };
        overtake_lane::Options {
            life,
            seed: self.seed,
            max_message_bytes: asked.min(quarter),
            default_ttl_ms: self.default_ttl_ms,
            copies_max: record_len_max / 1_024,
            metadata_step_max: fits,
            step_max: self.step_max,
            numbers: self.numbers,
            pushes: self.pushes(),
        }
    }
}
