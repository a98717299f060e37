//! What is promised of an endpoint, sentence by sentence.

use overtake_forward::{Action, Forwarder, State, Terms};
use overtake_lane::Priority;

use crate::world::{Makes, START, Stand, World};

fn world() -> World {
    World::new(Terms::default())
}

#[test]
fn the_most_urgent_lane_is_sent_first_and_each_lane_in_order() {
    let mut world = world();
    world.is_up = false;
    world.publish("a:1 b:5 c:1 d:9 e:5");
    world.mends();
    world.pass(20_000);
    assert_eq!(world.told(), "d b e a c");
    assert!(world.messages.values().all(|one| one.stand == Stand::Acked));
}

#[test]
fn an_urgent_message_is_the_very_next_one_in_the_midst_of_a_batch() {
    let mut world = world();
    world.publish("a:1 b:1 c:1 d:1");
    world.pass(15);
    world.publish("x:9 y:5");
    world.pass(1_000);
    assert_eq!(world.told(), "a b x y c d");
}

#[test]
fn what_expires_while_a_batch_is_under_way_is_not_sent() {
    let mut world = world();
    world.publish("a:1 b:1,ttl=5 c:1,ttl=25");
    world.pass(1_000);
    assert_eq!(world.told(), "a c");
    assert_eq!(world.forwarder.view(world.now).lanes["1"].expired, 1);
}

#[test]
fn a_message_that_fails_waits_aside_and_is_tried_again() {
    let mut world = world();
    world.makes =
        Box::new(|one| if one.name == "b" && one.count < 3 { Makes::Fails } else { Makes::Accepts });
    world.publish("a:1 b:1 c:1");
    world.pass(500);
    assert_eq!(world.told(), "a b c");
    world.pass(1_000);
    assert_eq!(world.told(), "b");
    world.pass(2_000);
    assert_eq!(world.told(), "b");
    assert_eq!(world.accepted.join(" "), "a c b");
}

#[test]
fn a_message_that_is_refused_is_dead_and_no_other() {
    let mut world = world();
    world.makes = Box::new(|one| if one.name == "b" { Makes::Refuses } else { Makes::Accepts });
    world.publish("a:1 b:1 c:1");
    world.pass(100);
    let stands: Vec<_> = world.messages.values().map(|one| one.stand).collect();
    assert_eq!(stands, [Stand::Acked, Stand::Dead, Stand::Acked]);
}

#[test]
fn a_lane_that_fails_is_left_out_for_a_while_and_holds_back_no_other() {
    let mut world = world();
    world.makes = Box::new(|one| if one.level == 5 { Makes::Fails } else { Makes::Accepts });
    world.publish("a:5 b:5 c:5 d:5 e:5 f:5 g:5 h:5 i:5 j:5 k:5 l:5 x:1 y:9");
    world.pass(140);
    assert_eq!(world.told(), "y a b c d e x", "after five of its batch the breaker is open");
    let view = world.forwarder.view(world.now);
    assert!(view.breakers["5"].open_until.is_some() && view.breakers.len() == 1);
    world.publish("z:1");
    world.pass(100);
    assert_eq!(world.told(), "z");
    world.makes = Box::new(|_| Makes::Accepts);
    world.pass(600_000);
    assert_eq!(world.accepted.len(), 15);
    assert!(world.forwarder.view(world.now).breakers.is_empty());
}

#[test]
fn a_breaker_that_is_half_open_lets_one_message_through() {
    let mut world = World::new(Terms { breaker_failures: 1, ..Terms::default() });
    world.makes = Box::new(|_| Makes::Busy(1_000));
    world.publish("a:5 b:5 c:5");
    world.pass(900);
    world.told();
    world.pass(200);
    assert_eq!(world.told(), "a", "one is enough to see that it is busy still");
}

#[test]
fn who_is_busy_is_left_alone_as_long_as_it_said_and_the_order_stays() {
    let mut world = world();
    world.makes =
        Box::new(|one| if one.leases == 1 && one.name == "a" { Makes::Busy(5_000) } else { Makes::Accepts });
    world.publish("a:5");
    world.pass(20);
    world.publish("b:5 c:1");
    world.pass(4_900);
    assert_eq!(world.told(), "a c");
    world.pass(200);
    assert_eq!(world.told(), "a b");
}

#[test]
fn a_line_that_breaks_loses_nothing_and_begins_again_with_the_most_urgent() {
    let mut world = world();
    world.publish("a:1 b:1 c:1");
    world.pass(15);
    world.breaks();
    assert_eq!(world.told(), "a b");
    world.publish("x:9");
    world.pass(60_000);
    assert_eq!(world.told(), "");
    assert_eq!(world.forwarder.view(world.now).state, State::Down);
    world.mends();
    world.pass(11_000);
    assert_eq!(world.told(), "x b c");
    assert_eq!(world.accepted.join(" "), "a x b c");
}

