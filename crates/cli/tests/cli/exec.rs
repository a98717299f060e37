//! `overtake exec` from the first queue to the last retry, with the real binary.

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::http::ask;
use crate::support::{Broker, Run};

/// A broker, and the pair of queues.
struct Story {
    broker: Broker,
    _dir: TempDir,
}

impl Story {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let story = Self { broker: Broker::start(&dir.path().join("data")), _dir: dir };
        story.exec(&["create"]).ok();
        story
    }

    fn exec(&self, words: &[&str]) -> Run {
        self.broker.run(&[&["exec"], words].concat())
    }

    fn json(&self, words: &[&str]) -> Value {
        self.exec(&[words, &["--json"]].concat()).json()
    }

    /// `id status` of each.
    fn list(&self, words: &[&str]) -> String {
        let list = self.json(&[&["list"], words].concat());
        let text = |value: &Value| value.as_str().expect("text").to_owned();
        let executions = list["executions"].as_array().expect("a list").iter();
        let told = executions.map(|one| format!("{} {}", text(&one["execution_id"]), text(&one["status"])));
        told.collect::<Vec<_>>().join(", ")
    }

    /// Works off what is there.
    fn work(&self) {
        let program = ["work", "executions", "--until-empty", "--", "sh"];
        self.broker.run(&program).ok();
    }
}

#[test]
fn work_is_submitted_seen_steered_and_done_again() {
    let story = Story::new();
    story.exec(&["pause"]).ok();
    let first = story.json(&["submit", "echo fine", "--id", "good", "--key", "k"]);
    assert_eq!(
        first,
        json!({"execution_id": "good", "queue": "executions", "priority": "normal", "position": 0, "position_in_priority": 0})
    );
    story.exec(&["submit", "echo oh; exit 3", "--id", "bad", "--priority", "low", "--for", "ann"]).ok();
    story.exec(&["submit", "", "--id", "later", "--delay", "10m"]).ok();
    let said = story.exec(&["submit", "true", "--id", "urgent", "--priority", "high"]).ok();
    assert_eq!(said, "urgent is submitted in executions with priority high, 0 ahead of it\n");
    assert_eq!(story.list(&[]), "urgent queued, later delayed, bad queued, good queued");
    assert_eq!(story.list(&["--for", "ann"]), "bad queued");
    assert_eq!(story.list(&["--for", "guest", "--status", "queued", "--limit", "1"]), "urgent queued");
    let said = story.exec(&["reprioritise", "bad", "critical"]).ok();
    assert_eq!(said, "bad has priority critical now, 0 ahead of it\n");
    let said = story.exec(&["status"]).ok();
    assert!(said.contains("4 waiting, 0 running of at most 10; paused: none begins"), "{said}");
    assert!(
        said.contains("PRIORITY  WAITING\ncritical        1\nhigh            1\nnormal          2\n"),
        "{said}"
    );
    assert_eq!(story.exec(&["cancel", "urgent"]).ok(), "urgent is cancelled\n");
    let said = story.exec(&["limit", "2"]).ok();
    assert_eq!(said, "executions: 3 waiting, 0 running of at most 2; paused: none begins\n");
    story.work();
    assert_eq!(story.list(&["--status", "completed"]), "", "none begins");
    story.exec(&["resume"]).ok();
    // The backoff between attempts is longer than a test may take.
    ask(&story.broker.url, "PUT", "/v1/queues/executions?replace=true", &one_attempt()).expect(200);
    story.work();
    assert_eq!(story.list(&[]), "later delayed, good completed, bad failed, urgent cancelled");
    let bad = story.json(&["show", "bad"]);
    let said = [&bad["status"], &bad["exit_code"], &bad["output"], &bad["user_id"], &bad["priority"]];
    assert_eq!(said, [&json!("failed"), &json!(3), &json!("oh\n"), &json!("ann"), &json!("critical")]);
    let said = story.exec(&["show", "bad"]).ok();
    assert!(
        said.starts_with("bad\n")
            && said.contains("  error: exit 3\n")
            && said.ends_with("  output:\n    oh\n"),
        "{said}"
    );
    let said = story.exec(&["retry", "good", "urgent"]).ok();
    assert_eq!(said, "good is queued, 0 ahead of it\nurgent is queued, 0 ahead of it\n");
    story.work();
    assert_eq!(story.list(&["--status", "completed"]), "good completed, urgent completed");
    let table = story.exec(&["list", "--limit", "2"]).ok();
    assert!(
        table.starts_with("ID") && table.ends_with("2 of 4: see more with --limit and --skip\n"),
        "{table}"
    );
}

