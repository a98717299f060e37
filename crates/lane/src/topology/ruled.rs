//! What policies say of exchanges. It is looked up for an exchange when it is asked for, so a change of policies looks at no exchange.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::pattern::Pattern;
use crate::policy::{POLICIES_MAX, Policies};

/// The policies of a virtual host that are for exchanges: the first one that matches applies.
#[derive(Clone, Debug, Default)]
pub(super) struct ExchangePolicies {
    /// How often they have changed.
    version: u64,
    best_first: Vec<ExchangePolicy>,
}

/// What a policy says of an exchange.
#[derive(Clone, Debug)]
pub(super) struct ExchangePolicy {
    pub(super) name: Arc<str>,
    pattern: Pattern,
    /// The alternate of an exchange that has none of its own.
    pub(super) alternate: Option<Arc<str>>,
}

/// Which policy an exchange was found to have: [`FoundPolicy::MOST`] times the version it was found at, and 1 more than its place among them, or
/// nothing more where there is none. Where a message goes is decided without changing the broker, so this is an atomic.
#[derive(Debug, Default)]
pub(super) struct FoundPolicy(AtomicU64);

impl FoundPolicy {
    const MOST: u64 = POLICIES_MAX as u64 + 1;
}

impl Clone for FoundPolicy {
    fn clone(&self) -> Self {
        Self(self.0.load(Ordering::Relaxed).into())
    }
}

impl ExchangePolicies {
    /// Policies are others now.
    pub(super) fn set(&mut self, policies: &Policies) {
        self.version += 1;
        let all = policies.of_exchanges().into_iter().map(|(name, policy)| ExchangePolicy {
            name: Arc::clone(name),
            pattern: policy.pattern.clone(),
            alternate: policy.definition.alternate_exchange.as_deref().map(Arc::from),
        });
        self.best_first = all.collect();
    }

    /// The policy of an exchange.
    pub(super) fn of(&self, exchange: &str, found: &FoundPolicy) -> Option<&ExchangePolicy> {
        let known = found.0.load(Ordering::Relaxed);
        let place = if known / FoundPolicy::MOST == self.version {
            known % FoundPolicy::MOST
        } else {
            let place = self.best_first.iter().position(|policy| policy.pattern.matches(exchange));
            let place = place.map_or(0, |place| place as u64 + 1);
            found.0.store(self.version * FoundPolicy::MOST + place, Ordering::Relaxed);
            place
        };
        self.best_first.get(place.checked_sub(1)? as usize)
    }
}
