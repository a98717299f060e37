//! What happened to messages, as those saw it who published and consumed them.
//!
//! What is asked is written down before it is sent, and what is told after it was read; so what really happened lies between the two. There is one book, and its entries
//! stand in the order of their times.

use std::collections::BTreeSet;
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// A message, by the number that it says in its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Message(pub(crate) u32);

/// One delivery: a message in the hands of somebody.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Holder(pub(crate) u32);

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// A publish is about to be sent, for the first time or again.
    Published { message: Message, queue: u16, level: u8 },
    /// The broker has confirmed it.
    Confirmed { message: Message },
    /// Somebody has it, from a broker. By `over_us` its lease is over by itself; `None`: it lasts as long as its connection.
    Delivered { holder: Holder, message: Message, broker: u8, over_us: Option<u64> },
    /// Whoever has it is about to say that the work is done.
    SettleAsked { holder: Holder },
    /// The broker has confirmed that it is settled.
    Settled { holder: Holder },
    /// Whoever has it is about to put it back.
    PutBack { holder: Holder },
    /// The connection of whoever had it is gone.
    Lost { holder: Holder },
    /// A broker no longer reaches the servers.
    Cut { broker: u8 },
    /// It does again.
    Mended { broker: u8 },
}

/// An event, and when: microseconds since the book was begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) at_us: u64,
    pub(crate) event: Event,
}

/// All that happened, written by many.
pub(crate) struct Book {
    begun: Instant,
    pages: Mutex<Pages>,
    written: Condvar,
}

/// What is written, and how much of it.
#[derive(Default)]
pub(crate) struct Pages {
    entries: Vec<Entry>,
    holders: u32,
    /// Publishes that were confirmed.
    pub(crate) confirmed: usize,
    /// Deliveries that somebody said were done.
    pub(crate) settles_asked: usize,
}

impl Book {
    /// One without entries, from now on.
    pub(crate) fn begin() -> Self {
        Self { begun: Instant::now(), pages: Mutex::default(), written: Condvar::new() }
    }

    /// Microseconds since it was begun.
    pub(crate) fn now_us(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_micros()).expect("a test does not take so long")
    }

    /// Writes down what happens now.
    pub(crate) fn write(&self, event: Event) {
        self.write_in(&mut self.pages(), event);
    }

    /// Writes down who has got a message, and gives the delivery its number.
    pub(crate) fn deliver(&self, message: Message, broker: usize, over_us: Option<u64>) -> Holder {
        let mut pages = self.pages();
        let holder = Holder(pages.holders);
        pages.holders += 1;
        let broker = u8::try_from(broker).expect("there are few");
        self.write_in(&mut pages, Event::Delivered { holder, message, broker, over_us });
        holder
    }

    fn write_in(&self, pages: &mut Pages, event: Event) {
        // Looked at under the lock, so that times stand in the order of the entries.
        pages.entries.push(Entry { at_us: self.now_us(), event });
        match event {
            Event::Confirmed { .. } => pages.confirmed += 1,
            Event::SettleAsked { .. } => pages.settles_asked += 1,
            _ => return,
        }
        self.written.notify_all();
    }

    /// Waits until so much is written, but no longer than that; whether it is.
    pub(crate) fn until(&self, patience: Duration, mut is_so: impl FnMut(&Pages) -> bool) -> bool {
        let waited = self.written.wait_timeout_while(self.pages(), patience, |pages| !is_so(pages));
        !waited.expect("nobody panicked").1.timed_out()
    }

    /// How many publishes were confirmed, and how many deliveries said to be done.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let pages = self.pages();
        (pages.confirmed, pages.settles_asked)
    }

    /// What is in it.
    pub(crate) fn close(&self) -> Vec<Entry> {
        std::mem::take(&mut self.pages().entries)
    }

    fn pages(&self) -> MutexGuard<'_, Pages> {
        self.pages.lock().expect("nobody panicked")
    }
}

/// What happened to a message, a line for each entry.
pub(crate) fn story(entries: &[Entry], message: Message) -> String {
    let mut holders = BTreeSet::new();
    let mut lines = vec![format!("  {message:?}")];
    for Entry { at_us, event } in entries {
        let is_its = match event {
            Event::Published { message: its, .. } | Event::Confirmed { message: its } => *its == message,
            Event::Delivered { holder, message: its, .. } => *its == message && holders.insert(*holder),
            Event::SettleAsked { holder }
            | Event::Settled { holder }
            | Event::PutBack { holder }
            | Event::Lost { holder } => holders.contains(holder),
            Event::Cut { .. } | Event::Mended { .. } => true,
        };
        if is_its {
            lines.push(format!("  {:>9} ms  {event:?}", at_us / 1_000));
        }
    }
    lines.join("\n")
}
