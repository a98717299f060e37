//! The engine on the embedded store: one thread for the broker, two for the journal, one for segments, and one that frees the contents of
//! messages that are gone.
//!
//! ```text
//!   callers ─▶ inbox (bounded) ─▶ broker thread ─▶ batches ─▶ disk thread: one write, one sync each
//!                                   │     ▲                      │
//!        leases, refusals ◀─────────┘     └── news: durable ─────┼─▶ confirms
//!                                                                 │ jobs that must wait for a commit
//!                    other jobs ─────────▶ spill thread ◀─────────┤
//!                                                                 │ journal files no longer needed, or wanted
//!                                          files thread ◀─────────┘
//! ```
//!
//! The broker takes whatever has gathered, applies it, and hands on one batch; while the disk syncs it, the next one
//! gathers. So a slow disk makes batches bigger and does not hold up deliveries. It has a thread of its own, but a small request that comes
//! while nobody runs it is done on the thread that asks (`inbox`): no thread wakes up for it, and its answer is there at once unless it waits for
//! the disk. A panic in any of these threads, or while a request is done, ends the process: what the broker holds would no longer be what the
//! journal says.

mod broker_loop;
mod calls;
mod disk_thread;
mod files_thread;
mod freeze;
mod inbox;
mod line;
mod pace;
mod sessions;
mod snapshots;
mod spill_thread;
mod tally;

use std::hash::{BuildHasher, Hasher};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use overtake_lane::{Asker, Command, ConsumerId, FeedId, Receipt, SessionId, VhostId};
use overtake_store::{Disk, RealDisk};
use tokio::sync::{mpsc, oneshot, watch};

use self::broker_loop::BrokerLoop;
use self::freeze::Freeze;
use self::inbox::{Gone, Inbox};
use crate::api::{Failure, Health, MemoryHealth};
use crate::clock::{Clock, SystemClock};
use crate::core::{Answer, Core, OpenError, Opened, Recovered, Request};
use crate::damage::DamageHealth;
use crate::options::Options;
use crate::session::{self, Event, Places, Taken};
use crate::watermarks::{DiskHealth, Full};
use crate::work::DiskWork;

/// A broker in this process, on a directory of its own; or, from [`Engine::connect`](crate::Engine::connect), one session of it; or,
/// from [`Engine::in_vhost`](crate::Engine::in_vhost), either of them asked elsewhere.
///
/// Dropping the first stops it, once all that was asked before is done; [`LocalEngine::close`] does the same and waits.
///
/// A small request that comes while nobody else asks is done on the thread that polls its future.
///
/// ```no_run
/// use overtake_engine::{Engine, LocalEngine};
///
/// # fn main() -> Result<(), overtake_engine::core::OpenError> {
/// let engine = LocalEngine::open("/var/lib/my-app/queues")?;
/// # Ok(()) }
/// ```
pub struct LocalEngine {
    door: Door,
    recovered: Recovered,
    snapshots: Arc<snapshots::Snapshots>,
    /// Where it is asked.
    vhost: VhostId,
    ends: Ends,
}

/// What ends when an engine is dropped.
enum Ends {
    /// The broker, which is its own.
    Broker(Mutex<Vec<JoinHandle<()>>>),
    /// The session, if nobody else asks for it.
    Session(Arc<Connected>),
    /// Nothing: it is another's to stop.
    Nothing,
}

/// A session, for as long as somebody asks for it.
struct Connected {
    door: Door,
    session: SessionId,
}

impl Drop for Connected {
    fn drop(&mut self) {
        self.door.post(Request::Do(Command::EndSession { session: self.session }));
    }
}

/// The way to the broker thread.
#[derive(Clone)]
pub(crate) struct Door {
    inbox: Arc<Inbox>,
    places: Places,
    shared: Arc<Shared>,
    down: watch::Receiver<Option<Arc<str>>>,
}

/// What both threads and callers see.
#[derive(Default)]
struct Shared {
    full: watch::Sender<Option<Full>>,
    disk: watch::Sender<Option<DiskHealth>>,
    memory: Mutex<MemoryHealth>,
    damage: watch::Sender<DamageHealth>,
    journal_bytes: AtomicU64,
    tally: tally::Tally,
    carried: AtomicU64,
    unsynced: AtomicU64,
    withdrawals: watch::Sender<u64>,
    consumers: AtomicU64,
    sessions: AtomicU64,
}

