//! What a policy says: the keys of RabbitMQ, and `max-priority`.
//!
//! Keys that tune how RabbitMQ stores or copies a queue mean nothing here. They are kept and shown, so that policies can be moved over
//! as they are; any other key is an error, since whoever wrote it counts on it.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{self, MapAccess};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::PolicyKind;
use crate::settings::{Backoff, BadSetting, DURATION_MS_MAX, Overflow};

/// Longest definition, bytes of keys and values.
pub const DEFINITION_BYTES_MAX: usize = 4_096;
/// Longest routing key, bytes.
const ROUTING_KEY_LEN_MAX: usize = 255;
/// Deepest list in a value that means nothing here.
const DEPTH_MAX: usize = 4;

/// Keys that are kept and have no effect: here is nothing that they could tune.
const KEPT: [&str; 21] = [
    "dead-letter-strategy",
    "federation-upstream",
    "federation-upstream-set",
    "ha-mode",
    "ha-params",
    "ha-promote-on-failure",
    "ha-promote-on-shutdown",
    "ha-sync-batch-size",
    "ha-sync-mode",
    "initial-cluster-size",
    "max-age",
    "max-in-memory-bytes",
    "max-in-memory-length",
    "queue-leader-locator",
    "queue-master-locator",
    "queue-mode",
    "queue-type",
    "queue-version",
    "stream-filter-size-bytes",
    "stream-max-segment-size-bytes",
    "target-group-size",
];

/// What a policy says. A key that is not set says nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Definition {
    /// `max-length`: most messages waiting, 1 or more.
    pub max_length: Option<u64>,
    /// `max-length-bytes`: most bytes waiting, 1 or more.
    pub max_length_bytes: Option<u64>,
    /// `overflow`: `drop-head`, `reject-publish` or `reject-publish-dlx`.
    pub overflow: Option<Overflow>,
    /// `message-ttl`: time to live, ms; 0: a message that no consumer takes at once is over.
    pub message_ttl: Option<u64>,
    /// `expires`: the queue is deleted after so long without use, ms, 1 or more.
    pub expires: Option<u64>,
    /// `dead-letter-exchange`: where dead letters go.
    pub dead_letter_exchange: Option<String>,
    /// `dead-letter-routing-key`: by which key they go there.
    pub dead_letter_routing_key: Option<String>,
    /// `delivery-limit`: how often a message may come back; −1: for ever.
    pub delivery_limit: Option<i64>,
    /// `overtake-backoff`: how long a message waits after a delivery that failed, of queues without a backoff of their own. Ours.
    pub backoff: Option<Backoff>,
    /// `consumer-timeout`: how long a consumer may hold a message, ms; 0: no end.
    pub consumer_timeout: Option<u64>,
    /// `alternate-exchange`: of exchanges, which one gets what this one has no binding for.
    pub alternate_exchange: Option<String>,
    /// `max-priority`: priorities go from 0 to this, 1 to 255. RabbitMQ has no such policy.
    pub max_priority: Option<u8>,
    /// What means nothing here.
    pub kept: BTreeMap<String, PolicyValue>,
}

/// A value of a definition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum PolicyValue {
    /// True or false.
    Bool(bool),
    /// A whole number.
    Number(i64),
    /// Text.
    Text(String),
    /// A list of them.
    List(Vec<PolicyValue>),
    /// Values by name.
    Map(BTreeMap<String, PolicyValue>),
}

impl PolicyValue {
    fn cost(&self) -> usize {
        match self {
            Self::Bool(_) => 5,
            Self::Number(_) => 20,
            Self::Text(text) => text.len() + 2,
            Self::List(list) => 2 + list.iter().map(|value| value.cost() + 1).sum::<usize>(),
            Self::Map(map) => 2 + map.iter().map(|(key, value)| key.len() + value.cost() + 4).sum::<usize>(),
        }
    }

