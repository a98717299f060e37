//! The broker: virtual hosts with their queues and exchanges, consumers by id. Only [`Broker::apply`], [`Broker::tick`] and [`Broker::fold`]
//! change it; none fails half-way. A command is done when it is answered; messages of which nobody asked for each go on a few at a time (`ticking`).

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use crate::clock::Noted;
use crate::command::{Command, Effect, Few, Outcome, Reply, Step};
use crate::consuming::Seat;
use crate::deaths::DeathReason;
use crate::entries::Slot;
use crate::history::End;
use crate::ids::{Asker, ConsumerId, LeaseId, Numbers, QueueId, Receipt, Time, VhostId};
use crate::letters::{Letters, NoLetters};
use crate::message::{PutBack, Settled};
use crate::metadata::Metadata;
use crate::priority::{Given, Original, Priority};
use crate::progress::WorkNotes;
use crate::pushes::{PushLimits, Pushes};
use crate::queue::{LeaseEnd, Queue};
use crate::record::{Ending, Report};
use crate::refusal::Refusal;
use crate::remains::Remains;
use crate::round::Round;
use crate::run::{Backlog, NoBacklog};
use crate::sessions::Sessions;
use crate::settings::Settings;
use crate::topology::Topology;
use crate::vhosts::Vhosts;
use crate::windows::Windows;

/// What a broker is told once.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// How often the store was opened: keeps the leases of one life from those of another.
    pub life: u32,
    /// Keeps others from choosing ids that collide in a table. No decision depends on it.
    pub seed: u64,
    /// Largest message in bytes; 0: no limit.
    pub max_message_bytes: u64,
    /// Time to live of messages that neither bring one nor find one at their queue, ms; 0: none.
    pub default_ttl_ms: u64,
    /// Most copies that one command may make; 0: no limit.
    pub copies_max: usize,
    /// Most bytes of metadata that one command may set and remove, counted as [`MetadataEntry::cost`](crate::MetadataEntry::cost);
    /// 0: no limit.
    pub metadata_step_max: u64,
    /// Most messages that one step ends, moves or puts back without being asked for each; 0: no limit. The rest has its turn in the steps that
    /// follow: by [`Broker::tick`] what has come due and what a queue has too many of, by [`Broker::put_back`] what ended sessions held.
    pub step_max: usize,
    /// Those that its queues and virtual hosts get, but for `/`.
    pub numbers: Numbers,
    /// The most bytes that may be pushed to connections and not taken by them.
    pub pushes: PushLimits,
}

/// Virtual hosts, queues and consumers.
#[derive(Clone, Debug)]
pub struct Broker {
    pub(crate) options: Options,
    pub(crate) backlog: Arc<dyn Backlog>,
    pub(crate) letters: Arc<dyn Letters>,
    pub(crate) now: Time,
    /// What was noted of the clock last.
    pub(crate) clock: Noted,
    /// Queues come and go and no number is used twice, so the numbers have gaps.
    pub(crate) queues: BTreeMap<QueueId, Box<Queue>>,
    pub(crate) next_queue: u32,
    pub(crate) vhosts: Vhosts,
    /// Queues that went with their virtual host in the log, which has not said it of each yet.
    pub(crate) unsaid: BTreeSet<QueueId>,
    pub(crate) metadata: Metadata,
    pub(crate) seats: BTreeMap<ConsumerId, Seat>,
    pub(crate) sessions: Sessions,
    pub(crate) windows: Windows,
    pub(crate) pushes: Pushes,
    /// Who asked for the command at hand, and where.
    pub(crate) asking: Asker,
    /// Queues in which something happens by itself, by when.
    pub(crate) schedule: BTreeSet<(Time, QueueId)>,
    /// Those in which something has come due, in turn.
    pub(crate) in_line: VecDeque<QueueId>,
    pub(crate) leases: LeaseId,
    pub(crate) held: bool,
    pub(crate) work_notes: WorkNotes,
    pub(crate) totals: Totals,
    /// What is left in memory of messages that are gone all at once.
    pub(crate) remains: Remains,
    /// Queues into which dead letters came in this step.
    pub(crate) stirred: Vec<QueueId>,
    /// As [`Broker::is_late`] says.
    pub(crate) is_late: bool,
    /// Messages that wait in runs of former lanes are brought into memory.
    pub(crate) fetches: bool,
    /// Virtual hosts of which not all queues may do yet what policies say, in turn. One may be gone.
    pub(crate) ruling: VecDeque<VhostId>,
    /// Queues that are still to be asked for what to write to a segment, the one with most in memory last; none while no such search goes on.
    pub(crate) to_spill: Vec<QueueId>,
    /// Queues that may go on, since leases are given again or memory has room.
    pub(crate) resuming: Round<QueueId>,
}

