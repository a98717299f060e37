//! For each checker a planted bug, which it catches soon, in worlds in which nothing is wrong without it.

use overtake_sim::{Config, Promise, Sabotage, run};

/// So many seeds are tried at most.
const SEEDS: u64 = 60;

fn check(sabotage: Sabotage, promise: Promise) {
    check_within(SEEDS, sabotage, promise);
}

fn check_within(seeds: u64, sabotage: Sabotage, promise: Promise) {
    check_from(0, seeds, sabotage, promise);
}

/// From a seed on, where those before it see nothing for long, or only after minutes of calm.
fn check_from(first: u64, seeds: u64, sabotage: Sabotage, promise: Promise) {
    for seed in first..first + seeds {
        let outcome = run(seed, Config { sabotage: Some(sabotage), ..Config::default() });
        // A planted bug may break other promises, too, and in some worlds those first.
        if outcome.failure.is_none_or(|failure| failure.promise != promise) {
            continue;
        }
        let healthy = run(seed, Config::default());
        assert!(healthy.failure.is_none(), "seed {seed} without {sabotage:?}: {:?}", healthy.failure);
        return;
    }
    panic!("in {seeds} seeds nobody saw that {sabotage:?} breaks {}", promise.name());
}

#[test]
fn kept_sees_publishes_confirmed_before_they_are_durable() {
    check(Sabotage::ConfirmsEarly, Promise::Kept);
}

#[test]
fn gone_sees_settlements_confirmed_before_they_are_durable() {
    check(Sabotage::SettlesEarly, Promise::Gone);
}

#[test]
fn denied_sees_what_a_recovery_did_not_show() {
    check(Sabotage::ReplaysInbox, Promise::Denied);
}

#[test]
fn order_sees_two_messages_of_a_lane_change_places() {
    check(Sabotage::SwapsInLane, Promise::Order);
}

#[test]
fn pick_sees_a_message_go_before_a_more_urgent_one() {
    check(Sabotage::SwapsLanes, Promise::Pick);
}

#[test]
fn one_holder_sees_a_message_handed_out_twice() {
    check(Sabotage::DeliversTwice, Promise::OneHolder);
}

#[test]
fn cap_sees_one_lease_too_many() {
    check(Sabotage::RaisesCaps, Promise::Cap);
}

#[test]
fn aside_sees_a_queue_that_forgot_its_backoff() {
    check(Sabotage::ForgetsBackoff, Promise::Aside);
}

#[test]
fn expiry_sees_a_clock_that_is_behind() {
    check(Sabotage::ClockBehind, Promise::Expiry);
}

#[test]
fn awake_sees_a_broker_that_waits_for_a_wall_clock_that_was_set_back() {
    check_within(400, Sabotage::BelievesWallClock, Promise::Awake);
}

#[test]
fn conserved_sees_a_settlement_that_is_not_counted() {
    check(Sabotage::Miscounts, Promise::Conserved);
}

#[test]
fn refold_sees_a_fact_that_is_lost() {
    check(Sabotage::LosesFact, Promise::Refold);
}

#[test]
fn bounded_sees_that_nobody_keeps_house() {
    check_from(20, SEEDS, Sabotage::HoardsJournal, Promise::Bounded);
}

#[test]
fn alive_sees_a_batch_refused_while_the_disk_has_room() {
    check(Sabotage::NeverWaits, Promise::Alive);
}

#[test]
fn awake_sees_an_alarm_that_rings_late() {
    check(Sabotage::Oversleeps, Promise::Awake);
}

/// The same seed is the same story.
#[test]
fn a_seed_is_one_story() {
    for seed in 0..10 {
        let hash = || run(seed, Config::default()).hash;
        assert_eq!(hash(), hash(), "seed {seed}");
    }
}

#[test]
fn seen_sees_a_message_missing_on_a_page() {
    check(Sabotage::ShowsLess, Promise::Seen);
}

#[test]
fn seen_sees_a_message_left_out_of_a_change() {
    check(Sabotage::ChangesLess, Promise::Seen);
}

#[test]
fn budget_sees_a_look_at_all_messages_in_one_step() {
    check(Sabotage::LooksAtAll, Promise::Budget);
}

#[test]
fn routed_sees_a_copy_missing() {
    check(Sabotage::LosesCopy, Promise::Routed);
}

#[test]
fn kept_sees_a_publish_over_amqp_confirmed_that_nobody_asked_for() {
    check(Sabotage::SwallowsPublish, Promise::Kept);
}

#[test]
fn gone_sees_an_acknowledgement_over_amqp_that_is_lost() {
    check_within(300, Sabotage::SwallowsAck, Promise::Gone);
}

#[test]
fn kept_sees_a_byte_that_is_another_over_amqp() {
    check(Sabotage::BendsBytes, Promise::Kept);
}

#[test]
fn kept_sees_a_virtual_host_that_is_not_as_it_was_declared() {
    check(Sabotage::ForgetsLimits, Promise::Kept);
}

#[test]
fn kept_sees_a_policy_that_is_not_as_it_was_set() {
    check(Sabotage::RulesOtherwise, Promise::Kept);
}

#[test]
fn kept_sees_metadata_that_is_set_in_part() {
    check(Sabotage::SetsLess, Promise::Kept);
}

#[test]
fn kept_sees_routes_that_are_set_in_part() {
    check(Sabotage::SetsSomeRoutes, Promise::Kept);
}

#[test]
fn routed_sees_a_copy_at_another_level() {
    check(Sabotage::RoutesOtherwise, Promise::Routed);
}

#[test]
fn expiry_sees_a_copy_that_lives_as_its_queue_says_and_not_its_route() {
    check(Sabotage::ForgetsRouteTimes, Promise::Expiry);
}

#[test]
fn pick_sees_a_lease_of_a_lane_that_was_not_chosen() {
    check(Sabotage::TakesAnyLane, Promise::Pick);
}

#[test]
fn alive_sees_a_message_that_an_endpoint_sent_and_never_settled() {
    check(Sabotage::DropsSettles, Promise::Alive);
}

#[test]
fn alive_sees_a_message_that_an_endpoint_neither_sent_nor_put_back() {
    check_from(20, SEEDS, Sabotage::LosesPutBacks, Promise::Alive);
}

#[test]
fn pick_sees_an_endpoint_go_on_with_a_batch_that_was_to_halt() {
    check_within(300, Sabotage::IgnoresHalt, Promise::Pick);
}

#[test]
fn expiry_sees_an_endpoint_send_what_is_over() {
    check(Sabotage::SendsExpired, Promise::Expiry);
}

#[test]
fn order_sees_an_endpoint_send_a_batch_backwards() {
    check(Sabotage::SendsBackwards, Promise::Order);
}

#[test]
fn gone_sees_an_endpoint_send_again_what_it_knew_to_have_come() {
    check(Sabotage::ForgetsAnswer, Promise::Gone);
}

/// Seldom does something more urgent come and wait just then.
#[test]
fn pick_sees_an_endpoint_that_does_not_ask_what_is_more_urgent() {
    check_from(400, 300, Sabotage::LooksAway, Promise::Pick);
}

#[test]
fn budget_sees_all_that_has_come_due_done_in_one_step() {
    check(Sabotage::DoesAllAtOnce, Promise::Budget);
}
