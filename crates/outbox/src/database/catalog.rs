//! What the database knows of the table: its columns and their types, its indexes.

use std::collections::{BTreeMap, BTreeSet};

use overtake_client::outbox::Dialect;

use super::pool::{Argument, Line, Pool, Sql};
use crate::error::Error;
use crate::table::Table;

/// What a column holds, as far as statements differ by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Number,
    Text,
    Json,
    Bytes,
    /// An instant, or a time that is in UTC by the session's time zone.
    Time,
    /// A time without a zone, which is meant as UTC.
    LocalTime,
    /// What is compared with a text once that is cast: a UUID, an enumeration.
    Castable,
    /// Anything: SQLite does not mind.
    Any,
}

/// A column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) kind: Kind,
    /// As the database calls it.
    pub(crate) type_name: String,
    /// How MySQL compares it.
    pub(crate) collation: Option<String>,
}

/// What there is of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Catalog {
    /// None: there is no such table.
    pub(crate) columns: BTreeMap<String, Column>,
    /// Of indexes and triggers.
    pub(crate) names: BTreeSet<String>,
}

impl Catalog {
    pub(crate) async fn read(pool: &Pool, dialect: Dialect, table: &Table) -> Result<Self, Error> {
        let (schema, name) = match table.name.split_once('.') {
            Some((schema, name)) => (Some(schema), name),
            None => (None, table.name.as_str()),
        };
        let path = dialect.quote_path(&table.name);
        let (columns, names, arguments): (&str, &str, Vec<Argument>) = match dialect {
            Dialect::Postgres => (POSTGRES_COLUMNS, POSTGRES_NAMES, vec![path.as_str().into()]),
            Dialect::MySql => {
                (MYSQL_COLUMNS, MYSQL_NAMES, vec![schema.unwrap_or_default().into(), name.into()])
            }
            Dialect::Sqlite => {
                (SQLITE_COLUMNS, SQLITE_NAMES, vec![name.into(), schema.unwrap_or("main").into()])
            }
        };
        let columns = pool.lines(&Sql::from(columns), &arguments).await?;
        let names = pool.lines(&Sql::from(names), &arguments).await?;
        let mut catalog = Self {
            columns: columns.iter().filter_map(|line| column(dialect, line)).collect(),
            names: names.iter().filter_map(|line| line[0].text()).collect(),
        };
        if dialect == Dialect::MySql && !catalog.columns.is_empty() {
            let definition = pool.lines(&format!("SHOW CREATE TABLE {path}").into(), &[]).await?;
            let definition = definition.first().and_then(|line| line[1].text()).unwrap_or_default();
            catalog.find_json(&definition);
        }
        Ok(catalog)
    }

    /// MariaDB's JSON is text that must be valid (<https://mariadb.com/kb/en/json-data-type/>).
    fn find_json(&mut self, definition: &str) {
        for (name, column) in &mut self.columns {
            if definition.contains(&format!("json_valid(`{name}`)")) {
                column.kind = Kind::Json;
            }
        }
    }

    pub(crate) fn kind(&self, column: &str) -> Kind {
        self.columns.get(column).map_or(Kind::Any, |column| column.kind)
    }

    /// What is missing or of a wrong type, all in one go: a phrase each.
    pub(crate) fn wrong(&self, table: &Table) -> Vec<String> {
        let mut wrong = Vec::new();
        for (setting, name) in table.columns.named() {
            match self.columns.get(name) {
                None => wrong.push(format!("there is no column `{name}` (setting `columns.{setting}`)")),
                Some(column) if !takes(setting).contains(&column.kind) && column.kind != Kind::Any => {
                    let (has, wants) = (&column.type_name, wanted(setting));
                    wrong.push(format!(
                        "the column `{name}` is of the type {has} and must hold {wants} (setting `columns.{setting}`)"
                    ));
                }
                Some(_) => (),
            }
        }
        let others = table.order.iter().map(|name| ("order", name));
        for (setting, name) in others.chain(table.only.iter().map(|(name, _)| ("only", name))) {
            if !self.columns.contains_key(name) {
                wrong.push(format!("there is no column `{name}` (setting `{setting}`)"));
            }
        }
        wrong
    }
}

