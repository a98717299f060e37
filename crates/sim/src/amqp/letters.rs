//! Messages of clients that speak AMQP: drawn, and compared with what comes out.

use std::sync::Arc;

use bytes::Bytes;
use overtake_engine::{Content, NewMessage, Sender, Target};
use overtake_lane::Given;
use overtake_properties::{Fields, Properties, Short, Table, TableBuilder, TableRef, Value};

use super::channel::Incoming;
use crate::book::Letter;
use crate::refold::mark_of;
use crate::rng::Rng;

/// Headers that the broker adds.
const ADDED: [&str; 10] = [
    "x-delivery-count",
    "x-overtake-record",
    "x-processing-priority",
    "x-death",
    "x-first-death-reason",
    "x-first-death-queue",
    "x-first-death-exchange",
    "x-last-death-reason",
    "x-last-death-queue",
    "x-last-death-exchange",
];

/// The mark of a message that has one.
pub(super) fn mark(message: &NewMessage) -> u64 {
    mark_of(message.content.content_type()).expect("a letter has its mark")
}

/// A message as the engine is to be asked for it, all but its mark.
pub(super) fn draw(rng: &mut Rng, exchange: &str, routing_key: &str, body_max: u64) -> NewMessage {
    let id = match rng.below(4) {
        0 => Some(format!("a{}", rng.below(10))),
        1 => Some(format!("v{}", rng.next())),
        _ => None,
    };
    let key = rng.once_in(4).then(|| format!("k{}", rng.below(4)));
    let priority = (!rng.once_in(8)).then(|| rng.below(11) as u8);
    let ttl_ms = rng.once_in(8).then(|| rng.one_of(&[0, 1, 30, 200, 2_000]));
    let len = match rng.below(60) {
        0 => 15_000,
        1 => 40_000,
        2..=9 => 0,
        _ => rng.below(body_max),
    };
    // Half of the keys have a weight.
    let key_weight =
        key.as_ref().zip(priority).map(|(_, priority)| u32::from(priority)).filter(|weight| *weight > 5);
    let headers = headers(rng, id.as_deref(), key.as_deref(), key_weight);
    let expiration = ttl_ms.map(|ms| ms.to_string());
    let correlation_id = format!("c{}", rng.below(100));
    let fields = Fields {
        headers: (!headers.view().is_empty()).then(|| headers.view()),
        delivery_mode: Some(if rng.once_in(6) { 1 } else { 2 }),
        priority,
        expiration: expiration.as_deref().and_then(short),
        correlation_id: if rng.once_in(2) { short(&correlation_id) } else { None },
        message_id: if rng.once_in(4) { short("said") } else { None },
        timestamp: if rng.once_in(4) { Some(rng.next()) } else { None },
        user_id: if rng.once_in(10) { short("guest") } else { None },
        ..Fields::default()
    };
    let fill = rng.next();
    let body: Vec<u8> = (0..len).map(|at| (fill >> (at % 8 * 8)) as u8).collect();
    NewMessage {
        sender: Sender::default(),
        to: Target::Exchange {
            name: exchange.into(),
            routing_key: routing_key.into(),
            more_keys: Vec::new(),
            mandatory: false,
        },
        priority: priority.map_or(Given::Missing, |priority| Given::Number(priority.into())),
        id,
        origin: None,
        key,
        key_weight,
        ttl_ms,
        delay_ms: 0,
        content: Content { properties: fields.encode(), body: Bytes::from(body), ..Content::default() },
    }
}

fn headers(rng: &mut Rng, id: Option<&str>, key: Option<&str>, key_weight: Option<u32>) -> Table {
    let text = |value: &'static str| Value::String(value.as_bytes());
    let mut table = TableBuilder::new();
    if rng.once_in(2) {
        table = table.entry(Short::literal("n"), Value::I64(rng.below(3) as i64));
    }
    if rng.once_in(8) {
        table = table.entry(Short::literal("kind"), text("odd")).entry(Short::literal("none"), Value::Void);
    }
    for (name, value) in [("x-overtake-id", id), ("x-overtake-key", key)] {
        if let Some(value) = value {
            table = table.entry(Short::literal(name), Value::String(value.as_bytes()));
        }
    }
    if let Some(weight) = key_weight {
        table = table.entry(Short::literal("x-overtake-key-weight"), Value::I64(weight.into()));
    }
    table.finish()
}

