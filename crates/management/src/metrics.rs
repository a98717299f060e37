//! Numbers of each queue, connection and channel for Prometheus, by the families and names of RabbitMQ's
//! `/metrics/detailed`: only those that are asked for, since there may be many. And of each connection by ours.

use std::fmt::Write as _;

use axum::http::{HeaderValue, header};
use axum::response::IntoResponse;
use overtake_access::Tag;
use overtake_amqp::connection::ChannelView;
use overtake_lane::{LaneView, QueueView};
use overtake_telemetry::text;

use crate::answer::Answer;
use crate::ask::Ask;
use crate::connections::Connected;
use crate::rates::Counts;
use crate::routes::Routes;
use crate::sockets::channel_name;
use crate::{queues, sockets, telemetry};

pub(crate) fn routes(routes: Routes) -> Routes {
    routes.get(Tag::Monitoring, "/metrics/detailed", detailed).get(
        Tag::Monitoring,
        "/metrics/connections",
        connections,
    )
}

/// Every connection, channel and consumer by itself, under our own names.
async fn connections(ask: Ask) -> Answer {
    let text = text::render(&telemetry::each(&sockets::visible(&ask, None).await));
    Ok(([(header::CONTENT_TYPE, HeaderValue::from_static(text::CONTENT_TYPE))], text).into_response())
}

/// Family, name without `rabbitmq_detailed_`, kind, number.
type Metric<T> = (&'static str, &'static str, &'static str, fn(&T) -> u64);

const OF_QUEUES: [Metric<QueueView>; 13] = [
    ("queue_coarse_metrics", "queue_messages_ready", "gauge", |queue| Counts::of(queue).ready),
    ("queue_coarse_metrics", "queue_messages_unacked", "gauge", |queue| Counts::of(queue).unacked),
    ("queue_coarse_metrics", "queue_messages", "gauge", |queue| {
        let counts = Counts::of(queue);
        counts.ready + counts.unacked
    }),
    ("queue_consumer_count", "queue_consumers", "gauge", |queue| queue.consumers),
    ("queue_metrics", "queue_messages_bytes", "gauge", |queue| sum(queue, |lane| lane.bytes)),
    ("queue_metrics", "queue_messages_ready_bytes", "gauge", |queue| {
        sum(queue, |lane| lane.bytes - lane.leased_bytes)
    }),
    ("queue_metrics", "queue_messages_unacked_bytes", "gauge", |queue| sum(queue, |lane| lane.leased_bytes)),
    ("queue_metrics", "queue_messages_paged_out", "gauge", |queue| sum(queue, |lane| lane.spilled)),
    ("queue_metrics", "queue_messages_paged_out_bytes", "gauge", |queue| {
        sum(queue, |lane| lane.spilled_bytes)
    }),
    ("queue_delivery_metrics", "queue_messages_published_total", "counter", |queue| {
        Counts::of(queue).publish
    }),
    ("queue_delivery_metrics", "queue_messages_delivered_total", "counter", |queue| {
        Counts::of(queue).deliver
    }),
    ("queue_delivery_metrics", "queue_messages_redelivered_total", "counter", |queue| {
        Counts::of(queue).redeliver
    }),
    ("queue_delivery_metrics", "queue_messages_acked_total", "counter", |queue| Counts::of(queue).ack),
];

fn sum(queue: &QueueView, number: fn(&LaneView) -> u64) -> u64 {
    queue.lanes.iter().map(number).sum()
}

const OF_CONNECTIONS: [Metric<Connected>; 3] = [
    ("connection_coarse_metrics", "connection_incoming_bytes_total", "counter", |one| one.looks.received),
    ("connection_coarse_metrics", "connection_outgoing_bytes_total", "counter", |one| one.looks.sent),
    ("connection_metrics", "connection_channels", "gauge", |one| one.looks.view.channels.len() as u64),
];

const OF_CHANNELS: [Metric<ChannelView>; 4] = [
    ("channel_metrics", "channel_consumers", "gauge", |channel| channel.consumers.len() as u64),
    ("channel_metrics", "channel_messages_unacked", "gauge", |channel| channel.unacked as u64),
    ("channel_metrics", "channel_messages_unconfirmed", "gauge", |channel| channel.unconfirmed.into()),
    ("channel_metrics", "channel_prefetch", "gauge", |channel| channel.prefetch.into()),
];

/// What the parameters `family` and `vhost` ask for, each as often as there are some; without a family nothing is told.
async fn detailed(ask: Ask) -> Answer {
    let families: Vec<&str> = ask.params("family").collect();
    let vhosts: Vec<&str> = ask.params("vhost").collect();
    let is_wanted = |vhost: &str| vhosts.is_empty() || vhosts.contains(&vhost);
    let mut text = String::new();
    let mut queues = Vec::new();
    for desk in ask.desks().await? {
        if is_wanted(desk.vhost()) && OF_QUEUES.iter().any(|(family, ..)| families.contains(family)) {
            let of = |queue: QueueView| {
                (vec![("vhost", desk.vhost().to_string()), ("queue", queue.name.to_string())], queue)
            };
            queues.extend(queues::all(&desk).await?.into_iter().map(of));
        }
    }
    tell(&mut text, &families, &OF_QUEUES, &queues);
    let mut connected = sockets::visible(&ask, None).await;
    connected.retain(|one| is_wanted(&one.looks.view.vhost));
    let channels: Vec<_> = connected.iter().flat_map(channels_of).collect();
    let connected: Vec<_> =
        connected.into_iter().map(|one| (vec![("connection", one.caller.name())], one)).collect();
    tell(&mut text, &families, &OF_CONNECTIONS, &connected);
    tell(&mut text, &families, &OF_CHANNELS, &channels);
    let kind = HeaderValue::from_static("text/plain; version=0.0.4");
    Ok(([(header::CONTENT_TYPE, kind)], text).into_response())
}

fn channels_of(one: &Connected) -> Vec<(Labels, ChannelView)> {
    let of = |channel: &ChannelView| {
        let name = channel_name(one, channel.number);
        (vec![("channel", name), ("connection", one.caller.name())], channel.clone())
    };
    one.looks.view.channels.iter().map(of).collect()
}

type Labels = Vec<(&'static str, String)>;

fn tell<T>(text: &mut String, families: &[&str], metrics: &[Metric<T>], all: &[(Labels, T)]) {
    for (family, name, kind, number) in metrics {
        if !families.contains(family) {
            continue;
        }
        // Writing into a String does not fail.
        let _ = writeln!(text, "# TYPE rabbitmq_detailed_{name} {kind}");
        for (labels, one) in all {
            let labels: Vec<String> =
                labels.iter().map(|(label, value)| format!("{label}=\"{}\"", escaped(value))).collect();
            let _ = writeln!(text, "rabbitmq_detailed_{name}{{{}}} {}", labels.join(","), number(one));
        }
    }
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
