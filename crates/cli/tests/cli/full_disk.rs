//! A disk that is full, or low: what clients are told, what goes on, and what is there after kill −9.

#![allow(clippy::print_stdout, reason = "says why it is skipped")]

use std::collections::BTreeSet;
use std::io::Write;
use std::net::TcpStream;
use std::time::Instant;

use overtake_amqp::FrameWriter;
use overtake_amqp::method::{basic, channel, confirm};
use overtake_properties::{Properties, Short};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::amqp::{self, Client};
use crate::support::http::{Reply, ask, text};
use crate::support::small_disk::SmallDisk;
use crate::support::tls::connect;
use crate::support::{Broker, PATIENCE, Run};

/// Six journal files of the length that brokers have here.
const DISK_BYTES: u64 = 24 << 20;
/// About as long as a message's body is: some hundred make the disk full. Each takes a sync, which is slow on some filesystems.
const BODY_LEN: usize = 32_000;
/// Messages that are out when a broker is killed.
const LOST: usize = 20;
/// Messages that are left when publishes must be taken again.
const LEFT: usize = 100;
/// Publishes that must be taken again once there is room: too many for what acknowledging alone sets free.
const AGAIN: usize = 125;

/// Why a broker refuses publishes, and what it was told.
struct Case {
    flags: &'static [&'static str],
    why: &'static str,
    hint: &'static str,
}

/// It takes the whole disk.
const FULL: Case = Case {
    flags: &["--disk-low-bytes", "0"],
    why: "the disk has no room for more messages",
    hint: "free disk space; consume and acknowledge to let the store shrink",
};
/// It leaves what it does unless it is told: a twentieth.
const AT_LOW: Case = Case {
    flags: &[],
    why: ", and another journal file of 4.0 MiB would leave less than the low watermark of 1.1 MiB",
    hint: WATERMARK_HINT,
};
/// It leaves most of a file; then there must be more than one.
const LOW: Case = Case {
    flags: &["--disk-low-bytes", "3MiB", "--disk-high-bytes", "5MiB"],
    why: " free and was below the low watermark of 3.0 MiB; they are taken again above 5.0 MiB",
    hint: WATERMARK_HINT,
};
const WATERMARK_HINT: &str = "free disk space, or lower the watermark, store.disk_low_bytes; consume and acknowledge to let the store shrink";

/// A small disk, unless this machine has none to give.
fn small_disk() -> Option<SmallDisk> {
    match SmallDisk::mount(DISK_BYTES) {
        Ok(disk) => Some(disk),
        Err(why) => {
            assert!(std::env::var_os("CI").is_none(), "a file system must be mountable in CI: {why}");
            println!("skipped: this machine does not let us mount a file system: {why}");
            None
        }
    }
}

/// Known by its id, so that a wrong or damaged one is seen.
fn body(id: &str) -> String {
    let mut body = format!("{id} ").repeat(BODY_LEN / (id.len() + 1) + 1);
    body.truncate(BODY_LEN);
    body
}

fn publish(broker: &Broker, number: usize, id: &str) -> Reply {
    // All priorities in turn: what is drained first lies in all files.
    let message = json!({ "id": id, "priority": number % 10, "body": body(id) });
    ask(&broker.url, "POST", "/v1/queues/q/messages", &message)
}

/// Publishes until the disk is full; answers with what was confirmed, and how the first one was refused that was not.
fn fill(broker: &Broker, name: &str) -> (BTreeSet<String>, Reply) {
    let mut confirmed = BTreeSet::new();
    loop {
        let id = format!("{name}-{}", confirmed.len());
        let reply = publish(broker, confirmed.len(), &id);
        if reply.status != 201 {
            return (confirmed, reply);
        }
        confirmed.insert(id);
    }
}

/// Publishes so many more, which takes a moment: room is looked for now and then.
fn publish_again(broker: &Broker, many: usize) -> BTreeSet<String> {
    let (started, mut confirmed) = (Instant::now(), BTreeSet::new());
    while confirmed.len() < many {
        let id = format!("again-{}", confirmed.len());
        let reply = publish(broker, confirmed.len(), &id);
        match reply.status {
            201 => _ = confirmed.insert(id),
            507 => {
                assert!(started.elapsed() < PATIENCE, "there is room, and only {} are taken", confirmed.len())
            }
            _ => panic!("{reply:?}"),
        }
    }
    confirmed
}

/// Leases as the request says; the bodies must be as they were published.
fn lease(broker: &Broker, request: &Value) -> Vec<Value> {
    let leased = ask(&broker.url, "POST", "/v1/queues/q/leases", request).expect(200);
    let messages = leased["messages"].as_array().expect("a list").clone();
    for message in &messages {
        assert_eq!(message["body"], body(&id(message)));
    }
    messages
}

