//! Making the filter of a file, a bite at a time.

use std::sync::Arc;

use super::file::IdFile;
use super::filter::Filter;
use crate::disk::Disk;
use crate::error::StoreError;

/// A filter that is being made.
pub(super) struct Sift<D: Disk> {
    pub(super) file: Arc<IdFile<D>>,
    filter: Filter,
    page: usize,
}

impl<D: Disk> Sift<D> {
    pub(super) fn new(file: Arc<IdFile<D>>, filter: Filter) -> Self {
        Self { file, filter, page: 0 }
    }

    /// Reads so many pages at most. Answers itself where there are more; else the file has its filter.
    pub(super) fn go_on(mut self, most: usize) -> Result<Option<Self>, StoreError> {
        let to = self.file.pages().min(self.page + most);
        for page in self.page..to {
            for entry in self.file.page(page)? {
                self.filter.insert(entry.hash);
            }
        }
        self.page = to;
        if to < self.file.pages() {
            return Ok(Some(self));
        }
        self.file.filter.get_or_init(|| Some(self.filter));
        Ok(None)
    }
}
