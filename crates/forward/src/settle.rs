//! What an answer makes of a message, and of its lane.

use std::collections::BTreeMap;
use std::sync::Arc;

use overtake_lane::{Backoff, Outcome, Seq, Time};

use crate::item::{Answer, Item};

/// So often in a row the connection may be lost at the same message before others are tried first.
const LOSSES_MAX: u32 = 3;
/// So often where nothing else got through either.
const LOSSES_ALONE_MAX: u32 = 10;

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

/// Messages at which connections were lost. A line that breaks is no fault of what is on it: that is put back at its place. But a receiver may hang up on
/// one message again and again; then its lane must not wait for ever, and others not at all.
#[derive(Clone, Debug, Default)]
pub(crate) struct Suspects {
    by_lane: BTreeMap<Arc<str>, Suspect>,
    /// Messages of any lane that were accepted.
    accepted: u64,
}

#[derive(Clone, Copy, Debug)]
struct Suspect {
    seq: Seq,
    losses: u32,
    /// What was accepted before its first loss.
    accepted: u64,
}

/// What to do about a message at which the connection was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The line may have been at fault.
    PutBack,
    /// It may be the message: its lane is left alone for so long, ms, and others are tried.
    LeaveAlone(u64),
    /// It waits aside for so long, ms.
    Aside(u64),
}

impl Suspects {
    /// The connection was lost at this message.
    pub(crate) fn lost_at(&mut self, item: &Item, retry: &Backoff, reconnect: &Backoff) -> Verdict {
        let seq = item.receipt.seq;
        let fresh = Suspect { seq, losses: 0, accepted: self.accepted };
        let suspect = self.by_lane.entry(Arc::clone(&item.lane)).or_insert(fresh);
        if suspect.seq != seq {
            *suspect = fresh;
        }
        suspect.losses += 1;
        let verdict = match suspect.losses {
            losses if losses < LOSSES_MAX => return Verdict::PutBack,
            // Others got through meanwhile, so it is the message.
            _ if suspect.accepted < self.accepted => Verdict::Aside(retry.wait_ms(item.count)),
            losses if losses < LOSSES_ALONE_MAX => {
                return Verdict::LeaveAlone(reconnect.wait_ms(losses + 1 - LOSSES_MAX));
            }
            _ => Verdict::Aside(retry.wait_ms(1)),
        };
        self.by_lane.remove(&item.lane);
        verdict
    }

    /// Something was answered.
    pub(crate) fn answered(&mut self, item: &Item, is_accepted: bool) {
        self.accepted += u64::from(is_accepted);
        if self.by_lane.get(&item.lane).is_some_and(|suspect| suspect.seq == item.receipt.seq) {
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
