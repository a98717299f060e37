//! Servers of Redis and Valkey on loopback, alone and as clusters; and what can happen to them.

mod server;

use std::collections::BTreeMap;
use std::time::Duration;

use overtake_peer::redis::{Fault, RedisServer};
use overtake_peer::{Named, Tls, Vault};
use overtake_valkey::cluster::{Kind, Nodes, SLOTS, Slot};
use redis::{Value, cmd};
use tokio::time::{MissedTickBehavior, interval};

pub(crate) use self::server::{Program, Server};

/// How long a node may be silent before the others count it as gone, milliseconds: on a busy machine nobody is taken for gone who is not.
const NODE_TIMEOUT_MS: u32 = 30_000;
/// As little as a busy machine allows, where somebody is to be taken for gone; and while nodes learn of each other, since they speak the more often the less this is.
const NODE_TIMEOUT_MIN_MS: u32 = 1_500;
/// For [`World::cluster`], where somebody is to be taken for gone.
pub(crate) const QUICK: [&str; 2] = ["--cluster-node-timeout", "1500"];
/// Between two looks at what is to become true.
const LOOK: Duration = Duration::from_millis(10);

/// Servers, the first ones primaries.
pub(crate) struct World {
    pub(crate) program: Program,
    pub(crate) servers: Vec<Server>,
    is_cluster: bool,
    more: Vec<String>,
}

impl World {
    /// One server by itself.
    pub(crate) fn one(program: Program, more: &[&str]) -> Self {
        let more: Vec<_> = more.iter().map(|word| (*word).to_owned()).collect();
        Self {
            program,
            servers: vec![Server::start_with(program, |_| more.clone())],
            is_cluster: false,
            more,
        }
    }

    /// Three primaries that share the slots, each with so many replicas: 0, 1 and 2 are primaries, 3, 4 and 5 their replicas in that order, and so on.
    pub(crate) async fn cluster(program: Program, replicas: usize, more: &[&str]) -> Self {
        let mut world = Self { program, servers: Vec::new(), is_cluster: true, more: Vec::new() };
        world.more = of_a_node().into_iter().chain(more.iter().map(|word| (*word).to_owned())).collect();
        for _ in 0..3 * (1 + replicas) {
            world.start_another();
        }
        for at in 0..3 {
            let (first, last) = (at * usize::from(SLOTS) / 3, (at + 1) * usize::from(SLOTS) / 3 - 1);
            world.ask(at, &format!("CLUSTER ADDSLOTSRANGE {first} {last}")).await;
        }
        for at in 0..world.servers.len() {
            world.ask(at, &format!("CLUSTER SET-CONFIG-EPOCH {}", at + 1)).await;
        }
        world.meet_all().await;
        world.until_all_know(world.servers.len()).await;
        for at in 3..world.servers.len() {
            world.replicate(at, at % 3).await;
        }
        world.until_whole().await;
        world
    }

    /// A node that holds nothing; its number.
    pub(crate) async fn add_node(&mut self) -> usize {
        let at = self.start_another();
        self.meet(at).await;
        self.until_all_know(self.servers.len()).await;
        at
    }

    fn start_another(&mut self) -> usize {
        let more = self.more.clone();
        self.servers.push(Server::start_with(self.program, |_| more.clone()));
        self.servers.len() - 1
    }

    async fn meet(&self, at: usize) {
        let Server { port, bus, tls, .. } = &self.servers[0];
        // Nodes that speak among themselves under TLS are called by that port.
        let port = if self.more.iter().any(|word| word == "--tls-cluster") { tls } else { port };
        self.ask(at, &format!("CLUSTER MEET 127.0.0.1 {port} {bus}")).await;
    }

    /// Has every node but the first meet that one. Nodes that know each other already stay as they are.
    async fn meet_all(&self) {
        for at in 1..self.servers.len() {
            self.meet(at).await;
        }
    }

    pub(crate) async fn replicate(&self, replica: usize, primary: usize) {
        let id = self.id(primary).await;
        self.ask(replica, &format!("CLUSTER REPLICATE {id}")).await;
    }

    /// Settings of one that asks here.
    pub(crate) fn nodes(&self) -> Nodes {
        let kind = if self.is_cluster { Kind::Cluster } else { Kind::Redis };
        let urls = if self.is_cluster { &self.servers[..] } else { &self.servers[..1] };
        Nodes::new(kind, urls.iter().map(Server::url).collect())
    }

