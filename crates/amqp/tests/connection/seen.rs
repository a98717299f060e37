//! What can be seen of a connection.

use overtake_amqp::connection::{ConnectionState, ConsumerView};
use overtake_amqp::method::{basic, channel, confirm, tx};

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
