//! Draining: nothing more is given out, and what is out comes back, up to a bound.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use overtake_access::{Deed, Tag};
use overtake_api::params::Params;
use serde::Serialize;
use tokio_util::sync::CancellationToken;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::{Answer, App, json};
use crate::login::Who;
use crate::problem::Problem;

/// A drain that the server is to carry out, and whoever asked for it waits for. It begins once, and there is no way back but
/// another start. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Drain(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    bound: OnceLock<Duration>,
    begun: CancellationToken,
    drained: OnceLock<Drained>,
    over: CancellationToken,
}

/// What came of a drain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct Drained {
    /// Everything came back within the bound.
    pub drained: bool,
    /// Messages that were still leased then. Those that AMQP connections held were put back.
    pub unacknowledged: u64,
}

impl Drain {
    /// Begins, with so much time for what is out to come back. One that has begun stays as it is.
    pub fn begin(&self, bound: Duration) {
        self.0.bound.get_or_init(|| bound);
        self.0.begun.cancel();
    }

    /// Cancelled when it begins.
    #[must_use]
    pub fn begun(&self) -> CancellationToken {
        self.0.begun.clone()
    }

    /// How long what is out may take, once it has begun.
    #[must_use]
    pub fn bound(&self) -> Duration {
        self.0.bound.get().copied().unwrap_or_default()
    }

    /// It is over. Only the first word counts.
    pub fn finish(&self, drained: Drained) {
        self.0.drained.get_or_init(|| drained);
        self.0.over.cancel();
    }

    /// Once it is over, what came of it.
    pub async fn finished(&self) -> Drained {
        self.0.over.cancelled().await;
        *self.0.drained.get().expect("it is said before it is over")
    }
}

/// The paths of draining.
pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(drain))
}

/// Prepares the server for its end: it is no longer ready, accepts no AMQP connections, cancels consumers, gives out no more
/// messages, and closes AMQP connections that hold nothing any more.
///
/// For administrators. Answers once every lease is settled, or when the time is over; then AMQP connections are closed, and what they hold is put back.
/// The server still runs, and takes settlements and publishes over HTTP: end it with SIGTERM. There is no way back but another
/// start. Asked again it waits for the drain that has begun, whose time stays as it was.
#[utoipa::path(
    post, path = "/v1/drain", tag = "admin",
    params(("timeout_ms" = Option<u64>, Query, description = "How long what is leased may take, else `server.drain_timeout_ms`; at most 86,400,000")),
    responses((status = 200, description = "It is over", body = Drained))
)]
async fn drain(State(app): State<Arc<App>>, Who(who): Who, params: Params) -> Answer {
    let (options, timeout) = (&app.options, params.into_timeout()?);
    who.must_have(Tag::Administrator)?;
    app.desks.gate().record(Deed::of(Some(&who), "server.drain", ""));
    options.drain.begin(timeout.unwrap_or(options.drain_timeout));
    tokio::select! {
        biased;
        drained = options.drain.finished() => json(StatusCode::OK, &drained),
        () = options.shutdown.cancelled() => Err(Problem::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "draining",
            "the broker is stopping",
            "what is leased is put back when the broker is started again",
        )),
    }
}
