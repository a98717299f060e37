//! How much room of the journal a request takes, and whether it is there: now, once another file is ready, or never.
//!
//! Journal files are prepared one by one beside the broker thread, so a large request may come when the disk has room for it and the
//! prepared files do not. Such a request waits ([`Core::must_wait`]); only one for which no file can be had is refused.

use overtake_lane::{
    Asker, Command, DEFINITION_BYTES_MAX, Existing, MetadataEntry, NAME_LEN_MAX, PATTERN_LEN_MAX, Refusal,
    Which,
};
use overtake_store::Writer;
use overtake_store::record::SETTLE_LEN_MAX;

use super::house::{CHANGE_LEN_MAX, METADATA_LEN_MAX};
use super::{Core, Request, only_frees};
use crate::api::{Filter, Select};
use crate::routing::{entries_of, missing_endpoints};

/// Another priority, bytes of one record that says it of many messages.
const PRIORITY_LEN_MAX: u64 = 40;
/// Bytes of a record of a policy, at most, about.
const POLICY_LEN_MAX: u64 = (DEFINITION_BYTES_MAX + PATTERN_LEN_MAX + NAME_LEN_MAX) as u64;
/// Changes that a command without a cost of its own makes, at most, about.
const CHANGES_MAX: u64 = 64;

/// How much of the journal a request takes, at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cost {
    /// Bytes of its records.
    pub(super) bytes: u64,
    /// Messages that it adds.
    pub(super) messages: u64,
}

impl Cost {
    /// So many changes.
    pub(super) fn of_changes(count: u64) -> Self {
        Self { bytes: count * Writer::cost(CHANGE_LEN_MAX * 4), messages: 0 }
    }

    /// Another priority for so many messages.
    fn of_priority(count: u64) -> Self {
        Self { bytes: Self::of_changes(1).bytes + count * PRIORITY_LEN_MAX, messages: 0 }
    }
}

/// The free space of the journal, and how much of it is reserved, bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Room {
    /// Free in the journal files that are prepared.
    prepared: u64,
    /// [`Core::reserve`], [`Core::metadata_due`] and [`Core::metadata_cost`].
    reserve: u64,
    metadata_due: u64,
    metadata_cost: u64,
    /// [`Core::slack`], and the length of a journal file.
    slack: u64,
    file: u64,
}

impl Room {
    /// Free beside the reserve.
    pub(super) fn spare(&self) -> u64 {
        self.prepared.saturating_sub(self.reserve + self.metadata_due)
    }

    /// The space that prepared files must have for a request of this cost.
    fn needed(&self, Cost { bytes, messages }: Cost) -> u64 {
        let each = Writer::cost(SETTLE_LEN_MAX) + 2 * Writer::cost(CHANGE_LEN_MAX);
        // New messages leave a file for cleaning and for leases: else a store that was full could not become shorter.
        let for_cleaning = if messages > 0 { self.file + self.metadata_cost } else { self.metadata_due };
        self.reserve + bytes + messages * each + self.slack + for_cleaning
    }

    fn has(&self, cost: Cost) -> bool {
        self.prepared >= self.needed(cost)
    }

    /// Whether so many bytes are free beside the reserve.
    pub(super) fn has_beside_reserve(&self, bytes: u64) -> bool {
        self.prepared >= self.reserve + bytes
    }

    /// Whether less is free than two pieces of slack: another file is prepared however little the disk has left.
    pub(super) fn is_scarce(&self) -> bool {
        self.prepared < self.reserve + 2 * self.slack + self.metadata_due
    }

    /// Whether less is free than two files.
    pub(super) fn is_short(&self) -> bool {
        self.prepared < self.reserve + 2 * self.file + self.metadata_cost
    }
}

/// The room that the request at the head of the line waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Awaited {
    /// Bytes that have to be free in prepared files.
    room: u64,
    /// The request adds messages.
    adds_messages: bool,
}

