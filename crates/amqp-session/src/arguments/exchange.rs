//! An exchange as a client declares it.

use overtake_amqp::ReplyCode;
use overtake_amqp::connection::{DeclareExchange, Refused};
use overtake_lane::{ExchangeKind, ExchangeSettings, HashOn, Property};

use super::Arguments;

const DELAYED: &str = "x-delayed-message";

/// What the client wants.
///
/// # Errors
/// A type that is not known, or an argument that cannot be, by name.
pub fn exchange(wanted: &DeclareExchange, vhost: &str) -> Result<ExchangeSettings, Refused> {
    let arguments = Arguments::new(wanted.arguments.view(), "exchange", &wanted.name, vhost);
    let delayed = wanted.kind == DELAYED;
    let kind = match delayed {
        false => kind_of(&wanted.kind).ok_or_else(|| {
            let text = format!("unknown exchange type '{}'", wanted.kind);
            Refused::because(ReplyCode::CommandInvalid, text)
        })?,
        true => {
            let inner = arguments.text("x-delayed-type")?.and_then(kind_of);
            inner.ok_or_else(|| arguments.wrong("x-delayed-type", "expected the type that it routes by"))?
        }
    };
    Ok(ExchangeSettings {
        kind,
        durable: wanted.durable,
        auto_delete: wanted.auto_delete,
        internal: wanted.internal,
        alternate: arguments.text("alternate-exchange")?.map(Into::into),
        delayed,
        hash_on: hash_on(&arguments)?,
        arguments: wanted.arguments.as_bytes().to_vec(),
    })
}

fn kind_of(name: &str) -> Option<ExchangeKind> {
    Some(match name {
        "direct" => ExchangeKind::Direct,
        "fanout" => ExchangeKind::Fanout,
        "topic" => ExchangeKind::Topic,
        "headers" => ExchangeKind::Headers,
        "x-consistent-hash" => ExchangeKind::ConsistentHash,
        _ => return None,
    })
}

/// The type of an exchange, as clients call it.
#[must_use]
pub fn kind_name(settings: &ExchangeSettings) -> &'static str {
    match settings.kind {
        _ if settings.delayed => DELAYED,
        ExchangeKind::Direct => "direct",
        ExchangeKind::Fanout => "fanout",
        ExchangeKind::Topic => "topic",
        ExchangeKind::Headers => "headers",
        ExchangeKind::ConsistentHash => "x-consistent-hash",
    }
}

fn hash_on(arguments: &Arguments<'_>) -> Result<HashOn, Refused> {
    let header = arguments.text("hash-header")?;
    let property = arguments.text("hash-property")?;
    Ok(match (header, property) {
        (None, None) => HashOn::RoutingKey,
        (Some(name), None) => HashOn::Header(name.to_owned()),
        (None, Some("message_id")) => HashOn::Property(Property::MessageId),
        (None, Some("correlation_id")) => HashOn::Property(Property::CorrelationId),
        (None, Some("timestamp")) => HashOn::Property(Property::Timestamp),
        (None, Some(_)) => {
            return Err(arguments.wrong("hash-property", "expected message_id, correlation_id or timestamp"));
        }
        (Some(_), Some(_)) => {
            return Err(arguments.wrong("hash-property", "hash-header is given, too; one of them decides"));
        }
    })
}
