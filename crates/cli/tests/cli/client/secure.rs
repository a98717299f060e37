//! TLS, and logins by certificate.

use std::time::Duration;

use overtake_client::{Client, ConnectOptions, Error, LeaseOptions, Tls};

use super::{World, go, next, said};
use crate::support::Broker;
use crate::support::http::ask;
use crate::support::link::Link;
use crate::support::tls::{Authority, write};

#[test]
fn streams_and_requests_are_under_tls_and_a_certificate_may_log_in() {
    let dir = tempfile::tempdir().unwrap();
    let (broker_dir, ann_dir) = (dir.path().join("broker"), dir.path().join("ann"));
    std::fs::create_dir_all(&broker_dir).unwrap();
    std::fs::create_dir_all(&ann_dir).unwrap();
    let authority = Authority::new("an authority");
    let ca = write(dir.path(), "ca.pem", &authority.pem());
    let [cert, key] = authority.sign_into(&broker_dir, "localhost");
    let [ann_cert, ann_key] = authority.sign_into(&ann_dir, "guest");
    let data = dir.path().join("data");
    let flags = [
        "--amqps",
        "127.0.0.1:0",
        "--https",
        "127.0.0.1:0",
        "--tls-cert",
        &cert,
        "--tls-key",
        &key,
        "--tls-client-ca",
        &ca,
    ];
    let broker = Broker::start_with(&data, &flags);
    ask(&broker.url, "PUT", "/v1/queues/q", &serde_json::json!({"scheme": "signed"})).expect(201);
    let port = |address: &str| address.rsplit_once(':').unwrap().1.trim_end_matches('/').to_owned();
    let (amqps, https) =
        (format!("localhost:{}", port(&broker.amqps)), format!("https://localhost:{}", port(&broker.https)));
    go(async {
        let options = ConnectOptions::new(format!("amqps://guest:guest@{amqps}"))
            .http(&https)
            .tls(Tls::new().ca_file(&ca));
        let client = Client::connect(options).await.unwrap();
        client.publish("q", said("a")).await.unwrap();
        let lease = client.lease("q", LeaseOptions::default()).await.unwrap().remove(0);
        assert_eq!(lease.text(), Some("a"));
        lease.ack().await.unwrap();
        let shown = Tls::new().ca_file(&ca).identity(&ann_cert, &ann_key);
        let by_certificate = ConnectOptions::new(format!("amqps://{amqps}")).http(&https).tls(shown);
        let client = Client::connect(by_certificate).await.unwrap();
        client.publish("q", said("b")).await.unwrap();
        let mut consumer = client.consume("q", 1).await.unwrap();
        let came = next(&mut consumer).await;
        assert_eq!(came.text(), Some("b"));
        came.ack().unwrap();
        // The authorities of the machine do not know ours.
        let told = Client::connect(format!("amqps://{amqps}")).await.unwrap_err();
        assert!(told.to_string().contains("certificate"), "{told}");
        let none = ConnectOptions::new("amqps://localhost").tls(Tls::new().ca_file(dir.path().join("none")));
        assert!(matches!(Client::connect(none).await, Err(Error::Invalid(_))));
    });
    broker.stop();
}

/// A socket that is full leaves a part of what TLS has taken behind; it goes although nothing follows.
#[test]
fn what_is_more_than_the_socket_takes_goes_under_tls() {
    let dir = tempfile::tempdir().unwrap();
    let authority = Authority::new("an authority");
    let ca = write(dir.path(), "ca.pem", &authority.pem());
    let [cert, key] = authority.sign_into(dir.path(), "localhost");
    let data = dir.path().join("data");
    let broker =
        Broker::start_with(&data, &["--amqps", "127.0.0.1:0", "--tls-cert", &cert, "--tls-key", &key]);
    ask(&broker.url, "PUT", "/v1/queues/q", &serde_json::json!({})).expect(201);
    let link = Link::to(&broker.amqps, 20_000_000);
    go(async {
        let url = format!("amqps://guest:guest@localhost:{}", link.address.port());
        // A sign of life would take it along.
        let options = ConnectOptions::new(url).heartbeat(Duration::ZERO).http(&broker.url);
        let client = Client::connect(options.tls(Tls::new().ca_file(&ca))).await.unwrap();
        let body = "x".repeat(100_000);
        client.publish_all("q", (0..160).map(|_| said(&body))).await.unwrap();
    });
    broker.stop();
}

#[test]
fn a_name_is_seen_at_the_broker() {
    let world = World::new();
    go(async {
        let _client = Client::connect(world.options().name("shop, orders")).await.unwrap();
        let seen = ask(&world.broker.url, "GET", "/api/connections", &serde_json::Value::Null).expect(200);
        assert!(seen.to_string().contains("shop, orders"), "{seen}");
    });
}
