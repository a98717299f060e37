//! The thread that decides: one loop, one broker.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use overtake_lane::{Command, ConsumerId, Outcome, Receipt, Time};
use tokio::sync::{mpsc, watch};

use super::disk_thread::{Flush, News};
use super::freeze::Freeze;
use super::{Ask, Shared, Ticket};
use crate::api::{Coming, Failure};
use crate::clock::Clock;
use crate::core::{Answer, Core, Done, Job, Out, Request};

/// Most requests applied before the batch is handed on.
const TURN_MAX: usize = 1_024;
/// Flushes handed over and not yet done: one that syncs and one that waits behind it.
const IN_FLIGHT_MAX: usize = 2;
/// While the disk has no room for another file it is asked again so often, ms.
const FULL_RETRY_MS: u64 = 1_000;
/// How much room the disk has is asked so often, ms, while there is other work for the disk, or it is short of room.
const LOOK_MS: u64 = 1_000;
/// And so often while there is not: others use the disk, too.
const LOOK_IDLE_MS: u64 = 10_000;

/// The threads that work for this one.
pub(super) struct Hands {
    /// The disk thread.
    pub(super) flushes: Sender<Flush>,
    /// The spill thread.
    pub(super) jobs: Sender<Job>,
    /// What keeps both from giving files back.
    pub(super) freeze: Arc<Freeze>,
}

pub(super) struct BrokerThread {
    core: Core<Ticket>,
    hands: Hands,
    clock: Arc<dyn Clock>,
    shared: Arc<Shared>,
    set_down: watch::Sender<Option<Arc<str>>>,
    consumers: BTreeMap<ConsumerId, mpsc::UnboundedSender<Coming>>,
    /// Answers that wait for what is not yet handed over.
    answers: Vec<(Ticket, Result<Answer, Failure>)>,
    /// Requests that wait for a file.
    parked: VecDeque<Ask>,
    in_flight: usize,
    preparing: bool,
    retry: Option<Time>,
    /// When the disk was last asked how much room it has.
    looked: Time,
    closing: bool,
}

impl BrokerThread {
    pub(super) fn new(
        core: Core<Ticket>,
        hands: Hands,
        clock: Arc<dyn Clock>,
        shared: Arc<Shared>,
        set_down: watch::Sender<Option<Arc<str>>>,
    ) -> Self {
        Self {
            looked: clock.now(),
            core,
            hands,
            clock,
            shared,
            set_down,
            consumers: BTreeMap::new(),
            answers: Vec::new(),
            parked: VecDeque::new(),
            in_flight: 0,
            preparing: false,
            retry: None,
            closing: false,
        }
    }

    /// Runs until it is closed and everything asked before is durable.
    pub(super) fn run(mut self, asks: &Receiver<Ask>) {
        loop {
            self.turn();
            let is_done = self.answers.is_empty() && (self.core.is_stuck() || !self.core.is_behind());
            if self.closing && self.in_flight == 0 && is_done {
                return self.say_goodbye();
            }
            let Some(ask) = self.wait(asks) else { continue };
            self.take(ask);
            for ask in asks.try_iter().take(TURN_MAX) {
                self.take(ask);
            }
        }
    }

    /// The next ask; `None` when it is time for something else.
    fn wait(&self, asks: &Receiver<Ask>) -> Option<Ask> {
        let is_down = self.set_down.borrow().is_some();
        // Nothing is looked at before the disk thread has done what it has.
        let look = (self.in_flight < IN_FLIGHT_MAX).then(|| self.look_at());
        let wake = self.core.next_deadline().into_iter().chain(self.retry).chain(look).min();
        match wake.filter(|_| !is_down).and_then(|when| self.clock.until(when)) {
            None => Some(asks.recv().unwrap_or(Ask::Close)),
            Some(Duration::ZERO) => asks.try_recv().ok(),
            Some(timeout) => match asks.recv_timeout(timeout) {
                Ok(ask) => Some(ask),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => Some(Ask::Close),
            },
        }
    }

