//! Whatever happens on the line: nothing is lost, nothing that was accepted is sent again, and in the end everything has come.

use std::collections::BTreeSet;

use overtake_forward::{State, Terms};
use proptest::prelude::*;

use crate::world::{Makes, Stand, World};

#[derive(Clone, Debug)]
enum Op {
    Publish { level: i32, ttl_ms: Option<u64>, bytes: u64 },
    Pass { ms: u64 },
    Break,
    Mend,
    Makes { level: i32, makes: Makes },
    Pause,
    Resume,
}

fn makes() -> impl Strategy<Value = Makes> {
    prop_oneof![
        4 => Just(Makes::Accepts),
        2 => Just(Makes::Fails),
        1 => (1..5_000_u64).prop_map(Makes::Busy),
        1 => Just(Makes::Hangs),
        2 => Just(Makes::HangsUp),
        1 => Just(Makes::Refuses),
        1 => Just(Makes::Gone),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        12 => (0..4_i32, prop::option::weighted(0.2, 1..2_000_u64), 1..500_u64)
            .prop_map(|(level, ttl_ms, bytes)| Op::Publish { level, ttl_ms, bytes }),
        10 => prop_oneof![4 => 0..40_u64, 1 => 40..20_000_u64].prop_map(|ms| Op::Pass { ms }),
        2 => Just(Op::Break),
        2 => Just(Op::Mend),
        3 => (0..4_i32, makes()).prop_map(|(level, makes)| Op::Makes { level, makes }),
        1 => Just(Op::Pause),
        2 => Just(Op::Resume),
    ]
}

fn terms() -> impl Strategy<Value = Terms> {
    let rates = (prop_oneof![2 => Just(0), 1 => 200..5_000_u64], prop_oneof![2 => Just(0), 1 => 1..50_u64]);
    (1..4_u16, prop::option::of(1..20_u32), 1..2_000_u64, rates, 1..4_u32).prop_map(
        |(fan_out, batch, batch_bytes, (bytes_per_second, messages_per_second), breaker_failures)| Terms {
            fan_out,
            batch,
            batch_bytes,
            bytes_per_second,
            messages_per_second,
            breaker_failures,
            batch_ms: 3_000,
            ..Terms::default()
        },
    )
}

fn run(terms: Terms, ops: &[Op]) {
    let (fan_out, rate) = (terms.fan_out, terms.bytes_per_second);
    let burst = terms.batch_bytes.min(if rate > 0 { rate } else { u64::MAX }).max(500) * u64::from(fan_out);
    let mut world = World::new(terms);
    let habits = std::rc::Rc::new(std::cell::RefCell::new([Makes::Accepts; 4]));
    let now = std::rc::Rc::clone(&habits);
    world.makes = Box::new(move |message| now.borrow()[message.level as usize]);
    for (nth, op) in ops.iter().enumerate() {
        let before = world.read.len();
        match op {
            Op::Publish { level, ttl_ms, bytes } => {
                let ttl = ttl_ms.map(|ms| format!(",ttl={ms}")).unwrap_or_default();
                world.publish(&format!("m{nth}:{level},bytes={bytes}{ttl}"));
            }
            Op::Pass { ms } => world.pass(*ms),
            Op::Break => world.breaks(),
            Op::Mend => world.mends(),
            Op::Makes { level, makes } => habits.borrow_mut()[*level as usize] = *makes,
            Op::Pause => world.forwarder.pause(),
            Op::Resume => world.forwarder.resume(world.now),
        }
        world.settle_down();
        check_order(&world, before, fan_out);
    }
    check_rate(&world, rate, burst);
    // Nothing fails any more.
    *habits.borrow_mut() = [Makes::Accepts; 4];
    world.mends();
    world.forwarder.resume(world.now);
    world.pass(2_000_000);
    for message in world.messages.values() {
        let is_over = matches!(message.stand, Stand::Acked | Stand::Dead | Stand::Expired)
            || (message.stand == Stand::Ready && message.expires <= world.now);
        assert!(is_over, "{message:?} has come to its end");
    }
    let once: BTreeSet<&String> = world.accepted.iter().collect();
    assert_eq!(once.len(), world.accepted.len(), "what was accepted and settled is not sent again");
    let view = world.forwarder.view(world.now);
    assert!(matches!(view.state, State::Idle), "{:?}", view.state);
    let is_open = view.breakers.values().any(|breaker| breaker.open_until.is_some());
    assert!(!is_open && view.lanes.values().all(|lane| lane.in_flight == 0), "{view:?}");
    let sent: u64 = view.lanes.values().map(|lane| lane.sent).sum();
    assert_eq!(sent, world.accepted.len() as u64);
}

/// Of one lane nothing is read before what is older, unless that waits aside or is read again.
fn check_order(world: &World, from: usize, fan_out: u16) {
    if fan_out > 1 {
        return;
    }
    let number = |name: &str| name[1..].parse::<usize>().expect("m and a number");
    for (_, name) in &world.read[from..] {
        let this = world.messages.values().find(|one| one.name == *name).expect("it is there");
        let older = world.messages.values().find(|one| {
            one.level == this.level
                && number(&one.name) < number(name)
                && one.stand == Stand::Ready
                && one.leases == 0
                && one.expires > world.now
        });
        assert!(older.is_none(), "{name} was sent before {older:?}");
    }
}

/// In no stretch of time more is read than its rate allows, and what a batch of each line may bring on top.
fn check_rate(world: &World, rate: u64, burst: u64) {
    if rate == 0 {
        return;
    }
    let bytes =
        |name: &String| world.messages.values().find(|one| one.name == *name).map_or(0, |one| one.bytes);
    for (nth, (from, _)) in world.read.iter().enumerate() {
        let mut sum = 0;
        for (to, name) in &world.read[nth..] {
            sum += bytes(name);
            let most = rate * to.since(*from) / 1_000 + 2 * burst;
            assert!(sum <= most, "{sum} bytes in {} ms at {rate} a second", to.since(*from));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_lost_sent_twice_or_left_behind(terms in terms(), ops in prop::collection::vec(op(), 1..120)) {
        run(terms, &ops);
    }
}
