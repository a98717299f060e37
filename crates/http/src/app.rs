//! What all handlers share, and how they answer.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use overtake_access::{Desk, Desks};
use overtake_api::body::receipts;
use overtake_lane::{QueueId, Receipt};
use overtake_telemetry::Source;
use serde::Serialize;

use crate::metrics::Requests;
use crate::options::HttpOptions;
use crate::problem::Problem;
use crate::services::Services;

/// Most queue names remembered. Forgetting one costs one more look at the queue.
const REMEMBERED_MAX: usize = 10_000;

/// What an handler answers.
pub(crate) type Answer = Result<Response, Problem>;

/// What all handlers share.
pub(crate) struct App {
    pub(crate) desks: Desks,
    pub(crate) services: Services,
    pub(crate) options: HttpOptions,
    pub(crate) requests: Arc<Requests>,
    pub(crate) queue_ids: QueueIds,
}

impl App {
    pub(crate) fn new(desks: Desks, services: Services, options: HttpOptions) -> Self {
        let requests = Arc::new(Requests::default());
        options.telemetry.add(Arc::clone(&requests) as Arc<dyn Source>);
        let queue_ids = QueueIds::default();
        Self { desks, services, options, requests, queue_ids }
    }

    /// The receipts as the model has them, all of this queue.
    ///
    /// # Errors
    /// 422 for the first that is malformed or of another queue, 404 when there is no such queue.
    pub(crate) async fn receipts(
        &self,
        desk: &Desk,
        queue: &str,
        texts: &[String],
    ) -> Result<Vec<Receipt>, Problem> {
        let receipts = receipts(texts)?;
        let belong = |id: QueueId| receipts.iter().all(|receipt| receipt.queue == id);
        if self.queue_ids.get(desk, queue).is_some_and(belong) {
            return Ok(receipts);
        }
        let id = desk.queue(queue).await?.queue;
        self.queue_ids.remember(desk, queue, id);
        match receipts.iter().position(|receipt| receipt.queue != id) {
            None => Ok(receipts),
            Some(at) => Err(Problem::bad_value(
                format!("receipts[{at}]"),
                format!("the receipt is of a message of another queue than `{queue}`"),
            )),
        }
    }
}

/// Which number a queue has, for receipts. Only a hint: one that does not match is looked up again, and an old number
/// that does match is judged by the broker, for which the receipt is stale.
#[derive(Default)]
pub(crate) struct QueueIds(Mutex<HashMap<Place, QueueId>>);

/// A virtual host and a name in it.
type Place = (Arc<str>, Arc<str>);

fn place(desk: &Desk, queue: &str) -> Place {
    (Arc::clone(desk.vhost()), Arc::from(queue))
}

impl QueueIds {
    fn get(&self, desk: &Desk, queue: &str) -> Option<QueueId> {
        self.known().get(&place(desk, queue)).copied()
    }

    pub(crate) fn remember(&self, desk: &Desk, queue: &str, id: QueueId) {
        let (mut known, place) = (self.known(), place(desk, queue));
        if known.get(&place) == Some(&id) {
            return;
        }
        if known.len() >= REMEMBERED_MAX {
            known.clear();
        }
        known.insert(place, id);
    }

    pub(crate) fn forget(&self, desk: &Desk, queue: &str) {
        self.known().remove(&place(desk, queue));
    }

    fn known(&self) -> MutexGuard<'_, HashMap<Place, QueueId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An answer in JSON.
pub(crate) fn json(status: StatusCode, answer: &impl Serialize) -> Answer {
    let body = serde_json::to_vec(answer).map_err(|error| {
        Problem::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "answer-not-encoded",
            "the answer could not be written as JSON",
            "report this: it is a bug in the broker",
        )
        .detail(error.to_string())
    })?;
    Ok(json_text(status, body))
}

/// An answer that is JSON already.
pub(crate) fn json_text(status: StatusCode, text: impl Into<Body>) -> Response {
    let mut response = (status, text.into()).into_response();
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// Done, and nothing to say.
pub(crate) fn done() -> Answer {
    Ok(StatusCode::NO_CONTENT.into_response())
}
