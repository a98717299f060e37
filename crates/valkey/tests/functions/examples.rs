//! What random histories do not come to.

use overtake_lane::{
    DeadLetterTo, Given, LaneChoice, Origin, Outcome, Publish, QueueId, Refusal, Seq, Settings, State,
    Status, Time,
};
use overtake_valkey::functions::{
    Admit, Alive, Arrival, Call, Choice, Configure, Configured, Declined, Fate, Forget, How, LOOKS_MAX,
    Leasing, Leaving, Left, List, Look, Looked, Parts, Prepare, Provenance, RETURNED_MAX, Remove, Said,
    Settle, Shown, Standing, Sweep, Terms, Told, View, Which,
};

use crate::beside::DEAD;
use crate::server::Server;
use crate::twin::{BASE, Twin, publish};

/// Most messages that may expire in one call: by time, and when they are passed.
const CALL_MAX: u64 = 256;

fn by(number: Option<u64>) -> Call<'static> {
    Call { of: "", caller: "test", number }
}

fn done<T>(told: Told<T>) -> (bool, T) {
    let Told::Done { leaving, what, .. } = told else { panic!("it is there") };
    (leaving, what)
}

#[test]
fn a_place_that_was_forgotten_is_gone() {
    let Some(server) = Server::start() else { return };
    let mut twin =
        Twin::new(server.connect(), Settings::default(), [Settings::default(), Settings::default()]);
    twin.publish(vec![publish(Given::Number(1), 10)]);
    let forget = Forget { version: 9 };
    assert!(done(twin.told(BASE, &forget, by(None))).1);
    assert_eq!(twin.told(BASE, &Sweep, by(None)), Told::Gone);
    assert!(!done(twin.told(BASE, &forget, by(None))).1);
    let left: Vec<String> = redis::cmd("KEYS").arg("{1:0}*").query(&mut twin.connection).expect("keys");
    let passes = |key: &String| key.contains(":u:") || key.ends_with(":gone");
    assert!(left.iter().all(passes), "but for what callers were answered, and that it is gone: {left:?}");
    for key in left {
        let left_ms: i64 = redis::cmd("PTTL").arg(&key).query(&mut twin.connection).expect("a time");
        assert!((1..=600_000).contains(&left_ms), "{key} goes in {left_ms} ms");
    }
}

#[test]
fn what_was_said_before_a_place_was_forgotten_does_not_make_it_again() {
    let Some(server) = Server::start() else { return };
    let mut twin =
        Twin::new(server.connect(), Settings::default(), [Settings::default(), Settings::default()]);
    done(twin.told(BASE, &Forget { version: 9 }, by(None)));
    let terms = Terms::new("q".into(), &Settings::default(), 0, 0).json();
    let configure = |version| Configure { version, terms: &terms, said: Said::Declared, queue: &[] };
    assert_eq!(twin.told(BASE, &configure(8), by(None)), Told::Gone);
    assert_eq!(twin.told(BASE, &Sweep, by(None)), Told::Gone, "and nothing is there");
    let made = Configured { is_new: true, version: 9 };
    assert_eq!(done(twin.told(BASE, &configure(9), by(None))).1, Ok(made), "what is declared later is");
}

#[test]
fn a_dead_letter_that_nobody_has_carried_yet_comes_back_where_it_left() {
    let Some(server) = Server::start() else { return };
    let dead_letter = DeadLetterTo::Exchange { name: String::new(), routing_key: Some("q".to_owned()) };
    let settings = Settings { dead_letter, ..Settings::default() };
    let mut twin = Twin::new(server.connect(), settings, [Settings::default(), Settings::default()]);
    twin.publish(vec![publish(Given::Number(4), 10)]);
    twin.lease(1, 100, Some(60_000), LaneChoice::default());
    twin.settle(&[twin.leases[0]], Outcome::Reject);
    let (leaving, leavers) = done(twin.told(BASE, &Leaving { limit: 10 }, by(None)));
    assert!(leaving);
    let [leaver] = &leavers[..] else { panic!("one has left: {leavers:?}") };
    let deaths = leaver.shown.stored.message.deaths().cloned();
    let from = Provenance { queue: QueueId(1), place: 0, number: leaver.number };
    let arrival = Arrival {
        from,
        since: leaver.at,
        is_evicted: false,
        is_record: false,
        deaths,
        record: None,
        attempts: None,
    };
    let mut messages = twin.admissions(&[publish(Given::Number(4), 10)]);
    messages[0].arrival = Some(Box::new(arrival));
    let admit = Admit { messages, tells: true };
    let first = done(twin.told(BASE, &admit, by(None))).1[0].expect("it is taken").expect("here");
    let again = done(twin.told(BASE, &admit, by(None))).1[0].expect("it was taken").expect("here");
    assert_eq!((first.seq, first.duplicate, again.seq, again.duplicate), (Seq(2), false, Seq(2), true));
    let fates = vec![(leaver.number, Fate::Moved)];
    assert!(!done(twin.told(BASE, &Left { fates }, by(None))).0);
    let stored = twin.stored(overtake_lane::Status::Ready);
    let [(message, _)] = &stored[..] else { panic!("it is there once: {stored:?}") };
    assert_eq!((message.since, message.count, message.expires), (leaver.at, 0, Time::NEVER));
    assert_eq!(message.deaths(), leaver.shown.stored.message.deaths());
}

