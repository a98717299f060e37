//! Messages by key, where the settings of a queue speak of keys: how many of a key are out, how quickly they go, whose turn it is.
//!
//! A group is what has one key. The lanes keep their order as ever; beside it each lane has the groups that may go now, and of each the
//! oldest message. Where keys take turns, the group goes first that has the fewest messages out, then the one that has had the
//! least since it came: Waldspurger and Weihl, "Stride scheduling" (1995), with one stride for all. What has no key is never held back;
//! it is one group among those that take turns.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use foldhash::quality::FixedState;
use hashbrown::HashMap;

use crate::ids::{Seq, Time};
use crate::rate::{Bucket, RateLimit};
use crate::settings::Settings;

/// What settings say of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Terms {
    /// Most messages of a key leased at once; 0: no limit.
    limit: u32,
    rate: Option<RateLimit>,
    takes_turns: bool,
}

impl Terms {
    /// `None`: the settings say nothing of keys.
    pub(crate) fn of(settings: &Settings) -> Option<Self> {
        let Settings { key_rate_limit: rate, fair_keys: takes_turns, .. } = *settings;
        let limit = settings.out_per_key();
        (limit > 0 || rate.is_some() || takes_turns).then_some(Self { limit, rate, takes_turns })
    }

    /// Whether nothing of a group may go now.
    fn hold_back(self, key: &str, group: &Group) -> bool {
        let is_full = self.limit > 0 && group.out >= u64::from(self.limit);
        let is_early = group.bucket.as_ref().is_some_and(|bucket| bucket.next().is_some());
        !key.is_empty() && (is_full || is_early)
    }
}

/// The groups of a queue.
#[derive(Clone, Debug)]
pub(crate) struct Groups {
    terms: Terms,
    /// By their keys, in no order that anything depends on.
    groups: HashMap<Arc<str>, Group, FixedState>,
    /// By the index of a lane.
    lanes: Vec<Offers>,
    /// When a group has a token, or its bucket is full.
    wakes: BTreeSet<(Time, Arc<str>)>,
    /// When the buckets were empty: the broker began then, and what was leased before is not known.
    born: Option<Time>,
    /// Those of before the terms changed: they have the buckets of keys that were not seen since.
    before: Option<Box<Groups>>,
}

/// What a lane may give.
#[derive(Clone, Debug, Default)]
struct Offers {
    turns: BTreeSet<Turn>,
    /// What the group that is furthest has had.
    pass: u64,
}

/// The oldest message of a group, the first to go first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Turn {
    out: u64,
    pass: u64,
    seq: Seq,
}

#[derive(Clone, Debug, Default)]
struct Group {
    /// Messages leased.
    out: u64,
    /// What is ready, by the index of its lane.
    waiting: BTreeMap<u16, Waiting>,
    bucket: Option<Bucket>,
    /// What it has in `wakes`.
    wake: Option<Time>,
}

impl Group {
    /// Frees up to so many of its sequences. Answers how many it freed.
    fn clear(&mut self, most: usize) -> usize {
        let mut freed = 0;
        while freed < most
            && let Some(mut waiting) = self.waiting.first_entry()
        {
            freed += 1;
            if waiting.get_mut().seqs.pop_first().is_none() {
                waiting.remove();
            }
        }
        freed
    }
}

#[derive(Clone, Debug)]
struct Waiting {
    seqs: BTreeSet<Seq>,
    /// How much it has had, compared with the other groups of its lane.
    pass: u64,
}

impl Groups {
    /// The seed keeps keys from being chosen that collide.
    pub(crate) fn new(terms: Terms, seed: u64) -> Self {
        let groups = HashMap::with_hasher(FixedState::with_seed(seed));
        Self { terms, groups, lanes: Vec::new(), wakes: BTreeSet::new(), born: None, before: None }
    }

