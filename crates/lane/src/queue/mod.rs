//! A queue: its lanes, the leases that are out, its limits and its picker.
//!
//! Every change of a message is `detach`, change, `attach`: where a message stands follows from its state alone, and so
//! does every gauge.

mod end;
mod former;
mod handed;
mod lease;
mod planning;
mod publish;
mod purge;
mod recover;
mod rewrite;
mod rules;
mod spill;
mod waking;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::alarms::Alarms;
use crate::broker::Totals;
use crate::deaths::DeathReason;
use crate::entries::{Entries, Entry, List, Slot};
use crate::groups::Groups;
use crate::identity::Identity;
use crate::ids::{ConsumerId, QueueId, Seq, SessionId, Time, VhostId};
use crate::index::{SeqIndex, TextIndex};
use crate::lane::Lanes;
use crate::message::{Message, State, Status, seq_of_public_id};
use crate::picker::Picker;
use crate::policy::{Policies, Ruled};
use crate::priority::Priority;
use crate::rate::Bucket;
use crate::refusal::Refusal;
use crate::roster::Roster;
use crate::run::{Backlog, Run, RunId};
use crate::settings::{LastValue, Settings};

use rewrite::Rewrite;
use waking::Waking;

pub(crate) use handed::Handed;
pub(crate) use lease::LeaseEnd;
pub(crate) use planning::{Among, PassedOver};
pub(crate) use publish::{Admission, Admitted, Copied};

/// What a record says of a queue.
#[derive(Clone, Debug)]
pub(crate) struct Described {
    pub(crate) vhost: VhostId,
    pub(crate) name: Arc<str>,
    pub(crate) settings: Box<Settings>,
    pub(crate) identity: Identity,
    pub(crate) next_seq: Seq,
}

