//! How far the worker is on its way to an end: each signal takes it one stage further.

use std::io;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::signals::is_hangup_ignored;

/// What the worker does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    /// It takes messages.
    Working,
    /// It takes no more and waits for what runs.
    Finishing,
    /// It ends what runs and puts it back.
    Ending,
    /// It kills what runs and waits for nothing.
    Leaving,
}

impl Stage {
    /// The one behind it.
    pub(crate) fn next(self) -> Self {
        match self {
            Self::Working => Self::Finishing,
            Self::Finishing => Self::Ending,
            Self::Ending | Self::Leaving => Self::Leaving,
        }
    }
}

/// The stage, for all who have to know.
#[derive(Clone, Debug)]
pub(crate) struct Stages(watch::Sender<Stage>);

impl Stages {
    /// Working, until there are signals.
    pub(crate) fn listen() -> io::Result<Self> {
        let stages = Self(watch::Sender::new(Stage::Working));
        let hangup = (!is_hangup_ignored()).then_some(SignalKind::hangup());
        for kind in [SignalKind::interrupt(), SignalKind::terminate()].into_iter().chain(hangup) {
            let mut signals = signal(kind)?;
            let stages = stages.clone();
            tokio::spawn(async move {
                while signals.recv().await.is_some() {
                    stages.0.send_modify(|stage| *stage = stage.next());
                }
            });
        }
        Ok(stages)
    }

    /// Which it is.
    pub(crate) fn now(&self) -> Stage {
        *self.0.borrow()
    }

    /// Takes no more, as after a first signal.
    pub(crate) fn finish(&self) {
        self.0.send_if_modified(|stage| {
            let works = *stage == Stage::Working;
            if works {
                *stage = Stage::Finishing;
            }
            works
        });
    }

    /// Waits for a stage, or one behind it.
    pub(crate) async fn reached(&self, stage: Stage) {
        let waited = self.0.subscribe().wait_for(|now| *now >= stage).await.map(drop);
        waited.expect("the sender is ours");
    }
}