/// Who waits for an answer.
#[derive(Debug)]
enum Ticket {
    Nobody,
    Caller(Caller),
    Session { session: SessionId, token: u64 },
}

/// A call of the engine.
type Caller = oneshot::Sender<Result<Answer, Failure>>;

/// A session as the broker thread is told of it.
#[derive(Clone, Copy, Debug)]
struct Who {
    /// Names it.
    number: SessionId,
    /// Who asks: it itself, or somebody connected that it is a part of.
    by: SessionId,
    /// Where it asks.
    vhost: VhostId,
}

impl Who {
    fn is_whole(self) -> bool {
        self.number == self.by
    }

    /// What bounds the bytes that are pushed to it.
    fn feed(self) -> FeedId {
        FeedId(self.number.0)
    }

    fn asker(self) -> Asker {
        Asker { session: Some(self.by), vhost: self.vhost }
    }
}

/// What comes in at the door.
enum Ask {
    Request {
        request: Request,
        ticket: Ticket,
        _places: Option<Taken>,
    },
    Begin {
        session: SessionId,
        events: mpsc::UnboundedSender<Vec<Event>>,
    },
    Batch {
        session: Who,
        asks: std::vec::IntoIter<session::Ask>,
        places: Taken,
    },
    End {
        session: Who,
        unheard: Vec<Receipt>,
    },
    /// A session has taken so many bytes of what was pushed to it.
    Taken {
        session: Who,
        bytes: u64,
    },
    News(disk_thread::News),
    Look,
    /// A snapshot is over.
    Thawed,
    Close,
}

impl Ask {
    /// Requests in it, or as much work as one.
    fn len(&self) -> usize {
        if let Self::Batch { asks, .. } = self { asks.len().max(1) } else { 1 }
    }

    /// Messages that it publishes, leases or settles, as far as it says so; at least its requests.
    fn work(&self) -> usize {
        match self {
            Self::Request { request, .. } => request.work(),
            Self::Batch { asks, .. } => asks.as_slice().iter().map(|ask| ask.request.work()).sum(),
            _ => 1,
        }
    }
}

