//! What the simulator itself knows: what was published, who takes, who holds what. Kept from requests and answers alone.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use overtake_engine::core::{Answer, Request};
use overtake_engine::{Content, NewMessage, Target};
use overtake_lane::{
    Asker, Broker, Command, ConsumerId, Existing, Identity, LaneChoice, LeaseId, Order, Priority, QueueId,
    Receipt, Route, Seq, SessionId, Settings, State, Time, UrgentCredit, VhostId, WINDOW_MAX, WindowId,
};

use crate::audit::Audit;
use crate::check::Step;
use crate::check::policies::there;
use crate::keys::Group;
use crate::round::Lent;
use crate::rules::{Change, Own, Policies, holds};
use crate::single::Singles;

/// A message as its publisher made it. Its mark is its place in [`Book::letters`].
#[derive(Clone, Debug)]
pub(crate) struct Letter {
    pub(crate) message: NewMessage,
}

impl Letter {
    /// What whoever gets it must see: what its publisher wrote, and how it was published.
    pub(crate) fn says(&self) -> Content {
        let NewMessage { to, ttl_ms, content, .. } = &self.message;
        let route = match to {
            Target::Queue(name) => Route::by("", Arc::clone(name)),
            Target::Exchange { name, routing_key, more_keys, .. } => {
                let keys = [routing_key].into_iter().chain(more_keys).cloned().collect();
                Route { exchange: Arc::clone(name), keys }
            }
        };
        Content { route, ttl_ms: *ttl_ms, ..content.clone() }
    }
}

/// A lease that is out.
#[derive(Clone, Debug)]
pub(crate) struct Hold {
    pub(crate) receipt: Receipt,
    /// `None` for the lease of a pull.
    pub(crate) consumer: Option<ConsumerId>,
    pub(crate) mark: Option<u64>,
    pub(crate) priority: Priority,
    /// When whoever stays has held it for too long.
    pub(crate) until: Time,
    /// When the work on it has taken too long.
    pub(crate) work_ends: Time,
    pub(crate) group: Option<Group>,
}

/// One who takes.
#[derive(Clone, Debug)]
pub(crate) struct Taker {
    pub(crate) queue: QueueId,
    /// `None` for a pull that waits.
    pub(crate) window: Option<Window>,
    /// When a pull gives up.
    pub(crate) until: Time,
    /// Which lanes a pull takes from.
    pub(crate) lanes: LaneChoice,
    /// Who it is of.
    pub(crate) session: Option<SessionId>,
    /// It holds what it got, and takes no more.
    pub(crate) only_holds: bool,
    /// What it gets is settled as it is given.
    pub(crate) no_ack: bool,
    /// It held something for too long, and takes no more.
    pub(crate) is_stopped: bool,
    /// Its session has ended, and what it holds is put back step by step.
    pub(crate) is_retired: bool,
    /// Larger is served first.
    pub(crate) priority: i32,
    /// The window it shares with others of its session.
    pub(crate) shared: Option<WindowId>,
}

impl Taker {
    /// Somebody in a queue, with nothing.
    pub(crate) fn new(queue: QueueId, session: Option<SessionId>, window: Option<Window>) -> Self {
        Self {
            queue,
            window,
            until: Time::NEVER,
            lanes: LaneChoice::default(),
            session,
            only_holds: false,
            no_ack: false,
            is_stopped: false,
            is_retired: false,
            priority: 0,
            shared: None,
        }
    }

    /// Whether it is a consumer that stays.
    pub(crate) fn stays(&self) -> bool {
        self.window.is_some() && !self.only_holds
    }
}

/// Of a consumer that stays.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    pub(crate) len: u32,
    pub(crate) urgent: Option<UrgentCredit>,
    /// What it holds; without acknowledgements, what it has not read.
    pub(crate) held: u32,
    /// Messages that were taken from it while it held them, and that it has not settled since: each has its place still.
    pub(crate) withdrawn: u32,
}

impl Window {
    /// How much of it is taken.
    pub(crate) fn taken(self) -> u32 {
        self.held + self.withdrawn
    }
}

