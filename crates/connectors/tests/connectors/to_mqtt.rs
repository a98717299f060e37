//! Topics of an MQTT server as a receiver. Who reads there is another client, rumqttc's own.

use std::collections::BTreeSet;
use std::process::Command;
use std::time::Duration;

use overtake_connectors::{ConnectorView, Endpoint};
use overtake_engine::{Content, NewMessage, Target};
use overtake_forward::State;
use overtake_lane::HeaderValue;
use rumqttc::v5::mqttbytes::QoS;
use rumqttc::v5::mqttbytes::v5::{Packet, Publish};
use rumqttc::v5::{AsyncClient, Event, EventLoop, MqttOptions};
use serde_json::{Value, json};

use crate::outward::{Outward, message};
use crate::servers::Server;

const OPEN: &str = "allow_anonymous true";
/// So long nothing takes.
const PATIENCE: Duration = Duration::from_secs(120);

fn jobs(server: &Server) -> Value {
    json!({"mqtt": {"url": format!("mqtt://127.0.0.1:{}", server.port), "topic": "jobs/{priority}"}})
}

/// Somebody who reads everything, also what came while the server was away.
struct Reader {
    events: EventLoop,
    _client: AsyncClient,
}

impl Reader {
    async fn open(server: &Server) -> Self {
        let mut options = MqttOptions::new("reader", "127.0.0.1", server.port);
        options.set_clean_start(false).set_session_expiry_interval(Some(600));
        let (client, events) = AsyncClient::new(options, 10);
        client.subscribe("#", QoS::AtLeastOnce).await.expect("asked");
        let mut this = Self { events, _client: client };
        while !matches!(this.event().await, Some(Packet::SubAck(_))) {}
        this
    }

    async fn event(&mut self) -> Option<Packet> {
        let polled = tokio::time::timeout(PATIENCE, self.events.poll()).await.expect("something comes");
        match polled {
            Ok(Event::Incoming(packet)) => Some(packet),
            _ => None,
        }
    }

    async fn publish(&mut self) -> Publish {
        loop {
            if let Some(Packet::Publish(publish)) = self.event().await {
                return publish;
            }
        }
    }

    async fn bodies(&mut self, count: usize) -> Vec<String> {
        let mut all = Vec::new();
        for _ in 0..count {
            all.push(String::from_utf8_lossy(&self.publish().await.payload).into_owned());
        }
        all
    }
}

/// A server for the user `sender`, who may do what the list says, or everything where it says nothing.
fn for_sender(may: &str) -> Option<Server> {
    Server::mosquitto_with(|server| {
        let [users, list] = ["users", "list"].map(|name| server.dir().join(name));
        let mut passwd = Command::new("mosquitto_passwd");
        let made = passwd.args(["-b", "-c"]).arg(&users).args(["sender", "secret"]).status();
        assert!(made.expect("it runs").success(), "a user is made");
        std::fs::write(&list, may).expect("a file");
        let users = format!("allow_anonymous false\npassword_file {}", users.display());
        if may.is_empty() { users } else { format!("{users}\nacl_file {}", list.display()) }
    })
}

fn refused(view: &overtake_connectors::ConnectorView<overtake_connectors::Endpoint>) -> u64 {
    view.work.lanes.values().map(|lane| lane.refused).sum()
}

#[tokio::test]
async fn urgent_ones_arrive_first() {
    let Some(server) = Server::mosquitto(OPEN) else { return };
    let mut reader = Reader::open(&server).await;
    let world = Outward::open(jobs(&server)).await;
    world.pause(true).await;
    for (id, priority) in [("bulk1", 1), ("bulk2", 1), ("urgent", 9), ("usual", 5)] {
        world.publish(message(id, priority)).await;
    }
    world.pause(false).await;
    assert_eq!(reader.bodies(4).await, ["urgent", "usual", "bulk1", "bulk2"]);
    world.until_empty().await;
}

#[tokio::test]
async fn a_publish_says_all_that_the_message_does() {
    let Some(server) = Server::mosquitto(OPEN) else { return };
    let mut reader = Reader::open(&server).await;
    let mut to = jobs(&server);
    to["mqtt"]["topic"] = json!("{queue}/{lane}/{key}");
    let world = Outward::open(to).await;
    let headers = [
        ("tenant".to_owned(), HeaderValue::Text("a b".to_owned())),
        ("note".to_owned(), HeaderValue::Text("two\nlines".to_owned())),
        ("parts".to_owned(), HeaderValue::List(Vec::new())),
        ("ratio".to_owned(), HeaderValue::Float((-0.25_f64).to_bits())),
    ];
    let body: &[u8] = b"\0\xff\r\n";
    let content = Content::new(Some("image/x"), &headers.into(), body.into());
    let whole = NewMessage { key: Some("k".to_owned()), ttl_ms: Some(59_500), content, ..message("m", 7) };
    world.publish(whole).await;
    let publish = reader.publish().await;
    assert_eq!((&publish.topic[..], &publish.payload[..]), (&b"q/7/k"[..], body));
    let said = publish.properties.expect("properties");
    assert_eq!(said.content_type.as_deref(), Some("image/x"));
    assert!((50..=60).contains(&said.message_expiry_interval.expect("it expires")));
    let pair = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
    let scheme = ("priority-scheme", "ten-level");
    let all = [
        ("id", "m"),
        ("attempt", "1"),
        ("priority", "7"),
        scheme,
        ("key", "k"),
        ("ratio", "-0.25"),
        ("tenant", "a b"),
    ]
    .map(pair);
    assert_eq!(said.user_properties, all, "and no text that MQTT has no room for");
    let is_said = |why: &str| why.starts_with("a message was sent without `note`, `parts`: ");
    let names =
        |view: &ConnectorView<Endpoint>| view.work.last_error.as_ref().is_some_and(|(_, why)| is_said(why));
    world.until("what was left out", names).await;
    world.until_empty().await;
}

