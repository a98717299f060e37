//! Arguments of declarations, bindings and consumers: RabbitMQ's and ours, as settings.

mod binding;
mod consumer;
mod exchange;
mod queue;

use std::fmt::{Display, Write as _};
use std::ops::RangeInclusive;

use overtake_amqp::ReplyCode;
use overtake_amqp::connection::Refused;
use overtake_engine::header_of;
use overtake_lane::DURATION_MS_MAX;
use overtake_properties::{TableRef, Value};
use overtake_redact::reason;
use serde::de::DeserializeOwned;

pub use binding::binding;
pub(crate) use consumer::{Urgent, consume, urgent};
pub use exchange::{exchange, kind_name};
pub(crate) use queue::KNOWN as QUEUE_ARGUMENTS;
pub use queue::queue;

/// Times, ms: 0 to [`DURATION_MS_MAX`].
const TIME: RangeInclusive<u64> = 0..=DURATION_MS_MAX;

/// How many characters of a wrong value a refusal shows: the reply text has 255 bytes.
const VALUE_CHARS_MAX: usize = 40;

/// Arguments, and what they are of.
struct Arguments<'a> {
    table: TableRef<'a>,
    /// As texts name it: `queue 'jobs' in vhost '/'`.
    of: String,
}

impl<'a> Arguments<'a> {
    fn new(table: TableRef<'a>, kind: &str, name: &str, vhost: &str) -> Self {
        Self { table, of: format!("{kind} '{name}' in vhost '{vhost}'") }
    }

    fn has(&self, name: &str) -> bool {
        self.table.get(name).is_some()
    }

    /// The refusal of the argument `name` because of `why`, with the value that the client sent.
    fn wrong(&self, name: &str, why: impl Display) -> Refused {
        let mut text = format!("invalid arg '{name}' for {}: {why}", self.of);
        if let Some(value) = self.table.get(name) {
            let value = json(value).to_string();
            let shown: String = value.chars().take(VALUE_CHARS_MAX).collect();
            let rest = if shown.len() < value.len() { "…" } else { "" };
            _ = write!(text, "; it is {shown}{rest}");
        }
        Refused::because(ReplyCode::PreconditionFailed, text)
    }

    /// One that is read so; `None`: it is not there.
    fn read<T>(
        &self,
        name: &str,
        expected: &str,
        read: impl FnOnce(Value<'a>) -> Option<T>,
    ) -> Result<Option<T>, Refused> {
        let Some(value) = self.table.get(name) else { return Ok(None) };
        read(value).map(Some).ok_or_else(|| self.wrong(name, format_args!("expected {expected}")))
    }

    /// A whole number in a range.
    fn number(&self, name: &str, range: RangeInclusive<u64>) -> Result<Option<u64>, Refused> {
        let expected = format!("a whole number from {} to {}", range.start(), range.end());
        self.read(name, &expected, |value| {
            value.int().and_then(|int| u64::try_from(int).ok()).filter(|int| range.contains(int))
        })
    }

    /// A number that fits a setting of 32 bits.
    fn count(&self, name: &str) -> Result<Option<u32>, Refused> {
        Ok(self.number(name, 0..=u32::MAX.into())?.map(|count| count as u32))
    }

    fn flag(&self, name: &str) -> Result<Option<bool>, Refused> {
        self.read(name, "true or false", Value::bool)
    }

    fn text(&self, name: &str) -> Result<Option<&'a str>, Refused> {
        self.read(name, "text", Value::text)
    }

    /// One that is written as in a queue's settings over HTTP.
    fn setting<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, Refused> {
        let Some(value) = self.table.get(name) else { return Ok(None) };
        serde_path_to_error::deserialize(json(value)).map(Some).map_err(|error| {
            let why = reason(&error.inner().to_string());
            let field = format!("`{}`", error.path());
            match error.path().iter().next() {
                Some(_) if !why.contains(&field) => self.wrong(name, format_args!("{field}: {why}")),
                _ => self.wrong(name, why),
            }
        })
    }
}

/// A value as JSON shows a header.
#[must_use]
pub fn json(value: Value<'_>) -> serde_json::Value {
    serde_json::to_value(header_of(value)).unwrap_or_default()
}
