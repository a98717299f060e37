//! Queues of the configuration, declared at start.

use std::collections::BTreeSet;

use overtake_engine::{Engine, Failure, Refused};

use overtake_access::waiting_without_priority;
use overtake_lane::{Refusal, Settings};
use serde_json::{Map, Value};

use crate::ServeError;
use crate::config::ConfiguredQueue;

/// Declares every queue. A queue that is there gets all its settings from the configuration; the log names those that change. All queues are
/// checked before the first is declared, so that a start that is refused has changed nothing.
pub(crate) async fn declare(engine: &dyn Engine, queues: &[ConfiguredQueue]) -> Result<(), ServeError> {
    for queue in queues {
        check(engine, queue).await.map_err(|refusal| refused(queue, refusal))?;
    }
    for queue in queues {
        if let Ok(there) = engine.queue(&queue.name).await {
            let changes = changes(&there.settings, &queue.settings);
            if !changes.is_empty() {
                tracing::warn!(queue = queue.name, changes, "gets the settings of the configuration");
            }
        }
        match engine.declare_queue(&queue.name, queue.settings.clone()).await {
            Ok(declared) if declared.made => tracing::info!(queue = queue.name, "declared"),
            Ok(_) => {}
            Err(Failure::Refused(Refused { refusal, .. })) => return Err(refused(queue, refusal)),
            Err(Failure::Unavailable(why)) => return Err(ServeError::Stopped { why: why.to_string() }),
        }
    }
    Ok(())
}

fn refused(queue: &ConfiguredQueue, refusal: Refusal) -> ServeError {
    ServeError::Queue { queue: queue.name.clone(), place: queue.origin.clone(), refusal }
}

/// Refuses a change of a queue that is there which its messages do not allow.
async fn check(engine: &dyn Engine, queue: &ConfiguredQueue) -> Result<(), Refusal> {
    let Ok(there) = engine.queue(&queue.name).await else { return Ok(()) };
    let fixed = there.settings.fixed_change(&queue.settings);
    let is_empty = there.lanes.iter().all(|lane| lane.ready + lane.delayed + lane.leased + lane.dead == 0);
    match fixed {
        Some(key) if !is_empty => return Err(Refusal::SettingFixed(key)),
        _ => {}
    }
    let count = waiting_without_priority(engine, &queue.name, &there.settings, &queue.settings).await;
    // Where the messages cannot be counted, the declaration says why.
    match count.unwrap_or_default() {
        0 => Ok(()),
        count => Err(Refusal::ImportPriorityMissing { count }),
    }
}

/// The settings that are not the same: `max_active from 20 to 10`.
fn changes(before: &Settings, after: &Settings) -> String {
    let table = |settings| match serde_json::to_value(settings) {
        Ok(Value::Object(table)) => table,
        _ => unreachable!("settings are a table"),
    };
    let (before, after) = (table(before), table(after));
    let keys: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let value = |table: &Map<String, Value>, key: &str| table.get(key).cloned().unwrap_or_default();
    let changed = keys.into_iter().filter(|key| before.get(*key) != after.get(*key));
    let changed = changed.map(|key| format!("{key} from {} to {}", value(&before, key), value(&after, key)));
    changed.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_start_changes_is_named() {
        let before = Settings { max_active: 20, history: Some("h".into()), ..Settings::default() };
        let after = Settings { max_active: 10, ..Settings::default() };
        assert_eq!(changes(&before, &after), "history from \"h\" to null, max_active from 20 to 10");
        assert_eq!(changes(&after, &after), "");
    }
}
