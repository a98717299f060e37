//! The keys that common tools read, endpoint by endpoint, as their sources name them.

use std::time::Duration;

use overtake_amqp::connection::{
    ChannelCounts, ChannelView, Connection, ConnectionState, Consume, ConsumerView, Options,
};
use overtake_lane::{ConsumerId, Time};
use overtake_management::Looks;
use overtake_properties::Table;
use serde_json::{Value, json};

use crate::world::World;

/// The counters of a channel, all of them different.
const COUNTS: ChannelCounts = ChannelCounts {
    published: 100,
    confirmed: 90,
    returned: 2,
    dropped: 3,
    delivered: 40,
    delivered_no_ack: 20,
    got: 7,
    got_no_ack: 6,
    got_nothing: 5,
    redelivered: 4,
    acked: 30,
};

/// A connection with a channel and a consumer.
fn looks(counts: ChannelCounts, active_at: Time) -> Looks {
    let mut view = Connection::new(active_at, Options::default()).view();
    view.state = ConnectionState::Running;
    view.vhost = "/".to_owned();
    let consume = Consume {
        queue: "jobs".to_owned(),
        tag: "worker".to_owned(),
        prefetch: 10,
        shared: None,
        no_ack: false,
        exclusive: true,
        priority: 0,
        arguments: Table::default(),
    };
    let consumer =
        ConsumerView { id: ConsumerId(1), tag: "worker".to_owned(), consume, unacked: 3, delivered: 40 };
    view.channels = vec![ChannelView {
        number: 1,
        confirms: true,
        transactional: false,
        prefetch: 10,
        shares_prefetch: false,
        unacked: 3,
        counts,
        active_at,
        unconfirmed: 8,
        uncommitted: 0,
        uncommitted_acks: 0,
        is_closing: false,
        consumers: vec![consumer],
    }];
    Looks { user: "guest".to_owned(), view, received: 1_000, sent: 2_000 }
}

