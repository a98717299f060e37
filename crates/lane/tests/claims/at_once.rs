//! A time to live of 0: taken at once or over.

use expect_test::expect;

use crate::story::check;

#[test]
fn a_consumer_with_window_gets_what_is_over_at_once() {
    check(
        "",
        "consume w window=1 · publish a,ttl=0 · publish b,ttl=0 · ack a · left · lanes",
        expect!["w:a · empty · 4: 2 published 1 delivered 1 settled 1 expired"],
    );
    check(
        "",
        "lease wait=900 as=p · publish a,ttl=0 · left · ack a · left",
        expect!["p:a · leased a · empty"],
    );
}

#[test]
fn without_one_it_is_expired_and_never_counts_as_ready() {
    check(
        "",
        "publish? a,ttl=0 · left · lanes · lease",
        expect!["a@0/0 · empty · 4: 1 published 1 expired · nothing"],
    );
    check(
        r#""expire_at_once":true"#,
        "publish a · left · consume w · publish b · left · nack b · left · lanes",
        expect!["empty · w:b · leased b · empty · 4: 2 published 1 delivered 2 expired"],
    );
}

#[test]
fn a_queue_that_evicts_at_once_has_a_limit_of_no_messages() {
    check(
        r#""evict_at_once":true"#,
        "publish a · left · consume w · publish b · left · nack b · left · lanes",
        expect!["empty · w:b · leased b · empty · 4: 2 published 1 delivered 2 evicted"],
    );
    check(
        r#""evict_at_once":true,"dead_letter_evicted":true,"dead_letter":{"queue":"r"}"#,
        "declare r · publish a:7 · left · in r · left · deaths a",
        expect!["made · empty · ready a · q maxlen by /q first, last by /q, now by /r"],
    );
    check(
        r#""evict_at_once":true,"overflow":"reject""#,
        "publish a · consume w · publish b · left",
        expect!["no: queue-full · no: queue-full · empty"],
    );
}

/// A message that goes round queues that keep nothing ends.
#[test]
fn a_round_of_queues_that_evict_at_once_ends() {
    check(
        r#""evict_at_once":true,"dead_letter_evicted":true,"dead_letter":{"queue":"r"}"#,
        r#"declare r "evict_at_once":true,"dead_letter_evicted":true,"dead_letter":{"queue":"q"} · publish a · left · in r · left · lanes"#,
        expect!["made · empty · empty · 4: 1 published 1 evicted"],
    );
}

#[test]
fn it_takes_no_room_and_evicts_nobody() {
    check(
        r#""max_length":1,"max_bytes":5"#,
        "publish a:1 · publish b:9,ttl=0,bytes=5 · left · [publish c:9,ttl=0 ; publish d:5] · left",
        expect!["ready a · ready d"],
    );
    check(
        r#""max_length":1,"max_active":1,"overflow":"reject""#,
        "consume w window=2 · publish a b · publish c,ttl=0 · left",
        expect!["w:a · ready b, leased a"],
    );
}

#[test]
fn it_is_dead_lettered_if_the_queue_says_so() {
    check(
        r#""dead_letter_expired":true,"dead_letter":{"queue":"r"}"#,
        "declare r · publish a:7,ttl=0 · left · in r · left · deaths a",
        expect!["made · empty · ready a · q expired by /q ttl 0 first, last by /q, now by /r"],
    );
    check(
        r#""expire_at_once":true,"dead_letter_expired":true"#,
        "publish a,ttl=500 · left · restart · left · replay a · left",
        expect!["dead a · dead a · ready a"],
    );
}

#[test]
fn a_dead_letter_that_comes_to_a_queue_where_all_is_over_at_once_is_taken_or_goes_on() {
    check(
        r#""dead_letter":{"queue":"r"}"#,
        r#"declare r "expire_at_once":true,"dead_letter_expired":true,"dead_letter":{"queue":"s"} · declare s · publish a b · lease 2 · reject a · in r · left · lease wait=900 as=p · in q · reject b · in s · left"#,
        expect!["made · made · a b · empty · p:b · ready a"],
    );
}

#[test]
fn in_a_transaction_it_is_taken_after_all_of_it_is_in() {
    check(
        "",
        "lease wait=900 as=p · [publish a:1,ttl=0 ; publish b:9] · left · lanes",
        expect!["p:b · leased b · 9: 1 leased 1 bytes 1 published 1 delivered, 1: 1 published 1 expired"],
    );
}

#[test]
fn what_is_delayed_is_not_taken_at_once() {
    check(
        "",
        "consume w · publish a,ttl=0,delay=50 · left · +50ms · left · lanes",
        expect!["empty · empty · 4: 1 published 1 expired"],
    );
}

#[test]
fn what_comes_back_after_it_was_taken_at_once_is_over() {
    check(
        "",
        "consume w window=1 · publish a,ttl=0 · nack a · left · lanes",
        expect!["w:a · empty · 4: 1 published 1 delivered 1 expired"],
    );
    check("", "consume w window=1 · publish a,ttl=0 · restart · left", expect!["w:a · empty"]);
}

/// Only when nothing more can be leased it is known that nobody takes it: its letter, however urgent, finds the place gone.
#[test]
fn what_nobody_took_at_once_dies_after_what_can_be_leased_is() {
    check(
        r#""max_active":1"#,
        r#"declare r "dead_letter_expired":true,"dead_letter":{"queue":"q"} · consume w window=2 · publish a:0 · [publish b:9,ttl=0,to=/r ; nack a] · order · ack a#2"#,
        expect!["made · w:a · w:a(2) · a b · w:b"],
    );
}
