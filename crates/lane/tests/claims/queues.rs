//! What a queue is from the moment it is declared, whose it is, and when it ends by itself.

use expect_test::expect;
use overtake_lane::{
    Asker, Broker, Command, Existing, Identity, Options, Refusal, Reply, SessionId, Settings, Step, Time,
    VhostId,
};

use crate::story::check;

#[test]
fn a_queue_that_is_declared_as_it_is_stays_as_it_is() {
    check(
        "",
        r#"declare r auto-delete args=x {"ttl_ms":5} · declare r same auto-delete args=x {"ttl_ms":5} ·
           declare r same auto-delete args=x {"ttl_ms":6} · declare r same auto-delete args=y {"ttl_ms":5} ·
           declare r same auto-delete args=y {"ttl_ms":6} ·
           declare r same args=x {"ttl_ms":5} · declare r same transient auto-delete args=x {"ttl_ms":5}"#,
        expect!["made · no: queue-differs · no: queue-differs · no: queue-differs"],
    );
}

#[test]
fn a_queue_whose_settings_are_changed_keeps_its_identity() {
    check(
        "",
        r#"declare r auto-delete · declare r {"ttl_ms":5} · in r · consume w · cancel w · queues"#,
        expect!["made · q"],
    );
}

#[test]
fn a_declaration_that_is_refused_changes_nothing() {
    let (mut broker, mut step) = (Broker::new(Options::default()), Step::default());
    let declare_with = |argument: u8, ttl_ms| Command::DeclareQueue {
        name: "q".into(),
        settings: Box::new(Settings { ttl_ms, ..Settings::default() }),
        identity: Identity { arguments: [argument].into(), ..Identity::default() },
        existing: Existing::Same,
    };
    let declare = |ttl_ms| declare_with(if ttl_ms == 5 { 7 } else { 8 }, ttl_ms);
    let declared = broker.apply(Time(1), declare(5), &mut step);
    assert!(matches!(declared, Ok(Reply::Declared { made: true, ready: 0, consumers: 0, .. })));
    step.clear();
    assert_eq!(broker.apply(Time(2), declare(6), &mut step), Err(Refusal::QueueDiffers));
    assert_eq!(step.facts, []);
    let view = broker.view(Time(2), VhostId::DEFAULT, "q").expect("it is there");
    assert_eq!((view.settings.ttl_ms, &*view.identity.arguments, view.owner), (5, &[7][..], None));
    // An operator's change does not keep its client from declaring it again.
    let update =
        Command::declare("q".into(), Box::new(Settings { ttl_ms: 9, paused: true, ..Settings::default() }));
    broker.apply(Time(3), update, &mut step).expect("changed");
    step.clear();
    broker.apply(Time(4), declare(5), &mut step).expect("it is there");
    assert_eq!(broker.view(Time(4), VhostId::DEFAULT, "q").expect("there").settings.ttl_ms, 9);
}

#[test]
fn settings_are_changed_only_from_those_that_are_meant() {
    let (mut broker, mut step) = (Broker::new(Options::default()), Step::default());
    let settings = |ttl_ms| Box::new(Settings { ttl_ms, ..Settings::default() });
    let mut declare = |ttl_ms, existing| {
        let identity = Identity::default();
        let declare =
            Command::DeclareQueue { name: "q".into(), settings: settings(ttl_ms), identity, existing };
        let declared = broker.apply(Time(1), declare, &mut step).map(|_| ());
        (declared, broker.view(Time(1), VhostId::DEFAULT, "q").ok().map(|view| view.settings.ttl_ms))
    };
    let from = |ttl_ms| Existing::From(settings(ttl_ms));
    assert_eq!(declare(1, from(0)), (Err(Refusal::NoSuchQueue), None), "nothing is made");
    assert_eq!(declare(1, Existing::Same), (Ok(()), Some(1)));
    assert_eq!(declare(2, from(1)), (Ok(()), Some(2)));
    assert_eq!(declare(3, from(1)), (Err(Refusal::QueueDiffers), Some(2)), "somebody else was first");
}

#[test]
fn an_exclusive_queue_is_one_sessions_own() {
    check(
        "",
        r#"by s declare r exclusive · by t declare r same exclusive · by t check r · check r · in r · by t consume w · lease ·
           by t get · by t purge · by t delete r · by t bind amq.fanout r · delete r · by s check r · by s consume v ·
           publish a · by s bind amq.fanout r · in q · publish b,to=amq.fanout"#,
        expect![
            "made · no: queue-locked · no: queue-locked · no: queue-locked · no: queue-locked · no: queue-locked · \
             no: queue-locked · no: queue-locked · no: queue-locked · no: queue-locked · no: queue-locked · v:a · v:b"
        ],
    );
}

