//! What a message remembers of its deaths, and by which way it goes on: as RabbitMQ's clients expect it.

use expect_test::expect;

use crate::story::check;

#[test]
fn a_history_has_one_entry_for_each_queue_and_reason_the_newest_first() {
    check(
        r#""dead_letter":{"queue":"wait"}"#,
        r#"declare wait "ttl_ms":10,"dead_letter_expired":true,"dead_letter":{"exchange":{"name":"","routing_key":"q"}} · publish a · lease · reject a · in wait · deaths a · +10ms · in q · deaths a · lease · reject a · +10ms · lease · deaths a"#,
        expect![
            "made · a · q rejected by /q first, last by /q, now by /wait · wait expired by /wait, q rejected by /q first, last by /wait, now by /q · a · a · wait expired by /wait 2x, q rejected by /q 2x first, last by /wait, now by /q"
        ],
    );
}

#[test]
fn a_history_survives_a_restart_and_names_the_first_death_and_the_last() {
    check(
        r#""dead_letter":{"exchange":{"name":"dlx"}},"delivery_limit":1"#,
        r#"exchange x direct · exchange dlx fanout · declare r "delivery_limit":1 · bind x q k · bind dlx r · publish a,to=x/k · lease · nack a · in r · lease · nack a · restart · deaths a · replay a · deaths a"#,
        expect![
            "made · a · a · r deliverylimit by dlx/k, q deliverylimit by x/k first, last by dlx/k, now by dlx/k · r deliverylimit by dlx/k, q deliverylimit by x/k first, last by dlx/k, now by dlx/k"
        ],
    );
}

#[test]
fn a_message_that_never_died_has_no_history() {
    check("", "publish a · lease · nack a · lease · deaths a", expect!["a · a(2) · a never died"]);
}

#[test]
fn without_a_routing_key_of_the_queue_a_dead_letter_goes_by_its_own() {
    check(
        r#""dead_letter":{"exchange":{"name":"dlx"}}"#,
        "exchange x topic · exchange dlx direct · declare r · declare s · bind x q # · bind dlx r red · bind dlx s q · publish a,to=x/red · lease · reject a · in r · left · deaths a · in s · left · in q · publish b · lease · reject b · in s · left",
        expect![
            "made · made · a · ready a · q rejected by x/red first, last by x/red, now by dlx/red · empty · b · ready b"
        ],
    );
}

#[test]
fn the_routing_key_of_the_queue_takes_the_place_of_the_messages_own_from_then_on() {
    check(
        r#""dead_letter":{"exchange":{"name":"dlx","routing_key":"dead"}}"#,
        r#"exchange dlx topic · declare r "dead_letter":{"exchange":{"name":"end"}} · bind dlx r dead · exchange end direct · declare s · bind end s dead · publish a · lease · reject a · in r · lease · reject a · in s · deaths a"#,
        expect![
            "made · made · a · a · r rejected by dlx/dead, q rejected by /q first, last by dlx/dead, now by end/dead"
        ],
    );
}

#[test]
fn a_headers_exchange_chooses_by_the_headers_of_the_dead_letter() {
    check(
        r#""dead_letter":{"exchange":{"name":"dlx"}}"#,
        "exchange x fanout · bind x q · exchange dlx headers · declare r · declare s · bind dlx r header=red · bind dlx s header=blue · publish a,to=x,header=blue · lease · reject a · in r · left · in s · left",
        expect!["made · made · a · empty · ready a"],
    );
}

#[test]
fn the_default_exchange_leads_to_the_queue_of_the_key() {
    check(
        r#""dead_letter":{"exchange":{"name":"","routing_key":"r"}}"#,
        "declare r · publish a · lease · reject a · left · in r · left · deaths a",
        expect!["made · a · empty · ready a · q rejected by /q first, last by /q, now by /r"],
    );
}

#[test]
fn a_dead_letter_loses_its_own_time_to_live_and_its_history_says_which() {
    check(
        r#""dead_letter_expired":true,"dead_letter":{"queue":"r"}"#,
        r#"declare r "dead_letter_expired":true,"ttl_ms":50 · publish a,ttl=10 · +10ms · in r · show a · +50ms · deaths a"#,
        expect![
            "made · a 4 is ready in 4, leased 0x, expires in 50ms, died Expired in q/4 after 0, 0ms ago · r expired by /r, q expired by /q ttl 10 first, last by /r, now by /r"
        ],
    );
}