    /// Groups of other terms that know no message yet. A bucket comes over when its key is seen, or with [`Groups::carry`]; those that have not
    /// come over since the last change do so first.
    pub(crate) fn anew(mut self: Box<Self>, terms: Terms) -> Self {
        while self.carry() {}
        let groups = HashMap::with_hasher(self.groups.hasher().clone());
        let born = self.born;
        Self { terms, groups, lanes: Vec::new(), wakes: BTreeSet::new(), born, before: Some(self) }
    }

    pub(crate) fn terms(&self) -> Terms {
        self.terms
    }

    /// Takes over the bucket of one key from before. False: all are here.
    pub(crate) fn carry(&mut self) -> bool {
        let next = self.before.as_ref().and_then(|before| before.wakes.first());
        let Some((_, key)) = next.cloned() else { return false };
        self.change(Some(&key), |_| {});
        true
    }

    /// The groups of before, once nothing of them is asked for any more.
    pub(crate) fn take_spent(&mut self) -> Option<Box<Self>> {
        self.before.take_if(|before| before.wakes.is_empty())
    }

    /// The groups of before, when all messages are gone.
    pub(crate) fn take_before(&mut self) -> Option<Box<Self>> {
        self.before.take()
    }

    /// Whether there are buckets to [carry](Self::carry), or groups to free.
    pub(crate) fn has_before(&self) -> bool {
        self.before.is_some()
    }

    fn give_up_bucket(&mut self, key: &str) -> Option<Bucket> {
        let group = self.groups.get_mut(key)?;
        if let Some(wake) = group.wake.take() {
            self.wakes.remove(&(wake, Arc::from(key)));
        }
        group.bucket.take()
    }

    /// The message of a lane that goes first, if any may go.
    pub(crate) fn head(&self, lane: u16) -> Option<Seq> {
        Some(self.lanes.get(usize::from(lane))?.turns.first()?.seq)
    }

    /// A message is ready.
    pub(crate) fn enter(&mut self, key: Option<&str>, lane: u16, seq: Seq) {
        let at = usize::from(lane);
        if self.lanes.len() <= at {
            self.lanes.resize_with(at + 1, Offers::default);
        }
        let there = self.groups.get_mut(key.unwrap_or("")).and_then(|group| group.waiting.get_mut(&lane));
        if let Some(waiting) = there
            && waiting.seqs.first().is_some_and(|first| *first < seq)
        {
            // Behind the one that is offered.
            waiting.seqs.insert(seq);
            return;
        }
        // Who has just come stands where the furthest is: its turn comes when the others have had theirs.
        let pass = self.lanes[at].pass;
        self.change(key, |group| {
            let waiting = group.waiting.entry(lane);
            waiting.or_insert_with(|| Waiting { seqs: BTreeSet::new(), pass }).seqs.insert(seq);
        });
    }

    /// Undoes [`Groups::enter`].
    pub(crate) fn leave(&mut self, key: Option<&str>, lane: u16, seq: Seq) {
        self.change(key, |group| {
            let Some(waiting) = group.waiting.get_mut(&lane) else { return };
            waiting.seqs.remove(&seq);
            if waiting.seqs.is_empty() {
                group.waiting.remove(&lane);
            }
        });
    }

    /// A message is out.
    pub(crate) fn lend(&mut self, key: Option<&str>) {
        self.set_out(key, |out| out + 1);
    }

    /// Undoes [`Groups::lend`].
    pub(crate) fn take_back(&mut self, key: Option<&str>) {
        self.set_out(key, |out| out - 1);
    }

    /// Groups that will be woken.
    pub(crate) fn woken(&self) -> usize {
        self.wakes.len()
    }

