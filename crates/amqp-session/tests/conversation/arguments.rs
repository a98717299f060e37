//! The arguments of queues and consumers, and what each does.

use overtake_amqp::method::basic;
use overtake_properties::{ArrayBuilder, Fields, TableRef, Value};

use crate::broker::Broker;
use crate::client::Client;
use crate::holes::TEN;
use crate::words::{Args, YES, n, short, shown, t, table};

/// A broker with a queue `q` that was declared so, and a client.
fn with(arguments: Args<'_>) -> (Broker, Client) {
    let mut broker = Broker::new();
    let mut ann = broker.connect();
    assert_eq!(ann.declare("q", arguments), "q 0 0");
    assert_eq!(ann.declare("q", arguments), "q 0 0", "and found again");
    (broker, ann)
}

// ---- time ----

#[test]
fn message_ttl_ends_what_waits() {
    let (broker, mut ann) = with(&[("x-message-ttl", n(1_000))]);
    ann.publish("q", "a");
    ann.send("", "q", Fields { expiration: Some(short("500")), ..Fields::default() }, "brief");
    ann.send("", "q", Fields { expiration: Some(short("5000")), ..Fields::default() }, "long");
    ann.hears();
    broker.advance(500);
    assert_eq!(broker.waiting("q"), "a:0 long:0");
    broker.advance(500);
    assert_eq!(broker.waiting("q"), "", "the lesser of both holds");
}

#[test]
fn message_ttl_of_0_ends_what_nobody_takes_at_once() {
    let (broker, mut ann) = with(&[("x-message-ttl", n(0))]);
    ann.publish("q", "a");
    ann.hears();
    assert_eq!(broker.waiting("q"), "");
    ann.consume("q");
    ann.publish("q", "b");
    assert_eq!(ann.hears(), "b");
}

#[test]
fn expires_deletes_a_queue_that_nobody_uses() {
    let (broker, mut ann) = with(&[("x-expires", n(1_000))]);
    ann.publish("q", "a");
    ann.hears();
    broker.advance(999);
    assert_eq!(ann.get("q"), "a");
    ann.ack("a");
    ann.hears();
    broker.advance(999);
    assert!(broker.has("q"), "it was used meanwhile");
    ann.consume("q");
    broker.advance(5_000);
    assert!(broker.has("q"), "it has a consumer");
    ann.cancel("c");
    broker.advance(1_000);
    assert!(!broker.has("q"));
}

/// Also what nobody's consumer holds any more: the channel holds it still.
#[test]
fn consumer_timeout_closes_the_channel_and_puts_back() {
    let taken: [fn(&mut Client); 3] = [
        |ann| ann.consume("q"),
        |ann| assert_eq!(ann.get("q"), "a"),
        |ann| {
            ann.consume("q");
            ann.hears();
            ann.cancel("c");
        },
    ];
    for take in taken {
        let (broker, mut ann) = with(&[("x-consumer-timeout", n(60_000))]);
        ann.publish("q", "a b");
        ann.prefetch(1);
        take(&mut ann);
        ann.hears();
        assert_eq!(broker.waiting("q"), "a:0(leased) b:0");
        broker.advance(59_999);
        assert_eq!(ann.hears(), "");
        let told = ann.refused(|_| broker.advance(1));
        let expected = "406 PRECONDITION_FAILED - delivery acknowledgement on channel 1 timed out";
        assert!(told.starts_with(expected), "{told}");
        assert_eq!(broker.waiting("q"), "a:0 b:0");
    }
}

// ---- limits ----

#[test]
fn max_length_drops_the_oldest() {
    let (broker, mut ann) = with(&[("x-max-length", n(2)), ("x-overflow", t("drop-head"))]);
    ann.publish("q", "a b c");
    ann.hears();
    assert_eq!(broker.waiting("q"), "b:0 c:0");
}

/// As in RabbitMQ: what no consumer takes at once is dropped, or dead, and so is what comes back.
#[test]
fn max_length_0_keeps_nothing() {
    for argument in ["x-max-length", "x-max-length-bytes"] {
        let (broker, mut ann) = with(&[
            (argument, n(0)),
            ("x-dead-letter-exchange", t("")),
            ("x-dead-letter-routing-key", t("dead")),
        ]);
        ann.declare("dead", &[]);
        ann.publish("q", "a");
        ann.hears();
        assert_eq!((broker.waiting("q"), broker.waiting("dead")), (String::new(), "a:0".to_owned()));
        assert_eq!(ann.get("dead"), "a");
        assert_eq!(ann.letter("a").header("x-first-death-reason"), Some("\"maxlen\"".to_owned()));
        ann.consume("q");
        ann.publish("q", "b");
        assert_eq!(ann.hears(), "b");
        ann.put_back("b");
        ann.hears();
        assert_eq!(
            (broker.waiting("q"), broker.waiting("dead")),
            (String::new(), "a:0(leased) b:0".to_owned())
        );
    }
}

