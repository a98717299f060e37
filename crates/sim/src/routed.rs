//! Which copies a message gets that is published into routes, worked out once more from what is said in `docs/routes.md`: every
//! route is looked at, and asked by itself.

use std::collections::BTreeMap;

use overtake_engine::{NewMessage, ROUTES_EXCHANGE, Target};
use overtake_lane::{Given, HeaderValue, Priority, Refusal, Scheme, Settings};
use overtake_properties::{Fields, Properties, Short};
use overtake_routes::{Body, Manifest, NamedRoute, Shown, Sink, Subject, Truth};

/// A copy that routes make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Copy {
    pub(crate) queue: String,
    pub(crate) urgency: Urgency,
    /// What stands in for the time to live of its queue and of the broker, ms.
    pub(crate) ttl_ms: Option<u64>,
    /// No other than a fallback route matched.
    pub(crate) is_fallback: bool,
}

/// How urgent a copy is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Urgency {
    /// As its message says.
    Own,
    /// As its route says.
    Level(Option<u8>),
}

/// Whether this is for routes to decide.
pub(crate) fn is_routed(message: &NewMessage) -> bool {
    matches!(&message.to, Target::Exchange { name, .. } if **name == *ROUTES_EXCHANGE)
}

/// Whether who publishes it wants it refused when nobody gets it.
pub(crate) fn is_mandatory(message: &NewMessage) -> bool {
    matches!(message.to, Target::Exchange { mandatory: true, .. })
}

/// The queue that a sink has made where it is not there.
pub(crate) fn endpoint(sink: &Sink) -> Option<&str> {
    match sink {
        Sink::Queue(_) => None,
        Sink::Upstream => Some("$upstream"),
        Sink::Brokered(name) | Sink::Endpoint(name) => Some(name),
    }
}

/// The routes that a message goes by: for each of its paths those that match it.
pub(crate) fn matched<'m>(manifest: &'m Manifest, message: &NewMessage) -> Vec<&'m NamedRoute> {
    let Target::Exchange { routing_key, more_keys, .. } = &message.to else { return Vec::new() };
    let teller = Teller::of(message);
    let paths = std::iter::once(routing_key).chain(more_keys).map(|key| match key.starts_with('/') {
        true => key.to_string(),
        false => format!("/{key}"),
    });
    paths.flat_map(|path| matching(manifest, &path, &teller)).collect()
}

/// The copies of a message, for each queue one, be it there or not.
pub(crate) fn copies(manifest: &Manifest, message: &NewMessage) -> Vec<Copy> {
    let mut made: BTreeMap<String, (u8, Copy)> = BTreeMap::new();
    for route in matched(manifest, message) {
        let rank = route.priority.unwrap_or(10);
        let copy = copy_of(manifest, route);
        // Of equally urgent ones the first stays.
        if made.get(&copy.queue).is_none_or(|(there, _)| rank < *there) {
            made.insert(copy.queue.clone(), (rank, copy));
        }
    }
    made.into_values().map(|(_, copy)| copy).collect()
}

/// The routes that a message from a path goes by, the most urgent first, and of equally urgent ones by name.
fn matching<'m>(manifest: &'m Manifest, path: &str, teller: &Teller) -> Vec<&'m NamedRoute> {
    let is_meant = |route: &&NamedRoute| {
        let condition = route.route.condition.as_ref();
        let holds = condition.is_none_or(|condition| condition.evaluate(teller) == Truth::True);
        holds && route.route.source.matches(path)
    };
    let (mut last, mut first): (Vec<_>, Vec<_>) =
        manifest.routes.iter().filter(is_meant).partition(|route| route.is_fallback);
    let routes = if first.is_empty() { &mut last } else { &mut first };
    routes.sort_by_key(|route| (route.priority.unwrap_or(10), &route.name));
    std::mem::take(routes)
}

