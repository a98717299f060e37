//! What queues, exchanges, bindings, policies, virtual hosts and metadata there are: a log in the servers, and what this process has read of it, folded into a broker
//! without messages.
//!
//! A change is tried on another broker of the same first, which says what it declines and what becomes true; what becomes true is added to the log behind the version that it was tried at. Where
//! somebody else was quicker, that is read and it is tried again. So every process comes to the same, and none is in charge; and nobody sees what is only being tried.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use overtake_engine::Failure;
use overtake_lane::{Asker, Broker, Command, Fact, Options, QueueId, Refusal, Reply, SessionId, Step, Time};
use overtake_store::record::{Content, Decoder, encode};
use tokio::sync::{Mutex as Turn, watch};
use tokio::time::Instant;

use super::history::{Course, History};
use crate::cluster::Cluster;
use crate::functions::{DEFINITIONS, Define, Defined, Malformed, Of, Read, Rebase, Restate, Version, random};

/// Entries that are read at once.
const READ_MAX: u32 = 1_000;
/// So many entries behind the base all of it is said anew.
const REBASE_AFTER: u64 = 1_000;
/// Longest that a change waits for the servers.
const PATIENCE: Duration = Duration::from_secs(10);
/// Longest that a process waits, where there are no definitions, for others that know what they were.
const SAY_PATIENCE: Duration = Duration::from_secs(5);
/// Between two looks whether they have said it.
const SAY_LOOK: Duration = Duration::from_millis(20);
/// The form of entries and bases.
const FORM: u8 = 1;
/// Error where a part of the definitions is lost and no broker runs that knows them.
const DAMAGED: &str = "the servers have lost a part of the definitions, and no broker runs that knows them: restore a backup of the keys {overtake}:definitions*, or delete these keys and begin anew: the queues are then found by `overtake cluster orphans`";
/// Error where a newer program wrote them.
const UNKNOWN_FORM: &str = "definitions are of a form that this program does not know: run the newer one";

/// What is defined.
pub(super) struct Definitions {
    cluster: Arc<Cluster>,
    options: Options,
    /// The number of this process, by which its entries are told from those of others.
    process: u32,
    entries: AtomicU64,
    known: Mutex<Known>,
    /// What changes are tried on. Whoever changes or reads definitions has it, alone; `None`: it is made anew of what is known.
    trial: Turn<Option<Broker>>,
    /// The version that is known.
    version: watch::Sender<u64>,
    /// The last version that is known to have changed metadata.
    metadata: watch::Sender<u64>,
    /// Least version that the definitions are to have: places have heard of the one before.
    least: AtomicU64,
    replaced: watch::Sender<u64>,
    went_back: watch::Sender<u64>,
}

/// What is known of it.
#[derive(Debug)]
struct Known {
    /// It is asked at time 0 always: nothing of it happens by itself.
    broker: Broker,
    /// Where it is in the history of definitions.
    history: History,
    /// The version of the base, as it was last seen.
    base: u64,
    /// Queues that were declared since the base was read, by the version that last did.
    declared: BTreeMap<QueueId, u64>,
    /// The last version since then that may hold for all queues.
    ruled: u64,
    /// The last version that changed metadata, or the base where that is younger.
    metadata: u64,
}

/// What facts have changed, so far as it matters to queues.
#[derive(Default)]
struct Folded {
    declared: Vec<QueueId>,
    deleted: Vec<QueueId>,
    /// What holds for queues that are there may be different.
    rules: bool,
    /// Metadata is different.
    metadata: bool,
}

impl Known {
    fn new(options: Options) -> Self {
        let (broker, declared) = (Broker::new(options), BTreeMap::new());
        Self { broker, history: History::none(), base: 0, declared, ruled: 0, metadata: 0 }
    }

    fn version(&self) -> u64 {
        self.history.version().number
    }

    /// Takes the facts of the next entry, of this version, which somebody of this session brought about.
    fn fold(&mut self, facts: &[u8], session: Option<SessionId>, version: Version) -> Result<(), String> {
        let folded = fold(&mut self.broker, facts, session)?;
        let number = version.number;
        self.history.go_on(version);
        self.declared.extend(folded.declared.into_iter().map(|queue| (queue, number)));
        for queue in folded.deleted {
            self.declared.remove(&queue);
        }
        if folded.rules {
            self.ruled = number;
        }
        if folded.metadata {
            self.metadata = number;
        }
        Ok(())
    }

