//! The engine on Redis or Valkey: any number of processes, none of which has anything that the others need.
//!
//! ```text
//!   calls, sessions ─▶ House ─┬─▶ definitions: what queues and exchanges there are, a log in one slot that every process reads
//!                             ├─▶ hosted queues: their places, where messages are admitted, leased and settled
//!                             └─▶ floor: who of this process takes, and what they hold
//!
//!   publish ─▶ copies, by the definitions ─▶ admitted at places ─▶ a better head is pushed to every process
//!   a head, and somebody on the floor with room ─▶ claimed at the place ─▶ handed over
//! ```
//!
//! - What is asked is answered when the servers have it, as [`Durability`](crate::cluster::Durability) says.
//! - A process that is gone leaves leases, which its consumers held: they are ready again when it has said nothing for 15 seconds; and queues that were exclusive to its
//!   sessions, which another process deletes.
//! - Queues that do not outlive their broker go when a process comes and no other is there.

mod attend;
mod brokers;
mod calls;
mod carry;
mod define;
mod definitions;
mod floor;
mod history;
mod host;
mod hosted;
mod image;
mod lead;
mod line;
mod orphans;
mod publish;
mod search;
mod see;
mod serve;
mod signs;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::Duration;

use overtake_engine::core::{Answer, Request};
use overtake_engine::routing::Routes;
use overtake_engine::session::{Places as InLine, Session};
use overtake_engine::{
    Clock, ClusterView, Connection, Failure, Health, Leadership, LeaseRequest, LeasedMessage, Orphan,
    Pending, Responder, ServerWork, SystemClock, none_serves,
};
use overtake_lane::{Asker, ConsumerId, QueueId, SessionId, Time, VhostId};
use overtake_peer::Vault;
use tokio::runtime::Handle;
use tokio::sync::{oneshot, watch};
use tokio::task::AbortHandle;
use tokio::time::Instant;

use self::definitions::Definitions;
use self::floor::{Aftermath, Floor, Ticket};
use self::host::serve_from_the_start;
use self::hosted::Hosted;
use self::signs::ALIVE_MS;
use crate::cluster::{Cluster, Counts, Nodes};
use crate::functions::{Alive, RETURNED_MAX};
use crate::functions::{Enrol, LIBRARY, Process};
use crate::places::Tally;

/// Most copies that one message may make.
const COPIES_MAX: usize = 10_000;
/// Most bytes of metadata that one request may set.
const METADATA_STEP_MAX: u64 = 4 << 20;

/// Bytes of messages that requests in line may bring.
const INBOX_BYTES: u64 = 16 << 20;

/// How to open an engine on servers.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where they are, and what an answer promises.
    pub nodes: Nodes,
    /// Where secrets are.
    pub vault: Vault,
    /// Largest message, bytes.
    pub max_message_bytes: u64,
    /// Time to live of messages that neither bring one nor find one at their queue, ms; 0: none.
    pub default_ttl_ms: u64,
    /// Most requests that wait in line; whoever asks more waits.
    pub inbox: usize,
    /// How often places are looked at of which nothing was heard.
    pub sweep: Duration,
}

impl Options {
    /// These nodes, and for all else what is usual.
    #[must_use]
    pub fn new(nodes: Nodes, vault: Vault) -> Self {
        let (max_message_bytes, default_ttl_ms) = (16 << 20, 0);
        Self { nodes, vault, max_message_bytes, default_ttl_ms, inbox: 4_096, sweep: Duration::from_secs(1) }
    }

    fn broker(&self) -> overtake_lane::Options {
        overtake_lane::Options {
            max_message_bytes: self.max_message_bytes,
            default_ttl_ms: self.default_ttl_ms,
            copies_max: COPIES_MAX,
            metadata_step_max: METADATA_STEP_MAX,
            ..overtake_lane::Options::default()
        }
    }
}

/// Why there is no engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenError(String);

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for OpenError {}

/// A process of a broker whose messages are in Redis or Valkey; or, from [`Engine::connect`](overtake_engine::Engine::connect), one session of it; or, from
/// [`Engine::in_vhost`](overtake_engine::Engine::in_vhost), either of them asked elsewhere.
///
/// Dropping the first stops it; [`ClusterEngine::close`] does the same, gives back what its consumers hold, and waits for that.
pub struct ClusterEngine {
    house: Arc<House>,
    vhost: VhostId,
    ends: Ends,
}

