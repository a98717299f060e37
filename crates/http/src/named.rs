//! Problems that name the thing: *no such queue* becomes *no queue `wrok` in vhost `/`; did you mean `work`?*, and *must be a whole
//! number from 1 to 1000* becomes *`limit` is `0`: it must be a whole number from 1 to 1000*.
//!
//! A [`Refusal`](overtake_lane::Refusal) has no names and no values. Both are known where the request is: [`name`] takes the name from the
//! path and the value from the query, the headers or the body, and handlers whose body has a name call [`named`].

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::{Arc, OnceLock};

use axum::extract::{MatchedPath, Request, State};
use axum::http::{Extensions, HeaderMap, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use overtake_access::{DEFAULT_VHOST, Desk, Identity, NotDone};
use overtake_api::json::shown_at;
use overtake_api::params::Params;
use overtake_api::problem::{self, ProblemBody};
use overtake_lane::{Overflow, QueueView, Scheme};
use overtake_routes::nearest::nearest;
use percent_encoding::percent_decode_str;

use crate::app::App;
use crate::login::Vhost;
use crate::problem::Problem;

/// Most names that are looked at for one that is near.
const NAMES_MAX: usize = 100;

/// Names the thing in the path that a response says is not there, or whose scheme does not know a priority.
pub(crate) async fn name(State(app): State<Arc<App>>, mut request: Request, next: Next) -> Response {
    let (about, sent) = (About::of(&request), Sent::of(&request));
    request.extensions_mut().insert(sent.body.clone());
    let mut response = next.run(request).await;
    let Some(problem) = response.extensions_mut().remove::<problem::Problem>() else { return response };
    let (problem, response) = match sent.value(problem.body()) {
        Some(value) => (problem.clone().with_value(&value), problem.with_value(&value).into_response()),
        None => (problem, response),
    };
    let Some(about) = about else { return response };
    let Some(name) = param_of(problem.body().code()).and_then(|param| about.param(param)) else {
        return response;
    };
    if problem.body().code() == "no-such-vhost" {
        return Problem(problem).specify(&format!("no vhost `{name}`")).into_response();
    }
    match about.desk(&app).await {
        Ok(desk) => named(Problem(problem), &desk, &name).await.into_response(),
        // The virtual host was deleted since the request came, or the user may not enter it any more.
        Err(_) => match noun_of(problem.body().code()) {
            Some(noun) => {
                let is_deleted = about.who.is_vhost_deleted(about.vhost(), about.version);
                let missing = missing(noun, &name, about.vhost());
                let missing = missing + if is_deleted { ", which is deleted" } else { "" };
                Problem(problem).specify(&missing).into_response()
            }
            None => response,
        },
    }
}

/// The JSON body of a request, once its handler has read it.
#[derive(Clone, Default)]
pub(crate) struct SentBody(Arc<OnceLock<Bytes>>);

impl SentBody {
    /// Remembers the body of a request, for a problem that may have to show a value of it.
    pub(crate) fn remember(extensions: &Extensions, body: &Bytes) {
        if let Some(Self(sent)) = extensions.get() {
            _ = sent.set(body.clone());
        }
    }
}

/// The parts of a request of which a problem may have to show a value.
struct Sent {
    query: Option<String>,
    headers: HeaderMap,
    body: SentBody,
    may_show_body: bool,
}

/// Paths whose bodies hold no secrets: nothing is shown of a body that comes to another one.
const SHOWN_BODIES: [&str; 9] = [
    "/api/v1/admin/executions",
    "/v1/categories",
    "/v1/exchanges",
    "/v1/queues",
    "/v1/routes",
    "/v1/schedules",
    "/v1/topics",
    "/v1/transactions",
    "/v1/vhosts",
];

/// How the headers begin that say something of a raw message.
const HEADER_PREFIX: &str = "overtake-";

impl Sent {
    fn of(request: &Request) -> Self {
        let path = request.uri().path();
        Self {
            query: request.uri().query().map(ToOwned::to_owned),
            headers: request.headers().clone(),
            body: SentBody::default(),
            may_show_body: SHOWN_BODIES.iter().any(|shown| path.starts_with(shown)),
        }
    }

    /// The value of the parameter, header or field that a problem is about, if the problem is that the value cannot be.
    fn value(&self, problem: &ProblemBody) -> Option<String> {
        let is_of_a_value = match problem.code() {
            "field-unknown" | "field-missing" | "field-duplicate" | "parameter-unknown" => false,
            "count-differs" => true,
            _ => problem.is_unprocessable(),
        };
        let key = problem.about().filter(|_| is_of_a_value)?;
        let query = self.query.as_deref().and_then(|query| Params::parse(query).ok());
        if let Some(value) = query.and_then(|mut params| params.take(key).ok()?) {
            return Some(value);
        }
        let header = key.strip_prefix(HEADER_PREFIX).unwrap_or(key).replace('_', "-");
        if let Some(value) = self.headers.get(format!("{HEADER_PREFIX}{header}")) {
            return value.to_str().ok().map(ToOwned::to_owned);
        }
        let is_content = key.ends_with("body") || key.ends_with("_base64") || key.contains("headers");
        let body = self.body.0.get().filter(|_| self.may_show_body && !is_content)?;
        shown_at(body, key)
    }
}

/// What is missing, if a problem of this code says that something is.
fn noun_of(code: &str) -> Option<&'static str> {
    match code {
        "no-such-queue" => Some("queue"),
        "no-such-exchange" => Some("exchange"),
        _ => None,
    }
}