impl LocalEngine {
    /// Opens the store in this directory, or makes one there, and starts the broker.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open(dir: impl AsRef<Path>) -> Result<Self, OpenError> {
        Self::open_with(dir, Options::default(), Arc::new(SystemClock))
    }

    /// As [`LocalEngine::open`], with options and a clock.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open_with(
        dir: impl AsRef<Path>,
        options: Options,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, OpenError> {
        Self::open_in(dir.as_ref(), options, clock)
    }

    /// Not generic, so that all of an engine on a real disk is compiled, and optimised, with this crate and not with each that opens one.
    fn open_in(dir: &Path, options: Options, clock: Arc<dyn Clock>) -> Result<Self, OpenError> {
        Self::open_on(RealDisk::create(dir)?, options, clock)
    }

    /// As [`LocalEngine::open_with`], on any disk.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open_on<D: Disk>(disk: D, mut options: Options, clock: Arc<dyn Clock>) -> Result<Self, OpenError>
    where
        D::File: 'static,
        D::Guard: Send,
    {
        if options.seed == 0 {
            options.seed = std::collections::hash_map::RandomState::new().build_hasher().finish();
        }
        let Opened { mut core, committer, spiller, recovered } =
            Core::open(disk.clone(), &options, clock.now())?;
        core.disk_space(committer.space().ok().flatten());
        let (to_broker, asks) = bounded_elsewhere();
        let (flushes, to_disk) = bounded_elsewhere();
        let (jobs, to_spill) = bounded_elsewhere();
        let (set_down, down) = watch::channel(None);
        let shared = Arc::new(Shared::default());
        let freeze = Arc::new(Freeze::new(committer.moment()));
        let (released, to_free) = std::sync::mpsc::sync_channel(RELEASED_IN_FLIGHT_MAX);
        let hands = broker_loop::Hands { flushes, jobs: jobs.clone(), freeze: Arc::clone(&freeze), released };
        let broker = BrokerLoop::new(core, asks, hands, Arc::clone(&clock), Arc::clone(&shared), set_down);
        let inbox = Arc::new(Inbox::new(to_broker, broker));
        let news = Arc::clone(&inbox);
        let room = Arc::new(files_thread::Room::new(disk.clone(), news.clone()));
        let snapshots = Arc::new(snapshots::Snapshots::new(disk, Arc::clone(&freeze)));
        let (log, pool) = committer.split();
        let (orders, to_files) = bounded_elsewhere();
        let (made, ready) = bounded_elsewhere();
        let ways =
            files_thread::Ways { made, jobs: jobs.clone(), news: news.clone(), room: Arc::clone(&room) };
        let files_freeze = Arc::clone(&freeze);
        let files = named("overtake-files", move || {
            files_thread::run(pool, &to_files, &ways, &files_freeze);
        });
        let ways =
            disk_thread::Ways { flushes: to_disk, made: ready, orders, jobs: jobs.clone(), news, room };
        let disk_freeze = Arc::clone(&freeze);
        let disk_shared = Arc::clone(&shared);
        let disk = named("overtake-disk", move || {
            disk_thread::run(log, &ways, &disk_shared, &disk_freeze);
        });
        let news = Arc::clone(&inbox);
        let spill_freeze = Arc::clone(&freeze);
        let spill_shared = Arc::clone(&shared);
        let spill = named("overtake-spill", move || {
            spill_thread::run(spiller, &to_spill, &news, &spill_shared, &spill_freeze);
        });
        let free = named("overtake-free", move || to_free.into_iter().for_each(drop));
        let wake = Arc::clone(&inbox);
        clock.on_jump(Box::new(move || wake.tell(Ask::Look)));
        let run = Arc::clone(&inbox);
        let broker = named("overtake-broker", move || run.run());
        let door = Door { inbox, places: Places::new(options.inbox, options.inbox_bytes), shared, down };
        let ends = Ends::Broker(Mutex::new(vec![broker, disk, files, spill, free]));
        Ok(Self { door, recovered, snapshots, vhost: VhostId::DEFAULT, ends })
    }

    /// The same broker, asked by a new session.
    pub(crate) fn of_session(&self) -> Self {
        let connected = Connected { door: self.door.clone(), session: self.door.next_session() };
        self.asked(self.vhost, Ends::Session(Arc::new(connected)))
    }

    /// The same broker, asked by the same in another virtual host.
    pub(crate) fn of_vhost(&self, vhost: VhostId) -> Self {
        let ends = match &self.ends {
            Ends::Session(session) => Ends::Session(Arc::clone(session)),
            Ends::Broker(_) | Ends::Nothing => Ends::Nothing,
        };
        self.asked(vhost, ends)
    }

    fn asked(&self, vhost: VhostId, ends: Ends) -> Self {
        let (door, recovered) = (self.door.clone(), self.recovered.clone());
        Self { door, recovered, snapshots: Arc::clone(&self.snapshots), vhost, ends }
    }

    /// What was found when it was opened.
    #[must_use]
    pub fn recovered(&self) -> &Recovered {
        &self.recovered
    }

    /// As [`LocalEngine::close`], without waiting.
    pub(crate) fn begin_to_close(&self) {
        self.door.tell(Ask::Close);
    }

    /// Does all that was asked before, makes it durable and stops. Later calls are answered
    /// [`Failure::Unavailable`].
    ///
    /// # Panics
    /// When another thread panicked while it closed the engine.
    pub fn close(&self) {
        self.begin_to_close();
        let Ends::Broker(threads) = &self.ends else { return };
        for thread in threads.lock().expect("nobody panics while closing").drain(..) {
            // A thread that panicked has ended the process.
            let _ = thread.join();
        }
    }

    /// Why publishes are refused, now and whenever it changes; `None` while they are taken. As [`Health::full`].
    #[must_use]
    pub fn full(&self) -> watch::Receiver<Option<Full>> {
        self.door.shared.full.subscribe()
    }

    /// The damage found in segments, now and whenever more of it is found. As [`Health::damage`].
    #[must_use]
    pub fn damage(&self) -> watch::Receiver<DamageHealth> {
        self.door.shared.damage.subscribe()
    }

    /// Waits until it can serve no more, and answers why. Never returns while all is well.
    pub async fn failed(&self) -> Arc<str> {
        let mut down = self.door.down.clone();
        loop {
            if let Some(why) = down.borrow_and_update().clone() {
                return why;
            }
            if down.changed().await.is_err() {
                return Arc::from(STOPPED);
            }
        }
    }
}