#[test]
fn an_exclusive_queue_ends_with_its_session() {
    check(
        "",
        "by s declare r exclusive · in r · publish a · by s consume w · end t · queues · end s · queues · by t declare r",
        expect!["made · w:a · q r · cancelled · q · made"],
    );
}

#[test]
fn a_session_that_ends_puts_back_what_it_holds_before_anything_is_leased_again() {
    check(
        "",
        "publish a b c d · by s consume v window=1 · by s consume w window=1 · by s get · end s · left · consume x window=4",
        expect!["v:a · w:b · c · 1 after · cancelled cancelled · ready a b c d · x:a(2) x:b(2) x:c(2) x:d"],
    );
}

#[test]
fn a_pull_that_waits_ends_with_its_session() {
    check("", "by s lease wait=500 · end s · publish a · left", expect!["nothing · ready a"]);
}

#[test]
fn what_a_pull_has_leased_outlives_its_session() {
    check(
        "",
        "publish a · by s lease for=100 · end s · left · ack a · left",
        expect!["a · leased a · empty"],
    );
}

#[test]
fn a_queue_with_auto_delete_goes_with_its_last_consumer() {
    check(
        "",
        "declare r auto-delete · in r · publish a b · lease · get · queues · consume v window=1 · by s consume w · cancel v · \
         queues · end s · queues",
        expect!["made · a · b · 0 after · q r · q r · cancelled · q"],
    );
    // One that never had a consumer waits for it.
    check("", "declare r auto-delete · lease · restart · queues", expect!["made · nothing · q r"]);
}

#[test]
fn a_queue_that_does_not_last_is_gone_after_a_restart_with_its_bindings() {
    check(
        "",
        "declare r transient · by s declare t exclusive · bind amq.fanout r · by s bind amq.fanout t · bind amq.fanout q · \
         in r · publish a · in t · publish b · restart · queues · in q · publish c,to=amq.fanout · left · restart · left",
        expect!["made · made · q · ready c · ready c"],
    );
}

#[test]
fn what_a_session_got_is_ready_again_after_a_restart() {
    check(
        "",
        "publish a b · by s get · by s get · restart · left",
        expect!["a · 1 after · b · 0 after · ready a b"],
    );
}

#[test]
fn a_queue_that_nobody_uses_expires() {
    let unused = r#"declare r {"expires_ms":100} · in r · "#;
    for (story, expect) in [
        ("+99ms · queues · +1ms · queues", expect!["made · q r · q"]),
        ("+99ms · check r · +99ms · queues · +1ms · queues", expect!["made · q r · q"]),
        (
            r#"+99ms · declare r same {"expires_ms":100} · +99ms · queues · +1ms · queues"#,
            expect!["made · q r · q"],
        ),
        ("+99ms · get · +99ms · queues · +1ms · queues", expect!["made · nothing · q r · q"]),
        (
            "lease wait=150 · +149ms · queues · +1ms · +99ms · queues · +1ms · queues",
            expect!["made · q r · nothing · q r · q"],
        ),
        (
            "consume w · +500ms · queues · cancel w · +99ms · queues · +1ms · queues",
            expect!["made · q r · q r · q"],
        ),
        (
            "by s consume w · +500ms · end s · +99ms · queues · +1ms · queues",
            expect!["made · cancelled · q r · q"],
        ),
        // Publishing is no use, and what lies there does not keep it.
        ("publish a · +60ms · publish b · +40ms · queues", expect!["made · q"]),
        // It counts anew from a restart.
        ("+60ms · restart · +99ms · queues · +1ms · queues", expect!["made · q r · q"]),
    ] {
        check("", &format!("{unused}{story}"), expect);
    }
}

#[test]
fn nothing_dies_into_a_queue_that_expires_in_the_same_moment() {
    check(
        r#""ttl_ms":100,"dead_letter_expired":true,"dead_letter":{"queue":"r"}"#,
        r#"declare r {"expires_ms":100} · publish a · +100ms · queues · left"#,
        expect!["made · q · dead a"],
    );
}

#[test]
fn whoever_is_connected_can_delete_what_everybody_may() {
    let (mut broker, mut step) = (Broker::new(Options::default()), Step::default());
    let mut ask = |command| {
        let command = Command::By { asker: Asker::connected(SessionId(1)), command: Box::new(command) };
        broker.apply(Time(1), command, &mut step)
    };
    ask(Command::declare("q".into(), Box::default())).expect("it is made");
    let delete = Command::DeleteQueue { name: "q".into(), if_empty: true, if_unused: true };
    assert_eq!(ask(delete), Ok(Reply::Count(0)));
}
