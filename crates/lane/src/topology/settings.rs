//! What an exchange is declared as.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::binding::ARGUMENTS_LEN_MAX;
use super::header::Property;
use crate::refusal::Refusal;

/// How an exchange chooses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExchangeKind {
    /// The binding's key is the routing key.
    #[default]
    Direct,
    /// Always.
    Fanout,
    /// The binding's key is a pattern of words between dots: `*` is one word, `#` any number of them.
    Topic,
    /// The binding's headers are among the message's: all of them, or one if the binding says so.
    Headers,
    /// One binding of all, always the same for the same [`HashOn`]; the binding's key is its weight, a whole number from 1.
    ConsistentHash,
}

/// By what a consistent-hash exchange shares out. What a message does not have counts as empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HashOn {
    /// The first routing key.
    #[default]
    RoutingKey,
    /// The header of this name.
    Header(String),
    /// A property.
    Property(Property),
}

/// What an exchange is declared as.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExchangeSettings {
    /// How it chooses.
    pub kind: ExchangeKind,
    /// It is there after a restart, with its bindings.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub durable: bool,
    /// It goes when the last binding to a queue or exchange is taken away.
    #[serde(default, skip_serializing_if = "is_default")]
    pub auto_delete: bool,
    /// Nobody publishes to it; what other exchanges give it goes on.
    #[serde(default, skip_serializing_if = "is_default")]
    pub internal: bool,
    /// The exchange that gets what this one has no binding for. It need not be there.
    #[serde(default, skip_serializing_if = "is_default")]
    pub alternate: Option<Arc<str>>,
    /// What comes through it waits as long as its header `x-delay` says, in ms.
    #[serde(default, skip_serializing_if = "is_default")]
    pub delayed: bool,
    /// By what it shares out, if it is a consistent-hash exchange.
    #[serde(default, skip_serializing_if = "is_default")]
    pub hash_on: HashOn,
    /// As the client gave them. Nothing here reads them.
    #[serde(skip)]
    pub arguments: Vec<u8>,
}

fn yes() -> bool {
    true
}

fn is_yes(value: &bool) -> bool {
    *value
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl ExchangeSettings {
    /// A durable exchange of this kind, and nothing else about it.
    #[must_use]
    pub fn new(kind: ExchangeKind) -> Self {
        Self { kind, durable: true, ..Self::default() }
    }

    /// Whether it can be remembered.
    ///
    /// # Errors
    /// [`Refusal::ArgumentsInvalid`], [`Refusal::NameInvalid`] for its alternate.
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        let header = if let HashOn::Header(name) = &self.hash_on { name.len() } else { 0 };
        if self.arguments.len() + header > ARGUMENTS_LEN_MAX {
            return Err(Refusal::ArgumentsInvalid);
        }
        match self.alternate.as_deref() {
            None | Some("") => Ok(()),
            Some(name) => crate::check_queue_name(name),
        }
    }

    /// The first thing that two declarations differ in. Their arguments may.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Option<&'static str> {
        let pairs = [
            ("kind", self.kind == other.kind),
            ("durable", self.durable == other.durable),
            ("auto_delete", self.auto_delete == other.auto_delete),
            ("internal", self.internal == other.internal),
            ("alternate", self.alternate == other.alternate),
            ("delayed", self.delayed == other.delayed),
            ("hash_on", self.hash_on == other.hash_on),
        ];
        pairs.into_iter().find_map(|(name, is_same)| (!is_same).then_some(name))
    }
}
