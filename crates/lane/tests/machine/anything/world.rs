//! A world that is asked, and what it remembers of it to judge what comes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use overtake_lane::{
    Address, Asker, Binding, BrowseOrder, Command, Consume, ConsumerId, Delivery, Destination, Existing, Get,
    Headers, Identity, LaneChoice, LeaseTerm, MessageView, Options, Outcome, Overflow, Place, Publish, Pull,
    QueueId, Receipt, Refusal, Reply, RouteCopy, Seq, SessionId, Status, Time, Urgency, UrgentCredit,
    VhostId, VhostSettings, Which, WindowId,
};
use proptest::sample::Index;

use super::drawing::*;
use crate::watch::{Watch, browse};

/// Who takes, as the test knows it from what it asked and what it was told.
#[derive(Clone, Debug)]
pub(super) struct Taker {
    pub(super) vhost: VhostId,
    pub(super) queue: Arc<str>,
    pub(super) window: u32,
    pub(super) urgent: Option<UrgentCredit>,
    pub(super) priority: i32,
    pub(super) stays: bool,
    pub(super) terms: Terms,
    /// The step it came with.
    pub(super) joined: u64,
    /// Of one without acknowledgements, what it has not read.
    pub(super) unread: u32,
    /// What was removed while it held it, and what it has not settled since.
    pub(super) withdrawn: BTreeSet<Receipt>,
    /// It held something too long.
    pub(super) is_stopped: bool,
}

pub(super) type Snapshot = BTreeMap<(QueueId, Seq), MessageView>;

pub(super) struct World {
    pub(super) watch: Watch,
    pub(super) takers: BTreeMap<ConsumerId, Taker>,
    /// Those who left and may hold something still.
    pub(super) left: BTreeMap<ConsumerId, Terms>,
    /// Shared windows that have a size.
    pub(super) windows: BTreeMap<WindowId, u32>,
    /// Where everything is asked.
    pub(super) vhost: VhostId,
    /// The numbers that the virtual hosts had last.
    pub(super) vhosts: [VhostId; VHOSTS.len()],
    /// Queues that may end by themselves, or with a restart or a session.
    pub(super) passing: BTreeSet<QueueId>,
    /// Given out and not seen to end.
    pub(super) deliveries: Vec<Delivery>,
    pub(super) next: u64,
    pub(super) held: bool,
    /// What it was told, when it asked last.
    pub(super) told: String,
}

/// What may have happened to messages in a step.
#[derive(Default)]
pub(super) struct Licence {
    pub(super) settled: Vec<(Receipt, Outcome)>,
    pub(super) removes: bool,
    pub(super) publishes: bool,
    pub(super) reprioritises: bool,
    pub(super) replays: bool,
    pub(super) cancels: bool,
    pub(super) extends: bool,
    pub(super) restarts: bool,
    /// Limits are new, and what is over them goes.
    pub(super) bounds: bool,
}

impl World {
    pub(super) fn new(keep: Option<usize>) -> Self {
        let options =
            Options { life: 1, seed: 7, max_message_bytes: 35, default_ttl_ms: 90_000, ..Options::default() };
        let mut watch = Watch::new(options, Time(1_000_000));
        if let Some(keep) = keep {
            watch.spill(keep);
        }
        Self {
            watch,
            takers: BTreeMap::new(),
            left: BTreeMap::new(),
            windows: BTreeMap::new(),
            vhost: VhostId::DEFAULT,
            vhosts: [VhostId::DEFAULT, VhostId(u32::MAX), VhostId(u32::MAX)],
            passing: BTreeSet::new(),
            deliveries: Vec::new(),
            next: 100,
            held: false,
            told: String::new(),
        }
    }

    pub(super) fn snapshot(&self) -> Snapshot {
        let all = self.watch.broker.all_views(self.watch.now).flat_map(|view| {
            let id = view.queue;
            let views = browse(&self.watch.broker, view.vhost, &view.name, BrowseOrder::Published);
            views.into_iter().map(move |view| ((id, view.seq), view))
        });
        all.collect()
    }

