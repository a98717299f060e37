//! What may come of a step, and what may not.

use std::collections::BTreeSet;

use overtake_lane::{
    ConsumerId, Delivery, Effect, Fact, MessageView, Order, Outcome, PickerKind, Priority, QueueId,
    QueueView, Seq, Status, Step,
};

use super::drawing::*;
use super::world::*;

impl World {
    pub(super) fn judge(&mut self, before: &Snapshot, step: &Step, licence: &Licence) {
        for effect in &step.effects {
            match effect {
                Effect::Served { consumer } | Effect::Cancelled { consumer } => {
                    assert!(self.takers.remove(consumer).is_some(), "{consumer:?} ended and was not there");
                }
                Effect::TimedOut { consumer, .. } => {
                    if let Some(taker) = self.takers.get_mut(consumer) {
                        taker.is_stopped = true;
                    }
                }
                Effect::Deliver(delivery) if delivery.settled.is_some() => {
                    if let Some(taker) = self.takers.get_mut(&delivery.consumer) {
                        taker.unread += 1;
                        assert!(taker.unread <= taker.window, "{taker:?} has more to read than it may");
                    }
                }
                _ => {}
            }
        }
        for fact in &step.facts {
            if let Fact::QueueDeleted { queue } = fact {
                assert!(
                    licence.removes || licence.bounds || self.passing.contains(queue),
                    "{queue:?} went without a reason"
                );
            }
        }
        let passing = self.watch.broker.all_views(self.watch.now).filter(|view| {
            !view.identity.is_lasting()
                || view.identity.auto_delete
                || view.effective_settings().expires_ms > 0
        });
        self.passing = passing.map(|view| view.queue).collect();
        let after = self.snapshot();
        for (at, view) in before {
            self.judge_move(view, after.get(at), *at, step, licence);
        }
        let new = after.iter().filter(|(at, _)| !before.contains_key(at));
        for (at, view) in new {
            let told = step.facts.iter().any(|fact| match fact {
                Fact::Stored { queue, message } => licence.publishes && (*queue, message.seq) == *at,
                Fact::Moved { to, .. } => to.iter().any(|to| (to.queue, to.message.seq) == *at),
                _ => false,
            });
            assert!(told, "{view:?} came from nowhere");
        }
        let deliveries = step.effects.iter().filter_map(|effect| match effect {
            Effect::Deliver(delivery) if delivery.settled.is_none() => Some(delivery.clone()),
            _ => None,
        });
        self.deliveries.extend(deliveries);
        if licence.removes {
            self.withdraw(before, &after);
        }
        let held: Vec<ConsumerId> = self.left.keys().copied().collect();
        for consumer in held {
            if self.held_by(consumer, &after) == 0 {
                self.left.remove(&consumer);
            }
        }
        self.judge_leases(&after, step, &late_letters(before, step));
    }