fn copy_of(manifest: &Manifest, route: &NamedRoute) -> Copy {
    let queue = match &route.route.sink {
        Sink::Queue(name) => name,
        other => endpoint(other).expect("what is no queue is an endpoint"),
    };
    let urgency = match (&route.route.sink, route.priority) {
        (Sink::Queue(_), None) => Urgency::Own,
        (_, level) => Urgency::Level(level),
    };
    // 0 is as if nothing was said.
    let secs = [route.ttl_secs, manifest.ttl_secs].into_iter().flatten().find(|secs| *secs > 0);
    let ttl_ms = secs.map(|secs| u64::from(secs) * 1_000);
    Copy { queue: queue.to_owned(), urgency, ttl_ms, is_fallback: route.is_fallback }
}

impl Copy {
    /// Its priority in a queue for which these settings hold, as the queue counts inside.
    pub(crate) fn priority(&self, settings: &Settings, own: &Given) -> Result<Priority, Refusal> {
        let given = match self.urgency {
            Urgency::Own => own.clone(),
            Urgency::Level(level) => in_words_of(settings.scheme, level),
        };
        settings.map_priority(&given)
    }
}

/// What is as urgent in the words of a queue as this level is among routes: 0 first, and nothing after 9.
fn in_words_of(scheme: Scheme, level: Option<u8>) -> Given {
    let last = level.unwrap_or(9);
    let named = |names: [&str; 5]| Given::from(names[usize::from(last / 2)]);
    match scheme {
        Scheme::Route => level.map_or(Given::Missing, |level| Given::Number(level.into())),
        Scheme::TenLevel => Given::Number(9 - i64::from(last)),
        Scheme::Named => named(["critical", "high", "normal", "low", "background"]),
        Scheme::Signed => named(["CRITICAL", "HIGH", "NORMAL", "LOW", "BULK"]),
        Scheme::Max(most) => Given::Number((9 - i64::from(last)) * i64::from(most) / 9),
    }
}

/// What a message says of itself to conditions.
struct Teller {
    /// `None`: there, and without a value.
    headers: BTreeMap<String, Option<String>>,
    /// By their names in lower case.
    properties: BTreeMap<&'static str, String>,
    body: Vec<u8>,
}

impl Teller {
    fn of(message: &NewMessage) -> Self {
        let text = |value: &HeaderValue| match value {
            HeaderValue::Text(text) => text.clone(),
            HeaderValue::Int(number) => number.to_string(),
            HeaderValue::Bool(is) => is.to_string(),
            other => unreachable!("headers of these worlds are text and whole numbers, not {other:?}"),
        };
        let headers = message.content.headers().into_iter().map(|(name, value)| {
            let text = (value != HeaderValue::Void).then(|| text(&value));
            (name, text)
        });
        Self {
            headers: headers.collect(),
            properties: properties(&message.content.properties),
            body: message.content.body.to_vec(),
        }
    }

    fn said(&self, name: &str) -> Option<&str> {
        self.properties.get(name).map(String::as_str)
    }
}

fn properties(properties: &Properties) -> BTreeMap<&'static str, String> {
    let fields = Fields::of(properties.view());
    let named = [
        ("contenttype", fields.content_type),
        ("contentencoding", fields.content_encoding),
        ("messageid", fields.message_id),
        ("correlationid", fields.correlation_id),
        ("userid", fields.user_id),
        ("expiration", fields.expiration),
    ];
    let text = |short: Short<'_>| short.text().map(ToOwned::to_owned);
    named.into_iter().filter_map(|(name, short)| Some((name, text(short?)?))).collect()
}

impl Subject for Teller {
    fn property(&self, name: &str) -> Shown<'_> {
        match self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)) {
            None => Shown::Missing,
            Some((_, None)) => Shown::Null,
            Some((_, Some(text))) => Shown::Text(text),
        }
    }

    fn system(&self, name: &str) -> Shown<'_> {
        self.said(&name.to_lowercase()).into()
    }

    fn body(&self) -> Body<'_> {
        let (content_type, content_encoding) = (self.said("contenttype"), self.said("contentencoding"));
        Body { bytes: &self.body, content_type, content_encoding }
    }
}
