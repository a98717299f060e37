//! The loop: claim, publish, mark.
//!
//! ```text
//!        ┌──────── places: at most so many claims are under way ────────┐
//!        ▼                                                              │
//!    claiming ── batch ──▶ publishing ── outcomes ──▶ marking ──────────┘
//!        ▲                     │ sink lost: nothing is claimed until it is back
//!   hints, polls,          (one sink)
//!   upkeep: due, expired, cleaned
//! ```
//!
//! The next claim is made while the last is published, so an urgent row waits for what is claimed already and no more. A sink or a database that is lost costs no row an
//! attempt.

mod counting;
mod due;
mod marking;
mod publishing;
mod trouble;
mod upkeep;

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tokio::task::AbortHandle;

use self::counting::Counting;
use self::due::Due;
use self::marking::Marker;
use self::publishing::{Publisher, Ready};
pub(crate) use self::trouble::{Trouble, pause};
use self::upkeep::Upkeep;
use crate::database::{Claim, Database};
use crate::metrics::Watch;
use crate::policy::{Pace, Retry};
use crate::row::{Outcome, Row};
use crate::sink::{Answer, Sink};

/// How a relay works.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// How people know it; the number of each claim follows.
    pub id: String,
    /// Most rows of a claim; that of [`Database::connect`].
    pub batch: usize,
    /// How long nobody else may have the rows of a claim. What is not published in three quarters of it is given back.
    pub lock: Duration,
    /// Most claims under way at a time.
    pub batches_ahead: usize,
    /// The first wait where nothing was found.
    pub poll_min: Duration,
    /// The longest.
    pub poll_max: Duration,
    /// Rows of the same key and priority are published in their order; that of [`Database::connect`].
    pub keeps_key_order: bool,
    /// What becomes of rows that fail.
    pub retry: Retry,
    /// What becomes of rows that are done.
    pub cleaning: Cleaning,
    /// How often what waits is counted, in the table and by the groups of consumers; zero: never.
    pub lag_every: Duration,
    /// Of how many groups of consumers of a category the lag is told by name, at most; the others are told together. 0: no groups are counted.
    pub lag_groups_max: usize,
}

/// What becomes of rows that are done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cleaning {
    /// Published rows go after so long; nothing: never.
    pub published_after: Option<Duration>,
    /// Abandoned rows go after so long; nothing: never.
    pub abandoned_after: Option<Duration>,
    /// Most rows of one statement.
    pub batch: usize,
    /// How often it is done.
    pub every: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            id: "relay".to_owned(),
            batch: 500,
            lock: Duration::from_secs(30),
            batches_ahead: 2,
            poll_min: Duration::from_millis(10),
            poll_max: Duration::from_secs(1),
            keeps_key_order: false,
            retry: Retry::default(),
            cleaning: Cleaning::default(),
            lag_every: Duration::from_secs(10),
            lag_groups_max: 20,
        }
    }
}

impl Default for Cleaning {
    fn default() -> Self {
        let day = Duration::from_secs(86_400);
        Self {
            published_after: Some(day),
            abandoned_after: Some(30 * day),
            batch: 1_000,
            every: Duration::from_secs(60),
        }
    }
}

/// A relay between an outbox and a sink.
pub struct Relay {
    database: Database,
    sink: Box<dyn Sink>,
    settings: Settings,
    watch: Watch,
}

/// A claim with rows, and its place among those under way.
struct Batch {
    token: String,
    rows: Vec<Row>,
    /// When it was asked for: its lock is over no earlier than so long after that.
    claimed: Instant,
    /// How often rows had been given back by then.
    turn: u64,
    _place: OwnedSemaphorePermit,
}

/// A batch that was published, as far as it was.
struct Tried {
    batch: Batch,
    outcomes: Vec<Outcome>,
}

impl Relay {
    /// One that works once it [runs](Relay::run).
    #[must_use]
    pub fn new(database: Database, sink: Box<dyn Sink>, settings: Settings) -> Self {
        Self { database, sink, settings, watch: Watch::default() }
    }

    /// Looks at it while it runs.
    #[must_use]
    pub fn watch(&self) -> Watch {
        self.watch.clone()
    }

