//! Schedules: messages that are published whenever a cron line says so.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use overtake_access::{Desk, NotDone};
use overtake_api::body::{Limits, MessageIn};
use overtake_api::name::checked_queue;
use overtake_api::schema::PrioritySchema;
use overtake_engine::{Failure, NewMessage, Target};
use overtake_lane::{Given, Headers, Refusal, check_key};
use overtake_schedules::{
    BODY_LEN_MAX, BadCron, Cron, NotScheduled, SCHEDULES_MAX, Schedule, ScheduleView, Template,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::answer::rfc3339;
use crate::app::{Answer, App, done, json};
use crate::decode::Json;
use crate::login::At;
use crate::messages::limits;
use crate::named::named;
use crate::path::ScheduleName;
use crate::problem::Problem;

/// Occurrences ahead that one schedule is shown with.
const SHOWN_AHEAD: usize = 5;

/// The paths of schedules.
pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(list_schedules)).routes(routes!(
        put_schedule,
        show_schedule,
        delete_schedule
    ))
}

/// A message to publish to a queue whenever a cron line says so.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ScheduleIn)]
struct ScheduleIn {
    /// The queue.
    queue: String,
    /// Minute, hour, day of month, month, day of week, as in `30 9 * * MON-FRI`; or `@hourly`, `@daily`, `@weekly`, `@monthly`,
    /// `@yearly`.
    cron: String,
    /// A name of the IANA time zone database, as `Europe/Berlin`, in which the line is read.
    #[serde(default = "utc")]
    #[schema(default = "UTC")]
    timezone: String,
    /// The message, without `id`, `delay_ms` and `user_id`, which the schedule says; at most 32 KiB of body. Its `ttl_ms` begins when it is
    /// due.
    message: MessageIn,
}

fn utc() -> String {
    "UTC".to_owned()
}

/// A schedule.
#[derive(Serialize, ToSchema)]
#[schema(as = Schedule)]
struct ScheduleOut<'a> {
    /// Its name.
    name: &'a str,
    /// The queue it publishes to.
    queue: &'a str,
    /// When.
    cron: &'a str,
    /// In which time zone.
    timezone: &'a str,
    /// Who made it, with whose rights it is published.
    user: &'a str,
    /// The occurrences ahead: in a list the next one, else five. The first may have passed: then it is owed, because of `error`.
    #[schema(format = DateTime)]
    next: Vec<String>,
    /// Why the next occurrence is not in its queue, or will not live to see its instant. Where another broker runs schedules, only that one knows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
    /// The broker that runs all schedules, where several brokers are on the same servers.
    #[serde(skip_serializing_if = "Option::is_none")]
    broker: Option<&'a str>,
    /// What it publishes: not in lists, and only for those who may read the queue, or made it.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<ScheduledOut<'a>>,
}

/// What a schedule publishes.
#[derive(Serialize, ToSchema)]
#[schema(as = ScheduledMessage)]
struct ScheduledOut<'a> {
    /// How urgent, as it was given.
    #[schema(value_type = Option<PrioritySchema>)]
    priority: &'a Given,
    /// Its key.
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<&'a str>,
    /// The weight that it gives its key.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 1_000)]
    key_weight: Option<u32>,
    /// Its time to live from the moment it is due, ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    ttl_ms: Option<u64>,
    /// The media type of its body.
    #[serde(skip_serializing_if = "Option::is_none")]
    content_type: Option<&'a str>,
    /// Texts, whole numbers and booleans by name.
    #[schema(value_type = Object)]
    headers: Headers,
    /// The body, if it is UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<&'a str>,
    /// The body in base64, if it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    body_base64: Option<String>,
}

/// Schedules, by name.
#[derive(Serialize, ToSchema)]
#[schema(as = Schedules)]
struct ScheduleList<'a> {
    /// Those whose queue one may see.
    schedules: Vec<ScheduleOut<'a>>,
}