    fn take(&mut self, ask: Ask) {
        match ask {
            Ask::News(news) => self.hear(news),
            Ask::Look => {}
            Ask::Thawed => self.thaw(),
            Ask::Close => self.closing = true,
            request if self.core.is_starved() || !self.parked.is_empty() => self.parked.push_back(request),
            request => self.handle(request),
        }
    }

    fn handle(&mut self, ask: Ask) {
        if self.closing || self.set_down.borrow().is_some() {
            return self.refuse(ask);
        }
        let now = self.clock.now();
        match ask {
            Ask::Request { request, ticket, _place } => {
                if let Request::Do(Command::Cancel { consumer } | Command::Leave { consumer }) = &request {
                    self.consumers.remove(consumer);
                }
                self.core.handle(now, request, ticket);
            }
            Ask::Consume { consumer, request, messages, ticket } => {
                self.consumers.insert(consumer, messages);
                self.core.handle(now, request, ticket);
            }
            Ask::News(_) | Ask::Look | Ask::Thawed | Ask::Close => unreachable!("taken before"),
        }
        self.carry_out();
    }

    /// What was kept for a snapshot is given back: segments now, and journal files when the disk is looked at, which is now.
    fn thaw(&mut self) {
        for job in self.hands.freeze.kept_jobs() {
            // Without a spill thread the process is at its end.
            let _ = self.hands.jobs.send(job);
        }
        self.looked = Time(0);
    }

    fn refuse(&self, ask: Ask) {
        if let Ask::Request { ticket: Some(ticket), .. } | Ask::Consume { ticket: Some(ticket), .. } = ask {
            let why = self.set_down.borrow().clone().unwrap_or_else(|| Arc::from(super::STOPPED));
            // Whoever no longer waits need not be told.
            let _ = ticket.send(Err(Failure::Unavailable(why)));
        }
    }

