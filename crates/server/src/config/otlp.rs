//! Settings of pushed telemetry, and the standard variables that set them
//! (<https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/>).

use overtake_telemetry::otlp::{Endpoint, Headers, Pairs};

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

/// Headers for a collector. They hold secrets, and are shown without.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CollectorHeaders(pub Headers);

/// What else is said of this broker.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attributes(pub Pairs);

impl Value for CollectorHeaders {
    const KIND: &'static str = "NAME=VALUE,…";

    fn read(text: &str) -> Result<Self, String> {
        text.parse().map(Self)
    }

    fn show(&self) -> String {
        quoted(&self.0.to_string())
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
