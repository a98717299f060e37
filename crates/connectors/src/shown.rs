//! Definitions as they may be shown: in answers, in the audit log, and by `config show`.
//!
//! Secrets are named by reference. What stands in a definition itself and may be a secret all the same, the values of headers and the query
//! of a URL, is kept and never shown. A definition that was shown may be changed and sent back: what is masked in it stays as it is.

use overtake_peer::{MASK, masked};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Headers whose values are no secrets.
const HARMLESS: [&str; 4] = ["accept", "content-type", "host", "user-agent"];

/// A definition as it may be shown.
#[must_use]
pub fn shown<C: Serialize>(definition: &C) -> Value {
    let mut value = serde_json::to_value(definition).unwrap_or_default();
    mask(&mut value);
    value
}

/// A definition that takes the place of another one, with that one's values where it has them masked.
pub(crate) fn unmasked<C: Serialize + DeserializeOwned>(definition: C, before: &C) -> C {
    let mut value = serde_json::to_value(&definition).unwrap_or_default();
    let (kept, shown) = (serde_json::to_value(before).unwrap_or_default(), shown(before));
    // What was said in confidence to one receiver is told to no other.
    if receiver(&value) == receiver(&shown) {
        restore(&mut value, &kept, &shown);
    }
    serde_json::from_value(value).unwrap_or(definition)
}

/// Where a webhook goes, as far as that may be shown.
fn receiver(definition: &Value) -> Option<Value> {
    let mut url = definition.pointer("/to/webhook/url").cloned()?;
    if let Value::String(text) = &mut url {
        *text = masked(text);
    }
    Some(url)
}

fn mask(value: &mut Value) {
    match value {
        Value::Object(all) => {
            for (key, value) in all {
                match (key.as_str(), value) {
                    ("url", Value::String(url)) => *url = masked(url),
                    ("headers", Value::Object(headers)) => mask_headers(headers),
                    (_, value) => mask(value),
                }
            }
        }
        Value::Array(all) => all.iter_mut().for_each(mask),
        _ => {}
    }
}

fn mask_headers(headers: &mut serde_json::Map<String, Value>) {
    for (name, value) in headers {
        let is_harmless = HARMLESS.iter().any(|harmless| name.eq_ignore_ascii_case(harmless));
        if let Value::String(text) = value
            && !is_harmless
        {
            MASK.clone_into(text);
        }
    }
}

/// Texts that are as they were shown become what they were.
fn restore(value: &mut Value, kept: &Value, shown: &Value) {
    match (value, kept, shown) {
        (Value::Object(all), Value::Object(kept), Value::Object(shown)) => {
            for (key, value) in all {
                if let (Some(kept), Some(shown)) = (kept.get(key), shown.get(key)) {
                    restore(value, kept, shown);
                }
            }
        }
        (Value::String(text), Value::String(kept), Value::String(shown)) if text == shown => {
            kept.clone_into(text);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Endpoint;

    fn endpoint(webhook: &Value) -> Endpoint {
        serde_json::from_value(json!({"to": {"webhook": webhook}})).expect("an endpoint")
    }

    #[test]
    fn no_header_and_no_query_of_a_definition_is_shown() {
        let definition = endpoint(&json!({
            "url": "https://h/hook?token=query-secret",
            "headers": {"X-Key": "header-secret", "x-other": {"env": "OVERTAKE_SECRET_X"}, "Accept": "text/plain"},
        }));
        let expect = json!({"to": {"webhook": {
            "url": "https://h/hook?***",
            "headers": {"X-Key": "***", "x-other": {"env": "OVERTAKE_SECRET_X"}, "Accept": "text/plain"},
        }}});
        assert_eq!(shown(&definition), expect);
        let debug = format!("{definition:?}");
        assert!(!debug.contains("-secret"), "{debug}");
    }

    #[test]
    fn what_was_shown_may_be_sent_back() {
        let before = endpoint(&json!({"url": "https://h?a=b", "headers": {"k": "secret", "l": "other"}}));
        let mut sent = shown(&before);
        sent["to"]["webhook"]["headers"]["l"] = json!("new");
        sent["to"]["webhook"]["event_type"] = json!("changed");
        let sent: Endpoint = serde_json::from_value(sent).expect("an endpoint");
        let expect =
            json!({"url": "https://h?a=b", "headers": {"k": "secret", "l": "new"}, "event_type": "changed"});
        assert_eq!(unmasked(sent, &before), endpoint(&expect));
        let elsewhere = endpoint(&json!({"url": "https://other?***", "headers": {"k": "***"}}));
        assert_eq!(unmasked(elsewhere.clone(), &before), elsewhere);
    }
}
