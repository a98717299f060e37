//! A broker to talk to: an engine on a directory of its own, whose clock goes when it is told to.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{Thread, current, park_timeout};
use std::time::{Duration, Instant};

use overtake_engine::{Browse, Engine, LocalEngine, ManualClock, Options};
use overtake_lane::{QueueView, Refusal, Time};
use overtake_store::MemoryDisk;
use tempfile::TempDir;

use crate::client::Client;

/// November 2026.
pub(crate) const START: Time = Time(1_793_500_000_000);
/// The length of a journal file on a disk in memory, the least there is.
pub(crate) const FILE: u64 = 64 << 10;
/// The capabilities that clients of today have.
pub(crate) const MODERN: &[&str] =
    &["consumer_cancel_notify", "connection.blocked", "authentication_failure_close"];

/// Where the store lies.
enum Ground {
    Directory(TempDir),
    Memory(MemoryDisk),
}

/// An engine, and its clock.
pub(crate) struct Broker {
    ground: Ground,
    clock: Arc<ManualClock>,
    engine: Option<Arc<LocalEngine>>,
    connections: u64,
}

/// What a future comes to, on this thread. Those of the engine need no runtime.
#[expect(clippy::disallowed_methods, reason = "it bounds how long a test waits, and decides nothing")]
pub(crate) fn wait<F: Future>(future: F) -> F::Output {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(current())));
    let (mut future, mut context) = (pin!(future), Context::from_waker(&waker));
    let begun = Instant::now();
    // A wake-up may be for nothing, as often as others are served.
    while begun.elapsed() < Duration::from_secs(60) {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
        park_timeout(Duration::from_secs(1));
    }
    panic!("nothing comes of it in a minute");
}

impl Broker {
    /// A new one.
    pub(crate) fn new() -> Self {
        Self::on(Ground::Directory(tempfile::tempdir().expect("a directory")))
    }

    /// One on this disk.
    pub(crate) fn on_disk(disk: &MemoryDisk) -> Self {
        Self::on(Ground::Memory(disk.clone()))
    }

    fn on(ground: Ground) -> Self {
        let clock = Arc::new(ManualClock::new(START));
        let mut broker = Self { ground, clock, engine: None, connections: 0 };
        broker.open();
        broker
    }

    fn open(&mut self) {
        let options = |segment_bytes| Options { segment_bytes, seed: 7, ..Options::default() };
        let clock = self.clock.clone();
        let engine = match &self.ground {
            Ground::Directory(dir) => LocalEngine::open_with(dir.path(), options(1 << 20), clock),
            Ground::Memory(disk) => LocalEngine::open_on(disk.clone(), options(FILE), clock),
        };
        self.engine = Some(Arc::new(engine.expect("the store opens")));
    }

    /// Stops it and starts it again. Its connections are over.
    pub(crate) fn restart(&mut self) {
        self.engine.take().expect("it runs").close();
        self.open();
    }

    /// As HTTP asks it.
    pub(crate) fn engine(&self) -> &Arc<LocalEngine> {
        self.engine.as_ref().expect("it runs")
    }

    /// Lets time pass.
    pub(crate) fn advance(&self, ms: u64) {
        self.clock.advance(ms);
    }

    /// A client that has logged in, on channel 1.
    pub(crate) fn connect(&mut self) -> Client {
        self.connect_with(MODERN)
    }

    /// The same, of a client that understands these.
    pub(crate) fn connect_with(&mut self, capabilities: &[&str]) -> Client {
        let mut client = self.accept();
        client.log_in("/", capabilities);
        client
    }

    /// A connection that nothing was said on.
    pub(crate) fn accept(&mut self) -> Client {
        self.connections += 1;
        let full = self.engine().full();
        let full = Box::new(move || full.borrow().as_ref().map(ToString::to_string));
        Client::new(self.engine().session(), full, Arc::clone(&self.clock), self.connections)
    }

    /// A queue as it is.
    pub(crate) fn view(&self, queue: &str) -> QueueView {
        wait(self.engine().queue(queue)).expect("the queue is there")
    }

    /// Whether a queue is there.
    pub(crate) fn has(&self, queue: &str) -> bool {
        match wait(self.engine().queue(queue)) {
            Ok(_) => true,
            Err(failure) => {
                assert_eq!(failure, Refusal::NoSuchQueue.into());
                false
            }
        }
    }

    /// Messages ready in a queue.
    pub(crate) fn ready(&self, queue: &str) -> u64 {
        self.view(queue).lanes.iter().map(|lane| lane.ready).sum()
    }

    /// The messages of a queue in the order in which they would go, with their priorities: `b:9 a:5`. What is not ready says so:
    /// `c:5(leased)`.
    pub(crate) fn waiting(&self, queue: &str) -> String {
        let browse = Browse { limit: 100, ..Browse::default() };
        let page = wait(self.engine().browse(queue, browse)).expect("the queue is there");
        let words = page.messages.iter().map(|one| {
            let body = String::from_utf8_lossy(&one.content.body);
            let status = match one.message.status {
                overtake_lane::Status::Ready => String::new(),
                other => format!("({})", format!("{other:?}").to_lowercase()),
            };
            format!("{body}:{}{status}", one.message.priority)
        });
        words.collect::<Vec<_>>().join(" ")
    }
}
