//! One queue against the sorted vector: whatever happens, both give the same messages to the same takers in the same order.

use std::collections::BTreeMap;

use overtake_lane::{Backoff, Outcome, RateLimit, Time};
use proptest::prelude::*;

use crate::model::{Choice, Rules, Stand};
use crate::twin::Twin;

/// One thing to do; indices choose among what is there.
#[derive(Clone, Debug)]
enum Op {
    Publish { priority: i32, key: Option<u8>, ttl_ms: Option<u64>, delay_ms: u64 },
    Consume { id: u64, window: usize, urgent: Option<(i32, usize)>, first: i32 },
    Cancel { id: u64 },
    Pull { max: usize, choice: Choice, wait_ms: u64 },
    Settle { index: usize, outcome: Outcome },
    Stale { outcome: Outcome },
    Extend { index: usize, visibility_ms: u64 },
    Reprioritise { index: usize, priority: i32 },
    Remove { index: usize },
    Replay { index: usize, promote: Option<i32> },
    Purge,
    Wait { ms: u64 },
    Cap { max_active: usize, lane: Option<(i32, usize)>, group_limit: usize },
}

fn ms() -> impl Strategy<Value = u64> {
    prop_oneof![3 => Just(0), 3 => 1..50_u64, 2 => 50..2_000_u64, 1 => 2_000..500_000_u64, 1 => Just(1 << 40)]
}

fn ttl() -> impl Strategy<Value = Option<u64>> {
    prop_oneof![3 => Just(None), 1 => Just(Some(0)), 6 => ms().prop_map(|ms| Some(ms).filter(|ms| *ms > 0))]
}

fn outcome() -> impl Strategy<Value = Outcome> {
    prop_oneof![
        4 => Just(Outcome::Ack),
        3 => Just(Outcome::Nack { delay_ms: None }),
        1 => ms().prop_map(|ms| Outcome::Nack { delay_ms: Some(ms) }),
        1 => Just(Outcome::Release),
        1 => Just(Outcome::Reject),
    ]
}

fn urgent() -> impl Strategy<Value = Option<(i32, usize)>> {
    prop::option::of((0..10, 0..3_usize))
}

fn choice() -> impl Strategy<Value = Choice> {
    let (at_least, except) =
        (prop_oneof![3 => Just(i32::MIN), 1 => 0..11_i32], prop::collection::vec(0..10_i32, 0..3));
    (at_least, except, any::<bool>(), prop::option::weighted(0.7, ms()))
        .prop_map(|(at_least, except, one, visibility_ms)| Choice { at_least, except, one, visibility_ms })
}

fn key() -> impl Strategy<Value = Option<u8>> {
    prop::option::weighted(0.7, 0..4_u8)
}

fn group_limit() -> impl Strategy<Value = usize> {
    prop_oneof![2 => Just(0), 1 => 1..3_usize]
}

fn rate() -> impl Strategy<Value = Option<RateLimit>> {
    let rate =
        (1..4_u32, ms()).prop_map(|(messages, ms)| RateLimit { messages, per_ms: ms.clamp(1, 100_000) });
    prop::option::weighted(0.25, rate)
}

fn lane_cap() -> impl Strategy<Value = Option<(i32, usize)>> {
    prop::option::of((0..10, 1..4_usize))
}

fn op() -> impl Strategy<Value = Op> {
    let (index, priority) = (any::<prop::sample::Index>().prop_map(|index| index.index(1_000)), 0..10_i32);
    prop_oneof![
        12 => (priority.clone(), key(), ttl(), ms())
            .prop_map(|(priority, key, ttl_ms, delay_ms)| Op::Publish { priority, key, ttl_ms, delay_ms }),
        12 => (priority.clone(), key())
            .prop_map(|(priority, key)| Op::Publish { priority, key, ttl_ms: None, delay_ms: 0 }),
        2 => (0..4_u64, 1..5_usize, urgent(), 0..2).prop_map(|(id, window, urgent, first)| Op::Consume { id, window, urgent, first }),
        1 => (0..4_u64).prop_map(|id| Op::Cancel { id }),
        6 => (1..4_usize, choice(), ms()).prop_map(|(max, choice, wait_ms)| Op::Pull { max, choice, wait_ms }),
        12 => (index.clone(), outcome()).prop_map(|(index, outcome)| Op::Settle { index, outcome }),
        1 => outcome().prop_map(|outcome| Op::Stale { outcome }),
        1 => (index.clone(), ms()).prop_map(|(index, visibility_ms)| Op::Extend { index, visibility_ms }),
        3 => (index.clone(), priority.clone()).prop_map(|(index, priority)| Op::Reprioritise { index, priority }),
        2 => index.clone().prop_map(|index| Op::Remove { index }),
        2 => (index, prop::option::of(priority)).prop_map(|(index, promote)| Op::Replay { index, promote }),
        1 => Just(Op::Purge),
        6 => ms().prop_map(|ms| Op::Wait { ms }),
        1 => (0..6_usize, lane_cap(), group_limit())
            .prop_map(|(max_active, lane, group_limit)| Op::Cap { max_active, lane, group_limit }),
    ]
}

