//! What is merged next.
//!
//! Every file has at least twice as many entries as the next smaller one. So there are at most as many as a count of all ids has
//! bits, and an entry is written again only into a file half as large again as the one that it comes from.

use std::sync::Arc;

use super::file::IdFile;
use super::state::State;
use crate::disk::Disk;

/// So many segments may have no file before they get one.
const LOOSE_MAX: usize = 8;
/// So many tables are merged at once at most; each has its file open and a page in memory.
const MERGED_MAX: usize = 64;

/// What is merged into one file.
pub(super) struct Plan<D: Disk> {
    pub(super) segments: Vec<u64>,
    pub(super) files: Vec<Arc<IdFile<D>>>,
}

impl<D: Disk> State<D> {
    /// Chooses what is merged next; files that nothing needs any more become litter.
    pub(super) fn plan(&mut self) -> Option<Plan<D>> {
        let live: Vec<(Arc<IdFile<D>>, u64)> =
            self.files.iter().map(|file| (file.clone(), self.live(file))).collect();
        for (file, _) in live.iter().filter(|(_, live)| *live == 0) {
            self.drop_file(file.number);
        }
        let live = || live.iter().filter(|(_, live)| *live > 0);
        let mut segments = Vec::new();
        let mut stale = None;
        let mut total;
        let sound = || self.loose.iter().filter(|(_, loose)| !loose.is_damaged);
        if sound().count() > LOOSE_MAX {
            let chosen = || sound().take(MERGED_MAX);
            segments = chosen().map(|(segment, _)| *segment).collect();
            total = chosen().map(|(_, loose)| loose.entries).sum();
        } else {
            let (file, left) = live().find(|(file, live)| live * 2 < file.entries)?;
            (stale, total) = (Some(file.number), *left);
        }
        let mut files = Vec::new();
        for (file, live) in live() {
            let is_stale = stale == Some(file.number);
            if is_stale || file.entries < 2 * total {
                files.push(file.clone());
                total += if is_stale { 0 } else { *live };
            }
        }
        Some(Plan { segments, files })
    }
}
