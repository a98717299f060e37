//! Exchanges and bindings: which queues get a copy.
//!
//! Kinds and matching as in AMQP 0-9-1, section 3.1.3, and RabbitMQ's extensions: bindings between exchanges, alternates,
//! headers, consistent hashing, delayed exchanges. The exchange of the empty name is every queue by its name.

mod binding;
mod exchange;
mod hash;
mod header;
mod route;
mod ruled;
mod settings;
mod trie;

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

pub use binding::{ARGUMENTS_LEN_MAX, Binding, Destination, HeadersMatch};
pub(crate) use exchange::Traffic;
pub use exchange::{Exchange, ExchangeView};
pub(crate) use hash::hash_of;
pub use header::{HEADER_DEPTH_MAX, HeaderValue, Headers, Marks, Property};
pub use route::{Envelope, Routed};
pub use settings::{ExchangeKind, ExchangeSettings, HashOn};
pub use trie::topic_matches;

use self::binding::Bindings;
use self::ruled::ExchangePolicies;
use crate::fact::Fact;
use crate::ids::VhostId;
use crate::policy::Policies;
use crate::refusal::Refusal;

/// All exchanges of a virtual host.
#[derive(Clone, Debug)]
pub struct Topology {
    exchanges: BTreeMap<Arc<str>, Exchange>,
    /// Every binding once more, by where it leads.
    into: BTreeMap<Destination, Bindings>,
    policies: ExchangePolicies,
    /// What was published to the exchange of the empty name.
    pub(crate) nameless: Traffic,
}

/// Those whose last binding may have gone.
pub(crate) type Losers = BTreeSet<Arc<str>>;

const PREDECLARED: [(&str, ExchangeKind, bool); 6] = [
    ("amq.direct", ExchangeKind::Direct, false),
    ("amq.fanout", ExchangeKind::Fanout, false),
    ("amq.headers", ExchangeKind::Headers, false),
    ("amq.match", ExchangeKind::Headers, false),
    ("amq.rabbitmq.trace", ExchangeKind::Topic, true),
    ("amq.topic", ExchangeKind::Topic, false),
];

impl Default for Topology {
    fn default() -> Self {
        let exchange =
            |kind, internal| Exchange::new(ExchangeSettings { internal, ..ExchangeSettings::new(kind) });
        let predeclared =
            PREDECLARED.iter().map(|(name, kind, internal)| (Arc::from(*name), exchange(*kind, *internal)));
        Self {
            exchanges: predeclared.collect(),
            into: BTreeMap::new(),
            policies: ExchangePolicies::default(),
            nameless: Traffic::default(),
        }
    }
}

impl Topology {
    // ---- seeing ----

    /// Every exchange by name, without the one of the empty name.
    pub fn exchanges(&self) -> impl Iterator<Item = (&Arc<str>, &Exchange)> {
        self.exchanges.iter()
    }

    /// The exchange of that name.
    #[must_use]
    pub fn exchange(&self, name: &str) -> Option<&Exchange> {
        self.exchanges.get(name)
    }

    /// Every exchange as it is now, by name.
    pub fn views(&self) -> impl Iterator<Item = ExchangeView> {
        self.exchanges.iter().map(|(name, exchange)| self.view_of(name, exchange))
    }

    /// One exchange as it is now, also the one of the empty name.
    ///
    /// # Errors
    /// [`Refusal::NoSuchExchange`].
    pub fn view(&self, name: &str) -> Result<ExchangeView, Refusal> {
        if name.is_empty() {
            return Ok(ExchangeView {
                name: Arc::default(),
                settings: ExchangeSettings::new(ExchangeKind::Direct),
                bindings: 0,
                policy: None,
                alternate: None,
                published: self.nameless.published(),
                routed: self.nameless.routed(),
            });
        }
        let there = self.exchanges.get_key_value(name).ok_or(Refusal::NoSuchExchange)?;
        Ok(self.view_of(there.0, there.1))
    }

    fn view_of(&self, name: &Arc<str>, exchange: &Exchange) -> ExchangeView {
        let policy = self.policies.of(name, &exchange.policy);
        ExchangeView {
            name: Arc::clone(name),
            settings: exchange.settings.clone(),
            bindings: exchange.shared().len(),
            policy: policy.map(|policy| Arc::clone(&policy.name)),
            alternate: self.alternate(name, exchange).cloned(),
            published: exchange.traffic.published(),
            routed: exchange.traffic.routed(),
        }
    }

