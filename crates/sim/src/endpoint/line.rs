//! One line to a receiver: it is down, or comes up, or carries one message after the other.

use std::collections::BTreeSet;
use std::sync::Arc;

use overtake_forward::{Answer, Ask, End};
use overtake_lane::{Priority, Receipt, Time};

use super::habits::{Fate, Mood};
use super::{Endpoint, Running};
use crate::failure::Checked;
use crate::refold::mark_of;
use crate::sabotage::Sabotage;
use crate::world::World;

/// One line.
#[derive(Debug, Default)]
pub(super) struct Line {
    pub(super) link: Link,
    /// The request for a lease that its forwarder waits for; `Some(None)`: one that was never asked for.
    pub(super) asked: Option<Option<u64>>,
    /// What was given up, and has not come to its end: maybe it brings messages that go first.
    pub(super) giving_up: BTreeSet<u64>,
    /// What is asked for after that.
    pub(super) wanted: Option<Ask>,
}

/// Whether it is connected.
#[derive(Debug, Default)]
pub(super) enum Link {
    #[default]
    Down,
    /// Until then, µs; then it is up, or not.
    Connecting {
        until: Option<u64>,
        comes: bool,
    },
    Up(Option<Sending>),
}

/// A batch under way.
#[derive(Debug)]
pub(super) struct Sending {
    pub(super) batch: Vec<Receipt>,
    lane: Arc<str>,
    /// The most urgent of it.
    pub(super) level: Priority,
    /// So many were looked at.
    pub(super) next: usize,
    pub(super) is_halted: bool,
    /// The message that is on its way, what becomes of it, and when, µs.
    current: Option<(Receipt, Fate, Option<u64>)>,
}

impl Sending {
    pub(super) fn new(batch: Vec<Receipt>, lane: Arc<str>, level: Priority) -> Self {
        Self { batch, lane, level, next: 0, is_halted: false, current: None }
    }
}

impl Line {
    /// When something comes to its end here, µs.
    pub(super) fn due(&self) -> Option<u64> {
        match &self.link {
            Link::Connecting { until, .. } => *until,
            Link::Up(Some(Sending { current: Some((.., ends)), .. })) => *ends,
            _ => None,
        }
    }
}

impl World {
    /// Connects, or will have failed to.
    pub(super) fn connects(&mut self, one: &mut Endpoint, at: usize) {
        let takes_us = self.takes_us(one).min(one.terms.connect_ms * 900);
        let hangs = self.chance.endpoints.once_in(3);
        let comes = self.is_calm || one.mood != Mood::Down;
        let until = (comes || !hangs).then_some(self.now_us + takes_us);
        one.running().lines[at].link = Link::Connecting { until, comes };
    }

    /// How long something takes on a line: not so long in the calm that a batch never ends in time.
    fn takes_us(&mut self, one: &Endpoint) -> u64 {
        let most = if self.is_calm { 200 } else { u64::MAX };
        self.chance.endpoints.heavy(one.habits.takes_us.min(most))
    }

    /// The next message of a batch is sent, or the batch is at its end.
    pub(super) fn sends_next(&mut self, one: &mut Endpoint, at: usize) -> Checked {
        let now = self.clock();
        loop {
            let running = one.running.as_mut().expect("it sends");
            let Link::Up(Some(sending)) = &mut running.lines[at].link else { return Ok(()) };
            let next = sending.batch.get(sending.next).copied().filter(|_| !sending.is_halted);
            let Some(receipt) = next else {
                running.lines[at].link = Link::Up(None);
                running.forwarder.finished(now, at, End::Done);
                return Ok(());
            };
            sending.next += 1;
            let message = &running.held[&receipt].message;
            if message.deadline.is_some_and(|deadline| deadline <= now) {
                *self.tally.endpoints.entry("no longer held").or_default() += 1;
                continue;
            }
            let expires = message.message.expires.unwrap_or(Time::NEVER);
            if expires > now || self.config.sabotage == Some(Sabotage::SendsExpired) {
                return self.sends(one, at, receipt);
            }
            running.held.get_mut(&receipt).expect("what is sent is held").is_begun = true;
            *self.tally.endpoints.entry("expired").or_default() += 1;
            running.forwarder.answered(now, at, &receipt, &Answer::Expired);
        }
    }

