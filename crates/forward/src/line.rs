//! One connection to the receiver, and what is under way on it.

use std::collections::VecDeque;
use std::sync::Arc;

use overtake_lane::{Priority, Receipt, Time};

use crate::forwarder::Ask;
use crate::item::Item;

/// One connection to the receiver.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) link: Link,
    /// Attempts to connect that failed, and connections lost before anything was accepted, in a row.
    pub(crate) failures: u32,
    /// The lease that is asked for.
    pub(crate) ask: Option<Ask>,
    /// What is being sent.
    pub(crate) batch: Option<Batch>,
    /// What goes next: leased while the batch was under way.
    pub(crate) next: Vec<Item>,
}

/// Whether a line is connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Link {
    /// It is not, and is tried then.
    Down(Time),
    /// It is tried, until then.
    Connecting(Time),
    Up,
}

/// Messages of one lane on their way.
#[derive(Clone, Debug)]
pub(crate) struct Batch {
    pub(crate) lane: Arc<str>,
    /// The most urgent of them.
    pub(crate) level: Priority,
    /// Without an answer, in the order in which they are sent.
    pub(crate) items: VecDeque<Item>,
    /// The one in whose place the only one of this batch is sent: held until it is known at which of them the line breaks.
    pub(crate) aside: Option<Item>,
    /// Whether nothing else of the lane was there.
    pub(crate) is_last: bool,
    /// When it is given up.
    pub(crate) until: Time,
    /// The line was told to send no more of it.
    pub(crate) is_halted: bool,
}

impl Batch {
    pub(crate) fn take(&mut self, receipt: &Receipt) -> Option<Item> {
        let at = self.items.iter().position(|item| item.receipt == *receipt)?;
        self.items.remove(at)
    }
}

impl Line {
    pub(crate) fn new() -> Self {
        Self { link: Link::Down(Time(0)), failures: 0, ask: None, batch: None, next: Vec::new() }
    }

    pub(crate) fn is_up(&self) -> bool {
        self.link == Link::Up
    }

    /// Whether nothing is under way on it.
    pub(crate) fn is_idle(&self) -> bool {
        self.batch.is_none() && self.ask.is_none() && self.next.is_empty()
    }

    /// When it must be looked at.
    pub(crate) fn wakes_at(&self) -> Time {
        match self.link {
            Link::Down(at) | Link::Connecting(at) => at,
            Link::Up => self.batch.as_ref().map_or(Time::NEVER, |batch| batch.until),
        }
    }
}