    /// The exchange that gets what this one has no binding for: its own, else that of a policy.
    pub fn alternate<'a>(&'a self, name: &str, exchange: &'a Exchange) -> Option<&'a Arc<str>> {
        let ruled = || self.policies.of(name, &exchange.policy)?.alternate.as_ref();
        exchange.settings.alternate.as_ref().or_else(ruled)
    }

    /// The bindings that lead to a queue or an exchange.
    pub fn bindings_to(&self, to: &Destination) -> impl Iterator<Item = &Binding> {
        self.into.get(to).into_iter().flatten().map(|binding| &**binding)
    }

    /// How much the records of exchanges and bindings take, in KiB, about. Those of the predeclared ones are never written.
    pub(crate) fn cost(&self) -> usize {
        self.exchanges.values().map(|exchange| exchange.cost).sum::<usize>() - PREDECLARED.len()
    }

    /// Whether it is as it was when it was made.
    pub(crate) fn is_as_predeclared(&self) -> bool {
        self.exchanges.len() == PREDECLARED.len() && self.into.is_empty()
    }

    /// The facts that make the exchanges after this name, at most so many; and the last of them, where there may be more.
    pub(crate) fn exchange_facts(
        &self,
        vhost: VhostId,
        after: Option<&str>,
        most: usize,
    ) -> (Vec<Fact>, Option<Arc<str>>) {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let there = self.exchanges.range::<str, _>((from, Bound::Unbounded));
        let made = there.filter(|(name, _)| !is_reserved(name)).take(most);
        let made: Vec<_> = made.collect();
        let last = made.last().filter(|_| made.len() == most).map(|(name, _)| Arc::clone(name));
        let stored = made.into_iter().map(|(name, exchange)| Fact::ExchangeStored {
            vhost,
            name: Arc::clone(name),
            settings: Box::new(exchange.settings.clone()),
        });
        (stored.collect(), last)
    }

    /// All bindings by exchange, those after this one.
    pub(crate) fn bindings_after(&self, last: Option<&Binding>) -> impl Iterator<Item = &Arc<Binding>> {
        let from = last.map_or(Bound::Unbounded, |last| Bound::Included(&*last.exchange));
        let there = self.exchanges.range::<str, _>((from, Bound::Unbounded));
        let after = last.map_or(Bound::Unbounded, Bound::Excluded);
        there.flat_map(move |(_, exchange)| exchange.shared().range::<Binding, _>((after, Bound::Unbounded)))
    }

    // ---- exchanges ----

    /// Whether declaring would make a new exchange.
    ///
    /// # Errors
    /// [`Refusal::ExchangeReserved`], [`Refusal::ExchangeDiffers`], [`Refusal::NameInvalid`], [`Refusal::ArgumentsInvalid`].
    pub(crate) fn check_declare(&self, name: &str, settings: &ExchangeSettings) -> Result<bool, Refusal> {
        match self.exchanges.get(name) {
            Some(there) => there.check_same(settings).map(|()| false),
            None if is_reserved(name) => Err(Refusal::ExchangeReserved),
            None => crate::check_queue_name(name).and_then(|()| settings.check()).map(|()| true),
        }
    }

    /// An exchange is there, and is so.
    pub(crate) fn store(&mut self, name: Arc<str>, settings: ExchangeSettings) {
        match self.exchanges.entry(name) {
            Entry::Occupied(there) if there.get().settings == settings => {}
            Entry::Occupied(mut there) => there.get_mut().set(settings),
            Entry::Vacant(free) => {
                free.insert(Exchange::new(settings));
            }
        }
    }

    /// Every exchange does what policies say now.
    pub(crate) fn rule(&mut self, policies: &Policies) {
        self.policies.set(policies);
    }

