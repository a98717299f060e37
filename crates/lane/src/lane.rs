//! One urgency's worth of messages, oldest first; and all lanes of a queue in order.
//!
//! A lane has two parts in memory, both in the order of sequences: `fresh`, a list that grows at its end, and `returned`, what
//! came to it later than its sequence says: put back, replayed, moved here from another lane, or fetched from a run. The
//! head is the older of the two heads, once no run of the lane has an older message (`queue/spill.rs` sees to that).

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use crate::LANES_MAX;
use crate::bitmap::Bitmap;
use crate::entries::{Entries, List, Slot};
use crate::ids::Seq;
use crate::index::SeqIndex;
use crate::message::{Settled, State};
use crate::priority::Priority;
use crate::queue::PassedOver;
use crate::refusal::Refusal;
use crate::run::RunId;
use crate::settings::{FIFO_LANE, Order, PickerKind, Settings};
use crate::stats::LaneStats;
use crate::walk::{Mark, OutOfLooks};

/// A FIFO of one urgency.
#[derive(Clone, Debug)]
pub(crate) struct Lane {
    pub(crate) name: Arc<str>,
    /// How urgent it is among the lanes of its queue.
    pub(crate) level: i32,
    /// The least urgent priority it takes.
    pub(crate) floor: i32,
    /// Most messages leased at once; 0: no cap.
    pub(crate) max_active: u32,
    /// Its share under the weighted picker.
    pub(crate) weight: u32,
    pub(crate) ready: u64,
    pub(crate) ready_bytes: u64,
    pub(crate) delayed: u64,
    pub(crate) leased: u64,
    pub(crate) dead: u64,
    pub(crate) leased_bytes: u64,
    pub(crate) bytes: u64,
    pub(crate) stats: LaneStats,
    /// Its queue has other lanes now, and its messages have not all moved into them: nothing comes into it, and nothing of it is leased.
    pub(crate) is_former: bool,
    /// Groups do not know of its messages: they came before the settings said of keys what they say now.
    pub(crate) is_ungrouped: bool,
    /// A former lane of before a start: what moves out of it had moved then, for all that this broker counts.
    is_past: bool,
    rank: usize,
    fresh: List,
    /// The last sequence that ever was in `fresh`.
    fresh_to: Seq,
    /// How often a message with a lesser one came into it.
    refills: u64,
    returned: BTreeMap<Seq, Slot>,
    /// Its runs by a lower bound of what waits in each. They overlap where what was put back or moved here was written to one.
    pub(crate) runs: BTreeSet<(Seq, RunId)>,
    /// Some of its runs overlap, or did.
    pub(crate) is_tangled: bool,
    /// Ready messages in its runs.
    pub(crate) spilled: u64,
    /// The last sequence it ever spilled.
    pub(crate) spilled_to: Seq,
    pub(crate) passed_over: PassedOver,
}

impl Lane {
    fn new(name: Arc<str>, level: i32, floor: i32, settings: &Settings) -> Self {
        let max_active = settings.lanes.get(&*name).map_or(0, |lane| lane.max_active);
        let weight = match &settings.picker {
            PickerKind::Weighted(weights) => weights.get(&*name).copied().unwrap_or(1).max(1),
            _ => 1,
        };
        Self {
            name,
            level,
            floor,
            max_active,
            weight,
            ready: 0,
            ready_bytes: 0,
            delayed: 0,
            leased: 0,
            dead: 0,
            leased_bytes: 0,
            bytes: 0,
            stats: LaneStats::default(),
            is_former: false,
            is_ungrouped: false,
            is_past: false,
            rank: 0,
            fresh: List::default(),
            fresh_to: Seq(0),
            refills: 0,
            returned: BTreeMap::new(),
            runs: BTreeSet::new(),
            is_tangled: false,
            spilled: 0,
            spilled_to: Seq(0),
            passed_over: PassedOver::default(),
        }
    }

    /// What came into it later than its sequence says, which is not there any more.
    pub(crate) fn take_returned(&mut self) -> BTreeMap<Seq, Slot> {
        std::mem::take(&mut self.returned)
    }

    /// The lists of its ready messages in memory.
    pub(crate) fn lists_mut(&mut self) -> (&mut List, &mut BTreeMap<Seq, Slot>) {
        (&mut self.fresh, &mut self.returned)
    }