    /// A version since which the same holds for a queue: the last that may have changed it, or the base where that is older.
    fn since(&self, queue: QueueId) -> u64 {
        self.declared.get(&queue).copied().unwrap_or(0).max(self.ruled)
    }

    /// The same to try changes on.
    fn copied(&self, options: Options) -> Broker {
        let copied = read_base(options, self.history.clone(), &base_of(self));
        copied.expect("what is known makes sense").broker
    }
}

/// Has a broker take facts, which somebody of this session brought about.
fn fold(broker: &mut Broker, facts: &[u8], session: Option<SessionId>) -> Result<Folded, String> {
    let senseless =
        |error: &dyn fmt::Display| format!("definitions make no sense: {error}; is a newer program at work?");
    let mut folded = Folded::default();
    for fact in Decoder::new(facts) {
        let (fact, _) = fact.map_err(|error| senseless(&error))?;
        let mut made = None;
        match &fact {
            Fact::QueueStored { queue, identity, .. } => {
                folded.declared.push(*queue);
                made = identity.exclusive.then_some(*queue);
            }
            Fact::QueueDeleted { queue } => folded.deleted.push(*queue),
            Fact::VhostStored { .. } | Fact::PolicyStored { .. } | Fact::PolicyRemoved { .. } => {
                folded.rules = true;
            }
            Fact::MetadataStored { .. } | Fact::MetadataRemoved { .. } => folded.metadata = true,
            _ => {}
        }
        broker.fold(fact, &mut Step::default()).map_err(|error| senseless(&error))?;
        if let Some(queue) = made {
            broker.own(queue, session);
        }
    }
    Ok(folded)
}

/// The head of an entry: who wrote it, the how manieth of its entries, and of which session it is.
fn entry_of(process: u32, number: u64, session: Option<SessionId>, facts: &[Fact]) -> Vec<u8> {
    let mut entry = vec![FORM];
    entry.extend(process.to_be_bytes());
    entry.extend(number.to_be_bytes());
    entry.extend(session.map_or(0, |session| session.0).to_be_bytes());
    facts.iter().for_each(|fact| encode(fact, Content::None, &mut entry));
    entry
}

/// The session of an entry, and its facts.
fn read_entry(entry: &[u8]) -> Option<(Option<SessionId>, &[u8])> {
    let (head, facts) = entry.split_at_checked(21)?;
    let session = u64::from_be_bytes(head[13..].try_into().ok()?);
    (head[0] == FORM).then_some(((session != 0).then_some(SessionId(session)), facts))
}

/// All that is true: eight bytes in which older versions had the highest number of a queue, whose queues are whose, and facts.
fn base_of(known: &Known) -> Vec<u8> {
    let mut base = vec![FORM];
    base.extend(0_u64.to_be_bytes());
    let owned: Vec<(QueueId, SessionId)> = known.broker.owned().collect();
    base.extend((owned.len() as u32).to_be_bytes());
    for (queue, session) in owned {
        base.extend(queue.0.to_be_bytes());
        base.extend(session.0.to_be_bytes());
    }
    known.broker.topology_facts().iter().for_each(|fact| encode(fact, Content::None, &mut base));
    base
}

fn read_base(options: Options, history: History, base: &[u8]) -> Result<Known, String> {
    let version = history.version().number;
    let mut known =
        Known { history, base: version, ruled: version, metadata: version, ..Known::new(options) };
    if base.is_empty() {
        return Ok(known);
    }
    fold_base(&mut known, base).ok_or(UNKNOWN_FORM)??;
    Ok(known)
}

