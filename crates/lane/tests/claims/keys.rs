//! What goes by keys and by time: groups, rates, turns.

use std::fmt::Write;

use expect_test::expect;

use crate::story::{check, tell_story};

// ---- groups ----

#[test]
fn no_more_messages_of_a_key_are_out_than_the_group_limit() {
    check(
        r#""group_limit":1"#,
        "publish a:5,key=k b:5,key=k c:5,key=l d:5,key=k e:5 f:5 · lease 9 · lease 9 · ack c · lease · ack a · lease 9 · left",
        expect!["a c e f · nothing · nothing · b · ready d, leased e f b"],
    );
    check(
        r#""group_limit":2"#,
        "consume w · publish a:5,key=k b:5,key=k c:5,key=k d:5,key=l · nack b · ack a b",
        expect!["w:a · w:b · w:d · w:b(2) · w:c"],
    );
}

#[test]
fn a_held_back_key_holds_nobody_else_back_in_any_lane() {
    check(
        r#""group_limit":1"#,
        "publish a:9,key=k b:9,key=k c:5,key=k d:5,key=l e:1 · lease 9 · ack a · lease 9 · left",
        expect!["a d e · b · ready c, leased d e b"],
    );
    check(
        r#""group_limit":1,"picker":{"aging_ms":1000}"#,
        "publish a:9,key=k b:9,key=k · +20000ms · publish c:1,key=k d:8 · lease 9 · ack a · lease 9",
        expect!["a d · b"],
    );
    check(
        r#""group_limit":1,"picker":{"weighted":{"9":2,"1":1}}"#,
        "publish a:9,key=k b:9,key=k c:9 d:1 e:1 · lease 9 · ack a · lease 9",
        expect!["a c d e · b"],
    );
}