impl Broker {
    /// A broker with nothing in it but `/` and the predeclared exchanges. It keeps everything in memory.
    #[must_use]
    pub fn new(options: Options) -> Self {
        Self::with_backlog(options, Arc::new(NoBacklog))
    }

    /// As [`Broker::new`], but messages may be spilled into runs, which are read there.
    #[must_use]
    pub fn with_backlog(options: Options, backlog: Arc<dyn Backlog>) -> Self {
        Self {
            options,
            backlog,
            letters: Arc::new(NoLetters),
            now: Time(0),
            clock: Noted::default(),
            queues: BTreeMap::new(),
            next_queue: options.numbers.first,
            vhosts: Vhosts::numbered(options.numbers),
            unsaid: BTreeSet::new(),
            metadata: Metadata::default(),
            seats: BTreeMap::new(),
            sessions: Sessions::default(),
            windows: Windows::default(),
            pushes: Pushes::new(options.pushes),
            asking: Asker::default(),
            schedule: BTreeSet::new(),
            in_line: VecDeque::new(),
            leases: LeaseId::first_of(options.life),
            held: false,
            work_notes: WorkNotes::default(),
            stirred: Vec::new(),
            is_late: false,
            fetches: true,
            ruling: VecDeque::new(),
            to_spill: Vec::new(),
            resuming: Round::default(),
            totals: Totals::default(),
            remains: Remains::default(),
        }
    }

    /// The same broker, which reads there how messages were published.
    #[must_use]
    pub fn with_letters(self, letters: Arc<dyn Letters>) -> Self {
        Self { letters, ..self }
    }

    /// Does one thing, all or nothing. Time never goes back: an earlier `now` counts as the latest one seen.
    ///
    /// # Errors
    /// Why it is declined. Then nothing has changed but what time itself has brought about, which is in `step`, and that the
    /// message of a refused publish is a dead letter where its queue says so: then it shares the place of its content.
    pub fn apply(&mut self, now: Time, command: Command, step: &mut Step) -> Result<Reply, Refusal> {
        self.apply_by(now, Asker::default(), command, step)
    }

    /// As [`Broker::apply`], as somebody asks it: the same as [`Command::By`], without a box.
    ///
    /// # Errors
    /// As [`Broker::apply`].
    pub fn apply_by(
        &mut self,
        now: Time,
        asker: Asker,
        command: Command,
        step: &mut Step,
    ) -> Result<Reply, Refusal> {
        self.keep_up(now, step);
        self.asking = asker;
        step.room = self.room();
        let reply = self.obey(command, step);
        self.dispatch_all(std::iter::empty(), step);
        // What nobody took at once, and was to be taken at once, is over.
        self.keep_up(now, step);
        reply
    }

