//! What tools send as text and mean as something else: RabbitMQ takes `"true"` for true and `"7"` for 7.

use serde::{Deserialize, Deserializer, de};
use serde_json::{Map, Value};

/// Truth, or its name.
pub(crate) fn truth<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    match Value::deserialize(deserializer)? {
        Value::Bool(is) => Ok(is),
        Value::Null => Ok(false),
        Value::String(text) if text == "true" => Ok(true),
        Value::String(text) if text == "false" || text.is_empty() => Ok(false),
        other => Err(de::Error::custom(format_args!("{other} is neither true nor false"))),
    }
}

/// A whole number, or its digits.
pub(crate) fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i64, D::Error> {
    let value = Value::deserialize(deserializer)?;
    let read = match &value {
        Value::Number(number) => number.as_i64(),
        Value::String(text) => text.parse().ok(),
        _ => None,
    };
    read.ok_or_else(|| de::Error::custom(format_args!("{value} is no whole number")))
}

/// An object; null, an empty list or nothing is one without entries.
pub(crate) fn object<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Map<String, Value>, D::Error> {
    match Value::deserialize(deserializer)? {
        Value::Object(object) => Ok(object),
        Value::Null => Ok(Map::new()),
        Value::Array(list) if list.is_empty() => Ok(Map::new()),
        other => Err(de::Error::custom(format_args!("{other} is no object"))),
    }
}

/// Words: a list of them, or a text with commas.
pub(crate) fn words<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    match Value::deserialize(deserializer)? {
        Value::Null => Ok(Vec::new()),
        Value::String(text) => {
            let words = text.split(',').map(str::trim).filter(|word| !word.is_empty());
            Ok(words.map(str::to_owned).collect())
        }
        Value::Array(words) => {
            let word = |word: &Value| word.as_str().map(str::to_owned);
            let words: Option<Vec<_>> = words.iter().map(word).collect();
            words.ok_or_else(|| de::Error::custom("a word is no text"))
        }
        other => Err(de::Error::custom(format_args!("{other} is neither a list nor text"))),
    }
}

/// A limit as a tool sets it.
#[derive(Deserialize)]
pub(crate) struct Limit {
    #[serde(deserialize_with = "number")]
    pub(crate) value: i64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(default)]
    struct Sent {
        #[serde(deserialize_with = "truth")]
        is: bool,
        #[serde(deserialize_with = "number")]
        many: i64,
        #[serde(deserialize_with = "object")]
        arguments: Map<String, Value>,
        #[serde(deserialize_with = "words")]
        tags: Vec<String>,
    }

    #[test]
    fn texts_are_taken_for_what_they_mean() {
        let read = |json: &str| serde_json::from_str::<Sent>(json);
        let sent =
            read(r#"{"is":"true","many":"7","arguments":[],"tags":"a, b"}"#).expect("it is understood");
        let tags = vec!["a".to_owned(), "b".to_owned()];
        assert_eq!(sent, Sent { is: true, many: 7, arguments: Map::new(), tags });
        assert_eq!(read("{}").expect("nothing is needed"), Sent::default());
        for wrong in [r#"{"is":"yes"}"#, r#"{"many":"x"}"#, r#"{"arguments":7}"#, r#"{"tags":[1]}"#] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
