//! What the databases say differently, piece by piece.

use overtake_client::outbox::Dialect;

use super::catalog::{Catalog, Kind};
use crate::table::{Only, Status, Table};

/// How to speak of one table to one database.
#[derive(Clone, Debug)]
pub(crate) struct Grammar {
    pub(crate) dialect: Dialect,
    pub(crate) table: Table,
    pub(crate) catalog: Catalog,
}

impl Grammar {
    /// The table as it stands in a statement.
    pub(crate) fn table(&self) -> String {
        self.dialect.quote_path(&self.table.name)
    }

    pub(crate) fn quote(&self, column: &str) -> String {
        self.dialect.quote(column)
    }

    /// The word of a state, as a literal: only so is it known that a partial index will do.
    pub(crate) fn word(&self, status: Status) -> String {
        format!("'{}'", self.table.words.of(status))
    }

    /// `status = 'word'` and what else makes a row the relay's.
    pub(crate) fn is(&self, status: Status) -> String {
        format!("{} = {}{}", self.quote(&self.table.columns.status), self.word(status), self.only())
    }

    /// ` AND …`, or nothing.
    pub(crate) fn only(&self) -> String {
        let one = |(column, value): &(String, Only)| {
            let literal = match value {
                Only::Flag(flag) => flag.to_string(),
                Only::Number(number) => number.to_string(),
                Only::Text(text) => format!("'{text}'"),
            };
            format!(" AND {} = {literal}", self.quote(column))
        };
        self.table.only.iter().map(one).collect()
    }

    /// The columns of the claim's order, the most urgent and oldest first.
    pub(crate) fn urgency(&self) -> String {
        let urgent = self.table.columns.priority.iter().map(|name| format!("{} DESC", self.quote(name)));
        let old = self.table.order().into_iter().map(|name| self.quote(name));
        urgent.chain(old).collect::<Vec<_>>().join(", ")
    }

    // ---- times ----

    /// Now, to be written into a column of that name.
    pub(crate) fn now(&self, column: &str) -> String {
        self.instant(column, "clock_timestamp()")
    }

    /// Now, to be compared with that column: the same for the whole statement, so that an index will do.
    pub(crate) fn since(&self, column: &str) -> String {
        self.instant(column, "statement_timestamp()")
    }

    fn instant(&self, column: &str, postgres: &str) -> String {
        match self.dialect {
            Dialect::Postgres if self.catalog.kind(column) == Kind::LocalTime => {
                format!("({postgres} AT TIME ZONE 'UTC')")
            }
            Dialect::Postgres => postgres.to_owned(),
            Dialect::MySql => "UTC_TIMESTAMP(6)".to_owned(),
            // As long as what other programs write there, so that text is compared as time.
            Dialect::Sqlite => "strftime('%Y-%m-%d %H:%M:%f000', 'now')".to_owned(),
        }
    }

    /// So many milliseconds from now.
    pub(crate) fn after(&self, column: &str, millis: &str) -> String {
        match self.dialect {
            Dialect::Postgres => {
                format!("{} + {millis} * interval '1 millisecond'", self.now(column))
            }
            Dialect::MySql => format!("UTC_TIMESTAMP(6) + INTERVAL ({millis} * 1000) MICROSECOND"),
            Dialect::Sqlite => {
                format!("strftime('%Y-%m-%d %H:%M:%f000', 'now', printf('%+.3f seconds', {millis} / 1000.0))")
            }
        }
    }

    /// How long ago the time in a column is, or the least of them, in seconds.
    pub(crate) fn age_s(&self, column: &str, time: &str) -> String {
        match self.dialect {
            Dialect::Postgres => format!("extract(epoch FROM ({} - {time}))::float8", self.since(column)),
            Dialect::MySql => format!("TIMESTAMPDIFF(MICROSECOND, {time}, UTC_TIMESTAMP(6)) / 1e6"),
            Dialect::Sqlite => format!("(julianday('now') - julianday({time})) * 86400.0"),
        }
    }

    // ---- values ----

