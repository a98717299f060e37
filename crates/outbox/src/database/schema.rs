//! The table and its indexes, as `overtake relay init` makes them.
//!
//! Four small indexes beside the key's, each for one state: what waits in the order of the claim, what is locked by the end of its lock, what failed by its time,
//! what was published by when. Where a database has partial indexes a row is in one of them at a time.

use std::fmt::Write as _;

use overtake_client::outbox::Dialect;

use super::Database;
use super::catalog::Catalog;
use super::grammar::Grammar;
use crate::error::Error;
use crate::table::{Columns, Status, StreamOf, Table};

/// What came of [`Database::init`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Init {
    /// The table was not there, and is now, with its indexes.
    Made,
    /// It is there, and has all it wants.
    Complete,
    /// It is there; these statements would make what it lacks. A claim of a table without its index reads all of it.
    Lacks(Vec<String>),
}

impl Database {
    /// Every statement that makes the table and its indexes, in their order, each to be run as it stands.
    #[must_use]
    pub fn schema(&self, notify: bool) -> Vec<String> {
        statements(&self.grammar, notify)
    }

    /// [`Database::schema`] of a database that is not asked.
    pub(crate) fn schema_of(dialect: Dialect, table: &Table, notify: bool) -> Vec<String> {
        statements(&Grammar { dialect, table: table.clone(), catalog: Catalog::default() }, notify)
    }

    /// Makes the table where it is not there. One that is there is looked at, never changed.
    ///
    /// # Errors
    /// [`Error::Invalid`]: the table is there and is no outbox, with all that is wrong. Else of the database.
    pub async fn init(&mut self, notify: bool) -> Result<Init, Error> {
        if self.grammar.catalog.columns.is_empty() {
            for statement in self.schema(notify) {
                self.others.run(&statement).await?;
            }
            self.look_again().await?;
            return Ok(Init::Made);
        }
        let wrong = self.wrong();
        if !wrong.is_empty() {
            return Err(Error::Invalid(wrong.join("; ")));
        }
        let lacks: Vec<_> = self.lacks(notify);
        Ok(if lacks.is_empty() { Init::Complete } else { Init::Lacks(lacks) })
    }

    /// Statements for the indexes and the trigger that the table lacks, as far as names tell.
    #[must_use]
    pub fn lacks(&self, notify: bool) -> Vec<String> {
        let g = &self.grammar;
        let missing = extras(g, notify).into_iter().filter(|extra| !g.catalog.names.contains(&extra.name));
        missing.map(|extra| extra.sql).collect()
    }
}

fn statements(g: &Grammar, notify: bool) -> Vec<String> {
    let mut all = vec![table(g)];
    all.extend(extras(g, notify).into_iter().filter(|extra| !extra.is_in_table).map(|extra| extra.sql));
    all
}

/// Where an insert is told, in PostgreSQL.
pub(super) fn channel(g: &Grammar) -> String {
    extra_name(g, "changed")
}

fn extra_name(g: &Grammar, what: &str) -> String {
    let table = g.table.name.rsplit('.').next().unwrap_or_default();
    // PostgreSQL cuts names off at 63 bytes.
    let room = 63 - what.len() - 1;
    let mut end = table.len().min(room);
    while !table.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}_{what}", &table[..end])
}

/// An index or a trigger.
struct Extra {
    name: String,
    sql: String,
    /// MySQL has no index "if not exists", so the table's definition has them.
    is_in_table: bool,
}

fn extras(g: &Grammar, notify: bool) -> Vec<Extra> {
    let mut all: Vec<_> = indexes(g).into_iter().map(|index| index.extra(g)).collect();
    if notify && g.dialect == Dialect::Postgres {
        all.push(trigger(g));
    }
    all
}

struct Index {
    name: String,
    status: Status,
    columns: String,
}

/// What a claim needs first; then what is put back and cleaned.
fn indexes(g: &Grammar) -> Vec<Index> {
    let c = &g.table.columns;
    let index = |what: &str, status, columns| Index { name: extra_name(g, what), status, columns };
    let mut all = vec![
        index("pending", Status::Pending, g.urgency()),
        index("processing", Status::Processing, g.quote(&c.locked_until)),
        index("failed", Status::Failed, g.quote(&c.next_attempt_at)),
    ];
    let times = [(Status::Published, &c.published_at), (Status::Abandoned, &c.abandoned_at)];
    for (status, time) in times {
        let Some(time) = time else { continue };
        // MySQL keeps every row in every index, so the rarest does without.
        if g.dialect != Dialect::MySql || status == Status::Published {
            all.push(index(status.name(), status, g.quote(time)));
        }
    }
    all
}

impl Index {
    /// Where indexes are not partial, what would be their condition comes first.
    fn of_mysql(&self, g: &Grammar) -> String {
        let fixed = g.table.only.iter().map(|(name, _)| format!("{}, ", g.quote(name)));
        let fixed: String = fixed.collect();
        format!("({}, {fixed}{})", g.quote(&g.table.columns.status), self.columns)
    }

