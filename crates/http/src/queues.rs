//! Queues: declare, list, show, delete.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use overtake_access::Desk;
use overtake_api::params::{self, Params, queue_cursor_text};
use overtake_api::problem;
use overtake_engine::DeclareQueue;
use overtake_lane::{Existing, Given, Identity, KeyView, LaneView, QueueView, Refusal, Settings};
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::{Answer, App, done, json};
use crate::decode;
use crate::login::At;
use crate::path::QueueName;
use crate::problem::Problem;
use crate::schema::{KeySchema, LaneSchema, SettingsSchema};
use crate::settings;

/// The paths of queues.
pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(list_queues)).routes(routes!(
        declare_queue,
        change_queue,
        show_queue,
        delete_queue
    ))
}

/// A page of queues.
#[derive(Serialize, ToSchema)]
#[schema(as = Queues)]
struct QueueList<'a> {
    /// By name.
    queues: Vec<QueueOut<'a>>,
    /// The `cursor` of the next page; missing on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// A queue as it is now.
#[derive(Serialize, ToSchema)]
#[schema(as = Queue)]
struct QueueOut<'a> {
    /// Its name.
    name: &'a str,
    /// The settings it was made with, all of them.
    #[schema(value_type = SettingsSchema)]
    settings: &'a Settings,
    /// The settings that hold, all of them, where policies make them other ones than its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<SettingsSchema>)]
    effective_settings: Option<&'a Settings>,
    /// The policy that applies to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    policy: Option<&'a str>,
    /// The operator's policy that applies to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    operator_policy: Option<&'a str>,
    /// Keys of the two that can have no effect on this queue.
    #[serde(skip_serializing_if = "<[&str]>::is_empty")]
    without_effect: &'a [&'static str],
    /// What it is besides.
    identity: IdentityOut,
    /// The sums over its lanes.
    totals: Totals,
    /// Consumers that stay.
    consumers: u64,
    /// Requests that wait for a message.
    waiting: u64,
    /// Messages that cannot be read for now, because a part of the store is damaged. No lane counts them. Left out when there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    quarantined: Option<u64>,
    /// Its lanes, the most urgent first.
    #[schema(value_type = Vec<LaneSchema>)]
    lanes: &'a [LaneView],
    /// Its keys with the most messages ready and leased, the largest first, where its settings speak of keys: at most 10. Left out when there are none.
    #[serde(skip_serializing_if = "<[KeyView]>::is_empty")]
    #[schema(value_type = Option<Vec<KeySchema>>)]
    keys: &'a [KeyView],
}

/// What a queue is from the moment it is made. One that is made over HTTP is durable and nothing else.
#[derive(Serialize, ToSchema)]
#[schema(as = Identity)]
struct IdentityOut {
    /// It is still there after a restart.
    durable: bool,
    /// It belongs to one connection: others may only publish to it, and it ends with that connection.
    exclusive: bool,
    /// It is deleted when its last consumer is gone.
    auto_delete: bool,
    /// The arguments it was declared with, in base64, if it was over AMQP.
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments: Option<String>,
}

impl IdentityOut {
    fn of(identity: &Identity) -> Self {
        let Identity { durable, exclusive, auto_delete, arguments } = identity;
        let arguments = (!arguments.is_empty()).then(|| STANDARD.encode(arguments));
        Self { durable: *durable, exclusive: *exclusive, auto_delete: *auto_delete, arguments }
    }
}

/// Sums over the lanes of a queue. Counters count since the broker started.
#[derive(Default, Serialize, ToSchema)]
struct Totals {
    /// Messages ready.
    ready: u64,
    /// Messages delayed.
    delayed: u64,
    /// Messages leased.
    leased: u64,
    /// Dead letters.
    dead: u64,
    /// Bytes of what is ready, delayed and leased.
    bytes: u64,
    /// Age of the oldest ready message of all lanes, ms.
    oldest_age_ms: u64,
    /// Messages published here, or moved here from another lane or queue.
    published: u64,
    /// Leases given.
    delivered: u64,
    /// Messages acknowledged.
    settled: u64,
    /// Leases given of messages that had been leased before.
    redelivered: u64,
    /// Leases given while a more urgent lane had a message ready, whatever kept that one back: the picker, a cap, its key.
    inversions: u64,
    /// Messages whose time to live was over.
    expired: u64,
    /// Messages dropped because the queue was full.
    evicted: u64,
    /// Messages removed, purged, replaced by a newer one, or dropped after rejection.
    removed: u64,
    /// Messages that left for another lane or queue.
    moved: u64,
    /// Messages that became dead letters.
    dead_lettered: u64,
}