/// What ends when an engine is dropped.
enum Ends {
    /// The process.
    House,
    /// The session, if nobody else asks for it.
    Session(Arc<Connected>),
    /// Nothing: it is another's to stop.
    Nothing,
}

/// A session, for as long as somebody asks for it.
struct Connected {
    house: Arc<House>,
    session: SessionId,
}

impl Drop for Connected {
    fn drop(&mut self) {
        let (house, session) = (Arc::clone(&self.house), self.session);
        house.on_floor(|floor, now, after| floor.end(now, session, Some(session), after));
        let at_work = Arc::clone(&house);
        house.runtime.spawn(async move { at_work.session_ended(session).await });
    }
}

/// What all of a process share.
struct House {
    me: Weak<Self>,
    runtime: Handle,
    cluster: Arc<Cluster>,
    options: Options,
    definitions: Arc<Definitions>,
    leads: Arc<lead::Leads>,
    /// The process that this is.
    process: Process,
    /// When it was opened.
    started: Time,
    /// The processes that are there, as the servers said last.
    brokers: brokers::Brokers,
    /// What it is called at places.
    caller: String,
    /// The processes that were there when it came, and one more: so each begins with another place.
    came_as: u64,
    hosted: Mutex<BTreeMap<QueueId, Arc<Hosted>>>,
    /// Queues that begin to be served here, each with whose turn it is.
    beginning: Mutex<BTreeMap<QueueId, Arc<tokio::sync::Mutex<()>>>>,
    floor: Mutex<Floor>,
    routes: Mutex<Routes>,
    /// Somebody on the floor is to be told something sooner.
    sooner: tokio::sync::Notify,
    places: InLine,
    /// What was done with places.
    tally: Arc<Tally>,
    consumers: AtomicU64,
    sessions: AtomicU64,
    transactions: AtomicU64,
    /// When the last message came that was published here, µs since 1970.
    came: AtomicU64,
    down: watch::Sender<Option<Arc<str>>>,
    /// Queues on the servers that were not defined, when it was looked for them last.
    orphans_seen: AtomicU64,
    /// How many requests were done here that may have taken leased messages from their holders.
    withdrawals: watch::Sender<u64>,
    keepers: Mutex<Vec<AbortHandle>>,
}

impl ClusterEngine {
    /// Learns where everything is, and what is defined.
    ///
    /// # Errors
    /// [`OpenError`].
    ///
    /// # Panics
    /// Outside a runtime of Tokio.
    pub async fn open(options: Options) -> Result<Self, OpenError> {
        let cluster =
            Cluster::connect(options.nodes.clone(), options.vault, LIBRARY).await.map_err(OpenError)?;
        let process = Process::random();
        let enrol = Enrol { process: process.clone(), ms: ALIVE_MS, incarnation: "".into() }.call();
        let patience = Instant::now() + Duration::from_secs(10);
        let value = cluster.call(patience, enrol).await.map_err(|error| OpenError(error.to_string()))?;
        let enrolled = Enrol::read(&value).map_err(|error| OpenError(error.to_string()))?;
        let told = (process.number(), enrolled.told);
        let definitions = Definitions::open(Arc::clone(&cluster), options.broker(), told).await;
        let definitions = definitions.map_err(|why| OpenError(why.to_string()))?;
        let routes = Mutex::new(definitions.with(Routes::recover));
        let (down, _) = watch::channel(None);
        let house = Arc::new_cyclic(|me| House {
            me: me.clone(),
            runtime: Handle::current(),
            cluster,
            definitions,
            leads: Arc::default(),
            caller: process.caller(),
            came_as: enrolled.others + 1,
            process,
            started: SystemClock.now(),
            brokers: brokers::Brokers::default(),
            hosted: Mutex::default(),
            beginning: Mutex::default(),
            floor: Mutex::new(Floor::new(options.broker())),
            routes,
            sooner: tokio::sync::Notify::new(),
            places: InLine::new(options.inbox, INBOX_BYTES),
            tally: Arc::default(),
            consumers: AtomicU64::new(0),
            sessions: AtomicU64::new(0),
            transactions: AtomicU64::new(0),
            came: AtomicU64::new(0),
            down,
            orphans_seen: AtomicU64::new(0),
            withdrawals: watch::Sender::new(0),
            keepers: Mutex::default(),
            options,
        });
        house.begin(enrolled.others == 0).await.map_err(|why| OpenError(why.to_string()))?;
        Ok(Self { house, vhost: VhostId::DEFAULT, ends: Ends::House })
    }

