//! All endpoints there are: made, changed, paused and deleted, and run.
//!
//! What is configured in the server's file is there as long as it stands there; what is made over the API is kept as metadata. Neither holds a
//! secret, only where one is.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use overtake_access::{Deed, Denied, Desk, Gate, NotDone, Tag};
use overtake_engine::{Clock, Connection, Engine, Failure};
use overtake_forward::{ForwarderView, Terms};
use overtake_lane::{MetadataEntry, Scheme, VhostId, check_name};
use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::{Mutex, mpsc, oneshot};
use tokio::task::{JoinHandle, JoinSet};

use crate::endpoint::{BadEndpoint, Endpoint};
use crate::runner::{Control, Post, Runner};
use crate::secret::Vault;

/// Most endpoints of a broker.
const ENDPOINTS_MAX: usize = 1_000;
/// Longest name of an endpoint, bytes.
pub(crate) const NAME_LEN_MAX: usize = 200;
/// Where they are kept: `endpoints/NUMBER/NAME`, by the number of the virtual host, which no other ever has, and the name,
/// percent-encoded.
const ROOM: &str = "endpoints/";
/// Where is kept what went on a day.
const BUDGETS: &str = "endpoint-budgets/";

/// All endpoints of a broker.
pub struct Endpoints {
    engine: Arc<dyn Engine>,
    gate: Arc<Gate>,
    clock: Arc<dyn Clock>,
    all: Mutex<BTreeMap<Key, Entry>>,
}

/// A virtual host and a name in it.
type Key = (VhostId, Arc<str>);

struct Entry {
    endpoint: Arc<Endpoint>,
    origin: Origin,
    is_paused: bool,
    running: Running,
}

/// Where an endpoint is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// The configuration of the server: it is changed there.
    File,
    /// The API.
    Api,
}

struct Running {
    control: mpsc::UnboundedSender<Control>,
    task: JoinHandle<()>,
}

/// What is kept of one.
#[derive(Serialize, Deserialize)]
struct Kept {
    /// Not for one of the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    endpoint: Option<Endpoint>,
    #[serde(default)]
    paused: bool,
}

/// An endpoint as it stands.
#[derive(Clone, Debug)]
pub struct EndpointView {
    /// Its name.
    pub name: Arc<str>,
    /// What it is.
    pub endpoint: Arc<Endpoint>,
    /// Where it is from.
    pub origin: Origin,
    /// It sends nothing until it is resumed.
    pub is_paused: bool,
    /// What it does.
    pub forwarder: ForwarderView,
}

/// Why an endpoint was not made, changed, shown, tested or deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotConfigured {
    /// It cannot have this name.
    BadName,
    /// There is none of this name that one may see.
    NoSuchEndpoint,
    /// There are too many.
    TooMany,
    /// It cannot be.
    Bad(BadEndpoint),
    /// It is from the server's configuration, and changed there.
    OfFile,
    /// The user may not, or the engine does not.
    NotDone(NotDone),
}

impl fmt::Display for NotConfigured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadName => {
                write!(
                    f,
                    "the name of an endpoint is 1 to {NAME_LEN_MAX} bytes of text without control characters"
                )
            }
            Self::NoSuchEndpoint => f.write_str("there is no such endpoint"),
            Self::TooMany => write!(f, "there are {ENDPOINTS_MAX} endpoints, and there may be no more"),
            Self::Bad(bad) => bad.fmt(f),
            Self::OfFile => {
                f.write_str("this endpoint stands in the server's configuration file: change it there")
            }
            Self::NotDone(not) => not.fmt(f),
        }
    }
}

impl std::error::Error for NotConfigured {}

impl From<NotDone> for NotConfigured {
    fn from(not: NotDone) -> Self {
        Self::NotDone(not)
    }
}

impl From<Denied> for NotConfigured {
    fn from(denied: Denied) -> Self {
        Self::NotDone(denied.into())
    }
}

impl From<Failure> for NotConfigured {
    fn from(failure: Failure) -> Self {
        Self::NotDone(failure.into())
    }
}

