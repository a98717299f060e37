//! JSON and TOML as one tree that keeps what the usual ones lose: keys that come twice, and their order.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

/// A value of a document.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Document {
    Null,
    Bool(bool),
    /// Within ±2⁵³, with fractions or without.
    Number(f64),
    Text(String),
    List,
    /// In the order of the text.
    Table(Vec<(String, Document)>),
}

impl Document {
    pub(crate) fn words(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a bool",
            Self::Number(_) => "a number",
            Self::Text(_) => "a string",
            Self::List => "an array",
            Self::Table(_) => "an object",
        }
    }

    /// The last value of a key.
    pub(crate) fn get(&self, key: &str) -> Option<&Self> {
        let Self::Table(entries) = self else { return None };
        entries.iter().rev().find(|(known, _)| known == key).map(|(_, value)| value)
    }
}

impl<'de> Deserialize<'de> for Document {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Document;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON or TOML")
    }

    fn visit_unit<E>(self) -> Result<Document, E> {
        Ok(Document::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Document, E> {
        Ok(Document::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Document, E> {
        Ok(Document::Number(value as f64))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Document, E> {
        Ok(Document::Number(value as f64))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Document, E> {
        Ok(Document::Number(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Document, E> {
        Ok(Document::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Document, A::Error> {
        // Nothing that is asked for stands in one.
        while seq.next_element::<Document>()?.is_some() {}
        Ok(Document::List)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Document, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = map.next_entry()? {
            entries.push(entry);
        }
        Ok(Document::Table(entries))
    }
}
