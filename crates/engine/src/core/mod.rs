//! The engine without threads, clock or files: requests in, batches and answers out.
//!
//! ```text
//!   handle(now, request) ─▶ Broker::apply ─▶ facts ─▶ Writer ─▶ take_batch() ─▶ committer
//!                                  └─ effects ─▶ take_outs() ─▶ answers, deliveries
//! ```
//!
//! Whoever drives it commits the batches in order, and tells an answer that is marked durable only when everything handed
//! out before it is committed; and does the [`Job`]s that it is given. Invariant: every fact of the broker goes through
//! `Core::keep`, and every place it releases comes back to the contents or the shelf there.

mod bulk;
mod clean;
mod clear;
mod disk;
mod holders;
mod house;
mod publish;
mod recover;
mod renew;
mod request;
mod restate;
mod rewrite;
mod room;
mod routes;
mod runs;
mod salvage;
mod scan;
mod see;
mod spill;
mod tracer;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use overtake_lane::{
    Asker, Broker, Command, Consume, ConsumerId, Delivery, Effect, Fact, FeedId, Get, Outcome, Pull, QueueId,
    Receipt, Refusal, Reply, RunId, Seq, SessionId, Status, Step, Time, WindowId, pushed_bytes,
};
use overtake_store::{Batch, Lsn, Writer};

pub use recover::{Lost, LostMessages, OpenError, Opened, Recovered, UnknownSegment};
pub use request::{Answer, Request, answer_of};

pub use crate::shelf::{Done, Job, Rewrite, Spill, Spiller};

use crate::api::{ANSWER_BYTES_MAX, ConsumeRequest, Content, Got, LeaseRequest, LeasedMessage, Refused};
use crate::contents::Contents;
use crate::damage::DamageHealth;
use crate::holder::Holder;
use crate::options::Options;
use crate::routing::Routes;
use crate::session::Delivered;
use crate::shelf::{Holds, Shelf};

/// What goes out. `T` is whatever the driver gave with the request.
#[derive(Clone, Debug)]
pub enum Out<T> {
    /// A request is answered.
    Answer {
        /// What came with the request.
        ticket: T,
        /// The answer.
        result: Result<Answer, Refused>,
        /// Whether it may be told only when all that was asked before is durable.
        durable: bool,
    },
    /// A message for a consumer that stays.
    Deliver {
        /// Which.
        consumer: ConsumerId,
        /// The message.
        message: Delivered,
    },
    /// A consumer that stays held something for too long, and gets nothing more; or a `get` of a session did, or one that left.
    TimedOut {
        /// Which.
        consumer: ConsumerId,
        /// Whose it is, if it is a session's.
        session: Option<SessionId>,
        /// The lease that is over.
        receipt: Receipt,
    },
    /// A consumer that stayed is gone with its queue or its session.
    Ended {
        /// Which.
        consumer: ConsumerId,
    },
}

/// A lease that has not been answered.
#[derive(Debug)]
struct OpenPull<T> {
    ticket: T,
    messages: Vec<LeasedMessage>,
    holder: Option<Arc<Holder>>,
}

/// The most answers and deliveries for which memory is kept for the next ones.
const REUSED_OUTS_MAX: usize = 4_096;