/// Leases some as a consumer does that then is heard of no more; answers with how many.
fn lose(broker: &Broker) -> usize {
    lease(broker, &json!({ "max": LOST, "visibility_timeout_ms": 1_000 })).len()
}

/// Acknowledges them; answers with their ids.
fn acknowledge(broker: &Broker, messages: &[Value]) -> BTreeSet<String> {
    let receipts: Vec<_> = messages.iter().map(|message| &message["receipt"]).collect();
    let settle = json!({ "receipts": receipts, "how": "ack" });
    let results = ask(&broker.url, "POST", "/v1/queues/q/settle", &settle).expect(200)["results"].clone();
    assert!(results.as_array().expect("a list").iter().all(|result| result["ok"] == true), "{results}");
    messages.iter().map(id).collect()
}

/// Consumes until so many are left.
fn drain(broker: &Broker, waiting: &mut BTreeSet<String>, left: usize) {
    while waiting.len() > left {
        // It waits for those that another consumer has, which come back when their leases end.
        let leased = lease(broker, &json!({ "max": (waiting.len() - left).min(50), "wait_ms": 60_000 }));
        assert!(!leased.is_empty(), "leases go on, and {} wait", waiting.len());
        for id in acknowledge(broker, &leased) {
            assert!(waiting.remove(&id), "{id} comes once");
        }
    }
}

/// What is in the queue, lent or not.
fn kept(broker: &Broker) -> BTreeSet<String> {
    let all = broker.run(&["peek", "q", "--json", "--limit", "1000000"]).json();
    all["messages"].as_array().expect("a list").iter().map(id).collect()
}

fn id(message: &Value) -> String {
    message["id"].as_str().expect("an id").to_owned()
}

/// What a client is told whose publish found no room.
fn check_refusal(refused: &Reply, case: &Case) {
    assert_eq!(refused.status, 507, "{refused:?}");
    assert_eq!(refused.header("content-type"), Some("application/problem+json"));
    let detail = refused.json["detail"].as_str().expect("text");
    assert!(detail.starts_with("the store is full: the disk has ") && detail.ends_with(case.why), "{detail}");
    let problem = json!({
        "type": "urn:overtake:problem:store-full",
        "title": "the store is full",
        "status": 507,
        "detail": detail,
        "code": "store-full",
        "hint": case.hint,
    });
    assert_eq!(refused.json, problem);
}

/// What those are told who ask whether a broker on a full disk serves: it does, since its consumers are what makes room.
fn check_health(broker: &Broker, case: &Case) {
    ask(&broker.url, "GET", "/livez", &Value::Null).expect(200);
    ask(&broker.url, "GET", "/healthz", &Value::Null).expect(200);
    let ready = ask(&broker.url, "GET", "/readyz", &Value::Null).expect(200);
    let warning = ready["warning"].as_str().expect("text");
    assert!(
        warning.starts_with("publishes are refused: the disk has ") && warning.ends_with(case.why),
        "{warning}"
    );
    assert_eq!(ready["status"], "ready");
    let said = broker.run(&["health"]).ok();
    assert!(said.starts_with("ready (") && said.ends_with(&format!("\nwarning: {warning}\n")), "{said}");
    broker.run(&["health", "--live"]).ok();
}

fn await_room(broker: &Broker) {
    let started = Instant::now();
    while !ask(&broker.url, "GET", "/readyz", &Value::Null).expect(200)["warning"].is_null() {
        assert!(started.elapsed() < PATIENCE, "there is room, and it still warns");
    }
}

#[test]
fn a_full_disk_loses_nothing_confirmed_and_brings_nothing_acknowledged_back() {
    let Some(disk) = small_disk() else { return };
    fill_and_drain(&disk, &FULL);
}

#[test]
fn a_disk_whose_end_is_left_to_others_loses_nothing_either() {
    let Some(disk) = small_disk() else { return };
    fill_and_drain(&disk, &AT_LOW);
}

#[test]
fn a_full_ext4_loses_nothing() {
    fill_and_drain_image("ext4");
}

#[test]
fn a_full_xfs_loses_nothing() {
    fill_and_drain_image("xfs");
}

#[test]
fn a_full_btrfs_loses_nothing_although_it_copies_on_write() {
    fill_and_drain_image("btrfs");
}

fn fill_and_drain_image(filesystem: &str) {
    match SmallDisk::mount_image(filesystem, DISK_BYTES) {
        Ok(disk) => fill_and_drain(&disk, &FULL),
        Err(why) => println!("skipped: this machine does not let us make and mount {filesystem}: {why}"),
    }
}