#[test]
fn max_length_0_refuses_all_where_what_is_new_is_refused() {
    let (broker, mut ann) = with(&[("x-max-length", n(0)), ("x-overflow", t("reject-publish"))]);
    ann.confirm();
    ann.publish("q", "a");
    assert_eq!(ann.hears(), "not taken 1");
    assert_eq!(broker.waiting("q"), "");
}

#[test]
fn max_length_bytes_counts_bytes() {
    let (broker, mut ann) = with(&[("x-max-length-bytes", n(10))]);
    ann.publish("q", "aaaa bbbb cccc");
    ann.hears();
    assert_eq!(broker.waiting("q"), "bbbb:0 cccc:0");
}

#[test]
fn overflow_reject_publish_refuses_what_is_new() {
    let (broker, mut ann) = with(&[("x-max-length", n(2)), ("x-overflow", t("reject-publish"))]);
    ann.confirm();
    ann.publish("q", "a b c");
    assert_eq!(ann.hears(), "safe 1 2 · not taken 3");
    assert_eq!(broker.waiting("q"), "a:0 b:0");
}

#[test]
fn overflow_reject_publish_dlx_lets_what_is_new_die() {
    let (broker, mut ann) = with(&[
        ("x-max-length", n(1)),
        ("x-overflow", t("reject-publish-dlx")),
        ("x-dead-letter-exchange", t("")),
        ("x-dead-letter-routing-key", t("dead")),
    ]);
    ann.declare("dead", &[]);
    ann.confirm();
    ann.publish("q", "a b");
    assert_eq!(ann.hears(), "safe 1 · not taken 2");
    assert_eq!((broker.waiting("q"), broker.waiting("dead")), ("a:0".to_owned(), "b:0".to_owned()));
    assert_eq!(ann.get("dead"), "b");
    assert_eq!(ann.letter("b").header("x-first-death-reason"), Some("\"maxlen\"".to_owned()));
}

#[test]
fn what_is_dropped_for_length_dies_where_there_is_an_exchange_for_that() {
    let (broker, mut ann) = with(&[
        ("x-max-length", n(1)),
        ("x-dead-letter-exchange", t("")),
        ("x-dead-letter-routing-key", t("dead")),
    ]);
    ann.declare("dead", &[]);
    ann.publish("q", "a b");
    ann.hears();
    assert_eq!((broker.waiting("q"), broker.waiting("dead")), ("b:0".to_owned(), "a:0".to_owned()));
}

// ---- death ----

#[test]
fn a_dead_letter_goes_to_its_exchange_by_the_key_it_came_with_or_a_new_one() {
    let mut broker = Broker::new();
    let mut ann = broker.connect();
    ann.exchange("dlx", "direct", &[]);
    ann.declare("one", &[("x-dead-letter-exchange", t("dlx"))]);
    ann.declare("other", &[("x-dead-letter-exchange", t("dlx")), ("x-dead-letter-routing-key", t("new"))]);
    for key in ["one", "new"] {
        ann.declare(&format!("dead-{key}"), &[]);
        ann.bind(&format!("dead-{key}"), "dlx", key, &[]);
    }
    ann.publish("one", "a");
    ann.publish("other", "b");
    for (queue, body) in [("one", "a"), ("other", "b")] {
        assert_eq!(ann.get(queue), body);
        ann.reject(body);
    }
    ann.hears();
    assert_eq!(ann.get("dead-one"), "a");
    assert_eq!(ann.letter("a").route(), "dlx/one");
    assert_eq!(ann.get("dead-new"), "b");
    assert_eq!(ann.letter("b").route(), "dlx/new");
}

#[test]
fn a_dead_letter_routing_key_takes_the_header_cc_away() {
    let mut broker = Broker::new();
    let mut ann = broker.connect();
    ann.declare("dead", &[]);
    let to = |key| [("x-dead-letter-exchange", t("")), ("x-dead-letter-routing-key", t(key))];
    ann.declare("by-a-key", &to("dead"));
    ann.declare("as-it-came", &to("")[..1]);
    let cc = ArrayBuilder::new().item(t("dead"));
    for (queue, header) in [("by-a-key", false), ("as-it-came", true)] {
        ann.send_with("", queue, &[("CC", Value::Array(cc.view()))], "a");
        ann.purge("dead");
        assert_eq!(ann.get(queue), "a");
        ann.reject("a");
        ann.hears();
        assert_eq!(ann.get("dead"), "a");
        assert_eq!(ann.letter("a").headers().contains("CC: "), header, "{}", ann.letter("a").headers());
        ann.ack("a");
    }
}

