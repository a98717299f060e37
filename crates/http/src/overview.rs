//! How all queues stand and have stood that one may see, over all virtual hosts: once, or every second as server-sent events.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;
use http_body_util::channel::Channel;
use overtake_access::{Credentials, DEFAULT_VHOST, Desk, Identity, Right};
use overtake_api::params::Params;
use overtake_engine::Health;
use overtake_engine::rights::Need;
use overtake_lane::{LaneView, Order, PickerKind, QueueId};
use overtake_overview::{Flow, LaneLook, LaneSeries, Look, QueueLook, QueueRole, SAMPLE_MS, Totals, Trouble};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::{Answer, App, json};
use crate::login::{Sender, Who};
use crate::problem::Problem;

/// Queues of an answer, if the request does not say.
const LIMIT: usize = 100;
/// Events that may wait for a client; it misses those that come meanwhile.
const EVENTS_MAX: usize = 2;

/// The paths of the overview.
pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(overview))
        .routes(routes!(overview_events))
        .routes(routes!(overview_history))
}

/// How all queues stand.
#[derive(Serialize, ToSchema)]
#[schema(as = Overview)]
struct OverviewOut<'a> {
    /// When, Unix ms.
    at: u64,
    /// How the broker is.
    broker: BrokerOut,
    /// Sums over all queues one may see.
    totals: TotalsOut,
    /// Queues that match.
    matching: usize,
    /// Those of them that the request wants, in the order it wants.
    queues: Vec<QueueOut<'a>>,
}

/// How the broker is.
#[derive(Serialize, ToSchema)]
#[schema(as = OverviewBroker)]
struct BrokerOut {
    /// Version of the server.
    #[schema(value_type = String)]
    version: Arc<str>,
    /// `ok`; `draining`: it gives nothing out; `full`: it refuses publishes; `down`.
    state: &'static str,
    /// Why it is not `ok`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    why: Option<Arc<str>>,
    /// Bytes free on the disk of the store; missing where it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    disk_free_bytes: Option<u64>,
    /// Below so many free bytes publishes are refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    disk_low_bytes: Option<u64>,
    /// Bytes of memory that messages take, about.
    memory_bytes: u64,
    /// Messages that wait on disk only.
    spilled: u64,
    /// Bytes of journal and segments on disk.
    store_bytes: u64,
}

/// Sums over queues.
#[derive(Default, Serialize, ToSchema)]
#[schema(as = OverviewTotals)]
struct TotalsOut {
    /// Queues.
    queues: u64,
    /// Consumers that stay.
    consumers: u64,
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
    /// Messages per second.
    #[serde(flatten)]
    #[schema(value_type = FlowSchema)]
    flow: Flow,
}

/// Messages per second since the look before.
#[derive(ToSchema)]
#[schema(as = Flow)]
#[allow(dead_code)]
struct FlowSchema {
    /// Published.
    published: f64,
    /// Leased.
    delivered: f64,
    /// Acknowledged.
    settled: f64,
    /// That became dead letters.
    dead_lettered: f64,
}

/// A queue as it stands.
#[derive(Serialize, ToSchema)]
#[schema(as = OverviewQueue)]
struct QueueOut<'a> {
    /// Its virtual host.
    vhost: &'a str,
    /// Its name.
    name: &'a str,
    /// `work`; `history`: the history of another queue; `dead-letters`: another queue's dead letters go there.
    #[schema(value_type = String)]
    role: QueueRole,
    /// The scheme of its priorities.
    scheme: String,
    /// `priority`, `fifo` or `lanes`.
    order: &'static str,
    /// `strict`, `aging` or `weighted`.
    picker: &'static str,
    /// It gives nothing out.
    paused: bool,
    /// Most messages leased at once; 0: no cap.
    max_active: u32,
    /// Consumers that stay.
    consumers: u64,
    /// Requests that wait for a message.
    waiting: u64,
    /// What one may do to it: `configure`, `write`, `read`.
    rights: Vec<&'static str>,
    /// What is wrong, the worst first.
    #[schema(value_type = Vec<TroubleSchema>)]
    troubles: &'a [Trouble],
    /// Its lanes, the most urgent first.
    lanes: Vec<LaneOut<'a>>,
}

