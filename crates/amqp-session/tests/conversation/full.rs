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
        if heard.contains("blocked: ") {
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
            assert!(ann.hears().contains("connection.unblocked"));
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

#[test]
fn who_publishes_and_consumes_on_one_connection_is_read_on() {
    let (disk, broker, mut ann, taken) = filled();
    // A few may go where settlements would have gone; then each is refused.
    let mut refused = 0;
    for number in taken + 2.. {
        ann.route("", "q", &"x".repeat(400));
        let heard = ann.hears();
        if heard == format!("not taken {number}") {
            refused += 1;
        } else {
            assert_eq!((heard, refused), (format!("safe {number}"), 0));
        }
        if refused == 3 {
            break;
        }
    }
    ann.on(2).prefetch(1);
    ann.consume("q");
    assert_eq!(ann.hears().split(" · ").count(), 1);
    let ready = broker.ready("q");
    // Without confirms the client would not hear of a refusal.
    ann.publish("q", "waits");
    let tag = ann.letter(&"x".repeat(400)).delivery_tag;
    ann.tell(overtake_amqp::method::basic::Ack { delivery_tag: tag, multiple: false });
    assert!(!ann.hears().is_empty(), "the acknowledgement behind it is taken, and the next message comes");
    assert_eq!(broker.ready("q"), ready - 1, "nothing came into the queue");
    disk.set_capacity(None);
    for _ in 0..100 {
        broker.advance(1_000);
        if ann.hears().contains("connection.unblocked") {
            assert_eq!(broker.ready("q"), ready, "what waited is published now");
            return;
        }
    }
    panic!("there is room, and nobody is told");
}
