//! Exchanges: declare, list, delete, bind, and publish through them.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use overtake_engine::Engine;
use overtake_lane::{Binding, Exchange, ExchangeKind, Refusal};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::answer::PublishedList;
use crate::app::{Answer, App, done, json};
use crate::batch;
use crate::decode::{self, Json};
use crate::messages::limits;
use crate::path::ExchangeName;
use crate::problem::Problem;
use crate::raw;
use crate::schema::{ExchangeKindSchema, RawBodySchema};
use crate::wire::{BindingIn, ExchangeIn, ExchangePublishIn, to_exchange};

/// The paths of exchanges.
pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(list_exchanges))
        .routes(routes!(declare_exchange, delete_exchange))
        .routes(routes!(list_bindings, bind, unbind))
        .routes(routes!(publish_to_exchange))
}

/// Every exchange.
#[derive(Serialize, ToSchema)]
#[schema(as = Exchanges)]
struct ExchangeList<'a> {
    /// By name.
    exchanges: Vec<ExchangeOut<'a>>,
}

/// An exchange.
#[derive(Serialize, ToSchema)]
#[schema(as = Exchange)]
struct ExchangeOut<'a> {
    /// Its name.
    name: &'a str,
    /// How it chooses queues.
    #[schema(value_type = ExchangeKindSchema)]
    kind: ExchangeKind,
    /// How many bindings it has.
    bindings: usize,
}

/// The bindings of an exchange.
#[derive(Serialize, ToSchema)]
#[schema(as = Bindings)]
struct BindingList<'a> {
    /// By queue.
    bindings: Vec<BindingOut<'a>>,
}

/// A queue, and what the exchange gives it.
#[derive(Serialize, ToSchema)]
#[schema(as = BoundQueue)]
struct BindingOut<'a> {
    /// The queue.
    queue: &'a str,
    /// The routing key or pattern.
    routing_key: &'a str,
    /// For a headers exchange: what must be there.
    #[schema(value_type = Object)]
    headers: BTreeMap<&'a str, &'a str>,
    /// For a headers exchange: one of them is enough.
    any: bool,
}

impl<'a> BindingOut<'a> {
    fn of(binding: &'a Binding) -> Self {
        let Binding { exchange: _, queue, routing_key, headers, any } = binding;
        let headers = headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        Self { queue, routing_key, headers, any: *any }
    }
}

async fn find(engine: &dyn Engine, name: &str) -> Result<Exchange, Problem> {
    let found = engine.exchanges().await?.into_iter().find(|(there, _)| **there == *name);
    found.map(|(_, exchange)| exchange).ok_or_else(|| Refusal::NoSuchExchange.into())
}

/// Every exchange, by name.
#[utoipa::path(
    get, path = "/v1/exchanges", tag = "exchanges",
    responses((status = 200, description = "All", body = ExchangeList))
)]
async fn list_exchanges(State(app): State<Arc<App>>) -> Answer {
    let all = app.engine.exchanges().await?;
    let one =
        |(name, exchange): &'_ (Arc<str>, Exchange)| (name.clone(), exchange.kind, exchange.bindings.len());
    let all: Vec<_> = all.iter().map(one).collect();
    let exchanges =
        all.iter().map(|(name, kind, bindings)| ExchangeOut { name, kind: *kind, bindings: *bindings });
    json(StatusCode::OK, &ExchangeList { exchanges: exchanges.collect() })
}

/// Makes an exchange, or finds the one of the same kind that is there.
#[utoipa::path(
    put, path = "/v1/exchanges/{exchange}", tag = "exchanges",
    params(("exchange" = String, Path, description = "Name, percent-encoded")),
    request_body = ExchangeIn,
    responses((status = 200, description = "It is there", body = ExchangeOut))
)]
async fn declare_exchange(
    State(app): State<Arc<App>>,
    ExchangeName(name): ExchangeName,
    Json(ExchangeIn { kind }): Json<ExchangeIn>,
) -> Answer {
    app.engine.declare_exchange(&name, kind).await?;
    let bindings = find(&*app.engine, &name).await?.bindings.len();
    json(StatusCode::OK, &ExchangeOut { name: &name, kind, bindings })
}

