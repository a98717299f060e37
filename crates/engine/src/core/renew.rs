//! After damage was skipped: the store is written again without it, so that it need not be skipped again.
//!
//! All that there is goes to the end of the journal, from a new file on: what queues there are, messages in memory, the records of
//! runs. Then every older file is given back, the damaged ones among them. What waits in segments stays where it is, but for damaged
//! ones: what can be read of them was brought into memory before.

use overtake_lane::{Fact, QueueId, RunId, Seq};
use overtake_store::{Committer, Disk, StoreError};

use super::Core;

/// Messages carried between two commits.
const BITE: usize = 256;

impl<T> Core<T> {
    /// Writes the store again. False: there is no room for it, or too many files are open, and the damage stays where it is.
    ///
    /// # Errors
    /// Whatever else the disk says.
    pub(super) fn renew<D: Disk>(&mut self, committer: &mut Committer<D>) -> Result<bool, StoreError> {
        match self.write_again(committer) {
            Ok(()) => Ok(true),
            Err(error) if error.is_passing() => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn write_again<D: Disk>(&mut self, committer: &mut Committer<D>) -> Result<(), StoreError> {
        self.commit_all(committer)?;
        self.file_ready(committer.prepare_file()?);
        let start = self.writer.begin_next_file()?;
        let topology = self.broker.topology_facts();
        self.house.topology_chunk = self.chunk();
        for facts in topology.chunks(BITE) {
            self.record(facts, false);
            self.commit_all(committer)?;
        }
        let mut next = Some((QueueId(0), Seq(0)));
        while let Some(from) = next {
            let (found, then) = self.broker.scan(from, BITE, |_| true);
            for (queue, seq) in found {
                self.carry(queue, seq);
            }
            self.drop_lost();
            self.commit_all(committer)?;
            next = then;
        }
        let runs: Vec<(RunId, QueueId)> = self.holds.iter().map(|(run, held)| (run, held.queue)).collect();
        for (run, queue) in runs {
            if let Some(fact) = self.broker.run_fact(queue, run) {
                let holes = if let Fact::RunRestated { run, .. } = &fact { run.holes.len() } else { 0 };
                let chunk = self.chunk();
                self.record(&[fact], false);
                self.holds.recorded(run, chunk, holes);
                self.commit_all(committer)?;
            }
        }
        self.end_idle_runs();
        self.commit_all(committer)?;
        self.writer.retire(start);
        self.commit_all(committer)?;
        committer.retire()?;
        Ok(())
    }

    /// Makes durable what was recorded, in as many files as it takes.
    fn commit_all<D: Disk>(&mut self, committer: &mut Committer<D>) -> Result<(), StoreError> {
        loop {
            if let Some(batch) = self.writer.take_batch() {
                committer.commit(&batch)?;
                self.writer.reuse(batch);
            }
            // A file ahead, so that the store can go on with what it has.
            if !self.is_behind() && self.writer.needs_files() == 0 {
                return Ok(());
            }
            self.file_ready(committer.prepare_file()?);
        }
    }
}
