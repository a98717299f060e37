//! One exchange: what it was declared as, what is bound to it, and the index by which it finds who gets a message.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::binding::{Binding, Bindings, Destination};
use super::hash;
use super::route::Envelope;
use super::ruled::FoundPolicy;
use super::settings::{ExchangeKind, ExchangeSettings};
use super::trie::Trie;
use crate::refusal::Refusal;

/// One exchange.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// What it is.
    pub settings: ExchangeSettings,
    bindings: Bindings,
    index: Index,
    pub(super) policy: FoundPolicy,
    /// How much its record and those of its bindings take, in KiB, about.
    pub(super) cost: usize,
    pub(crate) traffic: Traffic,
}

/// Messages published to an exchange since the broker started. Where a message goes is decided without changing the broker, so these
/// are atomics; whoever publishes has the broker for itself, so they are added to as plain numbers.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    published: AtomicU64,
    routed: AtomicU64,
}

impl Traffic {
    /// A message was published here, and goes to so many queues.
    pub(crate) fn count(&self, queues: usize) {
        self.published.store(self.published() + 1, Ordering::Relaxed);
        self.routed.store(self.routed() + queues as u64, Ordering::Relaxed);
    }

    pub(super) fn published(&self) -> u64 {
        self.published.load(Ordering::Relaxed)
    }

    pub(super) fn routed(&self) -> u64 {
        self.routed.load(Ordering::Relaxed)
    }
}

impl Clone for Traffic {
    fn clone(&self) -> Self {
        Self { published: self.published().into(), routed: self.routed().into() }
    }
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
    /// The policy that applies to it.
    pub policy: Option<Arc<str>>,
    /// The alternate that holds: its own, else that of the policy.
    pub alternate: Option<Arc<str>>,
    /// Messages published to it since the broker started, whatever became of them. What comes through another exchange, or as a dead
    /// letter, is not counted.
    pub published: u64,
    /// The queues that those messages were routed to, one by one.
    pub routed: u64,
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
        let cost = 1 + settings.arguments.len() / 1_024;
        let (policy, bindings) = (FoundPolicy::default(), Bindings::new());
        Self { settings, bindings, index, policy, cost, traffic: Traffic::default() }
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
            self.cost += binding.cost();
        }
        is_new
    }

    pub(super) fn remove(&mut self, binding: &Binding) -> bool {
        let was_there = self.bindings.remove(binding);
        if was_there {
            self.index.remove(binding);
            self.cost -= binding.cost();
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
