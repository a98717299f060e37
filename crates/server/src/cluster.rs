//! Opening the engine that keeps its messages on servers of Redis or Valkey.

use std::sync::Arc;

use overtake_engine::Full;
use overtake_peer::Vault;
use overtake_valkey::cluster::Holds;
use overtake_valkey::engine::{ClusterEngine, Options};
use tokio::sync::watch::Receiver;

use crate::ServeError;
use crate::config::{Config, Servers};
use crate::running::{Found, Opened, Running, Waiting};

/// Connects to the servers, and tells which promises hold there.
///
/// # Errors
/// Why messages cannot be kept there.
pub(crate) async fn open_cluster_engine(config: &Config, servers: Servers) -> Result<Opened, ServeError> {
    let durability = servers.nodes.durability;
    let options = Options {
        max_message_bytes: config.max_message_bytes(),
        default_ttl_ms: config.limits.default_ttl_ms.value.0,
        sweep: servers.sweep,
        ..Options::new(servers.nodes, Vault::ANY)
    };
    let opened = ClusterEngine::open(options).await;
    let engine = opened.map_err(|error| ServeError::Servers { why: error.to_string() })?;
    for promise in engine.cluster().facts().await.promises(durability) {
        let (event, why) = (promise.event, &promise.why);
        match promise.holds {
            Holds::Yes => tracing::info!("a confirmed message survives {event}: {why}"),
            Holds::No => tracing::warn!("a confirmed message may not survive {event}: {why}"),
            Holds::Unknown => {
                tracing::warn!("whether a confirmed message survives {event} is not known: {why}")
            }
        }
    }
    let primaries = engine.cluster().map().primaries().into_iter().map(ToString::to_string).collect();
    Ok(Opened { running: Arc::new(engine), found: Found::Servers { primaries } })
}

impl Running for ClusterEngine {
    fn full(&self) -> Receiver<Option<Full>> {
        self.cluster().full()
    }

    fn failed(&self) -> Waiting<'_, Arc<str>> {
        Box::pin(Self::failed(self))
    }

    fn close(self: Arc<Self>) -> Waiting<'static, Result<(), ServeError>> {
        Box::pin(async move {
            Self::close(&self).await;
            Ok(())
        })
    }
}
