//! Secrets that a definition holds itself, where it should say where they are.
//!
//! A secret in a definition is in every snapshot and backup, and in the shell history of whoever made it. What is made over the API names secrets by reference;
//! what was stored or configured before this rule keeps working, and is named in the log.

use std::collections::BTreeMap;

use overtake_peer::MASK;
use serde::Serialize;
use serde_json::Value;
use url::Url;

/// Headers that hold a secret, whatever they say.
const HEADERS: [&str; 3] = ["authorization", "cookie", "proxy-authorization"];
/// Parts of names of headers and parameters that hold a secret.
const PARTS: [&str; 11] = [
    "access-key",
    "api-key",
    "apikey",
    "auth-key",
    "credential",
    "functions-key",
    "passw",
    "secret",
    "signature",
    "subscription-key",
    "token",
];
/// Parameters of a URL that hold a secret.
const PARAMETERS: [&str; 5] = ["auth", "code", "key", "pwd", "sig"];
/// What the value of a header that holds credentials begins with.
const SCHEMES: [&str; 3] = ["basic ", "bearer ", "digest "];

/// The secrets that a definition holds itself: where each stands, and what it is.
pub(crate) fn inline_secrets<C: Serialize>(definition: &C) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    find("", &serde_json::to_value(definition).unwrap_or_default(), &mut found);
    found
}

/// Where the secrets stand that a definition holds itself, and that the one before it did not hold there.
pub(crate) fn new_secrets<C: Serialize>(definition: &C, before: Option<&C>) -> Vec<String> {
    let before = before.map(inline_secrets).unwrap_or_default();
    let found = inline_secrets(definition).into_iter();
    found.filter(|(place, secret)| before.get(place) != Some(secret)).map(|(place, _)| place).collect()
}

fn find(at: &str, value: &Value, found: &mut BTreeMap<String, String>) {
    let Value::Object(all) = value else { return };
    for (key, value) in all {
        let place = if at.is_empty() { key.clone() } else { format!("{at}.{key}") };
        match (key.as_str(), value) {
            ("url", Value::String(url)) => find_parameters(&place, url, found),
            ("headers", Value::Object(headers)) => {
                for (name, value) in headers {
                    if let Value::String(text) = value
                        && text != MASK
                        && is_secret_header(name, text)
                    {
                        found.insert(format!("{place}.{name}"), text.clone());
                    }
                }
            }
            (_, value) => find(&place, value, found),
        }
    }
}

fn find_parameters(place: &str, url: &str, found: &mut BTreeMap<String, String>) {
    let Ok(url) = Url::parse(url) else { return };
    for (name, value) in url.query_pairs() {
        let is_secret = has_secret_part(&name) || PARAMETERS.contains(&&*name.to_ascii_lowercase());
        if is_secret && !value.is_empty() {
            found.insert(format!("{place}?{name}"), value.into_owned());
        }
    }
}

fn is_secret_header(name: &str, text: &str) -> bool {
    let (name, text) = (name.to_ascii_lowercase(), text.trim_start().to_ascii_lowercase());
    let is_named = HEADERS.contains(&name.as_str()) || has_secret_part(&name);
    is_named || SCHEMES.iter().any(|scheme| text.starts_with(scheme))
}

fn has_secret_part(name: &str) -> bool {
    let name = name.to_ascii_lowercase().replace('_', "-");
    PARTS.iter().any(|part| name.contains(part))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Endpoint;

    fn endpoint(webhook: &Value) -> Endpoint {
        serde_json::from_value(json!({"to": {"webhook": webhook}})).expect("an endpoint")
    }

    fn check(webhook: &Value, expect: &[&str]) {
        assert_eq!(new_secrets(&endpoint(webhook), None), expect, "{webhook}");
    }

    #[test]
    fn secrets_are_known_by_the_names_of_headers_and_parameters() {
        for name in ["Authorization", "cookie", "X-API-Key", "x_api_key", "X-Auth-Token", "x-client-secret"] {
            let place = format!("to.webhook.headers.{name}");
            check(&json!({"url": "http://h", "headers": {name: "x"}}), &[&place]);
        }
        check(&json!({"url": "http://h", "headers": {"x-who": "Bearer abc"}}), &["to.webhook.headers.x-who"]);
        for name in ["token", "access_token", "sig", "key", "code", "Signature"] {
            let place = format!("to.webhook.url?{name}");
            check(&json!({"url": format!("https://h/hook?a=b&{name}=x")}), &[&place]);
        }
    }

    #[test]
    fn references_and_other_texts_are_no_secrets() {
        let kept = json!({"env": "OVERTAKE_SECRET_X"});
        check(&json!({"url": kept, "headers": {"authorization": kept, "x-api-key": kept}}), &[]);
        let headers = json!({"x-tenant": "7", "idempotency-key": "9", "x-routing-key": "a", "accept": "*/*"});
        check(&json!({"url": "https://h/hook?tenant=7&keyword=a&code=", "headers": headers}), &[]);
    }

    #[test]
    fn a_secret_that_was_there_before_is_not_new() {
        let of = |token: &str| endpoint(&json!({"url": format!("https://h?token={token}")}));
        assert!(new_secrets(&of("a"), Some(&of("a"))).is_empty());
        assert_eq!(new_secrets(&of("b"), Some(&of("a"))), ["to.webhook.url?token"]);
    }
}
