//! What headers hold, and when two values count as the same.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use serde::{Serialize, Serializer};

/// Headers of a message, by name.
pub type Headers = BTreeMap<String, HeaderValue>;

/// Deepest lists and tables within each other that a value may have; whoever reads values of strangers stops there.
pub const HEADER_DEPTH_MAX: usize = 32;

/// What a header holds: all that a field table of AMQP 0-9-1 can say.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum HeaderValue {
    /// Nothing. In a binding: the header must be there, whatever it holds.
    Void,
    /// true or false.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// Text.
    Text(String),
    /// The bits of a float of 64 bits; one of 32 bits is widened.
    Float(u64),
    /// `value` with the point moved left by so many digits.
    Decimal {
        /// Digits after the point.
        scale: u8,
        /// All digits.
        value: u32,
    },
    /// Seconds since 1970.
    Time(u64),
    /// Bytes.
    Bytes(Vec<u8>),
    /// Values in order.
    List(Vec<HeaderValue>),
    /// Values by name.
    Table(Headers),
}

impl HeaderValue {
    /// Whether two values are the same to a headers exchange. As in RabbitMQ the kinds of whole numbers, and text and bytes,
    /// are not told apart, but within lists and tables they are.
    #[must_use]
    pub fn equals(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Int(number), Self::Time(time)) | (Self::Time(time), Self::Int(number)) => {
                u64::try_from(*number) == Ok(*time)
            }
            (Self::Text(text), Self::Bytes(bytes)) | (Self::Bytes(bytes), Self::Text(text)) => {
                text.as_bytes() == bytes
            }
            _ => self == other,
        }
    }

    /// The value as text; lists, tables and nothing have none.
    #[must_use]
    pub fn text(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::Bool(value) => Some(Cow::from(if *value { "true" } else { "false" })),
            Self::Int(number) => Some(number.to_string().into()),
            Self::Text(text) => Some(text.into()),
            Self::Float(bits) => Some(float(*bits).into()),
            Self::Decimal { scale, value } => Some(decimal(*scale, *value).into()),
            Self::Time(seconds) => Some(seconds.to_string().into()),
            Self::Bytes(bytes) => Some(String::from_utf8_lossy(bytes)),
            Self::Void | Self::List(_) | Self::Table(_) => None,
        }
    }

    /// Whether this is what was meant by the text.
    #[must_use]
    pub fn says(&self, text: &str) -> bool {
        match self {
            Self::Int(value) => text.parse() == Ok(*value),
            _ => self.text().is_some_and(|own| own == text),
        }
    }

    /// Bytes that count against limits. Lists and tables: with all that is in them.
    #[must_use]
    pub fn size(&self) -> usize {
        let mut size = 0;
        let mut open = vec![self];
        while let Some(value) = open.pop() {
            size += match value {
                Self::Text(text) => text.len(),
                Self::Bytes(bytes) => bytes.len(),
                Self::List(values) => {
                    open.extend(values);
                    values.len()
                }
                Self::Table(values) => {
                    open.extend(values.values());
                    values.keys().map(|name| name.len() + 1).sum()
                }
                _ => 8,
            };
        }
        size
    }

    /// Whether it has no more lists and tables within each other than [`HEADER_DEPTH_MAX`].
    #[must_use]
    pub fn is_shallow(&self) -> bool {
        let mut open = vec![(self, 0)];
        while let Some((value, depth)) = open.pop() {
            match value {
                Self::List(_) | Self::Table(_) if depth == HEADER_DEPTH_MAX => return false,
                Self::List(values) => open.extend(values.iter().map(|value| (value, depth + 1))),
                Self::Table(values) => open.extend(values.values().map(|value| (value, depth + 1))),
                _ => {}
            }
        }
        true
    }
}

#[expect(clippy::disallowed_types, reason = "shown to people, and nothing is decided by it")]
fn float(bits: u64) -> String {
    f64::from_bits(bits).to_string()
}

