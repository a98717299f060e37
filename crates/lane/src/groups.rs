//! Messages by key, where the settings of a queue speak of keys: how many of a key are out, how quickly they go, whose turn it is.
//!
//! A group is the messages of one key. The lanes keep their order as ever; beside it each lane has the groups that may go now, and of each the
//! oldest message, wherever it is. Where keys take turns, the group goes first that has the fewest messages out for each of its weight, rounded
//! down, and of several the one whose turn it is: start-time fair queueing (Goyal, Vin and Cheng, 1996), in which a message of weight 2 takes
//! half as far as one of weight 1. Rounded down, since a group of weight 3 has its turns also where few messages are out. Messages without a
//! key are never held back; they are one group among those that take turns.
//!
//! A group that was given a message, or is held back, stays where it was offered, which is too early: it moves once it is the first of its lane.
//! So a lease and its end change one lane, in however many the group has messages.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::BuildHasher;

use foldhash::quality::FixedState;
use hashbrown::HashTable;
use smallvec::SmallVec;

use crate::ids::{Seq, Time};
use crate::message::Message;
use crate::rate::{Bucket, RateLimit};
use crate::seqs::{Came, Seqs};
use crate::settings::Settings;

/// How far a message takes a group of weight 1.
const STRIDE: u32 = 1 << 20;

/// How far a message takes a group of this weight: rounded up, so that as many messages out as the weight says are one turn.
fn stride(weight: u32) -> u32 {
    STRIDE.div_ceil(weight)
}

/// How far a message takes its group by the weight that its publisher gave the key.
fn own_stride(message: &Message) -> u32 {
    stride(message.key_weight().unwrap_or(1))
}

/// The settings of keys, but for their weights, which change at once.
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
    fn hold_back(self, group: &Group) -> bool {
        let is_full = self.limit > 0 && group.out >= self.limit;
        let is_early = group.tokens.as_ref().is_some_and(|tokens| tokens.bucket.next().is_some());
        !group.key.is_empty() && (is_full || is_early)
    }
}

/// Names a group as long as it is there.
type GroupId = u32;
/// No group.
const NONE: GroupId = GroupId::MAX;

/// Sizes of groups: one for each number of binary digits.
const SIZES: usize = u32::BITS as usize + 1;
/// Most groups that are looked at to find the largest: of more that differ by less than twice in size, any are shown.
const LARGEST_LOOKS: usize = 1_000;

/// The groups of a queue.
#[derive(Clone, Debug)]
pub(crate) struct Groups {
    terms: Terms,
    /// By key; others weigh what their messages say.
    weights: BTreeMap<String, u32>,
    seed: FixedState,
    /// By their keys.
    by_key: HashTable<GroupId>,
    all: Vec<Option<Group>>,
    /// Where nobody is in `all`.
    free: Vec<GroupId>,
    /// The first of each size: of those with one message, with up to three, with up to seven, and so on.
    sizes: [GroupId; SIZES],
    /// By the index of a lane.
    lanes: Vec<Offers>,
    /// When a group has a token, or its bucket is full.
    wakes: BTreeSet<(Time, GroupId)>,
    /// Messages that are read from a run behind one that goes.
    pub(crate) ahead: u32,
    /// When the buckets were empty: the broker began then, and what was leased before is not known.
    born: Option<Time>,
    /// Those of before the terms changed: they have the buckets of keys that were not seen since.
    before: Option<Box<Groups>>,
}

/// What a lane may give.
#[derive(Clone, Debug, Default)]
struct Offers {
    turns: BTreeSet<Turn>,
    /// Where the turn began of the message that went last.
    time: u64,
    /// How far the group is that is furthest.
    pass: u64,
}

/// The oldest message of a group, the first to go first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Turn {
    /// Its messages leased for each of its weight, rounded down.
    out: u64,
    pass: u64,
    seq: Seq,
    group: GroupId,
}