#[test]
fn what_failed_and_waits_says_how_its_attempts_ended() {
    let story = Story::new();
    story.exec(&["submit", "echo oh; exit 3", "--id", "bad"]).ok();
    let leased =
        ask(&story.broker.url, "POST", "/v1/queues/executions/leases", &json!({ "max": 1 })).expect(200);
    let report = json!({ "exit_code": 3, "error": "exit 3", "output": "oh\nno\n" });
    let settle = json!({ "receipts": [leased["messages"][0]["receipt"]], "how": "nack", "delay_ms": 600_000, "report": report });
    ask(&story.broker.url, "POST", "/v1/queues/executions/settle", &settle).expect(200);
    let said = story.exec(&["show", "bad"]).ok();
    assert!(said.contains("  status: delayed\n") && said.contains("  attempts: 1\n"), "{said}");
    assert!(said.contains("  earlier attempt, ended 2"), "{said}");
    assert!(said.ends_with(": failed, exit code 3\n    oh\n    no\n"), "{said}");
    let listed = story.exec(&["list"]).ok();
    assert!(listed.contains("EXIT  ERROR") && listed.contains("  3  exit 3"), "{listed}");
}

/// Of more attempts than are kept it is said how many there were.
#[test]
fn older_attempts_are_counted_and_an_empty_error_is_not_shown() {
    let story = Story::new();
    ask(&story.broker.url, "PATCH", "/v1/queues/executions", &json!({ "delivery_limit": 0 })).expect(200);
    story.exec(&["submit", "", "--id", "bad"]).ok();
    for attempt in 1..=11 {
        let leases = "/v1/queues/executions/leases";
        let leased = ask(&story.broker.url, "POST", leases, &json!({ "max": 1 })).expect(200);
        let settle = json!({
            "receipts": [leased["messages"][0]["receipt"]], "how": "nack",
            "delay_ms": if attempt == 11 { 600_000 } else { 0 },
            "report": { "exit_code": -3, "error": "" },
        });
        ask(&story.broker.url, "POST", "/v1/queues/executions/settle", &settle).expect(200);
    }
    let said = story.exec(&["show", "bad"]).ok();
    assert!(said.contains("  3 older attempts are not kept\n  earlier attempt, ended"), "{said}");
    assert!(said.ends_with(": failed, exit code -3\n"), "{said}");
    assert_eq!(said.matches("earlier attempt,").count(), 8, "{said}");
    let refused = story.exec(&["retry", "bad"]);
    assert!(refused.stderr.contains("`bad` failed (exit code -3) and is tried again"), "{}", refused.stderr);
    // A retry begins to count anew, and the last attempt is one of those before; also over a restart.
    story.exec(&["cancel", "bad"]).ok();
    assert!(story.exec(&["show", "bad"]).ok().contains("  3 older attempts are not kept\n"));
    story.exec(&["retry", "bad"]).ok();
    let said = story.exec(&["show", "bad"]).ok();
    assert!(said.contains("  3 older attempts are not kept\n") && said.contains("  attempts: 0\n"), "{said}");
    let worked = story.broker.run(&["work", "executions", "--until-empty", "--", "true"]);
    assert_eq!(worked.code, 0, "{worked:?}");
    let said = story.exec(&["show", "bad"]).ok();
    assert!(said.contains("  status: completed\n"), "{said}");
    assert!(said.contains("  3 older attempts are not kept\n"), "{said}");
}

