//! The local engine under test.
#![allow(dead_code, unreachable_pub, reason = "each test file uses its part")]

use std::path::Path;
use std::sync::Arc;

use overtake_engine::conformance::Fixture;
use overtake_engine::core::OpenError;
use overtake_engine::{
    Clock, Engine, LeaseRequest, LeasedMessage, LocalEngine, ManualClock, NewMessage, Options,
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

/// An engine on a real directory.
pub struct Directory {
    dir: TempDir,
    clock: Arc<ManualClock>,
    options: Options,
    engine: Option<Arc<LocalEngine>>,
}

impl Directory {
    /// A new one, with journal files of this length.
    pub fn open(segment_bytes: u64) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let mut fixture = Self { dir, clock: clock(), options: options(segment_bytes), engine: None };
        fixture.start();
        fixture
    }

    fn start(&mut self) {
        let engine = LocalEngine::open_with(self.dir.path(), self.options.clone(), self.clock.clone());
        self.engine = Some(Arc::new(engine.expect("the store opens")));
    }
}

impl Fixture for Directory {
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
}

/// An engine on a memory disk, whose crash is a power cut.
pub struct PowerCuts {
    disk: MemoryDisk,
    clock: Arc<ManualClock>,
    engine: Option<Arc<LocalEngine>>,
}

impl PowerCuts {
    /// A new one; the seed draws what the power cuts do.
    pub fn open(seed: u64) -> Self {
        let mut fixture = Self { disk: MemoryDisk::new(seed), clock: clock(), engine: None };
        fixture.start();
        fixture
    }

    fn start(&mut self) {
        self.engine = Some(Arc::new(open_disk(&self.disk, &self.clock).expect("the store opens")));
    }
}

impl Fixture for PowerCuts {
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
        let engine = self.engine.take().expect("it runs");
        self.disk.power_cut();
        // Its threads find their files gone, and stop.
        engine.close();
        self.start();
    }
}

/// A message for the queue `q`.
pub fn message(body: &str, priority: impl std::fmt::Display) -> NewMessage {
    overtake_engine::conformance::words::message("q", &format!("{body}:{priority}"))
}

/// A lease of what is there.
pub fn pull(queue: &str, max: u32) -> LeaseRequest {
    LeaseRequest { queue: queue.into(), max, wait_ms: 0, visibility_ms: None }
}

/// What they say.
pub fn bodies(messages: &[LeasedMessage]) -> String {
    let bodies: Vec<_> =
        messages.iter().map(|message| String::from_utf8_lossy(&message.content.body)).collect();
    bodies.join(" ")
}
