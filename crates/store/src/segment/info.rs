//! What is known about a segment without reading its messages.

use overtake_lane::{QueueId, Seq, Time};

/// What is known about a segment without reading its messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentInfo {
    /// Its number.
    pub number: u64,
    /// The queue its messages are of.
    pub queue: QueueId,
    /// How many messages it holds, at least one.
    pub count: u64,
    /// How many of them have an id.
    pub ids: u64,
    /// Bytes of their contents.
    pub bytes: u64,
    /// Length of the file, bytes.
    pub file_len: u64,
    /// The soonest expiry; [`Time::NEVER`] if nothing expires.
    pub expires: Time,
    /// The first sequence.
    pub first: Seq,
    /// The last sequence.
    pub last: Seq,
    /// Its footer or its index is damaged, and this is what its blocks say; it may have had more of them.
    pub is_rebuilt: bool,
}
