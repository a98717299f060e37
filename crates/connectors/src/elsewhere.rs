//! Several brokers on the same servers: each connector works at one of them, and each broker knows what the others make, change, pause and delete.
//!
//! ```text
//!   metadata changed ─▶ take_up: the same connectors as everywhere ─┐
//!   another leads ────────────────────────────────────────────────▶ settle: works here, or does not
//!                     └─▶ aborted at once, whatever else goes on
//! ```

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use overtake_engine::{Failure, Leader, Leadership};
use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;

use crate::connector::{Connector, Control, Provenance, Running};
use crate::registry::{All, Entry, Kept, Key, Registry, end, key_of, room};

/// Work that could not begin is tried again so often.
const AGAIN: Duration = Duration::from_secs(10);
/// A wish to lead is waited for no longer than this before somebody is answered.
const KNOWN: Duration = Duration::from_secs(2);

/// Metadata as it was read last: what has not changed since is not read again.
pub(crate) type Seen = BTreeMap<Arc<str>, Arc<[u8]>>;

/// Work that goes on here, until another broker may begin with it.
pub(crate) struct Here<V> {
    pub(crate) running: Running<V>,
    is_lost: Arc<AtomicBool>,
    _watching: Watching,
}

/// A task that ends when this is dropped.
pub(crate) struct Watching(AbortHandle);

impl Watching {
    fn begin(watch: impl Future<Output = ()> + Send + 'static) -> Self {
        Self(tokio::spawn(watch).abort_handle())
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl<V: Send + 'static> Here<V> {
    /// Has work end as soon as this broker leads no more, and says so.
    pub(crate) fn while_leading(running: Running<V>, leadership: &Leadership, wake: &Arc<Notify>) -> Self {
        let is_lost = Arc::new(AtomicBool::new(false));
        let (mut leader, task) = (leadership.watch(), running.task.abort_handle());
        let (lost, wake) = (Arc::clone(&is_lost), Arc::clone(wake));
        let watching = Watching::begin(async move {
            // With nobody who says who leads nobody else ever does.
            if leader.wait_for(|leader| !leader.is_us()).await.is_ok() {
                lost.store(true, Ordering::Release);
                task.abort();
                wake.notify_one();
            }
        });
        Self { running, is_lost, _watching: watching }
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.is_lost.load(Ordering::Acquire)
    }
}

/// The name of the work of a connector.
pub(crate) fn work_of<C: Connector>(key: &Key) -> String {
    format!("{}{}/{}", room::<C>(), key.0.0, key.1)
}

/// Waits until it is known who leads, but not for long.
pub(crate) async fn known(leadership: &Leadership) {
    let mut leader = leadership.watch();
    let is_known = leader.wait_for(|leader| *leader != Leader::Unknown);
    // What is not known in time shows as that.
    drop(tokio::time::timeout(KNOWN, is_known).await);
}

/// Tends to connectors as long as somebody has them.
pub(crate) async fn tend<C: Connector>(
    registry: Weak<Registry<C>>,
    wake: Arc<Notify>,
    mut versions: watch::Receiver<u64>,
) {
    loop {
        let Some(all) = registry.upgrade() else { return };
        if let Err(why) = all.take_up().await {
            tracing::warn!(%why, "what other brokers change of {}s is not known here, and asked for again", C::WORDS.noun);
        }
        all.settle().await;
        drop(all);
        tokio::select! {
            () = wake.notified() => {}
            changed = versions.changed() => if changed.is_err() { return },
            () = tokio::time::sleep(AGAIN) => {}
        }
    }
}

impl<C: Connector> Registry<C> {
    /// Has each connector work here, or not, as it is to be.
    async fn settle(&self) {
        let mut all = self.all.lock().await;
        for (key, entry) in all.iter_mut() {
            let leads = entry.leadership.is_us();
            if let Some(here) = entry.here.take_if(|here| !leads || here.is_lost()) {
                end(here.running, Duration::ZERO).await;
                tracing::info!("the {} {} does not run here any more", C::WORDS.noun, key.1);
            }
            if leads && entry.here.is_none() {
                self.begin(key, entry).await;
            }
        }
    }

