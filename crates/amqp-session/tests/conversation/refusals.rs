//! Reply codes: which, in what words, and what they end, as RabbitMQ has it.

use overtake_amqp::method::{basic, channel, confirm, connection, queue, tx};
use overtake_properties::{Fields, Value};

use crate::broker::{Broker, MODERN};
use crate::client::Client;
use crate::words::{n, short, t, text};

/// What is refused, with which words, by which method; the channel or the connection ends with it.
fn check<R>(does: impl FnOnce(&mut Client) -> R, told: &str, fault: (u16, u16)) {
    let mut broker = Broker::new();
    let mut ann = broker.connect();
    ann.declare("q", &[]);
    assert_eq!(ann.refused(does), told);
    assert_eq!(ann.fault, fault);
    assert_eq!(ann.is_over(), told.starts_with("connection"), "{told}");
}

const DECLARE_EXCHANGE: (u16, u16) = (40, 10);
const DELETE_EXCHANGE: (u16, u16) = (40, 20);
const DECLARE_QUEUE: (u16, u16) = (50, 10);
const BIND: (u16, u16) = (50, 20);
const DELETE_QUEUE: (u16, u16) = (50, 40);
const CONSUME: (u16, u16) = (60, 20);
const PUBLISH: (u16, u16) = (60, 40);

// ---- channels ----

#[test]
fn what_is_not_there_is_not_found() {
    let queue = "404 NOT_FOUND - no queue 'none' in vhost '/'";
    check(|ann| ann.declare_as("none", "passive", &[]), queue, DECLARE_QUEUE);
    check(|ann| ann.bind("none", "amq.direct", "key", &[]), queue, BIND);
    check(|ann| ann.consume("none"), queue, CONSUME);
    check(|ann| ann.get("none"), queue, (60, 70));
    check(|ann| ann.purge("none"), queue, (50, 30));
    let exchange = "404 NOT_FOUND - no exchange 'none' in vhost '/'";
    check(|ann| ann.exchange_as("none", "", "passive", &[]), exchange, DECLARE_EXCHANGE);
    check(|ann| ann.bind("q", "none", "key", &[]), exchange, BIND);
    check(|ann| ann.route("none", "key", "a"), exchange, PUBLISH);
}

/// Idempotent since RabbitMQ 3.2.
#[test]
fn what_is_not_there_may_be_deleted() {
    let mut broker = Broker::new();
    let mut ann = broker.connect();
    assert_eq!(ann.delete("none", ""), "0");
    ann.delete_exchange("none", "");
    ann.declare("q", &[]);
    ann.unbind("q", "amq.direct", "key", &[]);
    ann.cancel("none");
}

#[test]
fn without_a_name_the_queue_declared_last_is_meant() {
    let told = "404 NOT_FOUND - no previously declared queue";
    let mut broker = Broker::new();
    let mut ann = broker.connect();
    assert_eq!(ann.refused(|ann| ann.get("")), told);
    ann.declare("q", &[]);
    ann.publish("q", "a");
    assert_eq!(ann.declare_as("", "passive", &[]), "q 1 0");
    ann.bind("", "amq.direct", "", &[]);
    ann.route("amq.direct", "q", "b");
    assert_eq!(ann.take_all(""), "a b");
    assert_eq!(ann.on(2).refused(|ann| ann.get("")), told, "each channel has its own");
}

#[test]
fn what_is_the_brokers_is_refused() {
    let default = "403 ACCESS_REFUSED - operation not permitted on the default exchange";
    check(|ann| ann.bind("q", "", "key", &[]), default, BIND);
    check(|ann| ann.unbind("q", "", "key", &[]), default, (50, 50));
    check(|ann| ann.exchange("", "direct", &[]), default, DECLARE_EXCHANGE);
    check(|ann| ann.exchange_as("", "", "passive", &[]), default, DECLARE_EXCHANGE);
    check(|ann| ann.delete_exchange("", ""), default, DELETE_EXCHANGE);
    let reserved = "403 ACCESS_REFUSED - exchange name 'amq.mine' contains reserved prefix 'amq.*'";
    check(|ann| ann.exchange("amq.mine", "direct", &[]), reserved, DECLARE_EXCHANGE);
    let reserved = "403 ACCESS_REFUSED - queue name 'amq.mine' contains reserved prefix 'amq.*'";
    check(|ann| ann.declare("amq.mine", &[]), reserved, DECLARE_QUEUE);
    let system = "403 ACCESS_REFUSED - deletion of system exchange 'amq.direct' in vhost '/' not allowed";
    check(|ann| ann.delete_exchange("amq.direct", ""), system, DELETE_EXCHANGE);
}

