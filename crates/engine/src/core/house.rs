//! Keeping house: room for what must always go, and giving back what is no longer needed.
//!
//! Every message has set aside for it the bytes of its own settlement, and one that is leased or delayed those of coming
//! back. A publish is refused when it would eat into that; leases are held when what is left is little more. So a full disk still takes acknowledgements.
//! Metadata, and policies, have set aside for them the bytes of their removal, and may be large: so whatever makes more of anything leaves the room
//! to write all of it again, without which nothing that stands before it could be given back. Virtual hosts have set aside those of
//! their deletion, which says it of each queue in them; policies go with them unsaid.
//!
//! A chunk of the journal is given back when no message, run or queue definition in it or before it is needed; `clean.rs` sees
//! to it that this comes about.

use std::cell::Cell;

use overtake_lane::{MetadataSize, PoliciesSize};
use overtake_store::record::SETTLE_LEN_MAX;
use overtake_store::{FileReady, Lsn, Writer};

use super::Core;
use super::clean::{Bite, Cleaning};
use super::restate::Restating;
use super::room::{Awaited, Room};
use crate::watermarks::DiskHealth;

/// A put-back, a dead letter or a lease is no longer, bytes; but for names.
pub(super) const CHANGE_LEN_MAX: usize = 64;
/// Bytes beside its content that a message takes in the journal, about.
pub(super) const MESSAGE_COST: u64 = 128;
/// Bytes that a queue's definition takes in the journal, about; metadata counts for as many as its bytes come to.
pub(super) const QUEUE_COST: u64 = 1_024;
/// Bytes of one record that say of a queue, or of a virtual host, that it is deleted, at most.
const DELETION_LEN_MAX: u64 = 6;
/// What stands in a record of metadata beside its key and value, or of a policy beside what it says, bytes, at most.
pub(super) const METADATA_LEN_MAX: usize = 16;

/// The journal is kept for segments that are missing while it has no more files than these beside four times what it keeps for messages.
const KEPT_FOR_MISSING: u64 = 8;

/// What is known of room and cleaning.
#[derive(Debug)]
pub(super) struct House {
    /// The first chunk with a definition of a queue, exchange or binding that is needed.
    pub(super) topology_chunk: u32,
    /// The room on the disk, when it is known.
    pub(super) disk: Option<DiskHealth>,
    /// Whether the directory of the store was removed or replaced.
    pub(super) is_gone: bool,
    /// The journal file that was written to was removed, and cannot come back.
    pub(super) is_removed: bool,
    /// The disk has no room for another file, or the process may open no more.
    pub(super) full: bool,
    /// The process may open no more files: that is why.
    pub(super) lacks_descriptors: bool,
    /// The space of the journal; `None` when it may have changed, so that [`Core::room`] computes it anew.
    pub(super) room: Cell<Option<Room>>,
    /// The room that the next request waits for.
    pub(super) awaited: Option<Awaited>,
    /// Leases are held.
    held: bool,
    pub(super) cleaning: Cleaning,
    /// All definitions are being written again.
    pub(super) restating: Option<Restating>,
    /// Messages that were carried to the tail.
    pub(super) carried: u64,
}

impl House {
    pub(super) fn new(topology_chunk: u32, tail: Lsn) -> Self {
        Self {
            topology_chunk,
            disk: None,
            is_gone: false,
            is_removed: false,
            full: false,
            lacks_descriptors: false,
            room: Cell::new(None),
            awaited: None,
            held: false,
            cleaning: Cleaning::new(tail),
            restating: None,
            carried: 0,
        }
    }
}

impl<T> Core<T> {
    /// Bytes that stay free for what must always go.
    pub(super) fn reserve(&self) -> u64 {
        (self.contents.messages() + self.fetched()) * Writer::cost(SETTLE_LEN_MAX)
            + self.broker.outstanding() * Writer::cost(CHANGE_LEN_MAX)
            + self.holds.record_bytes()
            + removal_cost(self.broker.metadata_size())
            + policies_removal_cost(self.broker.policies_size())
            + self.vhosts_cost()
            + self.restating_due()
    }

    /// Bytes that deleting all virtual hosts takes that can be deleted.
    fn vhosts_cost(&self) -> u64 {
        let (vhosts, queues) = self.broker.deletable();
        vhosts * Writer::cost(DELETION_LEN_MAX as usize) + queues * DELETION_LEN_MAX
    }

    /// Bytes that writing all metadata and policies again takes.
    pub(super) fn metadata_cost(&self) -> u64 {
        let (size, policies) = (self.broker.metadata_size(), self.broker.policies_size());
        removal_cost(size) + size.value_bytes + policies_removal_cost(policies) + policies.bytes
    }

    /// The same while nothing can be given back before that is done, else 0: then it was done, and what it cost comes back.
    pub(super) fn metadata_due(&self) -> u64 {
        let oldest = self.chunk_of(self.writer.oldest_lsn());
        // While it is being done the reserve has it.
        let is_due = self.house.topology_chunk <= oldest + 1 && self.restating_due() == 0;
        if is_due { self.metadata_cost() } else { 0 }
    }

    /// Bytes between refusing publishes and holding leases.
    pub(super) fn slack(&self) -> u64 {
        self.options.segment_bytes / 8
    }

    /// Holds leases while there is little room beside what must always go, and says how much of it records of what ends may take.
    pub(super) fn hold_or_go(&mut self) {
        self.house.room.set(None);
        let spare = if self.is_behind() { 0 } else { self.room().spare() };
        self.broker.set_record_room(spare.saturating_sub(self.slack() / 4));
        let held = self.is_behind() || spare < self.slack() / 2;
        if held != self.house.held {
            self.house.held = held;
            let mut step = std::mem::take(&mut self.step);
            self.broker.hold(held, &mut step);
            self.step = step;
            self.keep(false);
        }
    }

