//! The blocks of a segment that were read last.
//!
//! Three: the one being read, the next one, read ahead, and the one before, since whoever looks at the last message of a block has the first of the
//! next block by then. So reading in order, either way, reads each block once, whoever reads ahead. Large blocks are only two. Of the block before
//! them the last sequence is kept: whoever goes on between two blocks need not read the first one again to know that.

use std::ops::Range;
use std::sync::Arc;

use overtake_lane::Seq;

use super::block::Block;

/// A longer block is not kept: a large message is read when it is asked for.
pub(super) const KEPT_LEN_MAX: usize = 1 << 20;
/// So many blocks are kept, fewer where they have more than [`KEPT_LEN_MAX`] bytes together,
const KEPT_MAX: usize = 3;
/// but as many as this.
const KEPT_MIN: usize = 2;

#[derive(Debug, Default)]
pub(super) struct Cache {
    /// The one used last is the first.
    blocks: Vec<Arc<Block>>,
    /// The messages of the block that was here before them, and the last sequence in it.
    left: Option<(Range<u64>, Seq)>,
}

impl Cache {
    /// The block with this message, if it is here.
    pub(super) fn get(&mut self, ordinal: u64) -> Option<Arc<Block>> {
        let at = self.blocks.iter().position(|block| block.ordinals().contains(&ordinal))?;
        self.blocks[..=at].rotate_right(1);
        self.blocks.first().cloned()
    }

    /// Whether the block with this message is here. Not a use of it.
    pub(super) fn holds(&self, ordinal: u64) -> bool {
        self.blocks.iter().any(|block| block.ordinals().contains(&ordinal))
    }

    /// Keeps a block in place of the one not used for longest.
    pub(super) fn keep(&mut self, block: &Arc<Block>) {
        if block.len() > KEPT_LEN_MAX || self.holds(block.ordinals().start) {
            return;
        }
        let has_room = |blocks: &Self| {
            let is_short = blocks.len() + block.len() <= KEPT_LEN_MAX;
            blocks.blocks.len() < if is_short { KEPT_MAX } else { KEPT_MIN }
        };
        while !has_room(self)
            && let Some(left) = self.blocks.pop()
        {
            self.left = Some((left.ordinals(), left.last()));
        }
        self.blocks.insert(0, Arc::clone(block));
    }

    /// The last sequence of the block with this message, if it was here last.
    pub(super) fn last_of(&self, ordinal: u64) -> Option<Seq> {
        self.left.as_ref().filter(|(ordinals, _)| ordinals.contains(&ordinal)).map(|(_, last)| *last)
    }

    /// Bytes of the blocks that are here.
    pub(super) fn len(&self) -> usize {
        self.blocks.iter().map(|block| block.len()).sum()
    }

    pub(super) fn clear(&mut self) {
        self.blocks.clear();
    }
}
