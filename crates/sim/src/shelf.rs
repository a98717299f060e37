//! The messages in the segments of a copy of a disk, as a recovery would read them, by another way than the engine's.

use std::fmt;
use std::sync::Arc;

use overtake_lane::{Backlog, Message, QueueId, RunId, Seq};
use overtake_store::{Block, MemoryDisk, Segments};

use crate::post::Post;

/// The segments of a disk that nobody changes. The place of a message is the mark in its content.
pub(crate) struct Shelf {
    segments: Segments<MemoryDisk>,
    post: Arc<Post>,
}

impl fmt::Debug for Shelf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Shelf")
    }
}

impl Shelf {
    /// Notes in `post` what it reads.
    pub(crate) fn new(segments: Segments<MemoryDisk>, post: Arc<Post>) -> Self {
        Self { segments, post }
    }

    /// Whether there is a segment for this run.
    pub(crate) fn has(&self, run: RunId) -> bool {
        self.segments.get(run.0).is_ok_and(|segment| segment.is_some())
    }

    /// Everything in it, told from its blocks alone.
    fn messages(&self, run: RunId) -> Vec<Message> {
        let segment =
            self.segments.get(run.0).expect("a whole segment").expect("a segment that was looked for");
        let blocks = segment.blocks().map(|block| segment.block(block.ordinals.start));
        let blocks = blocks.map(|block| block.expect("a whole block").expect("a block of the index"));
        let all = blocks.flat_map(|block| block.ordinals().map(move |ordinal| self.marked(&block, ordinal)));
        all.collect()
    }

    fn marked(&self, block: &Block, ordinal: u64) -> Message {
        let place = self.post.note(block.content(ordinal));
        Message { place, ..block.message(ordinal).expect("a message that makes sense") }
    }
}

impl Backlog for Shelf {
    fn read(&self, run: RunId, from: u32, max: usize) -> Vec<Message> {
        self.messages(run).into_iter().skip(from as usize).take(max).collect()
    }

    fn find_id(&self, _: QueueId, id: &str) -> Vec<(RunId, u32)> {
        let runs = self.segments.numbers().expect("a directory that is read").into_iter().map(RunId);
        let has_id = |(_, message): &(u32, Message)| message.id() == Some(id);
        runs.flat_map(|run| (0..).zip(self.messages(run)).filter(has_id).map(move |(at, _)| (run, at)))
            .collect()
    }

    fn rank(&self, run: RunId, seq: Seq) -> u32 {
        self.messages(run).iter().filter(|message| message.seq < seq).count() as u32
    }

    fn find(&self, run: RunId, seq: Seq) -> Option<u32> {
        self.messages(run).iter().position(|message| message.seq == seq).map(|at| at as u32)
    }
}
