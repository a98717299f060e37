//! Words of the command line that mean more than text.

use overtake_server::config::{Millis, Value as _};
use serde_json::{Map, Value};

/// Shortest time between two polls, ms: a broker has other things to do.
const INTERVAL_MS_MIN: u64 = 200;

/// A duration in milliseconds: `250ms`, `30s`, `1h30m`. A bare number other than 0 is refused: people mean seconds by it as often as
/// milliseconds.
pub(crate) fn duration_ms(text: &str) -> Result<u64, String> {
    let number = text.trim();
    let is_bare = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    if is_bare && number.bytes().any(|byte| byte != b'0') {
        return Err(format!(
            "`{number}` has no unit: say {number}s for seconds, or {number}ms for milliseconds"
        ));
    }
    let read = Millis::read(number);
    read.map(|ms| ms.0)
        .map_err(|_| format!("`{text}` is no duration: say it as in 250ms, 30s, 5m, 1h30m, 7d"))
}

/// How long to wait for an answer, ms.
pub(crate) fn timeout_ms(text: &str) -> Result<u64, String> {
    match duration_ms(text)? {
        0 => Err("nothing can be answered in no time: say 1ms or more".to_owned()),
        ms => Ok(ms),
    }
}

/// Between two polls, ms.
pub(crate) fn interval_ms(text: &str) -> Result<u64, String> {
    let ms = duration_ms(text)?;
    if ms < INTERVAL_MS_MIN { Err("ask every 200ms or less often".to_owned()) } else { Ok(ms) }
}

/// `NAME=VALUE`.
pub(crate) fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err(format!("`{text}` is not of the form NAME=VALUE")),
    }
}

/// A priority as JSON says it: a number, else a name.
pub(crate) fn priority(text: &str) -> Value {
    text.parse::<i64>().map_or_else(|_| Value::from(text), Value::from)
}

/// Headers as JSON says them.
pub(crate) fn headers(pairs: &[(String, String)]) -> Value {
    Value::Object(pairs.iter().map(|(name, value)| (name.clone(), Value::from(value.as_str()))).collect())
}

/// One setting of a queue: `max_active=10`, `ttl=60s`, `backoff.initial=500ms`, `picker={aging_ms=30000}`, `scheme=signed`.
///
/// The value is read as TOML; what is no TOML is text. Dots lead into tables. A setting in ms may be said by its name without `_ms` as a
/// duration, or by its full name as a number or a duration.
pub(crate) fn put_setting(settings: &mut Map<String, Value>, key: &str, text: &str) -> Result<(), String> {
    put(settings, key, Some(text))
}

/// As [`put_setting`], but nothing after the `=` is null, by which a change says that a setting is to have its default.
pub(crate) fn change_setting(settings: &mut Map<String, Value>, key: &str, text: &str) -> Result<(), String> {
    put(settings, key, Some(text).filter(|text| !text.is_empty()))
}

fn put(settings: &mut Map<String, Value>, key: &str, text: Option<&str>) -> Result<(), String> {
    let Some((first, rest)) = key.split_once('.') else {
        let is_duration = |name: &&&str| ms_of(name) == key || **name == key;
        let (key, value) = match (DURATIONS.iter().find(is_duration), text) {
            (Some(name), Some(text)) => (ms_of(name), duration(key, name, text)?.into()),
            (Some(name), None) => (ms_of(name), Value::Null),
            (None, text) => (key.to_owned(), text.map(toml_value).unwrap_or_default()),
        };
        settings.insert(key, value);
        return Ok(());
    };
    let inner = settings.entry(first).or_insert_with(|| Value::Object(Map::new()));
    let inner =
        inner.as_object_mut().ok_or_else(|| format!("`{first}` is a plain value and a table at once"))?;
    put(inner, rest, text)
}

/// Settings that are durations, without the `_ms` of their names; and fields of tables that are.
const DURATIONS: [&str; 10] = [
    "ttl",
    "max_ttl",
    "visibility_timeout",
    "expires",
    "consumer_timeout",
    "run_timeout",
    "initial",
    "max",
    "aging",
    "per",
];

fn ms_of(name: &str) -> String {
    format!("{name}_ms")
}

/// A setting's duration in ms. The full name says the unit of a bare number.
fn duration(key: &str, name: &str, text: &str) -> Result<u64, String> {
    let of_key = |why: String| format!("{key}: {why}");
    if key == name {
        duration_ms(text).map_err(of_key)
    } else {
        Millis::read(text).map(|ms| ms.0).map_err(of_key)
    }
}

