//! Changing more messages than one step may: a bulk change goes on step by step, between whatever else is asked.
//!
//! ```text
//!   change ─▶ Core::handle ─▶ scans ─▶ Core::scan_on ─┬─▶ scans, at the end of the line: nothing was found yet
//!                               ▲                     └─▶ a command on a few messages ─▶ Core::change_on ─┬─▶ Out::Answer
//!                               └────────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! It looks at the messages of the queue in the order of publishing, each once, and changes none that was published after it began. One that
//! matches when it is looked at is changed. A bulk change that is not done after its first step is a job from then on: kept among the metadata,
//! it goes on after a restart where it was. Invariant: how far a job has come is in the same record as what it changed, so no message is changed
//! twice.

use std::collections::BTreeMap;
use std::sync::Arc;

use overtake_lane::{
    Asker, Broker, BrowseOrder, Command, Count, Cursor, MessageView, MetadataEntry, Refusal, Reply, Seq,
    Status, Time, VhostId, Walk, Which,
};

use super::room::{Cost, setting_cost};
use super::scan::{Needs, Turn};
use super::{Answer, Core, Out, Request};
use crate::api::{Browse, Filter, PageCursor, Select};
use crate::jobs::{Change, JobRecord, JobState, JobView, Started, job_key, job_of_key};

/// Jobs that are over and still told of, the newest.
const OVER_MAX: usize = 100;
/// Of so many messages that a step may look at, it changes one: to change a message takes longer than to look at it.
const LOOKS_PER_CHANGE: usize = 4;

/// A bulk change that goes on.
#[derive(Debug)]
pub(super) struct Bulk<T> {
    /// Its number, once it is a job.
    id: Option<u64>,
    asker: Asker,
    record: JobRecord,
    stage: Stage,
    /// Who waits, and for what.
    waiting: Vec<(T, Wants)>,
    needs: Needs,
}

/// What somebody waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wants {
    /// How many messages were changed, at the end.
    Count,
    /// The same, or the job once it is one.
    Start,
    /// The job, when it is over.
    Job,
}

/// The work of the next step of a bulk change.
#[derive(Clone, Debug)]
enum Stage {
    /// Counts the messages that match, from here on: there must be so many.
    Count { expect: u64, counted: u64, from: Option<Cursor> },
    /// Looks for messages to change.
    Look,
    /// Has found some, and asks for them to be changed.
    Found(Found),
}

impl Stage {
    /// Where one begins, or begins again.
    fn first(record: &JobRecord) -> Self {
        record.expect.map_or(Self::Look, |expect| Self::Count { expect, counted: 0, from: None })
    }
}

/// Messages that were found.
#[derive(Clone, Debug)]
struct Found {
    seqs: Vec<Seq>,
    /// Messages that were looked at for them.
    looked: u64,
    /// All up to this sequence were looked at; `None`: all there are.
    passed: Option<u64>,
}

impl<T> Bulk<T> {
    pub(super) fn needs(&self) -> &Needs {
        &self.needs
    }

    pub(super) fn needs_mut(&mut self) -> &mut Needs {
        &mut self.needs
    }

    pub(super) fn drop_waiting(&mut self, is_gone: impl Fn(&T) -> bool) {
        self.waiting.retain(|(ticket, _)| !is_gone(ticket));
    }

    pub(super) fn into_tickets(self) -> impl Iterator<Item = T> {
        self.waiting.into_iter().map(|(ticket, _)| ticket)
    }

    fn view(&self, refusal: Option<Refusal>) -> Option<JobView> {
        Some(self.record.view(self.id?, refusal))
    }

    fn name(&self) -> &Arc<str> {
        &self.record.name
    }

    /// Notes how many more messages were looked at: all up to this sequence, or all there are. The last ones may be newer than the change, and do not count.
    fn pass(&mut self, looked: u64, passed: Option<u64>) {
        self.record.looked = (self.record.looked + looked).min(self.record.total);
        self.record.passed = passed.unwrap_or(self.record.until);
        self.stage = Stage::Look;
    }

    /// The command that changes these messages.
    fn command(&self, seqs: Vec<Seq>) -> Command {
        self.record.change.command(self.name(), Which::Seqs(seqs))
    }
}

