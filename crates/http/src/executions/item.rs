//! One execution: what a message and its record say of it.

use overtake_api::schema::PrioritySchema;
use overtake_engine::BrowsedMessage;
use overtake_lane::{Attempt, Death, Ending, Given, MessageView, Record, Report, Status};
use serde::Serialize;
use utoipa::ToSchema;

use crate::answer::{AttemptOut, rfc3339};
use crate::held::{HolderOut, ProgressOut};

/// Behind the sequence of what is in a history and has no id of its own: in the queue another one may be called so.
const IN_HISTORY: &str = "@history";

/// How far an execution is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ExecutionStatus {
    /// It waits for its turn.
    Queued,
    /// It is not to begin yet.
    Delayed,
    /// Somebody works on it.
    Running,
    /// It was done.
    Completed,
    /// It was rejected, or failed as often as the queue allows.
    Failed,
    /// It took longer than `run_timeout_ms`, or was not begun before it expired.
    Timeout,
    /// Somebody took it back, or the queue was full and it was the least urgent.
    Cancelled,
}

impl ExecutionStatus {
    /// The word for each.
    pub(super) const WORDS: [&str; 7] =
        ["queued", "delayed", "running", "completed", "failed", "timeout", "cancelled"];

    /// The one of this word.
    pub(super) fn of_word(word: &str) -> Option<Self> {
        let all = [
            Self::Queued,
            Self::Delayed,
            Self::Running,
            Self::Completed,
            Self::Failed,
            Self::Timeout,
            Self::Cancelled,
        ];
        Self::WORDS.iter().zip(all).find(|(name, _)| **name == word).map(|(_, status)| status)
    }

    /// Where in its life a message stands that is so far, if it is not finished.
    pub(super) fn standing(self) -> Option<Status> {
        match self {
            Self::Queued => Some(Status::Ready),
            Self::Delayed => Some(Status::Delayed),
            Self::Running => Some(Status::Leased),
            Self::Completed | Self::Failed | Self::Timeout | Self::Cancelled => None,
        }
    }

    /// How the work ended, if it is finished.
    pub(super) fn ending(self) -> Option<Ending> {
        match self {
            Self::Queued | Self::Delayed | Self::Running => None,
            Self::Completed => Some(Ending::Completed),
            Self::Failed => Some(Ending::Failed),
            Self::Timeout => Some(Ending::Timeout),
            Self::Cancelled => Some(Ending::Cancelled),
        }
    }
}

impl From<Ending> for ExecutionStatus {
    fn from(ending: Ending) -> Self {
        match ending {
            Ending::Completed => Self::Completed,
            Ending::Failed => Self::Failed,
            Ending::Timeout | Ending::LeaseExpired => Self::Timeout,
            Ending::Cancelled => Self::Cancelled,
        }
    }
}

/// One execution.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct Execution {
    /// The id that its publisher gave it, else `seq-` and its sequence, and `@history` behind that once it is finished.
    execution_id: String,
    /// How far it is.
    status: ExecutionStatus,
    /// The priority as it was given, or what a missing one counts as.
    #[schema(value_type = PrioritySchema)]
    priority: Given,
    /// Whose it is, if that was said.
    #[serde(skip_serializing_if = "Option::is_none")]
    user_id: Option<String>,
    /// Its key.
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    /// How often it was begun.
    attempts: u32,
    /// When it was submitted.
    #[schema(format = DateTime)]
    queued_at: String,
    /// When it is to begin at the earliest, if it is delayed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    due_at: Option<String>,
    /// When it was begun, the last time, if it runs or is finished: in a queue with a history, or a bound on how long work takes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    started_at: Option<String>,
    /// When it was finished.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    finished_at: Option<String>,
    /// Who works on it, if it runs and that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    holder: Option<HolderOut>,
    /// How far it is, if it runs and that was said.
    #[serde(skip_serializing_if = "Option::is_none")]
    progress: Option<ProgressOut>,
    /// Somebody wants it back from whoever works on it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    cancel_asked: bool,
    /// With what its program ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    /// What kind of error it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// The end of what it printed.
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<String>,
    /// Its last attempt, without what it printed, if it waits for another or runs again.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_attempt: Option<AttemptOut>,
    /// Executions ahead of it; only when it was asked for alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    position: Option<u64>,
    /// The attempts before, which did not end it, the oldest first: at most the last 8; only when it was asked for alone.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    past_attempts: Vec<AttemptOut>,
    /// How many attempts there were before those, of which nothing is kept; only when it was asked for alone.
    #[serde(skip_serializing_if = "is_none")]
    #[schema(required = false)]
    forgotten_attempts: usize,
}

fn is_none(count: &usize) -> bool {
    *count == 0
}

impl Execution {
    /// Of a message in the queue.
    pub(super) fn in_queue(browsed: &BrowsedMessage) -> Self {
        let view = &browsed.message;
        let death = view.death().filter(|_| view.status == Status::Dead);
        let is_running = view.status == Status::Leased;
        let status = match (view.status, death) {
            (Status::Ready, _) => ExecutionStatus::Queued,
            (Status::Delayed, _) => ExecutionStatus::Delayed,
            (Status::Leased, _) => ExecutionStatus::Running,
            (Status::Dead, death) => {
                death.map_or(ExecutionStatus::Failed, |death: &Death| death.reason.ending().into())
            }
        };
        let last = death.and_then(|death| last_attempt(view, death)).map(|attempt| attempt.report.clone());
        let Report { exit_code, error, output } = last.unwrap_or_default();
        Self {
            execution_id: view.id.clone(),
            status,
            exit_code,
            output: output.map(Into::into),
            attempts: view.count,
            queued_at: rfc3339(view.since),
            due_at: view.due.map(rfc3339),
            started_at: view.work.filter(|_| is_running).map(|work| rfc3339(work.started)),
            finished_at: death.map(|death| rfc3339(death.at)),
            cancel_asked: view.work.is_some_and(|work| is_running && work.is_cancelled),
            error: error.map(Into::into).or_else(|| death.map(|death| death.reason.error().to_owned())),
            position: browsed.position,
            last_attempt: AttemptOut::all(view, false).pop().filter(|_| death.is_none()),
            ..Self::said(browsed)
        }
    }

