//! The inlet against a real server.

use std::time::Duration;

use overtake_engine::SystemClock;
use rumqttc::v5::mqttbytes::v5::PublishProperties;

use super::*;
use crate::servers::Server;

/// So long nothing takes.
const PATIENCE: Duration = Duration::from_secs(30);

fn origin(server: &Server, change: impl FnOnce(&mut MqttSource)) -> MqttOrigin {
    let mut source = MqttSource {
        url: format!("mqtt://127.0.0.1:{}", server.port),
        topics: vec!["a/#".to_owned()],
        client_id: "overtake".to_owned(),
        ..MqttSource::default()
    };
    change(&mut source);
    source.origin(Vault::ANY, &SystemClock).expect("it can be")
}

/// A connection of somebody else.
async fn somebody(server: &Server) -> Wire {
    let url = format!("mqtt://127.0.0.1:{}", server.port);
    let named = Named { url: &url, username: None, password: None, tls: &Tls::default() };
    MqttServer::new(Vault::ANY, &named, "").expect("a server").connect().await.expect("it answers").0
}

async fn publish(from: &mut Wire, topic: &str, body: &'static str) {
    let mut publish = Publish::new(topic, QoS::AtLeastOnce, body, Some(PublishProperties::default()));
    publish.pkid = 1;
    from.write(&Packet::Publish(publish)).await.expect("written");
    while !matches!(from.next().await.expect("an answer"), Packet::PubAck(_)) {}
}

/// So many, with their ids.
async fn received(inlet: &mut dyn Inlet, count: usize) -> Vec<(String, String)> {
    let mut all = Vec::new();
    while all.len() < count {
        let some = tokio::time::timeout(PATIENCE, inlet.receive(count - all.len())).await;
        let some = some.expect("in time").expect("received");
        all.extend(some.into_iter().map(|one| {
            let body = String::from_utf8_lossy(&one.body).into_owned();
            (format!("{} {body}", one.path), one.id)
        }));
    }
    all
}

fn told(all: &[(String, String)]) -> String {
    all.iter().map(|(told, _)| told.as_str()).collect::<Vec<_>>().join(" · ")
}

#[tokio::test]
async fn what_was_received_and_not_settled_comes_again_with_the_same_id() {
    let Some(server) = Server::mosquitto("allow_anonymous true") else { return };
    let origin = origin(&server, |_| ());
    let mut inlet = origin.connect().await.expect("connected");
    let mut other = somebody(&server).await;
    publish(&mut other, "a/b", "1").await;
    publish(&mut other, "a/c", "2").await;
    let before = received(&mut *inlet, 2).await;
    assert_eq!(told(&before), "a/b 1 · a/c 2");
    drop(inlet);
    // While nobody is there.
    publish(&mut other, "a/d", "3").await;
    let mut inlet = origin.connect().await.expect("connected");
    let again = received(&mut *inlet, 3).await;
    assert_eq!(told(&again), "a/b 1 · a/c 2 · a/d 3");
    assert_eq!(again[..2], before);
}

#[tokio::test]
async fn what_is_settled_does_not_come_again() {
    let Some(server) = Server::mosquitto("allow_anonymous true") else { return };
    let origin = origin(&server, |_| ());
    let mut inlet = origin.connect().await.expect("connected");
    let mut other = somebody(&server).await;
    for body in ["1", "2", "3"] {
        publish(&mut other, "a", body).await;
    }
    let mut bodies = Vec::new();
    for fate in [Fate::Taken, Fate::Refused] {
        bodies.extend(received(&mut *inlet, 1).await);
        inlet.settle(vec![fate]).await.expect("settled");
    }
    assert_eq!(told(&bodies), "a 1 · a 2");
    drop(inlet);
    let mut inlet = origin.connect().await.expect("connected");
    assert_eq!(told(&received(&mut *inlet, 1).await), "a 3");
}

#[tokio::test]
async fn a_server_that_starts_again_still_has_what_was_not_settled() {
    let Some(mut server) = Server::mosquitto("allow_anonymous true\npersistence true") else { return };
    let origin = origin(&server, |_| ());
    let mut inlet = origin.connect().await.expect("connected");
    let mut other = somebody(&server).await;
    publish(&mut other, "a", "1").await;
    assert_eq!(told(&received(&mut *inlet, 1).await), "a 1");
    server.stop();
    inlet.receive(1).await.expect_err("lost");
    server.start();
    let mut inlet = origin.connect().await.expect("connected");
    assert_eq!(told(&received(&mut *inlet, 1).await), "a 1");
}

#[tokio::test]
async fn a_wait_that_is_given_up_loses_nothing() {
    let Some(server) = Server::mosquitto("allow_anonymous true") else { return };
    let origin = origin(&server, |_| ());
    let mut inlet = origin.connect().await.expect("connected");
    let brief = Duration::from_millis(50);
    assert!(tokio::time::timeout(brief, inlet.receive(1)).await.is_err());
    publish(&mut somebody(&server).await, "a", "1").await;
    assert_eq!(told(&received(&mut *inlet, 1).await), "a 1");
}

#[test]
fn a_source_that_could_lose_messages_or_read_none_is_refused() {
    let refused = |change: fn(&mut MqttSource)| {
        let mut source = MqttSource {
            url: "mqtt://h".to_owned(),
            topics: vec!["a".to_owned()],
            client_id: "c".to_owned(),
            ..MqttSource::default()
        };
        change(&mut source);
        source.origin(Vault::ANY, &SystemClock).err().expect("refused")
    };
    assert!(refused(|source| source.client_id.clear()).contains("`client_id` must be"));
    assert!(refused(|source| source.session_expiry_s = 0).contains("`session_expiry_s` must be"));
    assert!(refused(|source| source.topics = vec!["a/#/b".to_owned()]).contains("`a/#/b`"));
    assert!(refused(|source| source.topics.clear()).contains("1 to 100"));
    assert!(refused(|source| source.qos = 2).contains("`qos` must be 0 or 1"));
    assert!(refused(|source| source.url = "mqtt://h/a".to_owned()).contains("a key of its own"));
}