    /// All that can be seen, but for where contents are now.
    pub(super) fn picture(&self) -> Vec<String> {
        let mut picture = vec![self.told.clone()];
        for mut view in self.snapshot().into_values() {
            view.place = self.watch.first_place(view.place);
            picture.push(format!("{view:?}"));
        }
        let lanes = self.watch.broker.all_views(self.watch.now);
        let lanes = lanes.map(|mut view| {
            // Where messages wait is what brokers may differ in.
            for lane in &mut view.lanes {
                (lane.spilled, lane.spilled_bytes) = (0, 0);
            }
            format!("{:?} {:?} {:?}", view.lanes, view.policy, view.ruled)
        });
        picture.extend(lanes);
        let leases = self.deliveries.iter().map(|given| (given.consumer, given.receipt, given.count));
        picture.extend(leases.map(|lease| format!("{lease:?}")));
        picture
    }

    pub(super) fn ask(&mut self, command: Command, licence: &Licence) -> Result<Reply, Refusal> {
        let before = self.snapshot();
        let is_publish = matches!(command, Command::Publish(_));
        let (reply, step) = self.watch.apply(self.said_here(command));
        self.told = format!("{reply:?}");
        let may_die = is_publish && reply == Err(Refusal::QueueFull);
        if reply.is_err() && !(may_die && self.dead_letters_what_it_refuses()) {
            assert!(
                step.facts.is_empty() && step.effects.is_empty(),
                "refused, but something happened: {step:?}"
            );
        }
        self.judge(&before, &step, licence);
        reply
    }

    /// As it is asked in the virtual host at hand.
    fn said_here(&self, command: Command) -> Command {
        match command {
            Command::By { asker: Asker { session, .. }, command } => {
                Command::By { asker: Asker { session, vhost: self.vhost }, command }
            }
            command if self.vhost == VhostId::DEFAULT => command,
            command => Command::By { asker: Asker::in_vhost(self.vhost), command: Box::new(command) },
        }
    }

    pub(super) fn dead_letters_what_it_refuses(&self) -> bool {
        let mut views = self.watch.broker.all_views(self.watch.now);
        views.any(|view| view.effective_settings().overflow == Overflow::RejectDeadLetter)
    }

    pub(super) fn ask_by(
        &mut self,
        session: u64,
        command: Command,
        licence: &Licence,
    ) -> Result<Reply, Refusal> {
        if session == 0 {
            return self.ask(command, licence);
        }
        let (asker, command) = (Asker::connected(SessionId(session)), Box::new(command));
        self.ask(Command::By { asker, command }, licence)
    }

    /// A new number.
    pub(super) fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    pub(super) fn take(&mut self, consumer: ConsumerId, taker: Taker, command: Command) {
        let session = taker.terms.session;
        let (queue, is_exclusive) = (Arc::clone(&taker.queue), taker.terms.exclusive);
        let others = self
            .takers
            .values()
            .filter(|other| other.stays && (other.vhost, &other.queue) == (self.vhost, &queue));
        let is_alone = taker.stays && others.clone().any(|other| is_exclusive || other.terms.exclusive);
        let view = self.watch.broker.view(self.watch.now, self.vhost, &queue);
        let is_locked =
            view.as_ref().is_ok_and(|view| view.owner.is_some_and(|owner| owner != SessionId(session)));
        let expected = match view {
            Err(refusal) => Err(refusal),
            Ok(_) if is_locked => Err(Refusal::QueueLocked),
            Ok(_) if is_alone => Err(Refusal::ConsumerExclusive),
            Ok(_) => Ok(()),
        };
        if expected.is_ok() {
            self.takers.insert(consumer, taker);
        }
        let answer = self.ask_by(session, command, &Licence::default());
        assert_eq!(answer.map(drop), expected);
    }

