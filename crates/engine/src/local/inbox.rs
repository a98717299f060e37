//! The inbox of the broker, and who works it off.
//!
//! One thread at a time runs the broker: the broker thread, or whoever puts a small request in while nobody runs it (*flat combining*: Hendler,
//! Incze, Shavit and Tzafrir, 2010). To wake another thread takes longer than most requests do, and then that has to wake the one that asked. Whoever
//! runs it inline, on its own thread, does one round, and hands over to the broker thread whatever is left.
//!
//! ```text
//!   idle ── put ──▶ asked ── a round begins ──▶ busy ── the round is over ──▶ idle
//!                     ▲                          │
//!                     └────────── put ───────────┘   the broker thread does another round
//! ```

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Mutex, OnceLock};
use std::thread::Thread;
use std::time::{Duration, Instant};

use super::broker_loop::{BrokerLoop, Next};
use super::{Ask, EndsTheProcess};

/// Nobody runs the broker, and nothing is in the inbox.
const IDLE: u8 = 0;
/// Somebody runs it.
const BUSY: u8 = 1;
/// Something was put in since the round began, or nobody has begun one.
const ASKED: u8 = 2;

/// Messages, or requests, that are worked off inline: more of them take longer than to wake the broker thread, which then works beside whoever
/// asked, and beside the other connections that this thread serves.
const INLINE_WORK_MAX: usize = 16;

/// The inbox, and the broker behind it.
pub(super) struct Inbox {
    asks: Sender<Ask>,
    state: AtomicU8,
    /// Locked by whoever runs it, so nobody waits for the lock; `None` once it is over.
    broker: Mutex<Option<BrokerLoop>>,
    bell: Bell,
}

/// Nobody listens any more.
pub(super) struct Gone;

impl Inbox {
    /// What is put in with `asks` must come out in the broker. Nothing is done before [`Inbox::run`].
    pub(super) fn new(asks: Sender<Ask>, broker: BrokerLoop) -> Self {
        Self { asks, state: AtomicU8::new(BUSY), broker: Mutex::new(Some(broker)), bell: Bell::default() }
    }

    /// Puts it in. It may be done, and answered, before this returns: whoever asks must hold nothing that the broker needs.
    pub(super) fn ask(&self, ask: Ask) -> Result<(), Gone> {
        let is_small = ask.work() <= INLINE_WORK_MAX;
        if self.put(ask)? {
            if is_small {
                self.run_inline();
            } else {
                self.bell.hand_over();
            }
        }
        Ok(())
    }

    /// Puts it in for another thread to do. Where nobody listens any more there is nothing left to do.
    pub(super) fn tell(&self, ask: Ask) {
        if self.put(ask).is_ok_and(|is_ours| is_ours) {
            self.bell.hand_over();
        }
    }

    /// Whether nobody ran the broker: then it is for the caller to have it run.
    fn put(&self, ask: Ask) -> Result<bool, Gone> {
        self.asks.send(ask).map_err(|_| Gone)?;
        Ok(self.state.swap(ASKED, Ordering::AcqRel) == IDLE)
    }

    fn run_inline(&self) {
        let _guard = EndsTheProcess;
        if let Next::At(wake) = self.round(BrokerLoop::round_inline) {
            self.bell.ring_by(wake);
            if self.leave() {
                return;
            }
        }
        self.bell.hand_over();
    }

    /// The broker thread: runs the broker whenever it is handed over or something is due, until it is over.
    pub(super) fn run(&self) {
        self.bell.listen();
        loop {
            match self.round(BrokerLoop::round) {
                Next::Now => continue,
                Next::Over => break,
                Next::At(wake) => self.bell.set(wake),
            }
            if self.leave() {
                while !self.bell.wait() && self.state.swap(ASKED, Ordering::AcqRel) != IDLE {}
            }
        }
        let broker = self.broker.lock().expect("a panic ends the process").take();
        broker.expect("it is over once").say_goodbye();
    }