/// One queue.
#[derive(Clone, Debug)]
pub(crate) struct Queue {
    pub(crate) id: QueueId,
    /// Where its name is one, and those that its settings say.
    pub(crate) vhost: VhostId,
    pub(crate) name: Arc<str>,
    /// What holds: its own, and what policies say.
    pub(crate) settings: Box<Settings>,
    /// What it was declared with, where that is something else.
    own: Option<Box<Settings>>,
    pub(crate) policy: Option<Arc<str>>,
    pub(crate) operator_policy: Option<Arc<str>>,
    pub(crate) without_effect: Vec<&'static str>,
    /// The [version](crate::policy::Ruling::version) of the policies by which it was ruled last.
    pub(crate) ruled_at: u64,
    pub(crate) identity: Identity,
    /// Whose it is, if it is exclusive. Not durable: no session outlives the broker.
    pub(crate) owner: Option<SessionId>,
    /// It has had a consumer that stays, in this life of the broker.
    pub(crate) was_consumed: bool,
    /// When it was last used by somebody who is there no more.
    pub(crate) used: Time,
    /// When it was last active ([`QueueView::active_at`](crate::QueueView::active_at)), and whether it has been since.
    pub(crate) active_at: Time,
    pub(crate) is_active: bool,
    pub(crate) next_seq: Seq,
    pub(crate) entries: Entries,
    pub(crate) lanes: Lanes,
    pub(crate) picker: Picker,
    pub(crate) roster: Roster,
    /// Where the settings speak of keys.
    pub(crate) groups: Option<Box<Groups>>,
    /// Those of before the settings said something else of keys, to be freed.
    spent: Vec<Groups>,
    /// Where the settings have a rate.
    bucket: Option<Bucket>,
    pub(crate) by_seq: SeqIndex,
    by_id: TextIndex,
    by_key: TextIndex,
    alarms: Alarms,
    backlog: Arc<dyn Backlog>,
    /// Messages that wait and are not in memory.
    pub(crate) runs: BTreeMap<RunId, Run>,
    /// Runs in which nothing waits any more, and of which messages are in quarantine.
    pub(crate) quarantined: BTreeMap<RunId, Run>,
    /// Messages with an id that runs were written with; without them no id is looked for in runs.
    spilled_ids: u64,
    /// When each run must be looked through for expired messages.
    run_alarms: BTreeSet<(Time, RunId)>,
    /// The run that is being looked through for them.
    waking: Option<Waking>,
    /// Sequences of messages that are being written to segments.
    spilling: BTreeMap<RunId, Vec<Seq>>,
    /// Runs of which all was fetched, and no fact says so yet.
    emptied: Vec<RunId>,
    /// Its lanes were changed while it had runs, and no fact says so yet.
    has_untold_lanes: bool,
    /// Messages of runs that were lost, and nobody has heard of yet.
    lost: BTreeMap<(RunId, u32), u64>,
    /// Bytes of the deaths and records of the messages in memory.
    pub(crate) history_bytes: u64,
    /// Out of the lanes, and to be dead-lettered before this step ends.
    pub(crate) dying: Vec<(Seq, DeathReason)>,
    /// It evicts, and has more than its limits allow: what is too much goes step by step.
    is_trimming: bool,
    /// Runs that are being written anew.
    rewriting: BTreeMap<RunId, Rewrite>,
    /// What is held of it here, if its messages are kept elsewhere.
    pub(crate) handed: Option<Handed>,
    /// Leased to pulls.
    pulled: List,
    pub(crate) delayed: List,
    pub(crate) dead: List,
    /// Ready and delayed.
    waiting: u64,
    waiting_bytes: u64,
    leased: u64,
    seed: u64,
    /// Messages that wait in runs.
    pub(crate) spilled: u64,
    /// The last sequence that any run ever had.
    spilled_to: Seq,
    /// Where what to write to a segment is still to be looked for, the last one first; nothing while no such search goes on.
    to_search: Vec<(u16, Among)>,
    /// What of it the broker counts, as the broker knows it.
    pub(crate) noted: Totals,
    /// When the broker will look at it again, as the broker knows it.
    pub(crate) scheduled: Option<Time>,
    /// The broker has it in line: something has come due.
    pub(crate) is_in_line: bool,
}

impl Queue {
    pub(crate) fn new(
        id: QueueId,
        Described { vhost, name, settings, identity, next_seq }: Described,
        policies: &Policies,
        seed: u64,
        backlog: Arc<dyn Backlog>,
    ) -> Self {
        let Ruled { settings, own, policy, operator_policy, without_effect } = policies.rule(&name, settings);
        let mut roster = Roster::default();
        roster.set_single(settings.single_active_consumer);
        roster.set_most_held(settings.most_unacked());
        Self {
            backlog,
            identity,
            owner: None,
            was_consumed: false,
            used: Time(0),
            active_at: Time(0),
            is_active: true,
            runs: BTreeMap::new(),
            quarantined: BTreeMap::new(),
            spilled_ids: 0,
            run_alarms: BTreeSet::new(),
            waking: None,
            spilling: BTreeMap::new(),
            emptied: Vec::new(),
            has_untold_lanes: false,
            lost: BTreeMap::new(),
            history_bytes: 0,
            dying: Vec::new(),
            is_trimming: false,
            rewriting: BTreeMap::new(),
            handed: None,
            id,
            vhost,
            name,
            next_seq,
            entries: Entries::default(),
            lanes: Lanes::new(&settings),
            picker: Picker::new(&settings.picker),
            roster,
            groups: Groups::new(&settings, seed).map(Box::new),
            spent: Vec::new(),
            bucket: settings.rate_limit.map(Bucket::full),
            by_seq: SeqIndex::default(),
            by_id: TextIndex::new(seed, |entries, slot| {
                entries[slot].message.id().expect("indexed by its id")
            }),
            by_key: key_index(&settings, seed),
            seed,
            alarms: Alarms::default(),
            pulled: List::default(),
            delayed: List::default(),
            dead: List::default(),
            waiting: 0,
            waiting_bytes: 0,
            leased: 0,
            spilled: 0,
            spilled_to: Seq(0),
            to_search: Vec::new(),
            noted: Totals::default(),
            scheduled: None,
            is_in_line: false,
            settings,
            own,
            policy,
            operator_policy,
            without_effect,
            ruled_at: 0,
        }
    }

