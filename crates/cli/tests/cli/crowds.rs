//! Crowds: more connections, logins, unfinished requests and consumers than a broker is made for. It lives, and everybody else goes on.
//!
//! `cargo xtask test --long` has larger crowds.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::process::Command;

use overtake_amqp::FrameWriter;
use overtake_amqp::method::{basic, channel, confirm};
use overtake_properties::{Fields, Short, ShortText};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::Value;
use tempfile::TempDir;

use crate::support::amqp::{Client, text};
use crate::support::http::ask;
use crate::support::{Broker, is_long, overtake};

/// Files that the broker may have open, and idle connections that others have to it.
const FILES: usize = 1_024;
const IDLE: usize = 1_000;
/// `nobody` with the password `wrong`.
const WRONG: &str = "Authorization: Basic bm9ib2R5Ondyb25n\r\n";

fn connect(address: &str) -> TcpStream {
    TcpStream::connect(address.trim_start_matches("http://")).expect("the system accepts")
}

/// A client has as many connections as it may.
fn have_many_files() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).expect("up to the hard limit");
}

/// `overtake` where no more files may be open, neither by the soft nor by the hard limit.
fn with_few_files(files: usize) -> Command {
    let overtake = overtake();
    let mut command = Command::new("sh");
    command.args(["-c", &format!("ulimit -n {files} && exec \"$0\" \"$@\"")]);
    command.arg(overtake.get_program()).args(overtake.get_args());
    for (name, value) in overtake.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command
}

/// A client over AMQP with an open channel.
fn client(broker: &Broker) -> Client<TcpStream> {
    let mut client = Client::open(connect(&broker.amqp), "PLAIN", b"\0guest\0guest");
    client.say(1, channel::Open { out_of_band: text("") });
    assert!(client.hear().starts_with("ChannelOpenOk"));
    client
}

/// Publishes a message to a queue, and waits until it is confirmed.
fn publish(client: &mut Client<TcpStream>, queue: &'static str) {
    let publish = basic::Publish { routing_key: Short::literal(queue), ..basic::Publish::default() };
    let mut frames = Vec::new();
    let properties = Fields::default().encode();
    FrameWriter::new(&mut frames, 131_072).content(1, publish, properties.view(), b"body").expect("it fits");
    client.stream.write_all(&frames).expect("the broker reads");
    let answer = client.hear();
    assert!(answer.starts_with("BasicAck"), "{answer}");
}

#[test]
fn a_thousand_idle_connections_cost_nobody_a_publish() {
    have_many_files();
    let dir = TempDir::new().expect("a directory");
    let broker = Broker::start_as(with_few_files(FILES), &dir.path().join("data"), &["--queue", "q"]);
    let mut amqp = client(&broker);
    amqp.say(1, confirm::Select { no_wait: false });
    assert!(amqp.hear().starts_with("ConfirmSelectOk"));
    for address in [&broker.url, &broker.amqp] {
        let idle: Vec<TcpStream> = (0..IDLE).map(|_| connect(address)).collect();
        publish(&mut amqp, "q");
        drop(idle);
    }
    // A store that had failed would say so at the end.
    drop(amqp);
    broker.stop();
}

#[test]
fn wrong_passwords_do_not_hold_up_right_ones() {
    have_many_files();
    // Even of the fewer, all would take minutes: from the fourth on each waits twice as long as the one before it, up to 8 s.
    let strangers = if is_long() { 1_500 } else { 30 };
    let dir = TempDir::new().expect("a directory");
    let broker = Broker::start(&dir.path().join("data"));
    let whoami = || ask(&broker.url, "GET", "/v1/whoami", &Value::Null).expect(200);
    whoami();
    let request = format!("GET /v1/whoami HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{WRONG}\r\n");
    let mut crowd: Vec<TcpStream> = (0..strangers).map(|_| connect(&broker.url)).collect();
    for stranger in &mut crowd {
        stranger.write_all(request.as_bytes()).expect("it reads");
    }
    // Once one has had its turn, the others wait for theirs.
    let mut status = [0; 12];
    crowd[0].read_exact(&mut status).expect("an answer");
    assert_ne!(&status, b"HTTP/1.1 200");
    whoami();
    let has_answer = |stranger: &TcpStream| {
        stranger.set_nonblocking(true).expect("a socket");
        match stranger.peek(&mut [0]) {
            Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock, "{error}"),
            Ok(_) => return true,
        }
        false
    };
    let answered = crowd[1..].iter().filter(|stranger| has_answer(stranger)).count();
    assert!(answered + 1 < strangers, "it waited for all of them");
    drop(crowd);
    broker.stop();
}

#[test]
fn unfinished_requests_are_ended_and_nobody_waits_for_them() {
    let crowd = if is_long() { 30 } else { 3 };
    let dir = TempDir::new().expect("a directory");
    let broker = Broker::start_with(&dir.path().join("data"), &["--http-header-timeout-ms", "300"]);
    let request = "POST /v1/session HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{";
    let mut crowd: Vec<TcpStream> = (0..crowd).map(|_| connect(&broker.url)).collect();
    for one in &mut crowd {
        one.write_all(request.as_bytes()).expect("it reads");
    }
    ask(&broker.url, "GET", "/livez", &Value::Null).expect(200);
    for one in &mut crowd {
        let mut answer = String::new();
        one.read_to_string(&mut answer).expect("it ends");
        assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
    }
    broker.stop();
}

#[test]
fn the_end_of_many_consumers_holds_up_no_other_queue() {
    let (connections, consumers) = if is_long() { (20, 2_000) } else { (4, 100) };
    let dir = TempDir::new().expect("a directory");
    let broker = Broker::start_with(&dir.path().join("data"), &["--queue", "crowded", "--queue", "other"]);
    let mut publisher = client(&broker);
    publisher.say(1, confirm::Select { no_wait: false });
    assert!(publisher.hear().starts_with("ConfirmSelectOk"));
    let mut crowd: Vec<Client<TcpStream>> = (0..connections).map(|_| client(&broker)).collect();
    for one in &mut crowd {
        let mut frames = Vec::new();
        for number in 0..consumers {
            let tag = number.to_string();
            let consumer_tag = ShortText::cut(&tag);
            let consume = basic::Consume {
                queue: text("crowded"),
                consumer_tag,
                no_wait: true,
                ..basic::Consume::default()
            };
            FrameWriter::new(&mut frames, 0).method(1, consume);
        }
        one.stream.write_all(&frames).expect("the broker reads");
    }
    let count = || {
        let queue = ask(&broker.url, "GET", "/v1/queues/crowded", &Value::Null).expect(200);
        queue["consumers"].as_u64().expect("a number")
    };
    while count() < connections * consumers {
        std::thread::yield_now();
    }
    for _ in 0..connections * 10 {
        publish(&mut publisher, "crowded");
    }
    drop(crowd);
    publish(&mut publisher, "other");
    while count() > 0 {
        std::thread::yield_now();
    }
    publish(&mut publisher, "other");
    drop(publisher);
    broker.stop();
}
