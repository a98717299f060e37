//! `overtake subscribe` and `overtake dlq` on streams of a real Redis.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::Command;

use overtake_streams::{FIELD, Fields, Lanes, Writer, envelope, server};
use serde_json::{Value, json};

use crate::servers::Server;
use crate::support::{Run, run};

struct Story {
    redis: Server,
}

impl Story {
    /// `None` where there is no Redis.
    fn begin() -> Option<Self> {
        Server::redis(&[]).map(|redis| Self { redis })
    }

    fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/0", self.redis.port)
    }

    fn entry(data: &Value, priority: i32) -> (String, Fields) {
        let metadata =
            json!({ "headers": { "id": data, "type": "Moved" }, "domain": { "priority": priority } });
        let field = (FIELD.as_bytes().to_vec(), envelope(data, &metadata).into_bytes());
        (Lanes::enabled().stream_of("customer", priority), vec![field])
    }

    fn add(&self, entries: &[(String, Fields)]) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let server = server(&self.url()).expect("a server");
        let added = runtime.block_on(async { Writer::connect(&server).await?.add(entries).await });
        added.expect("it is there").into_iter().for_each(|id| drop(id.expect("added")));
    }

    fn subscribe(&self, more: &[&str], script: &str) -> Run {
        let url = self.url();
        let words = ["subscribe", &url, "-c", "customer", "-g", "mails", "--until-empty", "--json"];
        run(&[&words[..], more, &["--", "sh", "-c", script]].concat(), b"")
    }

    /// What programs printed, in the order in which they ended.
    fn handled(&self, more: &[&str], script: &str) -> Vec<String> {
        let said = self.subscribe(more, script).ok();
        let lines = said.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
        lines.filter_map(|line| line["output"].as_str().map(|text| text.trim_end().to_owned())).collect()
    }

    /// Makes a key a string, which is no stream.
    fn spoil(&self, key: &str) {
        let mut wire = TcpStream::connect(("127.0.0.1", self.redis.port)).expect("it listens");
        write!(wire, "SET {key} something\r\n").expect("asked");
        let mut answer = [0; 5];
        wire.read_exact(&mut answer).expect("answered");
        assert_eq!(&answer, b"+OK\r\n");
    }

    /// Records the key of a partition, as writers do.
    fn record(&self, key: &str) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let server = server(&self.url()).expect("a server");
        let done =
            runtime.block_on(async { Writer::connect(&server).await?.record_keys("customer", &[key]).await });
        done.expect("it is there").expect("recorded");
    }

    fn dlq(&self, words: &[&str]) -> Run {
        run(&[&["dlq"], words, &["--redis", &self.url(), "--category", "customer"]].concat(), b"")
    }

    fn dead(&self) -> Vec<String> {
        let listed = self.dlq(&["list", "--json"]);
        let listed: Value = serde_json::from_str(&listed.stdout).expect("JSON");
        let letters = listed["dead_letters"].as_array().expect("a list").iter();
        let text = |letter: &Value, key: &str| letter[key].as_str().unwrap_or_default().to_owned();
        let mut all: Vec<_> = letters
            .map(|one| format!("{} {} {}", text(one, "dead_letters"), text(one, "reason"), text(one, "body")))
            .collect();
        all.sort();
        all
    }
}

#[test]
fn the_primary_lane_goes_first_and_programs_know_what_they_work_on() {
    let Some(story) = Story::begin() else { return };
    let all = [("m1", -50), ("m2", -100), ("order", 0), ("payment", 50)];
    story.add(&all.map(|(data, priority)| Story::entry(&json!(data), priority)));
    let script = "cat; echo \" $OVERTAKE_STREAM $OVERTAKE_PRIORITY $OVERTAKE_TYPE $OVERTAKE_ATTEMPT\"";
    let expect = [
        "\"order\" customer 0 Moved 1",
        "\"payment\" customer 50 Moved 1",
        "\"m1\" customer:backfill -50 Moved 1",
        "\"m2\" customer:backfill -100 Moved 1",
    ];
    assert_eq!(story.handled(&[], script), expect);
    assert_eq!(story.handled(&[], script), Vec::<String>::new(), "each once");
}

#[test]
fn what_cannot_be_done_is_with_the_dead_letters_of_its_lane_and_back_again() {
    let Some(story) = Story::begin() else { return };
    let garbage = ("customer".to_owned(), vec![(b"data".to_vec(), b"no json".to_vec())]);
    story.add(&[Story::entry(&json!("m1"), -50), Story::entry(&json!("order"), 0), garbage]);
    story.subscribe(&["--reject-on", "9"], "exit 9").ok();
    let dead = story.dead();
    assert_eq!(dead.len(), 3, "{dead:?}");
    assert_eq!(dead[0], "customer:backfill:dlq exit 9 \"m1\"");
    assert!(dead.iter().any(|letter| letter == "customer:dlq exit 9 \"order\""), "{dead:?}");
    assert!(dead.iter().any(|letter| letter.contains("no JSON")), "{dead:?}");
    let backfill = ["--lane", "backfill"];
    assert_eq!(story.dlq(&[&["replay-all"], &backfill[..]].concat()).ok(), "1 dead letter replayed\n");
    assert_eq!(story.handled(&[], "cat"), ["\"m1\""]);
    let other_group = story.dlq(&["replay-all", "--group", "billing"]).ok();
    assert_eq!(other_group, "0 dead letters replayed\n");
    assert_eq!(story.dlq(&["purge", "--yes"]).ok(), "2 dead letters removed\n");
    assert_eq!(story.dead(), Vec::<String>::new());
}

