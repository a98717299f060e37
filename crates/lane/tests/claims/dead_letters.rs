//! Point 19: what becomes of dead letters.

use expect_test::expect;

use crate::story::check;

#[test]
fn a_dead_letter_keeps_priority_queue_lane_reason_count_and_time() {
    check(
        r#""delivery_limit":2,"dead_letter":{"queue":"r"}"#,
        "declare r · publish a:7 · lease · nack a · +100ms · lease · nack a · +5ms · left · in r · show a",
        expect![
            "made · a · a(2) · empty · a 7 is ready in 7, leased 0x, died DeliveryLimit in q/7 after 2, 5ms ago"
        ],
    );
}

/// As a copy of a route is, and back again into its own lane.
#[test]
fn in_a_queue_of_another_scheme_a_dead_letter_is_as_urgent() {
    check(
        r#""dead_letter":{"queue":"r"}"#,
        r#"declare r "scheme":"named" · in q · publish a:9 b:7 c:4 d:0 · lease 4 · reject a b c d · in r · show a · show b · show c · show d · left · restart · left · replay all · in q · show a · show b · show c · show d"#,
        expect![
            "made · a b c d · a critical is ready in critical, leased 0x, died Rejected in q/9 after 1, 0ms ago · b high is ready in high, leased 0x, died Rejected in q/7 after 1, 0ms ago · c normal is ready in normal, leased 0x, died Rejected in q/4 after 1, 0ms ago · d background is ready in background, leased 0x, died Rejected in q/0 after 1, 0ms ago · ready a b c d · ready a b c d · a 9 is ready in 9, leased 0x, died Rejected in q/9 after 1, 0ms ago · b 7 is ready in 7, leased 0x, died Rejected in q/7 after 1, 0ms ago · c 4 is ready in 4, leased 0x, died Rejected in q/4 after 1, 0ms ago · d 0 is ready in 0, leased 0x, died Rejected in q/0 after 1, 0ms ago"
        ],
    );
    check(
        r#""scheme":"route","dead_letter":{"queue":"r"}"#,
        r#"declare r · in q · publish a:9 b:5 c:0 d · lease 4 · reject a b c d · in r · show a · show b · show c · show d · left · replay all · in q · show a · show d · left"#,
        expect![
            "made · c b a d · a 0 is ready in 0, leased 0x, died Rejected in q/9 after 1, 0ms ago · b 4 is ready in 4, leased 0x, died Rejected in q/5 after 1, 0ms ago · c 9 is ready in 9, leased 0x, died Rejected in q/0 after 1, 0ms ago · d 0 is ready in 0, leased 0x, died Rejected in q/default after 1, 0ms ago · ready c b a d · a 9 is ready in 9, leased 0x, died Rejected in q/9 after 1, 0ms ago · d 0 is ready in default, leased 0x, died Rejected in q/default after 1, 0ms ago · ready c b a d"
        ],
    );
    check(
        r#""scheme":"named","dead_letter":{"queue":"r"}"#,
        r#"declare r "max_length":1 · in q · publish a:critical b:low · lease 2 · reject b a · in r · show a · left"#,
        expect![
            "made · a b · a 9 is ready in 9, leased 0x, died Rejected in q/critical after 1, 0ms ago · ready a"
        ],
    );
}

#[test]
fn a_dead_letter_whose_priority_was_changed_elsewhere_goes_back_as_urgent_as_it_is() {
    check(
        r#""scheme":"named","dead_letter":{"queue":"r"}"#,
        r#"declare r · in q · publish a:low · lease · reject a · in r · show a · reprioritise a 9 · replay a · in q · show a"#,
        expect![
            "made · a · a 2 is ready in 2, leased 0x, died Rejected in q/low after 1, 0ms ago · a critical is ready in critical, leased 0x, died Rejected in q/low after 1, 0ms ago"
        ],
    );
}

#[test]
fn dead_letters_stay_in_their_queue_by_default_and_are_in_no_ones_way() {
    check(
        "",
        "publish a:9 b:1 · lease · reject a · lease · left · restart · left",
        expect!["a · b · leased b, dead a · leased b, dead a"],
    );
}

#[test]
fn dead_letters_are_dropped_and_counted_if_the_queue_says_so() {
    check(
        r#""dead_letter":"drop""#,
        "publish a:9 · lease · reject a · left · lanes",
        expect!["a · empty · 9: 1 published 1 delivered 1 removed"],
    );
    check(
        r#""dead_letter":"drop","dead_letter_expired":true"#,
        "publish a:9,ttl=5 · +5ms · lanes",
        expect!["9: 1 published 1 expired"],
    );
}

#[test]
fn dead_letters_go_to_every_queue_of_an_exchange() {
    check(
        r#""dead_letter":{"exchange":{"name":"x"}}"#,
        "declare r · declare s · exchange x fanout · bind x r · bind x s · publish a:6 · lease · reject a · left · in r · left · in s · lease · ack a · in r · lease",
        expect!["made · made · a · empty · ready a · a · a"],
    );
    check(
        r#""dead_letter":{"exchange":{"name":"x","routing_key":"k"}}"#,
        "declare r · exchange x direct · bind x r q · publish a:6 · lease · reject a · left · bind x r k · publish b · lease · reject b · in r · left",
        expect!["made · a · dead a · b · ready b"],
    );
}