    /// Its ready messages that are in memory.
    pub(crate) fn ready_here(&self) -> u64 {
        self.ready - self.spilled
    }

    /// The first message of `fresh`.
    pub(crate) fn fresh_head(&self) -> Option<Slot> {
        self.fresh.head()
    }

    /// The oldest ready message in memory.
    pub(crate) fn head(&self, entries: &Entries) -> Option<Slot> {
        match (self.returned.first_key_value(), self.fresh.head()) {
            (Some((seq, returned)), Some(fresh)) => {
                Some(if *seq < entries[fresh].message.seq { *returned } else { fresh })
            }
            (returned, fresh) => returned.map(|(_, slot)| *slot).or(fresh),
        }
    }

    fn push(&mut self, entries: &mut Entries, slot: Slot) {
        let seq = entries[slot].message.seq;
        match self.fresh.tail() {
            Some(tail) if entries[tail].message.seq > seq => {
                self.returned.insert(seq, slot);
            }
            _ => {
                self.fresh.push_back(entries, slot);
                if seq < self.fresh_to {
                    self.refills += 1;
                } else {
                    self.fresh_to = seq;
                }
            }
        }
        self.ready += 1;
        self.ready_bytes += u64::from(entries[slot].message.bytes);
    }

    fn take(&mut self, entries: &mut Entries, slot: Slot) {
        let in_returned =
            !self.returned.is_empty() && self.returned.remove(&entries[slot].message.seq).is_some();
        if !in_returned {
            self.fresh.remove(entries, slot);
        }
        self.ready -= 1;
        self.ready_bytes -= u64::from(entries[slot].message.bytes);
    }

    /// Its ready messages in memory, oldest first.
    pub(crate) fn iter<'a>(&'a self, entries: &'a Entries) -> impl Iterator<Item = Slot> + 'a {
        self.iter_after(entries, Seq(0), self.fresh.head())
    }

    /// The ready messages in memory with a greater sequence, oldest first; `fresh` is the first of them in the list `fresh`.
    pub(crate) fn iter_after<'a>(
        &'a self,
        entries: &'a Entries,
        after: Seq,
        fresh: Option<Slot>,
    ) -> impl Iterator<Item = Slot> + 'a {
        let returned = self.returned.range((Bound::Excluded(after), Bound::Unbounded));
        let mut returned = returned.map(|(_, slot)| *slot).peekable();
        let mut fresh = List::from(entries, fresh).peekable();
        std::iter::from_fn(move || match (returned.peek(), fresh.peek()) {
            (Some(a), Some(b)) if entries[*a].message.seq < entries[*b].message.seq => returned.next(),
            (Some(_), None) => returned.next(),
            _ => fresh.next(),
        })
    }

    /// Moves a mark to where nothing comes from a run any more.
    pub(crate) fn mark_after_runs(&self, mark: &mut Mark) {
        if mark.seq < self.spilled_to {
            mark.pass(self.spilled_to);
        }
        mark.refills = self.refills;
    }

    /// The first message of `fresh` after a mark. The list leads there from the message that has the mark's sequence; where that message is gone, the
    /// messages of the queue after the mark and those of the list are looked at in turn, whichever leads there sooner: the one way is long
    /// where many other lanes have messages, the other where many of this lane are before the mark.
    ///
    /// # Errors
    /// More looks are needed than are left. The mark tells how far they went.
    pub(crate) fn fresh_after(
        &self,
        index: u16,
        entries: &Entries,
        by_seq: &SeqIndex,
        mark: &mut Mark,
        left: &mut usize,
    ) -> Result<Option<Slot>, OutOfLooks> {
        let seq_of = |slot: Slot| entries[slot].message.seq;
        match (self.fresh.head(), self.fresh.tail()) {
            (Some(head), _) if seq_of(head) > mark.seq => return Ok(Some(head)),
            (Some(_), Some(tail)) if seq_of(tail) > mark.seq => {}
            _ => return Ok(None),
        }
        let is_fresh = |slot: &Slot| {
            let entry = &entries[*slot];
            let is_here = entry.lane == index && entry.message.state == State::Ready;
            is_here && !self.returned.contains_key(&entry.message.seq)
        };
        if let Some(slot) = by_seq.get(mark.seq).filter(is_fresh) {
            return Ok(self.fresh.after(entries, slot).next());
        }
        if mark.refills != self.refills {
            (mark.fresh, mark.refills) = (mark.seq, self.refills);
        }
        let mut own = self.fresh.iter(entries);
        for slot in by_seq.from(mark.fresh.next()) {
            let found =
                Some(slot).filter(is_fresh).or_else(|| own.next().filter(|slot| seq_of(*slot) > mark.seq));
            if let Some(found) = found {
                mark.fresh = Seq(seq_of(found).0 - 1);
                return Ok(Some(found));
            }
            *left = left.checked_sub(1).ok_or(OutOfLooks)?;
            mark.fresh = seq_of(slot);
        }
        Ok(None)
    }

    /// Ready messages in memory older than this one; `None` when it is further than `walk_max` from either end.
    pub(crate) fn ahead_of(&self, entries: &Entries, slot: Slot, walk_max: usize) -> Option<u64> {
        let here = self.ready_here();
        self.behind(entries, slot, walk_max).map(|behind| here - 1 - behind).or_else(|| {
            self.iter(entries).take(walk_max).position(|other| other == slot).map(|ahead| ahead as u64)
        })
    }

    /// Ready messages in memory with a lesser sequence.
    pub(crate) fn here_before(&self, entries: &Entries, seq: Seq) -> u64 {
        let fresh = self.fresh.iter(entries).take_while(|slot| entries[*slot].message.seq < seq);
        (self.returned.range(..seq).count() + fresh.count()) as u64
    }

    /// Ready messages in memory younger than this one. None are younger than the newest, which is what nearly everybody asks for.
    fn behind(&self, entries: &Entries, slot: Slot, walk_max: usize) -> Option<u64> {
        if self.fresh.tail() == Some(slot) && self.returned.is_empty() {
            return Some(0);
        }
        let seq = entries[slot].message.seq;
        let returned = self.returned.range(seq..).take(walk_max).count();
        if returned == walk_max || self.returned.contains_key(&seq) {
            return None;
        }
        let fresh = self.fresh.after(entries, slot).take(walk_max).count();
        (fresh < walk_max).then_some((returned + fresh) as u64)
    }

    /// Whether no message is in it.
    pub(crate) fn is_vacant(&self) -> bool {
        self.ready + self.delayed + self.leased + self.dead == 0
    }

    fn is_capped(&self) -> bool {
        self.max_active > 0 && self.leased >= u64::from(self.max_active)
    }
}

