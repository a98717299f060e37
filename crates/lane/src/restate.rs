//! The facts that make a broker without its messages, some at a time: so that the log of a broker with many queues can begin anew without
//! one long step.

use std::ops::Bound;
use std::sync::Arc;

use crate::broker::Broker;
use crate::fact::Fact;
use crate::ids::VhostId;
use crate::topology::Binding;

/// Where [`Broker::topology_facts_from`] goes on. The default is the beginning.
#[derive(Clone, Debug, Default)]
pub struct TopologyCursor(At);

/// What comes next. Names and bindings are those of the facts before, and need not be there any more.
#[derive(Clone, Debug)]
enum At {
    /// The first virtual host from this number on, and its policies.
    Vhost(VhostId),
    Queues(VhostId, Option<Arc<str>>),
    Exchanges(VhostId, Option<Arc<str>>),
    Bindings(VhostId, Option<Arc<Binding>>),
    Metadata(Option<Arc<str>>),
}

impl Default for At {
    fn default() -> Self {
        Self::Vhost(VhostId::DEFAULT)
    }
}

/// Everything after this.
fn after<T: ?Sized>(last: Option<&T>) -> (Bound<&T>, Bound<&T>) {
    (last.map_or(Bound::Unbounded, Bound::Excluded), Bound::Unbounded)
}

fn one_after(vhost: VhostId) -> VhostId {
    VhostId(vhost.0.saturating_add(1))
}

impl Broker {
    /// The facts that make this broker: each virtual host with its policies, so that queues come as they are, then each queue,
    /// without its messages, then exchanges, then bindings; then metadata.
    #[must_use]
    pub fn topology_facts(&self) -> Vec<Fact> {
        self.topology_facts_from(TopologyCursor::default(), usize::MAX).0
    }

    /// As [`Broker::topology_facts`], from where an earlier call ended, until there are `most` facts, about (those of the policies of a virtual
    /// host come together), or as many KiB of metadata; and where to go on. `None`: those were the last.
    ///
    /// Where the broker changes between two calls, all these facts and those of the changes make it as it is after the last, in the order in
    /// which they came.
    #[must_use]
    pub fn topology_facts_from(
        &self,
        cursor: TopologyCursor,
        most: usize,
    ) -> (Vec<Fact>, Option<TopologyCursor>) {
        let (mut facts, mut next) = (Vec::new(), Some(cursor.0));
        let mut left = most.max(1);
        while left > 0
            && let Some(at) = next
        {
            let before = facts.len();
            next = self.restate(at, &mut left, &mut facts);
            left = left.saturating_sub(facts.len() - before);
        }
        (facts, next.map(TopologyCursor))
    }

