//! Which trace a message is of: the header `traceparent` of [W3C Trace Context](https://www.w3.org/TR/trace-context/), level 2.

use std::fmt;
use std::str::FromStr;

use overtake_properties::{Short, ShortText, TableRef, Value};

use super::span::SpanId;
use crate::api::Content;

/// The header that says so.
pub const TRACEPARENT: &str = "traceparent";
/// The header with what tracing systems say besides.
pub const TRACESTATE: &str = "tracestate";
/// Longest `tracestate` that spans carry, bytes: what the recommendation has everybody pass on at least (3.3.1.5).
const STATE_LEN_MAX: usize = 512;
/// `00-` and 32, 16 and 2 digits with a dash between them.
const LEN: usize = 55;

/// A trace.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TraceId(pub [u8; 16]);

impl TraceId {
    /// So many ends there are ([`TraceId::end`]).
    pub(super) const ENDS: u64 = 1 << 56;

    /// The last seven bytes, which are the random ones (level 2, 3.2.2.3).
    pub(super) fn end(self) -> u64 {
        let [.., a, b, c, d, e, f, g] = self.0;
        u64::from_be_bytes([0, a, b, c, d, e, f, g])
    }
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

impl fmt::Debug for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// What a `traceparent` says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceContext {
    /// The trace.
    pub trace_id: TraceId,
    /// The span of whoever published: the parent of ours.
    pub parent: SpanId,
    /// Whoever published told its part.
    pub is_sampled: bool,
    /// What tracing systems say besides, if there is any and it is no longer than 512 bytes.
    pub state: Option<Box<str>>,
}

/// Not a `traceparent`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadContext;

impl fmt::Display for BadContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "no traceparent: two, 32, 16 and two lower-case hexadecimal digits with a dash between them",
        )
    }
}

impl std::error::Error for BadContext {}

impl FromStr for TraceContext {
    type Err = BadContext;

    fn from_str(text: &str) -> Result<Self, BadContext> {
        Self::read(text.as_bytes()).ok_or(BadContext)
    }
}

impl TraceContext {
    /// Of a `traceparent`. One of a later version is read as far as this one goes (4.3 of the recommendation).
    fn read(text: &[u8]) -> Option<Self> {
        let ([version], rest) = field::<1>(text)?;
        let (trace_id, rest) = field::<16>(rest.strip_prefix(b"-")?)?;
        let (parent, rest) = field::<8>(rest.strip_prefix(b"-")?)?;
        let ([flags], rest) = field::<1>(rest.strip_prefix(b"-")?)?;
        let is_whole = match version {
            0 => text.len() == LEN,
            0xff => false,
            _ => rest.is_empty() || rest.starts_with(b"-"),
        };
        let is_said = trace_id != [0; 16] && parent != [0; 8];
        (is_whole && is_said).then_some(Self {
            trace_id: TraceId(trace_id),
            parent: SpanId(parent),
            is_sampled: flags & 1 == 1,
            state: None,
        })
    }
}

/// So many bytes in lower-case hexadecimal, and what follows them.
fn field<const LEN: usize>(text: &[u8]) -> Option<([u8; LEN], &[u8])> {
    let (digits, rest) = text.split_at_checked(2 * LEN)?;
    let mut bytes = [0; LEN];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some((bytes, rest))
}

fn digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    }
}

impl Content {
    /// Which trace it is of, if it says so, and rightly.
    #[must_use]
    pub fn trace(&self) -> Option<TraceContext> {
        let headers = self.properties.view().headers()?;
        let context = TraceContext::read(text(headers.get(TRACEPARENT)?)?)?;
        let state = headers.get(TRACESTATE).and_then(text).filter(|state| state.len() <= STATE_LEN_MAX);
        let state = state.and_then(|state| std::str::from_utf8(state).ok()).map(Into::into);
        Some(TraceContext { state, ..context })
    }

    /// The same, said to be of this trace, whatever it said before: a `traceparent`, and a `tracestate` if there is one.
    #[must_use]
    pub fn with_trace(self, parent: &str, state: Option<&str>) -> Self {
        let said = [(TRACEPARENT, Some(parent)), (TRACESTATE, state)];
        let mut headers = self.properties.view().headers().map(TableRef::to_table).unwrap_or_default();
        for (name, value) in said {
            headers = match value {
                Some(value) => {
                    headers.view().with(Short::from(ShortText::cut(name)), Value::String(value.as_bytes()))
                }
                None => headers.view().without(name),
            };
        }
        let properties = self.properties.view().with_headers(Some(headers.view()));
        Self { properties, ..self }
    }
}

