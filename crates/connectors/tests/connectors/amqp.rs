//! Another broker over AMQP: RabbitMQ as Debian has it.

use std::sync::Arc;

use overtake_connectors::{Source, Sources};
use overtake_engine::{Content, Engine, NewMessage, SystemClock, Target};
use overtake_lane::{HeaderValue, Headers};
use serde_json::{Value, json};

use crate::rabbit::Rabbit;
use crate::world::World;

fn quick() -> Value {
    let quick = json!({"initial_ms": 20, "multiplier": 1, "max_ms": 20});
    json!({"reconnect": quick, "retry": quick, "breaker": quick})
}

fn to(rabbit: &Rabbit, more: &Value) -> Value {
    let mut amqp = json!({"url": rabbit.url()});
    amqp.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    json!({"to": {"amqp": amqp}, "send": quick()})
}

async fn source(world: &World, rabbit: &Rabbit, queue: &str, more: Value) -> Arc<Sources> {
    let from = json!({"url": rabbit.url(), "queue": queue});
    let mut json = json!({"from": {"amqp": from}, "to": {"queue": "in"}});
    json.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    let source: Source = serde_json::from_value(json).expect("a source");
    let engine: Arc<dyn Engine> = world.engine.clone();
    let all = Sources::open(engine, Arc::clone(&world.gate), Arc::new(SystemClock), Vec::new()).await;
    let all = all.expect("they open");
    let desk = world.desk("guest").await;
    all.put(&desk, "rabbit", source).await.expect("it is configured");
    all
}

/// One server for all of it: it takes seconds to begin.
#[tokio::test(flavor = "multi_thread")]
async fn messages_go_to_a_rabbitmq_and_come_back() {
    let Some(rabbit) = Rabbit::start().await else { return };
    the_most_urgent_goes_first_with_all_that_it_says(&rabbit).await;
    a_queue_that_is_not_there_is_said_and_found_later(&rabbit).await;
    a_wrong_password_is_said(&rabbit).await;
    what_no_queue_gets_is_tried_again(&rabbit).await;
    what_waits_there_comes_in_by_its_priority(&rabbit).await;
    what_can_never_be_taken_is_set_aside(&rabbit).await;
    a_message_over_which_it_closes_the_channel_dies_alone(&rabbit).await;
    a_server_that_is_killed_loses_nothing(rabbit).await;
}

async fn the_most_urgent_goes_first_with_all_that_it_says(rabbit: &Rabbit) {
    let world = World::new().await;
    rabbit.declare("out").await;
    let mut headers = Headers::new();
    headers.insert("camera".into(), HeaderValue::Text("door".into()));
    world.publish("a:1 b:9 c:1").await;
    world.put("rabbit", to(rabbit, &json!({}))).await;
    world.until_empty().await;
    let got = rabbit.take("out", 3).await;
    let bodies: Vec<&str> = got.iter().map(|one| one["payload"].as_str().expect("text")).collect();
    assert_eq!(bodies, ["b", "a", "c"]);
    let properties = &got[0]["properties"];
    assert_eq!((&properties["priority"], &properties["delivery_mode"]), (&json!(9), &json!(2)));
    assert!(properties["message_id"].as_str().expect("an id").starts_with("out-2-"), "{properties}");
    let desk = world.desk("guest").await;
    assert!(world.endpoints.test(&desk, "rabbit", None).await.expect("tested").is_ok());
}

async fn a_queue_that_is_not_there_is_said_and_found_later(rabbit: &Rabbit) {
    let world = World::new().await;
    world.publish("a:1").await;
    world.put("rabbit", to(rabbit, &json!({"routing_key": "later"}))).await;
    world.until("rabbit", |view| view.work.last_error.is_some()).await;
    let why = world.view("rabbit").await.work.last_error.expect("said").1;
    assert!(why.contains("404 NOT_FOUND - no queue 'later'"), "{why}");
    rabbit.declare("later").await;
    world.until_empty().await;
    assert_eq!(rabbit.take("later", 1).await[0]["payload"], "a");
}

async fn a_wrong_password_is_said(rabbit: &Rabbit) {
    let World { disk, engine, endpoints, .. } = World::new().await;
    endpoints.stop(std::time::Duration::ZERO).await;
    engine.close();
    disk.clear_hook();
    let secret = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(secret.path(), "wrong").expect("written");
    let mut json = to(rabbit, &json!({"user": "guest", "password": {"file": secret.path()}}));
    json["queue"] = "out".into();
    let world = World::open(disk, vec![("rabbit".to_owned(), crate::world::endpoint(json))]).await;
    let desk = world.desk("guest").await;
    let why = world.endpoints.test(&desk, "rabbit", None).await.expect("tested").expect_err("not let in");
    assert!(why.contains("the server refused the login"), "{why}");
}

