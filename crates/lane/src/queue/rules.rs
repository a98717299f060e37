//! Settings that change while messages wait: each stands where its priority and its age put it under the new ones.

use std::sync::Arc;

use super::{Queue, key_index};
use crate::command::Step;
use crate::entries::{Entry, Slot};
use crate::fact::Fact;
use crate::groups::{Groups, Terms};
use crate::ids::{Seq, Time};
use crate::lane::Lanes;
use crate::message::{Settled, State};
use crate::picker::Picker;
use crate::policy::Ruled;
use crate::priority::{Priority, Scheme};
use crate::rate::Bucket;
use crate::refusal::Refusal;
use crate::run::{Run, RunId};
use crate::settings::{Order, Overflow, Settings};

impl Queue {
    /// Whether changing to these settings would leave messages misunderstood. Its own scheme is fixed; that of a policy maps what
    /// comes from now on, and means by a number what its own means.
    ///
    /// # Errors
    /// [`Refusal::SettingFixed`] with the key, [`Refusal::TooManyLanes`].
    pub(crate) fn check_settings(&self, ruled: &Ruled) -> Result<(), Refusal> {
        if self.is_empty() {
            return Ok(());
        }
        let (own, new) = (self.own(), ruled.own.as_ref().unwrap_or(&ruled.settings));
        if let Some(fixed) = own.fixed_change(new) {
            return Err(Refusal::SettingFixed(fixed));
        }
        match (&ruled.settings.order, &self.settings.order) {
            (Order::Priority, Order::Priority) => Ok(()),
            (Order::Priority, _) => self.check_lane_count(),
            _ => Ok(()),
        }
    }

    fn check_lane_count(&self) -> Result<(), Refusal> {
        let mut priorities = std::collections::BTreeSet::new();
        // A lane is kept for each of these.
        priorities.extend(self.settings.scheme.kept().iter().map(|(_, kept)| Priority(*kept)));
        for (_, message) in self.messages_from(Seq(0)) {
            priorities.insert(message.priority);
            if priorities.len() > crate::LANES_MAX {
                return Err(Refusal::TooManyLanes);
            }
        }
        Ok(())
    }

    /// Whether this holds already.
    pub(crate) fn is_ruled(&self, ruled: &Ruled) -> bool {
        let Ruled { settings, own, policy, operator_policy, without_effect } = ruled;
        (settings, own) == (&self.settings, &self.own)
            && (policy, operator_policy) == (&self.policy, &self.operator_policy)
            && *without_effect == self.without_effect
    }

    /// Something else holds from now on. Where that means other lanes, what waits in runs is fetched.
    pub(crate) fn rule(&mut self, ruled: Ruled) {
        if self.take_rules(ruled) {
            self.bring_all();
            // What cannot be read.
            let runs: Vec<RunId> = self.runs.keys().copied().collect();
            let runs: Vec<Run> = runs.into_iter().filter_map(|id| self.withdraw_run(id)).collect();
            self.change_lanes();
            for run in runs {
                self.enter_run(&run.record());
                self.keep_quarantine(run.id, run);
            }
        }
        if self.groups.is_some() {
            self.bring_all();
        }
    }

    /// The same during a recovery. What waits in runs stays there: which of them were fetched is said by facts. Until it is over,
    /// runs of a lane may overlap.
    pub(crate) fn fold_rule(&mut self, ruled: Ruled) {
        if self.take_rules(ruled) {
            let runs: Vec<RunId> = self.runs.keys().copied().collect();
            let mut strays = Vec::new();
            for id in runs {
                self.settle_down(id);
                let run = self.remove_run(id).expect("it was just there");
                strays.push((Arc::clone(&self.lanes.lane(run.lane).name), run));
            }
            self.change_lanes();
            for (left, run) in strays {
                self.strays.insert(run.id, left);
                self.add_run(&run.record());
                self.keep_quarantine(run.id, run);
            }
        }
    }

    /// A run is of the lane that it is in, if it was a stray: counted as if each of its messages had moved there.
    pub(crate) fn settle_down(&mut self, id: RunId) {
        if let (Some(left), Some(run)) = (self.strays.remove(&id), self.runs.get(&id)) {
            for _ in 0..run.waiting() {
                self.lanes.count_moved(&left, run.lane);
            }
        }
    }

    /// After a recovery: that these runs were fetched was on its way to the disk when the broker ended.
    pub(crate) fn bring_strays(&mut self) {
        for id in self.strays.keys().copied().collect::<Vec<_>>() {
            self.bring_run(id);
            self.settle_down(id);
        }
    }

    /// True: its lanes are other ones now.
    fn take_rules(&mut self, ruled: Ruled) -> bool {
        let Ruled { settings, own, policy, operator_policy, without_effect } = ruled;
        (self.policy, self.operator_policy, self.without_effect) = (policy, operator_policy, without_effect);
        self.own = own;
        let before = std::mem::replace(&mut self.settings, settings);
        self.roster.set_single(self.settings.single_active_consumer);
        self.roster.set_most_held(self.settings.most_unacked());
        if before.last_value != self.settings.last_value {
            self.by_key = key_index(&self.settings, self.seed);
        }
        if before.picker != self.settings.picker {
            self.picker = Picker::new(&self.settings.picker);
        }
        self.bucket = match (self.bucket.take(), self.settings.rate_limit) {
            (Some(mut bucket), Some(rate)) => {
                bucket.change(rate);
                Some(bucket)
            }
            (_, rate) => rate.map(Bucket::full),
        };
        self.regroup();
        let is_same = has_lanes_of(&before, &self.settings);
        if is_same {
            self.lanes.apply_settings(&self.settings);
        }
        !is_same
    }

