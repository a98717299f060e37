//! Client and server against each other: whatever the network does to the bytes, both mean the same.

use std::collections::BTreeSet;

use overtake_amqp::client::{ClientOptions, Credentials, Event};
use overtake_amqp::connection::Options;
use overtake_amqp::method::{basic, confirm, queue};
use overtake_lane::Outcome;
use overtake_properties::{Fields, Short, ShortText};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::pair::Pair;
use crate::server::{line, options, text};

/// A publish of the property below.
#[derive(Clone, Debug)]
struct Sent {
    key: &'static str,
    mandatory: bool,
    body_len: usize,
}

fn sent() -> impl Strategy<Value = Sent> {
    let key = prop::sample::select(vec!["there", "full", "nowhere"]);
    let body_len = prop_oneof![Just(0), 1..20_usize, Just(4_088), 4_000..10_000_usize];
    (key, any::<bool>(), body_len).prop_map(|(key, mandatory, body_len)| Sent { key, mandatory, body_len })
}

/// A connection with a channel that confirms, and the queues `there`, which is consumed from, and `full`.
fn opened(cuts: Vec<usize>) -> Pair {
    let client = ClientOptions { frame_max: 4_096, ..options() };
    let mut pair = Pair::with(cuts, client, Options::default());
    pair.settle();
    assert_eq!(pair.client.open_channel(), Ok(1));
    pair.client.ask(1, confirm::Select { no_wait: false }).expect("open");
    for name in ["there", "full"] {
        let queue = ShortText::new(name).expect("it is short");
        pair.client.ask(1, queue::Declare { queue, ..Default::default() }).expect("open");
    }
    let consume = basic::Consume { queue: text("there"), consumer_tag: text("c"), ..Default::default() };
    pair.client.ask(1, consume).expect("open");
    pair.settle();
    let lines: Vec<String> = pair.take_events().iter().map(line).collect();
    assert_eq!(
        lines,
        [
            "open 2047 4096 60",
            "1 channel.open Done",
            "1 confirm.select Done",
            "1 Queue { name: \"there\", messages: 0, consumers: 0 }",
            "1 Queue { name: \"full\", messages: 0, consumers: 0 }",
            "1 Consuming(\"c\")"
        ]
    );
    pair
}

fn publish(pair: &mut Pair, at: usize, sent: &Sent) -> u64 {
    let id = at.to_string();
    let properties = Fields { message_id: Short::new(id.as_bytes()), ..Fields::default() }.encode();
    let routing_key = Short::literal(sent.key);
    let method = basic::Publish { routing_key, mandatory: sent.mandatory, ..Default::default() };
    let body = vec![at as u8; sent.body_len];
    pair.client.publish(1, method, properties.view(), &body).expect("it is sent").expect("a number")
}

/// What was told of publishes, by their numbers; and the bodies that were delivered.
#[derive(Debug, Default, PartialEq)]
struct Told {
    accepted: BTreeSet<u64>,
    refused: BTreeSet<u64>,
    returned: BTreeSet<u64>,
    delivered: Vec<Vec<u8>>,
}

fn told(events: Vec<Event>) -> Told {
    let mut told = Told::default();
    for event in events {
        match event {
            Event::Confirmed { tags, is_accepted, .. } => {
                for tag in tags {
                    let is_new = if is_accepted { &mut told.accepted } else { &mut told.refused }.insert(tag);
                    assert!(is_new, "{tag} is confirmed twice");
                }
            }
            Event::Returned { tag, code, .. } => {
                let tag = tag.expect("it is known which came back");
                assert!(code == 312 && !told.accepted.contains(&tag), "{tag} comes back after its confirm");
                told.returned.insert(tag);
            }
            Event::Delivered { message, .. } => told.delivered.push(message.body.to_vec()),
            event => panic!("{event:?}"),
        }
    }
    told
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn every_publish_is_answered_as_it_went_however_the_bytes_are_cut(
        cuts in vec(prop_oneof![1..20_usize, 1..10_000_usize], 1..8),
        all in vec((sent(), 0..4_usize), 0..24),
    ) {
        let mut pair = opened(cuts);
        let mut expected = Told::default();
        for (at, (sent, steps)) in all.iter().enumerate() {
            let tag = publish(&mut pair, at, sent);
            prop_assert_eq!(tag, at as u64 + 1);
            match sent.key {
                "there" => expected.delivered.push(vec![at as u8; sent.body_len]),
                "nowhere" if sent.mandatory => drop(expected.returned.insert(tag)),
                _ => {}
            }
            if sent.key == "full" { &mut expected.refused } else { &mut expected.accepted }.insert(tag);
            for _ in 0..*steps {
                pair.step();
            }
        }
        pair.settle();
        prop_assert_eq!(told(pair.take_events()), expected);
        prop_assert_eq!(pair.client.unconfirmed(1), 0);
    }
}

