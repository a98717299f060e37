//! Another priority for messages that wait, or their end: over HTTP, and as orders to the exchange `overtake.control`.

use overtake_engine::{Engine, Filter, JobState, NewMessage, Select, Target};
use overtake_lane::{Given, Refusal};
use overtake_properties::Fields;

use crate::broker::{Broker, wait};
use crate::client::Client;
use crate::holes::TEN;
use crate::words::{short, t};

/// A queue `q` of ten levels with messages whose ids are their bodies, and a queue `answers`.
fn filled() -> (Broker, Client) {
    let mut broker = Broker::new();
    let mut ann = broker.connect();
    ann.declare("q", &[TEN]);
    ann.declare("answers", &[]);
    for (body, priority) in [("a", 5), ("b", 5), ("c", 1)] {
        let headers = crate::words::table(&[("x-overtake-id", t(body)), ("customer", t("seven"))]);
        let fields = Fields { priority: Some(priority), headers: Some(headers.view()), ..Fields::default() };
        ann.send("", "q", fields, body);
    }
    ann.hears();
    (broker, ann)
}

fn id(id: &str) -> Select {
    Select::Id(id.to_owned())
}

#[test]
fn a_message_that_waits_gets_another_priority_over_http() {
    let (broker, mut ann) = filled();
    assert_eq!(wait(broker.engine().reprioritise("q", id("c"), Given::Number(9))), Ok(1));
    assert_eq!(broker.waiting("q"), "c:9 a:5 b:5");
    assert_eq!(wait(broker.engine().reprioritise("q", id("a"), Given::Number(9))), Ok(1));
    assert_eq!(broker.waiting("q"), "a:9 c:9 b:5", "it is older than c");
    assert_eq!(ann.get("q"), "a");
    assert_eq!(ann.letter("a").properties.view().priority(), Some(9), "it says what it is now");
}

#[test]
fn one_that_is_out_keeps_its_priority_and_may_be_removed() {
    let (broker, mut ann) = filled();
    assert_eq!(ann.get("q"), "a");
    let refused = wait(broker.engine().reprioritise("q", id("a"), Given::Number(9)));
    assert_eq!(refused, Err(Refusal::Leased.into()));
    assert_eq!(wait(broker.engine().remove("q", id("a"))), Ok(1));
    ann.ack("a");
    assert_eq!(ann.hears(), "", "what comes late does no harm");
    assert_eq!(broker.waiting("q"), "b:5 c:1");
}

