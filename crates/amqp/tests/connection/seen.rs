//! What can be seen of a connection.

use overtake_amqp::connection::{ChannelCounts, ConnectionState, ConsumerView};
use overtake_amqp::method::{basic, channel, confirm, tx};
use overtake_lane::Time;

use crate::peer::{Peer, text};

#[test]
fn a_view_says_what_a_connection_has_open() {
    let mut peer = Peer::open();
    peer.say(1, basic::Qos { prefetch_size: 0, prefetch_count: 5, global: false });
    peer.consume(1, "b", false);
    peer.consuming(9);
    peer.consume(1, "a", true);
    peer.consuming(4);
    peer.deliver(9, 1);
    peer.deliver(9, 2);
    peer.say(1, basic::Ack { delivery_tag: 1, multiple: false });
    peer.say(1, confirm::Select { no_wait: false });
    peer.say(3, channel::Open { out_of_band: text("") });
    peer.say(3, tx::Select {});
    peer.publish(3, "q", false, b"hi");

    let view = peer.connection.view();
    assert_eq!((view.state, &*view.vhost, view.mechanism), (ConnectionState::Running, "/", "PLAIN"));
    assert_eq!((view.frame_max, view.heartbeat_s), (131_072, 60));
    assert!(view.client_properties.get("capabilities").is_some());
    let [one, three] = &view.channels[..] else { panic!("{:?}", view.channels) };
    assert_eq!((one.number, one.confirms, one.prefetch, one.unacked), (1, true, 5, 1));
    let consumers = one.consumers.iter();
    let look = |one: &'_ ConsumerView| (one.id.0, one.consume.no_ack, one.delivered, one.unacked);
    assert_eq!(
        consumers.map(look).collect::<Vec<_>>(),
        [(4, true, 0, 0), (9, false, 2, 1)],
        "the oldest first"
    );
    assert_eq!((three.number, three.transactional, three.uncommitted), (3, true, 1));
}

#[test]
fn what_a_transaction_will_settle_is_still_held_by_its_consumer() {
    let mut peer = Peer::open();
    peer.say(1, tx::Select {});
    peer.consume(1, "a", false);
    peer.consuming(4);
    peer.deliver(4, 1);
    peer.deliver(4, 2);
    peer.say(1, basic::Ack { delivery_tag: 1, multiple: false });
    let view = peer.connection.view();
    let (channel, consumer) = (&view.channels[0], &view.channels[0].consumers[0]);
    assert_eq!((channel.unacked, channel.uncommitted_acks, consumer.unacked), (1, 1, 2));
}

#[test]
fn a_publisher_is_seen_as_blocked_while_publishes_are_refused() {
    let mut peer = Peer::open();
    peer.publish(1, "q", false, b"hi");
    assert_eq!(peer.connection.view().state, ConnectionState::Running);
    peer.connection.block(Some("the disk is full"));
    assert_eq!(peer.connection.view().state, ConnectionState::Blocked);
    peer.connection.force_close("enough");
    assert_eq!(peer.connection.view().state, ConnectionState::Closing);
    assert_eq!(Peer::new().connection.view().state, ConnectionState::Starting);
}

#[test]
fn a_channel_counts_what_it_carries_and_knows_when_it_last_did() {
    let mut peer = Peer::open();
    let seen = |peer: &Peer| {
        let view = peer.connection.view();
        (view.channels[0].counts, view.channels[0].active_at)
    };
    assert_eq!(seen(&peer), (ChannelCounts::default(), Time(1_000)));
    peer.consume(1, "a", false);
    peer.consuming(4);
    peer.consume(1, "b", true);
    peer.consuming(5);
    peer.hears();
    peer.now = Time(2_000);
    for (consumer, seq) in [(4, 1), (4, 2), (5, 3)] {
        peer.deliver(consumer, seq);
    }
    peer.hears();
    peer.connection.written(peer.now);
    assert_eq!(seen(&peer).1, Time(2_000), "a delivery is activity once it is written");
    peer.now = Time(3_000);
    peer.say(1, basic::Ack { delivery_tag: 2, multiple: true });
    peer.say(1, confirm::Select { no_wait: false });
    peer.asks();
    for (mandatory, copies) in [(false, 1), (false, 0), (true, 0)] {
        peer.publish(1, "q", mandatory, b"hi");
        let token = peer.token();
        peer.connection.published(token, Ok(copies));
    }
    peer.hears();
    let (counts, active_at) = seen(&peer);
    let expect = ChannelCounts {
        published: 3,
        confirmed: 3,
        returned: 1,
        dropped: 1,
        delivered: 2,
        delivered_no_ack: 1,
        acked: 2,
        ..ChannelCounts::default()
    };
    assert_eq!((counts, counts.sent(), active_at), (expect, 3, Time(3_000)));
}
