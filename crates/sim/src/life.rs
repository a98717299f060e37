//! One life of the engine: from its start to a crash or a stop. The loop that the real engine has in threads is here turns
//! and events, with up to two batches in flight.

use std::collections::{BTreeSet, VecDeque};

use overtake_engine::core::{Answer, Core, Done, Job, OpenError, Opened, Out, Spiller};
use overtake_engine::{Full, Refused};
use overtake_lane::{Asker, Time};
use overtake_store::{Batch, Committer, Lsn, MemoryDisk, OnDamage, StoreError};

use crate::audit::Audit;
use crate::check::{awake, refold as refolding};
use crate::failure::{Checked, Promise, broken, hold};
use crate::plan::Fault;
use crate::refold::{Refold, copy, refold};
use crate::sabotage::Sabotage;
use crate::step::Act;
use crate::world::{Event, Who, World};

/// Most batches on their way to the disk.
const FLIGHT_MAX: usize = 2;
/// Sleeping so long past a deadline, or asleep with requests in the inbox, is too long; µs.
const GRACE_US: u64 = 20_000;

/// A running engine.
pub(crate) struct Life {
    pub(crate) number: u64,
    pub(crate) core: Core<u64>,
    pub(crate) committer: Committer<MemoryDisk>,
    pub(crate) spiller: Spiller<MemoryDisk>,
    /// Batches, each with what may be done once it is durable.
    pub(crate) flight: VecDeque<(Batch, Vec<Job>)>,
    /// Jobs that may be done.
    pub(crate) jobs: VecDeque<Job>,
    /// Answers that wait for their place in the log to be durable.
    pub(crate) waiting: VecDeque<(Lsn, u64, Result<Answer, Refused>)>,
    /// Tickets of answers that the engine has made, and holds until records have room.
    pub(crate) held: BTreeSet<u64>,
    pub(crate) durable: Lsn,
    /// What was durable before the last commit.
    pub(crate) proven: Lsn,
    /// The latest time it was told.
    pub(crate) seen: Time,
    /// The first thing that must happen by itself.
    pub(crate) due: Time,
    /// Where the next record went after the last step.
    pub(crate) tail: Lsn,
    /// While the journal is too long: how short it has been since, and bites of cleaning since then.
    pub(crate) long: Option<(u64, u64)>,
    is_committing: bool,
    is_working: bool,
    /// A file is on its way, or cannot be made for now.
    pub(crate) is_preparing: bool,
    /// Why it cannot go on.
    pub(crate) ended: Option<String>,
}

impl Life {
    /// Answers that were made with these and are held; and of these the tickets of those that were held before.
    pub(crate) fn take_held(&mut self, outs: &[Out<u64>]) -> (Vec<Out<u64>>, BTreeSet<u64>) {
        let late = outs.iter().filter_map(answered).filter(|ticket| self.held.remove(ticket)).collect();
        let is_new = |out: &&Out<u64>| answered(out).is_some_and(|ticket| self.held.insert(ticket));
        let held = self.core.held_outs().iter().filter(is_new).cloned().collect();
        (held, late)
    }

    /// One read ahead waits at most: looking at what waits on the shelf asks for one each time, and nothing else must wait for all of them.
    fn take_jobs(&mut self) {
        let begun = usize::from(self.is_working);
        for job in self.core.take_jobs() {
            let is_read_ahead = |job: &Job| matches!(job, Job::ReadAhead { .. });
            if !is_read_ahead(&job) || !self.jobs.iter().skip(begun).any(is_read_ahead) {
                self.jobs.push_back(job);
            }
        }
    }
}

/// Whose answer this is.
fn answered(out: &Out<u64>) -> Option<u64> {
    match out {
        Out::Answer { ticket, .. } => Some(*ticket),
        Out::Deliver { .. } | Out::TimedOut { .. } | Out::Ended { .. } => None,
    }
}

impl World {
    // ---- birth ----