    fn has_control(&self) -> bool {
        match self {
            Self::Text(text) => text.chars().any(char::is_control),
            Self::List(list) => list.iter().any(Self::has_control),
            Self::Map(map) => {
                map.iter().any(|(key, value)| key.chars().any(char::is_control) || value.has_control())
            }
            Self::Bool(_) | Self::Number(_) => false,
        }
    }

    fn depth(&self) -> usize {
        match self {
            Self::List(list) => 1 + list.iter().map(Self::depth).max().unwrap_or(0),
            Self::Map(map) => 1 + map.values().map(Self::depth).max().unwrap_or(0),
            Self::Bool(_) | Self::Number(_) | Self::Text(_) => 0,
        }
    }
}

impl Definition {
    /// Reads a definition.
    ///
    /// # Errors
    /// The first key that is unknown, or has a value of another type.
    pub fn from_values(values: impl IntoIterator<Item = (String, PolicyValue)>) -> Result<Self, BadSetting> {
        let mut definition = Self::default();
        for (key, value) in values {
            definition.set(key, value)?;
        }
        Ok(definition)
    }

    fn set(&mut self, key: String, value: PolicyValue) -> Result<(), BadSetting> {
        match key.as_str() {
            "max-length" => self.max_length = Some(whole(&key, value)?),
            "max-length-bytes" => self.max_length_bytes = Some(whole(&key, value)?),
            "overflow" => self.overflow = Some(overflow(&key, value)?),
            "message-ttl" => self.message_ttl = Some(whole(&key, value)?),
            "expires" => self.expires = Some(whole(&key, value)?),
            "dead-letter-exchange" => self.dead_letter_exchange = Some(text(&key, value)?),
            "dead-letter-routing-key" => self.dead_letter_routing_key = Some(text(&key, value)?),
            "delivery-limit" => self.delivery_limit = Some(number(&key, value)?),
            "overtake-backoff" => self.backoff = Some(backoff(&key, value)?),
            "consumer-timeout" => self.consumer_timeout = Some(whole(&key, value)?),
            "alternate-exchange" => self.alternate_exchange = Some(text(&key, value)?),
            "max-priority" => {
                let most = u8::try_from(number(&key, value)?);
                self.max_priority = Some(most.map_err(|_| bad(&key, MAX_PRIORITY))?);
            }
            _ if KEPT.contains(&key.as_str()) => drop(self.kept.insert(key, value)),
            _ => return Err(bad(&key, "is no key of a policy")),
        }
        Ok(())
    }

    /// Its keys and values, as it was written.
    #[must_use]
    pub fn values(&self) -> Vec<(&str, PolicyValue)> {
        let number = |value: Option<u64>| value.map(|value| PolicyValue::Number(value as i64));
        let text = |value: &Option<String>| value.clone().map(PolicyValue::Text);
        let known = [
            ("max-length", number(self.max_length)),
            ("max-length-bytes", number(self.max_length_bytes)),
            ("overflow", self.overflow.map(|overflow| PolicyValue::Text(word_of(overflow).to_owned()))),
            ("message-ttl", number(self.message_ttl)),
            ("expires", number(self.expires)),
            ("dead-letter-exchange", text(&self.dead_letter_exchange)),
            ("dead-letter-routing-key", text(&self.dead_letter_routing_key)),
            ("delivery-limit", self.delivery_limit.map(PolicyValue::Number)),
            ("overtake-backoff", self.backoff.map(backoff_value)),
            ("consumer-timeout", number(self.consumer_timeout)),
            ("alternate-exchange", text(&self.alternate_exchange)),
            ("max-priority", number(self.max_priority.map(u64::from))),
        ];
        let known = known.into_iter().filter_map(|(key, value)| Some((key, value?)));
        known.chain(self.kept.iter().map(|(key, value)| (key.as_str(), value.clone()))).collect()
    }

    /// Bytes of its keys and values, about.
    pub(super) fn cost(&self) -> usize {
        self.values().iter().map(|(key, value)| key.len() + 4 + value.cost()).sum()
    }

