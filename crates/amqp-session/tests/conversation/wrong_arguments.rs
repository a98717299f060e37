//! Arguments that make no sense: each costs the channel, and the text names it.

use overtake_properties::Value;

use crate::broker::Broker;
use crate::holes::TEN;
use crate::words::{Args, YES, n, t, table};

/// A queue with this argument is refused, and why.
fn check(name: &str, value: Value<'_>, why: &str) {
    check_all(&[(name, value)], &format!("invalid arg '{name}' for queue 'q' in vhost '/': {why}"));
}

fn check_all(arguments: Args<'_>, told: &str) {
    let mut broker = Broker::new();
    let mut ann = broker.connect();
    let refused = ann.refused(|ann| ann.declare("q", arguments));
    let expected = format!("406 PRECONDITION_FAILED - {told}");
    assert!(refused.starts_with(&expected), "{arguments:?}: {refused}");
    assert_eq!(ann.fault, (50, 10), "queue.declare");
    assert!(!broker.has("q"));
}

const LONG: Value<'static> = Value::I64(i64::MAX);

#[test]
fn max_priority_is_a_number_up_to_255() {
    for value in [n(-1), n(256), t("9"), YES, Value::Void] {
        check("x-max-priority", value, "expected a whole number from 0 to 255");
    }
}

#[test]
fn times_are_whole_milliseconds_up_to_ten_years() {
    for value in [n(-1), t("1000"), LONG, Value::F64(1.5)] {
        check("x-message-ttl", value, "expected a whole number from 0 to 315360000000");
        check("x-consumer-timeout", value, "expected a whole number from 0 to 315360000000");
        check("x-expires", value, "expected a whole number from 1 to 315360000000");
    }
    check("x-expires", n(0), "expected a whole number from 1");
}

#[test]
fn a_backoff_is_a_first_wait_or_a_table() {
    let unknown = table(&[("initial", n(1))]);
    for value in [n(-1), t("5s"), YES, Value::Table(unknown.view())] {
        check("x-overtake-backoff", value, "expected the first wait in ms, or a table with initial_ms");
    }
    let never = table(&[("multiplier", n(0))]);
    let told = "invalid arguments for queue 'q' in vhost '/': `backoff.multiplier` must be 1 to 1000";
    check_all(&[("x-overtake-backoff", Value::Table(never.view()))], told);
}

#[test]
fn lengths_are_numbers() {
    for value in [n(-1), t("10"), YES] {
        check("x-max-length", value, "expected a whole number from 0 to");
        check("x-max-length-bytes", value, "expected a whole number from 0 to");
    }
}

#[test]
fn overflow_is_one_of_three_words() {
    check("x-overflow", t("drop-tail"), "expected drop-head, reject-publish or reject-publish-dlx");
    check("x-overflow", n(1), "expected text");
}

#[test]
fn dead_letters_go_somewhere() {
    check("x-dead-letter-exchange", n(1), "expected text");
    check("x-dead-letter-routing-key", t("key"), "there is no x-dead-letter-exchange");
    check_all(
        &[("x-dead-letter-exchange", t("")), ("x-dead-letter-routing-key", n(1))],
        "invalid arg 'x-dead-letter-routing-key' for queue 'q' in vhost '/': expected text",
    );
}

#[test]
fn a_delivery_limit_is_a_number_or_minus_1() {
    for value in [n(-2), t("3"), LONG] {
        check("x-delivery-limit", value, "expected a whole number, or -1 for no limit");
    }
}

#[test]
fn single_active_consumer_is_true_or_false() {
    for value in [n(1), t("true")] {
        check("x-single-active-consumer", value, "expected true or false");
    }
}

#[test]
fn a_queue_is_of_a_type_and_a_mode_that_are_known() {
    check("x-queue-type", t("stream"), "expected classic or quorum");
    check("x-queue-type", n(1), "expected text");
    check("x-queue-mode", t("fast"), "expected default or lazy");
    for value in [n(0), n(3), t("2")] {
        check("x-queue-version", value, "expected a whole number from 1 to 2");
    }
}

