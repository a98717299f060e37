//! Messages out: consumers, windows, settling, get, recover.

use overtake_amqp::Frame;
use overtake_amqp::connection::{Answer, Ask, Delivery, Operation, Options, Refused};
use overtake_amqp::method::{basic, channel, connection};
use overtake_lane::{ConsumerId, Outcome, Refusal};
use overtake_properties::Properties;

use crate::peer::{Peer, delivery, receipt, text};

const BACK: Outcome = Outcome::Nack { delay_ms: None };

fn settle(seqs: &[u64], outcome: Outcome) -> Ask {
    Ask::Settle { receipts: seqs.iter().copied().map(receipt).collect(), outcome }
}

/// Consumer 9 of tag `c`.
fn idle() -> Peer {
    let mut peer = Peer::open();
    peer.consume(1, "c", false);
    peer.consuming(9);
    assert_eq!(peer.hears(), ["1 BasicConsumeOk(ConsumeOk { consumer_tag: \"c\" })"]);
    peer
}

/// The same, with messages 1 to 4 out.
fn consuming() -> Peer {
    let mut peer = idle();
    for seq in 1..=4 {
        peer.deliver(9, seq);
    }
    peer
}

#[test]
fn a_window_goes_to_the_broker_with_each_consumer() {
    let mut peer = Peer::open();
    peer.say(1, basic::Qos { prefetch_size: 0, prefetch_count: 5, global: false });
    peer.say(1, basic::Qos { prefetch_size: 0, prefetch_count: 7, global: true });
    assert_eq!(peer.hears(), ["1 BasicQosOk(QosOk)", "1 BasicQosOk(QosOk)"]);
    assert_eq!(peer.asks(), [Ask::Share { channel: 1, messages: 7, joining: Vec::new() }]);
    peer.consume(1, "", true);
    let asks = peer.asks();
    let [Ask::Do { token, operation: Operation::Consume(consume), .. }] = &asks[..] else {
        panic!("{asks:?}")
    };
    assert_eq!((consume.prefetch, consume.shared, consume.no_ack), (5, Some(1), true));
    peer.connection.answer(*token, Ok(Answer::Consuming(ConsumerId(1))));
    assert!(peer.hears()[0].contains("amq.ctag-"), "a tag is made up");
    peer.say(1, basic::Qos { prefetch_size: 1, prefetch_count: 5, global: false });
    assert!(peer.hears()[0].contains("NOT_IMPLEMENTED - prefetch_size!=0 (1)"));
}

#[test]
fn deliveries_are_settled_one_by_one_or_all_up_to_one() {
    let mut peer = consuming();
    let hears = peer.hears();
    assert!(hears[0].contains("consumer_tag: \"c\", delivery_tag: 1, redelivered: false"), "{hears:?}");
    assert_eq!(
        (hears.len(), hears[1].as_str(), hears[2].as_str()),
        (12, "1 header 2 priority None", "1 body hi")
    );
    peer.say(1, basic::Ack { delivery_tag: 3, multiple: false });
    peer.say(1, basic::Ack { delivery_tag: 2, multiple: true });
    peer.say(1, basic::Reject { delivery_tag: 4, requeue: true });
    let asks = [settle(&[3], Outcome::Ack), settle(&[1, 2], Outcome::Ack), settle(&[4], BACK)];
    assert_eq!(peer.asks(), asks);
    peer.say(1, basic::Ack { delivery_tag: 3, multiple: false });
    assert!(peer.hears()[0].contains("PRECONDITION_FAILED - unknown delivery tag 3"));
}

#[test]
fn what_comes_together_is_settled_together() {
    let mut peer = consuming();
    let mut frames = Vec::new();
    let mut writer = overtake_amqp::FrameWriter::new(&mut frames, 0);
    writer.method(1, basic::Ack { delivery_tag: 1, multiple: false });
    writer.method(1, basic::Ack { delivery_tag: 2, multiple: false });
    writer.method(1, basic::Nack { delivery_tag: 0, multiple: true, requeue: false });
    peer.bytes(&frames);
    assert_eq!(peer.asks(), [settle(&[1, 2], Outcome::Ack), settle(&[3, 4], Outcome::Reject)]);
}

#[test]
fn without_acknowledgements_there_is_room_again_as_messages_are_sent() {
    let mut peer = Peer::open();
    peer.consume(1, "c", true);
    peer.consuming(9);
    peer.deliver(9, 1);
    peer.deliver(9, 2);
    assert_eq!(peer.asks(), []);
    peer.hears();
    peer.connection.written(peer.now);
    assert_eq!(peer.asks(), [Ask::Took { consumer: ConsumerId(9), messages: 2 }]);
    peer.connection.written(peer.now);
    assert_eq!(peer.asks(), []);
    peer.say(1, basic::Ack { delivery_tag: 1, multiple: false });
    assert!(peer.hears()[0].contains("unknown delivery tag 1"));
}

