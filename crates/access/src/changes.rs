//! Changes of messages that wait, and the jobs that do those of many.

use overtake_engine::rights::{Named, Right};
use overtake_engine::{Change, JobState, JobView, Select, Started};
use overtake_lane::Given;
use serde_json::json;

use crate::desk::{Desk, Done};

impl Desk {
    /// Gives messages another priority. Read and write.
    pub async fn reprioritise(&self, queue: &str, select: Select, priority: Given) -> Done<u64> {
        self.change(queue, select, Change::Reprioritise(priority)).await
    }

    /// Removes messages. Read.
    pub async fn remove(&self, queue: &str, select: Select) -> Done<u64> {
        self.change(queue, select, Change::Remove).await
    }

    /// Takes messages back, or asks for them. Read.
    pub async fn cancel_messages(&self, queue: &str, select: Select) -> Done<u64> {
        self.change(queue, select, Change::Cancel).await
    }

    /// Puts dead letters back into their lanes. Read and write.
    pub async fn replay(&self, queue: &str, select: Select, promote: Option<Given>) -> Done<u64> {
        self.change(queue, select, Change::Replay(promote)).await
    }

    /// Changes messages, and waits until that is done. Rights as the change takes.
    pub async fn change(&self, queue: &str, select: Select, change: Change) -> Done<u64> {
        self.must(&(queue, &change))?;
        let which = format!("{select:?}");
        let count = self.engine.change(queue, select, change.clone()).await?;
        self.record_change(queue, &which, &change, ("count", count));
        Ok(count)
    }

    /// The same, but does not wait for what takes more than one step.
    pub async fn start_change(&self, queue: &str, select: Select, change: Change) -> Done<Started> {
        self.must(&(queue, &change))?;
        let which = format!("{select:?}");
        let started = self.engine.start_change(queue, select, change.clone()).await?;
        let came = match &started {
            Started::Done(count) => ("count", *count),
            Started::Job(job) => ("job", job.id),
        };
        self.record_change(queue, &which, &change, came);
        Ok(started)
    }

    fn record_change(&self, queue: &str, which: &str, change: &Change, (came, number): (&str, u64)) {
        let mut after = json!({ came: number });
        if let Change::Reprioritise(priority) = change {
            after["priority"] = json!(priority);
        }
        let deed = match change {
            Change::Reprioritise(_) => "message.reprioritise",
            Change::Remove => "message.remove",
            Change::Purge => "queue.purge",
            Change::Cancel => "message.cancel",
            Change::Replay(_) => "message.replay",
        };
        self.record(deed, queue, json!({"which": which}), after);
    }

    /// The jobs of queues that whoever asks may read, by number.
    pub async fn jobs(&self) -> Done<Vec<JobView>> {
        self.must_look()?;
        let mut jobs = self.engine.jobs().await?;
        jobs.retain(|job| self.must_have(Right::Read, Named::Queue(&job.queue)).is_ok());
        Ok(jobs)
    }

    /// A job, now or, if `waits`, when it is over; `None`: it is not known. Read of its queue.
    pub async fn job(&self, id: u64, waits: bool) -> Done<Option<JobView>> {
        let Some(job) = self.visible_job(id).await? else { return Ok(None) };
        if waits && job.state == JobState::Running {
            Ok(self.engine.job(id, true).await?)
        } else {
            Ok(Some(job))
        }
    }

    /// A job of a queue that one may read. One of another is not told from none.
    async fn visible_job(&self, id: u64) -> Done<Option<JobView>> {
        self.must_look()?;
        let job = self.engine.job(id, false).await?;
        Ok(job.filter(|job| self.must_have(Right::Read, Named::Queue(&job.queue)).is_ok()))
    }

    /// Ends a job where it is. Rights as its change takes.
    pub async fn cancel_job(&self, id: u64) -> Done<Option<JobView>> {
        let Some(job) = self.visible_job(id).await? else { return Ok(None) };
        self.must(&(&*job.queue, &job.change))?;
        let ended = self.engine.cancel_job(id).await?;
        if job.state == JobState::Running {
            self.record("job.cancel", &job.queue, json!({"job": id}), json!(null));
        }
        Ok(ended)
    }
}