    /// Adds facts of one kind, at most `left`, and says what comes next.
    fn restate(&self, at: At, left: &mut usize, facts: &mut Vec<Fact>) -> Option<At> {
        let (vhost, most) = (|id| self.vhosts.get(id).ok(), *left);
        let full = |facts: &[Fact], before| facts.len() - before == most;
        let before = facts.len();
        Some(match at {
            At::Vhost(from) => {
                let Some((id, there)) = self.vhosts.first_from(from) else { return Some(At::Metadata(None)) };
                facts.extend(self.vhosts.fact(id));
                facts.extend(there.policies.facts(id));
                At::Queues(id, None)
            }
            At::Queues(id, last) => {
                let Some(there) = vhost(id) else { return Some(At::Vhost(one_after(id))) };
                let mut queues = there.queues.range::<str, _>(after(last.as_deref())).take(most);
                let mut last = None;
                for (name, queue) in queues.by_ref() {
                    facts.push(self.queue_ref(*queue).fact());
                    last = Some(name);
                }
                if full(facts, before) { At::Queues(id, last.cloned()) } else { At::Exchanges(id, None) }
            }
            At::Exchanges(id, last) => {
                let Some(there) = vhost(id) else { return Some(At::Vhost(one_after(id))) };
                let (stored, next) = there.topology.exchange_facts(id, last.as_deref(), most);
                facts.extend(stored);
                next.map_or(At::Bindings(id, None), |name| At::Exchanges(id, Some(name)))
            }
            At::Bindings(id, last) => {
                let Some(there) = vhost(id) else { return Some(At::Vhost(one_after(id))) };
                let bindings = there.topology.bindings_after(last.as_deref()).take(most);
                let mut last = None;
                for binding in bindings {
                    facts.push(Fact::Bound { vhost: id, binding: Box::new((**binding).clone()) });
                    last = Some(binding);
                }
                if full(facts, before) { At::Bindings(id, last.cloned()) } else { At::Vhost(one_after(id)) }
            }
            At::Metadata(last) => {
                for (key, value) in self.metadata.after(last.as_deref()) {
                    facts.push(Fact::MetadataStored { key: Arc::clone(key), value: Arc::clone(value) });
                    *left = left.saturating_sub(value.len() / 1_024);
                    if facts.len() - before >= *left {
                        return Some(At::Metadata(Some(Arc::clone(key))));
                    }
                }
                return None;
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Asker, Command, Destination, ExchangeKind, ExchangeSettings, MetadataEntry, Options, Policy,
        PolicyKind, Step, Time, VhostSettings,
    };

    fn apply(broker: &mut Broker, vhost: u32, command: Command) {
        let asker = Asker::in_vhost(VhostId(vhost));
        broker.apply_by(Time(1), asker, command, &mut Step::default()).expect("it is taken");
    }

    fn exchange(name: &str) -> Command {
        let settings = Box::new(ExchangeSettings::new(ExchangeKind::Topic));
        Command::DeclareExchange { name: name.into(), settings }
    }

    fn bind(exchange: &str, queue: &str) -> Command {
        Command::Bind(Box::new(Binding::new(exchange, Destination::Queue(queue.into()), "a")))
    }

    fn with_all_kinds() -> Broker {
        let mut broker = Broker::new(Options::default());
        for name in ["v1", "v2"] {
            let settings = Box::new(VhostSettings::default());
            apply(&mut broker, 0, Command::DeclareVhost { name: name.into(), settings });
        }
        for vhost in 0..3 {
            let policy: Policy =
                serde_json::from_str(r#"{"pattern":"","definition":{"max-length":3}}"#).expect("a policy");
            let (kind, policy) = (PolicyKind::User, Box::new(policy));
            apply(&mut broker, vhost, Command::SetPolicy { kind, name: "p".into(), policy });
            for name in ["a", "b", "c"] {
                apply(&mut broker, vhost, Command::declare(name.into(), Box::default()));
                apply(&mut broker, vhost, exchange(name));
                apply(&mut broker, vhost, bind(name, name));
                apply(&mut broker, vhost, bind(name, "a"));
            }
        }
        let entry = |key: &str| MetadataEntry { key: key.into(), value: Some(vec![0; 3_000].into()) };
        apply(&mut broker, 0, Command::SetMetadata { entries: ["k", "l"].map(entry).to_vec() });
        broker
    }

    #[test]
    fn however_few_at_a_time_they_are_all_the_facts_in_the_same_order() {
        let broker = with_all_kinds();
        let all = broker.topology_facts();
        for most in [1, 2, 3, 7] {
            let (mut seen, mut next) = (Vec::new(), Some(TopologyCursor::default()));
            while let Some(cursor) = next.take() {
                let (facts, more) = broker.topology_facts_from(cursor, most);
                assert!(facts.len() <= most + 1, "{} at once where {most} are asked for", facts.len());
                seen.extend(facts);
                next = more;
            }
            assert_eq!(seen, all, "{most} at a time");
        }
    }

    /// What is changed before, at and after the place of every cursor.
    #[test]
    fn what_changes_meanwhile_is_as_it_is_at_the_end() {
        for at in 0..40 {
            let (mut broker, mut folded) = (with_all_kinds(), Broker::new(Options::default()));
            let (mut next, mut calls) = (Some(TopologyCursor::default()), 0);
            while let Some(cursor) = next.take() {
                let (facts, more) = broker.topology_facts_from(cursor, 1);
                for fact in facts {
                    folded.fold(fact, &mut Step::default()).expect("it is about what is there");
                }
                if calls == at {
                    let mut step = Step::default();
                    for command in [
                        Command::DeleteQueue { name: "b".into(), if_empty: false, if_unused: false },
                        Command::DeleteExchange { name: "c".into(), if_unused: false },
                        Command::declare("aa".into(), Box::default()),
                        exchange("aa"),
                        bind("aa", "a"),
                        bind("b", "c"),
                        Command::RemovePolicy { kind: PolicyKind::User, name: "p".into() },
                    ] {
                        let asker = Asker::in_vhost(VhostId(1));
                        broker.apply_by(Time(1), asker, command, &mut step).expect("it is taken");
                    }
                    let delete = Command::DeleteVhost { name: "v2".into() };
                    broker.apply(Time(1), delete, &mut step).expect("it is taken");
                    for fact in step.facts.drain(..) {
                        // It may be about what was not said yet.
                        let _ = folded.fold(fact, &mut Step::default());
                    }
                }
                (next, calls) = (more, calls + 1);
            }
            assert!(calls > 20, "{calls} calls");
            folded.wake(Time(1), &mut Step::default());
            assert_eq!(folded.topology_facts(), broker.topology_facts(), "changed after {at} calls");
        }
    }
}
