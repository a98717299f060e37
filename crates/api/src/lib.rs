//! Requests of the HTTP API, decoded and checked, and problems as responses. The crate has no server and no routes: `http` has those.
//!
//! ```text
//! body ──────────▶ json ─▶ body   ─┐
//! query ─────────────────▶ params ─┼─▶ values of lane and engine
//! headers + body ────────▶ raw    ─┘
//!                   ╰─────── any of them ──▶ problem ─▶ application/problem+json
//! ```
//!
//! Decoding is pure: nothing here calls the engine, and no request can cause a panic. The fuzz target `http_body` holds the crate to that.

pub mod body;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzz;
pub mod json;
pub mod name;
pub mod params;
pub mod problem;
pub mod raw;
pub mod schema;