impl<T> Core<T> {
    /// Begins a change. One of a message that is named is done at once.
    pub(super) fn begin_change(
        &mut self,
        now: Time,
        queue: &Arc<str>,
        select: Select,
        change: Change,
        only_start: bool,
        ticket: T,
    ) {
        let (filter, expect) = match select {
            Select::Id(id) => {
                let command = change.command(queue, Which::Id(id.into()));
                let result = self.change(now, Request::Do(command));
                return self.outs.push(Out::Answer { ticket, result, durable: true });
            }
            Select::Matching(filter) => (filter, None),
            Select::Counted { filter, expect } => (filter, Some(expect)),
        };
        // Nothing is to be begun that is refused whatever it finds.
        let refusal = self.apply(now, change.command(queue, Which::Seqs(Vec::new()))).err();
        let there = self.broker.view(now, self.asking.vhost, queue);
        let (Ok(there), None) = (there, refusal) else {
            let refusal = refusal.unwrap_or(Refusal::NoSuchQueue);
            return self.outs.push(Out::Answer { ticket, result: Err(refusal.into()), durable: false });
        };
        let all = |lane: &overtake_lane::LaneView| lane.ready + lane.delayed + lane.leased + lane.dead;
        let total = there.lanes.iter().map(all).sum();
        if filter == Filter::default() && !self.may_fit(&change.command(queue, Which::All)) {
            let result = Err(Refusal::StoreFull.into());
            return self.outs.push(Out::Answer { ticket, result, durable: false });
        }
        let record = JobRecord {
            vhost: self.asking.vhost.0,
            queue: there.queue.0,
            name: Arc::clone(queue),
            change,
            filter,
            expect,
            until: there.next_seq.0,
            passed: 0,
            state: JobState::Running,
            changed: 0,
            looked: 0,
            total,
            began: self.broker.now().max(now).0,
            ended: None,
            error: None,
        };
        let wants = if only_start { Wants::Start } else { Wants::Count };
        let (stage, waiting) = (Stage::first(&record), vec![(ticket, wants)]);
        let bulk = Bulk { id: None, asker: self.asking, record, stage, waiting, needs: Needs::default() };
        self.scans.push_back(Turn::Change(Box::new(bulk)));
    }

    /// Begins a purge that leaves so many messages, or takes so many from among others, that one step cannot do it.
    pub(super) fn begin_purge(
        &mut self,
        now: Time,
        queue: &Arc<str>,
        status: Option<Status>,
        expect: Option<u64>,
        ticket: T,
    ) {
        let refusal = match self.broker.purgeable(self.asking, queue, status) {
            Ok(count) if expect.is_none_or(|expect| expect == count) => None,
            Ok(count) => Some(Refusal::CountDiffers { count }),
            Err(refusal) => Some(refusal),
        };
        if let Some(refusal) = refusal {
            return self.outs.push(Out::Answer { ticket, result: Err(refusal.into()), durable: false });
        }
        let select = Select::Matching(Filter { status, ..Filter::default() });
        self.begin_change(now, queue, select, Change::Purge, false, ticket);
    }

    /// Goes on with a bulk change, by so many looks. Answers what it asks for now; it is first in line until that is done.
    pub(super) fn bulk_step(&mut self, now: Time, mut bulk: Box<Bulk<T>>, looks: usize) -> Option<Request> {
        self.asking = bulk.asker;
        let looked = self.look_on(&mut bulk, looks);
        self.looked += std::mem::take(&mut bulk.needs.looked) as u64;
        self.read_for(&mut bulk.needs);
        match looked {
            Err(refusal) => self.end_bulk(now, *bulk, Err(refusal)),
            Ok(()) => match &bulk.stage {
                Stage::Found(found) if !found.seqs.is_empty() => {
                    let command = bulk.command(found.seqs.clone());
                    let request = Request::By { asker: bulk.asker, request: Box::new(Request::Do(command)) };
                    self.scans.push_front(Turn::Change(bulk));
                    return Some(request);
                }
                Stage::Found(Found { looked, passed, .. }) => {
                    let (looked, passed) = (*looked, *passed);
                    bulk.pass(looked, passed);
                    if passed.is_none() {
                        self.end_bulk(now, *bulk, Ok(()));
                    } else {
                        self.look_further(now, bulk);
                    }
                }
                Stage::Count { .. } | Stage::Look => self.look_further(now, bulk),
            },
        }
        None
    }