#[derive(Clone, Debug)]
struct Group {
    /// Empty: what has none.
    key: Box<str>,
    /// How far each message takes it, by the weight in the settings; `None`: each as far as it says.
    stride: Option<u32>,
    /// The stride that its last message said, for views.
    said: u32,
    /// Messages leased.
    out: u32,
    /// Their own strides.
    out_strides: u64,
    /// Messages ready.
    ready: u32,
    /// Where it is among those of its size.
    listed: Listed,
    /// Its messages ready, by lane; no lane without one.
    waiting: SmallVec<[Waiting; 1]>,
    tokens: Option<Box<Tokens>>,
}

/// A place in a list of groups of one size.
#[derive(Clone, Copy, Debug)]
struct Listed {
    /// The binary digits of its number of messages; 0: it is in no list.
    digits: u8,
    before: GroupId,
    after: GroupId,
}

/// The numbers of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Standing {
    pub(crate) key: Box<str>,
    pub(crate) weight: u32,
    pub(crate) ready: u64,
    pub(crate) leased: u64,
    /// The oldest message that is ready.
    pub(crate) oldest: Option<Seq>,
}

#[derive(Clone, Debug)]
struct Tokens {
    bucket: Bucket,
    /// Its time in `wakes`.
    wake: Option<Time>,
}

#[derive(Clone, Debug)]
struct Waiting {
    /// The index of the lane.
    lane: u16,
    seqs: Seqs,
    /// Where its next turn begins, beside those of the other groups of its lane, and no earlier than [`Offers::time`] when it has it.
    pass: u64,
    /// Where it is offered, no later than where it belongs; `None` only where it is held back.
    offered: Option<Turn>,
}

impl Group {
    fn new(key: Box<str>, stride: Option<u32>, tokens: Option<Box<Tokens>>) -> Self {
        let listed = Listed { digits: 0, before: NONE, after: NONE };
        let waiting = SmallVec::new();
        Self { key, stride, said: STRIDE, out: 0, out_strides: 0, ready: 0, listed, waiting, tokens }
    }

    /// How far a message takes it: less the greater its weight.
    fn stride_of(&self, message: &Message) -> u32 {
        self.stride.unwrap_or_else(|| own_stride(message))
    }

    /// How large it is: see [`Listed`].
    fn digits(&self) -> u8 {
        (u32::BITS - self.ready.saturating_add(self.out).leading_zeros()) as u8
    }

    fn standing(&self) -> Standing {
        Standing {
            key: self.key.clone(),
            weight: STRIDE.div_ceil(self.stride.unwrap_or(self.said)),
            ready: self.ready.into(),
            leased: self.out.into(),
            oldest: self.waiting.iter().map(|waiting| waiting.seqs.first()).min(),
        }
    }

    fn waiting_in(&mut self, lane: u16) -> Option<&mut Waiting> {
        self.waiting.iter_mut().find(|waiting| waiting.lane == lane)
    }

    fn lend(&mut self, message: &Message) {
        self.out += 1;
        self.out_strides += u64::from(own_stride(message));
    }

    /// Its messages leased for each of its weight, rounded down.
    fn out_by_weight(&self) -> u64 {
        let strides = self.stride.map_or(self.out_strides, |stride| u64::from(self.out) * u64::from(stride));
        strides / u64::from(STRIDE)
    }

    /// Where it belongs in a lane.
    fn turn(&self, terms: Terms, id: GroupId, waiting: &Waiting) -> Turn {
        let (out, pass) = match terms.takes_turns {
            true => (self.out_by_weight(), waiting.pass),
            false => (0, 0),
        };
        Turn { out, pass, seq: waiting.seqs.first(), group: id }
    }
}

impl Groups {
    /// The seed keeps keys from being chosen that collide.
    pub(crate) fn new(settings: &Settings, seed: u64) -> Option<Self> {
        let new = Self::empty(Terms::of(settings)?, FixedState::with_seed(seed), None);
        Some(Self { weights: settings.key_weights.clone(), ..new })
    }

