//! `overtake relay` with real tables, a real broker and a real Redis: made, relayed, killed, looked at.

use std::path::{Path, PathBuf};

use overtake_client::outbox::{Event, Outbox};
use overtake_client::streams::{self, Lanes, SubscribeOptions, Subscriber};
use serde_json::{Value, json};
use sqlx::ConnectOptions as _;
use sqlx::Connection as _;
use sqlx::postgres::PgConnection;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::databases;
use crate::servers::Server;
use crate::support::http::text;
use crate::support::{Broker, Run, overtake, run};

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

/// An event with its number as its id.
fn event(number: usize, priority: i32) -> Event {
    let data = json!({ "number": number }).to_string();
    Event::new("customer", "CustomerUpdated", data).priority(priority).id(format!("e{number}"))
}

/// A directory with a table in SQLite and the file of a relay.
struct Story {
    dir: TempDir,
}

impl Story {
    /// What follows the database in the file.
    fn begin(rest: &str) -> Self {
        let story = Self { dir: tempfile::tempdir().expect("a directory") };
        let url = format!("sqlite:{}", story.database().display());
        std::fs::write(story.config(), format!("[database]\nurl = \"{url}\"\n{rest}")).expect("a file");
        story
    }

    fn at(broker: &Broker) -> Self {
        Self::begin(&sink(broker))
    }

    fn database(&self) -> PathBuf {
        self.dir.path().join("app.db")
    }

    fn config(&self) -> PathBuf {
        self.dir.path().join("relay.toml")
    }

    fn relay(&self, words: &[&str]) -> Run {
        relay(&self.config(), words)
    }

    fn write(&self, events: &[Event]) {
        let options = SqliteConnectOptions::new().filename(self.database());
        runtime().block_on(async {
            let mut connection = options.connect().await.expect("it is there");
            Outbox::new().write_all(&mut connection, events).await.expect("written");
            connection.close().await.expect("closed");
        });
    }

    fn sql(&self, sql: &'static str) {
        runtime().block_on(async {
            let mut connection: SqliteConnection =
                SqliteConnectOptions::new().filename(self.database()).connect().await.expect("it is there");
            sqlx::query(sql).execute(&mut connection).await.expect("done");
        });
    }

    /// A relay that runs, until it is dropped.
    fn start(&self, more: &[&str]) -> Broker {
        start(&self.config(), more)
    }

    fn drained(&self) {
        drained(&self.config());
    }
}

fn sink(broker: &Broker) -> String {
    let address = &broker.amqp;
    format!(
        "[sink.overtake]\nurl = \"amqp://guest@{address}\"\npassword = {{ env = \"RELAY_TEST_PASSWORD\" }}\n"
    )
}

fn relay(config: &Path, words: &[&str]) -> Run {
    let config = config.to_str().expect("text");
    run(&[&["relay"], words, &["--config", config]].concat(), b"")
}

fn start(config: &Path, more: &[&str]) -> Broker {
    let mut command = overtake();
    command.args(["relay", "--config"]).arg(config).args(more).env("RELAY_TEST_PASSWORD", "guest");
    let mut relay = Broker::spawn(command);
    relay.await_line("ready");
    relay
}

/// Asks until nothing waits any more.
fn drained(config: &Path) {
    let waits = |lag: &Value| lag["pending"].as_u64() != Some(0) || lag["processing"].as_u64() != Some(0);
    while relay(config, &["status", "--json"]).json()["lag"].as_array().expect("a list").iter().any(waits) {}
}

fn category(dir: &Path) -> Broker {
    let broker = Broker::start_with(&dir.join("data"), &["--priority-lanes"]);
    broker.run(&["category", "declare", "customer", "--group", "mails"]).ok();
    broker
}

/// The messages of the group, in the order in which they will go.
fn waiting(broker: &Broker) -> Vec<String> {
    let peeked = broker.run(&["peek", "customer@mails", "--limit", "100000", "--json"]);
    let peeked: Value = serde_json::from_str(&peeked.stdout).expect("JSON");
    let all = peeked["messages"].as_array().expect("a list").iter();
    all.map(|message| message["id"].as_str().expect("an id").to_owned()).collect()
}

