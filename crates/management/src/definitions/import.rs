//! Carrying out a plan: what others stand on comes first.

use std::collections::BTreeMap;
use std::sync::Arc;

use overtake_access::{Deed, Desks, Identity, Tag};
use overtake_engine::{Connection, Engine};
use serde_json::Value;

use super::plan::Plan;
use crate::problem::Problem;

impl Plan {
    /// Does all of it. `by` is who is written down; `None`: the server itself.
    pub(crate) async fn carry_out(&self, desks: &Desks, by: Option<&Identity>) -> Result<(), Problem> {
        if self.changes().is_empty() {
            return Ok(());
        }
        let itself = Identity::almighty("overtake");
        let engine = desks.engine(by.unwrap_or(&itself), Tag::Administrator)?;
        for (name, settings) in &self.vhosts {
            engine.declare_vhost(name, settings.clone()).await?;
        }
        if !self.people.is_empty() {
            desks.gate().change(by, self.people.clone()).await?;
        }
        if !self.parameters.is_empty() {
            engine.set_metadata(self.parameters.clone()).await?;
        }
        self.declare(&inside(engine).await?).await?;
        let deed = Deed::of(by, "definitions.import", "").from_to(Value::Null, self.changes());
        desks.gate().record(deed);
        Ok(())
    }

    async fn declare(&self, vhosts: &BTreeMap<String, Connection>) -> Result<(), Problem> {
        let inside = |vhost: &str| vhosts.get(vhost).ok_or_else(Problem::not_found);
        for (vhost, kind, name, policy) in &self.policies {
            inside(vhost)?.set_policy(*kind, name, policy.clone()).await?;
        }
        for (vhost, name, settings) in &self.exchanges {
            inside(vhost)?.declare_exchange(name, settings.clone()).await?;
        }
        for (vhost, name, queue) in &self.queues {
            inside(vhost)?.declare(name, queue.clone()).await?;
        }
        for (vhost, binding) in &self.bindings {
            inside(vhost)?.bind(binding.clone()).await?;
        }
        Ok(())
    }
}

/// The engine in each virtual host, by its name.
async fn inside(engine: &Arc<dyn Engine>) -> Result<BTreeMap<String, Connection>, Problem> {
    let vhosts = engine.vhosts().await?.into_iter();
    Ok(vhosts.map(|vhost| (vhost.name.to_string(), engine.in_vhost(vhost.vhost))).collect())
}
