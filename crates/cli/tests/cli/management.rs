//! The management API of a running broker: who is connected over AMQP is seen, and may be sent away.

use std::io::{Read, Write};
use std::net::TcpStream;

use overtake_amqp::method::{basic, channel, confirm, queue};
use overtake_properties::TableRef;
use serde_json::Value;
use tempfile::TempDir;

use crate::support::Broker;
use crate::support::amqp::{Client, text};
use crate::support::tls::connect;

/// guest:guest
const GUEST: &str = "Basic Z3Vlc3Q6Z3Vlc3Q=";

/// Status and JSON of what guest is answered.
fn ask(broker: &Broker, method: &str, path: &str, body: &str) -> (u16, Value) {
    let address = broker.url.strip_prefix("http://").expect("a url");
    let mut stream = TcpStream::connect(address).expect("it accepts");
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nAuthorization: {GUEST}\r\n\
        X-Reason: go home\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers and closes");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
    (status, serde_json::from_str(body).unwrap_or_default())
}

fn get(broker: &Broker, path: &str) -> Value {
    let (status, json) = ask(broker, "GET", path, "");
    assert_eq!(status, 200, "{path} {json}");
    json
}

#[test]
fn who_is_connected_is_seen_and_may_be_sent_away() {
    let dir = TempDir::new().expect("a directory");
    let broker = Broker::start_with(&dir.path().join("data"), &[]);
    assert_eq!(get(&broker, "/api/connections"), Value::Array(Vec::new()));
    let mut client = Client::open(connect(&broker.amqp), "PLAIN", b"\0guest\0guest");
    client.say(1, channel::Open { out_of_band: text("") });
    client.hear();
    client.say(1, basic::Qos { prefetch_size: 0, prefetch_count: 7, global: false });
    client.hear();
    client.say(1, confirm::Select { no_wait: false });
    client.hear();
    let declare = queue::Declare {
        ticket: 0,
        queue: text("q"),
        passive: false,
        durable: true,
        exclusive: false,
        auto_delete: false,
        no_wait: false,
        arguments: TableRef::EMPTY,
    };
    client.say(1, declare);
    client.hear();
    let consume = basic::Consume {
        ticket: 0,
        queue: text("q"),
        consumer_tag: text("worker"),
        no_local: false,
        no_ack: false,
        exclusive: false,
        no_wait: false,
        arguments: TableRef::EMPTY,
    };
    client.say(1, consume);
    client.hear();
    let message = r#"{"routing_key":"q","payload":"hi"}"#;
    assert_eq!(ask(&broker, "POST", "/api/exchanges/%2F/amq.default/publish", message).0, 200);
    client.hear();

    let connections = get(&broker, "/api/connections");
    let one = &connections[0];
    let name = one["name"].as_str().expect("a name");
    assert!(name.contains(" -> 127.0.0.1:"), "{one}");
    assert_eq!(
        (&one["user"], &one["vhost"], &one["state"]),
        (&"guest".into(), &"/".into(), &"running".into())
    );
    assert!(one["recv_oct"].as_u64() > Some(0) && one["send_oct"].as_u64() > Some(0), "{one}");
    let channels = get(&broker, "/api/channels");
    let channel = &channels[0];
    let numbers = ["number", "prefetch_count", "messages_unacknowledged", "consumer_count"];
    assert_eq!(
        numbers.map(|field| channel[field].as_u64()),
        [Some(1), Some(7), Some(1), Some(1)],
        "{channel}"
    );
    assert_eq!(channel["confirm"], true);
    let stats = &channel["message_stats"];
    assert_eq!((&stats["deliver"], &stats["publish"], &stats["ack"]), (&1.into(), &0.into(), &0.into()));
    let nameless = get(&broker, "/api/exchanges/%2F/amq.default");
    assert_eq!(nameless["message_stats"]["publish_in"], 1);
    let queue = get(&broker, "/api/queues/%2F/q");
    assert_eq!(
        (&queue["message_bytes_ready"], &queue["message_bytes_unacknowledged"]),
        (&0.into(), &queue["message_bytes"])
    );
    let connected_at = one["connected_at"].as_u64().expect("a time");
    for path in ["/api/channels", "/api/queues"] {
        // A date, which comes once nothing has happened for a second.
        let idle_since = loop {
            if let Some(since) = get(&broker, path)[0]["idle_since"].as_str() {
                break since.parse::<jiff::Timestamp>().expect("a date");
            }
        };
        let idle_since = u64::try_from(idle_since.as_millisecond()).expect("after 1970");
        assert!(idle_since.abs_diff(connected_at) < 3_600_000, "{path}: {idle_since}, {connected_at}");
    }
    let consumers = get(&broker, "/api/consumers/%2F");
    assert_eq!((&consumers[0]["consumer_tag"], &consumers[0]["active"]), (&"worker".into(), &true.into()));
    assert_eq!(consumers[0]["channel_details"]["connection_name"], name);
    assert_eq!(get(&broker, "/api/queues/%2F/q")["consumer_details"][0]["consumer_tag"], "worker");
    assert_eq!(get(&broker, "/api/overview")["object_totals"]["connections"], 1);

    let path = format!("/api/connections/{}", name.replace(' ', "%20").replace('>', "%3E"));
    assert_eq!(get(&broker, &path)["name"], name);
    assert_eq!(ask(&broker, "DELETE", &path, "").0, 204);
    let said = client.hear();
    assert!(said.contains("320") && said.contains("go home"), "{said}");
    broker.stop();
}

