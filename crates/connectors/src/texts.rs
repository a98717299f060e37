//! What is said of a message, as text.

use jiff::Timestamp;
use overtake_lane::{Given, HeaderValue, Time};
use overtake_properties::PropertiesRef;

use crate::outgoing::Outgoing;

/// Headers of a message that can be told as text.
pub(crate) fn headers(message: &Outgoing) -> impl Iterator<Item = (String, String)> {
    message.headers().into_iter().filter_map(|(name, value)| Some((name, text_of(&value)?)))
}

/// The names of the headers that no text stands for: of bytes, of several values, or without a value.
pub(crate) fn no_texts(message: &Outgoing) -> impl Iterator<Item = String> {
    message.headers().into_iter().filter(|(_, value)| text_of(value).is_none()).map(|(name, _)| name)
}

/// A text, a number or a bool as text, as conditions of routes read them.
pub(crate) fn text_of(value: &HeaderValue) -> Option<String> {
    Some(match value {
        HeaderValue::Text(text) => text.clone(),
        HeaderValue::Int(number) => number.to_string(),
        HeaderValue::Time(seconds) => seconds.to_string(),
        HeaderValue::Bool(value) => value.to_string(),
        HeaderValue::Float(bits) => f64::from_bits(*bits).to_string(),
        HeaderValue::Decimal { scale, value } => {
            let width = usize::from(*scale) + 1;
            let mut digits = format!("{value:0>width$}");
            if *scale > 0 {
                digits.insert(digits.len() - usize::from(*scale), '.');
            }
            digits
        }
        HeaderValue::Void | HeaderValue::Bytes(_) | HeaderValue::List(_) | HeaderValue::Table(_) => {
            return None;
        }
    })
}

/// The name of the field that says the weight of the key.
pub(crate) const KEY_WEIGHT: &str = "key-weight";

/// A weight that is said as text. Other texts are a weight that every queue refuses, so that the error names the weight.
pub(crate) fn weight(text: &str) -> u32 {
    text.parse().unwrap_or(u32::MAX)
}

/// The scheme of what stands under `priority`.
pub(crate) const PRIORITY_SCHEME: &str = "priority-scheme";

/// The name of the field that says that a message has no priority; its value is [`NONE_OF_ROUTES`].
pub(crate) const PRIORITY_NONE: &str = "priority-none";
/// The scheme in which a message without a priority comes after all that have one.
pub(crate) const NONE_OF_ROUTES: &str = "route";

/// A priority that is said as text: a number, or a name.
pub(crate) fn given(text: &str) -> Given {
    text.parse().map_or_else(|_| Given::Name(text.to_owned()), Given::Number)
}

/// A header that is a text or a whole number.
pub(crate) fn in_header(name: &str, properties: PropertiesRef<'_>) -> Option<HeaderValue> {
    let value = overtake_engine::header_of(properties.headers()?.get(name)?);
    matches!(value, HeaderValue::Int(_) | HeaderValue::Text(_)).then_some(value)
}

/// A value in a JSON body, by its JSON pointer (RFC 6901), that is a text or a whole number.
pub(crate) fn in_body(pointer: &str, body: &[u8]) -> Option<HeaderValue> {
    let json: serde_json::Value = serde_json::from_slice(body).ok()?;
    let value = json.pointer(pointer)?;
    value.as_i64().map(HeaderValue::Int).or_else(|| Some(HeaderValue::Text(value.as_str()?.to_owned())))
}

/// As `2026-11-22T09:20:00.000Z`.
pub(crate) fn rfc3339(at: Time) -> String {
    let ms = i64::try_from(at.0).unwrap_or(i64::MAX);
    Timestamp::from_millisecond(ms).map_or_else(|_| at.0.to_string(), |at| format!("{at:.3}"))
}