    /// The picture of a message's life: which arrows are there, and what must have happened for each.
    pub(super) fn judge_move(
        &self,
        view: &MessageView,
        after: Option<&MessageView>,
        at: (QueueId, Seq),
        step: &Step,
        licence: &Licence,
    ) {
        let now = self.watch.now;
        let expired = view.expires.is_some_and(|expires| expires <= now);
        let mut settlements =
            licence.settled.iter().filter(|(receipt, _)| (receipt.queue, receipt.seq) == at);
        let released = settlements.clone().any(|(_, outcome)| *outcome == Outcome::Release);
        let settled = settlements.next().is_some();
        let over = view.deadline.is_some_and(|deadline| deadline <= now);
        let lost = licence.cancels || licence.restarts;
        let deleted = |fact: &Fact| matches!(fact, Fact::QueueDeleted { queue } if *queue == at.0);
        let is_given_away = |effect: &Effect| matches!(effect, Effect::Deliver(given) if (given.receipt.queue, given.receipt.seq) == at && given.settled.is_some());
        if after.is_none() && (step.facts.iter().any(deleted) || step.effects.iter().any(is_given_away)) {
            return;
        }
        let ended = settled || over || lost;
        let delivered = step.effects.iter().any(|effect| {
            matches!(effect, Effect::Deliver(delivery) if (delivery.receipt.queue, delivery.receipt.seq) == at)
        });
        let moves_in = step.facts.iter().any(|fact| matches!(fact, Fact::Moved { .. }));
        let crowded = licence.publishes || licence.replays || moves_in;
        let Some(after) = after else {
            let may = match view.status {
                Status::Ready if licence.bounds => true,
                Status::Ready | Status::Delayed => expired || crowded || licence.removes || licence.restarts,
                Status::Leased => ended || licence.removes,
                Status::Dead => licence.removes || licence.replays,
            };
            assert!(may, "{view:?} vanished");
            return;
        };
        let due = view.due.is_some_and(|due| due <= now);
        let may = match (view.status, after.status) {
            (Status::Ready | Status::Leased | Status::Dead, same) if same == view.status && !delivered => {
                true
            }
            (Status::Delayed, Status::Delayed) => true,
            (Status::Ready, Status::Leased) => delivered,
            (Status::Ready, Status::Dead) => expired || crowded || licence.bounds,
            (Status::Delayed, Status::Ready) => due,
            (Status::Delayed, Status::Leased) => due && delivered,
            (Status::Delayed, Status::Dead) => expired || (due && crowded),
            (Status::Leased, Status::Ready | Status::Delayed | Status::Dead) => ended,
            (Status::Leased, Status::Leased) => ended && delivered,
            (Status::Dead, Status::Ready) => licence.replays,
            (Status::Dead, Status::Leased) => licence.replays && delivered,
            _ => false,
        };
        assert!(may, "{:?} became {:?}: {view:?}", view.status, after.status);
        let first = |view: &MessageView| self.watch.first_place(view.place);
        assert_eq!(
            (after.since, after.bytes, &after.key, &after.id, first(after)),
            (view.since, view.bytes, &view.key, &view.id, first(view)),
            "what no step may change"
        );
        if !licence.reprioritises && !licence.replays {
            assert_eq!((after.level, &after.priority), (view.level, &view.priority));
        }
        if !licence.replays {
            assert_eq!(after.expires, view.expires, "the expiry is stamped at publish");
            let least = view.count - u32::from(released && view.status == Status::Leased);
            assert!(
                after.count >= least || licence.restarts,
                "only a release takes a delivery from the count"
            );
        }
        if view.status == Status::Leased && after.status == Status::Leased && !licence.extends && !delivered {
            assert_eq!(after.deadline, view.deadline);
        }
    }

