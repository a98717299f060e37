//! Who handles the events: a group of the category, at the broker or in Redis, that works on some at once.

use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use overtake_client::streams::{Lanes, StreamHandling, SubscribeOptions, Subscriber, handle, server};
use overtake_client::{Client, ConnectOptions, Handling, Received};

use super::Case;
use super::app::{CATEGORY, Ledger};
use super::servers::{Broker, Redis, To};

/// Handled at once, by one process.
const CONCURRENCY: u16 = 16;
/// What handling an event takes, where it waits for something else.
const WORK: Duration = Duration::from_millis(1);
const GROUP: &str = "handlers";

pub(super) enum Handlers {
    AtBroker { broker: Broker, handling: Option<Handling> },
    InRedis { redis: Redis, handling: Option<StreamHandling> },
}

impl Handlers {
    pub(super) async fn start(case: Case, ledger: &Ledger) -> Result<Self> {
        let ledger = ledger.clone();
        match case.to {
            To::Broker => {
                let broker = Broker::start(case.lanes)?;
                let url = broker.amqp().replacen("guest@", "guest:guest@", 1);
                let options = ConnectOptions::new(url).http(broker.http());
                let client = Client::connect(options).await?;
                join(&broker)?;
                let work = move |received: Received| {
                    let (ledger, id) = (ledger.clone(), received.id().map(ToOwned::to_owned));
                    async move {
                        ledger.handled(&id.unwrap_or_default());
                        tokio::time::sleep(WORK).await;
                    }
                };
                let queue = format!("{CATEGORY}@{GROUP}");
                let handling = client.handle(&queue, CONCURRENCY, work).await?;
                Ok(Self::AtBroker { broker, handling: Some(handling) })
            }
            To::Redis => {
                let redis = Redis::start()?;
                let lanes = if case.lanes { Lanes::enabled() } else { Lanes::default() };
                let options = SubscribeOptions {
                    lanes,
                    batch_backfill: CONCURRENCY,
                    ..SubscribeOptions::new(CATEGORY, GROUP)
                };
                let server = server(&redis.url()).map_err(|why| anyhow!(why))?;
                let subscriber = Subscriber::connect(&server, options).await.map_err(|why| anyhow!(why))?;
                let handling = handle(subscriber, CONCURRENCY, move |entry| {
                    let (ledger, id) = (
                        ledger.clone(),
                        entry
                            .metadata()
                            .pointer("/headers/id")
                            .and_then(|id| id.as_str().map(ToOwned::to_owned)),
                    );
                    async move {
                        ledger.handled(&id.unwrap_or_default());
                        tokio::time::sleep(WORK).await;
                    }
                });
                Ok(Self::InRedis { redis, handling: Some(handling) })
            }
        }
    }

    pub(super) fn sink_url(&self) -> String {
        match self {
            Self::AtBroker { broker, .. } => broker.amqp(),
            Self::InRedis { redis, .. } => redis.url(),
        }
    }

    /// Nothing is handled any more; what comes waits.
    pub(super) async fn rest(&mut self) {
        match self {
            Self::AtBroker { handling, .. } => {
                if let Some(handling) = handling.take() {
                    let _ = handling.stop().await;
                }
            }
            Self::InRedis { handling, .. } => {
                if let Some(handling) = handling.take() {
                    let _ = handling.stop().await;
                }
            }
        }
    }

    /// SIGKILL to the broker or to Redis, which is there again at the same port; clients find it.
    pub(super) fn kill_sink(&mut self) -> Result<()> {
        match self {
            Self::AtBroker { broker, .. } => broker.kill(),
            Self::InRedis { redis, .. } => redis.kill(),
        }
    }
}

/// The group is there before anything is published.
fn join(broker: &Broker) -> Result<()> {
    let program = std::env::current_exe()?.with_file_name("overtake");
    let said = std::process::Command::new(program)
        .args(["--url", &broker.http(), "category", "declare", CATEGORY, "--group", GROUP])
        .output()
        .context("it runs")?;
    if said.status.success() { Ok(()) } else { Err(anyhow!("{}", String::from_utf8_lossy(&said.stderr))) }
}
