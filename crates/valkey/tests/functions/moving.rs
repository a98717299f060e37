//! Random histories of a place whose lanes, and what is said of keys, change again and again, while messages go from one lane to the next as few at a time as is said. After each call
//! everything that is counted is counted again.

use overtake_lane::{
    Band, DeadLetterTo, Given, LaneSettings, Order, Original, Outcome, PickerKind, Priority, Publish, Seq,
    Settings, State, Status,
};
use overtake_valkey::functions::{
    Abort, Admit, Alive, Asked, Call, Cancel, Choice, Commit, Configure, Extend, How, Leasing, Parts,
    Prepare, Purge, Remove, Replay, Reprioritise, Said, Settle, Shown, Standing, Sweep, Terms, Told, Which,
};
use proptest::prelude::*;
use proptest::sample::Index;
use redis::cmd;

use crate::server::Server;
use crate::twin::{BASE, Twin, publish};

const ALL: [Status; 4] = [Status::Ready, Status::Delayed, Status::Leased, Status::Dead];

#[derive(Clone, Debug)]
enum Op {
    Publish(Vec<(i64, Option<u8>, u64, Option<u64>)>),
    Lease {
        max: u32,
        is_held: bool,
        floor: Option<i32>,
        except: Vec<i32>,
    },
    Settle(Index, Outcome),
    Prepare(Index, bool),
    Extend(Index),
    EndSession,
    Reprioritise(Index, i32),
    Remove(Index),
    Cancel(Index),
    Replay(Index, Option<i32>),
    Purge(Option<Status>, u32),
    Configure(Box<Settings>, bool),
    /// From now on so many messages go with each call.
    Room(u32),
    Sweep,
}

fn settings() -> impl Strategy<Value = Settings> {
    let band = |name: &str, from: Option<i64>| Band { name: name.into(), from: from.map(Given::Number) };
    let order = prop_oneof![
        3 => Just(Order::Priority),
        1 => Just(Order::Fifo),
        1 => Just(Order::Lanes(vec![band("hot", Some(7)), band("warm", Some(4)), band("cold", None)])),
        1 => Just(Order::Lanes(vec![band("warm", Some(2)), band("hot", None)])),
    ];
    let picker = prop_oneof![
        2 => Just(PickerKind::Strict),
        1 => Just(PickerKind::AgingMs(5)),
        1 => Just(PickerKind::Weighted([("5".to_owned(), 2)].into())),
    ];
    let keys = (prop_oneof![2 => Just(0_u32), 1 => 1..3_u32], prop::bool::weighted(0.3));
    let limits = (prop::option::weighted(0.3, 1..4_u32), prop::option::weighted(0.2, 3..9_u64));
    (order, picker, keys, limits, any::<bool>()).prop_map(
        |(order, picker, (group_limit, fair_keys), (cap, max_length), drops)| {
            let lane = if order == Order::Priority { "5" } else { "hot" };
            let is_there = order != Order::Fifo;
            let cap =
                cap.filter(|_| is_there).map(|max_active| (lane.to_owned(), LaneSettings { max_active }));
            Settings {
                order,
                picker,
                group_limit,
                fair_keys,
                key_weights: [("k1".to_owned(), 3)]
                    .into_iter()
                    .filter(|_| fair_keys && max_length.is_none())
                    .collect(),
                lanes: cap.into_iter().collect(),
                max_length: max_length.unwrap_or(0),
                delivery_limit: 2,
                dead_letter: if drops { DeadLetterTo::Drop } else { DeadLetterTo::Keep },
                ..Settings::default()
            }
        },
    )
}

fn op() -> impl Strategy<Value = Op> {
    let priority = || 0..10_i64;
    let message = (
        priority(),
        prop::option::of(0..3_u8),
        prop_oneof![3 => Just(0_u64), 1 => 1..20_u64, 1 => Just(60_000)],
        prop::option::weighted(0.1, 1..10_u64),
    );
    let outcome = prop::sample::select(vec![
        Outcome::Ack,
        Outcome::Nack { delay_ms: None },
        Outcome::Nack { delay_ms: Some(60_000) },
        Outcome::Release,
        Outcome::Reject,
    ]);
    let status = prop::option::of(prop::sample::select(vec![Status::Ready, Status::Delayed, Status::Dead]));
    let index = any::<Index>;
    prop_oneof![
        8 => prop::collection::vec(message, 1..6).prop_map(Op::Publish),
        8 => (1..5_u32, any::<bool>(), prop::option::weighted(0.2, 0..10), prop::collection::vec(0..10, 0..2))
            .prop_map(|(max, is_held, floor, except)| Op::Lease { max, is_held, floor, except }),
        6 => (index(), outcome).prop_map(|(which, outcome)| Op::Settle(which, outcome)),
        2 => (index(), any::<bool>()).prop_map(|(which, commits)| Op::Prepare(which, commits)),
        1 => index().prop_map(Op::Extend),
        1 => Just(Op::EndSession),
        3 => (index(), 0..10).prop_map(|(which, priority)| Op::Reprioritise(which, priority)),
        2 => index().prop_map(Op::Remove),
        1 => index().prop_map(Op::Cancel),
        2 => (index(), prop::option::of(0..10)).prop_map(|(which, promote)| Op::Replay(which, promote)),
        1 => (status, 1..4_u32).prop_map(|(status, limit)| Op::Purge(status, limit)),
        6 => (settings(), any::<bool>()).prop_map(|(settings, by_policy)| Op::Configure(Box::new(settings), by_policy)),
        4 => prop::sample::select(vec![0, 0, 1, 2, 3]).prop_map(Op::Room),
        2 => Just(Op::Sweep),
    ]
}