/// Something that is wrong with a queue.
#[derive(ToSchema)]
#[schema(as = Trouble)]
#[allow(dead_code)]
struct TroubleSchema {
    /// `no-consumer`, `full`, `unreadable`, `new-dead-letters`, `overtaken`, `paused`, `grows`, `at-cap`, `dead-letters`.
    kind: String,
    /// 3: work stands still or is lost; 2: it will be; 1: worth knowing.
    severity: u8,
    /// The lane it is about, if it is about one.
    lane: Option<String>,
    /// How many messages it is about.
    messages: u64,
}

/// A lane as it stands.
#[derive(Serialize, ToSchema)]
#[schema(as = OverviewLane)]
struct LaneOut<'a> {
    /// Its name.
    lane: &'a str,
    /// How urgent it is: larger is more urgent.
    level: i32,
    /// Messages ready.
    ready: u64,
    /// Messages delayed.
    delayed: u64,
    /// Messages leased.
    leased: u64,
    /// Dead letters.
    dead: u64,
    /// Age of the oldest ready message, ms; 0 when none is.
    oldest_age_ms: u64,
    /// What moves, and how long it had waited.
    #[serde(flatten)]
    #[schema(value_type = LaneLookSchema)]
    look: &'a LaneLook,
}

/// What moves in a lane, and how long it had waited.
#[derive(ToSchema)]
#[schema(as = LaneLook)]
#[allow(dead_code)]
struct LaneLookSchema {
    /// Messages per second.
    #[serde(flatten)]
    flow: FlowSchema,
    /// Half of what was leased since the look before had waited no longer, ms; missing when nothing was.
    wait_p50_ms: Option<f64>,
    /// 95 of 100 had waited no longer, ms.
    wait_p95_ms: Option<f64>,
}

/// An event of the stream.
#[derive(ToSchema)]
#[schema(as = OverviewEvent)]
#[allow(dead_code)]
struct EventSchema {
    /// `overview`.
    event: String,
    /// An `Overview`, as JSON in one line.
    data: String,
}

/// How queues have stood: each series one number a sample, the newest last.
#[derive(Serialize, ToSchema)]
#[schema(as = OverviewHistory)]
struct HistoryOut {
    /// From one sample to the next, ms.
    step_ms: u64,
    /// When the last sample was taken, Unix ms.
    until: u64,
    /// Sums over the queues one may see; of waits and ages the longest. Missing for one queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    totals: Option<Totals>,
    /// The lanes of the queue that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<Object>>)]
    lanes: Option<Vec<LaneSeries>>,
    /// Lanes of the broker of which no samples are kept, because there are too many with something to tell.
    lanes_without_samples: usize,
}

/// Which queues, and in which order.
#[derive(Clone, Debug, Default)]
struct Wanted {
    vhost: Option<String>,
    /// Part of the name.
    name: Option<String>,
    /// The whole name.
    queue: Option<String>,
    sort: Sort,
    limit: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Sort {
    #[default]
    Trouble,
    Name,
    Ready,
    Published,
    Delivered,
    Oldest,
}

impl Wanted {
    fn from(mut params: Params) -> Result<Self, Problem> {
        let wanted = Self {
            vhost: params.take("vhost")?,
            name: params.take("name")?,
            queue: params.take("queue")?,
            sort: params.take("sort")?.map(|word| sort(&word)).transpose()?.unwrap_or_default(),
            limit: params.take_limit(LIMIT)?,
        };
        Ok(wanted)
    }

