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
//! The orders `published` and `newest` go by the sequence of a message, which never changes; for dispatch order see [`Walk`]. The same holds from one page
//! to the next, but that there a message of the second row may be seen again.
//!
//! A page ends when it is full, at the end of the queue, or after [as many looks](Browse::looks) as it may take.

use std::collections::VecDeque;
use std::sync::Arc;

use overtake_lane::{
    Asker, BrowseOrder, Count, Cursor, LaneView, Look, MessageView, QueueId, Refusal, Seq, Time, Walk,
};

use super::bulk::Bulk;
use super::{Answer, Core, Job, Out, Request};
use crate::api::{ANSWER_BYTES_MAX, Browse, BrowsedMessage, Page, PageCursor};
use crate::shelf::{Missing, MissingBlock};

/// Blocks of which it is noted that they were missing: of eight steps at least.
const NOTED_MAX: usize = 512;
/// A block that was read so often lately, and is missing again, does not stay in memory.
const READ_MAX: usize = 2;

/// What a turn needs from the disk. Its steps read nothing from there themselves: where one needs what is not in memory it ends, a job reads that, and the next step goes on.
/// The next step reads a block itself that does not stay in memory.
#[derive(Debug, Default)]
pub(super) struct Needs {
    /// What its last steps found missing.
    noted: VecDeque<MissingBlock>,
    next: Next,
    /// The first step was made.
    has_begun: bool,
    /// Messages that its last step has looked at.
    pub(super) looked: usize,
}

/// What must be before the next step of a turn.
#[derive(Debug, Default, PartialEq, Eq)]
enum Next {
    /// Nothing: the last step missed nothing.
    #[default]
    GoesOn,
    /// Nothing: it reads what it needs itself.
    ReadsItself,
    /// These are to be read.
    Misses(Vec<MissingBlock>),
    /// A job of this number reads them.
    Waits(u64),
}

impl Needs {
    /// Whether the last step ended because something was missing.
    fn is_short(&self) -> bool {
        self.next != Next::GoesOn
    }

    fn is_waiting(&self) -> bool {
        matches!(self.next, Next::Waits(_))
    }

    /// Notes what was missing in a step. What was missing long ago may be missing again.
    fn miss(&mut self, Missing { needed, expected }: Missing) {
        let reads = |block: &MissingBlock| self.noted.iter().filter(|noted| *noted == block).count();
        if needed.is_empty() {
            self.next = Next::GoesOn;
        } else if needed.iter().any(|block| reads(block) >= READ_MAX) {
            self.noted.clear();
            self.next = Next::ReadsItself;
        } else {
            self.noted.extend(&needed);
            let over = self.noted.len().saturating_sub(NOTED_MAX);
            self.noted.drain(..over);
            self.next = Next::Misses(needed.into_iter().chain(expected).collect());
        }
    }
}

/// What waits in line for its next step.
#[derive(Debug)]
pub(super) enum Turn<T> {
    /// A look at messages.
    Look(Box<Scan<T>>),
    /// A change of messages.
    Change(Box<Bulk<T>>),
}

impl<T> Turn<T> {
    fn needs(&self) -> &Needs {
        match self {
            Self::Look(scan) => &scan.needs,
            Self::Change(bulk) => bulk.needs(),
        }
    }

    fn needs_mut(&mut self) -> &mut Needs {
        match self {
            Self::Look(scan) => &mut scan.needs,
            Self::Change(bulk) => bulk.needs_mut(),
        }
    }

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
    stage: Stage,
    needs: Needs,
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

    /// Whether a scan waits for its first step, and can make it. Most scans need no other.
    #[must_use]
    pub fn has_new_scan(&self) -> bool {
        self.first_turn(|turn| !turn.needs().has_begun).is_some()
    }

    /// The place in line of the turn that is next. A turn that has made no step goes first.
    fn next_turn(&self) -> Option<usize> {
        self.first_turn(|turn| !turn.needs().has_begun).or_else(|| self.first_turn(|_| true))
    }

    /// The place in line of the first turn of a kind that can go on. While memory is full no change goes on: a change brings messages back, and
    /// publishes would wait with it.
    fn first_turn(&self, is_of_it: impl Fn(&Turn<T>) -> bool) -> Option<usize> {
        let is_memory_full = self.is_memory_full();
        let may_go_on = |turn: &Turn<T>| !is_memory_full || matches!(turn, Turn::Look(_));
        self.scans.iter().position(|turn| !turn.needs().is_waiting() && may_go_on(turn) && is_of_it(turn))
    }

