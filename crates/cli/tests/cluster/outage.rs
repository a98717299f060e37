//! What a broker on servers says while they are full or away, and to whom.

use std::collections::BTreeSet;
use std::io::Write;
use std::net::TcpStream;
use std::path::Path;

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

/// The metrics of servers that the documentation names.
fn documented() -> BTreeSet<String> {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/metrics.md");
    let docs = std::fs::read_to_string(docs).expect("it is there");
    let words = docs.split(|char: char| !(char.is_ascii_alphanumeric() || char == '_'));
    // Each series of a histogram has a longer name.
    let is_one = |word: &&str| {
        word.starts_with("overtake_cluster_")
            || (word.starts_with("overtake_servers_") && !word.ends_with("_seconds"))
    };
    words.filter(is_one).map(str::to_owned).collect()
}

/// What `/readyz` says: the status, and the warning or the reason.
fn readiness(broker: &Broker) -> (u16, String) {
    let reply = ask(&broker.url, "GET", "/readyz", &Value::Null);
    let said = if reply.status == 200 { &reply.json["warning"] } else { &reply.json["detail"] };
    (reply.status, said.as_str().unwrap_or_default().to_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_names_the_servers_that_are_away_and_is_ready_while_one_answers() {
    for program in Program::all() {
        let (mut world, dir) =
            (World::cluster(program, 0, &[]).await, tempfile::tempdir().expect("a directory"));
        let mut broker = broker(&world, &dir, &["--engine-replicas-acked", "0"]);
        ask(&broker.url, "PUT", "/v1/queues/q", &json!({ "partitions": { "mode": "hash", "count": 16 } }))
            .expect(201);
        let nodes: Vec<_> = world.servers.iter().map(|server| format!("127.0.0.1:{}", server.port)).collect();
        assert_eq!(readiness(&broker), (200, String::new()));
        let scrape = page(&broker.url, "/metrics");
        for name in documented() {
            assert!(scrape.lines().any(|line| line.starts_with(&name)), "{name}");
        }

        world.servers[0].kill();
        broker.await_line(&format!("a server of the cluster is down node={}", nodes[0]));
        let (status, warning) = readiness(&broker);
        assert_eq!(status, 200, "the others serve");
        assert!(warning.contains(&format!("primary {} is down: ", nodes[0])), "{warning}");
        let status = broker.run(&["cluster", "status"]).ok();
        for expected in [&nodes[0], &nodes[1], "this broker", "is down: ", " down "] {
            assert!(status.contains(expected), "{expected}: {status}");
        }
        let said = broker.run(&["cluster", "status", "--json"]).json();
        let partitions = said["queues"][0]["partitions"].as_object().expect("by node");
        assert_eq!(partitions.values().filter_map(Value::as_u64).sum::<u64>(), 16, "{said}");
        assert_eq!(said["brokers"][0]["process"], said["process"]);
        assert_eq!(said["brokers"][0]["version"], env!("CARGO_PKG_VERSION"));

        for server in &mut world.servers[1..] {
            server.kill();
        }
        while readiness(&broker).0 == 200 {}
        let (_, why) = readiness(&broker);
        assert!(nodes.iter().all(|node| why.contains(&**node)), "{why}");
        let health = broker.run(&["health"]);
        assert!(health.code == 69 && health.stderr.contains(&nodes[1]), "{health:?}");
        let scrape = page(&broker.url, "/metrics");
        assert!(scrape.lines().any(|line| line == "overtake_engine_up 0"));
        let down = format!("overtake_cluster_node_up{{node=\"{}\",role=\"primary\"}} 0", nodes[0]);
        assert!(scrape.lines().any(|line| line == down), "{scrape}");

        for server in &mut world.servers {
            server.start();
        }
        for node in &nodes {
            // In any order.
            let words = format!("a server of the cluster is up again node={node}");
            if broker.seen_lines(&words).is_empty() {
                broker.await_line(&words);
            }
        }
        while readiness(&broker) != (200, String::new()) {}
        let told = broker.seen_lines(&format!("is down node={}", nodes[0]));
        assert_eq!(told.len(), 1, "once: {told:?}");
        broker.kill();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_primary_that_lost_its_replica_is_named_once_until_it_has_one_again() {
    for program in Program::all() {
        let (mut world, dir) =
            (World::cluster(program, 1, &[]).await, tempfile::tempdir().expect("a directory"));
        let mut broker = broker(&world, &dir, &[]);
        let [primary, replica] = [0, 3].map(|at| format!("127.0.0.1:{}", world.servers[at].port));
        assert_eq!(readiness(&broker), (200, String::new()));
        world.servers[3].kill();
        broker
            .await_line(&format!("writes there are not confirmed node={primary} why=0 of 1 replicas follow"));
        let (status, warning) = readiness(&broker);
        assert_eq!(status, 200);
        assert!(
            warning.contains(&format!("primary {primary} confirms no writes: 0 of 1 replicas follow")),
            "{warning}"
        );
        let unconfirmed = format!("overtake_cluster_node_unconfirmed{{node=\"{primary}\"}} 1");
        assert!(page(&broker.url, "/metrics").lines().any(|line| line == unconfirmed));
        let status = broker.run(&["cluster", "status"]).ok();
        assert!(status.contains("0 of 1"), "{status}");
        world.servers[3].start();
        broker.await_line(&format!("writes there are confirmed again node={primary}"));
        while readiness(&broker) != (200, String::new()) {}
        assert_eq!(broker.seen_lines(&format!("not confirmed node={primary}")).len(), 1);
        assert_eq!(broker.seen_lines(&format!("is down node={replica}")).len(), 1);
        broker.kill();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_without_servers_says_that_there_is_no_cluster() {
    let dir = tempfile::tempdir().expect("a directory");
    let broker = Broker::start(dir.path());
    assert!(broker.run(&["cluster", "status"]).ok().starts_with("no cluster: "));
    assert_eq!(broker.run(&["cluster", "status", "--json"]).json()["store"], "directory");
    broker.stop();
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