fn missing(noun: &str, name: &str, vhost: &str) -> String {
    format!("no {noun} `{name}` in vhost `{vhost}`")
}

/// A request, as far as a problem with it may have to name its parts.
struct About {
    /// The path as it is declared, with its parameters.
    route: MatchedPath,
    uri: Uri,
    who: Identity,
    /// The version of permissions when the request came.
    version: u64,
    vhost: Option<Vhost>,
}

impl About {
    fn of(request: &Request) -> Option<Self> {
        let extensions = request.extensions();
        let who = extensions.get::<Identity>()?.clone();
        Some(Self {
            route: extensions.get::<MatchedPath>()?.clone(),
            uri: request.uri().clone(),
            version: who.version(),
            who,
            vhost: extensions.get::<Vhost>().cloned(),
        })
    }

    fn vhost(&self) -> &str {
        self.vhost.as_ref().map_or(DEFAULT_VHOST, |vhost| &vhost.0)
    }

    /// A parameter of the path, decoded. The virtual host may also be in the query.
    fn param(&self, name: &str) -> Option<String> {
        let is_it = |part: &str| part.strip_prefix('{').and_then(|part| part.strip_suffix('}')) == Some(name);
        let mut parts = self.route.as_str().split('/').zip(self.uri.path().split('/'));
        let value = parts.find(|(part, _)| is_it(part)).map(|(_, value)| value);
        match value {
            Some(value) => Some(percent_decode_str(value).decode_utf8_lossy().into_owned()),
            None if name == "vhost" => {
                // The overview has it among its other parameters.
                let query = Params::parse(self.uri.query().unwrap_or_default()).ok();
                let named = query.and_then(|mut query| query.take(name).ok()?);
                Some(named.unwrap_or_else(|| self.vhost().to_owned()))
            }
            None => None,
        }
    }

    async fn desk(&self, app: &App) -> Result<Desk, Problem> {
        Ok(app.desks.desk(self.who.clone(), self.vhost()).await?)
    }
}

/// The parameter of a path that a problem of this code is about.
fn param_of(code: &str) -> Option<&'static str> {
    match code {
        "no-such-queue"
        | "priority-unknown"
        | "priority-out-of-range"
        | "message-too-large"
        | "queue-full" => Some("queue"),
        "no-such-exchange" => Some("exchange"),
        "no-such-vhost" => Some("vhost"),
        _ => None,
    }
}

