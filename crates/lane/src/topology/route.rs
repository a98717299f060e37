//! From an exchange to queues: through what is bound to what is bound to it, and through alternates.
//!
//! Each exchange is visited once, so cycles end. First comes what is reached without waiting, then what is reached only through
//! a delayed exchange: where both lead, nothing waits.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Topology;
use super::binding::Destination;
use super::header::{HeaderValue, Marks};
use crate::refusal::Refusal;
use crate::settings::DURATION_MS_MAX;

/// What of a message exchanges look at.
#[derive(Clone, Copy, Debug)]
pub struct Envelope<'a> {
    /// Its routing keys, the first one first. It goes wherever one of them leads.
    pub keys: &'a [&'a str],
    /// What it says about itself.
    pub marks: &'a dyn Marks,
}

impl Envelope<'_> {
    /// How long it waits in queues that it reaches through a delayed exchange only, ms.
    pub(crate) fn delay_ms(&self) -> u64 {
        let asked = match self.marks.header("x-delay").as_deref() {
            Some(HeaderValue::Int(ms)) => *ms,
            Some(HeaderValue::Text(text)) => text.parse().unwrap_or(0),
            _ => 0,
        };
        u64::try_from(asked).unwrap_or(0).min(DURATION_MS_MAX)
    }
}

/// Where a message goes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Routed {
    /// The queues that get a copy, each once, by name. They need not be there.
    pub queues: BTreeSet<Arc<str>>,
    /// Those of them that are reached through a delayed exchange only.
    pub delayed: BTreeSet<Arc<str>>,
}

impl Topology {
    /// The queues that get a copy.
    ///
    /// # Errors
    /// [`Refusal::NoSuchExchange`].
    pub fn route(&self, exchange: &str, letter: &Envelope<'_>) -> Result<Routed, Refusal> {
        let mut route = Routed::default();
        if exchange.is_empty() {
            route.queues.extend(letter.keys.iter().map(|key| Arc::from(*key)));
            return Ok(route);
        }
        let (name, _) = self.exchanges.get_key_value(exchange).ok_or(Refusal::NoSuchExchange)?;
        let mut walk = Walk { topology: self, seen: BTreeSet::new(), open: Vec::new(), later: Vec::new() };
        walk.reach(name, false);
        while let Some(name) = walk.open.pop() {
            walk.visit(name, letter, false, &mut route.queues);
        }
        let mut delayed = BTreeSet::new();
        walk.open = std::mem::take(&mut walk.later);
        while let Some(name) = walk.open.pop() {
            walk.visit(name, letter, true, &mut delayed);
        }
        route.delayed = &delayed - &route.queues;
        route.queues.extend(delayed);
        Ok(route)
    }
}

/// Exchanges on the way.
struct Walk<'a> {
    topology: &'a Topology,
    seen: BTreeSet<&'a str>,
    open: Vec<&'a str>,
    later: Vec<&'a str>,
}

impl<'a> Walk<'a> {
    fn reach(&mut self, name: &'a str, is_late: bool) {
        let waits = self.topology.exchange(name).is_some_and(|exchange| exchange.settings.delayed);
        if waits && !is_late { self.later.push(name) } else { self.open.push(name) }
    }

    fn visit(
        &mut self,
        name: &'a str,
        letter: &Envelope<'_>,
        is_late: bool,
        queues: &mut BTreeSet<Arc<str>>,
    ) {
        if !self.seen.insert(name) {
            return;
        }
        if name.is_empty() {
            queues.extend(letter.keys.iter().map(|key| Arc::from(*key)));
            return;
        }
        let topology: &'a Topology = self.topology;
        let Some(exchange) = topology.exchanges.get(name) else { return };
        let has_any = exchange.choose(letter, |to| match to {
            Destination::Queue(queue) => {
                queues.insert(Arc::clone(queue));
            }
            Destination::Exchange(next) => self.reach(next, is_late),
        });
        if !has_any && let Some(alternate) = topology.alternate(name, exchange) {
            self.reach(alternate, is_late);
        }
    }
}
