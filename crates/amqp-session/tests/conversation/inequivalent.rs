//! What is declared again must be what is there: for every attribute RabbitMQ's code and text.

use overtake_lane::{Definition, PolicyValue};
use overtake_properties::Value;

use crate::broker::Broker;
use crate::holes::TEN;
use crate::words::{Args, YES, n, t, table};

/// What the client is told that declares so what is there so.
fn queue_told(there: (&str, Args<'_>), wanted: (&str, Args<'_>)) -> String {
    let mut broker = Broker::new();
    let mut ann = broker.connect();
    ann.declare_as("q", there.0, there.1);
    let told = ann.refused(|ann| ann.declare_as("q", wanted.0, wanted.1));
    assert_eq!(ann.fault, (50, 10), "queue.declare");
    assert_eq!(ann.declare_as("q", there.0, there.1), "q 0 0", "it is what it was");
    told
}

fn of_queue(name: &str, received: &str, current: &str) -> String {
    format!(
        "406 PRECONDITION_FAILED - inequivalent arg '{name}' for queue 'q' in vhost '/': received {received} but current is \
         {current}"
    )
}

/// A reply text has 255 bytes at most.
fn assert_starts(told: &str, expected: &str) {
    let most = expected.len().min("406 ".len() + 255 - 3);
    assert!(told.len() >= most && told.starts_with(&expected[..most]), "{told}");
}

#[test]
fn a_queue_is_durable_or_not() {
    let told = queue_told(("durable", &[]), ("", &[]));
    assert_eq!(told, of_queue("durable", "'false'", "'true'"));
    let told = queue_told(("", &[]), ("durable", &[]));
    assert_eq!(told, of_queue("durable", "'true'", "'false'"));
}

#[test]
fn a_queue_is_auto_delete_or_not() {
    let told = queue_told(("durable", &[]), ("durable auto-delete", &[]));
    assert_eq!(told, of_queue("auto_delete", "'true'", "'false'"));
}

/// RabbitMQ calls it locked, whoever it belongs to.
#[test]
fn a_queue_is_exclusive_or_not() {
    let locked = "405 RESOURCE_LOCKED - cannot obtain exclusive access to locked queue 'q' in vhost '/'. It could be originally \
                  declared on another connection or the exclusive property value does not match that of the original \
                  declaration.";
    assert_eq!(queue_told(("", &[]), ("exclusive", &[])), locked);
    assert_eq!(queue_told(("exclusive", &[]), ("", &[])), locked);
}

/// In RabbitMQ an exclusive queue is never durable, whatever is said.
#[test]
fn an_exclusive_queue_is_found_again_durable_or_not() {
    let mut broker = Broker::new();
    let mut ann = broker.connect();
    assert_eq!(ann.declare_as("q", "exclusive durable", &[]), "q 0 0");
    assert_eq!(ann.declare_as("q", "exclusive", &[]), "q 0 0");
}

#[test]
fn every_argument_of_a_queue_counts() {
    let caps = table(&[("5", n(1))]);
    let other_caps = table(&[("5", n(2))]);
    let hashed = table(&[("mode", t("hash")), ("count", n(2))]);
    let keyed = table(&[("mode", t("key")), ("count", n(2))]);
    let dead = ("x-dead-letter-exchange", t("dlx"));
    let rows: &[(&str, Value<'_>, Value<'_>, &str, &str)] = &[
        ("x-message-ttl", n(1), n(2), "1' of type 'signedint", "2' of type 'signedint"),
        ("x-message-ttl", n(0), Value::I64(5), "0' of type 'signedint", "5' of type 'long"),
        ("x-expires", n(1), Value::U8(2), "1' of type 'signedint", "2' of type 'unsignedbyte"),
        ("x-max-length", n(1), Value::I16(2), "1' of type 'signedint", "2' of type 'short"),
        ("x-max-length-bytes", n(1), n(2), "1' of type 'signedint", "2' of type 'signedint"),
        (
            "x-overflow",
            t("drop-head"),
            t("reject-publish"),
            "drop-head' of type 'longstr",
            "reject-publish' of type 'longstr",
        ),
        ("x-dead-letter-exchange", t("a"), t("b"), "a' of type 'longstr", "b' of type 'longstr"),
        ("x-dead-letter-routing-key", t("a"), t("b"), "a' of type 'longstr", "b' of type 'longstr"),
        ("x-delivery-limit", n(1), n(2), "1' of type 'signedint", "2' of type 'signedint"),
        ("x-overtake-backoff", n(1), n(2), "1' of type 'signedint", "2' of type 'signedint"),
        ("x-single-active-consumer", YES, Value::Bool(false), "true' of type 'bool", "false' of type 'bool"),
        ("x-consumer-timeout", n(1), n(2), "1' of type 'signedint", "2' of type 'signedint"),
        ("x-scheme", t("named"), t("signed"), "named' of type 'longstr", "signed' of type 'longstr"),
        ("x-default-priority", n(1), n(2), "1' of type 'signedint", "2' of type 'signedint"),
        ("x-max-active", n(1), n(2), "1' of type 'signedint", "2' of type 'signedint"),
        ("x-group-limit", n(1), n(2), "1' of type 'signedint", "2' of type 'signedint"),
        (
            "x-partitions",
            Value::Table(hashed.view()),
            Value::Table(keyed.view()),
            "{\"count\":2,\"mode\":\"hash\"}' of type 'table",
            "{\"count\":2,\"mode\":\"key\"}' of type 'table",
        ),
        ("x-max-consumers", n(1), n(2), "1' of type 'signedint", "2' of type 'signedint"),
        ("x-run-timeout", n(1), n(2), "1' of type 'signedint", "2' of type 'signedint"),
        ("x-history", t("a"), t("b"), "a' of type 'longstr", "b' of type 'longstr"),
        ("x-fair-keys", YES, Value::Bool(false), "true' of type 'bool", "false' of type 'bool"),
        (
            "x-key-weights",
            Value::Table(caps.view()),
            Value::Table(other_caps.view()),
            "{\"5\":1}' of type 'table",
            "{\"5\":2}' of type 'table",
        ),
        ("x-last-value", t("key"), t("one"), "key' of type 'longstr", "one' of type 'longstr"),
        (
            "x-lane-caps",
            Value::Table(caps.view()),
            Value::Table(other_caps.view()),
            "{\"5\":1}' of type 'table",
            "{\"5\":2}' of type 'table",
        ),
    ];
    for (name, wanted, there, received, current) in rows {
        let more: Args<'_> = match *name {
            "x-dead-letter-routing-key" => &[dead],
            "x-lane-caps" => &[TEN],
            "x-key-weights" => &[("x-fair-keys", YES)],
            _ => &[],
        };
        let wanted = [more, &[(*name, *wanted)]].concat();
        let there = [more, &[(*name, *there)]].concat();
        let (received, current) = (format!("the value '{received}'"), format!("the value '{current}'"));
        let key = name.strip_prefix("x-").unwrap_or(name);
        let of_policy = Definition::from_values([(key.to_owned(), PolicyValue::Number(1))]);
        let elsewhere = match of_policy {
            Err(bad) if bad.why == "is no key of a policy" => "change the setting with `overtake queue set`",
            _ => "set it by a policy",
        };
        let told = queue_told(("durable", &there), ("durable", &wanted));
        assert_starts(&told, &of_queue(name, &received, &format!("{current}; send that, or {elsewhere}")));
        if !["x-overflow", "x-single-active-consumer", "x-fair-keys"].contains(name) {
            let told = queue_told(("durable", &there), ("durable", more));
            assert_starts(&told, &of_queue(name, "none", &format!("{current}; send that, or {elsewhere}")));
        }
        // Saying what holds anyway is the same as not saying it.
        if *name != "x-overflow" {
            let told = queue_told(("durable", more), ("durable", &wanted));
            assert_starts(&told, &of_queue(name, &received, &format!("none; leave it out, or {elsewhere}")));
        }
    }
}

