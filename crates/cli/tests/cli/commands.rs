//! Every command, as a person uses it, against a broker of its own.

use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;

use expect_test::{Expect, expect};
use tempfile::TempDir;

use crate::support::Broker;
use crate::support::pty::Pty;

/// A broker on a new directory, and what is said to it.
struct Story {
    broker: Broker,
    _dir: TempDir,
}

impl Story {
    fn begin() -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        Self { broker: Broker::start(&dir.path().join("data")), _dir: dir }
    }

    /// Runs a command; moments and ages in what it prints are not compared.
    #[track_caller]
    fn check(&self, words: &[&str], expect: Expect) {
        expect.assert_eq(&steady(&self.broker.run(words).picture()));
    }

    #[track_caller]
    fn ok(&self, words: &[&str]) -> String {
        self.broker.run(words).ok()
    }
}

/// What is the same in every run: moments of RFC 3339 become `MOMENT`, rates `N a second`, ages `AGE`.
fn steady(text: &str) -> String {
    let word = |word: &str| {
        let bare = word.trim_matches(|c: char| "\",".contains(c));
        let is_moment = bare.len() == 24 && bare.ends_with('Z') && bare.starts_with("20");
        if is_moment { word.replace(bare, "MOMENT") } else { word.to_owned() }
    };
    let line = |line: &str| line.split(' ').map(word).collect::<Vec<_>>().join(" ");
    text.lines().map(|text| line(text) + "\n").collect()
}