#[test]
fn nobody_publishes_to_an_internal_exchange() {
    check(
        |ann| {
            ann.exchange_as("ex", "fanout", "internal", &[]);
            ann.route("ex", "key", "a");
        },
        "403 ACCESS_REFUSED - cannot publish to internal exchange 'ex' in vhost '/'",
        PUBLISH,
    );
}

#[test]
fn what_is_in_use_or_not_empty_stays_if_that_is_wanted() {
    let used = "406 PRECONDITION_FAILED - queue 'q' in vhost '/' in use";
    check(
        |ann| {
            ann.consume("q");
            ann.delete("q", "if-unused")
        },
        used,
        DELETE_QUEUE,
    );
    let full = "406 PRECONDITION_FAILED - queue 'q' in vhost '/' not empty";
    check(
        |ann| {
            ann.publish("q", "a");
            ann.delete("q", "if-empty")
        },
        full,
        DELETE_QUEUE,
    );
    check(
        |ann| {
            ann.exchange("ex", "direct", &[]);
            ann.bind("q", "ex", "key", &[]);
            ann.delete_exchange("ex", "if-unused");
        },
        "406 PRECONDITION_FAILED - exchange 'ex' in vhost '/' in use",
        DELETE_EXCHANGE,
    );
}

#[test]
fn an_exclusive_consumer_is_alone() {
    let told = "403 ACCESS_REFUSED - queue 'q' in vhost '/' in exclusive use";
    check(
        |ann| {
            ann.consume_as("one", "q", "exclusive", &[]);
            ann.consume("q");
        },
        told,
        CONSUME,
    );
    check(
        |ann| {
            ann.consume("q");
            ann.consume_as("other", "q", "exclusive", &[])
        },
        told,
        CONSUME,
    );
}

#[test]
fn a_consumer_too_many_closes_its_channel() {
    check(
        |ann| {
            ann.declare("few", &[("x-max-consumers", Value::I32(1))]);
            ann.consume("few");
            ann.consume_as("d", "few", "", &[]);
        },
        "406 PRECONDITION_FAILED - the queue has as many consumers as it may; end consumers of this queue that are no \
         longer used, or raise its max_consumers",
        CONSUME,
    );
}

#[test]
fn a_delivery_tag_is_settled_once() {
    let unknown = |tag: u64| format!("406 PRECONDITION_FAILED - unknown delivery tag {tag}");
    check(|ann| ann.tell(basic::Ack { delivery_tag: 1, multiple: false }), &unknown(1), (60, 80));
    check(|ann| ann.tell(basic::Reject { delivery_tag: 0, requeue: true }), &unknown(0), (60, 90));
    check(
        |ann| ann.tell(basic::Nack { delivery_tag: 7, multiple: true, requeue: true }),
        &unknown(7),
        (60, 120),
    );
    check(
        |ann| {
            ann.publish("q", "a");
            ann.get("q");
            ann.ack("a");
            ann.ack("a");
        },
        &unknown(1),
        (60, 80),
    );
    check(
        |ann| {
            ann.publish("q", "a");
            ann.get("q");
            ann.on(2).tell(basic::Ack { delivery_tag: 1, multiple: false });
        },
        &unknown(1),
        (60, 80),
    );
}

#[test]
fn a_channel_is_in_one_mode() {
    check(
        |ann| {
            ann.confirm();
            ann.ask(tx::Select {})
        },
        "406 PRECONDITION_FAILED - cannot switch from confirm to tx mode",
        (90, 10),
    );
    check(
        |ann| {
            ann.begin();
            ann.ask(confirm::Select { no_wait: false })
        },
        "406 PRECONDITION_FAILED - cannot switch from tx to confirm mode",
        (85, 10),
    );
    let told = "406 PRECONDITION_FAILED - channel is not transactional";
    check(|ann| ann.ask(tx::Commit {}), told, (90, 20));
    check(|ann| ann.ask(tx::Rollback {}), told, (90, 30));
}

/// RabbitMQ never says CONTENT_TOO_LARGE (311), nor NO_CONSUMERS (313).
#[test]
fn a_message_that_is_too_large_costs_the_channel() {
    let body = "x".repeat(100_001);
    check(
        |ann| ann.route("", "q", &body),
        "406 PRECONDITION_FAILED - message size 100001 is larger than max size 100000",
        PUBLISH,
    );
}

