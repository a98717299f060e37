//! Requests and their answers, messages in.

use overtake_amqp::client::ClientOptions;
use overtake_amqp::method::{basic, channel, exchange, queue};
use overtake_amqp::{FrameKind, FrameWriter};
use overtake_properties::Short;

use crate::server::{Peer, content, options, text};

fn deliver(delivery_tag: u64) -> basic::Deliver<'static> {
    basic::Deliver {
        consumer_tag: Short::literal("c"),
        delivery_tag,
        redelivered: delivery_tag == 2,
        exchange: Short::literal("x"),
        routing_key: Short::literal("k"),
    }
}

#[test]
fn each_request_has_its_answer() {
    let mut peer = Peer::open();
    let look = queue::Declare { queue: text("q"), passive: true, ..queue::Declare::default() };
    peer.client.ask(1, look).expect("the channel is open");
    peer.client
        .ask(1, exchange::Declare { exchange: text("x"), passive: true, ..Default::default() })
        .expect("open");
    peer.client
        .ask(1, queue::Bind { queue: text("q"), exchange: text("x"), ..Default::default() })
        .expect("open");
    peer.client.ask(1, basic::Qos { prefetch_count: 9, ..Default::default() }).expect("open");
    peer.client.ask(1, basic::Consume { queue: text("q"), ..Default::default() }).expect("open");
    peer.client.ask(1, basic::Cancel { consumer_tag: text("c"), no_wait: false }).expect("open");
    peer.client.ask(1, queue::Purge { queue: text("q"), no_wait: false, ticket: 0 }).expect("open");
    assert_eq!(peer.hears().len(), 7, "they do not wait for each other");
    peer.say(1, queue::DeclareOk { queue: text("q"), message_count: 3, consumer_count: 1 });
    peer.say(1, exchange::DeclareOk {});
    peer.say(1, queue::BindOk {});
    // A queue tells of its consumer when it gets to it.
    peer.say(1, basic::QosOk {});
    peer.say(1, basic::CancelOk { consumer_tag: text("c") });
    peer.say(1, basic::ConsumeOk { consumer_tag: text("c") });
    peer.say(1, queue::PurgeOk { message_count: 3 });
    assert_eq!(
        peer.events(),
        [
            "1 Queue { name: \"q\", messages: 3, consumers: 1 }",
            "1 exchange.declare Done",
            "1 queue.bind Done",
            "1 basic.qos Done",
            "1 Cancelled(\"c\")",
            "1 Consuming(\"c\")",
            "1 Count(3)"
        ]
    );
    peer.say(1, queue::PurgeOk { message_count: 3 });
    assert!(peer.events()[0].contains("503 COMMAND_INVALID - queue.purge-ok answers nothing"));
}

#[test]
fn whoever_does_not_wait_is_not_answered() {
    let mut peer = Peer::open();
    peer.client.ask(1, queue::Purge { queue: text("q"), no_wait: true, ticket: 0 }).expect("open");
    peer.client.ask(1, basic::Ack { delivery_tag: 1, multiple: false }).expect("open");
    peer.say(1, queue::PurgeOk { message_count: 3 });
    assert!(peer.events()[0].contains("answers nothing that was asked"));
}

#[test]
fn deliveries_may_dribble() {
    let body = "x".repeat(10_000);
    let frames = [content(deliver(1), b""), content(deliver(2), body.as_bytes()), content(deliver(3), b"hi")];
    let mut peer = Peer::open();
    frames.concat().chunks(1).for_each(|byte| peer.bytes(byte));
    assert_eq!(peer.events(), ["1 c 1 ".to_owned(), format!("1 c 2 again {body}"), "1 c 3 hi".to_owned()]);
    peer.client.ask(1, basic::Ack { delivery_tag: 3, multiple: true }).expect("open");
    peer.client.ask(1, basic::Nack { delivery_tag: 4, multiple: false, requeue: true }).expect("open");
    assert_eq!(peer.hears()[0], "1 BasicAck(Ack { delivery_tag: 3, multiple: true })");
}

