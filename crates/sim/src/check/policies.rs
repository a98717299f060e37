//! *Kept*, of policies: those that were set are there, after every crash, too; and what holds for each queue is what its own settings and
//! those of its virtual host say.

use std::collections::VecDeque;
use std::sync::Arc;

use overtake_lane::{Broker, PolicyKind};

use crate::book::Book;
use crate::check::Step;
use crate::failure::{Checked, Promise, hold};
use crate::rules::{Change, Own, Policies, holds};

/// What was set.
#[derive(Debug, Default)]
pub(crate) struct Ruling {
    /// As of the last change that was confirmed.
    confirmed: Policies,
    /// Changes that were done since, in order, each under its ticket.
    done: VecDeque<(u64, Change)>,
}

impl Ruling {
    /// After a step: what was asked for is there.
    pub(crate) fn answered(&mut self, broker: &Broker, ticket: u64, step: &Step<'_>) -> Checked {
        if let Some(change) = Change::of(step) {
            self.done.push_back((ticket, change));
        }
        let mut now = self.confirmed.clone();
        self.done.iter().for_each(|(_, change)| change.apply(&mut now));
        hold(there(broker) == now, Promise::Kept, || {
            format!("there are the policies {:?}, not {now:?}", there(broker))
        })
    }

    /// A change is confirmed, and with it those before it.
    pub(crate) fn told(&mut self, ticket: u64) {
        if let Some(at) = self.done.iter().position(|(done, _)| *done == ticket) {
            for (_, change) in self.done.drain(..=at) {
                change.apply(&mut self.confirmed);
            }
        }
    }

    /// What is there after a crash is what was confirmed, and some that was done then, in order.
    pub(crate) fn recovered(&mut self, broker: &Broker) -> Checked {
        let there = there(broker);
        let mut done = self.done.drain(..);
        while self.confirmed != there
            && let Some((_, change)) = done.next()
        {
            change.apply(&mut self.confirmed);
        }
        hold(self.confirmed == there, Promise::Kept, || {
            format!("the policies after a crash are of no moment: {there:?}")
        })
    }
}

/// The policies of a broker.
pub(crate) fn there(broker: &Broker) -> Policies {
    let kinds = [PolicyKind::User, PolicyKind::Operator];
    let each = broker.vhosts().flat_map(|view| kinds.map(|kind| (view.vhost, kind)));
    let all = each.flat_map(|(vhost, kind)| {
        let policies = broker.policies(vhost, kind).expect("it is there");
        policies.map(move |(name, policy)| ((vhost, kind, name.clone()), policy.clone()))
    });
    all.collect()
}

/// What holds for each queue is what the settings it has of its own and the policies say, but where its turn has not come. That these are as they were asked for is what the
/// other checkers see.
pub(crate) fn check(book: &Book, broker: &Broker) -> Checked {
    for queue in book.settings.keys() {
        let (Some(vhost), Some(name)) = (broker.vhost_of(*queue), broker.name(*queue)) else { continue };
        if broker.is_late() && !broker.is_ruled(*queue) {
            continue;
        }
        let is = broker.settings(vhost, name).expect("a named queue has settings");
        let own = broker.own_settings(vhost, name).expect("a named queue has settings").clone();
        let expected = holds(&Own { vhost, name: Arc::clone(name), settings: own }, &book.policies);
        hold(*is == expected, Promise::Kept, || {
            format!("for queue {name} these settings hold: {is:?}, not {expected:?}")
        })?;
    }
    Ok(())
}
