//! What messages say about themselves, and what becomes of it.

use overtake_engine::{Engine, Filter, Select};
use overtake_lane::Given;
use overtake_properties::{Fields, Properties, Value};

use crate::broker::{Broker, START, wait};
use crate::client::Client;
use crate::words::{n, short, t, table};

fn with_queue() -> (Broker, Client) {
    let mut broker = Broker::new();
    let mut ann = broker.connect();
    ann.declare("q", &[]);
    (broker, ann)
}

#[test]
fn every_property_comes_out_as_it_went_in() {
    let (_broker, mut ann) = with_queue();
    let headers = table(&[("a", n(1)), ("b", Value::Bool(true)), ("c", Value::Void)]);
    let fields = Fields {
        content_type: Some(short("text/plain")),
        content_encoding: Some(short("gzip")),
        headers: Some(headers.view()),
        delivery_mode: Some(2),
        priority: Some(200),
        correlation_id: Some(short("c1")),
        reply_to: Some(short("answers")),
        expiration: Some(short("60000")),
        message_id: Some(short("m1")),
        timestamp: Some(START.0 / 1_000),
        kind: Some(short("order")),
        user_id: Some(short("guest")),
        app_id: Some(short("app")),
        cluster_id: Some(short("cluster")),
    };
    ann.send("", "q", fields, "a");
    ann.send("", "q", Fields::default(), "b");
    assert_eq!(ann.take_all("q"), "a b");
    assert_eq!(Fields::of(ann.letter("a").properties.view()), fields);
    assert_eq!(ann.letter("b").properties, Properties::EMPTY);
}

#[test]
fn an_empty_body_and_a_long_one_come_out_as_they_went_in() {
    let (_broker, mut ann) = with_queue();
    let long = "x".repeat(100_000);
    ann.route("", "q", "");
    ann.route("", "q", &long);
    assert_eq!(ann.get("q"), "");
    assert_eq!(ann.get("q"), long);
}

#[test]
fn an_expiration_is_whole_milliseconds_as_text() {
    let (broker, mut ann) = with_queue();
    for wrong in ["soon", "-1", "1.5", "", " 1", "99999999999999999999"] {
        let fields = Fields { expiration: Some(short(wrong)), ..Fields::default() };
        let told = ann.refused(|ann| ann.send("", "q", fields, "a"));
        let expected = format!("406 PRECONDITION_FAILED - invalid expiration '{wrong}': ");
        assert!(told.starts_with(&expected), "{told}");
        assert_eq!(ann.fault, (60, 40), "basic.publish");
    }
    assert_eq!(broker.waiting("q"), "");
}

#[test]
fn an_expiration_of_0_ends_what_nobody_takes_at_once() {
    let (broker, mut ann) = with_queue();
    let now = Fields { expiration: Some(short("0")), ..Fields::default() };
    ann.send("", "q", now, "a");
    ann.hears();
    assert_eq!(broker.waiting("q"), "");
    ann.consume("q");
    ann.send("", "q", now, "b");
    assert_eq!(ann.hears(), "b");
}

#[test]
fn a_user_id_is_the_users_own() {
    let (_broker, mut ann) = with_queue();
    ann.send("", "q", Fields { user_id: Some(short("guest")), ..Fields::default() }, "a");
    assert_eq!(ann.take_all("q"), "a");
    let fields = Fields { user_id: Some(short("eve")), ..Fields::default() };
    let told = ann.refused(|ann| ann.send("", "q", fields, "b"));
    assert_eq!(
        told,
        "406 PRECONDITION_FAILED - user_id property set to 'eve' but authenticated user was 'guest'"
    );
}

/// In a durable queue, whatever its delivery mode: promotion.
#[test]
fn a_transient_message_survives_a_restart_and_says_what_it_said() {
    let (mut broker, mut ann) = with_queue();
    ann.send("", "q", Fields { delivery_mode: Some(1), ..Fields::default() }, "a");
    ann.hears();
    broker.restart();
    let mut ann = broker.connect();
    assert_eq!(ann.take_all("q"), "a");
    assert_eq!(ann.letter("a").properties.view().delivery_mode(), Some(1));
}

