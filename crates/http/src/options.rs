//! What the server tells the routes: limits, and in which part of its life it is.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use overtake_telemetry::Registry;
use tokio_util::sync::CancellationToken;

use crate::drain::Drain;

/// What the server decides about the HTTP interface.
#[derive(Clone, Debug)]
pub struct HttpOptions {
    /// Largest body of a message, bytes.
    pub max_message_bytes: u64,
    /// Largest body of a request, bytes. Should leave room for a message in base64, that is 4/3 of it and a little.
    pub max_request_bytes: u64,
    /// Once it has begun requests that wait for messages end, new ones are refused, and `/readyz` says so. Everything else is
    /// still answered.
    pub drain: Drain,
    /// How long what is leased may take to be settled when whoever asks for a drain does not say.
    pub drain_timeout: Duration,
    /// Cancelled when the server stops: what would go on for long ends.
    pub shutdown: CancellationToken,
    /// Why the server is not ready, apart from draining and from the engine's own health.
    pub readiness: Readiness,
    /// The address of a page that shows a trace, with `{trace_id}` in it.
    pub trace_url: Option<Arc<str>>,
    /// Version of the server, for `/livez`.
    pub version: Arc<str>,
    /// What `/metrics` tells. The requests of this interface are added to it.
    pub telemetry: Arc<Registry>,
}

/// 16 MiB a message, 32 MiB a request, ready, never draining.
impl Default for HttpOptions {
    fn default() -> Self {
        Self {
            max_message_bytes: 16 << 20,
            max_request_bytes: 32 << 20,
            drain: Drain::default(),
            drain_timeout: Duration::from_secs(30),
            shutdown: CancellationToken::new(),
            readiness: Readiness::default(),
            trace_url: None,
            version: Arc::from(env!("CARGO_PKG_VERSION")),
            telemetry: Arc::default(),
        }
    }
}

/// Whether the server wants requests: a flag with its reason. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Readiness(Arc<Mutex<Option<Arc<str>>>>);

impl Readiness {
    /// From now on `/readyz` answers 503 with this reason.
    pub fn not_ready(&self, why: &str) {
        self.set(Some(Arc::from(why)));
    }

    /// From now on `/readyz` answers 200, if the engine is well.
    pub fn ready(&self) {
        self.set(None);
    }

    /// Why not, if not.
    #[must_use]
    pub fn why_not(&self) -> Option<Arc<str>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, why: Option<Arc<str>>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = why;
    }
}
