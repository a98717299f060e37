//! *Refold*: the facts of the log, folded anew, are the live broker as it was after the last of them.

use std::collections::VecDeque;

use overtake_lane::{Broker, Fact, Message, QueueId, State};
use overtake_store::Lsn;

use crate::audit::{Audit, is_clock, same};
use crate::book::Book;
use crate::failure::{Checked, Promise, broken, hold};
use crate::refold::Refold;

/// Where the log ends that does not say all yet.
const NOWHERE: Lsn = Lsn(u64::MAX);

/// The broker after each step that may not be durable yet, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Snapshots {
    taken: VecDeque<Snapshot>,
    told: bool,
}

#[derive(Debug)]
struct Snapshot {
    /// Where the next record goes.
    tail: Lsn,
    digest: u64,
    /// Kept while a story is told.
    audit: Option<Audit>,
}

impl Snapshots {
    pub(crate) fn tell(&mut self) {
        self.told = true;
    }

    /// The broker is ahead of its log: records wait for room.
    pub(crate) fn take_none(&mut self) {
        if self.taken.back().is_none_or(|last| last.tail != NOWHERE) {
            self.taken.push_back(Snapshot { tail: NOWHERE, digest: 0, audit: None });
        }
    }

    pub(crate) fn take(&mut self, tail: Lsn, audit: &Audit) {
        if self.taken.back().is_some_and(|last| last.tail == tail || last.tail == NOWHERE) {
            self.taken.pop_back();
        }
        let kept = self.told.then(|| audit.clone());
        self.taken.push_back(Snapshot { tail, digest: audit.digest, audit: kept });
    }

    /// Everything below is durable.
    pub(crate) fn durable(&mut self, lsn: Lsn) {
        while self.taken.get(1).is_some_and(|second| second.tail <= lsn) {
            self.taken.pop_front();
        }
    }

    pub(crate) fn clear(&mut self) {
        self.taken.clear();
    }

    /// A recovery shows the broker as it was after one of the steps, not before the durable one. `false`: the log ends
    /// within a step, so nothing can be compared.
    pub(crate) fn check(&self, refold: &Refold) -> Checked<bool> {
        hold(refold.unfounded == 0 || !self.taken.is_empty(), Promise::Refold, || {
            "facts about nothing".to_owned()
        })?;
        let Some(first) = self.taken.front() else { return Ok(true) };
        hold(refold.tail() >= first.tail, Promise::Refold, || {
            format!("the log ends at {}, {} was durable", refold.tail(), first.tail)
        })?;
        let last = refold.last_record();
        let at = self.taken.iter().position(|snapshot| snapshot.tail > last).unwrap_or(self.taken.len() - 1);
        let snapshot = &self.taken[at];
        if refold.tail() < snapshot.tail {
            return Ok(false);
        }
        if snapshot.digest == refold.audit.digest {
            return Ok(true);
        }
        let what = snapshot.audit.as_ref().map_or_else(String::new, |audit| difference(audit, &refold.audit));
        broken(
            Promise::Refold,
            format!("the log up to {} does not make the broker of then{what}", refold.tail()),
        )
    }
}

/// The live broker, when all of it is in the log: also how often each message was leased.
pub(crate) fn check_counts(book: &Book, live: &Audit, refold: &Refold) -> Checked {
    for (queue, message) in live.messages() {
        let Some(folded) = refold.audit.find(queue, message.seq) else {
            return broken(
                Promise::Refold,
                format!("message {} of queue {} is not in the log", message.seq.0, queue.0),
            );
        };
        let is_pushed = message.state == State::Ready && book.holds.contains_key(&(queue, message.seq));
        let fits = if is_pushed { folded.count <= message.count } else { folded.count == message.count };
        hold(fits, Promise::Refold, || {
            format!(
                "message {} of queue {} was leased {} times, the log says {}",
                message.seq.0, queue.0, message.count, folded.count
            )
        })?;
    }
    Ok(())
}

/// The same queues, exchanges and bindings.
pub(crate) fn check_topology(live: &Broker, folded: &Broker) -> Checked {
    let of = |broker: &Broker| -> Vec<Fact> {
        broker.topology_facts().into_iter().filter(|fact| !is_clock(fact)).collect()
    };
    let (live, folded) = (of(live), of(folded));
    hold(live == folded, Promise::Refold, || {
        let missing: Vec<&Fact> = live.iter().filter(|fact| !folded.contains(fact)).collect();
        let other: Vec<&Fact> = folded.iter().filter(|fact| !live.contains(fact)).collect();
        format!("there is {missing:?} where the log has {other:?}")
    })
}

/// Two audits that must be the same, counts and all.
pub(crate) fn check_same(live: &Audit, folded: &Audit) -> Checked {
    let counts = |audit: &Audit| -> Vec<u32> { audit.messages().map(|(_, message)| message.count).collect() };
    if live.digest == folded.digest && counts(live) == counts(folded) {
        return Ok(());
    }
    broken(
        Promise::Refold,
        format!("the engine recovered something else than its log says{}", difference(live, folded)),
    )
}

/// The first difference, for a reader: of how often messages were leased only where there is no other.
fn difference(live: &Audit, folded: &Audit) -> String {
    fn all(audit: &Audit) -> impl Iterator<Item = Option<(QueueId, &Message)>> {
        audit.messages().map(Some).chain(std::iter::repeat(None))
    }
    let pairs = || all(live).zip(all(folded)).take_while(|pair| *pair != (None, None));
    let differ = |(a, b): &(QueueId, &Message), (c, d): &(QueueId, &Message)| a != c || !same(b, d);
    let first = pairs().find(|(a, b)| a.zip(*b).is_none_or(|(a, b)| differ(&a, &b)));
    if let Some((live, folded)) = first {
        return format!(": there is {live:?} where the log has {folded:?}");
    }
    if live.digest == folded.digest {
        let counts = pairs().find(|(a, b)| a.zip(*b).is_some_and(|((_, a), (_, b))| a.count != b.count));
        return format!(": counts differ of {counts:?}");
    }
    let queues = |audit: &Audit| -> Vec<(QueueId, u64)> {
        audit.queues.iter().map(|(id, seen)| (*id, seen.next_seq.0)).collect()
    };
    format!(": queues and next sequences {:?}, the log says {:?}", queues(live), queues(folded))
}
