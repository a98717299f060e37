//! Primaries on loopback that share the slots of a cluster.

use std::fs;
use std::ops::RangeInclusive;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use overtake_peer::Vault;
use overtake_valkey::cluster::{Kind, Nodes, SLOTS, Slot};
use overtake_valkey::engine::{ClusterEngine, Options};
use redis::AsyncConnectionConfig;
use redis::aio::MultiplexedConnection;
use tempfile::TempDir;
use tokio::time::sleep;

use crate::amqp::peer::process::Process;
use crate::quota::Quota;
use overtake_free_port::free_port;

/// Between two looks at whether the primaries know each other.
const LOOK: Duration = Duration::from_millis(20);
/// So many looks at most.
const LOOKS_MAX: usize = 1_500;

/// When a write is on the disk.
#[derive(Clone, Copy)]
pub(crate) enum Durability {
    /// Before it is answered.
    Always,
    /// Within a second or two.
    EverySecond,
}

struct Primary {
    process: Process,
    /// After the process, which has to be gone before.
    quota: Option<Quota>,
    _dir: TempDir,
    port: u16,
    bus: u16,
}

/// The primaries.
pub(crate) struct Shards(Vec<Primary>);

impl Shards {
    /// So many, which know each other.
    pub(crate) async fn start(count: usize, durability: Durability) -> Result<Self> {
        let shards = Self((0..count).map(|_| Primary::start(durability)).collect::<Result<_>>()?);
        for (at, primary) in shards.0.iter().enumerate() {
            let slots = slots(at, count);
            let mut connection = primary.connect().await?;
            let (first, last) = (*slots.start(), *slots.end());
            let () = redis::cmd("CLUSTER")
                .arg("ADDSLOTSRANGE")
                .arg(first)
                .arg(last)
                .query_async(&mut connection)
                .await?;
            let () = redis::cmd("CLUSTER")
                .arg("SET-CONFIG-EPOCH")
                .arg(at + 1)
                .query_async(&mut connection)
                .await?;
            let meet = redis::cmd("CLUSTER")
                .arg("MEET")
                .arg("127.0.0.1")
                .arg(shards.0[0].port)
                .arg(shards.0[0].bus)
                .to_owned();
            if at > 0 {
                let () = meet.query_async(&mut connection).await?;
            }
        }
        for primary in &shards.0 {
            primary.until_known(count).await?;
        }
        Ok(shards)
    }

    /// Lets each of them have so many hundredths of a core.
    ///
    /// # Errors
    /// This user may not.
    pub(crate) fn limit(&mut self, hundredths: u32) -> Result<()> {
        for primary in &mut self.0 {
            primary.quota = Some(Quota::set(primary.process.id(), hundredths)?);
        }
        Ok(())
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    /// Which of them has a key.
    pub(crate) fn owner(&self, key: &str) -> usize {
        let slot = Slot::of(key.as_bytes()).number();
        let owner = (0..self.0.len()).find(|at| slots(*at, self.0.len()).contains(&slot));
        owner.expect("every slot is somebody's")
    }

    /// A connection to the primary of a key.
    pub(crate) async fn of(&self, key: &str) -> Result<MultiplexedConnection> {
        self.0[self.owner(key)].connect().await
    }

    /// Their addresses, each a URL.
    pub(crate) fn nodes(&self) -> Vec<String> {
        self.0.iter().map(|primary| format!("redis://127.0.0.1:{}", primary.port)).collect()
    }

    /// A broker on them.
    pub(crate) async fn engine(&self) -> Result<ClusterEngine> {
        let nodes = Nodes::new(Kind::Cluster, self.nodes());
        let opened = ClusterEngine::open(Options::new(nodes, Vault::ANY)).await;
        opened.map_err(|why| anyhow::anyhow!("{why}"))
    }
}

/// The slots of one of so many.
fn slots(at: usize, count: usize) -> RangeInclusive<u16> {
    let from = |at: usize| (at * usize::from(SLOTS) / count) as u16;
    from(at)..=from(at + 1) - 1
}

impl Primary {
    fn start(durability: Durability) -> Result<Self> {
        let dir = tempfile::tempdir()?;
        let (port, bus) = (free_port(), free_port());
        let (at, port_text, bus_text) = (dir.path().display().to_string(), port.to_string(), bus.to_string());
        let place = [
            "--port",
            &port_text,
            "--cluster-port",
            &bus_text,
            "--bind",
            "127.0.0.1",
            "--dir",
            &at,
            "--save",
            "",
        ];
        let cluster = ["--cluster-enabled", "yes", "--cluster-node-timeout", "30000"];
        let fsync = match durability {
            Durability::Always => "always",
            Durability::EverySecond => "everysec",
        };
        let args = [&place[..], &cluster, &["--appendonly", "yes", "--appendfsync", fsync]].concat();
        let log = dir.path().join("log");
        let mut process = Process::start(Path::new("redis-server"), &args, &[], log.clone())
            .context("not installed: apt-get install redis-server")?;
        process.wait_for(|| {
            fs::read_to_string(&log).ok()?.contains("Ready to accept connections").then_some(())
        })?;
        Ok(Self { process, quota: None, _dir: dir, port, bus })
    }

    async fn connect(&self) -> Result<MultiplexedConnection> {
        let client = redis::Client::open(format!("redis://127.0.0.1:{}", self.port))?;
        // However slow it is, that is what is measured.
        let config = AsyncConnectionConfig::new().set_response_timeout(None);
        Ok(client.get_multiplexed_async_connection_with_config(&config).await?)
    }

    async fn until_known(&self, count: usize) -> Result<()> {
        let mut connection = self.connect().await?;
        for _ in 0..LOOKS_MAX {
            let info: String = redis::cmd("CLUSTER").arg("INFO").query_async(&mut connection).await?;
            if info.contains("cluster_state:ok") && info.contains(&format!("cluster_size:{count}\r")) {
                return Ok(());
            }
            sleep(LOOK).await;
        }
        bail!("the primaries do not come to know each other")
    }
}
