//! *Bounded*: the journal is not much longer than what it keeps, and memory keeps the content of what is there.

use crate::audit::Audit;
use crate::failure::{Checked, Promise, hold};

/// Bytes a message takes beside its content, at most as the journal counts it.
const MESSAGE_COST: u64 = 128;
/// Bytes a queue, exchange or binding takes, as the journal counts it.
const TOPOLOGY_COST: u64 = 1_024;

/// Messages and bytes of content in memory are those of the broker.
pub(crate) fn check_memory(audit: &Audit, kept: (u64, u64)) -> Checked {
    let bytes: u64 = audit.messages().map(|(_, message)| u64::from(message.bytes)).sum();
    let there = (audit.len() as u64, bytes);
    hold(kept == there, Promise::Bounded, || {
        format!("{kept:?} messages and bytes are in memory, {there:?} are in the broker")
    })
}

/// Twice what is kept and `files` files. Cleaning begins at two and needs a while.
pub(crate) fn check_journal(
    audit: &Audit,
    topology: u64,
    journal: u64,
    segment_bytes: u64,
    files: u64,
) -> Checked {
    let bytes: u64 = audit.messages().map(|(_, message)| u64::from(message.bytes) + MESSAGE_COST).sum();
    let most = 2 * (bytes + topology * TOPOLOGY_COST) + files * segment_bytes;
    hold(journal <= most, Promise::Bounded, || {
        format!("the journal is {journal} bytes long, at most {most} are needed")
    })
}