    /// Checks what the types cannot.
    pub(super) fn check(&self, kind: PolicyKind) -> Result<(), BadSetting> {
        let values = self.values();
        if values.is_empty() {
            return Err(bad("definition", "must have a key"));
        }
        if self.cost() > DEFINITION_BYTES_MAX {
            return Err(bad("definition", format!("must have at most {DEFINITION_BYTES_MAX} bytes")));
        }
        if let Some((key, _)) = values.iter().find(|(_, value)| value.has_control()) {
            return Err(bad(key, "must have no control characters"));
        }
        if let Some((key, _)) = values.iter().find(|(_, value)| value.depth() > DEPTH_MAX) {
            return Err(bad(key, "is too deep"));
        }
        if let Some(key) = self.kept.keys().find(|key| !KEPT.contains(&key.as_str())) {
            return Err(bad(key, "is no key of a policy"));
        }
        if kind == PolicyKind::Operator
            && let Some((key, _)) = values.iter().find(|(key, _)| !is_of_operators(key))
        {
            return Err(bad(key, "is no key of an operator policy"));
        }
        self.check_numbers()?;
        self.check_texts()
    }

    fn check_numbers(&self) -> Result<(), BadSetting> {
        let most = i64::MAX as u64;
        let ranges = [
            ("max-length", self.max_length, 1..=most),
            ("max-length-bytes", self.max_length_bytes, 1..=most),
            ("message-ttl", self.message_ttl, 0..=DURATION_MS_MAX),
            ("expires", self.expires, 1..=DURATION_MS_MAX),
            ("consumer-timeout", self.consumer_timeout, 0..=DURATION_MS_MAX),
        ];
        for (key, value, range) in ranges {
            if value.is_some_and(|value| !range.contains(&value)) {
                return Err(bad(key, format!("must be {} to {}", range.start(), range.end())));
            }
        }
        if self.delivery_limit.is_some_and(|limit| !(-1..i64::from(u32::MAX)).contains(&limit)) {
            return Err(bad("delivery-limit", format!("must be -1 to {}", u32::MAX - 1)));
        }
        if let Some(bad) = self.backoff.and_then(|backoff| backoff.validate("overtake-backoff").err()) {
            return Err(bad);
        }
        if self.max_priority == Some(0) {
            return Err(bad("max-priority", MAX_PRIORITY));
        }
        Ok(())
    }

    fn check_texts(&self) -> Result<(), BadSetting> {
        let exchanges = [
            ("dead-letter-exchange", &self.dead_letter_exchange),
            ("alternate-exchange", &self.alternate_exchange),
        ];
        for (key, name) in exchanges {
            if name.as_ref().is_some_and(|name| !name.is_empty() && crate::check_queue_name(name).is_err()) {
                return Err(bad(key, "must be the name of an exchange"));
            }
        }
        let routing_key = self.dead_letter_routing_key.as_ref();
        if routing_key.is_some_and(|key| key.len() > ROUTING_KEY_LEN_MAX) {
            let why = format!("must have at most {ROUTING_KEY_LEN_MAX} bytes");
            return Err(bad("dead-letter-routing-key", why));
        }
        Ok(())
    }
}

/// Limits, which only bound what others ask for; and what means nothing.
fn is_of_operators(key: &str) -> bool {
    const LIMITS: [&str; 6] =
        ["max-length", "max-length-bytes", "overflow", "message-ttl", "expires", "delivery-limit"];
    LIMITS.contains(&key) || KEPT.contains(&key)
}

const OVERFLOWS: [(&str, Overflow); 3] = [
    ("drop-head", Overflow::Evict),
    ("reject-publish", Overflow::Reject),
    ("reject-publish-dlx", Overflow::RejectDeadLetter),
];
const MAX_PRIORITY: &str = "must be 1 to 255";
const BACKOFF: &str = "must be the first wait in ms, or a map with initial_ms, multiplier and max_ms";