#[test]
fn a_place_that_is_told_what_holds_already_writes_nothing_unless_something_is_due() {
    let Some(server) = Server::start() else { return };
    let mut twin =
        Twin::new(server.connect(), Settings::default(), [Settings::default(), Settings::default()]);
    let calls = |twin: &mut Twin| {
        let calls = redis::cmd("HGET").arg("{1:0}:c").arg("calls").query::<u64>(&mut twin.connection);
        calls.expect("it counts")
    };
    twin.publish(vec![Publish { delay_ms: 5, ..publish(Given::Number(1), 10) }]);
    while twin.head.is_none() {
        assert_eq!(twin.say_again(), Ok(Configured { is_new: false, version: twin.version }));
    }
    let before = calls(&mut twin);
    let head = twin.head;
    assert_eq!(twin.say_again(), Ok(Configured { is_new: false, version: twin.version }));
    assert_eq!((calls(&mut twin), twin.head), (before, head));
}

#[test]
fn the_same_version_said_otherwise_holds_and_an_older_one_does_not() {
    let Some(server) = Server::start() else { return };
    let mut twin =
        Twin::new(server.connect(), Settings::default(), [Settings::default(), Settings::default()]);
    let expires = |twin: &mut Twin, version, default_ttl_ms| {
        let terms = Terms::new("q".into(), &Settings::default(), default_ttl_ms, 0).json();
        let configure = Configure { version, terms: &terms, said: Said::Declared, queue: &[] };
        let holds = Configured { is_new: false, version: twin.version };
        assert_eq!(done(twin.told(BASE, &configure, by(None))).1, Ok(holds));
        let messages = twin.admissions(&[publish(Given::Number(1), 10)]);
        let told = done(twin.told(BASE, &Admit { messages, tells: false }, by(None))).1;
        let seq = told[0].expect("it is taken").expect("here").seq;
        let stored = twin.stored(overtake_lane::Status::Ready);
        stored.into_iter().find(|(message, _)| message.seq == seq).expect("it is there").0.expires
    };
    let version = twin.version;
    assert_eq!(expires(&mut twin, version, 0), Time::NEVER);
    assert_ne!(expires(&mut twin, version, 60_000), Time::NEVER);
    assert_ne!(expires(&mut twin, version - 1, 0), Time::NEVER);
}

#[test]
fn what_somebody_held_who_is_gone_dies_in_the_order_in_which_it_was_given() {
    let Some(server) = Server::start() else { return };
    let dead_letter = DeadLetterTo::Queue(DEAD.to_owned());
    let settings = Settings { dead_letter, delivery_limit: 1, ..Settings::default() };
    let mut twin = Twin::new(server.connect(), settings, [Settings::default(), Settings::default()]);
    twin.publish(vec![publish(Given::Number(4), 10), publish(Given::Number(5), 10)]);
    twin.lease(2, 100, None, LaneChoice::default());
    twin.end_session();
    twin.compare();
}

