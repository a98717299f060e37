//! Rights: what is done takes which, asked for each thing that is done, in RabbitMQ's words when it is refused.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use overtake_amqp_session::Rights;
use overtake_engine::rights::Need;
use overtake_engine::{Engine, RouteSet};
use overtake_properties::{Fields, Value};
use overtake_routes::Manifest;

use crate::broker::{Broker, MODERN, wait};
use crate::client::Client;
use crate::words::{short, t};

/// The user ann, and what she may do: `configure queue q`, one a line.
#[derive(Debug, Default)]
struct Ann {
    version: AtomicU64,
    may: Mutex<Vec<String>>,
    impersonates: AtomicBool,
    asked: AtomicU64,
}

impl Ann {
    fn may(&self, rights: &str) {
        *self.may.lock().expect("nobody panics") = rights.split(", ").map(str::to_owned).collect();
        self.version.fetch_add(1, Ordering::Relaxed);
    }
}

impl Rights for Ann {
    fn user(&self) -> &str {
        "ann"
    }

    fn version(&self) -> u64 {
        self.version.load(Ordering::Relaxed)
    }

    fn may_impersonate(&self) -> bool {
        self.impersonates.load(Ordering::Relaxed)
    }

    fn check(&self, vhost: &str, Need { right, to }: Need<'_>) -> Result<(), String> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let need = format!("{right} {} {}", to.kind(), to.name());
        // What tests ask to know that nothing more comes.
        let is_known =
            need == "configure exchange none" || self.may.lock().expect("nobody panics").contains(&need);
        is_known.then_some(()).ok_or_else(|| format!("{need} in '{vhost}' refused"))
    }
}

/// A broker where guest made `q`, `x` and `y`, and ann on a connection.
fn world() -> (Broker, Client, Client, Arc<Ann>) {
    let mut broker = Broker::new();
    let mut guest = broker.connect();
    guest.declare("q", &[]);
    guest.exchange("x", "fanout", &[]);
    guest.exchange("y", "fanout", &[]);
    let rights = Arc::new(Ann::default());
    let mut ann = broker.accept().with_rights(Arc::clone(&rights) as _);
    ann.log_in("/", MODERN);
    (broker, guest, ann, rights)
}

/// What ann does takes these rights and no others: without each of them it is refused.
fn check(takes: &str, does: impl Fn(&mut Client)) {
    let (_broker, _guest, mut ann, rights) = world();
    rights.may(takes);
    does(&mut ann);
    assert_eq!(ann.hears(), "", "{takes}");
    for missing in takes.split(", ") {
        let (_broker, _guest, mut ann, rights) = world();
        rights.may(&takes.split(", ").filter(|right| *right != missing).collect::<Vec<_>>().join(", "));
        assert_eq!(ann.refused(&does), format!("403 ACCESS_REFUSED - {missing} in '/' refused"));
    }
}

#[test]
fn an_impersonator_names_another_user() {
    let (_broker, _guest, mut ann, rights) = world();
    rights.may("write exchange , read queue q");
    let fields = Fields { user_id: Some(short("eve")), ..Fields::default() };
    let told = ann.refused(|ann| ann.send("", "q", fields, "a"));
    assert_eq!(
        told,
        "406 PRECONDITION_FAILED - user_id property set to 'eve' but authenticated user was 'ann'"
    );
    rights.impersonates.store(true, Ordering::Relaxed);
    ann.send("", "q", fields, "b");
    assert_eq!(ann.get("q"), "b");
    rights.impersonates.store(false, Ordering::Relaxed);
    let again = ann.refused(|ann| ann.send("", "q", fields, "c"));
    assert_eq!(again, told, "the tag counts for each message");
}

/// Routes send what they know the publisher of into `cam`, `door` and `who`.
fn routed_by_sender(broker: &Broker) {
    let manifest = r#"{"routes": {
        "cam": "FROM /* WHERE $connectionModuleId = 'cam' INTO Endpoint('cam')",
        "ann": "FROM /* WHERE $connectionDeviceId = 'ann' INTO Endpoint('ann')",
        "eve": "FROM /* WHERE $connectionDeviceId = 'eve' INTO Endpoint('eve')"}}"#;
    let manifest = Manifest::from_json(manifest).expect("it holds");
    wait(broker.engine().set_routes(Arc::new(RouteSet::new(manifest)))).expect("they are set");
}

