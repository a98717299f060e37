//! In some worlds there are routes: those who come first, and administrators, set them, and whoever publishes publishes into them, too.
//! Drawn from a stream of its own, so that worlds without them are what they were.

use std::sync::Arc;

use overtake_engine::core::Request;
use overtake_engine::{NewMessage, ROUTES_EXCHANGE, RouteSet, Target};
use overtake_lane::{Command, Given, VhostId};
use overtake_routes::Manifest;

use super::Role;
use crate::rng::Rng;
use crate::world::World;

/// The queues of endpoints, as others call them.
const ENDPOINTS: [&str; 4] = ["e0", "e1", "$upstream", "/modules/m/inputs/i"];
const SOURCES: [&str; 8] = [
    "/*",
    "/*",
    "/messages/*",
    "/messages/modules/m",
    "/MESSAGES/modules/M/outputs/*",
    "/messages/modules/m/outputs/o",
    "/messages/*/outputs",
    "/twinChangeNotifications",
];
const PATHS: [&str; 8] = [
    "/messages/modules/m/outputs/o",
    "/messages/modules/m/outputs/o",
    "messages/modules/M/outputs/p",
    "/messages/modules/m2/outputs/o",
    "messages",
    "/twinchangenotifications",
    "/elsewhere",
    "",
];
/// Of messages of these worlds most have `n`, some `kind`, and `none` without a value; no body is JSON.
const CONDITIONS: [&str; 16] = [
    "n = '0'",
    "n != '1'",
    "as_number(n) > 0",
    "as_number(n) % 2 = 0 AND length(n) = 1",
    "n = '0' OR n = '2'",
    "NOT (n = '1')",
    "Kind = 'odd'",
    "kind = 'odd' OR n = '1'",
    "NOT is_defined(kind) AND is_defined(n)",
    "(kind ?? 'even') = 'even'",
    "is_null(none) OR n = '2'",
    "missing = 'x'",
    "missing = 'x' OR as_number(n) < 2",
    "starts_with($contentType, 'm/1') OR $messageId = 'said'",
    "ends_with($correlationId, '1') OR is_defined($expiration)",
    "$body.a > 1 OR n = '0'",
];

impl World {
    /// False: not now, or never in this world.
    pub(super) fn sets_routes(&mut self, at: usize) -> bool {
        let may = at == 0 || self.clients[at].role == Role::Admin;
        if !may || !self.plan.has_routes || !self.chance.routes.once_in(5) {
            return false;
        }
        let request = match self.chance.routes.below(8) {
            0 if self.here != VhostId::DEFAULT => match self.audit.vhosts.get(&self.here) {
                Some(name) => Request::Do(Command::DeleteVhost { name: Arc::clone(name) }),
                None => Request::SetRoutes(Arc::default()),
            },
            0 | 1 => Request::Routes,
            2 if self.chance.routes.once_in(2) => Request::SetRoutes(Arc::default()),
            _ => {
                let manifest = manifest(&mut self.chance.routes, &self.names.queues);
                Request::SetRoutes(Arc::new(RouteSet::new(manifest)))
            }
        };
        self.asks(at, request);
        true
    }

    /// One message for routes, or several of which some are.
    pub(super) fn routed_messages(&mut self) -> Option<Vec<NewMessage>> {
        if !self.plan.has_routes || !self.chance.routes.once_in(3) {
            return None;
        }
        if !self.chance.routes.once_in(4) {
            return Some(vec![self.routed_message()]);
        }
        let count = self.chance.routes.within(2, 4);
        let message = |_| match self.chance.routes.once_in(3) {
            true => {
                let queue = self.some_queue();
                self.new_message(Target::Queue(queue))
            }
            false => self.routed_message(),
        };
        Some((0..count).map(message).collect())
    }