fn word_of(overflow: Overflow) -> &'static str {
    let known = OVERFLOWS.iter().find(|(_, known)| *known == overflow);
    known.expect("every overflow has a word").0
}

fn overflow(key: &str, value: PolicyValue) -> Result<Overflow, BadSetting> {
    let word = text(key, value)?;
    let known = OVERFLOWS.iter().find(|(known, _)| *known == word).map(|(_, overflow)| *overflow);
    known.ok_or_else(|| bad(key, "must be drop-head, reject-publish or reject-publish-dlx"))
}

/// A backoff: its first wait in ms, or a map with the fields of [`Backoff`], of which missing ones have their defaults.
fn backoff(key: &str, value: PolicyValue) -> Result<Backoff, BadSetting> {
    let fields = match value {
        PolicyValue::Map(fields) => fields,
        PolicyValue::Number(_) => [("initial_ms".to_owned(), value)].into(),
        _ => return Err(bad(key, BACKOFF)),
    };
    let mut backoff = Backoff::default();
    for (field, value) in fields {
        let name = format!("{key}.{field}");
        match field.as_str() {
            "initial_ms" => backoff.initial_ms = whole(&name, value)?,
            "max_ms" => backoff.max_ms = whole(&name, value)?,
            "multiplier" => backoff.multiplier = whole(&name, value)?.try_into().unwrap_or(u32::MAX),
            _ => return Err(bad(&name, "is no field of a backoff: initial_ms, multiplier or max_ms")),
        }
    }
    Ok(backoff)
}

fn backoff_value(Backoff { initial_ms, multiplier, max_ms }: Backoff) -> PolicyValue {
    let fields = [("initial_ms", initial_ms), ("multiplier", multiplier.into()), ("max_ms", max_ms)];
    PolicyValue::Map(
        fields.map(|(field, value)| (field.to_owned(), PolicyValue::Number(value as i64))).into(),
    )
}

fn number(key: &str, value: PolicyValue) -> Result<i64, BadSetting> {
    if let PolicyValue::Number(number) = value { Ok(number) } else { Err(bad(key, "must be a whole number")) }
}

fn whole(key: &str, value: PolicyValue) -> Result<u64, BadSetting> {
    u64::try_from(number(key, value)?).map_err(|_| bad(key, "must not be negative"))
}

fn text(key: &str, value: PolicyValue) -> Result<String, BadSetting> {
    if let PolicyValue::Text(text) = value { Ok(text) } else { Err(bad(key, "must be text")) }
}

fn bad(key: &str, why: impl Into<String>) -> BadSetting {
    BadSetting { key: key.to_owned(), why: why.into() }
}

