//! Opening the engine that keeps its messages on servers of Redis or Valkey.

use overtake_peer::Vault;
use overtake_valkey::cluster::{Cluster, Holds};
use overtake_valkey::functions::LIBRARY;

use crate::ServeError;
use crate::config::Servers;
use crate::running::Opened;

/// Connects to the servers, and tells which promises hold there.
///
/// # Errors
/// Why messages cannot be kept there.
pub(crate) async fn open_cluster_engine(servers: Servers) -> Result<Opened, ServeError> {
    let durability = servers.nodes.durability;
    let connected = Cluster::connect(servers.nodes, Vault::Any, LIBRARY).await;
    let cluster = connected.map_err(|why| ServeError::Servers { why })?;
    for promise in cluster.facts().await.promises(durability) {
        let (event, why) = (promise.event, &promise.why);
        match promise.holds {
            Holds::Yes => tracing::info!("a confirmed message survives {event}: {why}"),
            Holds::No => tracing::warn!("a confirmed message may not survive {event}: {why}"),
            Holds::Unknown => {
                tracing::warn!("whether a confirmed message survives {event} is not known: {why}")
            }
        }
    }
    Err(ServeError::Servers { why: "this build cannot keep messages on servers yet".to_owned() })
}
