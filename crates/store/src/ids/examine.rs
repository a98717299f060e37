//! Reading a whole file of ids to see whether it is right.

use std::io;

use super::file::IdFile;
use crate::decide::Sight;
use crate::disk::{Disk, DiskFile};
use crate::error::StoreError;
use crate::file::Name;
use crate::survey::Damage;

/// What is wrong with a file of ids. It costs nothing: whoever opens the store makes the file anew. Nothing is wrong with one that is
/// not there, which a running broker may just have merged away.
///
/// # Errors
/// [`StoreError::Io`].
pub(crate) fn examine<D: Disk>(
    disk: &D,
    number: u64,
    store_id: Option<u64>,
) -> Result<Option<Damage>, StoreError> {
    let outcome = IdFile::open(disk, number, store_id)
        .and_then(|file| (0..file.pages()).try_for_each(|page| file.page(page).map(drop)));
    let (at, what) = match outcome {
        Ok(()) => return Ok(None),
        Err(StoreError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(StoreError::Corrupt { at, what, .. }) => (at, what),
        Err(StoreError::Newer { .. }) => (0, Sight::HeaderNewer),
        Err(StoreError::OtherStore { .. }) => (0, Sight::HeaderOtherStore),
        Err(error) => return Err(error),
    };
    let file = Name::Ids(number).to_string();
    let len = disk.open_to_read(&file).and_then(|file| file.len());
    let len = len.map_err(|source| StoreError::io("read", &file, source))?;
    Ok(Some(Damage { file, at, bytes: len.saturating_sub(at), what }))
}
