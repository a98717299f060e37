//! The promises, one checker each. They see what clients see and what a broker shows of itself, never how it works.

pub(crate) mod aside;
pub(crate) mod awake;
pub(crate) mod bounded;
pub(crate) mod budget;
pub(crate) mod cap;
pub(crate) mod conserved;
pub(crate) mod denied;
pub(crate) mod expiry;
pub(crate) mod gone;
pub(crate) mod kept;
pub(crate) mod looks;
pub(crate) mod metadata;
pub(crate) mod one_holder;
pub(crate) mod order;
pub(crate) mod patience;
pub(crate) mod pick;
pub(crate) mod policies;
pub(crate) mod rate;
pub(crate) mod refold;
pub(crate) mod route;
pub(crate) mod route_counts;
pub(crate) mod routes;
pub(crate) mod vhosts;

use std::collections::BTreeSet;

use overtake_engine::Refused;
use overtake_engine::core::{Answer, Request};
use overtake_lane::{Message, QueueId, Seq, Time, VhostId};

use crate::audit::Audit;

/// One step of an engine, as the checkers see it.
pub(crate) struct Step<'a> {
    pub(crate) now: Time,
    /// Where it was asked.
    pub(crate) vhost: VhostId,
    /// What was asked, by whomever; `None` when time passed.
    pub(crate) request: Option<&'a Request>,
    /// What was answered, whenever that is told; `None` for whoever waits for messages.
    pub(crate) result: Option<&'a Result<Answer, Refused>>,
    pub(crate) before: &'a Audit,
    pub(crate) after: &'a Audit,
    /// What was settled as it was given.
    pub(crate) given: &'a BTreeSet<(QueueId, Seq)>,
}

impl Step<'_> {
    /// Messages that came by being published, those given at once not among them.
    pub(crate) fn arrivals(&self) -> impl Iterator<Item = (QueueId, &Message)> {
        self.newest().filter(|(_, message)| message.home().is_none())
    }

    /// Messages that came, by whichever way.
    pub(crate) fn newest(&self) -> impl Iterator<Item = (QueueId, &Message)> {
        self.after.queues.iter().flat_map(|(queue, seen)| {
            let next = self.before.queues.get(queue).map_or(Seq(0), |seen| seen.next_seq);
            let newest = seen.messages.iter().rev().take_while(move |message| message.seq >= next);
            newest.map(move |message| (*queue, message))
        })
    }
}

/// The checkers that remember something.
#[derive(Debug, Default)]
pub(crate) struct Checks {
    pub(crate) kept: kept::Kept,
    pub(crate) gone: gone::Gone,
    pub(crate) looks: looks::Looks,
    pub(crate) metadata: metadata::Remembered,
    pub(crate) vhosts: vhosts::Declared,
    pub(crate) policies: policies::Ruling,
    pub(crate) routes: routes::Routes,
    pub(crate) denied: denied::Denied,
    pub(crate) pick: pick::Pick,
    pub(crate) rates: rate::Rates,
    pub(crate) refold: refold::Snapshots,
    pub(crate) patience: patience::Patience,
}