/// Deletes an exchange with its bindings. Queues and messages stay.
#[utoipa::path(
    delete, path = "/v1/exchanges/{exchange}", tag = "exchanges",
    params(("exchange" = String, Path, description = "Name, percent-encoded")),
    responses((status = 204, description = "Gone"))
)]
async fn delete_exchange(State(app): State<Arc<App>>, ExchangeName(name): ExchangeName) -> Answer {
    app.engine.delete_exchange(&name).await?;
    done()
}

/// The bindings of an exchange.
#[utoipa::path(
    get, path = "/v1/exchanges/{exchange}/bindings", tag = "exchanges",
    params(("exchange" = String, Path, description = "Name, percent-encoded")),
    responses((status = 200, description = "All", body = BindingList))
)]
async fn list_bindings(State(app): State<Arc<App>>, ExchangeName(name): ExchangeName) -> Answer {
    let exchange = find(&*app.engine, &name).await?;
    json(StatusCode::OK, &BindingList { bindings: exchange.bindings.iter().map(BindingOut::of).collect() })
}

/// Binds a queue to an exchange. A binding that is there already stays.
#[utoipa::path(
    post, path = "/v1/exchanges/{exchange}/bindings", tag = "exchanges",
    params(("exchange" = String, Path, description = "Name, percent-encoded")),
    request_body = BindingIn,
    responses((status = 201, description = "Bound", body = BindingOut))
)]
async fn bind(
    State(app): State<Arc<App>>,
    ExchangeName(name): ExchangeName,
    Json(ask): Json<BindingIn>,
) -> Answer {
    let binding = ask.into_binding(name)?;
    app.engine.bind(binding.clone()).await?;
    json(StatusCode::CREATED, &BindingOut::of(&binding))
}

/// Takes a binding away: the one that is the same in everything.
#[utoipa::path(
    delete, path = "/v1/exchanges/{exchange}/bindings", tag = "exchanges",
    params(("exchange" = String, Path, description = "Name, percent-encoded")),
    request_body = BindingIn,
    responses((status = 204, description = "Gone"))
)]
async fn unbind(
    State(app): State<Arc<App>>,
    ExchangeName(name): ExchangeName,
    Json(ask): Json<BindingIn>,
) -> Answer {
    app.engine.unbind(ask.into_binding(name)?).await?;
    done()
}

/// Publishes through an exchange; answers once every copy is durable.
///
/// A message that no queue is bound for is dropped and missing in the answer, unless it is `mandatory`. Many are published
/// all or none; of a refusal `key` says which message is at fault, as in `messages[3]`. Raw bodies as for a queue, with the
/// headers `Overtake-Routing-Key` and `Overtake-Mandatory`.
#[utoipa::path(
    post, path = "/v1/exchanges/{exchange}/messages", tag = "exchanges",
    params(("exchange" = String, Path, description = "Name, percent-encoded")),
    request_body(content((ExchangePublishIn = "application/json"), (RawBodySchema = "application/octet-stream"))),
    responses((status = 201, description = "Durable: one entry per copy", body = PublishedList))
)]
async fn publish_to_exchange(
    State(app): State<Arc<App>>,
    ExchangeName(name): ExchangeName,
    request: Request,
) -> Answer {
    decode::refuse_query(request.uri().query())?;
    let headers = request.headers().clone();
    let body = decode::read(request, app.options.max_request_bytes).await?;
    let messages = if decode::is_json(&headers) {
        decode::decode::<ExchangePublishIn>(&body)?.into_messages(&name, limits(&app))?
    } else {
        let (mut message, routing) = raw::for_exchange(&headers, body, limits(&app))?;
        message.to = to_exchange(name, &routing.routing_key, routing.mandatory)?;
        vec![message]
    };
    json(StatusCode::CREATED, &PublishedList::with_queues(batch::publish(&*app.engine, messages).await?))
}