/// The simulator's memory.
#[derive(Debug, Default)]
pub(crate) struct Book {
    pub(crate) letters: Vec<Letter>,
    /// What holds for queues.
    pub(crate) settings: BTreeMap<QueueId, Settings>,
    /// What they were declared with.
    pub(crate) own: BTreeMap<QueueId, Own>,
    pub(crate) policies: Policies,
    pub(crate) takers: BTreeMap<ConsumerId, Taker>,
    pub(crate) holds: BTreeMap<(QueueId, Seq), Hold>,
    /// Leases of messages that were taken from consumers that stay, who have not settled them since.
    withdrawn: BTreeMap<LeaseId, ConsumerId>,
    /// Whether the request takes messages from their holders.
    withdraws: bool,
    /// Every lease ever given.
    pub(crate) leases: BTreeSet<LeaseId>,
    /// What queues are besides their settings, and whose.
    pub(crate) identities: BTreeMap<QueueId, (Identity, Option<SessionId>)>,
    /// The sizes of windows that are shared; 0: no limit.
    pub(crate) windows: BTreeMap<WindowId, u32>,
    /// Who alone is served, where only one is.
    pub(crate) singles: Singles,
}

/// Who asks, and for what.
pub(crate) fn asked_by(request: &Request) -> (Asker, &Request) {
    match request {
        Request::By { asker, request } => (*asker, request),
        request => (Asker::default(), request),
    }
}

impl Book {
    pub(crate) fn hold_of(&self, receipt: &Receipt) -> Option<&Hold> {
        self.holds.get(&(receipt.queue, receipt.seq)).filter(|hold| hold.receipt == *receipt)
    }

    /// Ends a lease.
    pub(crate) fn end(&mut self, queue: QueueId, seq: Seq) -> Option<Hold> {
        let hold = self.holds.remove(&(queue, seq))?;
        if let Some(window) =
            hold.consumer.and_then(|id| self.takers.get_mut(&id)).and_then(|t| t.window.as_mut())
        {
            window.held -= 1;
        }
        if let Some(consumer) = hold.consumer
            && let Some(taker) = self.takers.get(&consumer)
        {
            let queue = taker.queue;
            if taker.only_holds && taker.window.is_none_or(|window| window.held == 0) {
                self.takers.remove(&consumer);
            }
            self.elect(queue);
        }
        Some(hold)
    }

    fn elect(&mut self, queue: QueueId) {
        let is_single = self.settings.get(&queue).is_some_and(|settings| settings.single_active_consumer);
        self.singles.elect(queue, is_single, &self.takers);
    }

    /// What all that share a window hold together.
    pub(crate) fn shared_held(&self, window: WindowId) -> u32 {
        let sharers = self.takers.values().filter(|taker| taker.shared == Some(window) && !taker.no_ack);
        sharers.filter_map(|taker| taker.window).map(|window| window.taken()).sum()
    }

    fn set_window(&mut self, window: WindowId, size: u32, joining: &[ConsumerId]) {
        self.windows.insert(window, size);
        for consumer in joining {
            if let Some(taker) = self.takers.get_mut(consumer).filter(|taker| taker.stays()) {
                taker.shared.get_or_insert(window);
            }
        }
    }

    /// Whether somebody may be given a message of a lane that takes no priority below `floor`.
    pub(crate) fn has_room(&self, consumer: ConsumerId, taker: &Taker, lane: &(Arc<str>, i64)) -> bool {
        let Some(window) = taker.window else { return takes(&taker.lanes, lane) };
        let floor = lane.1;
        if taker.only_holds || taker.is_stopped || !self.singles.serves(taker.queue, consumer) {
            return false;
        }
        let urgent =
            window.urgent.filter(|urgent| floor >= i64::from(urgent.at.0)).map_or(0, |urgent| urgent.extra);
        let fits = |held: u32, len: u32| held < len.saturating_add(urgent);
        let shares = || {
            taker.shared.is_none_or(|id| match self.windows.get(&id) {
                None | Some(0) => true,
                Some(size) => fits(self.shared_held(id), *size),
            })
        };
        fits(window.taken(), self.window_of(taker, window)) && shares()
    }

    /// How many messages somebody holds at most: what it asked for, and no more than its queue allows now.
    pub(crate) fn window_of(&self, taker: &Taker, window: Window) -> u32 {
        let most = self.settings.get(&taker.queue).map_or(u32::MAX, |settings| settings.max_unacked);
        if taker.no_ack || taker.only_holds || most == WINDOW_MAX { window.len } else { window.len.min(most) }
    }

    /// Who takes for a session that has not ended.
    pub(crate) fn of_session(&self, session: SessionId) -> BTreeSet<ConsumerId> {
        let is_of_it = |taker: &Taker| taker.session == Some(session) && !taker.is_retired;
        let of_it = self.takers.iter().filter(|(_, taker)| is_of_it(taker));
        of_it.map(|(id, _)| *id).collect()
    }

