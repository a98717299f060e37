//! Dispatch order, in steps: a walk through a queue in the order in which its messages will be leased, which stops after so many looks and goes on later.
//!
//! A walk goes through ready messages with a picker of its own and a mark in each lane: the sequence up to which it has looked at the lane. Messages that
//! are leased, delayed or dead are gathered first, since no list has them in order: as many of the first ones as the page may need.
//!
//! A walk can be written down after any step ([`Walk`] is `Serialize`), to go on in another request, on the next page, or in another process.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::bitmap::Bitmap;
use crate::broker::Broker;
use crate::entries::Slot;
use crate::ids::{Place, Seq, VhostId};
use crate::message::{Message, State, Status};
use crate::picker::{Picker, Turn};
use crate::queue::Queue;
use crate::refusal::Refusal;
use crate::view::{Cursor, Look, Query};

/// The statuses in dispatch order.
const STAGES: [Status; 4] = [Status::Leased, Status::Ready, Status::Delayed, Status::Dead];
/// As many messages as this, times the looks of a step, are gathered at once.
const AT_ONCE: usize = 4;

/// How far a look in dispatch order has come. It begins with [`Walk::default`], and belongs to one filter. What is written down of it does not
/// tell how many messages were passed: read again, it begins to count anew.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Walk {
    /// Messages that the query takes and that were passed, on this page or before it.
    #[serde(skip)]
    passed: u64,
    stage: Stage,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Stage {
    #[default]
    Begin,
    /// Looks for the messages that stand so, from this sequence on.
    Gather {
        status: Status,
        from: Seq,
        found: Found,
    },
    /// Shows what was found.
    Show {
        status: Status,
        found: Found,
    },
    /// Goes through the lanes.
    Ready(ReadyWalk),
    End,
}

/// The place of a message among those that stand alike: the number of the lease, or when something happens to it or happened; then the sequence.
type Key = (u64, Seq);

/// Messages that stand alike, the first ones of those that were not passed yet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct Found {
    /// All up to here were passed.
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<Key>,
    /// More were found than a page may need, and left out from here on.
    #[serde(skip_serializing_if = "Option::is_none")]
    cut: Option<Key>,
    /// In their order.
    #[serde(skip)]
    keys: BTreeSet<Key>,
    /// What is written down of the keys: the sequences.
    seqs: Vec<Seq>,
}

/// The state of a walk through the lanes between two steps. Lanes are told apart by their levels, since their ranks and indices may change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct ReadyWalk {
    /// The level of the lane whose turn it is with a weighted picker, and how many more it may give.
    turn: Option<(i32, u32)>,
    marks: BTreeMap<i32, Mark>,
}

/// How far a walk through the ready messages of a lane has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(u64, u64, u64)", into = "(u64, u64, u64)")]
pub(crate) struct Mark {
    /// The walk has passed the messages up to this sequence.
    pub(crate) seq: Seq,
    /// Nothing in `fresh` lies between that and this one...
    pub(crate) fresh: Seq,
    /// ...unless it came since the lane had been refilled so often.
    pub(crate) refills: u64,
}

impl Mark {
    /// Passes the messages up to this sequence.
    pub(crate) fn pass(&mut self, seq: Seq) {
        (self.seq, self.fresh) = (seq, self.fresh.max(seq));
    }
}

impl From<Mark> for (u64, u64, u64) {
    fn from(mark: Mark) -> Self {
        (mark.seq.0, mark.fresh.0, mark.refills)
    }
}

impl From<(u64, u64, u64)> for Mark {
    fn from((seq, fresh, refills): (u64, u64, u64)) -> Self {
        // What was written down may have been changed by anybody: there is always a next sequence.
        let seq = seq.min(u64::MAX - 1);
        Self { seq: Seq(seq), fresh: Seq(fresh.clamp(seq, u64::MAX - 1)), refills }
    }
}

/// A step may look at no more messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OutOfLooks;

/// The end of a step.
enum Pause {
    /// So many messages were looked at as may be, or the next one must be read first.
    Looks,
    /// The page is full, and there is more.
    Page,
}

/// The page that a step works on, and where its messages come from.
struct Maker<'a> {
    queue: &'a Queue,
    query: &'a Query,
    accept: &'a mut dyn FnMut(Place) -> bool,
    /// Messages that may still be looked at.
    left: usize,
    /// Messages that may be gathered at once.
    at_once: usize,
    /// Messages that the query may take which were looked at.
    looked: usize,
    /// Messages that the query takes and that come before the page.
    before: u64,
    look: Look,
}

