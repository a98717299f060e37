//! Policies: settings from outside, by name, at once, for what waits already.

use expect_test::expect;
use overtake_lane::{
    Asker, Broker, Command, Options, POLICIES_MAX, Pattern, Policy, PolicyKind, Refusal, Reply, Step, Time,
    VhostId,
};

use crate::story::check;

/// A queue as AMQP declares one without arguments.
const FIFO: &str = r#""scheme":"max-255","order":"fifo""#;
/// And with `x-max-priority: 9`.
const NINE: &str = r#""scheme":"max-9""#;

#[test]
fn a_policy_applies_to_the_queues_it_matches_while_it_is_there() {
    check(
        "",
        r#"policy p ^q$ "max-length":2 · rules · declare r · in r · rules · in q · publish a b c · left · unpolicy p · rules · publish d · left"#,
        expect!["by p max_length=2 · made · as declared · ready b c · as declared · ready b c d"],
    );
}

#[test]
fn a_policy_is_there_before_the_queue() {
    check("", r#"policy p r "max-length":2 · declare r · in r · rules"#, expect!["made · by p max_length=2"]);
}

#[test]
fn of_those_that_match_the_highest_applies_and_of_equal_ones_the_first_by_name() {
    check(
        "",
        r#"policy b q "max-length":2 · policy c q "max-length":3 · rules · policy a q "max-length":1 · rules · policy c q first=1 "max-length":3 · rules · policy d x first=9 "max-length":4 · policy e q first=9 to=exchanges "max-length":5 · rules · unpolicy c · rules"#,
        expect![
            "by b max_length=2 · by a max_length=1 · by c max_length=3 · by c max_length=3 · by a max_length=1"
        ],
    );
}

#[test]
fn an_operator_bounds_what_a_queue_and_its_policy_ask_for() {
    check(
        r#""max_length":9,"ttl_ms":50"#,
        r#"policy p q "max-length":7,"expires":90,"overflow":"reject-publish" · operator p q "max-length":8,"expires":70,"message-ttl":60,"overflow":"drop-head" · rules · operator p q "max-length":5 · rules · unpolicy p · rules · unoperator p · rules"#,
        expect![
            "by p and p expires_ms=70 max_length=7 · by p and p expires_ms=90 max_length=5 overflow=reject · and p max_length=5 · as declared"
        ],
    );
}

#[test]
fn a_queue_is_declared_again_as_it_was_though_a_policy_says_otherwise() {
    check(
        FIFO,
        r#"policy p q "max-length":2,"max-priority":3 · declare q same "scheme":"max-255","order":"fifo" · declare q same args=x "scheme":"max-3","max_length":2 · rules"#,
        expect!["no: queue-differs · by p max_length=2 order=priority scheme=max-3"],
    );
}

#[test]
fn its_own_settings_change_under_a_policy() {
    check(
        "",
        r#"policy p q "max-length":5 · settings "max_length":3 · rules · settings "max_length":7 · rules · restart · rules · unpolicy p · publish a b c d e f g h · left"#,
        expect!["by p · by p max_length=5 · by p max_length=5 · ready b c d e f g h"],
    );
}

#[test]
fn a_shorter_queue_drops_the_least_urgent_and_of_them_the_oldest_at_once() {
    check(
        "",
        r#"publish a:5 b:1 c:5 d:1 e:9 · consume w window=1 · policy p q "max-length":2 · left · lanes"#,
        expect![
            "w:e · ready a c, leased e · 9: 1 leased 1 bytes 1 published 1 delivered, 5: 2 ready 2 bytes 2 published, 1: 2 published 2 evicted"
        ],
    );
    check(
        "",
        r#"publish a:5,bytes=9 b:5 c:5,delay=9 · policy p q "max-length-bytes":2 · left"#,
        expect!["ready b, delayed c"],
    );
    check("", r#"publish a b,delay=9 c,delay=9 · policy p q "max-length":1 · left"#, expect!["delayed b c"]);
}

#[test]
fn what_a_policy_drops_is_dead_lettered_where_the_queue_says_so() {
    check(
        "",
        r#"declare d · exchange x fanout · bind x d · publish a b c · policy p q "max-length":1,"dead-letter-exchange":"x" · left · in d · left · deaths a"#,
        expect!["made · ready c · ready a b · q maxlen by /q first, last by /q, now by x/q"],
    );
}

#[test]
fn a_queue_that_refuses_drops_nothing_for_a_policy() {
    check(
        "",
        r#"publish a b c · policy p q "max-length":2,"overflow":"reject-publish" · left · publish d · consume w window=2 · publish e f · left"#,
        expect!["ready a b c · no: queue-full · w:a w:b · no: queue-full · ready c e, leased a b"],
    );
}

#[test]
fn a_time_to_live_is_for_what_comes_after() {
    check(
        "",
        r#"publish a · policy p q "message-ttl":50 · publish b c,ttl=20 · +20ms · left · +30ms · left · policy p q "message-ttl":0 · publish d · left · consume w · publish e"#,
        expect!["ready a b · ready a · ready a · w:a · w:e"],
    );
}

#[test]
fn a_queue_expires_by_a_policy_counted_from_its_last_use() {
    check(
        "",
        r#"declare r · +50ms · policy p r "expires":60 · +9ms · queues · +1ms · queues · declare r · +80ms · queues · policy p q "expires":70 · queues"#,
        expect!["made · q r · q · made · q · "],
    );
}

#[test]
fn deliveries_are_limited_by_a_policy_and_what_dies_goes_where_it_says() {
    check(
        r#""dead_letter":"drop""#,
        r#"declare d · exchange x direct · bind x d k · policy p q "delivery-limit":1,"dead-letter-exchange":"x","dead-letter-routing-key":"k" · publish a · lease · nack a · lease · nack a · left · in d · left"#,
        expect!["made · a · a(2) · empty · ready a"],
    );
}

#[test]
fn a_consumer_is_stopped_by_a_policy_for_what_it_takes_from_then_on() {
    check(
        "",
        r#"consume w window=1 · publish a b · policy p q "consumer-timeout":50 · +60ms · ack a · +50ms"#,
        expect!["w:a · w:b · w timed out"],
    );
}

#[test]
fn of_those_for_exchanges_the_highest_applies_from_the_next_message_on() {
    let to_y = r#"to=exchanges "alternate-exchange":"y""#;
    let to_z = r#"to=exchanges "alternate-exchange":"z""#;
    check(
        "",
        &format!(
            r#"declare r · exchange x direct · exchange y fanout · exchange z fanout · bind y q · bind z r · policy b x {to_y} · publish a,to=x/k · policy c x {to_z} · publish b,to=x/k · policy d . first=1 {to_z} · publish c,to=x/k · unpolicy d · publish d,to=x/k · left · in r · left"#
        ),
        expect!["made · ready a b d · ready c"],
    );
}

#[test]
fn an_exchange_without_an_alternate_gets_that_of_its_policy() {
    check(
        "",
        r#"exchange x direct · exchange y direct alternate=amq.direct · exchange z fanout · bind z q · policy p ^(x|y|amq) to=exchanges "alternate-exchange":"z" · publish a,to=x/k b,to=y/k c,to=amq.topic/k · left · restart · publish d,to=x/k · unpolicy p · publish e,to=x/k · left"#,
        expect!["ready a b c · ready a b c d"],
    );
}

#[test]
fn priorities_come_into_a_fifo_queue_while_messages_wait_and_go_again() {
    check(
        FIFO,
        r#"publish a:1 b:9 c d:5 · order · policy p q "max-priority":7 · order · lanes · publish e:9 f:5 · order · show e · unpolicy p · order · lanes"#,
        expect![
            "a b c d · b d a c · 9: 1 ready 1 bytes 1 published, 5: 1 ready 1 bytes 1 published, 1: 1 ready 1 bytes 1 published, 0: 1 ready 1 bytes 1 published · b e d f a c · e 9 is ready in 7, leased 0x · a b c d e f · fifo: 6 ready 6 bytes 6 published"
        ],
    );
}

#[test]
fn a_lower_maximum_leaves_what_is_above_where_it_is() {
    check(
        NINE,
        r#"publish a:9 b:3 c:1 · policy p q "max-priority":2 · publish d:9 · order · lanes · policy p q "max-priority":200 · publish e:100 · order · unpolicy p · publish f:100 · order"#,
        expect![
            "a b d c · 9: 1 ready 1 bytes 1 published, 3: 1 ready 1 bytes 1 published, 2: 1 ready 1 bytes 1 published, 1: 1 ready 1 bytes 1 published · e a b d c · e a f b d c"
        ],
    );
}

#[test]
fn priorities_change_under_messages_in_every_state() {
    check(
        r#""scheme":"max-255","order":"fifo","visibility_timeout_ms":0"#,
        r#"publish a:1 b:9 c:2 d:5,delay=50 e:7 · lease 1 · reject a · lease 1 for=30 · consume w window=1 · policy p q "max-priority":9 · left · cancel w · order · +30ms · order · +20ms · replay a · order · restart · order · unpolicy p · order"#,
        expect![
            "a · b · w:c · ready e, delayed d, leased b c, dead a · b e c d a · b e c d a · b e d c a · b e d c a · a b c d e"
        ],
    );
}

#[test]
fn a_policy_survives_a_restart_with_all_that_came_of_it() {
    check(
        FIFO,
        r#"publish a:1 b:9 · policy p q "max-priority":7,"max-length":3 · publish c:5 · restart · rules · order · publish d:6 · order · unpolicy p · restart · rules · order"#,
        expect!["by p max_length=3 order=priority scheme=max-7 · b c a · b d c · as declared · b c d"],
    );
}

#[test]
fn lanes_of_its_own_and_schemes_with_words_are_left_alone() {
    let policy = r#"policy p q "max-priority":3,"max-length":1 · rules"#;
    check(r#""scheme":"named""#, policy, expect!["by p max_length=1 not max-priority"]);
    check(
        r#""scheme":"max-9","lanes":{"9":{"max_active":1}}"#,
        policy,
        expect!["by p max_length=1 not max-priority"],
    );
    check(
        r#""scheme":"max-9","order":{"lanes":[{"name":"a","from":4},{"name":"b"}]}"#,
        policy,
        expect!["by p max_length=1 not max-priority"],
    );
}

/// A history keeps the priorities of a queue of another scheme, and they may be more than there are lanes. Priorities that find none share the nearest.
#[test]
fn more_priorities_than_lanes_lose_no_message() {
    let die = |of: std::ops::Range<i32>| {
        let given: Vec<String> = of.map(|at| format!("p{at}:{at},ttl=1")).collect();
        format!("publish {} · +1ms", given.join(" "))
    };
    check(
        r#""scheme":"signed","dead_letter":{"queue":"r"},"dead_letter_expired":true,"history":"r""#,
        &format!(
            r#"declare r "scheme":"max-255","order":"fifo" · {} · {} · in r · policy p r "max-priority":255 · lease 2 · restart · unpolicy p · lanes · lease 2"#,
            die(0..200),
            die(200..300),
        ),
        expect!["made · p255 p256 · fifo: 298 ready 2 leased 300 bytes 1 oldest 300 published · p0 p1"],
    );
}

#[test]
fn refusals_say_what_is_wrong_with_a_policy() {
    check(
        "",
        r#"unpolicy p · policy p q "max-length":1 · unoperator p · operator o q "max-priority":1 · policy p q "max-length":0 · policy x q "ha-mode":"all" · rules"#,
        expect![
            "no: no-such-policy · no: no-such-policy · no: policy-invalid · no: policy-invalid · by p max_length=1"
        ],
    );
}

#[test]
fn there_are_only_so_many_policies() {
    let (mut broker, mut step) = (Broker::new(Options::default()), Step::default());
    let policy = |most: u64| Policy {
        pattern: Pattern::new("^none$").expect("a pattern"),
        definition: serde_json::from_str(&format!(r#"{{"max-length":{most}}}"#)).expect("a definition"),
        priority: 0,
        apply_to: overtake_lane::ApplyTo::Queues,
    };
    let mut set = |kind, name: &str, policy: Policy| {
        let policy = Box::new(policy);
        broker.apply(Time(1), Command::SetPolicy { kind, name: name.into(), policy }, &mut step)
    };
    for at in 0..POLICIES_MAX {
        let kind = if at % 2 == 0 { PolicyKind::User } else { PolicyKind::Operator };
        set(kind, &at.to_string(), policy(1)).expect("there is room");
    }
    assert_eq!(set(PolicyKind::User, "more", policy(1)), Err(Refusal::TooManyPolicies));
    set(PolicyKind::User, "0", policy(2)).expect("it is there already");
    assert_eq!((broker.policies_size().policies, broker.topology_facts().len()), (1_000, 1_000));
}

#[test]
fn there_are_only_so_many_in_all_virtual_hosts_and_those_of_one_that_is_deleted_are_none() {
    let (mut broker, mut step) = (Broker::new(Options::default()), Step::default());
    let mut make = |broker: &mut Broker| {
        let declare = Command::DeclareVhost { name: "v".into(), settings: Box::default() };
        match broker.apply(Time(1), declare, &mut step) {
            Ok(Reply::VhostDeclared(vhost)) => vhost,
            other => panic!("{other:?}"),
        }
    };
    let set = |broker: &mut Broker, vhost, name: &str| {
        let policy = Box::new(Policy {
            pattern: Pattern::new("").expect("a pattern"),
            definition: serde_json::from_str(r#"{"max-length":1}"#).expect("a definition"),
            priority: 0,
            apply_to: overtake_lane::ApplyTo::All,
        });
        let command = Command::SetPolicy { kind: PolicyKind::User, name: name.into(), policy };
        broker.apply_by(Time(1), Asker::in_vhost(vhost), command, &mut Step::default())
    };
    let first = make(&mut broker);
    for at in 0..POLICIES_MAX {
        let vhost = if at % 2 == 0 { first } else { VhostId::DEFAULT };
        set(&mut broker, vhost, &at.to_string()).expect("there is room");
    }
    for vhost in [first, VhostId::DEFAULT] {
        assert_eq!(set(&mut broker, vhost, "more"), Err(Refusal::TooManyPolicies));
    }
    broker
        .apply(Time(1), Command::DeleteVhost { name: "v".into() }, &mut Step::default())
        .expect("it is there");
    assert_eq!(broker.policies_size().policies, 500);
    assert_eq!(set(&mut broker, first, "more"), Err(Refusal::NoSuchVhost));
    let second = make(&mut broker);
    assert_eq!(broker.policies(second, PolicyKind::User).expect("it is there").count(), 0);
    set(&mut broker, second, "more").expect("there is room again");
    assert_eq!(broker.policies_size().policies, 501);
}

#[test]
fn a_policy_rules_its_own_virtual_host_only_and_goes_with_it() {
    check(
        "",
        r#"exchange x fanout · exchange y fanout · bind y q · publish a b · vhost v · at v · declare q · publish c d ·
           exchange x fanout · policy p . "max-length":1,"alternate-exchange":"y" · rules · left · at / · rules · left ·
           publish e,to=x · left · at v · exchange y fanout · bind y q · publish f,to=x · left · restart · rules · left ·
           unpolicy p · rules · drop-vhost v · vhost v · at v · declare q · rules"#,
        expect![
            "made · by p max_length=1 · ready d · as declared · ready a b · ready a b · ready f · by p max_length=1 · ready f · as declared · made · as declared"
        ],
    );
    check(
        "",
        r#"vhost v · at v · declare q · policy p q "max-length":3 · at / · policy p q "max-length":2 · operator p q "expires":90 ·
           rules · at v · rules · unoperator p · unpolicy p · rules · at / · rules"#,
        expect![
            "made · by p and p expires_ms=90 max_length=2 · by p max_length=3 · no: no-such-policy · as declared · by p and p expires_ms=90 max_length=2"
        ],
    );
}
