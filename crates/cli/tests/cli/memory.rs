//! Clients that send and take as they like do not make the broker hold more memory than it may, and urgent messages of others go on.

#![allow(clippy::print_stdout, reason = "says why it is skipped, and how much memory was taken")]

use std::io::Write;
use std::net::{Shutdown, TcpStream};
use std::thread::JoinHandle;

use overtake_amqp::FrameWriter;
use overtake_amqp::method::{basic, channel, confirm, queue, tx};
use overtake_properties::{Fields, Short, TableRef};

use crate::support::amqp::{Client, text};
use crate::support::memory::{MemoryGroup, peak};
use crate::support::tls::connect;
use crate::support::{Broker, http, overtake};

/// What the process may have.
const MEMORY: u64 = 512 << 20;
const BODY: usize = 512 << 10;
/// The most that a frame of a client may be.
const FRAME_MAX: u32 = 128 << 10;

/// Somebody who opened so many channels and is never heard again.
fn client(broker: &Broker, channels: u16) -> Client<TcpStream> {
    let mut client = Client::open(connect(&broker.amqp), "PLAIN", b"\0guest\0guest");
    for channel in 1..=channels {
        client.say(channel, channel::Open { out_of_band: text("") });
        assert!(client.hear().starts_with("ChannelOpenOk"));
    }
    client
}

/// Waits until all that it said before is done.
fn settle(client: &mut Client<TcpStream>, name: &'static str) {
    client.say(
        1,
        queue::Declare {
            ticket: 0,
            queue: text(name),
            passive: true,
            durable: true,
            exclusive: false,
            auto_delete: false,
            no_wait: false,
            arguments: TableRef::EMPTY,
        },
    );
    let declared = client.hear();
    assert!(declared.starts_with("QueueDeclareOk"), "{declared}");
}

/// A message to this queue as bytes, for a channel.
fn message(channel: u16, queue: &'static str, mandatory: bool, body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let publish = basic::Publish {
        ticket: 0,
        exchange: Short::literal(""),
        routing_key: Short::literal(queue),
        mandatory,
        immediate: false,
    };
    let mut writer = FrameWriter::new(&mut bytes, FRAME_MAX);
    writer.content(channel, publish, Fields::default().encode().view(), body).expect("it fits");
    bytes
}

/// Somebody who consumes from `bulk` without a window, and does not read.
fn consumer(broker: &Broker, no_ack: bool) -> Client<TcpStream> {
    let mut consumer = client(broker, 1);
    consumer.say(
        1,
        basic::Consume {
            ticket: 0,
            queue: text("bulk"),
            consumer_tag: text(""),
            no_local: false,
            no_ack,
            exclusive: false,
            no_wait: true,
            arguments: TableRef::EMPTY,
        },
    );
    consumer
}

/// Says these bytes so often, as fast as the broker reads them, until it is cut off.
fn flood(client: &Client<TcpStream>, bytes: Vec<u8>, times: usize) -> JoinHandle<()> {
    let mut stream = client.stream.try_clone().expect("a socket");
    std::thread::spawn(move || {
        for _ in 0..times {
            if stream.write_all(&bytes).is_err() {
                return;
            }
        }
    })
}

/// Publishes an urgent message and gets it.
fn urgent(broker: &Broker, after: &str) {
    let mut client = client(broker, 1);
    client.say(1, confirm::Select { no_wait: false });
    client.hear();
    client.stream.write_all(&message(1, "urgent", false, b"now")).expect("the broker reads");
    let confirmed = client.hear();
    assert!(confirmed.starts_with("BasicAck"), "{after}: {confirmed}");
    client.say(1, basic::Get { ticket: 0, queue: text("urgent"), no_ack: true });
    let got = client.hear();
    assert!(got.starts_with("BasicGetOk"), "{after}: {got}");
}

/// A number of the broker's metrics, which has no labels.
fn metric(broker: &Broker, name: &str) -> u64 {
    let all = http::text(&broker.url, "/metrics");
    let line = all.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.and_then(|number| number.parse::<f64>().ok()).unwrap_or_else(|| panic!("no {name} in {all}")) as u64
}

/// Waits until a counter moves.
fn await_metric(broker: &Broker, name: &str) {
    while metric(broker, name) == 0 {
        std::thread::yield_now();
    }
}

