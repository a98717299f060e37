//! All schedules there are: made, changed and deleted, and run.
//!
//! One thing happens after the other, so a schedule is never published while it is changed. What is written down comes after what is
//! taken out of the queue and before what is put in: whatever a crash leaves, the next look puts right.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use overtake_access::{Deed, Denied, Desk, Desks, Gate, NotDone};
use overtake_engine::{Clock, Engine, Failure, Leader, Select};
use overtake_lane::{MetadataEntry, QueueId, Refusal, Status, Time, VhostId, check_name};
use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde_json::{Value, json};
use tokio::sync::{Mutex, Notify, watch};
use tokio::task::JoinSet;

use crate::follow::{Runs, Seen, UntilDropped, WORK, read};
use crate::schedule::{NAME_LEN_MAX, Schedule, Unkeepable, occurrence_id};
use crate::state::State;

/// Most schedules of a broker.
pub const SCHEDULES_MAX: usize = 10_000;
/// Where they are kept: `schedules/NUMBER/NAME`, by the number of the virtual host, which no other ever has, and the name,
/// percent-encoded.
pub(crate) const ROOM: &str = "schedules/";
/// It is looked at least so often, since the clock of the machine may be set.
const LOOK: Duration = Duration::from_secs(60);
/// After so long it is asked again for what was not answered.
const AGAIN: Duration = Duration::from_secs(1);
/// What is said where nobody runs schedules.
const NOBODY_KNOWN: &str =
    "it is not known which broker runs schedules: the servers have not answered yet, or do not any more";
/// What is wrong with an occurrence that will not live to see its instant.
const EXPIRES_EARLY: &str = "the occurrence ahead expires before it is due: raise ttl_ms and max_ttl_ms of the queue (or of its policies, or the server's \
     default_ttl_ms)";

/// All schedules of a broker.
pub struct Schedules {
    desks: Desks,
    pub(crate) engine: Arc<dyn Engine>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) all: Mutex<All>,
    pub(crate) seen: Mutex<Seen>,
    pub(crate) runs: Runs,
    /// Something is to be looked at before its time.
    changed: Arc<Notify>,
}

/// A virtual host and a name in it.
pub(crate) type Key = (VhostId, Arc<str>);
pub(crate) type All = BTreeMap<Key, Entry>;

#[derive(Clone)]
pub(crate) struct Entry {
    pub(crate) schedule: Arc<Schedule>,
    pub(crate) state: State,
}

/// A schedule as it stands.
#[derive(Clone, Debug)]
pub struct ScheduleView {
    /// Its name.
    pub name: Arc<str>,
    /// What it is.
    pub schedule: Arc<Schedule>,
    /// The occurrences ahead, as many as were asked for. The first may have passed: then it is owed, because of `error`.
    pub next: Vec<Time>,
    /// What is wrong, if something is. Of schedules that another broker runs that one alone knows it.
    pub error: Option<Arc<str>>,
    /// The broker that runs all schedules; its name is known where there may be several.
    pub leader: Leader,
}

/// Why a schedule was not made, changed, shown or deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotScheduled {
    /// It cannot have this name.
    BadName,
    /// There is none of this name that one may see.
    NoSuchSchedule,
    /// There are too many.
    TooMany,
    /// It is too large.
    Unkeepable(Unkeepable),
    /// The queue keeps the last message of a key only, so that the next occurrence would take the place of one that waits to be taken.
    LastValue,
    /// The user may not, or the engine does not.
    NotDone(NotDone),
}

impl fmt::Display for NotScheduled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadName => {
                write!(f, "the name of a schedule is 1 to {NAME_LEN_MAX} bytes of text without control characters")
            }
            Self::NoSuchSchedule => f.write_str("there is no such schedule"),
            Self::TooMany => write!(f, "there are {SCHEDULES_MAX} schedules, and there may be no more"),
            Self::Unkeepable(why) => why.fmt(f),
            Self::LastValue => f.write_str(
                "the queue keeps only the last message of a key: each occurrence would take the place of the one before it",
            ),
            Self::NotDone(not) => not.fmt(f),
        }
    }
}

impl std::error::Error for NotScheduled {}

impl From<NotDone> for NotScheduled {
    fn from(not: NotDone) -> Self {
        Self::NotDone(not)
    }
}

