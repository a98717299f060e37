//! Routes: what a virtual host has of them, trying them out, and publishing into them.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use overtake_access::Desk;
use overtake_api::body::{MessageIn, PublishIn, to_exchange};
use overtake_api::params::Params;
use overtake_api::raw;
use overtake_engine::{
    Clock, Letter, NewMessage, ROUTES_EXCHANGE, RouteSet, RoutesView, Sender, SystemClock, Target, path_of,
};
use overtake_lane::{Refusal, Scheme};
use overtake_routes::{Manifest, NamedRoute, Reading, RouteId, RouteTable, Routing, Sink, Truth, diff};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::answer::PublishedList;
use crate::app::{Answer, App, json, json_text};
use crate::batch;
use crate::decode::{self, Json};
use crate::login::At;
use crate::messages::limits;
use crate::named;
use crate::path::TopicPath;
use crate::problem::Problem;
use crate::schema::RawBodySchema;
use crate::trace;

/// The paths of routes.
pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(show_routes, set_routes))
        .routes(routes!(show_manifest))
        .routes(routes!(test_routes))
        .routes(routes!(publish_to_topic))
}

/// The routes of a virtual host.
#[derive(Serialize, ToSchema)]
#[schema(as = Routes)]
struct RoutesOut<'a> {
    /// The version of the manifest's format.
    schema_version: String,
    /// How long copies live where their route says nothing, seconds; missing: as their queue says.
    #[serde(skip_serializing_if = "Option::is_none")]
    ttl_secs: Option<u32>,
    /// Messages that came since the broker was started.
    published: u64,
    /// Those that no route matched.
    unrouted: u64,
    /// Those that only fallback routes matched.
    fallback: u64,
    /// By urgency, then by name.
    routes: Vec<RouteOut<'a>>,
    /// Where copies go.
    endpoints: Vec<RouteEndpointOut>,
}

/// A route.
#[derive(Serialize, ToSchema)]
#[schema(as = Route)]
struct RouteOut<'a> {
    /// Its name.
    name: &'a str,
    /// The route in its canonical form.
    route: String,
    /// 0 to 9, 0 is the most urgent; missing: after all that say something.
    #[serde(skip_serializing_if = "Option::is_none")]
    priority: Option<u8>,
    /// How long its copies live, seconds; missing: as their queue says.
    #[serde(skip_serializing_if = "Option::is_none")]
    ttl_secs: Option<u32>,
    /// It counts only for messages that no other route matches.
    fallback: bool,
    /// The queue its copies go into.
    queue: &'a str,
    /// Messages that it matched.
    matched: u64,
    /// Messages for which its condition was undefined.
    undefined: u64,
    /// Copies that it decided on.
    copies: u64,
}

/// A queue that routes put copies into.
#[derive(Serialize, ToSchema)]
#[schema(as = RouteEndpoint)]
struct RouteEndpointOut {
    /// The queue.
    queue: String,
    /// Whether it is there: a copy for one that is not is left out.
    exists: bool,
    /// Its lanes, the most urgent first.
    lanes: Vec<RouteEndpointLaneOut>,
}

/// A lane of an endpoint.
#[derive(Serialize, ToSchema)]
#[schema(as = RouteEndpointLane)]
struct RouteEndpointLaneOut {
    /// `ENDPOINT_PriN`, or the endpoint's own name for what says nothing; in a queue of another scheme than `route` the name of the lane. For
    /// people: lanes are told apart by `queue` and `lane`.
    name: String,
    /// The lane.
    lane: String,
    /// Messages ready.
    ready: u64,
    /// Messages leased.
    leased: u64,
    /// Messages whose time to live was over.
    expired: u64,
}

/// What changes with a manifest.
#[derive(Serialize, ToSchema)]
struct RoutesChanged {
    /// Whether it was set.
    applied: bool,
    /// Each change, in words.
    changes: Vec<String>,
    /// Each key of the manifest that says nothing about routes and was passed over, and each part of a condition that is probably a slip, in words.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
}