    /// Every message that is ready is gone; those of these keys are out. Answers what is to be freed.
    pub(crate) fn leave_all(&mut self, out: &[String]) -> Self {
        let empty = |offers: &Offers| Offers { turns: BTreeSet::new(), pass: offers.pass };
        let new = Self {
            terms: self.terms,
            groups: HashMap::with_hasher(self.groups.hasher().clone()),
            lanes: self.lanes.iter().map(empty).collect(),
            wakes: std::mem::take(&mut self.wakes),
            born: self.born,
            before: self.before.take(),
        };
        let mut left = std::mem::replace(self, new);
        let woken = self.wakes.iter().map(|(_, key)| &**key);
        for key in woken.chain(out.iter().map(String::as_str)) {
            if self.groups.contains_key(key) {
                continue;
            }
            let Some((name, group)) = left.groups.remove_entry(key) else { continue };
            let Group { out, waiting, bucket, wake } = group;
            self.groups.insert(Arc::clone(&name), Group { out, waiting: BTreeMap::new(), bucket, wake });
            if !waiting.is_empty() {
                left.groups.insert(name, Group { waiting, ..Group::default() });
            }
        }
        left
    }

    /// Whether there is nothing to free.
    pub(crate) fn is_clear(&self) -> bool {
        self.wakes.is_empty() && self.lanes.is_empty() && self.groups.is_empty()
    }

    /// Frees what is known of a message that is gone with all others. Nothing is offered from then on.
    pub(crate) fn drop_member(&mut self, key: Option<&str>, lane: u16, seq: Seq) {
        let key = key.unwrap_or("");
        let Some(group) = self.groups.get_mut(key) else { return };
        if let Some(waiting) = group.waiting.get_mut(&lane) {
            waiting.seqs.remove(&seq);
            if waiting.seqs.is_empty() {
                group.waiting.remove(&lane);
            }
        }
        if group.waiting.is_empty() {
            self.groups.remove(key);
        }
    }

    /// Frees some of what nobody asks for any more, one piece for each unit of `left`.
    pub(crate) fn clear(&mut self, left: &mut usize) {
        while *left > 0 && self.wakes.pop_first().is_some() {
            *left -= 1;
        }
        while *left > 0
            && let Some(offers) = self.lanes.last_mut()
        {
            *left -= 1;
            if offers.turns.pop_first().is_none() {
                self.lanes.pop();
            }
        }
        let mut large = Vec::new();
        for (key, mut group) in self.groups.extract_if(|_, _| true).take(*left) {
            *left = left.saturating_sub(1 + group.clear(*left));
            if !group.waiting.is_empty() {
                large.push((key, group));
            }
            if *left == 0 {
                break;
            }
        }
        self.groups.extend(large);
    }

    fn set_out(&mut self, key: Option<&str>, change: impl Fn(u64) -> u64) {
        let Terms { limit, takes_turns, .. } = self.terms;
        let is_full = |out: u64| limit > 0 && out >= u64::from(limit);
        if !takes_turns && let Some(group) = self.groups.get_mut(key.unwrap_or("")) {
            let out = change(group.out);
            if out > 0 && is_full(out) == is_full(group.out) {
                // Nothing is offered that was not, and it has something still.
                group.out = out;
                return;
            }
        }
        self.change(key, |group| group.out = change(group.out));
    }

    /// A ready message of a lane is about to go.
    pub(crate) fn charge(&mut self, now: Time, key: Option<&str>, lane: u16) {
        if self.terms.rate.is_none() && !self.terms.takes_turns {
            return;
        }
        let mut pass = 0;
        self.change(key, |group| {
            if let Some(bucket) = &mut group.bucket {
                bucket.fill(now);
                bucket.take();
            }
            if let Some(waiting) = group.waiting.get_mut(&lane) {
                waiting.pass += 1;
                pass = waiting.pass;
            }
        });
        if let Some(offers) = self.lanes.get_mut(usize::from(lane)) {
            offers.pass = offers.pass.max(pass);
        }
    }

    /// Time passes: groups may go that had no token.
    pub(crate) fn ring(&mut self, now: Time) {
        while let Some((_, key)) = self.wakes.first().filter(|(when, _)| *when <= now).cloned() {
            self.change(Some(&key), |group| {
                if let Some(bucket) = &mut group.bucket {
                    bucket.fill(now);
                }
            });
        }
    }