impl From<BadEndpoint> for NotConfigured {
    fn from(bad: BadEndpoint) -> Self {
        Self::Bad(bad)
    }
}

impl Endpoints {
    /// Those that are configured, in the virtual host `/`, and those that the engine remembers; all run. One that is remembered and cannot be read is
    /// left alone and said in the log.
    ///
    /// # Errors
    /// One that is configured cannot be, by its name; or the engine does not answer.
    pub async fn open(
        engine: Arc<dyn Engine>,
        gate: Arc<Gate>,
        clock: Arc<dyn Clock>,
        configured: Vec<(String, Endpoint)>,
    ) -> Result<Arc<Self>, (String, NotConfigured)> {
        let of_none = |failure: Failure| (String::new(), failure.into());
        let this = Arc::new(Self { engine, gate, clock, all: Mutex::default() });
        let mut kept: BTreeMap<Key, Kept> = BTreeMap::new();
        for (key, value) in this.engine.metadata().await.map_err(of_none)? {
            let Some(ours) = key.strip_prefix(ROOM) else { continue };
            match (key_of(ours), serde_json::from_slice(&value)) {
                (Some(key), Ok(one)) => drop(kept.insert(key, one)),
                (_, Ok(_)) => tracing::error!("the metadata `{key}` is no endpoint's"),
                (_, Err(why)) => {
                    tracing::error!("the endpoint `{key}` cannot be read, and does not run: {why}")
                }
            }
        }
        let mut all = this.all.lock().await;
        for (name, endpoint) in configured {
            let key = (VhostId::DEFAULT, Arc::from(name.as_str()));
            let is_paused = kept.remove(&key).is_some_and(|kept| kept.paused);
            let entry = this.start(&key, Arc::new(endpoint), Origin::File, is_paused).await;
            all.insert(key, entry.map_err(|not| (name, not))?);
        }
        for (key, one) in kept {
            let Some(endpoint) = one.endpoint else { continue };
            match this.start(&key, Arc::new(endpoint), Origin::Api, one.paused).await {
                Ok(entry) => drop(all.insert(key, entry)),
                Err(why) => tracing::error!(endpoint = &*key.1, "it does not run: {why}"),
            }
        }
        drop(all);
        Ok(this)
    }

    async fn start(
        &self,
        key: &Key,
        endpoint: Arc<Endpoint>,
        origin: Origin,
        is_paused: bool,
    ) -> Result<Entry, NotConfigured> {
        let (vhost, name) = key;
        if check_name(name).is_err() || name.len() > NAME_LEN_MAX {
            return Err(NotConfigured::BadName);
        }
        let engine = self.engine.in_vhost(*vhost).connect();
        let vault = if origin == Origin::File { Vault::Any } else { Vault::OfApi };
        let vhosts = self.engine.vhosts().await?;
        let vhost_name = vhosts.iter().find(|view| view.vhost == *vhost).map_or("/", |view| &view.name);
        let sink = endpoint.sink(vault, vhost_name, name, &engine)?;
        let queue = endpoint.queue_of(name);
        let terms =
            Terms { reserve_from: reserve(&endpoint, &engine, &queue).await?, ..endpoint.send.clone() };
        let budget_key = format!("{BUDGETS}{}", ours_of(key));
        let budget = self.budget(&budget_key).await?;
        let (control, controlled) = mpsc::unbounded_channel();
        let clock = Arc::clone(&self.clock);
        let seed = self.clock.nanos();
        let runner = Runner::new(
            Post { name: Arc::clone(name), queue, terms, sink, engine, clock, budget_key, seed },
            budget,
        );
        if is_paused {
            let _ = control.send(Control::Pause);
        }
        let task = tokio::spawn(runner.run(controlled));
        Ok(Entry { endpoint, origin, is_paused, running: Running { control, task } })
    }