impl<T> Core<T> {
    /// Whether this request waits for a journal file, which [`Core::wants_file`] asks for from now on and [`Core::is_starved`] waits
    /// for. Ask before each request, and again when it is no longer starved. What no file helps does not wait: handled, it is refused.
    pub fn must_wait(&mut self, mut asker: Asker, mut request: &Request) -> bool {
        while let Request::By { asker: by, request: asked } = request {
            (asker, request) = (*by, asked);
        }
        self.asking = asker;
        if matches!(request, Request::PublishOne(_)) && self.has_room_for(self.most()) {
            // A longer message is refused, however much is free.
            self.house.awaited = None;
            return false;
        }
        let awaited = self
            .cost_of(request)
            .map(|cost| Awaited { room: self.room().needed(cost), adds_messages: cost.messages > 0 });
        self.house.awaited = awaited.filter(|awaited| self.is_missing(awaited));
        self.house.awaited.is_some()
    }

    /// Whether there is room for a command, or may be once the disk has given as many files as it takes.
    pub(super) fn may_fit(&self, command: &Command) -> bool {
        self.cost_of_command(command).is_none_or(|cost| {
            let awaited = Awaited { room: self.room().needed(cost), adds_messages: cost.messages > 0 };
            self.has_room_for(cost) || self.is_missing(&awaited)
        })
    }

    /// Whether the request at the head of the line still waits.
    pub(super) fn is_awaiting(&self) -> bool {
        self.house.awaited.is_some_and(|awaited| self.is_missing(&awaited))
    }

    /// Whether it waits for a file that is taken however little the disk has left.
    pub(super) fn awaits_change(&self) -> bool {
        self.house.awaited.is_some_and(|awaited| !awaited.adds_messages && self.is_missing(&awaited))
    }

    /// Whether so much room is not there, and the disk may have it.
    fn is_missing(&self, awaited: &Awaited) -> bool {
        let missing = awaited.room.saturating_sub(self.room().prepared);
        let is_over = if awaited.adds_messages { self.is_at_end() || self.is_low() } else { self.house.full };
        missing > 0 && !is_over && self.disk_may_have(missing, awaited.adds_messages)
    }

    /// Whether as many files as so much room takes may be had. The first may be one that was given back.
    fn disk_may_have(&self, missing: u64, for_messages: bool) -> bool {
        let Some(disk) = self.house.disk else { return true };
        let files = missing.div_ceil(self.writer.room_of_file(self.writer.record_len_max() / 2));
        let floor = if for_messages { disk.low } else { 0 };
        disk.free >= floor.saturating_add((files - 1).saturating_mul(self.options.segment_bytes))
    }

    /// The space of the journal. Several callers ask for it between two steps; it is computed once.
    pub(super) fn room(&self) -> Room {
        let known = self.house.room.get();
        debug_assert!(known.is_none_or(|room| room == self.reckon()), "whatever changes the room says so");
        known.unwrap_or_else(|| {
            let room = self.reckon();
            self.house.room.set(Some(room));
            room
        })
    }

    /// Computes [`Core::room`] anew, for a caller in the middle of a step.
    pub(super) fn reckon(&self) -> Room {
        Room {
            prepared: self.writer.room(self.writer.record_len_max() / 2),
            reserve: self.reserve(),
            metadata_due: self.metadata_due(),
            metadata_cost: self.metadata_cost(),
            slack: self.slack(),
            file: self.options.segment_bytes,
        }
    }

    /// The space that must be free before a request is looked at. Every publish of one message that is not refused for its size costs less.
    pub(super) fn most(&self) -> Cost {
        Cost { bytes: self.options.segment_bytes / 2, messages: 64 }
    }

    /// Whether a request of this cost may be done: on a low disk none that adds messages.
    pub(super) fn check_room_for(&self, cost: Cost) -> Result<(), Refusal> {
        let is_refused = (cost.messages > 0 && self.is_low()) || !self.has_room_for(cost);
        if is_refused { Err(Refusal::StoreFull) } else { Ok(()) }
    }

    /// Whether a request of this cost fits beside what must always go.
    pub(super) fn has_room_for(&self, cost: Cost) -> bool {
        !self.is_behind() && self.room().has(cost)
    }

    pub(super) fn check_room(&self, command: &Command) -> Result<(), Refusal> {
        match self.cost_of_command(command) {
            Some(cost) => self.check_room_for(cost),
            None => Ok(()),
        }
    }