    fn sends(&mut self, one: &mut Endpoint, at: usize, receipt: Receipt) -> Checked {
        self.check_begun(one, at, &receipt)?;
        let held = one.running().held.get_mut(&receipt).expect("what is sent is held");
        held.is_begun = true;
        let message = &held.message;
        let mark = mark_of(message.content.content_type()).unwrap_or_default();
        let level = message.message.level.0;
        let fate = match self.is_calm {
            true => Fate::Accepted,
            false => one.habits.fate(&mut self.chance.endpoints, one.mood, mark, level),
        };
        let takes_us = self.takes_us(one);
        let ends = (!matches!(fate, Fate::Hangs { .. })).then_some(self.now_us + takes_us);
        self.count_endpoint("sent");
        self.trace.mix(&[receipt.seq.0, receipt.lease.0]);
        self.tell(|| format!("{} sends {receipt} m/{mark} on line {at}: {fate:?}", one.queue));
        if fate.arrives() {
            one.ledger.arrives(&receipt, mark);
        }
        let Link::Up(Some(sending)) = &mut one.running().lines[at].link else { return Ok(()) };
        sending.current = Some((receipt, fate, ends));
        Ok(())
    }

    /// What was under way on a line has come to its end.
    pub(super) fn line_moves(&mut self, one: &mut Endpoint, at: usize) -> Checked {
        let now = self.clock();
        let running = one.running.as_mut().expect("its lines move");
        match &mut running.lines[at].link {
            Link::Connecting { comes: true, .. } => {
                running.lines[at].link = Link::Up(None);
                running.forwarder.connected(at);
            }
            Link::Connecting { .. } => {
                running.lines[at].link = Link::Down;
                running.forwarder.not_connected(now, at, "no way".into());
            }
            Link::Up(Some(sending)) => {
                let (receipt, fate, _) = sending.current.take().expect("something was on its way");
                return self.ends(one, at, &receipt, fate);
            }
            Link::Up(None) | Link::Down => {}
        }
        Ok(())
    }

    fn ends(&mut self, one: &mut Endpoint, at: usize, receipt: &Receipt, fate: Fate) -> Checked {
        let why = || Arc::from("so it goes");
        let held = &one.running().held[receipt].message;
        let (bytes, lane) = (held.content.size() as u64, held.message.lane.clone());
        let answer = match fate {
            Fate::Accepted => Answer::Accepted { bytes: bytes + 20 },
            Fate::Fails => Answer::Failed { busy_ms: None, why: why() },
            Fate::Busy(ms) => Answer::Failed { busy_ms: Some(ms), why: why() },
            Fate::Refused => Answer::Refused { why: why() },
            Fate::Lost { .. } | Fate::Hangs { .. } | Fate::Gone => {
                return self.is_lost(one, at, fate == Fate::Gone);
            }
        };
        match &answer {
            Answer::Accepted { .. } => one.ledger.accepted(receipt, &lane),
            Answer::Failed { .. } => one.ledger.trouble(&lane),
            _ => {}
        }
        self.count_endpoint(match fate {
            Fate::Accepted => "accepted",
            Fate::Fails => "failed",
            Fate::Busy(_) => "busy",
            _ => "refused",
        });
        let forgets = self.config.sabotage == Some(Sabotage::ForgetsAnswer) && fate == Fate::Accepted;
        if !forgets {
            let now = self.clock();
            one.running().forwarder.answered(now, at, receipt, &answer);
        }
        self.carry_out(one)?;
        self.sends_next(one, at)
    }

    /// The connection is lost; or the receiver is gone for good, and the endpoint paused.
    fn is_lost(&mut self, one: &mut Endpoint, at: usize, is_gone: bool) -> Checked {
        let now = self.clock();
        self.count_endpoint(if is_gone { "gone" } else { "lost" });
        self.tell(|| format!("{} loses line {at}", one.queue));
        self.trouble_at(one, at);
        let running = one.running.as_mut().expect("its lines break");
        let before = std::mem::replace(&mut running.lines[at].link, Link::Down);
        let is_sending = matches!(&before, Link::Up(Some(sending)) if sending.current.is_some());
        let why = Arc::from("lost");
        let on_their_way = usize::from(is_sending);
        let end = if is_gone { End::Gone { why } } else { End::Lost { why, on_their_way } };
        running.forwarder.finished(now, at, end);
        if is_gone {
            self.pause(one);
        }
        Ok(())
    }

    /// All lines that are up are lost.
    pub(super) fn cut_lines(&mut self, one: &mut Endpoint) -> Checked {
        for at in 0..usize::from(one.terms.fan_out) {
            let is_up = |running: &Running| matches!(running.lines[at].link, Link::Up(_));
            if one.running.as_ref().is_some_and(is_up) {
                self.is_lost(one, at, false)?;
                self.carry_out(one)?;
            }
        }
        Ok(())
    }

    /// Whatever is under way on a line is cut off: its lane may be left alone for a while.
    pub(super) fn trouble_at(&mut self, one: &mut Endpoint, at: usize) {
        let running = one.running.as_ref().expect("it has lines");
        if let Link::Up(Some(sending)) = &running.lines[at].link {
            one.ledger.trouble(&sending.lane);
        }
    }
}

impl Endpoint {
    pub(super) fn running(&mut self) -> &mut Running {
        self.running.as_mut().expect("it runs")
    }
}
