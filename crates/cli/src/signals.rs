//! Being told to end: Ctrl-C, SIGTERM, and a terminal that goes away.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals that say so.
pub(crate) struct Ending {
    interrupt: Signal,
    terminate: Signal,
    /// `None` where it means nothing.
    hangup: Option<Signal>,
}

impl Ending {
    /// From now on they end nothing by themselves.
    pub(crate) fn listen() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: if is_hangup_ignored() { None } else { Some(signal(SignalKind::hangup())?) },
        })
    }

    /// Waits for something, and for one of them; the second ends the wait. Answers what was waited for, and whether one has come.
    pub(crate) async fn wait_with<T>(&mut self, work: impl Future<Output = T>) -> (Option<T>, bool) {
        let mut work = std::pin::pin!(work);
        tokio::select! {
            done = &mut work => return (Some(done), false),
            () = self.wait() => {}
        }
        tokio::select! {
            done = work => (Some(done), true),
            () = self.wait() => (None, true),
        }
    }

    /// Waits for one.
    pub(crate) async fn wait(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            () = received(self.hangup.as_mut()) => {}
        }
    }
}

async fn received(signal: Option<&mut Signal>) {
    match signal {
        Some(signal) => drop(signal.recv().await),
        None => std::future::pending().await,
    }
}

/// Whether whoever started this wants it to outlive its terminal, as `nohup` does. Where that cannot be seen, too.
pub(crate) fn is_hangup_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    // Bit 0 is signal 1.
    ignored.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok()).is_none_or(|bits| bits & 1 == 1)
}
