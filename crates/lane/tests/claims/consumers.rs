//! Who is served: gets, consumers without acknowledgements, windows that are shared, consumers that are alone, and those that
//! go and keep what they hold.

use expect_test::expect;

use crate::story::check;

// ---- get ----

#[test]
fn a_get_takes_what_goes_next_and_never_waits() {
    check(
        "",
        "get · publish a:1 b:9 c:5 · by s get · by s get · by s get · by s get · left · ack b · nack c delay=0 · left",
        expect![
            "nothing · b · 2 after · c · 1 after · a · 0 after · nothing · leased b c a · ready c, leased a"
        ],
    );
}

#[test]
fn a_get_keeps_within_the_caps() {
    check(
        r#""max_active":2,"lanes":{"9":{"max_active":1}}"#,
        "publish a:9 b:9 c:1 d:1 · by s get · by s get · by s get · ack c · ack a · by s get",
        expect!["a · 3 after · c · 2 after · nothing · b · 1 after"],
    );
}

#[test]
fn what_is_got_without_acknowledgement_is_gone() {
    check(
        "",
        "publish a b · get no-ack · left · get no-ack · get no-ack · left · restart · left · lanes",
        expect!["a · 1 after · ready b · b · 0 after · nothing · empty · empty · "],
    );
}

#[test]
fn a_get_on_a_full_disk_gets_nothing() {
    check("", "publish a · hold · get · go · by s get", expect!["nothing · a · 0 after"]);
}

// ---- without acknowledgements ----

#[test]
fn a_consumer_without_acknowledgements_holds_nothing() {
    check(
        r#""max_active":1"#,
        "consume w no-ack · publish a b c · left · lanes · restart · left",
        expect!["w:a · w:b · w:c · empty · 4: 3 published 3 delivered 3 settled · empty"],
    );
}

#[test]
fn what_it_has_not_read_bounds_what_it_is_given() {
    check(
        "",
        "consume w no-ack window=2 · publish a b c d e · left · took w 1 · left · took w 9 · left",
        expect!["w:a · w:b · ready c d e · w:c · ready d e · w:d w:e · empty"],
    );
}

#[test]
fn the_most_urgent_goes_first_also_without_acknowledgements() {
    check(
        "",
        "consume w no-ack window=1 · publish a:5 b:1 c:9 · took w 1 · took w 1",
        expect!["w:a · w:c · w:b"],
    );
}

// ---- going without what one holds ----

#[test]
fn a_consumer_that_leaves_keeps_what_it_holds_until_its_session_ends() {
    check(
        "",
        "by s consume w window=2 · publish a b c · leave w · left · ack a · left · consume v · end s · left",
        expect!["w:a · w:b · ready c, leased a b · ready c, leased b · v:c · v:b(2) · leased c b"],
    );
}

#[test]
fn a_consumer_of_no_session_cannot_leave_its_leases_to_anybody() {
    check("", "consume w · publish a · leave w · left", expect!["w:a · ready a"]);
}

#[test]
fn a_queue_with_auto_delete_goes_when_its_last_consumer_leaves() {
    check(
        "",
        "declare r auto-delete · in r · by s consume w · publish a · leave w · queues · end s",
        expect!["made · w:a · q"],
    );
}

// ---- windows that are shared ----

#[test]
fn consumers_that_share_a_window_hold_no_more_together() {
    check(
        "",
        "window 1 size=2 · by s consume v shared=1 · by s consume w shared=1 · publish a b c d · left · ack a · ack b",
        expect!["v:a · w:b · ready c d, leased a b · v:c · w:d"],
    );
    // Its own window holds as well.
    check(
        "",
        "window 1 size=3 · by s consume v shared=1 window=1 · by s consume w shared=1 window=1 · publish a b c · left",
        expect!["v:a · w:b · ready c, leased a b"],
    );
}

#[test]
fn a_window_is_shared_over_queues_which_take_turns() {
    check(
        "",
        "declare r · window 1 size=1 · by s consume v shared=1 · in r · by s consume w shared=1 · publish x y · in q · publish a b · \
         ack x · ack a · ack y · ack b · left",
        expect!["made · w:x · v:a · w:y · v:b · empty"],
    );
}