/// A message to try routes with.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct RouteTest {
    /// The path that it comes from.
    path: String,
    /// The message.
    #[serde(default)]
    message: MessageIn,
    /// Another manifest than the one that holds.
    #[schema(value_type = Option<Object>)]
    manifest: Option<serde_json::Value>,
}

/// What routes do with a message.
#[derive(Serialize, ToSchema)]
struct RouteTestOut {
    /// Every route, by urgency, then by name.
    routes: Vec<RouteTestedOut>,
    /// The copies that are made, the most urgent first.
    copies: Vec<RouteCopyOut>,
    /// Only fallback routes matched.
    fallback: bool,
}

/// What a route says to a message.
#[derive(Serialize, ToSchema)]
struct RouteTestedOut {
    /// Its name.
    name: String,
    /// `matches`, `does-not-match`, `undefined`, or `other-source`: it is for messages from elsewhere.
    says: &'static str,
    /// The part of its condition that decides it.
    #[serde(skip_serializing_if = "Option::is_none")]
    expression: Option<String>,
    /// Why.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
}

/// A copy that is made of a message.
#[derive(Serialize, ToSchema)]
struct RouteCopyOut {
    /// The route that makes it.
    route: String,
    /// The queue it goes into.
    queue: String,
    /// 0 to 9, 0 is the most urgent; missing: after all that say something.
    #[serde(skip_serializing_if = "Option::is_none")]
    priority: Option<u8>,
    /// How long it lives, seconds; missing: as its queue says.
    #[serde(skip_serializing_if = "Option::is_none")]
    ttl_secs: Option<u32>,
    /// `true`: the queue is not there, so the copy is left out.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    left_out: bool,
}

/// The routes of the virtual host, what they did, and where their copies are.
#[utoipa::path(
    get, path = "/v1/routes", tag = "routes",
    responses((status = 200, description = "All", body = RoutesOut))
)]
async fn show_routes(At(desk): At) -> Answer {
    let view = desk.routes().await?;
    let mut endpoints = Vec::new();
    for sink in view.set.table().sinks() {
        endpoints.push(endpoint(&desk, sink).await?);
    }
    endpoints.sort_by(|one, other| one.queue.cmp(&other.queue));
    endpoints.dedup_by(|one, other| one.queue == other.queue);
    json(StatusCode::OK, &shown(&view, endpoints))
}

/// The routes of the virtual host as a manifest, in its one form: set again it changes nothing.
#[utoipa::path(
    get, path = "/v1/routes/manifest", tag = "routes",
    responses((status = 200, description = "The manifest", body = Object))
)]
async fn show_manifest(At(desk): At) -> Answer {
    let view = desk.routes().await?;
    Ok(json_text(StatusCode::OK, view.set.manifest().to_json()))
}

/// Sets the routes of the virtual host, in place of those there are: whole or not at all.
///
/// The manifest is that of IoT Edge's hub, bare, in a whole deployment or in a twin, as JSON, or as TOML with `Content-Type: application/toml`. Queues of
/// endpoints are made; a `Queue(…)` must be there. What is stored already stays as it is. For policymakers.
#[utoipa::path(
    put, path = "/v1/routes", tag = "routes",
    params(("check" = Option<bool>, Query, description = "`true`: only say what would change")),
    request_body(content((Object = "application/json"), (String = "application/toml"))),
    responses((status = 200, description = "They are set", body = RoutesChanged))
)]
async fn set_routes(
    At(desk): At,
    State(app): State<Arc<App>>,
    mut params: Params,
    request: Request,
) -> Answer {
    let only_check = params.take_flag("check")?;
    let media_type = request.headers().get(header::CONTENT_TYPE).cloned();
    let is_toml = media_type.is_some_and(|value| value.as_bytes().starts_with(b"application/toml"));
    let body = decode::read(request, app.options.max_request_bytes).await?;
    let text =
        std::str::from_utf8(&body).map_err(|_| Problem::bad_value("", "a manifest is text in UTF-8"))?;
    let read = if is_toml { Reading::from_toml(text) } else { Reading::from_json(text) };
    let Reading { manifest, notes } = read.map_err(|error| not_a_manifest(&error))?;
    must_lead_somewhere(&desk, &manifest).await?;
    let before = desk.routes().await?;
    let changes = diff(before.set.manifest(), &manifest).iter().map(ToString::to_string).collect();
    if !only_check {
        desk.set_routes(RouteSet::new(manifest)).await?;
    }
    json(StatusCode::OK, &RoutesChanged { applied: !only_check, changes, notes })
}

