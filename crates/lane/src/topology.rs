//! Exchanges and bindings: which queues get a copy.
//!
//! Kinds and matching as in AMQP 0-9-1, section 3.1.3, and RabbitMQ's headers exchange. The exchange of the empty name
//! is every queue by its name.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::refusal::Refusal;

/// Headers of a message, by name.
pub type Headers = BTreeMap<String, HeaderValue>;

/// What a header holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum HeaderValue {
    /// true or false.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// Text.
    Text(String),
}

/// How an exchange chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExchangeKind {
    /// The binding's key is the routing key.
    Direct,
    /// Always.
    Fanout,
    /// The binding's key is a pattern of words between dots: `*` is one word, `#` any number of them.
    Topic,
    /// The binding's headers are among the message's: all of them, or one if the binding says `any`.
    Headers,
}

/// Ties a queue to an exchange.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Binding {
    /// The exchange.
    pub exchange: Arc<str>,
    /// The queue.
    pub queue: Arc<str>,
    /// The routing key or pattern.
    #[serde(default)]
    pub routing_key: String,
    /// For a headers exchange: names and values that must be there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<(String, String)>,
    /// For a headers exchange: one of them is enough.
    #[serde(default)]
    pub any: bool,
}

/// All exchanges of a broker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    exchanges: BTreeMap<Arc<str>, Exchange>,
}

/// One exchange.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// How it chooses.
    pub kind: ExchangeKind,
    /// What is bound to it.
    pub bindings: BTreeSet<Binding>,
}

const PREDECLARED: [(&str, ExchangeKind); 5] = [
    ("amq.direct", ExchangeKind::Direct),
    ("amq.fanout", ExchangeKind::Fanout),
    ("amq.headers", ExchangeKind::Headers),
    ("amq.match", ExchangeKind::Headers),
    ("amq.topic", ExchangeKind::Topic),
];

impl Default for Topology {
    fn default() -> Self {
        let exchange = |kind| Exchange { kind, bindings: BTreeSet::new() };
        Self {
            exchanges: PREDECLARED.iter().map(|(name, kind)| (Arc::from(*name), exchange(*kind))).collect(),
        }
    }
}

impl Topology {
    /// Every exchange by name, without the one of the empty name.
    pub fn exchanges(&self) -> impl Iterator<Item = (&Arc<str>, &Exchange)> {
        self.exchanges.iter()
    }

    /// Exchanges and bindings, how many.
    pub(crate) fn len(&self) -> usize {
        self.exchanges.values().map(|exchange| 1 + exchange.bindings.len()).sum()
    }

    /// The exchange of that name.
    #[must_use]
    pub fn exchange(&self, name: &str) -> Option<&Exchange> {
        self.exchanges.get(name)
    }

    /// Whether declaring would make a new exchange.
    ///
    /// # Errors
    /// [`Refusal::ExchangeReserved`], [`Refusal::ExchangeDiffers`], [`Refusal::NameInvalid`].
    pub(crate) fn check_declare(&self, name: &str, kind: ExchangeKind) -> Result<bool, Refusal> {
        match self.exchanges.get(name) {
            Some(there) if there.kind == kind => Ok(false),
            Some(_) => Err(Refusal::ExchangeDiffers),
            None if is_reserved(name) => Err(Refusal::ExchangeReserved),
            None => crate::check_name(name).map(|()| true),
        }
    }

    pub(crate) fn store(&mut self, name: Arc<str>, kind: ExchangeKind) {
        self.exchanges.entry(name).or_insert_with(|| Exchange { kind, bindings: BTreeSet::new() });
    }

    pub(crate) fn check_delete(&self, name: &str) -> Result<(), Refusal> {
        if is_reserved(name) {
            return Err(Refusal::ExchangeReserved);
        }
        self.exchanges.contains_key(name).then_some(()).ok_or(Refusal::NoSuchExchange)
    }

    pub(crate) fn delete(&mut self, name: &str) {
        self.exchanges.remove(name);
    }

    pub(crate) fn bind(&mut self, binding: Binding) -> bool {
        self.exchanges.get_mut(&binding.exchange).is_some_and(|exchange| exchange.bindings.insert(binding))
    }

    pub(crate) fn unbind(&mut self, binding: &Binding) -> bool {
        self.exchanges.get_mut(&binding.exchange).is_some_and(|exchange| exchange.bindings.remove(binding))
    }

    pub(crate) fn forget_queue(&mut self, queue: &str) {
        for exchange in self.exchanges.values_mut() {
            exchange.bindings.retain(|binding| &*binding.queue != queue);
        }
    }

