//! How long queues live, and whose they are.

use crate::broker::Broker;
use crate::words::t;

#[test]
fn a_queue_without_a_name_gets_one() {
    let mut broker = Broker::new();
    let mut ann = broker.connect();
    let told = ann.declare_as("", "exclusive", &[]);
    let name = told.split(' ').next().expect("a name").to_owned();
    assert!(name.starts_with("amq.gen-"), "{name}");
    assert_ne!(ann.declare_as("", "exclusive", &[]), told);
    ann.publish(&name, "a");
    assert_eq!(ann.get(&name), "a");
    let other = broker.connect().declare_as("", "", &[]);
    assert_ne!(other, told, "nor that of another connection");
}

#[test]
fn an_exclusive_queue_is_closed_to_others_but_for_publishing() {
    let mut broker = Broker::new();
    let (mut ann, mut bob) = (broker.connect(), broker.connect());
    ann.declare_as("q", "exclusive", &[]);
    let locked = "405 RESOURCE_LOCKED - cannot obtain exclusive access to locked queue 'q' in vhost '/'. It could be originally \
                  declared on another connection or the exclusive property value does not match that of the original \
                  declaration.";
    assert_eq!(bob.refused(|bob| bob.declare_as("q", "exclusive", &[])), locked);
    assert_eq!(bob.refused(|bob| bob.declare_as("q", "passive", &[])), locked);
    assert_eq!(bob.refused(|bob| bob.consume("q")), locked);
    assert_eq!(bob.refused(|bob| bob.get("q")), locked);
    assert_eq!(bob.refused(|bob| bob.purge("q")), locked);
    assert_eq!(bob.refused(|bob| bob.delete("q", "")), locked);
    assert_eq!(bob.refused(|bob| bob.bind("q", "amq.direct", "key", &[])), locked);
    ann.bind("q", "amq.direct", "key", &[]);
    assert_eq!(bob.refused(|bob| bob.unbind("q", "amq.direct", "key", &[])), locked);
    assert_eq!(bob.refused(|bob| bob.unbind("q", "amq.direct", "none", &[])), locked);
    bob.publish("q", "a");
    bob.hears();
    assert_eq!(ann.get("q"), "a");
}

/// As in RabbitMQ, whose clients' tests ask for it.
#[test]
fn line_ends_are_taken_out_of_names_that_are_declared() {
    let mut broker = Broker::new();
    let mut ann = broker.connect();
    assert_eq!(ann.declare("q\r\nu\ne", &[]), "que 0 0");
    assert_eq!(ann.declare_as("qu\ne", "passive", &[]), "que 0 0");
    ann.exchange("e\nx", "fanout", &[]);
    ann.bind("que", "ex", "", &[]);
    ann.route("ex", "", "a");
    assert_eq!(ann.get("que"), "a");
    ann.delete_exchange("ex\r\n", "");
    assert_eq!(ann.hears(), "");
}

#[test]
fn an_exclusive_queue_goes_with_its_connection() {
    let mut broker = Broker::new();
    let (mut ann, mut bob) = (broker.connect(), broker.connect());
    ann.declare_as("q", "exclusive", &[]);
    ann.declare("lasting", &[]);
    ann.close_channel();
    assert!(broker.has("q"), "its channel is not its connection");
    drop(ann);
    assert!(!broker.has("q"));
    assert!(broker.has("lasting"));
    assert_eq!(bob.declare_as("q", "exclusive", &[]), "q 0 0", "the name is free");
}

#[test]
fn an_auto_delete_queue_goes_with_its_last_consumer() {
    let mut broker = Broker::new();
    let (mut ann, mut bob) = (broker.connect(), broker.connect());
    ann.declare_as("q", "auto-delete", &[]);
    ann.publish("q", "a");
    ann.get("q");
    ann.put_back("a");
    ann.hears();
    assert!(broker.has("q"), "it had no consumer yet");
    ann.consume("q");
    bob.consume("q");
    ann.cancel("c");
    assert!(broker.has("q"));
    bob.close_channel();
    assert!(!broker.has("q"));
}

#[test]
fn a_queue_that_is_not_durable_is_gone_after_a_restart() {
    let mut broker = Broker::new();
    let mut ann = broker.connect();
    ann.declare_as("brief", "", &[]);
    ann.declare("lasting", &[]);
    ann.declare_as("own", "exclusive durable", &[]);
    for queue in ["brief", "lasting", "own"] {
        ann.publish(queue, "a");
    }
    ann.hears();
    broker.restart();
    let there = ["brief", "lasting", "own"].map(|queue| broker.has(queue));
    assert_eq!(there, [false, true, false]);
    assert_eq!(broker.connect().take_all("lasting"), "a");
}

#[test]
fn a_queue_is_deleted_with_what_is_in_it() {
    let mut broker = Broker::new();
    let mut ann = broker.connect();
    ann.declare("q", &[("x-dead-letter-exchange", t("")), ("x-dead-letter-routing-key", t("dead"))]);
    ann.declare("dead", &[]);
    ann.bind("q", "amq.direct", "key", &[]);
    ann.publish("q", "a b c");
    ann.get("q");
    assert_eq!(ann.delete("q", ""), "2");
    ann.ack("a");
    assert_eq!(ann.hears(), "", "what was out may still be settled");
    assert_eq!(broker.waiting("dead"), "", "it did not die");
    ann.declare("q", &[]);
    ann.route("amq.direct", "key", "d");
    assert_eq!(ann.take_all("q"), "", "its bindings are gone");
}

// ---- told ----

#[test]
fn a_consumer_is_told_that_its_queue_is_gone() {
    let mut broker = Broker::new();
    let (mut ann, mut bob) = (broker.connect(), broker.connect());
    ann.declare("q", &[]);
    ann.consume("q");
    ann.consume_as("d", "q", "", &[]);
    bob.delete("q", "");
    let heard = ann.hears();
    let mut heard: Vec<&str> = heard.split(" · ").collect();
    heard.sort_unstable();
    assert_eq!(heard, ["cancelled c", "cancelled d"]);
    ann.declare("q", &[]);
    ann.consume("q");
    ann.publish("q", "a");
    assert_eq!(ann.hears(), "a", "the tag is free again");
}

#[test]
fn one_that_does_not_understand_it_is_told_nothing() {
    let mut broker = Broker::new();
    let (mut old, mut bob) = (broker.connect_with(&[]), broker.connect());
    old.declare("q", &[]);
    old.consume("q");
    bob.delete("q", "");
    assert_eq!(old.hears(), "");
    old.cancel("c");
    assert_eq!(old.hears(), "", "its channel is as it was");
}