#[test]
fn a_message_of_an_id_that_waits_is_stored_once() {
    let (broker, mut ann) = with_queue();
    ann.confirm();
    for _ in 0..2 {
        ann.send_with("", "q", &[("x-overtake-id", t("one"))], "a");
    }
    assert_eq!(ann.hears(), "safe 1 2");
    assert_eq!(broker.waiting("q"), "a:0");
    assert_eq!(ann.take_all("q"), "a");
    ann.send_with("", "q", &[("x-overtake-id", t("one"))], "b");
    assert_eq!(ann.take_all("q"), "b", "the id is free again");
    let told = ann.refused(|ann| ann.send_with("", "q", &[("x-overtake-id", n(1))], "a"));
    assert_eq!(told, "406 PRECONDITION_FAILED - the header 'x-overtake-id' is no text");
}

/// What the property has no room for.
#[test]
fn a_priority_may_be_a_name_or_below_0() {
    let mut broker = Broker::new();
    let mut ann = broker.connect();
    ann.declare("named", &[("x-scheme", t("named"))]);
    ann.declare("signed", &[("x-scheme", t("signed"))]);
    for (body, name) in [("a", "low"), ("b", "critical"), ("c", "high")] {
        ann.send_with("", "named", &[("x-processing-priority", t(name))], body);
    }
    for (body, number) in [("a", -5), ("b", 1_000), ("c", 0)] {
        ann.send_with("", "signed", &[("x-processing-priority", n(number)), ("more", n(1))], body);
    }
    assert_eq!(ann.take_all("named"), "b c a");
    assert_eq!(ann.take_all("signed"), "b c a");
    for none in [Value::Void, t(""), t(" ")] {
        let mut bob = broker.connect();
        let told = bob.refused(|bob| bob.send_with("", "named", &[("x-processing-priority", none)], "a"));
        assert_eq!(
            told,
            "406 PRECONDITION_FAILED - the header 'x-processing-priority' is no number and no name"
        );
    }
}

#[test]
fn a_priority_is_taken_as_it_is_or_not_at_all() {
    let mut broker = Broker::new();
    let mut ann = broker.connect();
    ann.declare("named", &[("x-scheme", t("named"))]);
    ann.declare("ten", &[("x-max-priority", n(9))]);
    ann.declare("one", &[]);
    let beyond = Value::I64(i64::from(i32::MAX) + 1);
    for (queue, wrong, why) in [
        ("named", t(" high"), "the priority is none the queue's scheme knows"),
        ("named", t("high "), "the priority is none the queue's scheme knows"),
        ("one", t("urgent"), "the priority is none the queue's scheme knows"),
        ("ten", beyond, "the priority is out of range for the queue's scheme"),
        ("one", beyond, "the priority is out of range for the queue's scheme"),
    ] {
        let mut bob = broker.connect();
        let told = bob.refused(|bob| bob.send_with("", queue, &[("x-processing-priority", wrong)], "a"));
        assert!(told.starts_with(&format!("406 PRECONDITION_FAILED - {why}; ")), "{queue} {wrong:?}: {told}");
        assert_eq!(broker.waiting(queue), "", "{queue} {wrong:?}");
    }
}

/// What a message says of its priority: the property, and the header.
fn told(ann: &Client, body: &str) -> (Option<u8>, Option<i64>) {
    let said = ann.letter(body).properties.view();
    let header = said.headers().and_then(|headers| headers.get("x-processing-priority"));
    (said.priority(), header.map(|value| value.int().expect("a number")))
}

#[test]
fn a_priority_comes_as_it_went_however_it_was_said() {
    let mut broker = Broker::new();
    let mut ann = broker.connect();
    ann.declare("named", &[("x-scheme", t("named"))]);
    ann.declare("signed", &[("x-scheme", t("signed"))]);
    ann.declare("one", &[]);
    ann.declare("ten", &[("x-max-priority", n(9))]);
    for (queue, said, expected) in [
        ("signed", n(-5), (None, Some(-5))),
        ("signed", n(0), (Some(0), None)),
        ("signed", n(255), (Some(255), None)),
        ("signed", n(256), (None, Some(256))),
        ("signed", t("bulk"), (None, Some(-100))),
        ("named", t("background"), (None, Some(-100))),
        ("named", t("Low"), (None, Some(-50))),
        ("named", n(-50), (None, Some(-50))),
        ("named", t("critical"), (Some(100), None)),
        ("one", n(-50), (None, Some(-50))),
        ("one", t("high"), (Some(50), None)),
        ("one", t("LOW"), (None, Some(-50))),
        ("one", t("background"), (None, Some(-100))),
        ("ten", n(-50), (None, Some(-50))),
    ] {
        for is_consumed in [false, true] {
            ann.send_with("", queue, &[("x-processing-priority", said), ("more", n(1))], "a");
            if is_consumed {
                ann.consume_as("c", queue, "", &[]);
                ann.hears();
                ann.cancel("c");
            } else {
                ann.get(queue);
            }
            assert_eq!(told(&ann, "a"), expected, "{queue} {said:?} {is_consumed}");
            let headers = ann.letter("a").properties.view().headers().expect("some");
            assert_eq!(headers.get("more").and_then(Value::int), Some(1));
            ann.ack("a");
        }
    }
    ann.send_with("", "signed", &[], "nothing");
    assert_eq!(ann.get("signed"), "nothing");
    assert_eq!(told(&ann, "nothing"), (None, None), "what says nothing goes on saying nothing");
}

