//! Points 9 to 12: expiry, delay, leases, retries.

use expect_test::expect;
use overtake_lane::{Address, Broker, Command, Options, Place, Publish, Settings, Step, Time, VhostId};

use crate::story::{check, check_with};

// ---- 9: time to live ----

#[test]
fn the_least_of_the_own_ttl_the_queues_and_its_longest_counts() {
    check(
        r#""ttl_ms":1000,"max_ttl_ms":5000"#,
        "publish a b,ttl=500 c,ttl=9000 · show a · show b · show c",
        expect![
            "a 4 is ready in 4, leased 0x, expires in 1000ms · b 4 is ready in 4, leased 0x, expires in 500ms · c 4 is ready in 4, leased 0x, expires in 1000ms"
        ],
    );
    check(
        r#""max_ttl_ms":5000"#,
        "publish a · show a",
        expect!["a 4 is ready in 4, leased 0x, expires in 5000ms"],
    );
}

#[test]
fn the_global_ttl_holds_where_the_queue_says_nothing() {
    let options = Options { default_ttl_ms: 700, ..Options::default() };
    check_with(options, "", "publish a · show a", expect!["a 4 is ready in 4, leased 0x, expires in 700ms"]);
    check_with(
        options,
        r#""ttl_ms":900"#,
        "publish a · show a",
        expect!["a 4 is ready in 4, leased 0x, expires in 900ms"],
    );
}

#[test]
fn nothing_set_is_never() {
    check("", "publish a · +315360000000ms · lease", expect!["a"]);
}

#[test]
fn the_expiry_is_stamped_at_publish_and_no_setting_moves_it() {
    check(
        r#""ttl_ms":1000"#,
        r#"publish a · settings "ttl_ms":9000 · publish b · +999ms · left · +1ms · left · settings "ttl_ms":1 · +1ms · left"#,
        expect!["ready a b · ready b · ready b"],
    );
}

#[test]
fn nothing_is_delivered_at_or_after_its_expiry() {
    check("", "publish a,ttl=100 · +99ms · lease · release a · +1ms · lease", expect!["a · nothing"]);
}

#[test]
fn a_run_of_expired_heads_never_lets_a_lower_message_pass() {
    check("", "publish a:9,ttl=10 b:9,ttl=10 c:9,ttl=10 d:9 e:1 · +10ms · lease · lease", expect!["d · e"]);
}

#[test]
fn an_expired_low_message_does_not_wait_behind_a_live_urgent_one() {
    check(
        "",
        "publish a:9 b:1,ttl=10 · +10ms · left · lanes",
        expect!["ready a · 9: 1 ready 1 bytes 10 oldest 1 published, 1: 1 published 1 expired"],
    );
}

#[test]
fn an_expired_message_is_gone_wherever_it_stood() {
    check(
        "",
        "publish r,ttl=10 d,ttl=10,delay=5000 · publish l:9,ttl=10 · lease for=1000 · +10ms · left · nack l · left",
        expect!["l · leased l · empty"],
    );
}

#[test]
fn a_lease_may_outlive_the_expiry_and_be_acknowledged() {
    check("", "publish a,ttl=10 · lease for=1000 · +500ms · ack a · left", expect!["a · empty"]);
}

#[test]
fn a_lease_that_ends_after_the_expiry_does_not_bring_the_message_back() {
    check("", "publish a,ttl=10 · lease for=1000 · +1000ms · left", expect!["a · empty"]);
    check("", "publish a,ttl=10 · consume w · +1000ms · cancel w · left", expect!["w:a · empty"]);
}

#[test]
fn an_expired_message_becomes_a_dead_letter_if_the_queue_says_so() {
    check(
        r#""dead_letter_expired":true"#,
        "publish a:7,ttl=10 · +10ms · left · +5ms · show a",
        expect!["dead a · a 7 is dead in 7, leased 0x, expires in 0ms, died Expired in q/7 after 0, 5ms ago"],
    );
}

#[test]
fn time_that_jumps_over_many_deadlines_lets_all_that_is_over_go_first() {
    // The lease of `m` ends and it moves into r, which is full of what has expired meanwhile.
    check(
        r#""delivery_limit":1,"dead_letter":{"queue":"r"}"#,
        r#"declare r "max_length":1,"overflow":"reject" · publish m:1 · lease for=100 · in r · publish x:9,ttl=200 · +1000ms · left · in q · left"#,
        expect!["made · m · ready m · empty"],
    );
}

