//! Categories with the real binary: lanes as configured, groups that share nothing, dead letters by their streams.

use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

use crate::support::{Broker, Run, overtake};

const LANES: &str = "\
[env.development]

[env.production.server.priority_lanes]
enabled = true
backfill_suffix = \"migration\"
";

/// A broker with lanes where `OVERTAKE_ENV` is production.
struct Story {
    broker: Broker,
    dir: TempDir,
}

fn start(dir: &Path, environment: &str) -> Broker {
    let config = dir.join("overtake.toml");
    std::fs::write(&config, LANES).expect("a file");
    let config = config.to_str().expect("text");
    let mut command = overtake();
    command.env("OVERTAKE_ENV", environment);
    Broker::start_as(command, &dir.join("data"), &["--config", config])
}

impl Story {
    fn begin(environment: &str) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let story = Self { broker: start(dir.path(), environment), dir };
        story.run(&["category", "declare", "customer", "-g", "mails", "-g", "billing"]).ok();
        story
    }

    /// The same store in another environment.
    fn again(self, environment: &str) -> Self {
        let Self { broker, dir } = self;
        broker.stop();
        Self { broker: start(dir.path(), environment), dir }
    }

    fn run(&self, words: &[&str]) -> Run {
        self.broker.run(words)
    }

    fn publish(&self, body: &str, priority: &str) {
        let publish = ["exchange", "publish", "customer", "", body, "--priority", priority, "--mandatory"];
        self.run(&publish).ok();
    }

    /// What the programs of a group print, in the order in which they end.
    fn handled(&self, group: &str, script: &str) -> Vec<String> {
        let words = ["subscribe", "-c", "customer", "-g", group, "--until-empty", "--json"];
        let said = self.run(&[&words[..], &["--", "sh", "-c", script]].concat()).ok();
        let lines = said.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
        lines.filter_map(|line| line["output"].as_str().map(ToOwned::to_owned)).collect()
    }

    /// The streams of a group with what is ready: `customer 2`.
    fn lag(&self, group: &str) -> Vec<String> {
        let shown = self.run(&["category", "show", "customer", "--json"]).json();
        let groups = shown["groups"].as_array().expect("groups").iter();
        let streams = groups.filter(|one| one["group"] == group).flat_map(|one| one["streams"].as_array());
        let text =
            |stream: &Value| format!("{} {}", stream["stream"].as_str().expect("text"), stream["ready"]);
        streams.flatten().map(text).collect()
    }
}

#[test]
fn each_group_handles_everything_the_primary_lane_first() {
    let story = Story::begin("production");
    for (body, priority) in [("m1", "LOW"), ("m2", "BULK"), ("order", "NORMAL"), ("payment", "HIGH")] {
        story.publish(body, priority);
    }
    assert_eq!(story.lag("billing"), ["customer 2", "customer:migration 2"]);
    for group in ["mails", "billing"] {
        assert_eq!(story.handled(group, "cat"), ["order", "payment", "m1", "m2"], "{group}");
        assert_eq!(story.lag(group), ["customer 0", "customer:migration 0"]);
    }
}

#[test]
fn lanes_of_another_environment_hold_from_the_next_start_on() {
    let story = Story::begin("development");
    story.publish("m1", "LOW");
    story.publish("order", "NORMAL");
    assert_eq!(story.lag("mails"), ["customer 2"]);
    assert_eq!(story.handled("billing", "cat"), ["m1", "order"]);
    let story = story.again("production");
    assert_eq!(story.lag("mails"), ["customer 1", "customer:migration 1"]);
    assert_eq!(story.handled("mails", "cat"), ["order", "m1"]);
}

#[test]
fn dead_letters_are_found_by_their_lane_and_go_back_into_it() {
    let story = Story::begin("production");
    story.publish("m1", "LOW");
    story.publish("order", "NORMAL");
    let reject = ["subscribe", "-c", "customer", "-g", "mails", "--until-empty", "--reject-on", "9"];
    story.run(&[&reject[..], &["--", "sh", "-c", "exit 9"]].concat()).ok();
    let listed = story.run(&["dlq", "list", "-c", "customer", "--json"]).json();
    let letters = listed["dead_letters"].as_array().expect("a list");
    let seen: Vec<_> = letters.iter().map(|one| format!("{} {}", one["dead_letters"], one["body"])).collect();
    assert_eq!(seen, [r#""customer:dlq" "order""#, r#""customer:migration:dlq" "m1""#]);
    let id = letters[1]["id"].as_str().expect("an id");
    let shown = story.run(&["dlq", "inspect", id, "-c", "customer"]).ok();
    for said in ["stream: customer:migration\n", "group: mails\n", "priority: LOW\n", "reason: rejected\n"] {
        assert!(shown.contains(said), "{shown}");
    }
    let said = story.run(&["dlq", "replay", id, "-c", "customer"]).ok();
    assert_eq!(said, format!("{id} is back in customer:migration\n"));
    assert_eq!(story.lag("mails"), ["customer 0", "customer:migration 1"]);
    let none = story.run(&["dlq", "replay-all", "-c", "customer", "--lane", "backfill"]).ok();
    assert_eq!(none, "0 dead letters replayed\n");
    story.run(&["dlq", "replay-all", "-c", "customer", "-g", "mails"]).ok();
    assert_eq!(story.lag("mails"), ["customer 1", "customer:migration 1"]);
    story.run(&[&reject[..], &["--", "sh", "-c", "exit 9"]].concat()).ok();
    let purged = story.run(&["dlq", "purge", "-c", "customer", "--lane", "backfill", "--yes"]).ok();
    assert_eq!(purged, "1 dead letter removed\n");
    let listed = story.run(&["dlq", "list", "-c", "customer"]).ok();
    assert!(listed.contains("customer:dlq") && !listed.contains("customer:migration:dlq"), "{listed}");
}