fn decimal(scale: u8, value: u32) -> String {
    let scale = usize::from(scale);
    let digits = format!("{value:0width$}", width = scale + 1);
    let (whole, rest) = digits.split_at(digits.len() - scale);
    if rest.is_empty() { whole.to_owned() } else { format!("{whole}.{rest}") }
}

/// As JSON has it: numbers and booleans as such, bytes and decimals as text, nothing as null.
impl Serialize for HeaderValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Void => serializer.serialize_unit(),
            Self::Bool(value) => serializer.serialize_bool(*value),
            Self::Int(number) => serializer.serialize_i64(*number),
            Self::Text(text) => serializer.serialize_str(text),
            Self::Float(bits) => serialize_float(*bits, serializer),
            Self::Time(seconds) => serializer.serialize_u64(*seconds),
            Self::List(values) => serializer.collect_seq(values),
            Self::Table(values) => serializer.collect_map(values),
            Self::Decimal { .. } | Self::Bytes(_) => {
                serializer.serialize_str(&self.text().expect("bytes and decimals are shown as text"))
            }
        }
    }
}

#[expect(clippy::disallowed_types, reason = "shown to people, and nothing is decided by it")]
fn serialize_float<S: Serializer>(bits: u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(f64::from_bits(bits))
}

/// A property of a message that an exchange can go by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Property {
    /// What its publisher calls it.
    MessageId,
    /// What it answers.
    CorrelationId,
    /// When it was made, in seconds since 1970.
    Timestamp,
}

/// What a message says about itself, as far as exchanges look at it. Only an exchange that goes by it asks.
pub trait Marks: fmt::Debug + Send + Sync {
    /// A header.
    fn header(&self, name: &str) -> Option<Cow<'_, HeaderValue>>;

    /// A property, as text.
    fn property(&self, _property: Property) -> Option<Cow<'_, str>> {
        None
    }
}

impl Marks for Headers {
    fn header(&self, name: &str) -> Option<Cow<'_, HeaderValue>> {
        self.get(name).map(Cow::Borrowed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_are_whole_numbers_and_text_is_bytes() {
        use HeaderValue::{Bytes, Float, Int, List, Text, Time, Void};
        let check = |a: HeaderValue, b: HeaderValue, expect| {
            assert_eq!(a.equals(&b), expect, "{a:?} {b:?}");
            assert_eq!(b.equals(&a), expect, "{b:?} {a:?}");
        };
        check(Int(7), Time(7), true);
        check(Int(-7), Time(7), false);
        check(Text("a".into()), Bytes(b"a".into()), true);
        check(Text("7".into()), Int(7), false);
        check(Float(0), Int(0), false);
        check(Float(1.5_f64.to_bits()), Float(1.5_f64.to_bits()), true);
        check(List(vec![Int(7)]), List(vec![Int(7)]), true);
        check(List(vec![Int(7)]), List(vec![Time(7)]), false);
        check(Void, Void, true);
        check(Void, Int(0), false);
    }

    #[test]
    fn a_value_as_text() {
        for (value, expect) in [
            (HeaderValue::Decimal { scale: 2, value: 1_205 }, "12.05"),
            (HeaderValue::Decimal { scale: 3, value: 5 }, "0.005"),
            (HeaderValue::Decimal { scale: 0, value: 5 }, "5"),
            (HeaderValue::Float(2.5_f64.to_bits()), "2.5"),
            (HeaderValue::Bool(true), "true"),
        ] {
            assert_eq!(value.text().as_deref(), Some(expect));
        }
        assert!(HeaderValue::Int(7).says("7") && !HeaderValue::Int(7).says("8"));
    }

    #[test]
    fn what_is_too_deep_is_told() {
        let nested = |depth| (0..depth).fold(HeaderValue::Void, |inner, _| HeaderValue::List(vec![inner]));
        assert!(nested(HEADER_DEPTH_MAX).is_shallow());
        assert!(!nested(HEADER_DEPTH_MAX + 1).is_shallow());
    }
}
