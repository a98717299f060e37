//! Where a message stands: how many go before it, in its lane and in all, if nothing came or went in between.

use crate::message::{Message, State};
use crate::picker::{Picker, Turn, urgency};
use crate::queue::Queue;

/// Under `aging` a position is told up to this depth.
const POSITION_MAX: u64 = 1_000;

impl Queue {
    /// Messages ahead of a ready one: in dispatch order, and in its own lane. Neither is told of one that is further than
    /// `walk_max` from either end of its lane, nor while messages wait to move to other lanes: it is not known before which they will go.
    pub(crate) fn position(
        &self,
        index: u16,
        message: &Message,
        walk_max: usize,
    ) -> (Option<u64>, Option<u64>) {
        if message.state != State::Ready || self.has_former() {
            return (None, None);
        }
        let rank = self.lanes.rank_of(index);
        let lane = self.lanes.lane(index);
        let here = match self.by_seq.get(message.seq) {
            Some(slot) => lane.ahead_of(&self.entries, slot, walk_max),
            None => Some(lane.here_before(&self.entries, message.seq)),
        };
        let Some(in_lane) = here.map(|here| here + self.spilled_before(index, message.seq)) else {
            return (None, None);
        };
        let elsewhere = match &self.picker {
            Picker::Strict => Some(self.lanes.ready_above(rank)),
            Picker::Weighted { turn } => Some(self.ahead_in_turns(*turn, rank, in_lane)),
            Picker::Aging { step_ms } => self.older(*step_ms, rank, message, in_lane),
        };
        (elsewhere.map(|elsewhere| elsewhere + in_lane), Some(in_lane))
    }

    /// How many messages other lanes give, each in its turn, before this one has given `in_lane` messages.
    fn ahead_in_turns(&self, turn: Option<Turn>, rank: usize, in_lane: u64) -> u64 {
        let lanes = self.lanes.len();
        let (served, left) = turn.map_or((lanes - 1, 0), |turn| (turn.rank, u64::from(turn.left)));
        let in_ring = |rank: usize| if rank > served { rank - served } else { rank + lanes - served };
        let left_to = |at: usize| if at == served { left } else { 0 };
        if in_lane < left_to(rank) {
            return 0;
        }
        let rounds = (in_lane - left_to(rank)) / self.lanes.share(rank).0;
        let others = self.lanes.ready().iter().filter(|other| *other != rank).map(|other| {
            let (weight, ready) = self.lanes.share(other);
            let turns = rounds + u64::from(in_ring(other) < in_ring(rank));
            ready.min(left_to(other) + turns * weight)
        });
        others.sum()
    }

    /// How many messages of other lanes are more urgent by now; `None` when too many are to be counted.
    fn older(&self, step_ms: u64, rank: usize, message: &Message, in_lane: u64) -> Option<u64> {
        let urgency = |rank: usize, message: &Message| {
            (urgency(&self.lanes.at_rank(rank).head_of(message), step_ms), rank)
        };
        let mine = urgency(rank, message);
        let mut left = POSITION_MAX.checked_sub(in_lane)?;
        let others = self.lanes.ready().iter().filter(|other| *other != rank);
        let others = others.flat_map(|other| {
            let lane = self.lane_messages(self.lanes.index_at(other));
            lane.take_while(move |message| urgency(other, message) < mine)
        });
        let mut ahead = 0;
        for _ in others {
            left = left.checked_sub(1)?;
            ahead += 1;
        }
        Some(ahead)
    }
}
