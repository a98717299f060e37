//! `overtake doctor`, on real servers and on directories.

use std::path::Path;

use serde_json::{Value, json};

use crate::support::{Broker, Run, run};
use crate::valkey::{Program, Server};

fn doctor(nodes: &str, flags: &[&str]) -> Run {
    run(&[&["doctor", "--engine", "redis", "--nodes", nodes], flags].concat(), b"")
}

fn server(program: Program, words: &str) -> Server {
    Server::start_with(program, |_| words.split_whitespace().map(str::to_owned).collect())
}

/// What was found, however it ended.
fn found(run: &Run) -> Value {
    serde_json::from_str(&run.stdout).unwrap_or_else(|error| panic!("{error}: {}", run.picture()))
}

/// Whether each promise holds, by the event that it is about.
fn promises(found: &Value) -> Value {
    let promises = found["promises"].as_array().expect("a list");
    promises
        .iter()
        .map(|one| (one["survives"].as_str().expect("a word").to_owned(), one["holds"].clone()))
        .collect()
}

#[test]
fn a_server_that_writes_everything_at_once_keeps_what_it_confirmed() {
    for program in Program::all() {
        let server = server(program, "--appendfsync always");
        let run = doctor(&server.url(), &["--json"]);
        assert_eq!(run.code, 0, "{}", run.picture());
        let found = found(&run);
        assert_eq!((&found["engine"], &found["holds"]), (&json!("redis"), &json!(true)));
        assert_eq!((&found["replicas_acked"], &found["slots_covered"]), (&json!(0), &json!(true)));
        let all =
            json!({ "broker_killed": true, "server_killed": true, "failover": true, "power_lost": true });
        assert_eq!(promises(&found), all);
        let node = &found["nodes"][0];
        assert!(
            node["version"].as_str().is_some_and(|version| version.starts_with(&format!("{program:?} ")))
        );
        assert_eq!((&node["role"], &node["appendfsync"]), (&json!("primary"), &json!("always")));
        assert_eq!((&node["library_version"], &node["rights_missing"]), (&json!(null), &json!([])));
        let said = doctor(&server.url(), &[]).ok();
        let address = format!("127.0.0.1:{}", server.port);
        assert!(said.lines().nth(1).is_some_and(|line| line.starts_with(&address)), "{said}");
        assert!(said.contains("\na loss of power               yes  every log is on the disk"), "{said}");
    }
}

#[test]
fn what_does_not_hold_is_1_and_says_what_to_change() {
    for program in Program::all() {
        let everysec = server(program, "--appendfsync everysec");
        let run = doctor(&everysec.url(), &[]);
        assert_eq!(run.code, 1, "{}", run.picture());
        assert!(
            run.stdout.contains("say `appendfsync always`, or `fsync_acked = true`"),
            "{}",
            run.picture()
        );
        let found = found(&doctor(&everysec.url(), &["--json"]));
        assert_eq!((&found["holds"], &promises(&found)["power_lost"]), (&json!(false), &json!(false)));
        assert_eq!(promises(&found)["server_killed"], json!(true));
        let alone = doctor(&everysec.url(), &["--engine-replicas-acked", "1"]);
        assert_eq!(alone.code, 1);
        assert!(alone.stdout.contains("a confirm waits for 1 replicas, and it has 0"), "{}", alone.picture());
    }
}