/// Tool, path, keys. Of a list its last item is meant: the exchange `x`.
const READ: &[(&str, &str, &str)] = &[
    (
        "kbudde/rabbitmq_exporter",
        "overview",
        "node rabbitmq_version erlang_version cluster_name object_totals.channels object_totals.connections \
         object_totals.consumers object_totals.queues object_totals.exchanges queue_totals.messages \
         queue_totals.messages_ready queue_totals.messages_unacknowledged message_stats.publish_details.rate \
         message_stats.deliver_details.rate",
    ),
    (
        "kbudde/rabbitmq_exporter",
        "queues",
        "vhost name durable state node idle_since messages_ready messages_unacknowledged messages \
         messages_ready_ram messages_unacknowledged_ram messages_ram messages_persistent message_bytes \
         message_bytes_ready message_bytes_unacknowledged message_bytes_ram message_bytes_persistent consumers \
         consumer_utilisation memory message_stats.publish message_stats.publish_details.rate \
         message_stats.deliver message_stats.deliver_details.rate message_stats.redeliver message_stats.ack \
         effective_policy_definition arguments",
    ),
    (
        "kbudde/rabbitmq_exporter",
        "exchanges",
        "vhost name message_stats.publish_in message_stats.publish_out",
    ),
    ("kbudde/rabbitmq_exporter", "channels", "vhost node name user state confirm transactional"),
    ("kbudde/rabbitmq_exporter", "connections", "vhost node peer_host user state channels recv_oct send_oct"),
    (
        "kbudde/rabbitmq_exporter",
        "nodes",
        "name uptime running mem_used mem_limit mem_alarm disk_free disk_free_alarm disk_free_limit fd_used \
         fd_total sockets_used sockets_total partitions",
    ),
    (
        "Datadog",
        "queues",
        "node name vhost active_consumers consumers consumer_utilisation memory messages messages_details.rate \
         messages_ready messages_ready_details.rate message_bytes messages_unacknowledged \
         messages_unacknowledged_details.rate message_stats.ack message_stats.ack_details.rate \
         message_stats.deliver message_stats.deliver_details.rate message_stats.deliver_get \
         message_stats.deliver_get_details.rate message_stats.publish message_stats.publish_details.rate \
         message_stats.redeliver message_stats.redeliver_details.rate",
    ),
    (
        "Datadog",
        "exchanges",
        "name vhost message_stats.publish_in message_stats.publish_in_details.rate message_stats.publish_out \
         message_stats.publish_out_details.rate",
    ),
    (
        "Datadog",
        "nodes",
        "name fd_used disk_free mem_used mem_limit run_queue sockets_used partitions running mem_alarm \
         disk_free_alarm",
    ),
    (
        "Telegraf",
        "queues",
        "name node vhost durable auto_delete consumers consumer_utilisation memory message_bytes \
         message_bytes_ready message_bytes_unacknowledged message_bytes_ram message_bytes_persistent messages \
         messages_ready messages_unacknowledged idle_since message_stats.ack_details.rate \
         message_stats.deliver_get_details.rate message_stats.redeliver_details.rate",
    ),
    (
        "Telegraf",
        "exchanges",
        "name vhost type internal durable auto_delete message_stats.publish_in_details.rate \
         message_stats.publish_out_details.rate",
    ),
    (
        "Telegraf",
        "nodes",
        "name disk_free disk_free_limit disk_free_alarm fd_total fd_used mem_limit mem_used mem_alarm proc_total \
         proc_used run_queue sockets_total sockets_used uptime running mem_used_details.rate \
         disk_free_details.rate fd_used_details.rate sockets_used_details.rate",
    ),
    (
        "rabbit-hole",
        "channels",
        "number name prefetch_count consumer_count messages_unacknowledged messages_unconfirmed \
         messages_uncommitted acks_uncommitted idle_since confirm transactional user vhost node \
         connection_details.name connection_details.peer_host connection_details.peer_port",
    ),
    (
        "rabbit-hole",
        "connections",
        "name node channels state type host port peer_host peer_port ssl protocol user vhost timeout frame_max \
         client_properties recv_oct send_oct recv_oct_details.rate send_oct_details.rate",
    ),
    ("Flower", "queues/%2F", "name messages messages_ready messages_unacknowledged consumers idle_since"),
    (
        "KEDA",
        "queues/%2F/jobs",
        "name messages messages_unacknowledged message_stats.publish_details.rate \
         message_stats.deliver_get_details.rate",
    ),
    (
        "the management page",
        "channels",
        "global_prefetch_count message_stats.publish_details.rate message_stats.confirm_details.rate \
         message_stats.return_unroutable_details.rate message_stats.drop_unroutable_details.rate \
         message_stats.deliver_get_details.rate message_stats.redeliver_details.rate \
         message_stats.ack_details.rate message_stats.get_empty_details.rate",
    ),
    (
        "the management page",
        "overview",
        "churn_rates.connection_created churn_rates.connection_created_details.rate \
         churn_rates.connection_closed churn_rates.connection_closed_details.rate",
    ),
    (
        "rabbitmqadmin",
        "consumers",
        "consumer_tag queue.name queue.vhost ack_required exclusive prefetch_count active \
         consumer_timeout channel_details.connection_name channel_details.number channel_details.peer_host",
    ),
    ("rabbitmqadmin", "vhosts", "name messages messages_ready messages_unacknowledged message_stats.publish"),
];

