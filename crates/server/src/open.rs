//! Opening the engine that the configuration names.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use overtake_engine::core::{LostMessages, OpenError, Recovered, UnknownSegment};
use overtake_engine::traces::Traces;
use overtake_engine::{
    Clock, DamageHealth, NoShards, Options, ShardedEngine, SystemClock, Watermarks, shard_dir, shards_in,
};
use overtake_store::{Damage, Disk, Overlay, RealDisk};
use rustix::fs::Access;
use tokio::sync::watch;

use crate::ServeError;
use crate::cluster::open_cluster_engine;
use crate::config::{Config, OnDamage, Origin, Sourced};
use crate::memory::Shares;
use crate::running::{Found, FoundStore, Notice, Opened};

/// Opens the engine. Messages are traced so.
pub(crate) async fn open(
    config: &Config,
    traces: Option<Traces>,
    shares: &Shares,
) -> Result<Opened, ServeError> {
    match config.engine.servers() {
        None => open_store(config, traces, shares).await,
        Some(servers) => {
            if traces.is_some() {
                tracing::warn!("telemetry.traces_sample has no effect: messages on servers are not traced");
            }
            open_cluster_engine(config, servers).await
        }
    }
}

/// Opens the store, which takes as long as recovering it does.
async fn open_store(config: &Config, traces: Option<Traces>, shares: &Shares) -> Result<Opened, ServeError> {
    let dir = &config.store.data_dir;
    prepare(&dir.value, &dir.origin)?;
    let options = options(config, traces, shares);
    SystemClock.steady().on_step(Box::new(|step| tracing::warn!("{step}")));
    let (dir, shards) = (dir.value.clone(), config.store.shards.value.0 as usize);
    let opened = blocking(move || {
        let opened = ShardedEngine::open_with(&dir, shards, options, Arc::new(SystemClock));
        opened.map_err(|error| no_shards(&dir, error))
    });
    let engine = opened.await??;
    let (asked, most) = (config.limits.max_message_bytes.value.0, config.max_message_bytes());
    if most < asked {
        tracing::warn!(
            "messages of at most {most} bytes are taken, not {asked}: a message takes at most a quarter of a journal file (store.segment_bytes)"
        );
    }
    warn_of_copy_on_write(&config.store.data_dir.value, engine.recovered().len());
    for damage in engine.damage() {
        tokio::spawn(tell_damage(damage));
    }
    let skips = config.store.on_damage.value == OnDamage::Skip;
    let of_shard = |(shard, recovered)| {
        notices(recovered, skips).into_iter().map(move |notice| match shard {
            0 => notice,
            shard => {
                let text = format!("{}: {}", shard_dir(Path::new(""), shard).display(), notice.text);
                Notice { text, ..notice }
            }
        })
    };
    let found = Found::Store(FoundStore {
        dir: config.store.data_dir.value.clone(),
        shards: engine.recovered().len(),
        queues: engine.recovered().map(|recovered| recovered.queues as u64).sum(),
        messages: engine.recovered().map(|recovered| recovered.messages).sum(),
        life: engine.recovered().map(|recovered| recovered.life).max().unwrap_or_default(),
        notices: engine.recovered().enumerate().flat_map(of_shard).collect(),
    });
    Ok(Opened { running: Arc::new(engine), found })
}

/// The options of the store, as the configuration says.
fn options(config: &Config, traces: Option<Traces>, shares: &Shares) -> Options {
    Options {
        segment_bytes: config.store.segment_bytes.value.0,
        on_damage: match config.store.on_damage.value {
            OnDamage::Refuse => overtake_store::OnDamage::Refuse,
            OnDamage::Skip => overtake_store::OnDamage::Skip,
        },
        memory_bytes: config.store.memory_bytes.value.0,
        inbox_bytes: shares.inbox,
        pushed_bytes: shares.pushed,
        watermarks: Watermarks {
            low: config.store.disk_low_bytes.value.bytes(),
            high: config.store.disk_high_bytes.value.bytes(),
        },
        max_message_bytes: config.max_message_bytes(),
        default_ttl_ms: config.limits.default_ttl_ms.value.0,
        traces,
        ..Options::default()
    }
}

