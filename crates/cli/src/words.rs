//! Words of the command line that mean more than text.

use std::fmt::Display;
use std::ops::{Bound, RangeBounds};
use std::str::FromStr;

use overtake_lane::DURATION_MS_MAX;
use overtake_redact::{Strict, reason};
use overtake_server::config::{Millis, Value as _};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::failure::Failure;

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
    match Millis::read(number) {
        Ok(Millis(ms)) if ms <= DURATION_MS_MAX => Ok(ms),
        Ok(_) => Err(format!("`{text}` is too long: say at most ten years, 3650d")),
        Err(_) if is_too_long(number) => Err(format!("`{text}` is too long: say at most ten years, 3650d")),
        Err(_) => Err(format!("`{text}` is no duration: say it as in 250ms, 30s, 5m, 1h30m, 7d")),
    }
}

/// Whether a text is a duration but for having more digits than a number of ms can.
fn is_too_long(text: &str) -> bool {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    end > 1 && Millis::read(&format!("1{}", &text[end..])).is_ok()
}

/// A parser of whole numbers within a range, for an argument of clap.
pub(crate) fn whole<T>(
    range: impl RangeBounds<T> + Clone + Send + Sync + 'static,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static
where
    T: FromStr + PartialOrd + Display,
{
    move |text| {
        let number = text.parse::<T>().ok().filter(|number| range.contains(number));
        number.ok_or_else(|| match (range.start_bound(), range.end_bound()) {
            (Bound::Included(least), Bound::Included(most)) => {
                format!("it must be a whole number from {least} to {most}")
            }
            (Bound::Included(least), _) => format!("it must be a whole number of at least {least}"),
            _ => "it must be a whole number".to_owned(),
        })
    }
}

/// A parser of durations in milliseconds that are longer than 0. `why` says why 0 cannot be meant, and what to say instead.
pub(crate) fn more_than_0(
    why: &'static str,
) -> impl Fn(&str) -> Result<u64, String> + Clone + Send + Sync + 'static {
    move |text| match duration_ms(text)? {
        0 => Err(why.to_owned()),
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

/// `KEY=VALUE` of a setting, whose key may have parts in quotes.
pub(crate) fn setting(text: &str) -> Result<(String, String), String> {
    let mut quote = None;
    let is_end = |c: char| match quote {
        None if c == '=' => true,
        None => {
            quote = Some(c).filter(|c| matches!(c, '"' | '\''));
            false
        }
        Some(open) => {
            quote = Some(open).filter(|open| *open != c);
            false
        }
    };
    match text.find(is_end).unwrap_or(0) {
        0 => pair(text),
        end => Ok((text[..end].to_owned(), text[end + 1..].to_owned())),
    }
}

/// A priority as JSON says it: a number, else a name.
pub(crate) fn priority(text: &str) -> Value {
    text.parse::<i64>().map_or_else(|_| Value::from(text), Value::from)
}

/// Headers as JSON says them.
///
/// # Errors
/// A usage error for a header that is given twice.
pub(crate) fn headers(pairs: &[(String, String)]) -> Result<Value, Failure> {
    let mut headers = Map::new();
    for (name, value) in pairs {
        if let Some(before) = headers.insert(name.clone(), Value::from(value.as_str())) {
            let before = before.as_str().unwrap_or_default();
            return Err(Failure::usage(format!("--header {name} is there twice: `{before}` and `{value}`"))
                .hint("give each header once"));
        }
    }
    Ok(Value::Object(headers))
}

/// A JSON document of a user, decoded strictly ([`Strict`]).
///
/// # Errors
/// What the parser says.
pub(crate) fn json<T: DeserializeOwned>(text: &[u8]) -> serde_json::Result<T> {
    let mut json = serde_json::Deserializer::from_slice(text);
    T::deserialize(Strict(&mut json)).and_then(|value| json.end().map(|()| value))
}

/// Puts settings of a queue, as `KEY=VALUE`, over those in `settings`, such as those of a file.
///
/// # Errors
/// A value that cannot be, or a setting that is given twice: a user who wants one of two values has to say which.
pub(crate) fn put_settings(
    settings: &mut Map<String, Value>,
    pairs: &[(String, String)],
) -> Result<(), String> {
    let said = || pairs.iter().map(|(key, text)| (key.as_str(), Some(text.as_str())));
    put_each(&mut Map::new(), said(), Again::Refused)?;
    put_each(settings, said(), Again::Replaces)
}

/// The change of a queue's settings that `KEY=VALUE` say. Nothing after the `=` is null, by which a change says that a setting is to have its
/// default.
///
/// # Errors
/// As [`put_settings`].
pub(crate) fn change_of_settings(pairs: &[(String, String)]) -> Result<Map<String, Value>, String> {
    let mut settings = Map::new();
    let said =
        pairs.iter().map(|(key, text)| (key.as_str(), Some(text.as_str()).filter(|text| !text.is_empty())));
    put_each(&mut settings, said, Again::Refused)?;
    Ok(settings)
}

/// What becomes of a setting that is there already.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Again {
    Refused,
    Replaces,
}

fn put_each<'a>(
    settings: &mut Map<String, Value>,
    said: impl Iterator<Item = (&'a str, Option<&'a str>)>,
    again: Again,
) -> Result<(), String> {
    for (key, text) in said {
        let before = put(settings, key, text)?;
        if before.is_some() && again == Again::Refused {
            let text = text.unwrap_or_default();
            return Err(format!(
                "`{key}` is there twice, the second time as `{text}`: give each setting once"
            ));
        }
    }
    Ok(())
}

