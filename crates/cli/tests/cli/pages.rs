//! Lists that come in pages are printed whole.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::thread::JoinHandle;

use serde_json::{Value, json};

use crate::support::run;

/// A broker that gives these answers one after the other, and tells at the end what it was asked for.
fn pages(answers: &[Value]) -> (String, JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let mut answers: VecDeque<String> = answers.iter().map(Value::to_string).collect();
    let broker = std::thread::spawn(move || {
        let mut asked = Vec::new();
        while let Some(answer) = answers.pop_front() {
            let (mut stream, _) = listener.accept().expect("a connection");
            let mut lines = BufReader::new(&stream).lines().map(|line| line.expect("text"));
            asked.push(lines.next().expect("a request"));
            lines.find(String::is_empty).expect("the end of the headers");
            let head =
                format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", answer.len());
            stream.write_all((head + &answer).as_bytes()).expect("sent");
        }
        asked
    });
    (url, broker)
}

#[test]
fn all_queues_are_listed_however_many_pages_they_make() {
    let queue = |name: &str| json!({"name": name, "settings": {"scheme": "named"}, "totals": {}});
    let answers = [
        json!({"queues": [queue("a"), queue("b")], "next_cursor": "qYg"}),
        json!({"queues": [queue("c")], "next_cursor": "q_-"}),
        json!({"queues": []}),
    ];
    let (url, broker) = pages(&answers);
    let listed = run(&["--url", &url, "queue", "list", "--json"], b"").json();
    assert_eq!(listed, json!({"queues": [queue("a"), queue("b"), queue("c")]}));
    let asked = broker.join().expect("no panic");
    let expected = [
        "GET /v1/queues?limit=1000 HTTP/1.1",
        "GET /v1/queues?limit=1000&cursor=qYg HTTP/1.1",
        "GET /v1/queues?limit=1000&cursor=q_- HTTP/1.1",
    ];
    assert_eq!(asked, expected);
}
