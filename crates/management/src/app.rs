//! What all handlers share.

use std::sync::Arc;

use overtake_access::{DEFAULT_VHOST, Desks, Identity, Tag};
use overtake_engine::Health;

use crate::connections::Connections;
use crate::options::ManagementOptions;
use crate::problem::Problem;
use crate::rates::Rates;

/// What all handlers share.
pub(crate) struct App {
    pub(crate) desks: Desks,
    pub(crate) options: ManagementOptions,
    pub(crate) connections: Connections,
    pub(crate) rates: Rates,
}

impl App {
    /// The names of the virtual hosts.
    pub(crate) async fn vhosts(&self) -> Result<Vec<Arc<str>>, Problem> {
        Ok(vec![DEFAULT_VHOST.into()])
    }

    /// Whether the engine can serve.
    pub(crate) fn health(&self) -> Health {
        let itself = Identity::almighty("overtake");
        self.desks.engine(&itself, Tag::Monitoring).expect("the broker may look at itself").health()
    }

    /// Somebody wants to see rates.
    pub(crate) fn watch(&self) {
        let itself = Identity::almighty("overtake");
        let engine = self.desks.engine(&itself, Tag::Monitoring).expect("the broker may look at itself");
        self.rates.watch(engine, self.options.sampled_every);
    }
}
