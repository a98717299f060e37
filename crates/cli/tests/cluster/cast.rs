//! Who plays in the proof: a cluster of servers and brokers on it, one of them in a network of its own; and what can befall them.

use std::sync::Arc;

use overtake_valkey::cluster::Slot;
use redis::Value;
use tempfile::TempDir;

use crate::network::Network;
use crate::stage::Address;
use crate::support::{Broker, overtake};
use crate::world::{Program, World, text};

/// How long a node is silent before it counts as gone, milliseconds: less is too little on a machine that has two cores for all of this.
const NODE_TIMEOUT_MS: u32 = 3_000;
/// Slots that move.
const MOVED: usize = 200;
/// Of those that hold something, so many.
const MOVED_FULL: usize = 8;

/// A network of its own for a broker, unless this machine has none to give.
pub(crate) fn network() -> Option<Arc<Network>> {
    match Network::make() {
        Ok(network) => Some(Arc::new(network)),
        Err(why) => {
            let is_fine = std::env::var_os("CI").is_none();
            assert!(is_fine, "a broker must have a network of its own in CI: {why}");
            println!("no broker is cut off: this machine does not let us make a network: {why}");
            None
        }
    }
}

/// Words for servers that are to be found at another address, too, by whoever knows it: nobody is told another's address, only ports.
fn reached_at(far: &str) -> [&str; 7] {
    let ports_alone = ["--cluster-preferred-endpoint-type", "unknown-endpoint"];
    // Without a password they refuse whoever comes from elsewhere; there it is the broker alone.
    ["--bind", "127.0.0.1", far, "--protected-mode", "no", ports_alone[0], ports_alone[1]]
}

/// A cluster of three primaries with a replica each, and brokers on it.
pub(crate) struct Cast {
    pub(crate) world: World,
    network: Option<Arc<Network>>,
    brokers: Vec<Option<Broker>>,
    pub(crate) addresses: Vec<Address>,
    nodes: Vec<String>,
    replicas_acked: &'static str,
    dir: TempDir,
}

impl Cast {
    /// The last broker is in the network of its own, if there is one.
    pub(crate) async fn begin(
        count: usize,
        replicas_acked: &'static str,
        network: Option<Arc<Network>>,
    ) -> Option<Self> {
        let program = Program::all().into_iter().next_back()?;
        let far = network.as_ref().map(|network| network.far().to_string());
        let words: Vec<_> = far.iter().flat_map(|far| reached_at(far)).collect();
        let world = World::cluster(program, 1, &words).await;
        let nodes = |host: &str| {
            let nodes: Vec<_> =
                world.servers.iter().map(|server| format!("{host}:{}", server.port)).collect();
            nodes.join(",")
        };
        let mut all = vec![nodes("127.0.0.1"); count];
        if let Some(far) = &far {
            all[count - 1] = nodes(far);
        }
        let dir = tempfile::tempdir().expect("a directory");
        let (brokers, addresses) = (Vec::new(), Vec::new());
        let mut cast = Self { world, network, brokers, addresses, nodes: all, replicas_acked, dir };
        cast.hurry().await;
        for number in 0..count {
            let broker = cast.start(number, &[]);
            let (amqp, url, network) = (broker.amqp.clone(), broker.url.clone(), cast.network_of(number));
            cast.addresses.push(Address { amqp, url, network });
            cast.brokers.push(Some(broker));
        }
        Some(cast)
    }

    pub(crate) fn network_of(&self, number: usize) -> Option<Arc<Network>> {
        self.network.clone().filter(|_| number + 1 == self.nodes.len())
    }

    /// Who falls is to be missed soon.
    async fn hurry(&self) {
        for (at, _) in self.world.servers.iter().enumerate().filter(|(_, server)| server.is_running()) {
            self.world.ask(at, &format!("CONFIG SET cluster-node-timeout {NODE_TIMEOUT_MS}")).await;
        }
    }

    fn start(&self, number: usize, more: &[&str]) -> Broker {
        let engine = ["--engine", "cluster", "--engine-nodes", &self.nodes[number]];
        let acked = ["--engine-replicas-acked", self.replicas_acked];
        let dir = self.dir.path().join(format!("broker-{number}"));
        let command = self.network_of(number).map_or_else(overtake, |network| network.overtake());
        Broker::start_as(command, &dir, &[&engine[..], &acked, more].concat())
    }

    pub(crate) fn kill_broker(&mut self, number: usize) {
        self.brokers[number].take().expect("it runs").kill();
    }

    /// Where it was.
    pub(crate) fn start_broker_again(&mut self, number: usize) {
        let Address { amqp, url, .. } = self.addresses[number].clone();
        let http = url.strip_prefix("http://").expect("a url").to_owned();
        self.brokers[number] = Some(self.start(number, &["--http", &http, "--amqp", &amqp]));
    }

    /// Of a primary, a replica takes over; what was killed comes back as the replica of that.
    pub(crate) async fn kill_primary(&mut self, at: usize, slot: Slot, asked: usize) {
        self.world.servers[at].kill();
        self.world.until_taken_over(asked, slot, at).await;
        self.world.servers[at].start();
        self.world.until_whole().await;
        self.hurry().await;
    }

    /// Moves slots that hold something, and those behind the first of them that do not.
    pub(crate) async fn reshard(&self, from: usize, to: usize) -> usize {
        let Value::Array(keys) = self.world.ask(from, "KEYS *").await else { panic!("no list") };
        let mut slots: Vec<_> = keys.into_iter().map(|key| Slot::of(text(key).as_bytes())).collect();
        slots.sort_unstable();
        slots.dedup();
        slots.truncate(MOVED_FULL);
        let first = slots.first().expect("it holds something").number();
        let empty = (first..).filter_map(Slot::new).filter(|slot| !slots.contains(slot));
        let empty: Vec<_> = empty.take(MOVED - slots.len()).collect();
        let mut moved = 0;
        for slot in slots.into_iter().chain(empty) {
            if self.world.primary_of(from, slot).await == Some(from) {
                self.world.move_slot(slot, from, to).await;
                moved += 1;
            }
        }
        moved
    }

    pub(crate) fn stop(self) {
        self.brokers.into_iter().flatten().for_each(Broker::stop);
    }
}