fn fill_and_drain(disk: &SmallDisk, case: &Case) {
    let broker = disk.broker(case.flags);
    broker.run(&["queue", "declare", "q"]).ok();
    let (mut waiting, refused) = fill(&broker, "first");
    let held = waiting.len() * BODY_LEN;
    assert!(held as u64 > DISK_BYTES / 2, "only {held} bytes fill a disk of {DISK_BYTES}");
    check_refusal(&refused, case);
    check_health(&broker, case);
    let said = broker.run(&["publish", "q", "--id", "one-more", &body("one-more")]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.stderr.contains(&format!("hint: {}", case.hint)), "{said:?}");

    // Some are acknowledged, some are out when it is killed, and all on a disk that stays full.
    let count = waiting.len();
    drain(&broker, &mut waiting, count - 25);
    assert_eq!(lose(&broker), LOST);
    broker.kill();
    // What the configuration says of a queue that is there needs no room.
    let broker = disk.broker(&[case.flags, &["--queue", "q"]].concat());
    assert_eq!(kept(&broker), waiting, "what was confirmed and not acknowledged, and nothing else");
    // A few may go where settlements would have gone that are made by now.
    let (few, refused) = fill(&broker, "few");
    assert!(few.len() < 25, "{} are taken though the disk is full", few.len());
    waiting.extend(few);
    check_refusal(&refused, case);
    check_health(&broker, case);

    // Some stay in every journal file.
    drain(&broker, &mut waiting, LEFT);
    await_room(&broker);
    waiting.extend(publish_again(&broker, AGAIN));
    drain(&broker, &mut waiting, AGAIN / 2);
    assert_eq!(lose(&broker), LOST);
    broker.kill();
    let broker = disk.broker(case.flags);
    assert_eq!(kept(&broker), waiting, "what was confirmed and not acknowledged, and nothing else");
    broker.stop();
    let mut check = disk.overtake();
    let check = Run::of(check.args(["store", "check"]).arg(disk.path()).output().expect("it runs")).ok();
    assert!(check.ends_with("is clean\n"), "{check}");
}

#[test]
fn a_disk_that_somebody_else_filled_is_used_again_when_there_is_room() {
    let Some(disk) = small_disk() else { return };
    let broker = disk.broker(FULL.flags);
    broker.run(&["queue", "declare", "q"]).ok();
    let others = disk.seen_from_outside().join("others");
    let full =
        std::fs::write(&others, vec![0; DISK_BYTES as usize]).expect_err("it is larger than what is free");
    assert_eq!(full.kind(), std::io::ErrorKind::StorageFull);
    let (mut waiting, refused) = fill(&broker, "first");
    check_refusal(&refused, &FULL);
    check_health(&broker, &FULL);
    std::fs::remove_file(&others).expect("it is ours");
    // Nothing was consumed.
    waiting.extend(publish_again(&broker, AGAIN));
    await_room(&broker);
    broker.kill();
    let broker = disk.broker(&[]);
    assert_eq!(kept(&broker), waiting);
    broker.stop();
}

/// What is free on the disk, and whether it is low, as the broker says.
fn gauges(broker: &Broker) -> (u64, bool) {
    let page = text(&broker.url, "/metrics");
    let gauge = |name: &str| -> u64 {
        let sample = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        sample.expect(name).parse().expect(name)
    };
    assert_eq!(gauge("overtake_disk_low_watermark_bytes"), 3 << 20);
    assert_eq!(gauge("overtake_disk_high_watermark_bytes"), 5 << 20);
    (gauge("overtake_disk_free_bytes"), gauge("overtake_disk_low") == 1)
}

/// Waits until the broker has seen how much is free, and makes no file; how much that is, and whether the disk is low.
fn await_gauges(broker: &Broker, disk: &SmallDisk) -> (u64, bool) {
    let started = Instant::now();
    loop {
        let (seen, is_low) = gauges(broker);
        let free = disk.free();
        if seen == free {
            return (free, is_low);
        }
        assert!(started.elapsed() < PATIENCE, "{free} bytes are free, and it says {seen}");
    }
}

