//! `overtake store stats`: what a store takes of its disk, beside a broker and without one.

use std::path::Path;

use serde_json::{Value, json};

use crate::support::{Broker, Run, run};

const FILE: u64 = 4 << 20;

fn stats(data: &Path, flags: &[&str]) -> Run {
    let data = data.to_str().expect("text");
    run(&[&["store", "stats", data], flags].concat(), b"")
}

/// The names of a list of queues.
fn names(queues: &Value) -> Vec<&str> {
    queues.as_array().expect("a list").iter().map(|queue| queue["name"].as_str().expect("a name")).collect()
}

#[test]
fn a_store_says_what_it_takes_of_its_disk() {
    let dir = tempfile::tempdir().expect("a directory");
    let data = dir.path().join("data");
    let broker = Broker::start_with(&data, &["--queue", "jobs", "--queue", "mail"]);
    broker.feed(&["publish", "jobs", "--lines", "-"], b"one\ntwo\nthree\n").ok();
    let beside = stats(&data, &["--json"]).json();
    assert_eq!((&beside["locked"], &beside["life"]), (&json!(true), &json!(1)));
    assert_eq!(names(&beside["queues"]), ["jobs", "mail"]);
    let said = stats(&data, &[]).ok();
    assert!(said.contains("\na broker has it open: this is how it was a moment ago\n"), "{said}");
    broker.run(&["queue", "delete", "mail", "--yes"]).ok();
    broker.stop();

    let found = stats(&data, &["--json"]).json();
    assert_eq!((&found["locked"], &found["format"]), (&json!(false), &json!(1)));
    assert_eq!(found["store"], beside["store"]);
    assert_eq!(names(&found["queues"]), ["jobs"]);
    let disk = |key: &str| found["disk"][key].as_u64().expect("a number");
    assert!(disk("free") > 0 && disk("free") <= disk("total"));
    let journal = &found["journal"];
    assert_eq!(journal["needed"], json!({ "files": 1, "bytes": FILE }));
    assert_eq!((&journal["oldest_lsn"], &journal["damaged"]), (&json!(0), &json!(0)));
    assert!(journal["records"].as_u64() >= Some(4) && journal["tail_lsn"].as_u64() > Some(0), "{journal}");
    let none = json!({ "files": 0, "bytes": 0, "messages": 0, "content_bytes": 0 });
    assert_eq!((&found["segments"], &found["queues"][0]["segments"]), (&none, &none));
    let lens = std::fs::read_dir(&data).expect("it is there").map(|entry| {
        let entry = entry.expect("it is there");
        entry.metadata().expect("it is there").len()
    });
    let bytes = |what: &str| journal[what]["bytes"].as_u64().expect("a number");
    assert_eq!(bytes("needed") + bytes("ahead") + bytes("spare"), lens.sum::<u64>());

    let said = stats(&data, &[]).ok();
    let lines: Vec<_> = said.lines().collect();
    let store = found["store"].as_str().expect("text");
    assert_eq!(lines[0], format!("store {store}, format 1, life 1"));
    assert!(lines[1].contains(" bytes free on its disk of "), "{said}");
    assert_eq!(lines[3], "FILES              COUNT       BYTES");
    assert_eq!(lines[4], "journal, needed        1   4,194,304");
    assert_eq!(lines[7], "segments               0           0");
    assert!(lines[9].starts_with("the log from 0 to "), "{said}");
    assert_eq!(lines[11], "VHOST  QUEUE  NUMBER  SEGMENTS  BYTES  MESSAGES IN THEM  BYTES OF CONTENT");
    assert_eq!(lines[12].split_whitespace().collect::<Vec<_>>()[..3], ["/", "jobs", "0"]);
    assert_eq!(lines.len(), 13, "{said}");
}

#[test]
fn what_is_no_store_has_no_stats() {
    let dir = tempfile::tempdir().expect("a directory");
    for path in [dir.path(), Path::new("/nowhere/at/all")] {
        let said = stats(path, &[]);
        assert_eq!(said.code, 1, "{said:?}");
        assert!(said.stderr.starts_with(&format!("error: cannot count {}: ", path.display())), "{said:?}");
        assert!(said.stderr.contains("hint: give the directory the broker was started with"), "{said:?}");
    }
}

#[test]
fn a_store_that_is_damaged_has_stats_and_says_so() {
    let dir = tempfile::tempdir().expect("a directory");
    let data = dir.path().join("data");
    let broker = Broker::start_with(&data, &["--queue", "q"]);
    for body in ["one", "damaged-here", "three"] {
        broker.run(&["publish", "q", body]).ok();
    }
    broker.stop();
    let file = data.join("journal-000000000001");
    let mut bytes = std::fs::read(&file).expect("it is there");
    let at = bytes.windows(12).position(|found| found == b"damaged-here").expect("it is there");
    bytes[at] ^= 1;
    std::fs::write(&file, bytes).expect("it is ours");
    assert_eq!(stats(&data, &["--json"]).json()["journal"]["damaged"], 1);
    let said = stats(&data, &[]).ok();
    let hint = format!("damaged: see where with `overtake store check {}`\n", data.display());
    assert!(said.ends_with(&hint), "{said}");
}
