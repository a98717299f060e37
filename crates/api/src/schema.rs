//! Schemas of the model's types for the OpenAPI document. The model derives none, so that it does not depend on `utoipa`.

use serde::Serialize;
use utoipa::ToSchema;

/// A priority: a whole number, or a name where the queue's scheme has names.
#[derive(ToSchema, Serialize)]
#[serde(untagged)]
#[schema(as = Priority)]
pub enum PrioritySchema {
    /// A whole number.
    Number(i64),
    /// A name, in any case.
    Name(String),
}

/// Where in its life a message stands.
#[derive(ToSchema, Serialize)]
#[serde(rename_all = "snake_case")]
#[schema(as = Status)]
pub enum StatusSchema {
    /// The message waits in its lane.
    Ready,
    /// The message is in no lane until it is due.
    Delayed,
    /// A consumer works on the message.
    Leased,
    /// The message is a dead letter.
    Dead,
}

/// How an exchange chooses queues.
#[derive(ToSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
#[schema(as = ExchangeKind)]
pub enum ExchangeKindSchema {
    /// Bindings whose key is the routing key.
    Direct,
    /// All bindings.
    Fanout,
    /// Bindings whose key, a pattern of words between dots, matches the routing key: `*` is one word, `#` any number of words.
    Topic,
    /// Bindings whose headers the message has: all of the headers or one, as the `match` of the binding says.
    Headers,
    /// One binding, always the same for the same `hash_on`. The key of a binding is its weight.
    ConsistentHash,
}

/// How many of its headers a binding of a headers exchange wants.
#[derive(ToSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
#[schema(as = HeadersMatch)]
pub enum HeadersMatchSchema {
    /// All headers, except those whose name begins with `x-`.
    All,
    /// One header, whose name does not begin with `x-`.
    Any,
    /// All headers, including those whose name begins with `x-`.
    AllWithX,
    /// One header, whatever its name.
    AnyWithX,
}

/// By what a consistent-hash exchange shares out: `"routing_key"`, `{"header":name}`, or `{"property":name}`, which is
/// `message_id`, `correlation_id` or `timestamp`.
#[derive(ToSchema, Serialize)]
#[serde(rename_all = "snake_case")]
#[schema(as = HashOn)]
pub enum HashOnSchema {
    /// The first routing key.
    RoutingKey,
    /// The header of this name.
    Header(String),
    /// A property of AMQP messages.
    Property(String),
}
