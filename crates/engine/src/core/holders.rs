//! Who holds what is leased. Consumers that stay are known until they go, pulls as long as something is leased that they took.
//!
//! Nothing is done when a lease ends, since that is on everybody's way: whoever holds nothing any more is forgotten when more
//! have come than are out, so what is remembered is at most twice what is leased, and a few.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use overtake_lane::{Command, ConsumerId, MessageView, REPORT_BYTES_MAX, Receipt, Refusal, Status, Time};

use super::{Answer, Core, Refused, Request};
use crate::holder::{Held, Holder};

/// So many may have come before anybody is forgotten.
const FEW: u64 = 1_024;

/// Who is called what.
#[derive(Debug, Default)]
pub(super) struct Holders {
    known: BTreeMap<ConsumerId, Arc<Holder>>,
    /// Those that came since somebody was forgotten.
    came: u64,
}

impl Holders {
    fn come(&mut self, consumer: ConsumerId, holder: Arc<Holder>) {
        self.known.insert(consumer, holder);
        self.came += 1;
    }

    /// Whether it is time to forget somebody, where so many messages are out.
    fn are_many(&self, out: u64) -> bool {
        self.came > out.max(FEW)
    }

    fn keep(&mut self, holds: impl Fn(ConsumerId) -> bool) {
        self.known.retain(|consumer, _| holds(*consumer));
        self.came = 0;
    }
}

impl<T> Core<T> {
    /// Says who takes under this number.
    pub(super) fn know(&mut self, consumer: ConsumerId, holder: Option<Arc<Holder>>) {
        let Some(holder) = holder else { return };
        self.holders.come(consumer, holder);
        if self.holders.are_many(self.broker.outstanding()) {
            let pullers: BTreeSet<ConsumerId> = self.broker.pullers().collect();
            let broker = &self.broker;
            self.holders.keep(|who| pullers.contains(&who) || broker.has_consumer(who));
        }
    }

    /// Lengthens a lease, and keeps what its holder reports of the work while it lasts.
    pub(super) fn progress(
        &mut self,
        now: Time,
        receipt: Receipt,
        visibility_ms: u64,
        output: Arc<str>,
    ) -> Result<Answer, Refused> {
        if output.len() > REPORT_BYTES_MAX {
            return Err(Refusal::ReportTooLarge.into());
        }
        let extend = Command::Extend { receipts: vec![receipt], visibility_ms };
        let answer = self.change(now, Request::Do(extend))?;
        if let Answer::Each(results) = &answer
            && results[..] == [Ok(())]
        {
            self.broker.note_progress(receipt, output);
        }
        Ok(answer)
    }

    /// What is known of the lease of a message, if it is leased.
    pub(super) fn held(&self, queue: &str, message: &MessageView) -> Option<Held> {
        if message.status != Status::Leased {
            return None;
        }
        let (lease, taken) = self.broker.lease_of(self.asking.vhost, queue, message.seq)?;
        let queue = self.broker.id_of(self.asking.vhost, queue).ok()?;
        let by = taken.and_then(|(consumer, _)| self.holders.known.get(&consumer).cloned());
        Some(Held {
            receipt: Some(Receipt { queue, seq: message.seq, lease }),
            by,
            since: taken.map(|(_, since)| since),
            progress: self.broker.progress(lease).cloned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_holds_nothing_is_forgotten_before_many_are_remembered() {
        let (mut holders, out) = (Holders::default(), 3_000);
        for number in 0..100_000 {
            holders.come(ConsumerId(number), Arc::default());
            if holders.are_many(out) {
                holders.keep(|who| number - who.0 < out);
            }
            let known = holders.known.len() as u64;
            assert!(known <= 2 * out + FEW, "{known} after {number}");
            assert!(number < out || known >= out, "whoever holds something is known");
        }
    }
}