#[test]
fn what_is_settled_reaches_the_broker() {
    let mut pair = opened(vec![7, 1, 300]);
    let sent = Sent { key: "there", mandatory: true, body_len: 5 };
    (0..4).for_each(|at| assert_eq!(publish(&mut pair, at, &sent), at as u64 + 1));
    pair.settle();
    assert_eq!(told(pair.take_events()).delivered.len(), 4);
    pair.client.ask(1, basic::Ack { delivery_tag: 2, multiple: true }).expect("open");
    pair.client.ask(1, basic::Nack { delivery_tag: 3, multiple: false, requeue: true }).expect("open");
    pair.client.ask(1, basic::Reject { delivery_tag: 4, requeue: false }).expect("open");
    pair.settle();
    let back = Outcome::Nack { delay_ms: None };
    assert_eq!(pair.broker.settled, [(1, Outcome::Ack), (2, Outcome::Ack), (3, back), (4, Outcome::Reject)]);
}

#[test]
fn a_soft_error_costs_one_channel_and_a_close_is_agreed_on() {
    let mut pair = opened(vec![3]);
    assert_eq!(pair.client.open_channel(), Ok(2));
    let look = queue::Declare { queue: text("missing"), passive: true, ..Default::default() };
    pair.client.ask(2, look).expect("open");
    pair.settle();
    let lines: Vec<String> = pair.take_events().iter().map(line).collect();
    assert_eq!(lines[0], "2 channel.open Done");
    assert!(lines[1].starts_with("ChannelClosed { channel: 2, code: 404, text: \"NOT_FOUND"), "{lines:?}");
    pair.client.close_channel(1, "done").expect("it is open");
    pair.settle();
    assert_eq!(line(&pair.take_events()[0]), "1 channel.close Done");
    pair.client.close(overtake_lane::Time(1_000), "bye");
    pair.settle();
    assert_eq!(line(&pair.take_events()[0]), "closed: it was closed as asked");
    assert!(pair.client.is_over() && pair.server.is_over());
}

#[test]
fn a_wrong_password_is_told_as_such() {
    let credentials = Credentials::Password { user: "ann".into(), password: "guess".into() };
    let mut pair = Pair::with(vec![5], ClientOptions { credentials, ..options() }, Options::default());
    pair.settle();
    let lines: Vec<String> = pair.take_events().iter().map(line).collect();
    assert!(
        lines.len() == 1 && lines[0].starts_with("closed: the server refused the login: ACCESS_REFUSED"),
        "{lines:?}"
    );
    assert!(pair.client.is_over() && pair.server.is_over());
}

#[test]
fn a_certificate_is_taken_for_a_login() {
    let client = ClientOptions { credentials: Credentials::Certificate, ..options() };
    let mut pair = Pair::with(vec![64], client, Options { has_certificate: false, ..Options::default() });
    pair.settle();
    assert!(line(&pair.take_events()[0]).ends_with("only with: PLAIN AMQPLAIN"));
}

#[test]
fn a_block_is_told_and_lifted() {
    let mut pair = Pair::new(vec![9]);
    pair.settle();
    let events = pair.take_events();
    let [Event::Opened(terms)] = &events[..] else { panic!("{events:?}") };
    assert!(terms.has_capability("publisher_confirms") && !terms.has_capability("telepathy"));
    pair.server.block(Some("low on disk"));
    pair.settle();
    assert!(pair.client.is_blocked());
    pair.server.block(None);
    pair.settle();
    assert!(!pair.client.is_blocked());
    let lines: Vec<String> = pair.take_events().iter().map(line).collect();
    assert_eq!(lines, ["Blocked { reason: \"low on disk\" }", "Unblocked"]);
}

#[test]
fn wherever_the_network_breaks_the_end_is_told_once_and_last() {
    let mut last = String::new();
    for steps in 0..60 {
        let mut pair = Pair::new(vec![16]);
        for _ in 0..steps {
            pair.step();
            if pair.client.is_open() && pair.client.open_channel() == Ok(1) {
                pair.client
                    .ask(1, queue::Declare { queue: text("there"), ..Default::default() })
                    .expect("open");
            }
        }
        pair.client.hung_up();
        pair.settle();
        let mut events = pair.take_events();
        let closed = events.pop().map(|event| line(&event)).expect("it is told");
        assert!(closed.starts_with("closed: the server hung up"), "{closed}");
        assert!(events.iter().all(|event| !matches!(event, Event::Closed(_))), "{events:?}");
        last = closed;
    }
    assert_eq!(last, "closed: the server hung up", "it was open in the end");
}