    fn extra(self, g: &Grammar) -> Extra {
        let (name, table) = (g.quote(&self.name), g.table());
        let sql = match g.dialect {
            Dialect::MySql => format!("CREATE INDEX {name} ON {table} {}", self.of_mysql(g)),
            Dialect::Postgres => format!(
                "CREATE INDEX IF NOT EXISTS {name} ON {table} ({}) WHERE {}",
                self.columns,
                g.is(self.status)
            ),
            // There the index has the schema, and the table must not.
            Dialect::Sqlite => {
                let bare = g.quote(g.table.name.rsplit('.').next().unwrap_or_default());
                let schema = g.table.name.split_once('.').map(|(schema, _)| format!("{}.", g.quote(schema)));
                let schema = schema.unwrap_or_default();
                format!(
                    "CREATE INDEX IF NOT EXISTS {schema}{name} ON {bare} ({}) WHERE {}",
                    self.columns,
                    g.is(self.status)
                )
            }
        };
        Extra { name: self.name, sql, is_in_table: g.dialect == Dialect::MySql }
    }
}

/// Told once a statement, and by PostgreSQL once a transaction.
fn trigger(g: &Grammar) -> Extra {
    let name = channel(g);
    let schema = g.table.name.split_once('.').map(|(schema, _)| format!("{}.", g.quote(schema)));
    let (function, trigger) = (format!("{}{}", schema.unwrap_or_default(), g.quote(&name)), g.quote(&name));
    let table = g.table();
    let sql = format!(
        "CREATE OR REPLACE FUNCTION {function}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_notify('{}', ''); RETURN NULL; END $$;\n\
         DROP TRIGGER IF EXISTS {trigger} ON {table};\n\
         CREATE TRIGGER {trigger} AFTER INSERT ON {table} FOR EACH STATEMENT EXECUTE FUNCTION {function}()",
        name.replace('\'', "''")
    );
    Extra { name, sql, is_in_table: false }
}

fn table(g: &Grammar) -> String {
    let mut lines: Vec<String> =
        definitions(g).into_iter().map(|(name, kind)| format!("  {} {kind}", g.quote(&name))).collect();
    if g.dialect == Dialect::MySql {
        lines.extend(
            indexes(g).iter().map(|index| format!("  INDEX {} {}", g.quote(&index.name), index.of_mysql(g))),
        );
    }
    let end = match g.dialect {
        // Rows change twice and go: what they leave is to be taken away soon.
        Dialect::Postgres => {
            ") WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02)"
        }
        Dialect::MySql => ") CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
        Dialect::Sqlite => ")",
    };
    let mut sql = format!("CREATE TABLE IF NOT EXISTS {} (\n{}\n", g.table(), lines.join(",\n"));
    let _ = write!(sql, "{end}");
    sql
}

/// Each column and its type.
fn definitions(g: &Grammar) -> Vec<(String, String)> {
    let c: &Columns = &g.table.columns;
    let [key, text, word, json, time, now] = match g.dialect {
        Dialect::Postgres => [
            "bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY",
            "text",
            "text",
            "jsonb",
            "timestamptz",
            "clock_timestamp()",
        ],
        Dialect::MySql => [
            "BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY",
            "VARCHAR(255)",
            "VARCHAR(32)",
            "LONGTEXT",
            "DATETIME(6)",
            "(UTC_TIMESTAMP(6))",
        ],
        Dialect::Sqlite => [
            "INTEGER PRIMARY KEY AUTOINCREMENT",
            "TEXT",
            "TEXT",
            "TEXT",
            "TEXT",
            "(strftime('%Y-%m-%d %H:%M:%f000', 'now'))",
        ],
    };
    let error = if g.dialect == Dialect::MySql { "TEXT" } else { text };
    let stream = match &c.stream {
        StreamOf::Column(name) => Some((name.clone(), format!("{text} NOT NULL"))),
        StreamOf::Pointer { .. } | StreamOf::Fixed(_) => None,
    };
    let own = |name: &Option<String>, kind: String| name.clone().map(|name| (name, kind));
    let pending = g.word(Status::Pending);
    let all = [
        Some((c.id.clone(), key.to_owned())),
        own(&c.message_id, format!("{text} NOT NULL")),
        stream,
        own(&c.kind, format!("{text} NOT NULL")),
        Some((c.data.clone(), format!("{json} NOT NULL"))),
        own(&c.metadata, json.to_owned()),
        own(&c.priority, "integer NOT NULL DEFAULT 0".to_owned()),
        own(&c.partition_key, text.to_owned()),
        Some((c.status.clone(), format!("{word} NOT NULL DEFAULT {pending}"))),
        Some((c.attempts.clone(), "integer NOT NULL DEFAULT 0".to_owned())),
        own(&c.max_attempts, "integer".to_owned()),
        Some((c.next_attempt_at.clone(), time.to_owned())),
        Some((c.locked_by.clone(), text.to_owned())),
        Some((c.locked_until.clone(), time.to_owned())),
        own(&c.last_error, error.to_owned()),
        own(&c.created_at, format!("{time} NOT NULL DEFAULT {now}")),
        own(&c.published_at, time.to_owned()),
        own(&c.abandoned_at, time.to_owned()),
    ];
    let mut all: Vec<(String, String)> = all.into_iter().flatten().collect();
    // Settings may name a column twice, as where the stream stands in the metadata.
    let mut seen = std::collections::BTreeSet::new();
    all.retain(|(name, _)| seen.insert(name.clone()));
    for (name, value) in &g.table.only {
        if seen.insert(name.clone()) {
            let kind = match value {
                crate::table::Only::Number(_) => "bigint NOT NULL".to_owned(),
                crate::table::Only::Flag(_) => "boolean NOT NULL".to_owned(),
                crate::table::Only::Text(_) => format!("{text} NOT NULL"),
            };
            all.push((name.clone(), kind));
        }
    }
    all
}
