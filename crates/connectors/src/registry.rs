//! All endpoints, or all sources, there are: made, changed, paused and deleted, and run.
//!
//! What is configured in the server's file is there as long as it stands there; what is made over the API is kept as metadata. Neither holds a
//! secret, only where one is.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use overtake_access::{Deed, Desk, Gate, Tag};
use overtake_engine::{Clock, Engine, Failure, Leadership};
use overtake_lane::{MetadataEntry, Scheme, Time, VhostId, VhostView, check_name};
use overtake_peer::{LinkLocal, Vault};
use percent_encoding::percent_decode_str;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::{Mutex, Notify, oneshot};
use tokio::task::{AbortHandle, JoinSet};

use crate::connector::{
    CONNECTORS_MAX, Connector, ConnectorView, Control, Flaw, NAME_LEN_MAX, NotConfigured, Place, Provenance,
    Running, Site, ours_of,
};
use crate::elsewhere::{Here, Seen, Watching, known, tend, work_of};
use crate::inline::{inline_secrets, new_secrets};
use crate::shown::{shown, unmasked};
use overtake_redact::reason;

/// All connectors of a kind.
pub struct Registry<C: Connector> {
    pub(crate) engine: Arc<dyn Engine>,
    gate: Arc<Gate>,
    pub(crate) clock: Arc<dyn Clock>,
    life: Arc<str>,
    /// Whether connectors may connect to link-local addresses.
    link_local: LinkLocal,
    pub(crate) all: Mutex<All<C>>,
    pub(crate) seen: Mutex<Seen>,
    /// Connectors are to be looked at: another broker leads one of them.
    pub(crate) wake: Arc<Notify>,
    /// Looks at them, where there may be other brokers.
    tending: OnceLock<AbortHandle>,
}

/// A virtual host and a name in it.
pub(crate) type Key = (VhostId, Arc<str>);
pub(crate) type All<C> = BTreeMap<Key, Entry<C>>;

pub(crate) struct Entry<C: Connector> {
    pub(crate) definition: Arc<C>,
    pub(crate) provenance: Provenance,
    pub(crate) is_paused: bool,
    /// How often it was resumed.
    pub(crate) resumes: u64,
    /// Its work, where this broker does it.
    pub(crate) here: Option<Here<C::View>>,
    /// Why its work could not begin here, and when.
    pub(crate) fault: Option<(Time, Arc<str>)>,
    pub(crate) _watching: Watching,
    /// Dropped last: another broker begins when work here has ended.
    pub(crate) leadership: Leadership,
}

/// What is kept of one.
#[derive(Clone, Serialize, Deserialize)]
#[serde(bound = "C: Connector")]
pub(crate) struct Kept<C> {
    /// Not for one of the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) definition: Option<C>,
    #[serde(default)]
    pub(crate) paused: bool,
    /// How often it was resumed: whoever runs it sees that it was once more.
    #[serde(default)]
    pub(crate) resumes: u64,
}

impl<C: Connector> Kept<C> {
    /// What is kept so. One that cannot be read is said in the log.
    pub(crate) fn read(name: &str, value: &[u8]) -> Option<(Key, Self)> {
        let (noun, ours) = (C::WORDS.noun, name.strip_prefix(&room::<C>())?);
        match (key_of(ours), serde_json::from_slice(value)) {
            (Some(key), Ok(one)) => return Some((key, one)),
            (_, Ok(_)) => tracing::error!("the metadata `{name}` is no {noun}'s"),
            (_, Err(why)) => {
                let why = reason(&why.to_string());
                tracing::error!("the {noun} `{name}` cannot be read, and does not run: {why}");
            }
        }
        None
    }
}

