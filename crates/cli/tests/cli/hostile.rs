//! What strangers, careless clients and bad disks do to a broker, over its real listeners and files: everybody else goes on.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde_json::{Value, json};

use crate::support::http::{GUEST, ask};
use crate::support::{Broker, PATIENCE, run};

/// Messages of the store that is damaged, and the length of each body.
const MESSAGES: usize = 6_000;
const BODY_LEN: usize = 1_000;
/// Bytes of a segment before its first message.
const SEGMENT_HEADER_LEN: usize = 4_096;
/// So little that most of them wait in segments.
const MEMORY: &str = "1MiB";

/// The answer to these bytes, up to the end of the connection.
fn answer(url: &str, request: &str) -> String {
    let mut stream = TcpStream::connect(url.trim_start_matches("http://")).expect("it accepts");
    stream.write_all(request.as_bytes()).expect("it reads");
    let mut answer = Vec::new();
    // A connection that is cut off with bytes unread ends by an error, after the answer.
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

#[test]
fn a_web_page_under_another_name_reads_and_changes_nothing() {
    let dir = tempfile::tempdir().expect("a directory");
    let broker = Broker::start(&dir.path().join("data"));
    let paths =
        ["/", "/v1/queues", "/api/overview", "/api/definitions", "/metrics", "/metrics/detailed", "/livez"];
    for path in paths {
        let end = format!("{GUEST}Connection: close\r\n\r\n");
        let foreign = answer(&broker.url, &format!("GET {path} HTTP/1.1\r\nHost: rebound.example\r\n{end}"));
        assert!(foreign.starts_with("HTTP/1.1 421 "), "{path}: {foreign}");
        let two = answer(
            &broker.url,
            &format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nHost: a.example\r\n{end}"),
        );
        assert!(two.starts_with("HTTP/1.1 400 "), "{path}: {two}");
        let own = answer(&broker.url, &format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{end}"));
        assert!(own.starts_with("HTTP/1.1 200 "), "{path}: {own}");
        assert!(own.contains("x-content-type-options: nosniff"), "{path}: {own}");
    }
    broker.stop();
}

#[test]
fn a_large_body_of_a_stranger_is_refused_before_it_is_sent() {
    let dir = tempfile::tempdir().expect("a directory");
    let broker = Broker::start(&dir.path().join("data"));
    let made_up = "Authorization: Bearer made-up\r\n";
    for (path, login, statuses) in [
        ("/v1/session", "", &["413"][..]),
        ("/v1/session", made_up, &["401", "413"]),
        ("/v1/queues/q/messages", "", &["401", "413"]),
        ("/v1/queues/q/messages", made_up, &["401"]),
        ("/api/definitions", made_up, &["401"]),
    ] {
        // It would be waited for if it were wanted.
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\n{login}Content-Type: application/json\r\nContent-Length: 67108864\r\nConnection: close\r\n\r\n"
        );
        let said = answer(&broker.url, &head);
        let status = said.split(' ').nth(1).unwrap_or_default();
        assert!(statuses.contains(&status), "{path} {login}: {said}");
    }
    broker.stop();
}

/// A broker whose queue `q` waits in segments, stopped; the messages are known by their ids.
fn in_segments(data: &Path) {
    let broker = Broker::start_with(data, &["--queue", "q", "--queue", "other", "--memory-bytes", MEMORY]);
    for first in (0..MESSAGES).step_by(100) {
        let message =
            |at: usize| json!({ "id": at.to_string(), "priority": at % 10, "body": "x".repeat(BODY_LEN) });
        let batch: Vec<Value> = (first..first + 100).map(message).collect();
        ask(&broker.url, "POST", "/v1/queues/q/messages", &json!({ "messages": batch })).expect(201);
    }
    ask(&broker.url, "POST", "/v1/queues/other/messages", &json!({ "body": "other" })).expect(201);
    // On a slow disk the first is still being written.
    let start = Instant::now();
    while ask(&broker.url, "GET", "/v1/queues/q", &Value::Null).expect(200)["spilled"] == 0 {
        assert!(start.elapsed() < PATIENCE, "no message left memory");
    }
    broker.stop();
}

/// The segments that are written to their end.
fn whole_segments(data: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(data).expect("a store").map(|entry| entry.expect("a file").path());
    let is_whole = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        name.strip_prefix("segment-").is_some_and(|number| !number.starts_with("new-"))
    };
    files.filter(is_whole).collect()
}

/// Flips a bit in the middle of the first segment: of a later one the journal may not know yet, so that nothing waits in it.
fn flip_a_bit(data: &Path) {
    let segment = whole_segments(data).into_iter().min().expect("messages wait in segments");
    let mut content = fs::read(&segment).expect("readable");
    let middle = SEGMENT_HEADER_LEN + (content.len() - SEGMENT_HEADER_LEN) / 2;
    content[middle] ^= 1;
    fs::write(&segment, content).expect("writable");
}

