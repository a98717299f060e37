//! *Cap*, of rates: in no time more goes than a rate allows.

use std::collections::BTreeMap;

use overtake_lane::{QueueId, RateLimit, Time};

use crate::book::Book;
use crate::failure::{Checked, Promise, hold};
use crate::keys::Group;
use crate::round::Round;

/// When what went should have come, if all had come evenly: the generic cell rate algorithm (ITU-T I.371, annex A), in units of which
/// a message takes `per_ms`.
#[derive(Debug, Default)]
pub(crate) struct Rates {
    queues: BTreeMap<QueueId, Arrivals>,
    now: Time,
}

#[derive(Debug, Default)]
struct Arrivals {
    limits: (Option<RateLimit>, Option<RateLimit>),
    all: u128,
    groups: BTreeMap<Group, u128>,
}

impl Rates {
    /// What went in a life before is not counted: a broker begins without tokens.
    pub(crate) fn recovered(&mut self) {
        *self = Self::default();
    }

    /// After each step: where another rate holds, it is counted anew.
    pub(crate) fn look(&mut self, now: Time, book: &Book) {
        // A clock that goes back is not believed.
        self.now = self.now.max(now);
        for (queue, settings) in &book.settings {
            let limits = (settings.rate_limit, settings.key_rate_limit);
            let seen = self.queues.entry(*queue).or_default();
            if seen.limits != limits {
                *seen = Arrivals { limits, ..Arrivals::default() };
            }
        }
    }

    pub(crate) fn check(&mut self, round: &Round<'_>) -> Checked {
        let now = self.now;
        let seen = self.queues.entry(round.queue).or_default();
        let limits = seen.limits;
        for (pick, _) in &round.picks {
            let of_group = pick.group.map(|group| seen.groups.entry(group).or_default());
            let of_key = limits.1.zip(of_group);
            for (limit, arrival) in limits.0.map(|limit| (limit, &mut seen.all)).into_iter().chain(of_key) {
                conforms(now, limit, arrival, round, pick.seq.0)?;
            }
        }
        Ok(())
    }
}

fn conforms(now: Time, limit: RateLimit, arrival: &mut u128, round: &Round<'_>, seq: u64) -> Checked {
    let now = u128::from(now.0) * u128::from(limit.messages);
    let each = u128::from(limit.per_ms);
    let is_early = now + each * u128::from(limit.messages - 1) < *arrival;
    *arrival = now.max(*arrival) + each;
    hold(!is_early, Promise::Cap, || {
        format!("queue {} leased {seq} quicker than {limit:?} allows", round.queue.0)
    })
}
