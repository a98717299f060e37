//! A stream of Redis as a receiver.

use std::collections::{BTreeMap, BTreeSet};

use overtake_engine::{Content, NewMessage};
use overtake_forward::State;
use overtake_lane::HeaderValue;
use redis::aio::MultiplexedConnection;
use redis::{Client, cmd};
use serde_json::{Value, json};

use crate::outward::{Outward, message};
use crate::servers::Server;

type Entry = (String, Vec<(String, Vec<u8>)>);

async fn somebody(server: &Server) -> MultiplexedConnection {
    let client = Client::open(format!("redis://127.0.0.1:{}", server.port)).expect("a URL");
    client.get_multiplexed_async_connection().await.expect("it answers")
}

fn jobs(server: &Server) -> Value {
    json!({"redis": {"url": format!("redis://127.0.0.1:{}/0", server.port), "stream": "jobs"}})
}

async fn entries(server: &Server, stream: &str) -> Vec<BTreeMap<String, Vec<u8>>> {
    let mut range = cmd("XRANGE");
    range.arg(stream).arg("-").arg("+");
    let all: Vec<Entry> = range.query_async(&mut somebody(server).await).await.expect("an answer");
    all.into_iter().map(|(_, fields)| fields.into_iter().collect()).collect()
}

async fn ids(server: &Server, stream: &str) -> Vec<String> {
    let id = |entry: &BTreeMap<String, Vec<u8>>| String::from_utf8_lossy(&entry["id"]).into_owned();
    entries(server, stream).await.iter().map(id).collect()
}

#[tokio::test]
async fn urgent_ones_arrive_first() {
    let Some(server) = Server::redis(&[]) else { return };
    let world = Outward::open(jobs(&server)).await;
    world.pause(true).await;
    for (id, priority) in [("bulk1", 1), ("bulk2", 1), ("urgent", 9), ("usual", 5)] {
        world.publish(message(id, priority)).await;
    }
    world.pause(false).await;
    world.until_empty().await;
    assert_eq!(ids(&server, "jobs").await, ["urgent", "usual", "bulk1", "bulk2"]);
}

#[tokio::test]
async fn an_entry_says_all_that_the_message_does() {
    let Some(server) = Server::redis(&[]) else { return };
    let world = Outward::open(jobs(&server)).await;
    let headers = [
        ("tenant".to_owned(), HeaderValue::Text("a b".to_owned())),
        ("size".to_owned(), HeaderValue::Int(3)),
        ("ratio".to_owned(), HeaderValue::Float(0.5_f64.to_bits())),
        ("raw".to_owned(), HeaderValue::Bytes(vec![0xFF])),
    ];
    let body: &[u8] = b"\0\xff\r\n";
    let content = Content::new(Some("image/x"), &headers.into(), body.into());
    let whole = NewMessage { key: Some("k".to_owned()), ttl_ms: Some(60_000), content, ..message("m", 7) };
    world.publish(whole).await;
    world.until_empty().await;
    let entry = entries(&server, "jobs").await.remove(0);
    let told = |name: &str| String::from_utf8_lossy(&entry[name]).into_owned();
    assert_eq!(entry["body"], body);
    let all = ["id", "priority", "queue", "attempt", "key", "content-type"];
    assert_eq!(all.map(told), ["m", "7", "q", "1", "k", "image/x"]);
    assert_eq!(["header:tenant", "header:size", "header:ratio"].map(told), ["a b", "3", "0.5"]);
    assert!(!entry.contains_key("header:raw"), "it is no text");
    let is_named = |why: &str| why.starts_with("a message was sent without `raw`: ");
    world
        .until("what was left out", |view| {
            view.work.last_error.as_ref().is_some_and(|(_, why)| is_named(why))
        })
        .await;
    for time in ["published", "expires"] {
        assert!(told(time).parse::<jiff::Timestamp>().is_ok(), "{time}");
    }
}

#[tokio::test]
async fn a_server_that_dies_and_comes_back_has_every_message() {
    let Some(mut server) = Server::redis(&[]) else { return };
    let world = Outward::open(jobs(&server)).await;
    world.publish_all(0..100).await;
    world.until("some are sent", |view| view.work.lanes.values().any(|lane| lane.sent > 0)).await;
    server.kill();
    world.publish_all(100..400).await;
    world.until("down", |view| view.work.state == State::Down).await;
    server.start();
    world.until_empty().await;
    let arrived: BTreeSet<String> = ids(&server, "jobs").await.into_iter().collect();
    assert_eq!(arrived, (0..400).map(|id| id.to_string()).collect());
}

#[tokio::test]
async fn a_server_that_went_away_is_noticed_while_nothing_is_sent() {
    let Some(mut server) = Server::redis(&[]) else { return };
    let world = Outward::open(jobs(&server)).await;
    world.publish(message("first", 5)).await;
    world.until_empty().await;
    world.until("idle", |view| view.work.state == State::Idle).await;
    server.kill();
    world.until("down", |view| view.work.state == State::Down).await;
}

