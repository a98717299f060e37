//! The loop that decides: one broker, run by one thread at a time.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, Sender, SyncSender};
use std::time::{Duration, Instant};

use overtake_lane::{Asker, Command, Outcome, Receipt, Time};
use tokio::sync::watch;

use super::disk_thread::{Flush, News};
use super::freeze::Freeze;
use super::pace::Pace;
use super::sessions::Sessions;
use super::{Ask, Caller, Shared, Ticket, Who};
use crate::api::{Content, Failure};
use crate::clock::Clock;
use crate::core::{Answer, Core, Done, Job, Out, Request};
use crate::session::{self, Taken};

/// Most requests applied before the batch is handed on.
const TURN_MAX: usize = 256;
/// With so many bytes in a batch nothing more is done before it is handed on: so the disk bounds what is published.
const BATCH_BYTES_MAX: usize = 8 << 20;
/// Most bytes of a batch for messages that expired, came due or died by themselves: a publish that comes meanwhile waits until they are on the disk.
const LATE_BYTES_MAX: usize = 1 << 20;
/// Flushes handed over and not yet done: one that syncs and one that waits behind it.
const IN_FLIGHT_MAX: usize = 2;
/// While the disk has no room for another file it is asked again so often, ms.
const FULL_RETRY_MS: u64 = 1_000;
/// Messages of deleted and purged queues whose contents are released at once while nothing else is asked: that takes about a quarter of a ms.
const CLEARED_IDLE: usize = 1_024;
/// And while something is: so much less than what is asked takes.
const CLEARED_BUSY: usize = 256;
/// The fewest contents that are handed to the thread that frees them: waking it takes as long as freeing a few.
const FREED_ELSEWHERE_MIN: usize = 256;
/// How much room the disk has is asked so often, ms, while there is other work for the disk, or it is short of room.
const LOOK_MS: u64 = 1_000;
/// And so often while there is not: others use the disk, too.
const LOOK_IDLE_MS: u64 = 10_000;

/// The threads that work for the broker.
pub(super) struct Hands {
    /// The disk thread.
    pub(super) flushes: Sender<Flush>,
    /// The spill thread.
    pub(super) jobs: Sender<Job>,
    /// What keeps both from giving files back.
    pub(super) freeze: Arc<Freeze>,
    /// The thread that frees contents.
    pub(super) released: SyncSender<Vec<Arc<Content>>>,
}

/// When there is something to do for it again.
pub(super) enum Next {
    /// At once.
    Now,
    /// When something is put in, or after so long.
    At(Option<Duration>),
    /// Never: it has done all that was asked before it was closed, and [`BrokerLoop::say_goodbye`] is what is left.
    Over,
}

/// The broker, and what is on its way to it and from it.
pub(super) struct BrokerLoop {
    core: Core<Ticket>,
    asks: Receiver<Ask>,
    hands: Hands,
    clock: Arc<dyn Clock>,
    shared: Arc<Shared>,
    set_down: watch::Sender<Option<Arc<str>>>,
    sessions: Sessions,
    /// Answers that wait for what is not yet handed over.
    answers: Vec<(Caller, Result<Answer, Failure>)>,
    /// Requests that wait for a file.
    parked: VecDeque<Ask>,
    /// Something was asked since the last turn.
    is_busy: bool,
    /// Bytes of the batch for messages that expired, came due or died by themselves.
    late_bytes: usize,
    /// How fast scans go.
    pace: Pace,
    in_flight: usize,
    preparing: bool,
    retry: Option<Time>,
    /// When the disk was last asked how much room it has.
    looked: Time,
    closing: bool,
}

impl BrokerLoop {
    pub(super) fn new(
        core: Core<Ticket>,
        asks: Receiver<Ask>,
        hands: Hands,
        clock: Arc<dyn Clock>,
        shared: Arc<Shared>,
        set_down: watch::Sender<Option<Arc<str>>>,
    ) -> Self {
        Self {
            looked: clock.now(),
            core,
            asks,
            hands,
            clock,
            shared,
            set_down,
            sessions: Sessions::default(),
            answers: Vec::new(),
            parked: VecDeque::new(),
            is_busy: false,
            late_bytes: 0,
            pace: Pace::default(),
            in_flight: 0,
            preparing: false,
            retry: None,
            closing: false,
        }
    }

