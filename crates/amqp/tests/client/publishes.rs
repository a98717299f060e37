//! Messages out: frames, confirms, returns.

use overtake_amqp::client::{ClientOptions, Unsent};
use overtake_amqp::method::{basic, channel, confirm, queue};
use overtake_properties::{Fields, Properties, Short, TableBuilder, Value};

use crate::server::{Peer, content, options, text};

fn returned(key: &'static str) -> basic::Return<'static> {
    basic::Return {
        reply_code: 312,
        reply_text: Short::literal("NO_ROUTE"),
        exchange: Short::literal(""),
        routing_key: Short::literal(key),
    }
}

#[test]
fn a_body_is_divided_by_the_frame_that_was_agreed_on() {
    for (body_len, bodies) in [
        (0, vec![]),
        (1, vec!["1 body of 1"]),
        (4_088, vec!["1 body of 4088"]),
        (4_089, vec!["1 body of 4088", "1 body of 1"]),
        (3 * 4_088, vec!["1 body of 4088"; 3]),
    ] {
        let mut peer = Peer::open_with(ClientOptions { frame_max: 4_096, ..options() });
        assert_eq!(peer.publish("q", false, &vec![b'x'; body_len]), None, "nobody asked for confirms");
        let hears = peer.hears();
        assert!(hears[0].starts_with("1 BasicPublish") && hears[0].contains("routing_key: \"q\""));
        assert_eq!(hears[1], format!("1 header {body_len} priority Some(7)"));
        assert_eq!(hears[2..], bodies);
    }
}

#[test]
fn publishes_are_numbered_since_confirms_were_asked_for() {
    let mut peer = Peer::open();
    peer.publish("q", false, b"before");
    peer.client.ask(1, confirm::Select { no_wait: false }).expect("the channel is open");
    assert_eq!(peer.publish("q", false, b"a"), Some(1), "the server counts from there");
    peer.say(1, confirm::SelectOk {});
    peer.client.ask(1, confirm::Select { no_wait: true }).expect("the channel is open");
    assert_eq!(peer.publish("q", false, b"b"), Some(2), "asking again changes nothing");
    assert_eq!(peer.client.unconfirmed(1), 2);
}

#[test]
fn confirms_are_told_as_ranges_and_each_publish_once() {
    let mut peer = Peer::confirming();
    (1..=9).for_each(|tag| assert_eq!(peer.publish("q", false, b"hi"), Some(tag)));
    peer.say(1, basic::Ack { delivery_tag: 3, multiple: false });
    peer.say(1, basic::Nack { delivery_tag: 4, multiple: false, requeue: false });
    peer.say(1, basic::Ack { delivery_tag: 6, multiple: true });
    peer.say(1, basic::Ack { delivery_tag: 6, multiple: true });
    peer.say(1, basic::Nack { delivery_tag: 8, multiple: true, requeue: false });
    assert_eq!(
        peer.events(),
        [
            "1 confirmed 3..=3",
            "1 not taken 4..=4",
            "1 confirmed 1..=2",
            "1 confirmed 5..=6",
            "1 not taken 7..=8"
        ]
    );
    assert_eq!(peer.client.unconfirmed(1), 1);
}

#[test]
fn what_comes_back_names_its_publish_before_it_is_confirmed() {
    let mut peer = Peer::confirming();
    peer.publish("q", true, b"a");
    peer.publish("nowhere", true, b"b");
    peer.publish("nowhere", true, b"c");
    peer.publish("nowhere", false, b"c");
    peer.bytes(&content(returned("nowhere"), b"b"));
    peer.bytes(&content(returned("nowhere"), b"c"));
    peer.say(1, basic::Ack { delivery_tag: 4, multiple: true });
    assert_eq!(
        peer.events(),
        [
            "1 returned Some(2) 312 NO_ROUTE nowhere",
            "1 returned Some(3) 312 NO_ROUTE nowhere",
            "1 confirmed 1..=4"
        ]
    );
    peer.bytes(&content(returned("nowhere"), b"c"));
    assert_eq!(peer.events(), ["1 returned None 312 NO_ROUTE nowhere"], "it is confirmed already");
}

#[test]
fn what_the_server_adds_to_the_properties_hides_no_return() {
    let mut peer = Peer::confirming();
    let publish = |peer: &mut Peer, id: &'static [u8]| {
        let properties = Fields { message_id: Short::new(id), ..Fields::default() }.encode();
        let routing_key = Short::literal("nowhere");
        let method = basic::Publish { routing_key, mandatory: true, ..basic::Publish::default() };
        peer.client.publish(1, method, properties.view(), b"the same").expect("it is sent")
    };
    assert_eq!((publish(&mut peer, b"m1"), publish(&mut peer, b"m2")), (Some(1), Some(2)));
    let stamped = Fields { message_id: Short::new(b"m2"), timestamp: Some(7), ..Fields::default() }.encode();
    let mut frames = Vec::new();
    overtake_amqp::FrameWriter::new(&mut frames, 0)
        .content(1, returned("nowhere"), stamped.view(), b"the same")
        .expect("it fits");
    peer.bytes(&frames);
    assert_eq!(peer.events(), ["1 returned Some(2) 312 NO_ROUTE nowhere"]);
}

