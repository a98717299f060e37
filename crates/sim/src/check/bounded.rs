//! *Bounded*: the journal is not much longer than what it keeps, little is written to keep it so, and memory keeps the content
//! of what is there.

use overtake_engine::core::Core;
use overtake_store::MemoryDisk;

use crate::audit::Audit;
use crate::failure::{Checked, Promise, hold};
use crate::tally::Tally;

/// Bytes a message takes beside its content, at most as the journal counts it.
const MESSAGE_COST: u64 = 128;
/// Bytes the record of a run takes, as the journal counts it, and what a message in it may add.
const RUN_COST: u64 = 128;
const HOLE_COST: u64 = 5;
/// Set in the place of a message whose content is on the shelf.
const ON_SHELF: u64 = 1 << 63;
/// Bytes a queue, exchange or binding takes, as the journal counts it.
const TOPOLOGY_COST: u64 = 1_024;

/// More messages than any world has that ends: there dead letters beget dead letters.
const MESSAGES_MAX: usize = 50_000;

/// There is an end of copies, else nothing drains before everybody has lost patience.
pub(crate) fn check_messages(audit: &Audit) -> Checked {
    hold(audit.len() <= MESSAGES_MAX, Promise::Bounded, || {
        format!("{} messages are there: dead letters beget dead letters", audit.len())
    })
}

/// Messages and bytes of content in memory are those of the broker, and so are messages in all: those that stand in its queues, and those that
/// are gone and not cleared yet.
pub(crate) fn check_memory(audit: &Audit, core: &Core<u64>) -> Checked {
    let kept = core.kept();
    let remains = || core.broker().remains();
    let all = || audit.messages().map(|(_, message)| message).chain(remains());
    let here = || all().filter(|message| message.place.0 & ON_SHELF == 0);
    let bytes: u64 = here().map(|message| u64::from(message.bytes)).sum();
    let there = (here().count() as u64, bytes);
    let messages = (audit.len() + remains().count()) as u64;
    hold(core.messages() == messages, Promise::Bounded, || {
        format!("{} messages are kept, {messages} are in the broker", core.messages())
    })?;
    hold(kept == there, Promise::Bounded, || {
        format!("{kept:?} messages and bytes are in memory, {there:?} are in the broker")
    })
}

/// Twice what is kept, `history` bytes of deaths among it, and `files` files. Cleaning begins at two and needs a while.
pub(crate) fn check_journal(
    audit: &Audit,
    history: u64,
    topology: u64,
    runs: u64,
    journal: u64,
    segment_bytes: u64,
    files: u64,
) -> Checked {
    let cost = |place: u64, bytes: u32| {
        if place & ON_SHELF == 0 { u64::from(bytes) + MESSAGE_COST } else { HOLE_COST }
    };
    let bytes: u64 = audit.messages().map(|(_, message)| cost(message.place.0, message.bytes)).sum();
    let most = 2 * (bytes + history + runs * RUN_COST + topology * TOPOLOGY_COST) + files * segment_bytes;
    hold(journal <= most, Promise::Bounded, || {
        format!("the journal is {journal} bytes long, at most {most} are needed")
    })
}

/// Keeping house writes less than everything else does, but for a few files, and for what there was at most: as that drains, what
/// is left of it is carried each time that half of it has gone. Four times as much where each file counts.
pub(crate) fn check_house(tally: &Tally, segment_bytes: u64, live_most: u64) -> Checked {
    let Tally { house_bytes, full_house_bytes, other_bytes, .. } = *tally;
    let few = 8 * segment_bytes + live_most;
    let is_little = house_bytes <= other_bytes + few && full_house_bytes <= 4 * other_bytes + few;
    hold(is_little, Promise::Bounded, || {
        format!(
            "keeping house wrote {house_bytes} bytes to the journal, and {full_house_bytes} on a full disk, everything else \
             {other_bytes}"
        )
    })
}

/// When nothing waits, nothing is on the shelf but what lingers.
pub(crate) fn check_segments(disk: &MemoryDisk, core: &Core<u64>) -> Checked {
    let segments: Vec<String> =
        disk.names().into_iter().filter(|name| name.starts_with("segment-")).collect();
    let (needed, lingering) = core.segments();
    hold(needed == 0 && segments.len() == lingering, Promise::Bounded, || {
        format!("{needed} segments are needed in the calm, {lingering} linger, there are {segments:?}")
    })
}
