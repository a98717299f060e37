//! Messages in: content, confirms, returns, refusals.

use overtake_amqp::connection::{Ask, Refused};
use overtake_amqp::method::{basic, confirm, connection};
use overtake_amqp::{FrameKind, FrameWriter};
use overtake_lane::Refusal;
use overtake_properties::Short;

use crate::peer::{Peer, text};

fn confirming() -> Peer {
    let mut peer = Peer::open();
    peer.say(1, confirm::Select { no_wait: false });
    assert_eq!(peer.hears(), ["1 ConfirmSelectOk(SelectOk)"]);
    peer
}

#[test]
fn a_message_is_asked_for_when_it_is_whole() {
    let mut peer = Peer::open();
    let body = vec![b'x'; 10_000];
    peer.publish(1, "q", false, &body);
    peer.publish(1, "q", false, b"");
    let publishes = peer.publishes();
    let bodies: Vec<usize> = publishes.iter().map(|(_, publish)| publish.body.len()).collect();
    assert_eq!(bodies, [10_000, 0]);
    let (_, first) = &publishes[0];
    assert_eq!((&first.exchange[..], &first.routing_key[..], first.mandatory), (&b""[..], &b"q"[..], false));
    assert_eq!(first.properties.view().priority(), Some(7));
    assert_eq!(peer.hears(), [""; 0]);
}

#[test]
fn what_is_safe_is_confirmed_with_as_few_words_as_can_be() {
    let mut peer = confirming();
    for _ in 0..5 {
        peer.publish(1, "q", false, b"hi");
    }
    let tokens: Vec<_> = peer.publishes().into_iter().map(|(token, _)| token).collect();
    peer.connection.published(tokens[0], Ok(1));
    assert_eq!(peer.hears(), ["1 BasicAck(Ack { delivery_tag: 1, multiple: false })"]);
    peer.connection.published(tokens[1], Ok(1));
    peer.connection.published(tokens[2], Ok(0));
    peer.connection.published(tokens[3], Err(Refusal::QueueFull.into()));
    peer.connection.published(tokens[4], Ok(1));
    assert_eq!(
        peer.hears(),
        [
            "1 BasicAck(Ack { delivery_tag: 3, multiple: true })",
            "1 BasicNack(Nack { delivery_tag: 4, multiple: false, requeue: false })",
            "1 BasicAck(Ack { delivery_tag: 5, multiple: false })",
        ]
    );
}

#[test]
fn a_mandatory_message_that_no_queue_gets_is_returned_before_it_is_confirmed() {
    let mut peer = confirming();
    peer.publish(1, "nowhere", true, b"hi");
    let token = peer.token();
    peer.connection.published(token, Err(Refusal::Unroutable.into()));
    let hears = peer.hears();
    assert!(
        hears[0].starts_with("1 BasicReturn(Return { reply_code: 312, reply_text: \"NO_ROUTE\""),
        "{hears:?}"
    );
    assert_eq!(
        hears[1..],
        ["1 header 2 priority Some(7)", "1 body hi", "1 BasicAck(Ack { delivery_tag: 1, multiple: false })"]
    );
}

#[test]
fn an_exchange_that_is_not_there_costs_the_channel() {
    let mut peer = confirming();
    for _ in 0..2 {
        peer.publish(1, "q", false, b"hi");
    }
    let tokens: Vec<_> = peer.publishes().into_iter().map(|(token, _)| token).collect();
    peer.connection.published(tokens[0], Err(Refusal::NoSuchExchange.into()));
    let hears = peer.hears();
    assert!(
        hears.len() == 1
            && hears[0].contains("reply_code: 404")
            && hears[0].contains("class_id: 60, method_id: 40")
    );
    peer.connection.published(tokens[1], Ok(1));
    peer.publish(1, "q", false, b"still on its way");
    assert_eq!((peer.hears(), peer.asks()), (vec![], vec![]), "nothing counts until the client agrees");
}

