//! What a queue is told to be: scheme, order, picker, caps, limits, times. The same keys in JSON, TOML and docs.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::deaths::DeathReason;
use crate::partitions::Partitions;
use crate::priority::{Given, Original, Priority, Scheme};
use crate::rate::RateLimit;
use crate::refusal::Refusal;
use crate::units::{bytes, weights};
use crate::{LANES_MAX, NAME_LEN_MAX};

/// Longest `visibility_timeout_ms`, `ttl_ms`, delay or backoff: ten years.
pub const DURATION_MS_MAX: u64 = 10 * 365 * 24 * 3_600_000;
/// Largest window a consumer may have.
pub const WINDOW_MAX: u32 = 1_000_000;
/// Largest weight of a key.
pub const KEY_WEIGHT_MAX: u32 = 1_000;
/// Largest weight of a lane.
const LANE_WEIGHT_MAX: u32 = 1_000_000;
/// Most keys of which settings say a weight.
pub const KEY_WEIGHTS_MAX: usize = 1_000;
/// What `max_unacked` was where nothing was said of it, before that was no limit.
const FORMER_MAX_UNACKED: u32 = 10_000;

/// The settings of one queue. A number that limits means "no limit" when it is 0, unless it says otherwise.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// How a priority on the wire is understood. Fixed while messages are in the queue.
    pub scheme: Scheme,
    /// What a message that gives no priority counts as; unset: what the scheme says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_priority: Option<Given>,
    /// Which messages share a lane. May change while messages wait.
    pub order: Order,
    /// Which lane's head goes next.
    pub picker: PickerKind,
    /// Caps of single lanes, by lane name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub lanes: BTreeMap<String, LaneSettings>,
    /// In how many places the messages are kept, and which goes where. Fixed while messages are in the queue.
    #[serde(skip_serializing_if = "Partitions::is_default")]
    pub partitions: Partitions,
    /// Whether nothing is leased for now: what comes waits, and what is leased may be settled.
    pub paused: bool,
    /// Most messages leased at once over all consumers.
    pub max_active: u32,
    /// Most messages of one key leased at once; 0: no limit, but 1 where `partitions` go by the key. What has no key is not limited, here and below.
    pub group_limit: u32,
    /// How many messages may be leased in how long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_limit: Option<RateLimit>,
    /// The same for those of each key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_rate_limit: Option<RateLimit>,
    /// Whether the keys of a lane take turns, in place of the oldest message first: the key goes next that has the fewest messages out,
    /// then the one that has had the least since it came, both for its weight.
    pub fair_keys: bool,
    /// The turns of a key beside those of others where keys take turns, 1 to [`KEY_WEIGHT_MAX`]: a key of weight 3 has three times the turns of one of weight 1,
    /// which is what others have. The empty key is that of messages without one.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "weights::<KEY_WEIGHT_MAX, _>")]
    pub key_weights: BTreeMap<String, u32>,
    /// Most messages waiting (ready and delayed).
    pub max_length: u64,
    /// Most bytes of bodies and headers waiting. As text also with a unit: `10MiB`.
    #[serde(deserialize_with = "bytes")]
    pub max_bytes: u64,
    /// What happens to a publish when the queue is full.
    pub overflow: Overflow,
    /// Refuses less urgent messages when the queue is deep.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reject_below: Option<RejectBelow>,
    /// Largest message in bytes; 0: what the broker allows. As text also with a unit: `1MiB`.
    #[serde(deserialize_with = "bytes")]
    pub max_message_bytes: u64,
    /// Time to live of messages that come without one, ms.
    pub ttl_ms: u64,
    /// Longest time to live a message may have, ms.
    pub max_ttl_ms: u64,
    /// Whether a message expires that no consumer takes at once: the time to live of 0 that `ttl_ms` cannot say.
    pub expire_at_once: bool,
    /// Whether a message is evicted that no consumer takes at once: the limit of no messages that `max_length` cannot say. With an
    /// `overflow` that refuses, every message is refused.
    pub evict_at_once: bool,
    /// Whether what waits on disk only is looked through again and again for what expires, so that it stays there until then. Without, a run of
    /// messages is looked through once, when the first of them expires, and those that will are kept in memory from then on: less is
    /// read, and where times to live differ more memory taken. Either way nothing is there any more when it has expired.
    pub check_entire_queue_on_cleanup: bool,
    /// How long a pull lease lasts, ms; 0: a pull lease never ends by itself.
    pub visibility_timeout_ms: u64,
    /// Deliveries after which a message that fails again is dead-lettered; 0: never.
    pub delivery_limit: u32,
    /// How long a message waits after a delivery that failed: a nack, a lease that ran out, a consumer that is gone.
    pub backoff: Backoff,
    /// Where dead letters go.
    pub dead_letter: DeadLetterTo,
    /// The queue of the same virtual host into which messages go when the work on them is over, each with a record of how that went:
    /// also dead letters that would be kept or dropped. Unset: nothing is recorded. Neither the queue itself nor one whose own history leads
    /// back to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub history: Option<String>,
    /// Longest that somebody may work on a message at a time, ms: then it is a dead letter (`timeout`); 0: no end.
    pub run_timeout_ms: u64,
    /// Whether an expired message is dead-lettered instead of dropped.
    pub dead_letter_expired: bool,
    /// Whether an evicted message is dead-lettered instead of dropped.
    pub dead_letter_evicted: bool,
    /// Keeps only the newest message, per key or in all. Fixed while messages are in the queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_value: Option<LastValue>,
    /// Most messages that one consumer holds unacknowledged, and one pull takes, whatever they ask for, 1 to 1,000,000; 1,000,000: no
    /// limit by count.
    pub max_unacked: u32,
    /// Most consumers and waiting pulls at once; 0: no limit.
    pub max_consumers: u32,
    /// The queue is deleted after so long without a consumer, a pull, a get or a declaration, ms; 0: never.
    pub expires_ms: u64,
    /// A consumer that stays holds a message so long at most, ms: then it is put back and the consumer takes nothing more; 0: no end.
    pub consumer_timeout_ms: u64,
    /// Of the consumers that stay only one is served: the oldest of the highest priority. A more urgent newcomer waits until
    /// that one holds nothing.
    pub single_active_consumer: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            scheme: Scheme::default(),
            default_priority: None,
            order: Order::default(),
            picker: PickerKind::default(),
            lanes: BTreeMap::new(),
            partitions: Partitions::default(),
            paused: false,
            max_active: 0,
            group_limit: 0,
            rate_limit: None,
            key_rate_limit: None,
            fair_keys: false,
            key_weights: BTreeMap::new(),
            max_length: 0,
            max_bytes: 0,
            overflow: Overflow::default(),
            reject_below: None,
            max_message_bytes: 0,
            ttl_ms: 0,
            max_ttl_ms: 0,
            expire_at_once: false,
            evict_at_once: false,
            check_entire_queue_on_cleanup: true,
            visibility_timeout_ms: 30_000,
            delivery_limit: 0,
            backoff: Backoff::default(),
            dead_letter: DeadLetterTo::default(),
            history: None,
            run_timeout_ms: 0,
            dead_letter_expired: false,
            dead_letter_evicted: false,
            last_value: None,
            max_unacked: WINDOW_MAX,
            max_consumers: 50_000,
            expires_ms: 0,
            consumer_timeout_ms: 0,
            single_active_consumer: false,
        }
    }
}