    pub(super) fn act(&mut self, op: &Op) {
        // Time that has passed is a step of its own, so that a refusal can be seen to change nothing.
        match op {
            Op::Declare { queue, settings } => {
                let (name, settings) = (QUEUES[*queue].into(), settings.clone());
                let _ = self.ask(Command::declare(name, settings), &Licence::default());
            }
            Op::Delete { queue, if_empty, if_unused } => {
                let (name, if_empty, if_unused) = (QUEUES[*queue].into(), *if_empty, *if_unused);
                let licence = Licence { removes: true, ..Licence::default() };
                let _ = self.ask(Command::DeleteQueue { name, if_empty, if_unused }, &licence);
            }
            Op::Publish(message) => {
                let publish = self.publish(message);
                let licence = Licence { publishes: true, ..Licence::default() };
                let _ = self.ask(Command::Publish(publish), &licence);
            }
            Op::Transact { publishes, settles } => self.transact(publishes, settles),
            Op::Consume { id, queue, window, urgent, priority, terms } => {
                let consumer = ConsumerId(*id);
                let (queue, terms) = (Arc::<str>::from(QUEUES[*queue]), *terms);
                let consume = Consume {
                    window: Some(*window),
                    shared: terms.shared.map(|number| window_of(terms.session, number)),
                    urgent: *urgent,
                    priority: *priority,
                    exclusive: terms.exclusive,
                    no_ack: terms.no_ack,
                    ..Consume::new(consumer, Arc::clone(&queue))
                };
                if self.takers.contains_key(&consumer) || self.left.contains_key(&consumer) {
                    return;
                }
                let joined = self.number();
                let taker = Taker {
                    vhost: self.vhost,
                    queue,
                    window: *window,
                    urgent: *urgent,
                    priority: *priority,
                    stays: true,
                    terms,
                    joined,
                    unread: 0,
                    withdrawn: BTreeSet::new(),
                    is_stopped: false,
                };
                self.take(consumer, taker, Command::Consume(consume));
            }
            Op::Cancel { id } => {
                let consumer = ConsumerId(*id);
                let licence = Licence { cancels: true, ..Licence::default() };
                self.takers.remove(&consumer);
                self.left.remove(&consumer);
                self.watch.forget(consumer);
                let _ = self.ask(Command::Cancel { consumer }, &licence);
            }
            Op::Make { queue, settings, identity, existing, session } => {
                let (durable, exclusive, auto_delete) = *identity;
                let identity = Identity { durable, exclusive, auto_delete, arguments: [7].into() };
                let there = self.watch.broker.view(self.watch.now, self.vhost, QUEUES[*queue]).ok();
                let same = there.as_ref().map(|view| Box::new(view.settings.clone()));
                let settings = settings.clone().or(same).unwrap_or_default();
                let differs = there.as_ref().is_some_and(|view| match existing {
                    Existing::Update => false,
                    Existing::Same => {
                        let has_others = view.identity.arguments != identity.arguments;
                        !view.identity.is_same(&identity) || (has_others && view.settings != *settings)
                    }
                    Existing::From(before) => view.settings != **before,
                }) || (there.is_none() && matches!(existing, Existing::From(_)));
                let existing = existing.clone();
                let name = QUEUES[*queue].into();
                let declare = Command::DeclareQueue { name, settings, identity, existing };
                let answer = self.ask_by(*session, declare, &Licence::default());
                assert!(!differs || answer.is_err(), "one that differs is refused");
            }
            Op::Get { queue, no_ack, session } => {
                let (consumer, queue) = (ConsumerId(self.number()), QUEUES[*queue].into());
                let get = Get { consumer, queue, no_ack: *no_ack };
                let _ = self.ask_by(*session, Command::Get(get), &Licence::default());
            }
            Op::Leave { id } => {
                let consumer = ConsumerId(*id);
                if let Some(taker) = self.takers.remove(&consumer) {
                    self.left.insert(consumer, taker.terms);
                    let cancels = taker.terms.session == 0;
                    let _ = self.ask(Command::Leave { consumer }, &Licence { cancels, ..Licence::default() });
                }
            }
            Op::Took { id, messages } => {
                if let Some(taker) = self.takers.get_mut(&ConsumerId(*id)) {
                    taker.unread = taker.unread.saturating_sub(*messages);
                    let took = Command::Took { consumer: ConsumerId(*id), messages: *messages };
                    let _ = self.ask(took, &Licence::default());
                }
            }
            Op::SetWindow { window: number, size, joining } => {
                let window = window_of(1, *number);
                self.windows.insert(window, *size);
                let joining: Vec<ConsumerId> = joining.iter().copied().map(ConsumerId).collect();
                for consumer in &joining {
                    let taker = self.takers.get_mut(consumer);
                    if let Some(taker) = taker.filter(|taker| taker.stays && taker.terms.session == 1) {
                        taker.terms.shared.get_or_insert(*number);
                    }
                }
                let _ = self.ask(Command::SetWindow { window, size: *size, joining }, &Licence::default());
            }
            Op::EndSession { session } => {
                let session = SessionId(*session);
                self.left.retain(|_, terms| terms.session != session.0);
                self.windows.retain(|window, _| window.session != session);
                let licence = Licence { cancels: true, ..Licence::default() };
                let _ = self.ask(Command::EndSession { session }, &licence);
                let mut all = self.takers.values();
                assert!(all.all(|taker| taker.terms.session != session.0), "all of it has ended");
            }
            Op::Pull { queue, max, visibility_ms, wait_ms } => {
                let consumer = ConsumerId(self.number());
                let queue: Arc<str> = QUEUES[*queue].into();
                let taker = Taker {
                    vhost: self.vhost,
                    queue: Arc::clone(&queue),
                    window: *max,
                    urgent: None,
                    priority: 0,
                    stays: false,
                    terms: Terms::default(),
                    joined: consumer.0,
                    unread: 0,
                    withdrawn: BTreeSet::new(),
                    is_stopped: false,
                };
                let pull = Pull {
                    consumer,
                    queue,
                    max: *max,
                    max_bytes: u64::from(*max & 1) * 9,
                    term: visibility_ms.map_or(LeaseTerm::OfQueue, LeaseTerm::Ms),
                    lanes: LaneChoice::default(),
                    until: self.watch.now.after(*wait_ms),
                };
                self.take(consumer, taker, Command::Pull(pull));
            }
            Op::Settle { which, outcome } => {
                let receipts: Vec<Receipt> = which.iter().filter_map(|index| self.receipt(index)).collect();
                let settled = receipts.iter().map(|receipt| (*receipt, *outcome)).collect();
                let licence = Licence { settled, ..Licence::default() };
                let before = self.snapshot();
                let held: Vec<bool> =
                    receipts.iter().map(|receipt| self.held_before(&before, receipt)).collect();
                let is_here =
                    |receipt: &&Receipt| self.watch.broker.vhost_of(receipt.queue) == Some(self.vhost);
                for receipt in receipts.iter().filter(is_here) {
                    for taker in self.takers.values_mut() {
                        taker.withdrawn.remove(receipt);
                    }
                }
                let reply =
                    self.ask(Command::Settle { receipts: receipts.clone(), outcome: *outcome }, &licence);
                let Ok(Reply::Each(results)) = reply else { panic!("{reply:?}") };
                for (at, (receipt, result)) in receipts.iter().zip(results).enumerate() {
                    let first = !receipts[..at].contains(receipt);
                    assert_eq!(
                        result.is_ok(),
                        first && held[at],
                        "a receipt holds while its lease does: {receipt:?}"
                    );
                }
            }
            Op::Extend { which, ms } => {
                if let Some(receipt) = self.receipt(which) {
                    let licence = Licence { extends: true, ..Licence::default() };
                    let _ =
                        self.ask(Command::Extend { receipts: vec![receipt], visibility_ms: *ms }, &licence);
                }
            }
            Op::Reprioritise { queue, which, priority } => {
                let licence = Licence { reprioritises: true, ..Licence::default() };
                let (queue, which) = (QUEUES[*queue].into(), self.which(*queue, which));
                let priority = (*priority).into();
                let _ = self.ask(Command::Reprioritise { queue, which, priority }, &licence);
            }
            Op::Remove { queue, which } => {
                let licence = Licence { removes: true, ..Licence::default() };
                let (queue, which) = (QUEUES[*queue].into(), self.which(*queue, which));
                let _ = self.ask(Command::Remove { queue, which }, &licence);
            }
            Op::Purge { queue, status } => {
                let licence = Licence { removes: true, ..Licence::default() };
                let _ = self.ask(
                    Command::Purge { queue: QUEUES[*queue].into(), status: *status, expect: None },
                    &licence,
                );
            }
            Op::Replay { queue, which, promote } => {
                let licence = Licence { replays: true, ..Licence::default() };
                let (queue, which) = (QUEUES[*queue].into(), self.which(*queue, which));
                let promote = promote.map(Into::into);
                let _ = self.ask(Command::Replay { queue, which, promote }, &licence);
            }
            Op::Bind { queue, key } => {
                let _ = self.ask(Command::Bind(binding(*queue, key)), &Licence::default());
                let _ = self.ask(Command::Bind(fanout(*queue)), &Licence::default());
            }
            Op::Unbind { queue, key } => {
                let _ = self.ask(Command::Unbind(binding(*queue, key)), &Licence::default());
            }
            Op::SetPolicy { kind, name, policy } => {
                let (kind, name, policy) = (*kind, POLICIES[*name].into(), policy.clone());
                let licence = Licence { bounds: true, ..Licence::default() };
                let set = self.ask(Command::SetPolicy { kind, name, policy }, &licence);
                let is_there = self.watch.broker.topology(self.vhost).is_ok();
                assert_eq!(set, if is_there { Ok(Reply::Done) } else { Err(Refusal::NoSuchVhost) });
            }
            Op::RemovePolicy { kind, name } => {
                let licence = Licence { bounds: true, ..Licence::default() };
                let (kind, name) = (*kind, POLICIES[*name].into());
                let _ = self.ask(Command::RemovePolicy { kind, name }, &licence);
            }
            Op::Wait { ms } => {
                let before = self.snapshot();
                let step = self.watch.wait(*ms);
                self.judge(&before, &step, &Licence::default());
            }
            Op::Hold(held) => {
                let before = self.snapshot();
                self.held = *held;
                let step = self.watch.hold(*held);
                self.judge(&before, &step, &Licence::default());
            }
            Op::PlanRewrite { at, many } => self.watch.plan_rewrite(at.index(1 << 16), *many),
            Op::EndRewrite { nth, is_written } => self.watch.end_rewrite(nth.index(1 << 16), *is_written),
            Op::At { vhost } => self.vhost = self.vhosts[*vhost],
            Op::DeclareVhost { vhost, max_queues } => self.declare_vhost(*vhost, *max_queues),
            Op::DeleteVhost { vhost } => self.delete_vhost(*vhost),
            Op::Restart => {
                let before = self.snapshot();
                self.takers.clear();
                self.left.clear();
                self.windows.clear();
                self.held = false;
                let step = self.watch.restart();
                self.judge(&before, &step, &Licence { restarts: true, ..Licence::default() });
            }
        }
    }

