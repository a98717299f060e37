//! A queue as a client declares it.

use overtake_amqp::ReplyCode;
use overtake_amqp::connection::{DeclareQueue as Wanted, Refused};
use overtake_engine::DeclareQueue;
use overtake_lane::{
    ARGUMENTS_LEN_MAX, Backoff, DeadLetterTo, Existing, Given, Identity, LaneSettings, LastValue, Order,
    Overflow, Partitions, PickerKind, RateLimit, Scheme, Settings,
};
use overtake_redact::Strict;
use serde::Deserialize;

use super::{Arguments, TIME, json};

/// The arguments that say something about a queue, and so must be the same when it is declared again.
pub(crate) const KNOWN: [&str; 27] = [
    "x-max-priority",
    "x-scheme",
    "x-default-priority",
    "x-picker",
    "x-max-active",
    "x-lane-caps",
    "x-partitions",
    "x-group-limit",
    "x-rate-limit",
    "x-key-rate-limit",
    "x-fair-keys",
    "x-key-weights",
    "x-last-value",
    "x-message-ttl",
    "x-expires",
    "x-max-length",
    "x-max-length-bytes",
    "x-overflow",
    "x-dead-letter-exchange",
    "x-dead-letter-routing-key",
    "x-delivery-limit",
    "x-overtake-backoff",
    "x-single-active-consumer",
    "x-max-consumers",
    "x-consumer-timeout",
    "x-history",
    "x-run-timeout",
];

/// What the client wants, as the engine is asked for it. Arguments that mean nothing here are remembered, as RabbitMQ does.
///
/// # Errors
/// An argument that cannot be, by name.
pub fn queue(wanted: &Wanted, vhost: &str) -> Result<DeclareQueue, Refused> {
    let table = wanted.arguments.view();
    let arguments = Arguments::new(table, "queue", &wanted.name, vhost);
    if table.as_bytes().len() > ARGUMENTS_LEN_MAX {
        let text = format!("the arguments for {} are longer than {ARGUMENTS_LEN_MAX} bytes", arguments.of);
        return Err(Refused::because(ReplyCode::PreconditionFailed, text));
    }
    let mut settings = Settings::default();
    priorities(&arguments, &mut settings)?;
    times(&arguments, &mut settings)?;
    limits(&arguments, &mut settings)?;
    dead_letters(&arguments, &mut settings)?;
    consumers(&arguments, &mut settings)?;
    placement(&arguments)?;
    settings.validate().map_err(|bad| {
        Refused::because(
            ReplyCode::PreconditionFailed,
            format!("invalid arguments for {}: {bad}", arguments.of),
        )
    })?;
    let identity = Identity {
        // What goes with its connection outlives nothing (RabbitMQ).
        durable: wanted.durable && !wanted.exclusive,
        exclusive: wanted.exclusive,
        auto_delete: wanted.auto_delete,
        arguments: table.as_bytes().into(),
    };
    Ok(DeclareQueue { settings, identity, existing: Existing::Same })
}

/// Without `x-max-priority` or `x-scheme` a queue is one lane, and the priority of each message only travels.
fn priorities(arguments: &Arguments<'_>, settings: &mut Settings) -> Result<(), Refused> {
    let scheme: Option<Scheme> = arguments.setting("x-scheme")?;
    let most = arguments.number("x-max-priority", 0..=255)?;
    let most = most.and_then(|most| u8::try_from(most).ok()).filter(|most| *most > 0);
    settings.scheme = scheme.or(most.map(Scheme::Max)).unwrap_or(Scheme::Max(u8::MAX));
    settings.order = if scheme.is_some() || most.is_some() { Order::Priority } else { Order::Fifo };
    settings.default_priority = arguments.setting::<Given>("x-default-priority")?;
    if let Some(picker) = arguments.setting::<PickerKind>("x-picker")? {
        settings.picker = picker;
    }
    settings.max_active = arguments.count("x-max-active")?.unwrap_or_default();
    if let Some(caps) = arguments.setting::<std::collections::BTreeMap<String, u32>>("x-lane-caps")? {
        settings.lanes =
            caps.into_iter().map(|(lane, max_active)| (lane, LaneSettings { max_active })).collect();
    }
    settings.partitions = arguments.setting::<Partitions>("x-partitions")?.unwrap_or_default();
    settings.group_limit = arguments.count("x-group-limit")?.unwrap_or_default();
    settings.rate_limit = arguments.setting::<RateLimit>("x-rate-limit")?;
    settings.key_rate_limit = arguments.setting::<RateLimit>("x-key-rate-limit")?;
    settings.fair_keys = arguments.flag("x-fair-keys")?.unwrap_or_default();
    settings.key_weights =
        arguments.setting::<std::collections::BTreeMap<String, u32>>("x-key-weights")?.unwrap_or_default();
    settings.last_value = arguments.setting::<LastValue>("x-last-value")?;
    Ok(())
}