    fn empty(terms: Terms, seed: FixedState, born: Option<Time>) -> Self {
        Self {
            terms,
            weights: BTreeMap::new(),
            seed,
            by_key: HashTable::new(),
            all: Vec::new(),
            free: Vec::new(),
            sizes: [NONE; SIZES],
            lanes: Vec::new(),
            wakes: BTreeSet::new(),
            ahead: 0,
            born,
            before: None,
        }
    }

    /// The same without a message: what went before now is not known, so no group has a token.
    pub(crate) fn started_again(&self, now: Time) -> Self {
        let new = Self::empty(self.terms, self.seed.clone(), Some(now));
        Self { weights: self.weights.clone(), ..new }
    }

    /// Groups of other terms that know no message yet. A bucket comes over when its key is seen, or with [`Groups::carry`]; those that have not
    /// come over since the last change do so first.
    pub(crate) fn anew(mut self: Box<Self>, terms: Terms) -> Self {
        while self.carry() {}
        let new = Self::empty(terms, self.seed.clone(), self.born);
        Self { weights: std::mem::take(&mut self.weights), before: Some(self), ..new }
    }

    pub(crate) fn terms(&self) -> Terms {
        self.terms
    }

    /// Each key has this weight from now on, and others what their messages say.
    pub(crate) fn weigh(&mut self, weights: &BTreeMap<String, u32>) {
        if self.weights == *weights {
            return;
        }
        let before = std::mem::replace(&mut self.weights, weights.clone());
        for key in before.keys().chain(weights.keys()) {
            if let Some(id) = self.find(key) {
                let stride = self.stride_of(key);
                self.change(id, |group| group.stride = stride);
            }
        }
    }

    fn stride_of(&self, key: &str) -> Option<u32> {
        self.weights.get(key).map(|weight| stride(*weight))
    }

    /// Takes over the bucket of one key from before. False: all are here.
    pub(crate) fn carry(&mut self) -> bool {
        let Some(before) = &self.before else { return false };
        let Some((_, next)) = before.wakes.first() else { return false };
        let key = before.group(*next).key.clone();
        let id = self.found(&key);
        self.settle_down(id);
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
        let id = self.find(key)?;
        let tokens = self.group_mut(id).tokens.take()?;
        if let Some(wake) = tokens.wake {
            self.wakes.remove(&(wake, id));
        }
        Some(tokens.bucket)
    }

    fn group(&self, id: GroupId) -> &Group {
        self.all[id as usize].as_ref().expect("whoever is named is there")
    }

    fn group_mut(&mut self, id: GroupId) -> &mut Group {
        self.all[id as usize].as_mut().expect("whoever is named is there")
    }

    fn find(&self, key: &str) -> Option<GroupId> {
        self.by_key.find(self.seed.hash_one(key), |id| *self.group(*id).key == *key).copied()
    }

    /// The group of a key, also if nothing was known of it.
    fn found(&mut self, key: &str) -> GroupId {
        self.find(key).unwrap_or_else(|| {
            let tokens = self.new_bucket(key).map(|bucket| Box::new(Tokens { bucket, wake: None }));
            let stride = self.stride_of(key);
            self.put(Group::new(Box::from(key), stride, tokens))
        })
    }