impl Broker {
    /// A page in dispatch order of the messages of a queue that `accept` takes, as far as so many looks at messages go. The order is that of `walk`,
    /// whatever the order of the query; its cursor counts the messages that it takes, and so does that of the answer. The page goes on with the same
    /// walk until it says that nothing is left, or is as long as the query wants.
    ///
    /// # Errors
    /// As [`Broker::id_of`].
    pub fn walk(
        &self,
        vhost: VhostId,
        name: &str,
        query: &Query,
        walk: &mut Walk,
        accept: &mut dyn FnMut(Place) -> bool,
    ) -> Result<Look, Refusal> {
        let queue = self.queue_ref(self.id_of(vhost, name)?);
        Ok(queue.walk(query, walk, accept))
    }
}

impl Queue {
    pub(crate) fn walk(&self, query: &Query, walk: &mut Walk, accept: &mut dyn FnMut(Place) -> bool) -> Look {
        let left = query.looks.unwrap_or(usize::MAX);
        let mut maker = Maker {
            queue: self,
            query,
            accept,
            left,
            at_once: left.saturating_mul(AT_ONCE),
            looked: 0,
            before: query.cursor.map_or(0, |cursor| cursor.0).saturating_add(query.skip),
            look: Look::default(),
        };
        let is_paused = maker.go_on(walk).is_err();
        let looks = maker.looked.max(left - maker.left);
        Look { looked: maker.looked, looks, next: is_paused.then_some(Cursor(walk.passed)), ..maker.look }
    }

    /// The messages that stand so, if they are no more than `most`.
    fn few_standing_so(&self, status: Status, most: usize) -> Option<Vec<Slot>> {
        let count: u64 = self.lanes.iter().map(|lane| lane.standing(Some(status))).sum();
        (count <= most as u64).then(|| match status {
            Status::Leased => self.leased_slots(),
            Status::Delayed => self.delayed.iter(&self.entries).collect(),
            Status::Dead => self.dead.iter(&self.entries).collect(),
            Status::Ready => unreachable!("what is ready is in lanes"),
        })
    }
}

/// The key of a message among those that stand alike: what is leased by its lease, what is delayed by when it is due, dead letters by when
/// they died.
fn key(queue: &Queue, slot: Slot) -> Key {
    let entry = &queue.entries[slot];
    let order = match entry.message.state {
        State::Delayed { .. } => entry.alarm().0,
        State::Dead => entry.message.death().map_or(0, |death| death.at.0),
        State::Leased { lease, .. } => lease.0,
        State::Ready => 0,
    };
    (order, entry.message.seq)
}

impl Walk {
    /// How many messages that the query takes were passed.
    #[must_use]
    pub fn passed(&self) -> u64 {
        self.passed
    }

    /// Whether the walk has found messages that it shows next, which takes few looks more.
    #[must_use]
    pub fn shows(&self) -> bool {
        matches!(self.stage, Stage::Show { .. })
    }

    /// Writes down what was found, so that the walk can be serialized.
    #[must_use]
    pub fn written(mut self) -> Self {
        if let Stage::Gather { found, .. } | Stage::Show { found, .. } = &mut self.stage {
            found.seqs.extend(std::mem::take(&mut found.keys).into_iter().map(|(_, seq)| seq));
        }
        self.passed = 0;
        self
    }
}

impl Found {
    fn after(after: Option<Key>) -> Self {
        Self { after, ..Self::default() }
    }
}