    fn obey(&mut self, command: Command, step: &mut Step) -> Result<Reply, Refusal> {
        match command {
            Command::By { asker, command } => {
                self.asking = asker;
                self.obey(*command, step)
            }
            Command::EndSession { session } => self.end_session(session, step),
            Command::DeclareVhost { name, settings } => self.declare_vhost(name, *settings, step),
            Command::DeleteVhost { name } => self.delete_vhost(&name, step),
            Command::DeclareQueue { name, settings, identity, existing } => {
                self.declare_queue(name, settings, identity, existing, step)
            }
            Command::CheckQueue { name } => self.check_queue(&name, step),
            Command::DeleteQueue { name, if_empty, if_unused } => {
                self.delete_queue(&name, if_empty, if_unused, step)
            }
            Command::DeclareExchange { name, settings } => self.declare_exchange(name, settings, step),
            Command::DeleteExchange { name, if_unused } => self.delete_exchange(name, if_unused, step),
            Command::Bind(binding) => self.bind(binding, step),
            Command::Unbind(binding) => self.unbind(binding, step),
            Command::SetMetadata { entries } => self.set_metadata(entries, step),
            Command::SetPolicy { kind, name, policy } => self.set_policy(kind, name, policy, step),
            Command::RemovePolicy { kind, name } => self.remove_policy(kind, name, step),
            Command::Publish(publish) => self.publish(publish, step),
            Command::PublishUntold(publish) => self.publish_untold(publish, step),
            Command::Transact { publishes, settlements } => self.transact(publishes, &settlements, step),
            Command::Consume(consume) => self.consume(&consume, step),
            Command::Cancel { consumer } => self.cancel(consumer, step),
            Command::Leave { consumer } => self.leave(consumer, step),
            Command::Took { consumer, messages } => self.took(consumer, messages, step),
            Command::Taken { feed, bytes } => self.taken(feed, bytes, step),
            Command::EndFeed { feed } => self.end_feed(feed, step),
            Command::SetWindow { window, size, joining } => self.set_window(window, size, &joining, step),
            Command::Get(get) => self.get(&get, step),
            Command::Pull(pull) => self.pull(&pull, step),
            Command::Settle { receipts, outcome } => {
                let each = |receipt| self.settle_receipt(receipt, outcome, Report::default(), step);
                let results = receipts.iter().map(each).collect();
                self.dispatch_all(receipts.iter().map(|receipt| receipt.queue), step);
                Ok(Reply::Each(results))
            }
            Command::Finish { receipt, outcome, report } => self.finish(&receipt, outcome, *report, step),
            Command::FinishLate { queue, id, attempt, outcome, report } => {
                self.finish_late(&queue, id, attempt, outcome, *report, step)
            }
            Command::CancelMessages { queue, which } => self.cancel_messages(&queue, &which, step),
            Command::Extend { receipts, visibility_ms } => {
                let results = receipts.iter().map(|receipt| {
                    let now = self.now;
                    let slot = self.check_receipt(receipt)?;
                    self.queue_mut(receipt.queue).extend(now, slot, visibility_ms, step)?;
                    self.reschedule(receipt.queue);
                    Ok(())
                });
                Ok(Reply::Each(results.collect()))
            }
            Command::Reprioritise { queue, which, priority } => {
                self.reprioritise(&queue, &which, &priority, step)
            }
            Command::Remove { queue, which } => self.remove(&queue, &which, step),
            Command::Purge { queue, status, expect } => self.purge(&queue, status, expect, step),
            Command::Replay { queue, which, promote } => self.replay(&queue, &which, promote.as_ref(), step),
        }
    }

    /// Stops giving leases, or starts again, in the steps that follow and at once where something happens in a queue: for a store that has room for acknowledgements and
    /// nothing else.
    pub fn hold(&mut self, held: bool, step: &mut Step) {
        if std::mem::replace(&mut self.held, held) && !held {
            self.resuming.begin();
            step.room = self.room();
            self.resume_some(step);
            // The next steps of time go on with the others.
            self.is_late |= self.resuming.is_open();
        }
    }

    /// Says how many bytes the records of what ends may take from now on, until it is said again: for a store that has little room,
    /// where what is settled must go all the same.
    pub fn set_record_room(&mut self, bytes: u64) {
        self.work_notes.room = bytes;
    }

    // ---- leases ----

    /// One of another virtual host is as one that is over.
    pub(crate) fn check_receipt(&self, receipt: &Receipt) -> Result<Slot, Refusal> {
        let queue = self.queues.get(&receipt.queue).filter(|queue| queue.vhost == self.asking.vhost);
        queue.ok_or(Refusal::StaleReceipt)?.leased(receipt)
    }

