//! The servers of a broker on Redis or Valkey, the brokers that share them, and which partitions are where.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use overtake_access::Tag;
use overtake_engine::{BrokerView, ClusterView, NodeHealth, QueuePlacement, ReplicaHealth};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::answer::rfc3339;
use crate::app::{Answer, App, json};
use crate::login::Who;

/// The path of the cluster.
pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(show_cluster))
}

/// Brokers, servers and partitions, as this broker knows them.
#[derive(Serialize, ToSchema)]
#[schema(as = Cluster)]
struct ClusterOut {
    /// Where messages are: `servers` (Redis or Valkey, shared by several brokers) or `directory` (a store of this broker's own: there is no cluster, and every list is empty).
    store: &'static str,
    /// The name of this broker's process among the brokers.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, nullable = false)]
    process: Option<Arc<str>>,
    /// All brokers on these servers, the oldest first.
    brokers: Vec<BrokerOut>,
    /// All servers, by address.
    nodes: Vec<NodeOut>,
    /// The queues of all virtual hosts, by virtual host and name.
    queues: Vec<PlacementOut>,
}

/// A broker on these servers.
#[derive(Serialize, ToSchema)]
#[schema(as = ClusterBroker)]
struct BrokerOut {
    /// The name of its process: random, new with each start.
    #[schema(value_type = String)]
    process: Arc<str>,
    /// Its version, if it has said it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, nullable = false)]
    version: Option<Arc<str>>,
    /// When it started, if it has said so.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    since: Option<String>,
    /// Its heartbeat is overdue: it may be gone.
    overdue: bool,
}

/// A server.
#[derive(Serialize, ToSchema)]
#[schema(as = ClusterNode)]
struct NodeOut {
    /// `HOST:PORT`.
    #[schema(value_type = String)]
    address: Arc<str>,
    /// `primary` or `replica`.
    role: &'static str,
    /// Whether it answers this broker.
    up: bool,
    /// What is wrong with it, if anything is.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    trouble: Option<String>,
    /// Since when it is up, or down.
    since: String,
    /// Product and version; empty until it has said so.
    #[schema(value_type = String)]
    product: Arc<str>,
    /// Hash slots that are written there.
    slots: u32,
    /// Bytes of memory in use.
    memory_bytes: u64,
    /// Its `maxmemory`, bytes; 0: no limit.
    memory_max_bytes: u64,
    /// Whether publishes to it are refused for lack of memory.
    full: bool,
    /// Replicas that must acknowledge a write before it is confirmed.
    replicas_expected: u32,
    /// Replicas of a primary.
    replicas: Vec<ReplicaOut>,
}

/// A replica, as its primary knows it.
#[derive(Serialize, ToSchema)]
#[schema(as = ClusterReplica)]
struct ReplicaOut {
    /// `HOST:PORT`.
    #[schema(value_type = String)]
    address: Arc<str>,
    /// It receives each write, and was heard within the last 3 seconds.
    online: bool,
    /// Bytes of writes that it has not acknowledged.
    lag_bytes: u64,
    /// Seconds since it was heard.
    lag_seconds: u64,
}

/// Where the partitions of a queue are.
#[derive(Serialize, ToSchema)]
#[schema(as = ClusterQueue)]
struct PlacementOut {
    /// The virtual host.
    #[schema(value_type = String)]
    vhost: Arc<str>,
    /// The queue.
    #[schema(value_type = String)]
    queue: Arc<str>,
    /// How many partitions each primary has, by address; those that no primary holds are under an empty one.
    #[schema(value_type = BTreeMap<String, u32>)]
    partitions: BTreeMap<Arc<str>, u32>,
}

/// Shows the brokers, servers and partitions of a broker on Redis or Valkey.
///
/// For users with the tag `monitoring`. As this broker sees it, within half a second; no server is asked, so the answer comes while they are away, too.
#[utoipa::path(
    get, path = "/v1/cluster", tag = "admin",
    responses((status = 200, description = "What there is", body = ClusterOut))
)]
async fn show_cluster(State(app): State<Arc<App>>, Who(who): Who) -> Answer {
    who.must_have(Tag::Monitoring)?;
    json(StatusCode::OK, &ClusterOut::of(app.desks.cluster()))
}

impl ClusterOut {
    fn of(view: Option<ClusterView>) -> Self {
        let store = if view.is_some() { "servers" } else { "directory" };
        let process = view.as_ref().map(|view| Arc::clone(&view.process));
        let ClusterView { brokers, nodes, queues, .. } = view.unwrap_or_default();
        Self {
            store,
            process,
            brokers: brokers.into_iter().map(BrokerOut::from).collect(),
            nodes: nodes.into_iter().map(NodeOut::from).collect(),
            queues: queues.into_iter().map(PlacementOut::from).collect(),
        }
    }
}

impl From<BrokerView> for BrokerOut {
    fn from(view: BrokerView) -> Self {
        let is_said = !view.version.is_empty();
        Self {
            process: view.process,
            since: is_said.then(|| rfc3339(view.since)),
            version: is_said.then_some(view.version),
            overdue: view.is_overdue,
        }
    }
}

impl From<NodeHealth> for NodeOut {
    fn from(node: NodeHealth) -> Self {
        Self {
            role: node.role(),
            up: node.down.is_none(),
            trouble: node.trouble(),
            since: rfc3339(node.since),
            slots: node.slots,
            memory_bytes: node.memory_used,
            memory_max_bytes: node.memory_max,
            full: node.memory.is_some_and(|memory| memory.is_low),
            replicas_expected: node.replicas_expected,
            replicas: node.replicas.into_iter().map(ReplicaOut::from).collect(),
            address: node.address,
            product: node.product,
        }
    }
}

impl From<ReplicaHealth> for ReplicaOut {
    fn from(replica: ReplicaHealth) -> Self {
        let ReplicaHealth { address, is_online, lag_bytes, lag_s } = replica;
        Self { address, online: is_online, lag_bytes, lag_seconds: lag_s }
    }
}

impl From<QueuePlacement> for PlacementOut {
    fn from(placed: QueuePlacement) -> Self {
        let QueuePlacement { vhost, queue, partitions } = placed;
        Self { vhost, queue, partitions: partitions.into_iter().collect() }
    }
}
