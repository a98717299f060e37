//! Exchanges as clients declare them, and where messages go.

use overtake_engine::Engine;
use overtake_properties::{ArrayBuilder, Fields, Value};

use crate::broker::{Broker, wait};
use crate::client::Client;
use crate::words::{Args, n, short, t, table};

/// A broker with these queues, and a client.
fn with_queues(queues: &[&str]) -> (Broker, Client) {
    let mut broker = Broker::new();
    let mut ann = broker.connect();
    for queue in queues {
        ann.declare(queue, &[]);
    }
    (broker, ann)
}

/// What each queue got, which is taken out: `a b | b`.
fn got(ann: &mut Client, queues: &[&str]) -> String {
    queues.iter().map(|queue| ann.take_all(queue)).collect::<Vec<_>>().join(" | ")
}

#[test]
fn direct_goes_by_the_key() {
    let (_broker, mut ann) = with_queues(&["one", "other"]);
    ann.bind("one", "amq.direct", "red", &[]);
    ann.bind("other", "amq.direct", "red", &[]);
    ann.bind("other", "amq.direct", "blue", &[]);
    for (key, body) in [("red", "a"), ("blue", "b"), ("green", "c")] {
        ann.route("amq.direct", key, body);
    }
    assert_eq!(got(&mut ann, &["one", "other"]), "a | a b");
    assert_eq!(ann.letter("b").route(), "amq.direct/blue");
    ann.unbind("one", "amq.direct", "red", &[]);
    ann.route("amq.direct", "red", "d");
    assert_eq!(got(&mut ann, &["one", "other"]), " | d");
}

#[test]
fn fanout_goes_everywhere_once() {
    let (_broker, mut ann) = with_queues(&["one", "other"]);
    ann.bind("one", "amq.fanout", "", &[]);
    ann.bind("one", "amq.fanout", "again", &[]);
    ann.bind("other", "amq.fanout", "", &[]);
    ann.route("amq.fanout", "whatever", "a");
    assert_eq!(got(&mut ann, &["one", "other"]), "a | a");
}

#[test]
fn topic_goes_by_patterns() {
    let (_broker, mut ann) = with_queues(&["one", "any", "end", "all"]);
    for (queue, pattern) in [("one", "a.*.c"), ("any", "a.#"), ("end", "*.*.c"), ("all", "#")] {
        ann.bind(queue, "amq.topic", pattern, &[]);
    }
    for key in ["a.b.c", "a", "x.y.c", "a.b.b.c", ""] {
        ann.route("amq.topic", key, &format!("<{key}>"));
    }
    assert_eq!(
        got(&mut ann, &["one", "any", "end", "all"]),
        "<a.b.c> | <a.b.c> <a> <a.b.b.c> | <a.b.c> <x.y.c> | <a.b.c> <a> <x.y.c> <a.b.b.c> <>"
    );
}