impl Totals {
    fn with(self, lane: &LaneView) -> Self {
        Self {
            ready: self.ready + lane.ready,
            delayed: self.delayed + lane.delayed,
            leased: self.leased + lane.leased,
            dead: self.dead + lane.dead,
            bytes: self.bytes + lane.bytes,
            oldest_age_ms: self.oldest_age_ms.max(lane.oldest_age_ms),
            published: self.published + lane.published,
            delivered: self.delivered + lane.delivered,
            settled: self.settled + lane.settled,
            redelivered: self.redelivered + lane.redelivered,
            inversions: self.inversions + lane.inversions,
            expired: self.expired + lane.expired,
            evicted: self.evicted + lane.evicted,
            removed: self.removed + lane.removed,
            moved: self.moved + lane.moved,
            dead_lettered: self.dead_lettered + lane.dead_lettered,
        }
    }
}

impl<'a> QueueOut<'a> {
    fn of(view: &'a QueueView) -> Self {
        Self {
            name: &view.name,
            settings: &view.settings,
            effective_settings: view.ruled.as_deref(),
            policy: view.policy.as_deref(),
            operator_policy: view.operator_policy.as_deref(),
            without_effect: &view.without_effect,
            identity: IdentityOut::of(&view.identity),
            totals: view.lanes.iter().fold(Totals::default(), Totals::with),
            consumers: view.consumers,
            waiting: view.waiting,
            quarantined: (view.quarantined > 0).then_some(view.quarantined),
            lanes: &view.lanes,
            keys: &view.keys,
        }
    }
}

/// Makes a queue, or finds the one that has the settings of the body.
///
/// Settings that the body leaves out have their defaults in a queue that is made, and may be any in one that is there. Where one that is
/// named has another value, nothing changes: 409 `queue-differs`, with the `differences`.
#[utoipa::path(
    put, path = "/v1/queues/{queue}", tag = "queues",
    params(
        ("queue" = String, Path, description = "Name, percent-encoded; 1 to 255 bytes"),
        ("replace" = Option<bool>, Query, description = "`true`: the queue that is there gets all settings of the body, and the defaults of those left out"),
        ("import_priority" = Option<String>, Query, description = "Where `replace` has a queue in publish order served by priority: the priority of messages that wait without one, or `most-urgent`"),
    ),
    request_body = SettingsSchema,
    responses(
        (status = 201, description = "Made", body = QueueOut),
        (status = 200, description = "It was there with these settings, or has them now", body = QueueOut),
    )
)]
async fn declare_queue(
    State(app): State<Arc<App>>,
    At(desk): At,
    QueueName(name): QueueName,
    mut params: Params,
    request: Request,
) -> Answer {
    let replaces = params.take_flag("replace")?;
    let import = import_priority(&mut params)?;
    if import.is_some() && !replaces {
        return Err(Problem::bad_value(
            "import_priority",
            "is for a change, and without `replace=true` a declaration changes nothing",
        )
        .hint("send `replace=true` with it, or change the queue with PATCH; nothing was done"));
    }
    let body = decode::json_body(request, &app).await?;
    let (said, asked): (Map<String, Value>, Settings) =
        (decode::decode(&body)?, decode::decode(&body).map_err(Problem::from).map_err(about_setting)?);
    settings::validate(&asked)?;
    let made = match replaces {
        true => {
            desk.declare_queue(&name, asked, import.as_ref())
                .await
                .map_err(|not| about_import(not.into()))?
                .made
        }
        false => declare(&desk, &name, &said, asked).await?,
    };
    let status = if made { StatusCode::CREATED } else { StatusCode::OK };
    json(status, &QueueOut::of(&desk.queue(&name).await?))
}

/// Makes a queue that is not there, and compares the settings of one that is. Returns whether it is new.
async fn declare(
    desk: &Desk,
    name: &str,
    said: &Map<String, Value>,
    asked: Settings,
) -> Result<bool, Problem> {
    let declare =
        DeclareQueue { settings: asked.clone(), existing: Existing::Same, ..DeclareQueue::default() };
    match desk.declare(name, declare).await {
        Ok(declared) if declared.made => return Ok(true),
        Ok(_) => {}
        Err(not) if not.is(Refusal::QueueDiffers) => {}
        Err(not) => return Err(not.into()),
    }
    let differences = settings::differences(said, &asked, &desk.queue(name).await?.settings);
    if differences.is_empty() { Ok(false) } else { Err(problem::Problem::differs(name, differences).into()) }
}