/// A place whose settings are these, of which nobody says what must come of a call.
struct Moving<'t> {
    twin: &'t mut Twin,
    settings: Settings,
    leases: Vec<Shown>,
    is_several: bool,
}

impl Moving<'_> {
    fn ask<A: Asked>(&mut self, ask: &A) -> A::Answer {
        let call = Call { of: "", caller: "test", number: None };
        let Told::Done { what, .. } = self.twin.told(BASE, ask, call) else { panic!("it is there") };
        what
    }

    fn configure(&mut self, settings: Settings, by_policy: bool) {
        self.twin.version += 1;
        let terms = Terms::new("q".into(), &settings, 0, 0);
        let terms = if self.is_several { terms.of_several(1) } else { terms }.json();
        let said = if by_policy { Said::ByPolicy } else { Said::Declared };
        let version = self.twin.version;
        self.ask(&Configure { version, terms: &terms, said, queue: &[] }).expect("nothing speaks against it");
        self.settings = settings;
    }

    fn set_room(&mut self, room: u32) {
        let () = cmd("SET").arg("room").arg(room).query(&mut self.twin.connection).expect("it is set");
    }

    fn all(&mut self, statuses: &[Status]) -> Vec<Shown> {
        let statuses = statuses.to_vec();
        self.ask(&Standing { newest: false, after: None, limit: 1_000, with_content: false, statuses })
    }

    fn some(&mut self, index: Index, statuses: &[Status]) -> Option<Which> {
        let all = self.all(statuses);
        (!all.is_empty()).then(|| Which::Seqs(vec![all[index.index(all.len())].stored.message.seq]))
    }

    fn lease_at(&self, index: Index) -> Option<(Seq, overtake_lane::LeaseId)> {
        let of = |shown: &Shown| match shown.stored.message.state {
            State::Leased { lease, .. } => (shown.stored.message.seq, lease),
            ref other => panic!("it is leased: {other:?}"),
        };
        (!self.leases.is_empty()).then(|| of(&self.leases[index.index(self.leases.len())]))
    }

    fn act(&mut self, op: &Op) {
        match op {
            Op::Publish(messages) => self.publish(messages),
            Op::Lease { max, is_held, floor, except } => self.lease(*max, *is_held, *floor, except),
            Op::Settle(which, outcome) => {
                let leases = self.lease_at(*which).into_iter().collect();
                self.ask(&Settle { how: How::By(*outcome), leases });
            }
            Op::Prepare(which, commits) => self.prepare(*which, *commits),
            Op::Extend(which) => {
                let leases = self.lease_at(*which).into_iter().collect();
                self.ask(&Extend { term_ms: 90_000, output: Some("so far".into()), leases });
            }
            Op::EndSession => {
                self.ask(&Alive::gone("session".into()));
            }
            Op::Purge(status, limit) => {
                self.ask(&Purge { status: *status, limit: *limit });
            }
            Op::Configure(settings, by_policy) => self.configure((**settings).clone(), *by_policy),
            Op::Room(room) => self.set_room(*room),
            Op::Sweep => self.ask(&Sweep),
            Op::Reprioritise(..) | Op::Remove(_) | Op::Cancel(_) | Op::Replay(..) => self.administer(op),
        }
    }

    fn administer(&mut self, op: &Op) {
        let (index, statuses): (&Index, &[Status]) = match op {
            Op::Reprioritise(index, _) => (index, &[Status::Ready, Status::Delayed]),
            Op::Replay(index, _) => (index, &[Status::Dead]),
            Op::Cancel(index) | Op::Remove(index) => (index, &ALL),
            other => panic!("it is no change of one message: {other:?}"),
        };
        let Some(which) = self.some(*index, statuses) else { return };
        let given = |priority: &i32| (Priority(*priority), Original::Number(*priority));
        let counted = match op {
            Op::Reprioritise(_, priority) => {
                let (priority, original) = given(priority);
                self.ask(&Reprioritise { priority, original, which })
            }
            Op::Replay(_, promote) => self.ask(&Replay { promote: promote.as_ref().map(given), which }),
            Op::Cancel(_) => self.ask(&Cancel(which)),
            _ => self.ask(&Remove(which)),
        };
        assert!(counted.expect("of several nothing is refused") <= 1);
    }

    fn publish(&mut self, messages: &[(i64, Option<u8>, u64, Option<u64>)]) {
        let message = |(priority, key, delay_ms, ttl_ms): &(i64, Option<u8>, u64, Option<u64>)| Publish {
            key: key.map(|key| format!("k{key}").into()),
            key_weight: key.map(|key| 1 + u32::from(key) * 3),
            delay_ms: *delay_ms,
            ttl_ms: *ttl_ms,
            ..publish(Given::Number(*priority), 7)
        };
        let publishes: Vec<Publish> = messages.iter().map(message).collect();
        let messages = self.twin.admissions(&publishes);
        self.ask(&Admit { messages, tells: true });
    }

    fn lease(&mut self, max: u32, is_held: bool, floor: Option<i32>, except: &[i32]) {
        let choice = Choice { floor, except: except.to_vec(), ..Choice::default() };
        let holder = is_held.then(|| ("session".to_owned(), 3_600_000));
        let term_ms = if is_held { 0 } else { 60_000 };
        let granted =
            vec![(None, 1_000), (Some(5), 1_000), (Some(1), 1_000), (Some(2), 1_000), (Some(0), 1_000)];
        let granted = if self.is_several { granted } else { Vec::new() };
        let want = Leasing { max, max_bytes: 1 << 20, term_ms, holder, choice, granted };
        let given = self.ask(&want);
        let leased: Vec<_> = self.all(&[Status::Leased]).into_iter().map(|one| one.stored.message).collect();
        let limit = self.settings.group_limit as usize;
        for one in &given {
            let Some(key) = one.stored.message.key() else { continue };
            let out = leased.iter().filter(|message| message.key() == Some(key)).count();
            assert!(limit == 0 || out <= limit, "{out} of {key} are out");
        }
        let terms = Terms::new("q".into(), &self.settings, 0, 0);
        for (lane, cap) in &self.settings.lanes {
            let level = terms.level_named(lane).expect("it is there");
            let is_there = |message: &&overtake_lane::Message| terms.level(message.priority) == level;
            let out = leased.iter().filter(is_there).count();
            let takes = given.iter().any(|one| is_there(&&one.stored.message));
            assert!(!takes || out <= cap.max_active as usize, "{out} of {lane} are out");
        }
        self.leases.extend(given);
    }

    fn prepare(&mut self, which: Index, commits: bool) {
        let Some((seq, lease)) = self.lease_at(which) else { return };
        let parts = Parts { messages: Vec::new(), settlements: vec![(Outcome::Ack, seq, lease)] };
        let _ = self.ask(&Prepare { name: "t".into(), within_ms: 60_000, parts });
        self.audit();
        if commits {
            self.ask(&Commit { name: "t".into(), tells: false });
        } else {
            self.ask(&Abort { name: "t".into() });
        }
    }

    fn audit(&mut self) {
        let mut audit = cmd("EVAL");
        audit.arg(include_str!("audit.lua")).arg(1).arg(BASE);
        let wrong: Vec<String> = audit.query(&mut self.twin.connection).expect("it is looked through");
        assert!(wrong.is_empty(), "{wrong:?}");
    }

    /// All that is ready, in the order of its lanes.
    fn come_to_rest(&mut self) {
        self.set_room(2);
        let mut calls = 0;
        while self.twin.is_moving() {
            self.ask(&Sweep);
            self.audit();
            calls += 1;
            assert!(calls < 1_000, "it comes to an end");
        }
    }
}

fn play(twin: &mut Twin, settings: Settings, is_several: bool, ops: &[Op]) {
    let mut moving = Moving { twin, settings: settings.clone(), leases: Vec::new(), is_several };
    moving.configure(settings, false);
    for op in ops {
        moving.act(op);
        moving.audit();
    }
    moving.come_to_rest();
}

#[test]
fn whatever_is_done_while_messages_go_from_lane_to_lane_everything_is_counted_where_it_is() {
    let Some(server) = Server::start() else { return };
    let connection = std::cell::RefCell::new(Some(server.connect_with_room()));
    let history = (settings(), any::<bool>(), prop::collection::vec(op(), 1..60));
    let config =
        ProptestConfig { max_shrink_iters: 3_000, failure_persistence: None, ..ProptestConfig::default() };
    let mut runner = proptest::test_runner::TestRunner::new(config);
    let result = runner.run(&history, |(settings, is_several, ops)| {
        let there = connection.borrow_mut().take().unwrap_or_else(|| server.connect_with_room());
        let mut twin = Twin::new(there, Settings::default(), [Settings::default(), Settings::default()]);
        play(&mut twin, settings, is_several, &ops);
        *connection.borrow_mut() = Some(twin.into_connection());
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
}
