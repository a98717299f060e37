//! Settings of queues as requests name them: which of them differ from those of a queue, and a change of some of them.

use overtake_api::problem::Difference;
use overtake_lane::Settings;
use serde_json::{Map, Value, json};

use crate::decode::decode;
use crate::problem::Problem;

/// Settings that are tables of independent parts. All other settings are compared and replaced as a whole, but for [`WEIGHTED`].
const TABLES: [&str; 3] = ["backoff", "lanes", "key_weights"];
/// A value of `picker` that is a table of independent parts, too: the weights of lanes, by name.
const WEIGHTED: &str = "weighted";

/// The settings that a request names and that are others in a queue. `said` is the body of the request, `asked` is what it says with
/// defaults for what it leaves out: those count only where `said` has the setting.
pub(crate) fn differences(said: &Map<String, Value>, asked: &Settings, here: &Settings) -> Vec<Difference> {
    let (asked, here) = (table(asked), table(here));
    let mut all = Vec::new();
    for (key, said) in said {
        let (asked, here) = (asked.get(key), here.get(key));
        match (TABLES.contains(&key.as_str()), said, asked, here) {
            (true, Value::Object(said), Some(Value::Object(asked)), Some(Value::Object(here))) => {
                note_parts(&mut all, key, said, asked, here);
            }
            _ => match (weights(key, Some(said)), weights(key, asked), weights(key, here)) {
                (Some(said), Some(asked), Some(here)) => {
                    note_parts(&mut all, &format!("{key}.{WEIGHTED}"), said, asked, here);
                }
                _ => note(&mut all, key.clone(), here, asked),
            },
        }
    }
    all
}

/// The weights of lanes, where the setting `key` is a picker by weights.
fn weights<'v>(key: &str, value: Option<&'v Value>) -> Option<&'v Map<String, Value>> {
    let table = value.filter(|_| key == "picker")?.as_object().filter(|table| table.len() == 1)?;
    table.get(WEIGHTED)?.as_object()
}

fn note_parts(
    all: &mut Vec<Difference>,
    key: &str,
    said: &Map<String, Value>,
    asked: &Map<String, Value>,
    here: &Map<String, Value>,
) {
    for (part, said) in said {
        // A lane is a table itself: `{}` where it has no cap.
        let (asked, here) = (asked.get(part).unwrap_or(said), here.get(part));
        note(all, format!("{key}.{part}"), here, Some(asked));
    }
}

fn note(all: &mut Vec<Difference>, setting: String, here: Option<&Value>, asked: Option<&Value>) {
    if here != asked {
        let value = |value: Option<&Value>| value.cloned().unwrap_or_default();
        all.push(Difference { setting, here: value(here), asked: value(asked) });
    }
}

/// The settings of a queue with a change: what it does not name stays, and `null` is the default (RFC 7396, but only the tables in
/// [`TABLES`] and the weights of a picker are changed part by part).
///
/// # Errors
/// 422 for a change that names no setting or has a value that cannot be.
pub(crate) fn changed(before: &Settings, change: &Map<String, Value>) -> Result<Settings, Problem> {
    let mut after = table(before);
    for (key, value) in change {
        let is_table = TABLES.contains(&key.as_str());
        if is_table && !after.contains_key(key) {
            after.insert(key.clone(), Value::Object(Map::new()));
        }
        match (is_table, value, after.get_mut(key)) {
            (_, Value::Null, _) => drop(after.remove(key)),
            (true, Value::Object(parts), Some(Value::Object(there))) => merge(there, parts),
            (_, _, there) => match weights(key, Some(value)) {
                Some(parts) => {
                    let mut all = weights(key, there.as_deref()).cloned().unwrap_or_default();
                    merge(&mut all, parts);
                    after.insert(key.clone(), json!({ WEIGHTED: all }));
                }
                None => drop(after.insert(key.clone(), value.clone())),
            },
        }
    }
    // An unknown key is refused even where it is to be reset.
    after.extend(
        change.iter().filter(|(key, _)| !is_known(key)).map(|(key, value)| (key.clone(), value.clone())),
    );
    let settings: Settings = decode(Value::Object(after).to_string().as_bytes()).map_err(without_place)?;
    validate(&settings)?;
    Ok(settings)
}

/// Changes parts of a table; `null` takes one away.
fn merge(table: &mut Map<String, Value>, parts: &Map<String, Value>) {
    for (part, value) in parts {
        if value.is_null() {
            table.remove(part);
        } else {
            table.insert(part.clone(), value.clone());
        }
    }
}

/// Refuses settings that contradict each other or are out of range.
pub(crate) fn validate(settings: &Settings) -> Result<(), Problem> {
    settings.validate().map_err(|bad| Problem::bad_value(bad.key.clone(), bad.to_string()))
}

/// The place would be one in the settings as a whole, which nobody sent.
fn without_place(problem: overtake_api::problem::Problem) -> Problem {
    Problem(problem.without_place())
}

fn is_known(key: &str) -> bool {
    decode::<Settings>(Value::Object(Map::from_iter([(key.to_owned(), Value::Null)])).to_string().as_bytes())
        .err()
        .is_none_or(|problem| problem.body().code() != "field-unknown")
}