#[test]
fn a_message_at_which_the_receiver_hangs_up_waits_aside_after_three_times_and_its_neighbours_go() {
    let mut world = world();
    world.makes = Box::new(|one| if one.name == "a" { Makes::HangsUp } else { Makes::Accepts });
    world.publish("a:5 b:5 d:5 c:1");
    world.pass(900);
    assert_eq!(world.told(), "a a a b d c", "the next of its lane gets through, so it is the message");
    let count =
        |world: &World| world.messages.values().find(|one| one.name == "a").expect("it is there").count;
    assert_eq!(count(&world), 1, "the first three are one attempt");
    world.pass(30_000);
    let again = world.told();
    assert!(again.split(' ').all(|name| name == "a"), "{again}");
    assert_eq!(count(&world) as usize, 1 + again.split(' ').count(), "each further one is one");
    assert_eq!(world.forwarder.view(world.now).last_error.expect("said").1.as_ref(), "at a");
}

#[test]
fn one_of_several_on_their_way_is_found_and_the_others_are_sent_once_more_at_most() {
    let mut world = world();
    world.window = 4;
    world.makes = Box::new(|one| if one.name == "c" { Makes::HangsUp } else { Makes::Accepts });
    world.publish("a:5 b:5 c:5 d:5 e:5 f:5");
    world.pass(900);
    assert_eq!(world.told(), "a b c d a b c c d e f");
    assert_eq!(world.accepted.join(" "), "a b d e f");
}

#[test]
fn two_messages_at_which_the_receiver_hangs_up_do_not_hold_up_a_third() {
    let mut world = world();
    world.makes = Box::new(|one| if "ab".contains(&one.name) { Makes::HangsUp } else { Makes::Accepts });
    world.publish("a:5 b:5 c:5 d:5");
    world.pass(10_000);
    assert_eq!(world.accepted.join(" "), "c d");
}

#[test]
fn a_message_that_the_receiver_never_answers_does_not_hold_up_its_lane() {
    let mut world = World::new(Terms { batch_ms: 1_000, ..Terms::default() });
    world.makes = Box::new(|one| if one.name == "a" { Makes::Hangs } else { Makes::Accepts });
    world.publish("a:5 b:5 c:5");
    world.pass(5_000);
    assert!(world.told().starts_with("a a a b c"), "{:?}", world.read);
    assert_eq!(world.accepted.join(" "), "b c");
}

/// Of several lanes, one with a single message, none of which gets through for a while.
#[test]
fn a_receiver_that_is_down_for_a_while_costs_no_attempt() {
    let mut world = world();
    world.publish("z:9");
    world.pass(100);
    world.makes = Box::new(|_| Makes::HangsUp);
    world.publish("a:5 b:5 c:5 d:5 e:5 f:5 x:3 y:3 w:1");
    world.pass(600_000);
    let failed = |world: &World| world.messages.values().filter(|one| one.count > 0).count();
    assert_eq!(failed(&world), 1, "only the one that was answered before has an attempt");
    world.told();
    world.makes = Box::new(|_| Makes::Accepts);
    world.pass(30_000);
    assert_eq!(
        world.accepted.join(" "),
        "z x a b c d e f y w",
        "the first that is tried tells, and the most urgent go next"
    );
}

#[test]
fn a_message_that_is_alone_waits_aside_after_three_times() {
    let mut world = world();
    world.makes = Box::new(|_| Makes::HangsUp);
    world.publish("a:5");
    world.pass(900);
    assert_eq!(world.told(), "a a a");
}

#[test]
fn a_receiver_that_hangs_up_on_everything_changes_no_order() {
    let mut world = world();
    world.makes = Box::new(|_| Makes::HangsUp);
    world.publish("a:5 b:5 c:1");
    world.pass(8_000);
    world.told();
    world.publish("x:9");
    world.pass(20);
    assert!(world.told().starts_with('x'), "what is more urgent is tried at once");
    world.makes = Box::new(|_| Makes::Accepts);
    world.pass(10_000);
    assert_eq!(world.accepted.join(" "), "x a b c");
}