fn times(arguments: &Arguments<'_>, settings: &mut Settings) -> Result<(), Refused> {
    match arguments.number("x-message-ttl", TIME)? {
        Some(0) => settings.expire_at_once = true,
        ttl_ms => settings.ttl_ms = ttl_ms.unwrap_or_default(),
    }
    settings.expires_ms = arguments.number("x-expires", 1..=*TIME.end())?.unwrap_or_default();
    settings.consumer_timeout_ms = arguments.number("x-consumer-timeout", TIME)?.unwrap_or_default();
    settings.run_timeout_ms = arguments.number("x-run-timeout", TIME)?.unwrap_or_default();
    Ok(())
}

fn limits(arguments: &Arguments<'_>, settings: &mut Settings) -> Result<(), Refused> {
    let most = 0..=i64::MAX as u64;
    let length = arguments.number("x-max-length", most.clone())?;
    let bytes = arguments.number("x-max-length-bytes", most)?;
    settings.evict_at_once = length == Some(0) || bytes == Some(0);
    settings.max_length = length.unwrap_or_default();
    settings.max_bytes = bytes.unwrap_or_default();
    settings.overflow = match arguments.text("x-overflow")? {
        None | Some("drop-head") => Overflow::Evict,
        Some("reject-publish") => Overflow::Reject,
        Some("reject-publish-dlx") => Overflow::RejectDeadLetter,
        Some(_) => {
            return Err(
                arguments.wrong("x-overflow", "expected drop-head, reject-publish or reject-publish-dlx")
            );
        }
    };
    Ok(())
}

fn dead_letters(arguments: &Arguments<'_>, settings: &mut Settings) -> Result<(), Refused> {
    let exchange = arguments.text("x-dead-letter-exchange")?;
    let routing_key = arguments.text("x-dead-letter-routing-key")?.map(str::to_owned);
    settings.dead_letter = match exchange {
        Some(name) => DeadLetterTo::Exchange { name: name.to_owned(), routing_key },
        None if routing_key.is_some() => {
            return Err(arguments.wrong("x-dead-letter-routing-key", "there is no x-dead-letter-exchange"));
        }
        None => DeadLetterTo::Drop,
    };
    settings.history = arguments.text("x-history")?.map(str::to_owned);
    settings.dead_letter_expired = exchange.is_some();
    settings.dead_letter_evicted = exchange.is_some();
    // RabbitMQ counts how often a message may come back, we how often it may go out; −1 is without end there.
    let limit = arguments.read("x-delivery-limit", "a whole number, or -1 for no limit", |value| {
        value.int().filter(|limit| (-1..i64::from(u32::MAX)).contains(limit))
    })?;
    settings.delivery_limit = limit.map_or(0, |limit| (limit + 1) as u32);
    settings.backoff = backoff(arguments)?.unwrap_or_default();
    Ok(())
}

/// The first wait in ms, or a table with fields of [`Backoff`].
fn backoff(arguments: &Arguments<'_>) -> Result<Option<Backoff>, Refused> {
    const NAME: &str = "x-overtake-backoff";
    let expected = "the first wait in ms, or a table with initial_ms, multiplier and max_ms";
    arguments.read(NAME, expected, |value| {
        if let Some(first) = value.int() {
            let initial_ms = u64::try_from(first).ok()?;
            return Some(Backoff { initial_ms, ..Backoff::default() });
        }
        Backoff::deserialize(Strict(json(value))).ok()
    })
}

fn consumers(arguments: &Arguments<'_>, settings: &mut Settings) -> Result<(), Refused> {
    settings.single_active_consumer = arguments.flag("x-single-active-consumer")?.unwrap_or_default();
    if let Some(most) = arguments.count("x-max-consumers")? {
        settings.max_consumers = most;
    }
    Ok(())
}

/// How RabbitMQ would keep the queue: there is one way here, and it is durable.
fn placement(arguments: &Arguments<'_>) -> Result<(), Refused> {
    match arguments.text("x-queue-type")? {
        None | Some("classic" | "quorum" | "default") => {}
        Some(_) => return Err(arguments.wrong("x-queue-type", "expected classic or quorum")),
    }
    match arguments.text("x-queue-mode")? {
        None | Some("default" | "lazy") => {}
        Some(_) => return Err(arguments.wrong("x-queue-mode", "expected default or lazy")),
    }
    if arguments.has("x-queue-version") {
        arguments.number("x-queue-version", 1..=2)?;
    }
    Ok(())
}
