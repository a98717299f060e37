//! The language of routes: which messages go where, how urgently and for how long.
//!
//! ```text
//!   text ── parse ──▶ Route { source, condition, sink } ──┐
//!   manifest (JSON, TOML) ── read ──▶ Manifest ───────────┴─ compile ──▶ RouteTable ── route(path, subject) ──▶ copies
//! ```
//!
//! The language is that of Azure IoT Edge's routes (`FROM … WHERE … INTO …`), with two sinks of our own. All that can be known of a
//! route is checked before a message meets it; what a message lacks makes a condition undefined, never an error. Nothing here
//! knows a broker, a clock or a file.
//!
//! Whatever text comes, reading it takes time in proportion to its length, and no recursion is deeper than [`DEPTH_MAX`].

mod body;
mod calls;
mod check;
mod condition;
mod encoding;
mod error;
mod evaluate;
mod explain;
mod expression;
mod function;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzz;
mod lexer;
mod manifest;
mod names;
pub mod nearest;
mod notes;
mod route;
mod show;
mod sink;
mod source;
mod subject;
mod table;
mod tree;
mod value;

pub use condition::{Condition, Truth};
pub use error::RouteError;
pub use evaluate::TEXT_LEN_MAX;
pub use explain::Explanation;
pub use expression::DEPTH_MAX;
pub use manifest::{
    Change, FieldChange, MANIFEST_LEN_MAX, Manifest, ManifestError, NamedRoute, PRIORITY_MAX, Parts, Problem,
    ROUTE_NAME_LEN_MAX, ROUTES_MAX, Reading, SchemaVersion, TTL_FOR_EVER, diff,
};
pub use names::STEPS_MAX;
pub use route::{ROUTE_LEN_MAX, Route};
pub use sink::{SINK_NAME_LEN_MAX, Sink};
pub use source::Source;
pub use subject::{Body, Shown, Subject, is_same_name};
pub use table::{RouteId, RouteTable, RoutedCopy, Routing};