    /// What a server answers to a line.
    pub(crate) async fn ask(&self, at: usize, line: &str) -> Value {
        let answer = self.try_ask(at, line).await;
        answer.unwrap_or_else(|why| panic!("{line}: {why}"))
    }

    /// What a server answers to a line, or why it does not.
    pub(crate) async fn try_ask(&self, at: usize, line: &str) -> Result<Value, String> {
        let words: Vec<_> = line.split(' ').collect();
        self.try_ask_words(at, &words).await?.map_err(|fault| fault.to_string())
    }

    pub(crate) async fn try_ask_words(
        &self,
        at: usize,
        words: &[&str],
    ) -> Result<Result<Value, Fault>, String> {
        let url = self.servers[at].url();
        let named = Named { url: &url, username: None, password: None, tls: &Tls::default() };
        let server = RedisServer::new(Vault::ANY, &named).expect("a server");
        let mut command = cmd(words[0]);
        command.arg(&words[1..]);
        server.line().await?.ask(&command).await
    }

    pub(crate) async fn text(&self, at: usize, line: &str) -> String {
        text(self.ask(at, line).await)
    }

    async fn id(&self, at: usize) -> String {
        self.text(at, "CLUSTER MYID").await
    }

    /// A line of `INFO` or `CLUSTER INFO`, of a server that answers.
    async fn says(&self, at: usize, line: &str, expected: &str) -> bool {
        self.try_ask(at, line).await.is_ok_and(|said| text(said).lines().any(|line| line == expected))
    }

    /// All that run say that all is well, replicas follow, and whoever is asked knows of them.
    pub(crate) async fn until_whole(&self) {
        self.set_node_timeout(NODE_TIMEOUT_MIN_MS).await;
        for (at, _) in self.servers.iter().enumerate().filter(|(_, server)| server.is_running()) {
            until(async || self.says(at, "CLUSTER INFO", "cluster_state:ok").await).await;
            until(async || {
                let said = self.try_ask(at, "INFO replication").await.map(text).unwrap_or_default();
                let is_primary = said.lines().any(|line| line == "role:master");
                is_primary || said.lines().any(|line| line == "master_link_status:up")
            })
            .await;
        }
        until(async || {
            let (mut seen, mut followers) = (Vec::new(), Vec::new());
            for (at, server) in self.servers.iter().enumerate().filter(|(_, server)| server.is_running()) {
                seen.push(self.try_ask(at, "CLUSTER SLOTS").await.map(sorted_slots).unwrap_or_default());
                let said = self.try_ask(at, "INFO replication").await.map(text).unwrap_or_default();
                let primary = said.lines().find_map(|line| line.strip_prefix("master_port:"));
                followers.extend(primary.map(|port| (port.parse().expect("a port"), server.port)));
            }
            let is_there = |port: &u16| seen[0].values().any(|ports| ports.contains(port));
            let known = followers.iter().all(|(primary, follower)| !is_there(primary) || is_there(follower));
            known && seen.iter().all(|slots| *slots == seen[0] && !slots.is_empty())
        })
        .await;
        let own = self.more.iter().any(|word| word == QUICK[1]);
        self.set_node_timeout(if own { NODE_TIMEOUT_MIN_MS } else { NODE_TIMEOUT_MS }).await;
    }

    async fn set_node_timeout(&self, ms: u32) {
        for (at, _) in self.servers.iter().enumerate().filter(|(_, server)| server.is_running()) {
            self.ask(at, &format!("CONFIG SET cluster-node-timeout {ms}")).await;
        }
    }

    async fn until_all_know(&self, count: usize) {
        self.set_node_timeout(NODE_TIMEOUT_MIN_MS).await;
        for at in 0..self.servers.len() {
            until(async || {
                let known = self.try_ask(at, "CLUSTER NODES").await.map(text).unwrap_or_default();
                let is_known = known.lines().count() == count;
                // A node forgets whom it was to meet when that takes longer than the node timeout, as on a busy machine.
                if !is_known && !known.contains("handshake") {
                    self.meet_all().await;
                }
                is_known && !known.contains("handshake") && !known.contains(" :0@")
            })
            .await;
        }
    }

    /// Who holds a slot, as a server says it.
    pub(crate) async fn primary_of(&self, asked: usize, slot: Slot) -> Option<usize> {
        let slots = sorted_slots(self.try_ask(asked, "CLUSTER SLOTS").await.ok()?);
        let number = slot.number();
        let (_, ports) = slots.iter().find(|((first, last), _)| *first <= number && number <= *last)?;
        self.servers.iter().position(|server| Some(&server.port) == ports.first())
    }

