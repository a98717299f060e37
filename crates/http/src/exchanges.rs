//! Exchanges: declare, list, delete, bind, and publish through them.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use overtake_access::Desk;
use overtake_api::body::{BindingIn, ExchangeIn, ExchangePublishIn, to_exchange};
use overtake_api::params::Params;
use overtake_api::raw;
use overtake_lane::{Binding, Destination};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::answer::PublishedList;
use crate::app::{Answer, App, done, json};
use crate::batch;
use crate::decode::{self, Json};
use crate::exchange_answer::{BindingList, BindingOut, ExchangeList, ExchangeOut};
use crate::login::At;
use crate::messages::limits;
use crate::named::named;
use crate::path::ExchangeName;
use crate::problem::Problem;
use crate::schema::RawBodySchema;
use crate::trace;

/// The paths of exchanges.
pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(list_exchanges))
        .routes(routes!(declare_exchange, show_exchange, delete_exchange))
        .routes(routes!(list_bindings, bind, unbind))
        .routes(routes!(publish_to_exchange))
}

/// Every exchange, by name.
#[utoipa::path(
    get, path = "/v1/exchanges", tag = "exchanges",
    responses((status = 200, description = "All", body = ExchangeList))
)]
async fn list_exchanges(At(desk): At) -> Answer {
    let all = desk.exchanges().await?;
    let exchanges = all.iter().map(ExchangeOut::of);
    json(StatusCode::OK, &ExchangeList { exchanges: exchanges.collect() })
}

/// Makes an exchange, or finds the one that is there and is the same but for its arguments.
#[utoipa::path(
    put, path = "/v1/exchanges/{exchange}", tag = "exchanges",
    params(("exchange" = String, Path, description = "Name, percent-encoded")),
    request_body = ExchangeIn,
    responses((status = 200, description = "It is there", body = ExchangeOut))
)]
async fn declare_exchange(
    At(desk): At,
    ExchangeName(name): ExchangeName,
    Json(ask): Json<ExchangeIn>,
) -> Answer {
    desk.declare_exchange(&name, ask.into_settings()?).await?;
    json(StatusCode::OK, &ExchangeOut::of(&desk.exchange(&name).await?))
}

/// One exchange.
#[utoipa::path(
    get, path = "/v1/exchanges/{exchange}", tag = "exchanges",
    params(("exchange" = String, Path, description = "Name, percent-encoded")),
    responses((status = 200, description = "The exchange", body = ExchangeOut))
)]
async fn show_exchange(At(desk): At, ExchangeName(name): ExchangeName) -> Answer {
    json(StatusCode::OK, &ExchangeOut::of(&desk.exchange(&name).await?))
}

/// Deletes an exchange with the bindings of it and to it. Queues and messages stay.
#[utoipa::path(
    delete, path = "/v1/exchanges/{exchange}", tag = "exchanges",
    params(
        ("exchange" = String, Path, description = "Name, percent-encoded"),
        ("if" = Option<String>, Query, description = "`unused`: only when it has no bindings of its own"),
    ),
    responses((status = 204, description = "Gone"))
)]
async fn delete_exchange(At(desk): At, ExchangeName(name): ExchangeName, params: Params) -> Answer {
    desk.delete_exchange(&name, params.into_if_unused()?).await?;
    done()
}

/// The bindings of an exchange.
#[utoipa::path(
    get, path = "/v1/exchanges/{exchange}/bindings", tag = "exchanges",
    params(("exchange" = String, Path, description = "Name, percent-encoded")),
    responses((status = 200, description = "All", body = BindingList))
)]
async fn list_bindings(At(desk): At, ExchangeName(name): ExchangeName) -> Answer {
    let bindings = desk.bindings(&name).await?;
    json(StatusCode::OK, &BindingList { bindings: bindings.iter().map(BindingOut::of).collect() })
}

/// Binds a queue or an exchange to an exchange. A binding that is there already stays.
#[utoipa::path(
    post, path = "/v1/exchanges/{exchange}/bindings", tag = "exchanges",
    params(("exchange" = String, Path, description = "Name, percent-encoded")),
    request_body = BindingIn,
    responses((status = 201, description = "Bound", body = BindingOut))
)]
async fn bind(At(desk): At, ExchangeName(name): ExchangeName, Json(ask): Json<BindingIn>) -> Answer {
    let binding = ask.into_binding(name)?;
    if let Err(not) = desk.bind(binding.clone()).await {
        return Err(not_bound(&desk, &binding, not.into()).await);
    }
    json(StatusCode::CREATED, &BindingOut::of(&binding))
}

/// The problem with the name of the end of the binding that is not there.
async fn not_bound(desk: &Desk, binding: &Binding, problem: Problem) -> Problem {
    let (Destination::Queue(to) | Destination::Exchange(to)) = &binding.to;
    let is_target =
        problem.0.body().code() == "no-such-queue" || desk.exchange(&binding.exchange).await.is_ok();
    named(problem, desk, if is_target { to } else { &binding.exchange }).await
}

/// Takes a binding away: the one that is the same in everything. With its last one an `auto_delete` exchange goes.
#[utoipa::path(
    delete, path = "/v1/exchanges/{exchange}/bindings", tag = "exchanges",
    params(("exchange" = String, Path, description = "Name, percent-encoded")),
    request_body = BindingIn,
    responses((status = 204, description = "Gone"))
)]
async fn unbind(At(desk): At, ExchangeName(name): ExchangeName, Json(ask): Json<BindingIn>) -> Answer {
    desk.unbind(ask.into_binding(name)?).await?;
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
    At(desk): At,
    State(app): State<Arc<App>>,
    ExchangeName(name): ExchangeName,
    request: Request,
) -> Answer {
    let headers = request.headers().clone();
    let body = decode::read(request, app.options.max_request_bytes).await?;
    let mut messages = if decode::is_json(&headers) {
        decode::decode::<ExchangePublishIn>(&body)?.into_messages(&name, limits(&app))?
    } else {
        let (mut message, routing) = raw::for_exchange(&headers, body, limits(&app))?;
        message.to = to_exchange(name, &routing.routing_key, None, routing.mandatory)?;
        vec![message]
    };
    trace::inherit(&headers, &mut messages);
    json(StatusCode::CREATED, &PublishedList::with_queues(batch::publish(&desk, messages).await?))
}
