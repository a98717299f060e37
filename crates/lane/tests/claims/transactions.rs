//! Point 18: all or none.

use expect_test::expect;

use crate::story::check;

#[test]
fn publishes_and_settlements_happen_together() {
    check(
        "",
        "publish a:5 b:5 · lease 2 · [publish c:9 d:1 ; ack a ; nack b] · left",
        expect!["a b · ready c b d"],
    );
}

#[test]
fn one_publish_that_is_refused_undoes_all() {
    check(
        "",
        "publish a:5 · lease · [publish c:9 d:-1 ; ack a] · left",
        expect!["a · no: priority-out-of-range · leased a"],
    );
    check(
        "",
        "publish a:5 · lease · [publish c:9 d:9,to=nowhere/x ; ack a] · left",
        expect!["a · no: no-such-exchange · leased a"],
    );
}

#[test]
fn one_stale_receipt_undoes_all() {
    check(
        "",
        "publish a:5 · lease for=10 · +10ms · [publish c:9 ; ack a] · left",
        expect!["a · no: stale-receipt · ready a"],
    );
    check(
        "",
        "publish a:5 · lease · [publish c:9 ; ack a ; ack a] · left",
        expect!["a · no: stale-receipt · leased a"],
    );
}

#[test]
fn the_sequence_is_assigned_at_commit_so_the_order_holds() {
    check("", "publish a:5 · [publish b:5 c:9] · publish d:5 e:9 · lease 9", expect!["c e a b d"]);
}

#[test]
fn nothing_is_leased_before_the_whole_transaction_is_in() {
    check("", "consume w window=1 · [publish a:0 b:9]", expect!["w:b"]);
}

#[test]
fn the_limit_counts_what_the_transaction_itself_brings() {
    check(
        r#""max_length":2,"overflow":"reject""#,
        "[publish a b c] · left · [publish a b] · left",
        expect!["no: queue-full · empty · ready a b"],
    );
    check(
        r#""reject_below":{"depth":1,"priority":5}"#,
        "[publish a:1 b:1] · left",
        expect!["no: below-priority · empty"],
    );
}

#[test]
fn a_transaction_reaches_over_several_queues() {
    check(
        "",
        "declare r · publish a · lease · [publish b ; ack a ; publish c,to=/r] · left · in r · left",
        expect!["made · a · ready b · ready c"],
    );
}

#[test]
fn an_id_twice_in_a_transaction_is_one_message() {
    check("", "[publish a:5,id=x b:9,id=x] · left", expect!["ready a"]);
}

#[test]
fn a_transaction_cannot_bring_more_priorities_than_there_are_lanes() {
    let most: Vec<String> = (0..253).map(|at| format!("p{at}:{at}")).collect();
    check(
        r#""scheme":"signed""#,
        &format!("publish {} · [publish x:900 y:901] · [publish x:900 y:900] · lease 3", most.join(" ")),
        expect!["no: too-many-lanes · x y p252"],
    );
}

#[test]
fn a_transaction_may_reject_and_the_dead_letter_goes_where_it_must() {
    check(
        r#""dead_letter":{"queue":"r"}"#,
        "declare r · publish a:3 b:4 · lease 2 · [reject a ; reject b ; publish c] · left · in r · lease 9",
        expect!["made · b a · ready c · b a"],
    );
}

#[test]
fn dead_letters_of_one_step_are_all_in_before_one_is_leased() {
    check(
        r#""dead_letter":{"queue":"r"},"dead_letter_expired":true,"ttl_ms":50"#,
        "declare r · in r · consume w window=1 · in q · publish a:1 b:9 · lease 2 · [reject a ; reject b] · publish c:1 d:9 · +50ms · ack b · ack d · ack a",
        expect!["made · b a · w:b · w:d · w:a · w:c"],
    );
}
