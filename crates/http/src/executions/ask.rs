//! What requests about executions say: which queue, and which of them.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use overtake_access::{Desk, NotDone, Tag};
use overtake_api::name::checked_queue;
use overtake_api::params::{Params, digits};
use overtake_lane::{Given, QueueView, Refusal};

use super::item::ExecutionStatus;
use crate::app::App;
use crate::login::At;
use crate::named::named;
use crate::problem::Problem;

/// The queue, if the request does not say.
const DEFAULT_QUEUE: &str = "executions";
/// Executions of a page, if the request does not say.
const LIMIT: usize = 50;
/// Most executions of a page.
const LIMIT_MAX: u64 = 200;

/// A queue with its history, for an administrator. Takes every parameter of the query.
pub(crate) struct Executions {
    pub(super) desk: Desk,
    pub(super) queue: Arc<str>,
    /// The queue as it was when the request came.
    pub(super) view: QueueView,
    pub(super) history: Option<Arc<str>>,
}

/// The same, and which of them to list.
pub(crate) struct Listed(pub(crate) Executions, pub(crate) ExecutionQuery);

/// Which executions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ExecutionQuery {
    /// Only what stands so.
    pub(super) status: Option<ExecutionStatus>,
    /// Only of this priority.
    pub(super) priority: Option<Given>,
    /// Only of this user.
    pub(super) user_id: Option<String>,
    /// At most so many.
    pub(super) limit: usize,
    /// Leave out so many first.
    pub(super) skip: u64,
}

impl FromRequestParts<Arc<App>> for Executions {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Problem> {
        let desk = administrator(parts, app).await?;
        let mut params = Params::parse(parts.uri.query().unwrap_or_default())?;
        let queue = take_queue(&mut params)?;
        Self::at(desk, queue).await
    }
}

impl FromRequestParts<Arc<App>> for Listed {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Problem> {
        let desk = administrator(parts, app).await?;
        let mut params = Params::parse(parts.uri.query().unwrap_or_default())?;
        let queue = take_queue(&mut params)?;
        let query = ExecutionQuery::of(params)?;
        Ok(Self(Executions::at(desk, queue).await?, query))
    }
}

async fn administrator(parts: &mut Parts, app: &Arc<App>) -> Result<Desk, Problem> {
    let At(desk) = At::from_request_parts(parts, app).await?;
    desk.who().must_have(Tag::Administrator)?;
    Ok(desk)
}

fn take_queue(params: &mut Params) -> Result<Arc<str>, Problem> {
    let named = params.take("queue")?;
    Ok(Arc::from(checked_queue(named.as_deref().unwrap_or(DEFAULT_QUEUE), "queue")?))
}

impl Executions {
    async fn at(desk: Desk, queue: Arc<str>) -> Result<Self, Problem> {
        let view = match desk.queue(&queue).await {
            Ok(view) => view,
            Err(not) => return Err(no_queue(&desk, &queue, not).await),
        };
        let history = view.effective_settings().history.as_deref().map(Arc::from);
        Ok(Self { desk, queue, view, history })
    }
}

async fn no_queue(desk: &Desk, queue: &str, not: NotDone) -> Problem {
    if !not.is(Refusal::NoSuchQueue) {
        return not.into();
    }
    let problem = Problem::from(Refusal::NoSuchQueue).key("queue").hint(format!(
        "make it with `overtake exec create --queue {queue}`, or name another: `queue=NAME`, on the command line `--queue NAME`"
    ));
    named(problem, desk, queue).await
}

impl ExecutionQuery {
    fn of(mut params: Params) -> Result<Self, Problem> {
        let status = params.take("status")?.map(|word| status(&word)).transpose()?;
        let priority = params.take_priority()?;
        let user_id = params.take("user_id")?;
        let limit = params.take("limit")?.map_or(Ok(LIMIT), |word| limit(&word))?;
        let skip = params.take("skip")?.map_or(Ok(0), |word| skip(&word))?;
        Ok(Self { status, priority, user_id, limit, skip })
    }
}

fn status(word: &str) -> Result<ExecutionStatus, Problem> {
    ExecutionStatus::of_word(word).ok_or_else(|| {
        Problem::bad_value("status", format!("must be one of {}", ExecutionStatus::WORDS.join(", ")))
    })
}

fn limit(word: &str) -> Result<usize, Problem> {
    let number = digits(word).filter(|number| (1..=LIMIT_MAX).contains(number));
    number
        .and_then(|number| usize::try_from(number).ok())
        .ok_or_else(|| Problem::bad_value("limit", format!("must be a whole number from 1 to {LIMIT_MAX}")))
}

fn skip(word: &str) -> Result<u64, Problem> {
    digits(word).ok_or_else(|| Problem::bad_value("skip", "must be a whole number, 0 or more"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(query: &str, expect: &str) {
        let seen = match Params::parse(query).map_err(Problem::from).and_then(ExecutionQuery::of) {
            Ok(ExecutionQuery { status, priority, user_id, limit, skip }) => {
                format!("{status:?} {priority:?} {user_id:?} {limit} {skip}")
            }
            Err(problem) => format!("{} {:?}", problem.0.body().code(), problem.0.body().about()),
        };
        assert_eq!(seen, expect, "{query}");
    }

    #[test]
    fn a_query_names_what_is_wrong_with_it() {
        check("", "None None None 50 0");
        check(
            "status=running&priority=high&user_id=ann&limit=200&skip=7",
            r#"Some(Running) Some(Name("high")) Some("ann") 200 7"#,
        );
        check("status=done", r#"value-invalid Some("status")"#);
        check("priority=%20", r#"value-invalid Some("priority")"#);
        check("limit=0", r#"value-invalid Some("limit")"#);
        check("limit=201", r#"value-invalid Some("limit")"#);
        check("limit=x", r#"value-invalid Some("limit")"#);
        check("skip=-1", r#"value-invalid Some("skip")"#);
        check("skip=1&skip=2", r#"value-invalid Some("skip")"#);
    }
}