    /// Whether a queue may be gone after this request, or after time has passed, without being deleted by anybody.
    pub(crate) fn may_end(&self, queue: QueueId, request: Option<&Request>) -> bool {
        let Some((identity, owner)) = self.identities.get(&queue) else { return false };
        let here = || self.takers.iter().filter(|(_, taker)| taker.queue == queue && !taker.only_holds);
        let unused = self.settings[&queue].expires_ms > 0 && here().next().is_none();
        let ended = match request {
            Some(Request::Do(Command::EndSession { session })) => {
                let leave = self.of_session(*session);
                *owner == Some(*session) || (identity.auto_delete && here().any(|(id, _)| leave.contains(id)))
            }
            Some(Request::Do(Command::Cancel { consumer } | Command::Leave { consumer })) => {
                identity.auto_delete && here().any(|(id, _)| id == consumer)
            }
            _ => false,
        };
        unused || ended
    }

    /// A consumer is gone with all it held.
    pub(crate) fn leave(&mut self, consumer: ConsumerId) {
        self.withdrawn.retain(|_, from| *from != consumer);
        let gone = self.takers.remove(&consumer);
        self.holds.retain(|_, hold| hold.consumer != Some(consumer));
        if let Some(taker) = gone {
            self.elect(taker.queue);
        }
    }

