//! Transactions: all that was published and settled, or nothing of it.

use overtake_properties::Fields;

use crate::broker::Broker;
use crate::client::Client;
use crate::holes::TEN;
use crate::words::{n, short, t};

fn begun() -> (Broker, Client) {
    let mut broker = Broker::new();
    let mut ann = broker.connect();
    ann.declare("q", &[TEN]);
    ann.begin();
    (broker, ann)
}

#[test]
fn what_is_published_is_there_when_it_is_committed() {
    let (broker, mut ann) = begun();
    ann.publish("q", "a:1 b:9");
    ann.hears();
    assert_eq!(broker.waiting("q"), "");
    ann.commit();
    assert_eq!(broker.waiting("q"), "b:9 a:1");
    ann.publish("q", "c:5");
    ann.commit();
    assert_eq!(broker.waiting("q"), "b:9 c:5 a:1", "the next has begun by itself");
}

#[test]
fn what_is_rolled_back_never_was() {
    let (broker, mut ann) = begun();
    ann.publish("q", "a");
    ann.roll_back();
    ann.commit();
    assert_eq!(broker.waiting("q"), "");
}

#[test]
fn what_is_settled_is_settled_when_it_is_committed() {
    let (broker, mut ann) = begun();
    ann.publish("q", "a b c");
    ann.commit();
    ann.prefetch(3);
    ann.consume("q");
    assert_eq!(ann.hears(), "a · b · c");
    ann.ack("a");
    ann.put_back("b");
    ann.reject("c");
    assert_eq!(ann.hears(), "");
    assert_eq!(broker.waiting("q"), "a:0(leased) b:0(leased) c:0(leased)");
    ann.commit();
    assert_eq!(ann.hears(), "b!");
    assert_eq!(broker.waiting("q"), "b:0(leased)");
}

#[test]
fn settlements_that_are_rolled_back_may_be_said_again() {
    let (broker, mut ann) = begun();
    ann.publish("q", "a b");
    ann.commit();
    ann.consume("q");
    assert_eq!(ann.hears(), "a · b");
    ann.ack("a");
    ann.ack("b");
    ann.roll_back();
    ann.ack("a");
    ann.commit();
    assert_eq!(broker.waiting("q"), "b:0(leased)");
    ann.close_channel();
    assert_eq!(broker.waiting("q"), "b:0");
}

#[test]
fn a_channel_that_closes_takes_its_transaction_along() {
    let (broker, mut ann) = begun();
    ann.publish("q", "a");
    ann.commit();
    assert_eq!(ann.get("q"), "a");
    ann.ack("a");
    ann.publish("q", "b");
    ann.close_channel();
    ann.on(2);
    assert_eq!(broker.waiting("q"), "a:0");
}

/// Returned when it is committed, and before that is told.
#[test]
fn mandatory_messages_are_returned_with_the_commit() {
    let (broker, mut ann) = begun();
    let fields = Fields { message_id: Some(short("m1")), ..Fields::default() };
    ann.send_as("", "none", "mandatory", fields, "a");
    ann.send_as("", "q", "mandatory", fields, "b");
    ann.send_as("", "none", "", fields, "c");
    ann.send_as("amq.topic", "none", "mandatory", fields, "d");
    assert_eq!(ann.hears(), "");
    ann.tell(overtake_amqp::method::tx::Commit {});
    assert_eq!(ann.hears_in_order(), "returned a: 312 NO_ROUTE · returned d: 312 NO_ROUTE · tx.commit-ok");
    assert_eq!(broker.waiting("q"), "b:0");
}

#[test]
fn a_commit_that_is_refused_does_nothing() {
    let (broker, mut ann) = begun();
    ann.declare("small", &[("x-max-length", n(1)), ("x-overflow", t("reject-publish"))]);
    ann.publish("q", "a");
    ann.publish("small", "b c");
    let told = ann.refused(Client::commit);
    assert!(told.starts_with("406 PRECONDITION_FAILED - "), "{told}");
    assert_eq!((broker.waiting("q"), broker.waiting("small")), (String::new(), String::new()));
    ann.begin();
    ann.publish("q", "a");
    ann.route("none", "key", "b");
    let told = ann.refused(Client::commit);
    assert_eq!(told, "404 NOT_FOUND - no exchange 'none' in vhost '/'");
    assert_eq!(broker.waiting("q"), "");
}

#[test]
fn a_commit_survives_a_restart_whole() {
    let (mut broker, mut ann) = begun();
    ann.publish("q", "a:1 b:9");
    ann.commit();
    assert_eq!(ann.get("q"), "b");
    ann.ack("b");
    ann.publish("q", "c:5");
    ann.commit();
    broker.restart();
    assert_eq!(broker.waiting("q"), "c:5 a:1");
}
