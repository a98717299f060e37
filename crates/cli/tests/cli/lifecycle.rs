//! Starting, stopping, being killed, and every reason not to start.

#![allow(clippy::print_stdout, reason = "says why it is skipped")]

use std::collections::BTreeMap;
use std::fs::Permissions;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::process::Signal;
use serde_json::json;
use tempfile::TempDir;

use crate::support;
use crate::support::http::ask;
use crate::support::{Broker, overtake};

fn dir() -> TempDir {
    tempfile::tempdir().expect("a directory")
}

/// A request whose body never comes; returns once the broker waits for it. Where all places are taken it tries again: the end of an
/// earlier connection may not have been seen yet.
fn unfinished_request(broker: &Broker) -> TcpStream {
    let address = broker.url.strip_prefix("http://").expect("a url");
    let head = "POST /v1/queues/q/messages HTTP/1.1\r\nHost: localhost\r\nAuthorization: Basic Z3Vlc3Q6Z3Vlc3Q=\r\nContent-Type: application/json\r\n\
        Content-Length: 100\r\nExpect: 100-continue\r\n\r\n";
    loop {
        let mut stream = TcpStream::connect(address).expect("it accepts");
        stream.write_all(head.as_bytes()).expect("it reads");
        let mut line = String::new();
        BufReader::new(stream.try_clone().expect("a handle")).read_line(&mut line).expect("it answers");
        if !line.starts_with("HTTP/1.1 503 ") {
            assert_eq!(line, "HTTP/1.1 100 Continue\r\n");
            return stream;
        }
    }
}

/// A broker that does not start: its exit code and what it said.
fn refused(data: &Path, flags: &[&str]) -> (Option<i32>, String) {
    let mut command = overtake();
    command.args(["serve", "--http", "127.0.0.1:0", "--amqp", "127.0.0.1:0", "--segment-bytes", "4MiB"]);
    command.arg("--data-dir").arg(data).args(flags);
    let (status, said) = Broker::spawn(command).end();
    (status.code(), said)
}

#[test]
fn sigterm_ends_waits_and_exits_0() {
    let dir = dir();
    let data = dir.path().join("data");
    let mut broker = Broker::start(&data);
    broker.run(&["queue", "declare", "q"]).ok();
    let mut waiting = broker.command(&["consume", "q", "--all", "--wait"]);
    let waiting = waiting.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it runs");
    while broker.run(&["queue", "show", "q", "--json"]).json()["waiting"] != 1 {}
    broker.signal(Signal::TERM);
    broker.await_line("SIGTERM: stopping");
    let (status, said) = broker.end();
    assert_eq!(status.code(), Some(0), "{said}");
    assert!(said.ends_with("stopped"), "{said}");
    assert!(!data.with_extension("ports.json").exists(), "the ports file goes with the broker");
    let waiting = waiting.wait_with_output().expect("it ends");
    assert_eq!(waiting.status.code(), Some(69));
}

#[test]
fn sigint_is_the_same() {
    let dir = dir();
    let broker = Broker::start(&dir.path().join("data"));
    broker.signal(Signal::INT);
    let (status, said) = broker.end();
    assert_eq!(status.code(), Some(0), "{said}");
}

#[test]
fn a_second_signal_does_not_wait() {
    let dir = dir();
    let mut broker = Broker::start_with(&dir.path().join("data"), &["--drain-timeout-ms", "1h"]);
    broker.run(&["queue", "declare", "q"]).ok();
    let _stream = unfinished_request(&broker);
    broker.signal(Signal::TERM);
    broker.await_line("SIGTERM: stopping");
    broker.signal(Signal::TERM);
    let (status, said) = broker.end();
    assert_eq!(status.code(), Some(1), "{said}");
    assert!(said.contains("stopped at the second signal"), "{said}");
}

#[test]
fn a_drain_does_not_last_longer_than_it_may() {
    let dir = dir();
    let broker = Broker::start_with(&dir.path().join("data"), &["--drain-timeout-ms", "50"]);
    broker.run(&["queue", "declare", "q"]).ok();
    let _stream = unfinished_request(&broker);
    broker.signal(Signal::TERM);
    let (status, said) = broker.end();
    assert_eq!(status.code(), Some(0), "{said}");
    assert!(said.contains("1 connection did not finish in 50ms and is cut"), "{said}");
}