#[test]
fn dead_letters_that_can_be_reached_are_done_and_the_key_that_is_none_is_named() {
    let Some(story) = Story::begin() else { return };
    story.add(&[Story::entry(&json!("m1"), -50)]);
    story.subscribe(&["--reject-on", "9"], "exit 9").ok();
    story.spoil("customer:dlq");
    let bad = "customer:dlq: it answers WRONGTYPE";
    for group in [&[][..], &["--group", "mails"]] {
        let listed = story.dlq(&[&["list"], group].concat());
        assert!(listed.code == 1 && listed.stdout.contains("customer:backfill:dlq"), "{listed:?}");
        assert!(listed.stderr.contains(bad), "{listed:?}");
        let json = story.dlq(&[&["list", "--json"], group].concat());
        let json: Value = serde_json::from_str(&json.stdout).expect("JSON");
        assert!(json["faults"][0].as_str().is_some_and(|why| why.starts_with(bad)), "{json}");
        let replayed = story.dlq(&[&["replay-all"], group].concat());
        assert_eq!(
            (replayed.code, replayed.stdout.as_str()),
            (1, "1 dead letter replayed\n"),
            "{replayed:?}"
        );
        assert!(replayed.stderr.contains(bad), "{replayed:?}");
        story.subscribe(&["--reject-on", "9"], "exit 9").ok();
    }
    let purged = story.dlq(&["purge", "--yes"]);
    assert_eq!((purged.code, purged.stdout.as_str()), (1, "1 dead letter removed\n"), "{purged:?}");
    assert!(purged.stderr.contains(bad), "{purged:?}");
}

#[test]
fn one_is_found_shown_and_put_back_by_its_id() {
    let Some(story) = Story::begin() else { return };
    story.add(&[Story::entry(&json!({ "name": "Ada" }), -50)]);
    story.subscribe(&["--reject-on", "9"], "exit 9").ok();
    let listed = story.dlq(&["list", "--json"]).json();
    let id = listed["dead_letters"][0]["id"].as_str().expect("an id");
    let shown = story.dlq(&["inspect", id]).ok();
    for said in ["stream: customer:backfill\n", "type: Moved\n", "group: mails\n", "{\"name\":\"Ada\"}\n"] {
        assert!(shown.contains(said), "{shown}");
    }
    assert_eq!(story.dlq(&["replay", id]).ok(), format!("{id} is back in customer:backfill\n"));
    let again = story.dlq(&["replay", id]);
    assert!(again.stderr.contains(&format!("there is no dead letter `{id}`")), "{again:?}");
}

#[test]
fn a_server_that_is_not_there_and_a_url_that_is_none_say_what_to_do() {
    let words = |url| ["subscribe", url, "-c", "customer", "-g", "mails", "--", "true"];
    let nobody = run(&words("redis://127.0.0.1:1"), b"");
    assert_eq!(nobody.code, 1, "{nobody:?}");
    assert!(nobody.stderr.contains("127.0.0.1:1"), "{nobody:?}");
    let wrong = run(&words("http://127.0.0.1:1"), b"");
    assert!(wrong.stderr.contains("must begin with redis://"), "{wrong:?}");
    let password = run(&words("redis://:secret@127.0.0.1:1"), b"");
    assert!(password.stderr.contains("OVERTAKE_REDIS_PASSWORD"), "{password:?}");
}

#[test]
fn partitions_are_worked_in_their_order_and_their_dead_letters_are_found() {
    let Some(story) = Story::begin() else { return };
    for key in ["7", "8"] {
        story.record(key);
        let of_key = |data: Value, priority| {
            let (_, fields) = Story::entry(&data, priority);
            (Lanes::enabled().stream_of(&format!("customer:{key}"), priority), fields)
        };
        story.add(&[of_key(json!("late"), -50), of_key(json!("1"), 0), of_key(json!("2"), 100)]);
    }
    let handled = story.handled(&["--partitions"], "echo $OVERTAKE_STREAM $OVERTAKE_PRIORITY $(cat)");
    let of = |stream: &str| {
        handled.iter().filter(|line| line.starts_with(&format!("{stream} "))).collect::<Vec<_>>()
    };
    assert_eq!(of("customer:7"), ["customer:7 0 \"1\"", "customer:7 100 \"2\""]);
    assert_eq!(of("customer:8:backfill"), ["customer:8:backfill -50 \"late\""]);
    assert!(handled[4..].iter().all(|line| line.contains("late")), "{handled:?}");

    let (_, fields) = Story::entry(&json!("bad"), 0);
    story.add(&[("customer:7".to_owned(), fields)]);
    story.subscribe(&["--partitions", "--attempts", "1"], "exit 1").ok();
    assert_eq!(story.dead().len(), 1);
    assert!(story.dead()[0].starts_with("customer:7:dlq "), "{:?}", story.dead());
    story.dlq(&["replay-all"]).ok();
    assert_eq!(story.dead(), Vec::<String>::new());
}