async fn what_no_queue_gets_is_tried_again(rabbit: &Rabbit) {
    let world = World::new().await;
    world.publish("a:1").await;
    world.put("rabbit", to(rabbit, &json!({"exchange": "amq.direct", "routing_key": "nobody"}))).await;
    world.until("rabbit", |view| view.work.lanes.get("1").is_some_and(|lane| lane.failed > 1)).await;
    let why = world.view("rabbit").await.work.last_error.expect("said").1;
    assert_eq!(why.as_ref(), "no queue gets it there: 312 NO_ROUTE");
    rabbit.declare("bound").await;
    rabbit.bind("amq.direct", "nobody", "bound").await;
    world.until_empty().await;
    assert_eq!(rabbit.take("bound", 1).await[0]["payload"], "a");
}

async fn what_waits_there_comes_in_by_its_priority(rabbit: &Rabbit) {
    let world = World::new().await;
    rabbit.declare("requests").await;
    for (body, priority) in [("low", 1), ("high", 9), ("mid", 5)] {
        rabbit.publish("requests", body, &json!({"priority": priority, "headers": {"x": 1}})).await;
    }
    let sources = source(&world, rabbit, "requests", json!({})).await;
    let all = crate::world::soon("three messages", async {
        while world.sees("in").await.split(" · ").count() < 3 {
            tokio::task::yield_now().await;
        }
        world.sees("in").await
    });
    assert_eq!(all.await, "high ready · mid ready · low ready");
    sources.stop(crate::world::PATIENCE).await;
    assert_eq!(rabbit.count("requests").await, 0, "what is durable here is acknowledged there");
}

/// RabbitMQ closes the channel over a header `CC` that is no list, and confirms nothing of what came before on it.
async fn a_message_over_which_it_closes_the_channel_dies_alone(rabbit: &Rabbit) {
    let world = World::new().await;
    rabbit.declare("whole").await;
    let settings = overtake_lane::Settings { delivery_limit: 2, ..overtake_lane::Settings::default() };
    world.engine.declare_queue("out", settings).await.expect("declared");
    let bad: Headers = [("CC".to_owned(), HeaderValue::Text("no list".to_owned()))].into();
    let message = |(body, headers): (&str, &Headers)| NewMessage {
        to: Target::Queue("out".into()),
        content: Content::new(None, headers, body.to_owned().into()),
        ..NewMessage::default()
    };
    let none = Headers::new();
    let all = [("a", &none), ("b", &none), ("bad", &bad), ("c", &none), ("d", &none)];
    world.send(all.map(message).into()).await;
    world.put("rabbit", to(rabbit, &json!({"routing_key": "whole"}))).await;
    let errors = world.errors_of_the_dead("bad").await;
    assert_eq!(errors.len(), 2, "{errors:?}");
    assert!(errors.iter().all(|error| error.contains("406 PRECONDITION_FAILED")), "{errors:?}");
    world.until_sees("out", "bad dead").await;
    let came = rabbit.count("whole").await;
    assert!((4..=8).contains(&came), "each of the four once, or twice: {came}");
}

async fn what_can_never_be_taken_is_set_aside(rabbit: &Rabbit) {
    let world = World::new().await;
    rabbit.declare("mixed").await;
    for (body, urgency) in [("a", "9"), ("b", "-1"), ("c", "5")] {
        rabbit.publish("mixed", body, &json!({"headers": {"urgency": urgency}})).await;
    }
    let more = json!({"priority": {"header": "urgency"}, "refused_to": "out"});
    let sources = source(&world, rabbit, "mixed", more).await;
    assert_eq!(world.takes("in", 2).await, ["a", "c"]);
    assert_eq!(world.takes("out", 1).await, ["b"]);
    let desk = world.desk("guest").await;
    let view = sources.show(&desk, "rabbit").await.expect("it is there").work;
    assert_eq!((view.taken, view.refused), (3, 1));
    sources.stop(crate::world::PATIENCE).await;
}

async fn a_server_that_is_killed_loses_nothing(mut rabbit: Rabbit) {
    let world = World::new().await;
    rabbit.declare("safe").await;
    rabbit.keep().await;
    world.put("rabbit", to(&rabbit, &json!({"routing_key": "safe"}))).await;
    world.publish("a:5").await;
    world.until_empty().await;
    rabbit.kill().await;
    world.publish("b:1 c:9").await;
    world.until("rabbit", |view| view.work.connections == 0).await;
    rabbit.begin_again().await;
    world.until_empty().await;
    let mut all: Vec<String> = Vec::new();
    for one in rabbit.take("safe", 3).await {
        all.push(one["payload"].as_str().expect("text").to_owned());
    }
    assert_eq!(all, ["a", "c", "b"]);
}
