//! The policies of a virtual host, found by name; and which of them is for whom.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::ruled::{Named, Ruled};
use super::{PoliciesSize, Policy, PolicyKind};
use crate::fact::Fact;
use crate::ids::VhostId;
use crate::settings::Settings;

/// The policies over one set of names. Invariant: `size` is what they take.
#[derive(Clone, Debug, Default)]
pub(crate) struct Policies {
    all: BTreeMap<(PolicyKind, Arc<str>), Policy>,
    size: PoliciesSize,
}

impl Policies {
    pub(crate) fn get(&self, kind: PolicyKind, name: &Arc<str>) -> Option<&Policy> {
        self.all.get(&(kind, Arc::clone(name)))
    }

    /// Those of a kind, by name.
    pub(crate) fn of(&self, kind: PolicyKind) -> impl Iterator<Item = Named<'_>> {
        let all = self.all.iter().filter(move |((other, _), _)| *other == kind);
        all.map(|((_, name), policy)| (name, policy))
    }

    pub(crate) fn size(&self) -> PoliciesSize {
        self.size
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// A policy is there, and is so. Answers what it was before.
    pub(crate) fn store(&mut self, kind: PolicyKind, name: Arc<str>, policy: Policy) -> Option<Policy> {
        let before = self.remove(kind, &name);
        self.size.policies += 1;
        self.size.name_bytes += name.len() as u64;
        self.size.bytes += policy.cost();
        self.all.insert((kind, name), policy);
        before
    }

    /// A policy is not there. Answers what it was.
    pub(crate) fn remove(&mut self, kind: PolicyKind, name: &Arc<str>) -> Option<Policy> {
        let policy = self.all.remove(&(kind, Arc::clone(name)))?;
        self.size.policies -= 1;
        self.size.name_bytes -= name.len() as u64;
        self.size.bytes -= policy.cost();
        Some(policy)
    }

    /// What holds for a queue of this name.
    pub(crate) fn rule(&self, queue: &str, own: Box<Settings>) -> Ruled {
        if self.all.is_empty() {
            return Ruled::by_none(own);
        }
        let is_meant = |policy: &Policy| policy.apply_to.queues() && policy.pattern.matches(queue);
        Ruled::by(own, self.first(PolicyKind::User, is_meant), self.first(PolicyKind::Operator, is_meant))
    }

    /// Those for exchanges, of which the first one that matches applies. Operators' policies have nothing to say of one.
    pub(crate) fn of_exchanges(&self) -> Vec<Named<'_>> {
        let mut all: Vec<_> =
            self.of(PolicyKind::User).filter(|(_, policy)| policy.apply_to.exchanges()).collect();
        all.sort_by_key(|(_, policy)| Reverse(policy.priority));
        all
    }

    fn first(&self, kind: PolicyKind, is_meant: impl Fn(&Policy) -> bool) -> Option<Named<'_>> {
        let mut best: Option<Named<'_>> = None;
        for (name, policy) in self.of(kind) {
            let is_better = best.is_none_or(|(_, best)| policy.priority > best.priority);
            if is_better && is_meant(policy) {
                best = Some((name, policy));
            }
        }
        best
    }

    /// The facts that make all of them. Those that come first apply before others, so that whoever takes them one by one sees no
    /// queue change its lanes more often than it must.
    pub(crate) fn facts(&self, vhost: VhostId) -> impl Iterator<Item = Fact> + '_ {
        let mut all: Vec<_> = self.all.iter().collect();
        all.sort_by_key(|((kind, name), policy)| (*kind, Reverse(policy.priority), Arc::clone(name)));
        all.into_iter().map(move |((kind, name), policy)| Fact::PolicyStored {
            vhost,
            kind: *kind,
            name: Arc::clone(name),
            policy: Box::new(policy.clone()),
        })
    }
}