    /// A column as text.
    pub(crate) fn text(&self, column: &str) -> String {
        let quoted = self.quote(column);
        match (self.dialect, self.catalog.kind(column)) {
            (Dialect::Postgres, _) => format!("{quoted}::text"),
            (Dialect::MySql, Kind::Text | Kind::Json) => quoted,
            (Dialect::MySql, _) => format!("CAST({quoted} AS CHAR)"),
            (Dialect::Sqlite, _) => format!("CAST({quoted} AS TEXT)"),
        }
    }

    /// A column as text or, where that is what it holds, bytes.
    pub(crate) fn body(&self, column: &str) -> String {
        match (self.dialect, self.catalog.kind(column)) {
            (Dialect::Sqlite, _) | (_, Kind::Bytes) => self.quote(column),
            _ => self.text(column),
        }
    }

    /// A column as text or, where it holds bytes, as those: something may be pickled there.
    pub(crate) fn object(&self, column: &str) -> String {
        match self.catalog.kind(column) {
            Kind::Bytes => self.quote(column),
            _ => self.text(column),
        }
    }

    /// A column as a number.
    pub(crate) fn number(&self, column: &str) -> String {
        let quoted = self.quote(column);
        match self.dialect {
            Dialect::Postgres => format!("{quoted}::bigint"),
            Dialect::MySql => format!("CAST({quoted} AS SIGNED)"),
            Dialect::Sqlite => format!("CAST({quoted} AS INTEGER)"),
        }
    }

    /// The key of a row: a number where it is one, else text.
    pub(crate) fn key(&self) -> String {
        let id = &self.table.columns.id;
        if self.has_numbers() { self.number(id) } else { self.text(id) }
    }

    pub(crate) fn has_numbers(&self) -> bool {
        self.catalog.kind(&self.table.columns.id) == Kind::Number
    }

    /// An error, as the column for it wants to have it.
    pub(crate) fn error(&self, column: &str, text: &str) -> String {
        match (self.catalog.kind(column), self.dialect) {
            (Kind::Json, Dialect::Postgres) => format!("jsonb_build_object('message', {text})"),
            (Kind::Json, _) => format!("json_object('message', {text})"),
            _ => text.to_owned(),
        }
    }

    // ---- batches ----

    /// Rows that came as one argument, JSON objects with `id`, `error` and `wait` (ms), as a table `b`.
    pub(crate) fn batch(&self, placeholder: &str) -> String {
        let is_number = self.has_numbers();
        match self.dialect {
            Dialect::Postgres => {
                let id = if is_number { "bigint" } else { "text" };
                format!("jsonb_to_recordset({placeholder}::jsonb) AS b(id {id}, error text, wait bigint)")
            }
            Dialect::MySql => {
                let id = if is_number { "BIGINT" } else { "VARCHAR(255)" };
                format!(
                    "JSON_TABLE({placeholder}, '$[*]' COLUMNS (id {id} PATH '$.id', error TEXT PATH '$.error', wait BIGINT PATH '$.wait')) AS b"
                )
            }
            Dialect::Sqlite => format!(
                "(SELECT value ->> '$.id' AS id, value ->> '$.error' AS error, value ->> '$.wait' AS wait FROM json_each({placeholder})) AS b"
            ),
        }
    }

    /// `o.id = b.id`, so that the index of the key will do.
    pub(crate) fn same(&self) -> String {
        let id = &self.table.columns.id;
        let quoted = self.quote(id);
        match (self.dialect, self.catalog.columns.get(id)) {
            (Dialect::Postgres, Some(column)) if column.kind == Kind::Castable => {
                format!("o.{quoted} = b.id::{}", column.type_name)
            }
            // What is in a table made of JSON has no collation that a column must yield to, once it is said.
            (Dialect::MySql, Some(column)) if column.kind == Kind::Text && column.collation.is_some() => {
                let collation = column.collation.as_deref().unwrap_or_default();
                let charset = collation.split('_').next().unwrap_or("utf8mb4");
                format!("o.{quoted} = CONVERT(b.id USING {charset}) COLLATE {collation}")
            }
            _ => format!("o.{quoted} = b.id"),
        }
    }
}
