//! Policies over many queues: how far the queues of a virtual host do what its policies say, a few queues a step.
//!
//! ```text
//!   set, remove ─▶ Ruling, one version on ── rule_some, step by step ─▶ every queue is of this version
//!                                     └───── rule_late, a queue that is used meanwhile
//! ```
//!
//! A queue that was not ruled yet does what policies said before. It is ruled before anything is published into it, it is asked for by name, a
//! message of it is settled or time passes in it, so whoever uses a queue finds the policy holding. A recovery rules all queues at once: what a broker did
//! with one that was not ruled yet is in facts that say what was done, and not by which settings.

use std::sync::Arc;

use super::{Policies, Policy, Ruled};
use crate::broker::Broker;
use crate::command::Step;
use crate::ids::{QueueId, VhostId};
use crate::queue::Queue;
use crate::round::Round;
use crate::vhosts::Vhost;

/// To have a queue do something else takes as long as looking at so many,
const RULE_PIECES: usize = 3;
/// and to find its policies among so many as looking at one.
const POLICIES_PER_PIECE: usize = 32;
/// Policies that are remembered to have changed; where it were more, any may have.
const CHANGED_MAX: usize = 16;

/// How far the queues of a virtual host do what its policies say.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ruling {
    /// How often policies for queues have changed. A queue does what they say if it was ruled at this version.
    pub(crate) version: u64,
    /// What has changed since all queues did, as it was before and after.
    changed: Changed,
    round: Round<Arc<str>>,
}

#[derive(Clone, Debug)]
enum Changed {
    These(Vec<Policy>),
    Any,
}

impl Default for Changed {
    fn default() -> Self {
        Self::These(Vec::new())
    }
}

impl Changed {
    fn add(&mut self, changed: &[&Policy]) {
        match self {
            Self::These(there) if there.len() + changed.len() <= CHANGED_MAX => {
                there.extend(changed.iter().copied().cloned());
            }
            _ => *self = Self::Any,
        }
    }

    /// Whether something else may hold for a queue of this name.
    fn concerns(&self, name: &str) -> bool {
        match self {
            Self::These(changed) => changed.iter().any(|policy| policy.pattern.matches(name)),
            Self::Any => true,
        }
    }
}

impl Ruling {
    /// Policies are others now.
    fn begin(&mut self, changed: &[&Policy]) {
        self.version += 1;
        self.changed.add(changed);
        self.round.begin();
    }

    /// Comes to a queue. True: something else may hold for it.
    fn reach(&self, queue: &mut Queue) -> bool {
        std::mem::replace(&mut queue.ruled_at, self.version) != self.version
            && self.changed.concerns(&queue.name)
    }
}

impl Policies {
    /// Has a queue do what they say. True: something else holds for it.
    fn rule_queue(&self, queue: &mut Queue) -> bool {
        let now = self.rule(&queue.name, Box::new(queue.own().clone()));
        let is_other = !queue.is_ruled(&now);
        if is_other {
            queue.rule(now);
        }
        is_other
    }
}

impl Vhost {
    /// The next queue that may have to be ruled. `None`: all are.
    fn next_unruled(&mut self) -> Option<QueueId> {
        let next = self.ruling.round.next(&self.queues).map(|(_, id)| *id);
        if next.is_none() {
            self.ruling.changed = Changed::default();
        }
        next
    }
}

impl Broker {
    /// Has queues do what the policies of their virtual host say now, where one of these matches. It is done in the steps that follow.
    pub(crate) fn begin_ruling(&mut self, vhost: VhostId, changed: &[&Policy]) {
        let there = self.vhosts.get_mut(vhost).expect("its policies changed");
        if !there.ruling.round.is_open() {
            self.ruling.push_back(vhost);
        }
        there.ruling.begin(changed);
    }

    /// The same during a recovery, all at once: what else comes of it is said by facts of its own.
    pub(super) fn fold_ruling(&mut self, vhost: VhostId, changed: &[&Policy]) {
        let there = self.vhosts.get_mut(vhost).expect("its policies changed");
        there.ruling.begin(changed);
        while let Some(id) = there.next_unruled() {
            let queue = self.queues.get_mut(&id).expect("a queue that is named is there");
            if there.ruling.reach(queue) {
                there.policies.rule_queue(queue);
            }
        }
    }

    /// Goes on with queues that may not do yet what policies say, as many as the step has room for. All of these are changed, and what is
    /// evicted goes on, before anything is leased.
    pub(crate) fn rule_some(&mut self, step: &mut Step) {
        while step.room > 0
            && let Some(vhost) = self.ruling.front().copied()
        {
            while step.room > 0
                && let Some(id) = self.vhosts.get_mut(vhost).ok().and_then(Vhost::next_unruled)
            {
                step.room -= 1;
                self.rule_late(id, step);
            }
            self.ruling.pop_front();
            if self.vhosts.get(vhost).is_ok_and(|there| there.ruling.round.is_open()) {
                self.ruling.push_back(vhost);
            }
        }
        self.dispatch_all(std::iter::empty(), step);
    }

    /// Has a queue do what policies say now, if it does not yet, since something is about to happen in it. What of its messages is too many, and
    /// what moves, has begun with this; what can be leased then is known when the step ends.
    pub(crate) fn rule_late(&mut self, id: QueueId, step: &mut Step) {
        if self.is_ruled(id) {
            return;
        }
        let queue = self.queues.get_mut(&id).expect("one that is gone is ruled");
        let there = self.vhosts.get(queue.vhost).expect("a queue is in a virtual host");
        if !there.ruling.reach(queue) {
            return;
        }
        step.room = step.room.saturating_sub(there.policies.len() / POLICIES_PER_PIECE);
        if there.policies.rule_queue(queue) {
            step.room = step.room.saturating_sub(RULE_PIECES);
            queue.move_former(&mut step.room, self.fetches);
            queue.tell_runs(step);
            queue.begin_trimming(step);
            self.stirred.push(id);
        }
    }

    /// As [`Broker::rule_late`] for a queue that somebody asks for: what comes of it is done before.
    pub(crate) fn rule_now(&mut self, id: QueueId, step: &mut Step) {
        if !self.is_ruled(id) {
            self.rule_late(id, step);
            self.dispatch_all(std::iter::empty(), step);
        }
    }

    /// Whether a queue does what the policies of its virtual host say: soon after one of them has changed, and at once where the queue is used.
    #[must_use]
    pub fn is_ruled(&self, id: QueueId) -> bool {
        if self.ruling.is_empty() {
            return true;
        }
        let Some(queue) = self.queues.get(&id) else { return true };
        self.vhosts.get(queue.vhost).map_or(true, |there| there.ruling.version == queue.ruled_at)
    }

    /// What will hold for a queue that is not ruled yet. `None`: it is.
    pub(crate) fn will_hold(&self, queue: &Queue) -> Option<Ruled> {
        let there = self.vhosts.get(queue.vhost).ok()?;
        let is_late = there.ruling.version != queue.ruled_at && there.ruling.changed.concerns(&queue.name);
        is_late.then(|| there.policies.rule(&queue.name, Box::new(queue.own().clone())))
    }
}
