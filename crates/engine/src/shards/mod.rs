//! Several brokers that stand for one: each has one loop and one journal, and virtual hosts of its own.
//!
//! ```text
//!   asked in a virtual host ───────────▶ its shard: a LocalEngine, as if it were alone
//!   which virtual hosts there are ─▶ Lobby ─▶ all shards
//! ```
//!
//! Nothing goes from one virtual host into another, so nothing goes from one shard to another: what is all or none stays one record of one journal, and no order is
//! between two loops. Shards have numbers of their own for queues and virtual hosts, so the number of a virtual host says its shard, and a receipt of one is none of another's.

mod asked;
mod health;
mod lobby;

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::task::Poll;
use std::{fmt, fs, io, thread};

use overtake_lane::{Numbers, VhostId};
use overtake_store::{Disk, RealDisk, StoreError};
use tokio::sync::watch;

use self::lobby::Lobby;
use crate::clock::Clock;
use crate::core::{OpenError, Recovered};
use crate::damage::DamageHealth;
use crate::local::LocalEngine;
use crate::options::Options;
use crate::watermarks::Full;

/// Most shards of one engine.
pub const SHARDS_MAX: usize = 32;
/// Numbers of queues and virtual hosts that each shard has.
const NUMBERS: u32 = 1 << 27;
const _: () = assert!(SHARDS_MAX as u64 * NUMBERS as u64 == 1 << 32, "every number is of one shard");

/// The directory of a shard within that of the first; the first has none.
const DIRECTORY: &str = "shard-";

/// Several brokers in this process that stand for one, on a directory; or, from [`Engine::connect`](crate::Engine::connect), one session of it; or, from
/// [`Engine::in_vhost`](crate::Engine::in_vhost), either of them asked elsewhere.
///
/// A virtual host is wholly in one shard: where there were fewest when it was declared. Dropping the first stops all; [`ShardedEngine::close`] does the same and waits.
///
/// ```
/// use std::sync::Arc;
///
/// use overtake_engine::{Engine, Options, ShardedEngine, SystemClock};
/// use overtake_lane::{Settings, VhostSettings};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = tempfile::tempdir()?;
/// let engine = ShardedEngine::open_with(dir.path(), 2, Options::default(), Arc::new(SystemClock))?;
/// // `/` is in the first shard, so this one is in the second.
/// let vhost = engine.declare_vhost("mails", VhostSettings::default()).await?;
/// engine.in_vhost(vhost).declare_queue("work", Settings::default()).await?;
/// engine.close();
/// # Ok(()) }
/// ```
pub struct ShardedEngine {
    shards: Arc<Shards>,
    /// The shard of the virtual host where it is asked, by whoever asks.
    here: LocalEngine,
    /// Who asks, if that is somebody connected.
    seats: Option<Arc<Seats>>,
    /// Dropping it stops all.
    is_first: bool,
}

/// The shards, and what is for all of them.
struct Shards {
    all: Vec<LocalEngine>,
    lobby: Lobby,
}

/// Somebody who is connected: a session at each shard where it ever asked something.
struct Seats {
    shards: Arc<Shards>,
    taken: Vec<OnceLock<LocalEngine>>,
}

/// Why shards could not be opened.
#[derive(Debug)]
pub enum NoShards {
    /// So many cannot be.
    Count,
    /// The directory has one more than was asked for, in which something may be.
    TooFew {
        /// How many it has at least.
        found: usize,
    },
    /// The directory cannot be read.
    Unreadable(io::Error),
    /// A shard does not open.
    Shard {
        /// Its directory.
        dir: PathBuf,
        /// Why not.
        error: OpenError,
    },
}

impl fmt::Display for NoShards {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count => write!(f, "a store has 1 to {SHARDS_MAX} shards"),
            Self::TooFew { found } => write!(f, "the store has {found} shards; open it with {found} or more"),
            Self::Unreadable(why) => write!(f, "the directory cannot be read: {why}"),
            Self::Shard { error, .. } => error.fmt(f),
        }
    }
}

impl std::error::Error for NoShards {}

/// The directory of a shard of a store, counted from 0.
#[must_use]
pub fn shard_dir(dir: &Path, shard: usize) -> PathBuf {
    if shard == 0 { dir.to_owned() } else { dir.join(format!("{DIRECTORY}{shard}")) }
}

/// What is before the names of a shard's files in the directory of the store.
pub(crate) fn shard_prefix(shard: usize) -> String {
    if shard == 0 { String::new() } else { format!("{DIRECTORY}{shard}/") }
}

/// How many shards there are in the directory of a store: 1 in an empty one.
///
/// # Errors
/// It cannot be read.
pub fn shards_in(dir: &Path) -> io::Result<usize> {
    for shard in (1..SHARDS_MAX).rev() {
        match fs::metadata(shard_dir(dir, shard)) {
            Ok(there) if there.is_dir() => return Ok(shard + 1),
            Err(why) if why.kind() != io::ErrorKind::NotFound => return Err(why),
            _ => {}
        }
    }
    Ok(1)
}

/// The shard whose numbers these are.
fn shard_of(vhost: VhostId) -> usize {
    (vhost.0 / NUMBERS) as usize
}

fn numbers_of(shard: usize) -> Numbers {
    let first = shard as u32 * NUMBERS;
    // The last number of all is nobody's.
    Numbers { first, end: first + (NUMBERS - 1) }
}