impl From<Denied> for NotScheduled {
    fn from(denied: Denied) -> Self {
        Self::NotDone(denied.into())
    }
}

impl From<Failure> for NotScheduled {
    fn from(failure: Failure) -> Self {
        Self::NotDone(failure.into())
    }
}

impl Schedules {
    /// All that the engine remembers. One that cannot be read is left alone and said in the log.
    ///
    /// # Errors
    /// The engine does not answer.
    pub async fn open(
        engine: Arc<dyn Engine>,
        gate: Arc<Gate>,
        clock: Arc<dyn Clock>,
    ) -> Result<Arc<Self>, Failure> {
        let now = clock.now();
        let seen: Seen =
            engine.metadata().await?.into_iter().filter(|(key, _)| key.starts_with(ROOM)).collect();
        let all = seen.iter().filter_map(|(key, value)| read(now, key, value)).collect::<All>();
        let runs = Runs::new(engine.lead(WORK));
        let desks = Desks::new(Arc::clone(&engine), gate);
        let changed = Arc::new(Notify::new());
        let wake = Arc::clone(&changed);
        clock.on_jump(Box::new(move || wake.notify_one()));
        let (all, seen) = (Mutex::new(all), Mutex::new(seen));
        Ok(Arc::new(Self { desks, engine, clock, all, seen, runs, changed }))
    }

