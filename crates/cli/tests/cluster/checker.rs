//! Whether a history keeps what the broker promises.
//!
//! What is judged, and by which rule:
//!
//! - *Kept.* A publish that was confirmed is delivered, and whoever has it last says that it is done, or it was confirmed as settled.
//! - *Gone.* After a settlement was confirmed its message is not delivered any more.
//! - *One holder.* Nobody gets a message of which somebody else is *sure* that it is his.
//! - *Cap.* No queue has more messages out than its `max_active`, counting those only whose holders are sure of them.
//! - *Order.* An inversion is a message that waits while a less urgent one of the same queue is delivered: from [`Rules::flight_us`] after its confirm to [`Rules::flight_us`] before
//!   its own first delivery; nearer than that the two may have crossed on their ways. Its length is from its confirm to the last of those deliveries. Of deliveries while a primary is away ([`Rules::away_us`]) none makes one:
//!   whether the message was there to be delivered is not known here.
//!
//! A holder is sure of a message from when he read it until the first of:
//!
//! - he is about to say that it is done, or to put it back;
//! - its lease is over by itself, reckoned from before it was asked for;
//! - his connection is gone; and [`Rules::notice_us`] before he notices that, since the broker may have noticed sooner;
//! - his broker has been cut off from the servers for [`Rules::lapse_us`]: its sign of life ends then.
//!
//! So a holder is sure for no longer than he really has it, and whatever is found is a fault.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::history::{Entry, Event, Holder, Message};

#[cfg(test)]
mod tests;

/// What a history is held against.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    /// Messages of a queue that may be out at once.
    pub(crate) max_active: usize,
    /// For how long a broker that is cut off is surely still taken for alive.
    pub(crate) lapse_us: u64,
    /// By how much a broker may notice sooner than its client that a connection is gone.
    pub(crate) notice_us: u64,
    /// For how long a delivery or a confirm may be on its way.
    pub(crate) flight_us: u64,
    /// From when to when a primary was away: messages of its partitions wait, and the others go on.
    pub(crate) away_us: (u64, u64),
}

/// What was found.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    /// Messages that somebody tried to publish, and those that were confirmed.
    pub(crate) published: usize,
    pub(crate) confirmed: usize,
    /// Deliveries, and those of messages that were out before.
    pub(crate) deliveries: usize,
    pub(crate) redeliveries: usize,
    /// Deliveries of which it was confirmed that they are settled.
    pub(crate) settled: usize,
    /// Confirmed, and never delivered.
    pub(crate) lost: Vec<Message>,
    /// Delivered, and whoever had it last did not say that it is done.
    pub(crate) unsettled: Vec<Message>,
    /// Delivered again, by whom it was settled and who has it now.
    pub(crate) came_back: Vec<(Message, Holder, Holder)>,
    /// Held by two at once.
    pub(crate) held_twice: Vec<(Message, Holder, Holder)>,
    /// The most that a queue had out, where that is too many.
    pub(crate) over_cap: BTreeMap<u16, usize>,
    /// The most that any queue had out.
    pub(crate) out_most: usize,
    /// Lengths of inversions, microseconds: of each message that was passed over.
    pub(crate) inversions_us: Vec<u64>,
    /// Messages that were passed over only while a primary was away.
    pub(crate) passed_while_away: usize,
}

impl Verdict {
    /// What must never be, each in a phrase; inversions are no such thing.
    pub(crate) fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        let mut say = |count: usize, what: &str, example: String| {
            if count > 0 {
                faults.push(format!("{count} {what}, such as {example}"));
            }
        };
        say(self.lost.len(), "confirmed and never delivered", first(&self.lost));
        say(self.unsettled.len(), "delivered and never done", first(&self.unsettled));
        say(self.came_back.len(), "delivered after they were settled", first(&self.came_back));
        say(self.held_twice.len(), "held by two at once", first(&self.held_twice));
        say(self.over_cap.len(), "queues with more out than they may have", format!("{:?}", self.over_cap));
        faults
    }

    /// The messages that faults are of.
    pub(crate) fn at_fault(&self) -> BTreeSet<Message> {
        let came_again = self.came_back.iter().chain(&self.held_twice).map(|(message, ..)| message);
        self.lost.iter().chain(&self.unsettled).chain(came_again).copied().collect()
    }

    /// The longest inversion, milliseconds.
    pub(crate) fn inversion_longest_ms(&self) -> u64 {
        self.inversions_us.iter().max().map_or(0, |us| us / 1_000)
    }
}