#[test]
fn a_cancelled_consumer_keeps_what_it_has_and_gets_no_more() {
    let mut peer = consuming();
    peer.hears();
    peer.say(1, basic::Cancel { consumer_tag: text("c"), no_wait: false });
    let asks = peer.asks();
    let [Ask::Do { token, operation: Operation::Cancel { consumer: ConsumerId(9) }, .. }] = &asks[..] else {
        panic!("{asks:?}")
    };
    peer.connection.answer(*token, Ok(Answer::Done));
    assert_eq!(peer.hears(), ["1 BasicCancelOk(CancelOk { consumer_tag: \"c\" })"]);
    peer.deliver(9, 5);
    assert_eq!(
        (peer.hears(), peer.asks()),
        (vec![], vec![settle(&[5], Outcome::Release)]),
        "it came too late"
    );
    peer.say(1, basic::Ack { delivery_tag: 4, multiple: true });
    assert_eq!(peer.asks(), [settle(&[1, 2, 3, 4], Outcome::Ack)]);
    peer.say(1, basic::Cancel { consumer_tag: text("c"), no_wait: false });
    assert_eq!(peer.hears(), ["1 BasicCancelOk(CancelOk { consumer_tag: \"c\" })"], "gone is gone");
}

#[test]
fn a_tag_is_used_once_at_a_time() {
    let mut peer = consuming();
    peer.hears();
    peer.consume(1, "c", false);
    assert!(peer.hears()[0].contains("NOT_ALLOWED - attempt to reuse consumer tag 'c'"));
}

#[test]
fn whoever_cannot_consume_may_use_the_tag_again() {
    let mut peer = Peer::open();
    peer.consume(1, "c", false);
    peer.answer(Err(Refusal::NoSuchQueue));
    let hears = peer.hears();
    assert!(
        hears[0].contains("reply_code: 404") && hears[0].contains("class_id: 60, method_id: 20"),
        "{hears:?}"
    );
}

/// `frame_max` counts a whole frame, also what is around its payload.
#[test]
fn no_frame_of_a_message_is_longer_than_was_agreed_on_with_acknowledgements_or_without() {
    const FRAME_MAX: usize = 4_096;
    let body = vec![b'x'; 3 * FRAME_MAX];
    let properties = Properties::EMPTY;
    let large = |seq| Delivery { body: &body, ..delivery(seq, &properties) };
    for no_ack in [false, true] {
        let mut peer = Peer::open_with_frames(Options::default(), FRAME_MAX as u32);
        peer.consume(1, "c", no_ack);
        peer.consuming(9);
        peer.hears();
        peer.connection.deliver(ConsumerId(9), &large(1));
        peer.say(1, basic::Get { ticket: 0, queue: text("q"), no_ack });
        let token = peer.asks().iter().find_map(|ask| match ask {
            Ask::Do { token, .. } => Some(*token),
            _ => None,
        });
        peer.connection.got(token.expect("the get"), Ok(Some((large(2), 0))));
        let out = std::mem::take(peer.connection.output());
        let (mut rest, mut lens) = (&out[..], Vec::new());
        while let Some(frame) = Frame::parse(rest, 0).expect("frames") {
            rest = &rest[frame.len()..];
            lens.push(frame.len());
        }
        assert_eq!(lens.len(), 2 * (2 + 4), "method, header and four pieces of each: {lens:?}");
        assert_eq!(lens.iter().max(), Some(&FRAME_MAX), "no_ack {no_ack}: {lens:?}");
    }
}

#[test]
fn a_consumer_whose_queue_is_gone_is_told_so() {
    let mut peer = consuming();
    peer.hears();
    peer.connection.ended(ConsumerId(9));
    assert_eq!(peer.hears(), ["1 BasicCancel(Cancel { consumer_tag: \"c\", no_wait: true })"]);
}

