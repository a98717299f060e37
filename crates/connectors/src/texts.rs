//! What is said of a message, as text.

use jiff::Timestamp;
use overtake_lane::{Given, HeaderValue, Time};

use crate::outgoing::Outgoing;

/// Headers of a message that can be told as text.
pub(crate) fn headers(message: &Outgoing) -> impl Iterator<Item = (String, String)> {
    message.headers().into_iter().filter_map(|(name, value)| {
        let text = match value {
            HeaderValue::Text(text) => text,
            HeaderValue::Int(number) => number.to_string(),
            HeaderValue::Bool(value) => value.to_string(),
            _ => return None,
        };
        Some((name, text))
    })
}

/// The scheme of what stands under `priority`.
pub(crate) const PRIORITY_SCHEME: &str = "priority-scheme";

/// A priority that is said as text: a number, or a name.
pub(crate) fn given(text: &str) -> Given {
    text.parse().map_or_else(|_| Given::Name(text.to_owned()), Given::Number)
}

/// As `2026-11-22T09:20:00.000Z`.
pub(crate) fn rfc3339(at: Time) -> String {
    let ms = i64::try_from(at.0).unwrap_or(i64::MAX);
    Timestamp::from_millisecond(ms).map_or_else(|_| at.0.to_string(), |at| format!("{at:.3}"))
}