    fn put(&mut self, group: Group) -> GroupId {
        let hash = self.seed.hash_one(&*group.key);
        let id = match self.free.pop() {
            Some(id) => {
                self.all[id as usize] = Some(group);
                id
            }
            None => {
                self.all.push(Some(group));
                self.all.len() as GroupId - 1
            }
        };
        let (all, seed) = (&self.all, &self.seed);
        let hash_of = |id: &GroupId| seed.hash_one(&*all[*id as usize].as_ref().expect("it is there").key);
        self.by_key.insert_unique(hash, id, hash_of);
        id
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

    /// The message of a lane that goes first, if any may go. Groups that are offered too early move back.
    pub(crate) fn settle_head(&mut self, lane: u16) -> Option<Seq> {
        let turns = &mut self.lanes.get_mut(usize::from(lane))?.turns;
        loop {
            let first = *turns.first()?;
            let group = self.all[first.group as usize].as_mut().expect("whoever is offered is there");
            let is_held_back = self.terms.hold_back(group);
            let at = group.waiting.iter().position(|waiting| waiting.lane == lane);
            let at = at.expect("what is offered of a lane is there");
            let turn = (!is_held_back).then(|| group.turn(self.terms, first.group, &group.waiting[at]));
            if turn == Some(first) {
                return Some(first.seq);
            }
            turns.pop_first();
            turns.extend(turn);
            group.waiting[at].offered = turn;
        }
    }

    /// The message of a lane that goes first, as [`Groups::settle_head`] found it.
    pub(crate) fn head(&self, lane: u16) -> Option<Seq> {
        Some(self.lanes.get(usize::from(lane))?.turns.first()?.seq)
    }

    /// Whether a message is the oldest of its key in a lane.
    pub(crate) fn is_oldest(&self, key: Option<&str>, lane: u16, seq: Seq) -> bool {
        let group = self.find(key.unwrap_or("")).map(|id| self.group(id));
        group.is_some_and(|group| {
            group.waiting.iter().any(|waiting| waiting.lane == lane && waiting.seqs.first() == seq)
        })
    }

    /// The ready messages of a lane between these sequences.
    pub(crate) fn within(&self, lane: u16, first: Seq, last: Seq) -> Vec<(Box<str>, Seq)> {
        let of_lane = |group: &&Group| group.waiting.iter().any(|waiting| waiting.lane == lane);
        let groups = self.all.iter().flatten().filter(of_lane);
        let all = groups.flat_map(|group| {
            let seqs = group.waiting.iter().filter(|waiting| waiting.lane == lane);
            seqs.flat_map(|waiting| waiting.seqs.iter()).map(move |seq| (group, seq))
        });
        let within = all.filter(|(_, seq)| (first..=last).contains(seq));
        within.map(|(group, seq)| (group.key.clone(), seq)).collect()
    }

    /// A message is ready.
    pub(crate) fn enter(&mut self, message: &Message, lane: u16) {
        let (at, seq) = (usize::from(lane), message.seq);
        if self.lanes.len() <= at {
            self.lanes.resize_with(at + 1, Offers::default);
        }
        let id = self.found(message.key().unwrap_or(""));
        // A newcomer stands where the furthest is: its turn comes when the others have had theirs.
        let pass = self.lanes[at].pass;
        let group = self.group_mut(id);
        let came = match group.waiting_in(lane) {
            Some(waiting) => waiting.seqs.insert(seq),
            None => {
                group.waiting.push(Waiting { lane, seqs: Seqs::one(seq), pass, offered: None });
                Came::First
            }
        };
        group.said = own_stride(message);
        group.ready += u32::from(came != Came::Again);
        match came {
            Came::First => self.change(id, |_| {}),
            Came::Behind => self.list_by_size(id),
            Came::Again => {}
        }
    }

    /// Undoes [`Groups::enter`].
    pub(crate) fn leave(&mut self, key: Option<&str>, lane: u16, seq: Seq) {
        let Some(id) = self.find(key.unwrap_or("")) else { return };
        self.take(id, lane, seq);
        self.change(id, |_| {});
    }

    /// Takes a message out of what is ready.
    fn take(&mut self, id: GroupId, lane: u16, seq: Seq) {
        let group = self.group_mut(id);
        let Some(at) = group.waiting.iter().position(|waiting| waiting.lane == lane) else { return };
        if let Some(was_there) = group.waiting[at].seqs.remove(seq) {
            group.ready -= u32::from(was_there);
            return;
        }
        group.ready -= 1;
        let left = group.waiting.swap_remove(at);
        if let Some(offered) = left.offered {
            self.lanes[usize::from(lane)].turns.remove(&offered);
        }
    }

    /// A message is out.
    pub(crate) fn lend(&mut self, message: &Message) {
        let id = self.found(message.key().unwrap_or(""));
        self.change(id, |group| group.lend(message));
    }

    /// Undoes [`Groups::lend`].
    pub(crate) fn take_back(&mut self, message: &Message) {
        let id = self.found(message.key().unwrap_or(""));
        self.change(id, |group| {
            group.out -= 1;
            group.out_strides -= u64::from(own_stride(message));
        });
    }

    /// A ready message of a lane goes for good.
    pub(crate) fn charge(&mut self, now: Time, message: &Message, lane: u16) {
        let Some(id) = self.find(message.key().unwrap_or("")) else { return };
        self.pay(id, now, message, lane);
        self.change(id, |_| {});
    }

    /// A ready message of a lane is leased.
    pub(crate) fn lease(&mut self, now: Time, message: &Message, lane: u16) {
        let id = self.found(message.key().unwrap_or(""));
        self.pay(id, now, message, lane);
        self.take(id, lane, message.seq);
        self.change(id, |group| group.lend(message));
    }

    fn pay(&mut self, id: GroupId, now: Time, message: &Message, lane: u16) {
        let group = self.group_mut(id);
        if let Some(tokens) = &mut group.tokens {
            tokens.bucket.fill(now);
            tokens.bucket.take();
        }
        let stride = u64::from(group.stride_of(message));
        let offers = &mut self.lanes[usize::from(lane)];
        let group = self.all[id as usize].as_mut().expect("whoever is named is there");
        let Some(waiting) = group.waiting_in(lane) else { return };
        // Turns that it let pass, with more out than others or held back, are not made up for.
        offers.time = offers.time.max(waiting.pass);
        waiting.pass = offers.time + stride;
        offers.pass = offers.pass.max(waiting.pass);
    }

    /// Time passes: groups may go that had no token.
    pub(crate) fn ring(&mut self, now: Time) {
        while let Some((_, id)) = self.wakes.first().copied().filter(|(when, _)| *when <= now) {
            self.change(id, |group| {
                if let Some(tokens) = &mut group.tokens {
                    tokens.bucket.fill(now);
                }
            });
        }
    }

    /// When [`Groups::ring`] has something to do.
    pub(crate) fn next(&self) -> Option<Time> {
        self.wakes.first().map(|(when, _)| *when)
    }

    /// Changes a group, so that it is offered no later than where it belongs.
    fn change(&mut self, id: GroupId, change: impl FnOnce(&mut Group)) {
        let (terms, lanes) = (self.terms, &mut self.lanes);
        let group = self.all[id as usize].as_mut().expect("whoever is named is there");
        change(group);
        if !terms.hold_back(group) {
            for at in 0..group.waiting.len() {
                let waiting = &group.waiting[at];
                let turn = group.turn(terms, id, waiting);
                if waiting.offered.is_some_and(|offered| offered <= turn) {
                    continue;
                }
                let turns = &mut lanes[usize::from(waiting.lane)].turns;
                if let Some(offered) = waiting.offered {
                    turns.remove(&offered);
                }
                turns.insert(turn);
                group.waiting[at].offered = Some(turn);
            }
        }
        self.settle_down(id);
    }

    /// A group that was changed is woken when it says, and goes when it says nothing any more.
    fn settle_down(&mut self, id: GroupId) {
        let group = self.all[id as usize].as_mut().expect("whoever is named is there");
        if let Some(tokens) = &mut group.tokens {
            let wake = tokens.bucket.next().or_else(|| tokens.bucket.full_at());
            let before = std::mem::replace(&mut tokens.wake, wake);
            if wake != before {
                before.map(|before| self.wakes.remove(&(before, id)));
                self.wakes.extend(wake.map(|wake| (wake, id)));
            }
        }
        let is_asleep = group.tokens.as_ref().is_none_or(|tokens| tokens.wake.is_none());
        self.list_by_size(id);
        let group = self.group(id);
        if group.out == 0 && group.waiting.is_empty() && is_asleep {
            self.remove(id);
        }
    }

    fn remove(&mut self, id: GroupId) -> Group {
        let hash = self.seed.hash_one(&*self.group(id).key);
        if let Ok(found) = self.by_key.find_entry(hash, |other| *other == id) {
            found.remove();
        }
        self.free.push(id);
        self.all[id as usize].take().expect("whoever is named is there")
    }

    /// Puts a group among those of its size.
    fn list_by_size(&mut self, id: GroupId) {
        let group = self.group(id);
        let (Listed { digits, before, after }, now) = (group.listed, group.digits());
        if digits == now {
            return;
        }
        if digits > 0 {
            match before {
                NONE => self.sizes[usize::from(digits)] = after,
                before => self.group_mut(before).listed.after = after,
            }
            if after != NONE {
                self.group_mut(after).listed.before = before;
            }
        }
        let mut listed = Listed { digits: now, before: NONE, after: NONE };
        if now > 0 {
            listed.after = std::mem::replace(&mut self.sizes[usize::from(now)], id);
            if listed.after != NONE {
                self.group_mut(listed.after).listed.before = id;
            }
        }
        self.group_mut(id).listed = listed;
    }

    /// The groups with the most messages ready and leased, the largest first.
    pub(crate) fn largest(&self, most: usize) -> Vec<Standing> {
        let lists = self.sizes.iter().rev().flat_map(|first| {
            let some = |id: GroupId| (id != NONE).then(|| self.group(id));
            std::iter::successors(some(*first), move |group| some(group.listed.after))
        });
        let mut found: Vec<&Group> = lists.take(LARGEST_LOOKS).collect();
        found.sort_unstable_by(|a, b| {
            (b.ready + b.out).cmp(&(a.ready + a.out)).then_with(|| a.key.cmp(&b.key))
        });
        found.into_iter().take(most).map(Group::standing).collect()
    }

    /// Groups that will be woken.
    pub(crate) fn woken(&self) -> usize {
        self.wakes.len()
    }

    /// Every message that is ready is gone; those of these keys are out. Answers what is to be freed.
    pub(crate) fn leave_all(&mut self, out: &[String]) -> Self {
        let empty = |offers: &Offers| Offers { turns: BTreeSet::new(), ..*offers };
        let new = Self {
            lanes: self.lanes.iter().map(empty).collect(),
            weights: std::mem::take(&mut self.weights),
            before: self.before.take(),
            ..Self::empty(self.terms, self.seed.clone(), self.born)
        };
        let mut left = std::mem::replace(self, new);
        let woken: Vec<GroupId> = left.wakes.iter().map(|(_, id)| *id).collect();
        left.wakes.clear();
        let out: Vec<GroupId> = out.iter().filter_map(|key| left.find(key)).collect();
        for id in woken.into_iter().chain(out) {
            let group = left.group_mut(id);
            if self.find(&group.key).is_some() {
                continue;
            }
            let tokens = group.tokens.take();
            let Group { stride, said, out, out_strides, .. } = *group;
            let stays = Group { said, out, out_strides, ..Group::new(group.key.clone(), stride, tokens) };
            let wake = stays.tokens.as_ref().and_then(|tokens| tokens.wake);
            let id = self.put(stays);
            self.wakes.extend(wake.map(|wake| (wake, id)));
            self.list_by_size(id);
        }
        left
    }

    /// Whether there is nothing to free.
    pub(crate) fn is_clear(&self) -> bool {
        self.wakes.is_empty() && self.lanes.is_empty() && self.all.is_empty()
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
        while *left > 0
            && let Some(group) = self.all.last_mut()
        {
            *left -= 1;
            let waiting = group.as_mut().and_then(|group| group.waiting.last_mut());
            match waiting.map(|waiting| waiting.seqs.clear_piece()) {
                None => drop(self.all.pop()),
                Some(true) => {}
                Some(false) => drop(group.as_mut().and_then(|group| group.waiting.pop())),
            }
        }
    }
}
