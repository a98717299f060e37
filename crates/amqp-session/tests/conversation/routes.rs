//! The exchange `overtake.routes`: routes decide who gets a copy of what is published to it.

use std::sync::Arc;

use overtake_engine::{Engine, RouteSet};
use overtake_properties::Fields;
use overtake_routes::Manifest;

use crate::broker::{Broker, wait};
use crate::client::Client;
use crate::words::{n, t, table};

const CAM: &str = "/messages/modules/Cam/outputs/o";

/// Alerts of a camera overtake the rest on the way up; what is large is work for a queue as well.
fn routed() -> (Broker, Client) {
    let mut broker = Broker::new();
    let mut ann = broker.connect();
    ann.declare("work", &[]);
    let manifest = r#"{"routes": {
        "alerts": {"route": "FROM /messages/modules/Cam/* WHERE severity = 'high' INTO $upstream",
                   "priority": 0, "timeToLiveSecs": 60},
        "all": "FROM /messages/* INTO $upstream",
        "work": "FROM /messages/* WHERE as_number(size) > 10 OR $body.size > 10 INTO Queue('work')"}}"#;
    let manifest = Manifest::from_json(manifest).expect("it holds");
    wait(broker.engine().set_routes(Arc::new(RouteSet::new(manifest)))).expect("they are set");
    (broker, ann)
}

#[test]
fn what_is_published_by_its_path_goes_where_routes_say() {
    let (_broker, mut ann) = routed();
    ann.route("overtake.routes", CAM, "plain");
    ann.send_with("overtake.routes", CAM, &[("severity", t("high")), ("size", n(11))], "urgent");
    ann.route("overtake.routes", "messages", "without its slash");
    assert_eq!(ann.take_all("$upstream"), "urgent plain without its slash");
    assert_eq!(ann.letter("urgent").route(), format!("overtake.routes/{CAM}"));
    assert_eq!(ann.letter("urgent").headers(), r#"{severity: "high", size: 11}"#);
    assert_eq!(ann.take_all("work"), "urgent");
    let json = Fields { content_type: Some(crate::words::short("application/json")), ..Fields::default() };
    ann.send("overtake.routes", CAM, json, r#"{"size": 11}"#);
    assert_eq!(ann.take_all("work"), r#"{"size": 11}"#);
}

#[test]
fn its_own_time_to_live_bounds_that_of_the_route() {
    let (broker, mut ann) = routed();
    let high = table(&[("severity", t("high"))]);
    let high = Fields { headers: Some(high.view()), ..Fields::default() };
    ann.send("overtake.routes", CAM, Fields { expiration: Some(crate::words::short("50")), ..high }, "short");
    ann.send("overtake.routes", CAM, high, "long");
    ann.route("overtake.routes", CAM, "for ever");
    assert_eq!(broker.waiting("$upstream"), "short:0 long:0 for ever:default");
    broker.advance(50);
    assert_eq!(ann.get("$upstream"), "long");
    ann.put_back("long");
    broker.advance(60_000);
    assert_eq!(ann.take_all("$upstream"), "for ever");
}

#[test]
fn what_nobody_gets_is_returned_to_who_wants_it_back() {
    let (broker, mut ann) = routed();
    ann.confirm();
    ann.send_as("overtake.routes", "/elsewhere", "mandatory", Fields::default(), "a");
    assert_eq!(ann.hears(), "returned a: 312 NO_ROUTE · safe 1");
    ann.route("overtake.routes", "/elsewhere", "b");
    assert_eq!(ann.hears(), "safe 2");
    ann.send_as("overtake.routes", CAM, "mandatory", Fields::default(), "c");
    assert_eq!(ann.hears(), "safe 3");
    let seen = wait(broker.engine().routes()).expect("there");
    assert_eq!((seen.published, seen.unrouted), (3, 2));
}

#[test]
fn a_transaction_goes_by_routes_as_a_whole() {
    let (broker, mut ann) = routed();
    ann.begin();
    ann.route("overtake.routes", CAM, "a");
    ann.route("", "work", "b");
    assert_eq!((broker.ready("$upstream"), broker.ready("work")), (0, 0));
    ann.commit();
    assert_eq!((ann.take_all("$upstream"), ann.take_all("work")), ("a".to_owned(), "b".to_owned()));
}

#[test]
fn the_exchange_of_routes_is_there_and_belongs_to_the_broker() {
    let told = "403 ACCESS_REFUSED - operation not permitted on overtake.routes";
    let (_broker, mut ann) = routed();
    ann.exchange("x", "topic", &[]);
    ann.exchange_as("overtake.routes", "topic", "passive", &[]);
    assert_eq!(ann.refused(|ann| ann.exchange("overtake.routes", "topic", &[])), told);
    assert_eq!(ann.refused(|ann| ann.delete_exchange("overtake.routes", "")), told);
    assert_eq!(ann.refused(|ann| ann.bind("work", "overtake.routes", "#", &[])), told);
    assert_eq!(ann.refused(|ann| ann.unbind("work", "overtake.routes", "#", &[])), told);
    assert_eq!(ann.refused(|ann| ann.bind_exchange("overtake.routes", "x", "#")), told);
    assert_eq!(
        ann.refused(|ann| ann.exchange("overtake.mine", "topic", &[])),
        "403 ACCESS_REFUSED - exchange name 'overtake.mine' contains reserved prefix 'overtake.*'"
    );
}
