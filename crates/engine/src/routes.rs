//! Routes: what a virtual host has of them, and what they have done.

use std::sync::Arc;

use overtake_lane::Refusal;
use overtake_routes::{Manifest, NamedRoute, RouteTable, Sink};

use crate::api::{Engine, Failure, Refused};

/// The exchange whose messages routes decide on, of every virtual host; the routing key is the path that a message comes from. Nobody
/// declares, binds or deletes it.
pub const ROUTES_EXCHANGE: &str = "overtake.routes";

/// The routes of a virtual host, ready for messages.
#[derive(Debug, Default)]
pub struct RouteSet {
    manifest: Manifest,
    table: RouteTable,
}

impl RouteSet {
    /// Makes the routes of a manifest ready. Takes longer the more there are: not for the engine's thread.
    #[must_use]
    pub fn new(manifest: Manifest) -> Self {
        let table = RouteTable::compile(&manifest);
        Self { manifest, table }
    }

    /// The routes as they were written.
    #[must_use]
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The routes as messages meet them.
    #[must_use]
    pub fn table(&self) -> &RouteTable {
        &self.table
    }
}

/// The path that a routing key means: paths begin with `/`, and routing keys need not.
#[must_use]
pub fn path_of(routing_key: &str) -> std::borrow::Cow<'_, str> {
    if routing_key.starts_with('/') { routing_key.into() } else { format!("/{routing_key}").into() }
}

/// Whether the engine makes the queue of a sink where it is not there: `Queue` means one that somebody declared.
#[must_use]
pub fn is_endpoint(sink: &Sink) -> bool {
    !matches!(sink, Sink::Queue(_))
}

/// The first route of a manifest, by name, into a queue that somebody must declare before; none: every copy finds a place.
///
/// # Errors
/// [`Failure`] of an engine that is gone, or whose virtual host is.
pub async fn leads_nowhere<'m>(
    engine: &dyn Engine,
    manifest: &'m Manifest,
) -> Result<Option<&'m NamedRoute>, Failure> {
    for route in manifest.routes.iter().filter(|route| !is_endpoint(&route.route.sink)) {
        match engine.queue(route.route.sink.name()).await {
            Ok(_) => {}
            Err(Failure::Refused(Refused { refusal: Refusal::NoSuchQueue, .. })) => return Ok(Some(route)),
            Err(failure) => return Err(failure),
        }
    }
    Ok(None)
}

/// The routes of a virtual host, and what they did since the engine was opened.
#[derive(Clone, Debug)]
pub struct RoutesView {
    /// The routes.
    pub set: Arc<RouteSet>,
    /// Of each route, by its number in the table, since it is as it is.
    pub counts: Vec<RouteCounts>,
    /// Messages that came.
    pub published: u64,
    /// Those that no route matched.
    pub unrouted: u64,
    /// Those that only fallback routes matched.
    pub fallback: u64,
}

/// What a route did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RouteCounts {
    /// Messages that it matched.
    pub matched: u64,
    /// Messages for which its condition was undefined.
    pub undefined: u64,
    /// Copies that it decided on: not where a more urgent route has the same sink.
    pub copies: u64,
}