fn text(value: Value<'_>) -> Option<&[u8]> {
    match value {
        Value::String(text) | Value::Bytes(text) => Some(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use overtake_lane::{HeaderValue, Headers};

    use super::*;

    const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
    const PARENT: &str = "b7ad6b7169203331";

    #[test]
    fn contexts_are_read_as_the_recommendation_says() {
        let ok = format!("{TRACE} {PARENT}");
        let table = [
            (format!("00-{TRACE}-{PARENT}-01"), Some((ok.as_str(), true))),
            (format!("00-{TRACE}-{PARENT}-00"), Some((&ok, false))),
            (format!("00-{TRACE}-{PARENT}-03"), Some((&ok, true))),
            (format!("00-{TRACE}-{PARENT}-fe"), Some((&ok, false))),
            // Later versions: what is behind is not ours to judge.
            (format!("01-{TRACE}-{PARENT}-01"), Some((&ok, true))),
            (format!("cc-{TRACE}-{PARENT}-01-what-the-future-will-be-like"), Some((&ok, true))),
            (format!("cc-{TRACE}-{PARENT}-01.what-the-future-will-not-be-like"), None),
            (format!("ff-{TRACE}-{PARENT}-01"), None),
            (format!("00-{TRACE}-{PARENT}-01-more"), None),
            (format!("00-{}-{PARENT}-01", TRACE.to_uppercase()), None),
            (format!("00-{TRACE}-{}-01", PARENT.to_uppercase()), None),
            (format!("00-{TRACE}-{PARENT}-0A"), None),
            (format!("00-{}-{PARENT}-01", "0".repeat(32)), None),
            (format!("00-{TRACE}-{}-01", "0".repeat(16)), None),
            (format!("00-{}-{PARENT}-01", &TRACE[1..]), None),
            (format!("00-{TRACE}0-{PARENT}-01"), None),
            (format!("00-{TRACE}-{PARENT}"), None),
            (format!("00-{TRACE}-{PARENT}-1"), None),
            (format!("00-{TRACE}-{PARENT}-011"), None),
            (format!("0-{TRACE}-{PARENT}-01"), None),
            (format!("00_{TRACE}_{PARENT}_01"), None),
            (format!(" 00-{TRACE}-{PARENT}-01"), None),
            (format!("00-{TRACE}-{PARENT}-01 "), None),
            (format!("00-{}é-{PARENT}-01", &TRACE[2..]), None),
            (String::new(), None),
            ("00".to_owned(), None),
        ];
        for (text, expect) in table {
            let read = TraceContext::from_str(&text).ok();
            let seen = read.map(|read| (format!("{} {}", read.trace_id, read.parent), read.is_sampled));
            assert_eq!(seen, expect.map(|(ids, sampled)| (ids.to_owned(), sampled)), "{text}");
        }
    }

    #[test]
    fn a_message_says_its_trace_in_its_headers() {
        let said = |headers: &[(&str, HeaderValue)]| {
            let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
            Content::new(None, &headers.collect::<Headers>(), "".into()).trace()
        };
        let text = |text: &str| HeaderValue::Text(text.to_owned());
        let parent = text(&format!("00-{TRACE}-{PARENT}-01"));
        assert_eq!(said(&[]), None);
        assert_eq!(said(&[("Traceparent", parent.clone())]), None);
        assert_eq!(said(&[("traceparent", HeaderValue::Int(1))]), None);
        assert_eq!(said(&[("tracestate", text("a=1"))]), None);
        let read =
            said(&[("traceparent", parent.clone()), ("tracestate", text("a=1,b=2"))]).expect("a trace");
        assert_eq!((read.trace_id.to_string().as_str(), read.state.as_deref()), (TRACE, Some("a=1,b=2")));
        let long = said(&[("traceparent", parent), ("tracestate", text(&"x".repeat(513)))]).expect("a trace");
        assert_eq!(long.state, None);
    }
}
