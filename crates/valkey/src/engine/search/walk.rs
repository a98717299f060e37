//! A page in dispatch order, which ends after so many looks and goes on where it was: as `walk` of the lane crate, for messages that are at servers.
//!
//! Ready messages are passed lane by lane as the picker says, with a mark in each lane. No list has the others in their order, so the first ones of a status are
//! gathered by looking at all of it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use overtake_engine::{
    ANSWER_BYTES_MAX, Browse, Failure, Gathered, LaneMarks, PageCursor, PartitionWalk, StatusOrder,
    StatusOrders,
};
use overtake_lane::{Merger, Message, PickerKind, Seq, State, Status};

use super::streams::Streams;
use super::{List, STAGES, Search, Seen};
use crate::functions::{LOOKS_MAX, Standing, View};

/// The page, and where the next one goes on.
pub(in super::super) struct Walked {
    /// Messages, in their order.
    pub(in super::super) seen: Vec<Seen>,
    /// `None`: nothing is left.
    pub(in super::super) next: Option<PageCursor>,
    /// How many messages were looked at.
    pub(in super::super) looked_at: u64,
}

/// Why a walk goes no further.
enum Stop {
    /// The page is full, or has no looks left.
    PageEnds,
    Failed(Failure),
}

impl From<Failure> for Stop {
    fn from(why: Failure) -> Self {
        Self::Failed(why)
    }
}

/// Makes one page.
struct Walker<'s> {
    search: &'s Search<'s>,
    limit: usize,
    /// Messages that the filter takes which come before the page, and those of them that were passed.
    before: u64,
    passed: u64,
    /// Messages that may still be looked at; `None`: all.
    left: Option<usize>,
    looked_at: u64,
    /// The filter leaves some out.
    has_missed: bool,
    bytes: u64,
    seen: Vec<Seen>,
    on_page: BTreeSet<Seq>,
    /// Messages that were gathered for this page.
    gathered: BTreeMap<Seq, Seen>,
}

impl Search<'_> {
    /// A page in dispatch order, as far as its looks go.
    pub(in super::super) async fn walk(&self, browse: &Browse) -> Result<Walked, Failure> {
        let mut walk = match &browse.cursor {
            Some(PageCursor::PartitionWalk(walk)) => PartitionWalk::clone(walk),
            _ => PartitionWalk::default(),
        };
        let passed = if let Some(PageCursor::Passed(passed)) = &browse.cursor { *passed } else { 0 };
        let mut walker = Walker {
            search: self,
            limit: browse.limit,
            before: passed.saturating_add(browse.skip),
            passed: 0,
            left: browse.looks.map(|looks| looks.max(1)),
            looked_at: 0,
            has_missed: false,
            bytes: 0,
            seen: Vec::new(),
            on_page: BTreeSet::new(),
            gathered: BTreeMap::new(),
        };
        let next = match walker.go_on(&mut walk).await {
            Ok(()) => None,
            Err(Stop::PageEnds) => Some(PageCursor::PartitionWalk(Arc::new(walk))),
            Err(Stop::Failed(why)) => return Err(why),
        };
        Ok(Walked { seen: walker.seen, next, looked_at: walker.looked_at })
    }

    /// The message that is known by this sequence, if it has this status.
    async fn at(&self, seq: Seq, status: Status) -> Result<Option<Seen>, Failure> {
        let Some((place, there)) = self.hosted.find(seq) else { return Ok(None) };
        let with_content = self.filter.is_about_content();
        let after = there.0.checked_sub(1).map(Seq);
        let one = Standing { newest: false, after, limit: 1, with_content, statuses: vec![status] };
        let shown = self.hosted.ask(place, &one).await?.into_iter().next();
        let seen = shown.map(|shown| self.seen(place, shown)).transpose()?;
        Ok(seen.filter(|seen| seen.message.seq == seq))
    }
}

