//! A wire and a server on a socket in memory, in the time of the runtime.

use std::time::Duration;

use overtake_amqp::connection::{Ask, Connection, Options};
use overtake_amqp::method::basic;
use overtake_lane::Time;
use tokio::io::{DuplexStream, duplex};
use tokio::time::Instant;

use super::*;
use crate::amqp::CHANNEL;

const HEARTBEAT_S: u16 = 10;

/// The time of the runtime.
struct RuntimeClock(Instant);

impl Clock for RuntimeClock {
    fn now(&self) -> Time {
        Time(u64::try_from(self.0.elapsed().as_millis()).expect("a test is short"))
    }

    fn until(&self, when: Time) -> Option<Duration> {
        Some(Duration::from_millis(when.since(self.now())))
    }
}

/// Lets everybody in, and takes no messages from `blocks_at` on, until the connection is over. Answers whether it was asked to close it.
async fn serve(mut socket: DuplexStream, clock: Arc<RuntimeClock>, blocks_at: Time) -> bool {
    let options = Options { heartbeat_s: HEARTBEAT_S, ..Options::default() };
    let (mut server, mut input) = (Connection::new(clock.now(), options), BytesMut::new());
    while !server.is_over() {
        for ask in server.take_asks() {
            match ask {
                Ask::Login(_) => server.logged_in(true),
                Ask::Open { .. } => server.opened(Ok(())),
                _ => {}
            }
        }
        if clock.now() >= blocks_at {
            server.block(Some("no room"));
        }
        let output = std::mem::take(server.output());
        if !output.is_empty() {
            socket.write_all(&output).await.expect("written");
            server.written(clock.now());
        }
        let blocks_at = (clock.now() < blocks_at).then_some(blocks_at);
        let wakes = server.next_deadline().into_iter().chain(blocks_at).min();
        let patience = wakes.and_then(|at| clock.until(at)).unwrap_or(Duration::MAX);
        match tokio::time::timeout(patience, socket.read_buf(&mut input)).await {
            Err(_) => server.tick(clock.now()),
            Ok(Ok(len)) if len > 0 => server.receive(clock.now(), &mut input),
            Ok(_) => return server.is_over(),
        }
    }
    let _ = socket.write_all(server.output()).await;
    true
}

#[tokio::test(start_paused = true)]
async fn a_connection_on_which_nothing_is_taken_stays_and_what_comes_is_kept() {
    let (here, there) = duplex(1 << 16);
    let clock = Arc::new(RuntimeClock(Instant::now()));
    let server = tokio::spawn(serve(there, Arc::clone(&clock), Time(100_000)));
    let options = ClientOptions { heartbeat_s: HEARTBEAT_S, ..ClientOptions::default() };
    let mut wire = Wire::open(here, options, clock).await.expect("open");
    for _ in 0..60 {
        let waited = tokio::time::timeout(Duration::from_secs(10), wire.lost()).await;
        assert!(waited.is_err(), "it stays: {waited:?}");
    }
    assert!(!server.is_finished(), "the server hears signs of life");
    let heard = [wire.next().await, wire.next().await].map(|event| event.expect("it was kept"));
    assert!(matches!(heard, [Event::Answered { .. }, Event::Blocked { .. }]), "{heard:?}");
    server.abort();
    let lost = tokio::time::timeout(Duration::from_secs(60), wire.lost()).await;
    assert!(lost.is_ok(), "it is lost");
}

/// As TLS does when its socket is full.
#[tokio::test(start_paused = true)]
async fn what_the_socket_keeps_back_goes_although_nothing_follows() {
    let (here, there) = duplex(1 << 16);
    let clock = Arc::new(RuntimeClock(Instant::now()));
    tokio::spawn(serve(there, Arc::clone(&clock), Time::NEVER));
    let options = ClientOptions { heartbeat_s: 0, ..ClientOptions::default() };
    let opened = Wire::open(tokio::io::BufWriter::new(here), options, clock).await;
    assert!(opened.is_ok_and(|wire| wire.client.is_open()));
}

#[tokio::test(start_paused = true)]
async fn closed_means_that_the_server_has_heard_it() {
    let (here, there) = duplex(1 << 16);
    let clock = Arc::new(RuntimeClock(Instant::now()));
    let server = tokio::spawn(serve(there, Arc::clone(&clock), Time::NEVER));
    let mut wire = Wire::open(here, ClientOptions::default(), clock).await.expect("open");
    wire.close("enough").await;
    assert!(server.await.expect("it ended"), "it was asked");
}

/// If the end were taken as one more event, the next wait would be for an answer that never comes.
#[tokio::test(start_paused = true)]
async fn a_channel_that_the_server_closes_is_told_to_whoever_waits_though_something_was_heard_before() {
    let (here, there) = duplex(1 << 16);
    let clock = Arc::new(RuntimeClock(Instant::now()));
    tokio::spawn(serve(there, Arc::clone(&clock), Time::NEVER));
    let mut wire = Wire::open(here, ClientOptions::default(), clock).await.expect("open");
    // Nothing has this tag.
    wire.client.ask(CHANNEL, basic::Ack { delivery_tag: 7, multiple: false }).expect("said");
    wire.flush().await.expect("in the socket");
    let why = wire.lost().await.to_string();
    assert!(why.contains("the server closed the channel: 406"), "{why}");
    while let Some(event) = wire.heard() {
        assert!(ended_by(&event).is_none(), "{event:?}");
    }
    assert_eq!(wire.next().await.map_err(|error| error.to_string()).expect_err("it is over"), why);
}