#[test]
fn confirms_that_nobody_asked_for_end_the_connection() {
    let mut peer = Peer::open();
    peer.publish("q", false, b"hi");
    peer.say(1, basic::Ack { delivery_tag: 1, multiple: false });
    assert!(peer.events()[0].contains("503 COMMAND_INVALID - nobody asked for confirms"));
}

#[test]
fn a_confirm_of_what_was_never_published_costs_the_channel() {
    let mut peer = Peer::confirming();
    peer.say(1, basic::Ack { delivery_tag: 1, multiple: false });
    let events = peer.events();
    assert!(events[0].starts_with("ChannelClosed { channel: 1, code: 406"), "{events:?}");
    assert!(peer.hears()[0].contains("unknown delivery tag 1"));
    peer.say(1, basic::Ack { delivery_tag: 2, multiple: false });
    assert_eq!(peer.events(), [""; 0], "what it says on the way does not count");
    peer.say(1, channel::CloseOk {});
    assert_eq!(peer.client.open_channel(), Ok(1));
}

#[test]
fn what_does_not_fit_leaves_nothing_behind() {
    let mut peer = Peer::open_with(ClientOptions { frame_max: 4_096, ..options() });
    let long = [b'x'; 5_000];
    let table = TableBuilder::new().entry(Short::literal("x"), Value::String(&long)).finish();
    let properties = Fields { headers: Some(table.view()), ..Fields::default() }.encode();
    let sent = peer.client.publish(1, basic::Publish::default(), properties.view(), b"");
    assert!(matches!(sent, Err(Unsent::TooLarge { len: 5_000.. })), "{sent:?}");
    let declare = queue::Declare { arguments: table.view(), ..queue::Declare::default() };
    assert!(matches!(peer.client.ask(1, declare), Err(Unsent::TooLarge { .. })));
    assert_eq!(peer.hears(), [""; 0]);
}

#[test]
fn nothing_is_published_where_nothing_is_wanted() {
    let mut peer = Peer::open();
    let empty = Properties::EMPTY;
    let publish = |peer: &mut Peer, channel| {
        peer.client.publish(channel, basic::Publish::default(), empty.view(), b"").err()
    };
    assert_eq!(publish(&mut peer, 2), Some(Unsent::NoSuchChannel));
    peer.say(1, channel::Flow { active: false });
    assert_eq!(publish(&mut peer, 1), Some(Unsent::Halted));
    peer.say(1, channel::Flow { active: true });
    assert_eq!(publish(&mut peer, 1), None);
    assert_eq!(
        peer.hears()[..2],
        ["1 ChannelFlowOk(FlowOk { active: false })", "1 ChannelFlowOk(FlowOk { active: true })"]
    );
    assert_eq!(peer.events().len(), 2);
    assert_eq!(peer.client.ask(1, channel::Open { out_of_band: text("") }), Err(Unsent::NoRequest));
}
