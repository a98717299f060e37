//! What the end of a program means for its message.

use rustix::process::WaitStatus;

use super::Plan;
use super::source::{How, Report};

/// The error of a program that ran for longer than its queue allows, as the broker says it.
const RAN_TOO_LONG: &str = "ran too long";
/// The error of a program whose message was removed.
const REMOVED: &str = "the message was removed";

/// Why a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// By itself.
    Itself,
    /// It was ended: the message is wanted back.
    Cancelled,
    /// The program was ended: it ran for longer than its queue allows.
    TooLong,
    /// The program was ended, since the message was removed.
    Removed,
    /// It was ended: the message is somebody else's.
    Lost,
    /// It was ended: the worker stops.
    Stopped,
}

/// What became of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Done,
    Failed,
    Rejected,
    Cancelled,
    /// Its program ran for longer than the queue allows.
    TimedOut,
    /// Untouched, for somebody else.
    PutBack,
    /// The message was removed meanwhile, alone or with its queue.
    Removed,
    /// It was somebody else's already.
    Lost,
    /// Leased, until its lease ends.
    Left,
}

/// What to say to the broker, and to people.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Verdict {
    pub(crate) outcome: Outcome,
    /// How to settle; `None`: not at all.
    pub(crate) how: Option<How>,
    pub(crate) report: Report,
}

impl Outcome {
    /// The word for it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Rejected => "rejected",
            Self::Cancelled => "cancelled",
            Self::TimedOut => "timeout",
            Self::PutBack => "put back",
            Self::Removed => "removed",
            Self::Lost => "lost",
            Self::Left => "left",
        }
    }

    /// The same as a name for programs.
    pub(crate) fn name(self) -> &'static str {
        if self == Self::PutBack { "put_back" } else { self.word() }
    }
}

impl Verdict {
    /// Of a program that ended so.
    pub(crate) fn of(cause: Cause, status: Option<WaitStatus>, output: String, plan: &Plan) -> Self {
        let exit_code = status.and_then(WaitStatus::exit_status);
        let (outcome, how, error) = match cause {
            Cause::Itself => by_itself(exit_code, status, plan),
            Cause::Cancelled => (Outcome::Cancelled, Some(How::Reject), Some("cancelled".to_owned())),
            Cause::TooLong => (Outcome::TimedOut, Some(How::Timeout), Some(RAN_TOO_LONG.to_owned())),
            Cause::Removed => (Outcome::Removed, None, Some(REMOVED.to_owned())),
            Cause::Lost => (Outcome::Lost, None, Some("lease lost".to_owned())),
            Cause::Stopped => (Outcome::PutBack, Some(How::Release), Some("worker stopped".to_owned())),
        };
        let output = Some(output).filter(|output| !output.is_empty());
        Self { outcome, how, report: Report { exit_code, error, output } }
    }

    /// Notes that the message was removed, so that nothing can be settled.
    pub(crate) fn removed(&mut self) {
        self.outcome = Outcome::Removed;
        self.report.error = Some(REMOVED.to_owned());
    }

    /// Of a program that did not even start.
    pub(crate) fn unstarted(error: &std::io::Error, plan: &Plan) -> Self {
        let what = error.to_string();
        let what = what.split(" (os error").next().unwrap_or_default();
        let error = Some(format!("cannot be started: {what}"));
        let how = Some(How::Nack { delay_ms: plan.delay_ms });
        Self { outcome: Outcome::Failed, how, report: Report { error, ..Report::default() } }
    }
}

fn by_itself(
    exit_code: Option<i32>,
    status: Option<WaitStatus>,
    plan: &Plan,
) -> (Outcome, Option<How>, Option<String>) {
    let failed = Some(How::Nack { delay_ms: plan.delay_ms });
    let signal = status.and_then(WaitStatus::terminating_signal);
    match (exit_code, signal) {
        (Some(0), _) => (Outcome::Done, Some(How::Ack), None),
        (Some(code), _) if plan.reject_on.iter().any(|reject| i32::from(*reject) == code) => {
            (Outcome::Rejected, Some(How::Reject), Some(format!("exit {code}")))
        }
        (Some(code), _) => (Outcome::Failed, failed, Some(format!("exit {code}"))),
        (None, Some(signal)) => (Outcome::Failed, failed, Some(format!("signal {signal}"))),
        (None, None) => (Outcome::Failed, failed, Some("ended without a status".to_owned())),
    }
}