impl<C: Connector> Registry<C> {
    /// Those that are configured, in the virtual host `/`, and those that the engine remembers; all run. One that is remembered and cannot be read is
    /// left alone and said in the log. None connects to a link-local address.
    ///
    /// # Errors
    /// One that is configured cannot be, by its name; or the engine does not answer.
    pub async fn open(
        engine: Arc<dyn Engine>,
        gate: Arc<Gate>,
        clock: Arc<dyn Clock>,
        configured: Vec<(String, C)>,
    ) -> Result<Arc<Self>, (String, NotConfigured)> {
        Self::open_with(engine, gate, clock, configured, LinkLocal::Refused).await
    }

    /// The same, with a rule for link-local addresses.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub async fn open_with(
        engine: Arc<dyn Engine>,
        gate: Arc<Gate>,
        clock: Arc<dyn Clock>,
        configured: Vec<(String, C)>,
        link_local: LinkLocal,
    ) -> Result<Arc<Self>, (String, NotConfigured)> {
        let (all, seen, wake, tending) =
            (Mutex::default(), Mutex::default(), Arc::default(), OnceLock::new());
        let this = Self { engine, gate, clock, life: new_life(), link_local, all, seen, wake, tending };
        let this = Arc::new(this);
        let seen = this.kept().await.map_err(|failure| (String::new(), failure.into()))?;
        let mut kept: BTreeMap<Key, Kept<C>> =
            seen.iter().filter_map(|(name, value)| Kept::read(name, value)).collect();
        *this.seen.lock().await = seen;
        let mut all = this.all.lock().await;
        for (name, definition) in configured {
            let key = (VhostId::DEFAULT, Arc::from(name.as_str()));
            let (paused, resumes) = kept.remove(&key).map_or((false, 0), |kept| (kept.paused, kept.resumes));
            let one = Kept { definition: Some(definition), paused, resumes };
            let entry = this.enter(&key, one, Provenance::File).await;
            all.insert(key, entry.map_err(|not| (name, not))?);
        }
        for (key, one) in kept {
            if one.definition.is_none() {
                continue;
            }
            match this.enter(&key, one, Provenance::Api).await {
                Ok(entry) => drop(all.insert(key, entry)),
                Err(not) if not.is_of_gone_vhost() => {
                    this.forget(&key).await.map_err(|failure| (String::new(), failure.into()))?;
                }
                Err(why) => tracing::error!("the {} {} does not run: {why}", C::WORDS.noun, key.1),
            }
        }
        drop(all);
        if let Some(versions) = this.engine.metadata_versions() {
            let tending = tokio::spawn(tend(Arc::downgrade(&this), Arc::clone(&this.wake), versions));
            // Nobody else has it yet.
            let _ = this.tending.set(tending.abort_handle());
        }
        Ok(this)
    }

    pub(crate) async fn kept(&self) -> Result<Seen, Failure> {
        let room = room::<C>();
        Ok(self.engine.metadata().await?.into_iter().filter(|(name, _)| name.starts_with(&room)).collect())
    }

    /// One that is there from now on. It works here where this broker leads; else it is only seen whether it could.
    async fn enter(
        &self,
        key: &Key,
        kept: Kept<C>,
        provenance: Provenance,
    ) -> Result<Entry<C>, NotConfigured> {
        let leadership = self.engine.lead(&work_of::<C>(key));
        self.enter_by(key, kept, provenance, leadership).await
    }

    async fn enter_by(
        &self,
        key: &Key,
        kept: Kept<C>,
        provenance: Provenance,
        leadership: Leadership,
    ) -> Result<Entry<C>, NotConfigured> {
        let Kept { definition, paused: is_paused, resumes } = kept;
        let definition = Arc::new(definition.expect("whoever enters is defined"));
        let here = if leadership.is_us() {
            let running = self.start(key, Arc::clone(&definition), provenance, is_paused).await?;
            Some(Here::while_leading(running, &leadership, &self.wake))
        } else {
            let site = self.site_of(key, &*definition, provenance, is_paused).await?;
            Arc::clone(&definition).could_start(site).await?;
            None
        };
        let watching = self.watch(&leadership);
        Ok(Entry {
            definition,
            provenance,
            is_paused,
            resumes,
            here,
            fault: None,
            _watching: watching,
            leadership,
        })
    }

    pub(crate) async fn start(
        &self,
        key: &Key,
        definition: Arc<C>,
        provenance: Provenance,
        is_paused: bool,
    ) -> Result<Running<C::View>, NotConfigured> {
        let site = self.site_of(key, &*definition, provenance, is_paused).await?;
        definition.start(site).await
    }

    /// Where one works, if it can have its name. A secret in it is said in the log.
    async fn site_of(
        &self,
        key: &Key,
        definition: &C,
        provenance: Provenance,
        is_paused: bool,
    ) -> Result<Site, NotConfigured> {
        must_be_name(&key.1)?;
        let said: Vec<String> = inline_secrets(definition).into_keys().collect();
        if !said.is_empty() {
            let (noun, said) = (C::WORDS.noun, said.join("`, `"));
            tracing::warn!(
                "the {noun} {} holds a secret itself, in `{said}`: say where it is, as {}",
                key.1,
                provenance.vault().forms()
            );
        }
        Ok(Site { is_paused, ..self.site(key, provenance.vault()).await? })
    }

    async fn site(&self, key: &Key, vault: Vault) -> Result<Site, Failure> {
        let vhosts = self.engine.vhosts().await?;
        let vhost_name = vhosts.into_iter().find(|view| view.vhost == key.0).map(|view| view.name);
        let place = Place {
            name: Arc::clone(&key.1),
            vhost: key.0,
            vhost_name: vhost_name.ok_or(overtake_lane::Refusal::NoSuchVhost)?,
            clock: Arc::clone(&self.clock),
            vault: vault.with_link_local(self.link_local),
        };
        let engine = self.engine.in_vhost(key.0).connect();
        Ok(Site { place, engine, life: Arc::clone(&self.life), is_paused: false })
    }

    /// Ends all, when what is under way is finished or so much time has passed.
    pub async fn stop(&self, patience: Duration) {
        if let Some(tending) = self.tending.get() {
            tending.abort();
        }
        let mut ending = JoinSet::new();
        for (_, entry) in std::mem::take(&mut *self.all.lock().await) {
            ending.spawn(end_all(entry, patience));
        }
        while ending.join_next().await.is_some() {}
    }

    // ---- what users ask ----

    /// A connector is so from now on. Administrator. Answers whether it is new.
    ///
    /// # Errors
    /// [`NotConfigured`].
    pub async fn put(
        self: &Arc<Self>,
        by: &Desk,
        name: &str,
        definition: C,
    ) -> Result<(bool, ConnectorView<C>), NotConfigured> {
        by.who().must_have(Tag::Administrator)?;
        let key = self.key(by, name).await?;
        let (this, by) = (Arc::clone(self), by.clone());
        // Whole, also where whoever asked has gone meanwhile.
        whole(async move { this.put_whole(&by, key, definition).await }).await
    }

    async fn put_whole(
        &self,
        by: &Desk,
        key: Key,
        definition: C,
    ) -> Result<(bool, ConnectorView<C>), NotConfigured> {
        let mut all = self.all.lock().await;
        let before = all.get(&key).map(|entry| (Arc::clone(&entry.definition), entry.provenance));
        match &before {
            None if all.len() >= CONNECTORS_MAX => return Err(NotConfigured::TooMany),
            Some((_, Provenance::File)) => return Err(NotConfigured::OfFile),
            _ => {}
        }
        let definition = match &before {
            Some((before, _)) => unmasked(definition, &**before),
            None => definition,
        };
        must_name_secrets(&definition, before.as_ref().map(|(before, _)| &**before))?;
        if before.as_ref().is_none_or(|(before, _)| **before != definition) {
            definition.check(&self.site(&key, Provenance::Api.vault()).await?.place)?;
            let (paused, resumes) =
                all.get(&key).map_or((false, 0), |entry| (entry.is_paused, entry.resumes));
            let kept = Kept { definition: Some(definition), paused, resumes };
            let leadership = self.engine.lead(&work_of::<C>(&key));
            known(&leadership).await;
            // Begun first: it may be that it cannot be.
            let entry = self.enter_by(&key, kept.clone(), Provenance::Api, leadership).await?;
            if let Err(failure) = self.keep(&key, &kept).await {
                end_all(entry, Duration::ZERO).await;
                return Err(failure.into());
            }
            let before = before.as_ref().map(|(before, _)| shown(&**before));
            self.record(by, 0, &key, before, shown(&*entry.definition));
            if let Some(old) = all.insert(key.clone(), entry) {
                end_all(old, Duration::ZERO).await;
            }
        }
        let view = view(&key, &all[&key]).await?;
        Ok((before.is_none(), view))
    }

    /// A connector is gone. Administrator.
    ///
    /// # Errors
    /// [`NotConfigured`].
    pub async fn delete(&self, by: &Desk, name: &str) -> Result<(), NotConfigured> {
        by.who().must_have(Tag::Administrator)?;
        let key = self.key(by, name).await?;
        let mut all = self.all.lock().await;
        match all.get(&key).map(|entry| entry.provenance) {
            None => return Err(NotConfigured::NoSuch),
            Some(Provenance::File) => return Err(NotConfigured::OfFile),
            Some(Provenance::Api) => {}
        }
        self.forget(&key).await?;
        let entry = all.remove(&key).expect("nobody else changes them meanwhile");
        self.record(by, 1, &key, Some(shown(&*entry.definition)), Value::Null);
        end_all(entry, Duration::ZERO).await;
        Ok(())
    }

    /// A connector does nothing new until it is resumed, or goes on as if nothing had failed. It stays so over a restart. Administrator.
    ///
    /// # Errors
    /// [`NotConfigured`].
    pub async fn pause(
        &self,
        by: &Desk,
        name: &str,
        is_paused: bool,
    ) -> Result<ConnectorView<C>, NotConfigured> {
        by.who().must_have(Tag::Administrator)?;
        let key = self.key(by, name).await?;
        let mut all = self.all.lock().await;
        let entry = all.get_mut(&key).ok_or(NotConfigured::NoSuch)?;
        let definition = (entry.provenance == Provenance::Api).then(|| (*entry.definition).clone());
        let resumes = entry.resumes + u64::from(!is_paused);
        self.keep(&key, &Kept { definition, paused: is_paused, resumes }).await?;
        entry.resume_or_pause(is_paused, resumes).await;
        self.record(by, if is_paused { 2 } else { 3 }, &key, None, Value::Null);
        view(&key, entry).await
    }

    /// A connector.
    ///
    /// # Errors
    /// [`NotConfigured`].
    pub async fn show(&self, by: &Desk, name: &str) -> Result<ConnectorView<C>, NotConfigured> {
        by.must_look()?;
        let key = self.key(by, name).await?;
        let all = self.all.lock().await;
        let seen = all.get(&key).filter(|entry| entry.definition.is_seen_by(by, &key.1));
        view(&key, seen.ok_or(NotConfigured::NoSuch)?).await
    }

    /// The connectors of a virtual host that one may see, by name.
    ///
    /// # Errors
    /// [`NotConfigured`].
    pub async fn list(&self, by: &Desk) -> Result<Vec<ConnectorView<C>>, NotConfigured> {
        by.must_look()?;
        let vhost = self.engine.vhost(by.vhost()).await?.vhost;
        let vhosts = self.engine.vhosts().await?;
        let mut all = self.all.lock().await;
        self.forget_gone(&mut all, &vhosts).await;
        let mut views = Vec::new();
        for (key, entry) in all.iter().filter(|(key, _)| key.0 == vhost) {
            if entry.definition.is_seen_by(by, &key.1) {
                views.push(view(key, entry).await?);
            }
        }
        Ok(views)
    }

    /// Every connector that works at this broker, with the name of its virtual host: for metrics.
    pub async fn every(&self) -> Vec<(Arc<str>, ConnectorView<C>)> {
        let Ok(vhosts) = self.engine.vhosts().await else { return Vec::new() };
        let mut all = self.all.lock().await;
        self.forget_gone(&mut all, &vhosts).await;
        let mut views = Vec::new();
        for (key, entry) in all.iter().filter(|(_, entry)| entry.leadership.is_us()) {
            let vhost = vhosts.iter().find(|vhost| vhost.vhost == key.0);
            if let (Some(vhost), Ok(view)) = (vhost, view(key, entry).await) {
                views.push((Arc::clone(&vhost.name), view));
            }
        }
        views
    }

    /// Connects as a connector would itself, and answers how long that took; with a draft, as that would. Nothing is sent or taken. Administrator.
    ///
    /// # Errors
    /// [`NotConfigured`]; within: what is wrong, as a phrase.
    pub async fn test(
        &self,
        by: &Desk,
        name: &str,
        draft: Option<C>,
    ) -> Result<Result<Duration, String>, NotConfigured> {
        by.who().must_have(Tag::Administrator)?;
        let key = self.key(by, name).await?;
        let (definition, provenance) = match draft {
            Some(draft) => {
                let all = self.all.lock().await;
                // Secrets of one that stands in the file are not sent where a draft says.
                let before = all.get(&key).filter(|entry| entry.provenance == Provenance::Api);
                let draft = match before {
                    Some(before) => unmasked(draft, &*before.definition),
                    None => draft,
                };
                must_name_secrets(&draft, before.map(|before| &*before.definition))?;
                (Arc::new(draft), Provenance::Api)
            }
            None => {
                let all = self.all.lock().await;
                let entry = all.get(&key).ok_or(NotConfigured::NoSuch)?;
                (Arc::clone(&entry.definition), entry.provenance)
            }
        };
        let site = self.site(&key, provenance.vault()).await?;
        let began = Instant::now();
        Ok(definition.try_out(site).await?.map(|()| began.elapsed()))
    }

    /// Those of virtual hosts that are gone go, too: when somebody looks, or at the next start.
    async fn forget_gone(&self, all: &mut BTreeMap<Key, Entry<C>>, vhosts: &[VhostView]) {
        let is_gone = |key: &&Key| vhosts.iter().all(|vhost| vhost.vhost != key.0);
        for key in all.keys().filter(is_gone).cloned().collect::<Vec<_>>() {
            if self.forget(&key).await.is_ok()
                && let Some(entry) = all.remove(&key)
            {
                tracing::info!("the virtual host of the {} {} is gone, and it with it", C::WORDS.noun, key.1);
                end_all(entry, Duration::ZERO).await;
            }
        }
    }

    async fn forget(&self, key: &Key) -> Result<(), Failure> {
        let gone = C::kept_besides(&ours_of(key.0, &key.1)).into_iter().chain([name_of::<C>(key)]);
        self.engine.set_metadata(gone.map(|key| MetadataEntry::remove(&key)).collect()).await
    }

    async fn key(&self, by: &Desk, name: &str) -> Result<Key, NotConfigured> {
        Ok((self.engine.vhost(by.vhost()).await?.vhost, name.into()))
    }

    async fn keep(&self, key: &Key, kept: &Kept<C>) -> Result<(), Failure> {
        let value = serde_json::to_vec(kept).expect("a definition can be written");
        self.engine.set_metadata(vec![MetadataEntry::set(&name_of::<C>(key), &value)]).await
    }

    fn record(&self, by: &Desk, deed: usize, key: &Key, before: Option<Value>, after: Value) {
        let deed = Deed::of(Some(by.who()), C::WORDS.deeds[deed], &*key.1).within(by.vhost());
        self.gate.record(deed.from_to(before, after));
    }
}

