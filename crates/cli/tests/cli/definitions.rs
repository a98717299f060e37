//! Definitions of a broker with two virtual hosts, out and in again.

use serde_json::Value;
use tempfile::TempDir;

use crate::support::Broker;

/// A broker with a queue `till` in the virtual host `shop`, a queue `jobs` in `/`, and a user.
fn two_vhosts() -> (TempDir, Broker) {
    let dir = TempDir::new().expect("a directory");
    let broker = Broker::start_with(&dir.path().join("data"), &[]);
    broker.run(&["queue", "declare", "jobs"]).ok();
    broker.run(&["vhost", "put", "shop"]).ok();
    broker.run(&["--vhost", "shop", "queue", "declare", "till"]).ok();
    broker.run(&["user", "put", "ann", "--no-password"]).ok();
    broker.run(&["user", "allow", "ann", "--in", "shop", "--all"]).ok();
    (dir, broker)
}

fn queues(broker: &Broker, vhost: &str) -> Vec<String> {
    let listed = broker.run(&["--vhost", vhost, "queue", "list", "--json"]).json();
    let queues = listed["queues"].as_array().expect("queues").iter();
    queues.map(|queue| queue["name"].as_str().expect("a name").to_owned()).collect()
}

fn names(definitions: &Value, key: &str) -> Vec<String> {
    let all = definitions[key].as_array().into_iter().flatten();
    all.map(|one| one["name"].as_str().unwrap_or_default().to_owned()).collect()
}

#[test]
fn all_virtual_hosts_go_out_and_each_queue_comes_back_into_its_own() {
    let (dir, broker) = two_vhosts();
    let file = dir.path().join("all.json");
    let file = file.to_str().expect("text");
    broker.run(&["definitions", "export", file]).ok();
    let written: Value = serde_json::from_slice(&std::fs::read(file).expect("a file")).expect("JSON");
    assert_eq!(names(&written, "queues"), ["jobs", "till"]);
    assert_eq!(names(&written, "vhosts"), ["/", "shop"]);
    assert_eq!(names(&written, "users"), ["ann", "guest"]);
    assert_eq!(written["permissions"].as_array().map(Vec::len), Some(3), "{written}");

    let other = Broker::start_with(&dir.path().join("other"), &[]);
    other.run(&["definitions", "import", file, "--dry-run"]).ok();
    assert_eq!(queues(&other, "/"), Vec::<String>::new());
    other.run(&["definitions", "import", file]).ok();
    assert_eq!((queues(&other, "/"), queues(&other, "shop")), (vec!["jobs".into()], vec!["till".into()]));
    assert!(other.run(&["user", "list"]).ok().contains("ann"));
}

#[test]
fn one_virtual_host_goes_out_and_into_another_however_it_is_said() {
    let (dir, broker) = two_vhosts();
    let file = dir.path().join("shop.json");
    let file = file.to_str().expect("text");
    for words in [
        &["definitions", "export", "--in", "shop", file][..],
        &["--vhost", "shop", "definitions", "export", file],
        &["--vhost", "/", "definitions", "export", "--in", "shop", file],
    ] {
        broker.run(words).ok();
        let written: Value = serde_json::from_slice(&std::fs::read(file).expect("a file")).expect("JSON");
        assert_eq!(
            (names(&written, "queues"), names(&written, "users")),
            (vec!["till".into()], vec![]),
            "{words:?}"
        );
    }
    broker.run(&["definitions", "import", file, "--in", "/"]).ok();
    assert_eq!(queues(&broker, "/"), ["jobs", "till"]);
    broker.run(&["vhost", "put", "stall"]).ok();
    broker.run(&["--vhost", "stall", "definitions", "import", file]).ok();
    assert_eq!(queues(&broker, "stall"), ["till"]);
    assert_eq!(queues(&broker, "shop"), ["till"]);
}
