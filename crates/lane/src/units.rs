//! Numbers with a unit behind them, as people write them: `64MiB`, `30s`.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer};

/// The units of a number of bytes, and how many bytes each is.
pub const BYTE_UNITS: &[(&str, u64)] = &[
    ("B", 1),
    ("kB", 1_000),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
];

/// A whole number with one of `units` behind it, or without one; `None` if it is something else or too large.
#[must_use]
pub fn with_unit(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..end].parse().ok()?;
    let unit = text[end..].trim_start();
    let (_, factor) = units.iter().find(|(name, _)| *name == unit || unit.is_empty())?;
    number.checked_mul(if unit.is_empty() { 1 } else { *factor })
}

/// Decodes a number of bytes: a number, or a text such as `10MiB`.
pub(crate) fn bytes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    struct Bytes;
    impl Visitor<'_> for Bytes {
        type Value = u64;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a number of bytes, such as 10485760 or \"10MiB\"")
        }

        fn visit_u64<E: Error>(self, number: u64) -> Result<u64, E> {
            Ok(number)
        }

        fn visit_i64<E: Error>(self, number: i64) -> Result<u64, E> {
            u64::try_from(number).map_err(|_| E::invalid_value(Unexpected::Signed(number), &self))
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<u64, E> {
            with_unit(text, BYTE_UNITS).ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self))
        }
    }
    deserializer.deserialize_any(Bytes)
}

/// A weight as it is decoded. An error names the range from 1 to `MAX`, which a number of 32 bits may still leave: whoever checks the weight refuses it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Weight<const MAX: u32>(pub u32);

impl<'de, const MAX: u32> Deserialize<'de> for Weight<MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_u32(Self(0))
    }
}

impl<const MAX: u32> Visitor<'_> for Weight<MAX> {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a whole number from 1 to {MAX}")
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Self, E> {
        let weight = u32::try_from(number);
        weight.map(Self).map_err(|_| E::invalid_value(Unexpected::Unsigned(number), &self))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Self, E> {
        let weight = u32::try_from(number);
        weight.map(Self).map_err(|_| E::invalid_value(Unexpected::Signed(number), &self))
    }
}

/// Decodes weights by name: see [`Weight`].
pub(crate) fn weights<'de, const MAX: u32, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, u32>, D::Error> {
    let weights = BTreeMap::<String, Weight<MAX>>::deserialize(deserializer)?;
    Ok(weights.into_iter().map(|(name, weight)| (name, weight.0)).collect())
}
