//! Points 18 and 24 as far as one broker goes: exchanges, bindings, copies.

use expect_test::expect;

use crate::story::check;

#[test]
fn a_message_that_matches_two_bindings_of_one_queue_is_stored_once() {
    check(
        "",
        "bind amq.topic q a.* · bind amq.topic q # · publish? m:5,to=amq.topic/a.b · left",
        expect!["m@0/0 · ready m"],
    );
}

#[test]
fn each_queue_gets_a_copy_at_its_own_place_under_its_own_scheme() {
    check(
        "",
        r#"declare r "scheme":"route" · bind amq.fanout q · bind amq.fanout r · publish x:4 · in r · publish y:4 · publish m:3,to=amq.fanout · left · in q · left · lease · ack x · lease · in r · lease"#,
        expect!["made · ready m y · ready x m · x · m · m"],
    );
}

#[test]
fn a_publish_that_one_of_its_queues_refuses_is_in_none() {
    check(
        "",
        r#"declare r "max_length":1,"overflow":"reject" · bind amq.fanout q · bind amq.fanout r · publish a,to=amq.fanout b,to=amq.fanout · left · in r · left"#,
        expect!["made · no: queue-full · ready a · ready a"],
    );
}

#[test]
fn a_message_that_no_queue_is_bound_for_is_dropped_or_refused_if_it_must_not_be() {
    check(
        "",
        "publish a,to=amq.direct/k · publish b,to=amq.direct/k,mandatory · publish c,to=nowhere/k · publish d,to=/q e,to=/zzz · left",
        expect!["no: unroutable · no: no-such-exchange · ready d"],
    );
}

#[test]
fn a_headers_exchange_looks_at_headers() {
    check(
        "",
        "bind amq.headers q header=urgent · publish a,to=amq.headers,header=urgent b,to=amq.headers,header=other · left",
        expect!["ready a"],
    );
}

#[test]
fn an_unbound_queue_gets_nothing_more() {
    check(
        "",
        "bind amq.direct q k · publish a,to=amq.direct/k · unbind amq.direct q k · publish b,to=amq.direct/k · unbind amq.direct q k · left",
        expect!["no: no-such-binding · ready a"],
    );
}

#[test]
fn topology_survives_a_restart_and_a_deleted_queue_takes_its_bindings_along() {
    check(
        "",
        "exchange x topic · bind x q #.log · declare r · bind x r # · delete r · restart · publish a,to=x/a.log · left · declare r · publish b,to=x/b · in r · left",
        expect!["made · ready a · made · empty"],
    );
}

#[test]
fn an_exchange_is_of_one_kind_and_some_belong_to_the_broker() {
    check(
        "",
        "exchange x topic · exchange x topic · exchange x fanout · exchange amq.mine fanout · bind nowhere q · bind x nowhere",
        expect!["no: exchange-differs · no: exchange-reserved · no: no-such-exchange · no: no-such-queue"],
    );
}

#[test]
fn an_id_that_is_pending_in_one_queue_is_stored_in_the_others() {
    check(
        "",
        "declare r · bind amq.fanout q · bind amq.fanout r · publish a:5,id=x · publish b:5,id=x,to=amq.fanout · left · in r · left",
        expect!["made · b again@0/0 · ready a · ready b"],
    );
}
