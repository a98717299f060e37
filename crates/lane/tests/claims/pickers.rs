//! Point 6: which lane's head goes next.

use expect_test::expect;

use crate::story::check;

#[test]
fn under_strict_a_low_message_waits_for_ever_and_no_timer_hides() {
    check(
        r#""visibility_timeout_ms":0"#,
        "publish a:0 · +86400000ms · publish b:1 · lease · +86400000ms · publish c:1 · lease · lease",
        expect!["b · c · a"],
    );
}

#[test]
fn under_aging_a_message_waits_at_most_a_step_for_each_level() {
    // 10 s a level: a:0 is worth a message of 3 that is published 30 s later.
    check(
        r#""picker":{"aging_ms":10000}"#,
        "publish a:0 · +29999ms · publish b:3 · +2ms · publish c:3 · lease 3",
        expect!["b a c"],
    );
}

#[test]
fn under_aging_fresh_urgent_work_still_overtakes() {
    check(
        r#""picker":{"aging_ms":10000}"#,
        "publish a:0 b:0 · +5000ms · publish c:9 d:1 · lease 9",
        expect!["c d a b"],
    );
}

#[test]
fn under_aging_of_two_alike_the_more_urgent_goes() {
    check(r#""picker":{"aging_ms":10000}"#, "publish a:0 · +10000ms · publish b:1 · lease 2", expect!["b a"]);
}

#[test]
fn under_aging_what_was_put_back_is_as_old_as_it_was() {
    check(
        r#""picker":{"aging_ms":1000}"#,
        "publish a:0 · lease · +5000ms · publish b:4 · nack a · lease · lease",
        expect!["a · a(2) · b"],
    );
}

#[test]
fn weighted_serves_each_lane_by_its_weight() {
    check(
        r#""scheme":"named","picker":{"weighted":{"high":3,"low":1}}"#,
        "publish a:high b:high c:high d:high e:high f:high g:low h:low i:low · lease 9",
        expect!["a b c g d e f h i"],
    );
}

#[test]
fn weighted_keeps_no_turn_for_a_lane_that_has_nothing() {
    check(
        r#""scheme":"named","picker":{"weighted":{"high":3,"normal":2}}"#,
        "publish a:high b:normal c:normal d:normal · lease · lease · publish e:high f:high · lease 9",
        expect!["a · b · c e f d"],
    );
}

#[test]
fn weighted_goes_on_with_the_turn_when_a_lane_is_new() {
    check(
        r#""picker":{"weighted":{"9":2}}"#,
        "publish a:9 b:9 c:9 d:9 e:1 · lease 2 · publish f:5,delay=1000 · lease 9",
        expect!["a b · e c d"],
    );
}

#[test]
fn weighted_is_charged_for_leases_and_not_for_looking() {
    check(
        r#""picker":{"weighted":{"9":2}}"#,
        "publish a:9 b:9 c:9 d:1 e:1 · order · order · lease · order · lease 9",
        expect!["a b d c e · a b d c e · a · a b d c e · b d c e"],
    );
}

#[test]
fn a_picker_changes_while_messages_wait() {
    check(
        r#""picker":{"aging_ms":1}"#,
        r#"publish a:0 · +100ms · publish b:9 · order · settings  · order · settings "picker":{"weighted":{}} · publish c:9 · lease 3"#,
        expect!["a b · b a · b a c"],
    );
}

#[test]
fn a_picker_never_takes_from_a_lane_at_its_cap() {
    for picker in [r#""strict""#, r#"{"aging_ms":1}"#, r#"{"weighted":{"0":5}}"#] {
        check(
            &format!(r#""picker":{picker},"lanes":{{"0":{{"max_active":1}}}}"#),
            "publish a:0 b:0 · +1000ms · publish c:1 d:1 · lease 9 · left · ack a · lease",
            match picker {
                r#""strict""# => expect!["c d a · ready b, leased c d a · b"],
                r#"{"aging_ms":1}"# => expect!["a c d · ready b, leased a c d · b"],
                _ => expect!["c a d · ready b, leased c a d · b"],
            },
        );
    }
}
