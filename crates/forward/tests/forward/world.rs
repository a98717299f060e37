//! A queue, a receiver and a line between them that does as it is told, in a time of their own.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use overtake_forward::{Action, Answer, Ask, End, Forwarder, Item, Terms};
use overtake_lane::{LeaseId, Outcome, Priority, QueueId, Receipt, Seq, Time};

/// A message of the queue.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    pub(crate) name: String,
    pub(crate) level: i32,
    pub(crate) bytes: u64,
    pub(crate) expires: Time,
    pub(crate) due: Time,
    /// How often it was leased, those times not counted when it was put back.
    pub(crate) count: u32,
    /// How often it was leased in all.
    pub(crate) leases: u32,
    pub(crate) stand: Stand,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stand {
    Ready,
    Leased(u64),
    Acked,
    Dead,
    Expired,
}

/// What the receiver makes of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Makes {
    Accepts,
    Fails,
    Busy(u64),
    Refuses,
    /// Says nothing.
    Hangs,
    /// Hangs up, after it has read the message.
    HangsUp,
    Gone,
}

/// What is under way on a line.
#[derive(Clone, Debug)]
struct Sending {
    batch: Vec<Receipt>,
    next: usize,
    is_halted: bool,
    /// When the receiver has made something of the next one.
    at: Time,
}

pub(crate) struct World {
    pub(crate) now: Time,
    pub(crate) forwarder: Forwarder,
    pub(crate) messages: BTreeMap<u64, Message>,
    next_seq: u64,
    next_lease: u64,
    asks: BTreeMap<usize, Ask>,
    sending: BTreeMap<usize, Sending>,
    connected: BTreeSet<usize>,
    pub(crate) is_up: bool,
    /// How long the receiver takes for a message, ms.
    pub(crate) takes_ms: u64,
    pub(crate) makes: Box<dyn FnMut(&Message) -> Makes>,
    /// Of a batch so many messages are on their way before the first is answered.
    pub(crate) window: usize,
    /// What the receiver has read, by name and when; and what it has said it has.
    pub(crate) read: Vec<(Time, String)>,
    pub(crate) accepted: Vec<String>,
}

pub(crate) const START: Time = Time(1_000 * 86_400_000);

impl World {
    pub(crate) fn new(terms: Terms) -> Self {
        terms.check().expect("the terms hold");
        Self {
            now: START,
            forwarder: Forwarder::new(terms, 7),
            messages: BTreeMap::new(),
            next_seq: 0,
            next_lease: 0,
            asks: BTreeMap::new(),
            sending: BTreeMap::new(),
            connected: BTreeSet::new(),
            is_up: true,
            takes_ms: 10,
            window: 1,
            makes: Box::new(|_| Makes::Accepts),
            read: Vec::new(),
            accepted: Vec::new(),
        }
    }

    /// `a:5 b:9,ttl=100 c:1,bytes=900`.
    pub(crate) fn publish(&mut self, text: &str) {
        for one in text.split_whitespace() {
            let mut parts = one.split(',');
            let (name, level) = parts.next().and_then(|first| first.split_once(':')).expect("name:level");
            let mut message = Message {
                name: name.to_owned(),
                level: level.parse().expect("a level"),
                bytes: 100,
                expires: Time::NEVER,
                due: Time(0),
                count: 0,
                leases: 0,
                stand: Stand::Ready,
            };
            for part in parts {
                let (key, value) = part.split_once('=').expect("key=value");
                let value: u64 = value.parse().expect("a number");
                match key {
                    "ttl" => message.expires = self.now.after(value),
                    "bytes" => message.bytes = value,
                    _ => panic!("{key}?"),
                }
            }
            self.next_seq += 1;
            self.messages.insert(self.next_seq, message);
        }
        self.settle_down();
    }

    fn ready(&self, ask: &Ask) -> Vec<u64> {
        let is_chosen = |message: &Message| {
            message.stand == Stand::Ready
                && message.due <= self.now
                && message.expires > self.now
                && Priority(message.level) >= ask.lanes.at_least
                && !ask.lanes.except.iter().any(|lane| **lane == *message.level.to_string())
        };
        let chosen = || self.messages.iter().filter(|(_, message)| is_chosen(message));
        let Some(level) = chosen().map(|(_, message)| message.level).max() else { return Vec::new() };
        chosen().filter(|(_, message)| message.level == level).map(|(seq, _)| *seq).collect()
    }

