//! Snapshots of the engine on the embedded store.

use std::sync::Arc;

use overtake_store::{Disk, DiskFile, Moment, SnapshotFiles, StoreError};

use super::Ask;
use super::freeze::Freeze;
use super::inbox::Inbox;
use crate::snapshot::{NoSnapshot, Snapshot};

type List = Arc<dyn Fn(Moment) -> Result<SnapshotFiles, StoreError> + Send + Sync>;
type Open = Arc<dyn Fn(&str) -> std::io::Result<Box<dyn DiskFile>> + Send + Sync>;

/// Takes snapshots of a disk, whatever kind it is.
pub(super) struct Snapshots {
    pub(super) freeze: Arc<Freeze>,
    list: List,
    open: Open,
}

impl Snapshots {
    pub(super) fn new<D: Disk>(disk: D, freeze: Arc<Freeze>) -> Self {
        let listed = disk.clone();
        let open =
            move |name: &str| disk.open_to_read(name).map(|file| -> Box<dyn DiskFile> { Box::new(file) });
        Self { freeze, list: Arc::new(move |moment| moment.files(&listed)), open: Arc::new(open) }
    }

    /// Begins one. The broker hears when it is over.
    pub(super) fn take(&self, broker: &Arc<Inbox>) -> Result<Snapshot, NoSnapshot> {
        let (number, moment) = self.freeze.begin().ok_or(NoSnapshot::Running)?;
        let frozen = Frozen { number, freeze: Arc::clone(&self.freeze), broker: Arc::clone(broker) };
        let files = (self.list)(moment).map_err(|error| NoSnapshot::Unreadable(error.to_string().into()))?;
        let open = Arc::clone(&self.open);
        let check = move || frozen.freeze.check(frozen.number);
        Ok(Snapshot::new(files, Box::new(move |name| open(name)), Box::new(check)))
    }
}

/// Files are kept for as long as this lives.
struct Frozen {
    number: u64,
    freeze: Arc<Freeze>,
    broker: Arc<Inbox>,
}

impl Drop for Frozen {
    fn drop(&mut self) {
        self.freeze.end(self.number);
        // Where nobody listens any more nothing is given back before the next opening.
        self.broker.tell(Ask::Thawed);
    }
}