#[tokio::test]
async fn a_server_that_dies_and_comes_back_has_every_message() {
    let Some(mut server) = Server::mosquitto(OPEN) else { return };
    let world = Outward::open(jobs(&server)).await;
    world.until("connected", |view| view.work.connections == 1).await;
    server.kill();
    world.until("down", |view| view.work.state == State::Down).await;
    world.publish_all(0..200).await;
    world.pause(true).await;
    server.start();
    let mut reader = Reader::open(&server).await;
    world.pause(false).await;
    let mut arrived = BTreeSet::new();
    while arrived.len() < 200 {
        arrived.extend(reader.bodies(1).await);
    }
    world.until_empty().await;
}

#[tokio::test]
async fn what_is_over_is_not_sent() {
    let Some(mut server) = Server::mosquitto(OPEN) else { return };
    let world = Outward::open(jobs(&server)).await;
    world.until("connected", |view| view.work.connections == 1).await;
    server.kill();
    world.until("down", |view| view.work.state == State::Down).await;
    world.publish(NewMessage { ttl_ms: Some(1), ..message("brief", 9) }).await;
    world.publish(message("lasting", 1)).await;
    world.pause(true).await;
    server.start();
    let mut reader = Reader::open(&server).await;
    world.pause(false).await;
    assert_eq!(reader.bodies(1).await, ["lasting"]);
    world.until_empty().await;
}

#[tokio::test]
async fn a_wrong_password_is_named_and_a_right_one_is_read_without_a_restart() {
    let Some(server) = for_sender("") else { return };
    let password = server.dir().join("password");
    std::fs::write(&password, "wrong\n").expect("a file");
    let mut to = jobs(&server);
    to["mqtt"]["username"] = json!("sender");
    to["mqtt"]["password"] = json!({"file": password});
    let world = Outward::open(to).await;
    let why = world.trouble().await;
    assert!(why.contains("no connection") && why.contains("see to `username` and `password`"), "{why}");

    std::fs::write(&password, "secret\n").expect("a file");
    world.publish(message("m", 5)).await;
    world.until_empty().await;
}

#[tokio::test]
async fn a_topic_that_the_user_may_not_write_to_fails_and_says_so() {
    let acl = "user sender\ntopic write other/#\n";
    let Some(server) = for_sender(acl) else { return };
    let password = server.dir().join("password");
    std::fs::write(&password, "secret").expect("a file");
    let mut to = jobs(&server);
    to["mqtt"]["username"] = json!("sender");
    to["mqtt"]["password"] = json!({"file": password});
    let world = Outward::open(to).await;
    world.publish(message("m", 5)).await;
    world.until("failed", |view| view.work.lanes.values().any(|lane| lane.failed > 0)).await;
    let (_, why) = world.view().await.work.last_error.expect("an error");
    assert!(why.contains("not authorised"), "{why}");
}

#[tokio::test]
async fn what_can_have_no_topic_and_what_is_too_large_is_refused() {
    let Some(server) = Server::mosquitto("allow_anonymous true\nmax_packet_size 1000") else { return };
    let mut to = jobs(&server);
    to["mqtt"]["topic"] = json!("jobs/{key}");
    let world = Outward::open(to).await;
    world.publish(NewMessage { key: Some("a/#".to_owned()), ..message("wildcard", 5) }).await;
    world.publish(message("keyless", 5)).await;
    let content = Content { body: vec![b'x'; 2_000].into(), ..Content::default() };
    world.publish(NewMessage { key: Some("k".to_owned()), content, ..message("large", 5) }).await;
    world.until("refused", |view| refused(view) == 3).await;
    let (_, why) = world.view().await.work.last_error.expect("an error");
    assert!(why.contains("and the server takes 1000"), "{why}");
}

#[tokio::test]
async fn a_routing_key_may_be_the_topic_and_qos_0_asks_for_no_answer() {
    let Some(server) = Server::mosquitto(OPEN) else { return };
    let mut reader = Reader::open(&server).await;
    let mut to = jobs(&server);
    to["mqtt"]["topic"] = json!("{routing_key}");
    to["mqtt"]["qos"] = json!(0);
    let world = Outward::open(to).await;
    world.publish(NewMessage { to: Target::Queue("q".into()), ..message("m", 5) }).await;
    let publish = reader.publish().await;
    assert_eq!((&publish.topic[..], publish.qos), (&b"q"[..], QoS::AtMostOnce));
    world.until_empty().await;
}

#[tokio::test]
async fn a_server_that_went_away_is_noticed_while_nothing_is_sent() {
    let Some(mut server) = Server::mosquitto(OPEN) else { return };
    let world = Outward::open(jobs(&server)).await;
    world.until("idle", |view| view.work.state == State::Idle).await;
    server.kill();
    world.until("down", |view| view.work.state == State::Down).await;
}

#[tokio::test]
async fn a_server_never_gets_more_at_once_than_it_takes() {
    let Some(server) = Server::mosquitto("allow_anonymous true\nmax_inflight_messages 2") else { return };
    let world = Outward::open(jobs(&server)).await;
    world.publish_all(0..200).await;
    world.until_empty().await;
    let work = world.view().await.work;
    assert!(work.last_error.is_none() && work.lanes.values().all(|lane| lane.put_back == 0), "{work:?}");
}