#[tokio::test]
async fn what_is_over_is_not_sent() {
    let Some(mut server) = Server::redis(&[]) else { return };
    let world = Outward::open(jobs(&server)).await;
    server.kill();
    world.until("down", |view| view.work.state == State::Down).await;
    world.publish(NewMessage { ttl_ms: Some(1), ..message("brief", 9) }).await;
    world.publish(message("lasting", 1)).await;
    server.start();
    world.until_empty().await;
    assert_eq!(ids(&server, "jobs").await, ["lasting"]);
}

#[tokio::test]
async fn a_wrong_password_and_a_wrong_key_are_named() {
    let Some(server) = Server::redis(&["--requirepass", "secret"]) else { return };
    let password = server.dir().join("password");
    std::fs::write(&password, "wrong\n").expect("a file");
    let mut to = jobs(&server);
    to["redis"]["password"] = json!({"file": password});
    let world = Outward::open(to).await;
    let why = world.trouble().await;
    assert!(why.contains("WRONGPASS") && why.contains("see to `username` and `password`"), "{why}");

    std::fs::write(&password, "secret\n").expect("a file");
    world.until("connected", |view| view.work.connections == 1).await;
    world.publish(message("m", 5)).await;
    world.until_empty().await;
}

#[tokio::test]
async fn a_key_that_is_no_stream_is_named_and_no_message_is_to_blame() {
    let Some(server) = Server::redis(&[]) else { return };
    let world = Outward::open(jobs(&server)).await;
    world.until("connected", |view| view.work.connections == 1).await;
    let mut other = somebody(&server).await;
    cmd("SET").arg("jobs").arg("x").exec_async(&mut other).await.expect("set");
    world.publish(message("m", 5)).await;
    world.until("put back", |view| view.work.lanes.values().any(|lane| lane.put_back > 0)).await;
    let forwarder = world.view().await.work;
    assert!(forwarder.lanes.values().all(|lane| lane.failed == 0), "{forwarder:?}");
    let why = world.trouble().await;
    assert!(why.contains("the key jobs holds a string and no stream"), "{why}");
    cmd("DEL").arg("jobs").exec_async(&mut other).await.expect("deleted");
    world.until_empty().await;
    assert_eq!(ids(&server, "jobs").await, ["m"]);
}

#[tokio::test]
async fn a_full_server_is_busy() {
    let Some(server) = Server::redis(&[]) else { return };
    let world = Outward::open(jobs(&server)).await;
    let mut other = somebody(&server).await;
    let mut limit = async |bytes: u32| {
        let mut set = cmd("CONFIG");
        set.arg("SET").arg("maxmemory").arg(bytes);
        set.exec_async(&mut other).await.expect("set");
    };
    limit(1).await;
    world.publish(message("m", 5)).await;
    world.until("put back", |view| view.work.lanes.values().any(|lane| lane.put_back > 0)).await;
    limit(0).await;
    world.until_empty().await;
    assert_eq!(ids(&server, "jobs").await, ["m"]);
}

#[tokio::test]
async fn each_lane_may_have_a_stream_of_its_own_and_a_stream_its_length() {
    let Some(server) = Server::redis(&["--stream-node-max-entries", "10"]) else { return };
    let mut to = jobs(&server);
    to["redis"]["per_lane"] = json!(true);
    to["redis"]["maxlen"] = json!(20);
    let world = Outward::open(to).await;
    world.publish_all(0..200).await;
    world.publish(message("urgent", 9)).await;
    world.until_empty().await;
    assert_eq!(ids(&server, "jobs:9").await, ["urgent"]);
    let kept = ids(&server, "jobs:5").await;
    assert!((20..40).contains(&kept.len()), "{kept:?}");
    assert_eq!(kept.last().map(String::as_str), Some("199"));
}

#[tokio::test]
async fn a_user_who_may_only_write_to_the_stream_is_enough_and_one_who_may_not_is_told() {
    let list = "--user writer on >secret ~jobs +xadd --user reader on >secret ~jobs +xread";
    let Some(server) = Server::redis(&list.split(' ').collect::<Vec<_>>()) else { return };
    let password = server.dir().join("password");
    std::fs::write(&password, "secret").expect("a file");
    let as_user = |user: &str| {
        let mut to = jobs(&server);
        to["redis"]["username"] = json!(user);
        to["redis"]["password"] = json!({"file": password});
        to
    };
    let writer = Outward::open(as_user("writer")).await;
    writer.publish(message("m", 5)).await;
    writer.until_empty().await;
    let reader = Outward::open(as_user("reader")).await;
    reader.publish(message("m", 5)).await;
    reader.until("failed", |view| view.work.lanes.values().any(|lane| lane.failed > 0)).await;
    let (_, why) = reader.view().await.work.last_error.expect("an error");
    assert!(why.contains("NOPERM") && why.contains("the user must have the right"), "{why}");
}
