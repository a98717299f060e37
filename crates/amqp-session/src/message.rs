//! A message as a client sent it, as the engine takes it.

use std::convert::Infallible;
use std::sync::Arc;

use overtake_amqp::ReplyCode;
use overtake_amqp::connection::{Publish, Refused};
use overtake_engine::{Content, NewMessage, ROUTES_EXCHANGE, Sender, Target};
use overtake_lane::{Given, Origin, PRODUCER_NAME_LEN_MAX, Route, Scheme};
use overtake_properties::{Fields, PropertiesRef, Short, Table, TableRef, Value};

use crate::rights::Here;

/// The queue of this name is the answer to whoever asks for replies on this channel.
pub(crate) const REPLY_TO: &str = "amq.rabbitmq.reply-to";
/// A header that makes the publish idempotent while a message of that id is pending. A message id does not: clients send it again.
const ID: &str = "x-overtake-id";
/// A header that names the key: of last-value queues, filters and turns.
const KEY: &str = "x-overtake-key";
/// A header that gives the key of the message a weight, where keys take turns.
const KEY_WEIGHT: &str = "x-overtake-key-weight";

/// How urgent a message is, where the property `priority` has no room for it: a name, or a number below 0 or above 255. It goes before the property. The
/// broker keeps it as the priority, and says it as a number to whoever gets the message.
pub(crate) const PRIORITY: &str = "x-processing-priority";
/// The scheme of the priority, where it is not the queue's.
const PRIORITY_SCHEME: &str = "x-overtake-priority-scheme";
/// By which number its producer knows a message: the producer's name, the number, and below which it publishes no more. They are for whoever takes
/// the message in, and go no further.
const ORIGIN: [&str; 3] = ["x-overtake-producer", "x-overtake-sequence", "x-overtake-floor"];

/// The exchange and the routing key used last: most messages of a connection go the same way.
#[derive(Debug, Default)]
pub(crate) struct Ways {
    exchange: Option<Arc<str>>,
    key: Option<Arc<str>>,
}

fn same_or_new(last: &mut Option<Arc<str>>, bytes: &[u8], what: &str) -> Result<Arc<str>, Refused> {
    if let Some(last) = last.as_ref().filter(|last| last.as_bytes() == bytes) {
        return Ok(Arc::clone(last));
    }
    let Ok(text) = std::str::from_utf8(bytes) else {
        return Err(wrong(format!("the {what} is not UTF-8")));
    };
    Ok(Arc::clone(last.insert(text.into())))
}

fn wrong(text: impl Into<String>) -> Refused {
    Refused::because(ReplyCode::PreconditionFailed, text)
}

/// Who publishes.
pub(crate) struct Publisher<'a> {
    /// Who it is, and what it may do.
    pub(crate) here: &'a Here,
    /// The queue of its channel's replies, if it has one.
    pub(crate) replies: Option<&'a str>,
}

/// The exchange that a message is published to.
pub(crate) fn exchange(message: &NewMessage) -> Arc<str> {
    match &message.to {
        Target::Exchange { name, .. } => Arc::clone(name),
        Target::Queue(_) => "".into(),
    }
}

/// The message to publish.
pub(crate) fn message(
    publish: Publish,
    publisher: &Publisher<'_>,
    ways: &mut Ways,
) -> Result<NewMessage, Refused> {
    let Publish { exchange, routing_key, properties, body, .. } = publish;
    let name = same_or_new(&mut ways.exchange, &exchange, "exchange")?;
    let routing_key = same_or_new(&mut ways.key, &routing_key, "routing key")?;
    let said = properties.view();
    check_user(said, publisher)?;
    let ttl_ms = said.expiration().map(expiration).transpose()?;
    let mut priority = said.priority().map_or(Given::Missing, |priority| Given::Number(priority.into()));
    let mut content = Content { body, ..Content::default() };
    let (mut more_keys, mut id, mut key, mut key_weight, mut origin) = (Vec::new(), None, None, None, None);
    let mut hidden: Vec<&str> = Vec::new();
    if let Some(headers) = said.headers() {
        more_keys = keys(headers, "CC")?;
        let copies = keys(headers, "BCC")?;
        if headers.get("BCC").is_some() {
            let seen = [&routing_key].into_iter().chain(&more_keys).cloned().collect();
            content.route = Route { exchange: Arc::clone(&name), keys: seen };
            more_keys.extend(copies);
            hidden.push("BCC");
        }
        id = text_header(headers, ID)?;
        key = text_header(headers, KEY)?;
        key_weight = whole(headers, KEY_WEIGHT)?.map(|weight| u32::try_from(weight).unwrap_or(u32::MAX));
        if let Some(value) = headers.get(PRIORITY) {
            priority = given(value)?;
            hidden.push(PRIORITY);
        }
        if let Some(name) = text_header(headers, PRIORITY_SCHEME)? {
            let scheme: Scheme =
                name.parse().map_err(|why| wrong(format!("the header '{PRIORITY_SCHEME}': {why}")))?;
            let level = scheme.map(&priority).map_err(|_| {
                wrong(format!(
                    "the header '{PRIORITY_SCHEME}' says {scheme}, which has no priority '{priority}'"
                ))
            })?;
            priority = Given::Of(scheme, level);
            hidden.push(PRIORITY_SCHEME);
        }
        origin = self::origin(headers)?;
        hidden.extend(ORIGIN.iter().filter(|_| origin.is_some()));
    }
    let sender = sender(&name, said, publisher);
    content.properties = match replies(said, publisher)? {
        None if hidden.is_empty() => properties,
        queue => {
            let without = |table: Table, name: &&str| table.view().without(name);
            let headers = said.headers().map(|headers| hidden.iter().fold(headers.to_table(), without));
            let fields = Fields::of(said);
            let reply_to =
                queue.as_deref().and_then(|queue| Short::new(queue.as_bytes())).or(fields.reply_to);
            let headers = headers.as_ref().map(Table::view);
            Fields { headers, reply_to, ..fields }.encode()
        }
    };
    // Not mandatory for the engine: what no queue gets is given back by the connection.
    let to = Target::Exchange { name, routing_key, more_keys, mandatory: false };
    Ok(NewMessage { to, sender, priority, id, origin, key, key_weight, ttl_ms, delay_ms: 0, content })
}

