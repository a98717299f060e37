//! Endpoints and sources, as they are configured and as they are remembered.

use std::sync::Arc;

use overtake_access::Gate;
use overtake_connectors::{Connector, Endpoints, Registry, Sources};
use overtake_engine::{Engine, SystemClock};
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
    let endpoints = open_all("endpoints", &config.endpoints, engine, gate).await?;
    let sources = open_all("sources", &config.sources, engine, gate).await?;
    counted.add(Arc::clone(&endpoints) as Arc<dyn telemetry::Source>);
    counted.add(Arc::clone(&sources) as Arc<dyn telemetry::Source>);
    Ok((endpoints, sources))
}

async fn open_all<C: Connector>(
    section: &str,
    configured: &[Configured<C>],
    engine: &Arc<dyn Engine>,
    gate: &Arc<Gate>,
) -> Result<Arc<Registry<C>>, ServeError> {
    let all = configured.iter().map(|one| (one.name.clone(), one.definition.clone())).collect();
    let opened = Registry::open(Arc::clone(engine), Arc::clone(gate), Arc::new(SystemClock), all).await;
    opened.map_err(|(name, not)| match configured.iter().find(|one| one.name == name) {
        Some(one) => ServeError::Connector {
            place: one.origin.clone(),
            name: format!("{section}.{name}"),
            why: not.to_string(),
        },
        None => ServeError::Stopped { why: not.to_string() },
    })
}