#[test]
fn headers_go_by_all_or_any_with_x_or_without() {
    let queues = ["all", "any", "all-with-x", "any-with-x"];
    let (_broker, mut ann) = with_queues(&queues);
    for how in queues {
        let wanted = [("x-match", t(how)), ("color", t("red")), ("size", n(7)), ("x-kind", t("k"))];
        ann.bind(how, "amq.headers", "", &wanted);
    }
    let messages: &[(&str, Args<'_>)] = &[
        ("both", &[("color", t("red")), ("size", n(7))]),
        ("color", &[("color", t("red"))]),
        ("everything", &[("color", t("red")), ("size", Value::I64(7)), ("x-kind", t("k"))]),
        ("kind", &[("x-kind", t("k"))]),
        ("blue", &[("color", t("blue")), ("size", t("7"))]),
    ];
    for (body, headers) in messages {
        ann.send_with("amq.headers", "", headers, body);
    }
    ann.route("amq.headers", "", "none");
    assert_eq!(
        got(&mut ann, &queues),
        "both everything | both color everything | everything | both color everything kind"
    );
}

#[test]
fn a_delayed_message_comes_when_its_time_has_come() {
    let (broker, mut ann) = with_queues(&["q"]);
    ann.exchange("later", "x-delayed-message", &[("x-delayed-type", t("topic"))]);
    ann.bind("q", "later", "a.#", &[]);
    ann.send_with("later", "a.b", &[("x-delay", n(1_000))], "slow");
    ann.send_with("later", "a.b", &[("x-delay", n(10))], "quick");
    ann.route("later", "a", "now");
    ann.send_with("later", "b", &[("x-delay", n(10))], "elsewhere");
    assert_eq!(ann.take_all("q"), "now");
    broker.advance(10);
    assert_eq!(ann.take_all("q"), "quick");
    broker.advance(989);
    assert_eq!(ann.get("q"), "empty");
    broker.advance(1);
    assert_eq!(ann.take_all("q"), "slow");
    assert_eq!(ann.letter("slow").header("x-delay"), Some("1000".to_owned()));
}

/// Its priority counts when it is due.
#[test]
fn a_delayed_message_stands_where_its_priority_puts_it() {
    let mut broker = Broker::new();
    let mut ann = broker.connect();
    ann.declare("q", &[crate::holes::TEN]);
    ann.exchange("later", "x-delayed-message", &[("x-delayed-type", t("direct"))]);
    ann.bind("q", "later", "key", &[]);
    let headers = table(&[("x-delay", n(10))]);
    let fields = Fields { priority: Some(9), headers: Some(headers.view()), ..Fields::default() };
    ann.send("later", "key", fields, "urgent");
    ann.publish("q", "a:1 b:9 c:5");
    assert_eq!(ann.get("q"), "b");
    ann.put_back("b");
    ann.hears();
    broker.advance(10);
    assert_eq!(ann.take_all("q"), "urgent b! c a");
}

#[test]
fn a_consistent_hash_gives_each_key_to_one_queue() {
    let (_broker, mut ann) = with_queues(&["one", "other"]);
    ann.exchange("share", "x-consistent-hash", &[]);
    ann.bind("one", "share", "1", &[]);
    ann.bind("other", "share", "3", &[]);
    for round in 0..2 {
        for key in 0..100 {
            ann.route("share", &format!("key-{key}"), &format!("{key}/{round}"));
        }
    }
    let [one, other] = ["one", "other"].map(|queue| ann.take_all(queue));
    let keys = |all: &str, round: &str| -> Vec<String> {
        all.split(' ').filter_map(|body| body.strip_suffix(round)).map(str::to_owned).collect()
    };
    for all in [&one, &other] {
        assert_eq!(keys(all, "/0"), keys(all, "/1"), "a key stays where it is");
    }
    let (few, many) = (keys(&one, "/0").len(), keys(&other, "/0").len());
    assert_eq!(few + many, 100);
    assert!((10..=40).contains(&few), "a quarter goes to one: {few}");
}

#[test]
fn a_consistent_hash_may_go_by_a_header() {
    let (_broker, mut ann) = with_queues(&["one", "other"]);
    ann.exchange("share", "x-consistent-hash", &[("hash-header", t("customer"))]);
    ann.bind("one", "share", "1", &[]);
    ann.bind("other", "share", "1", &[]);
    for at in 0..20 {
        ann.send_with("share", &format!("key-{at}"), &[("customer", t("seven"))], "a");
    }
    let counts = ["one", "other"].map(|queue| ann.take_all(queue).split_whitespace().count());
    assert!(counts == [20, 0] || counts == [0, 20], "{counts:?}");
}

#[test]
fn an_alternate_exchange_gets_what_nobody_is_bound_for() {
    let (_broker, mut ann) = with_queues(&["q", "rest"]);
    ann.exchange("ex", "direct", &[("alternate-exchange", t("others"))]);
    ann.exchange("others", "fanout", &[]);
    ann.bind("q", "ex", "known", &[]);
    ann.bind("rest", "others", "", &[]);
    ann.route("ex", "known", "a");
    ann.route("ex", "unknown", "b");
    assert_eq!(got(&mut ann, &["q", "rest"]), "a | b");
    assert_eq!(ann.letter("b").route(), "ex/unknown", "it says where it was published");
    ann.send_as("ex", "unknown", "mandatory", Fields::default(), "c");
    assert_eq!(ann.hears(), "", "it is not returned");
}

#[test]
fn exchanges_are_bound_to_exchanges() {
    let (_broker, mut ann) = with_queues(&["q", "r"]);
    ann.exchange("in", "topic", &[]);
    ann.exchange("out", "direct", &[]);
    ann.bind_exchange("out", "in", "a.#");
    ann.bind_exchange("in", "out", "a.b");
    ann.bind("q", "out", "a.b", &[]);
    ann.bind("q", "in", "a.b", &[]);
    ann.bind("r", "out", "a.c", &[]);
    for key in ["a.b", "a.c", "b"] {
        ann.route("in", key, key);
    }
    assert_eq!(got(&mut ann, &["q", "r"]), "a.b | a.c");
    ann.unbind_exchange("out", "in", "a.#");
    ann.route("in", "a.c", "gone");
    assert_eq!(got(&mut ann, &["q", "r"]), " | ");
}

#[test]
fn cc_and_bcc_are_further_keys_and_bcc_is_not_seen() {
    let (_broker, mut ann) = with_queues(&["to", "cc", "bcc"]);
    let keys = |key| ArrayBuilder::new().item(t(key));
    let (cc, bcc) = (keys("cc").item(t("to")), keys("bcc"));
    let headers = [("CC", Value::Array(cc.view())), ("BCC", Value::Array(bcc.view())), ("more", n(1))];
    ann.send_with("", "to", &headers, "a");
    assert_eq!(got(&mut ann, &["to", "cc", "bcc"]), "a | a | a");
    assert_eq!(ann.letter("a").headers(), r#"{CC: ["cc", "to"], more: 1}"#);
    assert_eq!(ann.letter("a").route(), "/to");
    for name in ["CC", "BCC"] {
        let told = ann.refused(|ann| ann.send_with("", "to", &[(name, t("cc"))], "a"));
        assert_eq!(
            told,
            format!("406 PRECONDITION_FAILED - the header '{name}' is no array of routing keys")
        );
    }
}

#[test]
fn the_default_exchange_is_every_queue_by_its_name() {
    let (_broker, mut ann) = with_queues(&["q"]);
    ann.route("", "q", "a");
    ann.send_as("", "none", "mandatory", Fields::default(), "b");
    assert_eq!(ann.hears(), "returned b: 312 NO_ROUTE");
    assert_eq!(got(&mut ann, &["q"]), "a");
    assert_eq!(ann.letter("a").route(), "/q");
}

#[test]
fn an_auto_delete_exchange_goes_with_its_last_binding() {
    let (broker, mut ann) = with_queues(&["q", "r"]);
    ann.exchange_as("ex", "fanout", "durable auto-delete", &[]);
    let is_there = || wait(broker.engine().exchange("ex")).is_ok();
    assert!(is_there(), "one that never had a binding stays");
    ann.bind("q", "ex", "", &[]);
    ann.bind("r", "ex", "", &[]);
    ann.unbind("q", "ex", "", &[]);
    assert!(is_there());
    ann.delete("r", "");
    assert!(!is_there(), "its queue is gone, and the binding with it");
}

#[test]
fn an_internal_exchange_gets_what_others_give_it() {
    let (_broker, mut ann) = with_queues(&["q"]);
    ann.exchange_as("inner", "fanout", "durable internal", &[]);
    ann.bind_exchange("inner", "amq.direct", "key");
    ann.bind("q", "inner", "", &[]);
    ann.route("amq.direct", "key", "a");
    assert_eq!(got(&mut ann, &["q"]), "a");
}

#[test]
fn an_exchange_that_is_not_durable_is_gone_after_a_restart_with_its_bindings() {
    let (mut broker, mut ann) = with_queues(&["q"]);
    ann.exchange_as("brief", "direct", "", &[]);
    ann.exchange("lasting", "direct", &[]);
    for exchange in ["brief", "lasting"] {
        ann.bind("q", exchange, "key", &[]);
    }
    broker.restart();
    let mut ann = broker.connect();
    ann.route("lasting", "key", "a");
    assert_eq!(got(&mut ann, &["q"]), "a");
    let told = ann.refused(|ann| ann.exchange_as("brief", "", "passive", &[]));
    assert_eq!(told, "404 NOT_FOUND - no exchange 'brief' in vhost '/'");
}

/// Twice the same binding is one; with other arguments it is another one.
#[test]
fn a_binding_is_the_same_if_everything_about_it_is() {
    let (broker, mut ann) = with_queues(&["q"]);
    let bindings = || wait(broker.engine().bindings("amq.topic")).expect("it is there").len();
    ann.bind("q", "amq.topic", "key", &[]);
    ann.bind("q", "amq.topic", "key", &[]);
    assert_eq!(bindings(), 1);
    ann.bind("q", "amq.topic", "key", &[("note", n(1))]);
    assert_eq!(bindings(), 2);
    ann.unbind("q", "amq.topic", "key", &[("note", n(2))]);
    assert_eq!(bindings(), 2, "there is no such binding");
    ann.unbind("q", "amq.topic", "key", &[("note", n(1))]);
    assert_eq!(bindings(), 1);
}

#[test]
fn a_message_that_is_not_utf8_in_its_key_is_refused() {
    let (_broker, mut ann) = with_queues(&["q"]);
    let publish = overtake_amqp::method::basic::Publish {
        ticket: 0,
        exchange: short("amq.fanout"),
        routing_key: overtake_properties::Short::new(b"\xff").expect("it is short"),
        mandatory: false,
        immediate: false,
    };
    let told = ann.refused(|ann| ann.content(publish, Fields::default(), "a"));
    assert_eq!(told, "406 PRECONDITION_FAILED - the routing key is not UTF-8");
}