#[test]
fn who_published_is_the_user_and_no_path_or_header_says_otherwise() {
    let (broker, mut guest, mut ann, rights) = world();
    routed_by_sender(&broker);
    rights.may("write exchange overtake.routes");
    let headers = [("connectionDeviceId", t("eve")), ("connectionModuleId", t("cam"))];
    ann.send_with("overtake.routes", "/messages/modules/cam", &headers, "a");
    assert_eq!(
        (guest.take_all("ann"), guest.take_all("cam"), guest.take_all("eve")),
        ("a".into(), "".into(), "".into())
    );
    rights.impersonates.store(true, Ordering::Relaxed);
    let fields = Fields { user_id: Some(short("eve")), ..Fields::default() };
    ann.send("overtake.routes", "/messages/modules/cam", fields, "b");
    assert_eq!(
        (guest.take_all("ann"), guest.take_all("cam"), guest.take_all("eve")),
        ("".into(), "b".into(), "b".into())
    );
}

#[test]
fn to_declare_and_to_delete_takes_configure() {
    check("configure queue own", |ann| drop(ann.declare("own", &[])));
    check("configure queue q", |ann| drop(ann.delete("q", "")));
    check("configure exchange own", |ann| ann.exchange("own", "topic", &[]));
    check("configure exchange x", |ann| ann.delete_exchange("x", ""));
}

#[test]
fn a_queue_with_a_dead_letter_exchange_also_takes_read_and_write_that() {
    let takes = "configure queue own, read queue own, write exchange x";
    check(takes, |ann| drop(ann.declare("own", &[("x-dead-letter-exchange", Value::String(b"x"))])));
}

#[test]
fn an_exchange_with_an_alternate_also_takes_read_and_write_that() {
    let takes = "configure exchange own, read exchange own, write exchange x";
    check(takes, |ann| ann.exchange("own", "fanout", &[("alternate-exchange", Value::String(b"x"))]));
}

#[test]
fn to_bind_takes_write_where_it_leads_and_read_where_it_comes_from() {
    check("write queue q, read exchange x", |ann| ann.bind("q", "x", "", &[]));
    check("write queue q, read exchange x", |ann| ann.unbind("q", "x", "", &[]));
    check("write exchange y, read exchange x", |ann| ann.bind_exchange("y", "x", ""));
}

#[test]
fn to_publish_takes_write_the_exchange() {
    check("write exchange x", |ann| ann.route("x", "", "a"));
    check("write exchange ", |ann| ann.publish("q", "a"));
}

#[test]
fn to_take_messages_takes_read() {
    check("read queue q", |ann| ann.consume("q"));
    check("read queue q", |ann| drop(ann.get("q")));
    check("read queue q", |ann| drop(ann.purge("q")));
}

#[test]
fn a_transaction_takes_what_its_publishes_take() {
    check("write exchange x", |ann| {
        ann.begin();
        ann.route("x", "", "a");
        ann.commit();
    });
}

#[test]
fn to_see_whether_something_is_there_takes_nothing() {
    let (_broker, _guest, mut ann, _) = world();
    assert_eq!(ann.declare_as("q", "passive", &[]), "q 0 0");
    ann.exchange_as("x", "", "passive", &[]);
}