/// The lanes of a queue. An index names a lane for as long as it holds messages; its rank may change.
///
/// When the settings change what lanes there are, those of before stay behind the new ones as *former* lanes until their messages have moved.
#[derive(Clone, Debug)]
pub(crate) struct Lanes {
    lanes: Vec<Lane>,
    /// Indices that name no lane.
    free: Vec<u16>,
    /// Indices, the most urgent first; those of former lanes at the end.
    ranks: Vec<u16>,
    /// Lanes that the settings say, which are the first of the ranks.
    current: usize,
    /// Former lanes that there ever were.
    formers: i32,
    /// Ranks of lanes with ready messages.
    ready: Bitmap,
    /// Ranks of lanes at their cap.
    capped: Bitmap,
    /// Ready messages by rank, close together: a position is a sum over them.
    depths: Vec<u64>,
    /// The least urgent priority each lane takes, by rank, close together: every publish looks for its lane.
    floors: Vec<i32>,
    /// Their shares by rank, close together.
    weights: Vec<u32>,
    by_priority: bool,
    /// Of the lanes by priority one is kept free for each of these while there is none of it.
    kept: &'static [(&'static str, i32)],
}

impl Lanes {
    /// The lanes that the settings name; those of `order = "priority"` come with their first message.
    pub(crate) fn new(settings: &Settings) -> Self {
        let lanes: Vec<Lane> = match &settings.order {
            Order::Priority => Vec::new(),
            Order::Fifo => vec![Lane::new(Arc::from(FIFO_LANE), 0, i32::MIN, settings)],
            Order::Lanes(bands) => (bands.iter().zip((0..bands.len() as i32).rev()))
                .map(|(band, level)| {
                    let floor = band.from.as_ref().and_then(|from| settings.scheme.map(from).ok());
                    let floor = floor.map_or(i32::MIN, |priority| priority.0);
                    Lane::new(Arc::from(band.name.as_str()), level, floor, settings)
                })
                .collect(),
        };
        let mut all = Self {
            ranks: (0..lanes.len() as u16).collect(),
            current: lanes.len(),
            lanes,
            free: Vec::new(),
            formers: 0,
            ready: Bitmap::default(),
            capped: Bitmap::default(),
            depths: Vec::new(),
            floors: Vec::new(),
            weights: Vec::new(),
            by_priority: settings.order == Order::Priority,
            kept: settings.scheme.kept(),
        };
        all.rerank();
        all
    }