    /// When [`Groups::ring`] has something to do.
    pub(crate) fn next(&self) -> Option<Time> {
        self.wakes.first().map(|(when, _)| *when)
    }

    /// What went before now is not known: no group has a token.
    pub(crate) fn start_again(&mut self, now: Time) {
        self.born = Some(now);
        self.before = None;
        self.lanes.iter_mut().for_each(|offers| offers.turns.clear());
        self.wakes.clear();
        let keys: Vec<Arc<str>> = self.groups.keys().cloned().collect();
        for key in keys {
            let new = self.new_bucket(&key);
            let group = self.groups.get_mut(&key).expect("it was just there");
            (group.bucket, group.wake) = (new, None);
            offer(self.terms, &mut self.lanes, &key, group, true);
            self.settle_down(&key);
        }
    }

    /// Changes a group, so that it stands where what it is says.
    fn change(&mut self, key: Option<&str>, change: impl FnOnce(&mut Group)) {
        let key = key.unwrap_or("");
        if !self.groups.contains_key(key) {
            let group = Group { bucket: self.new_bucket(key), ..Group::default() };
            self.groups.insert(Arc::from(key), group);
        }
        let (terms, lanes) = (self.terms, &mut self.lanes);
        let group = self.groups.get_mut(key).expect("it was there, or was put there");
        let was_held_back = terms.hold_back(key, group);
        offer(terms, lanes, key, group, false);
        change(group);
        if was_held_back {
            // It is not made up for.
            for (lane, waiting) in &mut group.waiting {
                waiting.pass = waiting.pass.max(lanes[usize::from(*lane)].pass);
            }
        }
        offer(terms, lanes, key, group, true);
        self.settle_down(key);
    }

    /// A group that was changed is woken when it says, and goes when it says nothing any more.
    fn settle_down(&mut self, key: &str) {
        let (name, group) = self.groups.get_key_value(key).expect("it was just changed");
        let wake = group.bucket.as_ref().and_then(|bucket| bucket.next().or_else(|| bucket.full_at()));
        let is_over = group.out == 0 && group.waiting.is_empty() && wake.is_none();
        if wake != group.wake {
            let (name, before) = (Arc::clone(name), group.wake);
            if let Some(before) = before {
                self.wakes.remove(&(before, Arc::clone(&name)));
            }
            if let Some(wake) = wake {
                self.wakes.insert((wake, name));
            }
            self.groups.get_mut(key).expect("it was just changed").wake = wake;
        }
        if is_over {
            self.groups.remove(key);
        }
    }

    /// The bucket of a group of which nothing is known here.
    fn new_bucket(&mut self, key: &str) -> Option<Bucket> {
        let left = self.before.as_mut().and_then(|before| before.give_up_bucket(key));
        let rate = self.terms.rate.filter(|_| !key.is_empty())?;
        if let Some(mut bucket) = left {
            bucket.change(rate);
            return Some(bucket);
        }
        Some(self.born.map_or_else(|| Bucket::full(rate), |born| Bucket::empty(rate, born)))
    }
}

/// Puts the oldest messages of a group where they may be picked, or takes them away.
fn offer(terms: Terms, lanes: &mut [Offers], key: &str, group: &Group, is_on: bool) {
    if terms.hold_back(key, group) {
        return;
    }
    for (lane, waiting) in &group.waiting {
        let Some(seq) = waiting.seqs.first().copied() else { continue };
        let (out, pass) = if terms.takes_turns { (group.out, waiting.pass) } else { (0, 0) };
        let (turn, turns) = (Turn { out, pass, seq }, &mut lanes[usize::from(*lane)].turns);
        if is_on {
            turns.insert(turn);
        } else {
            turns.remove(&turn);
        }
    }
}
