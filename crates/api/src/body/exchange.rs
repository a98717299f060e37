//! Bodies that declare an exchange, or bind to one.

use std::sync::Arc;

use base64::Engine as _;
use overtake_lane::{Binding, Destination, ExchangeKind, ExchangeSettings, HashOn, HeadersMatch};
use serde::Deserialize;
use utoipa::ToSchema;

use super::message::{BASE64, check_short};
use super::{HeadersIn, check_headers};
use crate::name::checked_queue;
use crate::problem::Problem;
use crate::schema::{ExchangeKindSchema, HashOnSchema, HeadersMatchSchema};

/// What an exchange is.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ExchangeSettings)]
pub struct ExchangeIn {
    /// How it chooses queues.
    #[schema(value_type = ExchangeKindSchema)]
    kind: ExchangeKind,
    /// Whether it is there after a restart, with its bindings.
    #[serde(default = "yes")]
    #[schema(default = true)]
    durable: bool,
    /// Whether it goes with its last binding.
    #[serde(default)]
    auto_delete: bool,
    /// Whether nobody may publish to it: it gets what other exchanges give it.
    #[serde(default)]
    internal: bool,
    /// The exchange that gets what this one has no binding for.
    alternate: Option<String>,
    /// Whether what comes through it waits as long as its header `x-delay` says, in ms.
    #[serde(default)]
    delayed: bool,
    /// By what a consistent-hash exchange shares out.
    #[serde(default)]
    #[schema(value_type = Option<HashOnSchema>)]
    hash_on: HashOn,
    /// Bytes that are remembered with it, in base64.
    arguments_base64: Option<String>,
}

fn yes() -> bool {
    true
}

impl ExchangeIn {
    /// Converts the body to the settings of the model.
    ///
    /// # Errors
    /// 422 for an alternate exchange whose name no exchange can have, and for arguments that are not base64.
    pub fn into_settings(self) -> Result<ExchangeSettings, Problem> {
        let Self { kind, durable, auto_delete, internal, alternate, delayed, hash_on, arguments_base64 } =
            self;
        let alternate = alternate.map(|name| checked_queue(&name, "alternate").map(Arc::from)).transpose()?;
        let arguments = arguments(arguments_base64)?;
        Ok(ExchangeSettings { kind, durable, auto_delete, internal, alternate, delayed, hash_on, arguments })
    }
}

/// A binding of a queue, or of another exchange, to the exchange in the path.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Binding)]
pub struct BindingIn {
    /// The queue. One of `queue` and `to_exchange` must be there.
    queue: Option<String>,
    /// The exchange that gets what comes here.
    to_exchange: Option<String>,
    /// The routing key; for a topic exchange a pattern of words between dots: `*` is one word, `#` any number; for a
    /// consistent-hash exchange its weight, a whole number from 1.
    #[serde(default)]
    routing_key: String,
    /// For a headers exchange: what must be there, of the same type; null: whatever it holds.
    #[serde(default)]
    #[schema(value_type = Object)]
    headers: HeadersIn<true>,
    /// For a headers exchange: one of them is enough. The same as `match` of `any`.
    #[serde(default)]
    any: bool,
    /// For a headers exchange: how many of them; without it `all`.
    #[serde(rename = "match")]
    #[schema(value_type = Option<HeadersMatchSchema>)]
    matching: Option<HeadersMatch>,
    /// Bytes that are a part of the binding, in base64.
    arguments_base64: Option<String>,
}

impl BindingIn {
    /// Converts the body to a binding of the model, from `exchange`.
    ///
    /// # Errors
    /// 422 for a name, routing key, headers or arguments that no binding can have.
    pub fn into_binding(self, exchange: Arc<str>) -> Result<Binding, Problem> {
        let Self { queue, to_exchange, routing_key, headers: HeadersIn(headers), any, matching, .. } = self;
        let to = destination(queue, to_exchange)?;
        check_short("routing_key", &routing_key)?;
        check_headers(&headers)?;
        let matching = match (any, matching) {
            (true, None) => HeadersMatch::Any,
            (false, matching) => matching.unwrap_or_default(),
            (true, Some(_)) => return Err(Problem::bad_value("any", "give one of `any` and `match`")),
        };
        let (headers, arguments) = (headers.into_iter().collect(), arguments(self.arguments_base64)?);
        Ok(Binding { exchange, to, routing_key, headers, matching, arguments })
    }
}

fn destination(queue: Option<String>, to_exchange: Option<String>) -> Result<Destination, Problem> {
    match (queue, to_exchange) {
        (Some(queue), None) => Ok(Destination::Queue(checked_queue(&queue, "queue")?.into())),
        (None, Some(exchange)) => Ok(Destination::Exchange(checked_queue(&exchange, "to_exchange")?.into())),
        _ => Err(Problem::bad_value("queue", "give one of `queue` and `to_exchange`")),
    }
}

fn arguments(base64: Option<String>) -> Result<Vec<u8>, Problem> {
    let bytes = base64.map(|text| BASE64.decode(text)).transpose();
    let bytes = bytes.map_err(|_| Problem::bad_value("arguments_base64", "not base64"))?;
    Ok(bytes.unwrap_or_default())
}