#[test]
fn a_round_that_nobody_rejected_it_in_ends_where_it_began() {
    // Back to the queue it expired in first: it is gone, and counted.
    check(
        r#""ttl_ms":10,"dead_letter_expired":true,"dead_letter":{"queue":"r"}"#,
        r#"declare r "ttl_ms":10,"dead_letter_expired":true,"dead_letter":{"queue":"q"} · publish a · +10ms · in r · left · +10ms · left · in q · left · in r · lanes"#,
        expect!["made · ready a · empty · empty · 4: 1 published 1 expired"],
    );
    // Of two queues only the one that it did not die in gets it.
    check(
        r#""ttl_ms":10,"dead_letter_expired":true,"dead_letter":{"queue":"r"}"#,
        r#"declare r "ttl_ms":10,"dead_letter_expired":true,"dead_letter":{"exchange":{"name":"x"}} · declare s · exchange x fanout · bind x q · bind x s · publish a · +10ms · +10ms · left · in s · left"#,
        expect!["made · made · empty · ready a"],
    );
}

#[test]
fn a_round_with_a_rejection_in_it_goes_on_for_ever() {
    check(
        r#""dead_letter":{"queue":"wait"}"#,
        r#"declare wait "ttl_ms":10,"dead_letter_expired":true,"dead_letter":{"queue":"q"} · publish a:7 · lease · reject a · +10ms · lease · reject a · +10ms · lease · reject a · +10ms · lease · show a"#,
        expect![
            "made · a · a · a · a · a 7 is leased in 7, leased 1x, deadline in 30000ms, died Expired in wait/7 after 0, 0ms ago"
        ],
    );
}

#[test]
fn a_rejected_message_may_come_back_to_the_end_of_its_own_queue_by_an_exchange() {
    check(
        r#""dead_letter":{"exchange":{"name":"","routing_key":"q"}}"#,
        "publish a,id=x b · lease · reject a · left · lease 2 · deaths a · reject a · left",
        expect!["a · ready b a · b a · q rejected by /q first, last by /q, now by /q · ready a, leased b"],
    );
    // By itself it does not: it would never stop.
    check(
        r#""ttl_ms":10,"dead_letter_expired":true,"dead_letter":{"exchange":{"name":"","routing_key":"q"}}"#,
        "publish a · +10ms · left · lanes",
        expect!["empty · 4: 1 published 1 expired"],
    );
}

#[test]
fn a_message_that_died_in_as_many_queues_as_it_remembers_goes_no_further_by_itself() {
    let declared: Vec<String> = (1..40)
        .map(|at| {
            format!(
                r#"declare q{at} "expire_at_once":true,"dead_letter_expired":true,"dead_letter":{{"queue":"q{}"}}"#,
                at + 1
            )
        })
        .collect();
    check(
        r#""expire_at_once":true,"dead_letter_expired":true,"dead_letter":{"queue":"q1"}"#,
        &format!("{} · publish a · in q29 · left · in q30 · left · in q31 · left", declared.join(" · ")),
        expect![
            "made · made · made · made · made · made · made · made · made · made · made · made · made · made · made · made · made · made · made · made · made · made · made · made · made · made · made · made · made · made · made · made · made · made · made · made · made · made · made · empty · dead a · empty"
        ],
    );
}

#[test]
fn replay_brings_it_back_by_the_way_it_had_come() {
    check(
        r#""dead_letter":{"exchange":{"name":"dlx","routing_key":"dead"}}"#,
        "exchange x direct · exchange dlx direct · declare r · bind x q k · bind dlx r dead · publish a:7,to=x/k · lease · reject a · in r · deaths a · replay a · in q · deaths a · left",
        expect![
            "made · a · q rejected by x/k first, last by x/k, now by dlx/dead · q rejected by x/k first, last by x/k, now by x/k · ready a"
        ],
    );
}

#[test]
fn priority_and_order_survive_dead_lettering_restart_and_replay() {
    check(
        r#""dead_letter":{"queue":"r"}"#,
        "declare r · publish a:1 b:9 c:5 d:9 · lease 4 · reject c a d b · in r · left · restart · left · replay all · in q · left · restart · lease 9",
        expect!["made · b d c a · ready d b c a · ready d b c a · ready d b c a · d b c a"],
    );
}
