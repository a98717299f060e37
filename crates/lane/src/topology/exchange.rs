//! One exchange: what it was declared as, what is bound to it, and the index by which it finds who gets a message.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::binding::{ARGUMENTS_LEN_MAX, Binding, Bindings, Destination};
use super::hash;
use super::header::Property;
use super::route::Envelope;
use super::trie::Trie;
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
            Some(name) => crate::check_name(name),
        }
    }

    /// The first thing that two declarations differ in. Their arguments may.
    fn difference(&self, other: &Self) -> Option<&'static str> {
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

/// One exchange.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// What it is.
    pub settings: ExchangeSettings,
    bindings: Bindings,
    index: Index,
}

/// An exchange as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExchangeView {
    /// Its name.
    pub name: Arc<str>,
    /// What it is.
    pub settings: ExchangeSettings,
    /// How many bindings it has.
    pub bindings: usize,
}

/// What finds bindings without looking at all of them, where that can be.
#[derive(Clone, Debug)]
enum Index {
    ByKey(BTreeMap<String, Bindings>),
    ByPattern(Trie),
    None,
}

impl Index {
    fn of(kind: ExchangeKind) -> Self {
        match kind {
            ExchangeKind::Direct => Self::ByKey(BTreeMap::new()),
            ExchangeKind::Topic => Self::ByPattern(Trie::default()),
            ExchangeKind::Fanout | ExchangeKind::Headers | ExchangeKind::ConsistentHash => Self::None,
        }
    }

    fn insert(&mut self, binding: &Arc<Binding>) {
        match self {
            Self::ByKey(keys) => {
                keys.entry(binding.routing_key.clone()).or_default().insert(Arc::clone(binding));
            }
            Self::ByPattern(trie) => trie.insert(binding),
            Self::None => {}
        }
    }

    fn remove(&mut self, binding: &Binding) {
        match self {
            Self::ByKey(keys) => {
                let here = keys.get_mut(&binding.routing_key).expect("a binding is in the index");
                here.remove(binding);
                if here.is_empty() {
                    keys.remove(&binding.routing_key);
                }
            }
            Self::ByPattern(trie) => trie.remove(binding),
            Self::None => {}
        }
    }
}

impl Exchange {
    pub(super) fn new(settings: ExchangeSettings) -> Self {
        let index = Index::of(settings.kind);
        Self { settings, bindings: Bindings::new(), index }
    }

    /// What is bound to it, in order of where it leads.
    pub fn bindings(&self) -> impl ExactSizeIterator<Item = &Binding> {
        self.bindings.iter().map(|binding| &**binding)
    }

    pub(super) fn shared(&self) -> &Bindings {
        &self.bindings
    }

    /// Whether declaring this is declaring what it is.
    ///
    /// # Errors
    /// [`Refusal::ExchangeDiffers`].
    pub(super) fn check_same(&self, settings: &ExchangeSettings) -> Result<(), Refusal> {
        self.settings.difference(settings).map_or(Ok(()), |key| Err(Refusal::ExchangeDiffers(key)))
    }

    /// Becomes what a later record says, and keeps what is bound.
    pub(super) fn set(&mut self, settings: ExchangeSettings) {
        let bindings = std::mem::take(&mut self.bindings);
        *self = Self::new(settings);
        for binding in bindings {
            self.insert(binding);
        }
    }

    pub(super) fn insert(&mut self, binding: Arc<Binding>) -> bool {
        let is_new = self.bindings.insert(Arc::clone(&binding));
        if is_new {
            self.index.insert(&binding);
        }
        is_new
    }

    pub(super) fn remove(&mut self, binding: &Binding) -> bool {
        let was_there = self.bindings.remove(binding);
        if was_there {
            self.index.remove(binding);
        }
        was_there
    }

    /// Names each place that gets the message, some perhaps more than once. False: there is none.
    pub(super) fn choose<'a>(&'a self, letter: &Envelope<'_>, mut take: impl FnMut(&'a Destination)) -> bool {
        let mut has_any = false;
        let mut each = |binding: &'a Binding| {
            has_any = true;
            take(&binding.to);
        };
        match &self.index {
            Index::ByKey(keys) => {
                let here = letter.keys.iter().filter_map(|key| keys.get(*key)).flatten();
                here.for_each(|binding| each(binding));
            }
            Index::ByPattern(trie) => letter.keys.iter().for_each(|key| trie.find(key, &mut each)),
            Index::None => self.scan(letter, each),
        }
        has_any
    }

    fn scan<'a>(&'a self, letter: &Envelope<'_>, each: impl FnMut(&'a Binding)) {
        match self.settings.kind {
            ExchangeKind::Headers => {
                self.bindings().filter(|binding| binding.takes_headers(letter.marks)).for_each(each);
            }
            ExchangeKind::ConsistentHash => {
                let key = hash::key(&self.settings.hash_on, letter);
                hash::choose(key, self.bindings()).into_iter().for_each(each);
            }
            _ => self.bindings().for_each(each),
        }
    }
}