/// RabbitMQ counts how often it may come back.
#[test]
fn delivery_limit_ends_what_comes_back_too_often() {
    let (broker, mut ann) = with(&[
        ("x-delivery-limit", n(2)),
        ("x-dead-letter-exchange", t("")),
        ("x-dead-letter-routing-key", t("dead")),
    ]);
    ann.declare("dead", &[]);
    ann.publish("q", "a");
    for came in ["a", "a!", "a!"] {
        assert_eq!(ann.get("q"), came);
        ann.put_back("a");
    }
    ann.hears();
    assert_eq!((broker.waiting("q"), broker.waiting("dead")), (String::new(), "a:0".to_owned()));
    assert_eq!(ann.letter("a").header("x-delivery-count"), Some("2".to_owned()));
}

#[test]
fn delivery_limit_of_minus_1_is_without_end() {
    let (broker, mut ann) = with(&[("x-delivery-limit", n(-1))]);
    ann.publish("q", "a");
    for _ in 0..50 {
        ann.get("q");
        ann.put_back("a");
    }
    ann.hears();
    assert_eq!(broker.waiting("q"), "a:0");
}

// ---- consumers ----

#[test]
fn single_active_consumer_serves_one_after_the_other() {
    let (mut broker, mut ann) = with(&[("x-single-active-consumer", YES)]);
    let mut bob = broker.connect();
    ann.consume("q");
    bob.consume("q");
    ann.publish("q", "a b");
    assert_eq!((ann.hears(), bob.hears()), ("a · b".to_owned(), String::new()));
    drop(ann);
    assert_eq!(bob.hears(), "a! · b!");
}

#[test]
fn consumers_of_a_higher_priority_are_served_first() {
    let (mut broker, mut ann) = with(&[]);
    let mut bob = broker.connect();
    for (client, priority) in [(&mut ann, 1), (&mut bob, 10)] {
        client.prefetch(1);
        client.consume_as("c", "q", "", &[("x-priority", n(priority))]);
    }
    ann.publish("q", "a b");
    assert_eq!((bob.hears(), ann.hears()), ("a".to_owned(), "b".to_owned()));
}

#[test]
fn urgent_credit_is_room_for_urgent_messages_beyond_the_window() {
    let (_broker, mut ann) = with(&[TEN]);
    ann.prefetch(1);
    let credit = table(&[("from", n(7)), ("messages", n(1))]);
    ann.consume_as("c", "q", "", &[("x-urgent-credit", Value::Table(credit.view()))]);
    ann.publish("q", "bulk:1 more:6");
    assert_eq!(ann.hears(), "bulk");
    ann.publish("q", "urgent:7 later:9");
    assert_eq!(ann.hears(), "urgent");
    ann.ack("urgent");
    assert_eq!(ann.hears(), "later");
}

#[test]
fn overtake_backoff_holds_for_each_way_back() {
    let ways_back: [fn(&mut Client); 3] = [
        |ann| ann.put_back("a"),
        |ann| assert_eq!(ann.ask(basic::Recover { requeue: true }), "basic.recover-ok"),
        |ann| ann.close_channel(),
    ];
    let fields = table(&[("initial_ms", n(1_000)), ("multiplier", n(3))]);
    for value in [n(1_000), Value::Table(fields.view())] {
        for comes_back in ways_back {
            let (broker, mut ann) = with(&[("x-overtake-backoff", value)]);
            ann.publish("q", "a");
            assert_eq!(ann.get("q"), "a");
            comes_back(&mut ann);
            ann.hears();
            assert_eq!(broker.ready("q"), 0);
            broker.advance(1_000);
            assert_eq!(broker.ready("q"), 1);
        }
    }
}

#[test]
fn without_a_backoff_what_comes_back_is_ready_at_once() {
    let (broker, mut ann) = with(&[]);
    ann.publish("q", "a");
    assert_eq!(ann.get("q"), "a");
    ann.put_back("a");
    ann.hears();
    assert_eq!(broker.ready("q"), 1);
}

