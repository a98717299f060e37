//! A message of a trace, over AMQP and back, and what a collector hears of it; and who holds it meanwhile.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, sync_channel};

use overtake_amqp::FrameWriter;
use overtake_amqp::method::{basic, channel, queue};
use overtake_properties::{Fields, Short, TableBuilder, TableRef, Value};
use rustix::process::Signal;

use crate::support;
use crate::support::Broker;
use crate::support::amqp::{Client, text};
use crate::support::http::ask;
use crate::support::tls::connect;

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// A collector that takes everything. Answers its address, and what is told of traces.
fn collector() -> (String, Receiver<Vec<u8>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("http://{}", listener.local_addr().expect("an address"));
    let (tell, told) = sync_channel(1_000);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (stream, tell) = (stream.expect("a connection"), tell.clone());
            std::thread::spawn(move || {
                let mut stream = BufReader::new(stream);
                while let Some((path, body)) = request(&mut stream) {
                    if path == "/v1/traces" {
                        tell.send(body).expect("the test listens");
                    }
                    let answer = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
                    stream.get_mut().write_all(answer.as_bytes()).expect("the broker reads");
                }
            });
        }
    });
    (address, told)
}

fn request(stream: &mut impl BufRead) -> Option<(String, Vec<u8>)> {
    let (mut first, mut len) = (String::new(), 0);
    stream.read_line(&mut first).ok().filter(|read| *read > 0)?;
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).ok()?;
        match line.trim().split_once(": ") {
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => len = value.parse().ok()?,
            None if line.trim().is_empty() => break,
            _ => {}
        }
    }
    let mut body = vec![0; len];
    stream.read_exact(&mut body).ok()?;
    Some((first.split(' ').nth(1)?.to_owned(), body))
}

#[test]
fn a_traced_message_is_told_of_from_its_publish_to_its_end() {
    let (address, told) = collector();
    let dir = tempfile::tempdir().expect("a directory");
    let flags = ["--otlp-endpoint", &address, "--traces-sample", "1", "--trace-url", "http://t/{trace_id}"];
    let broker = Broker::start_with(&dir.path().join("data"), &flags);
    let stream = connect(&broker.amqp);
    let (local, peer) = (stream.local_addr().expect("bound"), stream.peer_addr().expect("connected"));
    let mut client = Client::open(stream, "PLAIN", b"\0guest\0guest");
    client.say(1, channel::Open { out_of_band: text("") });
    client.hear();
    client.say(
        1,
        queue::Declare {
            ticket: 0,
            queue: text("jobs"),
            passive: false,
            durable: true,
            exclusive: false,
            auto_delete: false,
            no_wait: false,
            arguments: TableRef::EMPTY,
        },
    );
    client.hear();
    let headers = TableBuilder::new().entry(Short::literal("traceparent"), Value::String(PARENT.as_bytes()));
    let properties = Fields { headers: Some(headers.view()), ..Fields::default() }.encode();
    let publish = basic::Publish {
        ticket: 0,
        exchange: Short::literal(""),
        routing_key: Short::literal("jobs"),
        mandatory: false,
        immediate: false,
    };
    let mut frames = Vec::new();
    FrameWriter::new(&mut frames, 131_072).content(1, publish, properties.view(), b"body").expect("it fits");
    client.stream.write_all(&frames).expect("the broker reads");
    client.say(
        1,
        basic::Consume {
            ticket: 0,
            queue: text("jobs"),
            consumer_tag: text("worker-7"),
            no_local: false,
            no_ack: false,
            exclusive: false,
            no_wait: false,
            arguments: TableRef::EMPTY,
        },
    );
    client.hear();
    assert!(client.hear().starts_with("BasicDeliver"));
    let path = "/v1/queues/jobs/messages/seq-1";
    let message = ask(&broker.url, "GET", path, &serde_json::Value::Null).expect(200);
    let holder = &message["holder"];
    assert_eq!((&holder["user"], &holder["consumer_tag"]), (&"guest".into(), &"worker-7".into()));
    assert_eq!(holder["connection"], format!("{local} -> {peer}"), "as the management API has it");
    assert!(holder["since"].is_string());
    assert_eq!(message["headers"]["traceparent"], PARENT);
    assert_eq!(message["trace"]["url"], "http://t/0af7651916cd43dd8448eb211c80319c");
    client.say(1, basic::Ack { delivery_tag: 1, multiple: false });
    client.say(1, basic::Qos { prefetch_size: 0, prefetch_count: 1, global: false });
    client.hear();
    drop(client);
    broker.signal(Signal::TERM);
    assert!(broker.end().0.success());
    let all: Vec<u8> = told.try_iter().flatten().collect();
    let says = |words: &[u8]| all.windows(words.len()).any(|window| window == words);
    for words in ["publish jobs", "wait jobs", "handle jobs", "acked", "service.name", "messaging.system"] {
        assert!(says(words.as_bytes()), "nothing is told of {words}");
    }
    assert!(says(&0x0af7_6519_16cd_43dd_8448_eb21_1c80_319c_u128.to_be_bytes()));
}

#[test]
fn traces_need_somewhere_to_go() {
    let dir = tempfile::tempdir().expect("a directory");
    let data = dir.path().join("data");
    let serve = |flags: &[&str]| {
        let words = [&["serve", "--data-dir", data.to_str().expect("a path")], flags].concat();
        support::run(&words, b"")
    };
    let nowhere = serve(&["--traces-sample", "0.1"]);
    assert_eq!(nowhere.code, 78);
    assert!(nowhere.stderr.contains("there is no collector"), "{}", nowhere.stderr);
    let page = serve(&["--trace-url", "https://traces.example/"]);
    assert!(page.code == 78 && page.stderr.contains("{trace_id}"), "{}", page.stderr);
    let share = serve(&["--traces-sample", "2"]);
    assert!(share.code == 78 && share.stderr.contains("is no share"), "{}", share.stderr);
}