    pub(super) fn judge_leases(&self, after: &Snapshot, step: &Step, late: &BTreeSet<(QueueId, Seq)>) {
        for queue in self.watch.broker.all_views(self.watch.now) {
            let settings = queue.effective_settings();
            let here = || after.iter().filter(|((id, _), _)| *id == queue.queue).map(|(_, view)| view);
            let leased = here().filter(|view| view.status == Status::Leased).count() as u64;
            let lane = |view: &MessageView| {
                queue.lanes.iter().find(|lane| lane.lane == view.lane).expect("every message has a lane")
            };
            let capped = |view: &MessageView| {
                let lane = lane(view);
                lane.max_active > 0 && lane.leased >= u64::from(lane.max_active)
            };
            let full = settings.paused || settings.max_active > 0 && leased >= u64::from(settings.max_active);
            let keyed = |view: &MessageView| view.key.as_deref().is_some_and(|key| !key.is_empty());
            let of_key = |key: &Option<String>| {
                here().filter(|view| view.status == Status::Leased && view.key == *key).count() as u64
            };
            // Nothing is known here of tokens.
            let held_back = |view: &MessageView| {
                let limit = u64::from(settings.out_per_key());
                keyed(view)
                    && (settings.key_rate_limit.is_some() || (limit > 0 && of_key(&view.key) >= limit))
            };
            let given: Vec<&Delivery> = step
                .effects
                .iter()
                .filter_map(|effect| match effect {
                    Effect::Deliver(delivery) if delivery.receipt.queue == queue.queue => Some(delivery),
                    _ => None,
                })
                .collect();
            assert!(!self.held || given.is_empty(), "leases were held");
            for delivery in &given {
                let Some(view) = after.get(&(queue.queue, delivery.receipt.seq)) else { continue };
                let cap = u64::from(settings.max_active);
                assert!(cap == 0 || leased <= cap, "over the cap of {cap}");
                assert!(!settings.paused, "leased from a paused queue");
                assert!(
                    lane(view).max_active == 0 || lane(view).leased <= u64::from(lane(view).max_active),
                    "over a lane's cap"
                );
                let limit = u64::from(settings.out_per_key());
                assert!(
                    limit == 0 || !keyed(view) || of_key(&view.key) <= limit,
                    "over the limit of a group"
                );
                let came_before = |other: &&MessageView| !late.contains(&(queue.queue, other.seq));
                for other in here().filter(|other| other.status == Status::Ready).filter(came_before) {
                    assert!(
                        other.lane != view.lane
                            || other.seq > view.seq
                            || settings.fair_keys
                            || held_back(other),
                        "{view:?} went before {other:?} of its lane"
                    );
                    let outranks = lane(other).level > lane(view).level;
                    let strict = settings.picker == PickerKind::Strict;
                    assert!(
                        !strict || !outranks || capped(other) || held_back(other),
                        "{view:?} went before {other:?}, which outranks it"
                    );
                }
            }
            let speaks_of_keys =
                settings.out_per_key() > 0 || settings.key_rate_limit.is_some() || settings.fair_keys;
            if settings.picker == PickerKind::Strict && !speaks_of_keys {
                let seqs = || given.iter().map(|delivery| (queue.queue, delivery.receipt.seq));
                let has_gone = seqs().any(|at| !after.contains_key(&at));
                let views: Vec<&MessageView> =
                    seqs().filter(|at| !late.contains(at)).filter_map(|at| after.get(&at)).collect();
                let sorted = views.is_sorted_by_key(|view| (-lane(view).level, view.seq));
                assert!(sorted || has_gone, "leased out of order: {views:?}");
            }
            for delivery in &given {
                let Some(got) = self.takers.get(&delivery.consumer) else { continue };
                let better = self.takers.iter().find(|(id, taker)| {
                    taker.priority > got.priority
                        && (taker.vhost, &taker.queue) == (got.vhost, &got.queue)
                        && !settings.single_active_consumer
                        && self.has_window(**id, taker, after, 0)
                });
                assert!(better.is_none(), "{got:?} was served and {better:?} had room");
            }
            self.judge_single(&queue, &given);
            // Nothing that somebody has room for is left lying.
            for view in here().filter(|view| {
                view.status == Status::Ready
                    && !full
                    && !capped(view)
                    && !held_back(view)
                    && settings.rate_limit.is_none()
                    && !self.held
            }) {
                let wanted =
                    self.takers.iter().find(|(id, taker)| self.has_room(**id, taker, &queue, view, after));
                assert!(wanted.is_none(), "{view:?} lies there and {wanted:?} waits");
            }
        }
    }

    pub(super) fn has_room(
        &self,
        id: ConsumerId,
        taker: &Taker,
        queue: &QueueView,
        view: &MessageView,
        after: &Snapshot,
    ) -> bool {
        if (taker.vhost, &taker.queue) != (queue.vhost, &queue.name) || !self.may_be_served(id, taker, after)
        {
            return false;
        }
        self.has_window(id, taker, after, 0)
            || taker.urgent.filter(|_| !taker.terms.no_ack).is_some_and(|urgent| {
                let level = match queue.settings.order {
                    Order::Priority => view.level,
                    _ => Priority(i32::MIN),
                };
                level >= urgent.at && self.has_window(id, taker, after, urgent.extra)
            })
    }

    /// Whether its windows have room, its own and the one it shares, with so much extra.
    pub(super) fn has_window(&self, id: ConsumerId, taker: &Taker, after: &Snapshot, extra: u32) -> bool {
        if !taker.stays || taker.is_stopped || taker.terms.no_ack {
            let has_room = taker.unread < taker.window && self.has_shared(taker.terms, after, 0);
            return !taker.stays || (!taker.is_stopped && has_room);
        }
        self.taken_by(id, after) < taker.window + extra && self.has_shared(taker.terms, after, extra)
    }