    /// Serves nothing more, gives back what its consumers hold, and waits for that. Later calls are answered [`Failure::Unavailable`].
    pub async fn close(&self) {
        self.house.close().await;
    }

    /// Waits until it can serve no more, and answers why. Never returns while all is well.
    pub async fn failed(&self) -> Arc<str> {
        let mut down = self.house.down.subscribe();
        let is_down = down.wait_for(Option::is_some).await.map(|down| down.clone());
        is_down.ok().flatten().unwrap_or_else(|| Arc::from(STOPPED))
    }

    /// Looks at all that this process serves, now and not when it is time for that: what was to happen by itself has happened, and what left a queue is where it goes, as far as servers answer.
    pub async fn sweep(&self) {
        self.house.sweep().await;
    }

    /// The servers.
    #[must_use]
    pub fn cluster(&self) -> &Arc<Cluster> {
        &self.house.cluster
    }

    /// The session that it is of; it does not end as long as this is there.
    fn connected_session(&self) -> Option<Arc<Connected>> {
        if let Ends::Session(connected) = &self.ends { Some(Arc::clone(connected)) } else { None }
    }

    /// What was begun is done, whether anybody waits for the answer or not.
    fn whole<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, Failure>> + Send + 'static,
    ) -> Pending<T> {
        let (answer, house) = (self.house.runtime.spawn(work), Arc::clone(&self.house));
        Box::pin(async move { answer.await.unwrap_or_else(|_| Err(house.unavailable())) })
    }

    fn asked(&self, vhost: VhostId, ends: Ends) -> Self {
        Self { house: Arc::clone(&self.house), vhost, ends }
    }
}

const STOPPED: &str = "it is stopping";

impl Drop for ClusterEngine {
    fn drop(&mut self) {
        if matches!(self.ends, Ends::House) {
            self.house.stop();
        }
    }
}

impl House {
    /// Sees to all that goes on by itself.
    async fn begin(self: &Arc<Self>, is_first: bool) -> Result<(), Failure> {
        if is_first {
            self.drop_passing().await?;
        }
        // Of those somebody must know for how long they are unused.
        let expiring = self.definitions.with(|broker| {
            let all = broker.all_views(Time(0));
            all.filter(|view| view.effective_settings().expires_ms > 0)
                .map(|view| view.queue)
                .collect::<Vec<_>>()
        });
        for queue in expiring {
            let hosted = self.hosted(queue).await?;
            if is_first {
                // For how long that was while nobody was there does not count.
                hosted.unused_in(true).await?;
            }
        }
        let me = Arc::downgrade(self);
        let keepers = [
            tokio::spawn(definitions::listen(Arc::downgrade(&self.definitions))),
            tokio::spawn(define::follow(me.clone())),
            tokio::spawn(define::begin_with_others(me.clone())),
            tokio::spawn(orphans::keep_looking_for_orphans(me.clone())),
            tokio::spawn(signs::give_signs(me.clone())),
            tokio::spawn(signs::stay_enrolled(me.clone())),
            tokio::spawn(lead::keep_leading(me.clone())),
            tokio::spawn(serve_from_the_start(me.clone())),
            tokio::spawn(pass_time(me)),
        ];
        let mut kept = self.keepers.lock().expect("nobody panics with it");
        kept.extend(keepers.iter().map(tokio::task::JoinHandle::abort_handle));
        Ok(())
    }

    fn stop(&self) {
        let why: Arc<str> = STOPPED.into();
        self.down.send_if_modified(|down| {
            let is_first = down.is_none();
            down.get_or_insert_with(|| Arc::clone(&why));
            is_first
        });
        self.keepers.lock().expect("nobody panics with it").drain(..).for_each(|keeper| keeper.abort());
        drop(self.leads.end_all());
        self.floor.lock().expect("nobody panics with it").close(&why);
        for hosted in self.all_hosted() {
            hosted.end();
        }
    }