    /// What the settings say of keys holds for what is in memory.
    fn regroup(&mut self) {
        match (&mut self.groups, Terms::of(&self.settings)) {
            (Some(groups), Some(terms)) => groups.set_terms(terms),
            (Some(_), None) => self.groups = None,
            (None, None) => {}
            (None, Some(terms)) => {
                let mut groups = Box::new(Groups::new(terms, self.seed));
                for slot in self.by_seq.from(Seq(0)) {
                    let Entry { message, lane, spilling, .. } = &mut self.entries[slot];
                    // What is on its way out of memory stays.
                    *spilling = false;
                    match message.state {
                        State::Ready => groups.enter(message.key(), *lane, message.seq),
                        State::Leased { .. } => groups.lend(message.key()),
                        State::Delayed { .. } | State::Dead => {}
                    }
                }
                self.groups = Some(groups);
            }
        }
    }

    /// A broker begins: what was leased before is not known, so what goes at a rate has no token yet.
    pub(crate) fn begin(&mut self, now: Time) {
        self.bucket = self.settings.rate_limit.map(|rate| Bucket::empty(rate, now));
        if let Some(groups) = &mut self.groups {
            groups.start_again(now);
            // That they were fetched was on its way to the disk.
            self.bring_all();
        }
    }

    fn change_lanes(&mut self) {
        let slots = match &self.handed {
            Some(handed) => handed.slots(),
            None => self.by_seq.from(Seq(0)).collect::<Vec<Slot>>(),
        };
        for slot in &slots {
            self.detach(*slot);
        }
        let lanes = Lanes::new(&self.settings);
        let before = std::mem::replace(&mut self.lanes, lanes);
        let left: Vec<u16> = slots.iter().map(|slot| self.entries[*slot].lane).collect();
        self.picker.ranks_changed(None);
        for slot in &slots {
            self.enter_lane(*slot);
            // At once: a lane with nothing in it may give way to another.
            self.attach(*slot);
        }
        self.lanes.inherit(&before);
        for (slot, left) in slots.into_iter().zip(left) {
            self.lanes.count_moved(&before.lane(left).name, self.entries[slot].lane);
        }
    }

    /// Comes within the limits of a policy that is new: the least urgent messages go, of them the oldest first, as many as the step has room
    /// for and the rest later. Where its own limits are lowered nothing is dropped before the next message comes.
    pub(crate) fn begin_trimming(&mut self, step: &mut Step) {
        self.is_trimming = true;
        self.trim(step);
    }

    /// Goes on with coming within its limits.
    pub(super) fn trim(&mut self, step: &mut Step) {
        while self.is_trimming && (step.room > 0 || !self.has_too_many()) {
            self.is_trimming = self.has_too_many() && self.evict_next(step);
        }
    }

    /// Whether it evicts and is over its limits.
    fn has_too_many(&self) -> bool {
        self.settings.overflow == Overflow::Evict && self.is_over(self.waiting, self.waiting_bytes)
    }

    /// Evicts the least urgent message, or all that waits in a run. False: there is none, or it cannot be read.
    fn evict_next(&mut self, step: &mut Step) -> bool {
        step.room -= 1;
        let Some(least) = self.lanes.ready().last() else { return false };
        if self.evict_run(least, step) {
            return true;
        }
        let victim = self.load(least, 1).then(|| self.lanes.at_rank(least).head(&self.entries));
        let Some(victim) = victim.flatten() else { return false };
        self.let_pay(victim, step);
        true
    }

    /// Drops the oldest messages of a lane at once, if they are all that waits in a run, and nobody wants them. False: they are not.
    fn evict_run(&mut self, rank: usize, step: &mut Step) -> bool {
        let lane = self.lanes.at_rank(rank);
        let Some((_, id)) = lane.runs.first().copied() else { return false };
        let run = &self.runs[&id];
        let head = lane.head(&self.entries).map(|slot| self.entries[slot].message.seq);
        let is_oldest = head.is_none_or(|head| head > run.last);
        let is_dropped = !self.leaves_evicted();
        let is_over_without = self.is_over(self.waiting - run.waiting(), self.waiting_bytes - run.bytes);
        if !(is_oldest && is_dropped && is_over_without) {
            return false;
        }
        self.settle_run(id, Settled::Evicted, step);
        step.facts.push(Fact::RunSettled { queue: self.id, run: id, how: Settled::Evicted });
        true
    }
}

/// Whether these settings make the same lanes for the same priorities, of the same names.
fn has_lanes_of(before: &Settings, now: &Settings) -> bool {
    let are_numbered = |settings: &Settings| matches!(settings.scheme, Scheme::Max(_));
    before.order == now.order
        && match &now.order {
            Order::Fifo => true,
            Order::Priority => before.scheme == now.scheme || (are_numbered(before) && are_numbered(now)),
            Order::Lanes(_) => before.scheme == now.scheme,
        }
}