#[test]
fn one_message_may_be_fetched() {
    let mut peer = Peer::open();
    let get = basic::Get { ticket: 0, queue: text("q"), no_ack: false };
    peer.say(1, get);
    let token = peer.token();
    peer.connection.got(token, Ok(None));
    assert_eq!(peer.hears(), ["1 BasicGetEmpty(GetEmpty { cluster_id: \"\" })"]);
    peer.say(1, get);
    let token = peer.token();
    let properties = Properties::EMPTY;
    peer.connection.got(token, Ok(Some((delivery(1, &properties), 6))));
    let hears = peer.hears();
    assert!(
        hears[0].contains("GetOk { delivery_tag: 1") && hears[0].contains("message_count: 6"),
        "{hears:?}"
    );
    peer.say(1, basic::Recover { requeue: true });
    assert_eq!(peer.asks(), [settle(&[1], BACK)]);
    assert_eq!(peer.hears(), ["1 BasicRecoverOk(RecoverOk)"]);
    peer.say(1, basic::Get { no_ack: true, ..get });
    let token = peer.token();
    peer.connection.got(token, Ok(Some((delivery(2, &properties), 5))));
    assert!(peer.hears()[0].contains("GetOk { delivery_tag: 2"));
    peer.say(1, basic::Ack { delivery_tag: 2, multiple: false });
    assert!(peer.hears()[0].contains("unknown delivery tag 2"), "it was settled as it was given");
    peer.say(1, channel::CloseOk {});
    peer.say(1, channel::Open { out_of_band: text("") });
    peer.hears();
    peer.say(1, get);
    let token = peer.token();
    peer.connection.got(token, Err(Refused::Declined(Refusal::NoSuchQueue)));
    assert!(peer.hears()[0].contains("NOT_FOUND - no queue 'q' in vhost '/'"));
}

#[test]
fn what_a_closed_channel_held_goes_back_before_its_end_is_told() {
    let mut peer = consuming();
    peer.consume(1, "other", false);
    peer.consuming(10);
    peer.hears();
    peer.say(1, channel::Close { reply_code: 200, reply_text: text("bye"), class_id: 0, method_id: 0 });
    let asks = peer.asks();
    let [leave, Ask::Do { token, channel: 1, operation }, settled] = &asks[..] else { panic!("{asks:?}") };
    assert_eq!(*leave, Ask::Leave { consumer: ConsumerId(9) });
    assert_eq!(*operation, Operation::Cancel { consumer: ConsumerId(10) });
    assert_eq!(*settled, settle(&[1, 2, 3, 4], BACK));
    assert!(!peer.connection.has_last_words());
    // The broker had sent these before it heard.
    peer.deliver(9, 5);
    peer.deliver(10, 6);
    assert_eq!(peer.asks(), [settle(&[5], Outcome::Release), settle(&[6], Outcome::Release)]);
    assert_eq!(peer.hears(), [""; 0], "one of its consumers may still be sent messages");
    peer.connection.answer(*token, Ok(Answer::Done));
    assert!(peer.connection.has_last_words(), "what is asked goes before them");
    assert_eq!(peer.hears(), ["1 ChannelCloseOk(CloseOk)"]);
    peer.connection.written(peer.now);
    assert!(!peer.connection.has_last_words());
    peer.say(1, channel::Open { out_of_band: text("") });
    assert!(peer.hears()[0].starts_with("1 ChannelOpenOk"), "the number is free again");
    peer.say(1, channel::Close { reply_code: 200, reply_text: text("bye"), class_id: 0, method_id: 0 });
    assert_eq!(peer.hears(), ["1 ChannelCloseOk(CloseOk)"], "nothing of it is anywhere else");
}

#[test]
fn a_channel_is_closed_also_when_the_broker_knows_nothing_of_its_consumer_or_the_connection_ends() {
    let close = channel::Close { reply_code: 200, reply_text: text("bye"), class_id: 0, method_id: 0 };
    let mut peer = idle();
    peer.say(1, close);
    peer.connection.ended(ConsumerId(9));
    let token = peer.token();
    peer.connection.answer(token, Err(Refused::Declined(Refusal::NoSuchConsumer)));
    assert_eq!(peer.hears(), ["1 ChannelCloseOk(CloseOk)"]);

    let mut peer = idle();
    peer.say(1, close);
    let token = peer.token();
    peer.say(0, connection::Close { reply_code: 200, reply_text: text("bye"), class_id: 0, method_id: 0 });
    peer.connection.answer(token, Ok(Answer::Done));
    assert_eq!(peer.hears(), ["0 ConnectionCloseOk(CloseOk)"], "nothing comes after the last word");
}

#[test]
fn a_connection_has_so_many_consumers_and_no_more() {
    let mut peer = Peer::open_with(Options { consumer_max: 2, ..Options::default() });
    peer.say(2, channel::Open { out_of_band: text("") });
    peer.hears();
    peer.consume(1, "a", false);
    peer.consuming(9);
    peer.consume(2, "b", false);
    peer.consuming(10);
    peer.say(1, basic::Cancel { consumer_tag: text("a"), no_wait: false });
    peer.answer(Ok(Answer::Done));
    peer.consume(1, "c", false);
    peer.consuming(11);
    peer.hears();
    peer.consume(2, "d", false);
    let hears = peer.hears();
    assert!(hears[0].contains("reply_code: 530"), "{hears:?}");
    assert!(hears[0].contains("NOT_ALLOWED - reached maximum (2) of consumers per connection"), "{hears:?}");
}
