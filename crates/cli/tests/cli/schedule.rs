//! `overtake schedule` from the first put to the delete, with the real binary: what it says, and the occurrence that waits.

use serde_json::{Value, json};

use crate::support::Broker;

/// 29 February, so that it is not due while this runs but once in four years.
const LEAP_DAY: &str = "30 9 29 2 *";

fn waiting(broker: &Broker) -> Value {
    // It ends with a code of its own where there is nothing.
    let seen = broker.run(&["peek", "jobs", "--json"]).stdout;
    serde_json::from_str::<Value>(&seen).expect("JSON")["messages"].take()
}

#[test]
fn a_schedule_is_put_listed_shown_and_deleted() {
    let dir = tempfile::tempdir().expect("a directory");
    let data = dir.path().join("data");
    let broker = Broker::start_with(&data, &["--queue", "jobs"]);
    assert_eq!(broker.run(&["schedule", "list"]).ok(), "no schedules\n");
    let put =
        ["schedule", "put", "leap", "jobs", LEAP_DAY, "-", "--timezone", "Europe/Berlin", "--priority", "7"];
    let made = broker.feed(&put, b"dance\n").ok();
    let next = made.strip_prefix("schedule leap is made; next: ").expect("it says when").trim();
    assert!(next.ends_with("-02-29T08:30:00.000Z"), "{made}");

    let id = format!("leap@{}", next.replace(".000Z", "Z"));
    let seen = waiting(&broker);
    assert_eq!((&seen[0]["id"], &seen[0]["status"]), (&json!(id), &json!("delayed")), "{seen}");
    assert_eq!(
        (&seen[0]["body"], &seen[0]["priority"], &seen[1]),
        (&json!("dance\n"), &json!(7), &Value::Null)
    );

    let listed = broker.run(&["schedule", "list"]).ok();
    for word in ["leap", "jobs", LEAP_DAY, "Europe/Berlin", next, "guest"] {
        assert!(listed.contains(word), "{word}: {listed}");
    }
    let shown = broker.run(&["schedule", "show", "leap"]).ok();
    for word in ["time zone: Europe/Berlin", "priority: 7", "body: dance", next] {
        assert!(shown.contains(word), "{word}: {shown}");
    }
    assert_eq!(
        broker.run(&["schedule", "show", "leap", "--json"]).json()["next"].as_array().map(Vec::len),
        Some(5)
    );

    broker.kill();
    let broker = Broker::start(&data);
    let again = waiting(&broker);
    assert_eq!((&again[0]["id"], &again[0]["seq"], &again[1]), (&json!(id), &seen[0]["seq"], &Value::Null));

    let changed = broker.run(&["schedule", "put", "leap", "jobs", LEAP_DAY, "sing"]).ok();
    assert!(changed.starts_with("schedule leap is as you say; next: "), "{changed}");
    let sung = waiting(&broker);
    assert_eq!((&sung[0]["body"], &sung[1]), (&json!("sing"), &Value::Null));
    broker.run(&["schedule", "delete", "leap", "--yes"]).ok();
    assert_eq!(waiting(&broker), json!([]));
    assert_eq!(broker.run(&["schedule", "list", "--json"]).json(), json!({"schedules": []}));
}

#[test]
fn what_is_wrong_is_said_with_a_hint() {
    let dir = tempfile::tempdir().expect("a directory");
    let broker = Broker::start_with(&dir.path().join("data"), &["--queue", "jobs"]);
    let check = |words: &[&str], code: i32, said: &str| {
        let run = broker.run(&[&["schedule"], words].concat());
        assert_eq!(run.code, code, "{run:?}");
        assert!(run.stderr.contains(said), "{said}: {run:?}");
    };
    check(&["put", "a", "jobs", "61 * * * *", "x"], 1, "the cron line cannot be read");
    check(&["put", "a", "jobs", "0 0 30 2 *", "x"], 1, "never comes true");
    check(&["put", "a", "jobs", "@daily", "x", "--timezone", "Berlin"], 1, "Europe/Berlin");
    check(&["put", "a", "none", "@daily", "x"], 1, "no queue `none` in vhost");
    check(&["show", "a"], 1, "no-such-schedule");
    check(&["delete", "a", "--yes"], 1, "no-such-schedule");
}
