//! The kinds of values settings have: read from TOML or from a word, shown as TOML writes them.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

use overtake_lane::{BYTE_UNITS, with_unit};
use serde::de::{Deserialize, Deserializer, Error, Visitor};

use super::engine::{EngineKind, Replicas};
use super::otlp::{Attributes, Collector};

/// A value of a setting.
pub trait Value: Sized {
    /// What to write in its place in `--help`.
    const KIND: &'static str;
    /// Whether it is yes or no.
    const IS_SWITCH: bool = false;

    /// Reads it from a flag or a variable.
    ///
    /// # Errors
    /// What is wrong and what would be right.
    fn read(text: &str) -> Result<Self, String>;

    /// As TOML writes it.
    fn show(&self) -> String;
}

/// A listening address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listen(pub SocketAddr);

impl Listen {
    /// Where HTTP is served unless told otherwise.
    pub const LOOPBACK: Self = Self(SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 15672));

    /// Whether only this machine can reach it.
    #[must_use]
    pub fn is_loopback(self) -> bool {
        self.0.ip().to_canonical().is_loopback()
    }
}

/// Host names, each with or without a port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostNames(pub Vec<String>);

impl HostNames {
    fn of<'a>(all: impl Iterator<Item = &'a str>) -> Result<Self, String> {
        let names = all.map(str::trim).filter(|name| !name.is_empty());
        let checked = names.map(|name| match is_host_name(name) {
            true => Ok(name.to_owned()),
            false => Err(format!(
                "`{name}` is no host name: use one such as broker.example.com or broker.example.com:8443"
            )),
        });
        checked.collect::<Result<_, _>>().map(Self)
    }
}

fn is_host_name(text: &str) -> bool {
    let (name, port) = text.split_once(':').map_or((text, None), |(name, port)| (name, Some(port)));
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    !name.is_empty() && name.bytes().all(is_plain) && port.is_none_or(|port| port.parse::<u16>().is_ok())
}

impl Value for HostNames {
    const KIND: &'static str = "NAME,…";

    fn read(text: &str) -> Result<Self, String> {
        // A list as TOML writes it is taken as well.
        let list = text.trim().strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
        Self::of(list.split(',').map(|name| name.trim().trim_matches('"')))
    }

    fn show(&self) -> String {
        format!("[{}]", self.0.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(", "))
    }
}

impl<'de> Deserialize<'de> for HostNames {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let names = Vec::<String>::deserialize(deserializer)?;
        Self::of(names.iter().map(String::as_str)).map_err(D::Error::custom)
    }
}

/// A listening address, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listener(pub Option<Listen>);

impl Listener {
    /// Where AMQP is served unless told otherwise: the port that clients take by themselves.
    pub const AMQP: Self =
        Self(Some(Listen(SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 5672))));
}

impl Value for Listener {
    const KIND: &'static str = "IP:PORT|off";

    fn read(text: &str) -> Result<Self, String> {
        if text.trim() == "off" {
            return Ok(Self(None));
        }
        let address = Listen::read(text).map_err(|_| {
            format!("`{text}` is no address with a port: use one such as 127.0.0.1:5672, or off")
        });
        address.map(|address| Self(Some(address)))
    }

    fn show(&self) -> String {
        self.0.map_or_else(|| quoted("off"), |address| address.show())
    }
}

impl Value for Listen {
    const KIND: &'static str = "IP:PORT";

    fn read(text: &str) -> Result<Self, String> {
        let numeric = text
            .strip_prefix("localhost:")
            .map_or_else(|| text.to_owned(), |port| format!("127.0.0.1:{port}"));
        let address = numeric.parse();
        address.map(Self).map_err(|_| {
            format!("`{text}` is no address with a port: use one such as 127.0.0.1:15672 or [::1]:0")
        })
    }

    fn show(&self) -> String {
        quoted(&self.0.to_string())
    }
}

/// A number of bytes. As text also with a unit: `64MiB`, `10MB`, `512KiB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ByteSize(pub u64);

impl Value for ByteSize {
    const KIND: &'static str = "BYTES";