    /// Goes on later: the bulk change is not done after this step, in which nothing was changed.
    fn look_further(&mut self, now: Time, mut bulk: Box<Bulk<T>>) {
        if bulk.id.is_none() {
            self.go_on_as_job(now, &mut bulk);
            self.keep(true);
            self.tell_start(&mut bulk);
        }
        self.scans.push_back(Turn::Change(bulk));
    }

    /// Looks for messages to change, or counts those that match.
    fn look_on(&self, bulk: &mut Bulk<T>, looks: usize) -> Result<(), Refusal> {
        // Another queue may have its name by now.
        if self.broker.id_of(bulk.asker.vhost, bulk.name())? != bulk.record.queue() {
            return Err(Refusal::NoSuchQueue);
        }
        match bulk.stage {
            Stage::Count { expect, counted, from } => {
                let Bulk { record, needs, .. } = &mut *bulk;
                let count = || self.count_some(&record.name, &record.filter, from, Some(looks));
                let Count { count, looked, next } = self.look_in_memory(needs, count)?;
                needs.looked += looked;
                let counted = counted + count;
                bulk.stage = match next {
                    Some(_) => Stage::Count { expect, counted, from: next },
                    None if counted == expect => {
                        bulk.record.expect = None;
                        Stage::Look
                    }
                    None => return Err(Refusal::CountDiffers { count: counted }),
                };
            }
            // Messages that were found before may stand otherwise by now.
            Stage::Look | Stage::Found(_) => bulk.stage = Stage::Found(self.find_to_change(bulk, looks)?),
        }
        Ok(())
    }

    fn find_to_change(&self, bulk: &mut Bulk<T>, looks: usize) -> Result<Found, Refusal> {
        let Bulk { record, needs, .. } = bulk;
        let browse = Browse {
            filter: record.filter.clone(),
            order: BrowseOrder::Published,
            limit: (looks / LOOKS_PER_CHANGE).max(1),
            cursor: Some(PageCursor::After(Seq(record.passed))),
            ..Browse::default()
        };
        let find = || self.find_some(&record.name, &browse, &mut Walk::default(), Some(looks));
        let look = self.look_in_memory(needs, find)?;
        needs.looked += look.looks;
        let is_purge = record.change == Change::Purge && record.filter.status.is_none();
        let waits = |message: &MessageView| matches!(message.status, Status::Ready | Status::Delayed);
        let found = look.messages.into_iter().filter(|(_, message)| !is_purge || waits(message));
        let seqs = found.map(|(_, message)| message.seq);
        let seqs = seqs.take_while(|seq| *seq < record.until()).collect();
        let passed = look.next.map(|next| next.0).filter(|next| *next + 1 < record.until);
        Ok(Found { seqs, looked: look.looked as u64, passed })
    }

    /// Does what [`Core::scan_on`] asked for. Nothing may happen between the two.
    pub fn change_on(&mut self, now: Time, change: Request) {
        let Some(Turn::Change(mut bulk)) = self.scans.pop_front_if(|turn| turn.is_found()) else { return };
        let found = std::mem::replace(&mut bulk.stage, Stage::Look);
        let (Stage::Found(Found { looked, passed, .. }), Some(command)) = (found, command_of(change)) else {
            unreachable!("it has found some, and asked for a command")
        };
        self.asking = bulk.asker;
        if let Err(refusal) = self.check_room(&command) {
            return self.end_bulk(now, *bulk, Err(refusal));
        }
        self.withdrawals += u64::from(Request::Do(command.clone()).withdraws());
        if let Some(tracer) = &mut self.tracer {
            tracer.is_asked(&command);
        }
        let reply = self.broker.apply_by(now, bulk.asker, command, &mut self.step);
        if let Ok(Reply::Count(count)) = &reply {
            bulk.record.changed += count;
            bulk.pass(looked, passed);
        }
        let refusal = reply.err();
        if refusal.is_none() && passed.is_some() {
            self.go_on_as_job(now, &mut bulk);
            self.keep(true);
            self.hold_or_go();
            self.tell_start(&mut bulk);
            return self.scans.push_back(Turn::Change(bulk));
        }
        self.end_bulk(now, *bulk, refusal.map_or(Ok(()), Err));
    }

