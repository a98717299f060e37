//! *Kept*, of policies: those that were set are there, after every crash, too; and what holds for each queue is what its own settings and
//! they say.

use std::collections::VecDeque;

use overtake_engine::Refused;
use overtake_engine::core::{Answer, Request};
use overtake_lane::{Broker, Command, PolicyKind};

use crate::book::Book;
use crate::failure::{Checked, Promise, hold};
use crate::rules::{Policies, change, holds};

/// What was set.
#[derive(Debug, Default)]
pub(crate) struct Ruling {
    /// As of the last change that was confirmed.
    confirmed: Policies,
    /// Changes that were done since, in order, each under its ticket.
    done: VecDeque<(u64, Command)>,
}

impl Ruling {
    /// After a step: what was asked for is there.
    pub(crate) fn answered(
        &mut self,
        broker: &Broker,
        ticket: u64,
        request: &Request,
        result: &Result<Answer, Refused>,
    ) -> Checked {
        let Request::Do(command @ (Command::SetPolicy { .. } | Command::RemovePolicy { .. })) = request
        else {
            return Ok(());
        };
        if result.is_ok() {
            self.done.push_back((ticket, command.clone()));
        }
        let mut now = self.confirmed.clone();
        self.done.iter().for_each(|(_, command)| change(&mut now, command));
        hold(there(broker) == now, Promise::Kept, || {
            format!("there are the policies {:?}, not {now:?}", there(broker))
        })
    }

    /// A change is confirmed, and with it those before it.
    pub(crate) fn told(&mut self, ticket: u64) {
        if let Some(at) = self.done.iter().position(|(done, _)| *done == ticket) {
            for (_, command) in self.done.drain(..=at) {
                change(&mut self.confirmed, &command);
            }
        }
    }

    /// What is there after a crash is what was confirmed, and some that was done then, in order.
    pub(crate) fn recovered(&mut self, broker: &Broker) -> Checked {
        let there = there(broker);
        let mut done = self.done.drain(..);
        while self.confirmed != there
            && let Some((_, command)) = done.next()
        {
            change(&mut self.confirmed, &command);
        }
        hold(self.confirmed == there, Promise::Kept, || {
            format!("the policies after a crash are of no moment: {there:?}")
        })
    }
}

/// The policies of a broker.
pub(crate) fn there(broker: &Broker) -> Policies {
    let kinds = [PolicyKind::User, PolicyKind::Operator];
    let all = kinds.into_iter().flat_map(|kind| {
        broker.policies(kind).map(move |(name, policy)| ((kind, name.clone()), policy.clone()))
    });
    all.collect()
}

/// What holds for each queue is what the settings it has of its own and the policies say. That these are as they were asked for is what the
/// other checkers see.
pub(crate) fn check(book: &Book, broker: &Broker) -> Checked {
    for queue in book.settings.keys() {
        let Some(name) = broker.name(*queue) else { continue };
        let is = broker.settings(name).expect("a named queue has settings");
        let own = broker.own_settings(name).expect("a named queue has settings");
        let expected = holds(name, own, &book.policies);
        hold(*is == expected, Promise::Kept, || {
            format!("for queue {name} these settings hold: {is:?}, not {expected:?}")
        })?;
    }
    Ok(())
}