#[test]
fn an_urgent_entry_is_worked_in_a_kept_slot_while_bulk_programs_run() {
    let Some(story) = Story::begin() else { return };
    story.add(&[Story::entry(&json!("late"), -50), Story::entry(&json!("later"), -50)]);
    let dir = tempfile::tempdir().expect("a directory");
    let fifo = dir.path().join("fifo").display().to_string();
    assert!(Command::new("mkfifo").arg(&fifo).status().expect("it is there").success());
    let (urgent, fields) = Story::entry(&json!("urgent"), 50);
    let entry = String::from_utf8(fields[0].1.clone()).expect("JSON");
    let add = format!("redis-cli -p {} XADD {urgent} '*' data '{entry}'", story.redis.port);
    // A bulk program adds the urgent entry, and ends when the program of that entry says so: which nothing but a kept slot lets begin.
    let script = format!(
        "cat; case $OVERTAKE_LANE in backfill) {add} >/dev/null; read -r line < {fifo};; *) echo > {fifo};; esac"
    );
    let handled = story.handled(&["--slots", "2", "--primary-slots", "1"], &script);
    let count = |what: &str| handled.iter().filter(|data| *data == what).count();
    assert_eq!([count("\"late\""), count("\"later\""), count("\"urgent\"")], [1, 1, 2], "{handled:?}");

    for (more, said) in [
        (&["--primary-slots", "1"][..], "must be less than --slots 1"),
        (&["--slots", "2", "--primary-slots", "1", "--one-lane"], "--primary-slots needs two lanes"),
    ] {
        let refused = story.subscribe(more, "true");
        assert!(refused.code == 2 && refused.stderr.contains(said), "{refused:?}");
    }
}

#[test]
fn how_far_each_group_is_is_shown_as_of_the_brokers_categories() {
    let Some(story) = Story::begin() else { return };
    let show = |more: &[&str]| {
        run(&[&["category", "show", "customer", "--redis", &story.url()], more].concat(), b"").ok()
    };
    assert!(show(&[]).contains("no groups: nobody has read it"), "{}", show(&[]));
    story.add(&[Story::entry(&json!("1"), 0), Story::entry(&json!("late"), -50)]);
    story.subscribe(&["--attempts", "1", "--max", "1"], "exit 1").ok();
    story.add(&[Story::entry(&json!("2"), 0), Story::entry(&json!("3"), 0)]);
    let shown: Value = serde_json::from_str(&show(&["--json"])).expect("JSON");
    let streams = shown["groups"][0]["streams"].as_array().expect("a list");
    let of = |lane: &Value| {
        (lane["stream"].clone(), lane["ready"].clone(), lane["leased"].clone(), lane["dead"].clone())
    };
    let expect = [(json!("customer"), 2, 0, 1), (json!("customer:backfill"), 1, 0, 0)];
    let expect =
        expect.map(|(stream, ready, leased, dead)| (stream, json!(ready), json!(leased), json!(dead)));
    assert_eq!(streams.iter().map(of).collect::<Vec<_>>(), expect);
    let table = show(&[]);
    assert!(table.contains("mails  customer "), "{table}");
    // One partition that cannot be read is named, and does not hide the rest.
    story.record("7");
    let port = story.redis.port.to_string();
    let set = Command::new("redis-cli").args(["-p", &port, "SET", "customer:7", "text"]).output();
    assert!(set.expect("it is there").status.success());
    let table = show(&[]);
    assert!(table.contains("mails  customer "), "{table}");
    assert!(table.contains("not counted, since it cannot be read: customer:7: WRONGTYPE"), "{table}");
}

#[test]
fn a_subscriber_with_other_lanes_than_the_writer_is_told_what_it_never_reads() {
    let Some(story) = Story::begin() else { return };
    story.add(&[Story::entry(&json!("late"), -50)]);
    let told = |more: &[&str]| story.subscribe(more, "true").stderr;
    let never = "warning: this subscriber never reads customer:backfill (1 entry): set `lanes` ";
    assert!(told(&["--one-lane"]).contains(never), "{}", told(&["--one-lane"]));
    assert!(!told(&[]).contains("never reads"));
}