    /// One round: takes what was asked, up to a bound, and does what there is to do.
    pub(super) fn round(&mut self) -> Next {
        let mut taken = 0;
        while taken <= TURN_MAX
            && let Ok(ask) = self.asks.try_recv()
        {
            taken += ask.len();
            self.take(ask);
        }
        self.turn();
        if taken > TURN_MAX {
            return Next::Now;
        }
        let is_behind = self.core.is_behind() || self.core.has_more_to_put_back();
        let is_done = self.nobody_waits() && (self.core.is_stuck() || !is_behind);
        if self.closing && self.in_flight == 0 && is_done {
            return Next::Over;
        }
        self.next()
    }

    /// The same on the thread of whoever asked. Scans are left to the broker thread: a step of one may take longer than what was asked.
    pub(super) fn round_inline(&mut self) -> Next {
        if self.core.is_scanning() { Next::Now } else { self.round() }
    }

    /// When there is something to do again.
    fn next(&self) -> Next {
        if !self.is_down() {
            if !self.parked.is_empty() && !self.is_starved() {
                return Next::Now;
            }
            let has_more = self.core.has_more_to_put_back()
                || self.core.has_more_to_restate()
                || (self.core.has_more_to_clean() && self.core.unsynced_bytes() < LATE_BYTES_MAX)
                || self.core.has_more_to_plan();
            if has_more || self.core.is_clearing() {
                return Next::Now;
            }
        }
        let rest = self.may_scan().then(|| self.rest(Instant::now()).unwrap_or_default());
        // Nothing is looked at before the disk thread has done what it has.
        let look = self.may_flush().then(|| self.look_at());
        let wake = self.deadline().into_iter().chain(self.retry).chain(look).min();
        let until = wake.filter(|_| !self.is_down()).and_then(|when| self.clock.until(when));
        match until.into_iter().chain(rest).min() {
            Some(Duration::ZERO) => Next::Now,
            wake => Next::At(wake),
        }
    }

    fn take(&mut self, ask: Ask) {
        match ask {
            Ask::News(news) => self.hear(news),
            Ask::Look => {}
            Ask::Thawed => self.thaw(),
            Ask::Close => self.closing = true,
            request if self.must_park() => self.parked.push_back(request),
            request => self.handle(request),
        }
    }

    /// Whether requests wait for a file, or for those that do. Once nothing can be done any more they wait for those before them, of
    /// which the disk thread says so.
    fn must_park(&self) -> bool {
        let is_behind = self.is_starved() || !self.parked.is_empty();
        if self.is_down() { self.in_flight > 0 } else { is_behind }
    }

    /// Whether requests wait for a file, or for the batch to be handed on.
    fn is_starved(&self) -> bool {
        self.core.is_starved() || self.core.unsynced_bytes() >= BATCH_BYTES_MAX
    }

    /// The time, of which the core is told how it stands to the wall clock's.
    fn now(&mut self) -> Time {
        let now = self.clock.now();
        self.core.set_clock_ahead(self.clock.ahead_ms());
        now
    }

    /// Does what is asked. What has to wait for a file is parked, in front of all that is.
    fn handle(&mut self, ask: Ask) {
        if self.closing || self.is_down() {
            return self.refuse(ask);
        }
        let now = self.now();
        if self.core.keep_up(now) {
            self.carry_out();
        }
        self.is_busy = true;
        match ask {
            Ask::Request { ref request, .. } if self.core.must_wait(Asker::default(), request) => {
                return self.parked.push_front(ask);
            }
            Ask::Request { request, ticket, _places } => self.core.handle(now, request, ticket),
            Ask::Begin { session, events } => self.sessions.begin(session, events),
            Ask::Batch { session, asks, places } => self.work_off(now, session, asks, places),
            Ask::End { session, unheard } => self.end(now, session, unheard),
            Ask::Taken { session, bytes } => {
                let taken = Command::Taken { feed: session.feed(), bytes };
                self.core.handle(now, Request::Do(taken), Ticket::Nobody);
            }
            Ask::News(_) | Ask::Look | Ask::Thawed | Ask::Close => unreachable!("taken before"),
        }
        self.carry_out();
    }