    /// What consumers of this process hold of a queue goes back.
    async fn give_all_back(&self, hosted: &Hosted) -> Result<(), Failure> {
        let gone = Alive::gone(self.caller.clone());
        while hosted.ask_all(&gone).await?.iter().any(|out| out.lost >= RETURNED_MAX) {}
        Ok(())
    }

    async fn close(&self) {
        let led = self.leads.end_all();
        self.stop();
        self.give_back_work(led).await;
        let hosted = self.all_hosted();
        crate::places::together(hosted.iter().map(|hosted| hosted.settled_down())).await;
        drop(crate::places::together(hosted.iter().map(|hosted| self.give_all_back(hosted))).await);
        let call = self.enrolment(&self.process, 0).call();
        drop(self.cluster.call(hosted::deadline(), call).await);
    }

    fn server_work(&self) -> ServerWork {
        let Counts { calls, retries, moves, in_doubt, wait_shortfalls, connections, .. } =
            self.cluster.counts();
        let (leased, missed) = (self.tally.leased(), self.tally.missed());
        let inversions_us = self.tally.inversions_us.view();
        ServerWork {
            definitions_went_back: *self.definitions.went_back().borrow(),
            orphans: self.orphans_seen.load(Ordering::Relaxed),
            calls,
            retries,
            moves,
            in_doubt,
            wait_shortfalls,
            connections,
            leased,
            missed,
            inversions_us,
        }
    }

    fn unavailable(&self) -> Failure {
        Failure::Unavailable(self.down.borrow().clone().unwrap_or_else(|| Arc::from(STOPPED)))
    }

    fn is_down(&self) -> bool {
        self.down.borrow().is_some()
    }

    fn now(&self) -> Time {
        SystemClock.now()
    }

    /// When what is published now comes, µs since 1970: later than whatever was published here before.
    fn comes_at(&self) -> u64 {
        let now = SystemClock.nanos() / 1_000;
        let later = |last: u64| now.max(last + 1);
        let last = self.came.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(later(last)));
        later(last.unwrap_or_default())
    }

    fn next_consumer(&self) -> ConsumerId {
        ConsumerId(self.consumers.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// No session of another process has the same number.
    fn next_session(&self) -> SessionId {
        SessionId(
            u64::from(self.process.number()) << 32 | (self.sessions.fetch_add(1, Ordering::Relaxed) + 1),
        )
    }

    fn floor(&self) -> MutexGuard<'_, Floor> {
        self.floor.lock().expect("nobody panics with it")
    }

    /// Does something on the floor, and sees to what comes of it.
    fn on_floor<T>(&self, change: impl FnOnce(&mut Floor, Time, &mut Aftermath) -> T) -> T {
        let mut after = Aftermath::default();
        let (done, is_sooner) = {
            let mut floor = self.floor();
            let before = floor.next_deadline();
            let done = change(&mut floor, self.now(), &mut after);
            let next = floor.next_deadline();
            (done, next.is_some_and(|next| before.is_none_or(|before| next < before)))
        };
        if is_sooner {
            self.sooner.notify_one();
        }
        self.clear_up(after);
        done
    }

    fn routes(&self) -> MutexGuard<'_, Routes> {
        self.routes.lock().expect("nobody panics with it")
    }
}

/// Lets time pass on the floor.
async fn pass_time(house: Weak<House>) {
    loop {
        let Some(at_work) = house.upgrade() else { return };
        let next = at_work.floor().next_deadline();
        let wait = next.map(|next| next.since(at_work.now()));
        if wait == Some(0) {
            at_work.on_floor(|floor, now, after| floor.tick(now, after));
            continue;
        }
        // A clock may be set.
        let wait = Duration::from_millis(wait.unwrap_or(1_000).min(1_000));
        let sooner = at_work.sooner.notified();
        tokio::select! {
            () = sooner => {}
            () = tokio::time::sleep(wait) => {}
        }
    }
}