    fn routed_message(&mut self) -> NewMessage {
        let rng = &mut self.chance.routes;
        let (first, second) = (path(rng), path(rng));
        let more_keys = if rng.once_in(8) { vec![second] } else { Vec::new() };
        let (mandatory, is_plain) = (rng.once_in(3), rng.once_in(2));
        let name = ROUTES_EXCHANGE.into();
        let mut message =
            self.new_message(Target::Exchange { name, routing_key: first, more_keys, mandatory });
        if is_plain {
            // Not every queue takes a number.
            message.priority = Given::Missing;
            self.remember(&message);
        }
        message
    }

    /// Whether a message for routes is published without asking what becomes of it.
    pub(super) fn goes_untold(&mut self, messages: &[NewMessage]) -> bool {
        let is_one = matches!(messages, [message] if crate::routed::is_routed(message));
        is_one && self.chance.routes.once_in(3)
    }

    /// The queue of an endpoint now and then, be it there or not.
    pub(super) fn some_endpoint(&mut self) -> Option<Arc<str>> {
        let rng = &mut self.chance.routes;
        (self.plan.has_routes && rng.once_in(3)).then(|| rng.one_of(&ENDPOINTS).into())
    }
}

/// Where a message comes from.
pub(crate) fn path(rng: &mut Rng) -> Arc<str> {
    rng.one_of(&PATHS).into()
}

/// Up to eight routes: those of one name are other ones each time.
fn manifest(rng: &mut Rng, queues: &[Arc<str>]) -> Manifest {
    let names: Vec<String> = (0..8).filter(|_| !rng.once_in(3)).map(|n| format!("r{n}")).collect();
    let routes: Vec<String> = names.iter().map(|name| route(rng, name, queues)).collect();
    let all = match rng.once_in(3) {
        true => format!(r#", "storeAndForwardConfiguration": {{"timeToLiveSecs": {}}}"#, secs(rng)),
        false => String::new(),
    };
    let text = format!(r#"{{"routes": {{{}}}{all}}}"#, routes.join(", "));
    Manifest::from_json(&text).unwrap_or_else(|error| panic!("drawn manifests hold: {error}"))
}

fn route(rng: &mut Rng, name: &str, queues: &[Arc<str>]) -> String {
    let (source, condition, sink) = (rng.one_of(&SOURCES), condition(rng), sink(rng, queues));
    let text = format!("FROM {source}{condition} INTO {sink}");
    if rng.once_in(4) {
        return format!(r#""{name}": "{text}""#);
    }
    let priority = match rng.once_in(3) {
        true => String::new(),
        false => format!(r#", "priority": {}"#, rng.below(10)),
    };
    let ttl = match rng.once_in(2) {
        true => String::new(),
        false => format!(r#", "timeToLiveSecs": {}"#, secs(rng)),
    };
    let fallback = rng.once_in(4);
    format!(r#""{name}": {{"route": "{text}", "fallback": {fallback}{priority}{ttl}}}"#)
}

/// What a route asks; rarely so long that not many of them fit into a record.
fn condition(rng: &mut Rng) -> String {
    match rng.below(40) {
        0 => format!(" WHERE n != '{}'", "x".repeat(rng.within(3_000, 20_000) as usize)),
        1..=19 => String::new(),
        _ => format!(" WHERE {}", rng.one_of(&CONDITIONS)),
    }
}

/// A queue that others declare, or none declares, an endpoint, or one that is called as a queue is.
fn sink(rng: &mut Rng, queues: &[Arc<str>]) -> String {
    let queue = rng.one_of(queues);
    match rng.below(10) {
        0..=3 => format!("Queue('{queue}')"),
        4 => "Queue('nowhere')".to_owned(),
        5 => "$upstream".to_owned(),
        6 => "BrokeredEndpoint('/modules/m/inputs/i')".to_owned(),
        7 => format!("Endpoint('{queue}')"),
        _ => format!("Endpoint('e{}')", rng.below(2)),
    }
}

/// Short enough to matter within a run, or too long to.
fn secs(rng: &mut Rng) -> u64 {
    rng.one_of(&[0, 1, 1, 2, 5, 3_600])
}
