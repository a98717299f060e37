//! The signals that end the server, of which the first asks and the second insists; and those that have it read files again, or drain.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// SIGTERM, SIGINT, SIGHUP and SIGUSR2 from now on.
pub(crate) struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
    user2: Signal,
}

/// What a signal asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// To stop; the name of the signal.
    Stop(&'static str),
    /// To read again what may have changed.
    Reload,
    /// To give out nothing more, and wait for what is out.
    Drain,
}

impl Signals {
    /// Takes the signals over: from now on they no longer kill the process.
    pub(crate) fn take() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
            user2: signal(SignalKind::user_defined2())?,
        })
    }

    /// The next one.
    pub(crate) async fn next(&mut self) -> Asked {
        tokio::select! {
            stop = Self::stop(&mut self.terminate, &mut self.interrupt) => Asked::Stop(stop),
            _ = self.hangup.recv() => Asked::Reload,
            _ = self.user2.recv() => Asked::Drain,
        }
    }

    /// The name of the next one that asks to stop. One that asks for something else waits.
    pub(crate) async fn next_stop(&mut self) -> &'static str {
        Self::stop(&mut self.terminate, &mut self.interrupt).await
    }

    async fn stop(terminate: &mut Signal, interrupt: &mut Signal) -> &'static str {
        tokio::select! {
            _ = terminate.recv() => "SIGTERM",
            _ = interrupt.recv() => "SIGINT",
        }
    }
}