/// An order to purge `q` that wants its answer there.
fn order(ann: &mut Client, reply_to: &str) {
    let fields = Fields { reply_to: Some(short(reply_to)), ..Fields::default() };
    ann.send("overtake.control", "remove", fields, r#"{"queue": "q", "all": true}"#);
}

#[test]
fn an_order_takes_what_its_answer_takes_as_a_publish() {
    check("write exchange , read queue q", |ann| order(ann, "q"));
    check("write exchange , read queue q", |ann| order(ann, "amq.rabbitmq.reply-to.somebody-else"));
    check("read queue q", |ann| ann.route("overtake.control", "remove", r#"{"queue": "q", "all": true}"#));
}

#[test]
fn an_order_that_is_answered_to_its_channel_takes_no_more_than_the_order() {
    let does = |ann: &mut Client| {
        ann.consume_as("c", "amq.rabbitmq.reply-to", "no-ack", &[]);
        order(ann, "amq.rabbitmq.reply-to");
    };
    let (_broker, _guest, mut ann, rights) = world();
    rights.may("read queue q");
    does(&mut ann);
    let mut heard = ann.hears();
    while heard.is_empty() {
        heard = ann.hears();
    }
    assert_eq!(heard, r#"{"count":0}"#);
    let (_broker, _guest, mut ann, _rights) = world();
    assert_eq!(ann.refused(does), "403 ACCESS_REFUSED - read queue q in '/' refused");
}

#[test]
fn an_order_without_the_right_to_its_answer_changes_nothing() {
    let (broker, mut guest, mut ann, rights) = world();
    guest.publish("q", "a");
    guest.hears();
    rights.may("read queue q");
    let refused = ann.refused(|ann| order(ann, "q"));
    assert_eq!(refused, "403 ACCESS_REFUSED - write exchange  in '/' refused");
    assert_eq!(broker.waiting("q"), "a:0");
}

#[test]
fn replies_take_no_right_to_their_queue() {
    let (_broker, _guest, mut ann, rights) = world();
    rights.may("");
    ann.consume_as("c", "amq.rabbitmq.reply-to", "no-ack", &[]);
}

#[test]
fn rights_that_are_taken_away_are_gone_on_an_open_connection() {
    let (_broker, _guest, mut ann, rights) = world();
    rights.may("write exchange x");
    ann.route("x", "", "a");
    ann.route("x", "", "b");
    rights.may("");
    let refused = ann.refused(|ann| ann.route("x", "", "c"));
    assert_eq!(refused, "403 ACCESS_REFUSED - write exchange x in '/' refused");
}

#[test]
fn a_transaction_is_refused_when_a_right_is_gone_before_its_commit() {
    let (broker, _guest, mut ann, rights) = world();
    rights.may("write exchange ");
    ann.begin();
    ann.publish("q", "a");
    rights.may("");
    let refused = ann.refused(Client::commit);
    assert_eq!(refused, "403 ACCESS_REFUSED - write exchange  in '/' refused");
    assert_eq!(broker.waiting("q"), "");
}

#[test]
fn a_consumer_that_may_not_read_any_more_is_cancelled_and_keeps_what_it_holds() {
    for how in ["", "no-ack"] {
        let (broker, mut guest, mut ann, rights) = world();
        guest.publish("q", "a");
        rights.may("read queue q, configure queue own, read queue own");
        ann.declare("own", &[]);
        ann.consume_as("c", "q", how, &[]);
        ann.consume_as("d", "own", how, &[]);
        assert_eq!(ann.hears(), "a");
        rights.may("read queue own");
        ann.look_at_rights();
        guest.publish("q", "b");
        guest.publish("own", "c");
        assert_eq!(ann.hears(), "cancelled c · d=c");
        if how.is_empty() {
            assert_eq!(broker.waiting("q"), "a:0(leased) b:0");
            ann.ack("a");
            ann.hears();
        }
        assert_eq!(broker.waiting("q"), "b:0");
        assert_eq!(ann.refused(|ann| ann.consume("q")), "403 ACCESS_REFUSED - read queue q in '/' refused");
    }
}

#[test]
fn a_consumer_of_replies_goes_on_whatever_rights_are_taken_away() {
    let (_broker, _guest, mut ann, rights) = world();
    rights.may("read queue q");
    ann.consume_as("c", "amq.rabbitmq.reply-to", "no-ack", &[]);
    rights.may("");
    ann.look_at_rights();
    assert_eq!(ann.hears(), "");
}

#[test]
fn what_was_written_before_is_not_asked_again() {
    let (_broker, _guest, mut ann, rights) = world();
    rights.may("write exchange x");
    for _ in 0..100 {
        ann.route("x", "", "a");
    }
    assert_eq!(rights.asked.load(Ordering::Relaxed), 1);
}

#[test]
fn who_is_not_who_it_says_to_be_does_not_come_in() {
    let mut broker = Broker::new();
    let mut ann = broker.accept();
    let refused = ann.refused(|ann| ann.greet("PLAIN", b"\0guest\0wrong", MODERN));
    assert_eq!(
        refused,
        "connection 403 ACCESS_REFUSED - login refused (PLAIN); the log of the broker says why"
    );
}
