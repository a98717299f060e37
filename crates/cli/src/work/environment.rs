//! What a program finds in its environment: all that the API shows of its message.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// All of ours begin so.
const PREFIX: &str = "OVERTAKE_";
/// And headers so.
const HEADER: &str = "OVERTAKE_HEADER_";
/// What is no property: the body is the standard input, the receipt is the worker's, the status and the deadline of a message that
/// is worked on say nothing.
const UNSAID: [&str; 6] = ["body", "body_base64", "receipt", "status", "deadline", "run_timeout_ms"];
/// Ours of which a message may have none: a worker that is itself run by a worker must not hand on what it was told.
const PROPERTIES: [&str; 17] = [
    "ID",
    "SEQ",
    "PRIORITY",
    "LEVEL",
    "LANE",
    "PUBLISHED_AT",
    "EXPIRES_AT",
    "ATTEMPT",
    "REDELIVERED",
    "BYTES",
    "KEY",
    "CONTENT_TYPE",
    "EXCHANGE",
    "ROUTING_KEYS",
    "STREAM",
    "ENTRY",
    "METADATA",
];

/// The headers that say which trace a message is of, and what they are called in an environment.
const TRACE: [(&str, &str); 2] = [("traceparent", "TRACEPARENT"), ("tracestate", "TRACESTATE")];

/// The variables of a message as the API shows it.
pub(crate) fn of(message: &Map<String, Value>, queue: &str) -> BTreeMap<String, String> {
    let mut variables = BTreeMap::new();
    for (name, value) in message.iter().filter(|(name, _)| !UNSAID.contains(&name.as_str())) {
        let name = if name == "delivery_count" { "attempt" } else { name };
        put(&mut variables, PREFIX, name, value);
    }
    for (name, value) in message.get("headers").and_then(Value::as_object).into_iter().flatten() {
        put(&mut variables, HEADER, name, value);
    }
    put(&mut variables, PREFIX, "queue", &Value::from(queue));
    // By the names that programs know which tell their part of a trace.
    for (header, name) in TRACE {
        if let Some(text) = message
            .get("headers")
            .and_then(|headers| headers.get(header))
            .and_then(text)
            .filter(|text| !text.contains('\0'))
        {
            variables.insert(name.to_owned(), text);
        }
    }
    variables
}

/// Whether a variable is about a message, so that none of it may come from around the worker.
pub(crate) fn is_about_a_message(name: &str) -> bool {
    let property = name.strip_prefix(PREFIX);
    let is_trace = TRACE.iter().any(|(_, variable)| *variable == name);
    is_trace || name.starts_with(HEADER) || property.is_some_and(|property| PROPERTIES.contains(&property))
}

/// Of two names that are the same variable the first counts.
fn put(variables: &mut BTreeMap<String, String>, prefix: &str, name: &str, value: &Value) {
    let is_said = !name.is_empty() && !name.contains('\0');
    if let Some(text) = text(value).filter(|text| is_said && !text.contains('\0')) {
        variables.entry(format!("{prefix}{}", variable(name))).or_insert(text);
    }
}

fn variable(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' }).collect()
}

/// Texts, numbers and booleans as they are, lists of them line by line; nothing else has a text.
fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        Value::Array(values) => {
            let texts: Option<Vec<String>> =
                values.iter().map(|value| text(value).filter(|_| !value.is_array())).collect();
            texts.map(|texts| texts.join("\n"))
        }
        Value::Null | Value::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(message: &Value, expect: &[&str]) {
        let variables = of(message.as_object().expect("an object"), "jobs");
        let seen: Vec<_> = variables.iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(seen, expect);
    }

    #[test]
    fn every_property_is_a_variable_and_nothing_else_is() {
        check(
            &json!({
                "id": "a", "priority": 9, "lane": "p9", "delivery_count": 2, "redelivered": true, "key": "k",
                "content_type": "text/plain", "correlation_id": "c", "routing_keys": ["a.b", "c"],
                "body": "b", "body_base64": "", "receipt": "r", "status": "leased", "deadline": "d",
                "expires_at": null, "deaths": [{ "reason": "rejected" }], "dead_letter": {}, "headers": {},
            }),
            &[
                "OVERTAKE_ATTEMPT=2",
                "OVERTAKE_CONTENT_TYPE=text/plain",
                "OVERTAKE_CORRELATION_ID=c",
                "OVERTAKE_ID=a",
                "OVERTAKE_KEY=k",
                "OVERTAKE_LANE=p9",
                "OVERTAKE_PRIORITY=9",
                "OVERTAKE_QUEUE=jobs",
                "OVERTAKE_REDELIVERED=true",
                "OVERTAKE_ROUTING_KEYS=a.b\nc",
            ],
        );
    }

    #[test]
    fn headers_are_in_capitals_without_what_a_shell_cannot_say() {
        check(
            &json!({ "headers": { "x-Trace.id": "7", "größe": 3, "a=b": true, "1": "one" } }),
            &[
                "OVERTAKE_HEADER_1=one",
                "OVERTAKE_HEADER_A_B=true",
                "OVERTAKE_HEADER_GR__E=3",
                "OVERTAKE_HEADER_X_TRACE_ID=7",
                "OVERTAKE_QUEUE=jobs",
            ],
        );
    }

    #[test]
    fn the_trace_of_a_message_is_that_of_its_program() {
        check(
            &json!({ "headers": { "traceparent": "00-1-2-01", "tracestate": "a=1" } }),
            &[
                "OVERTAKE_HEADER_TRACEPARENT=00-1-2-01",
                "OVERTAKE_HEADER_TRACESTATE=a=1",
                "OVERTAKE_QUEUE=jobs",
                "TRACEPARENT=00-1-2-01",
                "TRACESTATE=a=1",
            ],
        );
        check(
            &json!({ "headers": { "Traceparent": "x", "tracestate": {} } }),
            &["OVERTAKE_HEADER_TRACEPARENT=x", "OVERTAKE_QUEUE=jobs"],
        );
        assert!(is_about_a_message("TRACEPARENT"), "a worker that is traced does not hand on its own");
    }

    #[test]
    fn what_no_variable_can_hold_is_left_out() {
        check(
            &json!({ "key": "a\0b", "headers": { "a\0": "1", "b": "\0", "": "3" } }),
            &["OVERTAKE_QUEUE=jobs"],
        );
    }

    #[test]
    fn of_two_names_that_become_one_the_first_counts() {
        check(
            &json!({ "headers": { "a-b": "1", "a_b": "2" } }),
            &["OVERTAKE_HEADER_A_B=1", "OVERTAKE_QUEUE=jobs"],
        );
    }

    #[test]
    fn what_is_about_another_message_is_known_by_its_name() {
        for name in ["OVERTAKE_ID", "OVERTAKE_HEADER_X", "OVERTAKE_ROUTING_KEYS"] {
            assert!(is_about_a_message(name), "{name}");
        }
        for name in ["OVERTAKE_URL", "OVERTAKE_TOKEN", "OVERTAKE_VHOST", "ID", "PATH"] {
            assert!(!is_about_a_message(name), "{name}");
        }
    }
}