#[test]
fn a_list_says_of_what_a_cancel_was_asked() {
    let story = Story::new();
    for id in ["asked", "other"] {
        story.exec(&["submit", "true", "--id", id]).ok();
    }
    ask(&story.broker.url, "POST", "/v1/queues/executions/leases", &json!({ "max": 2 })).expect(200);
    assert_eq!(story.exec(&["cancel", "asked"]).ok(), "asked is running, and asked to end\n");
    let listed = story.exec(&["list"]).ok();
    let line = |id: &str| listed.lines().find(|line| line.starts_with(id)).unwrap_or_default().to_owned();
    assert!(line("asked").contains("  running, cancel asked  "), "{listed}");
    assert!(line("other").contains("  running  ") && !line("other").contains("asked"), "{listed}");
    let peeked = story.broker.run(&["peek", "executions"]).ok();
    assert_eq!(peeked.matches("leased, cancel asked").count(), 1, "{peeked}");
}

/// A command with several ids does the same to each, also when one fails; the exit code is that of the first failure.
#[test]
fn several_ids_are_each_tried_and_each_outcome_is_told() {
    let story = Story::new();
    for id in ["a", "b", "c", "d"] {
        story.exec(&["submit", "true", "--id", id, "--priority", "low"]).ok();
    }
    let run = story.exec(&["cancel", "a", "nosuch", "b"]);
    assert_eq!((run.code, &*run.stdout), (1, "a is cancelled\nb is cancelled\n"));
    assert!(run.stderr.contains("error: nosuch: there is no execution `nosuch`"), "{run:?}");
    let run = story.exec(&["retry", "c", "b", "nosuch", "a", "--json"]);
    assert_eq!(run.code, 1);
    let said: Value = serde_json::from_str(&run.stdout).expect("JSON");
    let failed = said["failed"].as_array().expect("a list").iter();
    let failed: Vec<_> = failed.map(|one| (&one["id"], &one["code"])).collect();
    let expected =
        [(&json!("c"), &json!("execution-pending")), (&json!("nosuch"), &json!("no-such-execution"))];
    assert_eq!(failed, expected);
    assert_eq!(said["executions"].as_array().map(Vec::len), Some(2), "{said}");
    let to = ["--to", "high"];
    let changed = "now with priority high";
    for (words, more, done) in [
        ("reprioritise", &to[..], changed),
        ("cancel", &[], "cancelled, or asked for"),
        ("replay", &[], "replayed"),
        ("remove", &[], "removed"),
    ] {
        let queue = if words == "replay" { "executions.history" } else { "executions" };
        let words = [&[words, queue, "c", "nosuch", "d"], more].concat();
        let run = story.broker.run(&words);
        assert_eq!(
            (run.code, run.stdout),
            (1, format!("c {done}\nd {done}\n2 messages {done}\n")),
            "{words:?}"
        );
        assert!(run.stderr.contains("error: nosuch: "), "{words:?}: {}", run.stderr);
    }
}

/// As `exec create` makes it, but for how often one that fails is begun.
fn one_attempt() -> Value {
    json!({
        "scheme": "named", "max_active": 2, "history": "executions.history", "delivery_limit": 1,
    })
}

#[test]
fn a_pair_is_made_once_and_never_changed_by_the_way() {
    let story = Story::new();
    let made = ask(&story.broker.url, "GET", "/v1/queues/executions", &Value::Null).expect(200);
    let said = ["scheme", "max_active", "history", "delivery_limit"].map(|key| made["settings"][key].clone());
    assert_eq!(said, [json!("named"), json!(10), json!("executions.history"), json!(3)]);
    let past = ask(&story.broker.url, "GET", "/v1/queues/executions.history", &Value::Null).expect(200);
    let said = ["order", "ttl_ms", "max_length"].map(|key| past["settings"][key].clone());
    assert_eq!(said, [json!("fifo"), json!(86_400_000), json!(10_000)]);
    assert_eq!(story.json(&["create"])["made"], false);
    let other = story.exec(&["create", "--max-concurrent", "5"]);
    assert_eq!(other.code, 1);
    assert!(other.stderr.contains("its `max_active` (--max-concurrent) is 10 and not 5"), "{}", other.stderr);
    assert!(other.stderr.contains("overtake queue set executions 'max_active=5'"), "{}", other.stderr);
    // Only what the options say is compared.
    ask(&story.broker.url, "PATCH", "/v1/queues/executions", &json!({ "backoff": { "initial_ms": 5 } }))
        .expect(200);
    assert_eq!(story.json(&["create"])["made"], false);
    let other = story.exec(&["create", "--attempts", "9"]);
    assert!(other.stderr.contains("its `delivery_limit` (--attempts) is 3 and not 9\n"), "{}", other.stderr);
    let renders =
        ["create", "--queue", "renders", "--run-timeout", "10m", "--history", "7d", "--attempts", "1"];
    let said = story.exec(&renders).ok();
    assert_eq!(said, "queue renders is made; what is finished goes to renders.history\n");
    assert_eq!(story.json(&["status", "--queue", "renders"])["history"], "renders.history");
}