/// Opens the store as a start does, with all changes in memory. The directory is neither locked nor changed.
///
/// # Errors
/// Why a start would not open it.
pub(crate) async fn open_copy(config: &Config, shares: &Shares) -> Result<ShardedEngine, ServeError> {
    let (dir, options) = (config.store.data_dir.clone(), options(config, None, shares));
    let shards = config.store.shards.value.0 as usize;
    let opened = blocking(move || {
        let nearest = nearest(&dir)?;
        let Sourced { value: dir, origin: place } = dir;
        let found = shards_in(&dir).map_err(|error| no_shards(&dir, NoShards::Unreadable(error)))?;
        if found > shards {
            return Err(no_shards(&dir, NoShards::TooFew { found }));
        }
        let copy = |shard| {
            let dir = shard_dir(&dir, shard);
            let unusable = |error| ServeError::Store { dir: dir.clone(), error };
            let copy = match dir.is_dir() {
                true => Overlay::new(RealDisk::existing(&dir).map_err(unusable)?).map_err(|error| {
                    ServeError::Directory { dir: dir.clone(), place: place.clone(), error }
                })?,
                false => Overlay::without_files(RealDisk::existing(&nearest).map_err(unusable)?),
            };
            Ok((dir, copy.without_lock()))
        };
        let disks = (0..shards).map(copy).collect::<Result<_, ServeError>>()?;
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        ShardedEngine::open_on(disks, &options, &clock).map_err(|error| no_shards(&dir, error))
    });
    opened.await?
}

/// Whether a broker has the store of this directory open.
pub(crate) fn is_open_elsewhere(dir: &Path) -> bool {
    let shards = shards_in(dir).unwrap_or(1);
    let is_locked =
        |shard| RealDisk::existing(shard_dir(dir, shard)).is_ok_and(|disk| disk.is_locked().unwrap_or(false));
    dir.is_dir() && (0..shards).any(is_locked)
}

/// Warns where a full disk would stop the broker, not only publishes.
fn warn_of_copy_on_write(dir: &Path, shards: usize) {
    let dirs = (0..shards).map(|shard| shard_dir(dir, shard));
    let found = dirs.filter_map(|dir| RealDisk::existing(dir).ok()?.copies_on_write().ok()?).next();
    if let Some(filesystem) = found {
        let dir = dir.display();
        tracing::warn!(
            "{filesystem} writes files of {dir} anew to change them: if this disk becomes full, the broker stops and cannot start until \
             there is room; leave store.disk_low_bytes above 0 (see docs/disk.md)"
        );
    }
}

