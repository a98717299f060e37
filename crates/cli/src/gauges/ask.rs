//! Asking the broker, so that it has little to do: pages, one after the other, or one queue alone.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::holders::{ConsumersIn, Holders, PageIn};
use super::read::QueueIn;
use crate::address::{path, query};
use crate::client::Client;
use crate::failure::{Exit, Failure};

/// Queues of one page: as many as the broker gives.
const PAGE: u64 = 1_000;
/// Leased messages that are asked for.
const HELD_MAX: u64 = 200;
/// The broker's word for a queue that is not there.
const NO_SUCH_QUEUE: &str = "no-such-queue";

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// Every queue.
    All,
    /// This one.
    One(String),
    /// This one, and who holds its messages.
    Opened(String),
}

/// What came of it.
#[derive(Debug, Default)]
pub(crate) struct Poll {
    pub(crate) health: Health,
    /// Empty where the only one that was wanted is gone.
    pub(crate) queues: Vec<QueueIn>,
    /// Of a queue that was asked for with them.
    pub(crate) holders: Option<Holders>,
    /// How long the broker took.
    pub(crate) took: Duration,
}

/// How the broker is.
#[derive(Clone, Debug, Default)]
pub(crate) struct Health {
    /// Its version; empty where it does not say.
    pub(crate) version: String,
    /// What it cannot do, though it serves.
    pub(crate) warning: Option<String>,
    /// Why it wants no requests.
    pub(crate) not_ready: Option<String>,
    /// Its disk and memory, if this user may see them.
    pub(crate) node: Option<Node>,
}

/// The machine under it.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Node {
    /// Bytes.
    pub(crate) disk_free: u64,
    /// With less than this free, publishes are refused, bytes.
    pub(crate) disk_free_limit: u64,
    /// Of the process, bytes.
    pub(crate) mem_used: u64,
}

/// Asks for all that `top` shows. What this user may not see is asked for once.
#[derive(Clone)]
pub(crate) struct Asker {
    client: Client,
    sees_nodes: Arc<AtomicBool>,
    sees_consumers: Arc<AtomicBool>,
}

impl Asker {
    /// Of this broker.
    pub(crate) fn new(client: Client) -> Self {
        let maybe = || Arc::new(AtomicBool::new(true));
        Self { client, sees_nodes: maybe(), sees_consumers: maybe() }
    }

    /// Asks.
    pub(crate) async fn poll(&self, wanted: &Wanted) -> Result<Poll, Failure> {
        let begun = Instant::now();
        let (queues, holders) = match wanted {
            Wanted::All => (every_queue(&self.client).await?, None),
            Wanted::One(name) => (Vec::from_iter(unless_gone(queue(&self.client, name).await)?), None),
            Wanted::Opened(name) => match unless_gone(queue(&self.client, name).await)? {
                None => (Vec::new(), None),
                Some(queue) => (vec![queue], unless_gone(self.holders(name).await)?),
            },
        };
        let mut health = health(&self.client).await?;
        let nodes = self.unless_denied(&self.sees_nodes, "/api/nodes").await;
        health.node = nodes.and_then(|nodes: Vec<Node>| nodes.first().copied());
        Ok(Poll { health, queues, holders, took: begun.elapsed() })
    }

    /// What is leased, the last published first: so the broker looks at what is leased and at nothing else.
    async fn holders(&self, name: &str) -> Result<Holders, Failure> {
        let limit = HELD_MAX.to_string();
        let pairs = [("status", "leased"), ("order", "newest"), ("body", "none"), ("limit", &limit)];
        let pairs = pairs.map(|(key, value)| (key.to_owned(), value.to_owned()));
        let messages = path(&["v1", "queues", name, "messages"]) + &query(&pairs);
        let page: PageIn = self.client.read(&messages).await?;
        let consumers = path(&["api", "queues", self.client.vhost(), name]);
        let consumers = self.unless_denied(&self.sees_consumers, &consumers).await;
        Ok(Holders {
            held: page.held(Timestamp::now()),
            consumers: consumers.map(ConsumersIn::all).unwrap_or_default(),
        })
    }

    async fn unless_denied<T: DeserializeOwned>(&self, sees: &AtomicBool, path: &str) -> Option<T> {
        if !sees.load(Ordering::Relaxed) {
            return None;
        }
        let read = self.client.read(path).await;
        if read.as_ref().is_err_and(|failure| failure.exit() == Exit::Denied) {
            sees.store(false, Ordering::Relaxed);
        }
        read.ok()
    }
}

/// One queue as it is.
pub(crate) async fn queue(client: &Client, name: &str) -> Result<QueueIn, Failure> {
    client.read(&path(&["v1", "queues", name])).await
}

/// Whether it is well.
pub(crate) async fn health(client: &Client) -> Result<Health, Failure> {
    let answer = client.look("/readyz").await?;
    let text = |key: &str| answer.body[key].as_str().map(ToOwned::to_owned);
    let why = || text("detail").unwrap_or_else(|| format!("it answers {}", answer.status));
    Ok(Health {
        version: text("version").unwrap_or_default(),
        warning: text("warning"),
        not_ready: (!answer.status.is_success()).then(why),
        node: None,
    })
}

/// `None` for a queue that is gone.
fn unless_gone<T>(found: Result<T, Failure>) -> Result<Option<T>, Failure> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(failure) if failure.word() == Some(NO_SUCH_QUEUE) => Ok(None),
        Err(failure) => Err(failure),
    }
}

async fn every_queue(client: &Client) -> Result<Vec<QueueIn>, Failure> {
    #[derive(Deserialize)]
    struct Page {
        queues: Vec<QueueIn>,
        next_cursor: Option<String>,
    }
    let (mut queues, mut cursor) = (Vec::new(), None::<String>);
    loop {
        let mut pairs = vec![("limit".to_owned(), PAGE.to_string())];
        pairs.extend(cursor.take().map(|cursor| ("cursor".to_owned(), cursor)));
        let page: Page = client.read(&(path(&["v1", "queues"]) + &query(&pairs))).await?;
        queues.extend(page.queues);
        cursor = page.next_cursor;
        if cursor.is_none() {
            return Ok(queues);
        }
    }
}
