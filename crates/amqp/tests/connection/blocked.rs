//! The broker refuses publishes: who is nacked, what waits, and that acknowledgements are taken.

use overtake_amqp::connection::{Answer, Ask, ConnectionState, Operation};
use overtake_amqp::method::{basic, channel, confirm, connection};
use overtake_lane::{ConsumerId, Outcome, Refusal};

use crate::peer::{Peer, receipt, text};

/// A client of a broker that refuses publishes, with a message to acknowledge on channel 1.
fn blocked_consumer() -> Peer {
    let mut peer = Peer::open();
    peer.consume(1, "c", false);
    peer.consuming(1);
    peer.deliver(1, 5);
    peer.connection.block(Some("low on disk"));
    let hears = peer.hears();
    assert_eq!(
        hears.last().map(String::as_str),
        Some("0 ConnectionBlocked(Blocked { reason: \"low on disk\" })")
    );
    peer
}

fn acknowledge(peer: &mut Peer) {
    peer.say(1, basic::Ack { delivery_tag: 1, multiple: false });
    let settle = Ask::Settle { receipts: vec![receipt(5)], outcome: Outcome::Ack };
    assert_eq!(peer.asks(), [settle]);
}

#[test]
fn each_publish_with_confirms_is_nacked_and_acknowledgements_are_taken() {
    let mut peer = blocked_consumer();
    peer.say(2, channel::Open { out_of_band: text("") });
    peer.say(2, confirm::Select { no_wait: false });
    peer.hears();
    for number in 1..=3 {
        // The method and the header come before the body.
        let body = peer.begin_publish(2, "q", b"hi");
        assert!(peer.connection.wants_bytes());
        peer.bytes(&body);
        let token = peer.token();
        peer.connection.published(token, Err(Refusal::StoreFull.into()));
        let nack = format!("2 BasicNack(Nack {{ delivery_tag: {number}, multiple: false, requeue: false }})");
        assert_eq!(peer.hears(), [nack]);
    }
    assert_eq!(peer.connection.view().state, ConnectionState::Blocked);
    acknowledge(&mut peer);
    peer.connection.block(None);
    assert_eq!(peer.hears(), ["0 ConnectionUnblocked(Unblocked)"]);
    assert_eq!(peer.connection.view().state, ConnectionState::Running);
}

#[test]
fn a_publish_without_confirms_waits_and_acknowledgements_behind_it_do_not() {
    let mut peer = blocked_consumer();
    peer.publish(1, "q", false, b"one");
    peer.publish(1, "q", true, b"two");
    assert_eq!(peer.asks(), []);
    assert!(peer.connection.wants_bytes() && peer.connection.held_bytes() > 0);
    acknowledge(&mut peer);
    peer.connection.block(None);
    peer.publish(1, "q", false, b"three");
    let publishes = peer.publishes();
    let bodies: Vec<_> = publishes.iter().map(|(_, publish)| &publish.body[..]).collect();
    assert_eq!(bodies, [&b"one"[..], b"two", b"three"], "in the order in which they came");
    assert_eq!(peer.connection.held_bytes(), 0);
    peer.hears();
    for (token, _) in publishes {
        peer.connection.published(token, Ok(0));
    }
    assert!(peer.hears()[0].starts_with("1 BasicReturn"), "the mandatory one comes back");
}

#[test]
fn the_end_of_a_channel_or_a_connection_loses_no_publish_that_waits() {
    let mut peer = blocked_consumer();
    peer.publish(1, "q", true, b"one");
    peer.say(1, channel::Close { reply_code: 200, reply_text: text("bye"), class_id: 0, method_id: 0 });
    let asks = peer.asks();
    let [Ask::Do { token, operation, .. }, Ask::Settle { .. }] = &asks[..] else {
        panic!("the consumer leaves, and its message is returned")
    };
    assert_eq!(*operation, Operation::Cancel { consumer: ConsumerId(1) });
    peer.connection.answer(*token, Ok(Answer::Done));
    assert_eq!(peer.hears(), ["1 ChannelCloseOk(CloseOk)"]);
    peer.say(0, connection::Close { reply_code: 200, reply_text: text("bye"), class_id: 0, method_id: 0 });
    assert_eq!(peer.hears(), [""; 0], "the close waits");
    peer.connection.block(None);
    peer.bytes(&[]);
    let token = peer.token();
    peer.connection.published(token, Ok(0));
    peer.bytes(&[]);
    assert_eq!(peer.hears(), ["0 ConnectionUnblocked(Unblocked)", "0 ConnectionCloseOk(CloseOk)"]);
}

