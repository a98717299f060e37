//! What is done beside the journal, on a thread of its own: segments are written and removed.

use std::sync::Arc;

use overtake_lane::{Message, QueueId, RunId};
use overtake_store::{Disk, Segments, StoreError};

use crate::api::Content;

/// Something to do for whoever has the disk. In order, but beside the commits of batches.
#[derive(Debug)]
pub enum Job {
    /// Write a segment.
    Spill(Spill),
    /// Remove the segment of a run that nobody needs any more.
    Remove(RunId),
}

/// Messages that leave memory once they are in a segment.
#[derive(Debug)]
pub struct Spill {
    /// Of which queue.
    pub(crate) queue: QueueId,
    /// The run they will wait in.
    pub(crate) run: RunId,
    pub(crate) messages: Vec<(Message, Arc<Content>)>,
}

/// What came of a job. For [`Core::done`](crate::core::Core::done).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Done {
    /// The segment is durable.
    Spilled {
        /// Of which queue.
        queue: QueueId,
        /// Of which run.
        run: RunId,
    },
    /// There is no room for the segment.
    NoRoom {
        /// Of which queue.
        queue: QueueId,
        /// Of which run.
        run: RunId,
    },
    /// The segment is gone.
    Removed,
}

/// Does jobs.
pub struct Spiller<D: Disk> {
    segments: Arc<Segments<D>>,
    content: Vec<u8>,
}

impl<D: Disk> Spiller<D> {
    pub(crate) fn new(segments: Arc<Segments<D>>) -> Self {
        Self { segments, content: Vec::new() }
    }

    /// Does a job.
    ///
    /// # Errors
    /// What the disk says, but for a full one, which is [`Done::NoRoom`]. Then the engine must stop, as after a failed commit.
    pub fn perform(&mut self, job: Job) -> Result<Done, StoreError> {
        match job {
            Job::Spill(spill) => {
                let (queue, run) = (spill.queue, spill.run);
                match self.spill(spill) {
                    Ok(()) => Ok(Done::Spilled { queue, run }),
                    Err(StoreError::Full) => Ok(Done::NoRoom { queue, run }),
                    Err(error) => Err(error),
                }
            }
            Job::Remove(run) => {
                self.segments.remove(run.0)?;
                Ok(Done::Removed)
            }
        }
    }

    fn spill(&mut self, spill: Spill) -> Result<(), StoreError> {
        let mut writer = self.segments.writer_of(spill.run.0, spill.queue)?;
        for (message, content) in spill.messages {
            self.content.clear();
            content.encode(&mut self.content);
            writer.push(&message, &self.content)?;
        }
        writer.finish().map(drop)
    }
}