impl Serialize for Definition {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let values = self.values();
        let mut map = serializer.serialize_map(Some(values.len()))?;
        for (key, value) in values {
            map.serialize_entry(key, &value)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Definition {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Keys;

        impl<'de> de::Visitor<'de> for Keys {
            type Value = Definition;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the keys of a policy")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Definition, A::Error> {
                let mut definition = Definition::default();
                while let Some(key) = map.next_key::<String>()? {
                    let value = map.next_value().map_err(|_| {
                        de::Error::custom(bad(
                            &key,
                            "must be a whole number, text, true, false, a list or a map",
                        ))
                    })?;
                    definition.set(key, value).map_err(de::Error::custom)?;
                }
                Ok(definition)
            }
        }

        deserializer.deserialize_map(Keys)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_as(kind: PolicyKind, json: &str, expect: &str) {
        let seen = match serde_json::from_str::<Definition>(json) {
            Err(error) => error.to_string(),
            Ok(definition) => match definition.check(kind) {
                Ok(()) => serde_json::to_string(&definition).expect("a definition is JSON"),
                Err(bad) => bad.to_string(),
            },
        };
        assert!(seen.starts_with(expect), "{json}: {seen}");
    }

    fn check(json: &str, expect: &str) {
        check_as(PolicyKind::User, json, expect);
    }

    #[test]
    fn a_definition_reads_back_as_it_was_written() {
        for json in [
            r#"{"max-length":9,"max-length-bytes":1,"overflow":"reject-publish-dlx","message-ttl":0}"#,
            r#"{"expires":1,"dead-letter-exchange":"","dead-letter-routing-key":"k","delivery-limit":-1}"#,
            r#"{"consumer-timeout":0,"alternate-exchange":"x","max-priority":255}"#,
            r#"{"overtake-backoff":{"initial_ms":5,"max_ms":9,"multiplier":3}}"#,
            r#"{"ha-mode":"nodes","ha-params":["a","b"],"ha-sync-batch-size":1,"queue-mode":"lazy"}"#,
        ] {
            check(json, json);
        }
    }

    #[test]
    fn a_definition_says_which_key_is_wrong() {
        check("{}", "`definition` must have a key");
        check(r#"{"max-lenght":1}"#, "`max-lenght` is no key of a policy");
        check(r#"{"max-length":"9"}"#, "`max-length` must be a whole number");
        check(r#"{"max-length":1.5}"#, "`max-length` must be a whole number, text");
        check(r#"{"max-length":-1}"#, "`max-length` must not be negative");
        check(r#"{"max-length":0}"#, "`max-length` must be 1 to");
        check(r#"{"overflow":"drop"}"#, "`overflow` must be drop-head");
        check(r#"{"expires":0}"#, "`expires` must be 1 to");
        check(r#"{"message-ttl":999999999999}"#, "`message-ttl` must be 0 to");
        check(r#"{"delivery-limit":-2}"#, "`delivery-limit` must be -1 to");
        check(
            r#"{"overtake-backoff":500}"#,
            r#"{"overtake-backoff":{"initial_ms":500,"max_ms":3600000,"multiplier":2}}"#,
        );
        check(r#"{"overtake-backoff":"5s"}"#, "`overtake-backoff` must be the first wait in ms, or a map");
        check(r#"{"overtake-backoff":-1}"#, "`overtake-backoff.initial_ms` must not be negative");
        check(r#"{"overtake-backoff":{"multiplier":0}}"#, "`overtake-backoff.multiplier` must be 1 to 1000");
        check(r#"{"overtake-backoff":{"max_ms":999999999999}}"#, "`overtake-backoff.max_ms` must be at most");
        check(r#"{"overtake-backoff":{"initial":1}}"#, "`overtake-backoff.initial` is no field of a backoff");
        check(r#"{"max-priority":0}"#, "`max-priority` must be 1 to 255");
        check(r#"{"max-priority":256}"#, "`max-priority` must be 1 to 255");
        check(r#"{"dead-letter-exchange":"a\nb"}"#, "`dead-letter-exchange` must have no control");
        check(
            &format!(r#"{{"dead-letter-exchange":"{}"}}"#, "x".repeat(256)),
            "`dead-letter-exchange` must be the name",
        );
        check(r#"{"ha-params":[[[[[1]]]]]}"#, "`ha-params` is too deep");
        let long = format!(r#"{{"ha-mode":"{}"}}"#, "x".repeat(DEFINITION_BYTES_MAX));
        check(&long, "`definition` must have at most 4096 bytes");
        let long = format!(r#"{{"dead-letter-routing-key":"{}"}}"#, "x".repeat(256));
        check(&long, "`dead-letter-routing-key` must have at most 255 bytes");
    }

    #[test]
    fn operators_only_limit() {
        let limits = r#"{"max-length":9,"max-length-bytes":9,"overflow":"drop-head","message-ttl":9,"expires":9,"delivery-limit":9,"target-group-size":3}"#;
        check_as(PolicyKind::Operator, limits, limits);
        for key in [r#""max-priority":9"#, r#""dead-letter-exchange":"x""#, r#""alternate-exchange":"x""#] {
            let name = key.split('"').nth(1).expect("a key");
            let why = format!("`{name}` is no key of an operator policy");
            check_as(PolicyKind::Operator, &format!("{{{key}}}"), &why);
        }
    }
}
