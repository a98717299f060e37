//! Where an engine gets the time from.
//!
//! The wall clock of a machine can be set, forwards and back, and whatever waits for a moment would then wait for as long as it was
//! wrong. So inside a run time comes from a monotonic clock that was set by the wall clock once, at the start: a [`SteadyClock`].
//! It compares both at every reading. A difference of more than [`CLOCK_STEP_MS`] that was not there before is a step, which is counted
//! and told, and then:
//!
//! | the wall clock | the time of the run |
//! |---|---|
//! | was set forwards, or the machine slept | goes forwards with it, as far as the wall clock is later: leases end and delays are over, as they would be after such a time, and messages whose time to live is over by then expire |
//! | was set back | goes on as if nothing had happened, and is ahead of the wall clock from then on: everything waits as long as it would have. What is stored and shown is ahead, too, until the broker is started again or the wall clock has caught up by a step |
//!
//! So the time of a run never goes back, and never goes slower than the monotonic clock.

use std::fmt;
use std::sync::{LazyLock, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use overtake_lane::{CLOCK_STEP_MS, Time};

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
    /// By how much it is ahead of the wall clock, ms, because that was set back.
    fn ahead_ms(&self) -> u64 {
        0
    }
    /// Calls this whenever the time jumps, so that whoever sleeps looks again.
    fn on_jump(&self, _wake: Box<dyn Fn() + Send>) {}
}

/// The two clocks of a machine.
pub trait TimeSource: Send + Sync + 'static {
    /// What has passed since some moment. It never goes back.
    fn running(&self) -> Duration;
    /// What the wall clock shows, since 1970.
    fn wall(&self) -> Duration;
}

/// The clocks of this machine.
#[derive(Clone, Copy, Debug)]
pub struct MachineTime(Instant);

impl Default for MachineTime {
    fn default() -> Self {
        Self(Instant::now())
    }
}

impl TimeSource for MachineTime {
    fn running(&self) -> Duration {
        self.0.elapsed()
    }

    fn wall(&self) -> Duration {
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
    }
}

/// The wall clock was set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockStep {
    /// The time that the wall clock should have shown.
    pub from: Time,
    /// The time that the wall clock shows.
    pub to: Time,
    /// By how much the time of the run is ahead of it now, ms.
    pub ahead_ms: u64,
}

impl fmt::Display for ClockStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { from, to, ahead_ms } = *self;
        let (by, how) = if to > from { (to.since(from), "forwards") } else { (from.since(to), "back") };
        write!(f, "the wall clock was set {how} by {by} ms, from {} to {} ms since 1970", from.0, to.0)?;
        if ahead_ms > CLOCK_STEP_MS {
            write!(
                f,
                "; the broker goes on at its own pace, and the times that it stores and shows are {ahead_ms} ms ahead until it is started again"
            )?;
        }
        Ok(())
    }
}

/// How often the wall clock was set, as far as it was noticed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockSteps {
    /// Forwards.
    pub forwards: u64,
    /// Back.
    pub back: u64,
}

/// A function that is called with each step.
type Listener = Box<dyn Fn(&ClockStep) + Send>;

/// The time of a run, by a monotonic clock that follows the wall clock forwards and never back.
pub struct SteadyClock<S> {
    source: S,
    state: Mutex<Steady>,
    told: Mutex<Vec<Listener>>,
}

#[derive(Clone, Copy, Debug)]
struct Steady {
    /// When it was set last, by the monotonic clock.
    set_at: Duration,
    /// The time of the run then.
    time: Duration,
    /// By how much that was ahead of the wall clock.
    ahead: Duration,
    steps: ClockSteps,
}

impl<S: TimeSource> SteadyClock<S> {
    /// One that shows what the wall clock shows.
    #[must_use]
    pub fn new(source: S) -> Self {
        let (set_at, time) = (source.running(), source.wall());
        let state = Steady { set_at, time, ahead: Duration::ZERO, steps: ClockSteps::default() };
        Self { source, state: Mutex::new(state), told: Mutex::default() }
    }

