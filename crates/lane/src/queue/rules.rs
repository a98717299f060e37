//! Settings that change while messages wait: each will stand where its priority and its age put it under the new ones.

use super::{Queue, key_index};
use crate::command::Step;
use crate::fact::Fact;
use crate::groups::{Groups, Terms};
use crate::ids::{Seq, Time};
use crate::message::{Settled, State};
use crate::picker::Picker;
use crate::policy::Ruled;
use crate::priority::{Priority, Scheme};
use crate::rate::Bucket;
use crate::refusal::Refusal;
use crate::settings::{Order, Overflow, Settings};

/// At most so many messages are looked at to see whether there are more priorities than lanes.
const LANE_COUNT_LOOKS: usize = 4 << 10;

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

    /// Whether the messages find a lane for each priority, as far as the first ones tell. Of a deeper queue those for which no lane is left share the nearest.
    fn check_lane_count(&self) -> Result<(), Refusal> {
        let mut priorities = std::collections::BTreeSet::new();
        // A lane is kept for each of these.
        priorities.extend(self.settings.scheme.kept().iter().map(|(_, kept)| Priority(*kept)));
        for (_, message) in self.messages_from(Seq(0)).take(LANE_COUNT_LOOKS) {
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

    /// Something else holds from now on. Where that means other lanes, messages wait in [former ones](Queue::move_former).
    pub(crate) fn rule(&mut self, ruled: Ruled) {
        let has_other_lanes = self.take_rules(ruled);
        let is_grouped_anew = self.regroup();
        if is_grouped_anew {
            self.lanes.ungroup(0);
        }
        if has_other_lanes || is_grouped_anew {
            self.replace_lanes(!has_other_lanes);
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
        let is_same = has_lanes_of(&before, &self.settings);
        if is_same {
            self.lanes.apply_settings(&self.settings);
        }
        !is_same
    }

    /// What the settings say of keys holds from now on. True: it is something else than before, so messages that are there are to be counted anew.
    fn regroup(&mut self) -> bool {
        let terms = Terms::of(&self.settings);
        if let Some(groups) = &mut self.groups {
            groups.weigh(&self.settings.key_weights);
        }
        if self.groups.as_ref().map(|groups| groups.terms()) == terms {
            return false;
        }
        let before = self.groups.take();
        let Some(terms) = terms else {
            self.spent.extend(before.map(|before| *before));
            return false;
        };
        let groups =
            before.map(|before| before.anew(terms)).or_else(|| Groups::new(&self.settings, self.seed));
        self.groups = groups.map(Box::new);
        !self.is_empty()
    }

    /// Goes on with taking over what groups knew before the settings said something else of keys, and frees the rest.
    pub(super) fn tidy_groups(&mut self, room: &mut usize) {
        if let Some(groups) = &mut self.groups {
            while *room > 0 && groups.carry() {
                *room -= 1;
            }
            self.spent.extend(groups.take_spent().map(|spent| *spent));
        }
        while *room > 0
            && let Some(spent) = self.spent.last_mut()
        {
            spent.clear(room);
            if spent.is_clear() {
                self.spent.pop();
            }
        }
    }

    /// Whether [`Queue::tidy_groups`] has more to do.
    pub(super) fn has_spent(&self) -> bool {
        !self.spent.is_empty() || self.groups.as_ref().is_some_and(|groups| groups.has_before())
    }

    /// A broker begins: what was leased before is not known, so what goes at a rate has no token yet.
    pub(crate) fn begin(&mut self, now: Time) {
        // The log says what lanes there were.
        self.has_untold_lanes = false;
        self.bucket = self.settings.rate_limit.map(|rate| Bucket::empty(rate, now));
        self.count_groups(now);
    }

    /// Groups know what a recovery found: but for what moves out of former lanes later.
    fn count_groups(&mut self, now: Time) {
        let Some(mut groups) = self.groups.as_ref().map(|groups| groups.started_again(now)) else { return };
        self.lanes.ungroup(self.lanes.current());
        for (lane, message) in self.messages_from(Seq(0)) {
            match message.state {
                _ if self.lanes.lane(lane).is_ungrouped => {}
                State::Ready => groups.enter(&message, lane),
                State::Leased { .. } => groups.lend(&message),
                State::Delayed { .. } | State::Dead => {}
            }
        }
        let before = self.groups.replace(Box::new(groups));
        self.spent.extend(before.map(|before| *before));
    }

    /// Comes within the limits of a policy that is new: the least urgent messages go, of them the oldest first, as many as the step has room
    /// for and the rest later. Where its own limits are lowered nothing is dropped before the next message comes.
    pub(crate) fn begin_trimming(&mut self, step: &mut Step) {
        self.is_trimming = true;
        self.trim(step);
    }

    /// Goes on with coming within its limits. What is least urgent is known when nothing is in former lanes any more.
    pub(super) fn trim(&mut self, step: &mut Step) {
        if self.has_former() {
            return;
        }
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
        let Some(least) = self.lanes.least() else { return false };
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
        let mut runs = lane.runs.iter();
        let Some((_, id)) = runs.next().copied() else { return false };
        let run = &self.runs[&id];
        let head = lane.head(&self.entries).map(|slot| self.entries[slot].message.seq);
        let others = head.into_iter().chain(runs.next().map(|(first, _)| *first));
        let is_oldest = others.min().is_none_or(|other| other > run.last);
        let is_dropped = !self.leaves_evicted() && self.groups.is_none();
        let is_untouched = run.is_untouched();
        let is_over_without = self.is_over(self.waiting - run.waiting(), self.waiting_bytes - run.bytes);
        if !(is_oldest && is_untouched && is_dropped && is_over_without) {
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