    /// What holds, where that is not what it was declared with.
    pub(crate) fn ruled_otherwise(&self) -> Option<Box<Settings>> {
        self.own.as_ref().map(|_| self.settings.clone())
    }

    /// What it was declared with.
    pub(crate) fn own(&self) -> &Settings {
        self.own.as_deref().unwrap_or(&self.settings)
    }

    /// Messages that will change by themselves.
    pub(crate) fn outstanding(&self) -> u64 {
        self.leased + u64::from(self.delayed.len())
    }

    /// Messages ready, wherever they are.
    pub(crate) fn ready(&self) -> u64 {
        self.lanes.iter().map(|lane| lane.ready).sum()
    }

    /// When it has been unused for so long that it is deleted.
    pub(crate) fn expires(&self) -> Option<Time> {
        let may_expire = self.settings.expires_ms > 0 && self.roster.is_unused();
        may_expire.then(|| self.used.after(self.settings.expires_ms))
    }

    /// Whether something of it is, or was, in segments.
    pub(crate) fn has_runs(&self) -> bool {
        !(self.runs.is_empty() && self.quarantined.is_empty() && self.lost.is_empty())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.len() == 0 && self.runs.is_empty() && self.quarantined.is_empty()
    }

    // ---- where a message stands ----

    /// Links a message into where its state says, and counts it there.
    fn attach(&mut self, slot: Slot) {
        if self.lanes.has_former() {
            self.leave_former(slot);
        }
        if let Some((groups, message, lane)) = self.group_of(slot) {
            match message.state {
                State::Ready => groups.enter(message, lane),
                State::Leased { .. } => groups.lend(message),
                State::Delayed { .. } | State::Dead => {}
            }
        }
        self.link(slot);
    }

    /// Undoes [`Queue::attach`].
    fn detach(&mut self, slot: Slot) {
        if let Some((groups, message, lane)) = self.group_of(slot) {
            match message.state {
                State::Ready => groups.leave(message.key(), lane, message.seq),
                State::Leased { .. } => groups.take_back(message),
                State::Delayed { .. } | State::Dead => {}
            }
        }
        self.unlink(slot);
    }

    /// The groups, where they count a message, and the index of its lane.
    fn group_of(&mut self, slot: Slot) -> Option<(&mut Groups, &Message, u16)> {
        let (groups, entry) = (self.groups.as_mut()?, &self.entries[slot]);
        (!self.lanes.lane(entry.lane).is_ungrouped).then_some((groups, &entry.message, entry.lane))
    }

    /// As [`Queue::attach`], of a message that its group knows.
    fn link(&mut self, slot: Slot) {
        self.is_active = true;
        let entries = &mut self.entries;
        let entry = &entries[slot];
        let (message, index, holder) = (&entry.message, entry.lane, entry.holder());
        let bytes = u64::from(message.bytes);
        let room = room_of(message);
        let lane = self.lanes.lane_mut(index);
        match message.state {
            State::Ready => {
                (self.waiting, self.waiting_bytes) = (self.waiting + room.0, self.waiting_bytes + room.1);
                lane.bytes += bytes;
                self.lanes.push_ready(entries, slot);
            }
            State::Delayed { .. } => {
                (self.waiting, self.waiting_bytes) = (self.waiting + room.0, self.waiting_bytes + room.1);
                lane.bytes += bytes;
                lane.delayed += 1;
                self.delayed.push_back(entries, slot);
            }
            State::Leased { .. } => {
                self.leased += 1;
                lane.bytes += bytes;
                self.lanes.count_leased(index, bytes, true);
                match holder {
                    None => self.pulled.push_back(entries, slot),
                    Some(consumer) => {
                        self.roster.change(consumer, true, |kind| kind.held_mut().push_back(entries, slot));
                    }
                }
            }
            State::Dead => {
                lane.dead += 1;
                self.dead.push_back(entries, slot);
            }
        }
        let when = self.entries[slot].alarm();
        if when != Time::NEVER {
            self.alarms.set(&mut self.entries, slot, when);
        }
    }

