//! Point 14, and what becomes of what a full queue does not keep.

use expect_test::expect;

use crate::story::check;

#[test]
fn overflow_takes_from_the_least_urgent_level() {
    check(
        r#""max_length":3"#,
        "publish a:9 b:1 c:5 · publish d:9 · left · publish e:9 · left · publish f:9 · left · lanes",
        expect![
            "ready a d c · ready a d e · ready d e f · 9: 3 ready 3 bytes 4 published 1 evicted, 5: 1 published 1 evicted, 1: 1 published 1 evicted"
        ],
    );
}

#[test]
fn what_is_evicted_is_dead_lettered_if_the_queue_says_so() {
    check(
        r#""max_length":2,"dead_letter_evicted":true,"dead_letter":{"queue":"r"}"#,
        "declare r · publish a:1 b:5 · publish c:9 · left · in r · left · deaths a · in q · lanes",
        expect![
            "made · ready c b · ready a · q maxlen by /q first, last by /q, now by /r · 9: 1 ready 1 bytes 1 published, 5: 1 ready 1 bytes 1 published, 1: 1 published 1 moved 1 dead-lettered"
        ],
    );
    check(
        r#""max_length":2,"dead_letter_evicted":true"#,
        "publish a:1 b:5 · publish c:9 · left · restart · left · replay a",
        expect!["ready c b, dead a · ready c b, dead a · no: queue-full"],
    );
    check(
        r#""max_length":2,"dead_letter_evicted":true,"dead_letter":"drop""#,
        "publish a:1 b:5 · publish c:9 · left · lanes",
        expect![
            "ready c b · 9: 1 ready 1 bytes 1 published, 5: 1 ready 1 bytes 1 published, 1: 1 published 1 evicted"
        ],
    );
}

#[test]
fn a_dead_letter_may_evict_what_is_dropped_and_nothing_that_would_go_on() {
    check(
        r#""max_length":1,"dead_letter_evicted":true,"dead_letter":{"queue":"r"}"#,
        r#"declare r "max_length":1 · publish a · publish b · publish c · left · in r · left"#,
        expect!["made · ready c · ready b"],
    );
    check(
        r#""max_length":1,"dead_letter_evicted":true,"dead_letter":{"queue":"r"}"#,
        r#"declare r "max_length":1,"dead_letter_evicted":true,"dead_letter":{"queue":"q"} · publish a · publish b · publish c · left · in r · left"#,
        expect!["made · ready c, dead b · ready a"],
    );
}

#[test]
fn what_is_evicted_finds_no_less_room_than_what_was_published_before_it_moves() {
    // Both queues get a copy; only then what the first one evicts asks for room in the second.
    check(
        r#""max_length":1,"dead_letter_evicted":true,"dead_letter":{"queue":"r"}"#,
        r#"declare r "max_length":1,"overflow":"reject" · exchange x fanout · bind x q · bind x r · publish a · publish b,to=x · left · in r · left"#,
        expect!["made · ready b, dead a · ready b"],
    );
}

#[test]
fn an_evicted_message_that_is_more_urgent_where_it_goes_is_leased_first() {
    check(
        r#""max_length":1,"dead_letter_evicted":true,"dead_letter":{"queue":"r"},"order":"fifo""#,
        "declare r · in r · lease wait=900 as=p · in q · publish a:9 · [publish b:1,to=/q ; publish c:1,to=/r] · left · in r · left",
        expect!["made · p:a · ready b · ready c, leased a"],
    );
}

#[test]
fn a_refused_publish_is_dead_lettered_if_the_queue_says_so_and_refused_all_the_same() {
    check(
        r#""max_length":1,"overflow":"reject_dead_letter","dead_letter":{"exchange":{"name":"dlx"}}"#,
        "exchange x direct · bind x q k · exchange dlx direct · declare r · bind dlx r k · publish a:1 · publish b:7,to=x/k,ttl=500 · left · in r · left · show b · deaths b · lease · ack b · restart · left · in q · left",
        expect![
            "made · no: queue-full · ready a · ready b · b 7 is ready in 7, leased 0x, died Maxlen in q/7 after 0, 0ms ago · q maxlen by x/k ttl 500 first, last by x/k, now by dlx/k · b · empty · ready a"
        ],
    );
    check(
        r#""max_length":1,"overflow":"reject_dead_letter""#,
        "publish a · publish b · left · restart · left · lanes · lease · ack a · replay b · left",
        expect![
            "no: queue-full · ready a, dead b · ready a, dead b · 4: 1 ready 1 dead 1 bytes 2 published · a · ready b"
        ],
    );
    check(
        r#""max_length":1,"overflow":"reject_dead_letter","dead_letter":"drop""#,
        "publish a · publish b · left · lanes",
        expect!["no: queue-full · ready a · 4: 1 ready 1 bytes 1 published"],
    );
}

#[test]
fn a_refused_publish_is_dead_lettered_for_no_other_reason_and_in_no_transaction() {
    check(
        r#""max_length":1,"max_message_bytes":5,"overflow":"reject_dead_letter""#,
        "publish a,bytes=6 · publish b:-1 · left · publish c · [publish d ; publish e] · left",
        expect!["no: message-too-large · no: priority-out-of-range · empty · no: queue-full · ready c"],
    );
}

#[test]
fn a_publish_to_many_that_one_refuses_is_a_dead_letter_of_that_one_alone() {
    check(
        r#""max_length":1,"overflow":"reject_dead_letter""#,
        "declare r · exchange x fanout · bind x q · bind x r · publish a · publish b,to=x · left · in r · left",
        expect!["made · no: queue-full · ready a, dead b · empty"],
    );
}