/// The engine without threads, clock or files.
#[derive(Debug)]
pub struct Core<T> {
    broker: Broker,
    writer: Writer,
    contents: Arc<Contents>,
    shelf: Arc<dyn Shelf>,
    holds: Holds,
    /// Runs that nobody holds any more, since the step that is being kept.
    ended: Vec<RunId>,
    /// Messages in memory whose content turned out to be lost, and that are to leave.
    lost: Vec<(QueueId, Seq)>,
    /// What of segments was found damaged.
    damage: DamageHealth,
    /// Runs whose segments were missing when the store was opened, as long as that is told.
    missing: Vec<runs::Missing>,
    spilling: spill::Spilling,
    options: Options,
    pulls: BTreeMap<ConsumerId, OpenPull<T>>,
    /// Looks at messages and changes of many that go on, the one whose turn it is first.
    scans: VecDeque<scan::Turn<T>>,
    /// Jobs that read for them, so far.
    reads: u64,
    /// Messages that they have looked at.
    looked: u64,
    /// Jobs that are over.
    jobs_over: bulk::JobsOver,
    holders: holders::Holders,
    routes: Routes,
    tracer: Option<Box<tracer::Tracer>>,
    /// Who asks for what is being done, and where.
    asking: Asker,
    /// How many requests were done that may have taken leased messages from their holders.
    withdrawals: u64,
    /// By which connection messages go to the consumer that begins next.
    feed: Option<FeedId>,
    /// Messages that were counted as pushed, and could not be.
    unpushed: Vec<(FeedId, u64)>,
    /// By how much the time that is handed in is ahead of the wall clock.
    clock_ahead_ms: u64,
    /// The message of the get that is being done.
    got: Option<(ConsumerId, Option<LeasedMessage>)>,
    outs: Vec<Out<T>>,
    /// Contents that no message says any more.
    released: Vec<Arc<Content>>,
    step: Step,
    record: Vec<u8>,
    /// Records that wait for room; all later ones wait behind them.
    overdue: VecDeque<Vec<u8>>,
    scratch: Vec<u8>,
    house: house::House,
}

impl<T> Core<T> {
    /// Does one thing. What comes of it is in [`Core::take_outs`] and, in time, in [`Core::take_batch`].
    pub fn handle(&mut self, now: Time, request: Request, ticket: T) {
        self.handle_by(now, Asker::default(), request, ticket);
    }

    /// As [`Core::handle`], as somebody asks it.
    pub fn handle_by(&mut self, now: Time, asker: Asker, request: Request, ticket: T) {
        // So that whoever only looks does not see what is over by now.
        self.keep_up(now);
        self.asking = asker;
        self.obey(now, request, ticket);
    }

    /// [`Engine::withdrawals`](crate::Engine::withdrawals).
    #[must_use]
    pub fn withdrawals(&self) -> u64 {
        self.withdrawals
    }

    /// Says by which connection messages go to the consumer that begins next: it bounds the bytes that are pushed to it.
    pub fn push_by(&mut self, feed: FeedId) {
        self.feed = Some(feed);
    }

    /// Says by how much the time that is handed in is ahead of the wall clock, ms, until it is said again: after a restart what is
    /// leased and delayed now ends so much earlier, as it would have.
    pub fn set_clock_ahead(&mut self, ms: u64) {
        self.clock_ahead_ms = ms;
    }

    fn obey(&mut self, now: Time, request: Request, ticket: T) {
        let (result, durable) = match request {
            Request::By { asker, request } => {
                self.asking = asker;
                return self.obey(now, *request, ticket);
            }
            Request::Get { get, holder } => (self.get(now, get, holder), false),
            Request::Lease { consumer, lease } => return self.lease(now, consumer, lease, ticket),
            Request::GiveUp { consumer } => {
                self.give_up(now, consumer);
                (Ok(Answer::Done), false)
            }
            Request::Consume { consumer, consume } => return self.consume(now, consumer, consume, ticket),
            Request::Browse { queue, browse } => return self.begin_scan(queue, browse, ticket),
            Request::Change { queue, select, change, only_start } => {
                return self.begin_change(now, &queue, select, change, only_start, ticket);
            }
            Request::Do(Command::Purge { queue, status, expect })
                if self.broker.is_purge_long(self.asking.vhost, &queue, status) =>
            {
                return self.begin_purge(now, &queue, status, expect, ticket);
            }
            Request::Job { id, waits } => return self.show_job(id, waits, ticket),
            Request::CancelJob { id } => return self.cancel_job(now, id, ticket),
            Request::Jobs => (Ok(Answer::Jobs(self.jobs())), false),
            Request::PublishOne(message) => (self.publish_one(now, *message), true),
            change @ (Request::Do(_)
            | Request::Publish { .. }
            | Request::SetWindow { .. }
            | Request::Progress { .. }
            | Request::SetRoutes(_)) => (self.change(now, change), true),
            look => (self.look(now, look).map_err(Refused::from), false),
        };
        self.outs.push(Out::Answer { ticket, result, durable });
    }