    /// Refuses a virtual host that does not exist, or that `who` may not enter: an overview without queues would say that it is empty.
    async fn must_be_there(&self, app: &App, who: &Identity) -> Result<(), Problem> {
        match &self.vhost {
            None => Ok(()),
            Some(vhost) => enter(app, who, vhost).await.map(drop),
        }
    }

    fn takes(&self, queue: &QueueLook) -> bool {
        let is = |wanted: &Option<String>, is: &str| wanted.as_deref().is_none_or(|wanted| wanted == is);
        let contains = |part: &String| queue.view.name.to_lowercase().contains(&part.to_lowercase());
        is(&self.vhost, &queue.vhost)
            && is(&self.queue, &queue.view.name)
            && self.name.as_ref().is_none_or(contains)
    }

    fn sort(&self, queues: &mut [&QueueLook]) {
        let sum = |queue: &QueueLook, of: fn(&LaneView) -> u64| queue.view.lanes.iter().map(of).sum::<u64>();
        let by_rate =
            |of: fn(Flow) -> f64| move |queue: &&QueueLook| Reverse((of(queue.flow()) * 1e3) as u64);
        // They come by name, and the sort is stable.
        match self.sort {
            Sort::Name => {}
            Sort::Trouble => queues.sort_by_cached_key(|queue| Reverse(Look::rank(queue))),
            Sort::Ready => queues.sort_by_cached_key(|queue| Reverse(sum(queue, |lane| lane.ready))),
            Sort::Published => queues.sort_by_cached_key(by_rate(|flow| flow.published)),
            Sort::Delivered => queues.sort_by_cached_key(by_rate(|flow| flow.delivered)),
            Sort::Oldest => queues.sort_by_cached_key(|queue| {
                Reverse(queue.most_urgent_waiting().map_or(0, |lane| lane.oldest_age_ms))
            }),
        }
    }
}

async fn enter(app: &App, who: &Identity, vhost: &str) -> Result<Desk, Problem> {
    app.desks.desk(who.clone(), vhost).await.map_err(|not| Problem::from(not).key("vhost"))
}

fn sort(word: &str) -> Result<Sort, Problem> {
    Ok(match word {
        "trouble" => Sort::Trouble,
        "name" => Sort::Name,
        "ready" => Sort::Ready,
        "published" => Sort::Published,
        "delivered" => Sort::Delivered,
        "oldest" => Sort::Oldest,
        _ => {
            let words = "must be `trouble`, `name`, `ready`, `published`, `delivered` or `oldest`";
            return Err(Problem::bad_value("sort", words));
        }
    })
}

impl BrokerOut {
    fn of(app: &App, health: Health) -> Self {
        let draining = app.options.drain.begun().is_cancelled();
        let (state, why) = match (health.down, draining, health.full) {
            (Some(why), _, _) => ("down", Some(why)),
            (None, true, _) => ("draining", None),
            (None, false, Some(why)) => ("full", Some(why.to_string().into())),
            (None, false, None) => ("ok", None),
        };
        Self {
            version: Arc::clone(&app.options.version),
            state,
            why,
            disk_free_bytes: health.disk.map(|disk| disk.free),
            disk_low_bytes: health.disk.map(|disk| disk.low),
            memory_bytes: health.memory.bytes,
            spilled: health.memory.spilled,
            store_bytes: health.journal_bytes + health.memory.segment_bytes,
        }
    }
}

impl TotalsOut {
    fn with(mut self, queue: &QueueLook) -> Self {
        self.queues += 1;
        self.consumers += queue.view.consumers;
        for lane in &queue.view.lanes {
            self.ready += lane.ready;
            self.delayed += lane.delayed;
            self.leased += lane.leased;
            self.dead += lane.dead;
            self.bytes += lane.bytes;
        }
        self.flow = self.flow.and(queue.flow());
        self
    }
}

impl<'a> QueueOut<'a> {
    fn of(queue: &'a QueueLook, who: &Identity) -> Self {
        let view = &queue.view;
        let settings = view.effective_settings();
        let lane = |(lane, look): (&'a LaneView, &'a LaneLook)| LaneOut {
            lane: &lane.lane,
            level: lane.level,
            ready: lane.ready,
            delayed: lane.delayed,
            leased: lane.leased,
            dead: lane.dead,
            oldest_age_ms: lane.oldest_age_ms,
            look,
        };
        Self {
            vhost: &queue.vhost,
            name: &view.name,
            role: queue.role,
            scheme: settings.scheme.to_string(),
            order: match settings.order {
                Order::Priority => "priority",
                Order::Fifo => "fifo",
                Order::Lanes(_) => "lanes",
            },
            picker: match settings.picker {
                PickerKind::Strict => "strict",
                PickerKind::AgingMs(_) => "aging",
                PickerKind::Weighted(_) => "weighted",
            },
            paused: settings.paused,
            max_active: settings.max_active,
            consumers: view.consumers,
            waiting: view.waiting,
            rights: rights(who, &queue.vhost, &view.name),
            troubles: &queue.troubles,
            lanes: view.lanes.iter().zip(&queue.lanes).map(lane).collect(),
        }
    }
}

/// What somebody may do to a queue.
fn rights(who: &Identity, vhost: &str, queue: &str) -> Vec<&'static str> {
    let all = [(Right::Configure, "configure"), (Right::Write, "write"), (Right::Read, "read")];
    let has = |right| who.must(vhost, Need::queue(right, queue)).is_ok();
    all.into_iter().filter(|(right, _)| has(*right)).map(|(_, word)| word).collect()
}