    /// Ends a lease, if it holds.
    ///
    /// # Errors
    /// [`Refusal::StaleReceipt`]. If the message was taken from its consumer meanwhile, its place in the window is free now.
    pub(crate) fn settle_receipt(
        &mut self,
        receipt: &Receipt,
        outcome: Outcome,
        report: Report,
        step: &mut Step,
    ) -> Result<(), Refusal> {
        let checked = self.check_receipt(receipt);
        if checked.is_ok() {
            self.rule_late(receipt.queue, step);
        }
        match checked {
            Ok(slot) => self.settle(receipt.queue, slot, outcome, report, step),
            Err(_) => {
                let vhost = self.asking.vhost;
                let queue = self.queues.get_mut(&receipt.queue).filter(|queue| queue.vhost == vhost);
                if let Some(queue) = queue {
                    queue.roster.answered(receipt.lease);
                }
            }
        }
        checked.map(drop)
    }

    /// Ends a lease that was checked. What was reported of the work goes into the record of the message, if it ends and has one.
    pub(crate) fn settle(
        &mut self,
        id: QueueId,
        slot: Slot,
        outcome: Outcome,
        report: Report,
        step: &mut Step,
    ) {
        let now = self.now;
        let notes = &mut self.work_notes;
        let queue = self.queues.get_mut(&id).expect("the queue of a lease is there");
        let end = match outcome {
            Outcome::Ack if queue.settings.history.is_none() => {
                return queue.settle(slot, Settled::Acked, step);
            }
            Outcome::Ack => return self.end(id, slot, Ending::Completed, Settled::Acked, report, step),
            Outcome::Nack { delay_ms } => {
                let end = LeaseEnd { delay_ms, report: &report, ..LeaseEnd::of(PutBack::Failed) };
                queue.put_back(now, slot, &end, notes, step)
            }
            Outcome::Release => queue.put_back(now, slot, &LeaseEnd::of(PutBack::Released), notes, step),
            Outcome::Reject | Outcome::Timeout if queue.is_asked_back(slot) => Some(End::Cancelled),
            Outcome::Reject => Some(End::Dies(DeathReason::Rejected)),
            Outcome::Timeout => Some(End::Dies(DeathReason::Timeout)),
        };
        let seq = queue.entries[slot].message.seq;
        match end {
            None => {}
            Some(End::Dies(reason)) => self.dead_letter(id, seq, reason, report, step),
            Some(End::Spent(why)) => {
                self.dead_letter(id, seq, DeathReason::DeliveryLimit, report.or_error(why.error()), step)
            }
            Some(End::Cancelled) => self.end(id, slot, Ending::Cancelled, Settled::Removed, report, step),
        }
    }

    /// Leases what can be leased, and notes when the queue must be looked at again.
    pub(crate) fn dispatch(&mut self, id: QueueId, step: &mut Step) {
        self.dispatch_all(std::iter::once(id), step);
    }

    /// [`Broker::dispatch`] for these. Where they share windows with others, what they have given back may be theirs: all of it
    /// is known before any of them is served, since a queue where nobody shares any more is forgotten with what it gave back.
    fn dispatch_these(&mut self, ids: impl IntoIterator<Item = QueueId>, step: &mut Step) {
        let mut turns: Few<QueueId> = Few::new();
        for id in ids {
            if self.queues.get(&id).is_some_and(|queue| queue.roster.has_shares()) {
                let new = self.windows.turns(id).into_iter().filter(|queue| !turns.contains(queue));
                turns.extend(new.collect::<Few<QueueId>>());
            } else {
                self.dispatch_one(id, step);
            }
        }
        for id in &turns {
            self.tell_shares(*id);
        }
        for id in turns {
            self.dispatch_one(id, step);
            self.tell_shares(id);
        }
    }