#[test]
fn what_has_no_key_or_an_empty_one_is_in_no_group() {
    check(r#""group_limit":1"#, "publish a b c,key= d,key= · lease 9", expect!["a b c d"]);
}

#[test]
fn whoever_comes_back_in_a_group_goes_by_its_age() {
    check(
        r#""group_limit":1,"backoff":{"initial_ms":100}"#,
        "publish a,key=k b,key=k c,key=k · lease · nack a · lease · +100ms · ack b · lease · ack a · lease",
        expect!["a · b · a(2) · c"],
    );
}

#[test]
fn a_lease_that_is_over_makes_room_in_its_group() {
    check(
        r#""group_limit":1,"visibility_timeout_ms":1000"#,
        "consume w · publish a,key=k b,key=k · left · lease wait=5000 as=p · leave w · +1000ms · left",
        expect!["w:a · ready b, leased a · p:a(2) · ready a b"],
    );
    check(
        r#""group_limit":1,"visibility_timeout_ms":1000"#,
        "publish a,key=k b,key=k · lease · +1000ms · lease 9 · remove a · lease",
        expect!["a · a(2) · b"],
    );
}

#[test]
fn what_is_moved_removed_or_expires_leaves_its_group() {
    check(
        r#""group_limit":1"#,
        "publish a:5,key=k b:5,key=k c:5,key=k · reprioritise c 9 · lease · ack c · remove a · lease · ack b · left",
        expect!["c · b · empty"],
    );
    check(
        r#""group_limit":1"#,
        "publish a,key=k,ttl=100 b,key=k · +100ms · lease 9 · left",
        expect!["b · leased b"],
    );
}

#[test]
fn one_message_of_a_key_is_out_where_places_go_by_the_key() {
    check(
        r#""partitions":{"mode":"key","count":16}"#,
        "publish a,key=k b:9,key=l c:9,key=k d · lease 9 · ack c · lease 9",
        expect!["b c d · a"],
    );
}

#[test]
fn a_group_limit_changes_while_messages_wait_and_are_out() {
    check(
        "",
        r#"publish a,key=k b,key=k c,key=k d,key=k · lease 2 · settings "group_limit":1 · lease · ack a · lease · ack b · lease · settings "group_limit":2 · lease 9"#,
        expect!["a b · nothing · nothing · c · d"],
    );
    check(
        r#""group_limit":1"#,
        r#"consume w · publish a,key=k b,key=k c,key=k · settings "group_limit":0"#,
        expect!["w:a · w:b w:c"],
    );
    check(
        r#""group_limit":1"#,
        r#"publish a:9,key=k b:9,key=k c:1,key=k · lease · settings "group_limit":1,"order":"fifo" · lease · ack a · lease"#,
        expect!["a · nothing · b"],
    );
}

#[test]
fn groups_are_as_they_were_after_a_restart() {
    check(
        r#""group_limit":1"#,
        "publish a,key=k b,key=k c,key=l · lease · restart · lease 9 · ack a · lease 9",
        expect!["a · c · b"],
    );
}

// ---- rates ----

#[test]
fn a_rate_lets_so_many_go_in_so_long() {
    check(
        r#""rate_limit":{"messages":2,"per_ms":1000}"#,
        "consume w · publish a b c d · +499ms · +1ms · +500ms · left",
        expect!["w:a · w:b · w:c · w:d · leased a b c d"],
    );
    // What was not used is not kept beyond the bucket.
    check(
        r#""rate_limit":{"messages":2,"per_ms":1000}"#,
        "+60000ms · publish a b c d e · lease 9 · +1000ms · lease 9 · lease",
        expect!["a b · c d · nothing"],
    );
}

#[test]
fn an_urgent_message_has_the_next_token() {
    check(
        r#""rate_limit":{"messages":1,"per_ms":100}"#,
        "lease wait=5000 as=p · publish a:1 · lease 9 wait=5000 as=q · publish b:1 · publish c:9 · +100ms · lease wait=5000 as=r · +100ms",
        expect!["p:a · q:c · r:b"],
    );
}

#[test]
fn a_rate_of_a_key_holds_back_nobody_else() {
    check(
        r#""key_rate_limit":{"messages":1,"per_ms":1000}"#,
        "consume w · publish a:9,key=k b:9,key=k c:1,key=l d:1 e:1 · ack a c · +999ms · +1ms",
        expect!["w:a · w:c · w:d · w:e · w:b"],
    );
}

#[test]
fn what_went_before_a_restart_counts_against_the_rate() {
    check(
        r#""rate_limit":{"messages":2,"per_ms":1000}"#,
        "publish a b c · lease 2 · restart · lease 9 · +499ms · lease 9 · +1ms · lease 9",
        expect!["a b · nothing · nothing · c"],
    );
    check(
        r#""key_rate_limit":{"messages":1,"per_ms":1000}"#,
        "publish a,key=k · lease · restart · publish b,key=k c,key=l d · lease 9 · +1000ms · lease 9",
        expect!["a · d · b c"],
    );
}

#[test]
fn a_rate_that_changes_holds_at_once() {
    check(
        r#""rate_limit":{"messages":1,"per_ms":10000}"#,
        r#"consume w · publish a b c d · settings "rate_limit":{"messages":1,"per_ms":100} · +100ms · settings "rate_limit":null"#,
        expect!["w:a · w:b · w:c w:d"],
    );
    check(
        r#""key_rate_limit":{"messages":1,"per_ms":10000}"#,
        r#"consume w · publish a,key=k b,key=k c,key=k · settings "key_rate_limit":{"messages":1,"per_ms":100} · +100ms · settings "key_rate_limit":null"#,
        expect!["w:a · w:b · w:c"],
    );
}

// ---- turns ----

#[test]
fn fair_keys_take_turns_inside_a_lane() {
    check(
        r#""fair_keys":true"#,
        "publish a,key=k b,key=k c,key=k d,key=k e,key=l f,key=l g · lease · ack a · lease · ack e · lease · ack g · lease · ack b · lease · ack f · lease · ack c · lease",
        expect!["a · e · g · b · f · c · d"],
    );
}

#[test]
fn a_key_has_as_many_turns_as_its_weight_says() {
    let queue = "publish a,key=k b,key=k c,key=k d,key=k e,key=k f,key=k u,key=l v,key=l w,key=l";
    check(
        r#""fair_keys":true,"key_weights":{"k":2}"#,
        &format!(
            "{queue} · lease · ack a · lease · ack u · lease · ack b · lease · ack c · lease · ack v · lease · ack d · lease"
        ),
        expect!["a · u · b · c · v · d · e"],
    );
    // What is out counts the same way.
    check(
        r#""fair_keys":true,"key_weights":{"k":2}"#,
        &format!("{queue} · lease 6 · lease 3"),
        expect!["a u b c v d · e w f"],
    );
    check(
        r#""fair_keys":true"#,
        &format!(
            r#"{queue} · lease 2 · settings "fair_keys":true,"key_weights":{{"l":3}} · lease 4 · settings "fair_keys":true · lease 9"#
        ),
        expect!["a u · v w b c · d e f"],
    );
    check(
        r#""fair_keys":true,"key_weights":{"k":2}"#,
        &format!("{queue} · restart · lease 6"),
        expect!["a u b c v d"],
    );
}

#[test]
fn a_message_says_how_many_turns_its_key_has() {
    let of_k = ["a", "b", "c", "d", "e"].map(|name| format!("{name},key=k,weight=2")).join(" ");
    let queue = format!("publish {of_k} u,key=l v,key=l w,key=l");
    let fair = r#""fair_keys":true"#;
    check(
        fair,
        &format!(
            "{queue} · lease · ack a · lease · ack u · lease · ack b · lease · ack c · lease · ack v · lease · ack d · lease"
        ),
        expect!["a · u · b · c · v · d · e"],
    );
    check(fair, &format!("{queue} · lease 6 · lease 2"), expect!["a u b c v d · e w"]);
    // Leased messages count as before after a start.
    check(fair, &format!("{queue} · lease 3 · restart · lease 5"), expect!["a u b · c v d e w"]);
    // Each turn costs what its message says, the settings come first.
    check(
        fair,
        "publish a,key=k b,key=k,weight=4 c,key=k,weight=4 d,key=k,weight=4 e,key=k u,key=l v,key=l w,key=l · lease 8",
        expect!["a u b v c d e w"],
    );
    check(r#""fair_keys":true,"key_weights":{"k":1}"#, &format!("{queue} · lease 6"), expect!["a u b v c w"]);
    // A return gives back what its lease took.
    check(
        fair,
        &format!("{queue} · lease 3 · nack a b u · lease 6"),
        expect!["a u b · a(2) u(2) b(2) c v d"],
    );
}

/// However few messages are out at once, and where keys are held back after each.
#[test]
fn turns_go_by_weights_however_few_are_out() {
    let many = |key: &str, weight: u32| {
        let one = |at| format!("{key}{at},key={key},weight={weight}");
        (0..40).map(one).collect::<Vec<_>>().join(" ")
    };
    for (settings, at_once) in [
        (r#""fair_keys":true"#, 1),
        (r#""fair_keys":true"#, 2),
        (r#""fair_keys":true"#, 5),
        (r#""fair_keys":true,"group_limit":1"#, 1),
        (r#""fair_keys":true,"key_rate_limit":{"messages":1,"per_ms":20}"#, 1),
    ] {
        let mut story = format!("publish {} {}", many("k", 3), many("l", 1));
        let mut given = [0, 0];
        while given[0] + given[1] < 40 {
            let told = tell_story(settings, &format!("{story} · lease {at_once}"));
            let leased = told.rsplit(" · ").next().expect("it says what it leased");
            leased.split(' ').for_each(|name| given[usize::from(name.starts_with('l'))] += 1);
            write!(story, " · lease {at_once} · ack {leased} · +20ms").expect("a text takes all");
        }
        assert_eq!(given, [30, 10], "{settings}, {at_once} at once");
    }
}

#[test]
fn a_weight_is_for_a_key_and_within_bounds() {
    check(
        r#""fair_keys":true"#,
        "publish a,weight=2 · publish b,key=k,weight=0 · publish c,key=k,weight=1001 · publish d,key=k,weight=1000 · lease",
        expect!["no: key-weight-alone · no: key-weight-invalid · no: key-weight-invalid · d"],
    );
}

#[test]
fn turns_do_not_cross_levels() {
    check(
        r#""fair_keys":true"#,
        "publish a:9,key=k b:9,key=k c:1,key=l · lease · ack a · lease · ack b · lease",
        expect!["a · b · c"],
    );
}

#[test]
fn the_key_with_fewest_messages_out_goes_next() {
    check(
        r#""fair_keys":true,"max_active":4"#,
        "publish a,key=k b,key=k c,key=k d,key=k e,key=k · lease 9 · publish x,key=l y,key=l z,key=l · ack a · lease · ack b · lease · ack c · lease",
        expect!["a b c d · x · y · e"],
    );
}

#[test]
fn whoever_publishes_one_at_a_time_does_not_overtake_the_others_for_ever() {
    check(
        r#""fair_keys":true"#,
        "publish a,key=k b,key=k c,key=k d,key=k · lease · ack a · publish x,key=l · lease · ack b · lease · ack x · publish y,key=l · lease · ack c · lease",
        expect!["a · b · x · c · y"],
    );
}

#[test]
fn turns_and_limits_go_together() {
    check(
        r#""fair_keys":true,"group_limit":1"#,
        "publish a,key=k b,key=k c,key=l d,key=l · lease 9 · ack c · lease 9 · ack a d · lease 9",
        expect!["a c · d · b"],
    );
}