fn first<T: fmt::Debug>(all: &[T]) -> String {
    all.first().map(|one| format!("{one:?}")).unwrap_or_default()
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "  {} published, {} of them confirmed", self.published, self.confirmed)?;
        let (again, settled) = (self.redeliveries, self.settled);
        writeln!(
            f,
            "  {} deliveries, {again} of them again; {settled} confirmed as settled",
            self.deliveries
        )?;
        writeln!(
            f,
            "  {} confirmed and never delivered, {} never done",
            self.lost.len(),
            self.unsettled.len()
        )?;
        let (back, twice) = (self.came_back.len(), self.held_twice.len());
        writeln!(f, "  {back} came back after they were settled, {twice} held by two at once")?;
        writeln!(f, "  {} of a queue out at most", self.out_most)?;
        let inverted = self.inversions_us.len();
        writeln!(f, "  {inverted} inversions, the longest of {} ms", self.inversion_longest_ms())?;
        write!(f, "  {} passed over while a primary was away", self.passed_while_away)
    }
}

/// Judges what is written, in the order of its times.
pub(crate) fn judge(entries: &[Entry], rules: &Rules) -> Verdict {
    let stories = Stories::read(entries);
    let mut verdict = Verdict {
        published: stories.messages.len(),
        deliveries: stories.holdings.len(),
        settled: stories.holdings.values().filter(|holding| holding.settled_us.is_some()).count(),
        ..Verdict::default()
    };
    stories.judge_ends(&mut verdict);
    stories.judge_holders(rules, &mut verdict);
    stories.judge_caps(rules, &mut verdict);
    stories.judge_order(rules, &mut verdict);
    verdict
}

/// A message's own story.
#[derive(Default)]
struct Story {
    queue: u16,
    level: u8,
    confirmed_us: Option<u64>,
    /// In the order of their deliveries.
    holders: Vec<Holder>,
}

/// One delivery's.
struct Holding {
    message: Message,
    broker: u8,
    from_us: u64,
    over_us: Option<u64>,
    settle_asked_us: Option<u64>,
    settled_us: Option<u64>,
    put_back_us: Option<u64>,
    lost_us: Option<u64>,
}

#[derive(Default)]
struct Stories {
    messages: BTreeMap<Message, Story>,
    holdings: BTreeMap<Holder, Holding>,
    /// Of each broker, from when until when it was cut off.
    cuts: Vec<(u8, u64, u64)>,
}

impl Stories {
    fn read(entries: &[Entry]) -> Self {
        let mut stories = Self::default();
        for Entry { at_us, event } in entries {
            stories.take(*at_us, *event);
        }
        stories
    }

    fn take(&mut self, at_us: u64, event: Event) {
        match event {
            Event::Published { message, queue, level } => {
                let story = self.messages.entry(message).or_default();
                (story.queue, story.level) = (queue, level);
            }
            Event::Confirmed { message } => {
                let story = self.messages.get_mut(&message).expect("published before it is confirmed");
                story.confirmed_us.get_or_insert(at_us);
            }
            Event::Delivered { holder, message, broker, over_us } => {
                let story = self.messages.get_mut(&message).expect("published before it is delivered");
                story.holders.push(holder);
                let holding = Holding {
                    message,
                    broker,
                    from_us: at_us,
                    over_us,
                    settle_asked_us: None,
                    settled_us: None,
                    put_back_us: None,
                    lost_us: None,
                };
                self.holdings.insert(holder, holding);
            }
            Event::SettleAsked { holder } => self.holding(holder).settle_asked_us = Some(at_us),
            Event::Settled { holder } => self.holding(holder).settled_us = Some(at_us),
            Event::PutBack { holder } => self.holding(holder).put_back_us = Some(at_us),
            Event::Lost { holder } => self.holding(holder).lost_us = Some(at_us),
            Event::Cut { broker } => self.cuts.push((broker, at_us, u64::MAX)),
            Event::Mended { broker } => {
                let cut = self.cuts.iter_mut().rev().find(|cut| cut.0 == broker);
                cut.expect("cut off before").2 = at_us;
            }
        }
    }

    fn holding(&mut self, holder: Holder) -> &mut Holding {
        self.holdings.get_mut(&holder).expect("delivered before")
    }

