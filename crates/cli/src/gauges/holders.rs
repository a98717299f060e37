//! Who holds messages of a queue: what is leased, and the consumers over AMQP.

use jiff::Timestamp;
use serde::Deserialize;

/// What is leased, and who takes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Holders {
    /// Those whose leases end first, first; of many, those that were published last.
    pub(crate) held: Vec<Held>,
    /// Over AMQP; empty, too, where the user may not see them.
    pub(crate) consumers: Vec<Consumer>,
}

/// A message that is leased.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    pub(crate) id: String,
    pub(crate) lane: String,
    /// Since its publish, ms.
    pub(crate) age_ms: u64,
    /// Until its lease ends, ms; 0 where it should have; `None`: it ends with a connection.
    pub(crate) left_ms: Option<u64>,
    /// How often it was leased, this time included.
    pub(crate) attempt: u64,
}

/// A consumer.
#[derive(Clone, Debug)]
pub(crate) struct Consumer {
    pub(crate) tag: String,
    pub(crate) user: String,
    /// Address and port.
    pub(crate) peer: String,
    /// Most messages it holds at once; 0: any number.
    pub(crate) window: u64,
}

/// A page of `GET /v1/queues/{queue}/messages`.
#[derive(Deserialize)]
pub(super) struct PageIn {
    messages: Vec<MessageIn>,
}

#[derive(Deserialize)]
struct MessageIn {
    id: String,
    lane: String,
    published_at: Timestamp,
    deadline: Option<Timestamp>,
    delivery_count: u64,
}

/// `consumer_details` of `GET /api/queues/{vhost}/{queue}`.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct ConsumersIn {
    consumer_details: Vec<ConsumerIn>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ConsumerIn {
    consumer_tag: String,
    prefetch_count: u64,
    channel_details: ChannelIn,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ChannelIn {
    user: String,
    peer_host: String,
    peer_port: u16,
}

impl PageIn {
    /// As it is at `now`.
    pub(super) fn held(self, now: Timestamp) -> Vec<Held> {
        let ms = |later: Timestamp, sooner: Timestamp| {
            u64::try_from(later.as_millisecond() - sooner.as_millisecond()).unwrap_or(0)
        };
        let messages = self.messages.into_iter();
        let held = messages.map(|message| Held {
            id: message.id,
            lane: message.lane,
            age_ms: ms(now, message.published_at),
            left_ms: message.deadline.map(|deadline| ms(deadline, now)),
            attempt: message.delivery_count,
        });
        let mut held: Vec<_> = held.collect();
        held.sort_by_key(|held| held.left_ms.unwrap_or(u64::MAX));
        held
    }
}

impl ConsumersIn {
    pub(super) fn all(self) -> Vec<Consumer> {
        let consumers = self.consumer_details.into_iter();
        let consumer = |consumer: ConsumerIn| Consumer {
            tag: consumer.consumer_tag,
            user: consumer.channel_details.user,
            peer: format!("{}:{}", consumer.channel_details.peer_host, consumer.channel_details.peer_port),
            window: consumer.prefetch_count,
        };
        consumers.map(consumer).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_held_stands_in_the_order_in_which_its_leases_end() {
        let message = |id: &str, deadline: Option<&str>| {
            let at = "2026-11-22T10:00:00.000Z";
            let mut message = json!({"id": id, "lane": "9", "published_at": at, "delivery_count": 1});
            if let Some(deadline) = deadline {
                message["deadline"] = deadline.into();
            }
            message
        };
        let page = json!({"messages": [
            message("open", None),
            message("late", Some("2026-11-22T10:00:59Z")),
            message("soon", Some("2026-11-22T10:00:31.5Z")),
            message("over", Some("2026-11-22T10:00:29Z")),
        ]});
        let page: PageIn = serde_json::from_value(page).expect("a page");
        let held = page.held("2026-11-22T10:00:30Z".parse().expect("a time"));
        let seen: Vec<_> = held.iter().map(|held| (held.id.as_str(), held.age_ms, held.left_ms)).collect();
        assert_eq!(
            seen,
            [
                ("over", 30_000, Some(0)),
                ("soon", 30_000, Some(1_500)),
                ("late", 30_000, Some(29_000)),
                ("open", 30_000, None)
            ]
        );
    }
}