    /// How many messages looks, and changes of many messages, have looked at since it was opened. A step of one looks at a few times as many as it may, at most.
    #[must_use]
    pub fn looked(&self) -> u64 {
        self.looked
    }

    /// Looks at messages as far as they are in memory, and notes what else is needed.
    pub(super) fn look_in_memory<R>(&self, needs: &mut Needs, look: impl FnOnce() -> R) -> R {
        if needs.next == Next::ReadsItself {
            needs.next = Next::GoesOn;
            return look();
        }
        self.shelf.begin_look();
        let result = look();
        needs.miss(self.shelf.end_look());
        result
    }

    /// Has read what a turn needs for its next step.
    pub(super) fn read_for(&mut self, needs: &mut Needs) {
        if let Next::Misses(blocks) = &mut needs.next {
            self.reads += 1;
            let (number, blocks) = (self.reads, std::mem::take(blocks));
            self.spilling.jobs.push(Job::Read { number, blocks });
            needs.next = Next::Waits(number);
        }
    }

    /// A job has read what some turn needs.
    pub(super) fn has_read(&mut self, number: u64) {
        let needs = self.scans.iter_mut().map(Turn::needs_mut);
        for needs in needs.filter(|needs| needs.next == Next::Waits(number)) {
            needs.next = Next::GoesOn;
        }
    }

    /// Goes on with the scan whose turn it is, by so many looks at messages: it is answered, or goes to the end of the line. What it answers
    /// here, a scan that changes messages asks for: call [`Core::change_on`] at once, unless that [must wait](Core::must_wait). Then it is asked
    /// for again in the next step.
    pub fn scan_on(&mut self, now: Time, looks: usize) -> Option<Request> {
        let next = self.next_turn()?;
        self.scans[next].needs_mut().has_begun = true;
        let mut scan = match self.scans.remove(next)? {
            Turn::Look(scan) => scan,
            Turn::Change(bulk) => return self.bulk_step(now, bulk, looks),
        };
        self.asking = scan.asker;
        let looks = scan.step(looks);
        let result = self.scan_step(&mut scan, looks);
        self.looked += std::mem::take(&mut scan.needs.looked) as u64;
        let result = match result {
            Ok(false) => {
                self.read_for(&mut scan.needs);
                self.scans.push_back(Turn::Look(scan));
                return None;
            }
            Ok(true) => self.page_of(now, &mut scan).map(Answer::Page).map_err(Into::into),
            Err(refusal) => Err(refusal.into()),
        };
        self.outs.push(Out::Answer { ticket: scan.ticket, result, durable: false });
        None
    }

    fn page_of(&self, now: Time, scan: &mut Scan<T>) -> Result<Page, Refusal> {
        let view = self.broker.view(now, scan.asker.vhost, &scan.name)?;
        let in_lane = |lane: &LaneView| lane.ready + lane.delayed + lane.leased + lane.dead;
        scan.page.in_queue = view.lanes.iter().map(in_lane).sum();
        Ok(std::mem::take(&mut scan.page))
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
                walk: browse.cursor.as_ref().map(PageCursor::walk).unwrap_or_default(),
                browse,
                page: Page::default(),
                bytes: 0,
                stage: Stage::Page,
                needs: Needs::default(),
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
        let looked_before = scan.page.looked_at;
        let (is_done, looked) = match scan.stage {
            Stage::Page => {
                let is_page_done = self.page_step(scan, looks)?;
                if is_page_done && scan.browse.with_total {
                    scan.stage = Stage::Count { counted: 0, from: None };
                }
                (is_page_done && !scan.browse.with_total, (scan.page.looked_at - looked_before) as usize)
            }
            Stage::Count { counted, from } => {
                // Gauges may tell without a look.
                let (name, filter) = (&scan.name, &scan.browse.filter);
                let Count { count, looked, next } = self
                    .look_in_memory(&mut scan.needs, || self.count_some(name, filter, from, Some(looks)))?;
                scan.needs.looked += looked;
                let counted = counted + count;
                scan.stage = Stage::Count { counted, from: next };
                scan.page.total = Some(counted).filter(|_| next.is_none());
                (next.is_none() || Self::is_out_of_looks(scan, looks), looked)
            }
        };
        if let Some(left) = &mut scan.browse.looks {
            // A walk also passes messages that do not count as looked at.
            *left = left.saturating_sub(if scan.needs.is_short() { looked } else { looks });
        }
        Ok(is_done)
    }

