//! Segments of messages with ids, and what must be found of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use overtake_lane::{Extras, QueueId};
use overtake_store::{Disk, IdIndex, MergeProgress, Segments, StoreError};

use super::spilled::{STORE_ID, pair};

/// Bytes of filters in these tests, where nothing else is said.
pub const FILTER_BYTES: usize = 1 << 20;

/// An index of ids, and where the messages of each id are.
pub struct Named<D: Disk> {
    pub disk: D,
    pub segments: Arc<Segments<D>>,
    pub index: Arc<IdIndex<D>>,
    /// Segments and ordinals, by queue and id.
    pub model: BTreeMap<(QueueId, String), BTreeSet<(u64, u64)>>,
    /// Segments that are wanted.
    pub wanted: BTreeSet<u64>,
}

impl<D: Disk> Named<D> {
    /// What is in a directory of which nothing is wanted.
    pub fn open(disk: &D, filter_bytes_max: usize) -> Self {
        let (segments, index) = opened(disk, filter_bytes_max);
        let (model, wanted) = (BTreeMap::new(), BTreeSet::new());
        Self { disk: disk.clone(), segments, index, model, wanted }
    }

    /// Writes and adds a segment of messages with these ids, or none.
    pub fn write(&mut self, queue: QueueId, ids: &[Option<String>]) -> Result<u64, StoreError> {
        let mut writer = self.segments.writer(queue)?;
        for (seq, id) in (1..).zip(ids) {
            let (mut message, content) = pair(seq, b"");
            let extras = |id: &String| Box::new(Extras { id: Some(id.as_str().into()), ..Extras::default() });
            message.extras = id.as_ref().map(extras);
            writer.push(&message, &content)?;
        }
        let number = writer.finish()?.number;
        self.index.add(number)?;
        self.wanted.insert(number);
        for (ordinal, id) in (0..).zip(ids) {
            if let Some(id) = id {
                self.model.entry((queue, id.clone())).or_default().insert((number, ordinal));
            }
        }
        Ok(number)
    }

    /// A segment is gone.
    pub fn remove(&mut self, number: u64) {
        self.index.forget(number);
        self.segments.remove(number).expect("removed");
        self.wanted.remove(&number);
        self.model.values_mut().for_each(|places| places.retain(|(segment, _)| *segment != number));
    }

    /// Opens everything anew, as after an end of the process.
    pub fn reopen(&mut self, filter_bytes_max: usize) {
        let next = self.segments.next_number();
        (self.segments, self.index) = opened(&self.disk, filter_bytes_max);
        // As the journal says: a number is not used twice.
        self.segments.keep_free(next - 1);
        self.index.retain(|segment| self.wanted.contains(&segment));
        for segment in &self.wanted {
            self.index.add(*segment).expect("no damage");
        }
    }

    /// Merges until there is nothing to do.
    pub fn merge_all(&self) {
        while self.index.merge_some().expect("no damage") == MergeProgress::More {}
    }

    /// Every id is found where it is and nowhere else.
    pub fn check(&self) {
        self.check_some(1);
    }

    /// As [`Named::check`], for one id of so many.
    pub fn check_some(&self, step: usize) {
        for ((queue, id), places) in self.model.iter().step_by(step) {
            let found = self.index.find(*queue, id).expect("no damage");
            assert!(found.iter().eq(places), "{id} of {queue:?}: {found:?}, not {places:?}");
        }
    }
}

fn opened<D: Disk>(disk: &D, filter_bytes_max: usize) -> (Arc<Segments<D>>, Arc<IdIndex<D>>) {
    let segments =
        Segments::open(disk.clone(), STORE_ID, 1, 4, usize::MAX).expect("the directory can be listed");
    let segments = Arc::new(segments);
    let index = IdIndex::open(segments.clone(), filter_bytes_max).expect("an index");
    (segments, Arc::new(index))
}

/// So many ids from this number on.
pub fn ids(from: u64, count: u64) -> Vec<Option<String>> {
    (from..from + count).map(|n| Some(format!("order-{n}"))).collect()
}

/// The names of the files of ids.
pub fn id_files<D: Disk>(disk: &D) -> Vec<String> {
    let mut names = disk.list().expect("a list");
    names.retain(|name| name.starts_with("ids-"));
    names.sort();
    names
}
