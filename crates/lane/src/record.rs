//! How the work on a message went: what a queue with a history keeps of it.

use std::sync::Arc;

use crate::ids::Time;
use crate::refusal::Refusal;

/// Most bytes of error and output of one report.
pub const REPORT_BYTES_MAX: usize = 32 << 10;

/// How the work on a message ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// It was done: acknowledged.
    Completed,
    /// It was rejected, or failed as often as the queue allows.
    Failed,
    /// It took longer than `run_timeout_ms`, or was not begun before it expired.
    Timeout,
    /// Somebody took it back, or the queue was full and it was the least urgent.
    Cancelled,
}

impl Ending {
    /// The word for it on every wire.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Timeout => "timeout",
            Self::Cancelled => "cancelled",
        }
    }
}

/// What whoever did the work says of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// With what its program ended.
    pub exit_code: Option<i32>,
    /// What kind of error it was, in a few words for people and programs.
    pub error: Option<Box<str>>,
    /// The end of what it printed.
    pub output: Option<Box<str>>,
}

impl Report {
    /// Only what kind of error it was.
    #[must_use]
    pub fn of_error(error: &str) -> Self {
        Self { error: Some(error.into()), ..Self::default() }
    }

    /// Bytes of its texts.
    #[must_use]
    pub fn size(&self) -> usize {
        [&self.error, &self.output].into_iter().flatten().map(|text| text.len()).sum()
    }

    /// Whether it may be kept.
    ///
    /// # Errors
    /// [`Refusal::ReportTooLarge`] beyond [`REPORT_BYTES_MAX`].
    pub fn check(&self) -> Result<(), Refusal> {
        if self.size() <= REPORT_BYTES_MAX { Ok(()) } else { Err(Refusal::ReportTooLarge) }
    }
}

/// The work on a message, once it is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// How it ended.
    pub ending: Ending,
    /// The queue it was in.
    pub queue: Arc<str>,
    /// The lane it was in.
    pub lane: Arc<str>,
    /// When it was published.
    pub queued: Time,
    /// When it was begun, the last time; `None`: never.
    pub started: Option<Time>,
    /// When it ended.
    pub finished: Time,
    /// How often it was begun.
    pub attempts: u32,
    /// What was said of it.
    pub report: Report,
}

impl Record {
    /// Bytes that it is counted with beside its message.
    #[must_use]
    pub fn size(&self) -> u64 {
        (size_of::<Self>() + self.queue.len() + self.lane.len() + self.report.size()) as u64
    }
}

/// Work that goes on: what a lease is besides in a queue with a history or a bound on how long work takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work {
    /// When it was begun.
    pub started: Time,
    /// When it has taken too long; [`Time::NEVER`]: it may take as long as it wants.
    pub ends: Time,
    /// Somebody wants it back: its holder is told as soon as it asks for more time.
    pub is_cancelled: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_bounded() {
        let of = |bytes: usize| Report { output: Some("x".repeat(bytes).into()), ..Report::of_error("exit") };
        assert_eq!(of(REPORT_BYTES_MAX - 4).check(), Ok(()));
        assert_eq!(of(REPORT_BYTES_MAX - 3).check(), Err(Refusal::ReportTooLarge));
    }
}