#[test]
fn a_table_is_printed_without_a_database_made_once_and_then_only_looked_at() {
    let story = Story::begin("[sink.overtake]\nurl = \"amqp://guest@localhost\"\n");
    let printed = story.relay(&["init", "--print"]).ok();
    assert!(printed.contains("CREATE TABLE IF NOT EXISTS \"outbox\""), "{printed}");
    assert!(printed.contains("CREATE INDEX") && printed.ends_with(";\n"), "{printed}");
    assert!(!story.database().exists());
    let before = story.relay(&["status"]);
    assert_eq!(before.code, 78, "{before:?}");
    assert!(before.stderr.contains("or `overtake relay init` does"), "{before:?}");
    std::fs::write(story.database(), "").expect("a file");
    let before = story.relay(&["status"]);
    assert!(before.stderr.contains("`overtake relay init` makes it"), "{before:?}");
    assert_eq!(story.relay(&["init"]).ok(), "table outbox is made, with its indexes\n");
    assert_eq!(story.relay(&["init"]).ok(), "table outbox is there, and has all it wants\n");
    story.sql("DROP INDEX outbox_pending");
    let lacks = story.relay(&["init"]).ok();
    assert!(lacks.contains("outbox_pending") && lacks.contains("It lacks"), "{lacks}");
    assert_eq!(story.relay(&["status"]).ok(), "nothing waits\n");
}

#[test]
fn rows_go_to_every_group_the_most_urgent_first_and_what_is_counted_is_served() {
    let dir = tempfile::tempdir().expect("a directory");
    let broker = category(dir.path());
    let story = Story::at(&broker);
    story.relay(&["init"]).ok();
    let priorities = [-50, -100, 0, 100, 50];
    let events: Vec<_> = priorities.iter().enumerate().map(|(at, priority)| event(at, *priority)).collect();
    story.write(&events);
    let relay = story.start(&["--metrics", "127.0.0.1:0"]);
    story.drained();
    // By priority out of the table, then in their lanes.
    assert_eq!(waiting(&broker), ["e3", "e4", "e2", "e0", "e1"]);
    let url = relay.seen_line("http://");
    let url = url.split_whitespace().last().expect("an address").trim_end_matches("/metrics").to_owned();
    let counted = text(&url, "/metrics");
    for line in
        ["overtake_relay_published_total 5", "overtake_relay_sink_up 1", "overtake_relay_database_up 1"]
    {
        assert!(counted.contains(line), "{line} in {counted}");
    }
    assert!(counted.contains("overtake_relay_claim_duration_seconds_bucket"), "{counted}");
    relay.stop();
    let given = broker.run(&["peek", "customer@mails", "--json", "--limit", "1"]).json();
    let first = &given["messages"][0];
    assert_eq!(
        (&first["properties"]["type"], &first["given_priority"]),
        (&json!("CustomerUpdated"), &json!(100))
    );
}

#[test]
fn what_has_no_group_waits_is_seen_and_tried_again_when_asked() {
    let dir = tempfile::tempdir().expect("a directory");
    let broker = Broker::start(&dir.path().join("data"));
    let retry = "[retry]\nattempts = 1\n";
    let story = Story::begin(&(sink(&broker) + retry));
    story.relay(&["init"]).ok();
    story.write(&[event(1, 0), event(2, -50)]);
    let relay = story.start(&[]);
    story.drained();
    let status = story.relay(&["status", "--json"]).json();
    assert_eq!(status["reasons"][0]["status"], "abandoned", "{status}");
    assert_eq!(status["reasons"][0]["rows"], 2, "{status}");
    let shown = story.relay(&["show", "e1"]).ok();
    assert!(shown.contains("status: abandoned") && shown.contains("last_error: "), "{shown}");
    broker.run(&["category", "declare", "customer", "--group", "mails"]).ok();
    let nothing = story.relay(&["retry"]);
    assert_eq!(nothing.code, 2, "{nothing:?}");
    assert_eq!(
        story.relay(&["retry", "--abandoned", "--priority", "-50"]).ok(),
        "1 row will be tried again\n"
    );
    assert_eq!(story.relay(&["retry", "--all"]).ok(), "1 row will be tried again\n");
    story.drained();
    let mut there = waiting(&broker);
    there.sort();
    assert_eq!(there, ["e1", "e2"]);
    assert_eq!(story.relay(&["reconcile"]).ok(), "all is as it should be\n");
    relay.stop();
}

