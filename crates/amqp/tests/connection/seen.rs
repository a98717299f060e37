//! What can be seen of a connection.

use overtake_amqp::connection::ConnectionState;
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
    let consumers: Vec<_> = consumers.map(|one| (one.id.0, &*one.tag, one.consume.no_ack)).collect();
    assert_eq!(consumers, [(4, "a", true), (9, "b", false)], "the oldest first");
    assert_eq!((three.number, three.transactional, three.uncommitted), (3, true, 1));
}

#[test]
fn a_publisher_that_is_not_read_is_seen_as_blocked() {
    let mut peer = Peer::open();
    peer.publish(1, "q", false, b"hi");
    assert_eq!(peer.connection.view().state, ConnectionState::Running);
    peer.connection.block(Some("the disk is full"));
    assert_eq!(peer.connection.view().state, ConnectionState::Blocked);
    peer.connection.force_close("enough");
    assert_eq!(peer.connection.view().state, ConnectionState::Closing);
    assert_eq!(Peer::new().connection.view().state, ConnectionState::Starting);
}
