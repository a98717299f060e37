//! What an answer makes of a message, and of its lane.

use std::collections::BTreeMap;
use std::sync::Arc;

use overtake_lane::{Backoff, Outcome, Seq, Time};

use crate::item::{Answer, Item};

/// So often the connection may be lost at the same message before that is taken for its fault.
const LOSSES_MAX: u32 = 3;

/// How the lease of a message ends that was answered.
pub(crate) fn outcome(answer: &Answer, item: &Item, retry: &Backoff) -> Outcome {
    match answer {
        Answer::Accepted { .. } => Outcome::Ack,
        Answer::Failed { busy_ms: None, .. } => Outcome::Nack { delay_ms: Some(retry.wait_ms(item.count)) },
        // Put back, what has expired expires.
        Answer::Failed { busy_ms: Some(_), .. } | Answer::Expired => Outcome::Release,
        Answer::Refused { .. } => Outcome::Reject,
    }
}

/// Messages at which connections were lost. A line that breaks is no fault of what is on it: that is put back at its place. But where it
/// breaks again and again at the same message, as a receiver does that hangs up on it, the message waits aside, so that its lane goes on.
#[derive(Clone, Debug, Default)]
pub(crate) struct Suspects {
    by_lane: BTreeMap<Arc<str>, (Seq, u32)>,
}

impl Suspects {
    /// The connection was lost at this message. Answers how its lease ends.
    pub(crate) fn lost_at(&mut self, item: &Item, retry: &Backoff) -> Outcome {
        let suspect = self.by_lane.entry(Arc::clone(&item.lane)).or_insert((item.receipt.seq, 0));
        if suspect.0 != item.receipt.seq {
            *suspect = (item.receipt.seq, 0);
        }
        suspect.1 += 1;
        if suspect.1 < LOSSES_MAX {
            return Outcome::Release;
        }
        self.by_lane.remove(&item.lane);
        Outcome::Nack { delay_ms: Some(retry.wait_ms(item.count)) }
    }

    /// Something of the lane was answered.
    pub(crate) fn answered(&mut self, item: &Item) {
        if self.by_lane.get(&item.lane).is_some_and(|(seq, _)| *seq == item.receipt.seq) {
            self.by_lane.remove(&item.lane);
        }
    }
}

/// Numbers that look drawn, from a seed: so that many endpoints do not come back in the same moment. SplitMix64, Steele, Lea and Flood 2014.
#[derive(Clone, Debug)]
pub(crate) struct Jitter(u64);

impl Jitter {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A moment up to a fifth earlier than so long from now.
    pub(crate) fn after(&mut self, now: Time, ms: u64) -> Time {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        now.after(ms - (mixed ^ (mixed >> 31)) % (ms / 5 + 1))
    }
}
