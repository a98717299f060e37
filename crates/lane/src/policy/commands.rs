//! The broker's commands about policies, and what comes of them in queues and exchanges.

use std::sync::Arc;

use super::{POLICIES_MAX, PoliciesSize, Policy, PolicyKind};
use crate::broker::Broker;
use crate::command::{Reply, Step};
use crate::fact::Fact;
use crate::ids::QueueId;
use crate::queue::Queue;
use crate::refusal::Refusal;

impl Broker {
    pub(crate) fn set_policy(
        &mut self,
        kind: PolicyKind,
        name: Arc<str>,
        policy: Box<Policy>,
        step: &mut Step,
    ) -> Result<Reply, Refusal> {
        check(kind, &name, &policy)?;
        let there = self.policies.get(kind, &name);
        if there == Some(&*policy) {
            return Ok(Reply::Done);
        }
        if there.is_none() && self.policies.size().policies >= POLICIES_MAX as u64 {
            return Err(Refusal::TooManyPolicies);
        }
        step.facts.push(Fact::PolicyStored { kind, name: Arc::clone(&name), policy: policy.clone() });
        let before = self.policies.store(kind, name, (*policy).clone());
        self.enact(&[before.as_ref(), Some(&policy)], step);
        Ok(Reply::Done)
    }

    pub(crate) fn remove_policy(
        &mut self,
        kind: PolicyKind,
        name: Arc<str>,
        step: &mut Step,
    ) -> Result<Reply, Refusal> {
        let before = self.policies.remove(kind, &name).ok_or(Refusal::NoSuchPolicy)?;
        step.facts.push(Fact::PolicyRemoved { kind, name });
        self.enact(&[Some(&before)], step);
        Ok(Reply::Done)
    }

    /// Has queues and exchanges do what policies say now, where these match that changed. All of them are changed before
    /// anything is evicted, and that before anything moves or is leased.
    fn enact(&mut self, changed: &[Option<&Policy>], step: &mut Step) {
        let ruled = self.rule_anew(changed, Queue::rule);
        for id in &ruled {
            let queue = self.queue_mut(*id);
            queue.tell_emptied(step);
            queue.evict_all(step);
        }
        self.dispatch_all(ruled.into_iter(), step);
    }

    /// The same during a recovery: what else comes of it is said by facts of its own.
    fn fold_enact(&mut self, changed: &[Option<&Policy>]) {
        self.rule_anew(changed, Queue::fold_rule);
    }

    /// Tells the queues and exchanges that these may be for. Answers the queues for which something else holds now.
    fn rule_anew(
        &mut self,
        changed: &[Option<&Policy>],
        rule: impl Fn(&mut Queue, super::Ruled),
    ) -> Vec<QueueId> {
        let are = |is_for: &dyn Fn(&Policy) -> bool| changed.iter().flatten().any(|policy| is_for(policy));
        if are(&|policy| policy.apply_to.exchanges()) {
            self.topology.rule_all(&self.policies);
        }
        let mut ruled = Vec::new();
        for (name, id) in &self.names {
            if !are(&|policy| policy.apply_to.queues() && policy.pattern.matches(name)) {
                continue;
            }
            let queue = self.queues.get_mut(id).expect("a queue that is named is there");
            let now = self.policies.rule(name, Box::new(queue.own().clone()));
            if !queue.is_ruled(&now) {
                rule(queue, now);
                ruled.push(*id);
            }
        }
        ruled
    }

    /// Takes for true that a policy is there. False: nobody could have set it.
    pub(crate) fn fold_policy(&mut self, kind: PolicyKind, name: Arc<str>, policy: Box<Policy>) -> bool {
        let is_valid = check(kind, &name, &policy).is_ok();
        if is_valid && self.policies.get(kind, &name) != Some(&*policy) {
            let before = self.policies.store(kind, name, (*policy).clone());
            self.fold_enact(&[before.as_ref(), Some(&policy)]);
        }
        is_valid
    }

    /// Takes for true that a policy is gone. It may be already, where what set it was given back.
    pub(crate) fn fold_policy_removed(&mut self, kind: PolicyKind, name: &Arc<str>) {
        if let Some(before) = self.policies.remove(kind, name) {
            self.fold_enact(&[Some(&before)]);
        }
    }

    /// The policies of a kind, by name.
    pub fn policies(&self, kind: PolicyKind) -> impl Iterator<Item = (&Arc<str>, &Policy)> {
        self.policies.of(kind)
    }

    /// How much of policies there is.
    #[must_use]
    pub fn policies_size(&self) -> PoliciesSize {
        self.policies.size()
    }
}

fn check(kind: PolicyKind, name: &str, policy: &Policy) -> Result<(), Refusal> {
    crate::check_name(name)?;
    policy.check(kind).map_err(|_| Refusal::PolicyInvalid)
}