    /// Where it gets the time from.
    pub fn source(&self) -> &S {
        &self.source
    }

    /// Tells this of every step, by whoever reads the clock first after it.
    ///
    /// # Panics
    /// When another thread panicked while it held the clock.
    pub fn on_step(&self, tell: Box<dyn Fn(&ClockStep) + Send>) {
        self.told.lock().expect("nobody panics with the clock in hand").push(tell);
    }

    /// How often the wall clock was set.
    ///
    /// # Panics
    /// When another thread panicked while it held the clock.
    #[must_use]
    pub fn steps(&self) -> ClockSteps {
        self.read();
        self.state.lock().expect("nobody panics with the clock in hand").steps
    }

    /// What has passed since the clock was made or any moment before: for what has to do with no moment, as signs of life.
    #[must_use]
    pub fn running(&self) -> Time {
        Time(ms(self.source.running()))
    }

    fn read(&self) -> Duration {
        let (time, step) = {
            let mut state = self.state.lock().expect("nobody panics with the clock in hand");
            state.look(self.source.running(), self.source.wall())
        };
        if let Some(step) = step {
            for tell in self.told.lock().expect("nobody panics with the clock in hand").iter() {
                tell(&step);
            }
        }
        time
    }
}

impl Steady {
    /// The time of the run, and whether the wall clock was set since the last look.
    fn look(&mut self, running: Duration, wall: Duration) -> (Duration, Option<ClockStep>) {
        let time = self.time + running.saturating_sub(self.set_at);
        let expected = time.saturating_sub(self.ahead);
        if expected.abs_diff(wall) <= Duration::from_millis(CLOCK_STEP_MS) {
            return (time, None);
        }
        self.set_at = self.set_at.max(running);
        self.time = time.max(wall);
        self.ahead = self.time - wall;
        let count = if wall > expected { &mut self.steps.forwards } else { &mut self.steps.back };
        *count += 1;
        let step = ClockStep { from: Time(ms(expected)), to: Time(ms(wall)), ahead_ms: ms(self.ahead) };
        (self.time, Some(step))
    }
}

impl<S: TimeSource> Clock for SteadyClock<S> {
    fn now(&self) -> Time {
        Time(ms(self.read()))
    }

    fn nanos(&self) -> u64 {
        u64::try_from(self.read().as_nanos()).unwrap_or(u64::MAX)
    }

    fn until(&self, when: Time) -> Option<Duration> {
        Some(Duration::from_millis(when.since(self.now())))
    }

    fn ahead_ms(&self) -> u64 {
        ms(self.state.lock().expect("nobody panics with the clock in hand").ahead)
    }
}

fn ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// The time of this process, by the clocks of the machine: one [`SteadyClock`] for all that asks.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

static MACHINE: LazyLock<SteadyClock<MachineTime>> =
    LazyLock::new(|| SteadyClock::new(MachineTime::default()));

impl SystemClock {
    /// The clock that it is.
    #[must_use]
    pub fn steady(self) -> &'static SteadyClock<MachineTime> {
        &MACHINE
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Time {
        MACHINE.now()
    }

    fn nanos(&self) -> u64 {
        MACHINE.nanos()
    }

    fn until(&self, when: Time) -> Option<Duration> {
        MACHINE.until(when)
    }

    fn ahead_ms(&self) -> u64 {
        MACHINE.ahead_ms()
    }
}

/// What the wall clock of the machine shows, whoever sets it: for what has to do with dates, as lines of cron and the ends of tokens.
#[derive(Clone, Copy, Debug, Default)]
pub struct WallClock;

