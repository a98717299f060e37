//! A broker that wants to be left: nobody loses what they hold, and nobody stays.

use crate::broker::Broker;
use crate::client::Client;

const OVER: &str = "connection 320 CONNECTION_FORCED - the broker is being drained; connect to another";

fn consuming(messages: &str) -> (Broker, Client) {
    let mut broker = Broker::new();
    let mut ann = broker.connect();
    ann.declare("q", &[]);
    ann.publish("q", messages);
    ann.prefetch(1);
    ann.consume("q");
    (broker, ann)
}

#[test]
fn whoever_holds_nothing_goes_at_once() {
    let mut broker = Broker::new();
    let mut ann = broker.connect();
    assert_eq!(ann.refused(Client::drain), OVER);
}

#[test]
fn a_consumer_is_cancelled_keeps_what_it_holds_and_goes_when_that_is_settled() {
    let (broker, mut ann) = consuming("a b");
    assert_eq!(ann.hears(), "a");
    ann.drain();
    assert_eq!(ann.hears(), "cancelled c");
    assert_eq!(broker.waiting("q"), "a:0(leased) b:0");
    let told = ann.refused(|ann| {
        ann.ack("a");
        ann.drain();
    });
    assert_eq!(told, OVER);
    assert_eq!(broker.waiting("q"), "b:0", "what was acknowledged is gone, the other was not given");
}

#[test]
fn nobody_begins_to_take_anything() {
    for takes in [|ann: &mut Client| ann.consume("q"), |ann: &mut Client| drop(ann.get("q"))] {
        let (_broker, mut ann) = consuming("a b");
        ann.hears();
        ann.drain();
        ann.hears();
        let told = ann.refused(takes);
        let expected = "406 PRECONDITION_FAILED - the broker is being drained and gives out no more messages; connect to another";
        assert_eq!(told, expected);
    }
}

#[test]
fn what_is_published_is_confirmed_before_the_connection_is_closed() {
    let (_broker, mut ann) = consuming("a");
    ann.hears();
    ann.drain();
    ann.hears();
    ann.confirm();
    ann.publish("q", "b");
    assert_eq!(ann.hears(), "safe 1");
}

#[test]
fn a_transaction_that_has_begun_may_be_committed() {
    let (broker, mut ann) = consuming("a");
    ann.hears();
    ann.begin();
    ann.ack("a");
    ann.publish("q", "b");
    ann.drain();
    ann.hears();
    let told = ann.refused(|ann| {
        ann.commit();
        ann.drain();
    });
    assert_eq!(told, OVER);
    assert_eq!(broker.waiting("q"), "b:0");
}