#[test]
fn a_connection_that_ends_behind_a_publish_that_waits_holds_no_message() {
    let mut peer = blocked_consumer();
    peer.publish(1, "q", false, b"one");
    peer.say(0, connection::Close { reply_code: 200, reply_text: text("bye"), class_id: 0, method_id: 0 });
    let failed = Outcome::Nack { delay_ms: None };
    let released =
        [Ask::Leave { consumer: ConsumerId(1) }, Ask::Settle { receipts: vec![receipt(5)], outcome: failed }];
    assert_eq!(peer.asks(), released);
    // What the broker sent meanwhile goes back untouched.
    peer.deliver(1, 6);
    let untouched = Ask::Settle { receipts: vec![receipt(6)], outcome: Outcome::Release };
    assert_eq!((peer.hears(), peer.asks()), (vec![], vec![untouched]));
    peer.connection.block(None);
    let token = peer.token();
    peer.connection.published(token, Ok(1));
    peer.bytes(&[]);
    assert_eq!(peer.hears(), ["0 ConnectionUnblocked(Unblocked)", "0 ConnectionCloseOk(CloseOk)"]);
}

#[test]
fn a_client_that_only_publishes_is_not_read_once_much_of_it_waits() {
    let mut peer = Peer::open();
    peer.connection.block(Some("low on disk"));
    let body = vec![b'x'; 100 << 10];
    for _ in 0..5 {
        peer.publish(1, "q", false, &body);
    }
    assert!(!peer.connection.wants_bytes());
    assert!(peer.connection.held_bytes() < 400 << 10, "what came beyond the bound is left where it was read");
    peer.hears();
    peer.connection.block(None);
    peer.bytes(&[]);
    assert_eq!(peer.hears(), ["0 ConnectionUnblocked(Unblocked)"]);
    assert_eq!(peer.publishes().len(), 5);
    assert!(peer.connection.wants_bytes());
}

#[test]
fn a_consumer_is_always_read_and_loses_the_channel_on_which_it_publishes_too_much() {
    let mut peer = blocked_consumer();
    peer.say(2, channel::Open { out_of_band: text("") });
    peer.hears();
    let body = vec![b'x'; 100 << 10];
    for _ in 0..4 {
        peer.publish(2, "q", false, &body);
        assert!(peer.connection.wants_bytes());
    }
    let hears = peer.hears();
    let [close] = &hears[..] else { panic!("{hears:?}") };
    let says = "publishes are refused for now (low on disk), and 307977 bytes of publishes without confirms wait; use confirms";
    assert!(close.starts_with("2 ChannelClose") && close.contains("406") && close.contains(says), "{close}");
    acknowledge(&mut peer);
}

#[test]
fn whoever_comes_while_nothing_is_taken_is_told_so() {
    let mut peer = Peer::new();
    peer.connection.block(Some("low on disk"));
    peer.log_in(&["connection.blocked"]);
    peer.connection.logged_in(true);
    peer.say(0, connection::TuneOk { channel_max: 0, frame_max: 4_096, heartbeat: 0 });
    peer.say(0, connection::Open { virtual_host: text("/"), capabilities: text(""), insist: false });
    peer.hears();
    peer.connection.opened(Ok(()));
    let blocked = "0 ConnectionBlocked(Blocked { reason: \"low on disk\" })";
    assert_eq!(peer.hears(), ["0 ConnectionOpenOk(OpenOk { known_hosts: \"\" })", blocked]);
    peer.connection.block(None);
    assert_eq!(peer.hears(), ["0 ConnectionUnblocked(Unblocked)"]);
}