    /// Undoes [`Queue::link`].
    fn unlink(&mut self, slot: Slot) {
        self.is_active = true;
        let entries = &mut self.entries;
        entries[slot].spilling = false;
        self.alarms.clear(entries, slot);
        let entry = &entries[slot];
        let (message, index, holder) = (&entry.message, entry.lane, entry.holder());
        let bytes = u64::from(message.bytes);
        let room = room_of(message);
        let lane = self.lanes.lane_mut(index);
        match message.state {
            State::Ready => {
                (self.waiting, self.waiting_bytes) = (self.waiting - room.0, self.waiting_bytes - room.1);
                lane.bytes -= bytes;
                self.lanes.take_ready(entries, slot);
            }
            State::Delayed { .. } => {
                (self.waiting, self.waiting_bytes) = (self.waiting - room.0, self.waiting_bytes - room.1);
                lane.bytes -= bytes;
                lane.delayed -= 1;
                self.delayed.remove(entries, slot);
            }
            State::Leased { .. } => {
                self.leased -= 1;
                lane.bytes -= bytes;
                self.lanes.count_leased(index, bytes, false);
                match holder {
                    None => self.pulled.remove(entries, slot),
                    Some(consumer) => {
                        self.roster.change(consumer, false, |kind| kind.held_mut().remove(entries, slot));
                    }
                }
            }
            State::Dead => {
                lane.dead -= 1;
                self.dead.remove(entries, slot);
            }
        }
    }

    fn change_state(&mut self, slot: Slot, change: impl FnOnce(&mut Entry)) {
        self.detach(slot);
        change(&mut self.entries[slot]);
        self.attach(slot);
    }

    fn enter_lane(&mut self, slot: Slot) {
        self.entries[slot].lane = self.open_lane(self.entries[slot].message.priority);
    }

    fn open_lane(&mut self, priority: Priority) -> u16 {
        let turn = self.picker.turn().map(|rank| self.lanes.index_at(rank));
        let (lane, reranked) = self.lanes.open(priority, &self.settings);
        if reranked {
            self.picker.ranks_changed(turn.map(|index| self.lanes.rank_of(index)));
        }
        lane
    }

    /// Puts a message in, exactly as it says.
    pub(crate) fn insert(&mut self, message: Message) -> Slot {
        let seq = message.seq;
        self.next_seq = self.next_seq.max(seq.next());
        let lane = self.open_lane(message.priority);
        let slot = self.enter(message, lane);
        self.lanes.lane_mut(lane).stats.published += 1;
        self.by_seq.insert(seq, slot);
        self.index_texts(slot);
        self.attach(slot);
        slot
    }

    /// Gives a message a slot.
    fn enter(&mut self, message: Message, lane: u16) -> Slot {
        self.history_bytes += message.history_size();
        self.entries.insert(message, lane)
    }