    /// Runs them, until it is dropped; where several brokers are on the same servers, whenever this one is to.
    pub async fn run(&self) {
        let _running = UntilDropped(&self.runs);
        let (mut versions, mut leader) = (self.engine.metadata_versions(), self.runs.watch());
        loop {
            let mut is_known = Ok(());
            if versions.is_some() {
                is_known = self.take_up().await;
            }
            let wake = self.look().await;
            if let Err(why) = &is_known {
                tracing::warn!(%why, "what other brokers change of schedules is not known here, and asked for again");
            }
            let again = async {
                match is_known {
                    Err(_) => tokio::time::sleep(AGAIN).await,
                    Ok(()) => std::future::pending().await,
                }
            };
            // Without schedules there is nothing to look at; while one comes a word is said.
            let pause = wake.some().and_then(|wake| self.clock.until(wake)).map(|pause| pause.min(LOOK));
            let asleep = async {
                match pause {
                    Some(pause) => tokio::time::sleep(pause).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = self.changed.notified() => {}
                () = changed(versions.as_mut()) => {}
                () = changed(Some(&mut leader)) => {}
                () = again => {}
                () = asleep => {}
            }
        }
    }

    /// Does what is to be done now. Answers when to look again.
    pub async fn look(&self) -> Time {
        let mut all = self.all.lock().await;
        self.look_at(&mut all).await
    }

    // ---- what users ask ----

    /// A schedule is so from now on. Write its queue, and that of the one of this name that is there. Answers whether it is new, and how
    /// it stands, with so many occurrences ahead.
    ///
    /// It is made also where its occurrence is refused for the moment; then it says so as its error.
    ///
    /// # Errors
    /// [`NotScheduled`].
    pub async fn put(
        self: &Arc<Self>,
        by: &Desk,
        name: &str,
        schedule: Schedule,
        ahead: usize,
    ) -> Result<(bool, ScheduleView), NotScheduled> {
        if check_name(name).is_err() || name.len() > NAME_LEN_MAX {
            return Err(NotScheduled::BadName);
        }
        let kept = schedule.encode().map_err(NotScheduled::Unkeepable)?;
        by.must_publish(&schedule.target())?;
        let queue = by.queue(&schedule.queue).await?;
        let settings = queue.effective_settings();
        if settings.last_value.is_some() {
            return Err(NotScheduled::LastValue);
        }
        settings.map_priority(&schedule.message.priority).map_err(Failure::from)?;
        let (this, by, key) = (Arc::clone(self), by.clone(), (queue.vhost, Arc::from(name)));
        // Whole, also where whoever asked has gone meanwhile.
        whole(async move { this.put_whole(&by, key, schedule, kept, ahead).await }).await
    }

    async fn put_whole(
        &self,
        by: &Desk,
        key: Key,
        schedule: Schedule,
        kept: Vec<u8>,
        ahead: usize,
    ) -> Result<(bool, ScheduleView), NotScheduled> {
        let mut all = self.all.lock().await;
        let before = all.get(&key).map(|entry| Arc::clone(&entry.schedule));
        match &before {
            None if all.len() >= SCHEDULES_MAX => return Err(NotScheduled::TooMany),
            Some(there) => by.must_publish(&there.target())?,
            None => {}
        }
        if before.as_deref() != Some(&schedule) {
            let written = match self.withdraw(&mut all, &key).await {
                Ok(()) => self.engine.set_metadata(vec![MetadataEntry::set(&name_of(&key), &kept)]).await,
                failed => failed,
            };
            if written.is_ok() {
                let state = State::new(self.clock.now(), &schedule.cron);
                let deed = Deed::of(Some(by.who()), "schedule.put", &*key.1).within(by.vhost());
                self.desks.gate().record(deed.from_to(before.as_deref().map(told), told(&schedule)));
                all.insert(key.clone(), Entry { schedule: Arc::new(schedule), state });
            }
            // What is ahead now, or again.
            self.look_at(&mut all).await;
            self.changed.notify_one();
            written?;
        }
        Ok((before.is_none(), self.view(&key, &all[&key], ahead)))
    }

    /// A schedule is gone, with the occurrence that waits; what is due already stays. Write its queue.
    ///
    /// # Errors
    /// [`NotScheduled`].
    pub async fn delete(self: &Arc<Self>, by: &Desk, name: &str) -> Result<(), NotScheduled> {
        let key = self.key(by, name).await?;
        let (this, by) = (Arc::clone(self), by.clone());
        whole(async move { this.delete_whole(&by, &key).await }).await
    }

    async fn delete_whole(&self, by: &Desk, key: &Key) -> Result<(), NotScheduled> {
        let mut all = self.all.lock().await;
        let entry = all.get(key).filter(|entry| sees(by, entry)).ok_or(NotScheduled::NoSuchSchedule)?;
        let before = Arc::clone(&entry.schedule);
        by.must_publish(&before.target())?;
        let written = match self.withdraw(&mut all, key).await {
            Ok(()) => self.forget(key).await,
            failed => failed,
        };
        if written.is_ok() {
            all.remove(key);
            let deed = Deed::of(Some(by.who()), "schedule.delete", &*key.1).within(by.vhost());
            self.desks.gate().record(deed.from_to(told(&before), Value::Null));
        }
        self.look_at(&mut all).await;
        Ok(written?)
    }

    /// A schedule, with so many occurrences ahead. Any right to its queue.
    ///
    /// # Errors
    /// [`NotScheduled`].
    pub async fn show(&self, by: &Desk, name: &str, ahead: usize) -> Result<ScheduleView, NotScheduled> {
        let key = self.key(by, name).await?;
        let all = self.all.lock().await;
        let entry = all.get(&key).filter(|entry| sees(by, entry)).ok_or(NotScheduled::NoSuchSchedule)?;
        Ok(self.view(&key, entry, ahead))
    }

    /// The schedules of a virtual host that one may see, by name, each with the occurrence ahead.
    ///
    /// # Errors
    /// [`NotScheduled`].
    pub async fn list(&self, by: &Desk) -> Result<Vec<ScheduleView>, NotScheduled> {
        by.must_look()?;
        let vhost = self.engine.vhost(by.vhost()).await?.vhost;
        let all = self.all.lock().await;
        let here = all.iter().filter(|((of, _), entry)| *of == vhost && sees(by, entry));
        Ok(here.map(|(key, entry)| self.view(key, entry, 1)).collect())
    }

    fn view(&self, (_, name): &Key, Entry { schedule, state }: &Entry, ahead: usize) -> ScheduleView {
        let (now, leader) = (self.clock.now(), self.runs.leader());
        let after = |at: &Time| schedule.cron.after((*at).max(now));
        let (first, error) = match &leader {
            Leader::Us { .. } => (state.ahead(), state.error().cloned()),
            Leader::Other { .. } => (schedule.cron.after(now), None),
            Leader::Unknown => (schedule.cron.after(now), Some(NOBODY_KNOWN.into())),
        };
        let next = std::iter::successors(first, after).take(ahead).collect();
        let (name, schedule) = (Arc::clone(name), Arc::clone(schedule));
        ScheduleView { name, schedule, next, error, leader }
    }

    async fn key(&self, by: &Desk, name: &str) -> Result<Key, NotScheduled> {
        by.must_look()?;
        Ok((self.engine.vhost(by.vhost()).await?.vhost, name.into()))
    }

    // ---- what happens by itself ----

    async fn look_at(&self, all: &mut All) -> Time {
        loop {
            if !self.runs.is_us() {
                return Time::NEVER;
            }
            self.begin_where_another_ended(all);
            let now = self.clock.now();
            self.begin_again(now, all).await;
            self.miss(all).await;
            let due: Vec<(Key, Time)> = all
                .iter_mut()
                .filter_map(|(key, entry)| Some((key.clone(), entry.state.due(now, &entry.schedule.cron)?)))
                .collect();
            if due.is_empty() {
                return all.values().map(|entry| entry.state.wake()).min().unwrap_or(Time::NEVER);
            }
            self.publish_all(now, all, due).await;
        }
    }

    /// Where the clock was far ahead, so are occurrences: they make room for those that are next.
    async fn begin_again(&self, now: Time, all: &mut All) {
        let astray = all.iter().filter(|(_, entry)| entry.state.is_astray(now));
        for key in astray.map(|(key, _)| key.clone()).collect::<Vec<_>>() {
            // What cannot be taken out now can be at the next look.
            if self.withdraw(all, &key).await.is_ok() {
                let entry = all.get_mut(&key).expect("nobody else changes them meanwhile");
                entry.state = State::new(now, &entry.schedule.cron);
            }
        }
    }

    /// An occurrence that waited in a queue which is gone is owed again, also where there is another queue of that name. One that was
    /// taken out of a queue that is still there is skipped.
    async fn miss(&self, all: &mut All) {
        let mut queues: BTreeMap<VhostId, BTreeSet<QueueId>> = BTreeMap::new();
        for ((vhost, _), entry) in all.iter() {
            queues.entry(*vhost).or_default().extend(entry.state.waits_in());
        }
        for (vhost, queues) in queues {
            let queues: Vec<QueueId> = queues.into_iter().collect();
            // The next look asks again.
            let Ok(names) = self.engine.in_vhost(vhost).queue_names(queues.clone()).await else { continue };
            let gone = queues.into_iter().zip(names).filter(|(_, name)| name.is_none());
            let gone: BTreeSet<QueueId> = gone.map(|(queue, _)| queue).collect();
            let here = all.iter_mut().filter(|((of, _), _)| *of == vhost).map(|(_, entry)| entry);
            here.filter(|entry| entry.state.waits_in().is_some_and(|queue| gone.contains(&queue)))
                .for_each(|entry| entry.state.withdrawn());
        }
    }

    async fn publish_all(&self, now: Time, all: &mut All, due: Vec<(Key, Time)>) {
        let vhosts = self.engine.vhosts().await;
        let vhosts = vhosts
            .map(|all| all.into_iter().map(|vhost| (vhost.vhost, vhost.name)).collect::<BTreeMap<_, _>>());
        let mut under_way = JoinSet::new();
        for (key, at) in due {
            let vhost = match &vhosts {
                Ok(vhosts) => vhosts.get(&key.0).cloned(),
                Err(failure) => {
                    refused(all, now, &key, &failure.clone().into());
                    continue;
                }
            };
            let Some(vhost) = vhost else {
                tracing::info!(schedule = &*key.1, "its virtual host is gone, and the schedule with it");
                match self.forget(&key).await {
                    Ok(()) => drop(all.remove(&key)),
                    Err(failure) => refused(all, now, &key, &failure.into()),
                }
                continue;
            };
            let schedule = Arc::clone(&all[&key].schedule);
            let (desks, engine) = (self.desks.clone(), self.engine.in_vhost(key.0));
            under_way.spawn(async move {
                let published = publish(&desks, &*engine, &vhost, &schedule, now, &key.1, at).await;
                (key, published)
            });
        }
        while let Some(done) = under_way.join_next().await {
            match done.expect("a publish does not panic") {
                (key, Ok((queue, error))) => {
                    let entry = all.get_mut(&key).expect("nobody else changes them meanwhile");
                    if entry.state.published(queue, error) {
                        tracing::info!(schedule = &*key.1, "it is published again");
                    }
                }
                (key, Err(not)) => refused(all, now, &key, &not),
            }
        }
    }

    /// Takes the occurrence that waits out of its queue, if it does. One whose instant has passed stays.
    pub(crate) async fn withdraw(&self, all: &mut All, key: &Key) -> Result<(), Failure> {
        let Some(Entry { schedule, state }) = all.get_mut(key) else { return Ok(()) };
        if !self.runs.is_us() {
            *state = State::new(self.clock.now(), &schedule.cron);
        }
        let Some(at) = state.ahead().filter(|at| *at > self.clock.now()) else { return Ok(()) };
        let (engine, id) = (self.engine.in_vhost(key.0), occurrence_id(&key.1, at));
        state.withdrawn();
        let waits = match engine.message(&schedule.queue, &id).await {
            Ok(seen) => seen.message.status == Status::Delayed,
            // It is not there, or its queue is not.
            Err(Failure::Refused(_)) => false,
            Err(failure) => return Err(failure),
        };
        if !waits {
            return Ok(());
        }
        match engine.remove(&schedule.queue, Select::Id(id)).await {
            Ok(_) => Ok(()),
            Err(Failure::Refused(refused)) if refused.refusal == Refusal::NoSuchMessage => Ok(()),
            Err(failure) => Err(failure),
        }
    }

    async fn forget(&self, key: &Key) -> Result<(), Failure> {
        self.engine.set_metadata(vec![MetadataEntry::remove(&name_of(key))]).await
    }
}

impl fmt::Debug for Schedules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Schedules")
    }
}