/// Which kinds the column of a setting may have.
fn takes(setting: &str) -> &'static [Kind] {
    use Kind::{Bytes, Castable, Json, LocalTime, Number, Text, Time};
    match setting {
        "priority" | "attempts" | "max_attempts" => &[Number],
        "next_attempt_at" | "locked_until" | "created_at" | "published_at" | "abandoned_at" => {
            &[Time, LocalTime]
        }
        "data" | "metadata" => &[Text, Json, Bytes],
        "last_error" => &[Text, Json],
        "status" => &[Text, Castable],
        "locked_by" => &[Text],
        "stream" => &[Text, Json, Bytes, Castable],
        _ => &[Number, Text, Castable],
    }
}

fn wanted(setting: &str) -> &'static str {
    match setting {
        "priority" | "attempts" | "max_attempts" => "whole numbers",
        "next_attempt_at" | "locked_until" | "created_at" | "published_at" | "abandoned_at" => "times",
        "data" => "text, JSON or bytes",
        "metadata" | "last_error" => "text or JSON",
        _ => "text",
    }
}

const POSTGRES_COLUMNS: &str = "SELECT a.attname::text, format_type(a.atttypid, a.atttypmod), NULL::text FROM pg_attribute a \
     WHERE a.attrelid = to_regclass($1) AND a.attnum > 0 AND NOT a.attisdropped";
const POSTGRES_NAMES: &str = "SELECT c.relname::text FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid WHERE i.indrelid = to_regclass($1) \
     UNION ALL SELECT t.tgname::text FROM pg_trigger t WHERE t.tgrelid = to_regclass($1)";
const MYSQL_COLUMNS: &str = "SELECT column_name, data_type, collation_name FROM information_schema.columns \
     WHERE table_schema = COALESCE(NULLIF(?, ''), DATABASE()) AND table_name = ?";
const MYSQL_NAMES: &str = "SELECT DISTINCT index_name FROM information_schema.statistics \
     WHERE table_schema = COALESCE(NULLIF(?, ''), DATABASE()) AND table_name = ?";
const SQLITE_COLUMNS: &str = "SELECT name, type, NULL FROM pragma_table_info(?, ?)";
const SQLITE_NAMES: &str = "SELECT name FROM pragma_index_list(?, ?)";

fn column(dialect: Dialect, line: &Line) -> Option<(String, Column)> {
    let (name, type_name) = (line[0].text()?, line[1].text()?.to_ascii_lowercase());
    let kind = match dialect {
        Dialect::Postgres => of_postgres(&type_name),
        Dialect::MySql => of_mysql(&type_name),
        Dialect::Sqlite => of_sqlite(&type_name),
    };
    Some((name, Column { kind, type_name, collation: line[2].text() }))
}

fn of_postgres(name: &str) -> Kind {
    match name.split('(').next().unwrap_or(name).trim() {
        "smallint" | "integer" | "bigint" => Kind::Number,
        "text" | "character varying" | "character" => Kind::Text,
        "json" | "jsonb" => Kind::Json,
        "bytea" => Kind::Bytes,
        // Written `timestamp(3) with time zone`, too.
        "timestamp" if name.ends_with("with time zone") => Kind::Time,
        "timestamp with time zone" => Kind::Time,
        "timestamp" | "timestamp without time zone" => Kind::LocalTime,
        _ => Kind::Castable,
    }
}

fn of_mysql(name: &str) -> Kind {
    match name {
        "tinyint" | "smallint" | "mediumint" | "int" | "bigint" => Kind::Number,
        "char" | "varchar" | "tinytext" | "text" | "mediumtext" | "longtext" | "enum" | "uuid" => Kind::Text,
        "json" => Kind::Json,
        "tinyblob" | "blob" | "mediumblob" | "longblob" | "binary" | "varbinary" => Kind::Bytes,
        "datetime" | "timestamp" => Kind::Time,
        _ => Kind::Castable,
    }
}

/// As SQLite finds a column's affinity, by parts of the name (<https://www.sqlite.org/datatype3.html>, section 3.1); times stand in text.
fn of_sqlite(name: &str) -> Kind {
    let has = |part: &str| name.contains(part);
    match () {
        () if has("int") => Kind::Number,
        () if has("json") => Kind::Json,
        () => Kind::Any,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_known_by_what_the_databases_call_them() {
        assert_eq!(of_postgres("timestamp(6) without time zone"), Kind::LocalTime);
        assert_eq!(of_postgres("timestamp(6) with time zone"), Kind::Time);
        assert_eq!(of_postgres("character varying(255)"), Kind::Text);
        assert_eq!(of_postgres("uuid"), Kind::Castable);
        assert_eq!(
            (of_mysql("datetime"), of_sqlite("bigint"), of_sqlite("datetime")),
            (Kind::Time, Kind::Number, Kind::Any)
        );
    }
}