#[test]
fn a_message_that_was_given_and_found_no_taker_is_as_if_it_had_not_been() {
    let Some(server) = Server::start() else { return };
    let mut twin =
        Twin::new(server.connect(), Settings::default(), [Settings::default(), Settings::default()]);
    twin.publish(vec![publish(Given::Number(4), 10)]);
    let choice = Choice::default();
    let want = Leasing { max: 1, max_bytes: 100, term_ms: 60_000, holder: None, choice, granted: Vec::new() };
    for _ in 0..2 {
        let [given] = &done(twin.told(BASE, &want, by(None))).1[..] else { panic!("it is leased") };
        let message = &given.stored.message;
        assert_eq!(message.count, 1);
        let State::Leased { lease, .. } = message.state else { panic!("it is leased") };
        let settle = Settle { how: How::Untaken, leases: vec![(message.seq, lease)] };
        assert_eq!(done(twin.told(BASE, &settle, by(None))).1, [true]);
    }
    let seen = done(twin.told(BASE, &View, by(None))).1;
    let gauge = |what: &str| seen.lanes[&4].get(what).copied().unwrap_or(0);
    assert_eq!((gauge("ready"), gauge("delivered"), gauge("redelivered")), (1, 0, 0));
}

#[test]
fn of_a_block_of_numbers_that_are_all_taken_one_run_is_kept() {
    let Some(server) = Server::start() else { return };
    let mut twin =
        Twin::new(server.connect(), Settings::default(), [Settings::default(), Settings::default()]);
    let numbered = |sequence: u64| {
        let origin = Origin::new("p", sequence, 0).map(Box::new);
        Publish { origin, ..publish(Given::Number(1), 1) }
    };
    // In no order: 2,731 and 4,096 have no divisor in common.
    let all: Vec<u64> = (0..4_096).map(|at| 4_096 + at * 2_731 % 4_096).collect();
    for some in all.chunks(512) {
        twin.publish(some.iter().map(|sequence| numbered(*sequence)).collect());
    }
    let kept: Vec<Vec<u8>> = redis::cmd("HKEYS").arg("{1:0}:r").query(&mut twin.connection).expect("a hash");
    assert_eq!(kept, [b"p"]);
    twin.publish([4_095, 4_096, 8_191, 8_192].map(numbered).to_vec());
    twin.compare();
}

/// Everything that looks at these lists come to, one after the other, each by as many messages as it may look at.
fn look_on(twin: &mut Twin, newest: bool, lists: &[List]) -> Vec<Looked> {
    let mut all: Vec<Looked> = Vec::new();
    loop {
        let after = all.last().and_then(|looked| looked.next);
        let look = Look { newest, after, most: u32::MAX, with_content: true, lists: lists.to_vec() };
        let (_, looked) = done(twin.told(BASE, &look, by(None)));
        all.push(looked);
        if all.last().is_some_and(|looked| looked.next.is_none()) {
            return all;
        }
    }
}

#[test]
fn looks_at_a_deep_place_see_every_message_once_and_are_each_bounded() {
    const ALL: [Status; 4] = [Status::Ready, Status::Delayed, Status::Leased, Status::Dead];
    let Some(server) = Server::start() else { return };
    let mut twin =
        Twin::new(server.connect(), Settings::default(), [Settings::default(), Settings::default()]);
    // Lanes in which messages alternate, one that comes behind all others, and more lanes than are compared for so many messages.
    for from in 0..10 {
        let priority = |at: i64| if at < 80 { at % 40 } else { from + 100 };
        twin.publish((0..100).map(|at| publish(Given::Number(priority(at)), 10)).collect());
    }
    twin.lease(300, 100_000, Some(600_000), LaneChoice::default());
    let first = twin.leases[0];
    twin.settle(&[first], Outcome::Reject);
    let standing =
        |newest| Standing { newest, after: None, limit: 10_000, with_content: true, statuses: ALL.to_vec() };
    for newest in [false, true] {
        let (_, whole) = done(twin.told(BASE, &standing(newest), by(None)));
        let looks = look_on(&mut twin, newest, &ALL.map(List::Standing));
        assert!(looks.len() > 1_000 / LOOKS_MAX as usize && whole.len() >= 999, "{}", looks.len());
        assert!(looks.iter().all(|looked| (1..=LOOKS_MAX as usize).contains(&looked.shown.len())));
        assert_eq!(looks.into_iter().flat_map(|looked| looked.shown).collect::<Vec<_>>(), whole);
    }
    let of_lane = look_on(&mut twin, false, &[List::Lane(3)]).remove(0).shown;
    let is_ready_there =
        |message: &overtake_lane::Message| message.priority.0 == 3 && message.state == State::Ready;
    assert_eq!(of_lane.len(), 20);
    assert!(of_lane.iter().all(|one| is_ready_there(&one.stored.message)));
}