#[test]
fn a_drain_waits_for_what_is_leased_in_any_virtual_host() {
    let dir = dir();
    let broker = Broker::start(&dir.path().join("data"));
    broker.run(&["vhost", "put", "other"]).ok();
    broker.run(&["--vhost", "other", "queue", "declare", "q"]).ok();
    broker.run(&["--vhost", "other", "publish", "q", "a"]).ok();
    ask(&broker.url, "POST", "/v1/queues/q/leases?vhost=other", &json!({ "max": 1 })).expect(200);
    let drained = broker.run(&["drain", "--within", "50ms"]);
    assert_eq!(drained.code, 75, "{drained:?}");
    assert!(drained.stderr.contains("1 message was still leased"), "{drained:?}");
    broker.stop();
}

#[test]
fn beyond_the_connections_probes_are_answered_and_others_are_told() {
    let dir = dir();
    let broker = Broker::start_with(&dir.path().join("data"), &["--http-max-connections", "1"]);
    broker.run(&["queue", "declare", "q"]).ok();
    let only = unfinished_request(&broker);
    broker.run(&["health"]).ok();
    let refused = ask(&broker.url, "GET", "/v1/queues/q", &json!(null)).expect(503);
    assert_eq!(refused["code"], "too-many-connections", "{refused}");
    drop(only);
    // Its place is free as soon as its end is seen.
    while ask(&broker.url, "GET", "/v1/queues/q", &json!(null)).status == 503 {}
    broker.stop();
}

#[test]
fn a_client_that_sends_half_a_head_is_cut_off() {
    let dir = dir();
    let broker = Broker::start_with(&dir.path().join("data"), &["--http-header-timeout-ms", "50"]);
    for half in ["GET /livez HTT", ""] {
        let mut stream =
            TcpStream::connect(broker.url.strip_prefix("http://").expect("a url")).expect("it accepts");
        stream.write_all(half.as_bytes()).expect("it reads");
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).expect("it ends the connection");
        assert!(!rest.starts_with(b"HTTP/1.1 200"), "{half}");
    }
    broker.stop();
}

#[test]
fn what_was_confirmed_survives_kill_9() {
    let dir = dir();
    let data = dir.path().join("data");
    let broker = Broker::start_with(&data, &["--queue", "q={ scheme = \"signed\" }"]);
    broker.feed(&["publish", "q", "--lines", "-"], b"one\ntwo\nthree\n").ok();
    broker.run(&["publish", "q", "urgent", "-p", "CRITICAL"]).ok();
    assert_eq!(broker.run(&["consume", "q", "-n", "2"]).ok(), "urgent\none\n");
    broker.kill();

    let mut command = overtake();
    command.args(["serve", "--http", "127.0.0.1:0", "--amqp", "127.0.0.1:0", "--data-dir"]).arg(&data);
    let mut again = Broker::spawn(command);
    again.await_line("recovered 2 messages in 1 queue");
    again.stop();

    let broker = Broker::start(&data);
    assert_eq!(broker.run(&["consume", "q", "--all"]).ok(), "two\nthree\n");
    broker.stop();
    assert!(
        support::run(&["store", "check", data.to_str().expect("text")], b"")
            .ok()
            .ends_with("data is clean\n")
    );
}

#[test]
fn a_port_in_use_is_named() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = taken.local_addr().expect("bound").to_string();
    let dir = dir();
    let data = dir.path().join("data");
    let (code, said) = refused(&data, &["--http", &address]);
    assert_eq!(code, Some(2), "a flag given twice is a usage error: {said}");
    let mut command = overtake();
    command.args(["serve", "--http", &address, "--amqp", "127.0.0.1:0", "--data-dir"]).arg(&data);
    let (status, said) = Broker::spawn(command).end();
    assert_eq!(status.code(), Some(1), "{said}");
    assert!(
        said.contains(&format!("error: cannot listen on {address} (flag --http): Address already in use")),
        "{said}"
    );
    assert!(said.contains("hint: stop what listens there"), "{said}");
    assert!(!data.exists(), "nothing was touched");
}

#[test]
fn a_store_that_is_open_stays_with_its_process() {
    let dir = dir();
    let data = dir.path().join("data");
    let broker = Broker::start(&data);
    let (code, said) = refused(&data, &[]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("another process has this store open"), "{said}");
    assert!(said.contains("hint: stop the other process"), "{said}");
    let check = support::run(&["store", "check", data.to_str().expect("text")], b"").ok();
    assert!(check.contains("a broker has it open"), "{check}");
    broker.stop();
}