    fn hear(&mut self, news: News) {
        match news {
            News::Flushed(Ok(batch)) => {
                self.in_flight -= 1;
                batch.into_iter().for_each(|batch| self.core.reuse(batch));
            }
            News::Flushed(Err(why)) => {
                self.in_flight -= 1;
                self.go_down(&why);
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
            News::Space(space) => self.core.disk_space(space),
            News::Poisoned(why) => self.go_down(&why),
        }
    }

    /// When the disk is asked anew how much room it has, whatever else there is to do.
    fn look_at(&self) -> Time {
        self.looked.after(if self.core.is_short() { LOOK_MS } else { LOOK_IDLE_MS })
    }

    /// Answers and deliveries out.
    fn carry_out(&mut self) {
        let mut undelivered: Vec<Receipt> = Vec::new();
        for out in self.core.take_outs() {
            match out {
                Out::Answer { ticket, result, durable: true } => {
                    self.answers.push((ticket, result.map_err(Failure::Refused)));
                }
                Out::Answer { ticket, result, durable: false } => {
                    let unsent = ticket.map(|ticket| ticket.send(result.map_err(Failure::Refused)));
                    match unsent {
                        Some(Err(Ok(Answer::Leased(messages)))) => {
                            undelivered.extend(messages.iter().map(|message| message.receipt));
                        }
                        Some(Err(Ok(Answer::Got(Some(got))))) => undelivered.push(got.message.receipt),
                        _ => {}
                    }
                }
                Out::Deliver { consumer, message } => {
                    if let Some(messages) = self.consumers.get(&consumer) {
                        // A consumer that is gone is cancelled in a moment, and gives back what it held.
                        let _ = messages.send(Coming::Message(message));
                    }
                }
                Out::TimedOut { consumer, receipt } => {
                    if let Some(messages) = self.consumers.get(&consumer) {
                        // A consumer that is gone need not be told.
                        let _ = messages.send(Coming::TimedOut(receipt));
                    }
                }
                Out::Ended { consumer } => {
                    self.consumers.remove(&consumer);
                }
            }
        }
        if !undelivered.is_empty() {
            let release = Command::Settle { receipts: undelivered, outcome: Outcome::Release };
            self.core.handle(self.clock.now(), Request::Do(release), None);
            self.carry_out();
        }
    }

    /// Lets time pass, goes on with what was parked, and hands on what has gathered.
    fn turn(&mut self) {
        if self.set_down.borrow().is_some() {
            self.answers.clear();
            return;
        }
        let now = self.clock.now();
        if self.core.next_deadline().is_some_and(|when| when <= now) {
            self.core.tick(now);
            self.carry_out();
        }
        while !self.core.is_starved()
            && let Some(ask) = self.parked.pop_front()
        {
            self.handle(ask);
        }
        if self.retry.is_some_and(|when| when <= now) {
            self.retry = None;
            self.core.try_spilling_again();
        }
        self.core.keep_house();
        if let Some(why) = self.core.failure() {
            return self.go_down(&why);
        }
        // Before anybody hears an answer, so that who is refused sees why.
        self.publish_health();
        for job in self.core.take_jobs() {
            // Without a spill thread the process is at its end.
            let _ = self.hands.jobs.send(job);
        }
        self.flush();
    }

    fn flush(&mut self) {
        let prepare = self.core.wants_file() && !self.preparing && self.retry.is_none();
        if self.in_flight >= IN_FLIGHT_MAX && !prepare {
            return;
        }
        let now = self.clock.now();
        let batch = self.core.take_batch();
        let jobs = self.core.take_late_jobs();
        let is_idle = batch.is_none() && self.answers.is_empty() && jobs.is_empty() && !prepare;
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
        let answers = std::mem::take(&mut self.answers);
        let drop_spares = self.core.is_short();
        if self.hands.flushes.send(Flush { batch, answers, jobs, prepare, drop_spares, look }).is_err() {
            self.go_down("the disk thread is gone");
        }
    }

    fn publish_health(&self) {
        self.shared.full.send_if_modified(|full| changes(full, self.core.full()));

        self.shared.disk.send_if_modified(|disk| changes(disk, self.core.disk()));
        *self.shared.memory.lock().expect("nobody panics while holding it") = self.core.memory();
        self.shared.journal_bytes.store(self.core.journal_bytes(), Ordering::Relaxed);
        self.shared.unsynced.store(self.core.unsynced_records(), Ordering::Relaxed);
    }

    /// Nothing can be confirmed any more: everybody who waits is told why.
    fn go_down(&mut self, why: &str) {
        self.set_down.send_if_modified(|down| {
            let first = down.is_none();
            down.get_or_insert_with(|| Arc::from(why));
            first
        });
        for (ticket, _) in std::mem::take(&mut self.answers) {
            // Whoever no longer waits need not be told.
            let _ = ticket.map(|ticket| ticket.send(Err(Failure::Unavailable(Arc::from(why)))));
        }
        for ask in std::mem::take(&mut self.parked) {
            self.refuse(ask);
        }
        for ticket in self.core.abandon() {
            // Whoever no longer waits need not be told.
            let _ = ticket.map(|ticket| ticket.send(Err(Failure::Unavailable(Arc::from(why)))));
        }
        self.consumers.clear();
    }

    /// The last batch proves the one before it; then nobody is left waiting.
    fn say_goodbye(mut self) {
        if self.set_down.borrow().is_none() {
            let batch = self.core.take_proof();
            let _ = self.hands.flushes.send(Flush { batch, ..Flush::default() });
        }
        self.go_down(super::STOPPED);
    }
}

/// Takes the new value over; whether it is another.
fn changes<V: PartialEq>(told: &mut V, now: V) -> bool {
    let is_new = *told != now;
    *told = now;
    is_new
}
