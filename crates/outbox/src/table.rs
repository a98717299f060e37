//! Where an outbox is: what its table, its columns and its states are called. Ours by default; anybody's else.

use overtake_client::outbox::{TABLE, check_identifier};
use serde::Deserialize;

/// A table that is an outbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// `NAME`, or `SCHEMA.NAME`.
    pub name: String,
    /// What its columns are called, and which it has.
    pub columns: Columns,
    /// What stands in the column `status`.
    pub words: Words,
    /// The columns of the order of insertion; none: that of the id.
    pub order: Vec<String>,
    /// Only rows that have these values in these columns are the relay's.
    pub only: Vec<(String, Only)>,
}

impl Default for Table {
    fn default() -> Self {
        Self {
            name: TABLE.to_owned(),
            columns: Columns::default(),
            words: Words::default(),
            order: Vec::new(),
            only: Vec::new(),
        }
    }
}

/// A value that a row must have.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum Only {
    /// Yes or no, in a column of that type.
    Flag(bool),
    /// A number.
    Number(i64),
    /// A text.
    Text(String),
}

/// Where the stream of a row stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamOf {
    /// In a column of its own.
    Column(String),
    /// In a column of JSON, at a pointer (RFC 6901) such as `/domain/stream_category`.
    Pointer {
        /// The column.
        column: String,
        /// Where in it.
        pointer: String,
    },
    /// Nowhere: it is always this.
    Fixed(String),
}

/// What columns are called. `None`: there is no such column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Columns {
    /// The key of a row.
    pub id: String,
    /// By which brokers and handlers know a message again; without it that is the row's key.
    pub message_id: Option<String>,
    /// Where the stream stands.
    pub stream: StreamOf,
    /// What kind of event it is.
    pub kind: Option<String>,
    /// The body: text, JSON or bytes.
    pub data: String,
    /// What else is to be known of it, as JSON.
    pub metadata: Option<String>,
    /// Larger is more urgent; without it all are [`NORMAL`](overtake_client::Priority::NORMAL).
    pub priority: Option<String>,
    /// What the event is about, by which an order can be kept.
    pub partition_key: Option<String>,
    /// One of the [`Words`].
    pub status: String,
    /// How often it was tried in vain.
    pub attempts: String,
    /// How often a row may be tried, where the row says so itself.
    pub max_attempts: Option<String>,
    /// When a failed row is tried again (UTC).
    pub next_attempt_at: String,
    /// Which relay has it, and which claim of that relay.
    pub locked_by: String,
    /// Until when.
    pub locked_until: String,
    /// Why it was not published; text, or JSON with the text as `message`.
    pub last_error: Option<String>,
    /// When it was written; without it nobody knows how old a row is.
    pub created_at: Option<String>,
    /// When it was published; without it published rows are not cleaned.
    pub published_at: Option<String>,
    /// When it was given up; without it `created_at` counts where abandoned rows are cleaned.
    pub abandoned_at: Option<String>,
}

impl Default for Columns {
    fn default() -> Self {
        let own = |name: &str| Some(name.to_owned());
        Self {
            id: "id".into(),
            message_id: own("message_id"),
            stream: StreamOf::Column("stream".into()),
            kind: own("type"),
            data: "data".into(),
            metadata: own("metadata"),
            priority: own("priority"),
            partition_key: own("partition_key"),
            status: "status".into(),
            attempts: "attempts".into(),
            max_attempts: None,
            next_attempt_at: "next_attempt_at".into(),
            locked_by: "locked_by".into(),
            locked_until: "locked_until".into(),
            last_error: own("last_error"),
            created_at: own("created_at"),
            published_at: own("published_at"),
            abandoned_at: own("abandoned_at"),
        }
    }
}

/// What the states of a row are called.
///
/// ```text
///  insert ─▶ pending ─ claim ─▶ processing ─▶ published
///               ▲  ▲                │ │ └───▶ abandoned
///               │  └─ lock expired ─┘ ▼
///               └──── due ───────── failed
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Words {
    /// It may be claimed.
    pub pending: String,
    /// A relay has it, until its lock expires.
    pub processing: String,
    /// It is in the sink.
    pub published: String,
    /// It was tried in vain, and will be again.
    pub failed: String,
    /// It is given up, and stays where it is for people to see.
    pub abandoned: String,
}

impl Default for Words {
    fn default() -> Self {
        Self {
            pending: "pending".into(),
            processing: "processing".into(),
            published: "published".into(),
            failed: "failed".into(),
            abandoned: "abandoned".into(),
        }
    }
}

impl Words {
    /// The state of that name: `pending`, whatever the table calls it.
    #[must_use]
    pub fn of(&self, status: Status) -> &str {
        match status {
            Status::Pending => &self.pending,
            Status::Processing => &self.processing,
            Status::Published => &self.published,
            Status::Failed => &self.failed,
            Status::Abandoned => &self.abandoned,
        }
    }
}

/// A state of a row; [`Words`] has the picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    /// It may be claimed.
    Pending,
    /// A relay has it.
    Processing,
    /// It is in the sink.
    Published,
    /// It is tried again later.
    Failed,
    /// It is given up.
    Abandoned,
}

impl Status {
    /// All, in the order of a row's life.
    pub const ALL: [Self; 5] =
        [Self::Pending, Self::Processing, Self::Published, Self::Failed, Self::Abandoned];