    /// Starts the engine; what it finds is judged first.
    pub(crate) fn start(&mut self) -> Checked {
        if self.life.is_some() {
            return Ok(());
        }
        let dropped = if self.config.sabotage == Some(Sabotage::LosesFact) { 3 } else { 0 };
        let found = match refold(copy(&self.disk), &self.options, OnDamage::Refuse, dropped) {
            Ok(found) => found,
            Err(error) => {
                return broken(Promise::Kept, format!("the store cannot be read after a crash: {error}"));
            }
        };
        found.check_segments()?;
        self.checks.kept.check_recovered(&found, &self.audit)?;
        self.checks.gone.check_recovered(&found)?;
        if !self.checks.refold.check(&found)? {
            self.tally.cut_steps += 1;
        }
        self.set_clock();
        let now = self.clock();
        match Core::open(self.disk.clone(), &self.options, now) {
            Ok(Opened { core, committer, spiller, recovered }) => {
                let left_over = found.unfounded;
                hold(recovered.left_over == left_over, Promise::Refold, || {
                    format!("{} facts are left over, the log has {left_over}", recovered.left_over)
                })?;
                self.begin(core, committer, spiller, found)
            }
            Err(error) => self.could_not_start(&error),
        }
    }

    fn could_not_start(&mut self, error: &OpenError) -> Checked {
        let is_explained = self.has_struck()
            || matches!(
                error,
                OpenError::Store(StoreError::Full | StoreError::Io { .. } | StoreError::Poisoned { .. })
            );
        self.tell(|| format!("could not start: {error}"));
        hold(is_explained, Promise::Alive, || format!("the engine does not start: {error}"))?;
        self.tally.failed_starts += 1;
        if !self.has_struck() {
            self.disk.kill();
        }
        self.forget_hook();
        // A sync that was to fail still fails, once.
        if self.is_calm && std::mem::replace(&mut self.failed_in_calm, true) {
            return broken(Promise::Alive, format!("the engine does not start in the calm: {error}"));
        }
        self.at(20_000, Event::Start);
        Ok(())
    }

    fn begin(
        &mut self,
        mut core: Core<u64>,
        committer: Committer<MemoryDisk>,
        spiller: Spiller<MemoryDisk>,
        mut found: Refold,
    ) -> Checked {
        let now = self.clock();
        let log_tail = found.tail();
        self.checks.denied.recovered(&found, self.book.letters.len() as u64)?;
        self.checks.kept.recovered(&found);
        self.checks.gone.recovered();
        self.checks.metadata.recovered(&found.broker)?;
        self.checks.vhosts.recovered(&found.broker)?;
        self.checks.policies.recovered(&found.broker)?;
        self.checks.routes.recovered(&mut core)?;
        self.checks.pick.recovered();
        self.checks.rates.recovered();
        self.checks.refold.clear();
        self.checks.refold.take(log_tail, &found.audit);
        let marks = found.marks();

        let mut step = overtake_lane::Step::default();
        found.broker.wake(now, &mut step);
        let audit = Audit::of(core.broker());
        refolding::check_same(&audit, &Audit::of(&found.broker))?;
        refolding::check_topology(core.broker(), &found.broker)?;
        if core.is_behind() {
            self.checks.refold.take_none();
        } else {
            self.checks.refold.take(core.tail(), &audit);
        }
        self.book.recovered(core.broker(), &audit, |queue, seq| marks.get(&(queue, seq)).copied());
        self.tell(|| format!("the engine starts with {} messages; log ends at {log_tail}", audit.len()));
        let durable = committer.durable();
        self.audit = audit;
        let (number, tail) = (self.life_number(), core.tail());
        self.life = Some(Life {
            number,
            core,
            committer,
            spiller,
            flight: VecDeque::new(),
            jobs: VecDeque::new(),
            waiting: VecDeque::new(),
            held: BTreeSet::new(),
            durable,
            proven: log_tail,
            seen: self.true_clock(),
            due: Time::NEVER,
            tail,
            long: None,
            is_committing: false,
            is_working: false,
            is_preparing: false,
            ended: None,
        });
        self.excused_until = self.now_us + GRACE_US;
        if self.config.sabotage == Some(Sabotage::ReplaysInbox) {
            for request in std::mem::take(&mut self.unanswered) {
                self.ask(0, request);
            }
        }
        self.start_endpoints();
        self.turn_soon(1);
        Ok(())
    }

    fn life_number(&mut self) -> u64 {
        self.tally.starts += 1;
        self.tally.starts
    }

    // ---- the loop ----