fn toml_value(text: &str) -> Value {
    let document = toml::from_str::<Map<String, Value>>(&format!("v = {text}"));
    document.ok().and_then(|mut document| document.remove("v")).unwrap_or_else(|| Value::from(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(words: &[&str], expect: &str) {
        let mut settings = Map::new();
        let outcome = words.iter().try_for_each(|word| {
            let (key, value) = pair(word)?;
            put_setting(&mut settings, &key, &value)
        });
        let seen = outcome.map_or_else(|why| why, |()| Value::Object(settings).to_string());
        assert_eq!(seen, expect, "{words:?}");
    }

    #[test]
    fn a_setting_without_a_value_has_its_default_again() {
        let mut settings = Map::new();
        for (key, text) in [("ttl", ""), ("max_active", "2"), ("lanes.low", ""), ("backoff.initial", "1s")] {
            change_setting(&mut settings, key, text).expect("a change");
        }
        let expect = r#"{"backoff":{"initial_ms":1000},"lanes":{"low":null},"max_active":2,"ttl_ms":null}"#;
        assert_eq!(Value::Object(settings).to_string(), expect);
    }

    #[test]
    fn settings_are_toml_values_or_text() {
        check(&["scheme=signed", "max_active=10"], r#"{"max_active":10,"scheme":"signed"}"#);
        check(
            &["backoff.initial_ms=5", "backoff.multiplier=3"],
            r#"{"backoff":{"initial_ms":5,"multiplier":3}}"#,
        );
        check(&["ttl=60s", "max_ttl_ms=5"], r#"{"max_ttl_ms":5,"ttl_ms":60000}"#);
        check(&["visibility_timeout_ms=1m"], r#"{"visibility_timeout_ms":60000}"#);
        check(
            &["backoff.initial=1s", "picker.aging=1m"],
            r#"{"backoff":{"initial_ms":1000},"picker":{"aging_ms":60000}}"#,
        );
        check(&["ttl=60"], "ttl: `60` has no unit: say 60s for seconds, or 60ms for milliseconds");
        check(
            &["ttl_ms=soon"],
            "ttl_ms: `soon` is no duration: use milliseconds, or a unit as in 250ms, 30s, 5m, 1h30m, 7d",
        );
        check(&["picker={aging_ms=30000}"], r#"{"picker":{"aging_ms":30000}}"#);
        check(
            &[r#"order={lanes=[{name="hot",from=7},{name="cold"}]}"#],
            r#"{"order":{"lanes":[{"from":7,"name":"hot"},{"name":"cold"}]}}"#,
        );
        check(&["dead_letter_expired=true"], r#"{"dead_letter_expired":true}"#);
        check(&["picker=strict", "picker.aging_ms=1"], "`picker` is a plain value and a table at once");
        check(&["=1"], "`=1` is not of the form NAME=VALUE");
    }

    #[test]
    fn a_duration_has_a_unit() {
        for (text, expect) in [
            ("250ms", Ok(250)),
            ("60s", Ok(60_000)),
            ("1h30m", Ok(5_400_000)),
            ("1m 30s", Ok(90_000)),
            ("0", Ok(0)),
            ("60", Err("`60` has no unit: say 60s for seconds, or 60ms for milliseconds")),
            ("1h30", Err("`1h30` is no duration: say it as in 250ms, 30s, 5m, 1h30m, 7d")),
            ("30m1h", Err("`30m1h` is no duration: say it as in 250ms, 30s, 5m, 1h30m, 7d")),
            ("soon", Err("`soon` is no duration: say it as in 250ms, 30s, 5m, 1h30m, 7d")),
            ("", Err("`` is no duration: say it as in 250ms, 30s, 5m, 1h30m, 7d")),
        ] {
            assert_eq!(duration_ms(text), expect.map_err(str::to_owned), "{text}");
        }
        assert!(timeout_ms("0").is_err() && timeout_ms("0s").is_err());
        assert_eq!(timeout_ms("1ms"), Ok(1));
    }

    #[test]
    fn a_priority_is_a_number_or_a_name() {
        assert_eq!(priority("-50"), Value::from(-50));
        assert_eq!(priority("HIGH"), Value::from("HIGH"));
    }
}