/// Puts one setting: `max_active=10`, `ttl=60s`, `backoff.initial=500ms`, `picker={aging_ms=30000}`, `scheme=signed`.
///
/// The value is read as TOML; what is no TOML is text. Dots lead into tables; a part with a dot in it is in quotes, as in `key_weights."a.b"=3`. A setting in ms may be said by its name without `_ms` as a
/// duration, or by its full name as a number or a duration. Returns the value that was there before.
fn put(settings: &mut Map<String, Value>, key: &str, text: Option<&str>) -> Result<Option<Value>, String> {
    let parts = parts(key)?;
    let (name, tables) = parts.split_last().expect("a key has a part");
    let key = &*parts.join(".");
    let mut table = settings;
    for first in tables {
        let there = table.entry(first).or_insert_with(|| Value::Object(Map::new()));
        let is_no_table = || format!("`{key}`: `{first}` is a plain value and a table at once");
        table = there.as_object_mut().ok_or_else(is_no_table)?;
    }
    let value = match text {
        None => Value::Null,
        Some(text) if is_duration(key) => duration(key, text)?.into(),
        Some(text) => in_ms(key, toml_value(key, text)?)?,
    };
    let name = if is_duration(key) { in_full(name) } else { name.clone() };
    Ok(table.insert(name, value))
}

/// Tables that hold plain values by name.
const PLAIN_TABLES: [&[&str]; 2] = [&["key_weights"], &["picker", "weighted"]];

/// The parts of a key, between its dots. A part in quotes is read as in TOML, and may hold dots itself.
fn parts(key: &str) -> Result<Vec<String>, String> {
    let (mut all, mut rest) = (Vec::new(), key);
    loop {
        let part = match rest.chars().next() {
            Some(quote @ ('"' | '\'')) => {
                let end = rest[1..].find(quote).ok_or_else(|| format!("`{key}`: a quote is not closed"))?;
                let (quoted, after) = rest.split_at(end + 2);
                rest = after;
                match toml_value(key, quoted)? {
                    Value::String(part) if rest.is_empty() || rest.starts_with('.') => part,
                    _ => return Err(format!("`{key}`: {quoted} must be a whole part of the key")),
                }
            }
            _ => {
                let (part, after) = rest.split_at(rest.find('.').unwrap_or(rest.len()));
                rest = after;
                part.to_owned()
            }
        };
        all.push(part);
        match rest.strip_prefix('.') {
            Some(further) => rest = further,
            None => break,
        }
    }
    let within = PLAIN_TABLES.into_iter().find(|table| {
        all.len() > table.len() + 1
            && all.starts_with(&table.iter().map(|part| (*part).to_owned()).collect::<Vec<_>>())
    });
    match within {
        None => Ok(all),
        Some(table) => {
            let (table, name) = (table.join("."), all[table.len()..].join("."));
            Err(format!("`{key}`: write a name that has a dot in quotes, as in '{table}.\"{name}\"=3'"))
        }
    }
}

/// Settings that are durations, without the `_ms` of their names.
const DURATIONS: [&str; 11] = [
    "ttl",
    "max_ttl",
    "visibility_timeout",
    "expires",
    "consumer_timeout",
    "run_timeout",
    "backoff.initial",
    "backoff.max",
    "picker.aging",
    "rate_limit.per",
    "key_rate_limit.per",
];

/// Whether a setting is a duration, by its name with or without `_ms`.
fn is_duration(key: &str) -> bool {
    DURATIONS.contains(&key.strip_suffix("_ms").unwrap_or(key))
}

/// The name of a duration with its `_ms`.
fn in_full(name: &str) -> String {
    if name.ends_with("_ms") { name.to_owned() } else { format!("{name}_ms") }
}

