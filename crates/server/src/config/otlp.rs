//! Settings of pushed telemetry, and the standard variables that set them
//! (<https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/>).

use std::fmt;

use overtake_peer::Secret;
use overtake_telemetry::otlp::{Endpoint, Headers, Pairs};
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, MapAccess, Visitor};

use super::engine::{alone, shown_place};
use super::value::{Value, quoted};

/// Standard variables and the settings they are for. What is said of a setting by our own names goes before.
pub(super) const VARIABLES: [(&str, &str); 5] = [
    ("OTEL_EXPORTER_OTLP_ENDPOINT", "telemetry.otlp_endpoint"),
    ("OTEL_EXPORTER_OTLP_HEADERS", "telemetry.otlp_headers"),
    ("OTEL_METRIC_EXPORT_INTERVAL", "telemetry.otlp_interval_ms"),
    ("OTEL_RESOURCE_ATTRIBUTES", "telemetry.resource_attributes"),
    ("OTEL_SERVICE_NAME", "telemetry.service_name"),
];

/// A collector, or none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collector(pub Option<Endpoint>);

impl Value for Collector {
    const KIND: &'static str = "URL|off";

    fn read(text: &str) -> Result<Self, String> {
        if text.trim() == "off" {
            return Ok(Self(None));
        }
        text.parse().map(|endpoint| Self(Some(endpoint))).map_err(|why| format!("{why}, or off"))
    }

    fn show(&self) -> String {
        quoted(self.0.as_ref().map_or("off", Endpoint::as_str))
    }
}

/// Headers for a collector, or where they are. They hold secrets, and are shown without.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CollectorHeaders {
    /// The headers themselves.
    Said(Headers),
    /// A file or a variable that says them.
    Kept(Secret),
}

impl CollectorHeaders {
    /// The headers.
    ///
    /// # Errors
    /// Why they cannot be read, as a phrase.
    pub fn headers(&self) -> Result<Headers, String> {
        match self {
            Self::Said(headers) => Ok(headers.clone()),
            Self::Kept(place) => place.read()?.trim().parse(),
        }
    }
}

impl Default for CollectorHeaders {
    fn default() -> Self {
        Self::Said(Headers::default())
    }
}

/// What else is said of this broker.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attributes(pub Pairs);

impl Value for CollectorHeaders {
    const KIND: &'static str = "NAME=VALUE,…";

    fn read(text: &str) -> Result<Self, String> {
        if text.trim_start().starts_with('{') {
            // What was said is not repeated: it may be a secret.
            let wrong = || "say where the headers are as { file = \"…\" } or { env = \"…\" }".to_owned();
            return alone(text).map(Self::Kept).ok_or_else(wrong);
        }
        text.parse().map(Self::Said)
    }

    fn show(&self) -> String {
        match self {
            Self::Said(headers) => quoted(&headers.to_string()),
            Self::Kept(place) => shown_place(place),
        }
    }
}

impl<'de> Deserialize<'de> for CollectorHeaders {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Said;
        impl<'de> Visitor<'de> for Said {
            type Value = CollectorHeaders;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("\"name=value,…\", { file = \"…\" } or { env = \"…\" }")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<CollectorHeaders, E> {
                CollectorHeaders::read(text).map_err(E::custom)
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<CollectorHeaders, A::Error> {
                Secret::deserialize(MapAccessDeserializer::new(map)).map(CollectorHeaders::Kept)
            }
        }
        deserializer.deserialize_any(Said)
    }
}

impl Value for Attributes {
    const KIND: &'static str = "NAME=VALUE,…";

    fn read(text: &str) -> Result<Self, String> {
        text.parse().map(Self)
    }

    fn show(&self) -> String {
        quoted(&self.0.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize)]
    struct Layer {
        otlp_headers: CollectorHeaders,
    }

    #[test]
    fn headers_are_said_or_kept_elsewhere_and_never_shown() {
        let of_file = |text: &str| toml::from_str::<Layer>(text).map(|layer| layer.otlp_headers.show());
        assert_eq!(of_file("otlp_headers = \"api-key=secret\""), Ok("\"api-key=***\"".to_owned()));
        let place = "{ file = \"/run/secrets/otlp\" }";
        assert_eq!(of_file(&format!("otlp_headers = {place}")), Ok(place.to_owned()));
        assert_eq!(CollectorHeaders::read(place).map(|headers| headers.show()), Ok(place.to_owned()));
        let why = CollectorHeaders::read("{ fill = \"secret\" }").expect_err("refused");
        assert!(why.contains("{ file =") && !why.contains("secret"), "{why}");
    }

    #[test]
    fn headers_that_are_kept_elsewhere_are_read_from_there() {
        let dir = tempfile::tempdir().expect("a directory");
        let file = dir.path().join("headers");
        std::fs::write(&file, "api-key=a%20b\n").expect("written");
        let kept = CollectorHeaders::Kept(Secret::File(file.clone()));
        assert_eq!(kept.headers().expect("they are there").map()["api-key"], "a b");
        std::fs::remove_file(file).expect("removed");
        assert!(kept.headers().expect_err("gone").contains("headers: "));
    }
}