fn rules() -> impl Strategy<Value = Rules> {
    let keys = (group_limit(), rate(), rate());
    let limits = (0..6_usize, lane_cap(), prop_oneof![Just(0_usize), 1..20_usize], any::<bool>(), keys);
    let deaths = (0..4_u32, ms(), any::<bool>(), any::<bool>(), ms());
    let pays = (prop::bool::weighted(0.2), any::<bool>(), prop::bool::weighted(0.1));
    (prop::option::of(1..3_000_u64), limits, deaths, pays).prop_map(
        |(
            aging_ms,
            (max_active, lane, max_length, rejects, (group_limit, rate, key_rate)),
            (delivery_limit, wait, drops_dead, dead_letter_expired, ttl),
            (rejects_dead, dead_letter_evicted, at_once),
        )| Rules {
            aging_ms,
            max_active,
            lane_caps: lane.into_iter().collect(),
            group_limit,
            rate,
            key_rate,
            max_length,
            rejects,
            rejects_dead,
            dead_letter_evicted,
            delivery_limit,
            backoff: Backoff { initial_ms: wait.min(10_000), multiplier: 3, max_ms: 100_000 },
            drops_dead,
            dead_letter_expired,
            ttl_ms: ttl % 100_000,
            at_once,
        },
    )
}

fn act(twin: &mut Twin, op: &Op, nth: u64) {
    let seqs: Vec<u64> = twin.model.messages.iter().map(|message| message.seq).collect();
    let any_seq = |index: usize| seqs.get(index % seqs.len().max(1)).copied();
    let leased = twin.leased();
    let leased = |index: usize| leased.get(index % leased.len().max(1)).copied();
    match *op {
        Op::Publish { priority, key, ttl_ms, delay_ms } => twin.publish(priority, key, ttl_ms, delay_ms),
        Op::Consume { id, window, urgent, first } => {
            twin.cancel(id);
            twin.consume(id, window, urgent, first);
        }
        Op::Cancel { id } => twin.cancel(id),
        Op::Pull { max, ref choice, wait_ms } => twin.pull(1_000 + nth, max, choice.clone(), wait_ms),
        Op::Settle { index, outcome } => leased(index).into_iter().for_each(|seq| twin.settle(seq, outcome)),
        Op::Stale { outcome } => twin.try_stale(outcome),
        Op::Extend { index, visibility_ms } => {
            leased(index).into_iter().for_each(|seq| twin.extend(seq, visibility_ms))
        }
        Op::Reprioritise { index, priority } => {
            any_seq(index).into_iter().for_each(|seq| twin.reprioritise(seq, priority))
        }
        Op::Remove { index } => any_seq(index).into_iter().for_each(|seq| twin.remove(seq)),
        Op::Replay { index, promote } => {
            let dead =
                twin.model.messages.iter().filter(|message| message.stand == Stand::Dead).map(|m| m.seq);
            let dead: Vec<u64> = dead.collect();
            let chosen = dead.get(index % dead.len().max(1)).copied().or(any_seq(index));
            chosen.into_iter().for_each(|seq| twin.replay(seq, promote));
        }
        Op::Purge => twin.purge(),
        Op::Wait { ms } => twin.wait(ms),
        Op::Cap { max_active, lane, group_limit } => {
            twin.cap(max_active, lane.into_iter().collect::<BTreeMap<_, _>>(), group_limit)
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, max_shrink_iters: 20_000, ..ProptestConfig::default() })]

    #[test]
    fn a_queue_does_what_the_sorted_vector_says(rules in rules(), ops in prop::collection::vec(op(), 1..300)) {
        let mut twin = Twin::new(&rules, Time(1_000_000));
        for (nth, op) in ops.iter().enumerate() {
            act(&mut twin, op, nth as u64);
            twin.compare_all();
        }
    }
}
