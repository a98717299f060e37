//! The local engine under test.
#![allow(dead_code, unreachable_pub, reason = "each test file uses its part")]

use std::path::Path;
use std::sync::Arc;

use overtake_engine::conformance::Fixture;
use overtake_engine::core::OpenError;
use overtake_engine::{
    Clock, Engine, LeaseRequest, LeasedMessage, LocalEngine, ManualClock, NewMessage, Options, ShardedEngine,
};
use overtake_lane::Time;
use overtake_store::MemoryDisk;
use tempfile::TempDir;

/// November 2026.
pub const START: Time = Time(1_793_500_000_000);
/// The smallest files there are.
pub const TINY: u64 = 64 << 10;

/// A clock that stands at [`START`].
pub fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::new(START))
}

/// Options with files of this length.
pub fn options(segment_bytes: u64) -> Options {
    Options { segment_bytes, seed: 7, ..Options::default() }
}

/// Opens an engine on a directory, with tiny files.
pub fn open_dir(dir: &Path, clock: &Arc<ManualClock>) -> Result<LocalEngine, OpenError> {
    LocalEngine::open_with(dir, options(TINY), clock.clone())
}

/// Opens an engine on a memory disk, with tiny files.
pub fn open_disk(disk: &MemoryDisk, clock: &Arc<ManualClock>) -> Result<LocalEngine, OpenError> {
    LocalEngine::open_on(disk.clone(), options(TINY), clock.clone())
}

/// The same files on a disk of its own.
pub fn copy_of(disk: &MemoryDisk) -> MemoryDisk {
    let copy = MemoryDisk::new(2);
    for name in disk.names() {
        copy.put(&name, disk.read(&name).expect("a file"));
    }
    copy
}

/// The files whose names begin so; there are some.
pub fn files_named(disk: &MemoryDisk, prefix: &str) -> Vec<String> {
    let names: Vec<_> = disk.names().into_iter().filter(|name| name.starts_with(prefix)).collect();
    assert!(!names.is_empty(), "no file is named {prefix}…");
    names
}

/// An engine that is closed when its store is to be opened anew.
pub trait Closing: Engine {
    /// Does what was asked before, and stops.
    fn close(&self);
}

impl Closing for LocalEngine {
    fn close(&self) {
        Self::close(self);
    }
}

impl Closing for ShardedEngine {
    fn close(&self) {
        Self::close(self);
    }
}

/// Where a store lies: what is left when its engine has ended, and what the next one opens.
pub trait Ground {
    /// What opens it.
    type Engine: Closing;

    /// Opens what is there, which can be opened.
    fn open(&self, clock: &Arc<ManualClock>) -> Self::Engine;

    /// The power fails, if it can: what was not synced may be lost.
    fn power_cut(&self) {}
}

/// A real directory.
pub struct Directory {
    dir: TempDir,
    segment_bytes: u64,
    memory_bytes: u64,
}

impl Directory {
    /// A new one, for journal files of this length.
    pub fn new(segment_bytes: u64) -> Self {
        Self::with_memory(segment_bytes, Options::default().memory_bytes)
    }

    /// The same, for a broker whose messages may take so much memory.
    pub fn with_memory(segment_bytes: u64, memory_bytes: u64) -> Self {
        Self { dir: tempfile::tempdir().expect("a directory"), segment_bytes, memory_bytes }
    }
}

impl Ground for Directory {
    type Engine = LocalEngine;

    fn open(&self, clock: &Arc<ManualClock>) -> LocalEngine {
        let options = Options { memory_bytes: self.memory_bytes, ..options(self.segment_bytes) };
        LocalEngine::open_with(self.dir.path(), options, clock.clone()).expect("the store opens")
    }
}

/// A disk in memory.
pub struct InMemory {
    disk: MemoryDisk,
    memory_bytes: u64,
}

impl InMemory {
    /// A new one, for a broker whose messages may take so much memory.
    pub fn new(memory_bytes: u64) -> Self {
        Self { disk: MemoryDisk::new(1), memory_bytes }
    }
}

impl Ground for InMemory {
    type Engine = LocalEngine;

    fn open(&self, clock: &Arc<ManualClock>) -> LocalEngine {
        let options = Options { memory_bytes: self.memory_bytes, ..options(TINY) };
        LocalEngine::open_on(self.disk.clone(), options, clock.clone()).expect("the store opens")
    }

    fn power_cut(&self) {
        self.disk.power_cut();
    }
}

/// Three shards, each on a disk in memory.
pub struct Sharded {
    disks: [MemoryDisk; 3],
}

impl Sharded {
    /// New ones.
    pub fn new() -> Self {
        Self { disks: [1, 2, 3].map(MemoryDisk::new) }
    }
}

impl Ground for Sharded {
    type Engine = ShardedEngine;

    fn open(&self, clock: &Arc<ManualClock>) -> ShardedEngine {
        let disks = self.disks.iter().map(|disk| ("memory".into(), disk.clone()));
        let clock: Arc<dyn Clock> = clock.clone();
        ShardedEngine::open_on(disks.collect(), &options(TINY), &clock).expect("the stores open")
    }

    fn power_cut(&self) {
        self.disks.iter().for_each(MemoryDisk::power_cut);
    }
}

/// An engine that runs on its ground.
pub struct Running<G: Ground> {
    ground: G,
    clock: Arc<ManualClock>,
    engine: Option<Arc<G::Engine>>,
}

impl<G: Ground> Running<G> {
    /// A new one.
    pub fn on(ground: G) -> Self {
        let mut running = Self { ground, clock: clock(), engine: None };
        running.start();
        running
    }

    fn start(&mut self) {
        self.engine = Some(Arc::new(self.ground.open(&self.clock)));
    }
}

impl<G: Ground + Send + Sync> Fixture for Running<G> {
    fn engine(&self) -> Arc<dyn Engine> {
        self.engine.clone().expect("it runs")
    }

    fn now(&self) -> Time {
        self.clock.now()
    }

    async fn advance(&self, ms: u64) {
        self.clock.advance(ms);
    }

    async fn restart(&mut self) {
        self.engine.take().expect("it runs").close();
        self.start();
    }

    async fn crash(&mut self) {
        self.ground.power_cut();
        // After a power cut its threads find their files gone, and stop.
        self.restart().await;
    }
}

/// A message for the queue `q`.
pub fn message(body: &str, priority: impl std::fmt::Display) -> NewMessage {
    overtake_engine::conformance::words::message("q", &format!("{body}:{priority}"))
}

/// A lease of what is there.
pub fn pull(queue: &str, max: u32) -> LeaseRequest {
    LeaseRequest::new(queue.into(), max)
}

/// What they say.
pub fn bodies(messages: &[LeasedMessage]) -> String {
    let bodies: Vec<_> =
        messages.iter().map(|message| String::from_utf8_lossy(&message.content.body)).collect();
    bodies.join(" ")
}