    pub(crate) fn lane(&self, index: u16) -> &Lane {
        &self.lanes[usize::from(index)]
    }

    pub(crate) fn lane_mut(&mut self, index: u16) -> &mut Lane {
        &mut self.lanes[usize::from(index)]
    }

    pub(crate) fn at_rank(&self, rank: usize) -> &Lane {
        self.lane(self.ranks[rank])
    }

    /// How many there are, former lanes among them: a rank is less.
    pub(crate) fn len(&self) -> usize {
        self.ranks.len()
    }

    /// How many lanes have the first ranks, before any former one.
    pub(crate) fn current(&self) -> usize {
        self.current
    }

    /// Whether there are former lanes.
    pub(crate) fn has_former(&self) -> bool {
        self.current < self.ranks.len()
    }

    /// The former lanes.
    pub(crate) fn former(&self) -> impl Iterator<Item = &Lane> {
        self.ranks[self.current..].iter().map(|index| self.lane(*index))
    }

    /// The lanes become those of these settings, with nothing in them; those of before are former lanes from now on. If they are the `same` lanes, those by
    /// priority are there already.
    pub(crate) fn replace(&mut self, settings: &Settings, same: bool) {
        let Self { lanes: mut new, by_priority, kept, .. } = Self::new(settings);
        if same && by_priority {
            let again = |lane: &Lane| Lane::new(Arc::clone(&lane.name), lane.level, lane.floor, settings);
            new = self.iter().take(self.current).map(again).collect();
        }
        for index in &self.ranks[..self.current] {
            let lane = &mut self.lanes[usize::from(*index)];
            // Told apart from all that were and will be, and the least urgent to any picker.
            lane.level = i32::MIN + self.formers;
            self.formers = self.formers.wrapping_add(1) & i32::MAX;
            (lane.is_former, lane.floor, lane.max_active, lane.weight) = (true, i32::MIN, 0, 1);
        }
        (self.by_priority, self.kept, self.current) = (by_priority, kept, new.len());
        let new: Vec<u16> = new.into_iter().map(|lane| self.place(lane)).collect();
        self.ranks.splice(0..0, new);
        self.rerank();
    }

    /// A former lane of this name, for a run that was in one before a restart.
    pub(crate) fn add_former(&mut self, name: Arc<str>, settings: &Settings) -> u16 {
        let same = |index: &&u16| *self.lane(**index).name == *name;
        let formers = &self.ranks[self.current..];
        let last = formers.last().filter(|_| formers.len() >= LANES_MAX);
        if let Some(index) = formers.iter().find(same).or(last) {
            return *index;
        }
        let lane = Lane::new(name, i32::MIN + self.formers, i32::MIN, settings);
        self.formers = self.formers.wrapping_add(1) & i32::MAX;
        let index = self.place(Lane { is_former: true, max_active: 0, weight: 1, ..lane });
        self.ranks.push(index);
        self.rerank();
        index
    }

    /// Groups do not know of what is in the lanes from this rank on.
    pub(crate) fn ungroup(&mut self, first: usize) {
        for index in &self.ranks[first..] {
            self.lanes[usize::from(*index)].is_ungrouped = true;
        }
    }

    /// Forgets the former lanes, which are vacant. What they counted goes to the lanes of the same names.
    pub(crate) fn forget_former(&mut self) {
        for index in self.ranks.split_off(self.current) {
            let Lane { name, stats, .. } = self.lane(index).clone();
            let same = self.ranks.iter().find(|other| self.lane(**other).name == name).copied();
            if let Some(same) = same {
                self.lane_mut(same).stats.add(&stats);
            }
            self.free.push(index);
        }
        self.rerank();
    }

    /// Gives a lane an index.
    fn place(&mut self, lane: Lane) -> u16 {
        if let Some(index) = self.free.pop() {
            self.lanes[usize::from(index)] = lane;
            return index;
        }
        self.lanes.push(lane);
        self.lanes.len() as u16 - 1
    }

