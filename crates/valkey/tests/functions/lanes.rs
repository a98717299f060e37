//! What goes next while lanes are being left, and how much one call does.

use overtake_lane::{Band, Given, Order, Priority, RateLimit, Settings, Status};
use overtake_valkey::functions::{
    Admit, Asked, Call, Choice, Configure, Find, Leasing, List, Look, Peek, Said, Sweep, Terms, Told, View,
};
use redis::cmd;

use crate::server::Server;
use crate::twin::{BASE, Twin, publish};

/// Most messages that go from lane to lane with the call that changes lanes, and with each one after it.
const FIRST_MAX: u64 = 1_000;
const CALL_MAX: u64 = 128;

/// A place where messages go to other lanes only when the test says so.
struct Still(Twin);

impl Still {
    fn new(server: &Server) -> Self {
        let beside = [Settings::default(), Settings::default()];
        let mut still = Self(Twin::new(server.connect_with_room(), Settings::default(), beside));
        still.set_room(0);
        still
    }

    fn set_room(&mut self, room: u64) {
        let () = cmd("SET").arg("room").arg(room).query(&mut self.0.connection).expect("it is set");
    }

    fn ask<A: Asked>(&mut self, ask: &A) -> A::Answer {
        let call = Call { of: "", caller: "test", number: None };
        let Told::Done { what, .. } = self.0.told(BASE, ask, call) else { panic!("it is there") };
        what
    }

    fn publish(&mut self, priorities: impl IntoIterator<Item = i64>) {
        let all: Vec<_> =
            priorities.into_iter().map(|priority| publish(Given::Number(priority), 10)).collect();
        let messages = self.0.admissions(&all);
        self.ask(&Admit { messages, tells: false });
    }

    fn configure(&mut self, settings: &Settings) {
        self.0.version += 1;
        let terms = Terms::new("q".into(), settings, 0, 0).json();
        let version = self.0.version;
        self.ask(&Configure { version, terms: &terms, said: Said::Declared, queue: &[] }).expect("it may");
    }

    fn lease(&mut self, max: u32, choice: Choice) -> Vec<u64> {
        let want =
            Leasing { max, max_bytes: 1 << 20, term_ms: 60_000, holder: None, choice, granted: Vec::new() };
        self.ask(&want).iter().map(|one| one.stored.message.seq.0).collect()
    }

    /// Sequences in the order in which they go, as it is seen without taking any.
    fn next(&mut self) -> Vec<u64> {
        let ready = self.0.peek(Peek { most: 1_000, from: None }).ready;
        ready.iter().map(|ready| ready.stands.seq().0).collect()
    }

    fn gauge(&mut self, level: i32, what: &str) -> u64 {
        let seen = self.ask(&View);
        seen.lanes.get(&level).and_then(|lane| lane.get(what)).copied().unwrap_or(0)
    }
}

fn in_order(order: Order) -> Settings {
    Settings { order, ..Settings::default() }
}

fn bands() -> Order {
    let band = |name: &str, from: Option<i64>| Band { name: name.into(), from: from.map(Given::Number) };
    Order::Lanes(vec![band("hot", Some(5)), band("cold", None)])
}

#[test]
fn what_comes_after_a_change_of_lanes_goes_before_what_was_there_and_what_has_moved_goes_before_what_has_not()
{
    let Some(server) = Server::start() else { return };
    let mut still = Still::new(&server);
    still.publish([3, 9, 3, 6]);
    still.configure(&in_order(bands()));
    assert_eq!(still.next(), [2, 4, 1, 3], "as before");
    still.publish([1, 5]);
    assert_eq!(still.next(), [6, 5, 2, 4, 1, 3], "new ones first, by their lanes");
    still.set_room(2);
    still.ask(&Sweep);
    still.set_room(0);
    assert!(still.0.is_moving());
    assert_eq!(still.next(), [2, 4, 6, 5, 1, 3], "the most urgent two have moved");
    assert_eq!(still.lease(5, Choice::default()), [2, 4, 6, 5, 1]);
    still.set_room(9);
    while still.0.is_moving() {
        still.ask(&Sweep);
    }
    assert_eq!(still.next(), [3]);
    assert_eq!((still.gauge(1, "leased"), still.gauge(0, "leased"), still.gauge(0, "ready")), (3, 2, 1));
}

#[test]
fn a_second_change_leaves_the_lanes_of_the_first_before_those_that_were_left_already() {
    let Some(server) = Server::start() else { return };
    let mut still = Still::new(&server);
    still.publish([3, 9]);
    still.configure(&in_order(bands()));
    still.publish([1, 8]);
    still.configure(&in_order(Order::Fifo));
    still.publish([0]);
    assert_eq!(still.next(), [5, 4, 3, 2, 1]);
    let names: Vec<String> = still.ask(&View).left.into_values().collect();
    assert_eq!(names, ["3", "9", "cold", "hot"]);
    still.set_room(1);
    while still.0.is_moving() {
        still.ask(&Sweep);
    }
    assert_eq!(still.next(), [1, 2, 3, 4, 5]);
    assert_eq!((still.gauge(0, "ready"), still.ask(&View).left.len()), (5, 0));
}

