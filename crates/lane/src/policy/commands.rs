//! The broker's commands about policies, and what comes of them in queues and exchanges.

use std::sync::Arc;

use super::{POLICIES_MAX, PoliciesSize, Policy, PolicyKind};
use crate::broker::Broker;
use crate::command::{Reply, Step};
use crate::fact::Fact;
use crate::ids::VhostId;
use crate::refusal::Refusal;
use crate::vhosts::Vhost;

impl Broker {
    pub(crate) fn set_policy(
        &mut self,
        kind: PolicyKind,
        name: Arc<str>,
        policy: Box<Policy>,
        step: &mut Step,
    ) -> Result<Reply, Refusal> {
        check(kind, &name, &policy)?;
        let vhost = self.asking.vhost;
        let there = self.vhosts.get(vhost)?.policies.get(kind, &name);
        if there == Some(&*policy) {
            return Ok(Reply::Done);
        }
        if there.is_none() && self.policies_size().policies >= POLICIES_MAX as u64 {
            return Err(Refusal::TooManyPolicies);
        }
        step.facts.push(Fact::PolicyStored { vhost, kind, name: Arc::clone(&name), policy: policy.clone() });
        let stored = (*policy).clone();
        let before = self.vhosts.change_policies(vhost, |there| there.store(kind, name, stored))?;
        self.enact(vhost, &[before.as_ref(), Some(&policy)]);
        Ok(Reply::Done)
    }

    pub(crate) fn remove_policy(
        &mut self,
        kind: PolicyKind,
        name: Arc<str>,
        step: &mut Step,
    ) -> Result<Reply, Refusal> {
        let vhost = self.asking.vhost;
        let before = self.vhosts.change_policies(vhost, |there| there.remove(kind, &name))?;
        let before = before.ok_or(Refusal::NoSuchPolicy)?;
        step.facts.push(Fact::PolicyRemoved { vhost, kind, name });
        self.enact(vhost, &[Some(&before)]);
        Ok(Reply::Done)
    }

    /// Has queues and exchanges do what the policies of their virtual host say now: exchanges at once, queues in the steps that follow.
    fn enact(&mut self, vhost: VhostId, changed: &[Option<&Policy>]) {
        let of_queues = self.rule_exchanges(vhost, changed);
        if !of_queues.is_empty() {
            self.begin_ruling(vhost, &of_queues);
        }
    }

    /// The same during a recovery, at once.
    fn fold_enact(&mut self, vhost: VhostId, changed: &[Option<&Policy>]) {
        let of_queues = self.rule_exchanges(vhost, changed);
        if !of_queues.is_empty() {
            self.fold_ruling(vhost, &of_queues);
        }
    }

    /// Answers those of the policies that are for queues.
    fn rule_exchanges<'p>(&mut self, vhost: VhostId, changed: &[Option<&'p Policy>]) -> Vec<&'p Policy> {
        let changed = || changed.iter().copied().flatten();
        let Vhost { topology, policies, .. } = self.vhosts.get_mut(vhost).expect("its policies changed");
        if changed().any(|policy| policy.apply_to.exchanges()) {
            topology.rule(policies);
        }
        changed().filter(|policy| policy.apply_to.queues()).collect()
    }

    /// Takes for true that a policy is there. `None`: nobody could have set it.
    pub(crate) fn fold_policy(
        &mut self,
        vhost: VhostId,
        kind: PolicyKind,
        name: Arc<str>,
        policy: Box<Policy>,
    ) -> Option<()> {
        check(kind, &name, &policy).ok()?;
        let there = self.vhosts.known_or_nameless(vhost)?;
        if there.policies.get(kind, &name) != Some(&*policy) {
            let stored = (*policy).clone();
            let before = self.vhosts.change_policies(vhost, |there| there.store(kind, name, stored)).ok()?;
            self.fold_enact(vhost, &[before.as_ref(), Some(&policy)]);
        }
        Some(())
    }

    /// Takes for true that a policy is gone. It may be already, where what set it was given back. `None`: there can be no such
    /// virtual host.
    pub(crate) fn fold_policy_removed(
        &mut self,
        vhost: VhostId,
        kind: PolicyKind,
        name: &Arc<str>,
    ) -> Option<()> {
        self.vhosts.known_or_nameless(vhost)?;
        if let Some(before) = self.vhosts.change_policies(vhost, |there| there.remove(kind, name)).ok()? {
            self.fold_enact(vhost, &[Some(&before)]);
        }
        Some(())
    }

    /// The policies of a kind of a virtual host, by name.
    ///
    /// # Errors
    /// [`Refusal::NoSuchVhost`].
    pub fn policies(
        &self,
        vhost: VhostId,
        kind: PolicyKind,
    ) -> Result<impl Iterator<Item = (&Arc<str>, &Policy)>, Refusal> {
        Ok(self.vhosts.get(vhost)?.policies.of(kind))
    }

    /// How much of policies there is, in all virtual hosts.
    #[must_use]
    pub fn policies_size(&self) -> PoliciesSize {
        self.vhosts.policies_size()
    }
}

fn check(kind: PolicyKind, name: &str, policy: &Policy) -> Result<(), Refusal> {
    crate::check_name(name)?;
    policy.check(kind).map_err(|_| Refusal::PolicyInvalid)
}
