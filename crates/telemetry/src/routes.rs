//! Routes and the queues that they lead into, by the names that IoT Edge's hub gave them where it has some.

use std::sync::Arc;

use overtake_engine::RoutesView;
use overtake_lane::{LaneView, QueueView, Scheme};

use crate::family::Kind::{Counter, UpDownCounter};
use crate::family::{Family, Labels, Point, Value};

/// What waits and what was dropped, by endpoint and priority. Without a unit, so that none is put into the names on the way through a
/// collector.
const OF_ENDPOINTS: [Family; 2] = [
    Family::new("queue.length", UpDownCounter, "", "Messages of an endpoint that are not sent yet."),
    Family::new("messages.dropped", Counter, "", "Messages that nobody got: too old, or by no route."),
];

const OF_ROUTES: [Family; 4] = [
    Family::new(
        "overtake.routes.messages",
        Counter,
        "{message}",
        "Messages published into routes, and what became of them.",
    ),
    Family::new("overtake.route.matched", Counter, "{message}", "Messages that a route matched."),
    Family::new(
        "overtake.route.undefined",
        Counter,
        "{message}",
        "Messages for which a route's condition was undefined.",
    ),
    Family::new(
        "overtake.route.copies",
        Counter,
        "{message}",
        "Copies that a route decided on: not where a more urgent one leads to the same endpoint.",
    ),
];

/// The families of routes while they grow.
pub(crate) struct Routes {
    of_endpoints: [Family; 2],
    of_routes: [Family; 4],
}

impl Default for Routes {
    fn default() -> Self {
        Self { of_endpoints: OF_ENDPOINTS, of_routes: OF_ROUTES }
    }
}

impl Routes {
    /// A queue, if it is an endpoint.
    pub(crate) fn add_queue(&mut self, vhost: &Arc<str>, queue: &QueueView) {
        if queue.effective_settings().scheme != Scheme::Route {
            return;
        }
        for LaneView { lane, ready, delayed, leased, expired, .. } in &queue.lanes {
            let place = [
                ("vhost", Arc::clone(vhost)),
                ("endpoint", Arc::clone(&queue.name)),
                ("priority", Arc::clone(lane)),
            ];
            let [length, dropped] = &mut self.of_endpoints;
            add(length, place.clone().into(), ready + delayed + leased);
            add(dropped, because(place, "ttl_expiry"), *expired);
        }
    }

    /// The routes of a virtual host.
    pub(crate) fn add(&mut self, vhost: &Arc<str>, routes: &RoutesView) {
        let table = routes.set.table();
        if table.is_empty() && routes.published == 0 {
            return;
        }
        let here = || ("vhost", Arc::clone(vhost));
        let [messages, matched, undefined, copies] = &mut self.of_routes;
        let routed = routes.published - routes.unrouted - routes.fallback;
        for (outcome, count) in
            [("routed", routed), ("fallback", routes.fallback), ("unrouted", routes.unrouted)]
        {
            add(messages, [here(), ("outcome", outcome.into())].into(), count);
        }
        let nowhere = [here(), ("endpoint", "".into()), ("priority", "".into())];
        add(&mut self.of_endpoints[1], because(nowhere, "no_route"), routes.unrouted);
        for (route, counts) in table.ids().zip(&routes.counts) {
            let name = ("route", Arc::from(table.name(route)));
            let by: Labels = [here(), name.clone()].into();
            add(matched, Arc::clone(&by), counts.matched);
            add(undefined, by, counts.undefined);
            let endpoint = ("endpoint", Arc::from(table.sink(route).name()));
            add(copies, [here(), name, endpoint].into(), counts.copies);
        }
    }

    /// Those that have a series.
    pub(crate) fn families(self) -> impl Iterator<Item = Family> {
        let all = self.of_endpoints.into_iter().chain(self.of_routes);
        all.filter(|family| !family.points.is_empty())
    }
}

fn because(place: [(&'static str, Arc<str>); 3], reason: &str) -> Labels {
    place.into_iter().chain([("reason", reason.into())]).collect()
}

fn add(family: &mut Family, labels: Labels, number: u64) {
    family.points.push(Point { labels, value: Value::Whole(number) });
}