    /// The share of the lane of this rank, and its ready messages.
    pub(crate) fn share(&self, rank: usize) -> (u64, u64) {
        (u64::from(self.weights[rank]), self.depths[rank])
    }

    /// Ready messages in more urgent lanes.
    pub(crate) fn ready_above(&self, rank: usize) -> u64 {
        self.depths[..rank].iter().sum()
    }

    pub(crate) fn index_at(&self, rank: usize) -> u16 {
        self.ranks[rank]
    }

    pub(crate) fn rank_of(&self, index: u16) -> usize {
        self.lane(index).rank
    }

    /// The indices of all lanes, the most urgent first.
    pub(crate) fn indices(&self) -> Vec<u16> {
        self.ranks.clone()
    }

    /// Every lane, the most urgent first.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &Lane> {
        self.ranks.iter().map(|index| self.lane(*index))
    }

    /// Ranks with ready messages.
    pub(crate) fn ready(&self) -> Bitmap {
        self.ready
    }

    /// Ranks with ready messages that may be leased now: without lanes that are at their cap, and without former lanes. While leases of former
    /// lanes are out nothing is, since they may count against a cap.
    pub(crate) fn eligible(&self) -> Bitmap {
        let open = self.ready.without(&self.capped);
        if !self.has_former() {
            return open;
        }
        if self.former().any(|lane| lane.leased > 0) { Bitmap::default() } else { open.below(self.current) }
    }

    /// The least urgent lane with ready messages, of a queue without former lanes.
    pub(crate) fn least(&self) -> Option<usize> {
        self.ready.last()
    }

    /// The first rank whose lane takes only priorities below this one.
    pub(crate) fn rank_below(&self, priority: Priority) -> usize {
        self.floors.partition_point(|floor| *floor >= priority.0)
    }

    /// Whether a message of this priority finds a lane.
    ///
    /// # Errors
    /// [`Refusal::TooManyLanes`].
    pub(crate) fn check(&self, priority: Priority) -> Result<(), Refusal> {
        let is_easy = !self.by_priority || self.current + self.kept.len() < LANES_MAX;
        if is_easy || self.is_in_use(priority) {
            return Ok(());
        }
        self.check_all(&BTreeSet::from([priority]))
    }

    /// Whether messages of all these priorities find a lane each. A lane is kept for each priority with a name that is in none: they
    /// always find one, also the most urgent, whatever numbers others have used up.
    ///
    /// # Errors
    /// [`Refusal::TooManyLanes`].
    pub(crate) fn check_all(&self, priorities: &BTreeSet<Priority>) -> Result<(), Refusal> {
        if !self.by_priority {
            return Ok(());
        }
        let in_use = self.iter().take(self.current).filter(|lane| !lane.is_vacant()).count();
        let new = || priorities.iter().filter(|priority| !self.is_in_use(**priority));
        let is_kept = |priority: &Priority| self.kept.iter().any(|(_, kept)| *kept == priority.0);
        let is_free = |kept: &&(&str, i32)| {
            let kept = Priority(kept.1);
            !self.is_in_use(kept) && !priorities.contains(&kept)
        };
        let free = if new().all(is_kept) { 0 } else { self.kept.iter().filter(is_free).count() };
        (in_use + new().count() + free <= LANES_MAX).then_some(()).ok_or(Refusal::TooManyLanes)
    }

    /// Whether there are messages of this priority, or of others in the same lane.
    fn is_in_use(&self, priority: Priority) -> bool {
        self.find(priority).is_ok_and(|rank| !self.at_rank(rank).is_vacant())
    }

    /// The rank of the lane that takes this priority; else the rank a new one would have.
    pub(crate) fn find(&self, priority: Priority) -> Result<usize, usize> {
        let rank = self.floors.partition_point(|floor| *floor > priority.0);
        match self.floors.get(rank) {
            Some(floor) if !self.by_priority || *floor == priority.0 => Ok(rank),
            _ => Err(rank),
        }
    }

    /// The index of the lane that takes this priority, made if need be. Beyond [`LANES_MAX`] the model has refused; a
    /// fold of older facts then shares the nearest lane. True if ranks changed.
    pub(crate) fn open(&mut self, priority: Priority, settings: &Settings) -> (u16, bool) {
        let rank = match self.find(priority) {
            Ok(rank) => return (self.ranks[rank], false),
            Err(rank) => rank,
        };
        let name = Arc::from(settings.scheme.name(priority).as_ref());
        let lane = Lane::new(name, priority.0, priority.0, settings);
        let vacant = || self.iter().take(self.current).position(Lane::is_vacant);
        let vacant = if self.current < LANES_MAX { None } else { vacant() };
        if self.current < LANES_MAX {
            let index = self.place(lane);
            self.ranks.insert(rank, index);
            self.current += 1;
        } else if let Some(vacant) = vacant {
            let index = self.ranks.remove(vacant);
            self.lanes[usize::from(index)] = lane;
            let others = &self.ranks[..self.current - 1];
            let rank = others.partition_point(|index| self.lane(*index).floor > priority.0);
            self.ranks.insert(rank, index);
        } else {
            return (self.ranks[rank.min(self.current - 1)], false);
        }
        self.rerank();
        (self.find(priority).map(|rank| self.ranks[rank]).expect("the lane was just made"), true)
    }

    fn rerank(&mut self) {
        for (rank, index) in self.ranks.iter().enumerate() {
            self.lanes[usize::from(*index)].rank = rank;
        }
        self.depths = self.iter().map(|lane| lane.ready).collect();
        self.floors = self.iter().take(self.current).map(|lane| lane.floor).collect();
        self.weights = self.iter().map(|lane| lane.weight).collect();
        (self.ready, self.capped) = Default::default();
        for index in &self.ranks {
            let lane = &self.lanes[usize::from(*index)];
            self.ready.set(lane.rank, lane.ready > 0);
            self.capped.set(lane.rank, lane.is_capped());
        }
    }

    pub(crate) fn push_ready(&mut self, entries: &mut Entries, slot: Slot) {
        let lane = &mut self.lanes[usize::from(entries[slot].lane)];
        lane.push(entries, slot);
        self.depths[lane.rank] = lane.ready;
        if lane.ready == 1 {
            self.ready.set(lane.rank, true);
        }
    }

    /// Ready messages of a lane went into a run, or came out of one: its other numbers are right already.
    pub(crate) fn count_ready(&mut self, index: u16) {
        let lane = &self.lanes[usize::from(index)];
        self.depths[lane.rank] = lane.ready;
        self.ready.set(lane.rank, lane.ready > 0);
    }

    pub(crate) fn take_ready(&mut self, entries: &mut Entries, slot: Slot) {
        let lane = &mut self.lanes[usize::from(entries[slot].lane)];
        lane.take(entries, slot);
        self.depths[lane.rank] = lane.ready;
        if lane.ready == 0 {
            self.ready.set(lane.rank, false);
        }
    }

    pub(crate) fn count_leased(&mut self, index: u16, bytes: u64, more: bool) {
        let lane = &mut self.lanes[usize::from(index)];
        (lane.leased, lane.leased_bytes) = match more {
            true => (lane.leased + 1, lane.leased_bytes + bytes),
            false => (lane.leased - 1, lane.leased_bytes - bytes),
        };
        self.capped.set(lane.rank, lane.is_capped());
    }

    /// Caps and weights as the settings say now; everything else stays.
    pub(crate) fn apply_settings(&mut self, settings: &Settings) {
        for index in &self.ranks[..self.current] {
            let lane = &mut self.lanes[usize::from(*index)];
            let fresh = Lane::new(Arc::clone(&lane.name), lane.level, lane.floor, settings);
            (lane.max_active, lane.weight) = (fresh.max_active, fresh.weight);
        }
        self.rerank();
    }

    /// A broker begins: what is there was published, and nothing else is counted yet. Of the lanes by priority those are there that have messages.
    pub(crate) fn count_from_here(&mut self) {
        if self.by_priority {
            let all = self.ranks[..self.current].to_vec();
            let (vacant, rest): (Vec<u16>, Vec<u16>) =
                all.into_iter().partition(|index| self.lane(*index).is_vacant());
            self.ranks.splice(..self.current, rest);
            self.current -= vacant.len();
            self.free.extend(vacant);
            self.rerank();
        }
        for index in self.ranks.clone() {
            let lane = self.lane_mut(index);
            let published = lane.standing(None);
            lane.stats = LaneStats::default();
            lane.stats.published = published;
            lane.is_past = lane.is_former;
        }
    }

    /// A message came into a lane out of another, because the settings changed. Where both have one name, or they changed before the
    /// broker began, it is not said to have moved.
    pub(crate) fn count_moved(&mut self, left: u16, to: u16) {
        if left == to {
            return;
        }
        let is_same = self.lane(left).is_past || self.lane(left).name == self.lane(to).name;
        let left = &mut self.lane_mut(left).stats;
        match is_same {
            true => left.published -= 1,
            false => left.moved += 1,
        }
        self.lane_mut(to).stats.published += 1;
    }

    /// A lease of this lane was given, the `count`-th of its message, after this wait since its publish.
    pub(crate) fn count_delivered(&mut self, index: u16, wait_ms: u64, count: u32) {
        let is_inversion = self.ready.first().is_some_and(|first| first < self.rank_of(index));
        self.lane_mut(index).stats.delivered(wait_ms, count, is_inversion);
    }

    pub(crate) fn count_settled(&mut self, index: u16, how: Settled) {
        self.lane_mut(index).stats.settled(how);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entries::Entry;
    use crate::message::Message;

    /// A lane of index 0 in a queue in which other lanes have messages, too.
    struct Bench {
        entries: Entries,
        by_seq: SeqIndex,
        lane: Lane,
    }

    impl Default for Bench {
        fn default() -> Self {
            let lane = Lane::new(Arc::from("0"), 0, 0, &Settings::default());
            Self { entries: Entries::default(), by_seq: SeqIndex::default(), lane }
        }
    }

    impl Bench {
        fn put(&mut self, seq: u64, index: u16) {
            let message = Message { seq: Seq(seq), state: State::Ready, ..Entry::vacant().message };
            let slot = self.entries.insert(message, index);
            self.by_seq.insert(Seq(seq), slot);
            if index == 0 {
                self.lane.push(&mut self.entries, slot);
            }
        }

        fn take(&mut self, seq: u64) {
            let slot = self.by_seq.get(Seq(seq)).expect("it is there");
            self.lane.take(&mut self.entries, slot);
            self.by_seq.remove(Seq(seq));
            self.entries.remove(slot);
        }

        fn fresh_after(&self, mark: &mut Mark, mut left: usize) -> Result<Option<u64>, OutOfLooks> {
            let found = self.lane.fresh_after(0, &self.entries, &self.by_seq, mark, &mut left)?;
            Ok(found.map(|slot| self.entries[slot].message.seq.0))
        }
    }

    #[test]
    fn a_message_that_comes_back_behind_a_mark_is_found() {
        let mut bench = Bench::default();
        for seq in (1..=10).chain([40]) {
            bench.put(seq, 0);
        }
        for seq in [11, 12, 14, 15, 16, 17] {
            bench.put(seq, 1);
        }
        let mut mark = Mark::default();
        mark.pass(Seq(10));
        assert_eq!(bench.fresh_after(&mut mark, 0), Ok(Some(40)), "the message of the mark is the way");
        bench.take(10);
        assert_eq!(bench.fresh_after(&mut mark, 4), Err(OutOfLooks), "11, 12, 14 and 15 were looked at");
        let mut unchanged = mark;
        assert_eq!(bench.fresh_after(&mut unchanged, 2), Ok(Some(40)), "16 and 17 were left");
        // All that was fresh behind the mark is gone, and one comes from a run that is older than what was looked at.
        bench.take(40);
        bench.put(13, 0);
        bench.put(50, 0);
        assert_eq!(bench.fresh_after(&mut mark, 9), Ok(Some(13)));
        (1..=9).for_each(|seq| bench.take(seq));
        assert_eq!(bench.fresh_after(&mut mark, 0), Ok(Some(13)), "it is the head");
        mark.pass(Seq(50));
        assert_eq!(bench.fresh_after(&mut mark, 0), Ok(None));
    }

    #[test]
    fn the_lane_leads_behind_a_mark_past_many_messages_of_others() {
        let mut bench = Bench::default();
        for seq in [1, 2, 100] {
            bench.put(seq, 0);
        }
        (3..100).for_each(|seq| bench.put(seq, 1));
        let mut mark = Mark::default();
        mark.pass(Seq(2));
        bench.take(2);
        assert_eq!(bench.fresh_after(&mut mark, 1), Ok(Some(100)));
    }
}