#[test]
fn a_scheme_and_a_picker_are_known() {
    check("x-scheme", t("eleven"), "");
    check("x-scheme", n(1), "expected");
    check("x-picker", t("quick"), "expected");
    check("x-picker", n(1), "");
    let negative = table(&[("aging_ms", n(-1))]);
    check(
        "x-picker",
        Value::Table(negative.view()),
        "`aging_ms`: expected a whole number of at least 0, found",
    );
    let unending = table(&[("aging_ms", n(0))]);
    let told = "invalid arguments for queue 'q' in vhost '/': `picker";
    check_all(&[TEN, ("x-picker", Value::Table(unending.view()))], told);
}

#[test]
fn caps_are_numbers_of_lanes_that_are_there() {
    check("x-max-active", n(-1), "expected a whole number from 0 to 4294967295");
    check("x-lane-caps", n(5), "expected a table, found a whole number; it is 5");
    let words = table(&[("5", t("many"))]);
    check(
        "x-lane-caps",
        Value::Table(words.view()),
        "`5`: expected a whole number from 0 to 4294967295, found a string; it is {",
    );
    let unknown = table(&[("background", n(5))]);
    let told = "invalid arguments for queue 'q' in vhost '/': `lanes";
    check_all(&[TEN, ("x-lane-caps", Value::Table(unknown.view()))], told);
}

#[test]
fn partitions_are_places_by_a_rule() {
    check("x-partitions", n(5), "expected a table, found a whole number; it is 5");
    check("x-partitions", Value::Table(table(&[("places", n(5))]).view()), "unknown field `places`");
    let uncounted = table(&[("mode", t("hash"))]);
    let told = "invalid arguments for queue 'q' in vhost '/': `partitions.count` must be 2 to 4096";
    check_all(&[("x-partitions", Value::Table(uncounted.view()))], told);
    let bands = table(&[("mode", t("bands"))]);
    let told = "invalid arguments for queue 'q' in vhost '/': `partitions.bands` must be said";
    check_all(&[("x-partitions", Value::Table(bands.view()))], told);
}

#[test]
fn rates_are_so_many_in_so_long() {
    check("x-group-limit", n(-1), "expected a whole number from 0 to 4294967295");
    check("x-fair-keys", n(1), "");
    let weights = table(&[("k", n(2))]);
    let told = "invalid arguments for queue 'q' in vhost '/': `key_weights` needs `fair_keys`";
    check_all(&[("x-key-weights", Value::Table(weights.view()))], told);
    check("x-key-weights", n(2), "expected a table, found a whole number; it is 2");
    check("x-rate-limit", n(5), "expected a table, found a whole number; it is 5");
    let half = table(&[("messages", n(5))]);
    check("x-rate-limit", Value::Table(half.view()), "missing field `per_ms`");
    let none = table(&[("messages", n(0)), ("per_ms", n(1))]);
    let told = "invalid arguments for queue 'q' in vhost '/': `key_rate_limit.messages`";
    check_all(&[("x-key-rate-limit", Value::Table(none.view()))], told);
    check("x-run-timeout", n(-1), "");
}

#[test]
fn a_default_priority_is_one_of_the_scheme() {
    check("x-default-priority", YES, "");
    let told = "invalid arguments for queue 'q' in vhost '/': `default_priority`";
    check_all(&[TEN, ("x-default-priority", t("urgent"))], told);
    check_all(&[("x-scheme", t("ten-level")), ("x-default-priority", n(-1))], told);
}

#[test]
fn a_last_value_is_of_a_key_or_of_all() {
    check("x-last-value", t("two"), "expected");
}

#[test]
fn arguments_that_are_too_long_are_refused() {
    let long = "x".repeat(9_000);
    check_all(&[("x-note", t(&long))], "the arguments for queue 'q' in vhost '/' are longer than 8192 bytes");
}