    /// Does what a session asks, as far as there is room; the rest is parked.
    fn work_off(
        &mut self,
        now: Time,
        session: Who,
        mut asks: std::vec::IntoIter<session::Ask>,
        places: Taken,
    ) {
        let is_publish = |ask: &&session::Ask| matches!(ask.request, Request::PublishOne(_));
        self.sessions.expect(session.number, asks.as_slice().iter().filter(is_publish).count());
        while let Some(next) = asks.as_slice().first() {
            if self.is_starved() || self.core.must_wait(session.asker(), &next.request) {
                return self.parked.push_front(Ask::Batch { session, asks, places });
            }
            let Some(session::Ask { token, request }) = asks.next() else { unreachable!("it was looked at") };
            let ticket =
                token.map_or(Ticket::Nobody, |token| Ticket::Session { session: session.number, token });
            if let Request::Do(Command::Cancel { consumer }) = &request {
                // What it was given before is heard, and counts as pushed until then.
                self.carry_out();
                self.sessions.forget(*consumer);
            }
            let leaves =
                if let Request::Do(Command::Leave { consumer }) = &request { Some(*consumer) } else { None };
            let begins =
                if let Request::Consume { consumer, .. } = &request { Some(*consumer) } else { None };
            if begins.is_some() {
                self.core.push_by(session.feed());
            }
            self.core.handle_by(now, session.asker(), request, ticket);
            if let Some(consumer) = begins.filter(|consumer| self.core.broker().has_consumer(*consumer)) {
                self.sessions.owns(session.number, consumer);
            }
            if let Some(consumer) = leaves {
                // It keeps what it holds, so it hears of all that it was given before.
                self.carry_out();
                self.sessions.forget(consumer);
            }
        }
    }

    /// A session is over: nobody holds what it held. One that was a part leaves what it got to whom it was a part of.
    fn end(&mut self, now: Time, session: Who, mut unheard: Vec<Receipt>) {
        let (consumers, untold) = self.sessions.end(session.number);
        unheard.extend(untold);
        if session.is_whole() {
            let end = Request::Do(Command::EndSession { session: session.by });
            self.core.handle(now, end, Ticket::Nobody);
            self.release(unheard);
            return self.end_feed(now, session);
        }
        for consumer in consumers {
            self.core.handle(now, Request::Do(Command::Cancel { consumer }), Ticket::Nobody);
        }
        let is_its = |ticket: &Ticket| matches!(ticket, Ticket::Session { session: its, .. } if *its == session.number);
        for consumer in self.core.waiting(is_its) {
            self.core.handle(now, Request::GiveUp { consumer }, Ticket::Nobody);
        }
        self.release(unheard);
        self.end_feed(now, session);
    }

    /// What was pushed to a session that is over is nobody's.
    fn end_feed(&mut self, now: Time, session: Who) {
        let end = Request::Do(Command::EndFeed { feed: session.feed() });
        self.core.handle(now, end, Ticket::Nobody);
    }

    /// Puts back what was leased and never heard.
    fn release(&mut self, receipts: Vec<Receipt>) {
        for (asker, receipts) in self.core.by_vhost(receipts) {
            let release = Request::Do(Command::Settle { receipts, outcome: Outcome::Release });
            self.core.handle_by(self.clock.now(), asker, release, Ticket::Nobody);
        }
    }

    /// What was kept for a snapshot is given back: segments now, and journal files when the disk is looked at, which is now.
    fn thaw(&mut self) {
        for job in self.hands.freeze.kept_jobs() {
            // Without a spill thread the process is at its end.
            let _ = self.hands.jobs.send(job);
        }
        self.looked = Time(0);
    }