    fn read(text: &str) -> Result<Self, String> {
        with_unit(text, BYTE_UNITS)
            .map(Self)
            .ok_or_else(|| format!("`{text}` is no number of bytes: use one such as 67108864 or 64MiB"))
    }

    fn show(&self) -> String {
        let whole = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
        let unit = whole.into_iter().find(|(_, factor)| self.0 > 0 && self.0.is_multiple_of(*factor));
        unit.map_or_else(
            || self.0.to_string(),
            |(name, factor)| quoted(&format!("{}{name}", self.0 / factor)),
        )
    }
}

/// Bytes that are free on a disk, or what suits the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watermark(pub Option<ByteSize>);

impl Watermark {
    /// What suits the disk.
    pub const AUTO: Self = Self(None);

    /// As the engine wants it.
    #[must_use]
    pub fn bytes(self) -> Option<u64> {
        self.0.map(|size| size.0)
    }
}

/// A share of a whole, in millionths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share(pub u32);

impl Share {
    const WHOLE: f64 = 1_000_000.0;

    /// 0 to 1.
    #[must_use]
    pub fn of_one(self) -> f64 {
        f64::from(self.0) / Self::WHOLE
    }
}

impl Value for Share {
    const KIND: &'static str = "SHARE";

    fn read(text: &str) -> Result<Self, String> {
        let share = text.trim().parse::<f64>().ok().filter(|share| (0.0..=1.0).contains(share));
        share
            .map(|share| Self((share * Self::WHOLE).ceil() as u32))
            .ok_or_else(|| format!("`{text}` is no share: use a number from 0 to 1, such as 0.1"))
    }

    fn show(&self) -> String {
        self.of_one().to_string()
    }
}

impl Value for Watermark {
    const KIND: &'static str = "BYTES|auto";

    fn read(text: &str) -> Result<Self, String> {
        if text.trim() == "auto" {
            return Ok(Self::AUTO);
        }
        let size = with_unit(text, BYTE_UNITS).map(ByteSize);
        size.map(|size| Self(Some(size)))
            .ok_or_else(|| format!("`{text}` is no number of bytes: use one such as 1GiB, 0, or auto"))
    }

    fn show(&self) -> String {
        self.0.map_or_else(|| quoted("auto"), |size| size.show())
    }
}

/// A number of milliseconds. As text also with a unit: `250ms`, `30s`, `5m`, `2h`, `7d`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Millis(pub u64);

const TIME_UNITS: &[(&str, u64)] =
    &[("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];

impl Value for Millis {
    const KIND: &'static str = "MS";

    fn read(text: &str) -> Result<Self, String> {
        with_unit(text, TIME_UNITS).or_else(|| in_parts(text)).map(Self).ok_or_else(|| {
            format!("`{text}` is no duration: use milliseconds, or a unit as in 250ms, 30s, 5m, 1h30m, 7d")
        })
    }

    fn show(&self) -> String {
        self.0.to_string()
    }
}

/// A duration in parts, the longest unit first: `1h30m`. Each part has a unit, and no unit comes twice.
fn in_parts(text: &str) -> Option<u64> {
    let (mut rest, mut total, mut below) = (text.trim(), 0_u64, u64::MAX);
    while !rest.is_empty() {
        let number = rest.find(|c: char| !c.is_ascii_digit())?;
        let unit = &rest[number..];
        let unit = &unit[..unit.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(unit.len())];
        let (_, factor) = TIME_UNITS.iter().find(|(name, _)| *name == unit)?;
        if *factor >= below {
            return None;
        }
        total = total.checked_add(rest[..number].parse::<u64>().ok()?.checked_mul(*factor)?)?;
        below = *factor;
        rest = rest[number + unit.len()..].trim_start();
    }
    (below < u64::MAX).then_some(total)
}

/// What a damaged store means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnDamage {
    /// The server does not start.
    Refuse,
    /// It starts without what is damaged, and says what that was.
    Skip,
}

/// How logs are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// A line for people.
    Text,
    /// A JSON object per line.
    Json,
}