#[test]
fn an_order_gives_another_priority() {
    let (broker, mut ann) = filled();
    ann.confirm();
    ann.route("overtake.control", "reprioritise", r#"{"queue": "q", "id": "c", "priority": 9}"#);
    assert_eq!(ann.hears(), "safe 1");
    assert_eq!(broker.waiting("q"), "c:9 a:5 b:5");
    ann.route(
        "overtake.control",
        "reprioritise",
        r#"{"queue": "q", "filter": {"headers": {"customer": "seven"}}, "priority": 2}"#,
    );
    assert_eq!(ann.hears(), "safe 2");
    assert_eq!(broker.waiting("q"), "a:2 b:2 c:2");
}

#[test]
fn an_order_removes() {
    let (broker, mut ann) = filled();
    ann.route("overtake.control", "remove", r#"{"queue": "q", "id": "b"}"#);
    ann.hears();
    assert_eq!(broker.waiting("q"), "a:5 c:1");
    ann.route("overtake.control", "remove", r#"{"queue": "q", "filter": {"priority": 1}}"#);
    ann.hears();
    assert_eq!(broker.waiting("q"), "a:5");
    ann.route("overtake.control", "remove", r#"{"queue": "q", "all": true}"#);
    ann.hears();
    assert_eq!(broker.waiting("q"), "");
}

/// Wherever it went, by the id that a client gave it for that.
#[test]
fn a_message_id_is_no_id() {
    let mut broker = Broker::new();
    let mut ann = broker.connect();
    ann.declare("q", &[TEN]);
    for body in ["a", "b"] {
        ann.send("", "q", Fields { message_id: Some(short("same")), ..Fields::default() }, body);
    }
    assert_eq!(ann.hears(), "");
    assert_eq!(broker.waiting("q"), "a:0 b:0");
    let told = wait(broker.engine().remove("q", id("same")));
    assert_eq!(told, Err(Refusal::NoSuchMessage.into()));
    assert_eq!(wait(broker.engine().remove("q", Select::Matching(Filter::default()))), Ok(2));
}

/// An order that wants its answer in the queue `answers`.
fn order(ann: &mut Client, key: &str, body: &str) -> String {
    let fields =
        Fields { reply_to: Some(short("answers")), correlation_id: Some(short("42")), ..Fields::default() };
    ann.send("overtake.control", key, fields, body);
    assert_eq!(ann.hears(), "");
    let answer = ann.get("answers");
    let properties = ann.letter(&answer).properties.view();
    assert_eq!(properties.correlation_id(), Some(short("42")));
    assert_eq!(properties.content_type(), Some(short("application/json")));
    answer
}

#[test]
fn an_order_with_reply_to_is_answered_by_a_message() {
    let (broker, mut ann) = filled();
    let told = order(&mut ann, "reprioritise", r#"{"queue": "q", "id": "c", "priority": 9}"#);
    assert_eq!(told, r#"{"count":1}"#);
    let told = order(&mut ann, "remove", r#"{"queue": "q", "all": true}"#);
    assert_eq!(told, r#"{"count":3}"#);
    assert_eq!(broker.waiting("q"), "");
    let told = order(&mut ann, "remove", r#"{"queue": "q", "id": "c"}"#);
    assert_eq!(
        told,
        r#"{"detail":"no such message; it was settled, has expired or was removed; there is nothing left to do","error":"no-such-message"}"#
    );
}

/// Publishes that come after it are confirmed after it, and need not wait for its end.
#[test]
fn an_order_that_takes_long_is_confirmed_when_it_goes_on_and_answered_when_it_is_over() {
    let mut broker = Broker::new();
    let mut ann = broker.connect();
    ann.declare("q", &[]);
    ann.declare("answers", &[]);
    let message = NewMessage { to: Target::Queue("q".into()), ..NewMessage::default() };
    for _ in 0..6 {
        wait(broker.engine().publish(vec![message.clone(); 1_000])).expect("published");
    }
    ann.confirm();
    let fields = Fields { reply_to: Some(short("answers")), ..Fields::default() };
    ann.send("overtake.control", "remove", fields, r#"{"queue": "q", "all": true}"#);
    ann.route("", "q", "after");
    let mut heard = ann.hears();
    while !heard.contains('2') {
        heard = format!("{heard} {}", ann.hears());
    }
    assert!(["safe 1 2", "safe 1 safe 2"].contains(&heard.trim()), "{heard}");
    let job = wait(broker.engine().job(1, true)).expect("answered").expect("it was a job");
    assert_eq!((job.state, job.changed), (JobState::Done, 6_000));
    let answer = loop {
        let answer = ann.get("answers");
        if answer != "empty" {
            break answer;
        }
    };
    assert_eq!(answer, r#"{"count":6000}"#);
    assert_eq!(broker.waiting("q"), "after:0");
}

#[test]
fn an_order_without_reply_to_that_cannot_be_done_costs_the_channel() {
    let (_broker, mut ann) = filled();
    let mut check = |key: &str, body: &str, told: &str| {
        let refused = ann.refused(|ann| ann.route("overtake.control", key, body));
        assert!(refused.starts_with(told), "{body}: {refused}");
    };
    check("remove", r#"{"queue": "q", "id": "z"}"#, "404 NOT_FOUND - no such message");
    check("remove", r#"{"queue": "none", "id": "z"}"#, "404 NOT_FOUND - no such queue");
    check(
        "reprioritise",
        r#"{"queue": "q", "id": "a", "priority": "urgent"}"#,
        "406 PRECONDITION_FAILED - the priority is none the queue's scheme knows",
    );
}

const NULL: &str = "the order is not understood: expected a value, found null";
const TWICE: &str = "the order is not understood: duplicate field `a`";
const LIST: &str = "the order is not understood: expected an object, found a list";

#[test]
fn an_order_that_is_not_understood_costs_the_channel_whoever_waits_for_an_answer() {
    let (broker, mut ann) = filled();
    let wrong = [
        ("remove", "", "the order is not understood: EOF"),
        ("remove", "{}", "the order is not understood: missing field `queue`"),
        ("remove", r#"{"queue": "q"}"#, "one of id, filter and \"all\": true must say which messages"),
        ("remove", r#"{"queue": "q", "all": false}"#, "one of id, filter"),
        ("remove", r#"{"queue": "q", "all": true, "id": "a"}"#, "one of id, filter"),
        ("remove", r#"{"queue": "q", "filter": {}}"#, "an empty filter means every message"),
        ("remove", r#"{"queue": "q", "filter": {"headers": {}}}"#, "an empty filter means every message"),
        (
            "reprioritise",
            r#"{"queue": "q", "filter": {}, "priority": 9}"#,
            "an empty filter means every message",
        ),
        ("remove", r#"{"queue": "q", "filter": {}, "all": true}"#, "one of id, filter"),
        ("remove", r#"{"queue": "q", "filter": {"key": null, "status": "ready"}}"#, NULL),
        ("remove", r#"{"queue": "q", "filter": {"user_id": null, "priority": 1}}"#, NULL),
        ("remove", r#"{"queue": "q", "filter": {"priority": null, "status": "ready"}}"#, NULL),
        ("remove", r#"{"queue": "q", "filter": {"headers": {"a": "1", "a": "2"}}}"#, TWICE),
        ("remove", r#"{"queue": "q", "id": null, "all": true}"#, NULL),
        ("remove", r#"{"queue": "q", "filter": null, "all": true}"#, NULL),
        ("reprioritise", r#"{"queue": "q", "id": "a", "priority": null}"#, NULL),
        ("remove", r#"{"queue": "q", "filter": ["ready"]}"#, LIST),
        ("remove", r#"["q", "a"]"#, LIST),
        ("remove", r#"{"queue": "q", "id": "a", "priority": 9}"#, "remove takes no priority"),
        (
            "remove",
            r#"{"queue": "q", "id": "a", "color": 9}"#,
            "the order is not understood: unknown field `color`",
        ),
        ("reprioritise", r#"{"queue": "q", "id": "a"}"#, "reprioritise needs a priority"),
        ("promote", r#"{"queue": "q", "id": "a"}"#, "the routing key must be reprioritise or remove"),
    ];
    for (key, body, why) in wrong {
        for reply_to in [None, Some(short("answers"))] {
            let fields = Fields { reply_to, ..Fields::default() };
            let told = ann.refused(|ann| ann.send("overtake.control", key, fields, body));
            let start = format!("406 PRECONDITION_FAILED - overtake.control: {why}");
            assert!(told.starts_with(&start), "{body}: {told}");
        }
    }
    assert_eq!(broker.waiting("q"), "a:5 b:5 c:1");
    assert_eq!(broker.waiting("answers"), "");
}

#[test]
fn the_control_exchange_is_there_and_belongs_to_the_broker() {
    let (_broker, mut ann) = filled();
    ann.exchange_as("overtake.control", "direct", "passive", &[]);
    let told = ann.refused(|ann| ann.exchange("overtake.control", "direct", &[]));
    assert_eq!(told, "403 ACCESS_REFUSED - operation not permitted on overtake.control");
}

/// What was said before is done before.
#[test]
fn orders_and_messages_are_done_in_the_order_in_which_they_were_said() {
    let (broker, mut ann) = filled();
    ann.confirm();
    let headers = crate::words::table(&[("x-overtake-id", t("d"))]);
    ann.send("", "q", Fields { headers: Some(headers.view()), ..Fields::default() }, "d");
    ann.route("overtake.control", "reprioritise", r#"{"queue": "q", "id": "d", "priority": 9}"#);
    ann.publish("q", "e:9");
    assert_eq!(ann.hears(), "safe 1 2 3");
    assert_eq!(broker.waiting("q"), "d:9 e:9 a:5 b:5 c:1");
}
