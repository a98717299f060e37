//! What tools send as text and mean as something else: RabbitMQ takes `"true"` for true and `"7"` for 7.

use std::ops::RangeInclusive;

use serde::{Deserialize, Deserializer, de};
use serde_json::{Map, Value};

use crate::problem::Problem;

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

/// A whole number of a range, or its digits, as the field `name` says it.
pub(crate) fn within(name: &str, value: &Value, range: RangeInclusive<u64>) -> Result<u64, Problem> {
    let read = match value {
        Value::Number(number) => number.as_u64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    };
    read.filter(|number| range.contains(number)).ok_or_else(|| {
        let (least, most) = (range.start(), range.end());
        Problem::bad(format_args!("{name} is {value}: it must be a whole number from {least} to {most}"))
    })
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
    fn a_number_out_of_its_range_is_named_with_what_is_allowed() {
        let read = |value: Value| within("priority", &value, 0..=255).map_err(|why| why.reason);
        assert_eq!(read(7.into()), Ok(7));
        assert_eq!(read("255".into()), Ok(255));
        for (wrong, shown) in [
            (Value::from(-1), "-1"),
            (256.into(), "256"),
            (1.5.into(), "1.5"),
            ("high".into(), r#""high""#),
            (true.into(), "true"),
        ] {
            let why = format!("priority is {shown}: it must be a whole number from 0 to 255");
            assert_eq!(read(wrong), Err(why));
        }
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