impl<'a> ScheduleOut<'a> {
    fn of(view: &'a ScheduleView) -> Self {
        let Schedule { queue, cron, user, .. } = &*view.schedule;
        Self {
            name: &view.name,
            queue,
            cron: cron.line(),
            timezone: cron.timezone(),
            user,
            next: view.next.iter().copied().map(rfc3339).collect(),
            error: view.error.as_deref(),
            broker: view.leader.broker().map(|name| &**name),
            message: None,
        }
    }

    /// With what it publishes, for those who may know.
    fn whole(view: &'a ScheduleView, desk: &Desk) -> Self {
        let schedule = &view.schedule;
        let may_know = schedule.user == *desk.who().user() || desk.must_read(&schedule.queue).is_ok();
        Self { message: may_know.then(|| ScheduledOut::of(&schedule.message)), ..Self::of(view) }
    }
}

impl<'a> ScheduledOut<'a> {
    fn of(message: &'a Template) -> Self {
        let Template { priority, key, key_weight, ttl_ms, content } = message;
        let body = std::str::from_utf8(&content.body).ok();
        Self {
            priority,
            key: key.as_deref(),
            key_weight: *key_weight,
            ttl_ms: *ttl_ms,
            content_type: content.content_type(),
            headers: content.headers(),
            body,
            body_base64: body.is_none().then(|| STANDARD.encode(&content.body)),
        }
    }
}

impl ScheduleIn {
    fn into_schedule(self, desk: &Desk, limits: Limits) -> Result<Schedule, Problem> {
        let queue: Arc<str> = checked_queue(&self.queue, "queue")?.into();
        let said_by_schedule = [
            ("id", self.message.id.is_some()),
            ("delay_ms", self.message.delay_ms.is_some()),
            ("user_id", self.message.user_id.is_some()),
        ];
        if let Some((field, _)) = said_by_schedule.into_iter().find(|(_, is_there)| *is_there) {
            let detail = "the schedule says id, delay and user of its messages";
            return Err(Problem::bad_value(format!("message.{field}"), detail)
                .hint(format!("leave `message.{field}` out")));
        }
        let to = Target::Queue(Arc::clone(&queue));
        let message = self.message.into_message(to, limits).map_err(|problem| problem.inside("message"))?;
        let NewMessage { priority, key, key_weight, ttl_ms, content, .. } = message;
        check_key(key.as_deref(), key_weight).map_err(|refusal| Problem::from(refusal).inside("message"))?;
        Ok(Schedule {
            queue,
            cron: Cron::parse(&self.cron, &self.timezone)?,
            user: Arc::clone(desk.who().user()),
            message: Template { priority, key, key_weight, ttl_ms, content },
        })
    }
}

impl From<BadCron> for Problem {
    fn from(bad: BadCron) -> Self {
        let key = if matches!(bad, BadCron::Timezone(_)) { "timezone" } else { "cron" };
        Self::bad_value(key, bad.to_string()).hint(bad.hint())
    }
}

impl From<NotScheduled> for Problem {
    fn from(not: NotScheduled) -> Self {
        let told = not.to_string();
        match not {
            NotScheduled::BadName => {
                Self::from(Refusal::NameInvalid).key("schedule").detail(told.clone()).hint(told)
            }
            NotScheduled::NoSuchSchedule => Self::new(
                StatusCode::NOT_FOUND,
                "no-such-schedule",
                "there is no such schedule",
                "list the schedules, and say in which virtual host it is; those of queues one may not see are not shown",
            ),
            NotScheduled::TooMany => Self::new(
                StatusCode::CONFLICT,
                "too-many-schedules",
                "there are too many schedules",
                "delete those that nobody needs",
            )
            .detail(format!("there may be {SCHEDULES_MAX}")),
            NotScheduled::Unkeepable(_) => Self::too_large(
                "schedule-too-large",
                "the message of the schedule is too large",
                BODY_LEN_MAX as u64,
                "store the body elsewhere and let the message name it",
            )
            .detail(told)
            .key("message"),
            NotScheduled::LastValue => {
                Self::bad_value("queue", told).hint("use a queue without the setting `last_value`")
            }
            NotScheduled::NotDone(not) => {
                about(&not).map_or_else(|| not.clone().into(), |key| Self::from(not.clone()).key(key))
            }
        }
    }
}

