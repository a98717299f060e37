//! A consumer of a group, which reads the urgent lane first.
//!
//! Of each lane, the primary first: what this consumer left, when it is due again; what others have left; what is new. For the primary lane nothing is waited; where it
//! has nothing and the backfill lane neither, one read waits for both of them, and whatever comes ends it.
//!
//! An entry that failed stays pending under our name while it waits, so nothing is lost with us, and its attempts are those that the server counts. It does not
//! hold up others.

mod held;
mod keeper;
mod options;
mod partitions;
mod reader;

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use overtake_peer::redis::RedisServer;
use redis::{Value, cmd};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use self::held::{Doom, Held, Later};
pub use self::options::{Start, SubscribeOptions};
use self::reader::{Reader, Want};
use crate::category::unread;
use crate::dead_letters::letter;
use crate::entry::Entry;
use crate::lanes::Lane;
use crate::layout::dead_letters_of;
use crate::link::Link;
use crate::scripts;

/// What is settled is told the server for so long at least, until it hears.
const SETTLE_MIN: Duration = Duration::from_secs(5);
/// So long a read that is under way is left alone when we end.
const WAKE: Duration = Duration::from_millis(10);

/// What became of an entry that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is tried again after this.
    Again(Duration),
    /// It is with the dead letters of its lane.
    Dead,
    /// The dead letters cannot be written; it stays where it is, and goes there when they can. Why.
    Kept(String),
    /// It was settled before, or another consumer has it.
    Gone,
}

/// A consumer of a group. Dropping it leaves what it holds pending; [`Subscriber::stop`] gives it back.
pub struct Subscriber {
    // Goes first: the reader is woken to find that nobody can want anything.
    wants: mpsc::Sender<Want>,
    reader: JoinHandle<Reader>,
    running: Running,
}

struct Running {
    shared: Arc<Shared>,
    keeper: JoinHandle<()>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.keeper.abort();
        self.shared.changed.notify_one();
    }
}

struct Shared {
    options: SubscribeOptions,
    settling: Link,
    held: Mutex<Held>,
    /// Something became due earlier than it was known, or nobody wants more.
    changed: Notify,
    /// What the server calls the connection that reads; 0 where it does not say.
    reads_as: AtomicI64,
    /// Of each lane: why it is not read for now.
    broken: Mutex<[Option<String>; 2]>,
}

impl Shared {
    fn tell_broken(&self, broken: [Option<String>; 2]) {
        *self.broken.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = broken;
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// An entry is settled, or somebody else's: the next of its partition may follow.
    fn forget(&self, stream: &str, id: &str) {
        self.held().forget(stream, id);
        if self.options.partitions {
            self.changed.notify_one();
        }
    }

    fn stream(&self, lane: Lane) -> String {
        self.options.lanes.stream(&self.options.category, lane)
    }

    /// It waits as long as so many attempts mean.
    fn postpone(&self, lane: Lane, stream: &str, later: Later) -> Duration {
        let wait = self.options.retry.wait_after(later.attempts);
        self.held().postpone(lane, stream, Instant::now() + wait, later);
        self.changed.notify_one();
        wait
    }

    fn patience(&self) -> Duration {
        self.options.claim_idle.max(SETTLE_MIN)
    }

    /// The read that is under way is woken, so that what it brings is known; a server that cannot do that lets it come to its end.
    async fn until_read(&self, mut reader: JoinHandle<Reader>) -> Option<Reader> {
        loop {
            tokio::select! {
                biased;
                ended = &mut reader => return ended.ok(),
                () = tokio::time::sleep(WAKE) => {}
            }
            // Where nobody answers the read ends, too.
            let _ = self.unblock().await;
        }
    }

    async fn unblock(&self) -> Result<(), String> {
        let mut unblock = cmd("CLIENT");
        unblock.arg("UNBLOCK").arg(self.reads_as.load(Ordering::Relaxed));
        self.settling.ask(&unblock).await.map(drop)
    }

    /// Adds the dead letter, then acknowledges; where it cannot be added the entry waits.
    async fn bury(
        &self,
        lane: Lane,
        stream: &str,
        id: String,
        attempts: u64,
        doom: Doom,
    ) -> Result<Fate, String> {
        let SubscribeOptions { group, consumer, .. } = &self.options;
        let mut bury = scripts::bury([stream, &dead_letters_of(stream)], group, consumer, &id);
        for (name, value) in letter(stream, &id, &self.options, attempts, &doom.why, &doom.fields) {
            bury.arg(name).arg(value);
        }
        // What is asked again finds that it is done.
        let answer = self.settling.ask_for(&bury, self.patience()).await;
        let fault = match answer {
            Ok(Ok(answer)) => {
                if self.options.partitions {
                    // Nothing is lost where nobody hears it: a consumer of a group that holds nothing.
                    let _ = self.settling.ask(&scripts::leave(stream, group, consumer)).await;
                }
                self.forget(stream, &id);
                return Ok(if answer == Value::Int(1) { Fate::Dead } else { Fate::Gone });
            }
            Ok(Err(fault)) => fault,
            Err(lost) => {
                self.postpone(lane, stream, Later { id, attempts, doom: Some(doom) });
                return Err(lost);
            }
        };
        let why = format!("the dead letters {} cannot be written: {fault}", dead_letters_of(stream));
        tracing::warn!(%id, %why, "an entry that failed stays where it is");
        self.postpone(lane, stream, Later { id, attempts, doom: Some(doom) });
        Ok(Fate::Kept(why))
    }
}

impl Subscriber {
    /// Connects, and makes the group where it is not there. The primary lane must be readable; a backfill lane that is not is [`Subscriber::broken`].
    ///
    /// # Errors
    /// What is wrong with the options, why there is no connection, or why the primary lane cannot be read.
    pub async fn connect(server: &RedisServer, options: SubscribeOptions) -> Result<Self, String> {
        options.check()?;
        let shared = Arc::new(Shared {
            options,
            settling: Link::new(server.clone()),
            held: Mutex::default(),
            changed: Notify::new(),
            reads_as: AtomicI64::new(0),
            broken: Mutex::default(),
        });
        let mut reader = Reader::new(server.clone(), Arc::clone(&shared));
        reader.begin().await?;
        let (wants, wanted) = mpsc::channel(1);
        let keeper = tokio::spawn(keeper::run(Arc::clone(&shared)));
        if let Ok(Some(unread)) = unread(&shared.settling, &shared.options).await {
            tracing::warn!(category = shared.options.category, "{unread}");
        }
        Ok(Self { wants, reader: tokio::spawn(reader.run(wanted)), running: Running { shared, keeper } })
    }

