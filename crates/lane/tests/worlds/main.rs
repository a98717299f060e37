//! Every sequence of commands up to a depth, in worlds so small that all of them can be tried.

#[path = "../model/mod.rs"]
#[allow(dead_code, reason = "larger worlds ask for more")]
mod model;
#[path = "../model/twin.rs"]
#[allow(dead_code, reason = "larger worlds ask for more")]
mod twin;
#[path = "../watch/mod.rs"]
#[expect(dead_code, reason = "only its way of looking is used here")]
mod watch;

use std::collections::BTreeMap;

use overtake_lane::{Backoff, Outcome, RateLimit, Time};

use crate::model::{Choice, Rules, Stand};
use crate::twin::Twin;

/// Walks every sequence of `alphabet`: each letter changes a copy of the world, or says that it means nothing there.
fn walk(twin: &Twin, depth: usize, letters: usize, spell: &impl Fn(&mut Twin, usize) -> bool) -> u64 {
    let mut seen = 0;
    for letter in 0..letters {
        let mut next = twin.clone();
        if spell(&mut next, letter) {
            next.compare_all();
            seen += 1;
            if depth > 1 {
                seen += walk(&next, depth - 1, letters, spell);
            }
        }
    }
    seen
}

fn alive(twin: &Twin) -> usize {
    twin.model.messages.iter().filter(|message| message.stand != Stand::Dead).count()
}

fn nth_ready(twin: &Twin, from_end: bool) -> Option<u64> {
    let mut ready = twin.model.messages.iter().filter(|message| message.stand == Stand::Ready);
    if from_end { ready.next_back() } else { ready.next() }.map(|message| message.seq)
}

const MESSAGES_MAX: usize = 3;

fn publish(twin: &mut Twin, priority: i32, ttl_ms: u64, delay_ms: u64) -> bool {
    let room = alive(twin) < MESSAGES_MAX;
    if room {
        twin.publish(priority, None, Some(ttl_ms).filter(|ms| *ms > 0), delay_ms);
    }
    room
}

fn publish_of(twin: &mut Twin, priority: i32, key: u8) -> bool {
    let room = alive(twin) <= MESSAGES_MAX;
    if room {
        twin.publish(priority, Some(key), None, 0);
    }
    room
}

fn settle(twin: &mut Twin, newest: bool, outcome: Outcome) -> bool {
    let leased = twin.leased();
    let one = if newest { leased.last().filter(|_| leased.len() > 1) } else { leased.first() };
    if let Some(seq) = one {
        twin.settle(*seq, outcome);
    }
    one.is_some()
}

/// Two consumers that stay; three priorities; three messages.
fn pushing(twin: &mut Twin, letter: usize) -> bool {
    const NACK: Outcome = Outcome::Nack { delay_ms: None };
    match letter {
        0..=2 => publish(twin, letter as i32, 0, 0),
        3 => settle(twin, false, Outcome::Ack),
        4 => settle(twin, true, Outcome::Ack),
        5 => settle(twin, false, NACK),
        6 => settle(twin, true, NACK),
        7 => nth_ready(twin, true).map(|seq| twin.reprioritise(seq, 2)).is_some(),
        8 => nth_ready(twin, false).map(|seq| twin.reprioritise(seq, 0)).is_some(),
        9 => nth_ready(twin, true).map(|seq| twin.remove(seq)).is_some(),
        10 | 11 => {
            let id = letter as u64;
            if twin.model.knows(overtake_lane::ConsumerId(id)) {
                twin.cancel(id);
            } else {
                twin.consume(id, 1, None, 0);
            }
            true
        }
        _ => unreachable!("no such letter"),
    }
}

/// Pulls, leases that end, expiry, delay.
fn pulling(twin: &mut Twin, letter: usize) -> bool {
    match letter {
        0 => publish(twin, 0, 0, 0),
        1 => publish(twin, 2, 0, 0),
        2 => publish(twin, 1, 10, 0),
        3 => publish(twin, 1, 0, 10),
        4 | 5 => {
            let id =
                100 + twin.model.tallies.len() as u64 + twin.model.now.0 * 100 + twin.leased().len() as u64;
            let fresh = !twin.model.knows(overtake_lane::ConsumerId(id));
            if fresh {
                twin.pull(id, 1, Choice::all(10), if letter == 4 { 0 } else { 15 });
            }
            fresh
        }
        6 => settle(twin, false, Outcome::Ack),
        7 => settle(twin, false, Outcome::Nack { delay_ms: None }),
        8 => settle(twin, true, Outcome::Reject),
        9 | 10 => {
            twin.wait(if letter == 9 { 5 } else { 10 });
            true
        }
        11 => {
            let dead = twin.model.messages.iter().find(|message| message.stand == Stand::Dead).map(|m| m.seq);
            dead.map(|seq| twin.replay(seq, None)).is_some()
        }
        _ => unreachable!("no such letter"),
    }
}