/// The overview as somebody sees it.
fn shown<'a>(app: &App, who: &Identity, wanted: &Wanted, look: &'a Look) -> OverviewOut<'a> {
    let seen: Vec<&QueueLook> =
        look.queues.iter().filter(|queue| who.sees(&queue.vhost, &queue.view.name)).collect();
    let totals = seen.iter().copied().fold(TotalsOut::default(), TotalsOut::with);
    let mut queues: Vec<&QueueLook> = seen.into_iter().filter(|queue| wanted.takes(queue)).collect();
    let matching = queues.len();
    wanted.sort(&mut queues);
    queues.truncate(wanted.limit);
    OverviewOut {
        at: look.at.0,
        broker: BrokerOut::of(app, app.desks.health()),
        totals,
        matching,
        queues: queues.into_iter().map(|queue| QueueOut::of(queue, who)).collect(),
    }
}

/// How all queues stand that one may see, those in trouble first; at most a second old.
///
/// Rates and waits are those since the look before: a second ago while somebody watches, else up to ten.
#[utoipa::path(
    get, path = "/v1/overview", tag = "overview",
    params(
        ("vhost" = Option<String>, Query, description = "Only this virtual host"),
        ("name" = Option<String>, Query, description = "Only queues with this in their name, in whatever case"),
        ("queue" = Option<String>, Query, description = "Only the queue of this name"),
        ("sort" = Option<String>, Query, description = "`trouble`, `name`, `ready`, `published`, `delivered`, `oldest`; else `trouble`"),
        ("limit" = Option<u64>, Query, description = "Queues, 1 to 1000, else 100"),
    ),
    responses((status = 200, description = "The overview", body = OverviewOut))
)]
async fn overview(State(app): State<Arc<App>>, Who(who): Who, params: Params) -> Answer {
    let wanted = Wanted::from(params)?;
    wanted.must_be_there(&app, &who).await?;
    let look = app.services.overview.now().await;
    json(StatusCode::OK, &shown(&app, &who, &wanted, &look))
}

