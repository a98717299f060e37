//! What an answer makes of a message, and of its lane.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use overtake_lane::{Backoff, Outcome, Seq, Time};

use crate::item::{Answer, Item};

/// So often the connection may be lost at the same message before it may be the message.
const LOSSES_MAX: u32 = 3;
/// Of so many messages it is known that a connection was lost at them; of more the oldest are forgotten.
const SUSPECTS_MAX: usize = 1_024;

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
/// one message again and again; then its lane must not wait for it.
///
/// So a message at which a line was lost is sent alone. After the third loss it is the message if the receiver has answered any other since the first, or if there is no
/// other at all. Else one that came after it in its lane is sent in its place, once, while it is held. If that is answered, it is the message. If the line is lost again, it is
/// the receiver, and nothing changes its place. A message that is found out waits aside, and each further loss counts as a failed attempt.
#[derive(Clone, Debug, Default)]
pub(crate) struct Suspects {
    all: BTreeMap<Seq, Suspect>,
    /// Messages that the receiver has answered.
    answered: u64,
    /// How often it was the receiver since something was answered.
    failures: u32,
}

#[derive(Clone, Debug)]
struct Suspect {
    losses: u32,
    /// Losses since a probe was last lost, too.
    since_probe: u32,
    /// How many answers there had been before the first loss.
    answered: u64,
    /// How the line was lost last.
    why: Arc<str>,
    is_convicted: bool,
}

/// The messages of a lease that are sent together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// The first ones, so many.
    First(usize),
    /// The one of this number, to find out whether it is the first at which lines break.
    Probe(usize),
}

/// What to do about a message at which the connection was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The line may have been at fault.
    PutBack,
    /// The receiver may be at fault: the lane is left alone for so long, ms.
    LeaveAlone(u64),
    /// It waits aside for so long, ms.
    Aside(u64),
}

impl Suspects {
    /// Chooses what is sent of these leased messages of one lane; there is one at least.
    pub(crate) fn choose(&self, items: &VecDeque<Item>) -> Choice {
        let suspect = |item: &Item| self.all.get(&item.receipt.seq);
        match items.front().and_then(suspect) {
            None => Choice::First(items.iter().take_while(|item| suspect(item).is_none()).count()),
            Some(first) if !first.is_convicted && first.since_probe >= LOSSES_MAX && items.len() > 1 => {
                Choice::Probe(1 + self.failures as usize % (items.len() - 1))
            }
            Some(_) => Choice::First(1),
        }
    }

    /// Whether more than one message must be leased to know which of them lines break at.
    pub(crate) fn are_some(&self) -> bool {
        !self.all.is_empty()
    }

    /// The connection was lost while this message and others were on their way.
    pub(crate) fn lost_among(&mut self, item: &Item, why: &Arc<str>) {
        let new = || Suspect {
            losses: 0,
            since_probe: 0,
            answered: self.answered,
            why: Arc::clone(why),
            is_convicted: false,
        };
        let suspect = self.all.entry(item.receipt.seq).or_insert_with(new);
        suspect.losses += 1;
        suspect.since_probe += 1;
        suspect.why = Arc::clone(why);
        if self.all.len() > SUSPECTS_MAX {
            self.all.pop_first();
        }
    }

    /// The connection was lost at this message. `is_last`: no other of its lane waits.
    pub(crate) fn lost_at(
        &mut self,
        item: &Item,
        is_last: bool,
        why: &Arc<str>,
        waits: [&Backoff; 2],
    ) -> Verdict {
        self.lost_among(item, why);
        let [retry, reconnect] = waits;
        let is_only = is_last && self.all.len() == 1;
        let Some(suspect) = self.all.get_mut(&item.receipt.seq) else { return Verdict::PutBack };
        let is_enough = suspect.losses >= LOSSES_MAX;
        suspect.is_convicted |= is_enough && (is_only || suspect.answered < self.answered);
        match suspect.is_convicted {
            true => Verdict::Aside(retry.wait_ms(item.count)),
            false if is_enough && is_last => Verdict::LeaveAlone(self.fail(reconnect)),
            false => Verdict::PutBack,
        }
    }

    /// The one that was sent in place of this one was answered: it waits aside for so long, ms, and why.
    pub(crate) fn convict(&mut self, item: &Item, retry: &Backoff) -> (u64, Option<Arc<str>>) {
        let suspect = self.all.get_mut(&item.receipt.seq);
        let why = suspect.map(|suspect| {
            suspect.is_convicted = true;
            Arc::clone(&suspect.why)
        });
        (retry.wait_ms(item.count), why)
    }

    /// The line was lost at the one that was sent in place of this one, too: it is this one's turn again. Answers for how long their lane is left alone, ms.
    pub(crate) fn lost_at_probe(&mut self, item: &Item, reconnect: &Backoff) -> u64 {
        if let Some(suspect) = self.all.get_mut(&item.receipt.seq) {
            suspect.since_probe = LOSSES_MAX - 1;
        }
        self.fail(reconnect)
    }

    fn fail(&mut self, reconnect: &Backoff) -> u64 {
        self.failures = self.failures.saturating_add(1);
        reconnect.wait_ms(self.failures)
    }

    /// A message is gone without an answer.
    pub(crate) fn forget(&mut self, item: &Item) {
        self.all.remove(&item.receipt.seq);
    }

    /// The receiver has answered.
    pub(crate) fn answered(&mut self, item: &Item) {
        (self.answered, self.failures) = (self.answered + 1, 0);
        self.all.remove(&item.receipt.seq);
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