impl Responder for ClusterEngine {
    fn asker(&self) -> Asker {
        let session = if let Ends::Session(connected) = &self.ends { Some(connected.session) } else { None };
        Asker { session, vhost: self.vhost }
    }

    fn next_consumer(&self) -> ConsumerId {
        self.house.next_consumer()
    }

    fn respond(&self, request: Request) -> Pending<Answer> {
        let (house, asker, connected) = (Arc::clone(&self.house), self.asker(), self.connected_session());
        self.whole(async move {
            let answer = house.respond(asker, request).await;
            // The session of whoever asked is there as long.
            drop(connected);
            answer
        })
    }

    fn lend(&self, lease: LeaseRequest) -> Pending<Vec<LeasedMessage>> {
        let (house, asker, consumer) = (Arc::clone(&self.house), self.asker(), self.house.next_consumer());
        let connected = self.connected_session();
        Box::pin(async move {
            let _connected = connected;
            let (caller, answer) = oneshot::channel();
            let mut open = OpenLease { house: &house, consumer, answer: Some(answer) };
            if let Err((_, why)) = house.lease(asker, consumer, lease, Ticket::Caller(caller)).await {
                return Err(why);
            }
            let answer = open.answer.as_mut().expect("nobody has waited yet").await;
            open.answer = None;
            match answer {
                Ok(Ok(Answer::Leased(messages))) => Ok(messages),
                Ok(Ok(_)) => unreachable!("a lease answers with messages"),
                Ok(Err(why)) => Err(why),
                Err(_) => Err(house.unavailable()),
            }
        })
    }

    fn begin(&self) -> Session {
        line::open(&self.house, self.asker())
    }

    fn connected(&self) -> Connection {
        let connected = Connected { house: Arc::clone(&self.house), session: self.house.next_session() };
        Arc::new(self.asked(self.vhost, Ends::Session(Arc::new(connected))))
    }

    fn moved(&self, vhost: VhostId) -> Connection {
        let ends = match &self.ends {
            Ends::Session(session) => Ends::Session(Arc::clone(session)),
            Ends::House | Ends::Nothing => Ends::Nothing,
        };
        Arc::new(self.asked(vhost, ends))
    }

    fn versions_of_metadata(&self) -> Option<watch::Receiver<u64>> {
        Some(self.house.definitions.metadata_versions())
    }

    fn orphaned(&self) -> Pending<Vec<Orphan>> {
        let house = Arc::clone(&self.house);
        Box::pin(async move { house.orphans().await })
    }

    fn adopt(&self, queue: QueueId, name: Option<&str>) -> Pending<Orphan> {
        let (house, name) = (Arc::clone(&self.house), name.map(Arc::from));
        self.whole(async move { house.adopt_orphan(queue, name).await })
    }

    fn abandon(&self, queue: QueueId) -> Pending<u64> {
        let house = Arc::clone(&self.house);
        self.whole(async move { house.remove_orphan(queue).await })
    }

    fn leadership(&self, work: &str) -> Leadership {
        self.house.leads.wish(work)
    }

    fn withdrawn(&self) -> watch::Receiver<u64> {
        self.house.withdrawals.subscribe()
    }

    fn cluster_view(&self) -> Option<ClusterView> {
        Some(self.house.cluster_view())
    }

    fn is_well(&self) -> Health {
        let (house, nodes) = (&self.house, self.house.cluster.nodes());
        let down = house.down.borrow().clone().or_else(|| none_serves(&nodes));
        let full = house.cluster.full().borrow().clone();
        Health { down, full, servers: Some(house.server_work()), nodes, ..Health::default() }
    }
}

/// A lease that is being waited for. Dropped before its end, it gives back what was on its way.
struct OpenLease<'a> {
    house: &'a House,
    consumer: ConsumerId,
    answer: Option<oneshot::Receiver<Result<Answer, Failure>>>,
}

impl Drop for OpenLease<'_> {
    fn drop(&mut self) {
        let Some(mut answer) = self.answer.take() else { return };
        answer.close();
        let told = answer.try_recv();
        self.house.on_floor(|floor, now, after| {
            if let Ok(Ok(told)) = told {
                floor::give_back(&told, after);
            }
            floor.give_up(now, self.consumer, after);
        });
    }
}