/// The same as `/v1/overview`, every second, as server-sent events named `overview`.
///
/// A client that reads too slowly misses looks, and gets the next one. The stream ends with the server, and when whoever asked may not
/// log in any more, or the web session is over.
#[utoipa::path(
    get, path = "/v1/overview/events", tag = "overview",
    params(
        ("vhost" = Option<String>, Query, description = "Only this virtual host"),
        ("name" = Option<String>, Query, description = "Only queues with this in their name, in whatever case"),
        ("queue" = Option<String>, Query, description = "Only the queue of this name"),
        ("sort" = Option<String>, Query, description = "`trouble`, `name`, `ready`, `published`, `delivered`, `oldest`; else `trouble`"),
        ("limit" = Option<u64>, Query, description = "Queues, 1 to 1000, else 100"),
    ),
    responses((status = 200, description = "Events, each as it is here", body = EventSchema, content_type = "text/event-stream"))
)]
async fn overview_events(
    State(app): State<Arc<App>>,
    Who(who): Who,
    Sender(peer): Sender,
    headers: HeaderMap,
    params: Params,
) -> Answer {
    let wanted = Wanted::from(params)?;
    wanted.must_be_there(&app, &who).await?;
    let session = match peer.shows(&Method::GET, &headers) {
        Some(Credentials::WebSession(session)) => Some(session),
        _ => None,
    };
    let (mut sender, body) = Channel::<Bytes, std::convert::Infallible>::new(EVENTS_MAX);
    let mut looks = app.services.overview.watch();
    let shutdown = app.options.shutdown.clone();
    // It ends by itself: with the client, the server, or the right to be here.
    drop(tokio::spawn(shutdown.run_until_cancelled_owned(async move {
        loop {
            let look = Arc::clone(&looks.borrow_and_update());
            let Ok(text) = serde_json::to_vec(&shown(&app, &who, &wanted, &look)) else { return };
            let event = [b"event: overview\ndata: ", &text[..], b"\n\n"].concat();
            if sender.send_data(event.into()).await.is_err() || looks.changed().await.is_err() {
                return;
            }
            let gate = app.desks.gate();
            let goes_on = session.as_ref().is_none_or(|session| gate.has_web_session(session));
            if !who.is_there(gate.now()) || !goes_on {
                return;
            }
        }
    })));
    let mut response = Response::new(Body::new(body));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

/// How the queues have stood that one may see: the last hour, a sample every ten seconds.
///
/// With `queue` the lanes of that one. Samples are in memory only, and begin with the broker.
#[utoipa::path(
    get, path = "/v1/overview/history", tag = "overview",
    params(
        ("vhost" = Option<String>, Query, description = "Only this virtual host; of a queue, else `/`"),
        ("queue" = Option<String>, Query, description = "The lanes of this queue"),
    ),
    responses((status = 200, description = "The samples", body = HistoryOut))
)]
async fn overview_history(State(app): State<Arc<App>>, Who(who): Who, mut params: Params) -> Answer {
    let (vhost, queue) = (params.take("vhost")?, params.take("queue")?);
    let overview = &app.services.overview;
    let (totals, lanes) = match queue {
        Some(name) => {
            let desk = enter(&app, &who, vhost.as_deref().unwrap_or(DEFAULT_VHOST)).await?;
            (None, Some(overview.lanes(&desk.queue(&name).await?)))
        }
        None => {
            if let Some(vhost) = &vhost {
                enter(&app, &who, vhost).await?;
            }
            let look = Arc::clone(&overview.watch().borrow());
            let is_there = |queue: &&QueueLook| vhost.as_deref().is_none_or(|vhost| vhost == &*queue.vhost);
            let sees = |queue: &&QueueLook| who.sees(&queue.vhost, &queue.view.name);
            let seen: HashSet<QueueId> =
                look.queues.iter().filter(is_there).filter(sees).map(|queue| queue.view.queue).collect();
            (Some(overview.totals(|queue| seen.contains(&queue))), None)
        }
    };
    let lanes_without_samples = overview.lanes_without_samples();
    let until = overview.until();
    json(StatusCode::OK, &HistoryOut { step_ms: SAMPLE_MS, until, totals, lanes, lanes_without_samples })
}