    fn declare_vhost(&mut self, at: usize, max_queues: Option<u64>) {
        let settings = Box::new(VhostSettings { max_queues, ..VhostSettings::default() });
        let declare = Command::DeclareVhost { name: VHOSTS[at].into(), settings };
        let reply = self.ask(declare, &Licence::default());
        let Ok(Reply::VhostDeclared(vhost)) = reply else { panic!("{reply:?}") };
        self.vhosts[at] = vhost;
    }

    /// With all that is in it, and nothing else.
    fn delete_vhost(&mut self, at: usize) {
        let name = VHOSTS[at];
        let there = self.watch.broker.vhost(name);
        let before: BTreeSet<QueueId> = self.queues().collect();
        let licence = Licence { removes: true, ..Licence::default() };
        let reply = self.ask(Command::DeleteVhost { name: name.into() }, &licence);
        match there {
            Err(refusal) => assert_eq!(reply, Err(refusal)),
            Ok(_) if at == 0 => assert_eq!(reply, Err(Refusal::VhostReserved)),
            Ok(there) => {
                assert_eq!(reply, Ok(Reply::Done));
                let gone = before.len() - self.queues().count();
                assert_eq!(gone as u64, there.queues, "its queues are gone, and no others");
            }
        }
    }

    fn queues(&self) -> impl Iterator<Item = QueueId> {
        self.watch.broker.all_views(self.watch.now).map(|view| view.queue)
    }

