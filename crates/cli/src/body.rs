//! Bodies: bytes for people, text or base64 in JSON.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use crate::failure::{Exit, Failure};

/// Puts a body into a message: as text if it is text, and as such not longer than in base64; else in base64.
pub(crate) fn put(message: &mut Map<String, Value>, body: &[u8]) {
    match std::str::from_utf8(body) {
        Ok(text) if escaped_len(body) <= body.len() / 3 * 4 + 4 => {
            message.insert("body".to_owned(), Value::from(text))
        }
        _ => message.insert("body_base64".to_owned(), Value::from(STANDARD.encode(body))),
    };
}

/// How long JSON makes a text. A control character may take six times its place.
fn escaped_len(text: &[u8]) -> usize {
    let one = |byte: &u8| match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' => 2,
        0..0x20 => 6,
        _ => 1,
    };
    text.iter().map(one).sum()
}

/// The body of a message the broker showed.
///
/// # Errors
/// When it shows none, or it is no base64.
pub(crate) fn of(message: &Value) -> Result<Vec<u8>, Failure> {
    if let Some(text) = message["body"].as_str() {
        return Ok(text.as_bytes().to_vec());
    }
    let broken = || Failure::new(Exit::Error, "the broker sent a message without a body that can be read");
    STANDARD.decode(message["body_base64"].as_str().ok_or_else(broken)?).map_err(|_| broken())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_comes_back_as_it_was() {
        for (body, key) in [
            (&b""[..], "body"),
            (b"plain \"quoted\"\n", "body"),
            ("äöü".as_bytes(), "body"),
            (&[0xff, 0xfe], "body_base64"),
            (&[0; 100], "body_base64"),
        ] {
            let mut message = Map::new();
            put(&mut message, body);
            assert!(message.contains_key(key), "{body:?}: {message:?}");
            assert_eq!(of(&Value::Object(message)).expect("a body"), body);
        }
        assert!(of(&Value::Null).is_err());
    }
}