impl Maker<'_> {
    fn go_on(&mut self, walk: &mut Walk) -> Result<(), Pause> {
        self.read(&mut walk.stage);
        loop {
            match &mut walk.stage {
                Stage::Begin => walk.stage = self.after(walk.passed, None)?,
                Stage::Gather { status, from, found } => {
                    self.gather(walk.passed, *status, from, found)?;
                    walk.stage = Stage::Show { status: *status, found: std::mem::take(found) };
                }
                Stage::Show { status, found } => {
                    let status = *status;
                    self.show_found(&mut walk.passed, status, found)?;
                    let (is_cut, after) = (found.cut.is_some(), found.after);
                    walk.stage = match is_cut {
                        true => self.stage_of(walk.passed, status, after)?,
                        false => self.after(walk.passed, Some(status))?,
                    };
                }
                Stage::Ready(ready) => {
                    self.lanes(&mut walk.passed, ready)?;
                    walk.stage = self.after(walk.passed, Some(Status::Ready))?;
                }
                Stage::End => return Ok(()),
            }
        }
    }

    /// Finds again what was written down.
    fn read(&self, stage: &mut Stage) {
        let (Stage::Gather { status, found, .. } | Stage::Show { status, found }) = stage else { return };
        let slots = found.seqs.drain(..).filter_map(|seq| self.queue.by_seq.get(seq));
        let slots = slots.filter(|slot| self.status(*slot) == *status);
        let keys = slots.map(|slot| key(self.queue, slot));
        // What comes later by now than it did may come after others that were left out.
        found.keys.extend(keys.filter(|key| found.cut.is_none_or(|cut| *key < cut)));
    }

    /// The stage of the next status that the query wants.
    fn after(&mut self, passed: u64, status: Option<Status>) -> Result<Stage, Pause> {
        let done = status.map_or(0, |status| 1 + STAGES.iter().take_while(|stage| **stage != status).count());
        let mut wanted =
            STAGES[done..].iter().filter(|stage| self.query.status.is_none_or(|only| only == **stage));
        wanted.next().map_or(Ok(Stage::End), |status| self.stage_of(passed, *status, None))
    }

    /// The stage that shows the messages that stand so, after this one.
    fn stage_of(&mut self, passed: u64, status: Status, after: Option<Key>) -> Result<Stage, Pause> {
        if status == Status::Ready {
            let turn = match self.queue.picker {
                Picker::Weighted { turn: Some(Turn { rank, left }) } => {
                    Some((self.queue.lanes.at_rank(rank).level, left))
                }
                _ => None,
            };
            return Ok(Stage::Ready(ReadyWalk { turn, marks: BTreeMap::new() }));
        }
        let mut found = Found::after(after);
        Ok(match self.queue.few_standing_so(status, self.at_once) {
            Some(few) => {
                self.spend(few.len().div_ceil(AT_ONCE))?;
                few.into_iter().try_for_each(|slot| self.find(passed, slot, &mut found))?;
                Stage::Show { status, found }
            }
            None => Stage::Gather { status, from: Seq(0), found },
        })
    }

    /// Takes note of a message if it may be on the page.
    fn find(&mut self, passed: u64, slot: Slot, found: &mut Found) -> Result<(), Pause> {
        let key = key(self.queue, slot);
        let is_meant = found.after < Some(key) && found.cut.is_none_or(|cut| key < cut);
        if !is_meant || !self.takes(&self.queue.entries[slot].message)? {
            return Ok(());
        }
        found.keys.insert(key);
        // A message more than the page holds tells that there is a next page.
        let ahead = usize::try_from(self.before.saturating_sub(passed)).unwrap_or(usize::MAX);
        if found.keys.len() > ahead.saturating_add(self.query.limit).saturating_add(1) {
            found.cut = found.keys.pop_last();
        }
        Ok(())
    }

    fn gather(
        &mut self,
        passed: u64,
        status: Status,
        from: &mut Seq,
        found: &mut Found,
    ) -> Result<(), Pause> {
        for slot in self.queue.by_seq.from(*from) {
            self.look()?;
            if self.status(slot) == status {
                self.find(passed, slot, found)?;
            }
            *from = self.queue.entries[slot].message.seq.next();
        }
        Ok(())
    }

    fn show_found(&mut self, passed: &mut u64, status: Status, found: &mut Found) -> Result<(), Pause> {
        while let Some(&(order, seq)) = found.keys.first() {
            self.look()?;
            // The message may be gone, or have another status by now.
            let slot = self.queue.by_seq.get(seq).filter(|slot| self.status(*slot) == status);
            if let Some(slot) = slot {
                let entry = &self.queue.entries[slot];
                self.show(passed, entry.lane, &entry.message)?;
            }
            found.keys.pop_first();
            found.after = found.after.max(Some((order, seq)));
        }
        Ok(())
    }

    fn status(&self, slot: Slot) -> Status {
        self.queue.entries[slot].message.state.status()
    }

    fn takes(&mut self, message: &Message) -> Result<bool, Pause> {
        let is_taken = self.query.takes(message) && (self.accept)(message.place);
        self.check_read()?;
        self.looked += 1;
        Ok(is_taken)
    }

    /// Stops before what must be read first.
    fn check_read(&self) -> Result<(), Pause> {
        if self.queue.awaits_disk() { Err(Pause::Looks) } else { Ok(()) }
    }

    fn look(&mut self) -> Result<(), Pause> {
        self.spend(1)
    }

    fn spend(&mut self, looks: usize) -> Result<(), Pause> {
        self.left = self.left.checked_sub(looks).ok_or(Pause::Looks)?;
        Ok(())
    }

    /// Passes a message that the query takes, or puts it on the page.
    fn show(&mut self, passed: &mut u64, lane: u16, message: &Message) -> Result<(), Pause> {
        if self.look.messages.len() == self.query.limit {
            return Err(Pause::Page);
        }
        *passed += 1;
        if *passed > self.before {
            self.look.messages.push((Cursor(*passed), self.queue.view_message(lane, message)));
        }
        Ok(())
    }

    /// Goes through the ready messages as they would be leased one after the other, if nothing came in between.
    fn lanes(&mut self, passed: &mut u64, walk: &mut ReadyWalk) -> Result<(), Pause> {
        let queue = self.queue;
        let lanes = &queue.lanes;
        let rank_of = |level: i32| (0..lanes.len()).find(|rank| lanes.at_rank(*rank).level == level);
        let turn = walk.turn.and_then(|(level, left)| Some(Turn { rank: rank_of(level)?, left }));
        let mut picker = queue.picker.clone();
        picker.set_turn(turn);
        let mut ready = lanes.ready();
        if let Some(priority) = self.query.priority.filter(|_| queue.has_lane_per_priority()) {
            let own = lanes.find(priority).ok();
            (0..lanes.len()).filter(|rank| Some(*rank) != own).for_each(|rank| ready.set(rank, false));
        }
        let mut heads = Heads { queue, lanes: std::iter::repeat_with(|| None).take(lanes.len()).collect() };
        let ended = self.pick_on(passed, (&mut picker, &mut walk.marks), ready, &mut heads);
        if let Picker::Weighted { turn } = picker {
            walk.turn = turn.map(|Turn { rank, left }| (lanes.at_rank(rank).level, left));
        }
        heads.mark(&mut walk.marks);
        ended
    }

    /// Takes what the picker names, from the lanes of these ranks.
    fn pick_on(
        &mut self,
        passed: &mut u64,
        (picker, marks): (&mut Picker, &mut BTreeMap<i32, Mark>),
        mut ready: Bitmap,
        heads: &mut Heads<'_>,
    ) -> Result<(), Pause> {
        let lanes = &self.queue.lanes;
        loop {
            if let Picker::Aging { .. } = picker {
                // This picker compares the heads of all lanes.
                for rank in ready.iter() {
                    let has_head = heads.has(rank, marks, &mut self.left)?;
                    self.check_read()?;
                    ready.set(rank, has_head);
                }
            }
            let head = |rank: usize| lanes.at_rank(rank).head_of(heads.known(rank));
            let Some(rank) = picker.pick(ready, head) else { return Ok(()) };
            let has_head = heads.has(rank, marks, &mut self.left)?;
            self.check_read()?;
            if !has_head {
                // The lane has no more, or its next run cannot be read.
                ready.set(rank, false);
                continue;
            }
            self.look()?;
            let lane = lanes.at_rank(rank);
            let message = heads.known(rank);
            if self.takes(message)? {
                self.show(passed, lanes.index_at(rank), message)?;
            }
            heads.pass(rank);
            picker.charge(rank, lane.weight);
            self.check_read()?;
        }
    }
}