fn fold_base(known: &mut Known, base: &[u8]) -> Option<Result<(), String>> {
    let (form, rest) = base.split_first()?;
    let (_, rest) = rest.split_first_chunk::<8>()?;
    let (count, mut rest) = rest.split_first_chunk::<4>()?;
    let mut owned = Vec::new();
    for _ in 0..u32::from_be_bytes(*count) {
        let (queue, after) = rest.split_first_chunk::<4>()?;
        let (session, after) = after.split_first_chunk::<8>()?;
        owned.push((QueueId(u32::from_be_bytes(*queue)), SessionId(u64::from_be_bytes(*session))));
        rest = after;
    }
    if *form != FORM {
        return None;
    }
    if let Err(why) = fold(&mut known.broker, rest, None) {
        return Some(Err(why));
    }
    for (queue, session) in owned {
        known.broker.own(queue, Some(session));
    }
    Some(Ok(()))
}

fn unavailable(why: impl ToString) -> Failure {
    Failure::Unavailable(why.to_string().into())
}

fn malformed(error: Malformed) -> Failure {
    unavailable(error)
}

impl Definitions {
    /// Reads what there is; where there is nothing, they begin here. `told`: so many other processes were told that there is nothing, who may know what there was, and say it.
    ///
    /// # Errors
    /// Why that cannot be read.
    pub(super) async fn open(
        cluster: Arc<Cluster>,
        options: Options,
        (process, told): (u32, u64),
    ) -> Result<Arc<Self>, Failure> {
        let ((version, _), (metadata, _)) = (watch::channel(0), watch::channel(0));
        let known = Mutex::new(Known::new(options));
        let (entries, trial) = (AtomicU64::new(0), Turn::new(None));
        let (least, replaced, went_back) = (AtomicU64::new(0), watch::Sender::new(0), watch::Sender::new(0));
        let all = Arc::new(Self {
            cluster,
            options,
            process,
            entries,
            known,
            trial,
            version,
            metadata,
            least,
            replaced,
            went_back,
        });
        let patience = Instant::now() + SAY_PATIENCE;
        let mut followed = all.follow().await;
        while told > 0 && all.incarnation().is_empty() && Instant::now() < patience {
            tokio::time::sleep(SAY_LOOK).await;
            followed = all.follow().await;
        }
        followed?;
        while all.incarnation().is_empty() {
            all.begin().await?;
            all.follow().await?;
        }
        Ok(all)
    }

    /// Has there be definitions, where there are none.
    async fn begin(&self) -> Result<(), Failure> {
        let base = base_of(&self.lock());
        let at = Version { number: 1, tag: random().into() };
        self.restate(Restate { now: Version::none(), incarnation: random().into(), at, base }).await
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().expect("nobody panics with it")
    }

    /// The incarnation of the definitions, as far as is known; empty: there are none.
    pub(super) fn incarnation(&self) -> Box<str> {
        self.lock().history.incarnation().into()
    }

    /// The owner that places of this queue name.
    pub(super) fn of(&self, queue: QueueId) -> Option<Of> {
        let known = self.lock();
        let vhost = known.broker.vhost_name(known.broker.vhost_of(queue)?)?;
        Some(Of::queue(known.history.incarnation(), vhost, known.broker.name(queue)?))
    }

    /// Told whenever others than were known hold: the servers have gone back, and then on.
    pub(super) fn replaced(&self) -> watch::Receiver<u64> {
        self.replaced.subscribe()
    }

    /// How often they went back in the servers, as far as this process has seen it.
    pub(super) fn went_back(&self) -> watch::Receiver<u64> {
        self.went_back.subscribe()
    }

    /// Has them be of a later version than this, which a place has heard of: they went back, when no process knew what they said.
    pub(super) async fn go_past(&self, version: u64) -> Result<(), Failure> {
        let mut trial = self.trial.lock().await;
        self.catch_up(&mut trial).await?;
        let last = self.lock().version();
        if last < version {
            tracing::warn!(
                version = last,
                seen = version,
                "the definitions in the servers went back: there is a place of a later version; queues that were declared since are not known, see `overtake cluster orphans`"
            );
            self.went_back.send_modify(|times| *times += 1);
            self.least.fetch_max(version + 1, Ordering::Relaxed);
            self.catch_up(&mut trial).await?;
        }
        Ok(())
    }

    /// What is known.
    pub(super) fn with<T>(&self, look: impl FnOnce(&Broker) -> T) -> T {
        look(&self.lock().broker)
    }

