//! The front half of the journal: turns records into bytes and places, and touches nothing.
//!
//! It lives in the broker's loop. It knows by arithmetic alone where every record goes; what it must be told is which
//! files stand ready ([`FileReady`]). Invariant: it never places a byte into a file that is not prepared, so a batch
//! it hands out can be written over what is there.

use std::collections::VecDeque;

use crate::batch::{Batch, Extent};
use crate::error::StoreError;
use crate::file::{FileHeader, HEADER_LEN, PAGE_LEN};
use crate::frame::{self, BORN_LEN, COMMIT_LEN, Commit, FOOT_LEN, Kind, Seed, frame_len};
use crate::lsn::Lsn;

/// News from the committer: the file of this number is prepared. Hand it to [`Writer::file_ready`], in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileReady {
    /// The file's number.
    pub number: u64,
}

/// Where a life begins to write.
pub(crate) struct Start {
    pub(crate) file: FileHeader,
    pub(crate) offset: u64,
    pub(crate) life: u32,
    pub(crate) chain: u32,
    pub(crate) oldest: u64,
    /// Number and first LSN of the files before `file` that are still needed, oldest first.
    pub(crate) before: Vec<(u64, Lsn)>,
    pub(crate) segment_bytes: u64,
    pub(crate) files_ahead: u64,
}

/// Bytes of memory that a committed batch keeps for the next one, at most.
const REUSED_BYTES_MAX: usize = 2 << 20;

/// Encodes records and decides where they go.
#[derive(Debug)]
pub struct Writer {
    file: FileHeader,
    salt: u32,
    offset: u64,
    /// Whether the batch being gathered has a commit frame in `file`.
    part_is_open: bool,
    /// Prepared files after `file`.
    ready: u64,
    life: u32,
    chain: u32,
    /// Number and first LSN of the files still needed, the last one being `file`.
    needed: VecDeque<(u64, Lsn)>,
    /// The oldest needed file as the last batch stated it.
    stated: (u64, Lsn),
    /// As the batch being gathered states it.
    stating: (u64, Lsn),
    batch: Batch,
    used: Vec<Batch>,
    segment_bytes: u64,
    files_ahead: u64,
}

impl Writer {
    pub(crate) fn new(start: Start) -> Self {
        let mut needed = VecDeque::from(start.before);
        needed.push_back((start.file.number, start.file.first_lsn));
        Self {
            salt: start.file.salt(),
            file: start.file,
            offset: start.offset,
            part_is_open: false,
            ready: 0,
            life: start.life,
            chain: start.chain,
            stated: (start.oldest, needed[0].1),
            stating: needed[0],
            needed,
            batch: Batch::default(),
            used: Vec::new(),
            segment_bytes: start.segment_bytes,
            files_ahead: start.files_ahead,
        }
    }

    /// Adds a record, the concatenation of `parts`, to the batch being gathered. It is recovered whole or not at all.
    ///
    /// The record is durable once the durable LSN is above the one returned.
    ///
    /// # Errors
    /// [`StoreError::RecordTooLong`], or [`StoreError::Full`] when it fits into no prepared file; nothing has changed then.
    pub fn append(&mut self, parts: &[&[u8]]) -> Result<Lsn, StoreError> {
        let len = parts.iter().map(|part| part.len()).sum();
        let max = self.record_len_max();
        if len > max {
            return Err(StoreError::RecordTooLong { len, max });
        }
        self.make_room(frame_len(len))?;
        self.batch.records += 1;
        Ok(self.push(Kind::Record, len, parts))
    }

    /// Ends the batch being gathered and returns it; `None` when there is nothing to commit.
    ///
    /// After [`Writer::retire`] moved, a batch without records says so.
    pub fn take_batch(&mut self) -> Option<Batch> {
        let must_state = self.batch.is_empty() && self.oldest() != self.stated.0;
        if must_state && self.make_room(0).is_err() {
            return None;
        }
        self.finish_batch()
    }