/// Sentences for the operator about the opening of a shard.
fn notices(recovered: &Recovered, skips: bool) -> Vec<Notice> {
    let lost = |text: String| Notice { is_loss: true, text };
    let told = |text: String| Notice { is_loss: false, text };
    let of_journal = recovered.journal.damage.iter().map(|Damage { file, at, bytes, what }| {
        lost(format!("damage skipped: {file} at byte {at}, {bytes} bytes: {what}"))
    });
    let of_segment = |what: &str, part: &LostMessages| {
        let (number, queue) = (part.segment, &part.queue);
        let found = if part.salvaged == 0 {
            String::new()
        } else {
            format!(", {} were found in the journal", part.salvaged)
        };
        let messages = messages(part.messages);
        if skips {
            lost(format!(
                "damage skipped: segment {number} {what}: {messages} of queue `{queue}` lost{found}"
            ))
        } else {
            told(format!(
                "damage: segment {number} {what}: {messages} of queue `{queue}` cannot be read{found}; everything else goes on"
            ))
        }
    };
    let unreadable = recovered.lost.segments.iter().map(|part| of_segment("cannot be read", part));
    let damaged = recovered.lost.messages.iter().map(|part| of_segment("is damaged", part));
    let adopted = recovered.lost.adopted.iter().map(|part| {
        told(format!(
            "damage skipped: segment {} was no longer mentioned in the journal: {} of queue `{}` taken from it, some of which may have been settled before",
            part.segment, messages(part.salvaged), part.queue
        ))
    });
    let unknown = recovered.unknown.iter().map(|UnknownSegment { segment, queue, messages: count, kept_as }| {
        let messages = messages(*count);
        told(format!(
            "segment {segment} ({messages} of queue `{queue}`) is not mentioned in the journal any more, so nothing says which of them were settled: it is kept as {kept_as} and not read; read docs/damage.md"
        ))
    });
    let renewed = recovered.renewed.map(|renewed| told(match renewed {
        true => "the store was written again without the damage: it starts without --on-damage skip from now on".to_owned(),
        false => "there was no room to write the store again without the damage: until there is, it starts only with --on-damage skip".to_owned(),
    }));
    of_journal.chain(unreadable).chain(damaged).chain(adopted).chain(unknown).chain(renewed).collect()
}

fn messages(count: u64) -> String {
    format!("{count} message{}", if count == 1 { "" } else { "s" })
}

/// Writes a line for each damaged place that is found in a shard, and when it costs more, as long as the shard runs.
async fn tell_damage(mut damage: watch::Receiver<DamageHealth>) {
    let mut told = damage.borrow().places.clone();
    while damage.changed().await.is_ok() {
        let DamageHealth { blocks, lost_messages, places } = damage.borrow_and_update().clone();
        for place in places.iter().filter(|place| !told.contains(place)) {
            tracing::error!(
                blocks,
                lost_messages,
                "damage in the store: {place}; everything else goes on. Read docs/damage.md"
            );
        }
        told = places;
    }
}

/// Runs what blocks where it holds up nothing else.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ServeError> {
    tokio::task::spawn_blocking(work).await.map_err(|error| ServeError::Stopped { why: error.to_string() })
}

fn no_shards(dir: &Path, error: NoShards) -> ServeError {
    match error {
        NoShards::Shard { dir, error } => refused(dir, error),
        other => ServeError::Shards { dir: dir.to_owned(), why: other.to_string() },
    }
}

fn refused(dir: PathBuf, error: OpenError) -> ServeError {
    match error {
        OpenError::Store(error) => ServeError::Store { dir, error },
        unknown @ OpenError::Unknown { .. } => ServeError::Record { dir, why: unknown.to_string() },
        damaged => ServeError::Segment { dir, why: damaged.to_string() },
    }
}

/// The directory, or the nearest one above it, where a start would make it.
///
/// # Errors
/// A directory that the start could not make or use.
fn nearest(dir: &Sourced<PathBuf>) -> Result<PathBuf, ServeError> {
    let path = std::path::absolute(&dir.value).unwrap_or_else(|_| dir.value.clone());
    let nearest = path.ancestors().find(|above| above.exists()).unwrap_or(Path::new("/"));
    let usable = match nearest.is_dir() {
        true => rustix::fs::access(nearest, Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK)
            .map_err(io::Error::from),
        false => Err(rustix::io::Errno::NOTDIR.into()),
    };
    match usable {
        Ok(()) => Ok(nearest.to_owned()),
        Err(error) => Err(ServeError::Directory { dir: dir.value.clone(), place: dir.origin.clone(), error }),
    }
}

/// Makes the directory if it is not there, readable for its owner only, and looks whether it can be written to.
fn prepare(dir: &Path, place: &Origin) -> Result<(), ServeError> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(dir);
    let usable = made
        .and_then(|()| Ok(rustix::fs::access(dir, Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK)?));
    usable.map_err(|error| ServeError::Directory { dir: dir.to_owned(), place: place.clone(), error })
}