#[test]
fn a_user_is_told_which_rights_are_missing() {
    for program in Program::all() {
        let acl = "user broker on >pw ~{* &{* +ping +info +function|list +config|get";
        let server = Server::start_with(program, |_| {
            vec!["--user".into()].into_iter().chain(acl.split(' ').skip(1).map(str::to_owned)).collect()
        });
        let dir = tempfile::tempdir().expect("a directory");
        let password = dir.path().join("password");
        std::fs::write(&password, "pw\n").expect("a file");
        let url = format!("redis://broker@127.0.0.1:{}", server.port);
        let flags = ["--redis-password-file", password.to_str().expect("text"), "--json"];
        let run = doctor(&url, &flags);
        assert_eq!(run.code, 1, "{}", run.picture());
        let missing = &found(&run)["nodes"][0]["rights_missing"];
        assert_eq!(
            *missing,
            json!(["+function|load", "+fcall", "+fcall_ro", "+sunsubscribe", "+ssubscribe"])
        );
        let nobody = doctor(&url, &[]);
        assert_eq!(nobody.code, 78, "{}", nobody.picture());
        assert!(nobody.stderr.contains("say it in `password`"), "{}", nobody.picture());
    }
}

#[test]
fn where_nobody_answers_it_cannot_be_told() {
    let run = doctor(&format!("127.0.0.1:{}", overtake_free_port::free_port()), &[]);
    assert_eq!((run.code, &*run.stdout), (2, ""), "{}", run.picture());
    assert!(
        run.stderr.contains("cannot tell: ") && run.stderr.contains("does not answer"),
        "{}",
        run.picture()
    );
}

/// What is found of a directory, with the code.
fn of_directory(dir: &Path) -> (i32, Value) {
    let run = run(&["doctor", "--data-dir", dir.to_str().expect("text"), "--json"], b"");
    (run.code, found(&run))
}

#[test]
fn a_directory_says_whether_it_can_be_written_to_and_who_has_it_open() {
    let dir = tempfile::tempdir().expect("a directory");
    let data = dir.path().join("data");
    let (code, found) = of_directory(&data);
    assert_eq!(
        (&found["engine"], &found["exists"], &found["writable"]),
        (&json!("embedded"), &json!(false), &json!(true))
    );
    assert_eq!(
        (code, &found["holds"]),
        (2, &json!(null)),
        "nobody can tell what a store that is not there keeps"
    );
    assert_eq!(promises(&found), json!({ "broker_killed": null, "power_lost": null }));
    assert!(!data.exists(), "it makes nothing");
    let broker = Broker::start_with(&data, &["--queue", "jobs"]);
    let (_, found) = of_directory(&data);
    assert_eq!((&found["exists"], &found["locked"]), (&json!(true), &json!(true)));
    assert!(
        found["free_bytes"].as_u64() > Some(0)
            && found["free_bytes"].as_u64() <= found["total_bytes"].as_u64()
    );
    broker.stop();
    let (_, found) = of_directory(&data);
    assert_eq!((&found["locked"], &found["findings"]), (&json!(false), &json!([])));
}

#[test]
fn a_directory_without_room_is_wrong() {
    let dir = tempfile::tempdir().expect("a directory");
    let data = dir.path().to_str().expect("text");
    let run = run(&["doctor", "--data-dir", data, "--disk-low-bytes", "1000000GiB"], b"");
    assert_eq!(run.code, 1, "{}", run.picture());
    assert!(run.stdout.contains("wrong: publishes are refused: its disk has "), "{}", run.picture());
}

#[test]
fn brokers_on_the_same_servers_give_what_the_others_take_and_say_what_does_not_hold_there() {
    for program in Program::all() {
        let server = server(program, "--appendfsync everysec");
        let dirs = [(); 2].map(|()| tempfile::tempdir().expect("a directory"));
        let flags = ["--engine", "redis", "--engine-nodes", &server.url()];
        let [one, other] = dirs.each_ref().map(|dir| Broker::start_with(dir.path(), &flags));
        one.seen_line("may not survive a loss of power: ");
        one.run(&["queue", "declare", "mail"]).ok();
        one.run(&["publish", "mail", "bulk", "--priority", "1"]).ok();
        one.run(&["publish", "mail", "urgent", "--priority", "9"]).ok();
        one.kill();
        assert_eq!(other.run(&["consume", "mail", "--all"]).ok(), "urgent\nbulk\n");
        other.stop();
    }
}