fn table(settings: &Settings) -> Map<String, Value> {
    match serde_json::to_value(settings) {
        Ok(Value::Object(table)) => table,
        _ => unreachable!("settings are a table"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(value: Value) -> Settings {
        serde_json::from_value(value).expect("settings")
    }

    fn map(value: Value) -> Map<String, Value> {
        if let Value::Object(map) = value { map } else { panic!("{value} is no table") }
    }

    #[test]
    fn only_what_is_named_differs() {
        let check = |said: Value, here: Value, expected: &[(&str, Value, Value)]| {
            let found = differences(&map(said.clone()), &settings(said), &settings(here));
            let found: Vec<_> =
                found.iter().map(|one| (&*one.setting, one.here.clone(), one.asked.clone())).collect();
            assert_eq!(found, expected);
        };
        check(json!({}), json!({"max_active": 9}), &[]);
        check(json!({"max_active": 9}), json!({"max_active": 9, "ttl_ms": 5}), &[]);
        check(json!({"max_active": 0}), json!({"max_active": 9}), &[("max_active", json!(9), json!(0))]);
        check(json!({"backoff": {"max_ms": 9}}), json!({"backoff": {"initial_ms": 5, "max_ms": 9}}), &[]);
        check(
            json!({"backoff": {"max_ms": 8}}),
            json!({"backoff": {"initial_ms": 5, "max_ms": 9}}),
            &[("backoff.max_ms", json!(9), json!(8))],
        );
        let (here, asked) = (json!({"max_active": 2}), json!({"max_active": 3}));
        check(
            json!({"scheme": "named", "lanes": {"high": {"max_active": 3}}}),
            json!({"scheme": "named", "lanes": {"high": {"max_active": 2}, "low": {"max_active": 1}}}),
            &[("lanes.high", here, asked)],
        );
        check(json!({"history": "h"}), json!({}), &[("history", Value::Null, json!("h"))]);
        check(
            json!({"picker": {"weighted": {"9": 3}}}),
            json!({"picker": {"weighted": {"9": 5, "4": 2}}}),
            &[("picker.weighted.9", json!(5), json!(3))],
        );
        check(
            json!({"picker": {"weighted": {"9": 3}}}),
            json!({}),
            &[("picker", json!("strict"), json!({"weighted": {"9": 3}}))],
        );
    }

    #[test]
    fn a_change_keeps_what_it_does_not_name_and_resets_what_is_null() {
        let check = |before: Value, change: Value, after: Value| {
            assert_eq!(changed(&settings(before), &map(change)).expect("a change"), settings(after));
        };
        check(json!({"ttl_ms": 5}), json!({}), json!({"ttl_ms": 5}));
        check(json!({"ttl_ms": 5}), json!({"max_active": 2}), json!({"ttl_ms": 5, "max_active": 2}));
        check(json!({"ttl_ms": 5, "max_active": 2}), json!({"ttl_ms": null}), json!({"max_active": 2}));
        check(
            json!({"backoff": {"initial_ms": 5, "max_ms": 9}}),
            json!({"backoff": {"initial_ms": null, "max_ms": 8}}),
            json!({"backoff": {"max_ms": 8}}),
        );
        let lanes =
            json!({"scheme": "named", "lanes": {"high": {"max_active": 2}, "low": {"max_active": 1}}});
        check(
            lanes,
            json!({"lanes": {"low": null}}),
            json!({"scheme": "named", "lanes": {"high": {"max_active": 2}}}),
        );
        check(
            json!({"fair_keys": true, "key_weights": {"a": 2, "b": 3}}),
            json!({"key_weights": {"b": null, "c": 4}}),
            json!({"fair_keys": true, "key_weights": {"a": 2, "c": 4}}),
        );
        check(
            json!({"dead_letter": {"queue": "a"}}),
            json!({"dead_letter": {"exchange": {"name": "x"}}}),
            json!({"dead_letter": {"exchange": {"name": "x"}}}),
        );
        let weighted = |weights: Value| json!({"picker": {"weighted": weights}});
        check(weighted(json!({"9": 5})), weighted(json!({"4": 2})), weighted(json!({"9": 5, "4": 2})));
        check(weighted(json!({"9": 5, "4": 2})), weighted(json!({"9": null})), weighted(json!({"4": 2})));
        check(json!({"picker": "strict"}), weighted(json!({"4": 2, "9": null})), weighted(json!({"4": 2})));
        check(
            weighted(json!({"9": 5})),
            json!({"picker": {"aging_ms": 7}}),
            json!({"picker": {"aging_ms": 7}}),
        );
        check(json!({"order": "fifo"}), json!({"order": "priority"}), json!({}));
        check(json!({}), json!({"lanes": {"low": null}}), json!({}));
    }

    #[test]
    fn a_change_that_cannot_be_is_refused_by_its_key() {
        let check = |change: Value, code: &str, key: &str| {
            let problem = changed(&Settings::default(), &map(change)).expect_err("refused");
            let body = problem.0.body();
            assert_eq!((body.code(), body.about()), (code, Some(key)));
        };
        check(json!({"max_activ": 1}), "field-unknown", "max_activ");
        check(json!({"max_activ": null}), "field-unknown", "max_activ");
        check(json!({"max_active": -1}), "value-invalid", "max_active");
        check(json!({"backoff": {"multiplier": 0}}), "value-invalid", "backoff.multiplier");
    }
}
