//! Who published, as routes see it, of what comes in over MQTT.

use std::sync::Arc;

use overtake_connectors::{Source, Sources};
use overtake_engine::{Engine, RouteSet, SystemClock};
use overtake_lane::Settings;
use overtake_routes::Manifest;
use rumqttc::v5::mqttbytes::QoS;
use rumqttc::v5::{AsyncClient, MqttOptions};
use serde_json::json;

use crate::servers::Server;
use crate::world::World;

#[tokio::test(flavor = "multi_thread")]
async fn a_topic_says_which_device_published_and_what_it_is_about() {
    let Some(server) = Server::mosquitto("allow_anonymous true") else { return };
    let world = World::new().await;
    for queue in ["alerts", "rest", "refused"] {
        world.engine.declare_queue(queue, Settings::default()).await.expect("declared");
    }
    let manifest = r#"{"schemaVersion": "1.1.0", "routes": {
        "alerts": "FROM /messages/devices/d7/alerts WHERE $connectionDeviceId = 'd7' INTO Queue(\"alerts\")",
        "rest": "FROM /messages/* WHERE $connectionDeviceId != 'd7' INTO Queue(\"rest\")"
    }}"#;
    let manifest = Manifest::from_json(manifest).expect("a manifest");
    world.engine.set_routes(Arc::new(RouteSet::new(manifest))).await.expect("set");
    let url = format!("mqtt://127.0.0.1:{}", server.port);
    let mqtt = json!({"url": url, "topics": ["devices/#"], "client_id": "in", "template": "devices/{device}/messages/{path}"});
    let source = json!({
        "from": {"mqtt": mqtt},
        "to": {"routes": "/messages/devices/{device}/{path}"},
        "refused_to": "refused",
    });
    let source: Source = serde_json::from_value(source).expect("a source");
    let engine: Arc<dyn Engine> = world.engine.clone();
    let all = vec![("s".to_owned(), source)];
    let sources =
        Sources::open(engine, Arc::clone(&world.gate), Arc::new(SystemClock), all).await.expect("open");
    crate::urgency::until_all_run(&world, &sources).await;
    let mut options = MqttOptions::new("out", "127.0.0.1", server.port);
    options.set_clean_start(true);
    let (client, mut events) = AsyncClient::new(options, 10);
    let pump = tokio::spawn(async move { while events.poll().await.is_ok() {} });
    for (topic, body) in
        [("devices/d7/messages/alerts", "a"), ("devices/d8/messages/alerts", "b"), ("devices/d7/events", "c")]
    {
        client.publish(topic, QoS::AtLeastOnce, false, body).await.expect("sent");
    }
    world.until_sees("alerts", "a ready").await;
    world.until_sees("rest", "b ready").await;
    world.until_sees("refused", "c ready").await;
    let page = world
        .engine
        .browse("refused", overtake_engine::Browse { limit: 1, ..overtake_engine::Browse::default() });
    let headers = page.await.expect("a page").messages[0].content.headers();
    let why = overtake_lane::HeaderValue::Text(
        "the topic `devices/d7/events` does not fit `from.mqtt.template`".to_owned(),
    );
    assert_eq!(headers["x-refused"], why);
    pump.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_path_with_a_place_that_nothing_fills_is_refused() {
    let world = World::new().await;
    let mqtt = json!({"url": "mqtt://h", "topics": ["a"], "client_id": "in", "template": "a/{device}"});
    for (routes, said) in [
        ("/messages/{path}", "to.routes: {path} must be a level of `from.mqtt.template`"),
        ("/messages/{color}", "to.routes: there is no {color}, only {topic}, {device}, {module}, {path}"),
    ] {
        let source = json!({"from": {"mqtt": mqtt}, "to": {"routes": routes}});
        let source: Source = serde_json::from_value(source).expect("a source");
        let engine: Arc<dyn Engine> = world.engine.clone();
        let all = Sources::open(engine, Arc::clone(&world.gate), Arc::new(SystemClock), Vec::new()).await;
        let desk = world.desk("guest").await;
        let refused = all.expect("open").put(&desk, "s", source).await.expect_err("it cannot be");
        assert_eq!(refused.to_string(), said);
    }
}