    fn dispatch_one(&mut self, id: QueueId, step: &mut Step) {
        self.rule_late(id, step);
        let Some(queue) = self.queues.get_mut(&id) else { return };
        let before = step.effects.len();
        let mut gone = queue.roster.take_done();
        queue.roster.give_place();
        if queue.dispatch(self.now, self.held, &mut self.leases, &mut self.pushes, step) {
            for effect in &step.effects[before..] {
                if let Effect::Served { consumer } = effect
                    && queue.roster.get(*consumer).is_none()
                {
                    gone.push(*consumer);
                }
            }
        }
        if !queue.dying.is_empty() {
            // What was over when its turn came.
            self.stirred.push(id);
        }
        note(queue, self.now, self.fetches, &mut self.schedule, &mut self.totals);
        for consumer in gone {
            if let Some(seat) = self.seats.remove(&consumer) {
                self.sessions.forget_taker(seat.session, consumer);
            }
        }
    }

    /// [`Broker::dispatch`] for these, and for where their dead letters went.
    pub(crate) fn dispatch_all(&mut self, ids: impl Iterator<Item = QueueId>, step: &mut Step) {
        let mut touched: Few<QueueId> = Few::new();
        for id in ids {
            // Receipts of one request are mostly of one queue.
            if touched.last() != Some(&id) {
                touched.push(id);
            }
        }
        self.take_stirred(&mut touched);
        while !touched.is_empty() {
            // What was evicted goes on before anything is leased: it may be more urgent where it goes.
            let mut at = 0;
            while let Some(id) = touched.get(at).copied() {
                self.dead_letter_dying(id, step);
                self.take_stirred(&mut touched);
                at += 1;
            }
            self.dispatch_these(touched.iter().copied(), step);
            touched.clear();
            self.take_stirred(&mut touched);
        }
    }

    fn take_stirred(&mut self, touched: &mut Few<QueueId>) {
        // Asked several times for each message, and nearly always there is none.
        if !self.stirred.is_empty() {
            touched.extend(self.stirred.drain(..));
        }
    }

    pub(crate) fn reschedule(&mut self, id: QueueId) {
        if let Some(queue) = self.queues.get_mut(&id) {
            note(queue, self.now, self.fetches, &mut self.schedule, &mut self.totals);
        }
    }

    // ---- seeing ----

    /// The name of a queue.
    #[must_use]
    pub fn name(&self, id: QueueId) -> Option<&Arc<str>> {
        self.queues.get(&id).map(|queue| &queue.name)
    }

    /// The settings that a queue was declared with.
    ///
    /// # Errors
    /// As [`Broker::id_of`].
    pub fn own_settings(&self, vhost: VhostId, name: &str) -> Result<&Settings, Refusal> {
        Ok(self.queue_ref(self.id_of(vhost, name)?).own())
    }

    /// The settings that hold for a queue: its own, and what policies say.
    ///
    /// # Errors
    /// As [`Broker::id_of`].
    pub fn settings(&self, vhost: VhostId, name: &str) -> Result<&Settings, Refusal> {
        Ok(&self.queue_ref(self.id_of(vhost, name)?).settings)
    }

    /// Whether it is bounded how many messages of a queue are leased at once. False: it is not, or there is no such queue.
    #[must_use]
    pub fn caps_leases(&self, queue: QueueId) -> bool {
        self.queues.get(&queue).is_some_and(|queue| queue.settings.caps_leases())
    }

    /// Whether a consumer, or a pull that waits, has this number.
    #[must_use]
    pub fn has_consumer(&self, consumer: ConsumerId) -> bool {
        self.seats.contains_key(&consumer)
    }

    /// The priority a given one means in a queue, and the form in which its messages keep the given one.
    ///
    /// # Errors
    /// As [`Broker::id_of`], and what the scheme says.
    pub fn map_priority(
        &self,
        vhost: VhostId,
        name: &str,
        given: &Given,
    ) -> Result<(Priority, Original), Refusal> {
        let settings = &self.queue_ref(self.id_of(vhost, name)?).settings;
        Ok((settings.map_priority(given)?, settings.original(given)))
    }

    /// The exchanges of a virtual host.
    ///
    /// # Errors
    /// [`Refusal::NoSuchVhost`].
    pub fn topology(&self, vhost: VhostId) -> Result<&Topology, Refusal> {
        Ok(&self.vhosts.get(vhost)?.topology)
    }

    /// Messages leased and delayed in all queues: those that will change by themselves. As of the last command.
    #[must_use]
    pub fn outstanding(&self) -> u64 {
        self.totals.outstanding
    }