fn check_user(said: PropertiesRef<'_>, publisher: &Publisher<'_>) -> Result<(), Refused> {
    match said.user_id() {
        Some(id)
            if id.as_bytes() != publisher.here.user().as_bytes() && !publisher.here.may_impersonate() =>
        {
            let (id, user) = (String::from_utf8_lossy(id.as_bytes()), publisher.here.user());
            Err(wrong(format!("user_id property set to '{id}' but authenticated user was '{user}'")))
        }
        _ => Ok(()),
    }
}

/// The sender, where conditions of routes may ask for it: the property `user_id`, else the user of the connection.
fn sender(exchange: &str, said: PropertiesRef<'_>, publisher: &Publisher<'_>) -> Sender {
    if exchange != ROUTES_EXCHANGE {
        return Sender::default();
    }
    let user = said.user_id().and_then(Short::text).unwrap_or_else(|| publisher.here.user()).into();
    if publisher.here.may_impersonate() { Sender::believed(Some(user)) } else { Sender::user(user) }
}

/// Milliseconds as text.
fn expiration(text: Short<'_>) -> Result<u64, Refused> {
    let number = text.text().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    number.and_then(|number| number.parse().ok()).ok_or_else(|| {
        let text = String::from_utf8_lossy(text.as_bytes());
        wrong(format!("invalid expiration '{text}': expected whole milliseconds as text"))
    })
}

/// Further routing keys.
fn keys(headers: TableRef<'_>, name: &str) -> Result<Vec<Arc<str>>, Refused> {
    let Some(value) = headers.get(name) else { return Ok(Vec::new()) };
    let Value::Array(keys) = value else {
        return Err(wrong(format!("the header '{name}' is no array of routing keys")));
    };
    let keys = keys.iter().map(|key| key.text().map(Arc::from));
    keys.collect::<Option<_>>()
        .ok_or_else(|| wrong(format!("the header '{name}' has a routing key that is no text")))
}

fn text_header(headers: TableRef<'_>, name: &str) -> Result<Option<String>, Refused> {
    let Some(value) = headers.get(name) else { return Ok(None) };
    value
        .text()
        .map(|text| Some(text.to_owned()))
        .ok_or_else(|| wrong(format!("the header '{name}' is no text")))
}

fn whole(headers: TableRef<'_>, name: &str) -> Result<Option<u64>, Refused> {
    let Some(value) = headers.get(name) else { return Ok(None) };
    let number = value.int().and_then(|number| u64::try_from(number).ok());
    number.map(Some).ok_or_else(|| wrong(format!("the header '{name}' is no whole number from 0")))
}

/// A priority: a number or a name. An empty one is refused: if it counted as no priority, an urgent message whose priority was lost would be served last.
fn given(value: Value<'_>) -> Result<Given, Refused> {
    let named = || value.text().map(|text| text.parse().unwrap_or_else(|never: Infallible| match never {}));
    let given = value.int().map(Given::Number).or_else(named);
    let said = given.filter(|given| *given != Given::Missing);
    said.ok_or_else(|| wrong(format!("the header '{PRIORITY}' is no number and no name")))
}

fn origin(headers: TableRef<'_>) -> Result<Option<Origin>, Refused> {
    let [producer, sequence, floor] = ORIGIN;
    let Some(name) = text_header(headers, producer)? else { return Ok(None) };
    let missing = || wrong(format!("the header '{producer}' goes with '{sequence}'"));
    let (sequence, floor) =
        (whole(headers, sequence)?.ok_or_else(missing)?, whole(headers, floor)?.unwrap_or(0));
    let origin = Origin::new(&name, sequence, floor);
    origin.map(Some).ok_or_else(|| {
        wrong(format!(
            "the header '{producer}' is 1 to {PRODUCER_NAME_LEN_MAX} letters, digits, '-', '_' and '.'"
        ))
    })
}

/// Where replies go, if to the channel that asks for them.
fn replies(said: PropertiesRef<'_>, publisher: &Publisher<'_>) -> Result<Option<String>, Refused> {
    if said.reply_to().is_none_or(|queue| queue.as_bytes() != REPLY_TO.as_bytes()) {
        return Ok(None);
    }
    publisher
        .replies
        .map(|queue| Some(queue.to_owned()))
        .ok_or_else(|| wrong("fast reply consumer does not exist"))
}