    /// As [`Writer::take_batch`], but a batch without records when there are none.
    ///
    /// Commit one before a planned stop: damage to the last commit can be told from a torn write only by a later commit.
    /// `None` when there is no room for it.
    pub fn take_proof(&mut self) -> Option<Batch> {
        if self.batch.is_empty() {
            self.make_room(0).ok()?;
        }
        self.finish_batch()
    }

    /// Takes a committed batch back, to use its memory again.
    pub fn reuse(&mut self, mut batch: Batch) {
        const KEEP: usize = 4;
        if self.used.len() < KEEP {
            batch.clear();
            // A burst of large messages is no reason to hold as much memory afterwards.
            batch.bytes.shrink_to(REUSED_BYTES_MAX);
            self.used.push(batch);
        }
    }

    /// The committer prepared the next file.
    ///
    /// # Panics
    /// When files are announced out of order: the caller lost one.
    pub fn file_ready(&mut self, news: FileReady) {
        assert_eq!(news.number, self.file.number + self.ready + 1, "files are announced in order");
        self.ready += 1;
    }

    /// How many files the committer should prepare now, so that [`Options::files_ahead`](crate::Options) stand ready.
    #[must_use]
    pub fn needs_files(&self) -> u64 {
        self.files_ahead.saturating_sub(self.ready)
    }

    /// The most bytes of room that a record with so long a payload takes, with a commit of its own.
    #[must_use]
    pub const fn cost(payload_len: usize) -> u64 {
        frame_len(payload_len) + COMMIT_LEN
    }

    /// The room in prepared files, bytes: records whose [`Writer::cost`]s sum to no more are sure to fit, as long
    /// as none has a payload longer than `payload_len_max`.
    #[must_use]
    pub fn room(&self, payload_len_max: usize) -> u64 {
        let here = (self.file.segment_bytes - FOOT_LEN).saturating_sub(self.offset);
        if self.ready == 0 {
            return here;
        }
        // A file that is followed by another may be left with almost the longest record's room unused.
        let waste = Self::cost(payload_len_max);
        let fresh = self.segment_bytes - HEADER_LEN - FOOT_LEN;
        here.saturating_sub(waste) + (self.ready - 1) * self.room_of_file(payload_len_max) + fresh
    }

    /// The least by which another prepared file makes [`Writer::room`] larger, bytes.
    #[must_use]
    pub fn room_of_file(&self, payload_len_max: usize) -> u64 {
        (self.segment_bytes - HEADER_LEN - FOOT_LEN).saturating_sub(Self::cost(payload_len_max))
    }

    /// Records in the batch being gathered.
    #[must_use]
    pub fn pending_records(&self) -> u64 {
        self.batch.records
    }

    /// Bytes of the batch being gathered.
    #[must_use]
    pub fn pending_bytes(&self) -> usize {
        self.batch.len()
    }

    /// The longest payload a record may have, bytes.
    #[must_use]
    pub fn record_len_max(&self) -> usize {
        frame::payload_len_max(self.segment_bytes - HEADER_LEN - FOOT_LEN - COMMIT_LEN)
    }

    /// States that no record below `before` will be asked for again. Whole files below it are released: the next batch says
    /// so, and [`Committer::retire`](crate::Committer::retire) reuses them once that batch is durable. Whatever
    /// makes the records needless (a checkpoint, say) must have been appended before this call.
    ///
    /// Returns whether a file was released.
    pub fn retire(&mut self, before: Lsn) -> bool {
        let released = self.needed.iter().skip(1).take_while(|(_, first_lsn)| *first_lsn <= before).count();
        self.needed.drain(..released);
        released > 0
    }

    /// Where the next record's frame would begin, or a few bytes before.
    #[must_use]
    pub fn tail(&self) -> Lsn {
        self.file.lsn_at(self.offset)
    }

    /// The LSN at which the oldest file still needed begins.
    #[must_use]
    pub fn oldest_lsn(&self) -> Lsn {
        self.needed[0].1
    }

    /// The LSN at which the journal begins once the batch taken last is durable, or one before.
    #[must_use]
    pub fn stated_oldest_lsn(&self) -> Lsn {
        self.stated.1
    }