    /// Relays until `stop` is over. Then it claims no more, waits for what is being published, marks it, and gives back what was claimed and not tried. What a lost database keeps it from
    /// writing down comes back when its lock is over.
    pub fn run(self, stop: impl Future<Output = ()> + Send + 'static) -> Answer<'static, ()> {
        // Boxed, as its caller would compile all of it again.
        Box::pin(self.run_until(Box::pin(stop)))
    }

    async fn run_until(self, stop: Answer<'static, ()>) {
        let Self { database, sink, settings, watch } = self;
        let hint = Arc::new(Notify::new());
        let (stopping, is_stopping) = watch::channel(false);
        let (ready, is_ready) = watch::channel(Ready::default());
        let due = Arc::new(Due::default());
        let (claimed, batches) = mpsc::channel(settings.batches_ahead.max(1));
        let (tried, outcomes) = mpsc::channel(settings.batches_ahead.max(1));

        let is_counted = settings.lag_groups_max > 0 && !settings.lag_every.is_zero();
        let counting = sink.groups().filter(|_| is_counted).map(|groups| Counting {
            groups,
            database: database.clone(),
            every: settings.lag_every,
            named_max: settings.lag_groups_max,
            watch: watch.clone(),
        });
        let publisher = Publisher {
            sink,
            batches,
            tried,
            ready,
            stopping: is_stopping.clone(),
            keeps_key_order: settings.keeps_key_order,
            publish_within: settings.lock * 3 / 4,
            watch: watch.clone(),
        };
        let marker = Marker {
            database: database.clone(),
            outcomes,
            retry: settings.retry,
            lock: settings.lock,
            due: Arc::clone(&due),
            stopping: is_stopping,
            watch: watch.clone(),
        };
        let upkeep = Upkeep {
            database: database.clone(),
            cleaning: settings.cleaning,
            lag_every: settings.lag_every,
            hint: Arc::clone(&hint),
            due,
            watch: watch.clone(),
        };
        let publishing = tokio::spawn(publisher.run());
        let marking = tokio::spawn(marker.run());
        let beside = [
            Guard(tokio::spawn(upkeep.run()).abort_handle()),
            Guard(tokio::spawn(listen(database.clone(), Arc::clone(&hint))).abort_handle()),
        ];
        let counting = counting.map(|counting| Guard(tokio::spawn(counting.run()).abort_handle()));

        let claiming = Claiming {
            places: Arc::new(Semaphore::new(settings.batches_ahead.max(1))),
            pace: Pace::new(settings.poll_min, settings.poll_max),
            database: &database,
            settings: &settings,
            claimed,
            hint,
            watch,
        };
        claiming.until(stop, is_ready).await;

        stopping.send_replace(true);
        // Each ends when the one before it has.
        let _ = publishing.await;
        let _ = marking.await;
        drop((beside, counting));
        database.close().await;
    }
}

/// A task that ends with the relay.
struct Guard(AbortHandle);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn listen(database: Database, hint: Arc<Notify>) {
    let mut changes = database.changes();
    loop {
        changes.next().await;
        hint.notify_one();
    }
}

struct Claiming<'r> {
    database: &'r Database,
    settings: &'r Settings,
    places: Arc<Semaphore>,
    pace: Pace,
    claimed: mpsc::Sender<Batch>,
    hint: Arc<Notify>,
    watch: Watch,
}

impl Claiming<'_> {
    async fn until(mut self, stop: impl Future<Output = ()>, mut ready: watch::Receiver<Ready>) {
        let mut stop = pin!(stop);
        let mut trouble = Trouble::new("rows cannot be claimed");
        let ahead = self.settings.batches_ahead.max(1);
        let mut turn = 0;
        for number in 1_u64.. {
            let places = Arc::clone(&self.places);
            let place = async {
                let place = Arc::clone(&places).acquire_owned().await.ok()?;
                // The publisher is gone with its sender only where it panicked.
                let turns = ready.wait_for(|ready| ready.has_sink).await.ok()?.turns;
                if turns != turn {
                    // What is given back is written down first, so that it is claimed before what was written after it.
                    let others = u32::try_from(ahead - 1).unwrap_or_default();
                    drop(places.acquire_many(others).await.ok()?);
                    turn = turns;
                }
                Some(place)
            };
            let place = tokio::select! {
                biased;
                () = &mut stop => return,
                place = place => place,
            };
            let Some(place) = place else { return };
            let claim = Claim { token: format!("{}/{number}", self.settings.id), lock: self.settings.lock };
            let asked = Instant::now();
            // Not given up in the middle: what it claims would be nobody's until its lock is over.
            let wait = match self.database.claim(&claim).await {
                Ok(rows) => {
                    trouble.is_over();
                    self.watch.count(|seen| {
                        seen.claims.took(asked.elapsed());
                        seen.has_database = true;
                    });
                    let wait = self.pace.found(rows.len(), self.settings.batch);
                    if !rows.is_empty() {
                        let batch = Batch { token: claim.token, rows, claimed: asked, turn, _place: place };
                        if self.claimed.send(batch).await.is_err() {
                            return;
                        }
                    }
                    wait
                }
                Err(error) => {
                    self.watch.count(|seen| seen.has_database = false);
                    trouble.says(&error)
                }
            };
            if wait.is_zero() {
                continue;
            }
            tokio::select! {
                biased;
                () = &mut stop => return,
                () = self.hint.notified() => self.pace.told(),
                () = tokio::time::sleep(wait) => (),
            }
        }
    }
}