    /// Makes a message found by its id and counted as the value of its key. A dead letter does neither where something
    /// that is pending has the id, nor does one that was over when a newer one of its id came.
    fn index_texts(&mut self, slot: Slot) {
        let message = &self.entries[slot].message;
        let dead = message.state == State::Dead;
        let pending = self.pending_here(message.id()).map(|other| self.entries[other].message.seq);
        if message.id().is_some() && pending.is_none_or(|other| !dead && other <= message.seq) {
            self.by_id.point(&self.entries, slot);
        }
        if dead || self.settings.last_value.is_none() {
            return;
        }
        match self.by_key.twin(&self.entries, slot) {
            Some(other) if self.entries[other].message.seq > self.entries[slot].message.seq => {
                self.entries[slot].outdated = true;
            }
            other => {
                if let Some(older) = other.filter(|older| *older != slot) {
                    self.entries[older].outdated = true;
                }
                self.by_key.point(&self.entries, slot);
            }
        }
    }

    /// Takes a message out; nothing of it is left.
    pub(crate) fn take_out(&mut self, slot: Slot) -> Message {
        self.detach(slot);
        self.leave_memory(slot)
    }

    /// Takes a message that waits out of memory: its group knows it still.
    fn put_away(&mut self, slot: Slot) -> Message {
        self.unlink(slot);
        self.leave_memory(slot)
    }

    fn leave_memory(&mut self, slot: Slot) -> Message {
        if self.entries[slot].message.id().is_some() {
            self.by_id.forget(&self.entries, slot);
        }
        if self.settings.last_value.is_some() {
            self.by_key.forget(&self.entries, slot);
        }
        self.by_seq.remove(self.entries[slot].message.seq);
        self.history_bytes -= self.entries[slot].message.history_size();
        self.entries.remove(slot)
    }

    // ---- finding ----

    /// The message of an id: its publisher's, else `seq-N`.
    ///
    /// # Errors
    /// [`Refusal::NoSuchMessage`].
    pub(crate) fn find(&self, id: &str) -> Result<Seq, Refusal> {
        let pending = self.pending_of(Some(id)).map(|pending| pending.seq);
        let by_seq = || seq_of_public_id(id).filter(|seq| self.look(*seq).is_some());
        // A dead letter gives up its id to a pending message, and has it again when that one is gone.
        let dead = || self.dead.iter(&self.entries).find(|slot| self.entries[*slot].message.id() == Some(id));
        let seq_of = |slot: Slot| self.entries[slot].message.seq;
        let by_id = || self.by_id.get(&self.entries, id).or_else(dead).map(seq_of);
        pending.or_else(by_seq).or_else(by_id).ok_or(Refusal::NoSuchMessage)
    }

    /// Leased messages, those of pulls first.
    pub(crate) fn leased_slots(&self) -> Vec<Slot> {
        let mut slots: Vec<Slot> = self.pulled.iter(&self.entries).collect();
        for consumer in self.roster.ids() {
            if let Some(taker) = self.roster.get(consumer) {
                slots.extend(taker.kind.held().iter(&self.entries));
            }
        }
        slots
    }

    /// Whoever took by a pull what is leased, once for each message.
    pub(crate) fn pullers(&self) -> impl Iterator<Item = ConsumerId> + '_ {
        let taken = self.pulled.iter(&self.entries).filter_map(|slot| self.entries[slot].taken());
        taken.map(|(consumer, _)| consumer)
    }

    /// Slots that stand so, in the order of publishing.
    pub(crate) fn slots_with(&self, wanted: impl Fn(Status) -> bool) -> Vec<Slot> {
        let all = self.by_seq.from(Seq(0));
        all.filter(|slot| wanted(self.entries[*slot].message.state.status())).collect()
    }
}

/// Messages and bytes that count against the limits of the queue while it waits.
fn room_of(message: &Message) -> (u64, u64) {
    if message.is_at_once() { (0, 0) } else { (1, u64::from(message.bytes)) }
}

/// What a last-value queue keeps the newest of: the text of the key, which for the whole queue is always the same.
fn key_index(settings: &Settings, seed: u64) -> TextIndex {
    match settings.last_value {
        Some(LastValue::One) => TextIndex::new(seed, |_, _| ""),
        _ => TextIndex::new(seed, |entries, slot| entries[slot].message.key().unwrap_or("")),
    }
}
