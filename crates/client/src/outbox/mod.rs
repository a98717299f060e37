//! Events written into an outbox table, in the transaction that does what they tell of; the relay publishes them from there.
//!
//! An [`Outbox`] says what the table and its columns are called, and makes the `INSERT`: as text and arguments for any driver, or over a connection of sqlx with
//! the features `outbox-postgres`, `outbox-mysql` and `outbox-sqlite`. An event has the priority it says, else that of the scope in which
//! it is written, else of the one in which it was made, else [`Priority::NORMAL`].
//!
//! ```
//! use overtake_client::outbox::{Dialect, Event, Outbox};
//! use overtake_client::{Priority, with_priority_sync};
//!
//! let updated = [Event::new("customer", "CustomerUpdated", r#"{"id": 7}"#)];
//! let insert = with_priority_sync(Priority::LOW, || Outbox::new().insert(Dialect::Postgres, &updated));
//! assert!(insert.sql.starts_with(r#"INSERT INTO "outbox" ("message_id", "stream", "type","#));
//! ```

mod dialect;
#[cfg(any(feature = "outbox-postgres", feature = "outbox-mysql", feature = "outbox-sqlite"))]
mod write;

use std::fmt::Write as _;

pub use self::dialect::{Dialect, check_identifier};
#[cfg(any(feature = "outbox-postgres", feature = "outbox-mysql", feature = "outbox-sqlite"))]
pub use self::write::Connection;
use crate::priority::{MadeIn, Priority};

/// What the table is called where nobody says another name.
pub const TABLE: &str = "outbox";

/// The columns that a writer fills, as they are called where nobody says other names. The others have defaults.
pub const WRITTEN: [&str; 7] =
    ["message_id", "stream", "type", "data", "metadata", "priority", "partition_key"];

/// Something that happened, to be told.
///
/// ```
/// use overtake_client::Priority;
/// use overtake_client::outbox::Event;
///
/// let placed = Event::new("order", "OrderPlaced", r#"{"id": 7, "total": 12}"#).key("customer-3").priority(Priority::HIGH);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    stream: String,
    kind: String,
    data: String,
    metadata: Option<String>,
    key: Option<String>,
    priority: Option<Priority>,
    made_in: MadeIn,
    message_id: String,
}

impl Event {
    /// One for this stream, of this type, with this data, which is JSON. Its priority is what it says, else that of the scope in which it is written, else that of the
    /// scope this is called in.
    ///
    /// # Panics
    /// The system has no chance to give, from which its id is drawn.
    pub fn new(stream: impl Into<String>, kind: impl Into<String>, data: impl Into<String>) -> Self {
        Self {
            stream: stream.into(),
            kind: kind.into(),
            data: data.into(),
            metadata: None,
            key: None,
            priority: None,
            made_in: MadeIn::here(),
            message_id: crate::client::drawn().expect("the system has chance to give"),
        }
    }

    /// What else is to be known of it, as JSON.
    #[must_use]
    pub fn metadata(self, json: impl Into<String>) -> Self {
        Self { metadata: Some(json.into()), ..self }
    }

    /// What it is about: the relay can keep the order of events with the same key.
    #[must_use]
    pub fn key(self, key: impl Into<String>) -> Self {
        Self { key: Some(key.into()), ..self }
    }

    /// How urgent it is, whatever scope it is made or written in.
    #[must_use]
    pub fn priority(self, priority: impl Into<Priority>) -> Self {
        Self { priority: Some(priority.into()), ..self }
    }

    /// Its id, by which brokers and handlers know that they have it already; else one is drawn.
    #[must_use]
    pub fn id(self, message_id: impl Into<String>) -> Self {
        Self { message_id: message_id.into(), ..self }
    }

    /// The stream, or category, that it is for.
    #[must_use]
    pub fn stream(&self) -> &str {
        &self.stream
    }

    /// Its id.
    #[must_use]
    pub fn message_id(&self) -> &str {
        &self.message_id
    }

    /// The priority that it is written with, here.
    pub(crate) fn urgency(&self) -> Priority {
        self.priority.or_else(|| self.made_in.scope()).unwrap_or_default()
    }

    /// The stream of an event in this layout, its fields as an entry, and its key where that has streams of its own.
    ///
    /// # Errors
    /// Its data or metadata are no JSON, or no stream can be called so, as a phrase.
    #[cfg(feature = "streams")]
    pub(crate) fn entry(
        &self,
        layout: &overtake_streams::Layout,
    ) -> Result<(String, overtake_streams::Fields, Option<&str>), String> {
        let Priority(priority) = self.urgency();
        let stream = layout.stream_of(&self.stream, self.key.as_deref(), priority)?;
        let said = self.metadata.as_deref().unwrap_or("null");
        let metadata = overtake_streams::describe(said, &self.message_id, &self.kind, priority, true)?;
        serde_json::from_str::<serde_json::Value>(&self.data)
            .map_err(|error| format!("its data is no JSON: {error}"))?;
        let text = format!("{{\"data\":{},\"metadata\":{metadata}}}", self.data);
        let fields = vec![(overtake_streams::FIELD.as_bytes().to_vec(), text.into_bytes())];
        Ok((stream, fields, self.key.as_deref().filter(|_| layout.is_partitioned)))
    }