#[test]
fn a_receiver_that_says_nothing_is_given_up() {
    let mut world = World::new(Terms { batch_ms: 1_000, breaker_failures: 1, ..Terms::default() });
    world.makes = Box::new(|one| if one.name == "a" { Makes::Hangs } else { Makes::Accepts });
    world.publish("a:1");
    world.publish("b:5");
    world.pass(500);
    world.publish("x:9");
    world.pass(700);
    assert_eq!(world.told(), "a x b", "what came meanwhile goes as soon as the line is free");
    let view = world.forwarder.view(world.now);
    assert_eq!(view.last_error.expect("said").1.as_ref(), "no answer within 1000 ms");
    assert!(view.breakers["1"].open_until.is_some());
}

#[test]
fn a_receiver_that_is_gone_pauses_the_endpoint_until_somebody_resumes_it() {
    let mut world = world();
    world.makes = Box::new(|_| Makes::Gone);
    world.publish("a:1");
    world.pass(600_000);
    assert_eq!(world.told(), "a");
    assert_eq!(world.forwarder.view(world.now).state, State::Paused);
    assert!(world.forwarder.is_at_rest());
    world.makes = Box::new(|_| Makes::Accepts);
    world.forwarder.resume(world.now);
    world.pass(100);
    assert_eq!(world.told(), "a");
}

#[test]
fn bytes_go_at_their_rate_and_nothing_waits_leased() {
    let mut world = World::new(Terms { bytes_per_second: 1_000, ..Terms::default() });
    for nth in 0..100 {
        world.publish(&format!("m{nth}:1"));
    }
    world.pass(5_000);
    let sent = world.accepted.len();
    assert!((50..=60).contains(&sent), "{sent} messages of 100 bytes in 5 s at 1,000 bytes a second");
    assert!(
        !world.messages.values().any(|one| matches!(one.stand, Stand::Leased(_))),
        "it waits in the queue"
    );
    assert_eq!(world.forwarder.view(world.now).state, State::Waiting);
    world.publish("x:9");
    world.told();
    world.pass(1_100);
    assert!(world.told().starts_with("x "));
}

#[test]
fn the_reserve_of_a_day_is_for_urgent_messages() {
    let mut world = World::new(Terms {
        daily_bytes: 1_000,
        reserve_bytes: 300,
        reserve_from: Some(Priority(7)),
        batch: Some(1),
        ..Terms::default()
    });
    for nth in 0..20 {
        world.publish(&format!("m{nth}:1"));
    }
    world.pass(1_000);
    assert_eq!(world.told(), "m0 m1 m2 m3 m4 m5 m6");
    world.publish("x:7 y:9 z:6");
    world.pass(1_000);
    assert_eq!(world.told(), "y x");
    world.pass(START.after(86_400_000).since(world.now));
    world.pass(50);
    assert!(world.told().starts_with("z m7"), "a new day");
}

#[test]
fn what_is_paused_finishes_the_message_that_is_being_sent_and_puts_back_the_batch() {
    let mut world = world();
    world.publish("a:1 b:1 c:1");
    world.pass(15);
    world.forwarder.pause();
    world.pass(1_000);
    assert_eq!(world.accepted.join(" "), "a b");
    assert!(world.forwarder.is_at_rest());
    world.publish("d:1");
    world.pass(1_000);
    assert_eq!(world.accepted.len(), 2);
    world.forwarder.resume(world.now);
    world.pass(100);
    assert_eq!(world.accepted.join(" "), "a b c d");
}

#[test]
fn a_stop_does_not_wait_for_a_connection_that_never_comes() {
    for stop in [Forwarder::stop, Forwarder::pause] {
        let mut forwarder = Forwarder::new(Terms::default(), 7);
        assert_eq!(forwarder.poll(START), Some(Action::Connect { line: 0 }));
        stop(&mut forwarder);
        assert_eq!(forwarder.poll(START), Some(Action::Disconnect { line: 0 }));
        assert!(forwarder.is_at_rest());
    }
}

#[test]
fn several_lines_send_at_once_and_each_one_batch() {
    let mut world = World::new(Terms { fan_out: 3, batch: Some(2), ..Terms::default() });
    world.publish("a:1 b:1 c:1 d:1 e:1 f:1 g:1");
    world.pass(5);
    assert_eq!(world.told(), "a c e");
    world.pass(1_000);
    assert_eq!(world.accepted.len(), 7);
}

#[test]
fn terms_that_cannot_hold_are_named() {
    let bad = |terms: Terms| terms.check().expect_err("it cannot hold").to_string();
    assert_eq!(bad(Terms { fan_out: 0, ..Terms::default() }), "`fan_out` must be 1 to 64");
    assert_eq!(bad(Terms { batch: Some(0), ..Terms::default() }), "`batch` must be 1 to 10000");
    let reserve = Terms { reserve_bytes: 1, ..Terms::default() };
    assert_eq!(bad(reserve), "`reserve_bytes` must be no more than `daily_bytes`");
}