    /// Files from the oldest needed one to the one being written.
    #[must_use]
    pub fn files(&self) -> usize {
        self.needed.len()
    }

    /// Moves on to the next prepared file, whatever room this one has left, and returns where that begins.
    ///
    /// # Errors
    /// [`StoreError::Full`] when none is prepared; nothing has changed then.
    pub fn begin_next_file(&mut self) -> Result<Lsn, StoreError> {
        if self.ready == 0 {
            return Err(StoreError::Full);
        }
        self.next_file();
        Ok(self.tail())
    }

    pub(crate) fn born_fits(&self) -> bool {
        self.fits(BORN_LEN)
    }

    /// The first thing a life writes.
    pub(crate) fn append_born(&mut self) -> Result<(), StoreError> {
        let payload = frame::born_payload(self.life, self.tail());
        self.make_room(BORN_LEN)?;
        self.push(Kind::Born, payload.len(), &[&payload]);
        Ok(())
    }

    fn oldest(&self) -> u64 {
        self.needed[0].0
    }

    fn fits(&self, frame_len: u64) -> bool {
        let head = if self.part_is_open { 0 } else { COMMIT_LEN };
        self.offset + head + frame_len + FOOT_LEN <= self.file.segment_bytes
    }

    /// Moves on to the next file when a frame does not fit into this one, and sees to it that a commit frame precedes it.
    fn make_room(&mut self, frame_len: u64) -> Result<(), StoreError> {
        if !self.fits(frame_len) {
            if self.ready == 0 {
                return Err(StoreError::Full);
            }
            self.next_file();
        }
        if !self.part_is_open {
            self.open_part();
        }
        Ok(())
    }

    fn next_file(&mut self) {
        if !self.part_is_open {
            self.open_part();
        }
        self.push(Kind::Seal, 0, &[]);
        self.close_part();
        self.ready -= 1;
        self.file = self.file.next(self.life, self.segment_bytes);
        self.salt = self.file.salt();
        self.offset = HEADER_LEN;
        self.needed.push_back((self.file.number, self.file.first_lsn));
    }

    fn open_part(&mut self) {
        if self.batch.is_empty() {
            self.batch.start = self.tail();
            // Stated as of the batch's beginning: what made older files needless is then durable before this commit is written.
            self.stating = self.needed[0];
            self.batch.oldest = self.stating.0;
        }
        let from = self.batch.bytes.len();
        self.batch.extents.push(Extent { file: self.file.number, offset: self.offset, range: from..from });
        let commit = Commit {
            lsn: self.tail(),
            durable: self.batch.start,
            oldest: self.batch.oldest,
            life: self.life,
            chain: self.chain,
        };
        self.chain = commit.encode(&mut self.batch.bytes, self.salt);
        self.offset += COMMIT_LEN;
        self.part_is_open = true;
    }

    fn push(&mut self, kind: Kind, len: usize, parts: &[&[u8]]) -> Lsn {
        let seed = Seed { salt: self.salt, life: self.life, lsn: self.tail() };
        frame::encode(&mut self.batch.bytes, seed, kind, len, parts);
        self.offset += frame_len(len);
        seed.lsn
    }

    /// Ends the current extent, filled up with zeros to a page: a part of a page that is not in memory would be read first.
    fn close_part(&mut self) {
        let padding = self.offset.next_multiple_of(PAGE_LEN) - self.offset;
        self.batch.bytes.resize(self.batch.bytes.len() + padding as usize, 0);
        self.batch.extents.last_mut().expect("an open part has an extent").range.end = self.batch.bytes.len();
        self.part_is_open = false;
    }

    fn finish_batch(&mut self) -> Option<Batch> {
        if self.batch.is_empty() {
            return None;
        }
        self.close_part();
        self.batch.end = self.tail();
        self.stated = self.stating;
        let fresh = self.used.pop().unwrap_or_default();
        Some(std::mem::replace(&mut self.batch, fresh))
    }
}