#[test]
fn whoever_is_in_a_virtual_host_is_told_that_it_is_deleted_by_whichever_way() {
    let dir = TempDir::new().expect("a directory");
    let broker = Broker::start_with(&dir.path().join("data"), &[]);
    broker.feed(&["user", "put", "ann", "--new-password"], b"secret\n").ok();
    let ways: [fn(&Broker); 2] = [
        |broker| drop(broker.run(&["vhost", "delete", "shop", "--yes"]).ok()),
        |broker| assert_eq!(ask(broker, "DELETE", "/api/vhosts/shop", "").0, 204),
    ];
    for delete in ways {
        broker.run(&["vhost", "put", "shop"]).ok();
        broker.run(&["user", "allow", "ann", "--all", "--in", "shop"]).ok();
        broker.run(&["--vhost", "shop", "queue", "declare", "q"]).ok();
        let open = |response| Client::open_in("shop", connect(&broker.amqp), "PLAIN", response);
        let (mut guest, mut ann) = (open(b"\0guest\0guest"), open(b"\0ann\0secret"));
        ann.say(1, channel::Open { out_of_band: text("") });
        ann.hear();
        let consumer_tag = text("c");
        let (no_local, no_ack, exclusive, no_wait) = (false, false, false, false);
        let arguments = TableRef::default();
        ann.say(
            1,
            basic::Consume {
                ticket: 0,
                queue: text("q"),
                consumer_tag,
                no_local,
                no_ack,
                exclusive,
                no_wait,
                arguments,
            },
        );
        assert!(ann.hear().starts_with("BasicConsumeOk"));
        delete(&broker);
        for client in [&mut guest, &mut ann] {
            let told = client.hear();
            assert!(told.starts_with("ConnectionClose") && told.contains("reply_code: 320"), "{told}");
            assert!(told.contains("vhost 'shop' is deleted"), "{told}");
        }
        broker.run(&["vhost", "put", "shop"]).ok();
        let shown = get(&broker, "/api/vhosts/shop/permissions");
        assert_eq!(shown.as_array().map(Vec::len), Some(1), "nobody has permissions of before: {shown}");
        broker.run(&["vhost", "delete", "shop", "--yes"]).ok();
    }
}
