//! What goes wrong for a while is said once, and once more when it is over.

use std::fmt::Display;
use std::time::Duration;

use tokio::sync::watch;

/// The first wait before something is tried again.
const FIRST: Duration = Duration::from_millis(100);
/// The longest.
const LONGEST: Duration = Duration::from_secs(5);

/// Something that may go wrong for a while.
pub(crate) struct Trouble {
    what: &'static str,
    said: Option<String>,
    wait: Duration,
}

impl Trouble {
    pub(crate) fn new(what: &'static str) -> Self {
        Self { what, said: None, wait: FIRST }
    }

    /// It went wrong: how long to wait before it is tried again.
    pub(crate) fn says(&mut self, why: impl Display) -> Duration {
        let why = why.to_string();
        if self.said.as_ref() != Some(&why) {
            tracing::warn!(%why, "{}; it is tried again", self.what);
            self.said = Some(why);
        }
        let wait = self.wait;
        self.wait = (self.wait * 2).min(LONGEST);
        wait
    }

    /// It went well.
    pub(crate) fn is_over(&mut self) {
        if self.said.take().is_some() {
            tracing::info!("it works again, after: {}", self.what);
        }
        self.wait = FIRST;
    }
}

/// Waits, or until the relay is to stop: whether it is.
pub(crate) async fn pause(wait: Duration, stopping: &mut watch::Receiver<bool>) -> bool {
    tokio::select! {
        _ = stopping.wait_for(|stopping| *stopping) => true,
        () = tokio::time::sleep(wait) => false,
    }
}
