//! A message as a forwarder sees it, and what becomes of it.

use std::sync::Arc;

use overtake_lane::{Priority, Receipt, Time};

/// A leased message on its way to a receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// Its lease.
    pub receipt: Receipt,
    /// Its lane.
    pub lane: Arc<str>,
    /// Its priority inside.
    pub level: Priority,
    /// Bytes of content.
    pub bytes: u64,
    /// When it expires, or [`Time::NEVER`].
    pub expires: Time,
    /// How often it was leased, this time included.
    pub count: u32,
}

/// How a message fared at the receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The receiver has it; so many bytes went over the line.
    Accepted {
        /// With whatever the protocol adds.
        bytes: u64,
    },
    /// The receiver does not take it now; it may later.
    Failed {
        /// The receiver is busy and says when to come again, ms. Then it is not this message that failed.
        busy_ms: Option<u64>,
        /// In words for people.
        why: Arc<str>,
    },
    /// The receiver will never take it.
    Refused {
        /// In words for people.
        why: Arc<str>,
    },
    /// Its time was over before it was sent.
    Expired,
}

/// How a batch ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// Whatever has no answer was not sent: the line was told to halt.
    Done,
    /// The connection is lost. Of what has no answer nobody knows whether it arrived.
    Lost {
        /// How many messages were on their way: the first of those without an answer. 0: none was.
        on_their_way: usize,
        /// In words for people.
        why: Arc<str>,
    },
    /// The receiver is gone for good and says so. Nothing more is sent until somebody resumes the endpoint.
    Gone {
        /// In words for people.
        why: Arc<str>,
    },
}
