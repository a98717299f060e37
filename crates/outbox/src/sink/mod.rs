//! Where rows are published into.

mod broker;
#[cfg(feature = "redis")]
mod streams;

use std::future::Future;
use std::pin::Pin;
use std::time::Instant;

pub use self::broker::{Body, BrokerSettings, BrokerSink};
#[cfg(feature = "redis")]
pub use self::streams::{StreamsSettings, StreamsSink};
use crate::metrics::GroupLag;
use crate::row::{Outcome, Row};

/// A future that a sink answers with.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Whatever takes rows. One is asked one thing at a time.
pub trait Sink: Send {
    /// Waits until rows can be published, in bounded time: a connection is there. Nothing is claimed before.
    ///
    /// # Errors
    /// Why it cannot be, as a phrase. It is asked again, after a while.
    fn ready(&mut self) -> Answer<'_, Result<(), String>>;

    /// Publishes rows, in this order, and says of each what became of it once that is durable. What is not known by `until` is [`Outcome::Lost`]: somebody else may have the
    /// rows by then. Where one is lost, [`Sink::ready`] is asked before the next.
    fn publish<'a>(&'a mut self, rows: &'a [&'a Row], until: Instant) -> Answer<'a, Vec<Outcome>>;

    /// Counts the groups of consumers, beside what is published; nothing where the sink knows no groups.
    fn groups(&self) -> Option<Box<dyn Groups>> {
        None
    }
}

/// Tells how far the groups of consumers are that read what a sink gets.
pub trait Groups: Send + Sync {
    /// How far each group is in each lane of the categories that the sink was given lately, and of `also`; then the faults: what could not be asked, and why.
    fn count<'a>(&'a self, also: &'a [String]) -> Answer<'a, (Vec<GroupLag>, Vec<String>)>;
}

/// A row as one JSON object, `{"data": …, "metadata": …}`: the data as they stand in the table, and these metadata, or null.
pub(crate) fn envelope(row: &Row, metadata: Option<&str>) -> Result<Vec<u8>, String> {
    let is_json = |bytes: &[u8], what: &str| {
        let read = serde_json::from_slice::<serde::de::IgnoredAny>(bytes);
        read.map(drop).map_err(|error| format!("its {what} is no JSON: {error}"))
    };
    is_json(&row.data, "data")?;
    let metadata = metadata.unwrap_or("null").as_bytes();
    is_json(metadata, "metadata")?;
    Ok([&b"{\"data\":"[..], &row.data, b",\"metadata\":", metadata, b"}"].concat())
}