    /// Everything that changes something durable and is answered at once.
    fn change(&mut self, now: Time, request: Request) -> Result<Answer, Refused> {
        self.withdrawals += u64::from(request.withdraws());
        match request {
            Request::Do(Command::DeleteVhost { name }) => {
                let gone = self.broker.vhost(&name).ok();
                let reply = self.apply(now, Command::DeleteVhost { name })?;
                if let Some(gone) = gone {
                    self.forget_routes(now, gone.vhost);
                }
                Ok(answer_of(reply))
            }
            Request::Do(command) => {
                self.check_room(&command)?;
                let purged = match &command {
                    Command::Purge { queue, status: None | Some(Status::Ready), .. } => {
                        self.broker.id_of(self.asking.vhost, queue).ok()
                    }
                    _ => None,
                };
                if let Command::DeleteQueue { name, if_empty: true, .. } = &command
                    && let Ok(queue) = self.broker.id_of(self.asking.vhost, name)
                    && self.missing_in(queue) > 0
                {
                    return Err(Refusal::NotEmpty.into());
                }
                let answer = self.apply(now, command).map(answer_of)?;
                let missing = self.give_up_missing(purged);
                Ok(if let Answer::Count(count) = answer { Answer::Count(count + missing) } else { answer })
            }
            Request::SetRoutes(set) => self.set_routes(now, set),
            Request::Publish { messages, settlements } => self.publish(now, messages, settlements),
            Request::SetWindow { number, size, joining } => {
                let session = self.asking.session.expect("a window is shared within a session");
                let window = WindowId { session, number };
                self.change(now, Request::Do(Command::SetWindow { window, size, joining }))
            }
            Request::Progress { receipt, visibility_ms, output } => {
                self.progress(now, receipt, visibility_ms, output)
            }
            _ => unreachable!("everything else changes nothing durable, or is answered later"),
        }
    }

    /// Nothing of a consumer is durable, so its answer waits for nothing.
    fn consume(&mut self, now: Time, consumer: ConsumerId, consume: ConsumeRequest, ticket: T) {
        let (consume, holder) = self.consumer(consumer, consume);
        let before = self.outs.len();
        let result = self.apply(now, Command::Consume(consume)).map(answer_of).map_err(Refused::from);
        if result.is_ok() {
            self.know(consumer, holder);
        }
        self.outs.insert(before, Out::Answer { ticket, result, durable: false });
    }

    fn lease(&mut self, now: Time, consumer: ConsumerId, lease: LeaseRequest, ticket: T) {
        let LeaseRequest { queue, max, max_bytes, wait_ms, term, lanes, holder } = lease;
        self.pulls.insert(consumer, OpenPull { ticket, messages: Vec::new(), holder });
        let until = now.max(self.broker.now()).after(wait_ms);
        let (max, max_bytes) = (max.max(1), max_bytes.min(ANSWER_BYTES_MAX));
        let pull = Pull { consumer, queue, max, max_bytes, term, lanes, until };
        if let Err(refusal) = self.apply(now, Command::Pull(pull)) {
            let pull = self.pulls.remove(&consumer).expect("it was just inserted");
            self.outs.push(Out::Answer { ticket: pull.ticket, result: Err(refusal.into()), durable: false });
        }
    }

    fn consumer(&mut self, consumer: ConsumerId, consume: ConsumeRequest) -> (Consume, Option<Arc<Holder>>) {
        let ConsumeRequest { queue, window, urgent, priority, shared, exclusive, no_ack, holder } = consume;
        let number = shared.zip(self.asking.session);
        let shared = number.map(|(number, session)| WindowId { session, number });
        let feed = self.feed.take();
        (Consume { consumer, queue, window, shared, urgent, priority, feed, exclusive, no_ack }, holder)
    }

    fn get(&mut self, now: Time, get: Get, holder: Option<Arc<Holder>>) -> Result<Answer, Refused> {
        let consumer = get.consumer;
        self.got = Some((consumer, None));
        let reply = self.apply(now, Command::Get(get));
        let message = self.got.take().and_then(|(_, message)| message);
        let Reply::Got(ready) = reply? else { unreachable!("a get is answered with what it got") };
        if message.is_some() {
            self.know(consumer, holder);
        }
        Ok(Answer::Got(message.zip(ready).map(|(message, ready)| Box::new(Got { message, ready }))))
    }

