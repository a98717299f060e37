//! Where messages go that are published into routes.
//!
//! Routes are durable as metadata, a value for each route (`routes/VHOST/NAME`) and one for the rest (`routes/VHOST`), set together. What
//! messages meet is compiled from that, here and after a restart. Counters are of this life.

use std::collections::BTreeMap;
use std::sync::Arc;

use overtake_lane::{Broker, MetadataEntry, RouteCopy, Scheme, Settings, Time, Urgency, VhostId};
use overtake_routes::{Manifest, Parts, RouteId, Routing, Sink};

use crate::api::Content;
use crate::letter::Letter;
use crate::routes::{RouteCounts, RouteSet, RoutesView, is_endpoint, path_of};
use crate::sender::Sender;

const PREFIX: &str = "routes/";

/// The routes of every virtual host that has some.
#[derive(Debug, Default)]
pub struct Routes {
    by: BTreeMap<VhostId, Held>,
    routing: Routing,
}

/// Those of one.
#[derive(Debug)]
struct Held {
    view: RoutesView,
    /// The queue of each sink, by the number of the route.
    queues: Vec<Arc<str>>,
}

impl Held {
    fn new(set: Arc<RouteSet>) -> Self {
        let table = set.table();
        let mut names: BTreeMap<&Sink, Arc<str>> = BTreeMap::new();
        let name = |route| {
            let sink = table.sink(route);
            Arc::clone(names.entry(sink).or_insert_with(|| sink.name().into()))
        };
        let queues = table.ids().map(name).collect();
        let counts = vec![RouteCounts::default(); table.len()];
        Self { view: RoutesView { set, counts, published: 0, unrouted: 0, fallback: 0 }, queues }
    }

    /// Goes on counting what others counted: a route that is the same as before goes on, too.
    fn after(self, before: &Self) -> Self {
        let (now, then) = (&self.view.set, &before.view.set);
        let numbers: BTreeMap<&str, usize> =
            then.table().ids().map(|id| (then.table().name(id), id.number())).collect();
        let count = |id: RouteId| {
            let name = now.table().name(id);
            let is_same = now.manifest().route(name) == then.manifest().route(name);
            let number = numbers.get(name).filter(|_| is_same);
            number.map_or_else(RouteCounts::default, |number| before.view.counts[*number])
        };
        let counts = now.table().ids().map(count).collect();
        let RoutesView { published, unrouted, fallback, .. } = before.view;
        let view = RoutesView { set: Arc::clone(now), counts, published, unrouted, fallback };
        Self { view, queues: self.queues }
    }
}

impl Routes {
    /// Those that lasted. What cannot be read any more is left out, and is as if it had not been set.
    #[must_use]
    pub fn recover(broker: &Broker) -> Self {
        let mut all: BTreeMap<VhostId, Parts> = BTreeMap::new();
        for (key, value) in broker.metadata() {
            let Some((vhost, name)) = parsed(key) else { continue };
            let parts =
                all.entry(vhost).or_insert_with(|| Parts { head: "{}".to_owned(), routes: Vec::new() });
            let text = String::from_utf8_lossy(value).into_owned();
            match name {
                None => parts.head = text,
                Some(name) => parts.routes.push((name.to_owned(), text)),
            }
        }
        let held = all.into_iter().filter(|(vhost, _)| broker.vhost_name(*vhost).is_some());
        let held = held.filter_map(|(vhost, parts)| Some((vhost, Manifest::from_parts(&parts).ok()?)));
        let by = held.map(|(vhost, manifest)| (vhost, Held::new(Arc::new(RouteSet::new(manifest)))));
        Self { by: by.collect(), routing: Routing::default() }
    }