    pub(super) fn transact(&mut self, publishes: &[Message], settles: &[(Index, Outcome)]) {
        let publishes: Vec<Publish> = publishes.iter().map(|message| self.publish(message)).collect();
        let settlements: Vec<(Receipt, Outcome)> =
            settles.iter().filter_map(|(index, outcome)| Some((self.receipt(index)?, *outcome))).collect();
        let licence = Licence { settled: settlements.clone(), publishes: true, ..Licence::default() };
        let _ = self.ask(Command::Transact { publishes, settlements }, &licence);
    }

    pub(super) fn publish(&mut self, message: &Message) -> Publish {
        self.next += 1;
        let to = match message.queue {
            Some(queue) => Address::Queue(QUEUES[queue].into()),
            None if message.bytes.is_multiple_of(3) => self.copies(message),
            None => Address::Exchange {
                name: if message.key_route == "#" { "amq.fanout".into() } else { "amq.topic".into() },
                routing_key: message.key_route.into(),
                more_keys: Vec::new(),
                marks: Arc::new(Headers::new()),
                mandatory: message.bytes.is_multiple_of(2),
            },
        };
        Publish {
            to,
            priority: message.priority.into(),
            id: message.id.map(|id| format!("id{id}").into()),
            origin: None,
            key: message.key.map(|key| format!("key{key}").into()),
            key_weight: message.key.and_then(|key| (key > 0).then(|| 1 + message.bytes % 5)),
            ttl_ms: message.ttl_ms,
            base_ttl_ms: None,
            delay_ms: message.delay_ms,
            bytes: message.bytes,
            place: Place(self.next),
        }
    }

