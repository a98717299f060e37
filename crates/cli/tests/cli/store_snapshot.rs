//! `overtake store snapshot` and `store restore`: a copy of a broker that goes on, and a broker on the copy.

#![expect(clippy::print_stdout, reason = "a test that is skipped says so")]

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::support;
use crate::support::http::GUEST;
use crate::support::http::ask;
use crate::support::small_disk::SmallDisk;
use crate::support::{Broker, Run, run};

/// Messages that wait when the snapshot is taken.
const MESSAGES: usize = 50_000;
/// Far less than they are.
const MEMORY: &str = "1MiB";

fn text(path: &Path) -> &str {
    path.to_str().expect("text")
}

/// The names in a directory, sorted.
fn names(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).expect("it is there");
    let name = |entry: std::io::Result<std::fs::DirEntry>| entry.expect("it is there").file_name();
    let mut names: Vec<_> = entries.map(|entry| name(entry).to_string_lossy().into_owned()).collect();
    names.sort_unstable();
    names
}

/// The bodies of all messages of a queue.
fn bodies(broker: &Broker, queue: &str) -> BTreeSet<String> {
    let all = broker.run(&["peek", queue, "--json", "--limit", "1000000"]).json();
    let body = |message: &Value| message["body"].as_str().expect("text").to_owned();
    all["messages"].as_array().expect("a list").iter().map(body).collect()
}

/// What is published and acknowledged in the queue `busy` while a snapshot is copied: one at a time, so that all before a number
/// was confirmed before it was asked.
#[derive(Default)]
struct Busy {
    is_over: AtomicBool,
    published: AtomicUsize,
    acked: AtomicUsize,
}

impl Busy {
    fn run(&self, url: &str) {
        while !self.is_over.load(Ordering::SeqCst) {
            let number = self.published.load(Ordering::SeqCst);
            let message = json!({ "body": format!("{number}") });
            ask(url, "POST", "/v1/queues/busy/messages", &message).expect(201);
            self.published.store(number + 1, Ordering::SeqCst);
            // Every second one is taken, the oldest.
            if number % 2 == 1 {
                let leased = ask(url, "POST", "/v1/queues/busy/leases", &json!({ "max": 1 })).expect(200);
                let receipt = &leased["messages"][0]["receipt"];
                let settle = json!({ "receipts": [receipt], "how": "ack" });
                ask(url, "POST", "/v1/queues/busy/settle", &settle).expect(200);
                self.acked.store(self.acked.load(Ordering::SeqCst) + 1, Ordering::SeqCst);
            }
        }
    }

    /// Confirmed publishes, and confirmed acknowledgements.
    fn so_far(&self) -> (usize, usize) {
        (self.published.load(Ordering::SeqCst), self.acked.load(Ordering::SeqCst))
    }

    fn await_more(&self) -> (usize, usize) {
        let (published, acked) = self.so_far();
        while self.so_far().0 < published + 20 || self.so_far().1 < acked + 10 {
            std::thread::yield_now();
        }
        self.so_far()
    }
}