#[test]
fn a_window_that_changes_takes_nothing_back_and_gives_what_there_is() {
    check(
        "",
        "window 1 size=1 · by s consume v shared=1 · publish a b c d · window 1 size=3 · window 1 size=1 · ack a · ack b · ack c · \
         window 1 size=0 · publish e",
        expect!["v:a · v:b v:c · v:d · v:e"],
    );
}

/// As RabbitMQ's `basic.qos` with `global`, whenever it comes.
#[test]
fn consumers_that_are_there_join_a_window_with_what_they_hold() {
    check(
        "",
        "by s consume v · by s consume w · publish a b c d · window 1 v w size=3 · publish e · ack a · ack b · left",
        expect!["v:a · w:b · v:c · w:d · v:e · leased c d e"],
    );
    // Those of other sessions do not, nor those that share another one.
    check(
        "",
        "by r consume v · window 1 size=1 · by s consume w shared=1 · publish a · ack a · window 2 v w size=1 · publish a b c",
        expect!["v:a · w:a · v:b · v:c"],
    );
}

/// As in RabbitMQ.
#[test]
fn a_consumer_without_acknowledgements_waits_while_the_window_is_full() {
    check(
        "",
        "window 1 size=1 · by s consume v shared=1 · publish a · by s consume w shared=1 no-ack · publish b · ack a · publish c d",
        expect!["v:a · v:b"],
    );
}

#[test]
fn what_goes_from_a_shared_window_makes_room_elsewhere() {
    let two = "declare r · window 1 size=1 · by s consume v shared=1 · publish a · in r · by s consume w shared=1 · publish x · ";
    for (how, expect) in [
        ("cancel v", expect!["made · v:a · w:x"]),
        ("delete q", expect!["made · v:a · cancelled w:x"]),
        ("in q · remove a · ack a", expect!["made · v:a · no: stale-receipt · w:x"]),
        ("leave v · ack a", expect!["made · v:a · w:x"]),
    ] {
        check("", &format!("{two}{how}"), expect);
    }
}

/// Nobody there shares the window any more, and the one elsewhere has had its turn when that is found.
#[test]
fn what_the_last_of_a_queue_gives_back_makes_room_for_those_settled_with_it() {
    check(
        "",
        "declare r · window 1 size=2 · by s consume v shared=1 · publish a · in r · by s consume w shared=1 · publish x · leave w · \
         in q · publish b c · ack a x",
        expect!["made · v:a · w:x · v:b v:c"],
    );
}

#[test]
fn urgent_credit_goes_beyond_a_shared_window() {
    check(
        "",
        "window 1 size=1 · by s consume v shared=1 urgent=7+1 · publish a:1 b:1 c:9 d:9 · left",
        expect!["v:a · v:c · ready d b, leased a c"],
    );
}

#[test]
fn the_window_of_a_session_ends_with_it() {
    check(
        "",
        "window 1 size=1 · by s consume v shared=1 · publish a b · end s · by s consume w shared=1",
        expect!["v:a · cancelled · w:a(2) w:b"],
    );
}

// ---- alone ----

#[test]
fn an_exclusive_consumer_is_the_only_one() {
    check(
        "",
        "consume v exclusive · consume w · consume w exclusive · publish a · get · cancel v · consume w · consume x exclusive",
        expect![
            "no: consumer-exclusive · no: consumer-exclusive · v:a · nothing · w:a(2) · no: consumer-exclusive"
        ],
    );
}

const SINGLE: &str = r#""single_active_consumer":true"#;

#[test]
fn a_single_active_consumer_is_the_oldest_until_it_goes() {
    check(
        SINGLE,
        "consume v window=1 · consume w window=9 · consume x · publish a b c · ack a · cancel v · publish d",
        expect!["v:a · v:b · w:b(2) w:c · w:d"],
    );
}

#[test]
fn a_more_urgent_consumer_takes_over_when_the_one_before_it_holds_nothing() {
    check(
        SINGLE,
        "consume v · publish a b · consume w first=1 · publish c · ack a · ack b · consume x first=1 · cancel w",
        expect!["v:a · v:b · w:c · x:c(2)"],
    );
    check(
        SINGLE,
        "consume v · consume w first=1 · publish a · cancel w · left",
        expect!["w:a · v:a(2) · leased a"],
    );
    check(SINGLE, "consume v · publish a · consume w first=1 · cancel w · publish b", expect!["v:a · v:b"]);
}

