//! The blocks of a segment that were read last.
//!
//! Two: the one being read, and the next one, read ahead. So reading in order reads each block once, whoever reads ahead. Of the one before
//! them the last sequence is kept: whoever goes on between two blocks need not read the first one again to know that.

use std::ops::Range;
use std::sync::Arc;

use overtake_lane::Seq;

use super::block::Block;

/// A longer block is not kept: a large message is read when it is asked for.
const KEPT_LEN_MAX: usize = 1 << 20;

#[derive(Debug, Default)]
pub(super) struct Cache {
    /// The one used last, and the one before it.
    slots: [Option<Arc<Block>>; 2],
    /// The messages of the block that was here before them, and the last sequence in it.
    left: Option<(Range<u64>, Seq)>,
}

impl Cache {
    /// The block with this message, if it is here.
    pub(super) fn get(&mut self, ordinal: u64) -> Option<Arc<Block>> {
        let has = |slot: &Option<Arc<Block>>| {
            slot.as_ref().is_some_and(|block| block.ordinals().contains(&ordinal))
        };
        if has(&self.slots[1]) {
            self.slots.swap(0, 1);
        }
        self.slots[0].clone().filter(|block| block.ordinals().contains(&ordinal))
    }

    /// Whether the block with this message is here. Not a use of it.
    pub(super) fn holds(&self, ordinal: u64) -> bool {
        self.slots.iter().flatten().any(|block| block.ordinals().contains(&ordinal))
    }

    /// Keeps a block in place of the one not used for longer.
    pub(super) fn keep(&mut self, block: &Arc<Block>) {
        if block.len() <= KEPT_LEN_MAX && !self.holds(block.ordinals().start) {
            self.slots.swap(0, 1);
            let left = self.slots[0].replace(block.clone());
            self.left = left.map(|block| (block.ordinals(), block.last())).or(self.left.take());
        }
    }

    /// The last sequence of the block with this message, if it was here last.
    pub(super) fn last_of(&self, ordinal: u64) -> Option<Seq> {
        self.left.as_ref().filter(|(ordinals, _)| ordinals.contains(&ordinal)).map(|(_, last)| *last)
    }

    /// Bytes of the blocks that are here.
    pub(super) fn len(&self) -> usize {
        self.slots.iter().flatten().map(|block| block.len()).sum()
    }

    pub(super) fn clear(&mut self) {
        self.slots = [None, None];
    }
}
