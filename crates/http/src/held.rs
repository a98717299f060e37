//! What answers say about a lease: who holds it, and how far the work is.

use std::sync::Arc;

use overtake_engine::{Held, Holder, WORKER_LEN_MAX};
use serde::Serialize;
use utoipa::ToSchema;

use crate::answer::rfc3339;
use crate::problem::Problem;

/// Who holds a message, as far as it is known: nothing of it is, once the broker was restarted.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = Holder)]
pub(crate) struct HolderOut {
    /// The user.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    user: Option<Arc<str>>,
    /// The AMQP connection of its consumer, by the name that the management API has for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    connection: Option<Arc<str>>,
    /// The tag of its consumer on that connection; missing for `basic.get`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    consumer_tag: Option<Arc<str>>,
    /// The address from which it was leased over HTTP.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    address: Option<Arc<str>>,
    /// The `worker` that the lease request named.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    worker: Option<Arc<str>>,
    /// When it was leased.
    #[schema(format = DateTime)]
    since: String,
}

impl HolderOut {
    /// `None` where nothing is known.
    pub(crate) fn of(held: Option<&Held>) -> Option<Self> {
        let held = held?;
        let since = held.since.map(rfc3339)?;
        let by = held.by.as_deref().cloned().unwrap_or_default();
        let Holder { user, connection, consumer_tag, address, worker } = by;
        Some(Self { user, connection, consumer_tag, address, worker, since })
    }
}

/// How far the work on a message is, as whoever does it said last.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = Progress)]
pub(crate) struct ProgressOut {
    /// The end of what it has printed so far.
    #[schema(value_type = String)]
    output: Arc<str>,
    /// When it said so.
    #[schema(format = DateTime)]
    at: String,
}

impl ProgressOut {
    /// `None` where nothing was said.
    pub(crate) fn of(held: Option<&Held>) -> Option<Self> {
        let progress = held?.progress.as_deref()?;
        Some(Self { output: Arc::clone(&progress.output), at: rfc3339(progress.at) })
    }
}

/// The name that a worker gives itself.
///
/// # Errors
/// 422 for one that cannot be shown in a line.
pub(crate) fn worker(name: Option<String>) -> Result<Option<Arc<str>>, Problem> {
    let Some(name) = name else { return Ok(None) };
    let fits = !name.is_empty() && name.len() <= WORKER_LEN_MAX && !name.chars().any(char::is_control);
    let wrong = || {
        let rule = format!("must be 1 to {WORKER_LEN_MAX} bytes without control characters, or be left out");
        Problem::bad_value("worker", rule)
    };
    fits.then(|| Some(name.into())).ok_or_else(wrong)
}
