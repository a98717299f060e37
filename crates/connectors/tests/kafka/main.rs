//! An endpoint to Kafka, from publishing into its queue to the record in the topic.

mod executions;
mod started;
mod world;

use std::time::Duration;

use overtake_connectors::Sources;
use overtake_engine::{Browse, Content, Engine, LeaseRequest, NewMessage};
use overtake_lane::{Given, HeaderValue, Scheme, Settings, Status};
use rdkafka::message::Message;
use rdkafka::types::{RDKafkaApiKey, RDKafkaRespErr};
use serde_json::json;
use world::{World, header, text};

#[tokio::test]
async fn the_urgent_goes_first() {
    let mut world = World::new().await;
    for (priority, body) in [(1, "bulk"), (1, "more"), (9, "urgent")] {
        world.publish(priority, body).await;
    }
    world.send("t", json!({})).await;
    assert_eq!(world.reader("t").bodies(3).await, ["urgent", "bulk", "more"]);
}

#[tokio::test]
async fn what_goes_through_a_topic_comes_back_as_urgent() {
    let mut world = World::new().await;
    world
        .engine
        .declare_queue("q", Settings { scheme: Scheme::Route, ..Settings::default() })
        .await
        .expect("declared");
    world.engine.declare_queue("back", Settings::default()).await.expect("declared");
    let said = [
        ("p9", Given::Number(9)),
        ("none", Given::Missing),
        ("p5", Given::Number(5)),
        ("p0", Given::Number(0)),
    ];
    for (body, priority) in said {
        world.publish_as(NewMessage { priority, ..text(body) }).await;
    }
    world.send("t", json!({})).await;
    let reader = world.reader("t");
    for expected in ["p0 9 max-9", "p5 4 max-9", "p9 0 max-9", "none 0 max-9"] {
        let record = reader.next().await;
        let said = ["priority", "priority-scheme"]
            .map(|name| header(&record, name).expect("it is there").to_owned());
        let body = String::from_utf8_lossy(record.payload().expect("a body")).into_owned();
        assert_eq!(format!("{body} {} {}", said[0], said[1]), expected);
    }
    let brokers = world.kafka.bootstrap_servers();
    let source = json!({"from": {"kafka": {"brokers": [brokers], "topics": ["t"]}}, "to": {"queue": "back"}});
    let source = serde_json::from_value(source).expect("a source");
    let (engine, gate) = (world.engine.clone(), world.gate.clone());
    let sources = Sources::open(engine, gate, world.clock.clone(), vec![("s".to_owned(), source)]);
    let _sources = sources.await.expect("it opens");
    let mut came = Vec::new();
    while came.len() < 4 {
        let lease = LeaseRequest { wait_ms: 30_000, ..LeaseRequest::new("back".into(), 1) };
        let leased = world.engine.lease(lease).await.expect("leased");
        came.extend(leased.iter().map(|one| one.message.priority.to_string()));
    }
    came.sort();
    assert_eq!(came, ["0", "0", "4", "9"]);
}

#[tokio::test]
async fn the_urgent_overtakes_a_batch_that_is_on_its_way() {
    let mut world = World::new().await;
    world.kafka.broker_round_trip_time(-1, Duration::from_millis(50)).expect("slow");
    world.send("t", json!({})).await;
    let reader = world.reader("t");
    world.publish(1, "first").await;
    assert_eq!(reader.body().await, "first");
    let bulk = (0..1_000).map(|at| NewMessage { priority: Given::Number(1), ..text(&format!("bulk {at}")) });
    world.engine.publish(bulk.collect()).await.expect("published");
    assert_eq!(reader.body().await, "bulk 0");
    world.publish(9, "urgent").await;
    let mut overtaken = 1;
    while reader.body().await != "urgent" {
        overtaken += 1;
    }
    assert!(overtaken < 500, "{overtaken} went before it");
    let rest = reader.bodies(1_000 - overtaken).await;
    assert_eq!(rest.first(), Some(&format!("bulk {overtaken}")), "the rest goes on where it stopped");
}

#[tokio::test]
async fn a_message_arrives_as_it_is() {
    let mut world = World::new().await;
    let body: &[u8] = b"\x00\xff\r\n{";
    let headers = [
        ("tenant".to_owned(), HeaderValue::Text("blué".to_owned())),
        ("tries".to_owned(), HeaderValue::Int(-3)),
        ("attempt".to_owned(), HeaderValue::Text("mine".to_owned())),
    ];
    let content = Content::new(Some("application/x-thing"), &headers.into(), body.into());
    let id = Some("order-7".to_owned());
    let key = Some("customer-1".to_owned());
    let priority = Given::Number(7);
    let ttl_ms = Some(60_000);
    world
        .publish_as(NewMessage { id, key, key_weight: Some(3), priority, ttl_ms, content, ..text("") })
        .await;
    world.send("t", json!({"compression": "zstd"})).await;
    let record = world.reader("t").next().await;
    assert_eq!((record.payload(), record.key()), (Some(body), Some(&b"customer-1"[..])));
    for (name, value) in [
        ("id", "order-7"),
        ("priority", "7"),
        ("key-weight", "3"),
        ("attempt", "1"),
        ("content-type", "application/x-thing"),
        ("tenant", "blué"),
        ("tries", "-3"),
    ] {
        assert_eq!(header(&record, name), Some(value), "{name}");
    }
    let time = |name| header(&record, name).expect("it is there").parse::<jiff::Timestamp>().expect("a time");
    assert_eq!(time("expires").duration_since(time("published")).as_secs(), 60);
}

