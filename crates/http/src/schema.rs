//! Schemas of the model's types in responses, and of queue settings, for the OpenAPI document. The model derives none; a test compares fields.

#![allow(dead_code, reason = "described, never made")]

use std::collections::BTreeMap;

use overtake_api::schema::PrioritySchema;
use serde::Serialize;
use utoipa::ToSchema;

/// The body of a message, as bytes.
#[derive(ToSchema, Serialize)]
#[schema(as = RawBody, value_type = String, format = Binary)]
pub(crate) struct RawBodySchema(Vec<u8>);

/// A tar, as bytes.
#[derive(ToSchema, Serialize)]
#[schema(as = Tar, value_type = String, format = Binary)]
pub(crate) struct TarSchema(Vec<u8>);

/// Why a message became a dead letter.
#[derive(ToSchema, Serialize)]
#[serde(rename_all = "snake_case")]
#[schema(as = DeathReason)]
pub(crate) enum DeathReasonSchema {
    /// A consumer rejected it.
    Rejected,
    /// It failed as often as the queue allows.
    DeliveryLimit,
    /// Its time to live was over.
    Expired,
    /// Its queue was full.
    Maxlen,
    /// Somebody worked on it for longer than the queue allows.
    Timeout,
}

/// How the work on a message ended.
#[derive(ToSchema, Serialize)]
#[serde(rename_all = "snake_case")]
#[schema(as = Ending)]
pub(crate) enum EndingSchema {
    /// It was done: acknowledged.
    Completed,
    /// It was rejected, or failed as often as the queue allows.
    Failed,
    /// It took longer than `run_timeout_ms`, or was not begun before it expired.
    Timeout,
    /// Somebody took it back, or the queue was full and it was the least urgent.
    Cancelled,
    /// Its lease ran out. Only an attempt ends so, and not the work.
    LeaseExpired,
}