    pub(super) fn has_shared(&self, terms: Terms, after: &Snapshot, extra: u32) -> bool {
        let Some(number) = terms.shared else { return true };
        let Some(size) = self.windows.get(&window_of(terms.session, number)).filter(|size| **size > 0) else {
            return true;
        };
        let shares =
            |other: Terms| (other.session, other.shared) == (terms.session, terms.shared) && !other.no_ack;
        let stay = self.takers.iter().map(|(id, taker)| (*id, taker.terms));
        let all = stay.chain(self.left.iter().map(|(id, terms)| (*id, *terms)));
        let held: u32 = all.filter(|(_, other)| shares(*other)).map(|(id, _)| self.taken_by(id, after)).sum();
        held < size + extra
    }

    /// Where one is served alone: whether this is surely the one, the first in rank while no other holds anything.
    pub(super) fn may_be_served(&self, id: ConsumerId, taker: &Taker, after: &Snapshot) -> bool {
        let there = self.watch.broker.settings(taker.vhost, &taker.queue);
        let is_single = there.is_ok_and(|is| is.single_active_consumer);
        if !is_single || !taker.stays {
            return true;
        }
        let others = || {
            self.takers.iter().filter(|(other, there)| {
                **other != id
                    && there.stays
                    && !there.is_stopped
                    && (there.vhost, &there.queue) == (taker.vhost, &taker.queue)
            })
        };
        let rank = |taker: &Taker| (-taker.priority, taker.joined);
        others().all(|(other, there)| rank(there) > rank(taker) && self.held_by(*other, after) == 0)
    }

    /// Where one is served alone, one was.
    pub(super) fn judge_single(&self, queue: &QueueView, given: &[&Delivery]) {
        if queue.effective_settings().single_active_consumer {
            let stays =
                |delivery: &&&Delivery| self.takers.get(&delivery.consumer).is_some_and(|taker| taker.stays);
            let served: BTreeSet<ConsumerId> =
                given.iter().filter(stays).map(|delivery| delivery.consumer).collect();
            assert!(served.len() <= 1, "{served:?} were served in one step");
        }
    }

    /// Notes what was taken from consumers that stay: it keeps its place in the window until they settle it.
    fn withdraw(&mut self, before: &Snapshot, after: &Snapshot) {
        let held = |at: &(QueueId, Seq)| before.get(at).is_some_and(|view| view.status == Status::Leased);
        let mut seen = BTreeSet::new();
        for Delivery { consumer, receipt, .. } in self.deliveries.iter().rev() {
            let at = (receipt.queue, receipt.seq);
            if seen.insert(at)
                && held(&at)
                && !after.contains_key(&at)
                && let Some(taker) = self.takers.get_mut(consumer).filter(|taker| taker.stays)
            {
                taker.withdrawn.insert(*receipt);
            }
        }
    }

    /// How much of its window a consumer has taken.
    fn taken_by(&self, id: ConsumerId, after: &Snapshot) -> u32 {
        let withdrawn = self.takers.get(&id).map_or(0, |taker| taker.withdrawn.len());
        self.held_by(id, after) + withdrawn as u32
    }

    /// How many messages a consumer holds.
    pub(super) fn held_by(&self, id: ConsumerId, after: &Snapshot) -> u32 {
        let held = self.deliveries.iter().filter(|delivery| {
            delivery.consumer == id && {
                let at = (delivery.receipt.queue, delivery.receipt.seq);
                let newest = self.deliveries.iter().rev().find(|d| (d.receipt.queue, d.receipt.seq) == at);
                newest.is_some_and(|newest| newest.receipt == delivery.receipt)
                    && after.get(&at).is_some_and(|view| view.status == Status::Leased)
            }
        });
        held.count() as u32
    }
}

/// Where the dead letters are of what was to be taken at once, which dies when everything that could be leased is, and of what these
/// evict.
fn late_letters(before: &Snapshot, step: &Step) -> BTreeSet<(QueueId, Seq)> {
    let mut is_late = false;
    let letters = step.facts.iter().filter_map(|fact| match fact {
        Fact::Moved { from, seq, to } => {
            let waited = before.get(&(*from, *seq)).is_some_and(|view| view.status != Status::Leased);
            is_late |= !waited;
            is_late.then_some(to)
        }
        _ => None,
    });
    letters.flatten().map(|to| (to.queue, to.message.seq)).collect()
}