/// A value that is one of a few words.
macro_rules! word {
    ($Type:ty, $kind:literal, $( $word:literal = $value:expr ),*) => {
        impl Value for $Type {
            const KIND: &'static str = $kind;

            fn read(text: &str) -> Result<Self, String> {
                match text {
                    $( $word => Ok($value), )*
                    _ => Err(format!("`{text}` is none of {}", $kind.replace('|', ", "))),
                }
            }

            fn show(&self) -> String {
                $( if *self == $value { return quoted($word); } )*
                unreachable!("every value has a word")
            }
        }
    };
}

word!(OnDamage, "refuse|skip", "refuse" = Self::Refuse, "skip" = Self::Skip);
word!(LogFormat, "text|json", "text" = Self::Text, "json" = Self::Json);
word!(
    EngineKind,
    "embedded|redis|cluster",
    "embedded" = Self::Embedded,
    "redis" = Self::Redis,
    "cluster" = Self::Cluster
);

/// Which log lines are written, as `tracing` writes it: a level, and levels of single parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogFilter(String);

impl LogFilter {
    /// As it was given.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for LogFilter {
    fn default() -> Self {
        Self("info".to_owned())
    }
}

impl Value for LogFilter {
    const KIND: &'static str = "LEVEL";

    fn read(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "`{text}` is no log level: use error, warn, info, debug or trace, or such as info,overtake_engine=debug"
            )
        };
        // A bare word that is no level would be taken for the name of a part.
        let words_are_levels = text
            .split(',')
            .filter(|word| !word.contains('='))
            .all(|word| tracing::level_filters::LevelFilter::from_str(word.trim()).is_ok());
        let parses = tracing_subscriber::filter::Targets::from_str(text).is_ok();
        if words_are_levels && parses && !text.is_empty() { Ok(Self(text.to_owned())) } else { Err(wrong()) }
    }

    fn show(&self) -> String {
        quoted(&self.0)
    }
}

impl Value for bool {
    const KIND: &'static str = "true|false";
    const IS_SWITCH: bool = true;

    fn read(text: &str) -> Result<Self, String> {
        text.parse().map_err(|_| format!("`{text}` is neither true nor false"))
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

/// How many of something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Count(pub u32);

impl Value for Count {
    const KIND: &'static str = "N";

    fn read(text: &str) -> Result<Self, String> {
        text.trim()
            .parse()
            .map(Self)
            .map_err(|_| format!("`{text}` is no whole number from 0 to {}", u32::MAX))
    }

    fn show(&self) -> String {
        self.0.to_string()
    }
}

/// A number with a sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Whole(pub i32);

impl Value for Whole {
    const KIND: &'static str = "NUMBER";

    fn read(text: &str) -> Result<Self, String> {
        text.trim()
            .parse()
            .map(Self)
            .map_err(|_| format!("`{text}` is no whole number from {} to {}", i32::MIN, i32::MAX))
    }

    fn show(&self) -> String {
        self.0.to_string()
    }
}

impl Value for PathBuf {
    const KIND: &'static str = "PATH";

    fn read(text: &str) -> Result<Self, String> {
        Ok(Self::from(text))
    }

    fn show(&self) -> String {
        quoted(&self.to_string_lossy())
    }
}

impl Value for String {
    const KIND: &'static str = "NAME";

    fn read(text: &str) -> Result<Self, String> {
        Ok(text.to_owned())
    }

    fn show(&self) -> String {
        quoted(self)
    }
}

/// Text as TOML quotes it.
pub(super) fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => out.push_str(&format!("\\u{:04X}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// In TOML a value is a string, or a bare whole number where it counts something.
struct TomlValue<T>(std::marker::PhantomData<T>);

impl<T: Value> Visitor<'_> for TomlValue<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match T::KIND {
            "BYTES" => "a number of bytes such as 67108864 or \"64MiB\"",
            "BYTES|auto" => "a number of bytes such as 67108864 or \"64MiB\", or \"auto\"",
            "N" | "NUMBER" => "a whole number",
            "N|auto" => "a whole number or \"auto\"",
            "MS" => "a number of milliseconds or a string such as \"30s\"",
            "SHARE" => "a number from 0 to 1",
            "IP:PORT" => "an address such as \"127.0.0.1:15672\"",
            kind => return write!(f, "a string ({kind})"),
        })
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        T::read(text).map_err(E::custom)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<T, E> {
        let counts =
            matches!(T::KIND, "BYTES" | "BYTES|auto" | "MS" | "N" | "N|auto" | "SHARE") && number >= 0;
        if !counts && T::KIND != "NUMBER" {
            return Err(E::invalid_value(serde::de::Unexpected::Signed(number), &self));
        }
        T::read(&number.to_string()).map_err(E::custom)
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<T, E> {
        if T::KIND != "SHARE" {
            return Err(E::invalid_value(serde::de::Unexpected::Float(number), &self));
        }
        T::read(&number.to_string()).map_err(E::custom)
    }
}

macro_rules! from_toml {
    ($( $Type:ty ),*) => { $(
        impl<'de> Deserialize<'de> for $Type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_any(TomlValue(std::marker::PhantomData))
            }
        }
    )* };
}

