//! The numbers that name things. Two `u64`s never travel as two `u64`s.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A place in the order of publishing: larger is later. Each queue counts its own, from 1, and never uses one twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Seq(pub u64);

impl Seq {
    /// The next one.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

/// A moment: milliseconds since 1970-01-01T00:00:00Z. The model is handed the time, it never asks for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Time(pub u64);

impl Time {
    /// Later than every moment that comes: a lease without a deadline, a message without an expiry.
    pub const NEVER: Self = Self(u64::MAX);

    /// The moment `ms` milliseconds later; never past [`Time::NEVER`].
    #[must_use]
    pub fn after(self, ms: u64) -> Self {
        Self(self.0.saturating_add(ms))
    }

    /// Milliseconds from `earlier` to here, 0 when `earlier` is the later one.
    #[must_use]
    pub fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// `None` for [`Time::NEVER`].
    #[must_use]
    pub fn some(self) -> Option<Self> {
        (self != Self::NEVER).then_some(self)
    }
}

/// Names a queue inside one broker for as long as the queue exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueueId(pub u32);

/// Names a virtual host. No number is used twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VhostId(pub u32);

impl VhostId {
    /// The one that is called `/`, and is always there.
    pub const DEFAULT: Self = Self(0);
}

/// The numbers that a broker gives to queues and to virtual hosts: brokers that stand for one have some each, so that a receipt of one is none of another's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numbers {
    /// The first.
    pub first: u32,
    /// The one after the last.
    pub end: u32,
}

impl Default for Numbers {
    fn default() -> Self {
        Self { first: 0, end: u32::MAX }
    }
}

/// Names one lease of one message, and no other ever: the life of the broker in the upper 24 bits, a counter in the
/// lower 40. A lease given out just before a crash and lost with it can therefore not be mistaken for a later one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeaseId(pub u64);

/// Bits of a [`LeaseId`] that count leases within one life of the broker.
pub const LEASE_COUNTER_BITS: u32 = 40;

impl LeaseId {
    /// The id before the first one of a life (`life` counts how often the store was opened; its low 24 bits count).
    #[must_use]
    pub fn first_of(life: u32) -> Self {
        Self(u64::from(life) << LEASE_COUNTER_BITS)
    }

    /// The next one.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

/// Names whoever leases: a consumer that stays, or one pull request. Chosen by the caller, unique while it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConsumerId(pub u64);

/// Names whoever is connected, for as long as that lasts. Chosen by the caller, used once in the life of a broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub u64);

/// Names a connection by which messages are pushed. Chosen by the caller, used once in the life of a broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FeedId(pub u64);

/// Who asks, and where: names that are said mean what they mean there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Asker {
    /// Who, if it is somebody who is connected.
    pub session: Option<SessionId>,
    /// In which virtual host.
    pub vhost: VhostId,
}

impl Asker {
    /// Nobody in particular, in this virtual host.
    #[must_use]
    pub fn in_vhost(vhost: VhostId) -> Self {
        Self { session: None, vhost }
    }

    /// Somebody who is connected, in `/`.
    #[must_use]
    pub fn connected(session: SessionId) -> Self {
        Self { session: Some(session), vhost: VhostId::DEFAULT }
    }
}

/// Names a window that several consumers of one session share. Chosen by the caller: over AMQP, the number of the channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WindowId {
    /// Whose consumers. The window ends with it.
    pub session: SessionId,
    /// Which of its windows.
    pub number: u32,
}

/// Where the content of a message is. The model carries it and never looks behind it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place(pub u64);

/// What a consumer shows to settle or extend: the message and the one lease of it that was given to it.
///
/// As text: `queue-seq-lease`, three lower-case hexadecimal numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Receipt {
    /// The queue.
    pub queue: QueueId,
    /// The message in it.
    pub seq: Seq,
    /// The lease.
    pub lease: LeaseId,
}

impl fmt::Display for Receipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}-{:x}-{:x}", self.queue.0, self.seq.0, self.lease.0)
    }
}

impl FromStr for Receipt {
    type Err = MalformedReceipt;

    fn from_str(text: &str) -> Result<Self, MalformedReceipt> {
        let mut parts = text.split('-');
        let mut number = || parts.next().filter(|part| is_hex(part)).ok_or(MalformedReceipt);
        let (queue, seq, lease) = (number()?, number()?, number()?);
        if parts.next().is_some() {
            return Err(MalformedReceipt);
        }
        Ok(Self {
            queue: QueueId(u32::from_str_radix(queue, 16).map_err(|_| MalformedReceipt)?),
            seq: Seq(u64::from_str_radix(seq, 16).map_err(|_| MalformedReceipt)?),
            lease: LeaseId(u64::from_str_radix(lease, 16).map_err(|_| MalformedReceipt)?),
        })
    }
}

fn is_hex(part: &str) -> bool {
    !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

/// The text is no receipt of this broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MalformedReceipt;

impl fmt::Display for MalformedReceipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a receipt: use the text that came with the leased message, unchanged")
    }
}

impl std::error::Error for MalformedReceipt {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_receipt_reads_back_as_it_was_written() {
        let receipt = Receipt { queue: QueueId(7), seq: Seq(1 << 40), lease: LeaseId::first_of(3).next() };
        assert_eq!(receipt.to_string().parse(), Ok(receipt));
    }

    #[test]
    fn what_is_no_receipt_is_refused() {
        for text in ["", "1-2", "1-2-3-4", "1--3", "+1-2-3", "1-2-G", "1-2-3 ", "fffffffff-1-1"] {
            assert_eq!(text.parse::<Receipt>(), Err(MalformedReceipt), "{text}");
        }
    }
}
