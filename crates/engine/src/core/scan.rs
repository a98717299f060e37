//! Looking at more messages than one step may: a scan goes on step by step, between whatever else is asked.
//!
//! ```text
//!   browse ─▶ Core::handle ─▶ scans ─▶ Core::scan_on ─┬─▶ scans, at the end of the line
//!                                                     └─▶ Out::Answer: the page
//! ```
//!
//! In the orders `published` and `newest`, and for the count of all that match, a step looks at no more messages than it is told. What
//! happens between two steps shows as follows, since both go by the sequence of a message, which never changes:
//!
//! | a message | is seen |
//! |---|---|
//! | that matches from the first step to the last | once |
//! | that begins or ceases to match meanwhile, comes or goes | once or not at all |
//!
//! In dispatch order a page is made in one step: no cursor says where each lane stands.

use std::sync::Arc;

use overtake_lane::{Asker, Cursor, QueueId, Refusal};

use super::{Answer, Core, Out};
use crate::api::{ANSWER_BYTES_MAX, Browse, BrowsedMessage, Page};
use crate::browsing::fitting_into;

/// A look at messages that goes on.
#[derive(Debug)]
pub(super) struct Scan<T> {
    ticket: T,
    asker: Asker,
    queue: QueueId,
    name: Arc<str>,
    /// The page that is asked for, less what earlier steps did of it.
    browse: Browse,
    page: Page,
    /// Bytes of the messages of the page.
    bytes: u64,
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

impl<T> Scan<T> {
    pub(super) fn into_ticket(self) -> T {
        self.ticket
    }
}

impl<T> Core<T> {
    /// Whether a look at messages goes on: then [`Core::scan_on`] is to be called, however often, until it is answered.
    #[must_use]
    pub fn is_scanning(&self) -> bool {
        !self.scans.is_empty()
    }

    /// Goes on with the scan whose turn it is, by so many looks at messages. It is answered, or goes to the end of the line.
    pub fn scan_on(&mut self, looks: usize) {
        let Some(mut scan) = self.scans.pop_front() else { return };
        self.asking = scan.asker;
        let result = match self.scan_step(&mut scan, looks) {
            Ok(false) => return self.scans.push_back(scan),
            Ok(true) => Ok(Answer::Page(scan.page)),
            Err(refusal) => Err(refusal.into()),
        };
        self.outs.push(Out::Answer { ticket: scan.ticket, result, durable: false });
    }

    /// Ends the scans whose answers nobody waits for.
    pub fn drop_scans(&mut self, is_gone: impl Fn(&T) -> bool) {
        self.scans.retain(|scan| !is_gone(&scan.ticket));
    }

    pub(super) fn begin_scan(&mut self, name: Arc<str>, browse: Browse, ticket: T) {
        match self.broker.id_of(self.asking.vhost, &name) {
            Ok(queue) => self.scans.push_back(Scan {
                ticket,
                asker: self.asking,
                queue,
                name,
                browse,
                page: Page::default(),
                bytes: 0,
                stage: Stage::Page,
            }),
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
        let browse = &mut scan.browse;
        let mut look = self.find_some(&scan.name, browse, Some(looks))?;
        let sizes = look.messages.iter().map(|message| u64::from(message.bytes));
        let room = ANSWER_BYTES_MAX.saturating_sub(scan.bytes);
        let fitting = fitting_into(sizes, room).max(usize::from(scan.page.messages.is_empty()));
        let is_full = fitting < look.messages.len();
        if is_full && fitting == 0 {
            scan.page.next = browse.cursor;
            return Ok(true);
        }
        if is_full {
            // Looked for again, and not cut off: only where the broker ends a page it says where the next one begins.
            look = self.find_some(&scan.name, &Browse { limit: fitting, ..browse.clone() }, Some(looks))?;
        }
        (browse.skip, browse.limit) = (browse.skip - look.skipped, browse.limit - look.messages.len());
        browse.cursor = look.next;
        for message in look.messages {
            scan.bytes += u64::from(message.bytes);
            scan.page.messages.push(BrowsedMessage {
                content: self.content(message.place),
                held: self.held(&scan.name, &message),
                message,
                position: None,
                position_in_priority: None,
            });
        }
        scan.page.next = look.next;
        Ok(look.next.is_none() || browse.limit == 0 || is_full)
    }
}