// ---- consumers ----

#[test]
fn a_consumer_has_arguments_that_make_sense() {
    let mut broker = Broker::new();
    let mut ann = broker.connect();
    ann.declare("q", &[TEN]);
    let mut check = |name: &str, value: Value<'_>, told: &str| {
        let refused = ann.refused(|ann| ann.consume_as("c", "q", "", &[(name, value)]));
        let expected = format!("406 PRECONDITION_FAILED - invalid arg '{name}'{told}");
        assert!(refused.starts_with(&expected), "{value:?}: {refused}");
        assert_eq!(ann.fault, (60, 20), "basic.consume");
    };
    for value in [t("high"), LONG, YES] {
        check("x-priority", value, ": a whole number is expected");
    }
    let of = " for queue 'q'";
    check("x-urgent-credit", n(5), of);
    for (entries, why) in [
        (&[("from", n(7))][..], "missing field `messages`"),
        (&[("messages", n(1))], "missing field `from`"),
        (&[("from", n(7)), ("messages", n(1)), ("more", n(1))], "unknown field `more`"),
        (&[("from", n(7)), ("messages", n(-1))], "`messages`: expected a whole number from 0 to"),
    ] {
        let credit = table(entries);
        check("x-urgent-credit", Value::Table(credit.view()), &format!("{of} in vhost '/': {why}"));
    }
    let credit = table(&[("from", t("urgent")), ("messages", n(1))]);
    check("x-urgent-credit", Value::Table(credit.view()), &format!("{of}: the priority is"));
}

// ---- exchanges and bindings ----

#[test]
fn an_exchange_has_arguments_that_make_sense() {
    let mut broker = Broker::new();
    let mut ann = broker.connect();
    let mut check = |kind: &str, arguments: Args<'_>, told: &str| {
        let refused = ann.refused(|ann| ann.exchange("ex", kind, arguments));
        assert!(refused.starts_with(&format!("406 PRECONDITION_FAILED - invalid arg {told}")), "{refused}");
        assert_eq!(ann.fault, (40, 10), "exchange.declare");
    };
    let of = "for exchange 'ex' in vhost '/':";
    check("direct", &[("alternate-exchange", n(1))], &format!("'alternate-exchange' {of} expected text"));
    let told = format!("'x-delayed-type' {of} expected the type that it routes by");
    check("x-delayed-message", &[], &told);
    check("x-delayed-message", &[("x-delayed-type", t("quick"))], &told);
    check("x-delayed-message", &[("x-delayed-type", t("x-delayed-message"))], &told);
    check("x-consistent-hash", &[("hash-property", t("color"))], &format!("'hash-property' {of} expected"));
    check(
        "x-consistent-hash",
        &[("hash-property", t("message_id")), ("hash-header", t("h"))],
        &format!("'hash-property' {of} hash-header is given, too"),
    );
}

#[test]
fn a_binding_has_arguments_that_make_sense() {
    let mut broker = Broker::new();
    let mut ann = broker.connect();
    ann.declare("q", &[]);
    for (value, why) in [
        (t("some"), "expected all, any, all-with-x or any-with-x; it is \"some\""),
        (n(1), "expected text; it is 1"),
    ] {
        let refused = ann.refused(|ann| ann.bind("q", "amq.headers", "", &[("x-match", value)]));
        assert_eq!(
            refused,
            format!(
                "406 PRECONDITION_FAILED - invalid arg 'x-match' for exchange 'amq.headers' in vhost '/': {why}"
            )
        );
        assert_eq!(ann.fault, (50, 20), "queue.bind");
    }
    ann.exchange("share", "x-consistent-hash", &[]);
    for weight in ["", "0", "heavy", "-1"] {
        let refused = ann.refused(|ann| ann.bind("q", "share", weight, &[]));
        assert!(refused.starts_with("406 PRECONDITION_FAILED - the routing key of the binding is no weight"));
    }
}