    /// As routes would have it: another level and time to live in each queue, and one queue that is not there.
    fn copies(&self, message: &Message) -> Address {
        let copy = |(at, queue): (usize, &str)| RouteCopy {
            queue: queue.into(),
            urgency: match (message.bytes as usize + at) % 12 {
                10 => Urgency::Own,
                11 => Urgency::Level(None),
                level => Urgency::Level(Some(level as u8)),
            },
            ttl_ms: message.ttl_ms.filter(|ttl| *ttl > 0).map(|ttl| ttl * (1 + at as u64)),
        };
        let queues = QUEUES.iter().copied().chain(["nowhere"]).enumerate();
        Address::Copies { copies: queues.map(copy).collect(), mandatory: message.bytes.is_multiple_of(2) }
    }

    pub(super) fn receipt(&self, index: &Index) -> Option<Receipt> {
        // The latest ones, so that most of them hold.
        let recent = &self.deliveries[self.deliveries.len().saturating_sub(8)..];
        (!recent.is_empty()).then(|| index.get(recent).receipt)
    }

    pub(super) fn held_before(&self, before: &Snapshot, receipt: &Receipt) -> bool {
        let last = self.deliveries.iter().rev().find(|delivery| {
            (delivery.receipt.queue, delivery.receipt.seq) == (receipt.queue, receipt.seq)
                && delivery.receipt.lease <= receipt.lease
        });
        let leased =
            before.get(&(receipt.queue, receipt.seq)).is_some_and(|view| view.status == Status::Leased);
        let newest = self.deliveries.iter().all(|delivery| {
            (delivery.receipt.queue, delivery.receipt.seq) != (receipt.queue, receipt.seq)
                || delivery.receipt.lease <= receipt.lease
        });
        let is_here = self.watch.broker.vhost_of(receipt.queue) == Some(self.vhost);
        leased && last.is_some() && newest && is_here
    }

    pub(super) fn which(&self, queue: usize, chosen: &Chosen) -> Which {
        let Ok(id) = self.watch.broker.id_of(self.vhost, QUEUES[queue]) else { return Which::All };
        let all: Vec<MessageView> =
            self.snapshot().into_iter().filter(|((at, _), _)| *at == id).map(|(_, view)| view).collect();
        match chosen {
            Chosen::One(_) if all.is_empty() => Which::Id("nobody".into()),
            Chosen::One(index) => Which::Id(index.get(&all).id.clone().into()),
            Chosen::Some(indices) if all.is_empty() => Which::Seqs(indices.iter().map(|_| Seq(9)).collect()),
            Chosen::Some(indices) => Which::Seqs(indices.iter().map(|index| index.get(&all).seq).collect()),
            Chosen::All => Which::All,
        }
    }
}

pub(super) fn window_of(session: u64, number: u32) -> WindowId {
    WindowId { session: SessionId(session), number }
}

pub(super) fn binding(queue: usize, key: &str) -> Box<Binding> {
    Box::new(Binding::new("amq.topic", Destination::Queue(QUEUES[queue].into()), key))
}

pub(super) fn fanout(queue: usize) -> Box<Binding> {
    Box::new(Binding { exchange: "amq.fanout".into(), ..*binding(queue, "") })
}