    /// Whether this queue is there, as far as is known.
    pub(super) fn has(&self, queue: QueueId) -> bool {
        self.with(|broker| broker.name(queue).is_some())
    }

    /// As [`Definitions::with`], and a version since which what is known of this queue holds.
    pub(super) fn since<T>(&self, queue: QueueId, look: impl FnOnce(&Broker, u64) -> T) -> T {
        let known = self.lock();
        look(&known.broker, known.since(queue))
    }

    /// Told whenever metadata has changed.
    pub(super) fn metadata_versions(&self) -> watch::Receiver<u64> {
        self.metadata.subscribe()
    }

    /// Tells what is known now.
    fn tell(&self, known: &Known) {
        self.version.send_replace(known.version());
        self.metadata.send_if_modified(|told| std::mem::replace(told, known.metadata) != known.metadata);
    }

    /// Told whenever there is a new version.
    pub(super) fn versions(&self) -> watch::Receiver<u64> {
        self.version.subscribe()
    }

    /// Reads what is new.
    ///
    /// # Errors
    /// Why that cannot be read.
    pub(super) async fn follow(&self) -> Result<(), Failure> {
        let mut trial = self.trial.lock().await;
        self.catch_up(&mut trial).await
    }

    async fn catch_up(&self, trial: &mut Option<Broker>) -> Result<(), Failure> {
        loop {
            let after = self.lock().history.version().clone();
            let defined = self.read(after).await?;
            let restate = self.take(defined, trial).map_err(unavailable)?;
            match restate {
                Taken::Everything => return Ok(()),
                Taken::Some => {}
                Taken::Older(restate) => self.restate(restate).await?,
            }
        }
    }

    /// Takes what the servers said.
    fn take(&self, defined: Defined, trial: &mut Option<Broker>) -> Result<Taken, String> {
        let mut known = self.lock();
        let course = known.history.compare(&defined);
        let Defined { last, incarnation, after, base, entries, .. } = defined;
        match course {
            Course::Back => {
                let at = known.history.version().clone();
                self.went_back.send_modify(|times| *times += 1);
                tracing::warn!(
                    from = at.number,
                    to = last.number,
                    "the definitions in the servers went back to an older version, or some of them are lost; this broker knows them, and writes them back"
                );
                let incarnation = known.history.incarnation().into();
                return Ok(Taken::Older(Restate { now: last, incarnation, at, base: base_of(&known) }));
            }
            Course::On => {}
            Course::Damaged => return Err(DAMAGED.to_owned()),
            Course::Anew | Course::Elsewhere => {
                let before = known.version();
                let base = base.unwrap_or_default();
                *known = read_base(self.options, History::from(incarnation, after), &base)?;
                *trial = None;
                if course == Course::Elsewhere {
                    tracing::error!(
                        from = before,
                        to = last.number,
                        "the definitions in the servers went back, and others were written since, which hold from now on; messages of queues that they do not know are kept apart, see `overtake cluster orphans`"
                    );
                    self.went_back.send_modify(|times| *times += 1);
                    self.least.fetch_max(before + 1, Ordering::Relaxed);
                    self.replaced.send_modify(|times| *times += 1);
                }
            }
        }
        let mut version = known.version();
        for (entry, tag) in entries {
            version += 1;
            let (session, facts) = read_entry(&entry).ok_or(UNKNOWN_FORM)?;
            known.fold(facts, session, Version { number: version, tag })?;
            if trial.as_mut().is_some_and(|trial| fold(trial, facts, session).is_err()) {
                *trial = None;
            }
        }
        if version < last.number {
            return Ok(Taken::Some);
        }
        let least = self.least.load(Ordering::Relaxed);
        if version < least {
            let incarnation = known.history.incarnation().into();
            let at = Version { number: least, tag: random().into() };
            return Ok(Taken::Older(Restate { now: last, incarnation, at, base: base_of(&known) }));
        }
        self.tell(&known);
        Ok(Taken::Everything)
    }

    async fn read(&self, after: Version) -> Result<Defined, Failure> {
        let call = Read { after: after.clone(), limit: READ_MAX }.call();
        let value = self.cluster.call(Instant::now() + PATIENCE, call).await.map_err(unavailable)?;
        Read::read(&value, &after).map_err(malformed)
    }

