//! What front ends may ask of a broker, and the engine on the embedded store.
//!
//! [`Engine`] is what every front end speaks to and what every engine answers the same; `conformance` (behind the feature
//! of that name) is the suite that says how. [`LocalEngine`] is the engine on a directory of its own; [`ShardedEngine`] several of
//! them that stand for one, for more cores than one loop takes.
//!
//! # Inside a program
//! No server is needed: open a directory, declare a queue, publish, lease, settle. Nothing here needs a certain runtime; the
//! futures can be polled by any.
//!
//! ```
//! use overtake_engine::{Content, Engine, LeaseRequest, LocalEngine, NewMessage, Target};
//! use overtake_lane::{Outcome, Settings};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! let engine = LocalEngine::open(dir.path())?;
//! engine.declare_queue("work", Settings { max_active: 10, ..Settings::default() }).await?;
//!
//! let message = |priority: i64, body: &'static str| NewMessage {
//!     to: Target::Queue("work".into()),
//!     priority: priority.into(),
//!     content: Content { body: body.into(), ..Content::default() },
//!     ..NewMessage::default()
//! };
//! // Returns once both are durable.
//! engine.publish(vec![message(1, "bulk"), message(9, "urgent")]).await?;
//!
//! // One message that is there; `wait_ms` would wait for it.
//! let lease = LeaseRequest::new("work".into(), 1);
//! let leased = engine.lease(lease).await?;
//! assert_eq!(leased[0].content.body, "urgent");
//!
//! // Each receipt has its own answer: a lease that is over is refused, and does nothing.
//! let settled = engine.settle(vec![leased[0].receipt], Outcome::Ack).await?;
//! assert_eq!(settled, [Ok(())]);
//! engine.close();
//! # Ok(()) }
//! ```
//!
//! `examples/embedded.rs` goes on from there: named priorities, ids that make a publish idempotent, a restart half-way.
//!
//! # What holds
//! - A change is answered once it is durable. A lease is handed out before that: lost in a crash, the message is ready again.
//! - Pull leases ([`Engine::lease`]) survive a restart with their receipts and deadlines; what a consumer that stays
//!   ([`Engine::consume`]) held is put back.
//! - Every refusal is an [`overtake_lane::Refusal`] that says what to do; [`Failure::Unavailable`] means that nobody knows
//!   whether the change was made, and that the engine must be opened again.
//! - A full disk refuses publishes and takes acknowledgements ([`Health::full`]); a failed sync ends the engine
//!   ([`LocalEngine::failed`]).
//! - Dropping a future gives up the answer, not the change; only a lease that was not received is given back.

mod api;
mod browsing;
mod clock;
#[cfg(feature = "conformance")]
pub mod conformance;
mod consumer;
mod content;
mod contents;
pub mod core;
mod damage;
mod every_queue;
#[doc(hidden)]
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzz;
mod headers;
mod holder;
mod jobs;
mod leadership;
mod letter;
mod local;
mod nodes;
mod options;
mod orphans;
mod partition_walk;
mod place;
mod post;
mod responder;
pub mod rights;
mod routes;
pub mod routing;
mod sender;
pub mod session;
mod shards;
mod shelf;
mod snapshot;
pub mod traces;
mod watermarks;
mod work;

pub use api::{
    ANSWER_BYTES_MAX, BROWSE_LIMIT_MAX, BROWSE_LOOKS_MAX, Browse, BrowsedMessage, BytesInUse, Connection,
    ConsumeRequest, Content, DeclareQueue, Declared, DeleteOnly, Engine, Failure, Filter, Got, Health,
    LeaseRequest, LeasedMessage, MemoryHealth, Metadata, NamedPolicies, NewMessage, Page, PageCursor,
    Pending, PublishedCopy, QueuePage, Refused, Select, Target, Unclear,
};
pub use browsing::fitting;
pub use clock::{
    Clock, ClockStep, ClockSteps, MachineTime, ManualClock, SteadyClock, SystemClock, TimeSource, WallClock,
};
pub use consumer::{Coming, Consumer};
pub use damage::{DamageHealth, DamagedPlace};
pub use every_queue::{QUEUES_AT_ONCE, every_queue, every_queue_everywhere};
pub use headers::{header_of, headers_of};
pub use holder::{Held, Holder, WORKER_LEN_MAX};
pub use jobs::{Change, JobState, JobView, Started, is_of_broker};
pub use leadership::{Leader, Leadership};
pub use letter::Letter;
pub use local::LocalEngine;
pub use nodes::{BrokerView, ClusterView, NodeHealth, QueuePlacement, ReplicaHealth, none_serves};
pub use options::Options;
pub use orphans::Orphan;
pub use overtake_lane::Progress;
pub use partition_walk::{Gathered, LaneMarks, PartitionWalk, StatusOrder, StatusOrders};
pub use responder::Responder;
pub use routes::{ROUTES_EXCHANGE, RouteCounts, RouteSet, RoutesView, is_endpoint, leads_nowhere, path_of};
pub use sender::Sender;
pub use session::{Ask, Asks, Delivered, Event, Events, Session};
pub use shards::{NoShards, SHARDS_MAX, ShardedEngine, shard_dir, shards_in};
pub use snapshot::{MANIFEST_NAME, NoSnapshot, Snapshot};
pub use watermarks::{DiskHealth, Full, Watermarks};
pub use work::{Buckets, DiskWork, Distribution, SegmentWork, ServerWork};