#[test]
fn nobody_makes_the_broker_hold_more_memory_than_it_may_and_urgent_messages_go_on() {
    let dir = tempfile::tempdir().expect("a directory");
    let group = MemoryGroup::make(MEMORY);
    let command = match &group {
        Ok(group) => group.enter(&overtake()),
        Err(why) => {
            println!("skipped: no control group ends the broker, its memory is only measured: {why}");
            overtake()
        }
    };
    // Requests may be no larger, so that two of them are not more than the budget.
    let requests = ["--max-request-bytes", "8MiB", "--max-message-bytes", "1MiB"];
    let flags =
        [&["--queue", "bulk", "--queue", "urgent", "--connection-memory-bytes", "128MiB"], &requests[..]];
    let broker = Broker::start_as(command, &dir.path().join("data"), &flags.concat());
    let (body, mut floods) = (vec![b'x'; BODY], Vec::new());
    let mut open = Vec::new();

    // Published at full speed, and nobody waits for a confirm.
    let mut publishers: Vec<_> = (0..8).map(|_| client(&broker, 1)).collect();
    let published = publishers.iter().map(|one| flood(one, message(1, "bulk", false, &body), 64));
    let published: Vec<_> = published.collect();
    urgent(&broker, "publishing");
    published.into_iter().for_each(|flood| flood.join().expect("no panic"));
    for publisher in &mut publishers {
        settle(publisher, "bulk");
    }
    println!("published: {} MiB", peak(broker.id()) >> 20);

    // Consumers without a window that do not read.
    for number in 0..4 {
        open.push(consumer(&broker, number % 2 == 0));
    }
    await_metric(&broker, "overtake_pushed_waits_total");
    urgent(&broker, "pushing");
    println!("pushed: {} MiB", peak(broker.id()) >> 20);

    // Answers that nobody reads.
    let mut asking = client(&broker, 200);
    for channel in 1..=200 {
        asking.say(channel, basic::Get { ticket: 0, queue: text("bulk"), no_ack: false });
    }
    open.push(asking);
    for _ in 0..4 {
        let returned = client(&broker, 1);
        floods.push(flood(&returned, message(1, "nowhere", true, &body), 64));
        open.push(returned);
    }
    urgent(&broker, "answering");
    println!("answered: {} MiB", peak(broker.id()) >> 20);

    // Contents that never come whole, and transactions that are never committed.
    for _ in 0..12 {
        let unfinished = client(&broker, 10);
        let contents = (1..=10).flat_map(|channel| {
            let mut content = message(channel, "bulk", false, &body);
            content.truncate(content.len() - 100_000);
            content.truncate(whole_frames(&content));
            content
        });
        floods.push(flood(&unfinished, contents.collect(), 1));
        open.push(unfinished);
        let mut transaction = client(&broker, 1);
        transaction.say(1, tx::Select {});
        transaction.hear();
        floods.push(flood(&transaction, message(1, "nowhere", false, &body), 10));
        open.push(transaction);
    }
    await_metric(&broker, "overtake_connections_memory_waits_total");
    urgent(&broker, "holding");
    let held = metric(&broker, "overtake_connections_memory_bytes");
    let limit = metric(&broker, "overtake_connections_memory_limit_bytes");
    // Those who hold less than their share go on, until they hold as much together.
    assert!(held <= 2 * limit + (8 << 20), "{held} of {limit} bytes");

    let most = peak(broker.id());
    println!("held: {} MiB", most >> 20);
    assert!(most < MEMORY, "{} MiB", most >> 20);
    for client in &open {
        let _ = client.stream.shutdown(Shutdown::Both);
    }
    floods.into_iter().for_each(|flood| flood.join().expect("no panic"));
    drop((open, publishers));
    broker.stop();
}

/// The bytes of the frames that are whole.
fn whole_frames(bytes: &[u8]) -> usize {
    let mut at = 0;
    while let Ok(Some(frame)) = overtake_amqp::Frame::parse(&bytes[at..], u32::MAX) {
        at += frame.len();
    }
    at
}

#[test]
fn a_client_that_takes_no_byte_is_disconnected_without_heartbeats() {
    let dir = tempfile::tempdir().expect("a directory");
    let flags = ["--queue", "bulk", "--amqp-send-timeout-ms", "500ms"];
    let broker = Broker::start_with(&dir.path().join("data"), &flags);
    let publisher = client(&broker, 1);
    let body = vec![b'x'; BODY];
    // More than the system buffers for a connection.
    let published = flood(&publisher, message(1, "bulk", false, &body), 40);
    let closed = metric(&broker, "overtake_connections_closed_total");
    let deaf = consumer(&broker, false);
    published.join().expect("no panic");
    while metric(&broker, "overtake_connections_closed_total") == closed {
        std::thread::yield_now();
    }
    // What was pushed to it is nobody's.
    while metric(&broker, "overtake_pushed_bytes") > 0 {
        std::thread::yield_now();
    }
    drop((deaf, publisher));
    broker.stop();
}