#[test]
fn queues_are_declared_listed_shown_and_deleted() {
    let story = Story::begin();
    story.check(
        &["queue", "list"],
        expect![[r#"
        exit 0
        no queues
    "#]],
    );
    story.check(
        &["queue", "declare", "jobs", "scheme=named", "lanes.background.max_active=6"],
        expect![[r#"
        exit 0
        queue jobs is made
    "#]],
    );
    story.check(
        &["queue", "declare", "jobs", "scheme=named", "lanes.background.max_active=6"],
        expect![[r#"
        exit 0
        queue jobs is there, with these settings
    "#]],
    );
    story.check(
        &["queue", "declare", "jobs", "scheme=named", "lanes.background.max_active=5"],
        expect![[r#"
            exit 1
            error: queue `jobs` exists with other settings: `lanes.background` is {"max_active":6} and {"max_active":5} was asked; nothing was changed (409 queue-differs)
             hint: declare the queue as it is; `overtake queue set` (PATCH) changes what it names, `--replace` (`?replace=true`) all settings
        "#]],
    );
    story.check(
        &["queue", "set", "jobs", "max_active=20", "ttl=60s"],
        expect![[r#"
        exit 0
        queue jobs is changed: max_active = 20, ttl = 60s
    "#]],
    );
    story.check(
        &["queue", "set", "jobs", "ttl=", "lanes.background="],
        expect![[r#"
        exit 0
        queue jobs is changed: ttl = its default, lanes.background = its default
    "#]],
    );
    story.check(
        &["queue", "declare", "plain", "order=fifo"],
        expect![[r#"
        exit 0
        queue plain is made
    "#]],
    );
    story.check(
        &["publish", "plain", "old"],
        expect![[r#"
        exit 0
        seq-1 is published in plain with priority 4, 0 ahead of it, 0 of its own priority
    "#]],
    );
    story.check(&["queue", "set", "plain", "order=priority"], expect![[r#"
        exit 1
        error: `import_priority`: the queue is to be served by priority, and messages wait in it that were published without one (1) (409 import-priority-missing)
         hint: say which priority they get: `import_priority` with `most-urgent` or a priority, on the command line `--import-priority`
    "#]]);
    story.check(&["queue", "declare", "plain", "--replace"], expect![[r#"
        exit 1
        error: `import_priority`: the queue is to be served by priority, and messages wait in it that were published without one (1) (409 import-priority-missing)
         hint: say which priority they get: `import_priority` with `most-urgent` or a priority, on the command line `--import-priority`
    "#]]);
    story.check(
        &["queue", "set", "plain", "order=priority", "--import-priority", "most-urgent"],
        expect![[r#"
            exit 0
            queue plain is changed: order = priority
        "#]],
    );
    story.check(
        &["queue", "delete", "plain", "--yes"],
        expect![[r#"
        exit 0
        queue plain is deleted
    "#]],
    );
    story.check(
        &["queue", "set", "none", "ttl=1s"],
        expect![[r#"
        exit 1
        error: no queue `none` in vhost `/` (404 no-such-queue)
         hint: declare the queue first, or check its name
    "#]],
    );
    story.check(
        &["queue", "set", "jobs", "ttl=60"],
        expect![[r#"
        exit 2
        error: ttl: `60` has no unit: say 60s for seconds, or 60ms for milliseconds
    "#]],
    );
    story.check(
        &["queue", "pause", "jobs"],
        expect![[r#"
        exit 0
        queue jobs is paused
    "#]],
    );
    story.check(
        &["queue", "show", "jobs"],
        expect![[r#"
            exit 0
            jobs
              consumers: 0, waiting: 0
              backoff = {"initial_ms":0,"max_ms":3600000,"multiplier":2}
              check_entire_queue_on_cleanup = true
              consumer_timeout_ms = 0
              dead_letter = "keep"
              dead_letter_evicted = false
              dead_letter_expired = false
              delivery_limit = 0
              evict_at_once = false
              expire_at_once = false
              expires_ms = 0
              fair_keys = false
              group_limit = 0
              max_active = 20
              max_bytes = 0
              max_consumers = 50000
              max_length = 0
              max_message_bytes = 0
              max_ttl_ms = 0
              max_unacked = 1000000
              order = "priority"
              overflow = "evict"
              paused = true
              picker = "strict"
              run_timeout_ms = 0
              scheme = "named"
              single_active_consumer = false
              ttl_ms = 0
              visibility_timeout_ms = 30000

            no lanes: nothing was published yet
        "#]],
    );
    story.check(
        &["queue", "resume", "jobs"],
        expect![[r#"
        exit 0
        queue jobs goes on
    "#]],
    );
    story.check(
        &["queue", "declare", "jobs", "--replace", "scheme=named", "lanes.background.max_active=5"],
        expect![[r#"
            exit 0
            queue jobs is there, with these settings
        "#]],
    );
    story.check(
        &["queue", "declare", "jobs", "max_activ=1"],
        expect![[r#"
        exit 1
        error: there is no field `max_activ` here (422 field-unknown)
         hint: did you mean `max_active`?
    "#]],
    );
    story.check(&["queue", "declare", "jobs", "scheme=five"], expect![[r#"
        exit 1
        error: `scheme`: unknown scheme `five`: use ten-level, signed, named, route or max-1 to max-255 (422 value-invalid)
         hint: send a valid value; nothing was done
    "#]]);
    story.check(
        &["queue", "declare", "jobs", "partitions.mode=hash"],
        expect![[r#"
            exit 1
            error: `partitions.count` must be 2 to 4096 (422 value-invalid)
             hint: send a valid value; nothing was done
        "#]],
    );
    story.check(
        &[
            "queue",
            "declare",
            "a/b c",
            "order={lanes=[{name=\"hot\",from=7},{name=\"cold\"}]}",
            "partitions.mode=hash",
            "partitions.count=4",
        ],
        expect![[r#"
            exit 0
            queue a/b c is made
        "#]],
    );
    story.check(
        &["queue", "list"],
        expect![[r#"
        exit 0
        NAME   SCHEME     READY  DELAYED  LEASED  DEAD  OLDEST  CONSUMERS
        a/b c  ten-level      0        0       0     0       -          0
        jobs   named          0        0       0     0       -          0
    "#]],
    );
    story.check(
        &["queue", "show", "a/b c"],
        expect![[r#"
            exit 0
            a/b c
              consumers: 0, waiting: 0
              backoff = {"initial_ms":0,"max_ms":3600000,"multiplier":2}
              check_entire_queue_on_cleanup = true
              consumer_timeout_ms = 0
              dead_letter = "keep"
              dead_letter_evicted = false
              dead_letter_expired = false
              delivery_limit = 0
              evict_at_once = false
              expire_at_once = false
              expires_ms = 0
              fair_keys = false
              group_limit = 0
              max_active = 0
              max_bytes = 0
              max_consumers = 50000
              max_length = 0
              max_message_bytes = 0
              max_ttl_ms = 0
              max_unacked = 1000000
              order = {"lanes":[{"from":7,"name":"hot"},{"name":"cold"}]}
              overflow = "evict"
              partitions = {"count":4,"mode":"hash"}
              paused = false
              picker = "strict"
              run_timeout_ms = 0
              scheme = "ten-level"
              single_active_consumer = false
              ttl_ms = 0
              visibility_timeout_ms = 30000

            LANE  READY  DELAYED  LEASED  DEAD  PUBLISHED  DELIVERED  SETTLED  AGAIN  EXPIRED  BYTES  OLDEST
            hot       0        0       0     0          0          0        0      0        0      0       -
            cold      0        0       0     0          0          0        0      0        0      0       -
        "#]],
    );
    story.ok(&["publish", "jobs", "one"]);
    story.check(
        &["queue", "declare", "jobs", "--replace", "scheme=signed"],
        expect![[r#"
            exit 1
            error: `scheme` cannot change while messages are in the queue (409 setting-fixed)
             hint: empty the queue first, or leave this setting as it is
        "#]],
    );
    story.check(
        &["queue", "delete", "jobs", "--if-empty", "--yes"],
        expect![[r#"
        exit 1
        error: the queue is not empty (409 not-empty)
         hint: consume or purge its messages first, or delete it without the condition if-empty
    "#]],
    );
    story.check(
        &["queue", "delete", "jobs", "--yes"],
        expect![[r#"
        exit 0
        queue jobs is deleted
    "#]],
    );
    story.check(
        &["queue", "show", "jobs"],
        expect![[r#"
            exit 1
            error: no queue `jobs` in vhost `/` (404 no-such-queue)
             hint: declare the queue first, or check its name
        "#]],
    );
    let json = story.broker.run(&["queue", "show", "a/b c", "--json"]).json();
    assert_eq!(json["name"], "a/b c");
    story.broker.stop();
}

#[test]
fn settings_come_from_a_file_too() {
    let story = Story::begin();
    let file = story._dir.path().join("jobs.toml");
    std::fs::write(&file, "scheme = \"max-10\"\n[backoff]\ninitial_ms = 100\n").expect("a file");
    story.ok(&["queue", "declare", "jobs", "--from", file.to_str().expect("text"), "backoff.multiplier=3"]);
    let settings = story.broker.run(&["queue", "show", "jobs", "--json"]).json()["settings"].clone();
    assert_eq!(settings["scheme"], "max-10");
    assert_eq!(
        settings["backoff"],
        serde_json::json!({ "initial_ms": 100, "multiplier": 3, "max_ms": 3_600_000 })
    );
    std::fs::write(&file, "scheme = \n").expect("a file");
    let run = story.broker.run(&["queue", "declare", "jobs", "--from", file.to_str().expect("text")]);
    assert_eq!(run.code, 1);
    assert!(run.stderr.contains("jobs.toml: line 1, column 10"), "{run:?}");
}

#[test]
fn the_most_urgent_message_comes_first() {
    let story = Story::begin();
    story.ok(&["queue", "declare", "jobs"]);
    story.check(
        &["publish", "jobs", "bulk", "--priority", "1"],
        expect![[r#"
        exit 0
        seq-1 is published in jobs with priority 1, 0 ahead of it, 0 of its own priority
    "#]],
    );
    story.check(
        &["publish", "jobs", "urgent", "-p", "9", "--id", "u1", "--key", "k", "--header", "a=b"],
        expect![[r#"
            exit 0
            u1 is published in jobs with priority 9, 0 ahead of it, 0 of its own priority
        "#]],
    );
    story.check(
        &["publish", "jobs", "urgent", "-p", "9", "--id", "u1"],
        expect![[r#"
        exit 0
        u1 was there already in jobs with priority 9, 0 ahead of it, 0 of its own priority
    "#]],
    );
    story.check(
        &["publish", "jobs", "late", "--delay", "1h", "--quiet"],
        expect![[r#"
        exit 0
    "#]],
    );
    story.check(
        &["publish", "jobs", "x", "--priority", "-1"],
        expect![[r#"
            exit 1
            error: `priority` is `-1`: queue `jobs` has scheme `ten-level`, whose priorities are 0 to 9, larger first; above 9 counts as 9, up to 32 bits (422 priority-out-of-range)
             hint: send one of them, or none; nothing was done
        "#]],
    );
    story.check(
        &["publish", "nowhere", "x"],
        expect![[r#"
            exit 1
            error: no queue `nowhere` in vhost `/` (404 no-such-queue)
             hint: declare the queue first, or check its name
        "#]],
    );
    story.check(
        &["peek", "jobs"],
        expect![[r#"
            exit 0
            ID     PRIORITY  LANE  STATUS   PUBLISHED                 LEASED  BYTES  KEY  BODY
            u1     9         9     ready    MOMENT       0     18  k    urgent
            seq-1  1         1     ready    MOMENT       0      4       bulk
            seq-3  4         4     delayed  MOMENT       0      4       late
        "#]],
    );
    story.check(
        &["peek", "jobs", "--order", "published", "--header", "a=b", "--key", "k"],
        expect![[r#"
            exit 0
            ID  PRIORITY  LANE  STATUS  PUBLISHED                 LEASED  BYTES  KEY  BODY
            u1  9         9     ready   MOMENT       0     18  k    urgent
        "#]],
    );
    story.check(
        &["peek", "jobs", "--status", "dead"],
        expect![[r#"
        exit 75
        error: no such message in jobs
    "#]],
    );
    story.check(
        &["peek", "jobs", "--status", "dead", "--json"],
        expect![[r#"
        exit 75
        {"messages":[]}
    "#]],
    );
    let one = story.broker.run(&["peek", "jobs", "--id", "seq-1", "--json"]).json();
    assert_eq!(one["messages"][0]["position"], 1);
    story.check(
        &["consume", "jobs", "--all"],
        expect![[r#"
        exit 0
        urgent
        bulk
    "#]],
    );
    story.check(
        &["consume", "jobs"],
        expect![[r#"
        exit 75
        error: no message is ready in jobs
         hint: wait for one with --wait, or --wait 30s
    "#]],
    );
    story.check(
        &["consume", "jobs", "--wait", "10ms"],
        expect![[r#"
        exit 75
        error: no message is ready in jobs
    "#]],
    );
    story.broker.stop();
}

#[test]
fn consume_takes_one_message_unless_it_is_told_how_many() {
    let story = Story::begin();
    story.ok(&["queue", "declare", "q"]);
    for body in ["1", "2", "3", "4", "5", "6"] {
        story.ok(&["publish", "q", body]);
    }
    assert_eq!(story.ok(&["consume", "q"]), "1\n");
    assert_eq!(story.ok(&["consume", "q", "--max", "100"]), "2\n", "a batch is no permission");
    assert_eq!(story.ok(&["consume", "q", "--wait"]), "3\n", "to wait for one is not to take all");
    assert_eq!(story.ok(&["consume", "q", "--count", "2"]), "4\n5\n");
    let endless = story.broker.run(&["consume", "q", "--all", "--nack"]);
    assert_eq!(endless.code, 2, "what is put back would come again for ever: {endless:?}");
    assert_eq!(story.broker.run(&["consume", "q", "--all", "--count", "1"]).code, 2);
    assert_eq!(story.ok(&["consume", "q", "--all"]), "6\n");
    let help = story.ok(&["consume", "--help"]);
    assert!(help.contains("overtake peek"), "{help}");
}

#[test]
fn bodies_are_bytes() {
    let story = Story::begin();
    story.ok(&["queue", "declare", "q"]);
    let bytes = [0xff, 0x00, b'\n', 0x80];
    assert_eq!(story.broker.feed(&["publish", "q", "-"], &bytes).code, 0);
    assert_eq!(story.broker.feed(&["publish", "q"], b"from stdin\n").code, 0);
    let consume = |words: &[&str]| story.broker.command(words).output().expect("it runs").stdout;
    assert_eq!(consume(&["consume", "q", "-n", "1", "--null"]), [&bytes[..], &[0]].concat());
    assert_eq!(consume(&["consume", "q"]), b"from stdin\n\n");
}

#[test]
fn every_line_of_a_file_is_a_message_in_its_order() {
    let story = Story::begin();
    story.ok(&["queue", "declare", "q"]);
    let lines: String = (1..=1_234).map(|line| format!("line {line}\n")).collect();
    let file = story._dir.path().join("lines");
    std::fs::write(&file, &lines).expect("a file");
    let published =
        story.broker.run(&["publish", "q", "--lines", file.to_str().expect("text"), "--json"]).json();
    assert_eq!((&published["published"], &published["duplicates"]), (&1_234.into(), &0.into()));
    assert_eq!(story.ok(&["consume", "q", "--all", "--max", "100"]), lines);

    let several = ["publish", "q", "--lines", "-", "--in-flight", "4", "--batch", "10", "--quiet"];
    assert_eq!(story.broker.feed(&several, lines.as_bytes()).ok(), "");
    let mut came: Vec<_> =
        story.ok(&["consume", "q", "--all", "--max", "100"]).lines().map(ToOwned::to_owned).collect();
    let mut sent: Vec<_> = lines.lines().map(ToOwned::to_owned).collect();
    came.sort();
    sent.sort();
    assert_eq!(came, sent);
}

#[test]
fn lines_may_be_messages_in_json() {
    let story = Story::begin();
    story.ok(&["queue", "declare", "q"]);
    let feed = |lines: &str| {
        story.broker.feed(&["publish", "q", "--lines", "-", "--json-lines", "-p", "2"], lines.as_bytes())
    };
    let run = feed(
        "{\"body\":\"plain\"}\n{\"body\":\"urgent\",\"priority\":8}\n{\"body\":\"plain\",\"id\":\"i\"}\n{\"body\":\"plain\",\"id\":\"i\"}\n",
    );
    let said = run.ok();
    assert!(said.starts_with("3 messages published, 1 message there already, "), "{said}");
    expect![[r#"
        urgent
        plain
        plain
    "#]]
    .assert_eq(&story.ok(&["consume", "q", "--all"]));

    expect![[r#"
        exit 1
        error: 1 message published, then: line 2: this is not JSON from column 2 on
    "#]]
    .assert_eq(&feed("{\"body\":\"fine\"}\nnot JSON\n").picture());
    expect![[r#"
        exit 1
        error: 1 message published, then: line 2: `priority`: queue `q` has scheme `ten-level`, whose priorities are 0 to 9, larger first; above 9 counts as 9, up to 32 bits (422 priority-out-of-range)
         hint: send one of them, or none; nothing was done
    "#]].assert_eq(&feed("{\"body\":\"a\"}\n{\"body\":\"b\",\"priority\":-4}\n").picture());
    expect![[r#"
        exit 1
        error: 1 message published, then: line 2: `messages[0].bdy`: there is no field `bdy` here (422 field-unknown)
         hint: did you mean `body`?
    "#]].assert_eq(&feed("{\"body\":\"a\"}\n{\"bdy\":\"b\"}\n").picture());
}

#[test]
fn a_line_that_is_refused_is_named_and_those_before_it_are_published() {
    let story = Story::begin();
    story.ok(&["queue", "declare", "q", "max_message_bytes=100"]);
    let mut lines: Vec<String> = (1..=700).map(|line| format!("line {line}")).collect();
    lines[636] = "x".repeat(200);
    let run = story.broker.feed(&["publish", "q", "--lines", "-"], (lines.join("\n") + "\n").as_bytes());
    expect![[r#"
        exit 1
        error: 636 messages published, then: line 637: the message is larger than queue `q` takes: 100 bytes with its headers (`max_message_bytes`) (413 message-too-large)
         hint: store the body elsewhere and publish a reference, or raise max_message_bytes or max_bytes of the queue
    "#]]
    .assert_eq(&run.picture());
    assert_eq!(story.ok(&["consume", "q", "--all", "--max", "1000"]), lines[..636].join("\n") + "\n");
}

#[test]
fn a_message_can_fail_be_rejected_and_be_replayed() {
    let story = Story::begin();
    story.ok(&["queue", "declare", "q", "delivery_limit=2"]);
    story.ok(&["publish", "q", "one"]);
    story.check(
        &["consume", "q", "--nack"],
        expect![[r#"
        exit 0
        one
    "#]],
    );
    story.check(
        &["consume", "q", "--nack", "-n", "1"],
        expect![[r#"
        exit 0
        one
    "#]],
    );
    story.check(
        &["peek", "q", "--status", "dead"],
        expect![[r#"
        exit 0
        ID     PRIORITY  LANE  STATUS  PUBLISHED                 LEASED  BYTES  KEY  BODY
        seq-1  4         4     dead    MOMENT       2      3       one
    "#]],
    );
    story.check(
        &["replay", "q", "--all", "--promote", "9"],
        expect![[r#"
            exit 0
            1 message replayed
        "#]],
    );
    story.check(
        &["consume", "q", "--reject"],
        expect![[r#"
        exit 0
        one
    "#]],
    );
    story.check(
        &["replay", "q", "seq-1"],
        expect![[r#"
            exit 0
            1 message replayed
        "#]],
    );
    story.check(
        &["replay", "q", "seq-1"],
        expect![[r#"
            exit 1
            error: seq-1: the message is no dead letter (409 not-dead)
             hint: only dead letters, and what a history keeps, can be replayed
        "#]],
    );
    story.check(
        &["consume", "q", "--no-ack", "-n", "1", "--name", "w"],
        expect![[r#"
        exit 0
        one
    "#]],
    );
    story.check(
        &["peek", "q", "--status", "leased"],
        expect![[r#"
            exit 0
            ID     PRIORITY  LANE  STATUS  PUBLISHED                 LEASED  BYTES  KEY  HOLDER             BODY
            seq-1  9         9     leased  MOMENT       1      3       guest w 127.0.0.1  one
        "#]],
    );
    story.check(
        &["reprioritise", "q", "seq-1", "--to", "1"],
        expect![[r#"
        exit 1
        error: seq-1: the message is leased (409 leased)
         hint: wait until its consumer has settled it, or remove it
    "#]],
    );
    story.check(
        &["remove", "q", "seq-1"],
        expect![[r#"
        exit 0
        1 message removed
    "#]],
    );
    story.check(
        &["remove", "q", "seq-1"],
        expect![[r#"
        exit 1
        error: seq-1: no such message (404 no-such-message)
         hint: it was settled, has expired or was removed; there is nothing left to do
    "#]],
    );
    story.broker.stop();
}

#[test]
fn messages_can_be_moved_and_removed_by_filter() {
    let story = Story::begin();
    story.ok(&["queue", "declare", "q", "scheme=signed"]);
    for (body, tenant) in [("a", "acme"), ("b", "bolt"), ("c", "acme")] {
        story.ok(&["publish", "q", body, "--header", &format!("tenant={tenant}"), "--key", body]);
    }
    story.check(
        &["reprioritise", "q", "--header", "tenant=acme", "--to", "HIGH"],
        expect![[r#"
        exit 0
        2 messages now with priority HIGH
    "#]],
    );
    story.check(
        &["reprioritise", "q", "seq-2", "--to=-50"],
        expect![[r#"
        exit 0
        1 message now with priority -50
    "#]],
    );
    story.check(
        &["peek", "q"],
        expect![[r#"
            exit 0
            ID     PRIORITY  LANE  STATUS  PUBLISHED                 LEASED  BYTES  KEY  BODY
            seq-1  HIGH      HIGH  ready   MOMENT       0     21  a    a
            seq-3  HIGH      HIGH  ready   MOMENT       0     21  c    c
            seq-2  -50       LOW   ready   MOMENT       0     21  b    b
        "#]],
    );
    story.check(
        &["remove", "q", "--key", "a", "--json"],
        expect![[r#"
        exit 0
        {"count":1}
    "#]],
    );
    story.check(
        &["remove", "q", "--all", "--yes"],
        expect![[r#"
        exit 0
        2 messages removed
    "#]],
    );
    story.ok(&["publish", "q", "d"]);
    story.check(
        &["purge", "q", "--yes"],
        expect![[r#"
        exit 0
        1 message purged
    "#]],
    );
    story.check(
        &["purge", "q", "--yes", "--status", "leased"],
        expect![[r#"
            exit 1
            error: `status` is `leased`: purge takes ready, delayed or dead: leased messages stay (422 value-invalid)
             hint: use remove with a filter to take messages away from their consumers
        "#]],
    );
    story.broker.stop();
}

#[test]
fn exchanges_route() {
    let story = Story::begin();
    story.ok(&["queue", "declare", "jobs"]);
    story.ok(&["queue", "declare", "log", "scheme=named"]);
    story.check(
        &["exchange", "declare", "events", "topic"],
        expect![[r#"
        exit 0
        exchange events is there (topic)
    "#]],
    );
    story.check(
        &["exchange", "declare", "events", "fanout"],
        expect![[r#"
            exit 1
            error: the exchange exists with another `kind` (409 exchange-differs)
             hint: declare it as it was declared, or delete it first
        "#]],
    );
    story.check(
        &["exchange", "bind", "events", "jobs", "--key", "job.#"],
        expect![[r#"
        exit 0
        jobs is bound to events
    "#]],
    );
    story.check(
        &["exchange", "bind", "amq.headers", "log", "--header", "a=1", "--header", "b=2", "--any"],
        expect![[r#"
            exit 0
            log is bound to amq.headers
        "#]],
    );
    story.check(
        &["exchange", "list"],
        expect![[r#"
            exit 0
            NAME                KIND     BINDINGS  ATTRIBUTES
            amq.direct          direct          0
            amq.fanout          fanout          0
            amq.headers         headers         1
            amq.match           headers         0
            amq.rabbitmq.trace  topic           0  internal
            amq.topic           topic           0
            events              topic           1
        "#]],
    );
    story.check(
        &["exchange", "list", "amq.headers"],
        expect![[r#"
            exit 0
            TO   KEY  HEADERS
            log       a=1 or b=2
        "#]],
    );
    story.check(
        &["exchange", "publish", "events", "job.new", "body", "-p", "7"],
        expect![[r#"
        exit 0
        seq-1 is published in jobs with priority 7, 0 ahead of it, 0 of its own priority
    "#]],
    );
    story.check(
        &["exchange", "publish", "events", "other", "body"],
        expect![[r#"
        exit 0
        no queue is bound for it: dropped
    "#]],
    );
    story.check(
        &["exchange", "publish", "events", "other", "body", "--mandatory"],
        expect![[r#"
        exit 1
        error: no queue is bound for this message (422 unroutable)
         hint: bind a queue to the exchange for this routing key
    "#]],
    );
    story.check(
        &["consume", "jobs"],
        expect![[r#"
        exit 0
        body
    "#]],
    );
    story.check(
        &["exchange", "unbind", "events", "jobs", "--key", "job.#"],
        expect![[r#"
        exit 0
        jobs is unbound from events
    "#]],
    );
    story.check(
        &["exchange", "unbind", "events", "jobs"],
        expect![[r#"
        exit 1
        error: no such binding (404 no-such-binding)
         hint: list the exchange to see its bindings
    "#]],
    );
    story.check(
        &["exchange", "delete", "events", "--yes"],
        expect![[r#"
        exit 0
        exchange events is deleted
    "#]],
    );
    story.check(
        &["exchange", "delete", "amq.topic", "--yes"],
        expect![[r#"
        exit 1
        error: the exchange belongs to the broker (422 exchange-reserved)
         hint: choose another name: the empty one, amq.* and overtake.* belong to the broker
    "#]],
    );
    story.broker.stop();
}

#[test]
fn the_broker_says_how_it_is() {
    let story = Story::begin();
    story.check(
        &["health"],
        expect![[r#"
        exit 0
        ready (overtake 0.1.0)
    "#]],
    );
    story.check(
        &["health", "--live", "--json"],
        expect![[r#"
            exit 0
            {"status":"ok","version":"0.1.0","warning":null}
        "#]],
    );
    story.check(
        &["health", "--quiet"],
        expect![[r#"
        exit 0
    "#]],
    );
    story.broker.stop();
}

#[test]
fn a_waiting_consumer_gets_a_message_as_soon_as_there_is_one() {
    let story = Story::begin();
    story.ok(&["queue", "declare", "q"]);
    let mut waiting = story.broker.command(&["consume", "q", "--wait", "-n", "2"]);
    let mut waiting = waiting.stdout(Stdio::piped()).spawn().expect("it runs");
    let mut lines = BufReader::new(waiting.stdout.take().expect("piped")).lines();
    story.ok(&["publish", "q", "first"]);
    assert_eq!(lines.next().expect("a line").expect("text"), "first");
    story.ok(&["publish", "q", "second"]);
    assert_eq!(lines.next().expect("a line").expect("text"), "second");
    assert_eq!(waiting.wait().expect("it ends").code(), Some(0));
}

#[test]
fn a_reader_that_has_had_enough_is_no_error_and_loses_nothing() {
    let story = Story::begin();
    story.ok(&["queue", "declare", "q"]);
    let body = "x".repeat(100_000);
    for _ in 0..3 {
        story.broker.feed(&["publish", "q", "-"], body.as_bytes()).ok();
    }
    let mut consumer = story.broker.command(&["consume", "q", "--all", "--wait"]);
    let mut consumer = consumer.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs");
    let mut stdout = consumer.stdout.take().expect("piped");
    // One message and a piece of the next, which is more than a pipe holds: writing the rest of it fails.
    stdout.read_exact(&mut vec![0; 100_500]).expect("so much");
    drop(stdout);
    let output = consumer.wait_with_output().expect("it ends");
    assert_eq!((output.status.code(), output.stderr.is_empty()), (Some(0), true), "{output:?}");
    let totals = story.broker.run(&["queue", "show", "q", "--json"]).json()["totals"].clone();
    assert_eq!((&totals["ready"], &totals["leased"]), (&2.into(), &0.into()), "{totals}");

    let mut list = story.broker.command(&["completions", "bash"]);
    let mut list = list.stdout(Stdio::piped()).spawn().expect("it runs");
    drop(list.stdout.take());
    assert_eq!(list.wait().expect("it ends").code(), Some(0));
}

/// Weights of lanes and of keys are changed one by one, and a name may have a dot.
#[test]
fn a_weight_is_changed_without_the_others() {
    let story = Story::begin();
    story.ok(&["queue", "declare", "q", "fair_keys=true"]);
    for change in ["picker.weighted.9=5", "picker.weighted.4=2", "key_weights.a=2", r#"key_weights."a.b"=3"#]
    {
        story.ok(&["queue", "set", "q", change]);
    }
    let settings =
        |story: &Story| story.broker.run(&["queue", "show", "q", "--json"]).json()["settings"].clone();
    let seen = settings(&story);
    assert_eq!(seen["picker"], serde_json::json!({"weighted": {"9": 5, "4": 2}}));
    assert_eq!(seen["key_weights"], serde_json::json!({"a": 2, "a.b": 3}));
    for change in ["picker.weighted.9=", r#"key_weights."a.b"="#] {
        story.ok(&["queue", "set", "q", change]);
    }
    let seen = settings(&story);
    assert_eq!(seen["picker"], serde_json::json!({"weighted": {"4": 2}}));
    assert_eq!(seen["key_weights"], serde_json::json!({"a": 2}));
    story.broker.stop();
}

#[test]
fn what_selects_many_messages_is_asked_about_at_a_terminal() {
    let story = Story::begin();
    story.ok(&["queue", "declare", "q"]);
    story.broker.feed(&["publish", "q", "--lines", "-", "--key", "k"], b"a\nb\nc\n").ok();
    for (words, question) in [
        (&["remove", "q", "--key", "k"][..], "Remove each message of queue `q` that matches `key=k`? [y/N] "),
        (&["cancel", "q", "--key", "k"], "Cancel each message of queue `q` that matches `key=k`? [y/N] "),
        (
            &["reprioritise", "q", "--all", "--to", "9"],
            "Give every message that waits in queue `q` priority 9? [y/N] ",
        ),
    ] {
        let mut asked = Pty::start(story.broker.command(words), 120, 30);
        asked.await_text(question);
        asked.press("n\n");
        asked.await_text("nothing was done");
    }
    let waiting =
        |story: &Story| story.broker.run(&["queue", "show", "q", "--json"]).json()["totals"]["ready"].clone();
    assert_eq!(waiting(&story), 3);
    let mut told =
        Pty::start(story.broker.command(&["reprioritise", "q", "--all", "--to", "9", "--yes"]), 120, 30);
    told.await_text("3 messages now with priority 9");
    let mut told = Pty::start(story.broker.command(&["remove", "q", "--key", "k", "--expect", "3"]), 120, 30);
    told.await_text("3 messages removed");
    assert_eq!(waiting(&story), 0);
    let audit = story.ok(&["audit"]);
    for which in
        [r#"{"which":{"expect":3,"filter":{"key":"k"}}} → "#, r#"{"which":{"all":true}} → {"count":3,"#]
    {
        assert!(audit.contains(which), "{which}: {audit}");
    }
    story.broker.stop();
}
