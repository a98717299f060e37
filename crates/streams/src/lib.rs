//! Streams of Redis and Valkey in which urgent work overtakes bulk work.
//!
//! ```text
//!                 ┌─ priority ≥ threshold ─▶ customer           ─┐
//!  Writer::add ───┤                                              ├─▶ Subscriber, one of a group: the first while there is any
//!                 └─ priority < threshold ─▶ customer:backfill  ─┘       │ done: acknowledged
//!                                                                        │ failed too often, or nobody can read it
//!                         customer:dlq, customer:backfill:dlq  ◀─────────┘
//! ```
//!
//! A category has two lanes, each a stream of its own and first in, first out ([`Lanes`]); an entry has one field, `data`, with a JSON object of `data` and
//! `metadata` ([`envelope`]). What cannot be handled goes to the dead letters of its lane, and from there back to its lane.

mod category;
mod dead_letters;
mod entry;
mod lag;
mod lanes;
mod layout;
mod link;
mod object;
mod retry;
mod scripts;
mod subscriber;
mod writer;

pub use dead_letters::{DeadLetter, DeadLetters, Swept};
pub use entry::Entry;
pub use lag::{CategoryLag, Lag, Lags};
pub use lanes::{Lane, Lanes, LanesTable};
pub use layout::{FIELD, Layout, PARTITIONS, dead_letters_of, describe, envelope};
pub use overtake_peer::redis::{Fault, RedisServer};
pub use overtake_peer::{Named, Secret, Tls, Vault};
pub use retry::Retry;
pub use subscriber::{Fate, Start, SubscribeOptions, Subscriber};
pub use writer::{Fields, Writer};

/// The server of a URL: `redis://HOST:6379/DATABASE`, or `rediss://` for TLS by the authorities of the machine; `valkey://` and `valkeys://` mean the same. One that wants
/// a password is [`RedisServer::new`].
///
/// # Errors
/// What is wrong with the URL, as a phrase.
pub fn server(url: &str) -> Result<RedisServer, String> {
    RedisServer::new(Vault::ANY, &Named { url, username: None, password: None, tls: &Tls::default() })
}
