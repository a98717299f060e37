//! The second pass of recovery: every record, in order.

use std::collections::VecDeque;

use crate::disk::Disk;
use crate::error::StoreError;
use crate::file::FileHeader;
use crate::lsn::Lsn;
use crate::survey::{End, Survey};
use crate::walk::{Step, Walk};

/// Streams the records of a journal, oldest first. Its memory is one buffer, as long as the longest record.
///
/// It begins at the start of the oldest file still needed, so it may show records below what was last given to
/// [`Writer::retire`](crate::Writer::retire).
pub struct Recovery<D: Disk> {
    disk: D,
    files: VecDeque<FileHeader>,
    walk: Option<Walk<D::File>>,
    end: End,
    /// Whether places that hold no frame are known damage, to be passed over.
    skips: bool,
}

impl<D: Disk> Recovery<D> {
    pub(crate) fn new(disk: D, survey: Survey) -> Self {
        Self {
            disk,
            files: survey.files.into(),
            walk: None,
            end: survey.end,
            skips: !survey.damage.is_empty(),
        }
    }

    /// The next record: where it stands, and its payload. `None` at the end of the log.
    ///
    /// # Errors
    /// [`StoreError::Io`]; [`StoreError::Corrupt`] when a file changed since it was surveyed.
    pub fn next_record(&mut self) -> Result<Option<(Lsn, &[u8])>, StoreError> {
        loop {
            let Some(walk) = &mut self.walk else {
                if !self.open_next()? {
                    return Ok(None);
                }
                continue;
            };
            if walk.header().number == self.end.file.number && walk.at() >= self.end.at {
                self.walk = None;
                self.files.clear();
                return Ok(None);
            }
            match walk.step()? {
                Step::Record { at, len } => {
                    let walk = self.walk.as_mut().expect("it was there above");
                    let lsn = walk.header().lsn_at(at);
                    return Ok(Some((lsn, walk.payload(at, len)?)));
                }
                Step::Commit { .. } | Step::Born => {}
                Step::Seal => self.walk = None,
                Step::Invalid { next, .. } if self.skips => {
                    if !walk.resync(next)? {
                        self.walk = None;
                    }
                }
                Step::Invalid { at, sight, .. } => {
                    return Err(StoreError::Corrupt { file: walk.header().name(), at, what: sight });
                }
            }
        }
    }

    fn open_next(&mut self) -> Result<bool, StoreError> {
        let Some(header) = self.files.pop_front() else { return Ok(false) };
        let name = header.name();
        let read_error = |source| StoreError::io("read", &name, source);
        let file = self.disk.open_to_read(&name).map_err(read_error)?;
        let len = crate::disk::DiskFile::len(&file).map_err(read_error)?;
        self.walk = Some(Walk::new(file, header, len));
        Ok(true)
    }
}