/// Says for a message which routes match it, which do not and why, and which copies would be made. Nothing is published.
#[utoipa::path(
    post, path = "/v1/routes/test", tag = "routes",
    request_body = RouteTest,
    responses((status = 200, description = "What would be done", body = RouteTestOut))
)]
async fn test_routes(At(desk): At, State(app): State<Arc<App>>, Json(mut ask): Json<RouteTest>) -> Answer {
    let view = desk.routes().await?;
    // The queues of its endpoints are made with it.
    let makes_queues = ask.manifest.is_some();
    let set = match ask.manifest {
        None => view.set,
        Some(manifest) => {
            let manifest =
                Manifest::from_json(&manifest.to_string()).map_err(|error| not_a_manifest(&error))?;
            Arc::new(RouteSet::new(manifest))
        }
    };
    // It may be tried without one.
    if ask.message.body.is_none() && ask.message.body_base64.is_none() {
        ask.message.body = Some(String::new());
    }
    let message =
        ask.message.into_message(Target::default(), limits(&app)).map_err(|no| no.inside("message"))?;
    let sender = desk.sender(&message).map_err(overtake_access::NotDone::from)?;
    let mut tested = tested(&set, &path_of(&ask.path), &message, &sender);
    for copy in &mut tested.copies {
        let is_made = makes_queues && !leads_to_a_queue(&set, &copy.route);
        let found = desk.queue(&copy.queue).await;
        copy.left_out = !is_made && found.is_err_and(|not| not.is(Refusal::NoSuchQueue));
    }
    json(StatusCode::OK, &tested)
}

/// Publishes a message that comes from a path: routes decide who gets a copy, at which priority, for how long.
///
/// The same as to the exchange `overtake.routes` with the path as routing key. Answers once every copy is durable.
#[utoipa::path(
    post, path = "/v1/topics/{*path}", tag = "routes",
    params(
        ("path" = String, Path, description = "The path, with or without slashes as they are"),
        ("mandatory" = Option<bool>, Query, description = "`true`: refuse it when nobody gets it, instead of dropping it"),
    ),
    request_body(content((PublishIn = "application/json"), (RawBodySchema = "application/octet-stream"))),
    responses((status = 201, description = "Durable: one entry per copy", body = PublishedList))
)]
async fn publish_to_topic(
    At(desk): At,
    State(app): State<Arc<App>>,
    TopicPath(path): TopicPath,
    mut params: Params,
    request: Request,
) -> Answer {
    let mandatory = params.take_flag("mandatory")?;
    let to =
        to_exchange(ROUTES_EXCHANGE.into(), &path_of(&path), None, mandatory).map_err(|no| no.key("path"))?;
    let headers = request.headers().clone();
    let body = decode::read(request, app.options.max_request_bytes).await?;
    let mut messages = if decode::is_json(&headers) {
        decode::decode::<PublishIn>(&body)?.into_messages_to(&to, limits(&app))?
    } else {
        vec![raw::for_queue(&headers, body, to, limits(&app))?]
    };
    trace::inherit(&headers, &mut messages);
    json(StatusCode::CREATED, &PublishedList::with_queues(batch::publish(&desk, messages).await?))
}

fn not_a_manifest(error: &overtake_routes::ManifestError) -> Problem {
    let first = error.problems.first().map(|problem| problem.at.clone()).unwrap_or_default();
    Problem::new(
        StatusCode::UNPROCESSABLE_ENTITY,
        "manifest-invalid",
        "the manifest does not hold",
        "correct what `detail` lists; nothing was changed",
    )
    .key(first)
    .detail(error.to_string())
}

