//! Two brokers on one server, with the real binary: what is made, changed and taken at one of them holds at the other, and what runs at one runs at the other when that one is gone.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::Instant;

use serde_json::{Value, json};

use crate::support::amqp::Client;
use crate::support::http::ask;
use crate::support::{Broker, PATIENCE};
use crate::valkey::{Program, Server};

fn start(dir: &Path, server: &Server) -> Broker {
    Broker::start_with(dir, &["--engine", "redis", "--engine-nodes", &server.url()])
}

/// A stream of events that `ann` watches, of which the first bytes have come.
fn watch(broker: &Broker) -> TcpStream {
    let mut stream = TcpStream::connect(broker.url.trim_start_matches("http://")).expect("it listens");
    let request = "GET /v1/overview/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Basic YW5uOnNlY3JldA==\r\nConnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).expect("it reads");
    let mut status = [0; "HTTP/1.1 200".len()];
    stream.read_exact(&mut status).expect("it answers");
    assert_eq!(&status, b"HTTP/1.1 200");
    stream
}

/// Waits until something is so at a broker.
#[track_caller]
fn until(what: &str, is_so: impl Fn() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < end, "not so: {what}");
    }
}

fn endpoint(broker: &Broker) -> Value {
    ask(&broker.url, "GET", "/v1/endpoints/e", &Value::Null).json
}

fn ready(broker: &Broker, queue: &str) -> Value {
    ask(&broker.url, "GET", &format!("/v1/queues/{queue}"), &Value::Null).json["totals"]["ready"].clone()
}

#[test]
fn whoever_is_deleted_at_one_broker_is_gone_at_the_other() {
    for program in Program::all() {
        let server = Server::start_with(program, |_| vec!["--appendonly".to_owned(), "no".to_owned()]);
        let dir = tempfile::tempdir().expect("a directory");
        let [here, there] = ["here", "there"].map(|name| start(&dir.path().join(name), &server));
        let put = ["user", "put", "ann", "--new-password", "--tag", "administrator"];
        here.feed(&put, b"secret\n").ok();
        here.run(&["user", "allow", "ann", "--all"]).ok();
        let token = here.run(&["token", "make", "--for", "ann", "--label", "ci"]).ok();
        let file = dir.path().join("token");
        std::fs::write(&file, &token).expect("written");
        let by_token = || {
            let mut command = there.command(&["whoami"]);
            command.env("OVERTAKE_TOKEN_FILE", &file).output().expect("it runs").status
        };
        until("the token is known", || by_token().success());
        let stream = || TcpStream::connect(&there.amqp).expect("it listens");
        let mut denied = Client::open(stream(), "PLAIN", b"\0ann\0secret");
        here.run(&["user", "deny", "ann"]).ok();
        let told = denied.hear();
        assert!(told.contains("access to vhost '/' refused for user 'ann'"), "{program:?} {told}");
        here.run(&["user", "allow", "ann", "--all"]).ok();
        until("she may again", || {
            !Client::turned_away(stream(), "PLAIN", b"\0ann\0secret").contains("refused for user")
        });
        let mut deleted = Client::open(stream(), "PLAIN", b"\0ann\0secret");
        let mut watching = watch(&there);
        here.run(&["user", "delete", "ann", "--yes"]).ok();
        watching.read_to_end(&mut Vec::new()).expect("the stream ends");
        let told = deleted.hear();
        assert!(told.contains("user 'ann' is deleted"), "{program:?} {told}");
        assert!(Client::refused(stream(), "PLAIN", b"\0ann\0secret").contains("ACCESS_REFUSED"));
        assert_eq!(by_token().code(), Some(77));
    }
}

#[test]
fn an_endpoint_works_at_another_broker_when_its_own_is_gone() {
    for program in Program::all() {
        let server = Server::start_with(program, |_| vec!["--appendonly".to_owned(), "no".to_owned()]);
        let dir = tempfile::tempdir().expect("a directory");
        let [first, second, third] =
            ["first", "second", "third"].map(|name| start(&dir.path().join(name), &server));
        for queue in ["q", "r"] {
            ask(&first.url, "PUT", &format!("/v1/queues/{queue}"), &json!({})).expect(201);
        }
        until("the queues are known", || ready(&second, "r") == 0 && ready(&third, "r") == 0);
        let to = json!({"queue": "q", "to": {"queue": {"name": "r"}}});
        ask(&first.url, "PUT", "/v1/endpoints/e", &to).expect(201);
        until("the others know it", || {
            [&second, &third].iter().all(|broker| endpoint(broker)["state"] == "elsewhere")
        });
        let at = endpoint(&first)["broker"].as_str().expect("it is named").to_owned();
        let listed = second.run(&["endpoint", "list"]).ok();
        assert!(listed.contains(&format!("runs at {at}")), "{listed}");
        let shown = second.run(&["endpoint", "show", "e"]).ok();
        assert!(shown.contains(&format!("runs at: {at}")), "{shown}");
        let publish = |broker: &Broker| {
            let messages = json!({"messages": [{"body": "x"}]});
            ask(&broker.url, "POST", "/v1/queues/q/messages", &messages).expect(201);
        };
        publish(&third);
        until("it is sent", || ready(&third, "r") == 1);

        first.kill();
        publish(&third);
        until("another sends", || ready(&third, "r") == 2);
        let runs = |broker: &Broker| endpoint(broker)["state"] == "idle";
        let second_runs = runs(&second);
        let (works, other) = if second_runs { (second, third) } else { (third, second) };
        assert!(runs(&works) && !runs(&other));
        works.stop();
        publish(&other);
        until("the last one sends", || ready(&other, "r") == 3);
        assert!(runs(&other));
    }
}
