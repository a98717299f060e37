//! Order, errors, heartbeats, the end.

use overtake_amqp::connection::{Answer, Ask, Operation};
use overtake_amqp::method::{basic, channel, confirm, connection, queue};
use overtake_lane::{Outcome, Refusal, Time};
use overtake_properties::TableRef;

use crate::peer::{Peer, receipt, text};

fn declare(name: &'static str, no_wait: bool) -> queue::Declare<'static> {
    queue::Declare {
        ticket: 0,
        queue: text(name),
        passive: false,
        durable: true,
        exclusive: false,
        auto_delete: false,
        no_wait,
        arguments: TableRef::default(),
    }
}

fn there(name: &str) -> Result<Answer, Refusal> {
    Ok(Answer::Queue { name: name.into(), messages: 3, consumers: 1 })
}

#[test]
fn a_channel_is_answered_in_order() {
    let mut peer = Peer::open();
    peer.say(2, channel::Open { out_of_band: text("") });
    peer.hears();
    peer.say(1, declare("", false));
    peer.say(1, basic::Qos { prefetch_size: 0, prefetch_count: 1, global: false });
    assert_eq!(peer.hears(), [""; 0], "what comes behind waits for the answer");
    peer.answer(there("amq.gen-1"));
    peer.bytes(b"");
    assert_eq!(
        peer.hears(),
        [
            "1 QueueDeclareOk(DeclareOk { queue: \"amq.gen-1\", message_count: 3, consumer_count: 1 })",
            "1 BasicQosOk(QosOk)"
        ]
    );
    let purge = queue::Purge { ticket: 0, queue: text(""), no_wait: false };
    peer.say(1, purge);
    let asks = peer.asks();
    let [Ask::Do { token, operation: Operation::PurgeQueue { name }, .. }] = &asks[..] else {
        panic!("{asks:?}")
    };
    assert_eq!(name, "amq.gen-1", "an empty name is the queue declared last");
    peer.connection.answer(*token, Ok(Answer::Count(3)));
    assert_eq!(peer.hears(), ["1 QueuePurgeOk(PurgeOk { message_count: 3 })"]);
    peer.say(2, purge);
    assert!(peer.hears()[0].contains("NOT_FOUND - no previously declared queue"));
}

#[test]
fn whoever_does_not_wait_is_told_of_errors_only() {
    let mut peer = Peer::open();
    peer.say(1, declare("a", true));
    peer.answer(there("a"));
    assert_eq!(peer.hears(), [""; 0]);
    peer.say(1, declare("b", true));
    peer.answer(Err(Refusal::TooManyQueues));
    assert!(peer.hears()[0].starts_with("1 ChannelClose"));
}

#[test]
fn after_a_soft_error_the_other_channels_go_on() {
    let mut peer = Peer::open();
    peer.say(2, channel::Open { out_of_band: text("") });
    peer.say(1, basic::Ack { delivery_tag: 1, multiple: false });
    peer.hears();
    peer.say(1, declare("a", false));
    assert_eq!(peer.asks(), [], "what a closed channel says does not count");
    peer.say(2, declare("a", false));
    assert_eq!(peer.asks().len(), 1);
    peer.say(1, channel::CloseOk {});
    peer.say(1, channel::Open { out_of_band: text("") });
    assert!(peer.hears()[0].starts_with("1 ChannelOpenOk"));
}

#[test]
fn a_hard_error_puts_back_what_all_channels_hold() {
    let mut peer = Peer::open();
    peer.consume(1, "c", false);
    peer.consuming(9);
    peer.deliver(9, 1);
    peer.hears();
    peer.bytes(b"\x09garbage");
    let hears = peer.hears();
    assert!(hears[0].starts_with("0 ConnectionClose") && hears[0].contains("reply_code: 501"), "{hears:?}");
    let asks = peer.asks();
    assert_eq!(
        asks[1],
        Ask::Settle { receipts: vec![receipt(1)], outcome: Outcome::Nack { delay_ms: None } }
    );
    peer.say(1, declare("a", false));
    assert_eq!((peer.asks(), peer.hears()), (vec![], vec![]));
    peer.say(0, connection::CloseOk {});
    assert!(peer.connection.is_over());
}

#[test]
fn whoever_never_agrees_is_let_go() {
    let mut peer = Peer::open();
    peer.connection.force_close("the broker stops");
    assert!(peer.hears()[0].contains("CONNECTION_FORCED - the broker stops"));
    peer.connection.tick(peer.now);
    let deadline = peer.connection.next_deadline().expect("it is not waited for without end");
    assert!(deadline > peer.now && !peer.connection.is_over());
    peer.connection.tick(deadline);
    assert!(peer.connection.is_over());
}

#[test]
fn a_client_may_close() {
    let mut peer = Peer::open();
    let close = connection::Close { reply_code: 200, reply_text: text("bye"), class_id: 0, method_id: 0 };
    peer.say(0, close);
    assert_eq!(
        (peer.hears(), peer.connection.is_over()),
        (vec!["0 ConnectionCloseOk(CloseOk)".to_owned()], true)
    );
}

#[test]
fn heartbeats_go_both_ways() {
    let mut peer = Peer::open();
    peer.connection.written(peer.now);
    let at = peer.connection.next_deadline().expect("signs of life were agreed on");
    assert_eq!(at, Time(peer.now.0 + 30_000));
    peer.connection.tick(at);
    assert_eq!(peer.hears(), ["0 heartbeat"]);
    peer.now = at;
    peer.bytes(b"\x08\0\0\0\0\0\0\xce");
    peer.connection.tick(Time(at.0 + 119_999));
    assert!(!peer.connection.is_over());
    peer.connection.tick(Time(at.0 + 120_000));
    assert!(peer.connection.is_over());
}

#[test]
fn a_publisher_that_is_not_listened_to_is_not_dead() {
    let mut peer = Peer::open();
    peer.connection.block(Some("low on disk"));
    peer.publish(1, "q", false, &[b'x'; 300 << 10]);
    let long_after = Time(peer.now.0 + 1_000_000);
    peer.connection.tick(long_after);
    peer.connection.block(None);
    peer.connection.tick(Time(long_after.0 + 119_999));
    assert!(!peer.connection.is_over());
    peer.connection.tick(Time(long_after.0 + 120_000));
    assert!(peer.connection.is_over());
}

#[test]
fn what_was_acknowledged_before_the_end_is_settled() {
    let mut peer = Peer::open();
    peer.consume(1, "c", false);
    peer.consuming(9);
    peer.deliver(9, 1);
    let mut frames = Vec::new();
    let mut writer = overtake_amqp::FrameWriter::new(&mut frames, 0);
    writer.method(1, basic::Ack { delivery_tag: 1, multiple: false });
    writer
        .method(0, connection::Close { reply_code: 200, reply_text: text("bye"), class_id: 0, method_id: 0 });
    peer.bytes(&frames);
    assert_eq!(peer.asks()[0], Ask::Settle { receipts: vec![receipt(1)], outcome: Outcome::Ack });
}

#[test]
fn whoever_has_closed_hears_nothing_more() {
    let mut peer = Peer::open();
    peer.consume(1, "c", false);
    peer.consuming(5);
    peer.hears();
    let bye = text("bye");
    peer.say(0, connection::Close { reply_code: 200, reply_text: bye, class_id: 0, method_id: 0 });
    assert_eq!(peer.hears(), ["0 ConnectionCloseOk(CloseOk)"]);
    peer.deliver(5, 1);
    assert_eq!(peer.hears(), [""; 0]);
    let receipts = vec![receipt(1)];
    assert_eq!(peer.asks().last(), Some(&Ask::Settle { receipts, outcome: Outcome::Release }));
}

#[test]
fn whoever_is_given_up_is_told_nothing_more() {
    let mut peer = Peer::open();
    peer.say(1, confirm::Select { no_wait: false });
    peer.publish(1, "q", false, b"no key");
    peer.publish(1, "q", false, b"hi");
    let tokens: Vec<_> = peer.publishes().into_iter().map(|(token, _)| token).collect();
    peer.connection.tick(Time(peer.now.0 + 120_000));
    assert!(peer.connection.is_over());
    peer.hears();
    peer.connection.published(tokens[0], Err(Refusal::KeyMissing.into()));
    peer.connection.published(tokens[1], Ok(1));
    assert_eq!(peer.hears(), [""; 0], "the first was not taken");
}