#[tokio::test]
async fn each_message_goes_to_the_topic_that_its_template_says() {
    let mut world = World::new().await;
    world.publish(9, "a").await;
    world.publish(1, "b").await;
    for topic in ["q.p1", "q.p9"] {
        world.kafka.create_topic(topic, 1, 1).expect("a topic");
    }
    world.send("{queue}.p{priority}", json!({"key": "id"})).await;
    let record = world.reader("q.p1").next().await;
    assert_eq!(record.payload(), Some(&b"b"[..]));
    assert_eq!(record.key().map(<[u8]>::to_vec), header(&record, "id").map(|id| id.as_bytes().to_vec()));
    assert_eq!(world.reader("q.p9").body().await, "a");
}

#[tokio::test]
async fn a_cluster_that_is_down_and_comes_back_loses_nothing() {
    let mut world = World::new().await;
    world.send("t", json!({})).await;
    let reader = world.reader("t");
    world.publish(1, "before").await;
    assert_eq!(reader.body().await, "before");
    world.kafka.broker_down(-1).expect("down");
    for body in ["a", "b", "c"] {
        world.publish(1, body).await;
    }
    world.kafka.broker_up(-1).expect("up");
    assert_eq!(reader.bodies(3).await, ["a", "b", "c"]);
}

#[tokio::test]
async fn what_librdkafka_gives_up_while_the_cluster_is_down_is_kept_and_blamed_on_the_cluster() {
    let mut world = World::new().await;
    world.send("t", json!({"properties": {"message.timeout.ms": "2000"}})).await;
    let reader = world.reader("t");
    world.publish(1, "before").await;
    assert_eq!(reader.body().await, "before");
    world.kafka.broker_down(-1).expect("down");
    world.publish(1, "a").await;
    let why = world.trouble().await;
    assert!(why.contains("127.0.0.1"), "{why}");
    world.kafka.broker_up(-1).expect("up");
    assert_eq!(reader.body().await, "a");
}

#[tokio::test]
async fn what_kafka_does_not_take_now_is_tried_again() {
    let mut world = World::new().await;
    let denied = RDKafkaRespErr::RD_KAFKA_RESP_ERR_POLICY_VIOLATION;
    world.kafka.request_errors(RDKafkaApiKey::Produce, &[denied]);
    world.publish(1, "a").await;
    world.send("t", json!({})).await;
    let record = world.reader("t").next().await;
    assert_eq!((record.payload(), header(&record, "attempt")), (Some(&b"a"[..]), Some("2")));
}

#[tokio::test]
async fn an_idempotent_producer_that_has_ended_is_made_anew() {
    let mut world = World::new().await;
    let stale = RDKafkaRespErr::RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED;
    world.kafka.request_errors(RDKafkaApiKey::Produce, &[stale]);
    world.publish(1, "a").await;
    world.send("t", json!({})).await;
    assert_eq!(world.reader("t").body().await, "a");
}

#[tokio::test]
async fn what_is_too_large_is_set_aside_and_the_next_goes_on() {
    let mut world = World::new().await;
    let id = Some("large".to_owned());
    world.publish_as(NewMessage { id, ..text(&"x".repeat(2_000)) }).await;
    world.publish(1, "small").await;
    world.send("t", json!({"properties": {"message.max.bytes": "1000"}})).await;
    assert_eq!(world.reader("t").body().await, "small");
    let page = world.engine.browse("q", Browse { limit: 10, ..Browse::default() }).await.expect("a page");
    let dead = page.messages.iter().filter(|one| one.message.status == Status::Dead);
    assert_eq!(dead.map(|one| &*one.message.id).collect::<Vec<_>>(), ["large"]);
}

#[tokio::test]
async fn a_request_that_is_too_large_sets_nothing_aside_that_is_not() {
    let mut world = World::new().await;
    world
        .kafka
        .request_errors(RDKafkaApiKey::Produce, &[RDKafkaRespErr::RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE]);
    for body in ["a", "b", "c"] {
        world.publish(1, body).await;
    }
    world.send("t", json!({})).await;
    let mut all = world.reader("t").bodies(3).await;
    all.sort();
    assert_eq!(all, ["a", "b", "c"]);
}

#[tokio::test]
async fn what_expired_while_the_cluster_was_down_is_not_sent() {
    let mut world = World::new().await;
    world.kafka.broker_down(-1).expect("down");
    world.send("t", json!({})).await;
    world.publish_as(NewMessage { ttl_ms: Some(60_000), priority: Given::Number(9), ..text("over") }).await;
    world.publish(1, "still good").await;
    world.clock.put_forward(60_000);
    world.kafka.broker_up(-1).expect("up");
    assert_eq!(world.reader("t").body().await, "still good");
}

#[tokio::test]
async fn a_connection_that_is_tried_out_says_what_is_wrong() {
    let world = World::new().await;
    assert!(world.try_out("t").await.is_ok());
    assert!(world.try_out("{queue}").await.is_ok());
    let unknown = RDKafkaRespErr::RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART;
    world.kafka.topic_error("nowhere", unknown).expect("set");
    let why = world.try_out("nowhere").await.expect_err("no connection");
    assert!(why.contains("nowhere") && why.contains("create it in Kafka"), "{why}");
    world.kafka.broker_down(-1).expect("down");
    let why = world.try_out("t").await.expect_err("no connection");
    assert!(why.contains(&world.kafka.bootstrap_servers()) && why.contains("is it up"), "{why}");
}