#[test]
fn a_message_that_has_not_moved_is_found_by_its_name_and_in_its_lane_with_how_many_go_before_it() {
    let Some(server) = Server::start() else { return };
    let mut still = Still::new(&server);
    still.publish([3, 9, 3]);
    still.configure(&in_order(Order::Fifo));
    still.publish([0]);
    let found = still.ask(&Find { id: "seq-3".into() }).expect("it is there");
    assert_eq!((found.shown.stored.message.priority, found.position), (Priority(3), (Some(3), Some(1))));
    let look = |lists| Look { newest: false, after: None, most: 100, with_content: false, lists };
    let seqs = |still: &mut Still, lists| -> Vec<u64> {
        still.ask(&look(lists)).shown.iter().map(|one| one.stored.message.seq.0).collect()
    };
    assert_eq!(seqs(&mut still, vec![List::Lane(found.level)]), [1, 3]);
    assert_eq!(seqs(&mut still, vec![List::Lane(0)]), [4]);
    assert_eq!(seqs(&mut still, vec![List::Standing(Status::Ready)]), [1, 2, 3, 4]);
    let left = still.ask(&View).left;
    assert_eq!(left.get(&found.level).map(String::as_str), Some("3"));
    assert_eq!((still.gauge(found.level, "ready"), still.gauge(0, "ready")), (2, 1));
}

#[test]
fn who_takes_from_some_lanes_only_takes_nothing_that_has_not_moved() {
    let Some(server) = Server::start() else { return };
    let mut still = Still::new(&server);
    still.publish([9, 1]);
    still.configure(&in_order(bands()));
    let hot = Choice { floor: Some(1), ..Choice::default() };
    let not_cold = Choice { except: vec![0], ..Choice::default() };
    for choice in [&hot, &not_cold] {
        assert!(still.lease(1, choice.clone()).is_empty());
    }
    still.set_room(1);
    assert_eq!(still.lease(1, hot), [1]);
}

#[test]
fn a_limit_of_a_key_that_is_new_counts_what_is_out_before_anything_is_given() {
    let Some(server) = Server::start() else { return };
    let mut still = Still::new(&server);
    let mut all = vec![publish(Given::Number(1), 10); 4];
    all.iter_mut().for_each(|one| one.key = Some("k".into()));
    let messages = still.0.admissions(&all);
    still.ask(&Admit { messages, tells: false });
    assert_eq!(still.lease(1, Choice::default()), [1]);
    still.configure(&Settings { group_limit: 2, ..Settings::default() });
    assert!(still.lease(4, Choice::default()).is_empty(), "how many are out is not known yet");
    still.set_room(1);
    assert_eq!(still.lease(4, Choice::default()), [] as [u64; 0], "one is counted");
    assert_eq!(still.lease(4, Choice::default()), [2]);
    while still.0.is_moving() {
        assert!(still.lease(4, Choice::default()).is_empty());
    }
    assert!(still.lease(4, Choice::default()).is_empty(), "two are out");
}

#[test]
fn each_call_moves_a_bounded_number_of_messages_and_says_that_there_is_more() {
    let Some(server) = Server::start() else { return };
    let mut twin =
        Twin::new(server.connect(), Settings::default(), [Settings::default(), Settings::default()]);
    for _ in 0..30 {
        twin.publish((0..100).map(|at| publish(Given::Number(at % 10), 10)).collect());
    }
    let mut still = Still(twin);
    still.lease(300, Choice::default());
    still.configure(&in_order(Order::Fifo));
    assert_eq!((still.gauge(0, "leased"), still.gauge(0, "ready")), (300, FIRST_MAX + 2 * CALL_MAX - 300));
    let (mut moved, mut calls) = (FIRST_MAX + 2 * CALL_MAX, 2);
    while still.0.is_moving() {
        let call = Call { of: "", caller: "test", number: None };
        let Told::Done { now, wakes_at, .. } = still.0.told(BASE, &Sweep, call) else {
            panic!("it is there")
        };
        let all: Vec<(String, u64)> =
            cmd("HGETALL").arg("{1:0}:n").query(&mut still.0.connection).expect("numbers");
        let there = all.iter().find(|(level, _)| level == "4294967296").map_or(0, |(_, count)| *count);
        assert!(there - moved <= CALL_MAX, "{there} after {moved}");
        assert_eq!(wakes_at == Some(now), still.0.is_moving());
        (moved, calls) = (there, calls + 1);
    }
    assert!(moved == 3_000 && calls >= 2_000 / CALL_MAX, "{moved} with {calls} calls");
}

#[test]
fn keys_that_get_a_token_at_once_may_go_a_bounded_number_with_each_call() {
    let Some(server) = Server::start() else { return };
    let rate = RateLimit { messages: 1, per_ms: 300 };
    let settings = Settings { key_rate_limit: Some(rate), ..Settings::default() };
    let twin = Twin::new(server.connect(), settings, [Settings::default(), Settings::default()]);
    let mut still = Still(twin);
    let of = |at: i32| publish(Given::Number(1), at.unsigned_abs());
    for _ in 0..2 {
        let mut all: Vec<_> = (0..300).map(of).collect();
        all.iter_mut().for_each(|one| one.key = Some(format!("k{}", one.bytes).into()));
        let messages = still.0.admissions(&all);
        still.ask(&Admit { messages, tells: false });
    }
    assert_eq!(still.lease(600, Choice::default()).len(), 300, "one of each key");
    let time = |still: &mut Still| {
        let (s, us): (u64, u64) = cmd("TIME").query(&mut still.0.connection).expect("a time");
        s * 1_000 + us / 1_000
    };
    let until = time(&mut still) + 301;
    while time(&mut still) < until {}
    let (mut may_go, mut calls) = (0, 0);
    while may_go < 300 {
        let call = Call { of: "", caller: "test", number: None };
        let Told::Done { now, wakes_at, .. } = still.0.told(BASE, &Sweep, call) else {
            panic!("it is there")
        };
        let offers: u64 = cmd("ZCARD").arg("{1:0}:f").query(&mut still.0.connection).expect("a number");
        assert!(offers - may_go <= CALL_MAX, "{offers} after {may_go}");
        (may_go, calls) = (offers, calls + 1);
        assert!(may_go == 300 || wakes_at == Some(now), "{may_go}");
    }
    assert!(calls >= 3);
}