/// Which messages share a lane.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// A lane per priority in use.
    #[default]
    Priority,
    /// One lane: the priority is kept but does not order.
    Fifo,
    /// Lanes by threshold, most urgent first; first in, first out inside each whatever the priority.
    Lanes(Vec<Band>),
}

/// One lane of [`Order::Lanes`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Band {
    /// Its name.
    pub name: String,
    /// The least urgent priority it takes, in the words of the scheme. The last lane takes everything below and has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Given>,
}

/// Which lane's head goes next.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PickerKind {
    /// The most urgent lane that has one. Nothing else, no hidden timer.
    #[default]
    Strict,
    /// The head with the least `since − level · step`: a message waits at most `step` for each level it is below another.
    AgingMs(u64),
    /// Deficit round robin: each lane in turn, as many messages as its weight (1 where none is given), by lane name.
    Weighted(#[serde(deserialize_with = "weights::<LANE_WEIGHT_MAX, _>")] BTreeMap<String, u32>),
}

/// Settings of one lane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LaneSettings {
    /// Most messages of this lane leased at once; 0: no cap of its own.
    pub max_active: u32,
}

/// What happens when a queue is full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Overflow {
    /// The oldest message of the least urgent lane is evicted; a message less urgent than all of them is refused.
    #[default]
    Evict,
    /// The publish is refused.
    Reject,
    /// The publish is refused, and its message dead-lettered; not so in a transaction, which leaves nothing behind.
    RejectDeadLetter,
}

