//! Virtual hosts: the same names in each, and nothing that goes from one into another.

use expect_test::expect;
use overtake_lane::{
    Broker, Command, Fact, Options, Refusal, Reply, Step, Time, VHOSTS_MAX, VhostId, VhostSettings,
};

use crate::story::check;

#[test]
fn a_name_means_in_each_virtual_host_what_is_there() {
    check(
        "",
        "vhost v · publish a · at v · publish b · lease · declare q · publish c · queues · left · at / · left · delete q · \
         queues · at v · queues · left",
        expect![[r#"no: no-such-queue · no: no-such-queue · made · q · ready c · ready a ·  · q · ready c"#]],
    );
}

#[test]
fn each_has_its_own_exchanges_and_predeclared_ones() {
    check(
        "",
        "vhost v · exchange x fanout · bind amq.topic q # · at v · declare q · publish a,to=x · publish b,to=amq.topic/k · \
         publish c,to=/q · exchange x direct · bind x q k · publish d,to=x/k · left · at / · publish e,to=x/k · \
         publish f,to=amq.topic/k · left",
        expect![[r#"made · no: no-such-exchange · ready c d · ready f"#]],
    );
}

#[test]
fn dead_letters_stay_where_they_died() {
    check(
        r#""dead_letter":{"queue":"dead"}"#,
        r#"declare dead · vhost v · at v · declare dead · declare q {"dead_letter":{"queue":"dead"}} · publish a · lease ·
           reject a · in dead · left · at / · left · at v · replay a · in q · left"#,
        expect![[r#"made · made · made · a · ready a · empty · ready a"#]],
    );
    check(
        "",
        r#"exchange x fanout · declare dead · bind x dead · vhost v · at v ·
           declare q {"dead_letter":{"exchange":{"name":"x"}}} · publish a · lease · reject a · left"#,
        expect![[r#"made · made · a · dead a"#]],
    );
}

#[test]
fn a_receipt_counts_where_its_message_is() {
    check(
        "",
        "publish a · lease · vhost v · at v · ack a · extend a for=9 · [ack a] · at / · ack a · left",
        expect![[r#"a · no: stale-receipt · no: stale-receipt · no: stale-receipt · empty"#]],
    );
}

#[test]
fn what_is_asked_where_there_is_no_virtual_host_is_refused() {
    check(
        "",
        "vhost v · at v · drop-vhost v · declare r · check r · publish a · publish a,to=amq.topic/k · lease · get · consume w · \
         exchange x fanout · drop x · bind amq.topic q k · unbind amq.topic q k · purge · remove all · replay all · queues · \
         vhosts · set a=1 · metadata · drop-vhost v",
        expect![[
            r#"no: no-such-vhost · no: no-such-vhost · no: no-such-vhost · no: no-such-vhost · no: no-such-vhost · no: no-such-vhost · no: no-such-vhost · no: no-such-vhost · no: no-such-vhost · no: no-such-vhost · no: no-such-vhost · no: no-such-vhost · no: no-such-vhost · no: no-such-vhost · no: no-such-vhost · /:1 · a=1 · no: no-such-vhost"#
        ]],
    );
}

#[test]
fn a_virtual_host_goes_with_all_that_is_in_it() {
    check(
        "",
        "vhost v · at v · declare q · exchange x fanout · bind x q · bind amq.topic q k · publish a · consume w · \
         by s declare r exclusive · by s get · lease wait=500 · at / · in q · publish b · drop-vhost v · vhosts · left · \
         end s · vhost v · at v · queues · publish c,to=x · bind amq.topic r k · declare q · left",
        expect![[
            r#"made · w:a · made · nothing · cancelled cancelled · /:1 · ready b ·  · no: no-such-exchange · no: no-such-queue · made · empty"#
        ]],
    );
}

#[test]
fn a_window_shared_over_virtual_hosts_is_free_again_when_one_is_gone() {
    check(
        "",
        "vhost v · publish a · at v · declare q · publish b · by s consume w shared=1 window=5 · window 1 size=1 · at / · \
         by s consume u shared=1 window=5 · publish c · drop-vhost v · ack a",
        expect![[r#"made · w:b · cancelled u:a · u:c"#]],
    );
}

#[test]
fn the_virtual_host_of_a_slash_is_always_there() {
    check(
        "",
        "vhosts · drop-vhost / · vhost / queues=1 about=all · vhosts · declare r · restart · vhosts",
        expect![[
            r#"/:1 · no: vhost-reserved · /:1 about all, queues 1 · no: vhost-queues-max · /:1 about all, queues 1"#
        ]],
    );
}

#[test]
fn so_many_queues_and_no_more() {
    check(
        "",
        "vhost v queues=1 · at v · declare q · declare q · declare r · vhost v queues=0 · queues · delete q · declare q · \
         vhost v · declare q · declare r · vhosts",
        expect![[r#"made · no: vhost-queues-max · q · no: vhost-queues-max · made · made · /:1 v:2"#]],
    );
}

#[test]
fn virtual_hosts_survive_a_restart_with_what_lasts_in_them() {
    check(
        "",
        "vhost v about=x tag=a+b queues=5 connections=7 · vhost gone · at gone · declare q · at v · declare q · declare r transient · \
         exchange x fanout · exchange y fanout transient · bind x q · publish a,to=x · drop-vhost gone · restart · vhosts · \
         queues · publish b,to=y · publish c,to=x · left · at / · queues",
        expect![[
            r#"made · made · made · /:1 v:1 about x, tag a+b, queues 5, connections 7 · q · no: no-such-exchange · ready a c · q"#
        ]],
    );
}

#[test]
fn what_is_said_of_a_virtual_host_has_bounds() {
    check(
        "",
        "vhost v about=*2048 · vhost v about=*2049 · vhost v about=*2048 tag=x · vhost v tag=*201 · vhost v tag=a+ · \
         vhost v about=a\u{1} · vhost *201 · vhost w tag=*200",
        expect![[
            r#"no: vhost-invalid · no: vhost-invalid · no: vhost-invalid · no: vhost-invalid · no: vhost-invalid"#
        ]],
    );
    let long = Command::DeclareVhost { name: "x".repeat(201).into(), settings: Box::default() };
    let refused = Broker::new(Options::default()).apply(Time(0), long, &mut Step::default());
    assert_eq!(refused, Err(Refusal::NameInvalid));
}

#[test]
fn one_that_is_declared_as_it_is_writes_nothing() {
    let (mut broker, mut step) = (Broker::new(Options::default()), Step::default());
    let settings = VhostSettings { description: "all".into(), ..VhostSettings::default() };
    let declare = Command::DeclareVhost { name: "v".into(), settings: Box::new(settings) };
    for facts in [1, 1] {
        let reply = broker.apply(Time(0), declare.clone(), &mut step);
        assert_eq!(reply, Ok(Reply::VhostDeclared(VhostId(1))));
        assert_eq!(step.facts.len(), facts);
    }
}

#[test]
fn no_more_than_so_many_virtual_hosts() {
    let (mut broker, mut step) = (Broker::new(Options::default()), Step::default());
    let mut declare = |name: usize| {
        let declare = Command::DeclareVhost { name: name.to_string().into(), settings: Box::default() };
        broker.apply(Time(0), declare, &mut step)
    };
    for name in 1..VHOSTS_MAX {
        assert!(declare(name).is_ok());
    }
    assert_eq!(declare(0), Err(Refusal::TooManyVhosts));
    assert_eq!(declare(1), Ok(Reply::VhostDeclared(VhostId(1))));
}

/// It is told by one fact, whatever of the others is durable.
#[test]
fn all_of_a_deleted_virtual_host_is_gone_or_nothing() {
    let (mut broker, mut step) = (Broker::new(Options::default()), Step::default());
    let there = overtake_lane::Asker::in_vhost(VhostId(1));
    let vhost = Command::DeclareVhost { name: "v".into(), settings: Box::default() };
    broker.apply(Time(0), vhost, &mut step).expect("made");
    for name in ["a", "b", "c"] {
        let declare = Command::declare(name.into(), Box::default());
        broker.apply_by(Time(0), there, declare, &mut step).expect("made");
    }
    let before = std::mem::take(&mut step.facts);
    broker.apply(Time(0), Command::DeleteVhost { name: "v".into() }, &mut step).expect("deleted");
    assert_eq!(step.facts.len(), 4, "{:?}", step.facts);
    for durable in 0..=step.facts.len() {
        let (mut again, mut effects) = (Broker::new(Options::default()), Step::default());
        for fact in before.iter().chain(&step.facts[..durable]) {
            again.fold(fact.clone(), &mut effects).expect("founded");
        }
        let mut woken = Step::default();
        again.wake(Time(0), &mut woken);
        assert_eq!(again.queue_count(), if durable == 0 { 3 } else { 0 });
        let unsaid = |fact: &&Fact| matches!(fact, Fact::QueueDeleted { .. });
        let said_again = woken.facts.iter().filter(unsaid).count();
        assert_eq!(
            said_again,
            if durable == 0 { 0 } else { 4 - durable },
            "what was not said yet is said now"
        );
    }
}