    fn serve(&mut self) -> bool {
        for (line, ask) in self.asks.clone() {
            let (mut items, mut bytes) = (Vec::new(), 0);
            for seq in self.ready(&ask).into_iter().take(ask.max as usize) {
                let message = self.messages.get_mut(&seq).expect("it is there");
                bytes += message.bytes;
                if !items.is_empty() && bytes > ask.max_bytes {
                    break;
                }
                self.next_lease += 1;
                (message.count, message.leases) = (message.count + 1, message.leases + 1);
                message.stand = Stand::Leased(self.next_lease);
                let receipt = Receipt { queue: QueueId(0), seq: Seq(seq), lease: LeaseId(self.next_lease) };
                let (level, lane) = (Priority(message.level), Arc::from(message.level.to_string()));
                let Message { bytes, expires, count, .. } = *message;
                items.push(Item { receipt, lane, level, bytes, expires, count });
            }
            if !items.is_empty() {
                self.asks.remove(&line);
                self.forwarder.leased(self.now, line, items);
                return true;
            }
        }
        false
    }

    /// Does all that can be done now.
    pub(crate) fn settle_down(&mut self) {
        loop {
            while let Some(action) = self.forwarder.poll(self.now) {
                self.act(action);
            }
            if !self.serve() && !self.receive() {
                return;
            }
        }
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Connect { line } if self.is_up => {
                self.connected.insert(line);
                self.forwarder.connected(line);
            }
            Action::Connect { line } => self.forwarder.not_connected(self.now, line, "no way".into()),
            Action::Disconnect { line } => self.cut(line),
            Action::Lease { line, ask } => {
                assert!(self.connected.contains(&line), "nothing is leased that cannot be sent");
                assert!(self.asks.insert(line, ask).is_none(), "one lease is asked for at a time");
            }
            Action::GiveUp { line } => assert!(self.asks.remove(&line).is_some(), "it was asked for"),
            Action::Send { line, batch } => {
                assert!(self.connected.contains(&line), "a line that sends is connected");
                let sending = Sending { batch, next: 0, is_halted: false, at: self.now.after(self.takes_ms) };
                assert!(self.sending.insert(line, sending).is_none(), "one batch at a time");
                self.begin(line);
            }
            Action::Halt { line } => {
                self.sending.get_mut(&line).expect("something is sent").is_halted = true;
            }
            Action::Settle { receipt, outcome, .. } => self.settle(receipt, outcome),
        }
    }

    fn settle(&mut self, receipt: Receipt, outcome: Outcome) {
        let now = self.now;
        let message = self.messages.get_mut(&receipt.seq.0).expect("it is there");
        assert_eq!(message.stand, Stand::Leased(receipt.lease.0), "{} is settled once", message.name);
        message.stand = match outcome {
            Outcome::Ack => Stand::Acked,
            Outcome::Reject | Outcome::Timeout => Stand::Dead,
            _ if message.expires <= now => Stand::Expired,
            Outcome::Release => {
                message.count -= 1;
                Stand::Ready
            }
            Outcome::Nack { delay_ms } => {
                message.due = now.after(delay_ms.expect("it says for how long"));
                Stand::Ready
            }
        };
    }

    /// The next message of a batch is written, and read on the other side.
    fn begin(&mut self, line: usize) {
        let sending = self.sending.get_mut(&line).expect("something is sent");
        sending.at = self.now.after(self.takes_ms);
        if let Some(receipt) = sending.batch.get(sending.next) {
            let message = &self.messages[&receipt.seq.0];
            if message.expires > self.now {
                self.read.push((self.now, message.name.clone()));
            }
        }
    }

    /// What the receiver makes of what it has read by now.
    fn receive(&mut self) -> bool {
        let due = self.sending.iter().find(|(_, sending)| sending.at <= self.now).map(|(line, _)| *line);
        let Some(line) = due else { return false };
        let sending = &self.sending[&line];
        let receipt = sending.batch[sending.next];
        if self.window > 1
            && let Some((why, on_their_way)) = self.hangs_up_on_one_of_several(line)
        {
            return self.end(line, End::Lost { why, on_their_way });
        }
        let message = self.messages[&receipt.seq.0].clone();
        let why: Arc<str> = format!("at {}", message.name).into();
        let was_read = self.read.iter().any(|(_, name)| *name == message.name);
        let answer = match (self.makes)(&message) {
            _ if !was_read => Answer::Expired,
            Makes::Accepts => {
                self.accepted.push(message.name.clone());
                Answer::Accepted { bytes: message.bytes }
            }
            Makes::Fails => Answer::Failed { busy_ms: None, why },
            Makes::Busy(ms) => Answer::Failed { busy_ms: Some(ms), why },
            Makes::Refuses => Answer::Refused { why },
            Makes::Hangs => {
                self.sending.get_mut(&line).expect("something is sent").at = Time::NEVER;
                return true;
            }
            Makes::HangsUp => return self.end(line, End::Lost { why, on_their_way: 1 }),
            Makes::Gone => return self.end(line, End::Gone { why }),
        };
        self.forwarder.answered(self.now, line, &receipt, &answer);
        while let Some(action) = self.forwarder.poll(self.now) {
            self.act(action);
        }
        let sending = self.sending.get_mut(&line).expect("something is sent");
        sending.next += 1;
        if sending.is_halted || sending.next == sending.batch.len() {
            self.sending.remove(&line);
            self.forwarder.finished(self.now, line, End::Done);
        } else {
            self.begin(line);
        }
        true
    }

    /// Whether the receiver, of which so many messages are sent ahead of its answers, hangs up on one of these.
    fn hangs_up_on_one_of_several(&mut self, line: usize) -> Option<(Arc<str>, usize)> {
        let sending = &self.sending[&line];
        let ahead = sending.batch[sending.next..].iter().take(self.window);
        let ahead: Vec<Message> = ahead.map(|receipt| self.messages[&receipt.seq.0].clone()).collect();
        let at_fault = ahead.iter().find(|one| (self.makes)(one) == Makes::HangsUp)?;
        let why = format!("at {}", at_fault.name).into();
        for one in &ahead[1..] {
            self.read.push((self.now, one.name.clone()));
        }
        Some((why, ahead.len()))
    }

    fn end(&mut self, line: usize, end: End) -> bool {
        self.cut(line);
        self.forwarder.finished(self.now, line, end);
        true
    }

    fn cut(&mut self, line: usize) {
        self.connected.remove(&line);
        self.sending.remove(&line);
    }

    /// The line is down from now on.
    pub(crate) fn breaks(&mut self) {
        self.is_up = false;
        for line in self.connected.clone() {
            let on_their_way = usize::from(self.sending.contains_key(&line));
            self.end(line, End::Lost { why: "cut".into(), on_their_way });
        }
        self.settle_down();
    }

    pub(crate) fn mends(&mut self) {
        self.is_up = true;
        self.settle_down();
    }

    /// Lets time pass.
    pub(crate) fn pass(&mut self, ms: u64) {
        let end = self.now.after(ms);
        self.settle_down();
        loop {
            let sent = self.sending.values().map(|sending| sending.at).min().unwrap_or(Time::NEVER);
            let due = self.messages.values().filter(|one| one.stand == Stand::Ready).map(|one| one.due);
            let due = due.filter(|due| *due > self.now).min().unwrap_or(Time::NEVER);
            let next = sent.min(due).min(self.forwarder.wakes_at(self.now));
            if next > end {
                break;
            }
            assert!(next > self.now, "there is nothing left to do now");
            self.now = next;
            self.settle_down();
        }
        self.now = end;
        self.settle_down();
    }

    /// What the receiver has read since it was asked last.
    pub(crate) fn told(&mut self) -> String {
        let all: Vec<String> = self.read.drain(..).map(|(_, name)| name).collect();
        all.join(" ")
    }
}
