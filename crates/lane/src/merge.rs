//! Places that each hold a part of one queue, merged by their heads: which of them gives the next message.
//!
//! Each place shows one head per lane, and only here it is picked among them, and charged: for strict and ageing pickers a tournament of the places' own winners
//! would come to the same, for the weighted one it would not. Lanes of one level are one lane, whose head is the oldest of all; so the order is exactly that of
//! one queue with the same messages, as far as what the places show is true.
//!
//! Showing, picking and charging cost `O(log n)` for `n` places.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use crate::LANES_MAX;
use crate::bitmap::Bitmap;
use crate::ids::Seq;
use crate::picker::{Head, Picker};
use crate::settings::PickerKind;

/// Names a place: a number that whoever merges has given it.
pub type PlaceNumber = u32;

/// The heads of places, and whose turn it is.
#[derive(Clone, Debug)]
pub struct Merger {
    picker: Picker,
    /// By level, where that is not 1.
    weights: BTreeMap<i32, u32>,
    /// The most urgent first. One that is empty stays, until there are too many.
    lanes: Vec<Merged>,
    /// Ranks of lanes with a head.
    shown: Bitmap,
    heads: BTreeMap<(PlaceNumber, Reverse<i32>), Head>,
}

/// The lanes of one level.
#[derive(Clone, Debug)]
struct Merged {
    level: i32,
    heads: BTreeSet<(Seq, PlaceNumber)>,
}

impl Merger {
    /// Without places yet. `weights` are by level, for [`PickerKind::Weighted`], which names lanes otherwise; what is not among them weighs 1.
    #[must_use]
    pub fn new(kind: &PickerKind, weights: BTreeMap<i32, u32>) -> Self {
        let picker = Picker::new(kind);
        Self { picker, weights, lanes: Vec::new(), shown: Bitmap::default(), heads: BTreeMap::new() }
    }

    /// What goes next in a lane of a place, as far as is known; `None`: nothing.
    ///
    /// With heads of [`LANES_MAX`] levels those of another are not seen until they are shown again.
    pub fn show(&mut self, place: PlaceNumber, level: i32, head: Option<Head>) {
        let key = (place, Reverse(level));
        let is_known = self.lanes.iter().any(|lane| lane.level == level);
        if !is_known && self.shown.iter().count() >= LANES_MAX {
            return;
        }
        let before = match head {
            Some(head) => self.heads.insert(key, head),
            None => self.heads.remove(&key),
        };
        if before == head {
            return;
        }
        let rank = match self.lanes.binary_search_by_key(&Reverse(level), |lane| Reverse(lane.level)) {
            Ok(rank) => rank,
            Err(rank) => self.open(rank, level),
        };
        let heads = &mut self.lanes[rank].heads;
        if let Some(before) = before {
            heads.remove(&(before.seq, place));
        }
        if let Some(head) = head {
            heads.insert((head.seq, place));
        }
        let is_shown = !heads.is_empty();
        self.shown.set(rank, is_shown);
    }

    /// What all lanes of a place show: one head for each lane in which there is one.
    pub fn show_all(&mut self, place: PlaceNumber, heads: &[Head]) {
        let gone: Vec<i32> = self
            .of(place)
            .map(|head| head.level)
            .filter(|level| heads.iter().all(|head| head.level != *level))
            .collect();
        for level in gone {
            self.show(place, level, None);
        }
        for head in heads {
            self.show(place, head.level, Some(*head));
        }
    }

    /// What a place shows, the most urgent first.
    pub fn of(&self, place: PlaceNumber) -> impl Iterator<Item = Head> + '_ {
        let all = (place, Reverse(i32::MAX))..=(place, Reverse(i32::MIN));
        self.heads.range(all).map(|(_, head)| *head)
    }

    /// The place to take from, and the head that it shows, of lanes of levels that are `wanted`. What is taken there is [charged](Self::charge), and what is
    /// shown there then is [shown](Self::show).
    pub fn pick(&self, wanted: impl Fn(i32) -> bool) -> Option<(PlaceNumber, Head)> {
        let mut eligible = self.shown;
        for rank in self.shown.iter() {
            eligible.set(rank, wanted(self.lanes[rank].level));
        }
        let rank =
            self.picker.pick(eligible, |rank| self.head(rank).expect("a lane that is shown has a head").1)?;
        self.head(rank)
    }

    /// What goes after what was picked, if nothing comes in between: up to where a place may be asked for more than one message at once. Of lanes of several levels only by the strict
    /// picker, whose turns do not depend on what is taken; of one level by any, for as many [turns](Self::turns) as it has.
    #[must_use]
    pub fn runner_up(&self, place: PlaceNumber, wanted: impl Fn(i32) -> bool) -> Option<Head> {
        let lanes = self.shown.iter().map(|rank| &self.lanes[rank]).filter(|lane| wanted(lane.level));
        lanes
            .flat_map(|lane| lane.heads.iter().map(|head| (lane.level, head)))
            .find(|(_, (_, at))| *at != place)
            .map(|(level, (_, at))| self.heads[&(*at, Reverse(level))])
    }

    /// How many messages of a level go, now that it is picked, before it is picked anew.
    #[must_use]
    pub fn turns(&self, level: i32) -> u32 {
        let weight = self.weights.get(&level).copied().unwrap_or(1).max(1);
        let rank = self.lanes.binary_search_by_key(&Reverse(level), |lane| Reverse(lane.level));
        rank.map_or(1, |rank| self.picker.turns(rank, weight))
    }

    /// A message of a lane of this level was taken.
    pub fn charge(&mut self, level: i32) {
        if let Ok(rank) = self.lanes.binary_search_by_key(&Reverse(level), |lane| Reverse(lane.level)) {
            let weight = self.weights.get(&level).copied().unwrap_or(1).max(1);
            self.picker.charge(rank, weight);
        }
    }

    /// The oldest head of the lanes of this rank.
    fn head(&self, rank: usize) -> Option<(PlaceNumber, Head)> {
        let lane = &self.lanes[rank];
        let (_, place) = *lane.heads.first()?;
        Some((place, self.heads[&(place, Reverse(lane.level))]))
    }

    /// Makes the lane of a level that would have this rank. Answers the rank it has.
    fn open(&mut self, rank: usize, level: i32) -> usize {
        let turn = self.picker.turn().map(|rank| self.lanes[rank].level);
        self.lanes.insert(rank, Merged { level, heads: BTreeSet::new() });
        if self.lanes.len() > LANES_MAX {
            self.lanes
                .retain(|lane| !lane.heads.is_empty() || lane.level == level || Some(lane.level) == turn);
            assert!(self.lanes.len() <= LANES_MAX, "a queue has no more lanes");
        }
        self.shown = Bitmap::default();
        for (rank, lane) in self.lanes.iter().enumerate() {
            self.shown.set(rank, !lane.heads.is_empty());
        }
        let rank_of = |level: i32| self.lanes.iter().position(|lane| lane.level == level);
        let turn = turn.and_then(rank_of);
        let rank = rank_of(level).expect("it was just made");
        self.picker.ranks_changed(turn);
        rank
    }
}