/// The lanes that a step has opened: those of which it needs a message.
struct Heads<'a> {
    queue: &'a Queue,
    lanes: Vec<Option<OpenLane<'a>>>,
}

struct OpenLane<'a> {
    /// The last message that this step passed.
    passed: Option<Seq>,
    head: Option<Cow<'a, Message>>,
    rest: Box<dyn Iterator<Item = Cow<'a, Message>> + 'a>,
}

impl<'a> Heads<'a> {
    /// Whether the lane of this rank has a ready message after its mark. Where the step has no looks left to find it, the mark tells how far it was looked
    /// for.
    fn has(&mut self, rank: usize, marks: &mut BTreeMap<i32, Mark>, left: &mut usize) -> Result<bool, Pause> {
        let queue = self.queue;
        let lane = match &mut self.lanes[rank] {
            Some(lane) => lane,
            closed => {
                let index = queue.lanes.index_at(rank);
                let mark = marks.entry(queue.lanes.lane(index).level).or_default();
                let fresh = queue.fresh_after(index, mark, left).map_err(|OutOfLooks| Pause::Looks)?;
                let mut rest = Box::new(queue.lane_messages_after(index, mark.seq, fresh));
                closed.insert(OpenLane { passed: None, head: rest.next(), rest })
            }
        };
        Ok(lane.head.is_some())
    }

    /// The head of a lane that has one.
    fn known(&self, rank: usize) -> &Message {
        let head = self.lanes[rank].as_ref().and_then(|lane| lane.head.as_deref());
        head.expect("an open lane that has a message")
    }

    fn pass(&mut self, rank: usize) {
        if let Some(lane) = &mut self.lanes[rank] {
            lane.passed = lane.head.as_deref().map(|message| message.seq);
            lane.head = lane.rest.next();
        }
    }

    /// Marks in each lane what was passed.
    fn mark(&self, marks: &mut BTreeMap<i32, Mark>) {
        for (rank, lane) in self.lanes.iter().enumerate() {
            if let Some(seq) = lane.as_ref().and_then(|lane| lane.passed) {
                marks.entry(self.queue.lanes.at_rank(rank).level).or_default().pass(seq);
            }
        }
    }
}