    /// Waits until somebody else holds a slot, and says who.
    pub(crate) async fn until_taken_over(&self, asked: usize, slot: Slot, from: usize) -> usize {
        until(async || self.primary_of(asked, slot).await.is_some_and(|at| at != from)).await;
        self.primary_of(asked, slot).await.expect("somebody holds it")
    }

    /// A replica takes over in good order.
    pub(crate) async fn hand_over(&self, slot: Slot, from: usize, to: usize) {
        self.ask(to, "CLUSTER FAILOVER").await;
        assert_eq!(self.until_taken_over(to, slot, from).await, to);
    }

    /// Moves a slot with all that is in it, a few keys at a time, while it is in use.
    pub(crate) async fn move_slot(&self, slot: Slot, from: usize, to: usize) {
        self.begin_move(slot, from, to).await;
        while self.move_keys(slot, from, to, 2).await > 0 {}
        self.end_move(slot, from, to).await;
    }

    pub(crate) async fn begin_move(&self, slot: Slot, from: usize, to: usize) {
        let (number, source, target) = (slot.number(), self.id(from).await, self.id(to).await);
        self.ask(to, &format!("CLUSTER SETSLOT {number} IMPORTING {source}")).await;
        self.ask(from, &format!("CLUSTER SETSLOT {number} MIGRATING {target}")).await;
    }

    /// How many went.
    pub(crate) async fn move_keys(&self, slot: Slot, from: usize, to: usize, count: usize) -> usize {
        let keys = self.ask(from, &format!("CLUSTER GETKEYSINSLOT {} {count}", slot.number())).await;
        let Value::Array(keys) = keys else { panic!("{keys:?}") };
        let keys: Vec<_> = keys.into_iter().map(text).collect();
        if keys.is_empty() {
            return 0;
        }
        let port = self.servers[to].port.to_string();
        let mut words = vec!["MIGRATE", "127.0.0.1", &port, "", "0", "5000", "KEYS"];
        words.extend(keys.iter().map(String::as_str));
        let moved = self.try_ask_words(from, &words).await.expect("it answers");
        moved.unwrap_or_else(|why| panic!("{keys:?} are not moved: {why}"));
        keys.len()
    }

    pub(crate) async fn end_move(&self, slot: Slot, from: usize, to: usize) {
        let (number, target) = (slot.number(), self.id(to).await);
        for at in [to, from] {
            self.ask(at, &format!("CLUSTER SETSLOT {number} NODE {target}")).await;
        }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        // One that is paused could not be told to end.
        self.servers.iter_mut().for_each(Server::kill);
    }
}

fn of_a_node() -> Vec<String> {
    let words = format!(
        "--cluster-enabled yes --cluster-replica-validity-factor 0 \
         --cluster-config-file nodes.conf --cluster-require-full-coverage no \
         --cluster-node-timeout {NODE_TIMEOUT_MS}"
    );
    words.split_whitespace().map(str::to_owned).collect()
}

/// First and last slot, and the ports of those that have it, the primary's first and the others in order.
fn sorted_slots(answer: Value) -> BTreeMap<(u16, u16), Vec<u16>> {
    let number = |value: &Value| match value {
        Value::Int(number) => u16::try_from(*number).expect("small"),
        other => panic!("{other:?}"),
    };
    let Value::Array(ranges) = answer else { return BTreeMap::new() };
    let one = |range: &Value| {
        let Value::Array(parts) = range else { panic!("{range:?}") };
        let port = |node: &Value| match node {
            Value::Array(parts) => number(&parts[1]),
            other => panic!("{other:?}"),
        };
        let mut ports: Vec<_> = parts[2..].iter().map(port).collect();
        ports[1..].sort_unstable();
        ((number(&parts[0]), number(&parts[1])), ports)
    };
    ranges.iter().map(one).collect()
}

/// Looks until it is so.
pub(crate) async fn until(mut is_so: impl AsyncFnMut() -> bool) {
    let mut looks = interval(LOOK);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        looks.tick().await;
        if is_so().await {
            return;
        }
    }
}

pub(crate) fn text(value: Value) -> String {
    match value {
        Value::BulkString(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Value::SimpleString(text) => text,
        Value::Okay => "OK".to_owned(),
        Value::Int(number) => number.to_string(),
        other => panic!("{other:?}"),
    }
}
