//! *Conserved*, of routes: what they count since the engine was started is what was published into them, of a route since it is as it is.

use std::collections::BTreeMap;

use overtake_engine::{NewMessage, RoutesView};
use overtake_lane::VhostId;
use overtake_routes::Manifest;

use crate::failure::{Checked, Promise, hold};
use crate::routed::matched;

/// What came into the routes of each virtual host.
#[derive(Debug, Default)]
pub(crate) struct RouteCounts(BTreeMap<VhostId, Came>);

/// What was taken was looked at; of what was refused it is not known.
#[derive(Debug, Default)]
struct Came {
    least: Sum,
    most: Sum,
}

#[derive(Debug, Default)]
struct Sum {
    published: u64,
    unrouted: u64,
    fallback: u64,
    /// By the names of routes.
    matched: BTreeMap<String, u64>,
}

impl Sum {
    fn add(&mut self, manifest: &Manifest, message: &NewMessage) {
        let matched = matched(manifest, message);
        self.published += 1;
        self.unrouted += u64::from(matched.is_empty());
        self.fallback += u64::from(!matched.is_empty() && matched.iter().all(|route| route.is_fallback));
        for route in matched {
            *self.matched.entry(route.name.clone()).or_default() += 1;
        }
    }

    fn of(&self, name: &str) -> u64 {
        self.matched.get(name).copied().unwrap_or(0)
    }
}

impl RouteCounts {
    /// A message was published, and taken or not.
    pub(crate) fn came(&mut self, vhost: VhostId, manifest: &Manifest, message: &NewMessage, is_taken: bool) {
        let Came { least, most } = self.0.entry(vhost).or_default();
        most.add(manifest, message);
        if is_taken {
            least.add(manifest, message);
        }
    }

    /// Routes are set in place of others: those that stay as they are count on.
    pub(crate) fn set(&mut self, vhost: VhostId, before: &Manifest, now: &Manifest) {
        let Some(Came { least, most }) = self.0.get_mut(&vhost) else { return };
        if before.routes.is_empty() {
            // Where none were ever set nothing was counted.
            *least = Sum::default();
        }
        for sum in [least, most] {
            sum.matched.retain(|name, _| before.route(name) == now.route(name));
        }
    }

    /// The virtual host is gone.
    pub(crate) fn dropped(&mut self, vhost: VhostId) {
        self.0.remove(&vhost);
    }

    /// A new life.
    pub(crate) fn recovered(&mut self) {
        self.0.clear();
    }

    /// Somebody looks.
    pub(crate) fn check(&self, vhost: VhostId, view: &RoutesView) -> Checked {
        let nothing = Came::default();
        let Came { least, most } = self.0.get(&vhost).unwrap_or(&nothing);
        // Where none were ever set nothing is counted.
        let counts = !view.set.table().is_empty();
        let is_between = |least: u64, shown: u64, most: u64| shown <= most && (!counts || least <= shown);
        let mut each = view.set.table().ids().zip(&view.counts).map(|(route, counts)| {
            let name = view.set.table().name(route);
            is_between(least.of(name), counts.matched, most.of(name)) && counts.copies <= counts.matched
        });
        let is_right = view.counts.len() == view.set.manifest().routes.len()
            && is_between(least.published, view.published, most.published)
            && is_between(least.unrouted, view.unrouted, most.unrouted)
            && is_between(least.fallback, view.fallback, most.fallback)
            && each.all(|is| is);
        hold(is_right, Promise::Conserved, || {
            let RoutesView { counts, published, unrouted, fallback, .. } = view;
            format!(
                "routes show {published} published, {unrouted} unrouted, {fallback} by fallback, {counts:?}; there were {least:?} \
                 to {most:?}"
            )
        })
    }
}