/// Refuses messages under `priority` while `depth` or more are waiting.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RejectBelow {
    /// Messages waiting from which it holds.
    pub depth: u64,
    /// The least urgent priority still taken.
    pub priority: Given,
}

/// `initial · multiplier^(n−1)`, capped, for the n-th failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Backoff {
    /// The first wait, ms; 0: a failed message is ready again at once.
    pub initial_ms: u64,
    /// Each further wait is so many times the one before.
    pub multiplier: u32,
    /// No wait is longer, ms.
    pub max_ms: u64,
}

impl Default for Backoff {
    fn default() -> Self {
        Self { initial_ms: 0, multiplier: 2, max_ms: 3_600_000 }
    }
}

impl Backoff {
    /// How long the message waits after its `failures`-th failure (from 1), ms.
    #[must_use]
    pub fn wait_ms(&self, failures: u32) -> u64 {
        let factor = u64::from(self.multiplier).saturating_pow(failures.saturating_sub(1));
        self.initial_ms.saturating_mul(factor).min(self.max_ms)
    }

    /// Checks the ranges of its fields, of which errors speak as fields of `name`.
    pub(crate) fn validate(&self, name: &str) -> Result<(), BadSetting> {
        check_time(&format!("{name}.initial_ms"), self.initial_ms)?;
        check_time(&format!("{name}.max_ms"), self.max_ms)?;
        if !(1..=1_000).contains(&self.multiplier) {
            return Err(bad(&format!("{name}.multiplier"), "must be 1 to 1000"));
        }
        Ok(())
    }
}

/// Where dead letters go.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeadLetterTo {
    /// They stay in this queue as dead letters, out of the lanes, until replayed or removed.
    #[default]
    Keep,
    /// They are dropped, and counted.
    Drop,
    /// They are moved into this queue. One that cannot be written there is kept here, and one that died there already, with
    /// no rejection since, is dropped.
    Queue(String),
    /// They are published to this exchange. One that cannot be written is kept here; no copy goes to a queue that it died in
    /// already, with no rejection since, and one for which there is no other is dropped.
    Exchange {
        /// Its name.
        name: String,
        /// The routing key; unset: those that the message came with.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        routing_key: Option<String>,
    },
}

/// What a last-value queue keeps the newest of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LastValue {
    /// Each key.
    Key,
    /// The whole queue.
    One,
}

/// A setting that cannot be: which key, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadSetting {
    /// The key, with dots for nested ones.
    pub key: String,
    /// What is wrong and what would be right.
    pub why: String,
}