/// The settings of a queue. A number that limits means "no limit" when it is 0; what is missing has its default.
#[derive(ToSchema, Serialize)]
#[schema(as = Settings)]
pub(crate) struct SettingsSchema {
    /// How a priority is understood: `ten-level` (default), `signed`, `named`, `route`, `max-1` to `max-255`. Fixed while
    /// messages are in the queue.
    #[schema(required = false, default = "ten-level")]
    scheme: String,
    /// What a message that gives no priority counts as.
    default_priority: Option<PrioritySchema>,
    /// Which messages share a lane.
    #[schema(required = false)]
    order: OrderSchema,
    /// Which lane's head goes next.
    #[schema(required = false)]
    picker: PickerSchema,
    /// Caps of single lanes, by lane name.
    #[schema(required = false)]
    lanes: BTreeMap<String, LaneSettingsSchema>,
    /// In how many places the messages are kept, and which goes where; missing: in one. Fixed while messages are in the queue.
    #[schema(required = false)]
    partitions: PartitionsSchema,
    /// Whether nothing is leased for now.
    #[schema(required = false)]
    paused: bool,
    /// Most messages leased at once over all consumers.
    #[schema(required = false)]
    max_active: u32,
    /// Most messages of one key leased at once; what has no key is not limited, here and below. 1 where `partitions` go by the key.
    #[schema(required = false)]
    group_limit: u32,
    /// How many messages may be leased in how long.
    rate_limit: Option<RateLimitSchema>,
    /// The same for those of each key.
    key_rate_limit: Option<RateLimitSchema>,
    /// Whether the keys of a lane take turns.
    #[schema(required = false)]
    fair_keys: bool,
    /// The turns of a key beside those of others where keys take turns, 1 to 1,000; 1 where nothing is said. Needs `fair_keys`.
    #[schema(required = false)]
    key_weights: BTreeMap<String, u32>,
    /// Most messages waiting (ready and delayed).
    #[schema(required = false)]
    max_length: u64,
    /// Most bytes waiting. A request may also send a text with a unit: `"10MiB"`.
    #[schema(required = false)]
    max_bytes: u64,
    /// `evict` (default): when full, the oldest message of the least urgent lane is evicted; `reject`: the publish is refused;
    /// `reject_dead_letter`: so it is, and its message is dead-lettered, but not that of a transaction.
    #[schema(required = false, default = "evict")]
    overflow: String,
    /// Refuses less urgent messages when the queue is deep.
    reject_below: Option<RejectBelowSchema>,
    /// Largest message, bytes; 0: what the broker allows. A request may also send a text with a unit: `"1MiB"`.
    #[schema(required = false)]
    max_message_bytes: u64,
    /// Time to live of messages that come without one, ms.
    #[schema(required = false)]
    ttl_ms: u64,
    /// Longest time to live a message may have, ms.
    #[schema(required = false)]
    max_ttl_ms: u64,
    /// Whether a message expires that no consumer takes at once.
    #[schema(required = false)]
    expire_at_once: bool,
    /// Whether a message is evicted that no consumer takes at once; with an `overflow` that refuses, every message is refused.
    #[schema(required = false)]
    evict_at_once: bool,
    /// Whether what waits on disk only is looked through again and again for what expires, which takes less memory where times to live
    /// differ, or once, which reads less.
    #[schema(required = false, default = true)]
    check_entire_queue_on_cleanup: bool,
    /// How long a lease lasts, ms; 0: it does not end by itself.
    #[schema(required = false, default = 30000)]
    visibility_timeout_ms: u64,
    /// Deliveries after which a message that fails again is dead-lettered; 0: never.
    #[schema(required = false)]
    delivery_limit: u32,
    /// How long a failed message waits.
    #[schema(required = false)]
    backoff: BackoffSchema,
    /// Where dead letters go.
    #[schema(required = false)]
    dead_letter: DeadLetterSchema,
    /// The queue of the same virtual host into which messages go when the work on them is over, each with a record of how that went.
    /// Neither the queue itself nor one whose own history leads back to it.
    history: Option<String>,
    /// Longest that somebody may work on a message at a time, ms: then it is a dead letter (`timeout`); 0: no end.
    #[schema(required = false)]
    run_timeout_ms: u64,
    /// Whether an expired message is dead-lettered instead of dropped.
    #[schema(required = false)]
    dead_letter_expired: bool,
    /// Whether an evicted message is dead-lettered instead of dropped.
    #[schema(required = false)]
    dead_letter_evicted: bool,
    /// Keeps only the newest message: `key`: of each key; `one`: of the queue. Fixed while messages are in the queue.
    last_value: Option<String>,
    /// Most messages one consumer holds unacknowledged, and one lease takes, whatever they ask for, 1 to 1,000,000; 1,000,000: no limit.
    #[schema(required = false, default = 1000000)]
    max_unacked: u32,
    /// Most consumers and waiting leases at once; 0: no limit.
    #[schema(required = false, default = 50000)]
    max_consumers: u32,
    /// The queue is deleted after so long without a consumer, a lease, or being declared, ms; 0: never.
    #[schema(required = false)]
    expires_ms: u64,
    /// A consumer that stays holds a message so long at most, ms: then it is put back and the consumer takes nothing more; 0: no
    /// end.
    #[schema(required = false)]
    consumer_timeout_ms: u64,
    /// Of the consumers that stay only one is served: the oldest of the highest priority.
    #[schema(required = false)]
    single_active_consumer: bool,
}

/// In how many places the messages of a queue are kept, and which goes where. The order is that of one place.
#[derive(ToSchema, Serialize)]
#[schema(as = Partitions)]
pub(crate) struct PartitionsSchema {
    /// `none` (default): one place; `hash`: `count` places, evenly; `bands`: by priority; `key`: `count` places, by the hash of the key, of which
    /// one message is out at a time.
    #[schema(required = false, default = "none")]
    mode: String,
    /// Of `hash` and `key` how many places, 2 to 4,096; of `bands` over how many places the last band is spread, 0 or 1: it is not.
    #[schema(required = false)]
    count: u16,
    /// Of `bands`: the least urgent priority of each band but the last, the most urgent first; missing: 7 and 4, where priorities go from 0
    /// to 9.
    #[schema(required = false)]
    bands: Vec<PrioritySchema>,
}

