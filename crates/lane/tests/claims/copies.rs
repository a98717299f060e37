//! Copies that routes make: each into its queue, with its own urgency and time to live.

use expect_test::expect;
use overtake_lane::{Given, Priority, Scheme};

use crate::story::check;

#[test]
fn each_copy_stands_where_its_route_puts_it() {
    check(
        r#""scheme":"route""#,
        r#"declare r "scheme":"route" · in q · publish a,copies=q:5+r:1 b,copies=q:-+r:1 c,copies=q:0+r:9 d,copies=q:5 · left · in r · left"#,
        expect!["made · ready c a d b · ready a b c"],
    );
}

#[test]
fn in_another_scheme_a_level_is_what_is_as_urgent_there() {
    check(
        r#""scheme":"named""#,
        r#"publish a:low,copies=q:0 b:critical,copies=q:own c,copies=q:9 d,copies=q:- e,copies=q:4 · left"#,
        expect!["ready a b e c d"],
    );
    let all = |scheme: Scheme| -> Vec<i32> {
        let levels = (0..10).map(Some).chain([None]);
        levels.map(|level| scheme.map(&Given::of_route(level)).expect("it is of the scheme").0).collect()
    };
    for scheme in
        [Scheme::Route, Scheme::TenLevel, Scheme::Named, Scheme::Signed, Scheme::Max(3), Scheme::Max(255)]
    {
        let levels = all(scheme);
        assert!(levels.is_sorted_by(|more, less| more >= less), "{scheme}: {levels:?}");
    }
    assert_eq!(all(Scheme::TenLevel), [9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 0]);
    assert_eq!(all(Scheme::Signed), [100, 100, 50, 50, 0, 0, -50, -50, -100, -100, -100]);
    assert_eq!(Scheme::Route.map(&Given::Missing), Ok(Priority(0)), "after all that say something");
}

#[test]
fn a_routes_time_to_live_replaces_the_queues_even_when_longer() {
    check(
        r#""ttl_ms":100"#,
        "publish long,copies=q:1:500 short,copies=q:1:50 plain,copies=q:1 · +60ms · left · +60ms · left · +400ms · left",
        expect!["ready long plain · ready long · empty"],
    );
}

#[test]
fn the_time_to_live_of_a_route_stands_in_for_one_of_zero_too() {
    check(
        r#""expire_at_once":true"#,
        "publish route,copies=q:1:50 plain,copies=q:1 own,copies=q:1:50,ttl=0 · left · +60ms · left",
        expect!["ready route · empty"],
    );
}

#[test]
fn the_messages_own_time_to_live_and_the_queues_longest_still_hold() {
    check(
        r#""max_ttl_ms":200"#,
        "publish own,copies=q:1:500,ttl=50 most,copies=q:1:500 · +60ms · left · +150ms · left",
        expect!["ready most · empty"],
    );
}

#[test]
fn what_is_for_a_queue_that_is_not_there_is_left_out() {
    check(
        "",
        "publish? a,copies=nowhere:1+q:1 · publish b,copies=nowhere:1 · publish c,copies=nowhere:1,mandatory · left",
        expect!["a@0/0 · no: unroutable · ready a"],
    );
}

#[test]
fn a_copy_that_one_queue_refuses_is_in_none() {
    check(
        "",
        r#"declare r "max_length":1,"overflow":"reject" · in q · publish a,copies=q:1+r:1 b,copies=q:1+r:1 · left · in r · left"#,
        expect!["made · no: queue-full · ready a · ready a"],
    );
}

#[test]
fn copies_are_part_of_a_transaction() {
    check(
        r#""scheme":"route""#,
        r#"declare r "scheme":"route" · in q · publish x:4 · lease · [publish a,copies=q:0+r:3 b,copies=r:2 ; ack x] · left · in r · left"#,
        expect!["made · x · ready a · ready b a"],
    );
}

#[test]
fn a_full_queue_that_evicts_keeps_a_copy_from_no_other() {
    check(
        "",
        r#"declare r "max_length":1 · exchange x fanout · bind x q · bind x r · in r · publish u:9 · publish a:1,to=x · publish b:1,copies=q:own+r:own · left · lanes · in q · left"#,
        expect!["made · ready u · 9: 1 ready 1 bytes 1 published, 1: 2 published 2 evicted · ready a b"],
    );
    // One publish with several keys.
    check(
        "",
        r#"declare r "max_bytes":5 · in r · publish u:9,bytes=5 · exchange x direct · bind x q one · bind x r two · publish? a:1,to=x/one+two · publish? b:1,bytes=9,to=x/one+two · in q · left"#,
        expect!["made · a@0/0 · b@1/1 · ready a b"],
    );
}

#[test]
fn a_copy_that_no_queue_keeps_is_refused() {
    check(
        r#""max_length":1"#,
        r#"declare r "max_length":1 · exchange x fanout · bind x q · bind x r · publish u:9,to=x · publish a:1,to=x · left · lanes"#,
        expect!["made · no: queue-full · ready u · 9: 1 ready 1 bytes 1 published"],
    );
}

#[test]
fn a_queue_that_rejects_and_a_transaction_are_all_or_none() {
    check(
        "",
        r#"declare r "max_length":1 · declare s "max_length":1,"overflow":"reject" · exchange x fanout · bind x q · bind x r · bind x s · publish u:9,to=x · publish a:1,to=x · left · in r · left"#,
        expect!["made · made · no: queue-full · ready u · ready u"],
    );
    check(
        "",
        r#"declare r "max_length":1 · exchange x fanout · bind x q · bind x r · publish u:9,to=x · [publish a:1,to=x ; publish b:1] · left"#,
        expect!["made · no: queue-full · ready u"],
    );
}

#[test]
fn what_a_full_queue_leaves_out_is_dead_lettered_where_it_says_so() {
    check(
        "",
        r#"declare r "max_length":1,"dead_letter_evicted":true,"dead_letter":{"queue":"d"} · declare d · exchange x fanout · bind x q · bind x r · publish u:9,to=x · publish a:1,to=x · left · in r · left · in d · left · restart · left"#,
        expect!["made · made · ready u a · ready u · ready a · ready a"],
    );
}