    /// The copies that a message from these paths gets: for each queue one, the most urgent.
    pub fn copies<'p>(
        &mut self,
        vhost: VhostId,
        paths: impl Iterator<Item = &'p str>,
        (content, sender, now): (&Content, &Sender, Time),
    ) -> Vec<RouteCopy> {
        let Self { by, routing } = self;
        let Some(Held { view, queues }) = by.get_mut(&vhost) else { return Vec::new() };
        let table = view.set.table();
        view.published += 1;
        let mut chosen: Vec<(u8, RouteCopy)> = Vec::new();
        let mut only_fallback = true;
        for path in paths {
            let path = path_of(path);
            table.route(&path, &Letter::new(&path, content, sender, now), routing);
            routing.matched().iter().for_each(|route| view.counts[route.number()].matched += 1);
            routing.undefined().iter().for_each(|route| view.counts[route.number()].undefined += 1);
            only_fallback &= routing.is_fallback() || routing.matched().is_empty();
            for copy in routing.copies() {
                let number = copy.route.number();
                let urgency = match (table.sink(copy.route), copy.priority) {
                    (Sink::Queue(_), None) => Urgency::Own,
                    (_, level) => Urgency::Level(level),
                };
                let rank = copy.priority.unwrap_or(u8::MAX);
                let ttl_ms = copy.ttl_secs.map(|secs| u64::from(secs) * 1_000);
                let one = RouteCopy { queue: Arc::clone(&queues[number]), urgency, ttl_ms };
                // Two sinks may be one queue, and two paths may lead to one sink.
                match chosen.iter_mut().find(|(_, there)| there.queue == one.queue) {
                    Some(there) if rank < there.0 => *there = (rank, one),
                    Some(_) => continue,
                    None => chosen.push((rank, one)),
                }
                view.counts[number].copies += 1;
            }
        }
        view.unrouted += u64::from(chosen.is_empty());
        view.fallback += u64::from(only_fallback && !chosen.is_empty());
        chosen.into_iter().map(|(_, copy)| copy).collect()
    }

    /// These hold in a virtual host from now on, and go on counting what those before counted.
    pub fn set(&mut self, vhost: VhostId, set: Arc<RouteSet>) {
        let held = Held::new(set);
        let held = match self.by.get(&vhost) {
            Some(before) => held.after(before),
            None => held,
        };
        self.by.insert(vhost, held);
    }

    /// A virtual host is gone.
    pub fn forget(&mut self, vhost: VhostId) {
        self.by.remove(&vhost);
    }

    /// Others may have changed what lasts: what is as it was goes on counting.
    pub fn recover_again(&mut self, broker: &Broker) {
        let mut now = Self::recover(broker).by;
        for (vhost, held) in &mut now {
            if let Some(before) = self.by.get(vhost) {
                let set = Arc::clone(&held.view.set);
                *held = Held::new(set).after(before);
            }
        }
        self.by = now;
    }

    /// The routes of a virtual host; none where none were set.
    #[must_use]
    pub fn view(&self, vhost: VhostId) -> RoutesView {
        self.by.get(&vhost).map_or_else(|| Held::new(Arc::default()).view, |held| held.view.clone())
    }
}

/// What must be declared for a set of routes: the queues of its endpoints that are not there.
#[must_use]
pub fn missing_endpoints(broker: &Broker, vhost: VhostId, set: &RouteSet) -> Vec<(Arc<str>, Settings)> {
    let endpoints = set.table().sinks().iter().filter(|sink| is_endpoint(sink));
    let missing = endpoints.filter(|sink| broker.settings(vhost, sink.name()).is_err());
    let settings = || Settings { scheme: Scheme::Route, ..Settings::default() };
    missing.map(|sink| (sink.name().into(), settings())).collect()
}

/// What of the metadata changes with these routes.
#[must_use]
pub fn entries_of(broker: &Broker, vhost: VhostId, manifest: &Manifest) -> Vec<MetadataEntry> {
    let Parts { head, routes } = manifest.to_parts();
    let mut wanted: BTreeMap<String, String> =
        routes.into_iter().map(|(name, text)| (key(vhost, Some(&name)), text)).collect();
    wanted.insert(key(vhost, None), head);
    let gone = metadata_of_routes(broker, vhost).into_iter().filter(|key| !wanted.contains_key(&**key));
    let gone: Vec<MetadataEntry> = gone.map(|key| MetadataEntry::remove(&key)).collect();
    let is_there =
        |key: &str, text: &str| broker.metadata_of(key).is_some_and(|there| **there == *text.as_bytes());
    let new = wanted.iter().filter(|(key, text)| !is_there(key, text));
    new.map(|(key, text)| MetadataEntry::set(key, text.as_bytes())).chain(gone).collect()
}

/// The keys of the metadata in which the routes of a virtual host stand.
#[must_use]
pub fn metadata_of_routes(broker: &Broker, vhost: VhostId) -> Vec<Arc<str>> {
    let of_it = |key: &&Arc<str>| parsed(key).is_some_and(|(its, _)| its == vhost);
    broker.metadata().map(|(key, _)| key).filter(of_it).cloned().collect()
}

fn key(vhost: VhostId, route: Option<&str>) -> String {
    match route {
        None => format!("{PREFIX}{}", vhost.0),
        Some(name) => format!("{PREFIX}{}/{name}", vhost.0),
    }
}

/// The virtual host that a key is of, and the route, if it is of one.
fn parsed(key: &str) -> Option<(VhostId, Option<&str>)> {
    let rest = key.strip_prefix(PREFIX)?;
    let (vhost, name) = rest.split_once('/').map_or((rest, None), |(vhost, name)| (vhost, Some(name)));
    Some((VhostId(vhost.parse().ok()?), name))
}