from_toml!(Listen, Listener, ByteSize, Watermark, Count, Millis, OnDamage, LogFormat, LogFilter);
from_toml!(Whole, Share, Collector, Attributes, EngineKind, Replicas);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_durations_take_a_unit_or_none() {
        for (text, bytes) in [
            ("0", Some(0)),
            ("67108864", Some(64 << 20)),
            ("64MiB", Some(64 << 20)),
            ("64 MiB", Some(64 << 20)),
            ("10MB", Some(10_000_000)),
            ("1.5MiB", None),
            ("-1", None),
            ("MiB", None),
            ("64mib", None),
            ("", None),
            ("99999999999GiB", None),
        ] {
            assert_eq!(ByteSize::read(text).ok().map(|size| size.0), bytes, "{text}");
        }
        for (text, ms) in [
            ("30s", Some(30_000)),
            ("250ms", Some(250)),
            ("250", Some(250)),
            ("2h", Some(7_200_000)),
            ("1h30m", Some(5_400_000)),
            ("1h 30m 5s 7ms", Some(5_405_007)),
            ("30m1h", None),
            ("1h1h", None),
            ("1h30", None),
            ("h", None),
            ("", None),
            ("5 weeks", None),
        ] {
            assert_eq!(Millis::read(text).ok().map(|time| time.0), ms, "{text}");
        }
    }

    #[test]
    fn loopback_is_what_only_this_machine_reaches() {
        for (text, loopback) in [
            ("127.0.0.1:1", true),
            ("127.9.9.9:1", true),
            ("localhost:1", true),
            ("[::1]:1", true),
            ("[::ffff:127.0.0.1]:1", true),
            ("0.0.0.0:1", false),
            ("[::]:1", false),
            ("192.168.1.1:1", false),
        ] {
            assert_eq!(Listen::read(text).expect(text).is_loopback(), loopback, "{text}");
        }
        assert!(Listen::read("broker.example:15672").is_err());
        assert!(Listen::read("127.0.0.1").is_err());
    }

    #[test]
    fn a_log_level_is_a_level_and_not_the_name_of_a_part() {
        for (text, fine) in [
            ("info", true),
            ("WARN", true),
            ("off", true),
            ("info,overtake_engine=debug", true),
            ("loud", false),
            ("", false),
            ("a=loud", false),
        ] {
            assert_eq!(LogFilter::read(text).is_ok(), fine, "{text}");
        }
    }

    #[test]
    fn text_is_quoted_so_that_toml_reads_it_back() {
        assert_eq!(quoted("a\"b\\c\n"), r#""a\"b\\c\u000A""#);
    }

    #[test]
    fn host_names_are_read_as_a_flag_and_as_they_are_shown() {
        let names = HostNames::read("broker.example, other_1.example:8443 ,").expect("names");
        assert_eq!(names.0, ["broker.example", "other_1.example:8443"]);
        assert_eq!(HostNames::read(&names.show()), Ok(names));
        assert_eq!(HostNames::read(""), Ok(HostNames::default()));
        for wrong in
            ["https://broker.example", "a b", "broker.example:x", "broker.example/", ":80", "*", "[::1"]
        {
            let why = HostNames::read(wrong).expect_err(wrong);
            assert!(why.contains("is no host name"), "{why}");
        }
    }
}