    /// Messages that wait in runs, in all queues. As of the last command.
    #[must_use]
    pub fn spilled_count(&self) -> u64 {
        self.totals.spilled
    }

    /// Bytes, about, of the histories of the messages in memory that ever died, in all queues. As of the last command.
    #[must_use]
    pub fn history_bytes(&self) -> u64 {
        self.totals.history_bytes
    }

    /// The latest time seen.
    #[must_use]
    pub fn now(&self) -> Time {
        self.now
    }

    // ---- finding ----

    /// The number of a queue of a virtual host.
    ///
    /// # Errors
    /// [`Refusal::NoSuchVhost`], [`Refusal::NoSuchQueue`].
    pub fn id_of(&self, vhost: VhostId, name: &str) -> Result<QueueId, Refusal> {
        self.vhosts.get(vhost)?.queue(name)
    }

    /// The number of a queue that whoever asks may use: one's own, or nobody's.
    ///
    /// # Errors
    /// [`Refusal::NoSuchVhost`], [`Refusal::NoSuchQueue`], [`Refusal::QueueLocked`].
    pub(crate) fn usable(&mut self, name: &str, step: &mut Step) -> Result<QueueId, Refusal> {
        let id = self.usable_by(self.asking, name)?;
        self.rule_now(id, step);
        Ok(id)
    }

    /// The number of a queue where whoever asks is.
    ///
    /// # Errors
    /// As [`Broker::id_of`].
    pub(crate) fn named(&mut self, name: &str, step: &mut Step) -> Result<QueueId, Refusal> {
        let id = self.id_of(self.asking.vhost, name)?;
        self.rule_now(id, step);
        Ok(id)
    }

    /// The number of a queue that this one may use: its own, or nobody's.
    ///
    /// # Errors
    /// [`Refusal::NoSuchVhost`], [`Refusal::NoSuchQueue`], [`Refusal::QueueLocked`].
    pub fn usable_by(&self, asker: Asker, name: &str) -> Result<QueueId, Refusal> {
        let id = self.id_of(asker.vhost, name)?;
        let owner = self.queue_ref(id).owner;
        if owner.is_some() && owner != asker.session { Err(Refusal::QueueLocked) } else { Ok(id) }
    }

    pub(crate) fn queue_ref(&self, id: QueueId) -> &Queue {
        self.queues.get(&id).expect("a queue that is named is there")
    }

    pub(crate) fn queue_mut(&mut self, id: QueueId) -> &mut Queue {
        self.queues.get_mut(&id).expect("a queue that is named is there")
    }
}

/// Messages of a queue, or of all of them, that are counted together.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Totals {
    /// Leased and delayed ones.
    outstanding: u64,
    /// Those that wait in runs.
    spilled: u64,
    /// Bytes of histories.
    history_bytes: u64,
}

impl Totals {
    pub(crate) fn change(&mut self, before: Self, now: Self) {
        self.outstanding = self.outstanding - before.outstanding + now.outstanding;
        self.spilled = self.spilled - before.spilled + now.spilled;
        self.history_bytes = self.history_bytes - before.history_bytes + now.history_bytes;
    }
}

/// Notes what the broker knows of a queue: when to look at it again, and how much of it changes by itself.
fn note(
    queue: &mut Queue,
    at: Time,
    fetches: bool,
    schedule: &mut BTreeSet<(Time, QueueId)>,
    totals: &mut Totals,
) {
    if std::mem::take(&mut queue.is_active) {
        queue.active_at = at;
    }
    let (outstanding, spilled) = (queue.outstanding(), queue.spilled);
    let now = Totals { outstanding, spilled, history_bytes: queue.history_bytes };
    totals.change(std::mem::replace(&mut queue.noted, now), now);
    let next = queue.next_deadline(fetches).filter(|_| !queue.is_in_line);
    if queue.scheduled == next {
        return;
    }
    if let Some(when) = queue.scheduled {
        schedule.remove(&(when, queue.id));
    }
    if let Some(when) = next {
        schedule.insert((when, queue.id));
    }
    queue.scheduled = next;
}