    fn arguments(&self) -> [Argument<'_>; 7] {
        let text = Argument::Text;
        [
            text(&self.message_id),
            text(&self.stream),
            text(&self.kind),
            text(&self.data),
            self.metadata.as_deref().map_or(Argument::Null, text),
            Argument::Number(self.urgency().0),
            self.key.as_deref().map_or(Argument::Null, text),
        ]
    }
}

/// An argument of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Argument<'e> {
    /// Of a column of text or JSON.
    Text(&'e str),
    /// Of a column of numbers.
    Number(i32),
    /// Nothing, where text could be.
    Null,
}

/// A statement and its arguments, in the order of its placeholders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Insert<'e> {
    /// With `$1`, `$2` … for PostgreSQL, `?` for the others.
    pub sql: String,
    /// One for each placeholder.
    pub arguments: Vec<Argument<'e>>,
}

/// Where events are written to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outbox {
    table: String,
    columns: [Option<String>; 7],
}

impl Default for Outbox {
    fn default() -> Self {
        Self::new()
    }
}

impl Outbox {
    /// The table as `overtake relay init` makes it.
    #[must_use]
    pub fn new() -> Self {
        Self { table: TABLE.to_owned(), columns: WRITTEN.map(|name| Some(name.to_owned())) }
    }

    /// Another table: `NAME`, or `SCHEMA.NAME`.
    #[must_use]
    pub fn table(self, name: impl Into<String>) -> Self {
        Self { table: name.into(), ..self }
    }

    /// What the column is called that is one of [`WRITTEN`] by default; others are ignored.
    #[must_use]
    pub fn column(mut self, column: &str, name: impl Into<String>) -> Self {
        if let Some(at) = WRITTEN.iter().position(|known| *known == column) {
            self.columns[at] = Some(name.into());
        }
        self
    }

    /// The table has no such column: nothing is written there.
    #[must_use]
    pub fn without(mut self, column: &str) -> Self {
        if let Some(at) = WRITTEN.iter().position(|known| *known == column) {
            self.columns[at] = None;
        }
        self
    }

    /// The statement that writes these, all in one; for no event it is no statement. Databases have limits: PostgreSQL takes 65,535 arguments, of which an event has 7.
    #[must_use]
    pub fn insert<'e>(&self, dialect: Dialect, events: &'e [Event]) -> Insert<'e> {
        let there: Vec<usize> = (0..WRITTEN.len()).filter(|at| self.columns[*at].is_some()).collect();
        let names: Vec<_> = self.columns.iter().flatten().map(|name| dialect.quote(name)).collect();
        let mut sql =
            format!("INSERT INTO {} ({}) VALUES", dialect.quote_path(&self.table), names.join(", "));
        let mut arguments = Vec::with_capacity(events.len() * there.len());
        for event in events {
            let all = event.arguments();
            let values: Vec<String> = there
                .iter()
                .map(|&at| {
                    arguments.push(all[at]);
                    let placeholder = dialect.placeholder(arguments.len());
                    // From JSON there is a way into columns of JSON and of text; from text there is none into JSON.
                    let is_json = dialect == Dialect::Postgres && matches!(WRITTEN[at], "data" | "metadata");
                    if is_json { format!("{placeholder}::json") } else { placeholder }
                })
                .collect();
            let comma = if arguments.len() > there.len() { "," } else { "" };
            let _ = write!(sql, "{comma} ({})", values.join(", "));
        }
        Insert { sql, arguments }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::priority::with_priority_sync;

    #[test]
    fn an_event_has_its_own_priority_else_the_scopes_else_normal() {
        let event = || Event::new("s", "T", "{}");
        let written = |event: Event| match event.arguments()[5] {
            Argument::Number(priority) => priority,
            other => panic!("{other:?}"),
        };
        assert_eq!(written(event()), 0);
        let low = with_priority_sync(Priority::LOW, event);
        assert_eq!(written(low.clone()), -50, "made in a scope, and written outside of any");
        assert_eq!(with_priority_sync(Priority::HIGH, || written(low)), 50, "the scope it is written in");
        assert_eq!(with_priority_sync(Priority::LOW, || written(event().priority(0))), 0);
    }

    #[test]
    fn the_statement_has_the_names_and_placeholders_of_its_database() {
        let outbox = Outbox::new().table("shop.events").column("stream", "stream_name").without("metadata");
        let events = [Event::new("s", "T", "{}").id("1").key("k"), Event::new("s", "U", "{}").id("2")];
        let insert = outbox.insert(Dialect::Postgres, &events);
        let columns = r#""message_id", "stream_name", "type", "data", "priority", "partition_key""#;
        let values = "($1, $2, $3, $4::json, $5, $6), ($7, $8, $9, $10::json, $11, $12)";
        assert_eq!(insert.sql, format!(r#"INSERT INTO "shop"."events" ({columns}) VALUES {values}"#));
        assert_eq!(insert.arguments[5..7], [Argument::Text("k"), Argument::Text("2")]);
        let insert = outbox.insert(Dialect::MySql, &events[..1]);
        assert!(insert.sql.starts_with("INSERT INTO `shop`.`events` (`message_id`, "), "{}", insert.sql);
        assert!(insert.sql.ends_with(" VALUES (?, ?, ?, ?, ?, ?)"), "{}", insert.sql);
    }
}
