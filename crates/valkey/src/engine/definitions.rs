//! What queues, exchanges, bindings, policies, virtual hosts and metadata there are: a log in the servers, and what this process has read of it, folded into a broker
//! without messages.
//!
//! A change is tried on another broker of the same first, which says what it declines and what becomes true; what becomes true is added to the log behind the version that it was tried at. Where
//! somebody else was quicker, that is read and it is tried again. So every process comes to the same, and none is in charge; and nobody sees what is only being tried.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use overtake_engine::Failure;
use overtake_lane::{Asker, Broker, Command, Fact, Options, QueueId, Refusal, Reply, SessionId, Step, Time};
use overtake_store::record::{Content, Decoder, encode};
use tokio::sync::{Mutex as Turn, watch};
use tokio::time::Instant;

use crate::cluster::Cluster;
use crate::functions::{DEFINITIONS, Define, Defined, Malformed, Read, Rebase};

/// Entries that are read at once.
const READ_MAX: u32 = 1_000;
/// So many entries behind the base all of it is said anew.
const REBASE_AFTER: u64 = 1_000;
/// Longest that a change waits for the servers.
const PATIENCE: Duration = Duration::from_secs(10);
/// The form of entries and bases.
const FORM: u8 = 1;

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
}

/// What is known of it.
#[derive(Debug)]
struct Known {
    /// It is asked at time 0 always: nothing of it happens by itself.
    broker: Broker,
    version: u64,
    /// The version of the base, as it was last seen.
    base: u64,
    /// The highest number that a queue ever had.
    last_queue: Option<u32>,
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
    /// The highest number of a queue that was declared.
    last_queue: Option<u32>,
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
        Self { broker, version: 0, base: 0, last_queue: None, declared, ruled: 0, metadata: 0 }
    }

    /// Takes the facts of the next entry, which somebody of this session brought about.
    fn fold(&mut self, facts: &[u8], session: Option<SessionId>) -> Result<(), String> {
        let folded = fold(&mut self.broker, facts, session)?;
        self.version += 1;
        self.last_queue = self.last_queue.max(folded.last_queue);
        self.declared.extend(folded.declared.into_iter().map(|queue| (queue, self.version)));
        for queue in folded.deleted {
            self.declared.remove(&queue);
        }
        if folded.rules {
            self.ruled = self.version;
        }
        if folded.metadata {
            self.metadata = self.version;
        }
        Ok(())
    }

    /// A version since which the same holds for a queue: the last that may have changed it, or the base where that is older.
    fn since(&self, queue: QueueId) -> u64 {
        self.declared.get(&queue).copied().unwrap_or(0).max(self.ruled)
    }

    /// The same to try changes on.
    fn copied(&self, options: Options) -> Broker {
        let copied = read_base(options, self.version, &base_of(self));
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
                folded.last_queue = folded.last_queue.max(Some(queue.0));
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

/// All that is true: the highest number of a queue, whose queues are whose, and facts.
fn base_of(known: &Known) -> Vec<u8> {
    let mut base = vec![FORM];
    base.extend(known.last_queue.map_or(0, |last| u64::from(last) + 1).to_be_bytes());
    let owned: Vec<(QueueId, SessionId)> = known.broker.owned().collect();
    base.extend((owned.len() as u32).to_be_bytes());
    for (queue, session) in owned {
        base.extend(queue.0.to_be_bytes());
        base.extend(session.0.to_be_bytes());
    }
    known.broker.topology_facts().iter().for_each(|fact| encode(fact, Content::None, &mut base));
    base
}

fn read_base(options: Options, version: u64, base: &[u8]) -> Result<Known, String> {
    let mut known =
        Known { version, base: version, ruled: version, metadata: version, ..Known::new(options) };
    if base.is_empty() {
        return Ok(known);
    }
    fold_base(&mut known, base)
        .ok_or("definitions are of a form that this program does not know: run the newer one")??;
    Ok(known)
}

fn fold_base(known: &mut Known, base: &[u8]) -> Option<Result<(), String>> {
    let (form, rest) = base.split_first()?;
    let (queues, rest) = rest.split_first_chunk::<8>()?;
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
    known.last_queue = u64::from_be_bytes(*queues).checked_sub(1).map(|last| last as u32);
    if let Some(last) = known.last_queue {
        known.broker.never_again(QueueId(last));
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
    /// Reads what there is.
    ///
    /// # Errors
    /// Why that cannot be read.
    pub(super) async fn open(
        cluster: Arc<Cluster>,
        options: Options,
        process: u32,
    ) -> Result<Arc<Self>, Failure> {
        let ((version, _), (metadata, _)) = (watch::channel(0), watch::channel(0));
        let known = Mutex::new(Known::new(options));
        let (entries, trial) = (AtomicU64::new(0), Turn::new(None));
        let all = Arc::new(Self { cluster, options, process, entries, known, trial, version, metadata });
        all.follow().await?;
        Ok(all)
    }

    /// What is known.
    pub(super) fn with<T>(&self, look: impl FnOnce(&Broker) -> T) -> T {
        look(&self.known.lock().expect("nobody panics with it").broker)
    }

    /// Whether this queue is there, as far as is known.
    pub(super) fn has(&self, queue: QueueId) -> bool {
        self.with(|broker| broker.name(queue).is_some())
    }

    /// As [`Definitions::with`], and a version since which what is known of this queue holds.
    pub(super) fn since<T>(&self, queue: QueueId, look: impl FnOnce(&Broker, u64) -> T) -> T {
        let known = self.known.lock().expect("nobody panics with it");
        look(&known.broker, known.since(queue))
    }

    /// Told whenever metadata has changed.
    pub(super) fn metadata_versions(&self) -> watch::Receiver<u64> {
        self.metadata.subscribe()
    }

    /// Tells what is known now.
    fn tell(&self, known: &Known) {
        self.version.send_replace(known.version);
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
            let after = self.known.lock().expect("nobody panics with it").version;
            let Defined { last, after, base, entries } = self.read(after).await?;
            let mut known = self.known.lock().expect("nobody panics with it");
            if let Some(base) = base {
                *known = read_base(self.options, after, &base).map_err(unavailable)?;
                *trial = None;
            }
            for entry in entries {
                let (session, facts) = read_entry(&entry).ok_or_else(|| {
                    unavailable(
                        "definitions are of a form that this program does not know: run the newer one",
                    )
                })?;
                known.fold(facts, session).map_err(unavailable)?;
                if trial.as_mut().is_some_and(|trial| fold(trial, facts, session).is_err()) {
                    *trial = None;
                }
            }
            if known.version >= last {
                self.tell(&known);
                return Ok(());
            }
        }
    }

    async fn read(&self, after: u64) -> Result<Defined, Failure> {
        let call = Read { after, limit: READ_MAX }.call();
        let value = self.cluster.call(Instant::now() + PATIENCE, call).await.map_err(unavailable)?;
        Read::read(&value).map_err(malformed)
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
                let known = self.known.lock().expect("nobody panics with it");
                (trial.take().unwrap_or_else(|| known.copied(self.options)), known.version)
            };
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
            if Define::is_added(&value).map_err(malformed)? {
                self.added(&entry).await;
                *trial = Some(tried);
                return Ok(done);
            }
            self.catch_up(&mut trial).await?;
        }
    }

    /// An entry of this process is the last one.
    async fn added(&self, entry: &[u8]) {
        let rebase = {
            let mut known = self.known.lock().expect("nobody panics with it");
            let (session, facts) = read_entry(entry).expect("it was written here");
            known.fold(facts, session).expect("what was found to be so is so");
            self.tell(&known);
            (known.version - known.base >= REBASE_AFTER).then(|| {
                known.base = known.version;
                Rebase { at: known.version, base: base_of(&known) }
            })
        };
        if let Some(rebase) = rebase {
            // Another will, after as many more.
            let _ = self.cluster.call(Instant::now() + PATIENCE, rebase.call()).await;
        }
    }
}

/// Reads what others define, as it is told, for as long as somebody has the definitions.
pub(super) async fn listen(definitions: std::sync::Weak<Definitions>) {
    let Some(cluster) = definitions.upgrade().map(|all| Arc::clone(&all.cluster)) else { return };
    let mut heard = cluster.subscribe(DEFINITIONS.into()).await;
    drop(cluster);
    while heard.next().await.is_some() {
        let Some(all) = definitions.upgrade() else { return };
        let mut is_told = false;
        while let Err(why) = all.follow().await {
            if !std::mem::replace(&mut is_told, true) {
                tracing::warn!(%why, "definitions cannot be read; what others declare is not known here until they can");
            }
        }
        if is_told {
            tracing::info!("definitions can be read again");
        }
    }
}
