//! Points 13 to 16: caps, windows, urgent credit, full queues, last value, ids and positions.

use expect_test::expect;
use overtake_lane::{
    Address, Broker, Command, Consume, ConsumerId, Effect, Given, Options, Place, Publish, Settings, Step,
    Time,
};

use crate::story::{check, check_with};

// ---- 13: caps and windows ----

#[test]
fn max_active_caps_leases_over_all_consumers() {
    check(
        r#""max_active":2"#,
        "consume v window=1 · consume w window=9 · publish a b c · lease · ack a · ack b · ack c",
        expect!["v:a · w:b · nothing · v:c"],
    );
}

#[test]
fn a_pull_takes_no_more_bytes_than_it_may_and_one_message_at_least() {
    check(
        "",
        "publish a:9,bytes=4 b:9,bytes=4 c:5,bytes=4 d:5,bytes=2 e:5,bytes=99 · lease 9 bytes=10 · lease 9 bytes=10 · left · \
         lease bytes=10 · lease 9 bytes=1",
        expect!["a b · c d · ready e, leased a b c d · e · nothing"],
    );
    // What is too much for one is for the next, and the one that has something does not wait for more.
    check(
        "",
        "lease 9 bytes=6 wait=500 as=p · lease 9 bytes=6 wait=500 as=q · [publish a:5,bytes=4 ; publish b:5,bytes=4 ; publish c:5,bytes=4] · left",
        expect!["p:a q:b · ready c, leased a b"],
    );
}

#[test]
fn a_lane_cap_keeps_slots_for_urgent_work() {
    check(
        r#""scheme":"named","max_active":3,"lanes":{"background":{"max_active":2}}"#,
        "consume w · publish a:background b:background c:background · publish d:critical · ack a · left",
        expect!["w:a · w:b · w:d · w:c · leased b d c"],
    );
}

#[test]
fn a_lane_cap_counts_what_is_leased_and_not_what_waits_its_retry() {
    check(
        r#""lanes":{"0":{"max_active":1}},"backoff":{"initial_ms":100}"#,
        "publish a:0 b:0 · lease 9 · nack a · lease 9 · +100ms · lease · ack b · lease",
        expect!["a · b · nothing · a(2)"],
    );
}

#[test]
fn a_lowered_cap_starts_nothing_and_cancels_nothing() {
    check(
        "",
        r#"consume w · publish a b c d · settings "max_active":2 · left · ack a · ack b · left · publish e · ack c · left"#,
        expect!["w:a · w:b · w:c · w:d · leased a b c d · leased c d · w:e · leased d e"],
    );
    check(
        "",
        r#"publish a:0 b:0 c:0 · lease 2 · settings "lanes":{"0":{"max_active":1}} · lease · ack a · lease · ack b · lease"#,
        expect!["a b · nothing · nothing · c"],
    );
}

#[test]
fn a_raised_cap_starts_what_waited_at_once() {
    check(
        r#""max_active":1"#,
        r#"consume w · publish a b c · settings "max_active":3"#,
        expect!["w:a · w:b w:c"],
    );
}

#[test]
fn a_paused_queue_takes_and_settles_and_lends_nothing() {
    check(
        "",
        r#"consume w · publish a b · settings "paused":true · publish c · ack a · lease · settings "paused":false"#,
        expect!["w:a · w:b · nothing · w:c"],
    );
}

