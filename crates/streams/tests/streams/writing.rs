use overtake_streams::{Lanes, Layout, Writer, envelope};
use serde_json::json;

use crate::world::{World, drain, options};

fn entry(stream: &str, what: &str) -> (String, overtake_streams::Fields) {
    let text = envelope(&json!(what), &json!({ "domain": { "priority": -50 } }));
    (stream.to_owned(), vec![(b"data".to_vec(), text.into_bytes())])
}

#[tokio::test]
async fn what_is_written_by_priority_is_read_by_lane() {
    let Some(world) = World::new() else { return };
    let mut writer = Writer::connect(&world.server).await.expect("a connection");
    let lanes = Lanes::enabled();
    let all: Vec<_> = [(-100, "bulk"), (0, "normal"), (-1, "less"), (50, "high")]
        .map(|(priority, what)| entry(&lanes.stream_of("customer", priority), what))
        .into();
    let ids = writer.add(&all).await.expect("there");
    assert!(ids.iter().all(Result::is_ok), "{ids:?}");
    let subscriber = world.subscribe(options("c")).await;
    assert_eq!(drain(&subscriber, 4).await, ["normal", "high", "bulk", "less"]);
}

#[tokio::test]
async fn what_is_said_against_one_does_not_keep_the_others() {
    let Some(world) = World::new() else { return };
    world.ask("SET broken x").await;
    let mut writer = Writer::connect(&world.server).await.expect("a connection");
    let answers = writer.add(&[entry("a", "1"), entry("broken", "2"), entry("b", "3")]).await.expect("there");
    let codes: Vec<_> =
        answers.iter().map(|answer| answer.as_ref().err().map(|fault| fault.code())).collect();
    assert_eq!(codes, [None, Some("WRONGTYPE"), None]);
    assert_eq!(writer.add(&[]).await, Ok(vec![]));
}

#[tokio::test]
async fn a_stream_may_be_kept_short() {
    let Some(world) = World::new() else { return };
    let mut writer = Writer::connect(&world.server).await.expect("a connection").len_max(200);
    let all: Vec<_> = (0..1_000).map(|number| entry("customer", &number.to_string())).collect();
    writer.add(&all).await.expect("there");
    let len = world.number("XLEN customer").await;
    assert!((200..1_000).contains(&len), "{len}");
}

#[tokio::test]
async fn keys_have_streams_of_their_own_that_can_be_found() {
    let Some(world) = World::new() else { return };
    let layout = Layout { lanes: Lanes::enabled(), is_partitioned: true };
    let stream = layout.stream_of("order", Some("k1"), -50).expect("a stream");
    let mut writer = Writer::connect(&world.server).await.expect("a connection");
    assert_eq!(writer.record_keys("order", &["k1"]).await, Ok(Ok(())));
    writer.add(&[entry(&stream, "1")]).await.expect("there");
    assert_eq!(world.number("XLEN order:k1:backfill").await, 1);
    assert_eq!(world.number("SISMEMBER order:__partitions__ k1").await, 1);
}

#[tokio::test]
async fn a_writer_hears_that_its_connection_is_lost() {
    let Some(mut world) = World::new() else { return };
    let mut writer = Writer::connect(&world.server).await.expect("a connection");
    world.kill();
    assert!(writer.add(&[entry("customer", "1")]).await.is_err());
}
