//! Changes to many messages: what is done, and the jobs that do it step by step.

use std::sync::Arc;

use overtake_lane::{Command, Given, QueueId, Refusal, Seq, Time, VhostId, Which};
use serde::{Deserialize, Serialize};

use crate::api::Filter;

/// What is done to messages that are chosen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// Ready and delayed messages get this priority.
    Reprioritise(Given),
    /// The messages leave the queue.
    Remove,
    /// The same of what is ready or delayed, or of what stands as the filter says.
    Purge,
    /// Messages that wait end at once; a consumer that works on one is told when it asks for more time ([`Refusal::CancelAsked`]).
    Cancel,
    /// Dead letters go back into their lanes, with another priority if one is named.
    Replay(Option<Given>),
}

impl Change {
    /// The command that does it to messages of a queue.
    pub(crate) fn command(&self, queue: &Arc<str>, which: Which) -> Command {
        let queue = Arc::clone(queue);
        match self.clone() {
            Self::Reprioritise(priority) => Command::Reprioritise { queue, which, priority },
            Self::Remove | Self::Purge => Command::Remove { queue, which },
            Self::Cancel => Command::CancelMessages { queue, which },
            Self::Replay(promote) => Command::Replay { queue, which, promote },
        }
    }

    /// The change in one word.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Reprioritise(_) => "reprioritise",
            Self::Remove => "remove",
            Self::Purge => "purge",
            Self::Cancel => "cancel",
            Self::Replay(_) => "replay",
        }
    }
}

/// What came of a change that was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Started {
    /// The change is done: so many messages were changed.
    Done(u64),
    /// The change takes more than one step, and goes on as this job.
    Job(Box<JobView>),
}

/// A job: a change that goes on step by step between other requests, also after a restart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobView {
    /// Its number, unique in its virtual host.
    pub id: u64,
    /// The queue whose messages it changes.
    pub queue: Arc<str>,
    /// What it does to them.
    pub change: Change,
    /// Which messages it changes: those that match and were published before it began.
    pub filter: Filter,
    /// Whether the job goes on, or how it ended.
    pub state: JobState,
    /// Messages changed so far.
    pub changed: u64,
    /// Messages looked at so far.
    pub looked: u64,
    /// Messages that the queue had when the job began. The job looks at no more than these, and at fewer if some leave before it comes to them.
    pub total: u64,
    /// When it began.
    pub began: Time,
    /// When it ended, if it has.
    pub ended: Option<Time>,
    /// Why it failed, in words, if it has.
    pub error: Option<Arc<str>>,
    /// Why it failed; `None` also once the broker has started again since.
    pub refusal: Option<Refusal>,
}

/// How a job stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobState {
    /// The job goes on.
    Running,
    /// The job has looked at all messages.
    Done,
    /// The job was refused half-way: what it had changed stays changed.
    Failed,
    /// Somebody cancelled the job: what it had changed stays changed.
    Cancelled,
}

impl JobState {
    /// The state in one word, the same on every wire.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

/// A job as it is kept: a JSON document among the metadata. A field that is not there has its default value, one that is not known is ignored.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct JobRecord {
    pub(crate) vhost: u32,
    pub(crate) queue: u32,
    pub(crate) name: Arc<str>,
    pub(crate) change: Change,
    #[serde(default)]
    pub(crate) filter: Filter,
    /// So many must match, which is still to be counted.
    #[serde(default)]
    pub(crate) expect: Option<u64>,
    /// The job changes no message from this sequence on.
    pub(crate) until: u64,
    /// The job has looked at all messages up to this sequence.
    pub(crate) passed: u64,
    pub(crate) state: JobState,
    pub(crate) changed: u64,
    pub(crate) looked: u64,
    pub(crate) total: u64,
    pub(crate) began: u64,
    #[serde(default)]
    pub(crate) ended: Option<u64>,
    #[serde(default)]
    pub(crate) error: Option<Arc<str>>,
}

impl JobRecord {
    pub(crate) fn vhost(&self) -> VhostId {
        VhostId(self.vhost)
    }

    pub(crate) fn queue(&self) -> QueueId {
        QueueId(self.queue)
    }

    pub(crate) fn until(&self) -> Seq {
        Seq(self.until)
    }

    pub(crate) fn view(&self, id: u64, refusal: Option<Refusal>) -> JobView {
        JobView {
            id,
            queue: Arc::clone(&self.name),
            change: self.change.clone(),
            filter: self.filter.clone(),
            state: self.state,
            changed: self.changed,
            looked: self.looked,
            total: self.total,
            began: Time(self.began),
            ended: self.ended.map(Time),
            error: self.error.clone(),
            refusal,
        }
    }
}

/// Where the jobs are among the metadata.
const KEYS: &str = "broker/job/";

/// The key under which a job is kept.
pub(crate) fn job_key(id: u64) -> Arc<str> {
    format!("{KEYS}{id:020}").into()
}

/// The number of the job that is kept under this key; `None`: it is not that of a job.
pub(crate) fn job_of_key(key: &str) -> Option<u64> {
    key.strip_prefix(KEYS)?.parse().ok()
}

/// Whether a value of metadata is the broker's own, which nobody else sees: what it notes of its clock and of its jobs.
#[must_use]
pub fn is_of_broker(key: &str) -> bool {
    key.starts_with("broker/")
}
