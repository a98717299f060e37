//! Consumers over AMQP.

use overtake_access::Tag;
use overtake_amqp::connection::ConsumerView;
use overtake_lane::QueueView;
use serde_json::{Value, json};

use crate::answer::Answer;
use crate::app::App;
use crate::ask::Ask;
use crate::connections::Connected;
use crate::paging;
use crate::queues;
use crate::routes::Routes;
use crate::sockets::channel_name;
use crate::tables;

pub(crate) fn routes(routes: Routes) -> Routes {
    routes.get(Tag::Management, "/api/consumers", list).get(Tag::Management, "/api/consumers/{vhost}", list)
}

/// The consumers of these connections in a virtual host: of these queues, or of all where none is given.
pub(crate) fn all(app: &App, connected: &[Connected], queues: &[QueueView], vhost: &str) -> Vec<Value> {
    let mut all = Vec::new();
    for one in connected.iter().filter(|one| one.looks.view.vhost == vhost) {
        for channel in &one.looks.view.channels {
            for consumer in &channel.consumers {
                let queue = queues.iter().find(|queue| *queue.name == *consumer.consume.queue);
                if queue.is_some() || queues.is_empty() {
                    let is_active = queue.is_none_or(|queue| is_served(queue, consumer, connected));
                    let mut shown = shown(app, one, channel.number, consumer, is_active);
                    if let Some(queue) = queue {
                        shown["consumer_timeout"] = queue.effective_settings().consumer_timeout_ms.into();
                    }
                    all.push(shown);
                }
            }
        }
    }
    all
}

/// Of a queue with a single active consumer it is the oldest of the highest priority, by what can be seen: one that was served
/// before a more urgent one came is served until it holds nothing.
fn is_served(queue: &QueueView, consumer: &ConsumerView, connected: &[Connected]) -> bool {
    if !queue.settings.single_active_consumer {
        return true;
    }
    let everybody = connected.iter().flat_map(|one| &one.looks.view.channels);
    let rivals = everybody.flat_map(|channel| &channel.consumers);
    let mut rivals = rivals.filter(|rival| rival.consume.queue == consumer.consume.queue);
    let rank = |one: &ConsumerView| (std::cmp::Reverse(one.consume.priority), one.id);
    rivals.all(|rival| rank(consumer) <= rank(rival))
}

fn shown(app: &App, one: &Connected, channel: u16, consumer: &ConsumerView, is_active: bool) -> Value {
    let consume = &consumer.consume;
    json!({
        "consumer_tag": consumer.tag,
        "queue": {"name": consume.queue, "vhost": one.looks.view.vhost},
        "ack_required": !consume.no_ack,
        "exclusive": consume.exclusive,
        "prefetch_count": consume.prefetch,
        "messages_unacknowledged": consumer.unacked,
        "priority": consume.priority,
        "arguments": tables::shown(consume.arguments.view()),
        "active": is_active,
        "activity_status": if is_active { "up" } else { "waiting" },
        "channel_details": {
            "name": channel_name(one, channel),
            "number": channel,
            "connection_name": one.caller.name(),
            "node": app.options.node,
            "peer_host": one.caller.peer.ip().to_string(),
            "peer_port": one.caller.peer.port(),
            "user": one.looks.user,
        },
    })
}

/// The consumers of the queues that may be seen.
async fn list(ask: Ask) -> Answer {
    let connected = ask.app.connections.look().await;
    let mut items = Vec::new();
    for desk in ask.desks().await? {
        let queues = queues::all(&desk).await?;
        if !queues.is_empty() {
            items.extend(all(&ask.app, &connected, &queues, desk.vhost()));
        }
    }
    paging::list(&ask, items)
}
