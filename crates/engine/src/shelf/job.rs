//! What is done beside the journal, on a thread of its own: segments are written, rewritten and removed.

use std::ops::Range;
use std::sync::Arc;

use overtake_lane::{Message, QueueId, RunId, Seq};
use overtake_store::{
    Aside, Block, Disk, IdIndex, MergeProgress, SegmentInfo, SegmentWriter, Segments, StoreError,
};

use super::MissingBlock;
use super::quarantine::Quarantine;
use crate::api::Content;

/// Something to do for whoever has the disk. In order, but beside the commits of batches.
#[derive(Debug)]
pub enum Job {
    /// Write a segment.
    Spill(Spill),
    /// Write what still waits in some segments into a new one.
    Rewrite(Rewrite),
    /// Remove the segment of a run that nobody needs any more.
    Remove(RunId),
    /// Read what a look needs next.
    Read {
        /// Tells it from others.
        number: u64,
        /// What is to be in memory.
        blocks: Vec<MissingBlock>,
    },
    /// Read what comes after a block, so that it is in memory when it is wanted.
    ReadAhead {
        /// The run that is being read.
        run: RunId,
        /// A message of the block.
        ordinal: u32,
        /// The run that comes after it.
        next: Option<RunId>,
    },
}

/// Messages that leave memory once they are in a segment.
#[derive(Debug)]
pub struct Spill {
    /// Of which queue.
    pub(crate) queue: QueueId,
    /// The run they will wait in.
    pub(crate) run: RunId,
    pub(crate) messages: Vec<(Message, ContentAt)>,
}

/// The place from which a job reads the content of a message.
#[derive(Debug)]
pub(crate) enum ContentAt {
    /// In memory.
    Memory(Arc<Content>),
    /// In the segment of a run. Nobody removes the segment before the job is done.
    Segment {
        /// The run.
        run: RunId,
        /// The place of the message in it.
        ordinal: u32,
    },
}

/// Messages that go from sparse segments into a new one.
#[derive(Debug)]
pub struct Rewrite {
    /// Of which queue.
    pub(crate) queue: QueueId,
    /// The run they will wait in.
    pub(crate) run: RunId,
    /// Where they are, in the order of sequences.
    pub(crate) pieces: Vec<(RunId, Range<u32>)>,
}

/// What came of a job. For [`Core::done`](crate::core::Core::done).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Done {
    /// The segment is durable.
    Spilled(SegmentInfo),
    /// The segment of a rewrite is durable.
    Rewritten(SegmentInfo),
    /// There is no room for the segment, or no file may be opened for it.
    NoRoom {
        /// Of which queue.
        queue: QueueId,
        /// Of which run.
        run: RunId,
    },
    /// A rewrite came across messages that cannot be read, and was given up; they are in quarantine.
    Unreadable {
        /// Of which queue.
        queue: QueueId,
        /// Of which run.
        run: RunId,
    },
    /// The contents of these messages cannot be read: the blocks that hold them are in quarantine, and the segment was not written.
    Lost {
        /// Of which queue.
        queue: QueueId,
        /// Of which run.
        run: RunId,
        /// The messages, of those that were to be written.
        seqs: Vec<Seq>,
    },
    /// The segment is gone.
    Removed,
    /// What a look needs next is in memory, as far as it can be read.
    Read {
        /// That of the job.
        number: u64,
    },
    /// What may be wanted next is in memory, as far as it is there.
    ReadAhead,
}

/// Does jobs.
pub struct Spiller<D: Disk> {
    segments: Arc<Segments<D>>,
    ids: Arc<IdIndex<D>>,
    quarantine: Arc<Quarantine>,
    content: Vec<u8>,
}

impl<D: Disk> Spiller<D> {
    pub(crate) fn new(segments: Arc<Segments<D>>, ids: Arc<IdIndex<D>>, quarantine: Arc<Quarantine>) -> Self {
        Self { segments, ids, quarantine, content: Vec::new() }
    }

