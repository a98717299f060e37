//! Changes of messages that wait, and the jobs that do those of many.

use overtake_engine::rights::{Named, Right};
use overtake_engine::{Change, Filter, JobState, JobView, Select, Started};
use overtake_lane::Given;
use serde_json::{Map, Value, json};

use crate::desk::{Desk, Done};

/// The messages that are selected, as a request over HTTP says it: `{"id": …}`, `{"filter": {…}}` or `{"all": true}`, with `expect` where that is given.
fn which(select: &Select) -> Value {
    let matching = |filter: &Filter| match said(filter) {
        parts if parts.is_empty() => json!({"all": true}),
        parts => json!({"filter": parts}),
    };
    match select {
        Select::Id(id) => json!({"id": id}),
        Select::Matching(filter) => matching(filter),
        Select::Counted { filter, expect } => {
            let mut which = matching(filter);
            which["expect"] = (*expect).into();
            which
        }
    }
}

/// The parts of a filter that select something.
fn said(filter: &Filter) -> Map<String, Value> {
    let Filter { status, priority, key, headers, user_id, ending, without_priority } = filter;
    let headers: Map<_, _> = headers.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
    let parts = [
        ("status", json!(status)),
        ("priority", json!(priority)),
        ("without_priority", json!(without_priority.then_some(true))),
        ("key", json!(key)),
        ("headers", if headers.is_empty() { Value::Null } else { headers.into() }),
        ("user_id", json!(user_id)),
        ("ending", json!(ending)),
    ];
    parts
        .into_iter()
        .filter(|(_, value)| !value.is_null())
        .map(|(part, value)| (part.to_owned(), value))
        .collect()
}

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
        let which = which(&select);
        let count = self.engine.change(queue, select, change.clone()).await?;
        self.record_change(queue, which, &change, ("count", count));
        Ok(count)
    }

    /// The same, but does not wait for what takes more than one step.
    pub async fn start_change(&self, queue: &str, select: Select, change: Change) -> Done<Started> {
        self.must(&(queue, &change))?;
        let which = which(&select);
        let started = self.engine.start_change(queue, select, change.clone()).await?;
        let came = match &started {
            Started::Done(count) => ("count", *count),
            Started::Job(job) => ("job", job.id),
        };
        self.record_change(queue, which, &change, came);
        Ok(started)
    }

    fn record_change(&self, queue: &str, which: Value, change: &Change, (came, number): (&str, u64)) {
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

#[cfg(test)]
mod tests {
    use overtake_lane::Status;

    use super::*;

    #[test]
    fn which_messages_is_said_as_a_request_says_it() {
        let filter = Filter {
            status: Some(Status::Dead),
            priority: Some(Given::from("high")),
            headers: vec![("tenant".to_owned(), "acme".to_owned())],
            ..Filter::default()
        };
        let parts = json!({"status": "dead", "priority": "high", "headers": {"tenant": "acme"}});
        assert_eq!(which(&Select::Matching(filter.clone())), json!({"filter": parts}));
        assert_eq!(which(&Select::Counted { filter, expect: 3 }), json!({"filter": parts, "expect": 3}));
        assert_eq!(which(&Select::Matching(Filter::default())), json!({"all": true}));
        assert_eq!(which(&Select::Id("a1".to_owned())), json!({"id": "a1"}));
        let few = Filter { without_priority: true, key: Some("k".to_owned()), ..Filter::default() };
        assert_eq!(which(&Select::Matching(few)), json!({"filter": {"without_priority": true, "key": "k"}}));
    }
}