/// One whose properties fit no frame of a consumer costs each of them its channel, until a delivery limit ends it.
#[test]
fn a_message_that_fits_no_frame_of_its_consumer_is_an_attempt_that_failed() {
    let mut broker = Broker::new();
    let mut ann = broker.connect();
    ann.declare("dead", &[]);
    let limits = [
        ("x-delivery-limit", n(2)),
        ("x-dead-letter-exchange", t("")),
        ("x-dead-letter-routing-key", t("dead")),
    ];
    ann.declare("q", &limits);
    let long = "x".repeat(5_000);
    ann.send_with("", "q", &[("long", t(&long))], "large");
    ann.route("", "q", "small");
    let told = "406 PRECONDITION_FAILED - the properties of the next message do not fit the frame that was agreed on; reconnect with a larger frame_max";
    for is_pulled in [true, false, true] {
        let mut bob = broker.accept();
        bob.log_in_with("/", MODERN, 4_096);
        let refused = bob.refused(|bob| {
            if is_pulled {
                bob.ask(basic::Get { ticket: 0, queue: text("q"), no_ack: false });
            } else {
                bob.consume_as("c", "q", "", &[]);
            }
        });
        assert_eq!(refused, told);
    }
    assert_eq!(ann.take_all("q"), "small");
    assert_eq!(ann.take_all("dead"), "large");
}

/// What the client said before it heard of it counts no more.
#[test]
fn a_channel_that_is_closed_takes_nothing_until_it_is_opened_again() {
    let mut broker = Broker::new();
    let mut ann = broker.connect();
    ann.declare("q", &[]);
    let passive = queue::Declare {
        ticket: 0,
        queue: text("none"),
        passive: true,
        durable: false,
        exclusive: false,
        auto_delete: false,
        no_wait: false,
        arguments: overtake_properties::TableRef::EMPTY,
    };
    let told = ann.refused(|ann| {
        ann.tell(passive);
        ann.publish("q", "a");
    });
    assert_eq!(told, "404 NOT_FOUND - no queue 'none' in vhost '/'");
    ann.publish("q", "b");
    assert_eq!(ann.take_all("q"), "b");
}

// ---- connections ----

#[test]
fn a_consumer_tag_is_used_once() {
    check(
        |ann| {
            ann.consume("q");
            ann.consume("q");
        },
        "connection 530 NOT_ALLOWED - attempt to reuse consumer tag 'c'",
        CONSUME,
    );
}

#[test]
fn nobody_has_written_that() {
    let not = "connection 540 NOT_IMPLEMENTED - ";
    check(
        |ann| ann.send_as("", "q", "immediate", Fields::default(), "a"),
        &format!("{not}immediate=true"),
        PUBLISH,
    );
    let qos = basic::Qos { prefetch_size: 1, prefetch_count: 0, global: false };
    check(|ann| ann.ask(qos), &format!("{not}prefetch_size!=0 (1)"), (60, 10));
    check(|ann| ann.ask(basic::Recover { requeue: false }), &format!("{not}requeue=false"), (60, 110));
    check(|ann| ann.ask(channel::Flow { active: false }), &format!("{not}active=false"), (20, 20));
}

#[test]
fn a_channel_is_opened_once_and_before_it_is_used() {
    check(
        |ann| ann.tell(channel::Open { out_of_band: text("") }),
        "connection 504 CHANNEL_ERROR - second 'channel.open' seen",
        (20, 10),
    );
    check(
        |ann| ann.tell_on(7, tx::Select {}),
        "connection 504 CHANNEL_ERROR - expected 'channel.open'",
        (90, 10),
    );
}

#[test]
fn there_are_so_many_channels() {
    check(
        |ann| ann.tell_on(2_048, channel::Open { out_of_band: text("") }),
        "connection 530 NOT_ALLOWED - channel 2048 is beyond the maximum allowed (2047)",
        (20, 10),
    );
}

#[test]
fn a_kind_of_exchange_that_nobody_knows_ends_the_connection() {
    check(
        |ann| ann.exchange("ex", "quick", &[]),
        "connection 503 COMMAND_INVALID - unknown exchange type 'quick'",
        DECLARE_EXCHANGE,
    );
}