    /// Writes definitions that begin or went back, unless another process has written some meanwhile.
    async fn restate(&self, restate: Restate) -> Result<(), Failure> {
        let value =
            self.cluster.call(Instant::now() + PATIENCE, restate.call()).await.map_err(unavailable)?;
        Restate::is_done(&value).map(drop).map_err(malformed)
    }

    /// Does one command.
    ///
    /// # Errors
    /// Why it is declined, or cannot be done.
    pub(super) async fn apply(&self, asker: Asker, command: Command) -> Result<Reply, Failure> {
        self.change(asker, |broker, step| broker.apply_by(Time(0), asker, command.clone(), step)).await
    }

    /// Changes what is defined: all or nothing of what this does, which may be tried more than once.
    ///
    /// # Errors
    /// Why it is declined, or cannot be done.
    pub(super) async fn change<T>(
        &self,
        asker: Asker,
        mut change: impl FnMut(&mut Broker, &mut Step) -> Result<T, Refusal>,
    ) -> Result<T, Failure> {
        let mut trial = self.trial.lock().await;
        loop {
            let (mut tried, after) = {
                let known = self.lock();
                (trial.take().unwrap_or_else(|| known.copied(self.options)), known.history.version().clone())
            };
            tried.number_from(random_number());
            let mut step = Step::default();
            let done = change(&mut tried, &mut step);
            if step.facts.is_empty() {
                *trial = Some(tried);
                return done.map_err(Failure::from);
            }
            let done = done?;
            let number = self.entries.fetch_add(1, Ordering::Relaxed);
            let entry = entry_of(self.process, number, asker.session, &step.facts);
            let call = Define { after, entry: entry.clone() }.call();
            let value = self.cluster.call(Instant::now() + PATIENCE, call).await.map_err(unavailable)?;
            if let Some(version) = Define::added(&value).map_err(malformed)? {
                self.added(&entry, version).await;
                *trial = Some(tried);
                return Ok(done);
            }
            self.catch_up(&mut trial).await?;
        }
    }

    /// An entry of this process is the last one.
    async fn added(&self, entry: &[u8], version: Version) {
        let rebase = {
            let mut known = self.lock();
            let (session, facts) = read_entry(entry).expect("it was written here");
            known.fold(facts, session, version.clone()).expect("what was found to be so is so");
            self.tell(&known);
            (version.number - known.base >= REBASE_AFTER).then(|| {
                known.base = version.number;
                Rebase { at: version, base: base_of(&known) }
            })
        };
        if let Some(rebase) = rebase {
            // Another will, after as many more.
            let _ = self.cluster.call(Instant::now() + PATIENCE, rebase.call()).await;
        }
    }
}

/// The outcome of an answer of the servers.
enum Taken {
    /// Nothing more is to be read.
    Everything,
    /// There is more.
    Some,
    /// The servers are to be told this.
    Older(Restate),
}

/// The number of a new queue or virtual host, unless it is in use: no counter, since what is counted in the servers may go back.
fn random_number() -> u32 {
    // With some room above it, for several at once.
    getrandom::u32().expect("the system has random bits") >> 1
}

/// Between two looks at what others define, of which nothing was heard: an announcement may be lost.
const LOOK: Duration = Duration::from_millis(500);

/// Reads what others define, as it is told and every half second, for as long as somebody has the definitions.
pub(super) async fn listen(definitions: std::sync::Weak<Definitions>) {
    let Some(cluster) = definitions.upgrade().map(|all| Arc::clone(&all.cluster)) else { return };
    let mut heard = cluster.subscribe(DEFINITIONS.into()).await;
    drop(cluster);
    while tokio::time::timeout(LOOK, heard.next()).await != Ok(None) {
        let Some(all) = definitions.upgrade() else { return };
        let mut is_told = false;
        while let Err(why) = all.follow().await {
            if !std::mem::replace(&mut is_told, true) {
                tracing::warn!(%why, "definitions cannot be read; what others declare is not known here until they can");
            }
            tokio::time::sleep(LOOK).await;
        }
        if is_told {
            tracing::info!("definitions can be read again");
        }
    }
}
