//! A broker and the model side by side: each is asked the same, and both must do the same.

use std::collections::BTreeMap;
use std::sync::Arc;

use overtake_lane::{
    Address, Broker, BrowseOrder, Command, Consume, ConsumerId, Effect, LaneChoice, LeaseId, LeaseTerm,
    Options, Outcome, Place, Priority, Publish, Pull, QueueId, Receipt, Reply, Seq, Status, Step, Time,
    UrgentCredit, VhostId, Which,
};

use crate::model::{Back, Choice, Model, Rules, Stand, Tally};

#[derive(Clone)]
pub(crate) struct Twin {
    pub(crate) model: Model,
    pub(crate) broker: Broker,
    receipts: BTreeMap<u64, Receipt>,
}

impl Twin {
    pub(crate) fn new(rules: &Rules, now: Time) -> Self {
        let mut broker = Broker::new(Options::default());
        let settings = Box::new(rules.settings());
        broker.apply(now, Command::declare("q".into(), settings), &mut Step::default()).expect("made");
        Self { model: Model::new(rules.clone(), now), broker, receipts: BTreeMap::new() }
    }

    /// Asks the broker. True if it did it.
    fn ask(&mut self, command: Command) -> bool {
        let mut step = Step::default();
        let reply = self.broker.apply(self.model.now, command, &mut step);
        self.compare(&step);
        match reply {
            Ok(Reply::Each(results)) => results.iter().all(Result::is_ok),
            Ok(_) => true,
            Err(_) => false,
        }
    }

    /// Both gave the same messages to the same takers, and are in the same state now.
    fn compare(&mut self, step: &Step) {
        let (mut given, mut served) = (Vec::new(), Vec::new());
        for effect in &step.effects {
            match effect {
                Effect::Deliver(delivery) => {
                    given.push((
                        delivery.consumer,
                        delivery.receipt.seq.0,
                        delivery.count,
                        delivery.deadline,
                    ));
                    self.receipts.insert(delivery.receipt.seq.0, delivery.receipt);
                }
                Effect::Served { consumer } => served.push(*consumer),
                _ => {}
            }
        }
        assert_eq!(given, std::mem::take(&mut self.model.given), "leases given");
        served.sort_unstable();
        let mut expected = std::mem::take(&mut self.model.served);
        expected.sort_unstable();
        assert_eq!(served, expected, "pulls that ended");
    }

    /// All that can be seen is the same.
    pub(crate) fn compare_all(&self) {
        let views = crate::watch::browse(&self.broker, VhostId::DEFAULT, "q", BrowseOrder::Published);
        let mut by_seq: Vec<_> = self.model.messages.iter().collect();
        by_seq.sort_by_key(|message| message.seq);
        assert_eq!(views.len(), by_seq.len(), "messages that are there");
        for (view, message) in views.iter().zip(by_seq) {
            let stand = match message.stand {
                Stand::Ready => (Status::Ready, None),
                Stand::Delayed(due) => (Status::Delayed, Some(due)),
                Stand::Leased(_, deadline, _) => (Status::Leased, deadline.some()),
                Stand::Dead => (Status::Dead, None),
            };
            assert_eq!(
                (view.seq.0, view.level.0, view.count),
                (message.seq, message.priority, message.count)
            );
            assert_eq!((view.status, view.due.or(view.deadline)), stand, "message {}", message.seq);
            assert_eq!(view.expires, message.expires.some());
            if self.model.rules.aging_ms.is_none() {
                let (_, position, own) = self.broker.message(VhostId::DEFAULT, "q", &view.id).expect("there");
                assert_eq!(
                    position.zip(own),
                    self.model.position(message.seq),
                    "position of {}",
                    message.seq
                );
            }
        }
        let now = self.model.now;
        for lane in self.broker.view(now, VhostId::DEFAULT, "q").expect("there").lanes {
            let tally = self.model.tallies.get(&lane.level).copied().unwrap_or_default();
            let seen = Tally {
                published: lane.published,
                settled: lane.settled,
                expired: lane.expired,
                evicted: lane.evicted,
                removed: lane.removed,
                moved: lane.moved,
                inversions: lane.inversions,
            };
            assert_eq!(seen, tally, "lane {}", lane.level);
        }
    }

    // ---- asking both ----

    pub(crate) fn publish(&mut self, priority: i32, key: Option<u8>, ttl_ms: Option<u64>, delay_ms: u64) {
        let taken = self.model.publish(priority, key, ttl_ms, delay_ms);
        let publish = Publish {
            to: Address::Queue("q".into()),
            priority: i64::from(priority).into(),
            id: None,
            origin: None,
            key: key.map(|key| format!("k{key}").into()),
            key_weight: None,
            ttl_ms,
            base_ttl_ms: None,
            delay_ms,
            bytes: 1,
            place: Place(0),
        };
        assert_eq!(self.ask(Command::Publish(publish)), taken, "taken or refused");
    }