    /// Until when a holder is sure that it is his, microseconds.
    fn sure_until(&self, holding: &Holding, rules: &Rules) -> u64 {
        let lost = holding.lost_us.map(|at| at.saturating_sub(rules.notice_us));
        let lapses = self.cuts.iter().filter_map(|(broker, from, to)| {
            let lapse = from + rules.lapse_us;
            (*broker == holding.broker && holding.from_us < *to && lapse < *to).then_some(lapse)
        });
        let ends = [holding.settle_asked_us, holding.put_back_us, holding.over_us, lost];
        ends.into_iter().flatten().chain(lapses).min().unwrap_or(u64::MAX)
    }

    fn judge_ends(&self, verdict: &mut Verdict) {
        for (message, story) in &self.messages {
            let holdings = || story.holders.iter().map(|holder| (*holder, &self.holdings[holder]));
            verdict.redeliveries += story.holders.len().saturating_sub(1);
            if story.confirmed_us.is_some() {
                verdict.confirmed += 1;
                if story.holders.is_empty() {
                    verdict.lost.push(*message);
                }
            }
            // What an earlier one said may have been lost on its way, or it would not have come again.
            let is_settled = holdings().any(|(_, holding)| holding.settled_us.is_some());
            let is_open = holdings().next_back().is_some_and(|(_, last)| last.settle_asked_us.is_none());
            if is_open && !is_settled {
                verdict.unsettled.push(*message);
            }
            let settled =
                holdings().filter_map(|(holder, holding)| Some((holding.settled_us?, holder))).min();
            let Some((settled_us, by)) = settled else { continue };
            let after = holdings().filter(|(_, holding)| holding.from_us > settled_us);
            verdict.came_back.extend(after.map(|(holder, _)| (*message, by, holder)));
        }
    }

    fn judge_holders(&self, rules: &Rules, verdict: &mut Verdict) {
        for (message, story) in &self.messages {
            // Who was sure of it for longest among those that had it before.
            let mut before: Option<(u64, Holder)> = None;
            for holder in &story.holders {
                let holding = &self.holdings[holder];
                if let Some((_, other)) = before.filter(|(until, _)| holding.from_us < *until) {
                    verdict.held_twice.push((*message, other, *holder));
                }
                before = before.max(Some((self.sure_until(holding, rules), *holder)));
            }
        }
    }

    fn judge_caps(&self, rules: &Rules, verdict: &mut Verdict) {
        // Of each queue, when one more is out and when one less; an end goes before a beginning of the same time.
        let mut changes: BTreeMap<u16, Vec<(u64, bool)>> = BTreeMap::new();
        for holding in self.holdings.values() {
            let until = self.sure_until(holding, rules);
            if holding.from_us < until {
                let of_queue = changes.entry(self.messages[&holding.message].queue).or_default();
                of_queue.extend([(holding.from_us, true), (until, false)]);
            }
        }
        for (queue, mut changes) in changes {
            changes.sort_unstable();
            let (mut out, mut most) = (0_usize, 0);
            for (_, is_more) in changes {
                out = if is_more { out + 1 } else { out - 1 };
                most = most.max(out);
            }
            verdict.out_most = verdict.out_most.max(most);
            if most > rules.max_active {
                verdict.over_cap.insert(queue, most);
            }
        }
    }

    fn judge_order(&self, rules: &Rules, verdict: &mut Verdict) {
        // When messages of each level were delivered, queue by queue.
        let mut delivered: BTreeMap<(u16, u8), Vec<u64>> = BTreeMap::new();
        for story in self.messages.values() {
            let times = story.holders.iter().map(|holder| self.holdings[holder].from_us);
            delivered.entry((story.queue, story.level)).or_default().extend(times);
        }
        delivered.values_mut().for_each(|times| times.sort_unstable());
        for story in self.messages.values() {
            let first = story.holders.iter().map(|holder| self.holdings[holder].from_us).min();
            let (Some(since), Some(first)) = (story.confirmed_us, first) else { continue };
            let (from, to) = (since + rules.flight_us, first.saturating_sub(rules.flight_us));
            let (away, back) = rules.away_us;
            let last_before = |to: u64| {
                let less_urgent = delivered.range((story.queue, 0)..(story.queue, story.level));
                let last = less_urgent.filter_map(|(_, times)| {
                    let before = times.partition_point(|at| *at < to);
                    times[..before].last().copied().filter(|at| *at > from)
                });
                last.max()
            };
            let is_away = |at: u64| away <= at && at < back;
            match last_before(to) {
                None => {}
                Some(at) if !is_away(at) => verdict.inversions_us.push(at - since),
                Some(_) => match last_before(to.min(away)) {
                    Some(at) => verdict.inversions_us.push(at - since),
                    None => verdict.passed_while_away += 1,
                },
            }
        }
    }
}