#[test]
fn streams_of_redis_get_rows_by_lane_with_who_they_are() {
    let Some(redis) = Server::redis(&[]) else { return };
    let url = format!("redis://127.0.0.1:{}/0", redis.port);
    let story = Story::begin(&format!("[sink.redis]\nurl = \"{url}\"\n[lanes]\nenabled = true\n"));
    story.relay(&["init"]).ok();
    story.write(&[event(1, -50), event(2, 50)]);
    let relay = story.start(&[]);
    story.drained();
    relay.stop();
    let words =
        ["subscribe", &url, "-c", "customer", "-g", "mails", "--until-empty", "--json", "--", "sh", "-c"];
    let script = "cat; echo \" $OVERTAKE_ID $OVERTAKE_STREAM $OVERTAKE_PRIORITY $OVERTAKE_TYPE\"";
    let said = run(&[&words[..], &[script]].concat(), b"").ok();
    let lines = said.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let seen: Vec<_> =
        lines.filter_map(|line| line["output"].as_str().map(|text| text.trim_end().to_owned())).collect();
    let expect = [
        "{\"number\":2} e2 customer 50 CustomerUpdated",
        "{\"number\":1} e1 customer:backfill -50 CustomerUpdated",
    ];
    assert_eq!(seen, expect);
}

#[test]
fn a_group_that_never_reads_the_backfill_lane_is_told_and_its_lag_is_served() {
    let Some(redis) = Server::redis(&[]) else { return };
    let url = format!("redis://127.0.0.1:{}/0", redis.port);
    let story = Story::begin(&format!(
        "[sink.redis]\nurl = \"{url}\"\n[server.priority_lanes]\nenabled = true\n[relay]\nlag_every = \"1s\"\n"
    ));
    story.relay(&["init"]).ok();
    let one_lane =
        ["subscribe", &url, "-c", "customer", "-g", "mails", "--until-empty", "--one-lane", "--", "true"];
    run(&one_lane, b"").ok();
    story.write(&[event(1, -50), event(2, 50)]);
    let mut relay = story.start(&["--metrics", "127.0.0.1:0"]);
    let said = relay.seen_line("http://");
    let metrics = said.split_whitespace().last().expect("an address").trim_end_matches("/metrics").to_owned();
    relay.await_line("this group reads the primary lane only");
    let told = relay.seen_line("this group reads the primary lane only");
    for part in ["WARN", "category=customer", "group=mails", "stream=customer:backfill", "entries=1"] {
        assert!(told.contains(part), "{part} in {told}");
    }
    let counted = text(&metrics, "/metrics");
    let of = |lane: &str| format!("{{category=\"customer\",lane=\"{lane}\",group=\"mails\"}}");
    for line in [
        format!("overtake_relay_group_waiting_entries{} 1", of("backfill")),
        format!("overtake_relay_group_waiting_entries{} 1", of("primary")),
        format!("overtake_relay_group_pending_entries{} 0", of("primary")),
        format!("overtake_relay_group_oldest_age_seconds{}", of("backfill")),
    ] {
        assert!(counted.contains(&line), "{line} in {counted}");
    }
    story.drained();
    relay.stop();
    let status = story.relay(&["status"]).ok();
    let never = "group mails never reads customer:backfill, where entries wait (1): give its reader the priority lanes";
    assert!(status.contains(never), "{status}");
    let unread = &story.relay(&["status", "--json"]).json()["unread"];
    let expect =
        json!([{ "category": "customer", "group": "mails", "stream": "customer:backfill", "entries": 1 }]);
    assert_eq!(*unread, expect);
    // With both lanes it reads them.
    run(&one_lane.into_iter().filter(|word| *word != "--one-lane").collect::<Vec<_>>(), b"").ok();
    assert_eq!(story.relay(&["status", "--json"]).json()["unread"], json!([]));
    drop(redis);
    let status = story.relay(&["status"]).ok();
    assert!(status.contains("not known of all groups of consumers: "), "{status}");
}