    /// Notes how far a bulk change has come, as a job, in the step that is being done.
    fn go_on_as_job(&mut self, now: Time, bulk: &mut Bulk<T>) {
        let id = bulk.id.unwrap_or_else(|| self.next_job());
        bulk.id = Some(id);
        self.note_job(now, id, &bulk.record);
    }

    /// Writes a job down in the step that is being done. On a full store there may be no room: then one that goes on has not come so far after a
    /// crash, and one that is over is not told of any more.
    fn note_job(&mut self, now: Time, id: u64, record: &JobRecord) {
        let value = serde_json::to_vec(record).expect("a job can be written");
        let entry = MetadataEntry { key: job_key(id), value: Some(value.into()) };
        self.house.room.set(None);
        if self.has_room_for(Cost { bytes: setting_cost(&entry), messages: 0 }) {
            self.set_value(now, entry);
        } else if record.state != JobState::Running {
            self.set_value(now, MetadataEntry { value: None, ..entry });
        }
    }

    fn set_value(&mut self, now: Time, entry: MetadataEntry) {
        let set = Command::SetMetadata { entries: vec![entry] };
        let set = self.broker.apply_by(now, self.asking, set, &mut self.step);
        debug_assert!(set.is_ok(), "what the broker notes is not refused");
    }

    /// Its number tells a job from all others, also from those that are told of no more: the newest is always told of.
    fn next_job(&self) -> u64 {
        let under_way = self.bulks().filter_map(|bulk| bulk.id).max().unwrap_or(0);
        let over = self.jobs_over.last_key_value().map_or(0, |(id, _)| *id);
        under_way.max(over) + 1
    }

    fn bulks(&self) -> impl Iterator<Item = &Bulk<T>> {
        self.scans.iter().filter_map(|turn| if let Turn::Change(bulk) = turn { Some(&**bulk) } else { None })
    }

    /// Tells those who only want to know that the job has begun.
    fn tell_start(&mut self, bulk: &mut Bulk<T>) {
        let Some(view) = bulk.view(None) else { return };
        for (ticket, _) in bulk.waiting.extract_if(.., |(_, wants)| *wants == Wants::Start) {
            let result = Ok(Answer::Started(Started::Job(Box::new(view.clone()))));
            self.outs.push(Out::Answer { ticket, result, durable: true });
        }
    }

    /// A bulk change is over, and whoever waits for it is told.
    fn end_bulk(&mut self, now: Time, mut bulk: Bulk<T>, result: Result<(), Refusal>) {
        bulk.record.ended = Some(self.broker.now().max(now).0);
        match result {
            Ok(()) if bulk.record.state == JobState::Running => {
                bulk.record.state = JobState::Done;
                let takes_ready = bulk.record.filter.status.is_none_or(|status| status == Status::Ready);
                if bulk.record.change == Change::Purge && takes_ready {
                    bulk.record.changed += self.give_up_missing(Some(bulk.record.queue()));
                }
            }
            Ok(()) => {}
            Err(refusal) => {
                (bulk.record.state, bulk.record.error) = (JobState::Failed, Some(refusal.to_string().into()));
            }
        }
        if let Some(id) = bulk.id {
            self.asking = bulk.asker;
            self.note_job(now, id, &bulk.record);
            self.jobs_over.insert(id, (bulk.record.clone(), result.err()));
            self.forget_jobs(now);
        }
        self.keep(true);
        self.hold_or_go();
        let view = bulk.view(result.err());
        for (ticket, wants) in bulk.waiting {
            let result = match (wants, &view) {
                (Wants::Job, view) => Ok(Answer::Job(view.clone().map(Box::new))),
                (Wants::Count, _) => result.map(|()| Answer::Count(bulk.record.changed)).map_err(Into::into),
                (Wants::Start, _) => {
                    result.map(|()| Answer::Started(Started::Done(bulk.record.changed))).map_err(Into::into)
                }
            };
            self.outs.push(Out::Answer { ticket, result, durable: true });
        }
    }