/// A setting's duration in ms. The full name says the unit of a bare number.
fn duration(key: &str, text: &str) -> Result<u64, String> {
    let read = if key.ends_with("_ms") { Millis::read(text).map(|ms| ms.0) } else { duration_ms(text) };
    read.map_err(|why| format!("{key}: {why}"))
}

/// A setting's value with the durations inside its tables in ms, as in `rate_limit={messages=5,per="1m"}`.
fn in_ms(key: &str, value: Value) -> Result<Value, String> {
    let Value::Object(fields) = value else { return Ok(value) };
    let mut table = Map::new();
    for (name, value) in fields {
        let key = format!("{key}.{name}");
        let (name, value) = match (is_duration(&key), &value) {
            (true, Value::String(text)) => (in_full(&name), duration(&key, text)?.into()),
            (true, Value::Number(number)) => (in_full(&name), duration(&key, &number.to_string())?.into()),
            _ => (name, in_ms(&key, value)?),
        };
        if table.insert(name, value).is_some() {
            return Err(format!("`{key}` is there twice, with `_ms` and without: give each setting once"));
        }
    }
    Ok(Value::Object(table))
}

/// A value as TOML writes it, else a text. A text that begins as a table or a list does is meant as one, and may be JSON.
fn toml_value(key: &str, text: &str) -> Result<Value, String> {
    match toml::from_str::<Map<String, Value>>(&format!("v = {text}")) {
        Ok(mut document) => Ok(document.remove("v").unwrap_or_default()),
        Err(error) if text.starts_with(['{', '[']) => serde_json::from_str(text)
            .map_err(|_| format!("{key}: `{text}` cannot be read as TOML: {}", reason(error.message()))),
        Err(_) => Ok(Value::from(text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(words: &[&str], expect: &str) {
        let mut settings = Map::new();
        let pairs: Result<Vec<_>, _> = words.iter().map(|word| setting(word)).collect();
        let outcome = pairs.and_then(|pairs| put_settings(&mut settings, &pairs));
        let seen = outcome.map_or_else(|why| why, |()| Value::Object(settings).to_string());
        let is_it = seen == expect || (expect.ends_with(": ") && seen.starts_with(expect));
        assert!(is_it, "{words:?}: {seen}");
    }

    #[test]
    fn a_setting_without_a_value_has_its_default_again() {
        let pairs = [("ttl", ""), ("max_active", "2"), ("lanes.low", ""), ("backoff.initial", "1s")];
        let pairs = pairs.map(|(key, text)| (key.to_owned(), text.to_owned()));
        let settings = change_of_settings(&pairs).expect("a change");
        let expect = r#"{"backoff":{"initial_ms":1000},"lanes":{"low":null},"max_active":2,"ttl_ms":null}"#;
        assert_eq!(Value::Object(settings).to_string(), expect);
    }

    #[test]
    fn a_setting_is_given_once() {
        let twice = |key: &str, text: &str| {
            format!("`{key}` is there twice, the second time as `{text}`: give each setting once")
        };
        check(&["max_active=1", "max_active=1"], &twice("max_active", "1"));
        check(&["ttl=5s", "ttl_ms=7000"], &twice("ttl_ms", "7000"));
        check(&["backoff.initial_ms=5", "backoff.initial=1s"], &twice("backoff.initial", "1s"));
        check(&["backoff={initial_ms=5}", "backoff.initial=1s"], &twice("backoff.initial", "1s"));
        check(&["backoff.initial=1s", "backoff={multiplier=3}"], &twice("backoff", "{multiplier=3}"));
        check(
            &["backoff={initial_ms=5}", "backoff.multiplier=3"],
            r#"{"backoff":{"initial_ms":5,"multiplier":3}}"#,
        );
        let pair = |key: &str, text: &str| (key.to_owned(), text.to_owned());
        let reset = change_of_settings(&[pair("ttl", ""), pair("ttl_ms", "5")]);
        assert_eq!(reset, Err(twice("ttl_ms", "5")));
        let mut of_file = Map::from_iter([("ttl_ms".to_owned(), Value::from(9))]);
        put_settings(&mut of_file, &[pair("ttl", "1s")]).expect("the command line wins");
        assert_eq!(of_file["ttl_ms"], 1_000);
    }

    #[test]
    fn a_header_is_given_once() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let no = headers(&[pair("a", "1"), pair("b", ""), pair("a", "2")]).expect_err("one name, two values");
        assert!(format!("{no:?}").contains("--header a is there twice: `1` and `2`"), "{no:?}");
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
        check(
            &["picker=strict", "picker.aging_ms=1"],
            "`picker.aging_ms`: `picker` is a plain value and a table at once",
        );
        check(
            &["backoff.initial=5"],
            "backoff.initial: `5` has no unit: say 5s for seconds, or 5ms for milliseconds",
        );
        check(
            &["rate_limit.per=60"],
            "rate_limit.per: `60` has no unit: say 60s for seconds, or 60ms for milliseconds",
        );
        check(
            &[r#"rate_limit={messages=5,per="1m"}"#, "key_rate_limit={messages=1,per_ms=9}"],
            r#"{"key_rate_limit":{"messages":1,"per_ms":9},"rate_limit":{"messages":5,"per_ms":60000}}"#,
        );
        check(
            &[r#"rate_limit={"messages": 5, "per": "1m"}"#, r#"key_weights={"a.b": 3}"#],
            r#"{"key_weights":{"a.b":3},"rate_limit":{"messages":5,"per_ms":60000}}"#,
        );
        check(
            &["rate_limit={messages=5,per=60}"],
            "rate_limit.per: `60` has no unit: say 60s for seconds, or 60ms for milliseconds",
        );
        check(
            &[r#"backoff={initial="1s",initial_ms=5}"#],
            "`backoff.initial_ms` is there twice, with `_ms` and without: give each setting once",
        );
        check(&["backoff={initial=1s}"], "backoff: `{initial=1s}` cannot be read as TOML: ");
        check(&["picker.weighted.max=3"], r#"{"picker":{"weighted":{"max":3}}}"#);
        check(&["max_bytes=10MiB"], r#"{"max_bytes":"10MiB"}"#);
        check(&["=1"], "`=1` is not of the form NAME=VALUE");
    }

    #[test]
    fn a_part_of_a_key_that_has_a_dot_is_in_quotes() {
        check(&[r#"key_weights."a.b"=3"#], r#"{"key_weights":{"a.b":3}}"#);
        check(&["key_weights.'a.b=c'=3", "key_weights.d=2"], r#"{"key_weights":{"a.b=c":3,"d":2}}"#);
        check(&[r#"key_weights."é\u0041"=1"#, r#"key_weights.""=2"#], r#"{"key_weights":{"":2,"éA":1}}"#);
        check(&[r#"lanes."hot.er".max_active=3"#], r#"{"lanes":{"hot.er":{"max_active":3}}}"#);
        check(&["lanes.it's.max_active=3"], r#"{"lanes":{"it's":{"max_active":3}}}"#);
        check(
            &["key_weights.a.b=3"],
            r#"`key_weights.a.b`: write a name that has a dot in quotes, as in 'key_weights."a.b"=3'"#,
        );
        check(
            &["picker.weighted.a.b=3"],
            r#"`picker.weighted.a.b`: write a name that has a dot in quotes, as in 'picker.weighted."a.b"=3'"#,
        );
        check(&[r#"key_weights."a=3"#], r#"`key_weights."a`: a quote is not closed"#);
        check(&[r#"key_weights."a"b=3"#], r#"`key_weights."a"b`: "a" must be a whole part of the key"#);
        let pairs = [(r#"key_weights."a.b""#.to_owned(), String::new())];
        let reset = change_of_settings(&pairs).map(|settings| Value::Object(settings).to_string());
        assert_eq!(reset, Ok(r#"{"key_weights":{"a.b":null}}"#.to_owned()));
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
            ("3650d", Ok(DURATION_MS_MAX)),
            ("3651d", Err("`3651d` is too long: say at most ten years, 3650d")),
            ("9999999999d", Err("`9999999999d` is too long: say at most ten years, 3650d")),
            (
                "99999999999999999999ms",
                Err("`99999999999999999999ms` is too long: say at most ten years, 3650d"),
            ),
            ("-5s", Err("`-5s` is no duration: say it as in 250ms, 30s, 5m, 1h30m, 7d")),
            ("soon", Err("`soon` is no duration: say it as in 250ms, 30s, 5m, 1h30m, 7d")),
            ("", Err("`` is no duration: say it as in 250ms, 30s, 5m, 1h30m, 7d")),
        ] {
            assert_eq!(duration_ms(text), expect.map_err(str::to_owned), "{text}");
        }
        for zero in ["0", "0s", "0h0m"] {
            assert_eq!(more_than_0("say more")(zero), Err("say more".to_owned()));
        }
        assert_eq!(more_than_0("say more")("1ms"), Ok(1));
    }

    #[test]
    fn a_priority_is_a_number_or_a_name() {
        assert_eq!(priority("-50"), Value::from(-50));
        assert_eq!(priority("HIGH"), Value::from("HIGH"));
    }
}