#[test]
fn whoever_gives_up_its_place_still_holds_what_only_changes_its_lane() {
    check(
        SINGLE,
        r#"consume v · publish a · consume w first=1 · publish b · settings "single_active_consumer":true,"order":"fifo" · left · ack a"#,
        expect!["v:a · ready b, leased a · w:b"],
    );
}

#[test]
fn a_consumer_that_leaves_gives_its_place_away() {
    check(
        SINGLE,
        "by s consume v window=1 · consume w · publish a b · leave v · nack a delay=0",
        expect!["v:a · w:b · w:a(2)"],
    );
}

#[test]
fn whether_one_is_served_alone_may_change() {
    check(
        "",
        r#"consume v window=1 · consume w window=1 · settings "single_active_consumer":true · publish a b · settings {} ·
           settings "single_active_consumer":true · ack b · publish c · ack a"#,
        expect!["v:a · w:b · v:c"],
    );
}

#[test]
fn pulls_and_gets_are_not_the_single_consumer() {
    check(SINGLE, "consume v window=1 · publish a b c · lease · by s get", expect!["v:a · b · c · 0 after"]);
}

// ---- holding too long ----

#[test]
fn a_consumer_that_holds_a_message_too_long_is_told_and_the_message_is_put_back() {
    check(
        r#""consumer_timeout_ms":100"#,
        "consume v window=1 · publish a · +60ms · ack a · publish b · +99ms · consume w · +1ms · ack b#1 · left",
        expect!["v:a · v:b · v timed out w:b(2) · no: stale-receipt · leased b"],
    );
    check(
        r#""consumer_timeout_ms":100,"delivery_limit":1"#,
        "publish a · by s get · +100ms · left",
        expect!["a · 0 after · a get timed out · dead a"],
    );
}

// ---- from some lanes ----

#[test]
fn a_pull_of_one_lane_has_enough_where_another_lane_goes_next() {
    check(
        "",
        "publish a:5 b:9 c:5 d:9 e:1 · lease 9 one= · lease 9 one= · lease 9 one= · left",
        expect!["b d · a c · e · leased b d a c e"],
    );
}

#[test]
fn a_pull_takes_nothing_of_lanes_it_leaves_out() {
    check(
        "",
        "publish a:5 b:9 c:7 · lease 9 except=9/5 · lease 9 except=9 least=6 · lease 9 least=6 · lease 9",
        expect!["c · nothing · b · a"],
    );
}

#[test]
fn a_pull_that_waits_for_some_lanes_lets_others_go_to_others() {
    check(
        "",
        "lease 9 least=7 wait=900 as=urgent · publish a:5 b:6 · lease · publish c:7 · left",
        expect!["b · urgent:c · ready a, leased b c"],
    );
}

#[test]
fn who_waits_for_some_lanes_keeps_its_turn_there() {
    check(
        "",
        "lease least=7 wait=900 as=first · lease wait=900 as=second · publish a:8 b:8",
        expect!["first:a · second:b"],
    );
}

#[test]
fn bands_are_chosen_by_their_names_and_by_the_least_they_take() {
    check(
        r#""order":{"lanes":[{"name":"hot","from":7},{"name":"warm","from":4},{"name":"cold"}]}"#,
        "publish a:1 b:5 c:9 d:7 · lease 9 except=hot one= · lease 9 least=5 · lease 9",
        expect!["b · c d · a"],
    );
}

#[test]
fn what_a_pull_holds_for_its_session_comes_back_with_its_end() {
    check(
        "",
        "publish a:9 b:5 c:5 · by s lease 9 for=session one= · by s lease 1 for=session · ack b · left · end s · left · lease",
        expect!["a · b · ready c, leased a · ready a c · a(2)"],
    );
}

#[test]
fn what_a_pull_holds_for_its_session_is_ready_after_a_restart() {
    check(
        "",
        "publish a:9 b:5 · by s lease for=session · lease · left · restart · left · order",
        expect!["a · b · leased a b · ready a, leased b · b a"],
    );
}