#[test]
fn a_data_directory_that_is_a_file_is_named() {
    let dir = dir();
    let data = dir.path().join("data");
    std::fs::write(&data, "no directory").expect("a file");
    let (code, said) = refused(&data, &[]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("error: cannot keep data in "), "{said}");
}

#[test]
fn a_data_directory_that_is_moved_away_is_noticed_and_publishes_go_on_when_it_is_back() {
    let dir = dir();
    let (data, away) = (dir.path().join("data"), dir.path().join("away"));
    let mut broker = Broker::start_with(&data, &["--queue", "q"]);
    let publish = |broker: &Broker| {
        ask(&broker.url, "POST", "/v1/queues/q/messages", &json!({ "priority": 5, "body": "one" }))
    };
    let until = |broker: &Broker, status: u16| {
        let started = std::time::Instant::now();
        loop {
            let reply = publish(broker);
            if reply.status == status {
                return reply;
            }
            assert!(started.elapsed() < support::PATIENCE, "{reply:?}");
        }
    };
    publish(&broker).expect(201);
    std::fs::rename(&data, &away).expect("ours");
    let refused = until(&broker, 507);
    let detail = refused.json["detail"].as_str().expect("text");
    assert!(
        detail.contains("the data directory or the file LOCK in it was removed or replaced: put it back"),
        "{detail}"
    );
    broker.await_line("publishes are refused: the data directory or the file LOCK in it was removed");
    // What makes no message goes on.
    let leased = ask(&broker.url, "POST", "/v1/queues/q/leases", &json!({ "max": 1 })).expect(200);
    assert_eq!(leased["messages"].as_array().map(Vec::len), Some(1));
    std::fs::rename(&away, &data).expect("ours");
    until(&broker, 201);
    // Another store at its place is not its own.
    std::fs::rename(data.join("LOCK"), data.join("old")).expect("ours");
    std::fs::write(data.join("LOCK"), "").expect("ours");
    until(&broker, 507);
    std::fs::rename(data.join("old"), data.join("LOCK")).expect("ours");
    until(&broker, 201);
    broker.stop();
}