#[test]
fn a_priority_of_another_scheme_counts_as_what_is_as_urgent() {
    let mut broker = Broker::new();
    let mut ann = broker.connect();
    ann.declare("named", &[("x-scheme", t("named"))]);
    ann.declare("ten", &[("x-scheme", t("ten-level"))]);
    for (scheme, said, named, ten) in [
        ("route", n(0), Some(100), Some(9)),
        ("route", n(5), Some(0), Some(4)),
        ("max-9", n(9), Some(100), Some(9)),
        ("named", t("high"), Some(50), Some(6)),
        ("signed", n(-12), None, Some(3)),
    ] {
        for (queue, expected) in [("named", named), ("ten", ten)] {
            let headers =
                [("x-processing-priority", said), ("x-overtake-priority-scheme", t(scheme)), ("more", n(1))];
            ann.send_with("", queue, &headers, "a");
            ann.get(queue);
            assert_eq!(told(&ann, "a").0, expected, "{scheme} {said:?} in {queue}");
            let headers = ann.letter("a").properties.view().headers().expect("some");
            assert!(
                headers.get("x-overtake-priority-scheme").is_none(),
                "it is of the queue's scheme from now on"
            );
            ann.ack("a");
        }
    }
    for (scheme, said, expected) in [
        (
            t("loudness"),
            n(1),
            "the header 'x-overtake-priority-scheme': unknown scheme `loudness`: use ten-level, signed, named, route or max-1 to max-255",
        ),
        (t("route"), n(10), "the header 'x-overtake-priority-scheme' says route, which has no priority '10'"),
        (n(1), n(1), "the header 'x-overtake-priority-scheme' is no text"),
    ] {
        let mut bob = broker.connect();
        let headers = [("x-processing-priority", said), ("x-overtake-priority-scheme", scheme)];
        let refused = bob.refused(|bob| bob.send_with("", "ten", &headers, "a"));
        assert_eq!(refused, format!("406 PRECONDITION_FAILED - {expected}"));
    }
}

#[test]
fn it_says_what_it_was_given_since() {
    let mut broker = Broker::new();
    let mut ann = broker.connect();
    ann.declare("signed", &[("x-scheme", t("signed"))]);
    ann.send_with("", "signed", &[("x-processing-priority", n(-5))], "a");
    for (given, expected) in [(7, (Some(7), None)), (-7, (None, Some(-7))), (1_000, (None, Some(1_000)))] {
        let all = Select::Matching(Filter::default());
        assert_eq!(wait(broker.engine().reprioritise("signed", all, Given::Number(given))), Ok(1));
        assert!(ann.get("signed").starts_with('a'));
        assert_eq!(told(&ann, "a"), expected);
        ann.put_back("a");
    }
}

/// Of a producer that numbers what it publishes; what follows the number is below which it publishes no more.
fn numbered(ann: &mut Client, sequence: i32, floor: i32, body: &str) {
    let headers = [
        ("x-overtake-producer", t("edge.7")),
        ("x-overtake-sequence", n(sequence)),
        ("more", n(1)),
        ("x-overtake-floor", n(floor)),
    ];
    ann.send_with("", "q", &headers, body);
}

