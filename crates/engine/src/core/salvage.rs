//! Messages that wait in a damaged or missing part of a run, and are in memory because the journal still has them.
//!
//! The journal says of most of them by name what becomes of them. Where all that waits in a run is settled by one word, it names none, so
//! those that nothing else happened to are known here by name.

use std::collections::{BTreeMap, BTreeSet};

use overtake_lane::{Fact, QueueId, RunId, Seq};

/// Such messages, while the journal is read.
#[derive(Default)]
pub(super) struct Salvage {
    runs: BTreeMap<RunId, Salvaged>,
    /// The run of each of [`Salvaged::seqs`].
    by_seq: BTreeMap<(QueueId, Seq), RunId>,
}

struct Salvaged {
    queue: QueueId,
    /// How many there were.
    count: u64,
    /// Those to which nothing happened since.
    seqs: BTreeSet<Seq>,
}

impl Salvage {
    /// Whether it is known what there is of a run.
    pub(super) fn has(&self, run: RunId) -> bool {
        self.runs.contains_key(&run)
    }

    /// So many messages of a run are in memory; these of them are over when all that waits in it is.
    pub(super) fn add(&mut self, run: RunId, queue: QueueId, count: u64, seqs: BTreeSet<Seq>) {
        self.by_seq.extend(seqs.iter().map(|seq| ((queue, *seq), run)));
        self.runs.insert(run, Salvaged { queue, count, seqs });
    }

    /// How many messages of a run the journal had.
    pub(super) fn count(&self, run: RunId) -> u64 {
        self.runs.get(&run).map_or(0, |salvaged| salvaged.count)
    }

    /// Before a fact is folded: the messages that it ends without naming them.
    pub(super) fn ended_by(&mut self, fact: &Fact) -> Vec<Fact> {
        if self.runs.is_empty() {
            return Vec::new();
        }
        match fact {
            // What is written again stands for itself from then on.
            Fact::Stored { queue, message } => self.touched(*queue, message.seq),
            Fact::Leased { queue, seq, .. }
            | Fact::PutBack { queue, seq, .. }
            | Fact::Reprioritised { queue, seq, .. }
            | Fact::Settled { queue, seq, .. }
            | Fact::Died { queue, seq, .. }
            | Fact::Replayed { queue, seq, .. }
            | Fact::Moved { from: queue, seq, .. } => self.touched(*queue, *seq),
            // Those that stay stand for themselves; the others are gone by this.
            Fact::Purged { queue, kept, .. } => kept.iter().for_each(|seq| self.touched(*queue, *seq)),
            Fact::RunFetched { run, .. } => drop(self.take(*run)),
            Fact::RunsRewritten { of, .. } => of.iter().for_each(|old| drop(self.take(old.run))),
            Fact::RunSettled { run, how, .. } => {
                let seqs = self.take(*run);
                let queue = self.runs.remove(run).map(|salvaged| salvaged.queue);
                let settled = |seq| Some(Fact::Settled { queue: queue?, seq, how: *how });
                return seqs.into_iter().filter_map(settled).collect();
            }
            _ => {}
        }
        Vec::new()
    }

    /// Something happened to a message.
    fn touched(&mut self, queue: QueueId, seq: Seq) {
        let run = self.by_seq.remove(&(queue, seq));
        if let Some(salvaged) = run.and_then(|run| self.runs.get_mut(&run)) {
            salvaged.seqs.remove(&seq);
        }
    }

    /// Those to which nothing happened, of a run that is over or of which each is in memory now.
    fn take(&mut self, run: RunId) -> BTreeSet<Seq> {
        let Some(salvaged) = self.runs.get_mut(&run) else { return BTreeSet::new() };
        let seqs = std::mem::take(&mut salvaged.seqs);
        for seq in &seqs {
            self.by_seq.remove(&(salvaged.queue, *seq));
        }
        seqs
    }
}

#[cfg(test)]
mod tests {
    use overtake_lane::{Message, Original, Place, Priority, Settled, State, Time};

    use super::*;

    const QUEUE: QueueId = QueueId(1);
    const RUN: RunId = RunId(7);

    /// Five messages of one run are known, then these facts follow; which of them does the end of the run end?
    fn check(facts: &[Fact], expected: &[u64]) {
        let mut salvage = Salvage::default();
        salvage.add(RUN, QUEUE, 5, (1..=5).map(Seq).collect());
        salvage.add(RunId(8), QUEUE, 1, [Seq(6)].into());
        for fact in facts {
            assert!(salvage.ended_by(fact).is_empty(), "{fact:?} names what it ends");
        }
        let ended = salvage.ended_by(&Fact::RunSettled { queue: QUEUE, run: RUN, how: Settled::Removed });
        let seqs = ended.iter().map(|fact| match fact {
            Fact::Settled { queue: QUEUE, seq, how: Settled::Removed } => seq.0,
            other => panic!("{other:?}"),
        });
        assert_eq!(seqs.collect::<Vec<_>>(), expected, "after {facts:?}");
    }

    fn settled(seq: u64) -> Fact {
        Fact::Settled { queue: QUEUE, seq: Seq(seq), how: Settled::Acked }
    }

    fn stored(seq: u64) -> Fact {
        let message = Message {
            seq: Seq(seq),
            priority: Priority(0),
            original: Original::Missing,
            since: Time(0),
            expires: Time::NEVER,
            bytes: 0,
            count: 0,
            place: Place(0),
            state: State::Ready,
            extras: None,
        };
        Fact::Stored { queue: QUEUE, message }
    }

    #[test]
    fn the_end_of_a_run_ends_what_waits_in_it_and_nothing_happened_to() {
        check(&[], &[1, 2, 3, 4, 5]);
        check(&[settled(2), settled(6)], &[1, 3, 4, 5]);
        // A message that was fetched and written again is needed for itself.
        check(&[stored(4), settled(1)], &[2, 3, 5]);
        check(&[Fact::RunFetched { queue: QUEUE, run: RUN }], &[]);
        // What was held when the others were purged stays.
        check(&[Fact::Purged { queue: QUEUE, before: Seq(9), kept: vec![Seq(2), Seq(3)] }], &[1, 4, 5]);
        check(&[Fact::RunFetched { queue: QUEUE, run: RunId(8) }], &[1, 2, 3, 4, 5]);
    }
}