/// Names in a problem's detail the queue or exchange that it is about.
pub(crate) async fn named(problem: Problem, desk: &Desk, name: &str) -> Problem {
    let vhost = desk.vhost();
    let (noun, others) = match problem.0.body().code() {
        "no-such-queue" => ("queue", queues_near(desk, name).await),
        "no-such-exchange" => ("exchange", exchanges(desk).await),
        "priority-unknown" | "priority-out-of-range" => {
            let Ok(queue) = desk.queue(name).await else { return problem };
            let settings = queue.effective_settings();
            let (scheme, takes) = (settings.scheme, taken_by(settings.known_scheme()));
            let hint = match problem.0.body().about() {
                Some("import_priority") => "send one of them, or `most-urgent`; nothing was done",
                _ => "send one of them, or none; nothing was done",
            };
            return problem
                .specify(&format!("queue `{name}` has scheme `{scheme}`, whose priorities are {takes}"))
                .hint(hint);
        }
        "message-too-large" => {
            let Ok(queue) = desk.queue(name).await else { return problem };
            let settings = queue.effective_settings();
            let limits =
                [("max_message_bytes", settings.max_message_bytes), ("max_bytes", settings.max_bytes)];
            let limit = limits.into_iter().filter(|(_, bytes)| *bytes > 0).min_by_key(|(_, bytes)| *bytes);
            let Some((setting, bytes)) = limit else { return problem };
            return problem.specify(&format!(
                "the message is larger than queue `{name}` takes: {bytes} bytes with its headers (`{setting}`)"
            ));
        }
        "queue-full" => {
            let Ok(queue) = desk.queue(name).await else { return problem };
            if queue.effective_settings().evict_at_once {
                return problem
                    .specify(&format!("queue `{name}` keeps no message and refuses each (`evict_at_once` with an `overflow` that refuses)"))
                    .hint("set `overflow` to \"evict\", so that consumers who wait get messages, or `evict_at_once` to false");
            }
            return problem.specify(&full(&queue));
        }
        _ => return problem,
    };
    let near = nearest(name, others.iter().flatten().map(|other| &**other));
    let near = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
    problem.specify(&(missing(noun, name, vhost) + &near))
}

/// That a queue is full, and of what.
fn full(queue: &QueueView) -> String {
    let settings = queue.effective_settings();
    let waiting: u64 = queue.lanes.iter().map(|lane| lane.ready + lane.delayed).sum();
    let bytes: u64 = queue.lanes.iter().map(|lane| lane.bytes).sum();
    let takes_urgent = settings.overflow == Overflow::Evict;
    let but = if takes_urgent { " and takes only a more urgent message" } else { "" };
    let mut text = format!("queue `{}` is full{but}", queue.name);
    if settings.max_length > 0 {
        _ = write!(text, "; messages that wait: {waiting} of {} (`max_length`)", settings.max_length);
    }
    if settings.max_bytes > 0 {
        _ = write!(text, "; bytes: {bytes} of {} (`max_bytes`)", settings.max_bytes);
    }
    text
}

/// What a queue of this scheme takes as a priority.
fn taken_by(scheme: Option<Scheme>) -> String {
    match scheme {
        None => "any 32-bit integer, or a name that `signed` or `named` has; they only travel".to_owned(),
        Some(Scheme::TenLevel) => "0 to 9, larger first; above 9 counts as 9, up to 32 bits".to_owned(),
        Some(Scheme::Signed) => {
            "BULK, LOW, NORMAL, HIGH, CRITICAL, or a 32-bit integer, larger first".to_owned()
        }
        Some(Scheme::Named) => {
            "critical, high, normal, low, background, or for these 100, 50, 0, -50, -100".to_owned()
        }
        Some(Scheme::Route) => "0 to 9, 0 first".to_owned(),
        Some(Scheme::Max(most)) => {
            format!("0 to {most}, larger first; above {most} counts as {most}, up to 32 bits")
        }
    }
}

/// Names that the user may see: the first ones, and the first of those that begin like this one.
async fn queues_near(desk: &Desk, name: &str) -> Result<BTreeSet<Arc<str>>, NotDone> {
    let page = desk.queues(None, NAMES_MAX).await?;
    let mut names: BTreeSet<_> = page.queues.into_iter().map(|queue| queue.name).collect();
    if page.next.is_some() {
        let half: String = name.chars().take(name.chars().count() / 2).collect();
        let page = desk.queues(Some(&half), NAMES_MAX).await?;
        names.extend(page.queues.into_iter().map(|queue| queue.name));
    }
    Ok(names)
}

async fn exchanges(desk: &Desk) -> Result<BTreeSet<Arc<str>>, NotDone> {
    Ok(desk.exchanges().await?.into_iter().map(|exchange| exchange.name).collect())
}
