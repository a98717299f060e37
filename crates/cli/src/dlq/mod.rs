//! Dead letters of categories, wherever they are.

mod broker;
mod streams;

use overtake_streams::Swept;
use serde_json::{Map, Value};

use crate::commands::Session;
use crate::commands::dlq::Of;
use crate::failure::Failure;
use crate::look_bar::LookBar;
use broker::Broker;
use streams::Streams;

/// A message that nobody could handle.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeadLetter {
    /// By which it is known there.
    pub(crate) id: String,
    /// The stream it was in.
    pub(crate) stream: String,
    /// The stream it is in.
    pub(crate) dead_letters: String,
    /// The group that could not handle it.
    pub(crate) group: String,
    /// What kind of message it is.
    pub(crate) kind: String,
    /// How urgent.
    pub(crate) priority: String,
    /// When it died, RFC 3339.
    pub(crate) died_at: String,
    /// Why.
    pub(crate) reason: String,
    /// How often it was tried.
    pub(crate) attempts: u64,
    /// What else it says of itself.
    pub(crate) headers: Map<String, Value>,
    /// What it says.
    pub(crate) body: Vec<u8>,
}

/// Where dead letters are.
pub(crate) enum Place<'a> {
    /// In the queues of groups.
    Broker(Broker<'a>),
    /// In streams of Redis.
    Streams(Box<Streams<'a>>),
}

impl<'a> Place<'a> {
    /// Where those are that were asked for.
    ///
    /// # Errors
    /// The place cannot be as it is named.
    pub(crate) fn of(of: &'a Of, session: &'a Session) -> Result<Self, Failure> {
        match &of.redis {
            None => {
                of.streams.none("name their server with --redis")?;
                Ok(Self::Broker(Broker { of, client: &session.client, bar: LookBar::of_look(session) }))
            }
            Some(url) => {
                let server = of.streams.server(url, session)?;
                Ok(Self::Streams(Box::new(Streams::new(of, &server, of.streams.lanes()?)?)))
            }
        }
    }

    /// So many of each group at most, the newest first.
    pub(crate) async fn list(&self, limit: u64) -> Result<Swept<Vec<DeadLetter>>, Failure> {
        match self {
            Self::Broker(broker) => broker.list(limit).await,
            Self::Streams(streams) => streams.list(limit).await,
        }
    }

    /// One.
    pub(crate) async fn find(&self, id: &str) -> Result<DeadLetter, Failure> {
        match self {
            Self::Broker(broker) => broker.find(id).await.map(|(letter, _)| letter),
            Self::Streams(streams) => streams.find(id).await,
        }
    }

    /// Puts one back. Answers the stream.
    pub(crate) async fn replay(&self, id: &str) -> Result<String, Failure> {
        match self {
            Self::Broker(broker) => broker.replay(id).await,
            Self::Streams(streams) => streams.replay(id).await,
        }
    }

    /// Puts all back. Answers how many.
    pub(crate) async fn replay_all(&self) -> Result<Swept<u64>, Failure> {
        match self {
            Self::Broker(broker) => broker.replay_all().await,
            Self::Streams(streams) => streams.replay_all().await,
        }
    }

    /// Removes all. Answers how many.
    pub(crate) async fn purge(&self) -> Result<Swept<u64>, Failure> {
        match self {
            Self::Broker(broker) => broker.purge().await,
            Self::Streams(streams) => streams.purge().await,
        }
    }
}