    /// Does a job.
    ///
    /// # Errors
    /// What the disk says, but for a full one, which is [`Done::NoRoom`]. Then the engine must stop, as after a failed commit.
    pub fn perform(&mut self, job: Job) -> Result<Done, StoreError> {
        match job {
            Job::Spill(spill) => {
                let (queue, run) = (spill.queue, spill.run);
                no_room(queue, run, self.spill(spill))
            }
            Job::Rewrite(rewrite) => {
                let (queue, run) = (rewrite.queue, rewrite.run);
                no_room(queue, run, self.rewrite(&rewrite))
            }
            Job::Read { number, blocks } => {
                for MissingBlock { run, ordinal } in blocks {
                    // Whoever wants it meets the same error.
                    if let Ok(Some(segment)) = self.segments.get(run.0)
                        && let Some(ordinal) = ordinal
                    {
                        let _ = segment.block(u64::from(ordinal));
                    }
                }
                Ok(Done::Read { number })
            }
            Job::ReadAhead { run, ordinal, next } => {
                // Whoever wants it meets the same error.
                let _ = self.read_ahead(run, u64::from(ordinal), next);
                Ok(Done::ReadAhead)
            }
            Job::Remove(run) => {
                self.ids.forget(run.0);
                if self.quarantine.has(run) {
                    self.segments.set_aside(run.0, Aside::Damaged)?;
                    return Ok(Done::Removed);
                }
                match self.segments.remove(run.0) {
                    // Somebody has put something else in its place.
                    Err(error) if error.is_of_its_file() => {
                        self.segments.set_aside(run.0, Aside::Damaged)?;
                    }
                    removed => removed?,
                }
                Ok(Done::Removed)
            }
        }
    }