    /// Who holds something still that is to be put back, since their sessions have ended.
    pub(crate) fn retired(&self) -> impl Iterator<Item = ConsumerId> + '_ {
        self.takers.iter().filter(|(_, taker)| taker.is_retired).map(|(id, _)| *id)
    }

    /// The session of a taker has ended: what it holds is put back in this step or in later ones.
    fn retire(&mut self, consumer: ConsumerId) {
        if let Some(taker) = self.takers.get_mut(&consumer) {
            (taker.is_retired, taker.shared) = (true, None);
        }
        self.only_holds(consumer);
    }

    /// A consumer is told that it is over.
    pub(crate) fn ended(&mut self, consumer: ConsumerId) {
        if self.takers.get(&consumer).is_some_and(|taker| !taker.is_retired) {
            self.leave(consumer);
        }
    }

    /// A consumer takes no more and keeps what it holds.
    fn only_holds(&mut self, consumer: ConsumerId) {
        let Some(taker) = self.takers.get_mut(&consumer) else { return };
        let holds = !taker.no_ack && taker.window.is_some_and(|window| window.held > 0);
        if taker.session.is_none() || !holds {
            return self.leave(consumer);
        }
        taker.only_holds = true;
        taker.window.iter_mut().for_each(|window| window.withdrawn = 0);
        let queue = taker.queue;
        self.withdrawn.retain(|_, from| *from != consumer);
        self.elect(queue);
    }

    /// A pull is over: it is gone, or it holds what it got.
    pub(crate) fn pulled(&mut self, consumer: ConsumerId, holds: bool) {
        let Some(taker) = self.takers.remove(&consumer).filter(|_| holds) else { return };
        let window = Some(Window { len: u32::MAX, urgent: None, held: 0, withdrawn: 0 });
        let Taker { queue, session, .. } = taker;
        self.takers.insert(consumer, Taker { only_holds: true, ..Taker::new(queue, session, window) });
    }

    /// A consumer held something for too long.
    pub(crate) fn timed_out(&mut self, consumer: ConsumerId, receipt: &Receipt) {
        self.end(receipt.queue, receipt.seq);
        if let Some(taker) = self.takers.get_mut(&consumer) {
            taker.is_stopped = true;
        }
        self.elect(receipt.queue);
    }

    /// Now, so that it is known until when.
    pub(crate) fn begin(&mut self, now: Time, lent: &Lent) {
        let Lent { consumer, message, is_given, .. } = lent;
        let receipt = message.receipt;
        self.leases.insert(receipt.lease);
        let window = self.takers.get_mut(consumer).and_then(|taker| taker.window.as_mut());
        let stays = window.map(|window| window.held += 1).is_some();
        if *is_given {
            return;
        }
        let mark = crate::refold::mark_of(message.content.content_type());
        let settings = self.settings.get(&receipt.queue);
        let holds_ms = settings.map_or(0, |settings| if stays { settings.consumer_timeout_ms } else { 0 });
        let works_ms = settings.map_or(0, |settings| settings.run_timeout_ms);
        let after = |ms| if ms > 0 { now.after(ms) } else { Time::NEVER };
        let (until, work_ends) = (after(holds_ms), after(works_ms));
        let consumer = stays.then_some(*consumer);
        let (priority, group) = (message.message.level, Group::of(message.message.key.as_deref()));
        let hold = Hold { receipt, consumer, mark, priority, until, work_ends, group };
        self.holds.insert((receipt.queue, receipt.seq), hold);
    }

    /// Before a request is done: who asks for what.
    pub(crate) fn asks(&mut self, now: Time, request: &Request, broker: &Broker) {
        let (Asker { session, vhost }, request) = asked_by(request);
        if let Request::Lease { consumer, lease } = request
            && let Ok(queue) = broker.id_of(vhost, &lease.queue)
        {
            let until = now.after(lease.wait_ms);
            let lanes = lease.lanes.clone();
            self.takers.insert(*consumer, Taker { until, lanes, ..Taker::new(queue, session, None) });
        }
        if let Request::Get { get, .. } = request
            && let Ok(queue) = broker.id_of(vhost, &get.queue)
        {
            let window = Some(Window { len: 1, urgent: None, held: 0, withdrawn: 0 });
            let taker = Taker::new(queue, session, window);
            self.takers.insert(get.consumer, Taker { only_holds: true, no_ack: get.no_ack, ..taker });
        }
    }

    /// After a request is done: what it changed.
    pub(crate) fn answered(&mut self, request: &Request, answer: &Answer, broker: &Broker) {
        let (Asker { session, vhost }, request) = asked_by(request);
        self.withdraws = matches!(
            request,
            Request::Change { change: overtake_engine::Change::Remove | overtake_engine::Change::Cancel, .. }
                | Request::Do(Command::Remove { .. } | Command::CancelMessages { .. })
        );
        match request {
            Request::Do(Command::SetWindow { window, size, joining }) => {
                self.set_window(*window, *size, joining);
            }
            Request::SetWindow { number, size, joining } => {
                let session = session.expect("a window is shared within a session");
                self.set_window(WindowId { session, number: *number }, *size, joining);
            }
            Request::Do(Command::Leave { consumer }) => self.only_holds(*consumer),
            Request::Do(Command::Took { consumer, messages }) => {
                let taker = self.takers.get_mut(consumer).filter(|taker| taker.no_ack);
                if let Some(window) = taker.and_then(|taker| taker.window.as_mut()) {
                    window.held = window.held.saturating_sub(*messages);
                }
            }
            Request::Do(Command::DeclareQueue { name, settings, identity, existing }) => {
                let id = broker.id_of(vhost, name).expect("a declared queue is there");
                let is_made = matches!(answer, Answer::Declared(declared) if declared.made);
                if is_made || *existing != Existing::Same {
                    let (name, settings) = (Arc::clone(name), (**settings).clone());
                    self.own.insert(id, Own { vhost, name, settings });
                    self.rule(id);
                    self.elect(id);
                }
                if is_made {
                    self.identities.insert(id, (identity.clone(), session.filter(|_| identity.exclusive)));
                }
            }
            Request::Do(Command::EndSession { session }) => {
                for consumer in self.of_session(*session) {
                    self.retire(consumer);
                }
                self.windows.retain(|window, _| window.session != *session);
            }
            Request::Consume { consumer, consume } => {
                let queue = broker.id_of(vhost, &consume.queue).expect("a consumer has a queue");
                let no_ack = consume.no_ack;
                let len = consume.window.map_or(if no_ack { 10_000 } else { u32::MAX }, |len| len.max(1));
                let urgent = consume.urgent.filter(|_| !no_ack);
                let shared = consume.shared.zip(session);
                let shared = shared.map(|(number, session)| WindowId { session, number });
                let taker = Taker::new(queue, session, Some(Window { len, urgent, held: 0, withdrawn: 0 }));
                let priority = consume.priority;
                self.takers.insert(*consumer, Taker { no_ack, priority, shared, ..taker });
                self.elect(queue);
            }
            Request::Do(Command::Cancel { consumer }) => self.leave(*consumer),
            // One that was served before that holds what it got, whoever hears of it.
            Request::GiveUp { consumer } => {
                self.takers.retain(|id, taker| id != consumer || taker.only_holds);
            }
            Request::Do(Command::Settle { receipts, .. }) => {
                let Answer::Each(results) = answer else { return };
                for (receipt, result) in receipts.iter().zip(results) {
                    match result {
                        Ok(()) => drop(self.end(receipt.queue, receipt.seq)),
                        Err(_) => self.settled_late(vhost, receipt),
                    }
                }
            }
            Request::Do(Command::Finish { receipt, .. }) => match answer {
                Answer::Each(results) if results[..] == [Ok(())] => {
                    self.end(receipt.queue, receipt.seq);
                }
                _ => self.settled_late(vhost, receipt),
            },
            Request::Publish { settlements, .. } => {
                for (receipt, _) in settlements {
                    self.end(receipt.queue, receipt.seq);
                }
            }
            _ => {}
        }
    }

    /// Notes a settlement that was refused: maybe of a message that was taken from its consumer. A receipt of another virtual host is
    /// unknown.
    fn settled_late(&mut self, vhost: VhostId, receipt: &Receipt) {
        if self.own.get(&receipt.queue).is_none_or(|own| own.vhost != vhost) {
            return;
        }
        let consumer = self.withdrawn.remove(&receipt.lease);
        let taker = consumer.and_then(|consumer| self.takers.get_mut(&consumer));
        if let Some(window) = taker.and_then(|taker| taker.window.as_mut()) {
            window.withdrawn -= 1;
        }
    }

    /// Ends a lease. If the message was taken from a consumer that stays, it keeps its place in the consumer's window.
    fn withdraw(&mut self, now: Time, queue: QueueId, seq: Seq) {
        let Some(hold) = self.holds.get(&(queue, seq)).cloned() else { return };
        let stays =
            |id: &ConsumerId| self.takers.get(id).is_some_and(|taker| taker.stays() && !taker.only_holds);
        let consumer = hold.consumer.filter(stays).filter(|_| self.withdraws || hold.work_ends <= now);
        self.end(queue, seq);
        let taker = consumer.and_then(|consumer| self.takers.get_mut(&consumer));
        if let (Some(consumer), Some(window)) = (consumer, taker.and_then(|taker| taker.window.as_mut())) {
            window.withdrawn += 1;
            self.withdrawn.insert(hold.receipt.lease, consumer);
        }
    }

    /// Drops holds of what is no longer leased, as the broker stands now.
    pub(crate) fn prune(&mut self, now: Time, audit: &Audit, broker: &Broker) {
        let is_retired = |id: ConsumerId| self.takers.get(&id).is_some_and(|taker| taker.is_retired);
        let ended: Vec<(QueueId, Seq)> = (self.holds.iter())
            .filter(|((queue, seq), hold)| match audit.find(*queue, *seq).map(|message| message.state) {
                Some(State::Leased { lease, .. }) => lease != hold.receipt.lease,
                Some(State::Dead) | None => true,
                // What a consumer holds stands in no fact; of one whose session has ended it is put back at any time.
                Some(_) => {
                    hold.consumer.is_none_or(|id| is_retired(id) && broker.leased(&hold.receipt).is_none())
                }
            })
            .map(|(key, _)| *key)
            .collect();
        for (queue, seq) in ended {
            self.withdraw(now, queue, seq);
        }
        self.withdraws = false;
        self.settings.retain(|queue, _| audit.queues.contains_key(queue));
        self.own.retain(|queue, _| audit.queues.contains_key(queue));
        self.identities.retain(|queue, _| audit.queues.contains_key(queue));
    }

    /// A new life: nobody stays, and of the leases only those the recovery found.
    pub(crate) fn recovered(
        &mut self,
        broker: &Broker,
        audit: &Audit,
        mark_of: impl Fn(QueueId, Seq) -> Option<u64>,
    ) {
        self.takers.clear();
        self.holds.clear();
        self.withdrawn.clear();
        self.windows.clear();
        self.singles = Singles::default();
        for (queue, message) in audit.messages() {
            if let State::Leased { lease, .. } = message.state {
                let receipt = Receipt { queue, seq: message.seq, lease };
                let mark = mark_of(queue, message.seq);
                let work_ends = message.work().map_or(Time::NEVER, |work| work.ends);
                let (until, priority) = (Time::NEVER, message.priority);
                let group = Group::of(message.key());
                let hold = Hold { receipt, consumer: None, mark, priority, until, work_ends, group };
                self.holds.insert((queue, message.seq), hold);
            }
        }
        self.settings.clear();
        self.own.clear();
        self.identities.clear();
        self.policies = there(broker);
        for (id, seen) in &audit.queues {
            let view = broker.view(Time(0), seen.vhost, &seen.name).expect("a named queue is there");
            self.identities.insert(*id, (view.identity, None));
            let (vhost, name) = (seen.vhost, Arc::clone(&seen.name));
            self.own.insert(*id, Own { vhost, name, settings: view.settings });
            self.rule(*id);
        }
    }

    /// A queue is there, and whether it was before is not known: if not, it was declared with these settings, and is nobody's.
    pub(crate) fn finds(&mut self, queue: QueueId, vhost: VhostId, name: Arc<str>, settings: Settings) {
        if self.own.contains_key(&queue) {
            return;
        }
        self.own.insert(queue, Own { vhost, name, settings });
        self.identities.insert(queue, (Identity::default(), None));
        self.rule(queue);
    }

    /// What holds for a queue, by its own settings and the policies.
    fn rule(&mut self, queue: QueueId) {
        self.settings.insert(queue, holds(&self.own[&queue], &self.policies));
    }

    /// Policies are set, or removed, or go with their virtual host.
    pub(crate) fn policies_change(&mut self, change: &Change) {
        change.apply(&mut self.policies);
        for id in self.own.keys().copied().collect::<Vec<_>>() {
            self.rule(id);
        }
    }

    /// What will hold for the queues of a virtual host of which a policy was set or removed; for none where no such thing was done.
    pub(crate) fn ruled_by(&self, step: &Step<'_>) -> BTreeMap<QueueId, Settings> {
        let Some(change @ (Change::Sets(..) | Change::Removes(..))) = Change::of(step) else {
            return BTreeMap::new();
        };
        let mut policies = self.policies.clone();
        change.apply(&mut policies);
        let here = self.own.iter().filter(|(_, own)| own.vhost == step.vhost);
        here.map(|(id, own)| (*id, holds(own, &policies))).collect()
    }

    /// Leases out in a queue, and in each of its lanes.
    pub(crate) fn leased(&self, queue: QueueId) -> (u64, BTreeMap<i64, u64>) {
        let mut lanes = BTreeMap::new();
        let settings = &self.settings[&queue];
        let held = self.holds.range((queue, Seq(0))..=(queue, Seq(u64::MAX)));
        let mut count = 0;
        for (_, hold) in held {
            count += 1;
            *lanes.entry(lane_of(settings, hold.priority)).or_default() += 1;
        }
        (count, lanes)
    }

    /// Messages held, by their group.
    pub(crate) fn out(&self, queue: QueueId) -> BTreeMap<Group, u64> {
        let mut out = BTreeMap::new();
        let held = self.holds.range((queue, Seq(0))..=(queue, Seq(u64::MAX)));
        for group in held.filter_map(|(_, hold)| hold.group) {
            *out.entry(group).or_default() += 1;
        }
        out
    }
}