    fn give_up(&mut self, now: Time, consumer: ConsumerId) {
        if self.pulls.contains_key(&consumer) {
            // It waits, so it holds nothing: a pull is answered in the step that gives it something.
            let cancelled = self.apply(now, Command::Cancel { consumer });
            assert!(cancelled.is_ok(), "a pull that is not answered is known to the broker");
            self.serve(consumer);
        }
    }

    /// The leases that wait, of those whose ticket says so.
    pub(crate) fn waiting(&self, is_meant: impl Fn(&T) -> bool) -> Vec<ConsumerId> {
        let meant = self.pulls.iter().filter(|(_, pull)| is_meant(&pull.ticket));
        meant.map(|(consumer, _)| *consumer).collect()
    }

    /// These receipts, each with whoever may put it back: nobody in particular, where its queue is.
    pub(crate) fn by_vhost(&self, receipts: Vec<Receipt>) -> BTreeMap<Asker, Vec<Receipt>> {
        let mut all: BTreeMap<Asker, Vec<Receipt>> = BTreeMap::new();
        for receipt in receipts {
            // What is in a queue that is gone is gone.
            if let Some(vhost) = self.broker.vhost_of(receipt.queue) {
                all.entry(Asker::in_vhost(vhost)).or_default().push(receipt);
            }
        }
        all
    }

    /// Lets time pass where something is due, unless more is than one step does: then [`Core::tick`] goes on with it, and nobody who asks for
    /// something pays for it. True: something was due, and its time has passed.
    pub fn keep_up(&mut self, now: Time) -> bool {
        let is_due = !self.is_late() && self.next_deadline().is_some_and(|when| when <= now);
        if is_due {
            self.tick(now);
        }
        is_due
    }

    /// Whether more has come due than one step does: [`Core::tick`] has more to do at once.
    #[must_use]
    pub fn is_late(&self) -> bool {
        self.broker.is_late()
    }

    /// Lets time pass: a step of it, if much is due.
    pub fn tick(&mut self, now: Time) {
        if let Some(tracer) = &mut self.tracer {
            tracer.time_passes();
        }
        self.tell_memory();
        let mut step = std::mem::take(&mut self.step);
        self.broker.tick(now, &mut step);
        self.step = step;
        self.keep(false);
        self.hold_or_go();
    }