#[test]
fn a_low_disk_takes_publishes_again_when_there_is_more_than_enough_room() {
    let Some(disk) = small_disk() else { return };
    let mut broker = disk.broker(LOW.flags);
    broker.run(&["queue", "declare", "q"]).ok();
    let mut waiting = publish_again(&broker, LOST + 5);
    let others = disk.seen_from_outside().join("others");
    let fill = |bytes: u64| std::fs::write(&others, vec![0; bytes as usize]).expect("there is room");

    // Another file would leave less than that.
    let (free, _) = await_gauges(&broker, &disk);
    assert!(free >= 3 << 20, "{free} bytes are free");
    fill(free - (3 << 20) + 4096);
    broker.await_line("publishes are refused: the disk has 2.9 MiB free");
    check_refusal(&publish(&broker, 1, "refused"), &LOW);
    check_health(&broker, &LOW);
    let count = waiting.len();
    drain(&broker, &mut waiting, count - 5);
    assert_eq!(lose(&broker), LOST);

    // Between the two watermarks it stays refused.
    fill(free - (5 << 20));
    assert_eq!(await_gauges(&broker, &disk), (5 << 20, true));
    check_refusal(&publish(&broker, 1, "refused"), &LOW);
    fill(free - (5 << 20) - 4096);
    assert_eq!(await_gauges(&broker, &disk), ((5 << 20) + 4096, false));
    waiting.extend(publish_again(&broker, AGAIN));
    broker.await_line("there is room again: publishes are taken");

    // The journal itself does not make it low.
    let (more, _) = self::fill(&broker, "more");
    waiting.extend(more);
    let (free, is_low) = gauges(&broker);
    assert!(free >= 3 << 20 && !is_low, "{free} bytes are free");
    broker.kill();
    let broker = disk.broker(LOW.flags);
    assert_eq!(kept(&broker), waiting);
    broker.stop();
}

/// Publishes over AMQP, so that the broker reads the method before it is sent the content. Answers what it says then.
fn publish_in_two(client: &mut Client<TcpStream>, channel: u16) {
    let publish = basic::Publish {
        ticket: 0,
        exchange: Short::literal(""),
        routing_key: Short::literal("q"),
        mandatory: false,
        immediate: false,
    };
    let mut frames = Vec::new();
    let properties = Properties::EMPTY;
    FrameWriter::new(&mut frames, 4_096)
        .content(channel, publish, properties.view(), b"hi")
        .expect("it fits");
    let method_len = 8 + u32::from_be_bytes(frames[3..7].try_into().expect("four bytes")) as usize;
    client.stream.write_all(&frames[..method_len]).expect("the broker reads");
    // Its answer on another channel comes when it has read the method.
    client.say(9, channel::Open { out_of_band: amqp::text("") });
    assert!(client.hear().starts_with("ChannelOpenOk"));
    client.say(9, channel::Close { reply_code: 200, reply_text: amqp::text(""), class_id: 0, method_id: 0 });
    assert!(client.hear().starts_with("ChannelCloseOk"));
    client.stream.write_all(&frames[method_len..]).expect("the broker reads");
}

#[test]
fn over_amqp_each_publish_is_nacked_and_acknowledgements_of_the_same_connection_are_taken() {
    let dir = TempDir::new().expect("a directory");
    let data = dir.path().join("data");
    let broker = Broker::start_with(&data, &["--queue", "q"]);
    broker.run(&["publish", "q", "first"]).ok();
    broker.stop();
    // More than any disk has.
    let broker = Broker::start_with(&data, &["--disk-low-bytes", "4000000000GiB"]);
    let mut client = Client::open(connect(&broker.amqp), "PLAIN", b"\0guest\0guest");
    for number in [1, 2] {
        client.say(number, channel::Open { out_of_band: amqp::text("") });
        assert!(client.hear().starts_with("ChannelOpenOk"));
    }
    client.say(1, confirm::Select { no_wait: false });
    assert!(client.hear().starts_with("ConfirmSelectOk"));
    for number in 1..=2 {
        publish_in_two(&mut client, 1);
        let said = client.hear();
        assert!(said.starts_with(&format!("BasicNack(Nack {{ delivery_tag: {number},")), "{said}");
    }
    // Without confirms it waits, and what comes behind it does not.
    publish_in_two(&mut client, 2);
    client.say(2, basic::Get { ticket: 0, queue: amqp::text("q"), no_ack: false });
    let said = client.hear();
    assert!(said.starts_with("BasicGetOk") && said.contains("message_count: 0"), "{said}");
    client.say(2, basic::Ack { delivery_tag: 1, multiple: false });
    client.say(2, basic::Get { ticket: 0, queue: amqp::text("q"), no_ack: false });
    assert!(client.hear().starts_with("BasicGetEmpty"));
    let waiting = ask(&broker.url, "GET", "/v1/queues/q/messages", &Value::Null).expect(200);
    assert_eq!(waiting["messages"], json!([]), "it is acknowledged, and nothing is published");
    broker.kill();
}