#[test]
fn a_snapshot_of_a_busy_broker_is_restored_and_served() {
    let dir = tempfile::tempdir().expect("a directory");
    let (data, copy, restored) =
        (dir.path().join("data"), dir.path().join("copy"), dir.path().join("restored"));
    let flags = ["--queue", "deep", "--queue", "busy", "--memory-bytes", MEMORY];
    let broker = Broker::start_with(&data, &flags);
    let lines: String = (0..MESSAGES).map(|n| format!("{n:0>100}\n")).collect();
    broker.feed(&["publish", "deep", "--lines", "-", "--quiet"], lines.as_bytes()).ok();
    let busy = Busy::default();
    let (before, said, after) = std::thread::scope(|scope| {
        scope.spawn(|| busy.run(&broker.url));
        let before = busy.await_more();
        let mut command = broker.command(&["store", "snapshot", text(&copy), "--json"]);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs");
        let said = Run::of(child.wait_with_output().expect("it ends")).json();
        let after = busy.await_more();
        busy.is_over.store(true, Ordering::SeqCst);
        (before, said, after)
    });
    broker.kill();
    assert!(said["check"]["segments"].as_u64() > Some(1), "{said}");
    assert_eq!((&said["check"]["clean"], &said["check"]["locked"]), (&json!(true), &json!(false)));
    let files: Vec<_> =
        names(&copy).into_iter().filter(|name| name != "LOCK" && name != "snapshot.json").collect();
    assert_eq!(said["files"], files.len());
    let bytes = files.iter().map(|name| std::fs::metadata(copy.join(name)).expect("it is there").len());
    assert_eq!(said["bytes"], bytes.sum::<u64>());

    let told = run(&["store", "restore", text(&copy), text(&restored)], b"").ok();
    assert!(told.starts_with(&format!("the restored store in {}: ", restored.display())), "{told}");
    assert!(told.ends_with(&format!("{} is clean\n", restored.display())), "{told}");
    assert!(!names(&restored).contains(&"snapshot.json".to_owned()));
    // Of the snapshot itself a broker may be made, too.
    for served in [&restored, &copy] {
        let broker = Broker::start_with(served, &["--memory-bytes", MEMORY]);
        let deep: BTreeSet<String> = (0..MESSAGES).map(|n| format!("{n:0>100}")).collect();
        assert!(bodies(&broker, "deep") == deep, "all that waited is there");
        let left = bodies(&broker, "busy");
        let numbers: Vec<usize> = left.iter().map(|body| body.parse().expect("a number")).collect();
        let (first, last) = (numbers.iter().min().expect("one"), numbers.iter().max().expect("one"));
        assert_eq!(last - first + 1, numbers.len(), "no gap");
        assert!(*first >= before.1, "{first} was acknowledged before: {before:?}");
        assert!(*last + 1 >= before.0, "only up to {last}, {before:?} were confirmed before");
        assert!(*last < after.0 && *first <= after.1, "{first} to {last}, after {after:?}");
        broker.stop();
    }
    // Now it is a store and no snapshot any more.
    let again = dir.path().join("again");
    let refused = run(&["store", "restore", text(&copy), text(&again)], b"");
    assert_eq!(refused.code, 1, "{refused:?}");
    assert!(refused.stderr.contains(" is not as snapshot.json says: "), "{refused:?}");
    assert!(!again.exists());
}

#[test]
fn a_snapshot_says_what_it_holds() {
    let dir = tempfile::tempdir().expect("a directory");
    let (data, copy) = (dir.path().join("data"), dir.path().join("copy"));
    let broker = Broker::start_with(&data, &["--queue", "q"]);
    broker.run(&["publish", "q", "one"]).ok();
    let told = broker.run(&["store", "snapshot", text(&copy)]).ok();
    let lines: Vec<_> = told.lines().collect();
    let start = format!("the snapshot in {}: 4,194,304 bytes in 1 file, of store ", copy.display());
    assert!(lines[0].starts_with(&start) && lines[0].contains(" up to "), "{told}");
    assert!(lines[1].ends_with(" of payload; 0 files idle"), "{told}");
    assert_eq!(lines[2..], [format!("{} is clean", copy.display())]);
    assert_eq!(names(&copy), ["LOCK", "journal-000000000001", "snapshot.json"]);
    let mode =
        std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&copy).expect("there").permissions());
    assert_eq!(mode & 0o777, 0o700);
    broker.stop();
}

#[test]
fn a_store_at_rest_is_copied_without_a_broker() {
    let dir = tempfile::tempdir().expect("a directory");
    let (data, copy) = (dir.path().join("data"), dir.path().join("copy"));
    let broker = Broker::start_with(&data, &["--queue", "q"]);
    broker.run(&["publish", "q", "one"]).ok();
    let offline = ["store", "snapshot", text(&copy), "--data-dir", text(&data)];
    let refused = run(&offline, b"");
    assert_eq!(refused.code, 1, "{refused:?}");
    assert!(refused.stderr.contains("another process has this store open"), "{refused:?}");
    assert!(refused.stderr.contains("hint: leave --data-dir out"), "{refused:?}");
    broker.kill();
    run(&offline, b"").ok();
    let broker = Broker::start(&copy);
    assert_eq!(bodies(&broker, "q"), BTreeSet::from(["one".to_owned()]));
    broker.stop();
}

