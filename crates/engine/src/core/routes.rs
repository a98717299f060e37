//! Where messages go that are published into routes.

use std::sync::Arc;

use overtake_lane::{Command, MetadataEntry, Refusal, Time, VhostId};

use super::{Answer, Core, Refused, Request};
use crate::routes::{RouteSet, RoutesView};
use crate::routing::{entries_of, metadata_of_routes, missing_endpoints};

impl<T> Core<T> {
    /// Sets the routes of the virtual host, all at once: first the queues of its endpoints are made, as far as they are not there.
    pub(super) fn set_routes(&mut self, now: Time, set: Arc<RouteSet>) -> Result<Answer, Refused> {
        let vhost = self.asking.vhost;
        self.broker.vhost_name(vhost).ok_or(Refusal::NoSuchVhost)?;
        for (name, settings) in missing_endpoints(&self.broker, vhost, &set) {
            self.change(now, Request::Do(Command::declare(name, Box::new(settings))))?;
        }
        let entries = entries_of(&self.broker, vhost, set.manifest());
        if !entries.is_empty() {
            self.change(now, Request::Do(Command::SetMetadata { entries }))?;
        }
        self.routes.set(vhost, set);
        Ok(Answer::Done)
    }

    /// A virtual host is gone, and its routes with it.
    pub(super) fn forget_routes(&mut self, now: Time, vhost: VhostId) {
        self.routes.forget(vhost);
        let gone = metadata_of_routes(&self.broker, vhost);
        let gone: Vec<_> = gone.iter().map(|key| MetadataEntry::remove(key)).collect();
        if !gone.is_empty() {
            // What is left after a full disk names a virtual host that is not there, and is not read.
            _ = self.change(now, Request::Do(Command::SetMetadata { entries: gone }));
        }
    }

    /// The routes of the virtual host; none where none were set.
    pub(super) fn routes_view(&self) -> Result<RoutesView, Refusal> {
        let vhost = self.asking.vhost;
        self.broker.vhost_name(vhost).ok_or(Refusal::NoSuchVhost)?;
        Ok(self.routes.view(vhost))
    }
}