/// So many in so long, by a token bucket that holds `messages` and is full at first.
#[derive(ToSchema, Serialize)]
#[schema(as = RateLimit)]
pub(crate) struct RateLimitSchema {
    /// 1 to 1,000,000.
    messages: u32,
    /// ms.
    per_ms: u64,
}

/// `"priority"`: a lane per priority; `"fifo"`: one lane; `{"lanes":[…]}`: lanes by threshold, the most urgent first.
#[derive(ToSchema, Serialize)]
#[serde(rename_all = "snake_case")]
#[schema(as = Order)]
pub(crate) enum OrderSchema {
    /// A lane per priority in use.
    Priority,
    /// One lane.
    Fifo,
    /// Lanes by threshold.
    Lanes(Vec<BandSchema>),
}

/// One lane of `{"lanes":[…]}`.
#[derive(ToSchema, Serialize)]
#[schema(as = Band)]
pub(crate) struct BandSchema {
    /// Its name.
    name: String,
    /// The least urgent priority it takes. The last lane takes everything below and has none.
    from: Option<PrioritySchema>,
}

/// `"strict"`, `{"aging_ms":n}`: a message waits at most n for each level it is below another, or
/// `{"weighted":{lane:weight}}`.
#[derive(ToSchema, Serialize)]
#[serde(rename_all = "snake_case")]
#[schema(as = Picker)]
pub(crate) enum PickerSchema {
    /// The most urgent lane that has a message.
    Strict,
    /// By age less a step per level.
    AgingMs(u64),
    /// By turns, as many messages as the weight.
    Weighted(BTreeMap<String, u32>),
}

/// Settings of one lane.
#[derive(ToSchema, Serialize)]
#[schema(as = LaneSettings)]
pub(crate) struct LaneSettingsSchema {
    /// Most messages of this lane leased at once.
    #[schema(required = false)]
    max_active: u32,
}

/// Refuses messages under `priority` while `depth` or more are waiting.
#[derive(ToSchema, Serialize)]
#[schema(as = RejectBelow)]
pub(crate) struct RejectBelowSchema {
    /// Messages waiting from which it holds.
    depth: u64,
    /// The least urgent priority still taken.
    priority: PrioritySchema,
}

/// `initial_ms · multiplier^(n−1)`, at most `max_ms`, for the n-th failure.
#[derive(ToSchema, Serialize)]
#[schema(as = Backoff)]
pub(crate) struct BackoffSchema {
    /// The first wait, ms.
    #[schema(required = false)]
    initial_ms: u64,
    /// Each further wait is so many times the one before.
    #[schema(required = false, default = 2)]
    multiplier: u32,
    /// No wait is longer, ms.
    #[schema(required = false, default = 3600000)]
    max_ms: u64,
}

/// `"keep"` (default): in this queue, out of the lanes; `"drop"`; `{"queue":name}`; or
/// `{"exchange":{"name","routing_key"}}`.
#[derive(ToSchema, Serialize)]
#[serde(rename_all = "snake_case")]
#[schema(as = DeadLetterTo)]
pub(crate) enum DeadLetterSchema {
    /// They stay.
    Keep,
    /// They are dropped, and counted.
    Drop,
    /// They are moved into this queue.
    Queue(String),
    /// They are published to this exchange.
    Exchange {
        /// Its name.
        name: String,
        /// The routing key; missing: the name of this queue.
        routing_key: Option<String>,
    },
}

/// The messages of a key, as they are now.
#[derive(ToSchema)]
#[schema(as = Key)]
pub(crate) struct KeySchema {
    /// The key; empty: the messages without one.
    key: String,
    /// Its turns beside those of others, where keys take turns.
    weight: u32,
    /// Messages ready.
    ready: u64,
    /// Messages leased.
    leased: u64,
    /// Age of the oldest ready message, ms; 0 when none is.
    oldest_age_ms: u64,
}