    /// Once around the engine's loop.
    pub(crate) fn turn(&mut self) -> Checked {
        if self.life.is_none() {
            return Ok(());
        }
        self.look_at_disk();
        self.notice_full();
        if self.is_late() {
            // It is at work.
            self.excused_until = self.excused_until.max(self.now_us);
        }
        // What is late waits for a file with everything else.
        if !(self.is_late() && self.is_starved()) {
            self.step(Act::Tick)?;
        }
        for _ in 0..self.chance.schedule.within(1, 16) {
            if self.is_starved() || self.must_wait() {
                break;
            }
            let Some((ticket, asked)) = self.inbox.pop_front() else { break };
            self.step(Act::Ask(ticket, asked.request))?;
        }
        if self.is_scanning() && !self.is_starved() {
            self.step(Act::Scan)?;
        }
        if self.is_clearing() {
            self.step(Act::Clear)?;
        }
        self.step(Act::House)?;
        self.want_file();
        self.launch();
        self.set_alarm();
        let puts_back = self.life.as_ref().is_some_and(|life| life.core.has_more_to_put_back());
        let goes_on = puts_back || self.is_scanning() || self.is_clearing();
        let has_more = self.is_late() || !self.inbox.is_empty();
        if goes_on || (has_more && !self.is_starved()) {
            let after = self.chance.schedule.heavy(30);
            self.turn_soon(after);
        }
        if self.chance.schedule.once_in(60) {
            self.peek()?;
        }
        Ok(())
    }

    fn is_late(&self) -> bool {
        self.life.as_ref().is_some_and(|life| life.core.is_late())
    }

    fn is_scanning(&self) -> bool {
        self.life.as_ref().is_some_and(|life| life.core.is_scanning())
    }

    fn is_clearing(&self) -> bool {
        self.life.as_ref().is_some_and(|life| life.core.is_clearing())
    }

    /// Tells the engine how much room there is.
    fn look_at_disk(&mut self) {
        let Some(life) = &mut self.life else { return };
        life.core.disk_space(life.committer.space().ok().flatten());
        if matches!(life.core.full(), Some(Full::Low(_))) {
            self.tally.low += 1;
        }
    }

    /// Whether the next request waits for a file, which is on its way then.
    fn is_starved(&mut self) -> bool {
        self.want_file();
        self.life.as_ref().is_some_and(|life| life.core.is_starved() && life.is_preparing)
    }

    /// Whether the next request waits for a file by itself, because of what it takes.
    fn must_wait(&mut self) -> bool {
        let (Some(life), Some((_, asked))) = (&mut self.life, self.inbox.front()) else { return false };
        if self.config.sabotage == Some(Sabotage::NeverWaits)
            || !life.core.must_wait(Asker::default(), &asked.request)
        {
            return false;
        }
        self.tally.waits += 1;
        // A file that cannot be made for now is no reason to wait.
        self.is_starved()
    }

    fn want_file(&mut self) {
        let Some(life) = &mut self.life else { return };
        if life.core.wants_file() && !life.is_preparing {
            life.is_preparing = true;
            let number = life.number;
            let after = self.chance.disk.heavy(self.plan.commit_us * 2);
            self.at(after, Event::Prepare(number));
        }
    }

    /// Hands batches to the committer.
    fn launch(&mut self) {
        let Some(life) = &mut self.life else { return };
        while life.flight.len() < FLIGHT_MAX
            && let Some(batch) = life.core.take_batch()
        {
            let late = life.core.take_late_jobs();
            life.flight.push_back((batch, late));
        }
        match life.flight.back_mut() {
            // No batch was taken: what was asked for before is in the last one.
            Some((_, late)) if life.core.unsynced_records() == 0 => late.extend(life.core.take_late_jobs()),
            Some(_) => {}
            None => life.jobs.extend(life.core.take_late_jobs()),
        }
        life.take_jobs();
        if !life.jobs.is_empty() && !life.is_working {
            life.is_working = true;
            let number = life.number;
            let after = self.chance.spill.heavy(self.plan.commit_us * 2);
            self.at(after, Event::Job(number));
        }
        let Some(life) = &mut self.life else { return };
        if !life.flight.is_empty() && !life.is_committing {
            life.is_committing = true;
            let number = life.number;
            let after = self.chance.disk.heavy(self.plan.commit_us);
            self.at(after, Event::Commit(number));
        }
    }

