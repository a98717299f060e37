//! What all handlers share.

use std::sync::Arc;

use overtake_access::{Desks, Identity, Tag};
use overtake_engine::{Engine, Health};
use overtake_lane::VhostView;

use crate::connections::Connections;
use crate::options::ManagementOptions;
use crate::problem::Problem;
use crate::rates::{Rates, Sources, Watched};

/// What all handlers share.
pub(crate) struct App {
    pub(crate) desks: Desks,
    pub(crate) options: ManagementOptions,
    pub(crate) connections: Connections,
    pub(crate) rates: Rates,
}

impl App {
    /// Every virtual host.
    pub(crate) async fn vhosts(&self) -> Result<Vec<VhostView>, Problem> {
        Ok(self.engine().vhosts().await?)
    }

    /// The engine, for what nobody in particular asks.
    pub(crate) fn engine(&self) -> &Arc<dyn Engine> {
        let itself = Identity::almighty("overtake");
        self.desks.engine(&itself, Tag::Administrator).expect("the broker may look at itself")
    }

    /// Whether the engine can serve.
    pub(crate) fn health(&self) -> Health {
        self.engine().health()
    }

    /// Somebody wants to see the rates of this.
    pub(crate) fn watch(&self, what: Watched) {
        self.rates.watch(what, || self.sources(), self.options.sampled_every);
    }

    /// Where numbers come from.
    pub(crate) fn sources(&self) -> Sources {
        Sources { engine: Arc::clone(self.engine()), connections: self.connections.clone() }
    }
}