fn import_priority(params: &mut Params) -> Result<Option<Given>, Problem> {
    let word = params.take_word("import_priority")?;
    Ok(word.map(|word| params::priority("import_priority", &word)).transpose()?)
}

/// A priority that cannot be is that of the parameter: settings have none.
fn about_import(problem: Problem) -> Problem {
    match problem.0.body().code() {
        "priority-unknown" | "priority-out-of-range" => problem.key("import_priority"),
        _ => problem,
    }
}

/// A parameter of the query that stands among the settings is told where it belongs.
fn about_setting(problem: Problem) -> Problem {
    match problem.0.body().about() {
        Some(name @ ("import_priority" | "replace")) if problem.0.body().code() == "field-unknown" => {
            let hint = format!("`{name}` is a parameter of the query: put `?{name}=…` behind the path");
            problem.hint(hint)
        }
        _ => problem,
    }
}

/// Changes some settings of a queue.
///
/// Settings that the body does not name stay as they are, and `null` is the default. `backoff`, `lanes` and `key_weights` are changed part by
/// part, every other setting as a whole. Messages that wait stay, and go by the new settings from now on.
#[utoipa::path(
    patch, path = "/v1/queues/{queue}", tag = "queues",
    params(
        ("queue" = String, Path, description = "Name, percent-encoded"),
        ("import_priority" = Option<String>, Query, description = "Where the change has a queue in publish order served by priority: the priority of messages that wait without one, or `most-urgent`. If it is missing and there are such messages, nothing changes: 409 `import-priority-missing`"),
    ),
    request_body = SettingsSchema,
    responses((status = 200, description = "The queue with its new settings", body = QueueOut))
)]
async fn change_queue(
    State(app): State<Arc<App>>,
    At(desk): At,
    QueueName(name): QueueName,
    mut params: Params,
    request: Request,
) -> Answer {
    let import = import_priority(&mut params)?;
    let change: Map<String, Value> = decode::decode(&decode::json_body(request, &app).await?)?;
    let changed = |before: &Settings| settings::changed(before, &change).map_err(about_setting);
    desk.change_queue(&name, import.as_ref(), changed).await.map_err(about_import)?;
    json(StatusCode::OK, &QueueOut::of(&desk.queue(&name).await?))
}

/// A page of queues, by name.
///
/// A queue that is made or deleted between two pages moves no other one from page to page.
#[utoipa::path(
    get, path = "/v1/queues", tag = "queues",
    params(
        ("limit" = Option<u64>, Query, description = "1 to 1000, else 50"),
        ("cursor" = Option<String>, Query, description = "The `next_cursor` of the page before"),
    ),
    responses((status = 200, description = "A page", body = QueueList))
)]
async fn list_queues(At(desk): At, params: Params) -> Answer {
    let (after, limit) = params.into_queue_page()?;
    let page = desk.queues(after.as_deref(), limit).await?;
    let next_cursor = page.next.as_deref().map(queue_cursor_text);
    json(StatusCode::OK, &QueueList { queues: page.queues.iter().map(QueueOut::of).collect(), next_cursor })
}

/// One queue: settings, totals, lanes.
#[utoipa::path(
    get, path = "/v1/queues/{queue}", tag = "queues",
    params(("queue" = String, Path, description = "Name, percent-encoded")),
    responses((status = 200, description = "The queue", body = QueueOut))
)]
async fn show_queue(At(desk): At, QueueName(name): QueueName) -> Answer {
    json(StatusCode::OK, &QueueOut::of(&desk.queue(&name).await?))
}

/// Deletes a queue with what is in it.
#[utoipa::path(
    delete, path = "/v1/queues/{queue}", tag = "queues",
    params(
        ("queue" = String, Path, description = "Name, percent-encoded"),
        ("if" = Option<String>, Query, description = "`empty`: only when it holds no message; `unused`: only when it has no consumer; or both with a comma"),
    ),
    responses((status = 204, description = "Gone"))
)]
async fn delete_queue(
    At(desk): At,
    State(app): State<Arc<App>>,
    QueueName(name): QueueName,
    params: Params,
) -> Answer {
    desk.delete_queue(&name, params.into_delete_only()?).await?;
    app.queue_ids.forget(&desk, &name);
    done()
}