/// A lane as it is now. Counters count since the broker started.
#[derive(ToSchema, Serialize, Default)]
#[schema(as = Lane)]
pub(crate) struct LaneSchema {
    /// Its name: a priority in the words of the scheme, or as the settings call it.
    lane: String,
    /// How urgent it is, inside: larger is more urgent.
    level: i32,
    /// Messages ready.
    ready: u64,
    /// Messages delayed.
    delayed: u64,
    /// Messages leased.
    leased: u64,
    /// Dead letters.
    dead: u64,
    /// Those of all of these that wait to move to other lanes, since the settings changed what lanes there are.
    moving: u64,
    /// Bytes of what is ready, delayed and leased.
    bytes: u64,
    /// Bytes of what is ready.
    ready_bytes: u64,
    /// Bytes of what is leased.
    leased_bytes: u64,
    /// Those of the ready messages that wait in segments and not in memory.
    spilled: u64,
    /// Bytes of those.
    spilled_bytes: u64,
    /// Age of the oldest ready message, ms; 0 when none is.
    oldest_age_ms: u64,
    /// The cap of this lane; 0 for none.
    max_active: u32,
    /// Messages published here, or moved here from another lane or queue.
    published: u64,
    /// Leases given.
    delivered: u64,
    /// Messages acknowledged.
    settled: u64,
    /// Leases given of messages that had been leased before.
    redelivered: u64,
    /// Leases given while a more urgent lane had a message ready, whatever kept that one back: the picker, a cap, its key.
    inversions: u64,
    /// Messages whose time to live was over.
    expired: u64,
    /// Messages dropped because the queue was full.
    evicted: u64,
    /// Messages removed, purged, replaced by a newer one, or dropped after rejection.
    removed: u64,
    /// Messages that left for another lane or queue.
    moved: u64,
    /// Messages that became dead letters.
    dead_lettered: u64,
    /// How long messages waited from publish to first lease.
    wait: WaitSchema,
}

/// A histogram of waiting times.
#[derive(ToSchema, Serialize, Default)]
#[schema(as = Wait)]
pub(crate) struct WaitSchema {
    /// Pairs: an upper bound in ms, and how many waited at most so long.
    buckets: Vec<Vec<u64>>,
    /// How many in all.
    count: u64,
    /// Their sum, ms.
    sum_ms: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use overtake_lane::{Backoff, KeyView, LaneView, Settings};
    use serde_json::{Value, json};
    use utoipa::PartialSchema;

    fn properties<T: PartialSchema>() -> Vec<String> {
        let schema = serde_json::to_value(T::schema()).expect("a schema");
        keys(&schema["properties"])
    }

    fn keys(object: &Value) -> Vec<String> {
        let mut keys: Vec<_> = object.as_object().expect("an object").keys().cloned().collect();
        keys.sort();
        keys
    }

    #[test]
    fn the_described_settings_are_the_real_ones() {
        let every = json!({
            "default_priority": 1, "lanes": {"1": {"max_active": 1}}, "last_value": "key",
            "reject_below": {"depth": 1, "priority": 1}, "history": "h",
            "rate_limit": {"messages": 1, "per_ms": 1}, "key_rate_limit": {"messages": 1, "per_ms": 1},
            "partitions": {"mode": "bands", "count": 2, "bands": [5]}, "key_weights": {"k": 1},
        });
        let settings: Settings = serde_json::from_value(every).expect("settings");
        assert_eq!(properties::<SettingsSchema>(), keys(&serde_json::to_value(&settings).expect("JSON")));
        assert_eq!(
            properties::<PartitionsSchema>(),
            keys(&serde_json::to_value(&settings.partitions).expect("JSON"))
        );
        assert_eq!(
            properties::<BackoffSchema>(),
            keys(&serde_json::to_value(Backoff::default()).expect("JSON"))
        );
    }

    #[test]
    fn the_described_lane_is_the_real_one() {
        let lane = serde_json::to_value(LaneView::default()).expect("JSON");
        assert_eq!(properties::<LaneSchema>(), keys(&lane));
        assert_eq!(properties::<WaitSchema>(), keys(&lane["wait"]));
        let key = KeyView { key: "k".into(), weight: 1, ready: 0, leased: 0, oldest_age_ms: 0 };
        assert_eq!(properties::<KeySchema>(), keys(&serde_json::to_value(key).expect("JSON")));
    }
}
