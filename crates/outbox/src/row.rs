//! A row that was claimed, and what becomes of it.

use std::time::Duration;

use serde_json::Value;

use crate::database::{Cell, Line};
use crate::pickle;
use crate::table::{StreamOf, Table};

/// The key of a row.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    /// Of a column of numbers.
    Number(i64),
    /// Of any other.
    Text(String),
}

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Text(text) => text.fmt(f),
        }
    }
}

impl Key {
    pub(crate) fn json(&self) -> Value {
        match self {
            Self::Number(number) => (*number).into(),
            Self::Text(text) => text.as_str().into(),
        }
    }
}

/// A row that was claimed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// By which it is marked.
    pub key: Key,
    /// By which others know it again.
    pub message_id: String,
    /// Where it is to go; `Err` says why it cannot go anywhere.
    pub stream: Result<String, String>,
    /// What kind of event it is; empty where the table has no such column.
    pub kind: String,
    /// The body; `null` where the row has none.
    pub data: Vec<u8>,
    /// JSON, where there is any.
    pub metadata: Option<String>,
    /// Larger is more urgent; 0 where the table does not say.
    pub priority: i32,
    /// The table has a column for the priority.
    pub is_prioritized: bool,
    /// What it is about.
    pub partition_key: Option<String>,
    /// How often it was tried in vain.
    pub attempts: u32,
    /// How often it may be, if it says so itself.
    pub max_attempts: Option<u32>,
}

impl Row {
    /// As the statement of a claim finds it; `None`: it has no key.
    pub(crate) fn read(table: &Table, line: Line) -> Option<Self> {
        let mut cells = line.into_iter();
        let mut next = || cells.next().unwrap_or(Cell::Nothing);
        let key = match next() {
            Cell::Number(number) => Key::Number(number),
            other => Key::Text(other.text()?),
        };
        let message_id = next().text().unwrap_or_else(|| key.to_string());
        let stream = stream_of(&table.columns.stream, &next());
        let kind = next().text().unwrap_or_default();
        let data = next().into_bytes().unwrap_or_else(|| b"null".to_vec());
        // Metadata that cannot be read stays as it is, for the sink to refuse.
        let metadata = text_of(&next());
        let priority = next().number().unwrap_or_default();
        let partition_key = next().text();
        let count = |cell: Cell| cell.number().map(|count| u32::try_from(count.max(0)).unwrap_or(u32::MAX));
        Some(Self {
            key,
            message_id,
            stream,
            kind,
            data,
            metadata,
            priority: i32::try_from(priority).unwrap_or(if priority < 0 { i32::MIN } else { i32::MAX }),
            is_prioritized: table.columns.priority.is_some(),
            partition_key,
            attempts: count(next()).unwrap_or_default(),
            max_attempts: count(next()),
        })
    }
}

/// The text of a column. A value that Python has pickled is JSON, unless it cannot be read.
pub(crate) fn text_of(cell: &Cell) -> Option<String> {
    match cell {
        Cell::Bytes(bytes) if pickle::is_pickle(bytes) => match pickle::json(bytes) {
            Ok(Value::Null) => None,
            Ok(value) => Some(value.to_string()),
            Err(_) => cell.text(),
        },
        _ => cell.text(),
    }
}

/// The stream that a row names, in the cell of its column.
///
/// # Errors
/// Why it names none, as a phrase.
pub(crate) fn stream_of(from: &StreamOf, cell: &Cell) -> Result<String, String> {
    let stream = match from {
        StreamOf::Fixed(stream) => stream.clone(),
        StreamOf::Column(_) => cell.text().unwrap_or_default(),
        StreamOf::Pointer { column, pointer } => {
            let text = cell
                .text()
                .ok_or_else(|| format!("the row has nothing in {column}, where its stream should be"))?;
            let json = match cell {
                Cell::Bytes(bytes) if pickle::is_pickle(bytes) => pickle::json(bytes).map_err(|why| {
                    format!("what the row has in {column} is pickled, and cannot be read: {why}")
                })?,
                _ => serde_json::from_str(&text)
                    .map_err(|error| format!("what the row has in {column} is no JSON: {error}"))?,
            };
            match json.pointer(pointer) {
                Some(Value::String(stream)) => stream.clone(),
                _ => {
                    return Err(format!(
                        "the row has no text in {column} at {pointer}, where its stream should be"
                    ));
                }
            }
        }
    };
    if stream.trim().is_empty() { Err("the row names no stream".to_owned()) } else { Ok(stream) }
}

/// What a sink says of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It has it, durably.
    Published,
    /// Not now: it is tried again later, and that counts.
    Failed(String),
    /// Never: it is given up at once.
    Refused(String),
    /// Nobody knows: the connection was lost, or nothing came in time. It is tried again, and nothing counts.
    Lost(String),
    /// It was not tried.
    Untried,
}

/// What is written down of the rows of one claim.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// They are in the sink.
    pub published: Vec<Key>,
    /// They are tried again after so long, and why.
    pub failed: Vec<(Key, String, Duration)>,
    /// They are given up, and why.
    pub abandoned: Vec<(Key, String)>,
    /// Anybody may claim them.
    pub released: Vec<Key>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_may_stand_deep_in_json() {
        let from = StreamOf::Pointer { column: "m".into(), pointer: "/domain/stream_category".into() };
        let of = |text: &str| stream_of(&from, &Cell::Bytes(text.as_bytes().to_vec()));
        assert_eq!(of(r#"{"domain": {"stream_category": "shop::order"}}"#).as_deref(), Ok("shop::order"));
        assert!(of("{}").is_err_and(|why| why.contains("at /domain/stream_category")));
        assert!(of("no").is_err_and(|why| why.contains("no JSON")));
        assert_eq!(
            stream_of(&StreamOf::Column("s".into()), &Cell::Nothing),
            Err("the row names no stream".into())
        );
    }
}
