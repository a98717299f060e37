//! Queues of the configuration, declared at start.

use std::collections::BTreeSet;

use overtake_engine::{Engine, Failure, Refused};

use overtake_access::waiting_without_priority;
use overtake_lane::{Refusal, Settings};
use serde_json::{Map, Value};

use crate::ServeError;
use crate::config::ConfiguredQueue;
use crate::error::RefusedQueue;

/// Declares every queue. A queue that is there gets all its settings from the configuration; the log names those that change. All queues are
/// checked before the first is declared, so that a start that is refused has changed nothing.
pub(crate) async fn declare(engine: &dyn Engine, queues: &[ConfiguredQueue]) -> Result<(), ServeError> {
    let mut order = check_all(engine, queues).await?;
    // A history comes before the queues that it is of: no two of them lead to each other in between, as they did before.
    order.sort_by_key(|(_, histories)| *histories);
    for (queue, _) in order {
        if let Ok(there) = engine.queue(&queue.name).await {
            let changes = changes(&there.settings, &queue.settings);
            if !changes.is_empty() {
                tracing::warn!(queue = queue.name, changes, "gets the settings of the configuration");
            }
        }
        match engine.declare_queue(&queue.name, queue.settings.clone()).await {
            Ok(declared) if declared.made => tracing::info!(queue = queue.name, "declared"),
            Ok(_) => {}
            Err(Failure::Refused(Refused { refusal, .. })) => {
                return Err(ServeError::Queues(vec![refused(queue, refusal)]));
            }
            Err(Failure::Unavailable(why)) => return Err(ServeError::Stopped { why: why.to_string() }),
        }
    }
    Ok(())
}

fn refused(queue: &ConfiguredQueue, refusal: Refusal) -> RefusedQueue {
    RefusedQueue { queue: queue.name.clone(), place: queue.origin.clone(), refusal }
}

/// Checks what the queues that are there say to those of the configuration. Returns each of these with the number of histories that follow it.
///
/// # Errors
/// All queues that would be refused.
pub(crate) async fn check_all<'q>(
    engine: &dyn Engine,
    queues: &'q [ConfiguredQueue],
) -> Result<Vec<(&'q ConfiguredQueue, usize)>, ServeError> {
    let (mut faults, mut order) = (Vec::new(), Vec::new());
    for queue in queues {
        let checked = check(engine, queue).await;
        match checked.and(check_history(engine, queue, queues).await) {
            Ok(histories) => order.push((queue, histories)),
            Err(refusal) => faults.push(refused(queue, refusal)),
        }
    }
    let made = check_room(engine, queues).await;
    faults.extend(made.err().map(|(queue, refusal)| refused(queue, refusal)));
    if faults.is_empty() { Ok(order) } else { Err(ServeError::Queues(faults)) }
}

/// Counts the histories that follow a queue: those of the configuration and, of queues that it does not name, those that are there.
///
/// # Errors
/// [`Refusal::HistoryCircular`] for a queue to which they lead back.
async fn check_history(
    engine: &dyn Engine,
    queue: &ConfiguredQueue,
    queues: &[ConfiguredQueue],
) -> Result<usize, Refusal> {
    let mut seen = BTreeSet::new();
    let mut next = queue.settings.history.clone();
    while let Some(name) = next {
        if *name == *queue.name {
            return Err(Refusal::HistoryCircular);
        }
        next = match queues.iter().find(|other| *other.name == *name) {
            Some(configured) => configured.settings.history.clone(),
            None => engine.queue(&name).await.ok().and_then(|there| there.settings.history),
        };
        // Others that lead to each other do so without this one.
        if !seen.insert(name) {
            break;
        }
    }
    Ok(seen.len())
}

/// Refuses the first queue that would be one more than the virtual host may have.
async fn check_room<'q>(
    engine: &dyn Engine,
    queues: &'q [ConfiguredQueue],
) -> Result<(), (&'q ConfiguredQueue, Refusal)> {
    let Ok(vhost) = engine.vhost(overtake_access::DEFAULT_VHOST).await else { return Ok(()) };
    let Some(most) = vhost.settings.max_queues else { return Ok(()) };
    let mut room = most.saturating_sub(vhost.queues);
    for queue in queues {
        if engine.queue(&queue.name).await.is_ok() {
            continue;
        }
        if room == 0 {
            return Err((queue, Refusal::VhostQueuesMax));
        }
        room -= 1;
    }
    Ok(())
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