    /// Whether an exchange may be deleted.
    ///
    /// # Errors
    /// [`Refusal::ExchangeReserved`], [`Refusal::NoSuchExchange`], [`Refusal::ExchangeInUse`].
    pub(crate) fn check_delete(&self, name: &str, if_unused: bool) -> Result<(), Refusal> {
        if is_reserved(name) {
            return Err(Refusal::ExchangeReserved);
        }
        let exchange = self.exchanges.get(name).ok_or(Refusal::NoSuchExchange)?;
        let is_used = !exchange.shared().is_empty();
        if if_unused && is_used { Err(Refusal::ExchangeInUse) } else { Ok(()) }
    }

    /// Deletes an exchange with the bindings of it and to it.
    pub(crate) fn delete(&mut self, name: &str) -> Losers {
        if let Some(exchange) = self.exchanges.remove(name) {
            for binding in exchange.shared() {
                self.leads_no_more(binding);
            }
        }
        self.forget(&Destination::Exchange(name.into()))
    }

    /// Whether an exchange that lost a binding goes with it.
    pub(crate) fn goes(&self, name: &str) -> bool {
        let exchange = self.exchanges.get(name);
        exchange.is_some_and(|exchange| exchange.settings.auto_delete && exchange.shared().is_empty())
    }

    /// Those that a restart does not leave.
    pub(crate) fn transient(&self) -> impl Iterator<Item = &Arc<str>> {
        let transient = |(name, exchange): (_, &Exchange)| (!exchange.settings.durable).then_some(name);
        self.exchanges.iter().filter_map(transient)
    }

    // ---- bindings ----

    /// Whether what a binding says of exchanges is so.
    ///
    /// # Errors
    /// [`Refusal::NoSuchExchange`], [`Refusal::ExchangeReserved`], [`Refusal::WeightInvalid`], [`Refusal::ArgumentsInvalid`].
    pub(crate) fn check_binding(&self, binding: &Binding) -> Result<(), Refusal> {
        let exchange = self.named(&binding.exchange)?;
        if let Destination::Exchange(to) = &binding.to {
            self.named(to)?;
        }
        if exchange.settings.kind == ExchangeKind::ConsistentHash {
            binding.weight()?;
        }
        binding.check()
    }

    /// An exchange that can have bindings.
    pub(crate) fn named(&self, name: &str) -> Result<&Exchange, Refusal> {
        if name.is_empty() {
            return Err(Refusal::ExchangeReserved);
        }
        self.exchanges.get(name).ok_or(Refusal::NoSuchExchange)
    }

    /// False: it was there, or one of its exchanges is not.
    pub(crate) fn bind(&mut self, binding: Binding) -> bool {
        if let Destination::Exchange(to) = &binding.to
            && !self.exchanges.contains_key(to)
        {
            return false;
        }
        let Some(exchange) = self.exchanges.get_mut(&binding.exchange) else { return false };
        let binding = Arc::new(binding);
        let is_new = exchange.insert(Arc::clone(&binding));
        if is_new {
            self.into.entry(binding.to.clone()).or_default().insert(binding);
        }
        is_new
    }

    /// False: it was not there.
    pub(crate) fn unbind(&mut self, binding: &Binding) -> bool {
        let exchange = self.exchanges.get_mut(&binding.exchange);
        let was_there = exchange.is_some_and(|exchange| exchange.remove(binding));
        if was_there {
            self.leads_no_more(binding);
        }
        was_there
    }

    /// Takes away the bindings that lead to a queue or exchange. Answers the exchanges they were of.
    pub(crate) fn forget(&mut self, to: &Destination) -> Losers {
        let bindings = self.into.remove(to).unwrap_or_default();
        for binding in &bindings {
            if let Some(exchange) = self.exchanges.get_mut(&binding.exchange) {
                exchange.remove(binding);
            }
        }
        bindings.iter().map(|binding| Arc::clone(&binding.exchange)).collect()
    }

    /// Frees a piece of one that is gone: what leads to one queue, or an exchange. False: nothing is left.
    pub(crate) fn pop(&mut self) -> bool {
        self.into.pop_first().is_some() || self.exchanges.pop_first().is_some()
    }

    fn leads_no_more(&mut self, binding: &Binding) {
        let Some(into) = self.into.get_mut(&binding.to) else { return };
        into.remove(binding);
        if into.is_empty() {
            self.into.remove(&binding.to);
        }
    }
}

fn is_reserved(name: &str) -> bool {
    name.is_empty() || name.starts_with("amq.") || name.starts_with("overtake.")
}
