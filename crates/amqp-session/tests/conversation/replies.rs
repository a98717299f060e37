//! Direct reply-to: answers that come to the channel that asked, through no queue of its own making.

use overtake_properties::Fields;

use crate::broker::Broker;
use crate::client::Client;
use crate::words::short;

const REPLY_TO: &str = "amq.rabbitmq.reply-to";

/// Asks, on its channel, and wants the answer there.
fn ask(client: &mut Client, body: &str) {
    let fields = Fields { reply_to: Some(short(REPLY_TO)), ..Fields::default() };
    client.send("", "work", fields, body);
}

/// Takes what was asked, and answers it. Tells where to.
fn answer(server: &mut Client, body: &str) -> String {
    assert_eq!(server.get("work"), body);
    server.ack(body);
    let to = server.letter(body).properties.view().reply_to().expect("an answer is wanted");
    let to = to.text().expect("a name").to_owned();
    server.route("", &to, &format!("re-{body}"));
    assert_eq!(server.hears(), "");
    to
}

fn asking() -> (Broker, Client, Client) {
    let mut broker = Broker::new();
    let (mut ann, server) = (broker.connect(), broker.connect());
    ann.declare("work", &[]);
    assert_eq!(ann.consume_as("c", REPLY_TO, "no-ack", &[]), "c");
    (broker, ann, server)
}

#[test]
fn an_answer_comes_to_the_channel_that_asked() {
    let (_broker, mut ann, mut server) = asking();
    ann.on(2).consume_as("c", REPLY_TO, "no-ack", &[]);
    ask(ann.on(1), "one");
    ask(ann.on(2), "two");
    ann.hears();
    let to_one = answer(&mut server, "one");
    let to_two = answer(&mut server, "two");
    assert_eq!(ann.hears(), "re-one · 2:re-two");
    assert!(to_one.starts_with("amq.rabbitmq.reply-to."), "{to_one}");
    assert_ne!(to_one, to_two);
    assert_eq!(ann.letter("re-one").route(), format!("/{to_one}"));
}

#[test]
fn who_asks_without_a_consumer_is_refused() {
    let (_broker, mut ann, _server) = asking();
    let told = ann.on(2).refused(|ann| ask(ann, "one"));
    assert_eq!(told, "406 PRECONDITION_FAILED - fast reply consumer does not exist");
    assert_eq!(ann.fault, (60, 40), "basic.publish");
}

#[test]
fn a_channel_has_one_consumer_of_replies_and_it_does_not_acknowledge() {
    let (_broker, mut ann, _server) = asking();
    let told = ann.refused(|ann| ann.consume_as("d", REPLY_TO, "no-ack", &[]));
    assert_eq!(told, "406 PRECONDITION_FAILED - reply consumer already set");
    assert_eq!(ann.fault, (60, 20), "basic.consume");
    let told = ann.refused(|ann| ann.consume_as("d", REPLY_TO, "", &[]));
    assert_eq!(told, "406 PRECONDITION_FAILED - reply consumer cannot acknowledge");
    ann.consume_as("d", REPLY_TO, "no-ack", &[]);
    assert_eq!(ann.hears(), "", "a channel that was closed begins anew");
}

/// Whoever answers can tell that nobody waits any more.
#[test]
fn an_answer_to_nobody_is_returned() {
    let (broker, mut ann, mut server) = asking();
    ask(&mut ann, "one");
    ann.hears();
    let to = answer(&mut server, "one");
    assert!(broker.has(&to));
    ann.close_channel();
    assert!(!broker.has(&to), "the queue goes with the channel");
    server.send_as("", &to, "mandatory", Fields::default(), "late");
    assert_eq!(server.hears(), "returned late: 312 NO_ROUTE");
}

#[test]
fn a_consumer_of_replies_that_is_cancelled_may_come_again() {
    let (_broker, mut ann, mut server) = asking();
    ann.cancel("c");
    let told = ann.refused(|ann| ask(ann, "one"));
    assert_eq!(told, "406 PRECONDITION_FAILED - fast reply consumer does not exist");
    ann.consume_as("c", REPLY_TO, "no-ack", &[]);
    ask(&mut ann, "two");
    ann.hears();
    answer(&mut server, "two");
    assert_eq!(ann.hears(), "re-two");
}

/// As RabbitMQ's clients do before they answer.
#[test]
fn whoever_answers_may_look_whether_somebody_waits() {
    let (_broker, mut ann, mut server) = asking();
    ask(&mut ann, "one");
    ann.hears();
    let to = answer(&mut server, "one");
    assert_eq!(server.declare_as(&to, "passive", &[]), format!("{to} 0 1"));
    assert_eq!(server.declare_as(&to, "", &[]), format!("{to} 0 1"), "it only looks");
    assert_eq!(ann.declare_as(REPLY_TO, "passive", &[]), format!("{REPLY_TO} 0 1"));
    drop(ann);
    let told = server.refused(|server| server.declare_as(&to, "passive", &[]));
    assert_eq!(told, format!("404 NOT_FOUND - no queue '{to}' in vhost '/'"));
}

/// A transaction answers as anybody does.
#[test]
fn a_question_in_a_transaction_is_asked_when_it_is_committed() {
    let (_broker, mut ann, mut server) = asking();
    ann.begin();
    ask(&mut ann, "one");
    assert_eq!(server.get("work"), "empty");
    ann.commit();
    answer(&mut server, "one");
    assert_eq!(ann.hears(), "re-one");
}
