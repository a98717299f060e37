//! Exchanges and bindings as they are shown.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use overtake_api::schema::{ExchangeKindSchema, HashOnSchema, HeadersMatchSchema};
use overtake_lane::{
    Binding, Destination, ExchangeKind, ExchangeSettings, ExchangeView, HashOn, HeaderValue, HeadersMatch,
};
use serde::Serialize;
use utoipa::ToSchema;

/// Every exchange.
#[derive(Serialize, ToSchema)]
#[schema(as = Exchanges)]
pub(crate) struct ExchangeList<'a> {
    /// By name.
    pub(crate) exchanges: Vec<ExchangeOut<'a>>,
}

/// An exchange.
#[derive(Serialize, ToSchema)]
#[schema(as = Exchange)]
pub(crate) struct ExchangeOut<'a> {
    /// Its name.
    name: &'a str,
    /// How it chooses queues.
    #[schema(value_type = ExchangeKindSchema)]
    kind: ExchangeKind,
    /// Whether it is there after a restart.
    durable: bool,
    /// Whether it goes with its last binding.
    auto_delete: bool,
    /// Whether nobody may publish to it.
    internal: bool,
    /// The exchange that gets what this one has no binding for.
    #[serde(skip_serializing_if = "Option::is_none")]
    alternate: Option<&'a str>,
    /// The alternate that holds, where it has none of its own and a policy gives it one.
    #[serde(skip_serializing_if = "Option::is_none")]
    effective_alternate: Option<&'a str>,
    /// The policy that applies to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    policy: Option<&'a str>,
    /// Whether what comes through it waits as long as it says itself.
    delayed: bool,
    /// By what it shares out, if it is a consistent-hash exchange.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<HashOnSchema>)]
    hash_on: Option<&'a HashOn>,
    /// What is remembered with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments_base64: Option<String>,
    /// How many bindings it has.
    bindings: usize,
}

impl<'a> ExchangeOut<'a> {
    pub(crate) fn of(view: &'a ExchangeView) -> Self {
        let ExchangeSettings { kind, durable, auto_delete, internal, delayed, .. } = view.settings;
        Self {
            name: &view.name,
            kind,
            durable,
            auto_delete,
            internal,
            alternate: view.settings.alternate.as_deref(),
            effective_alternate: view.alternate.as_deref().filter(|_| view.settings.alternate.is_none()),
            policy: view.policy.as_deref(),
            delayed,
            hash_on: (kind == ExchangeKind::ConsistentHash).then_some(&view.settings.hash_on),
            arguments_base64: base64(&view.settings.arguments),
            bindings: view.bindings,
        }
    }
}

fn base64(arguments: &[u8]) -> Option<String> {
    (!arguments.is_empty()).then(|| STANDARD.encode(arguments))
}

/// The bindings of an exchange.
#[derive(Serialize, ToSchema)]
#[schema(as = Bindings)]
pub(crate) struct BindingList<'a> {
    /// By where they lead.
    pub(crate) bindings: Vec<BindingOut<'a>>,
}

/// A queue or an exchange, and what the exchange gives it.
#[derive(Serialize, ToSchema)]
#[schema(as = Bound)]
pub(crate) struct BindingOut<'a> {
    /// The queue, if it leads to one.
    #[serde(skip_serializing_if = "Option::is_none")]
    queue: Option<&'a str>,
    /// The exchange, if it leads to one.
    #[serde(skip_serializing_if = "Option::is_none")]
    to_exchange: Option<&'a str>,
    /// The routing key, pattern or weight.
    routing_key: &'a str,
    /// For a headers exchange: what must be there.
    #[schema(value_type = Object)]
    headers: BTreeMap<&'a str, &'a HeaderValue>,
    /// For a headers exchange: one of them is enough.
    any: bool,
    /// For a headers exchange: how many of them.
    #[serde(rename = "match")]
    #[schema(value_type = HeadersMatchSchema)]
    matching: HeadersMatch,
    /// What is remembered with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments_base64: Option<String>,
}

impl<'a> BindingOut<'a> {
    pub(crate) fn of(binding: &'a Binding) -> Self {
        let Binding { exchange: _, to, routing_key, headers, matching, arguments } = binding;
        let (queue, to_exchange) = match to {
            Destination::Queue(name) => (Some(&**name), None),
            Destination::Exchange(name) => (None, Some(&**name)),
        };
        Self {
            queue,
            to_exchange,
            routing_key,
            headers: headers.iter().map(|(name, value)| (name.as_str(), value)).collect(),
            any: matches!(matching, HeadersMatch::Any | HeadersMatch::AnyWithX),
            matching: *matching,
            arguments_base64: base64(arguments),
        }
    }
}