    async fn budget(&self, key: &str) -> Result<Option<(u64, u64)>, Failure> {
        let all = self.engine.metadata().await?;
        let kept = all.iter().find(|(name, _)| **name == *key).map(|(_, value)| value);
        let text = kept.and_then(|value| std::str::from_utf8(value).ok());
        Ok(text.and_then(|text| {
            let (day, used) = text.split_once(' ')?;
            Some((day.parse().ok()?, used.parse().ok()?))
        }))
    }

    /// Ends all, when what is under way is finished or so much time has passed.
    pub async fn stop(&self, patience: Duration) {
        let mut ending = JoinSet::new();
        for (_, entry) in std::mem::take(&mut *self.all.lock().await) {
            ending.spawn(end(entry.running, patience));
        }
        while ending.join_next().await.is_some() {}
    }

    // ---- what users ask ----

    /// An endpoint is so from now on. Administrator. Answers whether it is new.
    ///
    /// # Errors
    /// [`NotConfigured`].
    pub async fn put(
        self: &Arc<Self>,
        by: &Desk,
        name: &str,
        endpoint: Endpoint,
    ) -> Result<(bool, EndpointView), NotConfigured> {
        by.who().must_have(Tag::Administrator)?;
        let key = self.key(by, name).await?;
        let (this, by) = (Arc::clone(self), by.clone());
        // Whole, also where whoever asked has gone meanwhile.
        whole(async move { this.put_whole(&by, key, endpoint).await }).await
    }

    async fn put_whole(
        &self,
        by: &Desk,
        key: Key,
        endpoint: Endpoint,
    ) -> Result<(bool, EndpointView), NotConfigured> {
        let mut all = self.all.lock().await;
        let before = all.get(&key).map(|entry| (Arc::clone(&entry.endpoint), entry.origin, entry.is_paused));
        match &before {
            None if all.len() >= ENDPOINTS_MAX => return Err(NotConfigured::TooMany),
            Some((_, Origin::File, _)) => return Err(NotConfigured::OfFile),
            _ => {}
        }
        let is_paused = before.as_ref().is_some_and(|(_, _, is_paused)| *is_paused);
        if before.as_ref().is_none_or(|(before, ..)| **before != endpoint) {
            let kept = Kept { endpoint: Some(endpoint.clone()), paused: is_paused };
            // Begun first: it may be that it cannot be.
            let entry = self.start(&key, Arc::new(endpoint), Origin::Api, is_paused).await?;
            if let Err(failure) = self.keep(&key, &kept).await {
                end(entry.running, Duration::ZERO).await;
                return Err(failure.into());
            }
            let told = |endpoint: &Endpoint| serde_json::to_value(endpoint).unwrap_or_default();
            let after = told(&entry.endpoint);
            self.record(by, "endpoint.put", &key, before.as_ref().map(|(before, ..)| told(before)), after);
            if let Some(old) = all.insert(key.clone(), entry) {
                end(old.running, Duration::ZERO).await;
            }
        }
        let view = view(&key, &all[&key]).await?;
        Ok((before.is_none(), view))
    }

    /// An endpoint is gone; what waits in its queue stays there. Administrator.
    ///
    /// # Errors
    /// [`NotConfigured`].
    pub async fn delete(&self, by: &Desk, name: &str) -> Result<(), NotConfigured> {
        by.who().must_have(Tag::Administrator)?;
        let key = self.key(by, name).await?;
        let mut all = self.all.lock().await;
        match all.get(&key).map(|entry| entry.origin) {
            None => return Err(NotConfigured::NoSuchEndpoint),
            Some(Origin::File) => return Err(NotConfigured::OfFile),
            Some(Origin::Api) => {}
        }
        let budget = format!("{BUDGETS}{}", ours_of(&key));
        let gone = [MetadataEntry::remove(&name_of(&key)), MetadataEntry::remove(&budget)];
        self.engine.set_metadata(gone.into()).await?;
        let entry = all.remove(&key).expect("nobody else changes them meanwhile");
        self.record(by, "endpoint.delete", &key, serde_json::to_value(&entry.endpoint).ok(), Value::Null);
        end(entry.running, Duration::ZERO).await;
        Ok(())
    }