// ---- 10: delay ----

#[test]
fn a_delayed_message_is_out_of_the_lanes_until_due_then_at_its_place() {
    check(
        "",
        "publish a:5,delay=100 b:5 c:5 · left · +100ms · lease 9",
        expect!["ready b c, delayed a · a b c"],
    );
}

#[test]
fn a_message_that_comes_due_wakes_who_waits() {
    check("", "lease wait=500 as=p · publish a:5,delay=100 · +99ms · +1ms", expect!["p:a"]);
}

#[test]
fn messages_that_come_due_together_go_by_priority_and_sequence() {
    check(
        "",
        "publish a:1,delay=50 b:9,delay=90 c:9,delay=10 d:1,delay=20 · lease 9 wait=900 as=p · +100ms",
        expect!["p:b p:c p:a p:d"],
    );
}

// ---- 11: leases ----

#[test]
fn a_lease_lasts_thirty_seconds_unless_told_otherwise() {
    check("", "publish a · lease · +29999ms · ack a · left", expect!["a · empty"]);
    check("", "publish a · lease · +30000ms · ack a · left", expect!["a · no: stale-receipt · ready a"]);
    check(r#""visibility_timeout_ms":50"#, "publish a · lease · +50ms · left", expect!["a · ready a"]);
}

#[test]
fn a_lease_of_zero_has_no_end_of_its_own() {
    check(
        r#""visibility_timeout_ms":0"#,
        "publish a · lease · +999999999ms · ack a · left",
        expect!["a · empty"],
    );
    check("", "publish a · lease for=0 · +999999999ms · ack a · left", expect!["a · empty"]);
}

#[test]
fn a_stale_receipt_is_refused_and_does_nothing() {
    check(
        "",
        "publish a · lease for=10 · +10ms · lease for=10 · ack a#1 · nack a#1 · reject a#1 · extend a#1 for=99 · left · ack a#2 · ack a#2 · left",
        expect![
            "a · a(2) · no: stale-receipt · no: stale-receipt · no: stale-receipt · no: stale-receipt · leased a · no: stale-receipt · empty"
        ],
    );
}

#[test]
fn each_receipt_of_a_request_is_settled_for_itself() {
    check(
        "",
        "publish a b c · lease 3 · ack a zzz c c · left",
        expect!["a b c · no: stale-receipt · no: stale-receipt · leased b"],
    );
}

#[test]
fn extend_lengthens_a_lease_from_now() {
    check(
        "",
        "publish a · lease for=100 · +90ms · extend a for=100 · +90ms · left · +10ms · left",
        expect!["a · leased a · ready a"],
    );
}

#[test]
fn a_pulls_lease_survives_a_restart_with_its_deadline_and_counts_against_the_cap() {
    check(
        r#""max_active":1"#,
        "publish a b · lease for=1000 · restart · lease · +999ms · lease · +1ms · lease for=500 · ack a#1 · ack a · lease",
        expect!["a · nothing · nothing · a(2) · no: stale-receipt · b"],
    );
}

#[test]
fn a_receipt_of_the_life_before_still_settles_its_lease() {
    check("", "publish a b · lease for=1000 · restart · ack a · left", expect!["a · ready b"]);
}

#[test]
fn a_lease_given_just_before_a_crash_is_never_mistaken_for_one_of_the_next_life() {
    check(
        "",
        "consume w window=1 · publish a · restart · lease · ack a#1 · left · ack a#2 · left",
        expect!["w:a · a · no: stale-receipt · leased a · empty"],
    );
}

#[test]
fn the_leases_of_a_consumer_that_stays_end_with_it_and_not_by_time() {
    check(
        "",
        "consume w · publish a · +999999999ms · left · cancel w · left · ack a",
        expect!["w:a · leased a · ready a · no: stale-receipt"],
    );
}

// ---- 12: retry ----

#[test]
fn the_first_wait_is_the_initial_one_and_each_further_one_longer_up_to_the_cap() {
    check(
        r#""backoff":{"initial_ms":100,"multiplier":3,"max_ms":500}"#,
        "publish a · lease · nack a · show a · +100ms · lease · nack a · show a · +300ms · lease · nack a · show a",
        expect![
            "a · a 4 is delayed in 4, leased 1x, due in 100ms · a(2) · a 4 is delayed in 4, leased 2x, due in 300ms · a(3) · a 4 is delayed in 4, leased 3x, due in 500ms"
        ],
    );
}

#[test]
fn a_delay_with_the_nack_takes_the_place_of_the_backoff() {
    check(
        r#""backoff":{"initial_ms":100}"#,
        "publish a b · lease 2 · nack a delay=7 · nack b delay=0 · left · +7ms · left",
        expect!["a b · ready b, delayed a · ready a b"],
    );
}

#[test]
fn after_the_delivery_limit_a_message_that_fails_again_is_a_dead_letter() {
    check(
        r#""delivery_limit":2"#,
        "publish a:6 · lease · nack a · lease · nack a · left · show a",
        expect![
            "a · a(2) · dead a · a 6 is dead in 6, leased 2x, died DeliveryLimit in q/6 after 2, 0ms ago"
        ],
    );
}

#[test]
fn a_lease_that_runs_out_or_is_lost_counts_towards_the_limit_and_a_released_one_does_not() {
    check(r#""delivery_limit":1"#, "publish a · lease for=5 · +5ms · left", expect!["a · dead a"]);
    check(r#""delivery_limit":1"#, "publish a · consume w · cancel w · left", expect!["w:a · dead a"]);
    check(r#""delivery_limit":1"#, "publish a · lease · release a · left", expect!["a · ready a"]);
    check(
        r#""delivery_limit":2"#,
        "publish a · lease · release a · lease · release a · lease · nack a · lease · nack a · left",
        expect!["a · a · a · a(2) · dead a"],
    );
}

#[test]
fn every_delivery_that_failed_waits_the_backoff_and_a_release_does_not() {
    let backoff = r#""backoff":{"initial_ms":100}"#;
    check(
        backoff,
        "publish a · lease for=5 · +5ms · left · +100ms · left",
        expect!["a · delayed a · ready a"],
    );
    check(
        backoff,
        "publish a · consume w · cancel w · left · +100ms · left",
        expect!["w:a · delayed a · ready a"],
    );
    check(backoff, "publish a · lease · release a · left", expect!["a · ready a"]);
}

#[test]
fn the_count_is_durable() {
    check(
        r#""delivery_limit":2"#,
        "publish a · lease · nack a · restart · lease · restart · nack a · left",
        expect!["a · a(2) · dead a"],
    );
}

#[test]
fn a_limit_of_zero_is_for_ever() {
    check(
        "",
        "publish a · lease · nack a · lease · nack a · lease · nack a · left",
        expect!["a · a(2) · a(3) · ready a"],
    );
}

#[test]
fn reject_is_a_dead_letter_at_once() {
    check(r#""delivery_limit":9"#, "publish a · lease · reject a · left", expect!["a · dead a"]);
}

// ---- the clock ----

#[test]
fn time_never_goes_back_when_the_clock_does() {
    let mut broker = Broker::new(Options::default());
    let settings = Box::new(Settings { ttl_ms: 100, ..Settings::default() });
    let declare = Command::declare("q".into(), settings);
    broker.apply(Time(1_000), declare, &mut Step::default()).expect("made");
    let publish = Publish {
        to: Address::Queue("q".into()),
        priority: 5.into(),
        id: Some("a".into()),
        origin: None,
        key: None,
        key_weight: None,
        ttl_ms: None,
        base_ttl_ms: None,
        delay_ms: 0,
        bytes: 1,
        place: Place(1),
    };
    broker.apply(Time(400), Command::Publish(publish), &mut Step::default()).expect("taken");
    let (view, ..) = broker.message(VhostId::DEFAULT, "q", "a").expect("it is there");
    assert_eq!((view.since, view.expires, broker.now()), (Time(1_000), Some(Time(1_100)), Time(1_000)));
    broker.tick(Time(1_100), &mut Step::default());
    broker.tick(Time(2), &mut Step::default());
    assert!(broker.message(VhostId::DEFAULT, "q", "a").is_err(), "what has expired stays expired");
}
