//! Single values in a body: numbers within bounds, priorities, headers, lists of limited length.

use std::fmt;
use std::marker::PhantomData;

use overtake_lane::{DURATION_MS_MAX, Given, HeaderValue, Headers};
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Unexpected, Visitor};

/// Most headers of one message.
pub(crate) const HEADERS_MAX: usize = 100;

/// A whole number from `MIN` to `MAX`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ranged<const MIN: u64, const MAX: u64>(pub u64);

/// A duration in ms, up to ten years.
pub type DurationMs = Ranged<0, DURATION_MS_MAX>;

impl<const MIN: u64, const MAX: u64> Ranged<MIN, MAX> {
    /// Returns the number if it is within the bounds.
    pub(crate) fn new(number: u64) -> Option<Self> {
        (MIN..=MAX).contains(&number).then_some(Self(number))
    }

    /// Describes the bounds, for the detail of a problem.
    pub(crate) fn bounds() -> String {
        format!("a whole number from {MIN} to {MAX}")
    }
}

impl<'de, const MIN: u64, const MAX: u64> Deserialize<'de> for Ranged<MIN, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Number<const MIN: u64, const MAX: u64>;
        impl<const MIN: u64, const MAX: u64> Visitor<'_> for Number<MIN, MAX> {
            type Value = Ranged<MIN, MAX>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&Ranged::<MIN, MAX>::bounds())
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<Self::Value, E> {
                Ranged::new(number).ok_or_else(|| E::invalid_value(Unexpected::Unsigned(number), &self))
            }
        }
        deserializer.deserialize_u64(Number)
    }
}

/// A priority: a whole number, a name, or null for none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GivenIn(pub Given);

impl<'de> Deserialize<'de> for GivenIn {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Priority;
        impl Visitor<'_> for Priority {
            type Value = GivenIn;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a priority: a whole number or a name")
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<GivenIn, E> {
                Ok(GivenIn(Given::Number(number)))
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<GivenIn, E> {
                i64::try_from(number)
                    .map(|number| GivenIn(Given::Number(number)))
                    .map_err(|_| E::invalid_value(Unexpected::Unsigned(number), &self))
            }

            fn visit_str<E: Error>(self, name: &str) -> Result<GivenIn, E> {
                Ok(GivenIn(Given::Name(name.to_owned())))
            }

            fn visit_unit<E: Error>(self) -> Result<GivenIn, E> {
                Ok(GivenIn(Given::Missing))
            }
        }
        deserializer.deserialize_any(Priority)
    }
}

/// Headers: an object whose values are texts, whole numbers, booleans and, with `NULLS`, nulls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct HeadersIn<const NULLS: bool = false>(pub(crate) Headers);

impl<'de, const NULLS: bool> Deserialize<'de> for HeadersIn<NULLS> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object<const NULLS: bool>;
        impl<'de, const NULLS: bool> Visitor<'de> for Object<NULLS> {
            type Value = HeadersIn<NULLS>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "an object of at most {HEADERS_MAX} strings, whole numbers and booleans")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Self::Value, A::Error> {
                let mut headers = Headers::new();
                while let Some(name) = object.next_key::<String>()? {
                    let OneHeader::<NULLS>(value) = object.next_value()?;
                    if headers.len() == HEADERS_MAX {
                        return Err(A::Error::invalid_length(HEADERS_MAX + 1, &self));
                    }
                    headers.insert(name, value);
                }
                Ok(HeadersIn(headers))
            }
        }
        deserializer.deserialize_map(Object::<NULLS>)
    }
}

impl HeadersIn {
    /// Converts every value to text, since a filter compares headers as text.
    pub(crate) fn into_texts(self) -> Vec<(String, String)> {
        let text = |value: HeaderValue| value.text().unwrap_or_default().into_owned();
        self.0.into_iter().map(|(name, value)| (name, text(value))).collect()
    }
}

/// The value of one header.
struct OneHeader<const NULLS: bool>(HeaderValue);

impl<'de, const NULLS: bool> Deserialize<'de> for OneHeader<NULLS> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Scalar<const NULLS: bool>;
        impl<const NULLS: bool> Visitor<'_> for Scalar<NULLS> {
            type Value = OneHeader<NULLS>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string, a whole number of 64 bits or a boolean")
            }

            fn visit_bool<E: Error>(self, bool: bool) -> Result<Self::Value, E> {
                Ok(OneHeader(HeaderValue::Bool(bool)))
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<Self::Value, E> {
                Ok(OneHeader(HeaderValue::Int(number)))
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<Self::Value, E> {
                i64::try_from(number)
                    .map(|number| OneHeader(HeaderValue::Int(number)))
                    .map_err(|_| E::invalid_value(Unexpected::Unsigned(number), &self))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
                Ok(OneHeader(HeaderValue::Text(text.to_owned())))
            }

            fn visit_string<E: Error>(self, text: String) -> Result<Self::Value, E> {
                Ok(OneHeader(HeaderValue::Text(text)))
            }

            fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
                let nothing = || E::invalid_type(Unexpected::Unit, &self);
                NULLS.then_some(OneHeader(HeaderValue::Void)).ok_or_else(nothing)
            }
        }
        deserializer.deserialize_any(Scalar::<NULLS>)
    }
}

/// A list of 1 to `MAX` items. Decoding stops at the first item too many, so a long list takes no more memory than an allowed one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bounded<T, const MAX: usize>(pub Vec<T>);

impl<'de, T: Deserialize<'de>, const MAX: usize> Deserialize<'de> for Bounded<T, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct List<T, const MAX: usize>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>, const MAX: usize> Visitor<'de> for List<T, MAX> {
            type Value = Bounded<T, MAX>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a list of 1 to {MAX}")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
                let mut read = Vec::new();
                while let Some(one) = list.next_element()? {
                    if read.len() == MAX {
                        return Err(A::Error::invalid_length(MAX + 1, &self));
                    }
                    read.push(one);
                }
                if read.is_empty() { Err(A::Error::invalid_length(0, &self)) } else { Ok(Bounded(read)) }
            }
        }
        deserializer.deserialize_seq(List(PhantomData))
    }
}