#[test]
fn a_message_of_a_producer_is_stored_once_however_long_ago_it_came() {
    let (mut broker, mut ann) = with_queue();
    ann.confirm();
    numbered(&mut ann, 5, 0, "a");
    assert_eq!(ann.hears(), "safe 1");
    assert_eq!(ann.take_all("q"), "a");
    numbered(&mut ann, 5, 0, "again");
    numbered(&mut ann, 4, 4, "b");
    numbered(&mut ann, 3, 0, "late");
    assert_eq!(ann.hears(), "safe 2 3 4", "what was taken is confirmed");
    assert_eq!(ann.take_all("q"), "b");
    let letter = ann.letter("b");
    let headers = letter.properties.view().headers().expect("some").iter();
    assert_eq!(
        headers.map(|(name, _)| name.text()).collect::<Vec<_>>(),
        [Some("more")],
        "it goes no further"
    );
    broker.restart();
    let mut ann = broker.connect();
    ann.confirm();
    numbered(&mut ann, 4, 0, "again");
    numbered(&mut ann, 6, 0, "c");
    assert_eq!(ann.hears(), "safe 1 2");
    assert_eq!(ann.take_all("q"), "c");
}

#[test]
fn the_number_of_a_message_is_one_and_goes_with_a_producer() {
    let (_broker, mut ann) = with_queue();
    let (producer, sequence, floor) = ("x-overtake-producer", "x-overtake-sequence", "x-overtake-floor");
    for (headers, told) in [
        (&[(producer, n(1))][..], "the header 'x-overtake-producer' is no text"),
        (&[(producer, t("a"))], "the header 'x-overtake-producer' goes with 'x-overtake-sequence'"),
        (
            &[(producer, t("a")), (sequence, n(-1))],
            "the header 'x-overtake-sequence' is no whole number from 0",
        ),
        (
            &[(producer, t("a")), (sequence, n(1)), (floor, t("0"))],
            "the header 'x-overtake-floor' is no whole number from 0",
        ),
        (
            &[(producer, t("a/b")), (sequence, n(1))],
            "the header 'x-overtake-producer' is 1 to 64 letters, digits, '-', '_' and '.'",
        ),
    ] {
        let refused = ann.refused(|ann| ann.send_with("", "q", headers, "a"));
        assert_eq!(refused, format!("406 PRECONDITION_FAILED - {told}"));
    }
}

#[test]
fn a_message_says_how_often_it_came_back() {
    let (_broker, mut ann) = with_queue();
    ann.send_with("", "q", &[("more", n(1))], "a");
    for (came, headers) in [
        ("a", "{more: 1}"),
        ("a!", "{more: 1, x-delivery-count: 1}"),
        ("a!", "{more: 1, x-delivery-count: 2}"),
    ] {
        assert_eq!(ann.get("q"), came);
        assert_eq!(ann.letter("a").headers(), headers);
        ann.put_back("a");
    }
}

// ---- confirms and returns ----

#[test]
fn confirms_are_gathered_and_none_is_missing() {
    let (_broker, mut ann) = with_queue();
    ann.confirm();
    let bodies: Vec<String> = (0..500).map(|at| format!("m{at}")).collect();
    ann.publish("q", &bodies.join(" "));
    let numbers: Vec<String> = (1..=500).map(|number| number.to_string()).collect();
    assert_eq!(ann.hears(), format!("safe {}", numbers.join(" ")));
    ann.on(2).confirm();
    ann.publish("q", "a");
    assert_eq!(ann.hears(), "safe 1", "each channel counts for itself");
}

/// What came together to be durable is told together.
#[test]
fn what_is_safe_together_is_told_together() {
    let (_broker, mut ann) = with_queue();
    ann.confirm();
    let many = (0..100).map(|at| format!("m{at}")).collect::<Vec<_>>().join(" ");
    ann.together(|ann| ann.publish("q", &many));
    assert_eq!(ann.hears_in_order(), "safe 100");
}

#[test]
fn a_message_is_returned_before_it_is_confirmed() {
    let (_broker, mut ann) = with_queue();
    ann.confirm();
    let fields = Fields { priority: Some(7), ..Fields::default() };
    ann.send_as("amq.direct", "nobody", "mandatory", fields, "a");
    assert_eq!(ann.hears_in_order(), "returned a: 312 NO_ROUTE · safe 1");
    assert_eq!(ann.letter("a").route(), "amq.direct/nobody");
    assert_eq!(ann.letter("a").properties.view().priority(), Some(7));
    ann.route("amq.direct", "nobody", "b");
    assert_eq!(ann.hears(), "safe 2", "it was not mandatory");
    ann.send_as("", "q", "mandatory", fields, "c");
    assert_eq!(ann.hears(), "safe 3");
}