/// The lane of a priority, the larger the more urgent.
pub(crate) fn lane_of(settings: &Settings, priority: Priority) -> i64 {
    match &settings.order {
        Order::Priority => i64::from(priority.0),
        Order::Fifo => 0,
        Order::Lanes(bands) => {
            let takes = |band: &overtake_lane::Band| {
                band.from
                    .as_ref()
                    .is_none_or(|from| settings.scheme.map(from).is_ok_and(|from| priority >= from))
            };
            let at = bands.iter().position(takes).expect("the last lane takes everything");
            (bands.len() - 1 - at) as i64
        }
    }
}

/// The name of a lane, and the least urgent priority it takes.
pub(crate) fn lane_name(settings: &Settings, lane: i64) -> (Arc<str>, i64) {
    match &settings.order {
        Order::Priority => (Arc::from(settings.scheme.name(Priority(lane as i32)).as_ref()), lane),
        Order::Fifo => (Arc::from(overtake_lane::FIFO_LANE), i64::from(i32::MIN)),
        Order::Lanes(bands) => {
            let band = &bands[bands.len() - 1 - lane as usize];
            let from = band.from.as_ref().and_then(|from| settings.scheme.map(from).ok());
            (Arc::from(band.name.as_str()), from.map_or(i64::from(i32::MIN), |from| i64::from(from.0)))
        }
    }
}

/// Whether somebody who takes from these lanes takes from the one of this name and floor.
pub(crate) fn takes(choice: &LaneChoice, (name, floor): &(Arc<str>, i64)) -> bool {
    *floor >= i64::from(choice.at_least.0) && !choice.except.contains(name)
}

/// The cap of a lane, 0 for none.
pub(crate) fn lane_cap(settings: &Settings, lane: i64) -> u64 {
    if settings.lanes.is_empty() {
        return 0;
    }
    settings.lanes.get(&*lane_name(settings, lane).0).map_or(0, |lane| u64::from(lane.max_active))
}
