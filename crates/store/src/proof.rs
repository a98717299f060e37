//! Whether something that cannot be read was durable once.

use crate::catalog::Catalog;
use crate::decide::Proof;
use crate::disk::Disk;
use crate::error::StoreError;
use crate::file::{FileHeader, HEADER_LEN};
use crate::lsn::Lsn;
use crate::walk::Walk;

/// What the commits after the first invalid place state, searched for once.
///
/// A later question is about a later place, and is answered by the same commits: those in between state less than those after.
pub(crate) struct Proofs<'a, D: Disk> {
    disk: &'a D,
    catalog: &'a Catalog,
    durable: Option<Lsn>,
}

impl<'a, D: Disk> Proofs<'a, D> {
    pub(crate) fn new(disk: &'a D, catalog: &'a Catalog) -> Self {
        Self { disk, catalog, durable: None }
    }

    /// Whether a commit states that this place was durable. Commits are looked for from offset `from` of the file of number
    /// `file` to the end of the last file.
    pub(crate) fn beyond(&mut self, lsn: Lsn, file: u64, from: u64) -> Result<Proof, StoreError> {
        let durable = match self.durable {
            Some(durable) => durable,
            None => self.search(file, from)?,
        };
        self.durable = Some(durable);
        Ok(if durable > lsn { Proof::Proven } else { Proof::Unproven })
    }

    fn search(&self, file: u64, from: u64) -> Result<Lsn, StoreError> {
        let mut durable = Lsn(0);
        for &number in self.catalog.journals.range(file..).map(|(number, _)| number) {
            let Ok(header) = self.catalog.header(number) else { continue };
            let from = if number == file { from } else { HEADER_LEN };
            let mut walk = open(self.disk, self.catalog, header)?;
            walk.each_commit(from, |commit| durable = durable.max(commit.durable))?;
        }
        Ok(durable)
    }
}

/// Opens a file of the log for reading.
pub(crate) fn open<D: Disk>(
    disk: &D,
    catalog: &Catalog,
    header: FileHeader,
) -> Result<Walk<D::File>, StoreError> {
    let name = header.name();
    let file = disk.open_to_read(&name).map_err(|source| StoreError::io("open", &name, source))?;
    Ok(Walk::new(file, header, catalog.journals[&header.number].len))
}
