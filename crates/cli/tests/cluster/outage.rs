//! What a broker on servers says while they are full or away, and to whom.

use std::io::Write;
use std::net::TcpStream;

use overtake_amqp::FrameWriter;
use overtake_amqp::method::{basic, channel, connection as wire};
use overtake_properties::{Properties, Short, TableBuilder, Value as Field};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::amqp::{Client, text};
use crate::support::http::{ask, text as page};
use crate::support::{Broker, overtake};
use crate::world::{Program, World};

/// A broker on these servers.
fn broker(world: &World, dir: &TempDir, more: &[&str]) -> Broker {
    let nodes: Vec<_> = world.servers.iter().map(|server| format!("127.0.0.1:{}", server.port)).collect();
    let (kind, nodes) =
        if nodes.len() == 1 { ("redis", nodes[0].clone()) } else { ("cluster", nodes.join(",")) };
    let engine = ["--engine", kind, "--engine-nodes", &nodes];
    Broker::start_as(overtake(), &dir.path().join("broker"), &[&engine[..], more].concat())
}

/// A client that wants to hear when publishes are refused, with channel 1 open.
fn publisher(broker: &Broker) -> Client<TcpStream> {
    let mut client = Client::greet(TcpStream::connect(&broker.amqp).expect("it listens"));
    client.hear();
    let can = TableBuilder::new().entry(Short::literal("connection.blocked"), Field::Bool(true));
    let properties = TableBuilder::new().entry(Short::literal("capabilities"), Field::Table(can.view()));
    let (client_properties, locale) = (properties.view(), text("en_US"));
    let response = b"\0guest\0guest";
    client.say(0, wire::StartOk { client_properties, mechanism: text("PLAIN"), response, locale });
    client.hear();
    client.say(0, wire::TuneOk { channel_max: 0, frame_max: 0, heartbeat: 0 });
    client.say(0, wire::Open { virtual_host: text("/"), capabilities: text(""), insist: false });
    client.say(1, channel::Open { out_of_band: text("") });
    assert!(client.hear().starts_with("ConnectionOpenOk"));
    assert!(client.hear().starts_with("ChannelOpenOk"));
    client
}

fn publish(client: &mut Client<TcpStream>, body: &[u8]) {
    let publish = basic::Publish {
        ticket: 0,
        exchange: Short::literal(""),
        routing_key: Short::literal("q"),
        mandatory: false,
        immediate: false,
    };
    let mut frames = Vec::new();
    let properties = Properties::EMPTY;
    FrameWriter::new(&mut frames, 4_096).content(1, publish, properties.view(), body).expect("it fits");
    client.stream.write_all(&frames).expect("the broker reads");
}

fn ready_messages(broker: &Broker) -> Value {
    ask(&broker.url, "GET", "/v1/queues/q", &Value::Null).expect(200)["totals"]["ready"].clone()
}

fn is_full(broker: &Broker) -> bool {
    page(&broker.url, "/metrics").lines().any(|line| line == "overtake_engine_full 1")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn publishers_without_confirms_wait_while_the_servers_have_no_memory() {
    for program in Program::all() {
        let (world, dir) = (World::one(program, &[]), tempfile::tempdir().expect("a directory"));
        let mut broker = broker(&world, &dir, &[]);
        ask(&broker.url, "PUT", "/v1/queues/q", &json!({})).expect(201);
        let mut client = publisher(&broker);
        assert!(!is_full(&broker));
        world.ask(0, &format!("CONFIG SET maxmemory {}", 1 << 20)).await;
        let node = format!("127.0.0.1:{}", world.servers[0].port);
        let said = client.hear();
        assert!(
            said.starts_with(&format!("ConnectionBlocked(Blocked {{ reason: \"the memory of {node} is full")),
            "{said}"
        );
        assert!(is_full(&broker));
        let ready = ask(&broker.url, "GET", "/readyz", &Value::Null).expect(200);
        assert!(ready["warning"].as_str().expect("a warning").contains(&node), "{ready}");
        let refused = ask(&broker.url, "POST", "/v1/queues/q/messages", &json!({ "body": "x" }));
        assert_eq!(refused.status, 507);
        assert!(refused.json["hint"].as_str().expect("a hint").contains("maxmemory"), "{:?}", refused.json);
        publish(&mut client, b"waits");
        assert_eq!(ready_messages(&broker), 0);
        world.ask(0, "CONFIG SET maxmemory 0").await;
        assert_eq!(client.hear(), "ConnectionUnblocked(Unblocked)");
        assert!(!is_full(&broker));
        while ready_messages(&broker) != 1 {}
        broker.await_line("there is room again");
        drop(client);
        broker.stop();
    }
}
