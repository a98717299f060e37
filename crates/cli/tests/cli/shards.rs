//! A broker with several shards, as people run it: what is in which, and what the commands for stores say of them.

use std::path::Path;

use serde_json::{Value, json};

use crate::support::{Broker, run, unconfigured};

const VHOSTS: [&str; 3] = ["a", "b", "c"];

fn text(path: &Path) -> &str {
    path.to_str().expect("text")
}

/// Each has a queue in which a message waits that says its name.
fn fill(broker: &Broker) {
    for vhost in VHOSTS {
        broker.run(&["vhost", "put", vhost]).ok();
        broker.run(&["--vhost", vhost, "queue", "declare", "q"]).ok();
        broker.run(&["--vhost", vhost, "publish", "q", vhost]).ok();
    }
}

/// What waits, of each virtual host.
fn waiting(broker: &Broker) -> Vec<String> {
    let peek = |vhost| broker.run(&["--vhost", vhost, "peek", "q", "--json"]).ok();
    let body = |line: String| {
        let page: Value = serde_json::from_str(&line).expect("JSON");
        page["messages"][0]["body"].as_str().map(str::to_owned)
    };
    VHOSTS.map(|vhost| body(peek(vhost)).expect("a body")).to_vec()
}

/// The names of the queues of each shard of a store.
fn queues(data: &Path) -> Vec<String> {
    let stats = run(&["store", "stats", text(data), "--json"], b"").json();
    let of_shard = |shard: &Value| -> Vec<String> {
        let queues = shard["queues"].as_array().expect("a list");
        queues.iter().map(|queue| queue["vhost"].as_str().expect("a name").to_owned()).collect()
    };
    stats["shards"].as_array().expect("a list").iter().map(|shard| of_shard(shard).join(" ")).collect()
}

#[test]
fn virtual_hosts_are_spread_over_shards_that_are_copied_together() {
    let dir = tempfile::tempdir().expect("a directory");
    let [data, online, offline, restored] =
        ["data", "online", "offline", "restored"].map(|name| dir.path().join(name));
    let broker = Broker::start_with(&data, &["--shards", "2"]);
    fill(&broker);
    assert_eq!(waiting(&broker), VHOSTS);
    let vhosts = broker.run(&["vhost", "list", "--json"]).ok();
    assert_eq!(vhosts.matches("\"name\"").count(), 4, "one `/` and no other: {vhosts}");

    broker.run(&["store", "snapshot", text(&online)]).ok();
    broker.kill();
    // "/" was in the first, so that the second got more.
    assert_eq!(queues(&data), ["b", "a c"]);
    let said = run(&["store", "snapshot", text(&offline), "--data-dir", text(&data)], b"").ok();
    assert!(said.contains("shard-1"), "{said}");
    for (from, to) in [(&online, &restored), (&offline, &dir.path().join("again"))] {
        let copied = run(&["store", "restore", text(from), text(to), "--json"], b"").json();
        assert_eq!(copied["shards"].as_array().map(Vec::len), Some(2), "{copied}");
        let check = run(&["store", "check", text(to), "--json"], b"").json();
        assert_eq!((&check["clean"], &check["shards"][1]["clean"]), (&json!(true), &json!(true)), "{check}");
        let broker = Broker::start_with(to, &["--shards", "2"]);
        assert_eq!(waiting(&broker), VHOSTS);
        broker.stop();
    }
}

#[test]
fn a_store_is_not_opened_with_fewer_shards_than_it_has() {
    let dir = tempfile::tempdir().expect("a directory");
    let data = dir.path().join("data");
    Broker::start_with(&data, &["--shards", "3"]).stop();
    let mut command = unconfigured(std::process::Command::new(crate::support::binary()));
    command.args(["serve", "--data-dir", text(&data), "--http", "127.0.0.1:0", "--amqp", "off"]);
    let output = command.output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("the store has 3 shards; open it with 3 or more"), "{said}");
    assert!(said.contains("set store.shards (--shards) to as many"), "{said}");
    // More are made when they are asked for.
    let broker = Broker::start_with(&data, &["--shards", "4"]);
    fill(&broker);
    broker.stop();
    assert_eq!(queues(&data).iter().filter(|queues| queues.is_empty()).count(), 1);
}

#[test]
fn a_copy_that_fails_leaves_no_shard_behind() {
    let dir = tempfile::tempdir().expect("a directory");
    let (data, to) = (dir.path().join("data"), dir.path().join("to"));
    let broker = Broker::start_with(&data, &["--shards", "2"]);
    fill(&broker);
    broker.stop();
    let copy = dir.path().join("copy");
    run(&["store", "snapshot", text(&copy), "--data-dir", text(&data)], b"").ok();
    // The first shard comes last, and something of it is not what it says.
    let journal = std::fs::read_dir(&copy).expect("there").filter_map(Result::ok).map(|entry| entry.path());
    let file =
        journal.filter(|path| path.is_file()).find(|path| path.extension().is_none_or(|end| end != "json"));
    let file = file.expect("a file");
    let mut bytes = std::fs::read(&file).expect("read");
    bytes[5_000] ^= 1;
    std::fs::write(&file, bytes).expect("written");
    let said = run(&["store", "restore", text(&copy), text(&to)], b"");
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.stderr.contains("it has another checksum"), "{said:?}");
    assert!(!to.exists(), "nothing is left: {:?}", std::fs::read_dir(&to).map(Iterator::count));
}
