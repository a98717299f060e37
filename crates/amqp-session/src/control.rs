//! Messages to the exchange `overtake.control` are orders about messages that wait: another priority for them, or their end.
//!
//! The routing key says what to do, the body to what, in the words of the HTTP interface:
//!
//! | routing key | body |
//! |---|---|
//! | `reprioritise` | `{"queue": "jobs", "id": "a1", "priority": 9}` |
//! | `remove` | `{"queue": "jobs", "filter": {"key": "customer-7"}}` |
//!
//! Instead of an `id` there may be a `filter` (status, priority, key, headers, user_id), or `"all": true`, which an empty filter does not mean. An order is confirmed when it
//! is done and durable. With `reply_to` the answer is a message to that queue: `{"count": 3}`, or `{"error": …, "detail": …}`;
//! without it an order that cannot be done costs the channel. The answer is published on behalf of whoever gave the order, so `reply_to`
//! takes the right to write the default exchange, as a publish to that queue does; replies to the channel itself take none.

use bytes::Bytes;
use overtake_amqp::ReplyCode;
use overtake_amqp::connection::{Publish, Refused};
use overtake_engine::core::Request;
use overtake_engine::{Change, Content, Filter, NewMessage, Select, Target};
use overtake_lane::{Given, Status};
use overtake_properties::{Fields, Short};
use overtake_redact::{Strict, json_reason};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use crate::rights::Here;

/// Where orders go.
pub const EXCHANGE: &str = "overtake.control";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Order {
    queue: String,
    #[serde(default, deserialize_with = "said")]
    id: Option<String>,
    #[serde(default, deserialize_with = "said")]
    filter: Option<Wanted>,
    #[serde(default)]
    all: bool,
    #[serde(default, deserialize_with = "said")]
    priority: Option<Given>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    #[serde(default, deserialize_with = "said")]
    status: Option<Status>,
    #[serde(default, deserialize_with = "said")]
    priority: Option<Given>,
    #[serde(default, deserialize_with = "said")]
    key: Option<String>,
    #[serde(default)]
    headers: std::collections::BTreeMap<String, String>,
    #[serde(default, deserialize_with = "said")]
    user_id: Option<String>,
}

/// Decodes a field that may be left out, but not be `null`: one whose value was lost on its way would select more messages than were meant.
fn said<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    match Option::deserialize(deserializer)? {
        None => Err(D::Error::custom("expected a value, found null")),
        said => Ok(said),
    }
}

/// Whom an order is answered to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reply {
    to: String,
    /// Whether `to` is the queue of the channel's own replies.
    is_own: bool,
    correlation_id: Option<Bytes>,
}

/// Reads an order.
pub(crate) fn order(publish: &Publish) -> Result<Request, Refused> {
    let wrong = |why: String| Refused::because(ReplyCode::PreconditionFailed, format!("{EXCHANGE}: {why}"));
    let mut json = serde_json::Deserializer::from_slice(&publish.body);
    let Order { queue, id, filter, all, priority } =
        Order::deserialize(Strict(&mut json)).and_then(|order| json.end().map(|()| order)).map_err(
            |error| wrong(format!("the order is not understood: {}", json_reason(&error.to_string()))),
        )?;
    let select = match (id, filter, all) {
        (Some(id), None, false) => Select::Id(id),
        (None, Some(wanted), false) => {
            Select::matching(wanted.filter(), false).map_err(|unclear| wrong(unclear.to_string()))?
        }
        (None, None, true) => Select::Matching(Filter::default()),
        _ => return Err(wrong("one of id, filter and \"all\": true must say which messages".into())),
    };
    let change = |change| Request::Change { queue: queue.into(), select, change, only_start: true };
    match (&*publish.routing_key, priority) {
        (b"reprioritise", Some(priority)) => Ok(change(Change::Reprioritise(priority))),
        (b"reprioritise", None) => Err(wrong("reprioritise needs a priority".into())),
        (b"remove", None) => Ok(change(Change::Remove)),
        (b"remove", Some(_)) => Err(wrong("remove takes no priority".into())),
        _ => Err(wrong("the routing key must be reprioritise or remove".into())),
    }
}

impl Wanted {
    fn filter(self) -> Filter {
        let Self { status, priority, key, headers, user_id } = self;
        Filter { status, priority, key, headers: headers.into_iter().collect(), user_id, ..Filter::default() }
    }
}

impl Reply {
    /// Where the answer to a message is wanted.
    pub(crate) fn of(publish: &Publish, replies: Option<&str>) -> Option<Self> {
        let said = publish.properties.view();
        let to = said.reply_to()?.text()?;
        let is_own = to == crate::message::REPLY_TO;
        let to = if is_own { replies? } else { to };
        let correlation_id = said.correlation_id().map(|id| Bytes::copy_from_slice(id.as_bytes()));
        Some(Self { to: to.to_owned(), is_own, correlation_id })
    }

    /// Whether the client may publish the answer. Asked before the order is carried out, and again when the answer is published: rights
    /// may be others by then.
    pub(crate) fn judge(&self, here: &Here) -> Result<(), Refused> {
        if self.is_own { Ok(()) } else { here.judge(&self.target()) }
    }

    fn target(&self) -> Target {
        Target::Exchange {
            name: "".into(),
            routing_key: self.to.as_str().into(),
            more_keys: Vec::new(),
            mandatory: false,
        }
    }

    /// The answer.
    pub(crate) fn message(self, body: &serde_json::Value) -> NewMessage {
        let correlation_id = self.correlation_id.as_deref().and_then(Short::new);
        let content_type = Some(Short::literal("application/json"));
        let properties = Fields { content_type, correlation_id, ..Fields::default() }.encode();
        let content = Content { properties, body: body.to_string().into(), ..Content::default() };
        NewMessage { to: self.target(), content, ..NewMessage::default() }
    }
}