    fn refuse(&mut self, ask: Ask) {
        let why = self.set_down.borrow().clone().unwrap_or_else(|| Arc::from(super::STOPPED));
        match ask {
            Ask::Request { ticket, .. } => self.tell_unavailable(ticket, &why),
            Ask::Batch { session, asks, .. } => {
                for token in asks.filter_map(|ask| ask.token) {
                    self.tell_unavailable(Ticket::Session { session: session.number, token }, &why);
                }
            }
            // A session that never begins hears nothing, and nobody is left to give back to.
            Ask::Begin { .. } | Ask::End { .. } | Ask::Taken { .. } => {}
            Ask::News(_) | Ask::Look | Ask::Thawed | Ask::Close => unreachable!("taken before"),
        }
    }

    fn tell_unavailable(&mut self, ticket: Ticket, why: &Arc<str>) {
        let failure = Err(Failure::Unavailable(Arc::clone(why)));
        // Whoever no longer waits need not be told.
        match ticket {
            Ticket::Nobody => {}
            Ticket::Caller(caller) => drop(caller.send(failure)),
            Ticket::Session { session, token } => drop(self.sessions.answer(session, token, failure, true)),
        }
    }

    fn hear(&mut self, news: News) {
        match news {
            News::Flushed(done) => {
                self.in_flight -= 1;
                match done {
                    Ok(batch) => batch.into_iter().for_each(|batch| self.core.reuse(batch)),
                    Err(why) => self.set_down(&why),
                }
            }
            News::Done(done) => {
                if let Done::NoRoom { .. } = done {
                    self.retry = Some(self.clock.now().after(FULL_RETRY_MS));
                }
                self.core.done(done);
                self.carry_out();
            }
            News::FileReady(file) => {
                (self.preparing, self.retry) = (false, None);
                self.core.file_ready(file);
                self.carry_out();
            }
            News::Full => {
                (self.preparing, self.retry) = (false, Some(self.clock.now().after(FULL_RETRY_MS)));
                self.core.disk_full();
            }
            News::TooManyFiles => {
                (self.preparing, self.retry) = (false, Some(self.clock.now().after(FULL_RETRY_MS)));
                self.core.too_many_files();
            }
            News::Space(space) => self.core.disk_space(space),
            News::DirectoryGone => self.core.directory_gone(),
            News::FileRemoved => self.core.file_removed(),
            News::Unheard(receipts) => {
                self.release(receipts);
                self.carry_out();
            }
            News::Poisoned(why) => self.set_down(&why),
        }
    }

    /// When the disk is asked anew how much room it has, whatever else there is to do.
    fn look_at(&self) -> Time {
        self.looked.after(if self.core.is_short() { LOOK_MS } else { LOOK_IDLE_MS })
    }

    /// Answers and deliveries out.
    fn carry_out(&mut self) {
        let mut undelivered: Vec<Receipt> = Vec::new();
        let mut outs = self.core.take_outs();
        for out in outs.drain(..) {
            match out {
                Out::Answer { ticket, result, durable } => {
                    let result = result.map_err(Failure::Refused);
                    undelivered.extend(self.answer(ticket, result, durable));
                }
                Out::Deliver { consumer, message } => self.sessions.deliver(consumer, message),
                Out::TimedOut { consumer, session, receipt } => {
                    self.sessions.timed_out(consumer, session, receipt);
                }
                Out::Ended { consumer } => self.sessions.ended(consumer),
            }
        }
        self.core.reuse_outs(outs);
        if !undelivered.is_empty() {
            self.release(undelivered);
            self.carry_out();
        }
    }

    /// Answers now, or once it is durable. What was leased comes back if nobody is there to have it.
    fn answer(&mut self, ticket: Ticket, result: Result<Answer, Failure>, durable: bool) -> Vec<Receipt> {
        let unsent = match ticket {
            Ticket::Nobody => Some(result),
            Ticket::Caller(caller) if durable => {
                self.answers.push((caller, result));
                None
            }
            Ticket::Caller(caller) => caller.send(result).err(),
            Ticket::Session { session, token } => self.sessions.answer(session, token, result, durable),
        };
        unsent.iter().flatten().flat_map(Answer::leased).collect()
    }

    /// Sessions hear what there is, all of a turn at once.
    fn tell_sessions(&mut self) {
        loop {
            let unheard = self.sessions.tell();
            if unheard.is_empty() {
                return;
            }
            self.release(unheard);
            self.carry_out();
        }
    }