#[test]
fn a_window_is_per_consumer_and_that_of_the_queue_bounds_all_of_them() {
    check(
        r#""max_unacked":1"#,
        r#"consume v · consume w window=2 · publish a b c d · ack b · left · settings "max_unacked":2 · left"#,
        expect!["v:a · w:b · w:c · ready d, leased a c · v:d · leased a c d"],
    );
    check(r#""max_unacked":2"#, "publish a b c d · lease 3 · left", expect!["a b · ready c d, leased a b"]);
}

#[test]
fn who_asks_for_no_window_has_none_by_count() {
    let (mut broker, mut step) = (Broker::new(Options::default()), Step::default());
    let mut ask = |command| broker.apply(Time(1), command, &mut step).map(drop).expect("it is taken");
    ask(Command::declare("q".into(), Box::default()));
    ask(Command::Consume(Consume::new(ConsumerId(1), "q".into())));
    let plain = Publish {
        to: Address::Queue("q".into()),
        priority: Given::Missing,
        id: None,
        origin: None,
        key: None,
        key_weight: None,
        ttl_ms: None,
        base_ttl_ms: None,
        delay_ms: 0,
        bytes: 1,
        place: Place(0),
    };
    for _ in 0..20_000 {
        ask(Command::PublishUntold(plain.clone()));
    }
    let given = step.effects.iter().filter(|effect| matches!(effect, Effect::Deliver(_))).count();
    assert_eq!(given, 20_000);
}

#[test]
fn a_queue_of_a_time_when_windows_had_another_default_is_declared_again() {
    let before = Settings { max_unacked: 10_000, ..Settings::default() };
    assert!(before.is_declared_as(&Settings::default()));
    assert!(!Settings { paused: true, ..before }.is_declared_as(&Settings::default()));
    let said = Settings { max_unacked: 5, ..Settings::default() };
    assert!(!said.is_declared_as(&Settings::default()) && said.is_declared_as(&said));
}

#[test]
fn a_queue_has_no_more_consumers_and_waiting_leases_than_it_may() {
    check(
        r#""max_consumers":2"#,
        r#"consume v · lease wait=500 · consume w · lease wait=500 · lease · cancel v · consume w · settings "max_consumers":1 · consume x"#,
        expect!["no: too-many-consumers · no: too-many-consumers · nothing · no: too-many-consumers"],
    );
    check(r#""max_consumers":0"#, "consume u · consume v · consume w · publish a", expect!["u:a"]);
}

#[test]
fn urgent_credit_lets_an_urgent_message_reach_a_consumer_whose_window_is_full_of_bulk() {
    check(
        "",
        "consume w window=1 urgent=7+1 · publish a:0 b:0 c:7 d:9 · ack c · ack a · ack d",
        expect!["w:a · w:c · w:d · w:b"],
    );
}

#[test]
fn urgent_credit_is_for_lanes_at_or_above_its_priority_only() {
    check(
        "",
        "consume w window=1 urgent=7+2 · publish a:0 b:6 c:7 d:8 e:9 · left",
        expect!["w:a · w:c · w:d · ready e b, leased a c d"],
    );
    // A lane that also takes less than 7 is not above 7.
    check(
        r#""order":{"lanes":[{"name":"hot","from":7},{"name":"warm","from":4},{"name":"cold"}]}"#,
        "consume w window=1 urgent=5+9 · publish a:0 b:6 c:7 · left",
        expect!["w:a · w:c · ready b, leased a c"],
    );
}

#[test]
fn urgent_credit_of_one_consumer_waits_while_another_has_window() {
    check(
        "",
        "consume v window=1 urgent=5+1 · consume w window=2 · publish a:0 b:0 c:9 d:9 e:9",
        expect!["v:a · w:b · w:c · v:d"],
    );
}

// ---- 14: full queues ----

#[test]
fn when_full_the_least_urgent_lanes_oldest_pays() {
    check(
        r#""max_length":3"#,
        "publish a:1 b:1 c:5 · publish d:9 · left · publish e:1 · left",
        expect!["ready d c b · ready d c e"],
    );
}

#[test]
fn when_full_a_message_less_urgent_than_all_is_refused() {
    check(r#""max_length":2"#, "publish a:5 b:6 · publish c:4 · left", expect!["no: queue-full · ready b a"]);
}

#[test]
fn when_full_the_most_urgent_never_pays_for_a_lesser_one() {
    check(
        r#""max_length":1"#,
        "publish a:9 · publish b:8 c:0 · left · publish d:9 · left",
        expect!["no: queue-full · no: queue-full · ready a · ready d"],
    );
}

#[test]
fn when_full_publishes_are_refused_if_the_queue_says_so() {
    check(
        r#""max_length":1,"overflow":"reject""#,
        "publish a:1 · publish b:9 · left · lease · publish c:9",
        expect!["no: queue-full · ready a · a"],
    );
}

#[test]
fn bytes_are_limited_like_messages() {
    check(
        r#""max_bytes":100"#,
        "publish a:1,bytes=40 b:1,bytes=40 c:5,bytes=20 · publish d:9,bytes=50 · left · publish e:9,bytes=101",
        expect!["ready d c · no: message-too-large"],
    );
}

#[test]
fn nobody_pays_for_a_message_that_would_not_fit_all_the_same() {
    // Only `a` is less urgent, and its bytes are not enough.
    check(
        r#""max_bytes":100"#,
        "publish a:1,bytes=10 b:9,bytes=80 · publish c:5,bytes=50 · left",
        expect!["no: queue-full · ready b a"],
    );
}

#[test]
fn what_is_leased_or_dead_does_not_count_as_waiting() {
    check(
        r#""max_length":1,"overflow":"reject""#,
        "publish a · lease · publish b · lease · reject b · publish c · publish d",
        expect!["a · b · no: queue-full"],
    );
}

#[test]
fn what_is_put_back_is_never_refused() {
    check(
        r#""max_length":1,"overflow":"reject""#,
        "publish a:5 · lease · publish b:5 · nack a · left",
        expect!["a · ready a b"],
    );
}

#[test]
fn delayed_messages_count_as_waiting_and_do_not_pay() {
    check(
        r#""max_length":1"#,
        "publish a:1,delay=100 · publish b:9 · left",
        expect!["no: queue-full · delayed a"],
    );
}

#[test]
fn a_deep_queue_refuses_only_what_is_under_a_priority() {
    check(
        r#""reject_below":{"depth":2,"priority":5}"#,
        "publish a:1 b:1 c:4 d:5 e:9 · left · lease 4 · publish f:4 · left",
        expect!["no: below-priority · ready e d a b · e d a b · ready f, leased e d a b"],
    );
}

// ---- 15: sizes, last value ----

#[test]
fn a_message_larger_than_the_queue_or_the_broker_allows_is_refused() {
    check(r#""max_message_bytes":10"#, "publish a,bytes=10 b,bytes=11", expect!["no: message-too-large"]);
    let options = Options { max_message_bytes: 5, ..Options::default() };
    check_with(
        options,
        r#""max_message_bytes":10"#,
        "publish a,bytes=5 b,bytes=6",
        expect!["no: message-too-large"],
    );
}

#[test]
fn a_last_value_queue_keeps_the_newest_of_each_key_whatever_its_priority() {
    check(
        r#""last_value":"key""#,
        "publish a:9,key=k b:9,key=l · publish c:0,key=k · left · lanes",
        expect!["ready b c · 9: 1 ready 1 bytes 2 published 1 removed, 0: 1 ready 1 bytes 1 published"],
    );
}

#[test]
fn a_last_value_queue_of_one_keeps_the_newest_in_all() {
    check(
        r#""last_value":"one""#,
        "publish a:9 · publish b:0,key=k · publish c:5 · left",
        expect!["ready c"],
    );
}

#[test]
fn a_last_value_queue_takes_only_messages_with_a_key() {
    check(r#""last_value":"key""#, "publish a:9 · left", expect!["no: key-missing · empty"]);
}

#[test]
fn a_value_that_is_leased_is_left_to_its_consumer_and_does_not_come_back_over_a_newer_one() {
    check(
        r#""last_value":"key""#,
        "publish a,key=k · lease · publish b,key=k · left · nack a · left",
        expect!["a · ready b, leased a · ready b"],
    );
    check(
        r#""last_value":"key""#,
        "publish a,key=k · lease · publish b,key=k · lease · ack b · nack a · left",
        expect!["a · b · empty"],
    );
}

#[test]
fn a_delayed_value_is_replaced_too() {
    check(
        r#""last_value":"key""#,
        "publish a,key=k,delay=100 · publish b,key=k · +100ms · left",
        expect!["ready b"],
    );
}

#[test]
fn a_full_last_value_queue_still_takes_the_newest_of_a_key_it_holds() {
    check(
        r#""last_value":"key","max_length":2,"overflow":"reject""#,
        "publish a,key=k b,key=l · publish c,key=k · publish d,key=m · left",
        expect!["no: queue-full · ready b c"],
    );
    check(
        r#""last_value":"key","max_length":1"#,
        "publish a:9,key=k · publish b:0,key=k · left",
        expect!["ready b"],
    );
}

#[test]
fn a_dead_value_does_not_hide_a_live_one() {
    check(
        r#""last_value":"key""#,
        "publish a,key=k · lease · reject a · publish b,key=k · left · replay a · left · lease · ack b · replay a · lease · nack a · left",
        expect!["a · ready b, dead a · no: id-pending · ready b, dead a · b · a · ready a"],
    );
}

// ---- 16: ids and positions ----

#[test]
fn publishing_an_id_that_is_pending_changes_nothing_and_answers_its_position() {
    check(
        "",
        "publish? a:5,id=x b:5 c:9 · publish d:9,id=x · left",
        expect!["a@0/0 · b@1/1 · c@0/0 · d again@1/0 · ready c a b"],
    );
}

#[test]
fn an_id_is_pending_while_its_message_is_ready_delayed_or_leased() {
    check(
        "",
        "publish a,id=x,delay=50 · publish b,id=x · +50ms · publish c,id=x · lease · publish d,id=x · ack a · publish e,id=x · left",
        expect!["b again@-/- · c again@0/0 · a · d again@-/- · ready e"],
    );
}

#[test]
fn a_dead_letter_does_not_hold_its_id() {
    check(
        "",
        "publish a,id=x · lease · reject a · publish b,id=x · left · replay a · replay all · replay seq-1 · left · remove b · replay a · left",
        expect!["a · ready b, dead a · no: not-dead · no: id-pending · ready b, dead a · ready a"],
    );
}

#[test]
fn a_full_queue_still_answers_for_what_it_holds() {
    check(
        r#""max_length":1,"overflow":"reject""#,
        "publish a,id=x · publish b,id=x c,id=y · left",
        expect!["b again@0/0 · no: queue-full · ready a"],
    );
}

#[test]
fn ids_and_keys_that_cannot_be_are_refused() {
    let long = "x".repeat(201);
    check(
        "",
        &format!("publish a,id=seq-7 b,id= c,id={long} d,key={long} e,id=seq-x f,key="),
        expect!["no: id-invalid · no: id-invalid · no: id-invalid · no: key-invalid"],
    );
}

#[test]
fn position_counts_what_is_ahead_in_dispatch_order_and_in_its_own_lane() {
    check(
        "",
        "publish a:5 b:9 c:5 d:1 e:5,delay=100 · position a · position b · position c · position d · position e · lease · position c",
        expect!["a@1/0 · b@0/0 · c@2/1 · d@3/0 · e@-/- · b · c@1/1"],
    );
}

#[test]
fn position_follows_the_picker() {
    check(
        r#""picker":{"weighted":{"9":1}}"#,
        "publish a:9 b:9 c:1 d:1 · position b · position c · publish? e:9 f:1",
        expect!["b@2/1 · c@1/0 · e@4/2 · f@5/2"],
    );
    check(
        r#""picker":{"aging_ms":10}"#,
        "publish a:0 b:0 · +35ms · publish? c:3 d:4 · position b",
        expect!["c@2/0 · d@0/0 · b@2/1"],
    );
}

#[test]
fn position_counts_what_was_put_back() {
    check(
        "",
        "publish a b c · lease 2 · nack b · publish? d · position c · position b",
        expect!["a b · d@2/2 · c@1/1 · b@0/0"],
    );
}

#[test]
fn a_position_is_the_place_in_the_order_of_browsing_under_every_picker() {
    for picker in [r#""strict""#, r#"{"aging_ms":7}"#, r#"{"weighted":{"0":2,"1":3,"5":1}}"#] {
        for leases in 0..6 {
            crate::story::check_positions(
                &format!(r#""picker":{picker}"#),
                &format!(
                    "publish a:5 b:0 c:1 · +9ms · publish d:0 e:5 f:1 g:0 h:9 · +3ms · publish i:5 j:1 k:0 l:5 m:9 n:1 · lease {leases} · \
                     +20ms · publish o:1 p:0 q:5 · nack a · nack h · reprioritise k 1"
                ),
            );
        }
    }
}

#[test]
fn a_smaller_value_takes_the_place_of_a_larger_one_in_a_queue_that_is_over_full() {
    check(
        r#""last_value":"key","max_length":1"#,
        "publish x,key=x,bytes=1 · lease · publish a,key=k,bytes=60 · nack x · left · publish b,key=k,bytes=1 · left",
        expect!["x · ready x a · ready b"],
    );
}
