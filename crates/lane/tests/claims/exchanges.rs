//! Exchanges as RabbitMQ has them: bound to each other, alternates, delayed ones, those that come and go.

use expect_test::expect;

use crate::story::check;

#[test]
fn a_message_goes_through_exchanges_that_are_bound_to_each_other() {
    check(
        "",
        "exchange x fanout · exchange y topic · bind x >y · bind y q a.* · publish a,to=x/a.b b,to=x/c · left",
        expect!["ready a"],
    );
}

#[test]
fn exchanges_in_a_circle_give_each_queue_one_copy() {
    check(
        "",
        "exchange x fanout · exchange y fanout · bind x >y · bind y >x · bind x >x · bind x q · bind y q · publish? a,to=x · left",
        expect!["a@0/0 · ready a"],
    );
}

#[test]
fn what_an_exchange_has_no_binding_for_goes_to_its_alternate() {
    check(
        "",
        "exchange x direct alternate=y · exchange y topic alternate=z · bind x q k · publish a,to=x/k · publish b,to=x/b · publish c,to=x/b,mandatory \
         · exchange z fanout alternate=x · publish d,to=x/d,mandatory · declare r · bind z r · publish e,to=x/e,mandatory f,to=x/k · left · in r · left",
        expect!["no: unroutable · no: unroutable · made · ready a f · ready e"],
    );
}

#[test]
fn nobody_publishes_to_an_internal_exchange() {
    check(
        "",
        "exchange x fanout · exchange y fanout internal · bind x >y · bind y q · publish a,to=y · publish b,to=x · left",
        expect!["no: exchange-internal · ready b"],
    );
}

#[test]
fn further_keys_are_routed_as_the_first_and_no_queue_gets_two_copies() {
    check(
        "",
        "declare r · bind amq.direct q k · bind amq.direct r l · bind amq.direct q l · publish a,to=amq.direct/k+l b,to=amq.direct/m+k \
         · publish c,to=/q+r+q+nobody · left · in r · left",
        expect!["made · ready a b c · ready a c"],
    );
}

#[test]
fn a_delayed_exchange_delays_what_asks_for_it() {
    check(
        "",
        "exchange x fanout delayed · bind x q · publish a,to=x,x-delay=100 b,to=x c,to=amq.fanout,x-delay=100 · left · +100ms · left",
        expect!["ready b, delayed a · ready a b"],
    );
}

#[test]
fn where_one_way_waits_and_another_does_not_nothing_waits() {
    check(
        "",
        "declare r · exchange d fanout delayed · bind amq.fanout >d · bind d q · bind d r · bind amq.fanout q \
         · publish a,to=amq.fanout,x-delay=50 · left · in r · left · +50ms · left",
        expect!["made · ready a · delayed a · ready a"],
    );
}

#[test]
fn an_exchange_that_deletes_itself_goes_with_its_last_binding() {
    check(
        "",
        "exchange x fanout auto-delete · bind x q · bind x q k · unbind x q · publish a,to=x · unbind x q k · publish b,to=x · left",
        expect!["no: no-such-exchange · ready a"],
    );
}

#[test]
fn exchanges_go_with_the_queue_and_with_each_other() {
    check(
        "",
        "declare r · exchange x fanout auto-delete · exchange y fanout auto-delete · exchange z fanout auto-delete · bind x >y · bind y r · bind z r \
         · bind z q · delete r · publish a,to=x · publish b,to=y · publish c,to=z · restart · publish d,to=x · left",
        expect!["made · no: no-such-exchange · no: no-such-exchange · no: no-such-exchange · ready c"],
    );
}

#[test]
fn a_deleted_exchange_takes_the_bindings_of_it_and_to_it_along() {
    check(
        "",
        "exchange x fanout · exchange y fanout · bind x >y · bind y q · drop y if-unused · drop x if-unused · drop y · exchange y fanout \
         · bind y q · publish a,to=x,mandatory · drop x if-unused · drop amq.fanout · drop x · left",
        expect![
            "no: exchange-in-use · no: exchange-in-use · no: unroutable · no: exchange-reserved · no: no-such-exchange · empty"
        ],
    );
}

#[test]
fn an_exchange_that_is_not_durable_ends_with_a_restart() {
    check(
        "",
        "exchange x fanout · exchange y fanout transient · exchange z fanout auto-delete · bind x >y · bind y q · bind z >y · bind x q \
         · restart · publish a,to=y · publish b,to=x · publish c,to=z · exchange y direct · left",
        expect!["no: no-such-exchange · no: no-such-exchange · ready b"],
    );
}

#[test]
fn an_exchange_is_declared_again_only_as_it_is() {
    for attribute in ["transient", "auto-delete", "internal", "delayed", "alternate=y"] {
        check(
            "",
            &format!("exchange x fanout · exchange x fanout · exchange x fanout {attribute}"),
            expect!["no: exchange-differs"],
        );
    }
}

#[test]
fn a_binding_leads_from_one_exchange_to_what_is_there() {
    check(
        "",
        "bind amq.fanout >nobody · bind nobody >amq.fanout · bind amq.fanout > · unbind amq.fanout >amq.topic · exchange h hash · bind h q · bind h q 0 · bind h q 2",
        expect![
            "no: no-such-exchange · no: no-such-exchange · no: exchange-reserved · no: no-such-binding · no: weight-invalid · no: weight-invalid"
        ],
    );
}

#[test]
fn a_consistent_hash_exchange_gives_one_copy_to_the_same_queue_for_the_same_key() {
    check(
        "",
        "declare r · exchange h hash · bind h q 1 · bind h r 1 · publish a,to=h/1 b,to=h/2 c,to=h/3 d,to=h/4 e,to=h/1 f,to=h/1+2+3+4 · left · in r · left",
        expect!["made · ready b · ready a c d e f"],
    );
}