    /// How it reads.
    #[must_use]
    pub fn options(&self) -> &SubscribeOptions {
        &self.running.shared.options
    }

    /// Why one of the lanes is not read for now, if that is so: the server declines it, such as where its key is no stream. The other lane goes on. This one is tried
    /// again after 1 s, then with a backoff up to 30 s, and each failure is logged at ERROR with the name of the stream.
    #[must_use]
    pub fn broken(&self) -> Option<String> {
        let broken = self.running.shared.broken.lock();
        broken.unwrap_or_else(std::sync::PoisonError::into_inner).iter().flatten().next().cloned()
    }

    /// The streams of the category that this subscriber never reads, in a sentence: a backfill lane where `lanes` has one lane, or partitions where `partitions` is not set. Nothing where it
    /// reads every stream that has entries. A subscriber that connects logs it at WARN.
    ///
    /// # Errors
    /// The server does not answer, or declines.
    pub async fn unread(&self) -> Result<Option<String>, String> {
        unread(&self.running.shared.settling, self.options()).await
    }

    /// Says in how many slots the entries are handled, so that `primary_slots` of them are kept for the primary lane: [`Subscriber::next`] hands over no entry of the backfill lane while
    /// that lane uses all others. An entry uses a slot until [`Subscriber::ack`], [`Subscriber::fail`] or [`Subscriber::reject`] returns. Without `primary_slots` nothing changes.
    ///
    /// # Errors
    /// `primary_slots` is not less than `slots`: the backfill lane would never be read.
    pub fn set_slots(&self, slots: u16) -> Result<(), String> {
        let kept = self.options().primary_slots;
        if kept >= slots.max(1) {
            return Err(format!(
                "`primary_slots` is {kept} of {slots} slots, so the backfill lane would never be read: keep fewer, or have more slots"
            ));
        }
        if kept > 0 {
            self.running.shared.held().limit_backfill((slots - kept).into());
        }
        Ok(())
    }

    /// The next entry, waited for as long as it takes; a connection that is lost comes again meanwhile. It is held until it is settled, and nobody takes it
    /// over as long as this process lives. May be given up while it waits: nothing is lost.
    ///
    /// # Errors
    /// The server does not let us read any lane, such as where the key is no stream. May be asked again.
    pub async fn next(&self) -> Result<Entry, String> {
        let (answer, answered) = oneshot::channel();
        let ended = || "the subscriber has ended".to_owned();
        self.wants.send(answer).await.map_err(|_| ended())?;
        answered.await.map_err(|_| ended())?
    }

    /// It is done. Whether it was ours to settle.
    ///
    /// # Errors
    /// The server does not hear it, or declines; the entry comes again.
    pub async fn ack(&self, entry: &Entry) -> Result<bool, String> {
        let settled = self.acknowledge(entry).await;
        self.end_work(entry);
        settled
    }