/// Takes everything out of the queue; how many messages that were.
fn drain(broker: &Broker) -> usize {
    let mut count = 0;
    loop {
        let leased = ask(&broker.url, "POST", "/v1/queues/q/leases", &json!({ "max": 200 })).expect(200);
        let messages = leased["messages"].as_array().expect("a list");
        if messages.is_empty() {
            return count;
        }
        count += messages.len();
        let receipts: Vec<_> = messages.iter().map(|message| &message["receipt"]).collect();
        let settle = json!({ "receipts": receipts, "how": "ack" });
        ask(&broker.url, "POST", "/v1/queues/q/settle", &settle).expect(200);
    }
}

#[test]
fn a_flipped_bit_in_a_segment_costs_a_block_and_a_repaired_copy_needs_no_flag() {
    let dir = tempfile::tempdir().expect("a directory");
    let (data, copy) = (dir.path().join("data"), dir.path().join("copy"));
    in_segments(&data);
    flip_a_bit(&data);
    let (from, to) = (data.to_str().expect("text"), copy.to_str().expect("text"));
    let check = run(&["store", "check", from], b"");
    assert_eq!(check.code, 1, "{check:?}");
    let dry = run(&["store", "repair", from], b"");
    assert_eq!(dry.code, 1, "{dry:?}");
    assert!(dry.stdout.contains("segment"), "{dry:?}");
    let lost = run(&["store", "repair", from, "--json"], b"").stdout;
    let lost: Value = serde_json::from_str(&lost).expect("JSON");
    let lost = lost["lost_messages"].as_u64().expect("a number");
    assert!(dry.stdout.contains(&format!("lost: {lost} message")), "{dry:?}");
    run(&["store", "repair", from, "--to", to], b"").ok();
    let whole = run(&["store", "check", to], b"");
    assert_eq!(whole.code, 0, "{whole:?}");
    assert_eq!(run(&["store", "check", from], b"").code, 1, "the original stays as it was");
    for data in [&data, &copy] {
        let broker = Broker::start_with(data, &["--memory-bytes", MEMORY]);
        let other = ask(&broker.url, "POST", "/v1/queues/other/leases", &json!({ "max": 1 })).expect(200);
        assert_eq!(other["messages"][0]["body"], "other");
        let count = drain(&broker);
        assert!((MESSAGES - 100..=MESSAGES).contains(&count), "{count} of {MESSAGES}");
        broker.stop();
        Broker::start(data).stop();
    }
}

/// Segments without a journal are no new store: nothing is removed, and a repaired copy has what they have.
#[test]
fn a_store_without_its_journal_is_refused_and_its_segments_are_saved() {
    let dir = tempfile::tempdir().expect("a directory");
    let (data, copy) = (dir.path().join("data"), dir.path().join("copy"));
    in_segments(&data);
    let names = || fs::read_dir(&data).expect("a store").map(|entry| entry.expect("a file").path());
    let is_journal = |path: &std::path::PathBuf| path.to_string_lossy().contains("/journal-");
    names().filter(is_journal).for_each(|path| fs::remove_file(path).expect("ours"));
    let left = names().count();
    let (from, to) = (data.to_str().expect("text"), copy.to_str().expect("text"));
    let refused = run(&["serve", "--data-dir", from, "--http", "127.0.0.1:0", "--amqp", "127.0.0.1:0"], b"");
    assert_eq!(refused.code, 1, "{refused:?}");
    assert!(refused.stderr.contains("the journal is missing"), "{refused:?}");
    let check = run(&["store", "check", from], b"");
    assert!(check.code == 1 && check.stderr.contains("overtake store repair"), "{check:?}");
    assert_eq!(names().count(), left, "nothing is removed");
    let said = run(&["store", "repair", from, "--to", to], b"").ok();
    let broker = Broker::start(&copy);
    let queues = ask(&broker.url, "GET", "/v1/queues", &Value::Null).expect(200);
    let ready = |queue: &Value| queue["totals"]["ready"].as_u64().expect("a number");
    let saved: u64 = queues["queues"].as_array().expect("queues").iter().map(ready).sum();
    assert!((1..=MESSAGES as u64).contains(&saved), "{saved} of {MESSAGES}");
    // How many had left the journal for segments depends on the disk's speed; the command says how many it found.
    let grouped = format!("{},{:03}", saved / 1_000, saved % 1_000);
    let told = if saved < 1_000 { saved.to_string() } else { grouped };
    assert!(said.contains(&format!("saved: {told} messages")), "{saved}: {said}");
    let lost = "lost: 0 messages of segments, and what the journal said in 1 place: that cannot be counted\n";
    assert!(said.contains(lost), "{said}");
    broker.stop();
}