#[test]
fn too_few_threads_are_named_and_no_panic() {
    if !rustix::process::geteuid().is_root() {
        return println!("skipped: only root can run a program as a user who has no other process");
    }
    let dir = dir();
    let data = dir.path().join("data");
    std::fs::create_dir(&data).expect("a directory");
    // The limit counts all processes and threads of a user, so it is one whom nobody else is.
    for path in [dir.path(), &data] {
        std::fs::set_permissions(path, Permissions::from_mode(0o777)).expect("ours");
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=61234", "--regid=61234", "--clear-groups", "--", "prlimit", "--nproc=5:5", "--"]);
    command
        .arg(support::binary())
        .args(["serve", "--http", "127.0.0.1:0", "--amqp", "127.0.0.1:0", "--data-dir"])
        .arg(&data);
    let run = support::Run::of(support::unconfigured(command).output().expect("it runs"));
    if run.stderr.contains("Permission denied") {
        return println!("skipped: another user may not read {}", support::binary().display());
    }
    assert_eq!(run.code, 1, "{run:?}");
    assert!(run.stderr.contains("threads at least, and the system gave this process 4: "), "{run:?}");
    assert!(run.stderr.contains("hint: raise the limit of processes and threads: `ulimit -u`"), "{run:?}");
}

#[test]
fn damage_is_named_with_its_place_and_can_be_skipped() {
    let dir = dir();
    let data = dir.path().join("data");
    let broker = Broker::start_with(&data, &["--queue", "q"]);
    for body in ["one", "damaged-here", "three"] {
        broker.run(&["publish", "q", body]).ok();
    }
    broker.stop();
    damage(&data, b"damaged-here");

    let check = support::run(&["store", "check", data.to_str().expect("text")], b"");
    assert_eq!(check.code, 1, "{check:?}");
    assert!(check.stdout.contains("damaged:\nFILE"), "{check:?}");
    let (code, said) = refused(&data, &[]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("damage in journal-"), "{said}");
    assert!(
        said.contains(&format!("hint: see all of it with `overtake store check {}`", data.display())),
        "{said}"
    );

    let broker = Broker::start_with(&data, &["--on-damage", "skip"]);
    assert_eq!(broker.run(&["consume", "q", "--all"]).ok(), "one\nthree\n");
    broker.signal(Signal::TERM);
    let (_, said) = broker.end();
    assert!(said.contains("damage skipped: journal-"), "{said}");
}

/// Flips a bit in the first place of a store where these bytes are.
fn damage(data: &Path, bytes: &[u8]) {
    for file in std::fs::read_dir(data).expect("a store").map(|entry| entry.expect("a file").path()) {
        let mut content = std::fs::read(&file).expect("readable");
        if let Some(at) = content.windows(bytes.len()).position(|window| window == bytes) {
            content[at] ^= 1;
            return std::fs::write(&file, content).expect("writable");
        }
    }
    panic!("these bytes are in no file");
}

#[test]
fn a_start_that_has_messages_without_a_priority_served_by_priority_is_refused() {
    let dir = dir();
    let data = dir.path().join("data");
    let broker = Broker::start_with(&data, &["--queue", "q={ order = \"fifo\" }"]);
    broker.run(&["publish", "q", "old"]).ok();
    broker.stop();
    let (code, said) = refused(&data, &["--queue", "q"]);
    assert_eq!(code, Some(78), "{said}");
    assert!(said.contains("published without one (1)") && said.contains("--import-priority"), "{said}");
    let broker = Broker::start(&data);
    broker.run(&["queue", "set", "q", "order=priority", "--import-priority", "9"]).ok();
    broker.stop();
    Broker::start_with(&data, &["--queue", "q"]).stop();
}

#[test]
fn a_queue_that_cannot_be_as_configured_is_named() {
    let dir = dir();
    let data = dir.path().join("data");
    let broker = Broker::start_with(&data, &["--queue", "q={ scheme = \"signed\" }"]);
    broker.run(&["publish", "q", "one"]).ok();
    broker.stop();
    let (code, said) = refused(&data, &["--queue", "q={ scheme = \"named\" }"]);
    assert_eq!(code, Some(78), "{said}");
    assert!(said.contains("cannot declare queue `q` (flag --queue): `scheme` cannot change"), "{said}");
}

#[test]
fn logs_are_json_when_asked_for() {
    let dir = dir();
    let mut command = overtake();
    command.args([
        "serve",
        "--http",
        "127.0.0.1:0",
        "--amqp",
        "127.0.0.1:0",
        "--log-format",
        "json",
        "--data-dir",
    ]);
    command.arg(dir.path().join("data"));
    let mut broker = Broker::spawn(command);
    broker.await_line("\"ready\"");
    broker.signal(Signal::TERM);
    let (status, said) = broker.end();
    assert_eq!(status.code(), Some(0), "{said}");
    for line in said.lines() {
        let line: serde_json::Value = serde_json::from_str(line).expect(line);
        let is_level = ["INFO", "WARN"].contains(&line["level"].as_str().unwrap_or_default());
        assert!(line["timestamp"].is_string() && is_level, "{line}");
    }
}

#[test]
fn the_journal_stamps_lines_itself() {
    let dir = dir();
    let mut command = overtake();
    command
        .args(["serve", "--http", "127.0.0.1:0", "--amqp", "127.0.0.1:0", "--data-dir"])
        .arg(dir.path().join("data"));
    command.env("JOURNAL_STREAM", "8:1");
    let mut broker = Broker::spawn(command);
    broker.await_line(" INFO ");
    broker.signal(Signal::TERM);
    let (_, said) = broker.end();
    assert!(said.lines().next().is_some_and(|line| line.starts_with(" INFO overtake")), "{said}");
}

/// All queues of the configuration are checked before the first is declared.
#[test]
fn a_start_that_cannot_declare_all_its_queues_declares_none() {
    let dir = tempfile::tempdir().expect("a directory");
    let data = dir.path().join("data");
    let broker = Broker::start(&data);
    broker.run(&["queue", "declare", "old", "order=fifo"]).ok();
    broker.run(&["publish", "old", "without a priority"]).ok();
    // A history that leads back to a queue of the configuration.
    broker.run(&["queue", "declare", "stored", "history=first"]).ok();
    broker.run(&["queue", "declare", "turned", "history=last"]).ok();
    broker.stop();

    let dir_flag = data.to_str().expect("UTF-8");
    let start = [
        "serve",
        "--segment-bytes",
        "4MiB",
        "--http",
        "127.0.0.1:0",
        "--amqp",
        "127.0.0.1:0",
        "--data-dir",
        dir_flag,
    ];
    let queues = ["--queue", "new", "--queue", "old", "--queue", "first={ history = \"stored\" }"];
    let refused = support::run(&[&start[..], &queues].concat(), b"");
    let said = refused.picture();
    assert!(said.contains("error: cannot declare queue `first` (flag --queue): the `history` of"), "{said}");
    assert!(said.contains("\ncannot declare queue `old` (flag --queue): "), "{said}");
    assert_eq!(said.matches(" hint: ").count(), 2, "{said}");
    assert!(said.contains("order = \"fifo\" into [queues.old]"), "{said}");
    assert!(!said.contains("on the command line `--import-priority`"), "{said}");

    // The histories of both change, and never lead to each other in between.
    let turned = ["--queue", "last={ history = \"turned\" }", "--queue", "turned"];
    let broker = Broker::start_with(&data, &[&["--queue", "old={ order = \"fifo\" }"][..], &turned].concat());
    let listed = broker.run(&["queue", "list", "--json"]).json();
    let names: Vec<_> =
        listed["queues"].as_array().expect("queues").iter().map(|queue| &queue["name"]).collect();
    assert_eq!(names, ["last", "old", "stored", "turned"]);
}

/// The files of a directory, with what is in them.
fn files(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let all = std::fs::read_dir(dir).expect("a directory").map(|entry| entry.expect("an entry").path());
    all.map(|path| (path.clone(), std::fs::read(&path).expect("a file"))).collect()
}

#[test]
fn config_check_refuses_what_a_start_would_and_changes_nothing() {
    let dir = tempfile::tempdir().expect("a directory");
    let data = dir.path().join("data");
    let broker = Broker::start(&data);
    broker.run(&["queue", "declare", "old", "order=fifo"]).ok();
    broker.run(&["publish", "old", "without a priority"]).ok();
    let of = |data: &Path, more: &[&str]| {
        let settings = ["--segment-bytes", "4MiB", "--http", "127.0.0.1:0", "--amqp", "off", "--data-dir"];
        [&settings[..], &[data.to_str().expect("UTF-8")], more].concat().join("\n")
    };
    let run = |command: &[&str], settings: &str| {
        support::run(&[command, &settings.lines().collect::<Vec<_>>()].concat(), b"")
    };
    // A store that a running broker has open is left alone, and the output says so.
    let said = run(&["config", "check"], &of(&data, &["--queue", "old"])).ok();
    assert!(said.contains("\nnot checked: the queues, users and routes against the store in "), "{said}");
    broker.stop();

    // The last words of a start, and its exit code.
    let both_refuse = |data: &Path, more: &[&str]| {
        let checked = run(&["config", "check"], &of(data, more));
        assert_ne!(checked.code, 0, "{more:?}: {checked:?}");
        let served = run(&["serve", "--log-level", "off"], &of(data, more));
        assert!(served.stderr.ends_with(&checked.stderr), "{more:?}: {checked:?} {served:?}");
        assert_eq!(checked.code, served.code, "{more:?}");
    };
    let routes = dir.path().join("routes.toml");
    std::fs::write(&routes, "nonsense").expect("a file");
    let of_routes = routes.to_str().expect("UTF-8");
    both_refuse(&data, &["--queue", "old"]);
    both_refuse(&data, &["--routes-file", of_routes]);
    both_refuse(&data, &["--load-definitions", of_routes]);
    both_refuse(&data, &["--audit-file", "/nowhere/audit"]);
    let before = files(&data);
    let good = run(&["config", "check"], &of(&data, &["--queue", "old={ order = \"fifo\" }"])).ok();
    assert!(good.starts_with("the configuration is good (1 queue declared at start)\n"), "{good}");
    assert!(!good.contains("against the store"), "{good}");
    assert!(before == files(&data), "it is as it was");
    // A directory that is not there and cannot be, one that can, and a store that cannot be read.
    both_refuse(&routes.join("data"), &[]);
    let new = dir.path().join("new/data");
    run(&["config", "check"], &of(&new, &["--queue", "any"])).ok();
    assert!(!new.parent().expect("one").exists());
    for (path, bytes) in before.iter().filter(|(_, bytes)| !bytes.is_empty()) {
        std::fs::write(path, vec![0xff; bytes.len()]).expect("a file");
    }
    both_refuse(&data, &[]);
}