/// A queue that a route names itself must be there.
async fn must_lead_somewhere(desk: &Desk, manifest: &Manifest) -> Result<(), Problem> {
    match desk.leads_nowhere(manifest).await? {
        None => Ok(()),
        Some(route) => {
            let problem = Problem::from(Refusal::NoSuchQueue).key(format!("/routes/{}", route.name));
            Err(named::named(problem, desk, route.route.sink.name()).await)
        }
    }
}

async fn endpoint(desk: &Desk, sink: &Sink) -> Result<RouteEndpointOut, Problem> {
    let queue = sink.name().to_owned();
    let Ok(view) = desk.queue(&queue).await else {
        return Ok(RouteEndpointOut { queue, exists: false, lanes: Vec::new() });
    };
    let is_of_routes = view.settings.scheme == Scheme::Route;
    let lanes = view.lanes.iter().map(|lane| RouteEndpointLaneOut {
        name: match &*lane.lane {
            "default" if is_of_routes => queue.clone(),
            level if is_of_routes => format!("{queue}_Pri{level}"),
            other => other.to_owned(),
        },
        lane: lane.lane.to_string(),
        ready: lane.ready,
        leased: lane.leased,
        expired: lane.expired,
    });
    Ok(RouteEndpointOut { lanes: lanes.collect(), exists: true, queue })
}

fn shown(view: &RoutesView, endpoints: Vec<RouteEndpointOut>) -> RoutesOut<'_> {
    let (manifest, table) = (view.set.manifest(), view.set.table());
    let of = |id: RouteId| {
        let route = route_of(manifest, table, id);
        let counts = view.counts[id.number()];
        RouteOut {
            name: &route.name,
            route: route.route.to_string(),
            priority: route.priority,
            ttl_secs: manifest.ttl_of(route),
            fallback: route.is_fallback,
            queue: route.route.sink.name(),
            matched: counts.matched,
            undefined: counts.undefined,
            copies: counts.copies,
        }
    };
    RoutesOut {
        schema_version: manifest.schema_version.to_string(),
        ttl_secs: manifest.ttl_secs.filter(|secs| *secs > 0),
        published: view.published,
        unrouted: view.unrouted,
        fallback: view.fallback,
        routes: table.ids().map(of).collect(),
        endpoints,
    }
}

fn tested(set: &RouteSet, path: &str, message: &NewMessage, sender: &Sender) -> RouteTestOut {
    let letter = Letter::new(path, &message.content, sender, SystemClock.now());
    let (manifest, table) = (set.manifest(), set.table());
    let say = |id: RouteId| {
        let route = route_of(manifest, table, id);
        let name = route.name.clone();
        if !route.route.source.matches(path) {
            return RouteTestedOut { name, says: "other-source", expression: None, why: None };
        }
        let Some(condition) = &route.route.condition else {
            return RouteTestedOut { name, says: "matches", expression: None, why: None };
        };
        let explained = condition.explain(&letter);
        let says = match explained.truth {
            Truth::True => "matches",
            Truth::False => "does-not-match",
            Truth::Undefined => "undefined",
        };
        RouteTestedOut { name, says, expression: Some(explained.expression), why: Some(explained.why) }
    };
    let mut routing = Routing::default();
    table.route(path, &letter, &mut routing);
    let copies = routing.copies().iter().map(|copy| RouteCopyOut {
        route: table.name(copy.route).to_owned(),
        queue: table.sink(copy.route).name().to_owned(),
        priority: copy.priority,
        ttl_secs: copy.ttl_secs,
        left_out: false,
    });
    RouteTestOut {
        routes: table.ids().map(say).collect(),
        copies: copies.collect(),
        fallback: routing.is_fallback(),
    }
}

/// Whether a route names a queue itself, which must be there.
fn leads_to_a_queue(set: &RouteSet, route: &str) -> bool {
    set.manifest().route(route).is_some_and(|route| matches!(route.route.sink, Sink::Queue(_)))
}

fn route_of<'a>(manifest: &'a Manifest, table: &RouteTable, id: RouteId) -> &'a NamedRoute {
    manifest.route(table.name(id)).expect("a table has the routes of its manifest")
}