    /// `None`: it is done however little room there is, or refused for another reason.
    fn cost_of(&self, request: &Request) -> Option<Cost> {
        match request {
            Request::Do(command) => self.cost_of_command(command),
            Request::Publish { messages, settlements } => {
                self.cost_of_publish(messages, settlements.len()).ok().flatten()
            }
            Request::PublishOne(message) => {
                self.cost_of_publish(std::slice::from_ref(&**message), 0).ok().flatten()
            }
            Request::Progress { .. } => Some(Cost::of_changes(1)),
            // What is chosen by a filter is changed by commands of its own, which wait for themselves.
            Request::Change { queue, select: Select::Id(id), change, .. } => {
                self.cost_of_command(&change.command(queue, Which::Id(id.as_str().into())))
            }
            Request::SetRoutes(set) => {
                let vhost = self.asking.vhost;
                self.broker.vhost_name(vhost)?;
                let queues = missing_endpoints(&self.broker, vhost, set).len() as u64;
                let entries = entries_of(&self.broker, vhost, set.manifest());
                let bytes = Cost::of_changes(queues * CHANGES_MAX).bytes
                    + entries.iter().map(setting_cost).sum::<u64>();
                (bytes > 0).then_some(Cost { bytes, messages: 0 })
            }
            _ => None,
        }
    }

    /// `None`: it is done however little room there is.
    fn cost_of_command(&self, command: &Command) -> Option<Cost> {
        if only_frees(command) || self.changes_nothing(command) {
            return None;
        }
        Some(match command {
            Command::Settle { receipts, .. } | Command::Extend { receipts, .. } => {
                Cost::of_changes(receipts.len() as u64)
            }
            Command::Finish { .. } | Command::FinishLate { .. } => Cost::of_changes(1),
            Command::Reprioritise { queue, which, .. } => Cost::of_priority(self.count(queue, which)),
            Command::CancelMessages { queue, which } | Command::Replay { queue, which, .. } => {
                Cost::of_changes(self.count(queue, which))
            }
            Command::SetMetadata { entries } => {
                Cost { bytes: entries.iter().map(setting_cost).sum(), messages: 0 }
            }
            Command::SetPolicy { .. } => {
                Cost { bytes: Cost::of_changes(CHANGES_MAX).bytes + 2 * POLICY_LEN_MAX, messages: 0 }
            }
            _ => Cost::of_changes(CHANGES_MAX),
        })
    }

    /// How many messages of a queue these are, at most; none of one that is not there.
    pub(super) fn count(&self, queue: &str, which: &Which) -> u64 {
        match which {
            Which::Id(_) => 1,
            Which::Seqs(seqs) => seqs.len() as u64,
            Which::All => self.total(queue, &Filter::default()).unwrap_or(0),
        }
    }

    /// A queue that is declared as it is writes nothing: whoever declares before consuming can empty a full store. Nor does
    /// metadata, or a policy, that is set as it is.
    fn changes_nothing(&self, command: &Command) -> bool {
        match command {
            Command::DeclareQueue { name, settings, existing, .. } => {
                let there = self.broker.own_settings(self.asking.vhost, name);
                there.is_ok_and(|is| *existing == Existing::Same || *is == **settings)
            }
            Command::DeclareVhost { name, settings } => {
                self.broker.vhost(name).is_ok_and(|there| there.settings == **settings)
            }
            Command::SetPolicy { kind, name, policy } => {
                let there = self.broker.policies(self.asking.vhost, *kind);
                there.is_ok_and(|mut all| all.any(|(other, there)| other == name && there == &**policy))
            }
            Command::SetMetadata { entries } => {
                entries.iter().all(|entry| self.broker.metadata_of(&entry.key) == entry.value.as_ref())
            }
            _ => false,
        }
    }
}

/// Bytes that setting a value takes: its record, and the room it then leaves to be removed and to be written again.
pub(super) fn setting_cost(MetadataEntry { key, value }: &MetadataEntry) -> u64 {
    let record =
        Writer::cost(METADATA_LEN_MAX + key.len()) + value.as_ref().map_or(0, |value| value.len() as u64);
    let removal = Writer::cost(METADATA_LEN_MAX + key.len());
    if value.is_some() { 2 * record + removal } else { record }
}
