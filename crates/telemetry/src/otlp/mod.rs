//! The OpenTelemetry protocol over HTTP: families and spans as protobuf, posted to a collector.
//!
//! There is no OpenTelemetry SDK beneath: it has no histogram that is observed when somebody asks, and folds what it takes for too
//! many series of an instrument into one. What goes over the wire is the protocol's own
//! (<https://opentelemetry.io/docs/specs/otlp/>, version 1).

mod encode;
mod endpoint;
mod exporter;
mod message;
mod push;
mod span_message;
mod spans;
mod tell;

pub use encode::{POINTS_MAX, Resource, requests};
pub use endpoint::{Endpoint, Headers, Pairs};
pub use exporter::{Exporter, NoExporter, NotPosted};
pub use push::Push;
pub use spans::trace_request;
pub use tell::Tell;