impl ShardedEngine {
    /// Opens so many shards in a directory, those that are not there yet empty. The first is the store of the directory itself, as [`LocalEngine`] has it. All share the memory that messages may take.
    ///
    /// # Errors
    /// [`NoShards`].
    pub fn open_with(
        dir: impl AsRef<Path>,
        count: usize,
        options: Options,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, NoShards> {
        Self::open_in(dir.as_ref(), count, options, clock)
    }

    /// Not generic, as `LocalEngine::open_in` is not.
    fn open_in(dir: &Path, count: usize, options: Options, clock: Arc<dyn Clock>) -> Result<Self, NoShards> {
        if count == 0 || count > SHARDS_MAX {
            return Err(NoShards::Count);
        }
        let found = shards_in(dir).map_err(NoShards::Unreadable)?;
        if found > count {
            return Err(NoShards::TooFew { found });
        }
        let of = |shard| {
            let dir = shard_dir(dir, shard);
            let failed = |error: StoreError| NoShards::Shard { dir: dir.clone(), error: error.into() };
            RealDisk::create(&dir).map(|disk| (dir.clone(), disk)).map_err(failed)
        };
        let disks = (0..count).map(of).collect::<Result<_, _>>()?;
        Self::open_on(disks, &options, &clock)
    }

    /// As [`ShardedEngine::open_with`], each on a disk of its own, which is told of by this path.
    ///
    /// # Errors
    /// [`NoShards::Shard`].
    ///
    /// # Panics
    /// If there are none, or more than [`SHARDS_MAX`].
    pub fn open_on<D: Disk>(
        disks: Vec<(PathBuf, D)>,
        options: &Options,
        clock: &Arc<dyn Clock>,
    ) -> Result<Self, NoShards>
    where
        D::File: 'static,
        D::Guard: Send,
    {
        assert!((1..=SHARDS_MAX).contains(&disks.len()), "there are 1 to {SHARDS_MAX} shards");
        let shards = disks.len() as u64;
        let (memory_bytes, pushed_bytes) =
            (options.memory_bytes / shards, options.pushed_bytes.div_ceil(shards));
        let open = |(shard, (dir, disk)): (usize, (PathBuf, D))| {
            let options =
                Options { memory_bytes, pushed_bytes, numbers: numbers_of(shard), ..options.clone() };
            LocalEngine::open_on(disk, options, Arc::clone(clock))
                .map_err(|error| NoShards::Shard { dir, error })
        };
        // What there is to read is read by all at once.
        let all = thread::scope(|scope| {
            let under_way: Vec<_> =
                disks.into_iter().enumerate().map(|disk| scope.spawn(|| open(disk))).collect();
            let opened = under_way.into_iter().map(|one| one.join().expect("opening does not panic"));
            opened.collect::<Vec<_>>().into_iter().collect::<Result<Vec<_>, _>>()
        })?;
        let here = all[0].of_vhost(VhostId::DEFAULT);
        let shards = Arc::new(Shards { all, lobby: Lobby::default() });
        Ok(Self { shards, here, seats: None, is_first: true })
    }

    /// What was found in each shard when it was opened.
    pub fn recovered(&self) -> impl ExactSizeIterator<Item = &Recovered> {
        self.shards.all.iter().map(LocalEngine::recovered)
    }

    /// Does all that was asked before, makes it durable and stops. Later calls are answered [`Failure::Unavailable`](crate::Failure::Unavailable).
    ///
    /// # Panics
    /// When another thread panicked while it closed the engine.
    pub fn close(&self) {
        // One waits for the disk of all.
        self.shards.all.iter().for_each(LocalEngine::begin_to_close);
        self.shards.all.iter().for_each(LocalEngine::close);
    }

    /// Why publishes are refused at each shard, now and whenever it changes; `None` while they are taken.
    #[must_use]
    pub fn full(&self) -> Vec<watch::Receiver<Option<Full>>> {
        self.shards.all.iter().map(LocalEngine::full).collect()
    }

    /// The damage found in the segments of each shard, now and whenever more of it is found.
    #[must_use]
    pub fn damage(&self) -> Vec<watch::Receiver<DamageHealth>> {
        self.shards.all.iter().map(LocalEngine::damage).collect()
    }

    /// Waits until one of them can serve no more, and answers why. Never returns while all is well.
    ///
    /// # Panics
    /// Never: there is a first shard.
    pub async fn failed(&self) -> Arc<str> {
        let mut all: Vec<_> = self.shards.all.iter().map(|shard| Box::pin(shard.failed())).collect();
        std::future::poll_fn(|context| {
            let ended = all.iter_mut().find_map(|one| match one.as_mut().poll(context) {
                Poll::Ready(why) => Some(why),
                Poll::Pending => None,
            });
            ended.map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }

    /// The same, asked in a virtual host by whoever has these seats.
    fn asked(&self, vhost: VhostId, seats: Option<Arc<Seats>>) -> Self {
        let shard = self.shards.of(vhost);
        let here = match &seats {
            None => self.shards.all[shard].of_vhost(vhost),
            Some(seats) => seats.at(shard).of_vhost(vhost),
        };
        Self { shards: Arc::clone(&self.shards), here, seats, is_first: false }
    }
}

impl Drop for ShardedEngine {
    fn drop(&mut self) {
        if self.is_first {
            self.close();
        }
    }
}

impl Shards {
    /// The shard of a virtual host; the first for those that are in none.
    fn of(&self, vhost: VhostId) -> usize {
        Some(shard_of(vhost)).filter(|shard| *shard < self.all.len()).unwrap_or(0)
    }
}

impl Seats {
    fn new(shards: &Arc<Shards>) -> Self {
        let taken = shards.all.iter().map(|_| OnceLock::new()).collect();
        Self { shards: Arc::clone(shards), taken }
    }

    /// Its session at a shard, which begins when it asks there first.
    fn at(&self, shard: usize) -> &LocalEngine {
        self.taken[shard].get_or_init(|| self.shards.all[shard].of_session())
    }
}
