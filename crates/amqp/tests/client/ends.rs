//! Channels and connections that end, heartbeats, garbage.

use overtake_amqp::client::Unsent;
use overtake_amqp::method::{basic, channel, connection, queue};
use overtake_lane::Time;

use crate::server::{Peer, text};

fn not_found() -> channel::Close<'static> {
    let reply_text = text("NOT_FOUND - no queue 'q'");
    channel::Close { reply_code: 404, reply_text, class_id: 50, method_id: 10 }
}

#[test]
fn a_channel_that_is_closed_leaves_the_others() {
    let mut peer = Peer::open();
    assert_eq!(peer.client.open_channel(), Ok(2));
    peer.say(2, channel::OpenOk { channel_id: b"" });
    peer.say(1, not_found());
    assert_eq!(
        peer.events(),
        [
            "2 channel.open Done",
            "ChannelClosed { channel: 1, code: 404, text: \"NOT_FOUND - no queue 'q'\" }"
        ]
    );
    assert_eq!(peer.hears().last().map(String::as_str), Some("1 ChannelCloseOk(CloseOk)"));
    assert_eq!(peer.client.ask(1, basic::Qos::default()), Err(Unsent::NoSuchChannel));
    peer.client.ask(2, basic::Qos::default()).expect("it is open");
    assert_eq!(peer.client.open_channel(), Ok(1), "its number is free");
}

#[test]
fn a_channel_that_we_close_is_answered_to_its_end() {
    let mut peer = Peer::confirming();
    peer.publish("q", false, b"hi");
    peer.client.close_channel(1, "done").expect("it is open");
    assert_eq!(peer.client.ask(1, basic::Qos::default()), Err(Unsent::NoSuchChannel));
    peer.say(1, basic::Ack { delivery_tag: 1, multiple: false });
    peer.say(1, channel::CloseOk {});
    assert_eq!(peer.events(), ["1 confirmed 1..=1", "1 channel.close Done"]);
    assert_eq!(peer.client.open_channel(), Ok(1));
}

#[test]
fn both_may_close_a_channel_at_once() {
    let mut peer = Peer::open();
    peer.client.close_channel(1, "done").expect("it is open");
    peer.say(1, not_found());
    assert_eq!(peer.client.open_channel(), Ok(2), "the server has not answered our close");
    peer.say(1, channel::CloseOk {});
    assert_eq!(peer.client.open_channel(), Ok(1));
    let events = peer.events();
    assert!(events.len() == 1 && events[0].starts_with("ChannelClosed"), "{events:?}");
}

#[test]
fn the_server_may_close() {
    let mut peer = Peer::confirming();
    peer.publish("q", false, b"hi");
    peer.hears();
    let reply_text = text("CONNECTION_FORCED - broker forced connection closure");
    peer.say(0, connection::Close { reply_code: 320, reply_text, class_id: 0, method_id: 0 });
    assert_eq!(peer.hears(), ["0 ConnectionCloseOk(CloseOk)"]);
    assert!(peer.events()[0].starts_with("closed: the server closed the connection: 320 CONNECTION_FORCED"));
    assert!(peer.client.is_over());
    assert_eq!(peer.client.unconfirmed(1), 0);
    peer.client.hung_up();
    peer.bytes(b"more");
    assert_eq!(peer.events(), [""; 0], "it is told once");
}

#[test]
fn a_client_may_close() {
    let mut peer = Peer::confirming();
    peer.publish("q", false, b"hi");
    peer.client.close(peer.now, "bye");
    peer.client.close(peer.now, "bye");
    assert_eq!(peer.client.open_channel(), Err(Unsent::NotOpen));
    peer.say(1, basic::Ack { delivery_tag: 1, multiple: false });
    assert!(!peer.client.is_over());
    peer.say(0, connection::CloseOk {});
    assert_eq!(peer.events(), ["1 confirmed 1..=1", "closed: it was closed as asked"]);
    assert!(peer.client.is_over());
    let hears = peer.hears();
    assert!(hears.last().is_some_and(|last| last.contains("reply_code: 200, reply_text: \"bye\"")));
    assert_eq!(hears.len(), 4, "publish, header, body, close");
}

#[test]
fn whoever_never_agrees_is_let_go() {
    for break_it in [false, true] {
        let mut peer = Peer::open();
        match break_it {
            true => peer.bytes(b"garbage"),
            false => peer.client.close(peer.now, "bye"),
        }
        let deadline = peer.client.next_deadline().expect("it is not waited for without end");
        peer.client.tick(Time(deadline.0 - 1));
        assert!(!peer.client.is_over());
        peer.client.tick(deadline);
        assert!(peer.client.is_over());
        let events = peer.events();
        let says =
            if break_it { "closed: the server broke the protocol" } else { "closed: it was closed as asked" };
        assert!(events.len() == 1 && events[0].starts_with(says), "{events:?}");
    }
}