    /// The oldest batch is written and synced.
    pub(crate) fn commit(&mut self, number: u64) -> Checked {
        let Some(life) = self.life.as_mut().filter(|life| life.number == number) else { return Ok(()) };
        life.is_committing = false;
        let (batch, late) = life.flight.pop_front().expect("a commit has a batch");
        self.tally.commits += 1;
        let committed = life.committer.commit(&batch).and_then(|lsn| {
            let retired = life.committer.retire()?;
            if life.core.is_short() && !life.is_preparing {
                life.committer.drop_spares()?;
            }
            Ok((lsn, retired))
        });
        match committed {
            Ok((lsn, retired)) => {
                (life.proven, life.durable) = (life.durable, lsn);
                life.jobs.extend(late);
                self.tally.retired += retired as u64;
                self.trace.mix(&[lsn.0]);
                self.checks.refold.durable(lsn);
                self.tell(|| format!("durable up to {lsn}, {retired} files given back"));
                self.release();
                self.launch();
                self.turn_soon(1);
            }
            Err(error) => life.ended = Some(error.to_string()),
        }
        Ok(())
    }

    /// Tells the answers that were waiting.
    pub(crate) fn release(&mut self) {
        while let Some(life) = &mut self.life
            && life.waiting.front().is_some_and(|(lsn, ..)| *lsn <= life.durable)
        {
            let (_, ticket, result) = life.waiting.pop_front().expect("it has a front");
            self.told(ticket, result);
        }
    }

    /// The committer prepares a file.
    pub(crate) fn prepare(&mut self, number: u64) -> Checked {
        let Some(life) = self.life.as_mut().filter(|life| life.number == number) else { return Ok(()) };
        match life.committer.prepare_file() {
            Ok(news) => {
                life.is_preparing = false;
                self.step(Act::File(news))?;
                self.turn_soon(1);
            }
            Err(StoreError::Full) => {
                life.core.disk_full();
                // Asked again later, as long as it lasts.
                self.tally.full += 1;
                self.tell(|| "no room for a file".to_owned());
                self.at(if self.is_calm { 1_000 } else { 30_000 }, Event::Prepare(number));
                self.turn_soon(1);
            }
            Err(error) => life.ended = Some(error.to_string()),
        }
        Ok(())
    }

    /// The next job is done.
    pub(crate) fn job(&mut self, number: u64) -> Checked {
        let Some(life) = self.life.as_mut().filter(|life| life.number == number) else { return Ok(()) };
        life.is_working = false;
        let job = life.jobs.pop_front().expect("whoever works has a job");
        let merges = self.chance.spill.below(4);
        let performed = life.spiller.perform(job).and_then(|done| {
            (0..merges).try_for_each(|_| life.spiller.merge_ids().map(drop))?;
            Ok(done)
        });
        match performed {
            Ok(done) => {
                self.tell(|| format!("{done:?}"));
                self.count_done(&done);
                if let Done::NoRoom { .. } = done {
                    self.at(if self.is_calm { 1_000 } else { 30_000 }, Event::TryAgain(number));
                }
                self.step(Act::Done(done))?;
                self.turn_soon(1);
            }
            Err(error) => life.ended = Some(error.to_string()),
        }
        Ok(())
    }

    fn count_done(&mut self, done: &Done) {
        match done {
            Done::Spilled(_) => self.tally.spilled += 1,
            Done::Rewritten(_) => self.tally.rewritten += 1,
            Done::NoRoom { .. } => self.tally.no_room += 1,
            Done::Removed => self.tally.removed += 1,
            Done::Lost { .. } | Done::Unreadable { .. } | Done::Read { .. } | Done::ReadAhead => {}
        }
    }

    /// There may be room for a segment again.
    pub(crate) fn try_again(&mut self, number: u64) {
        if let Some(life) = self.life.as_mut().filter(|life| life.number == number) {
            life.core.try_spilling_again();
            self.turn_soon(1);
        }
    }

    fn set_alarm(&mut self) {
        let Some(life) = &self.life else { return };
        let Some(deadline) = life.core.next_deadline() else { return };
        let late_us = if self.config.sabotage == Some(Sabotage::Oversleeps) { 60_000 } else { 0 };
        // A turn of the loop soon passes the time; an alarm very far away never comes.
        let after_us = deadline.since(self.clock()).saturating_mul(1_000).saturating_add(1_000 + late_us);
        let at = self.now_us.saturating_add(after_us);
        if after_us < 1 << 50 && self.alarm_at.is_none_or(|planned| planned > at) {
            self.alarm_at = Some(at);
            self.at(after_us, Event::Alarm);
        }
    }