    /// Begins the work of a connector here; where it cannot begin, the connector says why.
    async fn begin(&self, key: &Key, entry: &mut Entry<C>) {
        let definition = Arc::clone(&entry.definition);
        match self.start(key, definition, entry.provenance, entry.is_paused).await {
            Ok(running) => {
                entry.here = Some(Here::while_leading(running, &entry.leadership, &self.wake));
                entry.fault = None;
                tracing::info!("the {} {} runs here", C::WORDS.noun, key.1);
            }
            Err(why) => {
                let why: Arc<str> = why.to_string().into();
                if entry.fault.as_ref().is_none_or(|(_, said)| *said != why) {
                    tracing::error!("the {} {} does not run: {why}", C::WORDS.noun, key.1);
                }
                entry.fault = Some((self.clock.now(), why));
            }
        }
    }

    /// Takes up what other brokers have made, changed, paused and deleted.
    async fn take_up(&self) -> Result<(), Failure> {
        let mut all = self.all.lock().await;
        let mut seen = self.seen.lock().await;
        let kept: Seen = self.kept().await?;
        let gone: Vec<Arc<str>> = seen.keys().filter(|name| !kept.contains_key(*name)).cloned().collect();
        for name in gone {
            seen.remove(&name);
            if let Some(key) = name.strip_prefix(&room::<C>()).and_then(key_of) {
                self.gone(&mut all, &key).await;
            }
        }
        for (name, value) in kept {
            if seen.get(&name) == Some(&value) {
                continue;
            }
            if let Some((key, one)) = Kept::read(&name, &value) {
                self.changed(&mut all, key, one).await;
            }
            seen.insert(name, value);
        }
        Ok(())
    }

    async fn gone(&self, all: &mut All<C>, key: &Key) {
        match all.get_mut(key) {
            // Only that it was paused was kept.
            Some(entry) if entry.provenance == Provenance::File => entry.resume_or_pause(false, 0).await,
            Some(_) => {
                let entry = all.remove(key).expect("it was looked at");
                if let Some(here) = entry.here {
                    end(here.running, Duration::ZERO).await;
                }
            }
            None => {}
        }
    }

    async fn changed(&self, all: &mut All<C>, key: Key, one: Kept<C>) {
        let Kept { definition, paused, resumes } = one;
        let Some(entry) = all.get_mut(&key) else {
            let Some(definition) = definition else { return };
            let leadership = self.engine.lead(&work_of::<C>(&key));
            let entry = Entry {
                definition: Arc::new(definition),
                provenance: Provenance::Api,
                is_paused: paused,
                resumes,
                here: None,
                fault: None,
                _watching: self.watch(&leadership),
                leadership,
            };
            all.insert(key, entry);
            return;
        };
        entry.resume_or_pause(paused, resumes).await;
        let is_same = definition.as_ref().is_none_or(|definition| *definition == *entry.definition);
        if entry.provenance == Provenance::File || is_same {
            return;
        }
        entry.definition = Arc::new(definition.expect("it was looked at"));
        if let Some(old) = entry.here.take() {
            end(old.running, Duration::ZERO).await;
        }
        if entry.leadership.is_us() {
            self.begin(&key, entry).await;
        }
    }

    /// Has connectors be looked at whenever another broker leads this one.
    pub(crate) fn watch(&self, leadership: &Leadership) -> Watching {
        let (mut leader, wake) = (leadership.watch(), Arc::clone(&self.wake));
        Watching::begin(async move {
            wake.notify_one();
            while leader.changed().await.is_ok() {
                wake.notify_one();
            }
        })
    }
}

impl<C: Connector> Entry<C> {
    /// It is paused, or not; it goes on as if nothing had failed where it was told so since.
    pub(crate) async fn resume_or_pause(&mut self, is_paused: bool, resumes: u64) {
        let is_told = self.is_paused != is_paused || self.resumes < resumes;
        (self.is_paused, self.resumes) = (is_paused, resumes);
        if let Some(here) = self.here.as_ref().filter(|_| is_told) {
            let control = if is_paused { Control::Pause } else { Control::Resume };
            // Work that has ended needs to be told nothing.
            let _ = here.running.control.send(control).await;
        }
    }
}