impl Walker<'_> {
    async fn go_on(&mut self, walk: &mut PartitionWalk) -> Result<(), Stop> {
        loop {
            match walk {
                PartitionWalk::Begin => *walk = self.after(None),
                PartitionWalk::Gather { status, from, found } => {
                    self.gather(*status, from, found).await?;
                    *walk = PartitionWalk::Show { status: *status, found: std::mem::take(found) };
                }
                PartitionWalk::Show { status, found } => {
                    self.show_gathered(*status, found).await?;
                    *walk = match found.cut {
                        Some(_) => gather(*status, found.after),
                        None => self.after(Some(*status)),
                    };
                }
                PartitionWalk::Lanes(marks) => {
                    self.lanes(marks).await?;
                    *walk = self.after(Some(Status::Ready));
                }
                PartitionWalk::End => return Ok(()),
            }
        }
    }

    /// The begin of the next status that the filter takes.
    fn after(&self, status: Option<Status>) -> PartitionWalk {
        let done = status.map_or(0, |status| 1 + STAGES.iter().take_while(|stage| **stage != status).count());
        let only = self.search.filter.status;
        match STAGES[done..].iter().find(|stage| only.is_none_or(|only| only == **stage)) {
            Some(Status::Ready) => PartitionWalk::Lanes(LaneMarks::default()),
            Some(status) => gather(*status, None),
            None => PartitionWalk::End,
        }
    }

    /// Whether messages are passed that were shown on pages before: as many as there are.
    fn is_passing(&self) -> bool {
        self.passed < self.before
    }

    fn look(&mut self) -> Result<(), Stop> {
        if let Some(left) = &mut self.left {
            *left = match left.checked_sub(1) {
                Some(left) => left,
                None if self.passed < self.before => 0,
                None => return Err(Stop::PageEnds),
            };
        }
        self.looked_at += 1;
        Ok(())
    }

    /// How many more messages that the filter takes the page may need: one more than it shows tells that there is a next page.
    fn needed(&self) -> usize {
        let before = usize::try_from(self.before - self.passed).unwrap_or(usize::MAX);
        before.saturating_add(self.limit - self.seen.len()).saturating_add(1)
    }

    /// How many messages of each of so many lists are read at once.
    fn at_once(&self, lists: usize, needed: usize) -> usize {
        let left = self.left.filter(|_| !self.is_passing()).unwrap_or(usize::MAX);
        needed.min(left.div_ceil(lists.max(1))).clamp(1, LOOKS_MAX as usize)
    }

    /// Looks at all messages of a status, and keeps the first ones that the filter takes.
    async fn gather(
        &mut self,
        status: Status,
        from: &mut Option<Seq>,
        found: &mut Gathered,
    ) -> Result<(), Stop> {
        let mut streams = Streams::new(self.search, Merger::new(&PickerKind::Strict, BTreeMap::new()));
        self.search.places().for_each(|place| streams.add(place, 0, List::Standing(status), *from));
        while let Some(at) = streams.next(self.at_once(streams.count(), usize::MAX)).await? {
            self.look()?;
            let (looked, _) = streams.take(at);
            *from = Some(looked.seen.message.seq);
            if looked.is_taken {
                self.keep(looked.seen, found);
            }
        }
        Ok(())
    }

    fn keep(&mut self, seen: Seen, found: &mut Gathered) {
        let key = order(&seen.message);
        if found.after >= Some(key) || found.cut.is_some_and(|cut| key >= cut) {
            return;
        }
        let StatusOrders(keys) = &mut found.keys;
        keys.insert(key);
        self.gathered.insert(key.1, seen);
        if keys.len() > self.needed() {
            found.cut = keys.pop_last();
            found.cut.map(|(_, seq)| self.gathered.remove(&seq));
        }
    }

    /// Shows what was gathered, as far as there is room.
    async fn show_gathered(&mut self, status: Status, found: &mut Gathered) -> Result<(), Stop> {
        while let Some(&key) = found.keys.0.first() {
            let seen = match self.gathered.remove(&key.1) {
                Some(seen) => Some(seen),
                None => self.still_taken(key.1, status, found.cut).await?,
            };
            if let Some(seen) = seen {
                self.show(seen)?;
            }
            found.keys.0.pop_first();
            found.after = found.after.max(Some(key));
        }
        Ok(())
    }

    /// A message that was gathered for an earlier page, if it comes before the cut as it did and the filter takes it.
    async fn still_taken(
        &self,
        seq: Seq,
        status: Status,
        cut: Option<StatusOrder>,
    ) -> Result<Option<Seen>, Failure> {
        let Some(seen) = self.search.at(seq, status).await? else { return Ok(None) };
        let taken = self.search.image([seen.clone()])?.matching(self.search.filter)?;
        // What comes later by now than it did may come after others that were left out.
        let is_before_cut = cut.is_none_or(|cut| order(&seen.message) < cut);
        Ok(Some(seen).filter(|_| is_before_cut && !taken.is_empty()))
    }

    /// Passes a message that the filter takes, or puts it on the page; an error: there is no room.
    fn show(&mut self, seen: Seen) -> Result<(), Stop> {
        // One whose status has changed may come again.
        if self.on_page.contains(&seen.message.seq) {
            return Ok(());
        }
        let bytes = self.bytes.saturating_add(u64::from(seen.message.bytes));
        let has_room = self.seen.is_empty() || bytes <= ANSWER_BYTES_MAX;
        if self.seen.len() == self.limit || !has_room {
            return Err(Stop::PageEnds);
        }
        if self.is_passing() {
            self.passed += 1;
            return Ok(());
        }
        self.bytes = bytes;
        self.on_page.insert(seen.message.seq);
        self.seen.push(seen);
        Ok(())
    }

    /// Goes through the ready messages as they would be leased one after the other, if nothing came in between.
    async fn lanes(&mut self, marks: &mut LaneMarks) -> Result<(), Stop> {
        let partitions = self.search.hosted.ask_all(&View).await?;
        let has_ready = |lane: &BTreeMap<String, u64>| lane.get("ready").is_some_and(|ready| *ready > 0);
        let levels = |at: usize| {
            let lanes = partitions[at].lanes.iter().filter(|(_, lane)| has_ready(lane));
            let levels = lanes.map(|(level, _)| *level);
            levels
                .filter(|level| self.search.own_lane.is_none_or(|own| own == *level))
                .collect::<BTreeSet<_>>()
        };
        let by_partition: Vec<BTreeSet<i32>> = (0..partitions.len()).map(levels).collect();
        let left: BTreeSet<i32> = partitions.iter().flat_map(|seen| seen.left.keys().copied()).collect();
        for group in self.groups(by_partition.iter().flatten().copied().collect(), &left) {
            let mut streams = Streams::new(self.search, self.search.hosted.places().terms().merger());
            for (place, levels) in (0..).zip(&by_partition) {
                for level in levels.intersection(&group) {
                    streams.add(place, *level, List::Lane(*level), marks.passed.get(level).copied());
                }
            }
            self.lanes_of(streams, marks).await?;
        }
        Ok(())
    }

    /// Lanes among which the picker decides, in the order in which they go. Under the strict picker each lane is alone; under any picker lanes that are being left come
    /// one after the other behind all others.
    fn groups(&self, mut levels: BTreeSet<i32>, left: &BTreeSet<i32>) -> Vec<BTreeSet<i32>> {
        let mut groups = Vec::new();
        if !self.is_strict() {
            groups.push(levels.difference(left).copied().collect());
            levels.retain(|level| left.contains(level));
        }
        groups.extend(levels.into_iter().rev().map(|level| BTreeSet::from([level])));
        groups
    }

    fn is_strict(&self) -> bool {
        self.search.view.effective_settings().picker == PickerKind::Strict
    }

    /// Goes through the lanes of a group.
    async fn lanes_of(&mut self, mut streams: Streams<'_>, marks: &mut LaneMarks) -> Result<(), Stop> {
        let has_turns = matches!(self.search.view.effective_settings().picker, PickerKind::Weighted(_));
        if let Some(turn) = marks.turn.filter(|_| has_turns) {
            streams.set_turn(turn);
        }
        loop {
            let needed = if self.has_missed { usize::MAX } else { self.needed() };
            let Some(at) = streams.next(self.at_once(streams.count(), needed)).await? else { return Ok(()) };
            self.look()?;
            let looked = streams.head(at);
            if looked.is_taken {
                self.show(looked.seen.clone())?;
            } else {
                self.has_missed = true;
            }
            let (looked, left) = streams.take(at);
            marks.passed.insert(at.1, looked.seen.message.seq);
            marks.turn = has_turns.then_some((at.1, left));
        }
    }
}

/// The begin of a look for the messages of a status that come after this one.
fn gather(status: Status, after: Option<StatusOrder>) -> PartitionWalk {
    PartitionWalk::Gather { status, from: None, found: Gathered { after, ..Gathered::default() } }
}

/// The order of a message among those of its status.
fn order(message: &Message) -> StatusOrder {
    let order = match message.state {
        State::Leased { lease, .. } => lease.0,
        State::Delayed { due } => due.min(message.expires).0,
        State::Dead => message.death().map_or(0, |death| death.at.0),
        State::Ready => 0,
    };
    (order, message.seq)
}