    /// Does a bite of merging the tables of ids, while there is no job. True: there is more to do.
    ///
    /// # Errors
    /// As [`Spiller::perform`].
    pub fn merge_ids(&mut self) -> Result<bool, StoreError> {
        match self.ids.merge_some() {
            Ok(progress) => Ok(progress == MergeProgress::More),
            // It goes on with the next segment.
            Err(error) if error.is_passing() => Ok(false),
            // The one that is damaged is left out from now on.
            Err(StoreError::Corrupt { .. }) => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// Makes a segment durable, with its ids to be found before anybody needs them there.
    fn finish(&self, writer: SegmentWriter<D>) -> Result<SegmentInfo, StoreError> {
        let segment = writer.finish()?;
        self.ids.add(segment.number)?;
        Ok(segment)
    }

    fn spill(&mut self, Spill { queue, run, messages }: Spill) -> Result<Done, StoreError> {
        let mut writer = self.segments.writer_of(run.0, queue)?;
        let mut seqs = Vec::new();
        for (message, content) in messages {
            match content {
                ContentAt::Memory(content) => {
                    self.content.clear();
                    content.encode(&mut self.content);
                    writer.push(&message, &self.content)?;
                }
                ContentAt::Segment { run, ordinal } => {
                    match self.read(run, u64::from(ordinal), |_| Ok(()))? {
                        Some((block, ())) => writer.push(&message, block.content(u64::from(ordinal)))?,
                        None => seqs.push(message.seq),
                    }
                }
            }
        }
        if !seqs.is_empty() {
            return Ok(Done::Lost { queue, run, seqs });
        }
        self.finish(writer).map(Done::Spilled)
    }

    /// The block with this message, and the result of reading from the block. `None`: the block cannot be read, and is in quarantine.
    fn read<R>(
        &self,
        run: RunId,
        ordinal: u64,
        read: impl FnOnce(&Block) -> Result<R, StoreError>,
    ) -> Result<Option<(Arc<Block>, R)>, StoreError> {
        let segment = match self.segments.get(run.0) {
            Ok(Some(segment)) => segment,
            Ok(None) => {
                self.quarantine.missing(run);
                return Ok(None);
            }
            Err(error) if self.quarantine.served_segment(run, &error) => return Ok(None),
            Err(error) => return Err(error),
        };
        let found = segment.block(ordinal).and_then(|block| {
            let block = block.ok_or_else(|| no_such_message(run, ordinal))?;
            let read = read(&block)?;
            Ok((block, read))
        });
        match found {
            Ok(found) => Ok(Some(found)),
            Err(error) => match self.quarantine.served_block(&segment, ordinal, &error) {
                Some(_) => Ok(None),
                None => Err(error),
            },
        }
    }

    fn read_ahead(&self, run: RunId, ordinal: u64, next: Option<RunId>) -> Result<(), StoreError> {
        let Some(segment) = self.segments.get(run.0)? else { return Ok(()) };
        let is_last =
            segment.block(ordinal)?.is_some_and(|block| block.ordinals().end == segment.info().count);
        if !is_last {
            return segment.read_ahead(ordinal);
        }
        if let Some(next) = next.map(|next| self.segments.get(next.0)).transpose()?.flatten() {
            next.block(0)?;
        }
        Ok(())
    }

    fn rewrite(&self, rewrite: &Rewrite) -> Result<Done, StoreError> {
        let unreadable = Done::Unreadable { queue: rewrite.queue, run: rewrite.run };
        let mut writer = self.segments.writer_of(rewrite.run.0, rewrite.queue)?;
        for (run, ordinals) in &rewrite.pieces {
            for ordinal in u64::from(ordinals.start)..u64::from(ordinals.end) {
                let Some((block, message)) = self.read(*run, ordinal, |block| block.message(ordinal))? else {
                    return Ok(unreadable);
                };
                writer.push(&message, block.content(ordinal))?;
            }
        }
        self.finish(writer).map(Done::Rewritten)
    }
}

/// The journal counts more messages than the segment has.
fn no_such_message(run: RunId, ordinal: u64) -> StoreError {
    StoreError::Poisoned { why: format!("segment {} has no message {ordinal}, which still waits", run.0) }
}

fn no_room(queue: QueueId, run: RunId, result: Result<Done, StoreError>) -> Result<Done, StoreError> {
    match result {
        // A directory that was moved away may come back.
        Err(error) if error.is_passing() || error.is_gone() => Ok(Done::NoRoom { queue, run }),
        result => result,
    }
}

#[cfg(test)]
mod tests {
    use overtake_lane::{Original, Place, Priority, State, Time};
    use overtake_store::{MemoryDisk, OnDamage};

    use super::*;

    const QUEUE: QueueId = QueueId(1);

    fn message(seq: u64) -> Message {
        Message {
            seq: Seq(seq),
            priority: Priority(0),
            original: Original::Missing,
            since: Time(1),
            expires: Time::NEVER,
            bytes: 1,
            count: 0,
            place: Place(0),
            state: State::Ready,
            extras: None,
        }
    }

    #[test]
    fn what_is_read_for_a_segment_is_written_or_named_as_lost() {
        let segments =
            Arc::new(Segments::open(MemoryDisk::new(1), 7, 1, 4, usize::MAX).expect("a new directory"));
        let ids = Arc::new(IdIndex::open(Arc::clone(&segments), 1 << 10).expect("a new index"));
        let quarantine = Arc::new(Quarantine::new(OnDamage::Refuse));
        let mut spiller = Spiller::new(Arc::clone(&segments), ids, Arc::clone(&quarantine));
        let mut spill = |run: u64, messages: Vec<(Message, ContentAt)>| {
            let spill = Spill { queue: QUEUE, run: RunId(run), messages };
            spiller.perform(Job::Spill(spill)).expect("the disk is well")
        };
        let content = Arc::new(Content { body: b"x".to_vec().into(), ..Content::default() });
        let here = |seq| (message(seq), ContentAt::Memory(Arc::clone(&content)));
        assert!(matches!(spill(1, vec![here(1), here(2)]), Done::Spilled(_)));

        let from = |seq, run, ordinal| (message(seq), ContentAt::Segment { run: RunId(run), ordinal });
        assert!(matches!(spill(2, vec![from(2, 1, 1), here(3)]), Done::Spilled(_)));
        let said = |ordinal| {
            let segment = segments.get(2).expect("it is read").expect("it is there");
            segment.content(ordinal).expect("it is read").expect("it is there")
        };
        assert_eq!(said(0), said(1));

        let lost = spill(4, vec![here(1), from(2, 3, 0), from(3, 2, 1), from(4, 3, 1)]);
        let (queue, run) = (QUEUE, RunId(4));
        assert_eq!(lost, Done::Lost { queue, run, seqs: vec![Seq(2), Seq(4)] });
        assert!(quarantine.has(RunId(3)) && segments.get(4).expect("it is looked for").is_none());
    }
}