    /// What was to end before this is late by now, µs.
    pub(crate) fn patient_until(&self) -> u64 {
        let is_excused = self.now_us < self.excused_until.saturating_add(GRACE_US);
        if is_excused { 0 } else { self.running_us().saturating_sub(GRACE_US) }
    }

    /// The engine is not asleep past a deadline.
    pub(crate) fn check_awake(&self) -> Checked {
        let Some(life) = &self.life else { return Ok(()) };
        if self.now_us < self.excused_until.saturating_add(GRACE_US) {
            return Ok(());
        }
        let late_ms = self.true_clock().since(life.due);
        hold(late_ms * 1_000 <= GRACE_US, Promise::Awake, || {
            format!("the engine sleeps {late_ms} ms past {}", life.due.0)
        })
    }

    // ---- looking ----

    /// Recovers a copy of the disk while the engine runs, when all of it is durable.
    fn peek(&mut self) -> Checked {
        let Some(life) = &self.life else { return Ok(()) };
        if life.durable != life.core.tail() || !life.flight.is_empty() || life.core.is_behind() {
            return Ok(());
        }
        self.tally.peeks += 1;
        let found = match refold(copy(&self.disk), &self.options, OnDamage::Refuse, 0) {
            Ok(found) => found,
            Err(error) => {
                return broken(
                    Promise::Refold,
                    format!("a copy of the running store cannot be read: {error}"),
                );
            }
        };
        found.check_segments()?;
        refolding::check_topology(life.core.broker(), &found.broker)?;
        self.checks.refold.check(&found)?;
        refolding::check_counts(&self.book, &self.audit, &found)
    }

    /// After a step: whoever waits has got what there is.
    pub(crate) fn check_served(&self, life: &Life, audit: &Audit) -> Checked {
        let first = awake::first_due(&self.book, audit);
        awake::check_deadline(life.core.broker().now(), first, life.core.next_deadline())?;
        // What is late may have the places of others, and time goes on with that.
        if life.core.is_held() || life.core.is_late() { Ok(()) } else { awake::check_idle(&self.book, audit) }
    }

    // ---- death ----

    /// Ends a life that cannot go on, and begins the wait for the next.
    pub(crate) fn notice_death(&mut self) -> Checked {
        let ended = self.life.as_ref().and_then(|life| life.ended.clone());
        if ended.is_none() && !self.has_struck() {
            return Ok(());
        }
        if !self.has_struck() {
            // A failed store stops the process; sometimes the machine goes down with it.
            if self.chance.faults.once_in(3) { self.disk.power_cut() } else { self.disk.kill() }
        }
        self.forget_hook();
        self.die(ended.as_deref().unwrap_or("struck in the middle of an operation"));
        Ok(())
    }

    /// The process is gone; what it was asked and did not answer is in doubt.
    pub(crate) fn die(&mut self, why: &str) {
        self.tell(|| format!("the engine dies: {why}"));
        let was_alive = self.life.take().is_some();
        self.inbox.clear();
        self.checks.looks.forget();
        self.alarm_at = None;
        for (ticket, asked) in std::mem::take(&mut self.asked) {
            if self.config.sabotage == Some(Sabotage::ReplaysInbox) {
                self.unanswered.push(asked.request.clone());
            }
            if let Who::Client(client) = asked.who {
                self.clients[client].left_in_doubt(ticket, &asked.request);
            }
        }
        self.cut_all();
        self.endpoints.die();
        for client in &mut self.clients {
            client.disconnected();
        }
        if was_alive {
            self.tally.crashes += 1;
            let after = self.chance.schedule.heavy(2_000);
            self.at(after, Event::Start);
        }
    }

    /// Everything is committed and told, then the process ends.
    pub(crate) fn stop(&mut self) -> Checked {
        self.count(Fault::Stop);
        loop {
            self.launch();
            let Some(number) =
                self.life.as_ref().filter(|life| !life.flight.is_empty()).map(|life| life.number)
            else {
                break;
            };
            self.commit(number)?;
            if self.life.as_ref().is_none_or(|life| life.ended.is_some()) {
                return Ok(());
            }
        }
        if !self.has_struck() {
            self.die("it was asked to stop");
        }
        Ok(())
    }
}
