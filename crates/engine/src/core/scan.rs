//! Looking at more messages than one step may: a scan goes on step by step, between whatever else is asked.
//!
//! ```text
//!   browse ─▶ Core::handle ─▶ scans ─▶ Core::scan_on ─┬─▶ scans, at the end of the line
//!                                                     └─▶ Out::Answer: the page
//! ```
//!
//! A step looks at no more messages than it is told. What happens between two steps shows as follows:
//!
//! | a message | is seen |
//! |---|---|
//! | that matches from the first step to the last and, in dispatch order, stays in its lane and stands as it stood | once |
//! | any other | once or not at all |
//!
//! The orders `published` and `newest` go by the sequence of a message, which never changes; for dispatch order see [`Walk`].

use std::sync::Arc;

use overtake_lane::{Asker, BrowseOrder, Cursor, QueueId, Refusal, Time, Walk};

use super::bulk::Bulk;
use super::{Answer, Core, Out, Request};
use crate::api::{ANSWER_BYTES_MAX, Browse, BrowsedMessage, Page};

/// What waits in line for its next step.
#[derive(Debug)]
pub(super) enum Turn<T> {
    /// A look at messages.
    Look(Box<Scan<T>>),
    /// A change of messages.
    Change(Box<Bulk<T>>),
}

impl<T> Turn<T> {
    /// Those who wait for it.
    pub(super) fn into_tickets(self) -> Vec<T> {
        match self {
            Self::Look(scan) => vec![scan.ticket],
            Self::Change(bulk) => bulk.into_tickets().collect(),
        }
    }
}

/// A look at messages that goes on.
#[derive(Debug)]
pub(super) struct Scan<T> {
    ticket: T,
    asker: Asker,
    queue: QueueId,
    name: Arc<str>,
    /// The page that is asked for, less what earlier steps did of it.
    browse: Browse,
    /// How far it has come in dispatch order.
    walk: Walk,
    page: Page,
    /// Bytes of the messages of the page.
    bytes: u64,
    /// Where to go on after the last message of the page.
    last: Option<Cursor>,
    stage: Stage,
}

/// The work of the next step of a scan.
#[derive(Clone, Copy, Debug)]
enum Stage {
    /// Looks for messages of the page.
    Page,
    /// Counts what the filter takes in all, from here on.
    Count { counted: u64, from: Option<Cursor> },
}

impl<T> Core<T> {
    /// Whether a look at messages can go on now, or a change of many: then [`Core::scan_on`] is to be called, however often, until it is answered.
    #[must_use]
    pub fn is_scanning(&self) -> bool {
        self.next_turn().is_some()
    }

    /// The place in line of the turn that is next. While memory is full no change goes on: a change brings messages back, and publishes
    /// would wait with it.
    fn next_turn(&self) -> Option<usize> {
        let is_memory_full = self.is_memory_full();
        self.scans.iter().position(|turn| !is_memory_full || matches!(turn, Turn::Look(_)))
    }

    /// Goes on with the scan whose turn it is, by so many looks at messages: it is answered, or goes to the end of the line. What it answers
    /// here, a scan that changes messages asks for: call [`Core::change_on`] at once, unless that [must wait](Core::must_wait). Then it is asked
    /// for again in the next step.
    pub fn scan_on(&mut self, now: Time, looks: usize) -> Option<Request> {
        let next = self.next_turn()?;
        let mut scan = match self.scans.remove(next)? {
            Turn::Look(scan) => scan,
            Turn::Change(bulk) => return self.bulk_step(now, bulk, looks),
        };
        self.asking = scan.asker;
        let result = match self.scan_step(&mut scan, looks) {
            Ok(false) => {
                self.scans.push_back(Turn::Look(scan));
                return None;
            }
            Ok(true) => Ok(Answer::Page(scan.page)),
            Err(refusal) => Err(refusal.into()),
        };
        self.outs.push(Out::Answer { ticket: scan.ticket, result, durable: false });
        None
    }

    /// Ends the looks whose answers nobody waits for. A change goes on all the same.
    pub fn drop_scans(&mut self, is_gone: impl Fn(&T) -> bool) {
        self.scans.retain_mut(|turn| match turn {
            Turn::Look(scan) => !is_gone(&scan.ticket),
            Turn::Change(bulk) => {
                bulk.drop_waiting(&is_gone);
                true
            }
        });
    }

    pub(super) fn begin_scan(&mut self, name: Arc<str>, browse: Browse, ticket: T) {
        match self.broker.id_of(self.asking.vhost, &name) {
            Ok(queue) => self.scans.push_back(Turn::Look(Box::new(Scan {
                ticket,
                asker: self.asking,
                queue,
                name,
                last: browse.cursor,
                browse,
                walk: Walk::default(),
                page: Page::default(),
                bytes: 0,
                stage: Stage::Page,
            }))),
            Err(refusal) => {
                self.outs.push(Out::Answer { ticket, result: Err(refusal.into()), durable: false });
            }
        }
    }

    /// Whether the scan is done.
    fn scan_step(&self, scan: &mut Scan<T>, looks: usize) -> Result<bool, Refusal> {
        // Another queue may have its name by now.
        if self.broker.id_of(scan.asker.vhost, &scan.name)? != scan.queue {
            return Err(Refusal::NoSuchQueue);
        }
        match scan.stage {
            Stage::Page => {
                let is_done = self.page_step(scan, looks)?;
                if is_done && scan.browse.with_total {
                    scan.stage = Stage::Count { counted: 0, from: None };
                    return Ok(false);
                }
                Ok(is_done)
            }
            Stage::Count { counted, from } => {
                let filter = &scan.browse.filter;
                let (more, next) = self.count_some(&scan.name, filter, from, Some(looks))?;
                scan.stage = Stage::Count { counted: counted + more, from: next };
                scan.page.total = Some(counted + more).filter(|_| next.is_none());
                Ok(next.is_none())
            }
        }
    }

    /// Whether the page is done.
    fn page_step(&self, scan: &mut Scan<T>, looks: usize) -> Result<bool, Refusal> {
        let Scan { name, browse, walk, page, bytes, last, .. } = scan;
        let look = self.find_some(name, browse, walk, Some(looks))?;
        for (cursor, message) in look.messages {
            // In dispatch order a message whose status has changed may come again.
            let is_again = |shown: &BrowsedMessage| shown.message.seq == message.seq;
            if browse.order == BrowseOrder::Dispatch && page.messages.iter().any(is_again) {
                continue;
            }
            *bytes += u64::from(message.bytes);
            if !page.messages.is_empty() && *bytes > ANSWER_BYTES_MAX {
                page.next = *last;
                return Ok(true);
            }
            *last = Some(cursor);
            browse.limit -= 1;
            page.messages.push(BrowsedMessage {
                content: self.content(message.place),
                held: self.held(name, &message),
                message,
                position: None,
                position_in_priority: None,
            });
        }
        if browse.order != BrowseOrder::Dispatch {
            (browse.skip, browse.cursor) = (browse.skip - look.skipped, look.next);
        }
        page.next = look.next;
        Ok(look.next.is_none() || browse.limit == 0)
    }
}