#[test]
fn max_active_bounds_what_is_out_to_all() {
    let (mut broker, mut ann) = with(&[("x-max-active", n(2))]);
    let mut bob = broker.connect();
    ann.consume("q");
    bob.consume("q");
    ann.publish("q", "a b c");
    assert_eq!((ann.hears(), bob.hears()), ("a".to_owned(), "b".to_owned()));
    bob.ack("b");
    bob.hears();
    assert_eq!(ann.hears() + &bob.hears(), "c");
}

#[test]
fn lane_caps_keep_places_for_others() {
    let caps = table(&[("1", n(1))]);
    let (_broker, mut ann) = with(&[TEN, ("x-lane-caps", Value::Table(caps.view()))]);
    ann.consume("q");
    ann.publish("q", "bulk:1 more:1 urgent:9 next:9");
    assert_eq!(ann.hears(), "bulk · urgent · next");
}

#[test]
fn rates_say_how_many_go_in_how_long() {
    let rate = table(&[("messages", n(2)), ("per_ms", n(1_000))]);
    let (broker, mut ann) = with(&[("x-rate-limit", Value::Table(rate.view()))]);
    ann.consume("q");
    ann.publish("q", "a b c");
    assert_eq!(ann.hears(), "a · b");
    broker.advance(500);
    assert_eq!(ann.hears(), "c");
}

// ---- priorities ----

#[test]
fn a_scheme_says_what_a_priority_means() {
    let (_broker, mut ann) = with(&[("x-scheme", t("route"))]);
    ann.publish("q", "none nine:9 zero:0 five:5");
    assert_eq!(ann.take_all("q"), "zero five nine none");
}

#[test]
fn default_priority_is_what_a_missing_one_counts_as() {
    let (broker, mut ann) = with(&[TEN, ("x-default-priority", n(5))]);
    ann.publish("q", "a:4 b c:6");
    ann.hears();
    assert_eq!(broker.waiting("q"), "c:6 b:5 a:4");
    assert_eq!(ann.take_all("q"), "c b a");
}

#[test]
fn an_aging_picker_bounds_how_long_the_least_urgent_waits() {
    let picker = table(&[("aging_ms", n(1_000))]);
    let (broker, mut ann) = with(&[TEN, ("x-picker", Value::Table(picker.view()))]);
    ann.publish("q", "low:1");
    ann.hears();
    broker.advance(8_001);
    ann.publish("q", "high:9");
    assert_eq!(ann.take_all("q"), "low high");
    let (_broker, mut ann) = with(&[TEN, ("x-picker", t("strict"))]);
    ann.publish("q", "low:1 high:9");
    assert_eq!(ann.take_all("q"), "high low");
}

#[test]
fn a_last_value_queue_keeps_the_newest() {
    let (broker, mut ann) = with(&[("x-last-value", t("key"))]);
    for (key, body) in [("x", "a"), ("y", "b"), ("x", "c")] {
        ann.send_with("", "q", &[("x-overtake-key", t(key))], body);
    }
    ann.hears();
    assert_eq!(broker.waiting("q"), "b:0 c:0");
    let (broker, mut ann) = with(&[("x-last-value", t("one"))]);
    ann.publish("q", "a b c");
    ann.hears();
    assert_eq!(broker.waiting("q"), "c:0");
}

#[test]
fn a_message_weighs_its_key() {
    let (broker, mut ann) = with(&[("x-fair-keys", Value::Bool(true))]);
    for body in ["a", "b", "c", "d"] {
        ann.send_with("", "q", &[("x-overtake-key", t("k")), ("x-overtake-key-weight", n(2))], body);
    }
    for body in ["u", "v"] {
        ann.send_with("", "q", &[("x-overtake-key", t("l"))], body);
    }
    ann.hears();
    assert_eq!(broker.waiting("q"), "a:0 b:0 c:0 d:0 u:0 v:0");
    assert_eq!(ann.take_all("q"), "a u b c v d");
}

// ---- remembered ----

#[test]
fn what_means_nothing_here_is_remembered() {
    let arguments: Args<'_> = &[
        ("x-queue-type", t("quorum")),
        ("x-queue-mode", t("lazy")),
        ("x-queue-version", n(2)),
        ("x-something", t("else")),
    ];
    let (broker, _ann) = with(arguments);
    let there = broker.view("q").identity.arguments;
    let there = TableRef::check(&there, &overtake_properties::Limits::default()).expect("a table");
    assert_eq!(
        shown(there),
        r#"{x-queue-type: "quorum", x-queue-mode: "lazy", x-queue-version: 2, x-something: "else"}"#
    );
}