/// The field a refusal is about.
fn about(not: &NotDone) -> Option<&'static str> {
    let NotDone::Failed(Failure::Refused(refused)) = not else { return None };
    match refused.refusal {
        Refusal::NoSuchQueue => Some("queue"),
        Refusal::PriorityUnknown | Refusal::PriorityOutOfRange => Some("message.priority"),
        _ => None,
    }
}

/// The schedules of a virtual host whose queues one may see.
#[utoipa::path(get, path = "/v1/schedules", tag = "schedules", responses((status = 200, description = "By name", body = ScheduleList)))]
async fn list_schedules(State(app): State<Arc<App>>, At(desk): At) -> Answer {
    let all = app.services.schedules.list(&desk).await?;
    json(StatusCode::OK, &ScheduleList { schedules: all.iter().map(ScheduleOut::of).collect() })
}

/// Makes a schedule, or changes the one of this name. Takes the right to write its queue, and that of the one that was.
///
/// One occurrence ahead waits in the queue as a delayed message with the id `NAME@2026-11-22T10:00:00Z`. It is published with the rights
/// that whoever made the schedule has then. When it is due, the next one follows. After a time in which the broker was down the
/// occurrence that waited runs late, and those missed after it are left out. A change takes the one that waits out; what is due stays.
#[utoipa::path(
    put, path = "/v1/schedules/{schedule}", tag = "schedules",
    params(("schedule" = String, Path, description = "Name, percent-encoded; 1 to 179 bytes")),
    request_body = ScheduleIn,
    responses(
        (status = 201, description = "Made", body = ScheduleOut),
        (status = 200, description = "It was there", body = ScheduleOut),
    )
)]
async fn put_schedule(
    State(app): State<Arc<App>>,
    At(desk): At,
    ScheduleName(name): ScheduleName,
    Json(schedule): Json<ScheduleIn>,
) -> Answer {
    let schedule = schedule.into_schedule(&desk, limits(&app))?;
    let queue = Arc::clone(&schedule.queue);
    let (is_new, view) = match app.services.schedules.put(&desk, &name, schedule, SHOWN_AHEAD).await {
        Ok(put) => put,
        Err(not) => return Err(named(not.into(), &desk, &queue).await),
    };
    json(if is_new { StatusCode::CREATED } else { StatusCode::OK }, &ScheduleOut::whole(&view, &desk))
}

/// One schedule. Takes any right to its queue.
#[utoipa::path(
    get, path = "/v1/schedules/{schedule}", tag = "schedules",
    params(("schedule" = String, Path, description = "Name, percent-encoded")),
    responses((status = 200, description = "The schedule", body = ScheduleOut))
)]
async fn show_schedule(
    State(app): State<Arc<App>>,
    At(desk): At,
    ScheduleName(name): ScheduleName,
) -> Answer {
    let view = app.services.schedules.show(&desk, &name, SHOWN_AHEAD).await?;
    json(StatusCode::OK, &ScheduleOut::whole(&view, &desk))
}

/// Deletes a schedule with the occurrence that waits; what is due already stays. Takes the right to write its queue.
#[utoipa::path(
    delete, path = "/v1/schedules/{schedule}", tag = "schedules",
    params(("schedule" = String, Path, description = "Name, percent-encoded")),
    responses((status = 204, description = "Gone"))
)]
async fn delete_schedule(
    State(app): State<Arc<App>>,
    At(desk): At,
    ScheduleName(name): ScheduleName,
) -> Answer {
    app.services.schedules.delete(&desk, &name).await?;
    done()
}
