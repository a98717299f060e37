//! The broker's commands about policies, and what comes of them in queues and exchanges.

use std::sync::Arc;

use super::{POLICIES_MAX, PoliciesSize, Policy, PolicyKind};
use crate::broker::Broker;
use crate::command::{Reply, Step};
use crate::fact::Fact;
use crate::ids::{QueueId, VhostId};
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
        self.enact(vhost, &[before.as_ref(), Some(&policy)], step);
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
        self.enact(vhost, &[Some(&before)], step);
        Ok(Reply::Done)
    }

    /// Has queues and exchanges do what the policies of their virtual host say now, where these match that changed. All of them are
    /// changed before anything is evicted, and that before anything moves or is leased.
    fn enact(&mut self, vhost: VhostId, changed: &[Option<&Policy>], step: &mut Step) {
        let ruled = self.rule_anew(vhost, changed);
        for id in &ruled {
            let fetches = self.fetches;
            let queue = self.queue_mut(*id);
            queue.move_former(&mut step.room, fetches);
            queue.tell_runs(step);
            queue.begin_trimming(step);
        }
        self.dispatch_all(ruled.into_iter(), step);
    }

    /// The same during a recovery: what else comes of it is said by facts of its own.
    fn fold_enact(&mut self, vhost: VhostId, changed: &[Option<&Policy>]) {
        self.rule_anew(vhost, changed);
    }

    /// Tells the queues and exchanges that these may be for. Answers the queues for which something else holds now.
    fn rule_anew(&mut self, vhost: VhostId, changed: &[Option<&Policy>]) -> Vec<QueueId> {
        let are = |is_for: &dyn Fn(&Policy) -> bool| changed.iter().flatten().any(|policy| is_for(policy));
        let there = self.vhosts.get_mut(vhost).expect("its policies changed");
        let Vhost { queues: names, topology, policies, .. } = there;
        if are(&|policy| policy.apply_to.exchanges()) {
            topology.rule_all(policies);
        }
        let mut ruled = Vec::new();
        for (name, id) in names {
            if !are(&|policy| policy.apply_to.queues() && policy.pattern.matches(name)) {
                continue;
            }
            let queue = self.queues.get_mut(id).expect("a queue that is named is there");
            let now = policies.rule(name, Box::new(queue.own().clone()));
            if !queue.is_ruled(&now) {
                queue.rule(now);
                ruled.push(*id);
            }
        }
        ruled
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
