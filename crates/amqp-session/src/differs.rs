//! What clients are told when something is there already and is another one: RabbitMQ's texts, which name the first
//! argument that differs.

use overtake_amqp::ReplyCode;
use overtake_amqp::connection::{DeclareExchange, DeclareQueue, Refused};
use overtake_lane::{ExchangeView, QueueView, Refusal};
use overtake_properties::{Limits, TableRef, Value};

use crate::arguments::{QUEUE_ARGUMENTS, kind_name};

/// The arguments that are keys of policies, too, without their `x-`.
const OF_POLICIES: [&str; 11] = [
    "x-max-priority",
    "x-max-length",
    "x-max-length-bytes",
    "x-overflow",
    "x-message-ttl",
    "x-expires",
    "x-delivery-limit",
    "x-overtake-backoff",
    "x-consumer-timeout",
    "x-dead-letter-exchange",
    "x-dead-letter-routing-key",
];

/// A queue of that name is there: what is told whoever declares another one.
#[must_use]
pub fn queue(wanted: &DeclareQueue, is: &QueueView, vhost: &str) -> Refused {
    if wanted.exclusive != is.identity.exclusive {
        // To RabbitMQ it is locked, also where it is the client's own.
        return Refused::Declined(Refusal::QueueLocked);
    }
    let of = format!("queue '{}' in vhost '{vhost}'", wanted.name);
    let flags = [
        ("durable", wanted.durable && !wanted.exclusive, is.identity.durable),
        ("auto_delete", wanted.auto_delete, is.identity.auto_delete),
    ];
    if let Some((name, wanted, is)) = flags.into_iter().find(|(_, wanted, is)| wanted != is) {
        return inequivalent(name, &of, &format!("'{wanted}'"), &format!("'{is}'"));
    }
    let there = TableRef::check(&is.identity.arguments, &Limits::default()).unwrap_or(TableRef::EMPTY);
    let wanted = wanted.arguments.view();
    let other = QUEUE_ARGUMENTS.into_iter().find(|name| !same(wanted.get(name), there.get(name)));
    match other {
        Some(name) => {
            let todo = if there.get(name).is_some() { "send that" } else { "leave it out" };
            let elsewhere = if OF_POLICIES.contains(&name) {
                "set it by a policy"
            } else {
                "change the setting with `overtake queue set`"
            };
            let current = format!("{}; {todo}, or {elsewhere}", told(there.get(name)));
            inequivalent(name, &of, &told(wanted.get(name)), &current)
        }
        None => Refused::because(
            ReplyCode::PreconditionFailed,
            format!(
                "inequivalent settings for {of}: it was declared with others; declare it as it is, or passively, and change its \
                 settings with `overtake queue set`"
            ),
        ),
    }
}

/// An exchange of that name is there, and differs in this setting: what is told whoever declares another one.
#[must_use]
pub fn exchange(key: &str, wanted: &DeclareExchange, is: &ExchangeView, vhost: &str) -> Refused {
    let of = format!("exchange '{}' in vhost '{vhost}'", wanted.name);
    let there = &is.settings;
    let flag =
        |name, wanted: bool, is: bool| inequivalent(name, &of, &format!("'{wanted}'"), &format!("'{is}'"));
    let arguments = TableRef::check(&there.arguments, &Limits::default()).unwrap_or(TableRef::EMPTY);
    let argument = |names: &[&str]| {
        let wanted = wanted.arguments.view();
        let other = names.iter().find(|name| !same(wanted.get(name), arguments.get(name)));
        let name = other.unwrap_or(&names[0]);
        inequivalent(name, &of, &told(wanted.get(name)), &told(arguments.get(name)))
    };
    match key {
        "durable" => flag("durable", wanted.durable, there.durable),
        "auto_delete" => flag("auto_delete", wanted.auto_delete, there.auto_delete),
        "internal" => flag("internal", wanted.internal, there.internal),
        "alternate" | "hash_on" => argument(&["alternate-exchange", "hash-header", "hash-property"]),
        // Of two that delay, what they route by.
        _ if wanted.kind == kind_name(there) => argument(&["x-delayed-type"]),
        _ => inequivalent("type", &of, &format!("'{}'", wanted.kind), &format!("'{}'", kind_name(there))),
    }
}

fn inequivalent(name: &str, of: &str, received: &str, current: &str) -> Refused {
    let text = format!("inequivalent arg '{name}' for {of}: received {received} but current is {current}");
    Refused::because(ReplyCode::PreconditionFailed, text)
}

/// Clients choose the width of a number by its size.
fn same(one: Option<Value<'_>>, other: Option<Value<'_>>) -> bool {
    match (one.and_then(Value::int), other.and_then(Value::int)) {
        (None, None) => one == other,
        (one, other) => one == other,
    }
}

fn told(value: Option<Value<'_>>) -> String {
    let Some(value) = value else { return "none".to_owned() };
    let kind = match value {
        Value::Bool(_) => "bool",
        Value::I8(_) => "byte",
        Value::U8(_) => "unsignedbyte",
        Value::I16(_) => "short",
        Value::U16(_) => "unsignedshort",
        Value::I32(_) => "signedint",
        Value::U32(_) => "unsignedint",
        Value::I64(_) => "long",
        Value::F32(_) => "float",
        Value::F64(_) => "double",
        Value::Decimal { .. } => "decimal",
        Value::Time(_) => "timestamp",
        Value::String(_) => "longstr",
        Value::Bytes(_) => "binary",
        Value::Array(_) => "array",
        Value::Table(_) => "table",
        Value::Void => "void",
    };
    match crate::arguments::json(value) {
        serde_json::Value::String(text) => format!("the value '{text}' of type '{kind}'"),
        other => format!("the value '{other}' of type '{kind}'"),
    }
}