#[test]
fn one_message_is_got_or_there_is_none() {
    let mut peer = Peer::open();
    for _ in 0..2 {
        peer.client.ask(1, basic::Get { queue: text("q"), ..Default::default() }).expect("open");
    }
    let ok = basic::GetOk { delivery_tag: 7, message_count: 4, ..basic::GetOk::default() };
    peer.bytes(&content(ok, b"hi"));
    peer.say(1, basic::GetEmpty { cluster_id: text("") });
    assert_eq!(peer.events(), ["1 got 7 hi of 4", "1 Empty"]);
    peer.bytes(&content(ok, b"hi"));
    assert!(peer.events()[0].contains("basic.get-ok answers nothing"));
}

#[test]
fn a_consumer_that_the_server_ends_is_told() {
    let mut peer = Peer::open();
    peer.say(1, basic::Cancel { consumer_tag: text("c"), no_wait: true });
    assert_eq!(peer.events(), ["ConsumerCancelled { channel: 1, consumer_tag: \"c\" }"]);
    assert_eq!(peer.hears(), [""; 0]);
    peer.say(1, basic::Cancel { consumer_tag: text("c"), no_wait: false });
    assert_eq!(peer.hears(), ["1 BasicCancelOk(CancelOk { consumer_tag: \"c\" })"]);
}

#[test]
fn a_body_that_is_too_long_costs_its_channel() {
    let mut peer = Peer::open_with(ClientOptions { body_max: 9, ..options() });
    peer.bytes(&content(deliver(1), b"123456789"));
    peer.bytes(&content(deliver(2), b"1234567890"));
    peer.bytes(&content(deliver(3), b"1"));
    let events = peer.events();
    assert_eq!(events[0], "1 c 1 123456789");
    assert!(events[1].contains("message size 10 is larger than max size 9"), "{events:?}");
    assert_eq!((events.len(), peer.client.is_open()), (2, true));
    assert!(peer.hears()[0].starts_with("1 ChannelClose"));
    peer.say(1, channel::Close { reply_code: 404, ..Default::default() });
    assert_eq!(peer.hears(), ["1 ChannelCloseOk(CloseOk)"], "both have closed it at once");
    peer.say(1, channel::CloseOk {});
    assert_eq!((peer.client.open_channel(), peer.events()), (Ok(1), vec![]));
}

#[test]
fn content_comes_in_its_order() {
    let header = b"\x00\x3c\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00";
    let check = |frames: &[(FrameKind, &[u8])], says: &str| {
        let mut peer = Peer::open();
        for (kind, payload) in frames {
            let mut bytes = vec![*kind as u8, 0, 1];
            bytes.extend_from_slice(&(payload.len() as u32).to_be_bytes());
            bytes.extend_from_slice(payload);
            bytes.push(0xce);
            peer.bytes(&bytes);
        }
        let events = peer.events();
        assert!(events.len() == 1 && events[0].contains(says), "{events:?}");
    };
    let mut method = Vec::new();
    FrameWriter::new(&mut method, 0).method(1, deliver(1));
    let method = &method[7..method.len() - 1];
    check(&[(FrameKind::Body, b"hi")], "505 UNEXPECTED_FRAME - expected method frame");
    check(
        &[(FrameKind::Method, method), (FrameKind::Body, b"hi")],
        "505 UNEXPECTED_FRAME - expected content header",
    );
    check(
        &[(FrameKind::Method, method), (FrameKind::Method, method)],
        "505 UNEXPECTED_FRAME - expected content, got",
    );
    let begun = [(FrameKind::Method, method), (FrameKind::Header, &header[..])];
    check(&[begun[0], begun[1], (FrameKind::Body, b"three")], "501 FRAME_ERROR - the body is longer");
    check(&[begun[0], begun[1], begun[1]], "505 UNEXPECTED_FRAME - expected content body");
}