#[test]
fn a_look_reads_no_more_content_than_a_call_may_but_for_the_first() {
    let Some(server) = Server::start() else { return };
    let mut twin =
        Twin::new(server.connect(), Settings::default(), [Settings::default(), Settings::default()]);
    let sizes = [700_000, 300_000, 300_000, 2_000_000, 10];
    for bytes in sizes {
        twin.publish(vec![publish(Given::Number(1), bytes)]);
    }
    let looks = look_on(&mut twin, false, &[List::Standing(Status::Ready)]);
    let sizes: Vec<usize> = looks.iter().map(|looked| looked.shown.len()).collect();
    assert_eq!(sizes, [2, 1, 1, 1]);
}

/// How many messages of a level were counted so.
fn counted(twin: &mut Twin, what: &str) -> u64 {
    let counted: Option<u64> =
        redis::cmd("HGET").arg("{1:0}:g").arg(what).query(&mut twin.connection).expect("a number");
    counted.unwrap_or(0)
}

#[test]
fn after_a_limit_was_lowered_each_call_evicts_a_bounded_number() {
    let Some(server) = Server::start() else { return };
    let mut twin =
        Twin::new(server.connect(), Settings::default(), [Settings::default(), Settings::default()]);
    for _ in 0..25 {
        twin.publish((0..100).map(|_| publish(Given::Number(1), 10)).collect());
    }
    let lower = Settings { max_length: 10, ..Settings::default() };
    let terms = Terms::new("q".into(), &lower, 0, 0).json();
    let configure = Configure { version: twin.version + 1, terms: &terms, said: Said::Declared, queue: &[] };
    twin.version += 1;
    let holds = Configured { is_new: false, version: twin.version };
    assert_eq!(done(twin.told(BASE, &configure, by(None))).1, Ok(holds));
    let messages = twin.admissions(&[publish(Given::Number(1), 10)]);
    done(twin.told(BASE, &Admit { messages, tells: false }, by(None))).1[0].expect("taken").expect("here");
    let (mut evicted, mut calls) = (counted(&mut twin, "1:evicted"), 1);
    assert!((1..=128).contains(&evicted), "{evicted}");
    while evicted < 2_491 {
        let told = twin.told(BASE, &Sweep, by(None));
        let before = std::mem::replace(&mut evicted, counted(&mut twin, "1:evicted"));
        assert!((1..=1_000).contains(&(evicted - before)), "{evicted} after {before}");
        let says_more = matches!(told, Told::Done { wakes_at: Some(_), .. });
        assert_eq!(says_more, evicted < 2_491);
        calls += 1;
    }
    assert!(calls > 3);
    assert_eq!(twin.stored(Status::Ready).len(), 10);
}

#[test]
fn a_lease_passes_a_bounded_number_of_messages_that_have_expired() {
    let Some(server) = Server::start() else { return };
    let mut twin =
        Twin::new(server.connect(), Settings::default(), [Settings::default(), Settings::default()]);
    let soon = Publish { ttl_ms: Some(300), ..publish(Given::Number(1), 10) };
    let messages = twin.admissions(&vec![soon; 1_000]);
    done(twin.told(BASE, &Admit { messages, tells: false }, by(None)));
    let messages = twin.admissions(&[publish(Given::Number(1), 10)]);
    done(twin.told(BASE, &Admit { messages, tells: false }, by(None)));
    let time = |twin: &mut Twin| {
        let (s, us): (u64, u64) = redis::cmd("TIME").query(&mut twin.connection).expect("a time");
        s * 1_000 + us / 1_000
    };
    let until = time(&mut twin) + 301;
    while time(&mut twin) < until {}
    let choice = Choice::default();
    let want = Leasing { max: 5, max_bytes: 100, term_ms: 60_000, holder: None, choice, granted: Vec::new() };
    let mut expired = counted(&mut twin, "1:expired");
    loop {
        let given = done(twin.told(BASE, &want, by(None))).1;
        let before = std::mem::replace(&mut expired, counted(&mut twin, "1:expired"));
        assert!(expired - before <= CALL_MAX, "{expired} after {before}");
        if let [given] = &given[..] {
            assert_eq!((given.stored.message.seq, expired), (Seq(1_001), 1_000));
            return;
        }
        assert!(given.is_empty() && expired > before);
    }
}