#[test]
fn a_dead_letter_that_cannot_be_written_stays() {
    check(
        r#""dead_letter":{"queue":"nowhere"}"#,
        "publish a:6 · lease · reject a · left",
        expect!["a · dead a"],
    );
    check(r#""dead_letter":{"queue":"q"}"#, "publish a:6 · lease · reject a · left", expect!["a · dead a"]);
    check(
        r#""dead_letter":{"queue":"r"}"#,
        r#"declare r "max_length":1,"overflow":"reject" · publish a:6 b:6 · lease 2 · reject a b · left · in r · left"#,
        expect!["made · a b · dead b · ready a"],
    );
    check(
        r#""dead_letter":{"queue":"r"}"#,
        r#"declare r "last_value":"key" · publish a:6 b:6,key=k · lease 2 · reject a b · left · in r · left"#,
        expect!["made · a b · dead a · ready b"],
    );
}

#[test]
fn a_dead_letter_wakes_who_waits_for_it() {
    check(
        r#""dead_letter":{"queue":"r"},"delivery_limit":1"#,
        "declare r · in r · lease wait=900 as=p · in q · publish a · lease for=100 · +100ms",
        expect!["made · a · p:a"],
    );
}

#[test]
fn a_dead_letter_gets_the_time_to_live_of_where_it_is_now() {
    check(
        r#""dead_letter_expired":true,"dead_letter":{"queue":"r"}"#,
        r#"declare r "ttl_ms":50 · publish a,ttl=10 · +10ms · in r · show a · +50ms · left"#,
        expect![
            "made · a 4 is ready in 4, leased 0x, expires in 50ms, died Expired in q/4 after 0, 0ms ago · empty"
        ],
    );
}

#[test]
fn replay_puts_it_back_into_its_own_lane_at_its_place() {
    check(
        "",
        "publish a:5 b:5 c:9 · lease 2 · reject c a · publish d:9 · replay all · left · lease 9",
        expect!["c a · ready c d a b · c d a b"],
    );
}

#[test]
fn replay_gives_it_a_fresh_count_and_forgives_an_expiry_that_is_over() {
    check(
        r#""dead_letter_expired":true"#,
        "publish a,ttl=10 b · +10ms · lease · reject b · replay all · show a · lease 9",
        expect!["b · a 4 is ready in 4, leased 0x, died Expired in q/4 after 0, 0ms ago · a b"],
    );
}

#[test]
fn promote_is_an_explicit_choice() {
    check(
        "",
        "publish a:1 b:5 · lease 2 · reject a b · replay a to=9 · replay b · left · replay b",
        expect!["b a · ready a b · no: not-dead"],
    );
}

#[test]
fn a_dead_letter_that_moved_is_replayed_from_where_it_lies_into_where_it_died() {
    check(
        r#""dead_letter":{"queue":"r"}"#,
        "declare r · publish a:7 b:7 · lease · reject a · in r · left · replay a · left · in q · left · in r · replay a",
        expect!["made · a · ready a · empty · ready b a · no: no-such-message"],
    );
}

#[test]
fn some_of_many_that_moved_are_replayed() {
    check(
        r#""dead_letter":{"queue":"r"}"#,
        "declare r · publish a b c d · lease 4 · reject a b c d · in r · +1ms · +1ms · +1ms · +1ms · +1ms · +1ms · replay b+d · left · in q · left",
        expect!["made · a b c d · ready a c · ready b d"],
    );
}

#[test]
fn what_is_no_dead_letter_is_not_replayed() {
    check(
        r#""dead_letter":{"queue":"r"}"#,
        "declare r · publish a b · lease · reject a · replay b · replay zzz · in r · publish c · replay c · lease · replay a",
        expect!["made · a · no: not-dead · no: no-such-message · no: not-dead · a · no: leased"],
    );
}

#[test]
fn replay_into_a_queue_that_is_gone_leaves_it_where_it_lies() {
    check(
        r#""dead_letter":{"queue":"r"}"#,
        "declare r · publish a · lease · reject a · delete q · in r · replay a · replay all · left",
        expect!["made · a · no: no-such-queue · ready a"],
    );
}

#[test]
fn replay_into_a_full_queue_leaves_it_where_it_lies() {
    check(
        r#""dead_letter":{"queue":"r"},"max_length":1"#,
        "declare r · publish a:1 · lease · reject a · publish b:9 · in r · replay a · left · in q · left",
        expect!["made · a · no: queue-full · ready a · ready b"],
    );
    check(
        r#""max_length":1,"overflow":"reject""#,
        "publish a:1 · lease · reject a · publish b:9 · replay a · replay all · left",
        expect!["a · no: queue-full · ready b, dead a"],
    );
    check(
        r#""max_length":1"#,
        "publish a:5 · lease · reject a · publish b:5 · replay a · left",
        expect!["a · ready a"],
    );
}

#[test]
fn replay_brings_one_of_an_id_back_and_leaves_its_twin() {
    check(
        "",
        "publish a,id=x · lease · reject a · publish b,id=x · lease · reject b · replay all · left · restart · publish c,id=x · left",
        expect!["a · b · ready a, dead b · c again@0/0 · ready a, dead b"],
    );
}

#[test]
fn a_dead_letter_is_found_by_its_id_also_after_another_of_that_id_has_gone() {
    check(
        "",
        "publish a,id=x · lease · reject a · publish b,id=x · lease · ack b · show a · replay a · left",
        expect!["a · b · a 4 is dead in 4, leased 1x, died Rejected in q/4 after 1, 0ms ago · ready a"],
    );
}

#[test]
fn a_letter_dies_again_where_it_is() {
    check(
        r#""dead_letter":{"queue":"r"}"#,
        "declare r · publish a:7 · lease · reject a · in r · lease · reject a · left · show a · replay a · left",
        expect![
            "made · a · a · dead a · a 7 is dead in 7, leased 1x, died Rejected in r/7 after 1, 0ms ago · ready a"
        ],
    );
}
