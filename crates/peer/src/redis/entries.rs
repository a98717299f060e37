//! Entries of streams, as `XREADGROUP` and `XAUTOCLAIM` answer them (RESP2).

use redis::Value;

/// A name and a value.
pub type Field = (Vec<u8>, Vec<u8>);

/// An entry of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its id, `MILLISECONDS-NUMBER`.
    pub id: String,
    /// In the order in which they were added.
    pub fields: Vec<Field>,
}

/// What stands where an entry was pending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// An entry that is there.
    Entry(Entry),
    /// It was deleted, or trimmed, since it was handed out.
    Deleted(String),
}

impl Found {
    /// The entry's id.
    #[must_use]
    pub fn id(&self) -> &str {
        let (Self::Entry(Entry { id, .. }) | Self::Deleted(id)) = self;
        id
    }
}

/// `[[stream, [entry, …]], …]`; nothing where a wait came to nothing.
#[must_use]
pub fn of_streams(answer: Value) -> Vec<(String, Vec<Found>)> {
    let one = |value| {
        let [stream, entries] = array(value)?;
        Some((text(stream)?, of_entries(entries)))
    };
    items(answer).into_iter().filter_map(one).collect()
}

/// `[next, [entry, …], [deleted id, …]]`: where to go on, unless that is at the beginning, and what was claimed.
#[must_use]
pub fn of_claim(answer: Value) -> (Option<String>, Vec<Found>) {
    // Redis 6.2 does not say what was deleted; Redis 7 has let go of it.
    let mut parts = items(answer).into_iter();
    let next = parts.next().and_then(text).filter(|next| next != "0-0");
    (next, parts.next().map(of_entries).unwrap_or_default())
}

/// `[entry, …]`.
#[must_use]
pub fn of_entries(value: Value) -> Vec<Found> {
    items(value).into_iter().filter_map(found).collect()
}

fn found(value: Value) -> Option<Found> {
    let [id, fields] = array(value)?;
    let id = text(id)?;
    if fields == Value::Nil {
        return Some(Found::Deleted(id));
    }
    let mut fields = items(fields).into_iter();
    let mut all = Vec::new();
    while let (Some(name), Some(value)) = (fields.next(), fields.next()) {
        all.push((bytes(name)?, bytes(value)?));
    }
    Some(Found::Entry(Entry { id, fields: all }))
}

fn items(value: Value) -> Vec<Value> {
    match value {
        Value::Array(items) => items,
        _ => Vec::new(),
    }
}

fn array<const N: usize>(value: Value) -> Option<[Value; N]> {
    items(value).try_into().ok()
}

fn bytes(value: Value) -> Option<Vec<u8>> {
    match value {
        Value::BulkString(bytes) => Some(bytes),
        Value::SimpleString(text) => Some(text.into_bytes()),
        _ => None,
    }
}

fn text(value: Value) -> Option<String> {
    bytes(value).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bulk(text: &str) -> Value {
        Value::BulkString(text.as_bytes().to_vec())
    }

    fn entry(id: &str) -> Value {
        Value::Array(vec![bulk(id), Value::Array(vec![bulk("body"), bulk("x")])])
    }

    #[test]
    fn a_deleted_entry_is_told_from_one_that_is_there() {
        let gone = Value::Array(vec![bulk("2-0"), Value::Nil]);
        let answer =
            Value::Array(vec![Value::Array(vec![bulk("s"), Value::Array(vec![entry("1-0"), gone])])]);
        let there = Entry { id: "1-0".to_owned(), fields: vec![(b"body".into(), b"x".into())] };
        let all = vec![Found::Entry(there), Found::Deleted("2-0".to_owned())];
        assert_eq!(of_streams(answer), [("s".to_owned(), all)]);
        assert_eq!(of_streams(Value::Nil), []);
    }

    #[test]
    fn a_claim_ends_where_it_would_begin_again() {
        let claim = |next: &str| Value::Array(vec![bulk(next), Value::Array(vec![entry("1-0")])]);
        assert_eq!(of_claim(claim("0-0")).0, None);
        assert_eq!(of_claim(claim("5-0")).0.as_deref(), Some("5-0"));
        assert_eq!(of_claim(claim("5-0")).1.len(), 1);
    }
}