impl<C: Connector> fmt::Debug for Registry<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Registry of {}s", C::WORDS.noun)
    }
}

fn new_life() -> Arc<str> {
    let mut drawn = [0; 16];
    getrandom::fill(&mut drawn).expect("the system gives random bytes");
    format!("{:032x}", u128::from_be_bytes(drawn)).into()
}

/// Whether one may stand so in a server's configuration, in the words in which its start would refuse it. What it names (secrets, certificates) is
/// not looked at: it may be another machine's. `scheme` says the scheme of a queue, by its name, where that is known.
///
/// # Errors
/// The first [`Flaw`].
pub fn check_configured<C: Connector>(
    name: &str,
    definition: &C,
    scheme: &dyn Fn(&str) -> Option<Scheme>,
) -> Result<(), Flaw> {
    must_be_name(name).map_err(|not| Flaw::of("", not))?;
    definition.check(&Place::in_file(name))?;
    definition.check_beside(name, scheme)
}

/// What comes over the API holds no secret itself, but those that the definition before it held.
fn must_name_secrets<C: Connector>(definition: &C, before: Option<&C>) -> Result<(), NotConfigured> {
    let Some(place) = new_secrets(definition, before).into_iter().next() else { return Ok(()) };
    let forms = Provenance::Api.vault().forms();
    let why =
        format_args!("a secret would be stored and backed up as it stands: say where it is, as {forms}");
    Err(Flaw::of(place, why).into())
}

