//! The JSON object that an entry holds, each value as the text it came in: what is laid aside and brought back says the same to the last digit.

use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// Names and values, in their order.
#[derive(Debug, Default)]
pub(crate) struct Object(Vec<(String, Box<RawValue>)>);

impl Object {
    /// # Errors
    /// Why it is none, as a phrase.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, String> {
        let text = std::str::from_utf8(bytes).map_err(|_| "it is no text")?;
        serde_json::from_str(text).map_err(|error| format!("it is no JSON object: {error}"))
    }

    /// The value of a name; of several, the last.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().rev().find(|(of, _)| of == name).map(|(_, value)| value.get())
    }

    pub(crate) fn without(mut self, name: &str) -> Self {
        self.0.retain(|(of, _)| of != name);
        self
    }

    /// With a value under a name that had none, or another.
    pub(crate) fn with(self, name: &str, value: &serde_json::Value) -> Self {
        let value = RawValue::from_string(value.to_string()).expect("a value is JSON");
        let mut all = self.without(name);
        all.0.push((name.to_owned(), value));
        all
    }

    pub(crate) fn to_text(&self) -> String {
        serde_json::to_string(self).expect("names and values can be written")
    }
}

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Reads;
        impl<'de> Visitor<'de> for Reads {
            type Value = Object;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object, A::Error> {
                let mut all = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    all.push(pair);
                }
                Ok(Object(all))
            }
        }
        from.deserialize_map(Reads)
    }
}

impl Serialize for Object {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_added_and_taken_away_leaves_the_rest_as_it_was() {
        let text = r#"{"z":1.10,"a":123456789012345678901234567890,"data":{"b": 1}}"#;
        let object = Object::parse(text.as_bytes()).expect("an object");
        assert_eq!(object.get("data"), Some(r#"{"b": 1}"#));
        let with = object.with("why", &json!({"n": 1}));
        assert_eq!(with.to_text(), format!(r#"{},"why":{{"n":1}}}}"#, &text[..text.len() - 1]));
        assert_eq!(with.without("why").to_text(), text);
    }

    #[test]
    fn what_is_no_object_is_refused() {
        for bytes in [&b"[1]"[..], b"7", b"{\"a\":", b"", b"\xff"] {
            assert!(Object::parse(bytes).is_err(), "{bytes:?}");
        }
    }
}
