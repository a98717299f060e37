//! All definitions are written again at the tail of the journal, so that it may begin after they were written first: some at a time, between
//! whatever else is asked.
//!
//! ```text
//!   Measuring: what do all of them take? ─▶ is there room for that? ─▶ Writing, a few in each turn ─▶ the journal may begin where it began
//! ```
//!
//! Definitions that change meanwhile are written by their own records, and again if their turn comes later, so what was written since `Writing`
//! began says all that holds. A crash before its end costs nothing: the records before it are given back after it only.
//! What is left to write is kept free of publishes ([`Core::restating_due`]).

use overtake_lane::{Fact, TopologyCursor};
use overtake_store::{Writer, record};

use super::Core;
use super::house::QUEUE_COST;

/// Definitions of one turn: about half a ms. With debug assertions few, so that tests and the simulator, which have few queues, take many turns.
const FACTS_AT_ONCE: usize = if cfg!(debug_assertions) { 4 } else { 128 };

/// How far it is.
#[derive(Debug)]
pub(super) enum Restating {
    /// Adds up what all of them take.
    Measuring { next: TopologyCursor, cost: u64 },
    /// Writes them. The first is in the chunk `from`, and what is left to write takes `left` bytes, about.
    Writing { next: TopologyCursor, from: u32, left: u64, waits: bool },
}

impl<T> Core<T> {
    /// Whether [`Core::keep_house`] has more definitions to write again, and room for them.
    #[must_use]
    pub fn has_more_to_restate(&self) -> bool {
        match self.house.restating {
            Some(Restating::Writing { waits, .. }) => !waits,
            Some(Restating::Measuring { .. }) => true,
            None => false,
        }
    }

    /// Bytes that the definitions take that are left to write, metadata among them. Nobody else takes that room, or the journal would be
    /// longer by those that are written, and none of it given back.
    pub(super) fn restating_due(&self) -> u64 {
        if let Some(Restating::Writing { left, .. }) = self.house.restating { left } else { 0 }
    }

    /// Goes on with writing definitions again, or begins where the journal before the chunk `needed` is kept for them alone.
    /// Messages that stand before a definition are folded without knowing their queue's name, and are told it there.
    pub(super) fn restate_some(&mut self, needed: u32) {
        let restating = match self.house.restating.take() {
            Some(restating) => restating,
            None if self.house.topology_chunk < needed && (self.is_long() || self.topology_is_small()) => {
                Restating::Measuring { next: TopologyCursor::default(), cost: 0 }
            }
            None => return,
        };
        match restating {
            Restating::Measuring { next, cost } => self.measure(next, cost),
            Restating::Writing { next, from, left, .. } => self.restate(next, from, left),
        }
    }

    fn measure(&mut self, next: TopologyCursor, cost: u64) {
        let (facts, next) = self.broker.topology_facts_from(next, FACTS_AT_ONCE);
        let cost = cost + self.cost_of_facts(&facts);
        if let Some(next) = next {
            self.house.restating = Some(Restating::Measuring { next, cost });
            return;
        }
        // What publishes leave free may go into this: else a full disk would not become empty by consuming. Where there is no room it is
        // measured again: with what is consumed there may be.
        if !self.is_behind() && self.reckon().has_beside_reserve(cost) {
            self.restate(TopologyCursor::default(), self.chunk(), cost);
        }
    }

    fn restate(&mut self, at: TopologyCursor, from: u32, left: u64) {
        let (facts, next) = self.broker.topology_facts_from(at.clone(), FACTS_AT_ONCE);
        let cost = self.cost_of_facts(&facts);
        if self.is_behind() || !self.reckon().has_beside_reserve(cost) {
            self.house.restating = Some(Restating::Writing { next: at, from, left, waits: true });
            return;
        }
        match next {
            Some(next) => {
                let left = left.saturating_sub(cost);
                self.house.restating = Some(Restating::Writing { next, from, left, waits: false });
            }
            None => self.house.topology_chunk = from,
        }
        self.record(&facts, false);
    }

    fn cost_of_facts(&mut self, facts: &[Fact]) -> u64 {
        let mut bytes = std::mem::take(&mut self.scratch);
        let mut cost_of = |fact: &Fact| {
            bytes.clear();
            record::encode(fact, record::Content::None, &mut bytes);
            Writer::cost(bytes.len())
        };
        let cost = facts.iter().map(&mut cost_of).sum();
        self.scratch = bytes;
        cost
    }

    /// Whether writing all definitions again costs next to nothing beside a journal file.
    fn topology_is_small(&self) -> bool {
        self.broker.topology_len() as u64 * QUEUE_COST < self.options.segment_bytes / 64
    }
}