    fn round(&self, round: fn(&mut BrokerLoop) -> Next) -> Next {
        // Whatever was put in before is found in this round.
        self.state.swap(BUSY, Ordering::AcqRel);
        let mut broker = self.broker.lock().expect("a panic ends the process");
        round(broker.as_mut().expect("nobody runs it once it is over"))
    }

    /// Whether nothing was put in since the round began: then nobody runs the broker now.
    fn leave(&self) -> bool {
        self.state.compare_exchange(BUSY, IDLE, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}

/// What wakes the broker thread.
struct Bell {
    thread: OnceLock<Thread>,
    is_handed_over: AtomicBool,
    since: Instant,
    /// When it wakes up by itself, ns since then.
    alarm: AtomicU64,
}

/// No alarm.
const NEVER: u64 = u64::MAX;

impl Default for Bell {
    fn default() -> Self {
        Self {
            thread: OnceLock::new(),
            is_handed_over: AtomicBool::new(false),
            since: Instant::now(),
            alarm: AtomicU64::new(NEVER),
        }
    }
}

impl Bell {
    /// From now on this thread is woken.
    fn listen(&self) {
        self.thread.get_or_init(std::thread::current);
    }

    /// Whoever runs the broker leaves that to the broker thread.
    fn hand_over(&self) {
        self.is_handed_over.store(true, Ordering::Release);
        self.ring();
    }

    fn ring(&self) {
        // One that does not listen yet has not begun, and looks before it waits.
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }

    fn at(&self, after: Option<Duration>) -> u64 {
        let at = after.map(|after| (self.since.elapsed() + after).as_nanos());
        at.and_then(|at| u64::try_from(at).ok()).unwrap_or(NEVER)
    }

    /// The broker thread wakes up after so long.
    fn set(&self, after: Option<Duration>) {
        self.alarm.store(self.at(after), Ordering::Release);
    }

    /// The broker thread wakes up after so long, or before.
    fn ring_by(&self, after: Option<Duration>) {
        let at = self.at(after);
        if at < self.alarm.fetch_min(at, Ordering::AcqRel) {
            self.ring();
        }
    }

    /// Waits: whether the broker was handed over. Otherwise it is time for something.
    fn wait(&self) -> bool {
        loop {
            if self.is_handed_over.swap(false, Ordering::AcqRel) {
                return true;
            }
            match self.alarm.load(Ordering::Acquire) {
                NEVER => std::thread::park(),
                alarm => match Duration::from_nanos(alarm).checked_sub(self.since.elapsed()) {
                    Some(rest) if !rest.is_zero() => std::thread::park_timeout(rest),
                    _ => {
                        self.alarm.store(NEVER, Ordering::Release);
                        return false;
                    }
                },
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    const HOUR: Option<Duration> = Some(Duration::from_secs(3_600));

    #[test]
    fn whoever_listens_wakes_up_at_the_soonest_alarm() {
        let bell = Bell::default();
        bell.listen();
        bell.set(HOUR);
        bell.ring_by(Some(Duration::from_millis(1)));
        bell.ring_by(HOUR);
        bell.ring_by(None);
        assert!(!bell.wait(), "it is time");
        assert_eq!(bell.alarm.load(Ordering::Acquire), NEVER, "and once");
    }

    #[test]
    fn an_alarm_that_is_set_sooner_wakes_whoever_sleeps_already() {
        let bell = Arc::new(Bell::default());
        bell.set(HOUR);
        let sleeps = Arc::clone(&bell);
        let sleeper = std::thread::spawn(move || {
            sleeps.listen();
            sleeps.wait()
        });
        bell.ring_by(Some(Duration::from_millis(1)));
        assert!(!sleeper.join().expect("it wakes up"));
    }

    #[test]
    fn what_is_handed_over_before_anybody_listens_is_found() {
        let bell = Bell::default();
        bell.hand_over();
        bell.listen();
        assert!(bell.wait());
        bell.set(Some(Duration::ZERO));
        assert!(!bell.wait(), "once");
    }
}
