//! The holes of other priority queues, closed: each test is one of them, over the wire.

use overtake_properties::{Fields, Value};

use crate::broker::{Broker, wait};
use crate::client::Client;
use crate::words::{n, short, t};

/// A queue of ten levels.
pub(crate) const TEN: (&str, Value<'static>) = ("x-max-priority", n(9));

/// A broker with a queue `q` of ten levels, and a client.
fn ten_levels() -> (Broker, Client) {
    let mut broker = Broker::new();
    let mut ann = broker.connect();
    ann.declare("q", &[TEN]);
    (broker, ann)
}

#[test]
fn a_returned_message_goes_back_to_its_own_level_and_place() {
    let (broker, mut ann) = ten_levels();
    ann.publish("q", "a:1 b:5 c:5 d:9");
    for wanted in ["d", "b", "c", "a"] {
        assert_eq!(ann.get("q"), wanted);
    }
    for body in ["a", "c", "d", "b"] {
        ann.put_back(body);
    }
    assert_eq!(ann.hears(), "");
    assert_eq!(broker.waiting("q"), "d:9 b:5 c:5 a:1");
    ann.publish("q", "e:5 f:9");
    assert_eq!(ann.take_all("q"), "d! f b! c! e a!");
}

/// RabbitMQ's quorum queues give what came back before every level.
#[test]
fn a_returned_message_never_goes_ahead_of_a_more_urgent_one() {
    let (_broker, mut ann) = ten_levels();
    ann.prefetch(1);
    ann.publish("q", "low:1");
    ann.consume("q");
    assert_eq!(ann.hears(), "low");
    ann.publish("q", "high:9");
    ann.put_back("low");
    assert_eq!(ann.hears(), "high");
    ann.ack("high");
    assert_eq!(ann.hears(), "low!");
}

/// However it came back: its channel closed, its connection lost, everything recovered.
#[test]
fn whatever_comes_back_stands_where_it_stood() {
    let (mut broker, mut ann) = ten_levels();
    let mut bob = broker.connect();
    ann.publish("q", "a:1 b:5 c:5 d:9");
    ann.hears();
    bob.consume("q");
    assert_eq!(bob.hears(), "d · b · c · a");
    bob.close_channel();
    assert_eq!((bob.hears(), broker.waiting("q")), (String::new(), "d:9 b:5 c:5 a:1".to_owned()));
    bob.on(2).consume("q");
    assert_eq!(bob.hears(), "2:d! · 2:b! · 2:c! · 2:a!");
    drop(bob);
    assert_eq!(ann.take_all("q"), "d! b! c! a!");
}

/// RabbitMQ, LavinMQ and Artemis drop the most urgent one.
#[test]
fn overflow_takes_from_the_least_urgent_level() {
    let mut broker = Broker::new();
    let mut ann = broker.connect();
    ann.declare("q", &[TEN, ("x-max-length", n(3))]);
    ann.publish("q", "a:9 b:1 c:1 d:5 e:9");
    ann.hears();
    assert_eq!(broker.waiting("q"), "a:9 e:9 d:5");
    ann.confirm();
    ann.publish("q", "f:1 g:5");
    assert_eq!(ann.hears(), "safe 2 · not taken 1");
    assert_eq!(ann.take_all("q"), "a e g");
}

#[test]
fn an_expired_message_never_waits_behind_a_live_one_and_is_not_counted() {
    let (broker, mut ann) = ten_levels();
    let brief =
        |priority| Fields { priority: Some(priority), expiration: Some(short("1000")), ..Fields::default() };
    ann.publish("q", "a:5");
    ann.send("", "q", brief(1), "below");
    ann.send("", "q", brief(5), "beside");
    ann.send("", "q", brief(9), "above");
    ann.publish("q", "b:5");
    assert_eq!(ann.declare_as("q", "passive", &[]), "q 5 0");
    broker.advance(1_000);
    assert_eq!(ann.declare_as("q", "passive", &[]), "q 2 0");
    assert_eq!(ann.get("q"), "a");
    assert_eq!(ann.letter("a").behind, 1);
    assert_eq!(ann.purge("q"), "1");
}

#[test]
fn a_run_of_expired_messages_lets_no_lower_one_pass() {
    let (broker, mut ann) = ten_levels();
    for at in 0..50 {
        let fields = Fields { priority: Some(9), expiration: Some(short("10")), ..Fields::default() };
        ann.send("", "q", fields, &format!("gone{at}"));
    }
    ann.publish("q", "low:1 high:9");
    ann.hears();
    broker.advance(10);
    assert_eq!(ann.take_all("q"), "high low");
}

#[test]
fn a_nack_keeps_priority_and_order() {
    let (_broker, mut ann) = ten_levels();
    ann.publish("q", "a:3 b:3 c:7");
    ann.prefetch(3);
    ann.consume("q");
    assert_eq!(ann.hears(), "c · a · b");
    let tag = ann.letter("b").delivery_tag;
    ann.tell(overtake_amqp::method::basic::Nack { delivery_tag: tag, multiple: true, requeue: true });
    assert_eq!(ann.hears(), "c! · a! · b!");
    assert_eq!(ann.letter("a").properties.view().priority(), Some(3));
}

#[test]
fn priority_survives_a_restart() {
    let (mut broker, mut ann) = ten_levels();
    ann.publish("q", "a:1 b:9 c:5 d");
    ann.hears();
    broker.restart();
    let mut ann = broker.connect();
    assert_eq!(broker.waiting("q"), "b:9 c:5 a:1 d:0");
    assert_eq!(ann.take_all("q"), "b c a d");
    assert_eq!(ann.letter("c").properties.view().priority(), Some(5));
    assert_eq!(ann.letter("d").properties.view().priority(), None, "it never had one");
}

#[test]
fn priority_survives_dead_lettering() {
    let (broker, mut ann) = ten_levels();
    ann.declare("dead", &[TEN]);
    ann.declare("work", &[TEN, ("x-dead-letter-exchange", t("")), ("x-dead-letter-routing-key", t("dead"))]);
    ann.publish("work", "a:1 b:9 c:5");
    for _ in 0..3 {
        ann.get("work");
    }
    for body in ["a", "c", "b"] {
        ann.reject(body);
    }
    ann.hears();
    assert_eq!(broker.waiting("dead"), "b:9 c:5 a:1");
    assert_eq!(ann.take_all("dead"), "b c a");
    assert_eq!(ann.letter("b").properties.view().priority(), Some(9));
}

/// Dead letters that stay in their queue, as they do where it was made over HTTP.
#[test]
fn priority_survives_a_replay() {
    use overtake_engine::{Engine, Filter, Select};
    use overtake_lane::{Settings, Status};

    let mut broker = Broker::new();
    wait(broker.engine().declare_queue("q", Settings::default())).expect("declared");
    let mut ann = broker.connect();
    ann.publish("q", "a:1 b:9 c:5");
    for _ in 0..3 {
        ann.get("q");
    }
    for body in ["a", "b", "c"] {
        ann.reject(body);
    }
    ann.hears();
    ann.publish("q", "d:5 e:9");
    ann.hears();
    let dead = Select::Matching(Filter { status: Some(Status::Dead), ..Filter::default() });
    assert_eq!(wait(broker.engine().replay("q", dead, None)), Ok(3));
    assert_eq!(broker.waiting("q"), "b:9 e:9 c:5 d:5 a:1");
}

#[test]
fn a_redeclaration_with_another_max_priority_is_refused_as_clients_expect() {
    let (_broker, mut ann) = ten_levels();
    assert_eq!(ann.declare("q", &[("x-max-priority", Value::I64(9))]), "q 0 0", "whatever the width");
    let told = ann.refused(|ann| ann.declare("q", &[("x-max-priority", n(10))]));
    assert_eq!(
        told,
        "406 PRECONDITION_FAILED - inequivalent arg 'x-max-priority' for queue 'q' in vhost '/': received the value '10' \
         of type 'signedint' but current is the value '9' of type 'signedint'; send that, or set it by a policy"
    );
    let told = ann.refused(|ann| ann.declare("q", &[]));
    assert_eq!(
        told,
        "406 PRECONDITION_FAILED - inequivalent arg 'x-max-priority' for queue 'q' in vhost '/': received none but \
         current is the value '9' of type 'signedint'; send that, or set it by a policy"
    );
    ann.declare("plain", &[]);
    let told = ann.refused(|ann| ann.declare("plain", &[TEN]));
    assert_eq!(
        told,
        "406 PRECONDITION_FAILED - inequivalent arg 'x-max-priority' for queue 'plain' in vhost '/': received the value \
         '9' of type 'signedint' but current is none; leave it out, or set it by a policy"
    );
}

/// As in RabbitMQ: one FIFO, through which the priority travels.
#[test]
fn without_max_priority_a_queue_is_one_lane() {
    let mut broker = Broker::new();
    let mut ann = broker.connect();
    ann.declare("q", &[]);
    ann.publish("q", "a:1 b:9 c");
    assert_eq!(ann.take_all("q"), "a b c");
    assert_eq!(ann.letter("b").properties.view().priority(), Some(9));
}

#[test]
fn more_than_the_most_counts_as_the_most_and_is_shown_as_it_came() {
    let mut broker = Broker::new();
    let mut ann = broker.connect();
    ann.declare("q", &[("x-max-priority", n(5))]);
    ann.publish("q", "a:5 b:255 c:6 d:4");
    assert_eq!(ann.take_all("q"), "a b c d");
    assert_eq!(ann.letter("b").properties.view().priority(), Some(255));
}
