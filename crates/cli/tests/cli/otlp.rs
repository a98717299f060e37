//! Metrics that the real broker pushes, to a collector that only counts.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use tempfile::TempDir;

use crate::support;
use crate::support::{Broker, PATIENCE, overtake};

/// A request as it came: its head in small letters, and its body.
type Pushed = (String, Vec<u8>);

/// Takes whatever is posted. Answers its address, too.
fn collector() -> (String, Receiver<Pushed>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("http://{}", listener.local_addr().expect("an address"));
    let (send, pushed) = sync_channel(1_000);
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let send = send.clone();
            std::thread::spawn(move || serve(stream, &send));
        }
    });
    (address, pushed)
}

fn serve(stream: TcpStream, send: &SyncSender<Pushed>) {
    let mut reader = BufReader::new(stream);
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if reader.read_line(&mut head).is_ok_and(|read| read > 0) {
                continue;
            }
            return;
        }
        let head = head.to_lowercase();
        let len = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
        let mut body = vec![0; len.expect("a length")];
        reader.read_exact(&mut body).expect("a body");
        // Nobody may be waiting any more.
        let _ = send.send((head, body));
        reader.get_mut().write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").expect("it reads");
    }
}

fn says(body: &[u8], text: &str) -> bool {
    body.windows(text.len()).any(|window| window == text.as_bytes())
}

#[test]
fn a_broker_pushes_and_once_more_when_it_stops() {
    let dir = TempDir::new().expect("a directory");
    let (address, pushed) = collector();
    let mut command = overtake();
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", &address);
    command.env("OTEL_EXPORTER_OTLP_HEADERS", "api-key=s3cret%20word");
    command.env("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=test");
    let flags = ["--otlp-interval-ms", "20", "--service-name", "orders"];
    let broker = Broker::start_as(command, &dir.path().join("data"), &flags);
    let next = || pushed.recv_timeout(PATIENCE).expect("a push");
    let (head, body) = next();
    assert!(head.starts_with("post /v1/metrics http/1.1\r\n"), "{head}");
    assert!(head.contains("\r\napi-key: s3cret word\r\n"), "{head}");
    for text in ["service.name", "orders", "deployment.environment", "overtake.engine.up", "process.cpu"] {
        assert!(says(&body, text), "{text}");
    }
    broker.run(&["queue", "declare", "late"]).ok();
    broker.stop();
    let last = pushed.try_iter().last().expect("a last push");
    assert!(says(&last.1, "late"), "the last push says what was so at the end");
}

#[test]
fn a_broker_that_stops_says_once_more_what_it_knows() {
    let dir = TempDir::new().expect("a directory");
    let (address, pushed) = collector();
    let flags = ["--otlp-endpoint", &address, "--otlp-interval-ms", "1h"];
    let broker = Broker::start_with(&dir.path().join("data"), &flags);
    broker.run(&["queue", "declare", "work"]).ok();
    assert!(pushed.try_recv().is_err(), "not before its time");
    broker.stop();
    let (_, body) = pushed.try_recv().expect("the last push");
    assert!(says(&body, "work"));
    assert!(pushed.try_recv().is_err(), "one is enough");
}

#[test]
fn a_collector_that_is_not_there_is_told_once_and_holds_up_nothing() {
    let dir = TempDir::new().expect("a directory");
    let flags = ["--otlp-endpoint", "http://127.0.0.1:1", "--otlp-interval-ms", "1"];
    let broker = Broker::start_with(&dir.path().join("data"), &flags);
    loop {
        let text = support::http::text(&broker.url, "/metrics");
        let failed = text.lines().find_map(|line| {
            line.strip_prefix("overtake_otlp_pushes_total{outcome=\"failed\"} ")?.parse::<u64>().ok()
        });
        if failed.expect("it is counted") > 2 {
            break;
        }
    }
    broker.run(&["queue", "declare", "work"]).ok();
    broker.signal(rustix::process::Signal::TERM);
    let (status, said) = broker.end();
    assert!(status.success(), "{said}");
    assert_eq!(said.matches("metrics do not arrive").count(), 1, "{said}");
}

#[test]
fn headers_of_a_collector_are_not_shown() {
    let mut command = overtake();
    command.env("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Basic%20c2VjcmV0");
    let shown = command.args(["config", "show", "--origin"]).output().expect("it runs");
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    let line = shown.lines().find(|line| line.starts_with("otlp_headers")).expect("it is a setting");
    assert!(line.contains("\"authorization=***\"") && line.contains("OTEL_EXPORTER_OTLP_HEADERS"), "{line}");
    assert!(!shown.contains("c2VjcmV0"), "{shown}");
}

#[test]
fn headers_on_the_command_line_are_warned_of_and_a_reference_is_not() {
    let dir = TempDir::new().expect("a directory");
    let kept = dir.path().join("headers");
    std::fs::write(&kept, "api-key=s3cret").expect("written");
    let reference = format!("{{ file = \"{}\" }}", kept.display());
    for (headers, is_warned) in [("api-key=s3cret", true), (&*reference, false)] {
        let broker = Broker::start_with(&dir.path().join("data"), &["--otlp-headers", headers]);
        broker.signal(rustix::process::Signal::TERM);
        let (status, said) = broker.end();
        assert!(status.success() && !said.contains("s3cret"), "{said}");
        assert_eq!(said.contains("--otlp-headers says the headers on the command line"), is_warned, "{said}");
    }
}