    /// Of a message in the history; of one that has no record, and so came there otherwise, as of any.
    pub(super) fn in_history(browsed: &BrowsedMessage) -> Self {
        let Some(record) = &browsed.message.record else { return Self::in_queue(browsed) };
        let Record { ending, queued, started, finished, attempts, report, .. } = &**record;
        let Report { exit_code, error, output } = report;
        Self {
            execution_id: public_id(&browsed.message),
            status: (*ending).into(),
            attempts: *attempts,
            queued_at: rfc3339(*queued),
            started_at: started.map(rfc3339),
            finished_at: Some(rfc3339(*finished)),
            exit_code: *exit_code,
            error: error.as_deref().map(ToOwned::to_owned),
            output: output.as_deref().map(ToOwned::to_owned),
            ..Self::said(browsed)
        }
    }

    /// What the message says of itself.
    fn said(browsed: &BrowsedMessage) -> Self {
        let view = &browsed.message;
        Self {
            execution_id: String::new(),
            status: ExecutionStatus::Queued,
            priority: view.priority.clone(),
            user_id: browsed.content.user_id().map(ToOwned::to_owned),
            key: view.key.clone(),
            attempts: 0,
            queued_at: String::new(),
            due_at: None,
            started_at: None,
            finished_at: None,
            holder: HolderOut::of(browsed.held.as_ref()),
            progress: ProgressOut::of(browsed.held.as_ref()),
            cancel_asked: false,
            exit_code: None,
            error: None,
            output: None,
            position: None,
            last_attempt: None,
            past_attempts: Vec::new(),
            forgotten_attempts: 0,
        }
    }

    /// The same, with the attempts before.
    pub(super) fn with_past_attempts(self, browsed: &BrowsedMessage) -> Self {
        let view = &browsed.message;
        let death = view.death().filter(|_| view.status == Status::Dead);
        let mut past_attempts = AttemptOut::all(view, true);
        if death.is_some_and(|death| last_attempt(view, death).is_some()) {
            past_attempts.pop();
        }
        // The last one is still under way, or is the one that ended it, unless it ended while it waited.
        let has_last = match &view.record {
            Some(record) => record.started.is_some(),
            None => matches!(view.status, Status::Leased | Status::Dead),
        };
        let before = (self.attempts as usize).saturating_sub(usize::from(has_last));
        // Attempts of which nothing could be kept are only counted, and the count begins anew with a retry.
        let dropped = view.attempts.as_ref().map_or(0, |attempts| attempts.forgotten() as usize);
        let forgotten_attempts = before.saturating_sub(past_attempts.len()).max(dropped);
        Self { forgotten_attempts, past_attempts, ..self }
    }

    /// The same, cancelled while it waited, where no history keeps it.
    pub(super) fn cancelled(self) -> Self {
        Self {
            status: ExecutionStatus::Cancelled,
            due_at: None,
            position: None,
            last_attempt: None,
            holder: None,
            progress: None,
            ..self
        }
    }

    /// Says in a few words what an execution does that is not finished: that it runs, waits, or is tried again.
    pub(super) fn doing(&self) -> String {
        match (self.status, self.past_attempts.last(), &self.due_at) {
            (ExecutionStatus::Running, ..) => "runs".to_owned(),
            (_, Some(last), Some(due)) => format!("failed ({last}) and is tried again at {due}"),
            (_, None, Some(due)) => format!("waits until {due}"),
            (_, Some(last), None) => format!("failed ({last}) and waits to be tried again"),
            (_, None, None) => "waits".to_owned(),
        }
    }

    /// Whether it waits or runs.
    pub(super) fn is_pending(&self) -> bool {
        self.status.standing().is_some()
    }
}

/// The attempt of which a message died that is a dead letter in its own queue, if it is remembered.
fn last_attempt<'v>(view: &'v MessageView, death: &Death) -> Option<&'v Attempt> {
    view.attempts.as_ref()?.iter().next_back().filter(|attempt| attempt.finished == death.at)
}

/// What a message of a history is called among executions.
fn public_id(view: &MessageView) -> String {
    // No publisher can give an id that begins so.
    if view.id.starts_with("seq-") { format!("{}{IN_HISTORY}", view.id) } else { view.id.clone() }
}

/// What an execution is called in the history; `None`: it cannot be there.
pub(super) fn id_in_history(id: &str) -> Option<&str> {
    match id.strip_suffix(IN_HISTORY) {
        Some(own) if own.starts_with("seq-") => Some(own),
        _ if id.starts_with("seq-") => None,
        _ => Some(id),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_one_execution_in_the_queue_or_in_the_history() {
        assert_eq!(id_in_history("order-17"), Some("order-17"));
        assert_eq!(id_in_history("order@history"), Some("order@history"));
        assert_eq!(id_in_history("seq-17"), None);
        assert_eq!(id_in_history("seq-17@history"), Some("seq-17"));
    }

    #[test]
    fn every_status_has_a_word() {
        for word in ExecutionStatus::WORDS {
            let status = ExecutionStatus::of_word(word).expect("it has");
            assert_eq!(serde_json::to_value(status).expect("plain data"), word);
            assert!(status.standing().is_some() != status.ending().is_some(), "{word}");
        }
    }
}