fn short(text: &str) -> Option<Short<'_>> {
    Short::new(text.as_bytes())
}

/// The same message with a mark of its own.
pub(super) fn stamped(message: &NewMessage, mark: u64) -> NewMessage {
    let mark = format!("m/{mark}");
    let fields = Fields { content_type: short(&mark), ..Fields::of(message.content.properties.view()) };
    let content = Content { properties: fields.encode(), ..message.content.clone() };
    NewMessage { content, ..message.clone() }
}

/// What came is what was published, but for what the broker says of its way.
pub(super) fn compare(letter: &Letter, came: &Incoming, redelivered: Option<bool>) -> Result<(), String> {
    let says = letter.says();
    let properties = came.properties.as_ref().map(Properties::view).unwrap_or_default();
    if says.body != came.body {
        return Err(format!("another body, of {} bytes instead of {}", came.body.len(), says.body.len()));
    }
    let headers = properties.headers().unwrap_or(TableRef::EMPTY);
    let has_died = headers.get("x-death").is_some();
    let was_out = headers.get("x-delivery-count").is_some();
    if redelivered.is_some_and(|redelivered| redelivered != was_out) {
        return Err(format!("redelivered is {redelivered:?}, and its headers say {was_out}"));
    }
    let route = &says.route;
    let key = route.keys.first().map_or(&b""[..], |key| key.as_bytes());
    if !has_died && (came.exchange != route.exchange.as_bytes() || came.routing_key != key) {
        let Incoming { exchange, routing_key, .. } = came;
        return Err(format!("another route: {} {}", exchange.escape_ascii(), routing_key.escape_ascii()));
    }
    let (said, says) = (Fields::of(says.properties.view()), Fields::of(properties));
    same_fields(&said, &says, has_died)
}

fn same_fields(said: &Fields<'_>, says: &Fields<'_>, has_died: bool) -> Result<(), String> {
    let by_broker = |fields: &Fields<'_>| -> [Option<Vec<u8>>; 2] {
        let bytes = |short: Option<Short<'_>>| short.map(|short| short.as_bytes().to_vec());
        [bytes(fields.message_id), bytes(fields.expiration)]
    };
    let ([id, expiration], [id_now, expiration_now]) = (by_broker(said), by_broker(says));
    // Who publishes by other ways has its id shown so.
    let is_same_id = id.is_none() || id == id_now;
    let is_same_expiration = expiration == expiration_now || (has_died && expiration_now.is_none());
    let entries = |fields: &Fields<'_>| -> Vec<String> {
        let headers = fields.headers.unwrap_or(TableRef::EMPTY);
        let own = headers.iter().filter(|(name, _)| !name.text().is_some_and(|name| ADDED.contains(&name)));
        own.map(|(name, value)| format!("{name:?}: {value:?}")).collect()
    };
    let without = |fields: &Fields<'_>| {
        let fields = Fields { headers: None, priority: None, message_id: None, expiration: None, ..*fields };
        fields.encode()
    };
    let is_same =
        is_same_id && is_same_expiration && entries(said) == entries(says) && without(said) == without(says);
    if is_same { Ok(()) } else { Err(format!("{says:?} instead of {said:?}")) }
}

/// Whom a message is sent to in words, for the story.
pub(super) fn to(message: &NewMessage) -> (Arc<str>, Arc<str>) {
    match &message.to {
        Target::Queue(name) => ("".into(), Arc::clone(name)),
        Target::Exchange { name, routing_key, .. } => (Arc::clone(name), Arc::clone(routing_key)),
    }
}
