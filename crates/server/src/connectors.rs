//! Endpoints and sources, as they are configured and as they are remembered.

use std::sync::Arc;

use overtake_access::Gate;
use overtake_connectors::{Connector, Endpoints, Registry, Sources};
use overtake_engine::{Engine, SystemClock};
use overtake_peer::LinkLocal;
use overtake_telemetry as telemetry;

use crate::ServeError;
use crate::config::{Config, Configured};

/// All of them at work.
///
/// # Errors
/// One that stands in the configuration cannot be.
pub(crate) async fn open(
    config: &Config,
    engine: &Arc<dyn Engine>,
    gate: &Arc<Gate>,
    counted: &telemetry::Registry,
) -> Result<(Arc<Endpoints>, Arc<Sources>), ServeError> {
    let may = config.access.link_local_targets.value;
    let link_local = if may { LinkLocal::Allowed } else { LinkLocal::Refused };
    let endpoints = open_all("endpoints", &config.endpoints, engine, gate, link_local).await?;
    let sources = open_all("sources", &config.sources, engine, gate, link_local).await?;
    counted.add(Arc::clone(&endpoints) as Arc<dyn telemetry::Source>);
    counted.add(Arc::clone(&sources) as Arc<dyn telemetry::Source>);
    Ok((endpoints, sources))
}

async fn open_all<C: Connector>(
    section: &str,
    configured: &[Configured<C>],
    engine: &Arc<dyn Engine>,
    gate: &Arc<Gate>,
    link_local: LinkLocal,
) -> Result<Arc<Registry<C>>, ServeError> {
    let all = configured.iter().map(|one| (one.name.clone(), one.definition.clone())).collect();
    let (engine, gate) = (Arc::clone(engine), Arc::clone(gate));
    let opened = Registry::open_with(engine, gate, Arc::new(SystemClock), all, link_local).await;
    opened.map_err(|(name, not)| match configured.iter().find(|one| one.name == name) {
        Some(one) => ServeError::Connector {
            place: one.origin.clone(),
            name: format!("{section}.{name}"),
            why: not.to_string(),
        },
        None => ServeError::Stopped { why: not.to_string() },
    })
}
