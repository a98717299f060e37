//! How the work on a message went: each attempt that did not end it, and what a queue with a history keeps of the last one.

use std::sync::Arc;

use crate::ids::Time;
use crate::refusal::Refusal;

/// Most bytes of error and output of one report.
pub const REPORT_BYTES_MAX: usize = 32 << 10;

/// Most attempts that a message remembers: the last ones.
pub const ATTEMPTS_MAX: usize = 8;

/// Most bytes of errors and outputs of all attempts that a message remembers. One report always fits.
pub const ATTEMPTS_BYTES_MAX: usize = 2 * REPORT_BYTES_MAX;

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
    /// Its lease ran out. Only an attempt ends so: the message comes back, or has failed as often as the queue allows.
    LeaseExpired,
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
            Self::LeaseExpired => "lease_expired",
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

    /// Whether it says nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the report with `error` if it has none.
    #[must_use]
    pub fn or_error(self, error: &str) -> Self {
        Self { error: self.error.or_else(|| Some(error.into())), ..self }
    }

    /// Returns the report with the end of `output` if it has none, as much of it as a report may have.
    #[must_use]
    pub fn or_output(self, output: &str) -> Self {
        if self.output.is_some() || output.is_empty() {
            return self;
        }
        let room = REPORT_BYTES_MAX.saturating_sub(self.size());
        let from = output.ceil_char_boundary(output.len().saturating_sub(room));
        Self { output: Some(output[from..].into()), ..self }
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

/// One attempt at the work on a message that did not end it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// How it ended.
    pub ending: Ending,
    /// When it was begun, where that is known: in a queue with a history or a bound on how long work takes.
    pub started: Option<Time>,
    /// When it ended.
    pub finished: Time,
    /// What was said of it.
    pub report: Report,
}

impl Attempt {
    /// Bytes that it is counted with.
    fn size(&self) -> u64 {
        (size_of::<Self>() + self.report.size()) as u64
    }
}

/// The attempts at the work on a message that did not end it, the oldest first: the last [`ATTEMPTS_MAX`], and of those as many as have
/// reports of no more than [`ATTEMPTS_BYTES_MAX`] in all. There is at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempts {
    kept: Vec<Attempt>,
    forgotten: u32,
}

impl Attempts {
    /// Makes a list of attempts, the oldest first, with the number of older ones that were dropped from it. `None`: there are none, or
    /// too many.
    #[must_use]
    pub fn new(kept: Vec<Attempt>, forgotten: u32) -> Option<Self> {
        let bytes: usize = kept.iter().map(|attempt| attempt.report.size()).sum();
        let fits = (1..=ATTEMPTS_MAX).contains(&kept.len()) && bytes <= ATTEMPTS_BYTES_MAX;
        fits.then_some(Self { kept, forgotten })
    }

    /// Returns `before` and one more attempt, which is the last. The oldest are forgotten if there are too many.
    #[must_use]
    pub fn another(before: Option<&Self>, last: Attempt) -> Self {
        let forgotten = before.map_or(0, |before| before.forgotten);
        let before = before.map(|before| &*before.kept).unwrap_or_default();
        let mut room = ATTEMPTS_BYTES_MAX.saturating_sub(last.report.size());
        let fits = |attempt: &&Attempt| {
            let left = room.checked_sub(attempt.report.size());
            room = left.unwrap_or_default();
            left.is_some()
        };
        let kept = before.iter().rev().take(ATTEMPTS_MAX - 1).take_while(fits).count();
        let (dropped, kept) = before.split_at(before.len() - kept);
        Self {
            kept: kept.iter().cloned().chain([last]).collect(),
            forgotten: forgotten.saturating_add(dropped.len() as u32),
        }
    }

    /// The number of older attempts that were dropped from the list.
    #[must_use]
    pub fn forgotten(&self) -> u32 {
        self.forgotten
    }

    /// All, the oldest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Attempt> + ExactSizeIterator {
        self.kept.iter()
    }

    /// Bytes that they are counted with beside their message.
    pub(crate) fn size(&self) -> u64 {
        self.iter().map(Attempt::size).sum()
    }
}

impl Record {
    /// Returns the attempt that the record is of, for a message whose work is to be done again. `None`: the work was never begun, and
    /// nothing was said of it.
    #[must_use]
    pub fn attempt(&self) -> Option<Attempt> {
        let Self { ending, started, finished, report, .. } = self;
        let attempt =
            Attempt { ending: *ending, started: *started, finished: *finished, report: report.clone() };
        (started.is_some() || !report.is_empty()).then_some(attempt)
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

    fn attempt(finished: u64, bytes: usize) -> Attempt {
        let report = Report { output: Some("x".repeat(bytes).into()), ..Report::default() };
        Attempt { ending: Ending::Failed, started: None, finished: Time(finished), report }
    }

    fn after(attempts: impl IntoIterator<Item = Attempt>) -> Vec<u64> {
        let all =
            attempts.into_iter().fold(None, |before, last| Some(Attempts::another(before.as_ref(), last)));
        let all = all.expect("there is one");
        assert_eq!(
            Attempts::new(all.iter().cloned().collect(), all.forgotten()),
            Some(all.clone()),
            "it is within its bounds"
        );
        let [first, ..] = &*all.kept else { unreachable!("there is one") };
        assert_eq!(u64::from(all.forgotten()), first.finished.0, "those before the first that is kept");
        all.iter().map(|attempt| attempt.finished.0).collect()
    }

    #[test]
    fn the_last_eight_attempts_are_remembered() {
        assert_eq!(after((0..3).map(|at| attempt(at, 10))), [0, 1, 2]);
        assert_eq!(after((0..20).map(|at| attempt(at, 10))), (12..20).collect::<Vec<_>>());
    }

    #[test]
    fn and_of_those_as_many_as_have_short_reports_in_all() {
        assert_eq!(after((0..5).map(|at| attempt(at, ATTEMPTS_BYTES_MAX / 2))), [3, 4]);
        assert_eq!(after((0..5).map(|at| attempt(at, ATTEMPTS_BYTES_MAX))), [4]);
        let lens = [1, ATTEMPTS_BYTES_MAX - 2, 1, 1];
        assert_eq!(after(lens.iter().zip(0..).map(|(bytes, at)| attempt(at, *bytes))), [1, 2, 3]);
        assert_eq!(Attempts::new(vec![attempt(0, ATTEMPTS_BYTES_MAX), attempt(1, 1)], 0), None);
        assert_eq!(Attempts::new(Vec::new(), 0), None);
    }
}