    /// The queues that get a copy, each once, by name.
    ///
    /// # Errors
    /// [`Refusal::NoSuchExchange`].
    pub fn route(
        &self,
        exchange: &str,
        routing_key: &str,
        headers: &Headers,
    ) -> Result<BTreeSet<Arc<str>>, Refusal> {
        if exchange.is_empty() {
            return Ok(BTreeSet::from([Arc::from(routing_key)]));
        }
        let exchange = self.exchanges.get(exchange).ok_or(Refusal::NoSuchExchange)?;
        Ok(exchange
            .bindings
            .iter()
            .filter(|binding| matches(exchange.kind, binding, routing_key, headers))
            .map(|binding| Arc::clone(&binding.queue))
            .collect())
    }
}

fn is_reserved(name: &str) -> bool {
    name.is_empty() || name.starts_with("amq.")
}

fn matches(kind: ExchangeKind, binding: &Binding, routing_key: &str, headers: &Headers) -> bool {
    match kind {
        ExchangeKind::Direct => binding.routing_key == routing_key,
        ExchangeKind::Fanout => true,
        ExchangeKind::Topic => topic_matches(&binding.routing_key, routing_key),
        ExchangeKind::Headers => headers_match(binding, headers),
    }
}

/// Whether a topic pattern takes a routing key: words between dots, `*` one word, `#` none or more.
///
/// Walks both once and goes back only to the last `#`, so a hostile pattern costs words × words at most.
#[must_use]
pub fn topic_matches(pattern: &str, routing_key: &str) -> bool {
    let pattern: Vec<&str> = words(pattern).collect();
    let key: Vec<&str> = words(routing_key).collect();
    let (mut p, mut k) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    while k < key.len() {
        match pattern.get(p) {
            Some(&"#") => {
                retry = Some((p, k));
                p += 1;
            }
            Some(&word) if word == "*" || word == key[k] => {
                p += 1;
                k += 1;
            }
            _ => match retry {
                Some((hash, taken)) => {
                    retry = Some((hash, taken + 1));
                    (p, k) = (hash + 1, taken + 1);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|word| *word == "#")
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split('.').take(if text.is_empty() { 0 } else { usize::MAX })
}

fn headers_match(binding: &Binding, headers: &Headers) -> bool {
    let has = |(name, value): &(String, String)| {
        headers.get(name).is_some_and(|header| match header {
            HeaderValue::Text(text) => text == value,
            HeaderValue::Int(number) => value.parse() == Ok(*number),
            HeaderValue::Bool(bool) => value.parse() == Ok(*bool),
        })
    };
    if binding.any { binding.headers.iter().any(has) } else { binding.headers.iter().all(has) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_topic_pattern_takes_words() {
        for (pattern, key, expect) in [
            ("a.b", "a.b", true),
            ("a.*", "a.b", true),
            ("a.*", "a", false),
            ("a.*", "a.b.c", false),
            ("a.#", "a", true),
            ("a.#", "a.b.c", true),
            ("#", "", true),
            ("#", "a.b", true),
            ("*", "", false),
            ("", "", true),
            ("#.b", "a.b.b", true),
            ("#.b.#.c", "b.x.b.c", true),
            ("#.b.#.c", "b.x.b.d", false),
            ("*.#.*", "a", false),
            ("*.#.*", "a.b", true),
        ] {
            assert_eq!(topic_matches(pattern, key), expect, "{pattern} {key}");
        }
    }

    #[test]
    fn a_message_that_matches_two_bindings_of_one_queue_is_there_once() {
        let mut topology = Topology::default();
        for key in ["a.*", "#"] {
            topology.bind(Binding {
                exchange: "amq.topic".into(),
                queue: "q".into(),
                routing_key: key.into(),
                headers: vec![],
                any: false,
            });
        }
        let queues = topology.route("amq.topic", "a.b", &Headers::new()).expect("the exchange is there");
        assert_eq!(queues.into_iter().collect::<Vec<_>>(), [Arc::from("q")]);
    }

    #[test]
    fn headers_match_all_or_any() {
        let headers: Headers =
            [("a".to_owned(), HeaderValue::Text("1".into())), ("n".to_owned(), HeaderValue::Int(2))].into();
        let check = |pairs: &[(&str, &str)], any, expect| {
            let binding = Binding {
                exchange: "x".into(),
                queue: "q".into(),
                routing_key: String::new(),
                headers: pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect(),
                any,
            };
            assert_eq!(headers_match(&binding, &headers), expect, "{pairs:?} {any}");
        };
        check(&[("a", "1"), ("n", "2")], false, true);
        check(&[("a", "1"), ("n", "3")], false, false);
        check(&[("a", "1"), ("n", "3")], true, true);
        check(&[], false, true);
        check(&[], true, false);
    }
}
