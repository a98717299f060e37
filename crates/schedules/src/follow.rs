//! Several brokers on the same servers: one of them runs all schedules, and each knows what the others make, change and delete.

use std::collections::BTreeMap;
use std::sync::Arc;

use overtake_engine::{Failure, Leader, Leadership};
use overtake_lane::Time;
use tokio::sync::watch;

use crate::schedule::Schedule;
use crate::schedules::{All, Entry, Key, ROOM, Schedules, key_of};
use crate::state::State;

/// The work of publishing what is due.
pub(crate) const WORK: &str = "schedules";

/// Which broker runs the schedules, as this one knows it.
pub(crate) struct Runs {
    leadership: std::sync::Mutex<Option<Leadership>>,
    leader: watch::Receiver<Leader>,
    /// The fence under which it was found out how far schedules are.
    fence: std::sync::Mutex<Option<u64>>,
}

/// Metadata as it was read last: what has not changed since is not read again.
pub(crate) type Seen = BTreeMap<Arc<str>, Arc<[u8]>>;

impl Runs {
    pub(crate) fn new(leadership: Leadership) -> Self {
        let leader = leadership.watch();
        Self { leadership: Some(leadership).into(), leader, fence: None.into() }
    }

    pub(crate) fn leader(&self) -> Leader {
        let leadership = self.leadership.lock().expect("nobody panics with it");
        leadership.as_ref().map_or(Leader::Unknown, Leadership::leader)
    }

    pub(crate) fn is_us(&self) -> bool {
        self.leader().is_us()
    }

    pub(crate) fn watch(&self) -> watch::Receiver<Leader> {
        self.leader.clone()
    }

    /// Another broker may run them from now on.
    pub(crate) fn give_up(&self) {
        self.leadership.lock().expect("nobody panics with it").take();
    }

    /// Whether this broker has begun to run them since this was asked last.
    fn has_begun(&self) -> bool {
        let Leader::Us { fence, .. } = self.leader() else { return false };
        let mut last = self.fence.lock().expect("nobody panics with it");
        last.replace(fence) != Some(fence)
    }
}

/// Gives up when it is dropped.
pub(crate) struct UntilDropped<'a>(pub(crate) &'a Runs);

impl Drop for UntilDropped<'_> {
    fn drop(&mut self) {
        self.0.give_up();
    }
}

/// All schedules that are kept: those that cannot be read are said in the log.
pub(crate) fn read(now: Time, key: &str, value: &[u8]) -> Option<(Key, Entry)> {
    let ours = key.strip_prefix(ROOM)?;
    match (key_of(ours), Schedule::decode(value)) {
        (Some(key), Ok(schedule)) => {
            let state = State::new(now, &schedule.cron);
            return Some((key, Entry { schedule: Arc::new(schedule), state }));
        }
        (_, Ok(_)) => tracing::error!("the metadata `{key}` is no schedule's"),
        (_, Err(why)) => tracing::error!("the schedule `{key}` cannot be read, and does not run: {why}"),
    }
    None
}

impl Schedules {
    /// Where this broker begins to run schedules that another ran, each goes on with its first occurrence after now: the one before waits in its queue.
    pub(crate) fn begin_where_another_ended(&self, all: &mut All) {
        if self.runs.has_begun() {
            let now = self.clock.now();
            all.values_mut().for_each(|entry| entry.state = State::new(now, &entry.schedule.cron));
        }
    }

    /// Takes up what other brokers have made, changed and deleted.
    ///
    /// # Errors
    /// The engine does not answer: the rest is taken up when this is asked again.
    pub(crate) async fn take_up(&self) -> Result<(), Failure> {
        let mut all = self.all.lock().await;
        let mut seen = self.seen.lock().await;
        let kept: Seen =
            self.engine.metadata().await?.into_iter().filter(|(key, _)| key.starts_with(ROOM)).collect();
        let gone: Vec<Arc<str>> = seen.keys().filter(|key| !kept.contains_key(*key)).cloned().collect();
        for key in gone {
            self.replace(&mut all, &key, None).await?;
            seen.remove(&key);
        }
        for (key, value) in kept {
            if seen.get(&key) != Some(&value) {
                self.replace(&mut all, &key, Some(&value)).await?;
                seen.insert(key, value);
            }
        }
        Ok(())
    }

    /// A schedule is so from now on, if it is not already. What waits of the one before goes, where this broker runs them.
    async fn replace(&self, all: &mut All, name: &str, value: Option<&[u8]>) -> Result<(), Failure> {
        let Some(key) = name.strip_prefix(ROOM).and_then(key_of) else { return Ok(()) };
        let then = value.and_then(|value| read(self.clock.now(), name, value)).map(|(_, entry)| entry);
        let before = all.get(&key).map(|entry| &entry.schedule);
        if before == then.as_ref().map(|entry| &entry.schedule) {
            return Ok(());
        }
        if self.runs.is_us() {
            self.withdraw(all, &key).await?;
        }
        match then {
            Some(entry) => drop(all.insert(key, entry)),
            None => drop(all.remove(&key)),
        }
        Ok(())
    }
}