impl Drop for LocalEngine {
    fn drop(&mut self) {
        if let Ends::Broker(_) = self.ends {
            self.close();
        }
    }
}

/// Batches of contents that wait to be freed, beside the one that is: with more the broker frees them itself.
const RELEASED_IN_FLIGHT_MAX: usize = 4;
const STOPPED: &str = "it is stopping";

impl Door {
    fn next_consumer(&self) -> ConsumerId {
        ConsumerId(self.shared.consumers.fetch_add(1, Ordering::Relaxed) + 1)
    }

    fn next_session(&self) -> SessionId {
        SessionId(self.shared.sessions.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// Puts a request into the inbox as soon as there is a place.
    async fn send(&self, request: Request, caller: Caller) -> Result<(), Failure> {
        let places = self.places.take(1, request.published_bytes()).await;
        let ask = Ask::Request { request, ticket: Ticket::Caller(caller), _places: Some(places) };
        self.inbox.ask(ask).map_err(|Gone| self.unavailable())
    }

    /// Puts a request that nobody waits for into the inbox at once.
    fn post(&self, request: Request) {
        self.tell(Ask::Request { request, ticket: Ticket::Nobody, _places: None });
    }

    /// Puts it into the inbox. What can be done at once is done when this returns.
    fn ask_at_once(&self, ask: Ask) {
        // Where nobody listens any more there is nothing left to do.
        let _ = self.inbox.ask(ask);
    }

    /// Puts it into the inbox, for another thread to do.
    fn tell(&self, ask: Ask) {
        self.inbox.tell(ask);
    }

    async fn ask(&self, request: Request) -> Result<Answer, Failure> {
        let (caller, answer) = oneshot::channel();
        self.send(request, caller).await?;
        answer.await.unwrap_or_else(|_| Err(self.unavailable()))
    }

    fn unavailable(&self) -> Failure {
        Failure::Unavailable(self.down.borrow().clone().unwrap_or_else(|| Arc::from(STOPPED)))
    }

    fn health(&self) -> Health {
        Health {
            down: self.down.borrow().clone(),
            full: self.shared.full.borrow().clone(),
            disk: *self.shared.disk.borrow(),
            memory: MemoryHealth {
                inbox: self.places.bytes(),
                ..*self.shared.memory.lock().expect("nobody panics while holding it")
            },
            damage: self.shared.damage.borrow().clone(),
            journal_bytes: self.shared.journal_bytes.load(Ordering::Relaxed),
            work: DiskWork {
                carried_messages: self.shared.carried.load(Ordering::Relaxed),
                ..self.shared.tally.work()
            },
            unsynced: self.shared.unsynced.load(Ordering::Relaxed),
            servers: None,
            nodes: Vec::new(),
        }
    }
}

/// The inbox is bounded by its places, what goes to the disk by `IN_FLIGHT_MAX`, jobs by the number of segments, orders
/// by the flushes.
#[expect(clippy::disallowed_methods, reason = "each is bounded by what stands above")]
fn bounded_elsewhere<M>() -> (Sender<M>, Receiver<M>) {
    channel()
}

/// Dropped in a panic it ends the process.
struct EndsTheProcess;

impl Drop for EndsTheProcess {
    fn drop(&mut self) {
        if std::thread::panicking() {
            std::process::abort();
        }
    }
}

/// Starts a thread whose panic ends the process.
fn named(name: &str, run: impl FnOnce() + Send + 'static) -> JoinHandle<()> {
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(move || {
            let _guard = EndsTheProcess;
            run();
        })
        .expect("the system starts a thread")
}
