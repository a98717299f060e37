//! The client of Overtake, a message broker in which urgent work overtakes bulk work.
//!
//! What is published inside a scope has the scope's priority. A migration gets out of the way of everything else by one line around it:
//!
//! ```no_run
//! # async fn migrate(client: overtake_client::Client) -> Result<(), overtake_client::Error> {
//! use overtake_client::{Message, Priority, with_priority};
//!
//! with_priority(Priority::LOW, async {
//!     for customer in 0..500_000 {
//!         client.publish("customer", Message::new(format!("tier of {customer}"))).await?;
//!     }
//!     Ok(())
//! })
//! .await
//! # }
//! ```
//!
//! Scopes nest, and the innermost wins:
//!
//! ```no_run
//! # async fn nested(client: overtake_client::Client) -> Result<(), overtake_client::Error> {
//! # use overtake_client::{Message, Priority, with_priority};
//! with_priority(Priority::LOW, async {
//!     client.publish("customer", Message::new("1")).await?; // LOW
//!     with_priority(Priority::CRITICAL, async {
//!         client.publish("customer", Message::new("2")).await // CRITICAL
//!     })
//!     .await?;
//!     client.publish("customer", Message::new("3")).await // LOW again
//! })
//! .await
//! # }
//! ```
//!
//! One message may say its own, which goes before any scope:
//!
//! ```no_run
//! # async fn explicit(client: overtake_client::Client) -> Result<(), overtake_client::Error> {
//! # use overtake_client::{Message, Priority, with_priority};
//! client.publish("customer", Message::new("reindex").priority(Priority::BULK)).await?;
//!
//! with_priority(Priority::LOW, async {
//!     client.publish("customer", Message::new("locked out").priority(Priority::CRITICAL)).await
//! })
//! .await
//! # }
//! ```
//!
//! A handler runs in a scope of its message's priority, so what it publishes inherits that, over as many hops as there are:
//!
//! ```no_run
//! # async fn handle(client: overtake_client::Client) -> Result<(), overtake_client::Error> {
//! use overtake_client::{Client, Error, Message};
//!
//! let mails = client.clone();
//! let handling = client
//!     .handle("customer", 4, move |message| {
//!         let mails = mails.clone();
//!         async move { mails.publish("mails", Message::new(message.body().clone())).await }
//!     })
//!     .await?;
//! handling.wait().await
//! # }
//! ```
//!
//! Streaming is over AMQP 0-9-1; queues are declared, and messages leased for long, over HTTP (the feature `http`, on by default). The feature `serde` makes bodies of
//! JSON; `streams` reads streams of Redis and Valkey, their urgent lane first; `outbox` writes events into a table in the application's own transaction, from where the
//! relay publishes them. It runs on Tokio.

mod client;
mod consumer;
mod delivery;
mod error;
mod handler;
#[cfg(feature = "http")]
mod http;
#[cfg(feature = "http")]
mod lease;
mod line;
mod message;
mod options;
#[cfg(feature = "outbox")]
pub mod outbox;
mod panics;
mod priority;
mod received;
#[cfg(feature = "streams")]
pub mod streams;
mod tls;
mod topology;

pub use client::{Client, Confirm};
pub use consumer::{ConsumeOptions, Consumer};
pub use delivery::Delivery;
pub use error::Error;
pub use handler::{HandleOptions, Handling, IntoOutcome, Outcome};
#[cfg(feature = "http")]
pub use lease::{Lease, LeaseOptions};
pub use message::{Message, To};
pub use options::ConnectOptions;
pub use overtake_properties::{Properties, Table, Value};
pub use priority::{InPriority, Priority, Scoped, with_priority, with_priority_sync};
pub use received::Received;
pub use tls::Tls;

/// The README's program compiles.
#[cfg(all(doctest, feature = "http"))]
#[doc = include_str!("../README.md")]
struct Readme;

/// So do the recipes.
#[cfg(all(doctest, feature = "http"))]
#[doc = include_str!("../../../docs/recipes.md")]
struct Recipes;

/// So does the page about streams.
#[cfg(all(doctest, feature = "streams"))]
#[doc = include_str!("../../../docs/streams.md")]
struct Streams;
