//! Where an engine gets the time from.

use std::sync::Mutex;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use overtake_lane::Time;

/// Tells the time, and how long to sleep.
pub trait Clock: Send + Sync + 'static {
    /// Now.
    fn now(&self) -> Time;
    /// The same in ns since 1970, as fine as it is known: for what people look at, since nothing is decided by it.
    fn nanos(&self) -> u64 {
        self.now().0.saturating_mul(1_000_000)
    }
    /// How long until then; `None`: until woken.
    fn until(&self, when: Time) -> Option<Duration>;
    /// Calls this whenever the time jumps, so that whoever sleeps looks again.
    fn on_jump(&self, _wake: Box<dyn Fn() + Send>) {}
}

/// The clock of the machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn nanos(&self) -> u64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
    }

    fn now(&self) -> Time {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Time(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }

    fn until(&self, when: Time) -> Option<Duration> {
        Some(Duration::from_millis(when.since(self.now())))
    }
}

/// A clock that goes when it is told to, for tests that wait for nothing.
pub struct ManualClock {
    now: Mutex<Time>,
    wakes: Mutex<Vec<Box<dyn Fn() + Send>>>,
}

impl ManualClock {
    /// A clock that stands at this time.
    #[must_use]
    pub fn new(now: Time) -> Self {
        Self { now: Mutex::new(now), wakes: Mutex::new(Vec::new()) }
    }

    /// Moves the time on, and wakes whoever sleeps by it.
    ///
    /// # Panics
    /// When another thread panicked while it held the clock.
    pub fn advance(&self, ms: u64) {
        {
            let mut now = self.now.lock().expect("nobody panics with the clock in hand");
            *now = now.after(ms);
        }
        for wake in self.wakes.lock().expect("nobody panics with the clock in hand").iter() {
            wake();
        }
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Time {
        *self.now.lock().expect("nobody panics with the clock in hand")
    }

    fn until(&self, _when: Time) -> Option<Duration> {
        None
    }

    fn on_jump(&self, wake: Box<dyn Fn() + Send>) {
        self.wakes.lock().expect("nobody panics with the clock in hand").push(wake);
    }
}