    /// An endpoint sends nothing new until it is resumed, or sends again as if nothing had failed. It stays so over a restart. Administrator.
    ///
    /// # Errors
    /// [`NotConfigured`].
    pub async fn pause(&self, by: &Desk, name: &str, is_paused: bool) -> Result<EndpointView, NotConfigured> {
        by.who().must_have(Tag::Administrator)?;
        let key = self.key(by, name).await?;
        let mut all = self.all.lock().await;
        let entry = all.get_mut(&key).ok_or(NotConfigured::NoSuchEndpoint)?;
        let endpoint = (entry.origin == Origin::Api).then(|| (*entry.endpoint).clone());
        self.keep(&key, &Kept { endpoint, paused: is_paused }).await?;
        entry.is_paused = is_paused;
        let control = if is_paused { Control::Pause } else { Control::Resume };
        let _ = entry.running.control.send(control);
        let action = if is_paused { "endpoint.pause" } else { "endpoint.resume" };
        self.record(by, action, &key, None, Value::Null);
        view(&key, entry).await
    }

    /// An endpoint. Any right to its queue.
    ///
    /// # Errors
    /// [`NotConfigured`].
    pub async fn show(&self, by: &Desk, name: &str) -> Result<EndpointView, NotConfigured> {
        by.must_look()?;
        let key = self.key(by, name).await?;
        let all = self.all.lock().await;
        let entry =
            all.get(&key).filter(|entry| sees(by, &key, entry)).ok_or(NotConfigured::NoSuchEndpoint)?;
        view(&key, entry).await
    }

    /// The endpoints of a virtual host that one may see, by name.
    ///
    /// # Errors
    /// [`NotConfigured`].
    pub async fn list(&self, by: &Desk) -> Result<Vec<EndpointView>, NotConfigured> {
        by.must_look()?;
        let vhost = self.engine.vhost(by.vhost()).await?.vhost;
        let all = self.all.lock().await;
        let mut views = Vec::new();
        for (key, entry) in all.iter().filter(|(key, entry)| key.0 == vhost && sees(by, key, entry)) {
            views.push(view(key, entry).await?);
        }
        Ok(views)
    }

    /// Every endpoint, with the name of its virtual host, for metrics.
    pub async fn every(&self) -> Vec<(Arc<str>, EndpointView)> {
        let Ok(vhosts) = self.engine.vhosts().await else { return Vec::new() };
        let all = self.all.lock().await;
        let mut views = Vec::new();
        for (key, entry) in all.iter() {
            let vhost = vhosts.iter().find(|vhost| vhost.vhost == key.0);
            if let (Some(vhost), Ok(view)) = (vhost, view(key, entry).await) {
                views.push((Arc::clone(&vhost.name), view));
            }
        }
        views
    }

    /// Connects to the receiver of an endpoint as it would itself, and says how long that took. Nothing is sent. Administrator.
    ///
    /// # Errors
    /// [`NotConfigured`]; within: what is wrong, as a phrase.
    pub async fn test(&self, by: &Desk, name: &str) -> Result<Result<Duration, String>, NotConfigured> {
        by.who().must_have(Tag::Administrator)?;
        let key = self.key(by, name).await?;
        let (endpoint, origin) = {
            let all = self.all.lock().await;
            let entry = all.get(&key).ok_or(NotConfigured::NoSuchEndpoint)?;
            (Arc::clone(&entry.endpoint), entry.origin)
        };
        let vault = if origin == Origin::File { Vault::Any } else { Vault::OfApi };
        self.try_out(vault, &key, by.vhost(), &endpoint).await
    }

    /// As [`Endpoints::test`], of one that is not there yet.
    ///
    /// # Errors
    /// [`NotConfigured`]; within: what is wrong, as a phrase.
    pub async fn test_draft(
        &self,
        by: &Desk,
        name: &str,
        endpoint: &Endpoint,
    ) -> Result<Result<Duration, String>, NotConfigured> {
        by.who().must_have(Tag::Administrator)?;
        let key = self.key(by, name).await?;
        self.try_out(Vault::OfApi, &key, by.vhost(), endpoint).await
    }