/// A consumer that stays, two keys in three lanes.
fn keyed(twin: &mut Twin, letter: usize) -> bool {
    const NACK: Outcome = Outcome::Nack { delay_ms: None };
    match letter {
        0 => publish_of(twin, 0, 1),
        1 => publish_of(twin, 2, 1),
        2 => publish_of(twin, 1, 2),
        3 => settle(twin, false, Outcome::Ack),
        4 => settle(twin, true, Outcome::Ack),
        5 => settle(twin, true, NACK),
        6 => nth_ready(twin, true).map(|seq| twin.reprioritise(seq, 2)).is_some(),
        7 => nth_ready(twin, false).map(|seq| twin.remove(seq)).is_some(),
        8 => {
            twin.wait(50);
            true
        }
        9 => {
            twin.cancel(10);
            twin.consume(10, 2, None, 0);
            true
        }
        10 | 11 => {
            let group_limit = letter - 9;
            let changes = twin.model.rules.group_limit != group_limit;
            if changes {
                twin.cap(0, BTreeMap::new(), group_limit);
            }
            changes
        }
        _ => unreachable!("no such letter"),
    }
}

/// So deep that each world takes seconds; the deeper ones are those in which most happens.
const DEPTH: usize = 6;
const DEEPER: usize = 7;

fn world(rules: &Rules) -> Twin {
    Twin::new(rules, Time(1_000))
}

fn caps(max_active: usize, lane: Option<(i32, usize)>) -> Rules {
    Rules { max_active, lane_caps: lane.into_iter().collect::<BTreeMap<_, _>>(), ..Rules::default() }
}

#[test]
fn whatever_two_consumers_do_without_a_cap_is_what_the_sorted_vector_says() {
    let mut twin = world(&caps(0, None));
    twin.consume(10, 1, None, 0);
    twin.consume(11, 2, None, 0);
    assert!(walk(&twin, DEPTH, 12, &pushing) > 100_000);
}

#[test]
fn whatever_two_consumers_do_under_a_cap_of_one_is_what_the_sorted_vector_says() {
    let mut twin = world(&caps(1, None));
    twin.consume(10, 2, None, 0);
    assert!(walk(&twin, DEPTH, 12, &pushing) > 100_000);
}

#[test]
fn whatever_two_consumers_do_under_a_lane_cap_with_urgent_credit_is_what_the_sorted_vector_says() {
    let mut twin = world(&caps(2, Some((0, 1))));
    twin.consume(10, 1, Some((2, 1)), 0);
    assert!(walk(&twin, DEEPER, 12, &pushing) > 100_000);
}

#[test]
fn whatever_pulls_and_time_do_is_what_the_sorted_vector_says() {
    assert!(walk(&world(&caps(2, None)), DEPTH, 12, &pulling) > 100_000);
}

#[test]
fn whatever_pulls_and_time_do_with_retries_and_a_short_queue_is_what_the_sorted_vector_says() {
    let rules = Rules {
        max_length: 2,
        delivery_limit: 2,
        backoff: Backoff { initial_ms: 5, ..Backoff::default() },
        dead_letter_expired: true,
        ..Rules::default()
    };
    assert!(walk(&world(&rules), DEEPER, 12, &pulling) > 100_000);
}

#[test]
fn whatever_pulls_and_time_do_under_aging_is_what_the_sorted_vector_says() {
    let rules = Rules { aging_ms: Some(5), ..Rules::default() };
    assert!(walk(&world(&rules), DEPTH, 12, &pulling) > 100_000);
}

#[test]
fn whatever_a_consumer_does_in_a_queue_with_groups_is_what_the_sorted_vector_says() {
    let mut twin = world(&Rules { group_limit: 1, ..Rules::default() });
    twin.consume(10, 2, None, 0);
    assert!(walk(&twin, DEPTH, 12, &keyed) > 100_000);
}

#[test]
fn whatever_a_consumer_does_in_a_queue_with_rates_is_what_the_sorted_vector_says() {
    let rate = |messages, per_ms| Some(RateLimit { messages, per_ms });
    let rules = Rules { rate: rate(2, 100), key_rate: rate(1, 100), ..Rules::default() };
    let mut twin = world(&rules);
    twin.consume(10, 2, None, 0);
    assert!(walk(&twin, DEPTH, 10, &keyed) > 10_000);
}
