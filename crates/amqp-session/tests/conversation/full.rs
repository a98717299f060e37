//! A disk without room: publishers are told, and held up; whoever makes room is not.

use overtake_store::MemoryDisk;

use crate::broker::{Broker, FILE};
use crate::client::Client;

/// A broker on a disk that is full, somebody who has published until it was, and how many messages that were.
fn filled() -> (MemoryDisk, Broker, Client, u64) {
    let disk = MemoryDisk::new(1);
    disk.set_capacity(Some(6 * FILE));
    let mut broker = Broker::on_disk(&disk);
    let mut ann = broker.connect();
    ann.declare("q", &[]);
    ann.confirm();
    let body = "x".repeat(400);
    for taken in 0.. {
        ann.route("", "q", &body);
        let heard = ann.hears();
        if heard.starts_with("blocked: ") {
            return (disk, broker, ann, taken);
        }
        assert_eq!(heard, format!("safe {}", taken + 1));
    }
    unreachable!("a bounded disk gets full")
}

#[test]
fn who_publishes_is_told_that_the_disk_is_full_and_when_it_is_not() {
    let (disk, mut broker, mut ann, taken) = filled();
    assert!(taken > 100, "only {taken} messages in 6 files");
    let mut bob = broker.connect();
    assert!(bob.hears().starts_with("blocked: "), "a newcomer is told, too");
    disk.set_capacity(None);
    for _ in 0..100 {
        broker.advance(1_000);
        if bob.hears().contains("connection.unblocked") {
            ann.turn();
            assert_eq!(ann.hears(), "connection.unblocked");
            ann.publish("q", "after");
            assert_eq!(ann.hears(), format!("safe {}", taken + 2));
            return;
        }
    }
    panic!("there is room, and nobody is told");
}

#[test]
fn who_consumes_is_not_held_up() {
    let (_disk, mut broker, _ann, taken) = filled();
    let mut old = broker.connect_with(&[]);
    assert_eq!(old.hears(), "", "one that does not understand it is told nothing");
    old.prefetch(50);
    old.consume("q");
    assert_eq!(old.hears().split(" · ").count() as u64, taken.min(50));
    let tag = old.letter(&"x".repeat(400)).delivery_tag;
    old.tell(overtake_amqp::method::basic::Ack { delivery_tag: tag, multiple: true });
    assert!(!old.hears().is_empty(), "there is more");
    assert!(broker.ready("q") < taken);
}