    fn nobody_waits(&self) -> bool {
        self.answers.is_empty() && self.sessions.is_idle()
    }

    /// Does what there is to do; or, once nothing can be done any more, tells everybody who is not told by the disk thread, after
    /// those who are.
    fn turn(&mut self) {
        if !self.is_down() {
            self.go_on();
        }
        if self.is_down() && self.in_flight == 0 {
            self.tell_all();
        }
    }

    /// Lets time pass up to now: one step of it, if much is due.
    fn let_pass(&mut self, now: Time) {
        if self.deadline().is_some_and(|when| when <= now) {
            let before = self.core.unsynced_bytes();
            self.core.tick(now);
            self.late_bytes += self.core.unsynced_bytes().saturating_sub(before);
            self.carry_out();
        }
    }

    /// When something is due. What is late waits for a file with everything else.
    fn deadline(&self) -> Option<Time> {
        let waits = self.core.is_late() && (self.is_starved() || self.late_bytes >= LATE_BYTES_MAX);
        self.core.next_deadline().filter(|_| !waits)
    }

    /// Lets time pass, goes on with what was parked, and hands on what has gathered.
    fn go_on(&mut self) {
        let now = self.now();
        self.let_pass(now);
        while !self.is_starved()
            && let Some(ask) = self.parked.pop_front()
        {
            self.handle(ask);
        }
        if self.retry.is_some_and(|when| when <= now) {
            self.retry = None;
            self.core.try_spilling_again();
        }
        let is_busy = std::mem::take(&mut self.is_busy);
        // The first step of a scan is part of the request: the answers to a session come in the order of its requests, where one step is enough.
        let is_begun = self.core.has_new_scan() && self.may_scan() && self.scan_on(now, is_busy);
        self.core.clear_on(if is_busy { CLEARED_BUSY } else { CLEARED_IDLE });
        if self.core.has_more_to_plan() {
            // Requests of this round need not wait for the plan of the next segment.
            self.carry_out();
            self.hand_on();
        }
        self.core.keep_house();
        self.carry_out();
        self.hand_on();
        // By then the requests of others are on their way to the disk.
        if !is_begun && self.may_scan() && self.scan_on(now, is_busy) {
            self.carry_out();
            self.hand_on();
        }
    }

    /// Tells what can be told by now, and hands on what is to be written.
    fn hand_on(&mut self) {
        if let Some(why) = self.core.failure() {
            return self.set_down(&why);
        }
        // Before anybody hears an answer, so that who is refused sees why.
        self.publish_health();
        self.tell_sessions();
        for job in self.core.take_jobs() {
            // Without a spill thread the process is at its end.
            let _ = self.hands.jobs.send(job);
        }
        self.flush();
        self.free();
    }

    /// Frees the contents of messages that are gone: many on a thread of their own, unless that has enough to do.
    fn free(&mut self) {
        let released = self.core.take_released();
        if released.len() >= FREED_ELSEWHERE_MIN {
            // A batch that the thread does not take is freed here, with the error.
            let _ = self.hands.released.try_send(released);
        }
    }

    /// Whether there is a scan to go on with, and room for what it changes.
    fn may_scan(&self) -> bool {
        !self.is_down() && self.core.is_scanning() && !self.is_starved()
    }

    /// How long scans still rest. A new scan does not rest: until it takes more than a step, it is a request like any other.
    fn rest(&self, now: Instant) -> Option<Duration> {
        self.pace.rest(now).filter(|_| !self.core.has_new_scan())
    }

    /// Goes on with a look at messages for somebody who still waits for it, or with a change of many, unless scans rest.
    fn scan_on(&mut self, now: Time, is_busy: bool) -> bool {
        let begun = Instant::now();
        if is_busy {
            self.pace.asked(begun);
        }
        if self.rest(begun).is_some() {
            return false;
        }
        self.core.drop_scans(|ticket| match ticket {
            Ticket::Nobody => true,
            Ticket::Caller(caller) => caller.is_closed(),
            Ticket::Session { session, .. } => !self.sessions.is_there(*session),
        });
        let looked = self.core.looked();
        if let Some(change) = self.core.scan_on(now, self.pace.looks())
            && !self.core.must_wait(Asker::default(), &change)
        {
            self.core.change_on(now, change);
        }
        self.pace.stepped(begun, Instant::now(), (self.core.looked() - looked) as usize);
        true
    }