#[test]
fn whoever_has_closed_says_nothing_more() {
    let unknown = basic::Ack { delivery_tag: 7, multiple: false };
    let mut peer = Peer::confirming();
    peer.client.close_channel(1, "done").expect("it is open");
    peer.hears();
    peer.say(1, unknown);
    assert_eq!(peer.hears(), [""; 0], "the channel was closed already");
    assert!(peer.events()[0].starts_with("ChannelClosed { channel: 1, code: 406"));
    for break_it in [false, true] {
        let mut peer = Peer::confirming();
        peer.client.close(peer.now, "bye");
        peer.hears();
        match break_it {
            true => peer.bytes(b"garbage"),
            false => peer.say(1, unknown),
        }
        assert_eq!(peer.hears(), [""; 0], "the connection was closed already");
        let events = peer.events();
        assert!(events.len() == 1 && events[0].starts_with("closed: the server broke"), "{events:?}");
        peer.say(0, connection::CloseOk {});
        assert!(peer.client.is_over());
    }
}

#[test]
fn garbage_is_answered_once_with_its_code() {
    let check = |bytes: &[u8], says: &str| {
        let mut peer = Peer::open();
        peer.bytes(bytes);
        peer.bytes(bytes);
        let (events, hears) = (peer.events(), peer.hears());
        assert!(events.len() == 1 && events[0].contains(says), "{events:?}");
        assert!(hears.len() == 1 && hears[0].starts_with("0 ConnectionClose"), "{hears:?}");
        peer.client.hung_up();
        assert!(peer.client.is_over() && peer.events().is_empty());
    };
    check(b"\x09garbage", "501 FRAME_ERROR");
    check(b"\x01\0\0\xff\xff\xff\xff", "501 FRAME_ERROR - a frame of 4294967295 bytes");
    check(b"\x01\0\0\0\0\0\x04\0\x0a\0\x33\xcf", "501 FRAME_ERROR - a frame ends with 207");
    check(b"\x08\0\x01\0\0\0\0\xce", "505 UNEXPECTED_FRAME - a heartbeat belongs on channel 0");
    check(b"\x01\0\0\0\0\0\x04\0\x0a\0\x3c\xce", "502 SYNTAX_ERROR");
    check(b"\x01\0\0\0\0\0\x04\0\x0a\xff\xff\xce", "540 NOT_IMPLEMENTED");
    check(b"\x01\0\x01\0\0\0\x05\0\x14\0\x0b\0\xce", "502 SYNTAX_ERROR");
    check(b"\x01\0\x07\0\0\0\x04\0\x3c\0\x0b\xce", "504 CHANNEL_ERROR - channel 7 is not open");
    check(b"\x03\0\x07\0\0\0\x01x\xce", "504 CHANNEL_ERROR");
    check(b"\x01\0\x01\0\0\0\x04\0\x5a\0\x0b\xce", "503 COMMAND_INVALID - tx.select-ok does not come");
    check(b"\x01\0\0\0\0\0\x04\0\x3c\0\x0b\xce", "503 COMMAND_INVALID - basic.qos-ok does not come");
}

#[test]
fn heartbeats_go_both_ways() {
    let mut peer = Peer::open();
    peer.client.written(peer.now);
    let at = peer.client.next_deadline().expect("signs of life were agreed on");
    assert_eq!(at, Time(peer.now.0 + 30_000), "half of what was agreed on");
    peer.client.tick(at);
    assert_eq!(peer.hears(), ["0 heartbeat"]);
    peer.now = at;
    peer.bytes(b"\x08\0\0\0\0\0\0\xce");
    peer.client.tick(Time(at.0 + 119_999));
    assert!(!peer.client.is_over());
    peer.client.tick(Time(at.0 + 120_000));
    assert_eq!(peer.events(), ["closed: the server gave no sign of life for two intervals"]);
    assert!(peer.client.is_over());
}

#[test]
fn a_server_says_when_it_takes_nothing() {
    let mut peer = Peer::open();
    peer.say(0, connection::Blocked { reason: text("low on disk") });
    assert!(peer.client.is_blocked());
    peer.say(0, connection::Unblocked {});
    assert!(!peer.client.is_blocked());
    assert_eq!(peer.events(), ["Blocked { reason: \"low on disk\" }", "Unblocked"]);
}

#[test]
fn a_channel_number_is_never_beyond_the_limit() {
    let mut peer = Peer::open();
    for number in 2..=2_047 {
        assert_eq!(peer.client.open_channel(), Ok(number));
    }
    assert_eq!(peer.client.open_channel(), Err(Unsent::NoChannelFree));
    peer.client.ask(7, queue::Delete::default()).expect("it may be used at once");
}
