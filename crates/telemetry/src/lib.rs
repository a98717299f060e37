//! What can be counted of a broker, in one catalogue that is read from state when somebody asks for it, and told in two ways.
//!
//! ```text
//!   engine ─┐                                   ┌─ text ─▶ /metrics          Prometheus asks
//!   http   ─┼─ Source ─▶ Registry ─▶ Family… ───┤
//!   others ─┘                                   └─ otlp ─▶ POST /v1/metrics  we push
//!
//!   engine ─▶ SpanQueue ─ Tell ─▶ POST /v1/traces
//! ```
//!
//! Nothing is counted here but pushes: a [`Source`] says what is so now. A queue or connection that is gone is in no family any
//! more, and nothing is folded together, however many there are.

mod broker;
mod family;
mod nodes;
pub mod otlp;
pub mod process;
mod registry;
mod rounds;
mod routes;
mod store;
pub mod text;

pub use broker::Broker;
pub use family::{Family, Histogram, Kind, Labels, Point, Value, labels};
pub use process::Process;
pub use registry::{Collected, Registry, Source};