impl Clock for WallClock {
    fn now(&self) -> Time {
        Time(ms(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()))
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

impl ManualClock {
    /// Sets the time, also back, and wakes whoever sleeps by it.
    ///
    /// # Panics
    /// As [`ManualClock::advance`].
    pub fn set(&self, now: Time) {
        *self.now.lock().expect("nobody panics with the clock in hand") = now;
        self.advance(0);
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

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: u64 = 24 * 3_600_000;

    /// Two clocks, ms, each as it is told.
    #[derive(Default)]
    struct Told(Mutex<(u64, u64)>);

    impl TimeSource for Told {
        fn running(&self) -> Duration {
            Duration::from_millis(self.0.lock().expect("whole").0)
        }

        fn wall(&self) -> Duration {
            Duration::from_millis(self.0.lock().expect("whole").1)
        }
    }

    impl Told {
        fn pass(&self, ms: u64) {
            let mut both = self.0.lock().expect("whole");
            *both = (both.0 + ms, both.1 + ms);
        }

        fn set(&self, wall: u64) {
            self.0.lock().expect("whole").1 = wall;
        }
    }

    fn clock() -> SteadyClock<Told> {
        let told = Told::default();
        told.set(100 * DAY);
        SteadyClock::new(told)
    }

    #[test]
    fn time_goes_on_where_the_wall_clock_is_set_back() {
        let clock = clock();
        clock.source().pass(5_000);
        clock.source().set(98 * DAY);
        assert_eq!((clock.now(), clock.ahead_ms()), (Time(100 * DAY + 5_000), 2 * DAY + 5_000));
        clock.source().pass(30_000);
        assert_eq!(clock.now(), Time(100 * DAY + 35_000), "what waits 30 s waits 30 s");
        assert_eq!(clock.steps(), ClockSteps { forwards: 0, back: 1 });
    }

    #[test]
    fn time_follows_the_wall_clock_forwards() {
        let clock = clock();
        clock.source().set(102 * DAY);
        assert_eq!((clock.now(), clock.ahead_ms()), (Time(102 * DAY), 0));
        clock.source().pass(1);
        assert_eq!((clock.now(), clock.steps()), (Time(102 * DAY + 1), ClockSteps { forwards: 1, back: 0 }));
    }

    #[test]
    fn a_clock_that_was_ahead_and_is_set_right_and_forwards_again_gives_a_run_its_own_time_once() {
        let clock = clock();
        clock.source().set(98 * DAY);
        assert_eq!((clock.now(), clock.ahead_ms()), (Time(100 * DAY), 2 * DAY));
        clock.source().set(99 * DAY);
        assert_eq!((clock.now(), clock.ahead_ms()), (Time(100 * DAY), DAY), "it is not later than the run");
        clock.source().set(101 * DAY);
        assert_eq!((clock.now(), clock.ahead_ms()), (Time(101 * DAY), 0));
        assert_eq!(clock.steps(), ClockSteps { forwards: 2, back: 1 });
    }

    #[test]
    fn a_second_is_no_step_and_more_is_told_once() {
        let clock = clock();
        let told = std::sync::Arc::new(Mutex::new(Vec::new()));
        let tell = std::sync::Arc::clone(&told);
        clock.on_step(Box::new(move |step| tell.lock().expect("whole").push(step.to_string())));
        clock.source().set(100 * DAY - CLOCK_STEP_MS);
        assert_eq!((clock.now(), clock.ahead_ms()), (Time(100 * DAY), 0));
        clock.source().set(100 * DAY - CLOCK_STEP_MS - 1);
        assert_eq!((clock.now(), clock.now(), clock.ahead_ms()), (Time(100 * DAY), Time(100 * DAY), 1_001));
        let told = told.lock().expect("whole");
        assert_eq!(
            *told,
            [
                "the wall clock was set back by 1001 ms, from 8640000000 to 8639998999 ms since 1970; the broker goes on at its own pace, and the times that it stores and shows are 1001 ms ahead until it is started again"
            ]
        );
    }
}
