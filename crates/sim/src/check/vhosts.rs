//! *Kept*, of virtual hosts: what was declared is there as it was asked for, after every crash what was confirmed is, and what was
//! done since in order; and *routed*: nothing goes from one into another.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use overtake_engine::Refused;
use overtake_engine::core::{Answer, Request};
use overtake_lane::{Broker, Command, Refusal, VHOST_DEFAULT_NAME, VhostId, VhostSettings};

use crate::check::Step;
use crate::check::kept::replayed_queue;
use crate::failure::{Checked, Promise, hold};

type All = BTreeMap<Arc<str>, (VhostId, VhostSettings)>;

/// A virtual host that was declared, or deleted.
type Change = (Arc<str>, Option<(VhostId, VhostSettings)>);

/// What was declared.
#[derive(Debug)]
pub(crate) struct Declared {
    /// As of the last change that was confirmed.
    confirmed: All,
    /// Changes that were done since, in order, each under its ticket.
    done: VecDeque<(u64, Change)>,
}

impl Default for Declared {
    fn default() -> Self {
        let default = (VhostId::DEFAULT, VhostSettings::default());
        Self { confirmed: All::from([(VHOST_DEFAULT_NAME.into(), default)]), done: VecDeque::new() }
    }
}

impl Declared {
    /// After a step: what was asked for is there, and nothing else has changed.
    pub(crate) fn answered(
        &mut self,
        broker: &Broker,
        ticket: u64,
        request: &Request,
        result: &Result<Answer, Refused>,
    ) -> Checked {
        let before = self.now();
        match (request, result) {
            (Request::Do(Command::DeclareVhost { name, settings }), Ok(Answer::VhostDeclared(vhost))) => {
                let same = before.get(name).is_none_or(|(before, _)| before == vhost);
                hold(same, Promise::Kept, || format!("virtual host {name} has another number now"))?;
                self.done.push_back((ticket, (Arc::clone(name), Some((*vhost, (**settings).clone())))));
            }
            (Request::Do(Command::DeleteVhost { name }), result) => {
                let may = before.contains_key(name) && **name != *VHOST_DEFAULT_NAME;
                let is_full = matches!(result, Err(Refused { refusal: Refusal::StoreFull, .. }));
                hold(result.is_ok() == may && !is_full, Promise::Kept, || {
                    format!("deleting virtual host {name} was answered {result:?}")
                })?;
                if may {
                    self.done.push_back((ticket, (Arc::clone(name), None)));
                }
            }
            _ => {}
        }
        let now = self.now();
        hold(seen(broker) == now, Promise::Kept, || {
            format!("there are the virtual hosts {:?}, declared are {now:?}", seen(broker))
        })
    }

    fn now(&self) -> All {
        let mut now = self.confirmed.clone();
        self.done.iter().for_each(|(_, change)| apply(&mut now, change));
        now
    }

    /// A change is confirmed, and with it those before it.
    pub(crate) fn told(&mut self, ticket: u64) {
        if let Some(at) = self.done.iter().position(|(done, _)| *done == ticket) {
            for (_, change) in self.done.drain(..=at) {
                apply(&mut self.confirmed, &change);
            }
        }
    }

    /// What is there after a crash is what was confirmed, and some that was done then, in order.
    pub(crate) fn recovered(&mut self, broker: &Broker) -> Checked {
        let found = seen(broker);
        let confirmed = self.confirmed.clone();
        let mut done = self.done.drain(..);
        while found != self.confirmed
            && let Some((_, change)) = done.next()
        {
            apply(&mut self.confirmed, &change);
        }
        hold(found == self.confirmed, Promise::Kept, || {
            format!("after a crash there are the virtual hosts {found:?}, confirmed were {confirmed:?}")
        })
    }
}

fn apply(all: &mut All, (name, change): &Change) {
    match change {
        Some(is) => drop(all.insert(Arc::clone(name), is.clone())),
        None => drop(all.remove(name)),
    }
}

fn seen(broker: &Broker) -> All {
    broker.vhosts().map(|view| (view.name, (view.vhost, view.settings))).collect()
}

/// What is published comes only into queues of where it was asked, and a dead letter only from one of where it is.
pub(crate) fn check_apart(step: &Step<'_>) -> Checked {
    let is_replayed = matches!(step.request, Some(request) if replayed_queue(request).is_some());
    for (queue, message) in step.newest() {
        let vhost = step.after.queues[&queue].vhost;
        let was_in = |name: &str| {
            let there = |audit: &crate::audit::Audit| audit.named(vhost, name).is_some();
            there(step.before) || there(step.after)
        };
        // A history it came from may be gone, but not the queue before that, too.
        let from = message.death().map(|death| &death.queue).into_iter();
        let mut from = from.chain(message.record().map(|record| &record.queue)).peekable();
        let is_of_here = match from.peek() {
            None => vhost == step.vhost,
            // A record that is replayed is none any more, and where its message died before that may be gone.
            Some(_) if is_replayed && vhost == step.vhost => true,
            Some(_) => from.any(|name| was_in(name)),
        };
        hold(is_of_here, Promise::Routed, || {
            format!(
                "a message asked for in {} came into queue {} of {}: {message:?}",
                step.vhost.0, queue.0, vhost.0
            )
        })?;
    }
    Ok(())
}
