//! Looks at queues that take more than one request: `overtake peek` goes on by itself.

use std::sync::atomic::{AtomicU64, Ordering};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::fake::{Fake, Told};
use crate::support::overtake;
use crate::support::pty::Pty;
use crate::support::worker::Worker;

const FIRST: &str = "messages?key=acme&order=published&limit=20";

/// A page of a queue of three million messages, with so many of them that match.
fn page(found: u64, next: Option<u64>) -> Told {
    let message = |at: u64| json!({ "id": format!("m{at}"), "body": "x", "bytes": 1 });
    let messages: Vec<Value> = (0..found).map(message).collect();
    let mut page = json!({ "messages": messages, "looked_at": 100_000, "in_queue": 3_000_000 });
    if let Some(next) = next {
        page["next_cursor"] = format!("p{next}").into();
    }
    Some((200, page))
}

/// Without an end: one message on the first page.
fn endless() -> Fake {
    let pages = AtomicU64::new(0);
    Fake::start(move |what, _| {
        let at = pages.fetch_add(1, Ordering::SeqCst);
        page(u64::from(what == FIRST), Some(at))
    })
}

fn peek(fake: &Fake, flags: &[&str]) -> std::process::Command {
    let mut command = overtake();
    command.args(["--url", &fake.url, "peek", "q", "--key", "acme", "--order", "published"]).args(flags);
    command
}

#[test]
fn a_look_goes_on_over_empty_pages_until_the_end() {
    let fake = Fake::start(|what, _| match what {
        FIRST => page(0, Some(1)),
        "messages?key=acme&order=published&limit=20&cursor=p1" => page(2, Some(2)),
        "messages?key=acme&order=published&limit=18&cursor=p2" => page(0, None),
        _ => None,
    });
    let ended = Worker::start(peek(&fake, &["--json"])).end();
    assert_eq!((ended.code, &*ended.stderr), (0, ""));
    let found: Value = serde_json::from_str(&ended.stdout).expect("JSON");
    assert_eq!(found["messages"].as_array().map(Vec::len), Some(2));
}

#[test]
fn a_look_that_has_as_many_as_it_may_print_asks_no_further() {
    let fake = Fake::start(|what, _| match what {
        "messages?key=acme&order=published&limit=2" => page(2, Some(1)),
        _ => None,
    });
    let ended = Worker::start(peek(&fake, &["-n", "2"])).end();
    assert_eq!((ended.code, &*ended.stderr), (0, ""), "no bar where no terminal is");
}

#[test]
fn a_terminal_shows_how_far_a_look_is() {
    let fake = endless();
    let mut peek = Pty::start(peek(&fake, &[]), 120, 30);
    peek.await_text("looked at 200,000 of 3,000,000 messages, 1 found; Ctrl-C stops");
    peek.signal(Signal::INT);
    peek.await_text("m0");
}

#[test]
fn ctrl_c_prints_what_was_found_so_far() {
    for flags in [&[][..], &["--json"]] {
        let fake = endless();
        let peek = Worker::start(peek(&fake, flags));
        fake.await_asked("messages?key=acme&order=published&limit=19&cursor=p1");
        peek.signal(Signal::INT);
        let ended = peek.end();
        assert!(ended.code == 1 && ended.stdout.contains("m0"), "{ended:?}");
        let (said, end) = (ended.stderr.contains("stopped: "), " of 3,000,000 looked at, 1 message found");
        assert!(said && ended.stderr.contains(end), "{ended:?}");
    }
}