    /// Whether the next request should wait for the committer to prepare a file, or for a segment to be written.
    #[must_use]
    pub fn is_starved(&self) -> bool {
        let lacks_room = || self.is_awaiting() || (!self.has_room_for(self.most()) && self.wants_file());
        self.is_overfull() || (!self.house.full && (self.is_behind() || lacks_room()))
    }

    /// Whether the committer should prepare a file.
    #[must_use]
    pub fn wants_file(&self) -> bool {
        let room = self.room();
        // However little the disk has left: before anything but publishes is refused.
        let needs_file = self.is_behind() || self.awaits_change() || room.is_scarce();
        needs_file
            || (!self.is_short() && (self.writer.needs_files() > 0 || self.is_awaiting() || room.is_short()))
    }

    /// Whether leases are held because there is little room beside what must always go.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.house.held
    }

    /// Messages, whatever their state and wherever their content is, each copy counted.
    #[must_use]
    pub fn messages(&self) -> u64 {
        self.contents.messages() + self.holds.messages()
    }

    /// Messages whose content is in memory, and its bytes, each copy counted.
    #[must_use]
    pub fn kept(&self) -> (u64, u64) {
        (self.contents.messages(), self.contents.bytes())
    }

    /// The committer prepared a file.
    pub fn file_ready(&mut self, news: FileReady) {
        self.writer.file_ready(news);
        (self.house.full, self.house.lacks_descriptors) = (false, false);
        self.catch_up();
        self.hold_or_go();
    }

    /// The committer found no room for another file; ask it again later.
    pub fn disk_full(&mut self) {
        (self.house.full, self.house.lacks_descriptors) = (true, false);
    }

    /// The committer could open no file, because too many are open; ask it again later.
    pub fn too_many_files(&mut self) {
        (self.house.full, self.house.lacks_descriptors) = (true, true);
    }

    /// Puts back some of what sessions held that have ended.
    fn put_back_some(&mut self) {
        if !self.broker.has_retired() {
            return;
        }
        let mut step = std::mem::take(&mut self.step);
        let now = self.broker.now();
        self.broker.put_back(now, &mut step);
        self.step = step;
        self.keep(false);
        self.hold_or_go();
    }

    /// Whether [`Core::keep_house`] has more to put back of what sessions held that have ended.
    #[must_use]
    pub fn has_more_to_put_back(&self) -> bool {
        self.broker.has_retired()
    }

    /// Gives back what is no longer needed, puts back what ended sessions held, and does a bite of cleaning. True when a file was released: the committer
    /// may retire it once a batch that says so is durable: this one, or the next.
    pub fn keep_house(&mut self) -> bool {
        self.house.room.set(None);
        self.put_back_some();
        self.clean_some();
        self.drop_lost();
        self.spill();
        self.rewrite();
        let tail = self.chunk();
        let needed = self.contents.oldest_chunk().unwrap_or(tail);
        if self.holds.record_bytes() < self.options.segment_bytes / 64 {
            let tail = self.writer.tail();
            let are_recorded = self.record_runs(needed, &mut Bite::large());
            self.house.cleaning.has_more |= !are_recorded && self.writer.tail() > tail;
        }
        let needed = self.holds.oldest().map_or(needed, |(chunk, _)| needed.min(chunk));
        let needed = self.kept_for_missing().map_or(needed, |chunk| needed.min(chunk));
        self.restate_some(needed);
        let keep_from = needed.min(self.house.topology_chunk);
        let is_released = self.writer.retire(Lsn(u64::from(keep_from) * self.options.segment_bytes));
        self.forget_missing();
        // Whatever of it was reckoned, more was done.
        self.house.room.set(None);
        is_released
    }

    /// From where on the journal is kept for segments that are missing, as long as it is not too long: should one of them come back, what
    /// waits in it is what the journal does not say to be over.
    pub(super) fn kept_for_missing(&self) -> Option<u32> {
        let mentioned = self.missing.iter().filter(|missing| missing.is_mentioned);
        let first = mentioned.map(|missing| missing.chunk).min()?;
        let most = 4 * self.live_bytes() + KEPT_FOR_MISSING * self.options.segment_bytes;
        (!self.is_at_end() && self.journal_bytes() < most).then_some(first)
    }

    /// Bytes of journal that are still needed, or not yet given back.
    #[must_use]
    pub fn journal_bytes(&self) -> u64 {
        self.writer.tail().0 - self.writer.oldest_lsn().0
    }

    /// Messages that were written once more at the tail since it was opened.
    #[must_use]
    pub fn carried_messages(&self) -> u64 {
        self.house.carried
    }

    pub(super) fn live_bytes(&self) -> u64 {
        let queues = self.broker.topology_len() as u64;
        let messages = self.contents.messages();
        self.contents.cost()
            + self.broker.history_bytes()
            + messages * MESSAGE_COST
            + queues * QUEUE_COST
            + self.holds.record_bytes()
    }

    /// Whether cleaning is worth what it writes: as much as it keeps, and on a full disk four times as much.
    pub(super) fn is_long(&self) -> bool {
        let (live, file) = (self.live_bytes(), self.options.segment_bytes);
        self.journal_bytes() > if self.is_at_end() { live + live / 4 + file } else { 2 * live + 2 * file }
    }
}

/// Bytes that removing all metadata takes, one by one.
fn removal_cost(size: MetadataSize) -> u64 {
    size.entries * Writer::cost(METADATA_LEN_MAX) + size.key_bytes
}

/// Bytes that removing all policies takes, one by one.
fn policies_removal_cost(size: PoliciesSize) -> u64 {
    size.policies * Writer::cost(METADATA_LEN_MAX) + size.name_bytes
}