#[test]
fn what_is_critical_stays_critical_through_the_relay_a_handler_and_the_next_hop() {
    let Some(redis) = Server::redis(&[]) else { return };
    let url = format!("redis://127.0.0.1:{}/0", redis.port);
    let story = Story::begin(&format!("[sink.redis]\nurl = \"{url}\"\n[lanes]\nenabled = true\n"));
    story.relay(&["init"]).ok();
    // As protean writes it: the table knows, and the metadata say 0.
    story.write(&[event(1, 100).metadata(r#"{"domain": {"priority": 0}}"#)]);
    let relay = story.start(&[]);
    let (server, database) = (streams::server(&url).expect("a server"), story.database());
    let subscribe = async |category| {
        let options = SubscribeOptions { lanes: Lanes::enabled(), ..SubscribeOptions::new(category, "g") };
        Subscriber::connect(&server, options).await.expect("it is there")
    };
    runtime().block_on(async {
        let first = subscribe("customer").await;
        let handling = streams::handle(first, 1, move |_| {
            let database = database.clone();
            async move {
                let connection = SqliteConnectOptions::new().filename(database).connect().await;
                let mut connection = connection.map_err(|error| error.to_string())?;
                let second = Event::new("mail", "MailSent", "{}").id("second");
                let written = Outbox::new().write(&mut connection, second).await;
                written.map(drop).map_err(|error| error.to_string())
            }
        });
        let second = subscribe("mail").await.next().await.expect("an entry");
        assert_eq!((second.priority(), second.stream()), (Some(100), "mail"));
        handling.stop().await.expect("nothing is held");
    });
    relay.stop();
}

#[test]
fn relay_and_broker_are_killed_twice_each_and_nothing_is_lost_or_there_twice() {
    const ROWS: usize = 20_000;
    let Some(postgres) = databases::Server::postgres() else { return };
    let url = postgres.url("postgres");
    let dir = tempfile::tempdir().expect("a directory");
    let broker = category(dir.path());
    let amqp = broker.amqp.clone();
    let http = broker.url.trim_start_matches("http://").to_owned();
    let config = dir.path().join("relay.toml");
    let tuned = "[relay]\nbatch = 200\nlock = \"3s\"\n";
    std::fs::write(&config, format!("[database]\nurl = \"{url}\"\n{tuned}{}", sink(&broker)))
        .expect("a file");
    relay(&config, &["init"]).ok();
    let (mut broker, mut relaying) = (Some(broker), Some(start(&config, &[])));
    runtime().block_on(async {
        let mut connection = PgConnection::connect(&url).await.expect("it is there");
        for from in (0..ROWS).step_by(100) {
            let events: Vec<_> = (from..from + 100)
                .map(|number| event(number, if number % 50 == 0 { 0 } else { -50 }))
                .collect();
            let mut transaction = connection.begin().await.expect("begun");
            Outbox::new().write_all(&mut *transaction, &events).await.expect("written");
            transaction.commit().await.expect("committed");
            // While it claims, publishes and marks.
            match from {
                at if at == ROWS / 5 || at == ROWS / 2 => {
                    relaying.take().expect("it runs").kill();
                    relaying = Some(start(&config, &[]));
                }
                at if at == ROWS / 4 || at == ROWS * 4 / 5 => {
                    broker.take().expect("it runs").kill();
                    let ports = ["--http", &http, "--amqp", &amqp, "--priority-lanes"];
                    broker = Some(Broker::start_with(&dir.path().join("data"), &ports));
                }
                _ => {}
            }
        }
    });
    drained(&config);
    let seen = relay(&config, &["status", "--json"]).json();
    assert_eq!(seen["reasons"], json!([]), "{seen}");
    let there = waiting(broker.as_ref().expect("it runs"));
    assert_eq!(there.len(), ROWS, "each once: the broker knows ids that wait");
    let unique: std::collections::BTreeSet<_> = there.iter().collect();
    assert_eq!(unique.len(), ROWS);
    relaying.expect("it runs").stop();
}

/// The numbers of rows are those of `signed`, where 0 is everyday work; to a queue of ten levels 0 is the last of all.
#[test]
fn a_queue_of_another_scheme_takes_what_is_as_urgent() {
    let dir = tempfile::tempdir().expect("a directory");
    let broker = Broker::start(&dir.path().join("data"));
    broker.run(&["queue", "declare", "levels", "scheme=ten-level"]).ok();
    let levels = |scheme: &str, rows: &[(usize, i32)]| {
        let story = Story::begin(&format!("{}queue = \"levels\"\n{scheme}", sink(&broker)));
        story.relay(&["init"]).ok();
        story.write(&rows.iter().map(|(number, priority)| event(*number, *priority)).collect::<Vec<_>>());
        let relay = story.start(&[]);
        story.drained();
        relay.stop();
        let peeked = broker.run(&["peek", "levels", "--json"]);
        let peeked: Value = serde_json::from_str(&peeked.stdout).expect("JSON");
        broker.run(&["purge", "levels", "--yes"]).ok();
        let all = peeked["messages"].as_array().expect("a list").iter();
        all.map(|message| format!("{} {}", text_of(&message["id"]), message["priority"])).collect::<Vec<_>>()
    };
    let rows = [(1, -100), (2, -50), (3, 0), (4, 50), (5, 100)];
    assert_eq!(levels("", &rows), ["e5 9", "e4 6", "e3 4", "e2 2", "e1 0"]);
    let own = "priority_scheme = \"ten-level\"\n";
    assert_eq!(levels(own, &[(1, 0), (2, 9), (3, 4)]), ["e2 9", "e3 4", "e1 0"], "a table with levels");
}

fn text_of(value: &Value) -> &str {
    value.as_str().expect("text")
}

#[test]
fn a_variable_that_sets_nothing_is_refused_by_whoever_reads_lanes() {
    let Some(redis) = Server::redis(&[]) else { return };
    let url = format!("redis://127.0.0.1:{}/0", redis.port);
    let story = Story::begin(&format!("[sink.redis]\nurl = \"{url}\"\n"));
    let misspelled = "OVERTAKE__SERVER__PRIORITY_LANES__ENABELD";
    let config = story.config();
    let config = config.to_str().expect("text");
    for words in [
        &["relay", "status", "--config", config][..],
        &["subscribe", &url, "-c", "customer", "-g", "mails", "--until-empty", "--", "true"],
        &["dlq", "list", "--redis", &url, "-c", "customer"],
        &["category", "show", "customer", "--redis", &url],
    ] {
        let ended = overtake().args(words).env(misspelled, "true").output().expect("it runs");
        let said = String::from_utf8_lossy(&ended.stderr);
        assert!(!ended.status.success(), "{words:?}: {said}");
        assert!(
            said.contains(&format!("there is no variable {misspelled}; there are ")),
            "{words:?}: {said}"
        );
        assert!(!said.contains("relay.toml"), "no file is at fault: {said}");
    }
}

#[test]
fn flags_for_streams_are_refused_where_messages_are_the_brokers() {
    let of_broker = [
        &["subscribe", "-c", "customer", "-g", "mails"][..],
        &["dlq", "list", "-c", "customer"],
        &["category", "show", "customer"],
    ];
    for words in of_broker {
        for flag in ["--priority-lanes=false", "--priority-lanes-suffix=bulk", "--one-lane"] {
            let program: &[&str] = if words[0] == "subscribe" { &["--", "true"] } else { &[] };
            let ended = run(&[words, &[flag], program].concat(), b"");
            let name = flag.split('=').next().expect("a name");
            assert_eq!(ended.code, 2, "{ended:?}");
            assert!(
                ended.stderr.contains(&format!("{name} is for streams of Redis or Valkey: ")),
                "{ended:?}"
            );
        }
    }
    for flag in ["--attempts=5", "--claim-idle=5s", "--from-now", "--partitions"] {
        let ended = run(&["subscribe", "-c", "customer", "-g", "mails", flag, "--", "true"], b"");
        assert_eq!(ended.code, 2, "{ended:?}");
    }
}

#[test]
fn what_is_wrong_with_the_file_is_said_with_its_place() {
    let dir = tempfile::tempdir().expect("a directory");
    let config = dir.path().join("relay.toml");
    let none = relay(&config, &[]);
    assert_eq!(none.code, 78, "{none:?}");
    assert!(none.stderr.contains("cannot read") && none.stderr.contains("--config"), "{none:?}");
    std::fs::write(&config, "[database]\nurl = \"sqlite:app.db\"\n[relay]\nbatches = 5\n").expect("a file");
    let wrong = relay(&config, &[]);
    assert_eq!(wrong.code, 78, "{wrong:?}");
    assert!(wrong.stderr.contains("relay.toml:4") && wrong.stderr.contains("batches"), "{wrong:?}");
    let gone = "[database]\nurl = \"postgres://nobody@127.0.0.1:1/app\"\n[sink.overtake]\nurl = \"amqp://guest@localhost\"\n";
    std::fs::write(&config, gone).expect("a file");
    let unreachable = relay(&config, &["status"]);
    assert_eq!(unreachable.code, 69, "{unreachable:?}");
}