    /// Whether the disk thread takes another flush. A batch for which nobody waits leaves the last place to a publish that comes meanwhile, which
    /// would wait for one more sync.
    fn may_flush(&self) -> bool {
        let can_wait = self.nobody_waits() && self.core.unsynced_bytes() < LATE_BYTES_MAX;
        self.in_flight < if can_wait { IN_FLIGHT_MAX - 1 } else { IN_FLIGHT_MAX }
    }

    fn flush(&mut self) {
        let prepare = self.core.wants_file() && !self.preparing && self.retry.is_none();
        if !self.may_flush() && !prepare {
            return;
        }
        let now = self.clock.now();
        let batch = self.core.take_batch();
        self.late_bytes = 0;
        let (jobs, published) = (self.core.take_late_jobs(), self.core.take_published());
        let is_idle = batch.is_none() && self.nobody_waits() && jobs.is_empty() && !prepare;
        if is_idle && now < self.look_at() {
            return;
        }
        // A clock that was set back must not end it.
        let look = now >= self.looked.after(LOOK_MS) || now < self.looked;
        if look {
            self.looked = now;
        }
        self.preparing |= prepare;
        self.in_flight += 1;
        let (answers, events) = (std::mem::take(&mut self.answers), self.sessions.take_durable());
        let drop_spares = self.core.is_short();
        if self
            .hands
            .flushes
            .send(Flush { batch, answers, events, jobs, published, prepare, drop_spares, look })
            .is_err()
        {
            self.in_flight -= 1;
            self.set_down("the disk thread is gone");
        }
    }

    fn publish_health(&self) {
        self.shared.full.send_if_modified(|full| changes(full, self.core.full()));
        self.shared.withdrawals.send_if_modified(|count| changes(count, self.core.withdrawals()));
        self.shared.disk.send_if_modified(|disk| changes(disk, self.core.disk()));
        self.shared.damage.send_if_modified(|told| {
            let is_new = told != self.core.damage();
            if is_new {
                told.clone_from(self.core.damage());
            }
            is_new
        });
        *self.shared.memory.lock().expect("nobody panics while holding it") = self.core.memory();
        self.shared.journal_bytes.store(self.core.journal_bytes(), Ordering::Relaxed);
        self.shared.carried.store(self.core.carried_messages(), Ordering::Relaxed);
        self.shared.unsynced.store(self.core.unsynced_records(), Ordering::Relaxed);
    }

    fn is_down(&self) -> bool {
        self.set_down.borrow().is_some()
    }

    /// Nothing can be confirmed any more. The first reason counts.
    fn set_down(&self, why: &str) {
        self.set_down.send_if_modified(|down| {
            let first = down.is_none();
            down.get_or_insert_with(|| Arc::from(why));
            first
        });
    }

    /// Everybody who waits is told why.
    fn tell_all(&mut self) {
        let why = self.set_down.borrow().clone().unwrap_or_else(|| Arc::from(super::STOPPED));
        for (caller, _) in std::mem::take(&mut self.answers) {
            self.tell_unavailable(Ticket::Caller(caller), &why);
        }
        for ticket in self.core.abandon() {
            self.tell_unavailable(ticket, &why);
        }
        for ask in std::mem::take(&mut self.parked) {
            self.refuse(ask);
        }
        self.sessions.go_down(&why);
    }

    /// The last batch proves the one before it; then nobody is left waiting.
    pub(super) fn say_goodbye(mut self) {
        if !self.is_down() {
            let batch = self.core.take_proof();
            let _ = self.hands.flushes.send(Flush { batch, ..Flush::default() });
        }
        self.set_down(super::STOPPED);
        self.tell_all();
    }
}

/// Takes the new value over; whether it is another.
fn changes<V: PartialEq>(told: &mut V, now: V) -> bool {
    let is_new = *told != now;
    *told = now;
    is_new
}