#[test]
fn content_comes_in_its_order() {
    let publish = basic::Publish {
        ticket: 0,
        exchange: Short::literal(""),
        routing_key: Short::literal("q"),
        mandatory: false,
        immediate: false,
    };
    let header = b"\x00\x3c\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00";
    let check = |frames: &[(FrameKind, &[u8])], says: &str| {
        let mut peer = Peer::open();
        peer.say(1, publish);
        for (kind, payload) in frames {
            let mut bytes = vec![*kind as u8, 0, 1];
            bytes.extend_from_slice(&(payload.len() as u32).to_be_bytes());
            bytes.extend_from_slice(payload);
            bytes.push(0xce);
            peer.bytes(&bytes);
        }
        let hears = peer.hears();
        assert!(hears.len() == 1 && hears[0].contains(says), "{hears:?}");
    };
    check(&[(FrameKind::Body, b"hi")], "UNEXPECTED_FRAME - expected content header");
    check(
        &[(FrameKind::Header, header), (FrameKind::Header, header)],
        "UNEXPECTED_FRAME - expected content body",
    );
    check(&[(FrameKind::Header, header), (FrameKind::Body, b"three")], "FRAME_ERROR - the body is longer");
    let mut ack = Vec::new();
    FrameWriter::new(&mut ack, 0).method(1, basic::Ack { delivery_tag: 1, multiple: false });
    check(
        &[(FrameKind::Method, &ack[7..ack.len() - 1])],
        "UNEXPECTED_FRAME - expected content, got a method",
    );
    let huge = b"\x00\x3c\x00\x00\x00\x00\x00\xff\x00\x00\x00\x00\x00\x00";
    check(&[(FrameKind::Header, huge)], "PRECONDITION_FAILED - message size");
    let mut peer = Peer::open();
    peer.say(1, basic::Publish { immediate: true, ..publish });
    assert!(peer.hears()[0].contains("NOT_IMPLEMENTED - immediate=true"));
}

#[test]
fn what_comes_back_is_told_before_what_was_asked_later() {
    let mut peer = confirming();
    peer.publish(1, "q", true, b"to nobody");
    let (token, _) = peer.publishes().remove(0);
    peer.say(1, basic::Qos { prefetch_size: 0, prefetch_count: 5, global: false });
    peer.say(1, basic::Get { ticket: 0, queue: text("q"), no_ack: false });
    assert_eq!((peer.hears(), peer.asks()), (vec![], vec![]), "both wait");
    peer.connection.published(token, Ok(0));
    peer.bytes(&[]);
    let hears = peer.hears();
    assert!(
        hears[0].starts_with("1 BasicReturn") && hears.contains(&"1 BasicQosOk(QosOk)".to_owned()),
        "{hears:?}"
    );
    assert_eq!(peer.asks().len(), 1, "the get is asked now");
}

#[test]
fn the_end_waits_for_what_was_published() {
    let mut peer = confirming();
    peer.publish(1, "q", false, b"the last words");
    let (token, _) = peer.publishes().remove(0);
    peer.say(0, connection::Close { reply_code: 200, reply_text: text("bye"), class_id: 0, method_id: 0 });
    assert_eq!(peer.hears(), Vec::<String>::new());
    peer.connection.published(token, Ok(1));
    peer.bytes(&[]);
    assert_eq!(peer.hears().last().map(String::as_str), Some("0 ConnectionCloseOk(CloseOk)"));
}

#[test]
fn a_publisher_that_is_far_ahead_of_its_confirms_is_not_read() {
    let mut peer = Peer::open();
    let body = vec![b'x'; 1 << 20];
    let mut tokens = Vec::new();
    while peer.connection.wants_bytes() {
        peer.publish(1, "q", false, &body);
        let asks = peer.asks();
        let [Ask::Publish { token, .. }] = &asks[..] else { panic!("{asks:?}") };
        tokens.push(*token);
    }
    assert_eq!(tokens.len(), 8);
    peer.connection.published(tokens[0], Ok(1));
    assert!(peer.connection.wants_bytes());
    peer.connection.published(tokens[1], Err(Refused::Declined(Refusal::Unroutable)));
    peer.publish(1, "q", false, &body);
    assert!(peer.connection.wants_bytes());
}

#[test]
fn a_client_that_is_not_read_is_not_missed_and_one_that_waits_too_long_is_told_why() {
    let mut peer = Peer::open();
    let rest = peer.begin_publish(1, "q", &[b'x'; 5_000]);
    peer.bytes(&rest[..4_096]);
    assert!(peer.connection.held_bytes() >= 4_000);
    peer.connection.pause(true);
    assert!(!peer.connection.wants_bytes());
    for _ in 0..10 {
        peer.now = peer.now.after(60_000);
        peer.connection.tick(peer.now);
    }
    assert!(!peer.connection.is_over(), "its heartbeats are not read");
    peer.connection.exhaust("no memory");
    let said = peer.hears();
    assert!(said.iter().any(|said| said.contains("RESOURCE_ERROR - no memory")), "{said:?}");
    assert_eq!(peer.connection.held_bytes(), 0);
}