#[tokio::test]
async fn every_key_that_a_tool_reads_is_there() {
    let world = World::new().await;
    world.queue("jobs", "{}").await;
    world.put("/api/exchanges/%2F/x", r#"{"type":"fanout"}"#).await.expect(201);
    world.post("/api/exchanges/%2F/x/publish", r#"{"properties":{},"routing_key":"","payload":"a"}"#).await;
    world.connect(|| looks(COUNTS, Time(1_795_795_200_000)));
    world.advance(60_000);
    for (tool, path, keys) in READ {
        let all = world.get(&format!("/api/{path}")).await.expect(200).json;
        let item = all.as_array().map_or(&all, |all| all.last().expect("there is one"));
        for key in keys.split_whitespace() {
            let value = key.split('.').try_fold(item, |at, name| at.get(name));
            assert!(value.is_some_and(|value| !value.is_null()), "{tool} reads {key} of {path}: {item:#}");
        }
    }
}

#[tokio::test]
async fn a_channel_tells_what_it_carries_and_since_when_it_is_idle() {
    let world = World::new().await;
    world.queue("jobs", "{}").await;
    let active_at = Time(1_795_795_200_250);
    world.connect(move || looks(COUNTS, active_at));
    let name = "127.0.0.1:40000%20-%3E%20127.0.0.1:5672%20(1)";
    let channel = world.get(&format!("/api/channels/{name}")).await.expect(200).json;
    assert_eq!(channel["idle_since"], Value::Null, "something came just now");
    let stats = channel["message_stats"].as_object().expect("an object");
    let counters = stats.iter().filter(|(name, _)| !name.ends_with("_details"));
    assert_eq!(
        counters.map(|(name, count)| (name.clone(), count.clone())).collect::<Value>(),
        json!({
            "publish": 100, "confirm": 90, "return_unroutable": 2, "drop_unroutable": 3, "deliver_get": 73,
            "deliver": 40, "deliver_no_ack": 20, "get": 7, "get_no_ack": 6, "get_empty": 5, "redeliver": 4,
            "ack": 30,
        })
    );
    world.advance(2_000);
    assert_eq!(world.get("/api/channels").await.json[0]["idle_since"], "2026-11-27T16:00:00.250+00:00");
    let queue = world.get("/api/queues/%2F/jobs").await.expect(200).json;
    assert_eq!(queue["exclusive_consumer_tag"], "worker");
}

#[tokio::test]
async fn an_exchange_tells_what_came_and_what_went_on() {
    let world = World::new().await;
    world.queue("q", "{}").await;
    world.queue("r", "{}").await;
    world.put("/api/exchanges/%2F/x", r#"{"type":"fanout"}"#).await.expect(201);
    let stats = async |name: &str| {
        let exchange = world.get(&format!("/api/exchanges/%2F/{name}")).await.expect(200).json;
        (exchange["message_stats"]["publish_in"].clone(), exchange["message_stats"]["publish_out"].clone())
    };
    assert_eq!(stats("x").await, (Value::Null, Value::Null), "as in RabbitMQ, nothing was published");
    let publish = async || {
        let message = r#"{"properties":{},"routing_key":"","payload":"a"}"#;
        world.post("/api/exchanges/%2F/x/publish", message).await.expect(200)
    };
    publish().await;
    assert_eq!(stats("x").await, (json!(1), json!(0)));
    for queue in ["q", "r"] {
        world.post(&format!("/api/bindings/%2F/e/x/q/{queue}"), "{}").await.expect(201);
    }
    publish().await;
    assert_eq!(stats("x").await, (json!(2), json!(2)));
    world.publish("q", "a b").await;
    assert_eq!(stats("amq.default").await, (json!(2), json!(2)));
}

/// Publishes, and has a channel and a connection carry more each time somebody looks, until all of them have a rate.
#[tokio::test]
async fn what_grows_has_a_rate_once_it_is_watched() {
    let world = World::sampled_every(Duration::from_millis(1)).await;
    world.queue("q", "{}").await;
    let mut grown = 0;
    world.connect(move || {
        grown += 1;
        let counts = ChannelCounts { acked: grown, ..COUNTS };
        Looks { received: grown, ..looks(counts, Time(0)) }
    });
    let rates = [
        ("exchanges/%2F/amq.default", "/message_stats/publish_in_details/rate"),
        ("queues/%2F/q", "/message_stats/publish_details/rate"),
        ("vhosts/%2F", "/message_stats/publish_details/rate"),
        ("channels", "/0/message_stats/ack_details/rate"),
        ("connections", "/0/recv_oct_details/rate"),
    ];
    for (path, rate) in rates {
        loop {
            world.publish("q", "a").await;
            let shown = world.get(&format!("/api/{path}")).await.expect(200).json;
            if shown.pointer(rate).and_then(Value::as_f64).expect("a rate") > 0.0 {
                break;
            }
        }
    }
}
