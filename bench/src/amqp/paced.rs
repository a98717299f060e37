//! A consumer that works for a while on each message, and a publisher with a steady pace, on one thread that sees both: so
//! what was confirmed before what was delivered is known, and no delay of a thread is taken for the broker's.

mod overtaking;

use std::collections::VecDeque;
use std::time::Duration;

use anyhow::Result;

use super::letter::{Ledger, Letter, Order, Post, now_ns};
use super::wire::{Source, Taker, ready};
use super::{LEVELS, WINDOW};
use crate::spread::Spread;
pub(super) use overtaking::Overtaking;

/// Longest sleep, so that whatever was miscalculated is looked at again.
const NAP_NS: u64 = 20_000_000;

/// How much is published, and how fast.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    pub(super) count: u64,
    /// From one to the next; 0 is as fast as it goes.
    pub(super) gap_ns: u64,
}

/// What came of it.
pub(super) struct Seen {
    /// Where messages arrive: what the broker itself decides.
    pub(super) at_socket: Overtaking,
    /// Where the work on a message begins: with the prefetch that lies before it.
    pub(super) at_worker: Overtaking,
    /// From publish until the work on it begins, of each level.
    pub(super) waits: Vec<Spread>,
    /// From the beginning of the first work to the end of the last.
    pub(super) worked_ns: u64,
}

/// A message that arrived and waits for the worker.
struct Held {
    tag: u64,
    number: u64,
    level: u8,
    sent_ns: u64,
    came_ns: u64,
}

pub(super) struct Paced<'a> {
    source: &'a mut dyn Source,
    taker: &'a mut dyn Taker,
    work_ns: u64,
    ledger: Ledger,
    post: Post,
    /// Levels of what was published, by number.
    levels: Vec<u8>,
    confirmed: u64,
    held: VecDeque<Held>,
    /// What is worked on, and until when.
    work: Option<(u64, u64)>,
    began_ns: Option<u64>,
    ended_ns: u64,
    done: u64,
    seen: Seen,
}

impl<'a> Paced<'a> {
    pub(super) fn new(
        source: &'a mut dyn Source,
        taker: &'a mut dyn Taker,
        order: Order,
        work: Duration,
    ) -> Self {
        let seen = Seen {
            at_socket: Overtaking::default(),
            at_worker: Overtaking::default(),
            waits: (0..LEVELS).map(|_| Spread::default()).collect(),
            worked_ns: 0,
        };
        Self {
            source,
            taker,
            work_ns: work.as_nanos() as u64,
            ledger: Ledger::new(order),
            post: Post::new(0),
            levels: Vec::new(),
            confirmed: 0,
            held: VecDeque::new(),
            work: None,
            began_ns: None,
            ended_ns: 0,
            done: 0,
            seen,
        }
    }

    /// Until all that is published was worked on and acknowledged.
    pub(super) fn run(mut self, pace: Pace) -> Result<Seen> {
        self.taker.expect(pace.count);
        self.taker.flush()?;
        let start = now_ns();
        while self.done < pace.count || self.confirmed < pace.count {
            let now = now_ns();
            let publish_at = self.publish(now, start, pace)?;
            let work_at = self.work(now)?;
            let wake_at = publish_at.min(work_at).min(now + NAP_NS);
            self.listen(Duration::from_nanos(wake_at.saturating_sub(now)))?;
        }
        self.ledger.is_complete(pace.count)?;
        self.seen.worked_ns = self.ended_ns - self.began_ns.unwrap_or_default();
        Ok(self.seen)
    }

    /// Publishes what is due; when the next is.
    fn publish(&mut self, now: u64, start: u64, pace: Pace) -> Result<u64> {
        let due = |number: u64| start + number * pace.gap_ns;
        let sent = |this: &Self| this.levels.len() as u64;
        while sent(self) < pace.count && due(sent(self)) <= now && sent(self) - self.confirmed < WINDOW {
            let level = self.post.draw();
            self.levels.push(level);
            self.source.put(level, self.post.write(level));
        }
        self.source.flush()?;
        let waits_for_confirms = sent(self) - self.confirmed >= WINDOW;
        Ok(if sent(self) == pace.count || waits_for_confirms { u64::MAX } else { due(sent(self)) })
    }

    /// Ends the work that is done and begins the next; when that is done. Work begins where it would have, had this thread
    /// not slept too long.
    fn work(&mut self, now: u64) -> Result<u64> {
        while self.work.is_none_or(|(_, until)| until <= now) {
            if let Some((tag, until)) = self.work.take() {
                self.taker.ack(tag);
                self.ended_ns = until;
                self.done += 1;
            }
            let Some(next) = self.held.pop_front() else { break };
            let begins = self.ended_ns.max(next.came_ns);
            self.began_ns.get_or_insert(begins);
            self.work = Some((next.tag, begins + self.work_ns));
            self.seen.at_worker.delivered(next.number, next.level, now);
            self.seen.waits[usize::from(next.level)].saw(begins - next.sent_ns);
        }
        self.taker.flush()?;
        Ok(self.work.map_or(u64::MAX, |(_, until)| until))
    }

    /// Hears what the broker says. What it delivered before it confirmed a message does not count against that one: all
    /// that arrived until the confirm was read is read, and begun if the worker is free, before the confirm is believed.
    fn listen(&mut self, wait: Duration) -> Result<()> {
        let [heard, mut came] = ready([self.source.socket(), self.taker.socket()], wait)?;
        let mut confirmed = Vec::new();
        if heard {
            self.source.hear(&mut |number| confirmed.push(number))?;
        }
        loop {
            let [more] = ready([self.taker.socket()], Duration::ZERO)?;
            if !(came || more || self.taker.holds_part()) {
                break;
            }
            self.take()?;
            came = false;
        }
        let now = now_ns();
        self.work(now)?;
        for number in confirmed {
            let level = self.levels[number as usize];
            self.seen.at_socket.confirmed(number, level, now);
            self.seen.at_worker.confirmed(number, level, now);
            self.confirmed += 1;
        }
        Ok(())
    }

    fn take(&mut self) -> Result<()> {
        let Self { taker, ledger, held, seen, .. } = self;
        let mut all = Ok(());
        taker.take(&mut |delivery| {
            let came_ns = now_ns();
            let entered = Letter::read(&delivery).and_then(|letter| {
                let Letter { number, sent_ns, level, .. } = letter;
                seen.at_socket.delivered(number, level, came_ns);
                held.push_back(Held { tag: delivery.tag, number, level, sent_ns, came_ns });
                ledger.enter(letter)
            });
            if all.is_ok() {
                all = entered;
            }
        })?;
        all
    }
}
