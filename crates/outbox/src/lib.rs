//! The relay: rows that an application wrote into an outbox table, in the transaction that did what they tell of, are published, most urgent first.
//!
//! ```text
//!  application ── INSERT … COMMIT ──▶ table ── claim ──▶ relay ── publish ──▶ sink
//!                                       ▲                  │
//!                                       └────── mark ◀─────┘
//! ```
//!
//! Invariant: a row is marked as published only after the sink has said that it has it. So what was written is published at least once; what a crash between the two
//! leaves is published again.

mod config;
mod database;
mod error;
mod metrics;
mod pickle;
mod policy;
mod reconcile;
mod relay;
mod row;
pub mod sink;
mod table;

pub use config::{Config, ConfigError};
pub use database::{Address, Changes, Claim, Database, Filter, Held, Init, Lag, Reason, Shown};
pub use error::Error;
pub use metrics::{CLAIM_BOUNDS_S, Claims, GroupLag, OTHER_GROUPS, Seen, Watch};
pub use policy::{Pace, Retry};
pub use reconcile::{Reconciled, Standing};
pub use relay::{Cleaning, Relay, Settings};
pub use row::{Key, Marks, Outcome, Row};
pub use sink::Sink;
pub use table::{Columns, Only, Status, StreamOf, Table, Words};

/// The page's program compiles.
#[cfg(all(doctest, feature = "postgres"))]
#[doc = include_str!("../../../docs/outbox.md")]
struct Page;