#[test]
fn a_directory_with_something_in_it_takes_neither() {
    let dir = tempfile::tempdir().expect("a directory");
    let (data, copy, full) = (dir.path().join("data"), dir.path().join("copy"), dir.path().join("full"));
    let broker = Broker::start_with(&data, &["--queue", "q"]);
    broker.run(&["store", "snapshot", text(&copy)]).ok();
    std::fs::create_dir(&full).expect("made");
    std::fs::write(full.join("notes.txt"), "mine").expect("written");
    let nested = dir.path().join("nested");
    std::fs::create_dir_all(nested.join("inner")).expect("made");
    for (there, name) in [(&full, "notes.txt"), (&nested, "inner")] {
        for words in
            [&["store", "snapshot", text(there)][..], &["store", "restore", text(&copy), text(there)]]
        {
            let refused = broker.run(words);
            assert_eq!(refused.code, 1, "{refused:?}");
            let why =
                format!("cannot copy to {}: the directory is not empty: it has {name}\n", there.display());
            assert!(refused.stderr.contains(&why), "{refused:?}");
            assert_eq!(names(there), [name]);
        }
    }
    // Least of all that of a broker.
    let refused = run(&["store", "restore", text(&copy), text(&data)], b"");
    assert!(refused.stderr.contains("another process has this store open"), "{refused:?}");
    assert_eq!(refused.code, 1, "{refused:?}");
    broker.run(&["publish", "q", "it goes on"]).ok();
    let refused = run(&["store", "restore", text(&data), text(&dir.path().join("new"))], b"");
    assert!(refused.stderr.contains("a broker has "), "{refused:?}");
    broker.stop();
    let refused = run(&["store", "restore", text(&data), text(&dir.path().join("new"))], b"");
    assert!(refused.stderr.contains("the snapshot is not whole: snapshot.json is missing"), "{refused:?}");
    assert!(!dir.path().join("new").exists());
}

/// The snapshot of a broker with one message, as it comes over the wire: head and chunks.
fn wire(dir: &Path) -> Vec<u8> {
    let broker = Broker::start_with(&dir.join("data"), &["--queue", "q"]);
    broker.run(&["publish", "q", "one"]).ok();
    let address = broker.url.strip_prefix("http://").expect("a url");
    let mut stream = std::net::TcpStream::connect(address).expect("it accepts");
    let request =
        format!("GET /v1/store/snapshot HTTP/1.1\r\nHost: {address}\r\n{GUEST}Connection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("it reads");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("it answers and closes");
    broker.stop();
    answer
}

/// Takes a snapshot of something that answers with these bytes and is gone.
fn snapshot_of(answer: Vec<u8>, copy: &Path) -> Run {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("somebody asks");
        let mut asked = Vec::new();
        while !asked.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).expect("a request");
            asked.push(byte[0]);
        }
        // Whoever has seen enough may be gone first.
        let _ = stream.write_all(&answer);
    });
    let said = run(&["--url", &url, "store", "snapshot", text(copy)], b"");
    server.join().expect("no panic");
    said
}