fn must_be_name(name: &str) -> Result<(), NotConfigured> {
    let is_name = check_name(name).is_ok() && name.len() <= NAME_LEN_MAX;
    is_name.then_some(()).ok_or(NotConfigured::BadName)
}

/// Ends what an entry does here, and then lets another broker begin with it.
async fn end_all<C: Connector>(entry: Entry<C>, patience: Duration) {
    let Entry { here, leadership, .. } = entry;
    if let Some(here) = here {
        end(here.running, patience).await;
    }
    drop(leadership);
}

pub(crate) async fn end<V>(running: Running<V>, patience: Duration) {
    let Running { control, mut task } = running;
    drop(control);
    if tokio::time::timeout(patience, &mut task).await.is_err() {
        task.abort();
    }
}

async fn view<C: Connector>(key: &Key, entry: &Entry<C>) -> Result<ConnectorView<C>, NotConfigured> {
    let work = match &entry.here {
        Some(here) if !here.is_lost() => {
            let (caller, answer) = oneshot::channel();
            let _ = here.running.control.send(Control::View(caller)).await;
            match answer.await {
                Ok(work) => work,
                Err(_) if here.is_lost() => C::at_rest(None),
                Err(_) => return Err(Failure::Unavailable("its work has ended".into()).into()),
            }
        }
        _ => C::at_rest(entry.fault.clone()),
    };
    Ok(ConnectorView {
        name: Arc::clone(&key.1),
        definition: Arc::clone(&entry.definition),
        provenance: entry.provenance,
        is_paused: entry.is_paused,
        leader: entry.leadership.leader(),
        work,
    })
}

/// What is done although nobody waits for it any more.
async fn whole<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> T {
    match tokio::spawn(work).await {
        Ok(done) => done,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

/// What the keys of metadata begin with.
pub(crate) fn room<C: Connector>() -> String {
    format!("{}/", C::WORDS.room)
}

fn name_of<C: Connector>(key: &Key) -> String {
    format!("{}{}", room::<C>(), ours_of(key.0, &key.1))
}

pub(crate) fn key_of(ours: &str) -> Option<Key> {
    let (vhost, name) = ours.split_once('/')?;
    let name = percent_decode_str(name).decode_utf8().ok()?;
    Some((VhostId(vhost.parse().ok()?), name.into()))
}