    pub(crate) fn consume(&mut self, id: u64, window: usize, urgent: Option<(i32, usize)>, first: i32) {
        let consumer = ConsumerId(id);
        self.model.consume(consumer, window, urgent, first);
        let urgent = urgent.map(|(at, extra)| UrgentCredit { at: Priority(at), extra: extra as u32 });
        let (queue, window) = ("q".into(), Some(window as u32));
        assert!(self.ask(Command::Consume(Consume {
            window,
            urgent,
            priority: first,
            ..Consume::new(consumer, queue)
        })));
    }

    pub(crate) fn cancel(&mut self, id: u64) {
        let consumer = ConsumerId(id);
        if self.model.knows(consumer) {
            self.model.cancel(consumer);
            assert!(self.ask(Command::Cancel { consumer }));
        }
    }

    pub(crate) fn pull(&mut self, id: u64, max: usize, choice: Choice, wait_ms: u64) {
        let (consumer, until) = (ConsumerId(id), self.model.now.after(wait_ms));
        self.model.pull(consumer, max, choice.clone(), until);
        let names = choice.except.iter().map(|priority| Arc::from(priority.to_string().as_str()));
        let at_least = Priority(choice.at_least);
        let lanes = LaneChoice { at_least, except: names.collect(), one: choice.one };
        let pull = Pull {
            consumer,
            queue: "q".into(),
            max: max as u32,
            max_bytes: 0,
            term: choice.visibility_ms.map_or(LeaseTerm::Session, LeaseTerm::Ms),
            lanes,
            until,
        };
        assert!(self.ask(Command::Pull(pull)));
    }

    /// The leased messages, in the order in which they were leased.
    pub(crate) fn leased(&self) -> Vec<u64> {
        let mut leased: Vec<(u64, u64)> = Vec::new();
        for message in &self.model.messages {
            if let Stand::Leased(_, _, lease) = message.stand {
                leased.push((lease, message.seq));
            }
        }
        leased.sort_unstable();
        leased.into_iter().map(|(_, seq)| seq).collect()
    }

    /// A receipt of every message that was ever leased and is not leased any more is refused and does nothing.
    pub(crate) fn try_stale(&mut self, outcome: Outcome) {
        let leased = self.leased();
        for (seq, receipt) in self.receipts.clone() {
            if !leased.contains(&seq) {
                self.model.settled_late(seq);
                assert!(
                    !self.ask(Command::Settle { receipts: vec![receipt], outcome }),
                    "a stale receipt holds"
                );
            }
        }
        let unknown = Receipt { queue: QueueId(0), seq: Seq(1), lease: LeaseId(u64::MAX) };
        assert!(!self.ask(Command::Settle { receipts: vec![unknown], outcome }));
    }

    pub(crate) fn settle(&mut self, seq: u64, outcome: Outcome) {
        match outcome {
            Outcome::Ack => self.model.ack(seq),
            Outcome::Nack { delay_ms } => self.model.back(seq, Back::Failed(delay_ms)),
            Outcome::Release => self.model.back(seq, Back::Released),
            Outcome::Reject | Outcome::Timeout => self.model.reject(seq),
        }
        let receipts = vec![self.receipts[&seq]];
        assert!(self.ask(Command::Settle { receipts, outcome }), "a lease that is out can be settled");
    }

    pub(crate) fn extend(&mut self, seq: u64, visibility_ms: u64) {
        self.model.extend(seq, visibility_ms);
        assert!(self.ask(Command::Extend { receipts: vec![self.receipts[&seq]], visibility_ms }));
    }

    pub(crate) fn reprioritise(&mut self, seq: u64, priority: i32) {
        let done = self.model.reprioritise(seq, priority);
        let which = Which::Id(format!("seq-{seq}").into());
        let priority = i64::from(priority).into();
        assert_eq!(self.ask(Command::Reprioritise { queue: "q".into(), which, priority }), done);
    }

    pub(crate) fn remove(&mut self, seq: u64) {
        let done = self.model.remove(seq);
        let which = Which::Id(format!("seq-{seq}").into());
        assert_eq!(self.ask(Command::Remove { queue: "q".into(), which }), done);
    }

    pub(crate) fn purge(&mut self) {
        self.model.purge();
        assert!(self.ask(Command::Purge { queue: "q".into(), status: None, expect: None }));
    }

    pub(crate) fn replay(&mut self, seq: u64, promote: Option<i32>) {
        let done = self.model.replay(seq, promote);
        let which = Which::Id(format!("seq-{seq}").into());
        let promote = promote.map(|priority| i64::from(priority).into());
        assert_eq!(self.ask(Command::Replay { queue: "q".into(), which, promote }), done);
    }

    pub(crate) fn wait(&mut self, ms: u64) {
        self.model.wait(ms);
        let mut step = Step::default();
        self.broker.tick(self.model.now, &mut step);
        self.compare(&step);
    }

    /// New caps.
    pub(crate) fn cap(&mut self, max_active: usize, lane_caps: BTreeMap<i32, usize>, group_limit: usize) {
        self.model.rules.max_active = max_active;
        self.model.rules.lane_caps = lane_caps;
        self.model.rules.group_limit = group_limit;
        self.model.wait(0);
        let settings = Box::new(self.model.rules.settings());
        assert!(self.ask(Command::declare("q".into(), settings)));
    }
}
