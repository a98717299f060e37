//! The inlet against a real server.

use std::time::Duration;

use overtake_engine::SystemClock;
use rumqttc::v5::mqttbytes::v5::PublishProperties;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

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
async fn a_test_leaves_the_connection_that_is_there_and_takes_nothing_from_a_group() {
    let Some(server) = Server::mosquitto("allow_anonymous true") else { return };
    let origin = origin(&server, |source| source.topics.push("$share/g/b".to_owned()));
    let mut inlet = origin.connect().await.expect("connected");
    origin.try_out().await.expect("it can be read");
    let mut other = somebody(&server).await;
    for topic in ["a", "b", "b"] {
        publish(&mut other, topic, "1").await;
    }
    assert_eq!(told(&received(&mut *inlet, 3).await), "a 1 · b 1 · b 1");
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

/// The file of Mosquitto's plugin for rights: everybody may publish anything, and read below `a` only.
fn rights() -> String {
    let reads_a = serde_json::json!({"acltype": "subscribePattern", "topic": "a/#", "allow": true});
    serde_json::json!({
        "defaultACLAccess": {"publishClientSend": true, "publishClientReceive": true, "subscribe": false, "unsubscribe": true},
        "anonymousGroup": "all",
        "groups": [{"groupname": "all", "roles": [{"rolename": "reader"}]}],
        "roles": [{"rolename": "reader", "acls": [reads_a]}],
    })
    .to_string()
}

#[tokio::test]
async fn a_topic_that_may_not_be_read_is_told_and_holds_back_no_other() {
    let Some(server) = Server::mosquitto_with(|server| {
        let file = server.dir().join("rights.json");
        std::fs::write(&file, rights()).expect("a file");
        let plugin = "/usr/lib/x86_64-linux-gnu/mosquitto_dynamic_security.so";
        format!("allow_anonymous true\nplugin {plugin}\nplugin_opt_config_file {}", file.display())
    }) else {
        return;
    };
    let origin = origin(&server, |source| source.topics = ["b/#", "a/#"].map(str::to_owned).into());
    let mut inlet = origin.connect().await.expect("connected");
    let fault = inlet.fault().expect("told");
    assert!(fault.contains("no subscription to `b/#`: not authorised"), "{fault}");
    let mut other = somebody(&server).await;
    publish(&mut other, "a/b", "1").await;
    assert_eq!(told(&received(&mut *inlet, 1).await), "a/b 1");
}

#[tokio::test]
async fn a_topic_that_may_not_be_read_is_asked_for_again() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("bound").port();
    let served = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.expect("a connection");
        // CONNACK; the second of two topics is granted; the first one is, too, and has a message.
        let answers: [&[u8]; 3] =
            [b"\x20\x03\0\0\0", b"\x90\x05\0\x01\0\x87\x01", b"\x90\x04\0\x01\0\x01\x30\x07\0\x03b/c\x002"];
        let mut asked = Vec::new();
        for answer in answers {
            let mut packet = Vec::new();
            socket.read_buf(&mut packet).await.expect("a packet");
            asked.push(packet);
            socket.write_all(answer).await.expect("written");
        }
        (socket, asked)
    });
    let source = MqttSource {
        url: format!("mqtt://127.0.0.1:{port}"),
        topics: ["b/#", "a/#"].map(str::to_owned).into(),
        client_id: "overtake".to_owned(),
        ..MqttSource::default()
    };
    let mut inlet =
        source.origin(Vault::ANY, &SystemClock).expect("it can be").connect().await.expect("connected");
    assert!(inlet.fault().is_some_and(|why| why.contains("`b/#`")));
    assert_eq!(told(&received(&mut *inlet, 1).await), "b/c 2");
    assert_eq!(inlet.fault(), None, "it is told once");
    let (_, asked) = served.await.expect("served");
    assert!(
        asked[2].windows(3).any(|topic| topic == b"b/#") && !asked[2].windows(3).any(|topic| topic == b"a/#")
    );
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