    /// As people write it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Processing => "processing",
            Self::Published => "published",
            Self::Failed => "failed",
            Self::Abandoned => "abandoned",
        }
    }
}

impl Table {
    /// Looks at every name.
    ///
    /// # Errors
    /// What is wrong with which setting: its name, and a phrase.
    pub fn check(&self) -> Result<(), (String, String)> {
        let parts: Vec<&str> = self.name.split('.').collect();
        let wrong = |key: &str, why: String| (key.to_owned(), why);
        if parts.len() > 2 {
            return Err(wrong("table", format!("`{}` must be NAME or SCHEMA.NAME", self.name)));
        }
        for part in parts {
            check_identifier(part).map_err(|why| wrong("table", why))?;
        }
        for (key, name) in self.columns.named() {
            check_identifier(name).map_err(|why| wrong(&format!("columns.{key}"), why))?;
        }
        for name in &self.order {
            check_identifier(name).map_err(|why| wrong("order", why))?;
        }
        for (name, value) in &self.only {
            check_identifier(name).map_err(|why| wrong("only", why))?;
            if let Only::Text(text) = value {
                check_word(text).map_err(|why| wrong("only", why))?;
            }
        }
        if let StreamOf::Pointer { pointer, .. } = &self.columns.stream
            && !pointer.starts_with('/')
        {
            let why = format!("`{pointer}` must begin with a slash, as /domain/stream_category");
            return Err(wrong("columns.stream", why));
        }
        for status in Status::ALL {
            let word = self.words.of(status);
            check_word(word).map_err(|why| wrong(&format!("words.{}", status.name()), why))?;
            if Status::ALL.into_iter().any(|other| other != status && self.words.of(other) == word) {
                let why = format!("`{word}` means two states");
                return Err(wrong(&format!("words.{}", status.name()), why));
            }
        }
        Ok(())
    }

    /// The columns of the order of insertion.
    pub(crate) fn order(&self) -> Vec<&str> {
        if self.order.is_empty() {
            return vec![&self.columns.id];
        }
        // Where times are the same the key decides.
        let mut all: Vec<&str> = self.order.iter().map(String::as_str).collect();
        if !all.contains(&self.columns.id.as_str()) {
            all.push(&self.columns.id);
        }
        all
    }
}

/// It stands in statements as a literal, which is what lets a partial index be used.
fn check_word(word: &str) -> Result<(), String> {
    if word.is_empty() || word.len() > 64 {
        return Err(format!("`{word}` must have 1 to 64 bytes"));
    }
    if word.chars().any(|c| c.is_control() || matches!(c, '\'' | '\\')) {
        return Err(format!(
            "`{}` must have no quotes, backslashes or control characters",
            word.escape_debug()
        ));
    }
    Ok(())
}

impl Columns {
    /// Every column that must be there, by the name of its setting.
    pub(crate) fn named(&self) -> Vec<(&'static str, &str)> {
        let stream = match &self.stream {
            StreamOf::Column(name) | StreamOf::Pointer { column: name, .. } => Some(name),
            StreamOf::Fixed(_) => None,
        };
        let all = [
            ("id", Some(&self.id)),
            ("message_id", self.message_id.as_ref()),
            ("stream", stream),
            ("type", self.kind.as_ref()),
            ("data", Some(&self.data)),
            ("metadata", self.metadata.as_ref()),
            ("priority", self.priority.as_ref()),
            ("partition_key", self.partition_key.as_ref()),
            ("status", Some(&self.status)),
            ("attempts", Some(&self.attempts)),
            ("max_attempts", self.max_attempts.as_ref()),
            ("next_attempt_at", Some(&self.next_attempt_at)),
            ("locked_by", Some(&self.locked_by)),
            ("locked_until", Some(&self.locked_until)),
            ("last_error", self.last_error.as_ref()),
            ("created_at", self.created_at.as_ref()),
            ("published_at", self.published_at.as_ref()),
            ("abandoned_at", self.abandoned_at.as_ref()),
        ];
        all.into_iter().filter_map(|(key, name)| Some((key, name?.as_str()))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(change: impl FnOnce(&mut Table)) -> String {
        let mut table = Table::default();
        change(&mut table);
        table.check().err().map_or_else(String::new, |(key, why)| format!("{key}: {why}"))
    }

    #[test]
    fn a_name_or_word_that_could_end_a_statement_is_refused_with_its_key() {
        assert_eq!(wrong(|_| ()), "");
        assert!(wrong(|table| table.name = "a.b.c".into()).starts_with("table: "));
        assert!(wrong(|table| table.columns.data = "a\"b".into()).starts_with("columns.data: "));
        assert!(wrong(|table| table.words.failed = "it's".into()).starts_with("words.failed: "));
        let only = vec![("target".to_owned(), Only::Text("\\".to_owned()))];
        assert!(wrong(|table| table.only = only).starts_with("only: "));
        assert_eq!(
            wrong(|table| table.words.failed = "pending".into()),
            "words.pending: `pending` means two states"
        );
    }

    #[test]
    fn times_that_are_the_same_are_told_apart_by_the_key() {
        let table = Table { order: vec!["created_at".to_owned()], ..Table::default() };
        assert_eq!(table.order(), ["created_at", "id"]);
        assert_eq!(Table::default().order(), ["id"]);
    }
}