#[test]
fn a_method_of_the_server_ends_the_connection() {
    check(
        |ann| ann.tell(basic::GetEmpty { cluster_id: text("") }),
        "connection 503 COMMAND_INVALID - basic.get-empty does not come from a client",
        (60, 72),
    );
    check(
        |ann| ann.tell_on(0, tx::Select {}),
        "connection 503 COMMAND_INVALID - tx.select does not come on channel 0",
        (90, 10),
    );
}

#[test]
fn what_is_no_frame_ends_the_connection() {
    let check = |bytes: &[u8], told: &str| {
        let mut broker = Broker::new();
        let mut ann = broker.connect();
        let refused = ann.refused(|ann| ann.bytes(bytes));
        assert!(refused.starts_with(told), "{refused}");
        assert!(ann.is_over());
    };
    check(b"\x07\x00\x01\x00\x00\x00\x00\xce", "connection 501 FRAME_ERROR - ");
    check(b"\x01\x00\x01\x00\x00\x00\x04\x00\x14\x00\x0a\x00", "connection 501 FRAME_ERROR - ");
    check(b"\x01\x00\x01\x00\x03\x00\x00", "connection 501 FRAME_ERROR - a frame of 196608 bytes");
    check(b"\x01\x00\x01\x00\x00\x00\x04\x00\x14\x00\x0a\xce", "connection 502 SYNTAX_ERROR - ");
    check(b"\x01\x00\x01\x00\x00\x00\x04\x00\x14\x00\x63\xce", "connection 540 NOT_IMPLEMENTED - ");
    check(b"\x03\x00\x01\x00\x00\x00\x01a\xce", "connection 505 UNEXPECTED_FRAME - ");
    check(
        b"\x02\x00\x01\x00\x00\x00\x0e\x00\x3c\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\xce",
        "connection 505 UNEXPECTED_FRAME - ",
    );
}

#[test]
fn a_method_amid_content_ends_the_connection() {
    let publish = basic::Publish {
        ticket: 0,
        exchange: short(""),
        routing_key: short("q"),
        mandatory: false,
        immediate: false,
    };
    check(
        |ann| {
            ann.tell(publish);
            ann.tell(tx::Select {});
        },
        "connection 505 UNEXPECTED_FRAME - expected content, got a method",
        (90, 10),
    );
}

#[test]
fn a_virtual_host_that_is_not_there_is_refused() {
    let mut broker = Broker::new();
    let mut ann = broker.accept();
    let told = ann.refused(|ann| ann.log_in("elsewhere", MODERN));
    assert_eq!(told, "connection 530 NOT_ALLOWED - vhost 'elsewhere' not found");
    assert_eq!(ann.fault, (10, 40));
}

#[test]
fn who_is_not_known_is_refused() {
    let mut broker = Broker::new();
    let mut ann = broker.accept();
    let told = ann.refused(|ann| ann.greet("PLAIN", b"\0guest\0wrong", MODERN));
    assert!(told.starts_with("connection 403 ACCESS_REFUSED - login refused (PLAIN)"), "{told}");
    let mut bob = broker.accept();
    bob.greet("PLAIN", b"\0guest\0wrong", &[]);
    assert!(bob.is_over(), "who does not understand that sees the connection closed");
    let mut eve = broker.accept();
    let told = eve.refused(|eve| eve.greet("MAGIC", b"", MODERN));
    assert_eq!(told, "connection 503 COMMAND_INVALID - unknown authentication mechanism 'MAGIC'");
}

#[test]
fn limits_beyond_the_brokers_are_refused() {
    let mut broker = Broker::new();
    let mut ann = broker.accept();
    ann.greet("PLAIN", b"\0guest\0guest", MODERN);
    assert_eq!(ann.answer(0), "connection.tune");
    let tune = connection::TuneOk { channel_max: 4_000, frame_max: 0, heartbeat: 0 };
    assert_eq!(
        ann.refused(|ann| ann.tell_on(0, tune)),
        "connection 530 NOT_ALLOWED - negotiated channel_max = 4000 is higher than the maximum allowed value (2047)"
    );
}

#[test]
fn an_operator_ends_the_connection() {
    let mut broker = Broker::new();
    let mut ann = broker.connect();
    let told = ann.refused(|ann| ann.force_close("the broker is being stopped"));
    assert_eq!(told, "connection 320 CONNECTION_FORCED - the broker is being stopped");
    assert_eq!(ann.fault, (0, 0));
}