    /// Forgets the oldest of the jobs that are over, beyond so many.
    fn forget_jobs(&mut self, now: Time) {
        while self.jobs_over.len() > OVER_MAX
            && let Some((id, _)) = self.jobs_over.pop_first()
        {
            self.set_value(now, MetadataEntry { key: job_key(id), value: None });
        }
    }

    /// The jobs of the virtual host, those that go on and those that are over, by number.
    pub(super) fn jobs(&self) -> Vec<JobView> {
        let vhost = self.asking.vhost;
        let is_here = |record: &JobRecord| record.vhost() == vhost;
        let under_way = self.bulks().filter(|bulk| is_here(&bulk.record)).filter_map(|bulk| bulk.view(None));
        let over = self.jobs_over.iter().filter(|(_, (record, _))| is_here(record));
        let over = over.map(|(id, (record, refusal))| record.view(*id, *refusal));
        let all: BTreeMap<u64, JobView> = under_way.chain(over).map(|view| (view.id, view)).collect();
        all.into_values().collect()
    }

    /// Shows a job of the virtual host, now or when it is over.
    pub(super) fn show_job(&mut self, id: u64, waits: bool, ticket: T) {
        let vhost = self.asking.vhost;
        if waits && let Some(bulk) = self.bulk_mut(vhost, id) {
            return bulk.waiting.push((ticket, Wants::Job));
        }
        let view = self.jobs().into_iter().find(|view| view.id == id);
        self.outs.push(Out::Answer { ticket, result: Ok(Answer::Job(view.map(Box::new))), durable: false });
    }

    /// Ends a job of the virtual host where it is. Answers it; one that is over is left as it is.
    pub(super) fn cancel_job(&mut self, now: Time, id: u64, ticket: T) {
        let vhost = self.asking.vhost;
        let at = self.scans.iter().position(|turn| turn.is_job(vhost, id));
        if let Some(Turn::Change(mut bulk)) = at.and_then(|at| self.scans.remove(at)) {
            bulk.record.state = JobState::Cancelled;
            bulk.waiting.push((ticket, Wants::Job));
            return self.end_bulk(now, *bulk, Ok(()));
        }
        self.show_job(id, false, ticket);
    }

    fn bulk_mut(&mut self, vhost: VhostId, id: u64) -> Option<&mut Bulk<T>> {
        self.scans.iter_mut().find_map(|turn| match turn {
            Turn::Change(bulk) if bulk.id == Some(id) && bulk.record.vhost() == vhost => Some(&mut **bulk),
            _ => None,
        })
    }
}

impl<T> Turn<T> {
    fn is_found(&self) -> bool {
        matches!(self, Self::Change(bulk) if matches!(bulk.stage, Stage::Found(_)))
    }

    fn is_job(&self, vhost: VhostId, id: u64) -> bool {
        matches!(self, Self::Change(bulk) if bulk.id == Some(id) && bulk.record.vhost() == vhost)
    }
}

/// The command that a request is, whoever asks.
fn command_of(request: Request) -> Option<Command> {
    match request {
        Request::By { request, .. } => command_of(*request),
        Request::Do(command) => Some(command),
        _ => None,
    }
}

/// Jobs that are over, by number, and why one failed since the store was opened.
pub(super) type JobsOver = BTreeMap<u64, (JobRecord, Option<Refusal>)>;

/// The jobs that a store has: those that go on, and those that are over.
pub(super) fn recover<T>(broker: &Broker) -> (Vec<Turn<T>>, JobsOver) {
    let (mut under_way, mut over) = (Vec::new(), JobsOver::new());
    let kept = broker.metadata().filter_map(|(key, value)| Some((job_of_key(key)?, value)));
    // A record that cannot be read is of a later version, or nothing of ours, and is left alone.
    let kept = kept.filter_map(|(id, value)| Some((id, serde_json::from_slice::<JobRecord>(value).ok()?)));
    for (id, record) in kept {
        if record.state == JobState::Running {
            let asker = Asker::in_vhost(record.vhost());
            let bulk = Bulk {
                id: Some(id),
                asker,
                stage: Stage::first(&record),
                record,
                waiting: Vec::new(),
                needs: Needs::default(),
            };
            under_way.push(Turn::Change(Box::new(bulk)));
        } else {
            over.insert(id, (record, None));
        }
    }
    (under_way, over)
}
