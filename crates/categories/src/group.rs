//! A group of consumers as a queue: what it is called, and which settings it has.

use overtake_lane::{Backoff, PriorityLanes, Scheme, Settings};
use overtake_redact::{Strict, reason};
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// Between a category and a group in the name of the queue.
const AT: char = '@';
/// Attempts of a message, unless the group says otherwise; then it is a dead letter.
const ATTEMPTS: u32 = 3;
/// What a message that failed waits, unless the group says otherwise.
const BACKOFF: Backoff = Backoff { initial_ms: 1_000, multiplier: 2, max_ms: 60_000 };
/// Settings that say which lane a message is in: those are the server's.
const OF_THE_SERVER: [&str; 2] = ["scheme", "order"];

/// The queue of a group.
#[must_use]
pub fn queue_of(category: &str, group: &str) -> String {
    format!("{category}{AT}{group}")
}

/// The category and the group that a queue is of, by its name.
#[must_use]
pub fn category_of(queue: &str) -> Option<(&str, &str)> {
    queue.split_once(AT).filter(|(category, group)| !category.is_empty() && !group.is_empty())
}

/// Whether a group can be called so.
pub(crate) fn is_group(name: &str) -> bool {
    overtake_lane::check_name(name).is_ok() && !name.contains(AT)
}

/// What a group is that nobody has said anything about.
fn default_settings() -> Settings {
    Settings { scheme: Scheme::Signed, delivery_limit: ATTEMPTS, backoff: BACKOFF, ..Settings::default() }
}

/// The settings of a group: what is given over what is there, or over the usual ones, in the lanes of the server.
///
/// # Errors
/// The key at fault, and why it cannot be, as a phrase.
pub(crate) fn settings_of(
    lanes: &PriorityLanes,
    there: Option<&Settings>,
    given: Map<String, Value>,
) -> Result<Settings, (String, String)> {
    let base = there.cloned().unwrap_or_else(default_settings);
    let mut all = match serde_json::to_value(&base) {
        Ok(Value::Object(all)) => all,
        _ => Map::new(),
    };
    for (key, value) in given {
        if OF_THE_SERVER.contains(&key.as_str()) {
            let why = "is the server's for all groups: see `server.priority_lanes` in its configuration";
            return Err((key, why.to_owned()));
        }
        if let Err(error) = Settings::deserialize(Strict(json!({ &*key: value }))) {
            let why = reason(&error.to_string());
            // The message about a key that is not known names it.
            return Err(if why.starts_with("unknown field") { (String::new(), why) } else { (key, why) });
        }
        all.insert(key, value);
    }
    let read: Result<Settings, _> = Settings::deserialize(Strict(Value::Object(all)));
    let settings = Settings {
        order: lanes.order(),
        ..read.map_err(|error| (String::new(), reason(&error.to_string())))?
    };
    settings.validate().map_err(|bad| (bad.key.clone(), bad.why.clone()))?;
    Ok(settings)
}

#[cfg(test)]
mod tests {
    use overtake_lane::Order;
    use serde_json::json;

    use super::*;

    fn given(json: Value) -> Map<String, Value> {
        json.as_object().cloned().expect("an object")
    }

    fn lanes(enabled: bool) -> PriorityLanes {
        if enabled { PriorityLanes::enabled() } else { PriorityLanes::default() }
    }

    #[test]
    fn a_queue_is_of_a_group_by_its_name() {
        assert_eq!(queue_of("customer", "mails"), "customer@mails");
        assert_eq!(category_of("customer@mails"), Some(("customer", "mails")));
        for other in ["customer", "@mails", "customer@"] {
            assert_eq!(category_of(other), None, "{other}");
        }
    }

    #[test]
    fn what_is_given_is_laid_over_what_is_there() {
        let first = settings_of(&lanes(true), None, given(json!({ "delivery_limit": 7 }))).expect("settings");
        assert_eq!(
            (first.delivery_limit, first.backoff.initial_ms, &first.scheme),
            (7, 1_000, &Scheme::Signed)
        );
        assert!(matches!(&first.order, Order::Lanes(bands) if bands.len() == 2));
        let next =
            settings_of(&lanes(false), Some(&first), given(json!({ "max_active": 2 }))).expect("settings");
        assert_eq!((next.delivery_limit, next.max_active, next.order), (7, 2, Order::Fifo));
    }

    #[test]
    fn what_is_the_servers_and_what_cannot_be_is_refused_by_its_key() {
        let refused = |json| settings_of(&lanes(true), None, given(json)).expect_err("refused");
        assert_eq!(refused(json!({ "order": "fifo" })).0, "order");
        assert_eq!(refused(json!({ "scheme": "named" })).0, "scheme");
        assert_eq!(refused(json!({ "max_unacked": 0 })).0, "max_unacked");
        assert!(refused(json!({ "max_activ": 1 })).1.contains("unknown field `max_activ`"));
    }
}