    /// Whether a scan may look at no more messages than in this step, unless that must wait for the disk.
    fn is_out_of_looks(scan: &Scan<T>, looks: usize) -> bool {
        scan.browse.looks.is_some_and(|left| left <= looks) && !scan.needs.is_short()
    }

    /// Whether the page is done.
    fn page_step(&self, scan: &mut Scan<T>, looks: usize) -> Result<bool, Refusal> {
        let walk = scan.walk.clone();
        let look = self.find_on(scan, looks)?;
        let found = look.messages.len();
        let fitting = scan.fitting(&look);
        if fitting < found {
            // The page ends before a message that was found by now.
            scan.walk = walk;
            scan.browse.limit = fitting;
            let look = self.find_on(scan, looks)?;
            let next = self.put_on_page(scan, look);
            scan.page.next = scan.cursor(next);
            return Ok(true);
        }
        let next = self.put_on_page(scan, look);
        let is_out_of_looks = Self::is_out_of_looks(scan, looks) && !scan.must_go_on();
        let is_done = next.is_none() || scan.browse.limit == 0 || is_out_of_looks;
        if is_done {
            scan.page.next = scan.cursor(next);
        }
        Ok(is_done)
    }

    fn find_on(&self, scan: &mut Scan<T>, looks: usize) -> Result<Look, Refusal> {
        let Scan { name, browse, walk, needs, .. } = scan;
        let look = self.look_in_memory(needs, || self.find_some(name, browse, walk, Some(looks)))?;
        needs.looked += look.looks;
        Ok(look)
    }

    /// Shows what was found, and says where the queue goes on.
    fn put_on_page(&self, scan: &mut Scan<T>, look: Look) -> Option<Cursor> {
        for (_, message) in look.messages {
            if scan.is_again(&message) {
                continue;
            }
            scan.bytes += u64::from(message.bytes);
            scan.browse.limit -= 1;
            scan.page.messages.push(BrowsedMessage {
                content: self.content(message.place),
                held: self.held(&scan.name, &message),
                message,
                position: None,
                position_in_priority: None,
            });
        }
        scan.page.looked_at += look.looked as u64;
        if scan.browse.order != BrowseOrder::Dispatch {
            scan.browse.skip -= look.skipped;
            scan.browse.cursor = scan.cursor(look.next);
        }
        look.next
    }
}

impl<T> Scan<T> {
    /// Whether a message is on the page already: in dispatch order one whose status has changed may come again.
    fn is_again(&self, message: &MessageView) -> bool {
        let is_it = |shown: &BrowsedMessage| shown.message.seq == message.seq;
        self.browse.order == BrowseOrder::Dispatch && self.page.messages.iter().any(is_it)
    }

    /// How many of these messages have room on the page, which has one at least.
    fn fitting(&self, look: &Look) -> usize {
        let mut bytes = self.bytes;
        let is_empty = self.page.messages.is_empty();
        let fits = |(at, (_, message)): &(usize, &(Cursor, MessageView))| {
            bytes += if self.is_again(message) { 0 } else { u64::from(message.bytes) };
            bytes <= ANSWER_BYTES_MAX || (is_empty && *at == 0)
        };
        look.messages.iter().enumerate().take_while(fits).count()
    }

    /// How many messages the next step looks at, of so many that it may.
    fn step(&self, looks: usize) -> usize {
        let left = self.browse.looks.filter(|_| !self.must_go_on());
        left.map_or(looks, |left| left.clamp(1, looks))
    }

    /// Where the page goes on, if its queue says that there is more.
    fn cursor(&self, next: Option<Cursor>) -> Option<PageCursor> {
        let next = next?;
        Some(match self.browse.order {
            BrowseOrder::Dispatch => PageCursor::Walk(Arc::new(self.walk.clone().written())),
            BrowseOrder::Published | BrowseOrder::Newest => PageCursor::After(Seq(next.0)),
        })
    }

    /// Whether the page goes on without looks left: what is left out is passed in one request, and what was found is shown.
    fn must_go_on(&self) -> bool {
        match (self.browse.order, &self.browse.cursor) {
            (BrowseOrder::Dispatch, cursor) => {
                let before = if let Some(PageCursor::Passed(before)) = cursor { *before } else { 0 };
                self.walk.shows() || self.walk.passed() < before.saturating_add(self.browse.skip)
            }
            _ => self.browse.skip > 0,
        }
    }
}