#[test]
fn what_somebody_held_who_is_gone_goes_back_by_bounded_calls() {
    let Some(server) = Server::start() else { return };
    let mut twin =
        Twin::new(server.connect(), Settings::default(), [Settings::default(), Settings::default()]);
    for _ in 0..6 {
        twin.publish((0..100).map(|_| publish(Given::Number(1), 10)).collect());
    }
    let choice = Choice::default();
    let holder = Some(("gone".to_owned(), 60_000));
    let want = Leasing { max: 600, max_bytes: 1 << 20, term_ms: 0, holder, choice, granted: Vec::new() };
    let given = done(twin.told(BASE, &want, by(None))).1;
    assert_eq!(given.len(), 600);
    // What a transaction is to settle stays, and is not in the way.
    let settlement = |one: &Shown| {
        let State::Leased { lease, .. } = one.stored.message.state else { panic!("it is leased") };
        (Outcome::Ack, one.stored.message.seq, lease)
    };
    let settlements = given[..200].iter().map(settlement).collect();
    let parts = Parts { messages: Vec::new(), settlements };
    let prepare = Prepare { name: "t".to_owned(), within_ms: 600_000, parts };
    assert_eq!(done(twin.told(BASE, &prepare, by(None))).1, Ok(()));
    let mut lost = done(twin.told(BASE, &Alive::gone("gone".into()), by(None))).1.lost;
    assert_eq!((lost, counted(&mut twin, "1:leased")), (RETURNED_MAX, 600 - RETURNED_MAX));
    while lost < 400 {
        let before = counted(&mut twin, "1:leased");
        let told = twin.told(BASE, &Sweep, by(None));
        let back = before - counted(&mut twin, "1:leased");
        assert!((1..=RETURNED_MAX).contains(&back), "{back}");
        lost += back;
        let says_more = matches!(told, Told::Done { wakes_at: Some(_), .. });
        assert_eq!(says_more, lost < 400);
    }
    assert_eq!(counted(&mut twin, "1:leased"), 200);
}

#[test]
fn an_id_that_no_message_has_is_not_looked_for_among_all_dead_letters() {
    let Some(server) = Server::start() else { return };
    let mut twin =
        Twin::new(server.connect(), Settings::default(), [Settings::default(), Settings::default()]);
    for _ in 0..3 {
        twin.publish((0..100).map(|_| publish(Given::Number(1), 10)).collect());
        twin.lease(100, 10_000, Some(600_000), LaneChoice::default());
        let leases = std::mem::take(&mut twin.leases);
        twin.settle(&leases, Outcome::Reject);
    }
    assert_eq!(counted(&mut twin, "1:dead"), 300);
    let reads = |twin: &mut Twin| -> u64 {
        let stats: String =
            redis::cmd("INFO").arg("commandstats").query(&mut twin.connection).expect("statistics");
        let of = |line: &str| line.strip_prefix("cmdstat_hget:calls=")?.split(',').next()?.parse().ok();
        stats.lines().find_map(of).expect("it is counted")
    };
    let before = reads(&mut twin);
    let remove = Remove(Which::Id("nobody".into()));
    assert_eq!(done(twin.told(BASE, &remove, by(None))).1, Err(Declined(Refusal::NoSuchMessage)));
    let made = reads(&mut twin) - before;
    assert!(made < 20, "{made} reads");
}

#[test]
fn bytes_that_are_leased_of_a_lane_from_before_they_were_counted_are_told_by_what_else_is_counted() {
    let Some(server) = Server::start() else { return };
    let mut twin =
        Twin::new(server.connect(), Settings::default(), [Settings::default(), Settings::default()]);
    twin.publish([10, 20, 40, 80].map(|bytes| publish(Given::Number(1), bytes)).to_vec());
    twin.lease(2, 1_000, Some(60_000), LaneChoice::default());
    let () =
        redis::cmd("HDEL").arg("{1:0}:g").arg("1:leased_bytes").query(&mut twin.connection).expect("gone");
    twin.lease(1, 1_000, Some(60_000), LaneChoice::default());
    assert_eq!(counted(&mut twin, "1:leased_bytes"), 70);
    // A gauge that is too small heals when nothing is leased any more.
    let () = redis::cmd("HSET")
        .arg("{1:0}:g")
        .arg("1:leased_bytes")
        .arg(5)
        .query(&mut twin.connection)
        .expect("set");
    let leases = std::mem::take(&mut twin.leases);
    twin.settle(&leases[..1], Outcome::Ack);
    assert_eq!(counted(&mut twin, "1:leased_bytes"), 0);
    twin.settle(&leases[1..], Outcome::Ack);
    twin.compare();
}