#[test]
fn what_is_wrong_is_said_with_what_to_do() {
    let story = Story::new();
    for words in [&["list"][..], &["submit", "x"], &["status"], &["pause"]] {
        let run = story.exec(&[words, &["--queue", "none"]].concat());
        assert_eq!(run.code, 1, "{words:?}");
        assert!(run.stderr.contains("overtake exec create --queue none"), "{words:?}: {}", run.stderr);
    }
    for (words, code, expect) in [
        (&["show", "nothing"][..], 1, "no-such-execution"),
        (&["cancel", "nothing"], 1, "nothing: there is no execution `nothing`"),
        (&["retry", "nothing"], 1, "no-such-execution"),
        (&["reprioritise", "nothing", "high"], 1, "no-such-execution"),
        (&["list", "--priority", "urgent"], 1, "priority"),
        (&["list", "--status", "done"], 2, "possible values"),
        (&["limit", "many"], 2, "many"),
        (
            &["create", "--attempts", "x"],
            2,
            "'x' for '--attempts <N>': it must be a whole number from 0 to 4294967295",
        ),
        (&["limit", "4294967296"], 2, "4294967296"),
        (&["limit", "-1"], 2, "'-1' for '<N>'"),
        (&["create", "--run-timeout", "-2s"], 2, "'-2s' for '--run-timeout <DURATION>'"),
        (&["show", ""], 2, "a name or an id is empty"),
        (&["cancel"], 2, "<ID>"),
    ] {
        let run = story.exec(words);
        assert_eq!(run.code, code, "{words:?}: {run:?}");
        assert!(run.stderr.contains(expect), "{words:?}: {}", run.stderr);
    }
    let bare = story.exec(&[]);
    assert!(bare.code == 2 && bare.stderr.contains("Commands:"), "{bare:?}");
    story.exec(&["submit", "x", "--id", "queue", "--priority", "high"]).ok();
    assert_eq!(story.json(&["show", "queue"])["execution_id"], "queue");
    let urgent = story.exec(&["submit", "x", "--priority", "urgent"]);
    assert!(urgent.code == 1 && urgent.stderr.contains("priority"), "{urgent:?}");
    assert!(story.exec(&["submit", "x"]).ok().contains(" is submitted in executions with priority normal"));
}

/// As tools join addresses from parts.
#[test]
fn the_list_is_served_with_a_slash_behind_it() {
    let story = Story::new();
    for path in ["/api/v1/admin/executions/", "/api/v1/admin/executions", "/api/v1/admin/executions/?limit=7"]
    {
        let list = ask(&story.broker.url, "GET", path, &Value::Null).expect(200);
        assert_eq!(list["total"], 0, "{path}");
    }
}

#[test]
fn nobody_but_administrators_steers_and_everybody_submits() {
    let story = Story::new();
    let user = json!({"password": "secret"});
    ask(&story.broker.url, "PUT", "/v1/users/ann", &user).expect(201);
    story
        .broker
        .run(&["user", "allow", "ann", "--configure", "", "--write", "^executions$", "--read", ""])
        .ok();
    let ann = |words: &[&str]| {
        let mut command = story.broker.command(&[&["exec", "--user", "ann"], words].concat());
        command.env("OVERTAKE_PASSWORD", "secret");
        Run::of(command.output().expect("it runs"))
    };
    ann(&["submit", "x", "--id", "own"]).ok();
    assert_eq!(story.json(&["show", "own"])["user_id"], "ann");
    let other = ann(&["submit", "x", "--for", "bob"]);
    assert_eq!(other.code, 77, "{other:?}");
    for words in [&["list"][..], &["cancel", "own"], &["pause"], &["limit", "1"]] {
        let run = ann(words);
        assert!(run.code == 77 && run.stderr.contains("administrator"), "{words:?}: {run:?}");
    }
}