    /// When [`Core::tick`] has something to do at the latest.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Time> {
        self.broker.next_deadline()
    }

    /// What has been answered and delivered since the last call, in order. While records wait for room, so do the answers
    /// that tell of them.
    pub fn take_outs(&mut self) -> Vec<Out<T>> {
        if self.failure().is_some() {
            return Vec::new();
        }
        let outs = std::mem::take(&mut self.outs);
        if !self.is_behind() {
            return outs;
        }
        let (waiting, outs) =
            outs.into_iter().partition(|out| matches!(out, Out::Answer { durable: true, .. }));
        self.outs = waiting;
        outs
    }

    /// Takes what [`Core::take_outs`] gave back once it is empty, to use its memory again.
    pub fn reuse_outs(&mut self, outs: Vec<Out<T>>) {
        if self.outs.capacity() == 0 && outs.is_empty() && outs.capacity() <= REUSED_OUTS_MAX {
            self.outs = outs;
        }
    }

    /// Answers that were made and wait until the records that tell of them have room, in order; after
    /// [`Core::take_outs`], which gives them then.
    #[must_use]
    pub fn held_outs(&self) -> &[Out<T>] {
        &self.outs
    }

    /// Whether records wait for room: time, or a policy, has brought about more than was foreseen. They are appended, and
    /// their answers given, as files get ready.
    #[must_use]
    pub fn is_behind(&self) -> bool {
        !self.overdue.is_empty()
    }

    /// What must be committed next, in order; `None` when nothing is waiting.
    pub fn take_batch(&mut self) -> Option<Batch> {
        if self.failure().is_some() {
            return None;
        }
        self.house.room.set(None);
        self.writer.take_batch()
    }

    /// As [`Core::take_batch`], but a batch that says nothing new when nothing is waiting: the last before a planned stop.
    pub fn take_proof(&mut self) -> Option<Batch> {
        if self.failure().is_some() {
            return None;
        }
        self.house.room.set(None);
        self.writer.take_proof()
    }

    /// Takes a committed batch back, to use its memory again.
    pub fn reuse(&mut self, batch: Batch) {
        self.writer.reuse(batch);
    }

    /// Bytes that wait to be taken with the next batch.
    #[must_use]
    pub fn unsynced_bytes(&self) -> usize {
        self.writer.pending_bytes()
    }

    /// Records that wait to be taken with the next batch.
    #[must_use]
    pub fn unsynced_records(&self) -> u64 {
        self.writer.pending_records()
    }

    /// Everybody who waits for an answer, and will not get one.
    pub fn abandon(&mut self) -> Vec<T> {
        let pulls = std::mem::take(&mut self.pulls).into_values().map(|pull| pull.ticket);
        let answers = std::mem::take(&mut self.outs).into_iter().filter_map(|out| match out {
            Out::Answer { ticket, .. } => Some(ticket),
            Out::Deliver { .. } | Out::TimedOut { .. } | Out::Ended { .. } => None,
        });
        let scans = std::mem::take(&mut self.scans).into_iter().flat_map(scan::Turn::into_tickets);
        pulls.chain(answers).chain(scans).collect()
    }

    /// The broker, to look at.
    #[must_use]
    pub fn broker(&self) -> &Broker {
        &self.broker
    }

    fn apply(&mut self, now: Time, command: Command) -> Result<Reply, Refusal> {
        // What is set together is recovered together.
        let is_whole = matches!(command, Command::SetMetadata { .. });
        if let Some(tracer) = &mut self.tracer {
            tracer.is_asked(&command);
        }
        let result = self.broker.apply_by(now, self.asking, command, &mut self.step);
        self.keep(is_whole);
        self.hold_or_go();
        result
    }

    /// Records the facts of a step and carries out its effects.
    fn keep(&mut self, atomic: bool) {
        self.house.room.set(None);
        let mut step = std::mem::take(&mut self.step);
        self.note_clock(&mut step);
        self.record(&step.facts, atomic);
        if self.tracer.is_some() {
            self.trace(&step);
        }
        for effect in step.effects.drain(..) {
            match effect {
                Effect::Deliver(delivery) => self.deliver(&delivery),
                Effect::Served { consumer } => self.serve(consumer),
                Effect::Cancelled { consumer } => match self.pulls.remove(&consumer) {
                    Some(pull) => {
                        let result = Err(Refusal::NoSuchQueue.into());
                        self.outs.push(Out::Answer { ticket: pull.ticket, result, durable: false });
                    }
                    None => self.outs.push(Out::Ended { consumer }),
                },
                Effect::TimedOut { consumer, session, receipt } => {
                    self.outs.push(Out::TimedOut { consumer, session, receipt });
                }
                Effect::Returned { .. } => unreachable!("all messages are kept here"),
                Effect::Released(place) => self.release(place),
                Effect::Shared(place) => self.share(place),
                Effect::Forgotten { run, messages } => {
                    let is_settled =
                        |fact: &Fact| matches!(fact, Fact::RunSettled { run: other, .. } if *other == run);
                    if step.facts.iter().any(is_settled) {
                        self.holds.settle(run);
                    }
                    self.forget(run, messages);
                }
            }
        }
        self.put_aside(&mut step);
        for effect in step.effects.drain(..) {
            if let Effect::Forgotten { run, messages } = effect {
                self.forget(run, messages);
            }
        }
        step.clear();
        self.step = step;
        self.end_runs();
        self.drop_lost();
    }

    /// Has a step that says something say first what is to be remembered of the clock, if that fits beside what must always go: what is read of
    /// the step after a crash was given its end by a clock that is known.
    fn note_clock(&mut self, step: &mut Step) {
        let is_due = !step.facts.is_empty() && self.broker.must_note_clock(self.clock_ahead_ms);
        if is_due && self.has_room_for(room::Cost::of_changes(1)) {
            self.broker.note_clock(self.clock_ahead_ms, step);
            step.facts.rotate_right(1);
        }
    }

    fn deliver(&mut self, delivery: &Delivery) {
        let Delivery { consumer, receipt, place, deadline, .. } = *delivery;
        let Some(content) = self.find_content(place) else {
            let gone = delivery.settled.as_deref().map(|gone| &gone.message);
            let bytes = gone.or_else(|| self.broker.leased(&receipt)).map_or(0, |message| message.bytes);
            let feed = self.broker.feed_of(consumer);
            self.unpushed.extend(feed.map(|feed| (feed, pushed_bytes(bytes.into()))));
            if delivery.settled.is_none() {
                self.lost.push((receipt.queue, receipt.seq));
            }
            return;
        };
        if let Some(pull) = self.pulls.get_mut(&consumer) {
            let Some(message) = self.broker.message_at(receipt.queue, receipt.seq) else { return };
            pull.messages.push(LeasedMessage { receipt, deadline: deadline.some(), message, content });
        } else if let Some((_, got)) = self.got.as_mut().filter(|(who, _)| *who == consumer) {
            let there = || self.broker.message_at(receipt.queue, receipt.seq);
            let gone = delivery.settled.as_deref().map(|gone| gone.view.clone());
            let Some(message) = gone.or_else(there) else { return };
            *got = Some(LeasedMessage { receipt, deadline: deadline.some(), message, content });
        } else {
            let gone = delivery.settled.as_deref().map(|gone| &gone.message);
            let Some(message) = gone.or_else(|| self.broker.leased(&receipt)) else { return };
            let given = self.broker.given(receipt.queue, message);
            let message = Delivered::of(receipt, message, given, content);
            self.outs.push(Out::Deliver { consumer, message });
        }
    }

    fn serve(&mut self, consumer: ConsumerId) {
        if let Some(OpenPull { ticket, messages, holder }) = self.pulls.remove(&consumer) {
            if !messages.is_empty() {
                self.know(consumer, holder);
            }
            // Whose work is noted has begun only once that is on disk: after a crash nobody begins it a second time beside the first.
            // Nor is more out after a crash than a cap says: what is told counts after it, too.
            let durable = messages
                .iter()
                .any(|leased| leased.message.work.is_some() || self.broker.caps_leases(leased.receipt.queue));
            self.outs.push(Out::Answer { ticket, result: Ok(Answer::Leased(messages)), durable });
        }
    }

    /// Where the next record goes.
    #[must_use]
    pub fn tail(&self) -> Lsn {
        self.writer.tail()
    }
}

