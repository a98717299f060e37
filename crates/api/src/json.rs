//! JSON bodies: bytes become a value of Rust, or a problem that names the field.
//!
//! [`decode`] reads a body that fails once more, with the path kept, so good requests do not pay for the messages of bad ones.

use http::StatusCode;
use overtake_redact::{Strict, json_reason};
use overtake_routes::nearest::did_you_mean;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::error::Category;
use serde_path_to_error::Track;

use crate::problem::{At, Problem};

/// Decodes JSON strictly ([`Strict`]).
///
/// # Errors
/// 400 with line and column for bytes that are not JSON; 422 with the field for JSON that `T` does not accept, or in which an object has a
/// field twice.
pub fn decode<T: DeserializeOwned>(json: &[u8]) -> Result<T, Problem> {
    let mut deserializer = serde_json::Deserializer::from_slice(json);
    let read = T::deserialize(Strict(&mut deserializer)).and_then(|value| deserializer.end().map(|()| value));
    read.map_err(|error| why_not::<T>(json, &error))
}

/// The value under a key as problems name it, such as `messages[3].priority` or `lanes.hot.max_active`, as a text of one line, or `None` where
/// `json` has no such value.
pub fn shown_at(json: &[u8], key: &str) -> Option<String> {
    let json: Value = serde_json::from_slice(json).ok()?;
    let mut text = match at(&json, key)? {
        Value::String(text) => text.escape_debug().to_string(),
        value => value.to_string(),
    };
    if let Some((end, _)) = text.char_indices().nth(SHOWN_CHARS_MAX) {
        text.replace_range(end.., "…");
    }
    Some(text)
}

/// Most characters of a value in a problem.
const SHOWN_CHARS_MAX: usize = 100;

fn at<'a>(value: &'a Value, key: &str) -> Option<&'a Value> {
    let key = key.strip_prefix('.').unwrap_or(key);
    if key.is_empty() {
        return Some(value);
    }
    match value {
        Value::Object(fields) => {
            // A name may itself hold a point, as that of a lane may.
            let rest_of = |name: &str| {
                key.strip_prefix(name).filter(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
            };
            fields.iter().find_map(|(name, value)| at(value, rest_of(name)?))
        }
        Value::Array(items) => {
            let (index, rest) = key.strip_prefix('[')?.split_once(']')?;
            at(items.get(index.parse::<usize>().ok()?)?, rest)
        }
        _ => None,
    }
}

/// Why `json` is no `T`, which `error` says without the path.
fn why_not<T: DeserializeOwned>(json: &[u8], error: &serde_json::Error) -> Problem {
    if let Err(error) = serde_json::from_slice::<Value>(json)
        && error.classify() != Category::Data
        && !is_absurd(&error)
    {
        return problem(&error, "");
    }
    let mut deserializer = serde_json::Deserializer::from_slice(json);
    let mut track = Track::new();
    let read = T::deserialize(Strict(serde_path_to_error::Deserializer::new(&mut deserializer, &mut track)));
    let why = match read {
        Ok(_) => problem(error, ""),
        Err(error) => {
            let path = track.path().to_string();
            problem(&error, if path == "." { "" } else { &path })
        }
    };
    // The text is JSON, as was seen above. For an enum, serde reports a value of another kind as a mistake in the text.
    match why.body().code() {
        "json-malformed" => why.into_bad_value("expected a string or an object"),
        _ => why,
    }
}

fn problem(error: &serde_json::Error, path: &str) -> Problem {
    let text = error.to_string();
    let text = text.rsplit_once(" at line ").map_or(text.as_str(), |(what, _)| what);
    let text = &*json_reason(text);
    let at = At { line: error.line(), column: error.column() };
    match error.classify() {
        Category::Syntax if is_absurd(error) => Problem::bad_value(path, text.to_owned()).at(at),
        Category::Data => wrong_field(text, path).at(at),
        Category::Syntax | Category::Eof | Category::Io => malformed(text).key(path).at(at),
    }
}

/// Whether it is about a number like 1e999, which is well-formed JSON, but larger than any field accepts.
fn is_absurd(error: &serde_json::Error) -> bool {
    error.to_string().starts_with("number out of range")
}

fn malformed(text: &str) -> Problem {
    Problem::new(
        StatusCode::BAD_REQUEST,
        "json-malformed",
        "the body is not JSON",
        "correct the JSON at the place `at` says; nothing was done",
    )
    .detail(text.to_owned())
}

fn wrong_field(text: &str, path: &str) -> Problem {
    let named = |what| text.strip_prefix(what).and_then(|rest| rest.split('`').next());
    let (code, title, field) = if let Some(field) = named("unknown field `") {
        ("field-unknown", "the body has a field that is not known here", field)
    } else if let Some(field) = named("missing field `") {
        ("field-missing", "a field is missing", field)
    } else if let Some(field) = named("duplicate field `") {
        ("field-duplicate", "a field is there twice", field)
    } else {
        return wrong_value(text, path);
    };
    let known: Vec<&str> = text.split('`').skip(3).step_by(2).collect();
    let (detail, hint) = match code {
        "field-unknown" => (format!("there is no field `{field}` here"), spelling(field, &known)),
        "field-missing" => (
            format!("the field `{field}` is missing"),
            "add the field; the OpenAPI document describes it".to_owned(),
        ),
        _ => (format!("the field `{field}` is there twice"), "leave one of them".to_owned()),
    };
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, code, title, "")
        .detail(detail)
        .hint(hint)
        .key(join(path, field))
}

fn wrong_value(text: &str, path: &str) -> Problem {
    let problem = Problem::bad_value(path, text.to_owned());
    // In JSON a duration is a number of the unit that its name ends with.
    match path.ends_with("_ms") && text.ends_with("a string") {
        true => problem.hint("send a number of milliseconds, such as 60000 for 60s; nothing was done"),
        false => problem,
    }
}

/// The known field that was probably meant, else all of them.
fn spelling(field: &str, known: &[&str]) -> String {
    match (did_you_mean(field, known.iter().copied()), known) {
        (Some(near), _) => near,
        (None, []) => "leave the field out: there are none here".to_owned(),
        (None, known) => format!("the fields here are {}", known.join(", ")),
    }
}

/// Appends `field` to `path` unless `path` ends with it: serde's path includes an unknown field, but not a missing one.
fn join(path: &str, field: &str) -> String {
    if path.is_empty() || path == field || path.ends_with(&format!(".{field}")) {
        if path.is_empty() { field.to_owned() } else { path.to_owned() }
    } else {
        format!("{path}.{field}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_found_by_the_key_of_a_problem() {
        let json = format!(
            r#"{{"a":{{"b":[1,{{"c":-2}}]}},"lanes":{{"hot":3,"hot.er":4}},"long":"{}"}}"#,
            "ü".repeat(200)
        );
        let check = |key: &str, expect: Option<&str>| {
            assert_eq!(shown_at(json.as_bytes(), key).as_deref(), expect, "{key}")
        };
        check("a.b[1].c", Some("-2"));
        check("a.b.c", None);
        check("lanes.hot", Some("3"));
        check("lanes.hot.er", Some("4"));
        check("lanes.cold", None);
        check("lanes", Some(r#"{"hot":3,"hot.er":4}"#));
        check("long", Some(&("ü".repeat(100) + "…")));
        assert_eq!(shown_at(br#"{"a":"x\n"}"#, "a").as_deref(), Some(r"x\n"));
        assert_eq!(shown_at(b"{", "a"), None);
    }
}