/// Publishes the occurrence at an instant, with the rights that its user has now. Answers in which queue it is, and what is wrong with it
/// all the same.
async fn publish(
    desks: &Desks,
    engine: &dyn Engine,
    vhost: &str,
    schedule: &Schedule,
    now: Time,
    name: &str,
    at: Time,
) -> Result<(Option<QueueId>, Option<Arc<str>>), NotDone> {
    let desk = desks.desk(desks.gate().on_behalf_of(&schedule.user), vhost).await?;
    // Asked before: should there be another queue in its place meanwhile, the next look publishes into that one, too.
    let queue = engine.queue(&schedule.queue).await.ok().map(|view| view.queue);
    desk.publish(vec![schedule.occurrence(now, name, at)]).await?;
    let seen = engine.message(&schedule.queue, &occurrence_id(name, at)).await.ok();
    let expires =
        seen.filter(|seen| seen.message.status == Status::Delayed).and_then(|seen| seen.message.expires);
    Ok((queue, expires.filter(|expires| *expires <= at).map(|_| EXPIRES_EARLY.into())))
}

fn refused(all: &mut All, now: Time, key: &Key, not: &NotDone) {
    let Some(entry) = all.get_mut(key) else { return };
    let why: Arc<str> = not.to_string().into();
    if entry.state.refused(now, Arc::clone(&why)) {
        let queue = &*entry.schedule.queue;
        tracing::warn!(schedule = &*key.1, queue, "not published, and tried again: {why}");
    }
}

/// What is done although nobody waits for it any more.
async fn whole<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> T {
    match tokio::spawn(work).await {
        Ok(done) => done,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

fn sees(by: &Desk, entry: &Entry) -> bool {
    by.who().sees(by.vhost(), &entry.schedule.queue)
}

/// Once something is different; never where nothing will be.
async fn changed<T>(watch: Option<&mut watch::Receiver<T>>) {
    let is_changed = match watch {
        Some(watch) => watch.changed().await.is_ok(),
        None => false,
    };
    if !is_changed {
        std::future::pending().await
    }
}

/// What is written down of one: not what it publishes.
fn told(schedule: &Schedule) -> Value {
    let Schedule { queue, cron, user, .. } = schedule;
    json!({"queue": queue, "cron": cron.line(), "timezone": cron.timezone(), "user": user})
}

fn name_of((vhost, name): &Key) -> String {
    format!("{ROOM}{}/{}", vhost.0, utf8_percent_encode(name, NON_ALPHANUMERIC))
}

pub(crate) fn key_of(ours: &str) -> Option<Key> {
    let (vhost, name) = ours.split_once('/')?;
    let name = percent_decode_str(name).decode_utf8().ok()?;
    Some((VhostId(vhost.parse().ok()?), name.into()))
}