    async fn try_out(
        &self,
        vault: Vault,
        key: &Key,
        vhost: &str,
        endpoint: &Endpoint,
    ) -> Result<Result<Duration, String>, NotConfigured> {
        let engine = self.engine.in_vhost(key.0).connect();
        let sink = endpoint.sink(vault, vhost, &key.1, &engine)?;
        let queue = endpoint.queue_of(&key.1);
        if let Err(failure) = engine.check_queue(&queue).await {
            return Ok(Err(format!("the queue {queue}: {failure}")));
        }
        let (began, connect_ms) = (Instant::now(), endpoint.send.connect_ms);
        Ok(match tokio::time::timeout(Duration::from_millis(connect_ms), sink.connect()).await {
            Ok(Ok(_)) => Ok(began.elapsed()),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err(format!("no connection within {connect_ms} ms")),
        })
    }

    async fn key(&self, by: &Desk, name: &str) -> Result<Key, NotConfigured> {
        Ok((self.engine.vhost(by.vhost()).await?.vhost, name.into()))
    }

    async fn keep(&self, key: &Key, kept: &Kept) -> Result<(), Failure> {
        let value = serde_json::to_vec(kept).expect("an endpoint can be written");
        self.engine.set_metadata(vec![MetadataEntry::set(&name_of(key), &value)]).await
    }

    fn record(&self, by: &Desk, action: &'static str, key: &Key, before: Option<Value>, after: Value) {
        let deed = Deed::of(Some(by.who()), action, &*key.1).within(by.vhost());
        self.gate.record(deed.from_to(before, after));
    }
}

impl fmt::Debug for Endpoints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Endpoints")
    }
}

/// The least urgent priority that may use the reserve, as the scheme of the queue has it.
async fn reserve(
    endpoint: &Endpoint,
    engine: &Connection,
    queue: &str,
) -> Result<Option<overtake_lane::Priority>, NotConfigured> {
    if endpoint.send.reserve_bytes == 0 {
        return Ok(None);
    }
    let scheme = engine.queue(queue).await.map_or_else(|_| Scheme::default(), |view| view.settings.scheme);
    let mapped = scheme.map(&endpoint.reserve_from);
    let mapped = mapped.map_err(|refusal| BadEndpoint(format!("reserve_from: {refusal}")))?;
    Ok(Some(mapped))
}

async fn end(running: Running, patience: Duration) {
    let Running { control, mut task } = running;
    drop(control);
    if tokio::time::timeout(patience, &mut task).await.is_err() {
        task.abort();
    }
}

async fn view(key: &Key, entry: &Entry) -> Result<EndpointView, NotConfigured> {
    let (caller, answer) = oneshot::channel();
    let _ = entry.running.control.send(Control::View(caller));
    let forwarder = answer.await.map_err(|_| Failure::Unavailable("the endpoint has ended".into()))?;
    Ok(EndpointView {
        name: Arc::clone(&key.1),
        endpoint: Arc::clone(&entry.endpoint),
        origin: entry.origin,
        is_paused: entry.is_paused,
        forwarder,
    })
}

fn sees(by: &Desk, key: &Key, entry: &Entry) -> bool {
    by.who().sees(by.vhost(), &entry.endpoint.queue_of(&key.1))
}

/// What is done although nobody waits for it any more.
async fn whole<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> T {
    match tokio::spawn(work).await {
        Ok(done) => done,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

fn ours_of((vhost, name): &Key) -> String {
    format!("{}/{}", vhost.0, utf8_percent_encode(name, NON_ALPHANUMERIC))
}

fn name_of(key: &Key) -> String {
    format!("{ROOM}{}", ours_of(key))
}

fn key_of(ours: &str) -> Option<Key> {
    let (vhost, name) = ours.split_once('/')?;
    let name = percent_decode_str(name).decode_utf8().ok()?;
    Some((VhostId(vhost.parse().ok()?), name.into()))
}
