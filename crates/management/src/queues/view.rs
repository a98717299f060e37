//! A queue in RabbitMQ's shape.

use overtake_lane::{LaneView, QueueView};
use serde_json::{Map, Value, json};

use crate::app::App;
use crate::idle;
use crate::policies::Definitions;
use crate::rates::Counts;
use crate::tables;

/// A queue as it is now. Delayed messages wait, so they count as ready; dead letters that are kept are ours alone.
pub(crate) fn shown(app: &App, vhost: &str, queue: &QueueView, policies: &Definitions) -> Value {
    let counts = Counts::of(queue);
    let samples = app.rates.queue(queue.queue);
    let sum = |number: fn(&LaneView) -> u64| queue.lanes.iter().map(number).sum::<u64>();
    let (bytes, messages) = (sum(|lane| lane.bytes), counts.ready + counts.unacked);
    let (leased_bytes, spilled) = (sum(|lane| lane.leased_bytes), sum(|lane| lane.spilled));
    let spilled_bytes = sum(|lane| lane.spilled_bytes);
    let capacity = if counts.consumers == 0 { 0.0 } else { samples.capacity(&counts) };
    let lasting = if queue.identity.is_lasting() { (messages, bytes) } else { (0, 0) };
    let is_shared = !queue.effective_settings().single_active_consumer;
    let active_consumers = if is_shared { counts.consumers } else { counts.consumers.min(1) };
    let mut shown = json!({
        "name": queue.name,
        "vhost": vhost,
        "node": app.options.node,
        "type": "classic",
        "state": "running",
        "durable": queue.identity.durable,
        "auto_delete": queue.identity.auto_delete,
        "exclusive": queue.identity.exclusive,
        "arguments": tables::remembered(&queue.identity.arguments),
        "policy": queue.policy,
        "operator_policy": queue.operator_policy,
        "effective_policy_definition": policies.effective(queue),
        "consumers": counts.consumers,
        "active_consumers": active_consumers,
        "consumer_capacity": capacity,
        "consumer_utilisation": capacity,
        "memory": bytes - spilled_bytes,
        "message_bytes": bytes,
        "message_bytes_ready": bytes - leased_bytes,
        "message_bytes_unacknowledged": leased_bytes,
        "message_bytes_ram": bytes - spilled_bytes,
        "message_bytes_paged_out": spilled_bytes,
        "messages_ram": messages - spilled,
        "messages_ready_ram": counts.ready - spilled,
        "messages_unacknowledged_ram": counts.unacked,
        "messages_paged_out": spilled,
        "message_bytes_persistent": lasting.1,
        "messages_persistent": lasting.0,
        "storage_version": 2,
        "messages_by_priority": by_priority(queue),
        "messages_delayed": sum(|lane| lane.delayed),
        "messages_dead": sum(|lane| lane.dead),
        "oldest_age_ms": queue.lanes.iter().map(|lane| lane.oldest_age_ms).max().unwrap_or_default(),
        "backing_queue_status": {
            "mode": "default",
            "len": counts.ready,
            "priority_lengths": lengths(queue),
        },
    });
    idle::show(&mut shown, app, queue.active_at);
    let fields = shown.as_object_mut().expect("it was made an object");
    fields.extend(samples.stocks(&counts));
    fields.insert("message_stats".to_owned(), samples.flows(&counts));
    shown
}

/// What each priority has, by its name in the queue's scheme.
fn by_priority(queue: &QueueView) -> Value {
    let lane = |lane: &LaneView| {
        let shown = json!({
            "messages": lane.ready + lane.delayed + lane.leased,
            "messages_ready": lane.ready,
            "messages_delayed": lane.delayed,
            "messages_unacknowledged": lane.leased,
            "messages_dead": lane.dead,
            "message_bytes": lane.bytes,
            "message_bytes_ready": lane.bytes - lane.leased_bytes,
            "message_bytes_unacknowledged": lane.leased_bytes,
            "oldest_age_ms": lane.oldest_age_ms,
        });
        (lane.lane.to_string(), shown)
    };
    queue.lanes.iter().map(lane).collect::<Map<_, _>>().into()
}

/// How many wait of each priority, as RabbitMQ shows it.
fn lengths(queue: &QueueView) -> Value {
    let lanes = queue.lanes.iter();
    lanes
        .map(|lane| (lane.lane.to_string(), (lane.ready + lane.delayed).into()))
        .collect::<Map<_, _>>()
        .into()
}