/// What the client is told that declares so what is there so.
fn exchange_told(there: (&str, &str, Args<'_>), wanted: (&str, &str, Args<'_>)) -> String {
    let mut broker = Broker::new();
    let mut ann = broker.connect();
    ann.exchange_as("ex", there.0, there.1, there.2);
    let told = ann.refused(|ann| ann.exchange_as("ex", wanted.0, wanted.1, wanted.2));
    assert_eq!(ann.fault, (40, 10), "exchange.declare");
    told
}

#[test]
fn every_attribute_of_an_exchange_counts() {
    let check = |there, wanted, name: &str, received: &str, current: &str| {
        let told = format!(
            "406 PRECONDITION_FAILED - inequivalent arg '{name}' for exchange 'ex' in vhost '/': received {received} but \
             current is {current}"
        );
        assert_eq!(exchange_told(there, wanted), told);
    };
    let plain = ("direct", "durable", &[][..]);
    check(plain, ("fanout", "durable", &[]), "type", "'fanout'", "'direct'");
    check(plain, ("direct", "", &[]), "durable", "'false'", "'true'");
    check(plain, ("direct", "durable auto-delete", &[]), "auto_delete", "'true'", "'false'");
    check(plain, ("direct", "durable internal", &[]), "internal", "'true'", "'false'");
    let alternate: Args<'_> = &[("alternate-exchange", t("other"))];
    let other = "the value 'other' of type 'longstr'";
    check(plain, ("direct", "durable", alternate), "alternate-exchange", other, "none");
    check(("direct", "durable", alternate), plain, "alternate-exchange", "none", other);
    let delayed: Args<'_> = &[("x-delayed-type", t("direct"))];
    check(("x-delayed-message", "durable", delayed), plain, "type", "'direct'", "'x-delayed-message'");
    let hash = ("x-consistent-hash", "durable", &[("hash-header", t("h"))][..]);
    let share = ("x-consistent-hash", "durable", &[][..]);
    check(hash, share, "hash-header", "none", "the value 'h' of type 'longstr'");
}

#[test]
fn a_delayed_exchange_routes_by_its_type() {
    let delayed = |kind| ("x-delayed-message", "durable", [("x-delayed-type", t(kind))]);
    let (there, wanted) = (delayed("direct"), delayed("topic"));
    let told = exchange_told((there.0, there.1, &there.2), (wanted.0, wanted.1, &wanted.2));
    assert_eq!(
        told,
        "406 PRECONDITION_FAILED - inequivalent arg 'x-delayed-type' for exchange 'ex' in vhost '/': received the value \
         'topic' of type 'longstr' but current is the value 'direct' of type 'longstr'"
    );
}

#[test]
fn a_predeclared_exchange_is_found_as_it_is() {
    let mut broker = Broker::new();
    let mut ann = broker.connect();
    for (name, kind) in [
        ("amq.direct", "direct"),
        ("amq.fanout", "fanout"),
        ("amq.topic", "topic"),
        ("amq.headers", "headers"),
        ("amq.match", "headers"),
    ] {
        ann.exchange(name, kind, &[]);
        ann.exchange_as(name, "", "passive", &[]);
        let told = ann.refused(|ann| ann.exchange(name, "x-consistent-hash", &[]));
        assert_eq!(
            told,
            format!(
                "406 PRECONDITION_FAILED - inequivalent arg 'type' for exchange '{name}' in vhost '/': received \
                 'x-consistent-hash' but current is '{kind}'"
            )
        );
    }
}
