//! Who is served where only one consumer is, told from who comes and goes: the oldest of the highest priority. It stays until
//! it is gone; when a more urgent one has come it gets no more, and gives up its place as soon as it holds nothing.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use overtake_lane::{ConsumerId, QueueId};

use crate::book::Taker;

/// The queues of which only one consumer is served.
#[derive(Debug, Default)]
pub(crate) struct Singles(BTreeMap<QueueId, Single>);

#[derive(Clone, Copy, Debug, Default)]
struct Single {
    active: Option<ConsumerId>,
    /// It gets no more.
    is_leaving: bool,
}

impl Singles {
    /// Whether a consumer is served.
    pub(crate) fn serves(&self, queue: QueueId, consumer: ConsumerId) -> bool {
        self.0.get(&queue).is_none_or(|single| !single.is_leaving && single.active == Some(consumer))
    }

    /// Somebody came, went, or holds less.
    pub(crate) fn elect(&mut self, queue: QueueId, is_single: bool, takers: &BTreeMap<ConsumerId, Taker>) {
        if !is_single {
            self.0.remove(&queue);
            return;
        }
        let single = self.0.entry(queue).or_default();
        let here = || {
            let of_it = takers.iter().filter(|(_, taker)| taker.queue == queue);
            of_it.filter(|(_, taker)| taker.stays() && !taker.is_stopped)
        };
        // Numbers of consumers ascend as they come.
        let best = here().min_by_key(|(id, taker)| (Reverse(taker.priority), **id));
        let active = single.active.and_then(|id| takers.get(&id)).filter(|taker| taker.queue == queue);
        let active = active.filter(|taker| taker.is_retired || (taker.stays() && !taker.is_stopped));
        let stands = active.is_some_and(|active| {
            !active.is_retired && best.is_none_or(|(_, best)| active.priority >= best.priority)
        });
        let holds =
            active.is_some_and(|taker| !taker.no_ack && taker.window.is_some_and(|window| window.held > 0));
        single.is_leaving = !stands && holds;
        if !stands && !holds {
            single.active = best.map(|(id, _)| *id);
        }
    }
}