    async fn acknowledge(&self, entry: &Entry) -> Result<bool, String> {
        let (shared, stream) = (&self.running.shared, entry.stream());
        let SubscribeOptions { group, consumer, partitions, .. } = &shared.options;
        let ack = if *partitions {
            scripts::ack(stream, group, consumer, entry.id())
        } else {
            let mut ack = cmd("XACK");
            ack.arg(stream).arg(group).arg(entry.id());
            ack
        };
        let why = match shared.settling.ask_for(&ack, shared.patience()).await {
            Ok(Ok(answer)) => {
                shared.forget(stream, entry.id());
                return Ok(answer == Value::Int(1));
            }
            Ok(Err(fault)) => {
                format!("{} of {} is not acknowledged: {fault}", entry.id(), entry.stream())
            }
            Err(lost) => lost,
        };
        // An entry that stays out is kept from everybody for as long as this process lives.
        if shared.held().is_out(entry) {
            let later = Later { id: entry.id().to_owned(), attempts: entry.attempt(), doom: None };
            shared.postpone(entry.lane(), stream, later);
        }
        Err(why)
    }

    /// It failed: it is tried again in its own lane, and after the last attempt it is a dead letter there.
    ///
    /// # Errors
    /// The server does not hear it; the entry stays pending.
    pub async fn fail(&self, entry: &Entry, why: &str) -> Result<Fate, String> {
        if self.running.shared.options.retry.is_over(entry.attempt()) {
            return self.reject(entry, why).await;
        }
        if !self.running.shared.held().is_out(entry) {
            self.end_work(entry);
            return Ok(Fate::Gone);
        }
        let later = Later { id: entry.id().to_owned(), attempts: entry.attempt(), doom: None };
        let wait = self.running.shared.postpone(entry.lane(), entry.stream(), later);
        self.end_work(entry);
        Ok(Fate::Again(wait))
    }

    /// It will never be done: it is a dead letter of its lane at once.
    ///
    /// # Errors
    /// The server does not hear it; the entry stays pending.
    pub async fn reject(&self, entry: &Entry, why: &str) -> Result<Fate, String> {
        if !self.running.shared.held().is_out(entry) {
            self.end_work(entry);
            return Ok(Fate::Gone);
        }
        let doom = Doom { why: why.to_owned(), fields: entry.fields().clone() };
        let (stream, id) = (entry.stream(), entry.id().to_owned());
        let buried = self.running.shared.bury(entry.lane(), stream, id, entry.attempt(), doom).await;
        self.end_work(entry);
        buried
    }

    fn end_work(&self, entry: &Entry) {
        let shared = &self.running.shared;
        if shared.held().end_work(entry) {
            shared.changed.notify_one();
        }
    }

    /// Ends: what is held and not handed over is given back, for others to take at once, or when it is due; and
    /// a consumer that holds nothing leaves the group. What was handed over and is not settled stays pending.
    ///
    /// # Errors
    /// The server does not hear it; all stays pending, and is taken over in time.
    pub async fn stop(self) -> Result<(), String> {
        let Self { wants, reader, running } = self;
        drop(wants);
        running.shared.changed.notify_one();
        let ended = running.shared.until_read(reader).await;
        running.keeper.abort();
        // With its connection: else the server would still have a consumer that reads.
        drop(ended);
        let SubscribeOptions { lanes, group, consumer, claim_idle, partitions, .. } = &running.shared.options;
        let (shared, mut declined) = (&running.shared, Ok(()));
        let streams = match partitions {
            // A consumer is in the groups of those streams only of which it holds something.
            true => shared.held().streams(),
            false => lanes.all().iter().map(|&lane| shared.stream(lane)).collect(),
        };
        for stream in streams {
            let given = shared.held().give_up(&stream, Instant::now());
            for some in given.chunks(keeper::PAGE) {
                let mut hand_back = scripts::hand_back(&stream, group, consumer);
                for (id, attempts, until) in some {
                    let idle = claim_idle.saturating_sub(*until).as_millis();
                    hand_back.arg(id).arg(attempts).arg(u64::try_from(idle).unwrap_or(u64::MAX));
                }
                // A fault of one stream must not keep the entries of another from being given back.
                let given = shared.settling.ask(&hand_back).await?.map(drop);
                declined = declined.and(given.map_err(|fault| format!("{stream}: {fault}")));
            }
            let leave = scripts::leave(&stream, group, consumer);
            if let Err(fault) = shared.settling.ask(&leave).await? {
                tracing::debug!(%fault, "a consumer cannot leave its group");
            }
        }
        declined
    }
}