impl fmt::Display for BadSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` {}", self.key, self.why)
    }
}

impl std::error::Error for BadSetting {}

impl Settings {
    /// Where a message goes that dies for this reason.
    pub(crate) fn dead_letter_for(&self, reason: DeathReason) -> &DeadLetterTo {
        let is_wanted = match reason {
            DeathReason::Expired => self.dead_letter_expired,
            DeathReason::Maxlen => self.dead_letter_evicted || self.overflow == Overflow::RejectDeadLetter,
            DeathReason::Rejected | DeathReason::DeliveryLimit | DeathReason::Timeout => true,
        };
        if is_wanted { &self.dead_letter } else { &DeadLetterTo::Drop }
    }

    /// Whether a message that dies for this reason leaves more behind than a number.
    pub(crate) fn keeps(&self, reason: DeathReason) -> bool {
        self.history.is_some() || *self.dead_letter_for(reason) != DeadLetterTo::Drop
    }

    /// The scheme of its priorities; `None`: the queue has one lane and takes any number, as AMQP declares a queue without `x-max-priority`.
    #[must_use]
    pub fn known_scheme(&self) -> Option<Scheme> {
        let is_any_number = self.order == Order::Fifo && matches!(self.scheme, Scheme::Max(_));
        (!is_any_number).then_some(self.scheme)
    }

    /// The priority that a given one means in a queue with these settings.
    ///
    /// # Errors
    /// The scheme's refusal; [`Refusal::PriorityOutOfRange`] also for a number beyond 32 bits, which could not be shown as it came.
    pub fn map_priority(&self, given: &Given) -> Result<Priority, Refusal> {
        match &*self.in_own_words(given) {
            Given::Missing => self.scheme.map(self.default_priority.as_ref().unwrap_or(&Given::Missing)),
            Given::Number(number) if i32::try_from(*number).is_err() => Err(Refusal::PriorityOutOfRange),
            given => self.scheme.map(given),
        }
    }

    /// The form in which a message of the queue keeps the priority that it was given.
    pub(crate) fn original(&self, given: &Given) -> Original {
        match given {
            Given::Of(..) => given.original(),
            given => self.in_own_words(given).original(),
        }
    }

    /// A priority of another scheme as what is as urgent here. Where the queue takes any number, a name is the number that `signed` has for it: consumers
    /// get that number from a queue that knows the name, too.
    fn in_own_words<'g>(&self, given: &'g Given) -> Cow<'g, Given> {
        match given {
            Given::Of(theirs, priority) => Cow::Owned(self.scheme.words_for(*theirs, *priority)),
            Given::Name(_) if self.known_scheme().is_none() => {
                given.name_as_number().map_or(Cow::Borrowed(given), Cow::Owned)
            }
            given => Cow::Borrowed(given),
        }
    }

    /// Whether it is bounded how many messages are leased at once: of the queue, of a lane or of a key.
    #[must_use]
    pub fn caps_leases(&self) -> bool {
        self.max_active > 0 || self.group_limit > 0 || self.lanes.values().any(|lane| lane.max_active > 0)
    }

    /// Whether it is noted when work on a message begins.
    pub(crate) fn notes_work(&self) -> bool {
        self.history.is_some() || self.run_timeout_ms > 0
    }

    /// The first setting that is fixed while messages are in the queue, and is another one there.
    #[must_use]
    pub fn fixed_change(&self, other: &Self) -> Option<&'static str> {
        let changes = [
            ("scheme", self.scheme != other.scheme),
            ("last_value", self.last_value != other.last_value),
            ("partitions", self.partitions != other.partitions),
        ];
        changes.into_iter().find(|(_, is_changed)| *is_changed).map(|(key, _)| key)
    }

    /// Most messages that one consumer holds unacknowledged; `None`: no limit by count.
    pub(crate) fn most_unacked(&self) -> Option<u32> {
        (self.max_unacked < WINDOW_MAX).then_some(self.max_unacked)
    }

    /// Whether a queue with these settings is the one that somebody means who declares it with those. A queue that was stored when
    /// `max_unacked` was 10,000 where nothing was said of it is.
    #[must_use]
    pub fn is_declared_as(&self, other: &Self) -> bool {
        let is_former = self.max_unacked == FORMER_MAX_UNACKED && other.max_unacked == WINDOW_MAX;
        self == other || (is_former && Self { max_unacked: WINDOW_MAX, ..self.clone() } == *other)
    }

    /// Checks what the types cannot.
    ///
    /// # Errors
    /// The first setting that cannot be, with its key.
    pub fn validate(&self) -> Result<(), BadSetting> {
        self.check_order()?;
        self.check_priorities()?;
        self.check_picker()?;
        self.check_times()?;
        self.check_rates()?;
        self.check_key_weights()?;
        self.check_partitions()?;
        if !(1..=WINDOW_MAX).contains(&self.max_unacked) {
            return Err(bad("max_unacked", format!("must be 1 to {WINDOW_MAX}")));
        }
        if let DeadLetterTo::Queue(name) = &self.dead_letter
            && crate::check_queue_name(name).is_err()
        {
            return Err(bad("dead_letter.queue", "must be the name of a queue"));
        }
        if self.history.as_deref().is_some_and(|name| crate::check_queue_name(name).is_err()) {
            return Err(bad("history", "must be the name of a queue"));
        }
        for lane in self.lanes.keys() {
            self.check_lane_name("lanes", lane)?;
        }
        Ok(())
    }

    fn check_order(&self) -> Result<(), BadSetting> {
        let Order::Lanes(bands) = &self.order else { return Ok(()) };
        if bands.is_empty() || bands.len() > LANES_MAX {
            return Err(bad("order.lanes", format!("must name 1 to {LANES_MAX} lanes")));
        }
        let mut above: Option<Priority> = None;
        for (at, band) in bands.iter().enumerate() {
            if crate::check_name(&band.name).is_err() {
                let why = "is no name of a lane: it must be 1 to 200 bytes without control characters";
                return Err(bad(&format!("order.lanes[{at}].name"), why));
            }
            if let Some(first) = bands[..at].iter().position(|before| before.name == band.name) {
                let why =
                    format!("`{}` is the name of two lanes: `order.lanes[{first}]` has it, too", band.name);
                return Err(bad(&format!("order.lanes[{at}].name"), why));
            }
            let last = at + 1 == bands.len();
            match (&band.from, last) {
                (Some(_), true) => {
                    return Err(bad(
                        &format!("order.lanes[{at}].from"),
                        "must be left out: the last lane takes everything below",
                    ));
                }
                (None, false) => {
                    let why = format!("is missing: lane `{}` needs a `from`", band.name);
                    return Err(bad(&format!("order.lanes[{at}].from"), why));
                }
                (None, true) => {}
                (Some(from), false) => {
                    let key = format!("order.lanes[{at}].from");
                    let level = self
                        .scheme
                        .map(from)
                        .map_err(|why| bad(&key, format!("is `{from}`: {why}: {}", why.hint())))?;
                    if above.is_some_and(|above| level >= above) {
                        let why = format!("is `{from}`, but lanes go from the most urgent to the least");
                        return Err(bad(&key, why));
                    }
                    above = Some(level);
                }
            }
        }
        Ok(())
    }

    fn check_priorities(&self) -> Result<(), BadSetting> {
        let known = |key: &str, given: &Given| {
            self.scheme.map(given).map(drop).map_err(|why| bad(key, format!("{why}: {}", why.hint())))
        };
        if let Some(given) = &self.default_priority {
            known("default_priority", given)?;
        }
        if let Some(reject) = &self.reject_below {
            known("reject_below.priority", &reject.priority)?;
        }
        Ok(())
    }

    fn check_picker(&self) -> Result<(), BadSetting> {
        match &self.picker {
            PickerKind::Strict => Ok(()),
            PickerKind::AgingMs(step) if (1..=DURATION_MS_MAX).contains(step) => Ok(()),
            PickerKind::AgingMs(_) => Err(bad("picker.aging_ms", format!("must be 1 to {DURATION_MS_MAX}"))),
            PickerKind::Weighted(weights) => {
                for (lane, weight) in weights {
                    self.check_lane_name("picker.weighted", lane)?;
                    if !(1..=LANE_WEIGHT_MAX).contains(weight) {
                        let why = format!("the weight of `{lane}` must be 1 to {LANE_WEIGHT_MAX}");
                        return Err(bad("picker.weighted", why));
                    }
                }
                Ok(())
            }
        }
    }

    fn check_times(&self) -> Result<(), BadSetting> {
        let times = [
            ("ttl_ms", self.ttl_ms),
            ("max_ttl_ms", self.max_ttl_ms),
            ("visibility_timeout_ms", self.visibility_timeout_ms),
            ("expires_ms", self.expires_ms),
            ("consumer_timeout_ms", self.consumer_timeout_ms),
            ("run_timeout_ms", self.run_timeout_ms),
        ];
        for (key, ms) in times {
            check_time(key, ms)?;
        }
        self.backoff.validate("backoff")
    }

    fn check_rates(&self) -> Result<(), BadSetting> {
        let rates = [("rate_limit", self.rate_limit), ("key_rate_limit", self.key_rate_limit)];
        for (key, rate) in rates {
            if let Some((what, why)) = rate.and_then(RateLimit::fault) {
                return Err(bad(&format!("{key}.{what}"), why));
            }
        }
        Ok(())
    }

    fn check_key_weights(&self) -> Result<(), BadSetting> {
        if self.key_weights.is_empty() {
            return Ok(());
        }
        if !self.fair_keys {
            return Err(bad("key_weights", "needs `fair_keys`: without it, keys do not take turns"));
        }
        if self.key_weights.len() > KEY_WEIGHTS_MAX {
            let why = format!("may name {KEY_WEIGHTS_MAX} keys, and names {}", self.key_weights.len());
            return Err(bad("key_weights", why));
        }
        let impossible = |key: &&String| !key.is_empty() && crate::check_name(key).is_err();
        if let Some(key) = self.key_weights.keys().find(impossible) {
            let shown: String = key.chars().take(20).collect();
            let rest = if shown.len() < key.len() { "…" } else { "" };
            let why = format!(
                "names the key `{}{rest}`, which no message has: a key is at most {NAME_LEN_MAX} bytes without control characters",
                shown.escape_debug()
            );
            return Err(bad("key_weights", why));
        }
        let wrong = self.key_weights.iter().find(|(_, weight)| !(1..=KEY_WEIGHT_MAX).contains(*weight));
        wrong.map_or(Ok(()), |(key, _)| {
            Err(bad(&format!("key_weights.{key}"), format!("must be 1 to {KEY_WEIGHT_MAX}")))
        })
    }

    fn check_lane_name(&self, key: &str, lane: &str) -> Result<(), BadSetting> {
        let known = match &self.order {
            Order::Lanes(bands) => bands.iter().any(|band| band.name == lane),
            Order::Fifo => lane == FIFO_LANE,
            Order::Priority => self.priority_of_lane(lane).is_some(),
        };
        if known { Ok(()) } else { Err(bad(&format!("{key}.{lane}"), "names no lane of this queue")) }
    }

    /// The priority whose lane has this name, under `order = "priority"`.
    pub(crate) fn priority_of_lane(&self, lane: &str) -> Option<Priority> {
        if self.scheme == Scheme::Route && lane == "default" {
            return self.scheme.map(&Given::Missing).ok();
        }
        let given: Given = lane.parse().ok()?;
        let priority = self.scheme.map(&given).ok()?;
        (self.scheme.name(priority).eq_ignore_ascii_case(lane)).then_some(priority)
    }
}

/// The name of the one lane of a FIFO queue.
pub const FIFO_LANE: &str = "fifo";

fn check_time(key: &str, ms: u64) -> Result<(), BadSetting> {
    if ms > DURATION_MS_MAX {
        return Err(bad(key, format!("must be at most {DURATION_MS_MAX} (ten years)")));
    }
    Ok(())
}

pub(crate) fn bad(key: &str, why: impl Into<String>) -> BadSetting {
    BadSetting { key: key.to_owned(), why: why.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(json: &str, expect: &str) {
        let seen = match serde_json::from_str::<Settings>(json) {
            Err(error) => error.to_string(),
            Ok(settings) => match settings.validate() {
                Ok(()) => "fine".to_owned(),
                Err(bad) => bad.to_string(),
            },
        };
        assert!(seen.contains(expect), "{json}: {seen}");
    }

    #[test]
    fn settings_say_which_key_is_wrong() {
        check("{}", "fine");
        check(r#"{"max_activ":1}"#, "unknown field `max_activ`");
        check(r#"{"scheme":"five"}"#, "unknown scheme `five`");
        check(r#"{"max_unacked":0}"#, "`max_unacked` must be 1 to 1000000");
        check(r#"{"picker":{"aging_ms":0}}"#, "`picker.aging_ms`");
        check(r#"{"scheme":"named","lanes":{"background":{"max_active":6}}}"#, "fine");
        check(r#"{"scheme":"named","lanes":{"urgent":{"max_active":6}}}"#, "`lanes.urgent` names no lane");
        check(r#"{"default_priority":-1}"#, "`default_priority`");
        check(r#"{"order":{"lanes":[{"name":"primary","from":0},{"name":"backfill"}]}}"#, "fine");
        check(r#"{"order":{"lanes":[{"name":"a"},{"name":"b"}]}}"#, "lane `a` needs a `from`");
        check(
            r#"{"order":{"lanes":[{"name":"a","from":2},{"name":"b","from":5},{"name":"c"}]}}"#,
            "most urgent",
        );
        check(r#"{"rate_limit":{"messages":0,"per_ms":1000}}"#, "`rate_limit.messages` must be 1 to 1000000");
        check(r#"{"key_rate_limit":{"messages":1,"per_ms":0}}"#, "`key_rate_limit.per_ms` must be 1 to");
        check(r#"{"key_weights":{"k":2}}"#, "`key_weights` needs `fair_keys`");
        check(r#"{"fair_keys":true,"key_weights":{"k":0}}"#, "`key_weights.k` must be 1 to 1000");
        check(r#"{"fair_keys":true,"key_weights":{"k":1001}}"#, "`key_weights.k` must be 1 to 1000");
        for wrong in ["-1", "4294967296", r#""two""#] {
            let weights = format!(r#"{{"fair_keys":true,"key_weights":{{"k":{wrong}}}}}"#);
            check(&weights, "expected a whole number from 1 to 1000");
            let picker = format!(r#"{{"picker":{{"weighted":{{"9":{wrong}}}}}}}"#);
            check(&picker, "expected a whole number from 1 to 1000000");
        }
        for (key, expect) in [
            ("", "fine"),
            (&*"k".repeat(200), "fine"),
            (&*"k".repeat(201), "`key_weights` names the key `kkkkkkkkkkkkkkkkkkkk…`, which no message has"),
            (r"a\nb", r"`key_weights` names the key `a\nb`, which no message has"),
        ] {
            check(&format!(r#"{{"fair_keys":true,"key_weights":{{"{key}":2}}}}"#), expect);
        }
        check(r#"{"max_bytes":"10MiB","max_message_bytes":"64 kB"}"#, "fine");
        check(r#"{"max_bytes":"10Mib"}"#, "expected a number of bytes, such as 10485760 or");
        check(r#"{"max_bytes":-1}"#, "expected a number of bytes");
        check(
            r#"{"order":{"lanes":[{"name":"a","from":2},{"name":"a"}]}}"#,
            "`order.lanes[1].name` `a` is the name of two lanes: `order.lanes[0]` has it, too",
        );
        check(r#"{"order":{"lanes":[{"name":""}]}}"#, "`order.lanes[0].name` is no name of a lane");
        check(r#"{"ttl_ms":99999999999999}"#, "`ttl_ms` must be at most");
    }

    #[test]
    fn settings_read_back_as_written() {
        let settings = Settings {
            scheme: Scheme::Max(10),
            order: Order::Fifo,
            picker: PickerKind::AgingMs(30_000),
            dead_letter: DeadLetterTo::Exchange { name: "dlx".into(), routing_key: None },
            last_value: Some(LastValue::Key),
            ..Settings::default()
        };
        let json = serde_json::to_string(&settings).expect("settings are JSON");
        assert_eq!(serde_json::from_str::<Settings>(&json).expect(&json), settings);
        let sized: Settings = serde_json::from_str(r#"{"max_bytes":"10MiB"}"#).expect("a size");
        assert_eq!(sized, Settings { max_bytes: 10 << 20, ..Settings::default() });
    }

    #[test]
    fn the_first_wait_is_the_initial_one_and_the_last_is_capped() {
        let backoff = Backoff { initial_ms: 100, multiplier: 2, max_ms: 500 };
        assert_eq!([1, 2, 3, 4, 100].map(|n| backoff.wait_ms(n)), [100, 200, 400, 500, 500]);
    }
}