/// Whether a fact may stand in a later record than the publish or transaction it came with.
fn may_follow(fact: &Fact) -> bool {
    use overtake_lane::Settled;
    matches!(
        fact,
        Fact::Leased { .. }
            | Fact::PutBack { .. }
            | Fact::Settled { how: Settled::Evicted | Settled::Expired, .. }
    )
}

/// Whether a command only makes the store smaller, and is taken when it is full.
fn only_frees(command: &Command) -> bool {
    match command {
        Command::Settle { outcome, .. }
        | Command::Finish { outcome, .. }
        | Command::FinishLate { outcome, .. } => {
            matches!(outcome, Outcome::Ack | Outcome::Reject | Outcome::Timeout)
        }
        Command::Purge { status, .. } => *status != Some(Status::Leased),
        Command::SetMetadata { entries } => entries.iter().all(|entry| entry.value.is_none()),
        Command::Remove { .. }
        | Command::RemovePolicy { .. }
        | Command::DeleteQueue { .. }
        | Command::DeleteVhost { .. }
        | Command::CheckQueue { .. }
        | Command::EndSession { .. }
        | Command::Cancel { .. }
        | Command::Leave { .. }
        | Command::Took { .. }
        | Command::Taken { .. }
        | Command::EndFeed { .. }
        | Command::SetWindow { .. }
        | Command::Get(_)
        | Command::Consume(_) => true,
        _ => false,
    }
}