#[test]
fn a_stream_that_is_cut_or_changed_leaves_nothing() {
    let dir = tempfile::tempdir().expect("a directory");
    let copy = dir.path().join("copy");
    let whole = wire(dir.path());
    snapshot_of(whole.clone(), &copy).ok();
    std::fs::remove_dir_all(&copy).expect("removed");
    let head = whole.windows(4).position(|bytes| bytes == b"\r\n\r\n").expect("a head") + 4;
    let mut cuts = vec![head, head + 9, head + 700, whole.len() / 2, whole.len() - 5_000];
    cuts.extend((1..=3_000).step_by(211).map(|back| whole.len() - back));
    for at in cuts {
        let said = snapshot_of(whole[..at].to_vec(), &copy);
        if said.code == 0 {
            // The manifest was there, and after it come only zeros.
            assert!(at > whole.len() - 2_500, "cut at {at} of {}", whole.len());
            std::fs::remove_dir_all(&copy).expect("removed");
            continue;
        }
        assert_eq!(said.code, 1, "cut at {at}: {said:?}");
        assert!(said.stderr.contains(" cut its answer short: "), "cut at {at}: {said:?}");
        assert!(!copy.exists(), "cut at {at}: something is left");
    }
    // As if it were the end: the last chunk is empty, and the manifest was not there.
    let size = whole[head..].iter().position(|byte| *byte == b'\r').expect("a chunk");
    let size = usize::from_str_radix(std::str::from_utf8(&whole[head..head + size]).expect("text"), 16);
    let first = head + size.expect("a length") + "40000\r\n\r\n".len();
    let mut ended = whole[..first].to_vec();
    ended.extend_from_slice(b"0\r\n\r\n");
    let said = snapshot_of(ended, &copy);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.stderr.contains("the snapshot cannot be read to its end"), "{said:?}");
    // One bit on the way.
    let mut changed = whole.clone();
    changed[head + 700_000] ^= 1;
    let said = snapshot_of(changed, &copy);
    assert_eq!(said.code, 1, "{said:?}");
    let why = "journal-000000000001 is not as snapshot.json says: it has another checksum";
    assert!(said.stderr.contains(why), "{said:?}");
    assert!(!copy.exists());
}

#[test]
fn no_broker_and_no_store_leave_nothing_either() {
    let dir = tempfile::tempdir().expect("a directory");
    let copy = dir.path().join("copy");
    let said = run(&["--url", "http://127.0.0.1:1", "store", "snapshot", text(&copy)], b"");
    assert_eq!(said.code, 69, "{said:?}");
    let said = run(&["store", "snapshot", text(&copy), "--data-dir", text(dir.path())], b"");
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.stderr.contains("not a store"), "{said:?}");
    let said = run(&["store", "restore", "/nowhere/at/all", text(&copy)], b"");
    assert_eq!(said.code, 1, "{said:?}");
    assert!(!copy.exists());
}

#[test]
fn a_full_disk_at_the_receiver_leaves_nothing_and_the_broker_goes_on() {
    let disk = match SmallDisk::mount(3 << 20) {
        Ok(disk) => disk,
        Err(why) => {
            assert!(std::env::var_os("CI").is_none(), "a file system must be mountable in CI: {why}");
            println!("skipped: this machine does not let us mount a file system: {why}");
            return;
        }
    };
    let dir = tempfile::tempdir().expect("a directory");
    let broker = Broker::start_with(&dir.path().join("data"), &["--queue", "q"]);
    broker.run(&["publish", "q", "one"]).ok();
    let copy = disk.path().join("copy");
    let mut command = disk.overtake();
    let command = command.args(["--url", &broker.url, "store", "snapshot"]).arg(&copy);
    let said = Run::of(command.output().expect("it runs"));
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.stderr.contains("cannot write to journal-000000000001.part: "), "{said:?}");
    assert!(said.stderr.contains("hint: nothing was left there; free disk space"), "{said:?}");
    assert_eq!(names(&disk.seen_from_outside()), [""; 0]);
    broker.run(&["publish", "q", "two"]).ok();
    // Elsewhere there is room, as soon as the broker has seen that the first one is gone.
    let elsewhere = dir.path().join("elsewhere");
    let started = std::time::Instant::now();
    loop {
        let said = broker.run(&["store", "snapshot", text(&elsewhere)]);
        if said.code == 0 {
            break;
        }
        assert!(said.stderr.contains("snapshot-running"), "{said:?}");
        assert!(started.elapsed() < support::PATIENCE, "the first one never ends");
    }
    broker.stop();
}
