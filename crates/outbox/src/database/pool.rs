//! Connections of the three databases, asked in one way: SQL and arguments in, lines of cells out.
//!
//! Every statement makes its columns numbers, texts or bytes itself, so that cells are all there is to read.

use std::sync::Arc;

use sqlx::{AssertSqlSafe, Column as _, Row as _, TypeInfo as _, ValueRef as _};

use crate::error::Error;

/// A statement.
pub(crate) type Sql = Arc<str>;

/// An argument of a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Argument {
    Text(String),
    Number(i64),
}

impl From<&str> for Argument {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<u64> for Argument {
    fn from(number: u64) -> Self {
        Self::Number(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

/// What stands in a column of a line.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Cell {
    Nothing,
    Number(i64),
    Real(f64),
    Bytes(Vec<u8>),
}

impl Cell {
    pub(crate) fn number(&self) -> Option<i64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Bytes(_) => self.text().and_then(|text| text.parse().ok()),
            _ => None,
        }
    }

    pub(crate) fn real(&self) -> Option<f64> {
        match self {
            Self::Real(real) => Some(*real),
            #[expect(clippy::cast_precision_loss, reason = "seconds and counts")]
            Self::Number(number) => Some(*number as f64),
            Self::Bytes(_) => self.text().and_then(|text| text.parse().ok()),
            Self::Nothing => None,
        }
    }

    /// As text; what is no UTF-8 is shown as well as can be.
    pub(crate) fn text(&self) -> Option<String> {
        match self {
            Self::Nothing => None,
            Self::Number(number) => Some(number.to_string()),
            Self::Real(real) => Some(real.to_string()),
            Self::Bytes(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
        }
    }

    pub(crate) fn into_bytes(self) -> Option<Vec<u8>> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            other => other.text().map(String::into_bytes),
        }
    }
}

/// The columns of a row that was found.
pub(crate) type Line = Vec<Cell>;

/// Connections to one database.
#[derive(Clone, Debug)]
pub(crate) enum Pool {
    #[cfg(feature = "postgres")]
    Postgres(sqlx::PgPool),
    #[cfg(feature = "mysql")]
    MySql(sqlx::MySqlPool),
    #[cfg(feature = "sqlite")]
    Sqlite(sqlx::SqlitePool),
}

macro_rules! on_each {
    ($pool:expr, $inner:ident, $module:ident => $then:expr) => {
        match $pool {
            #[cfg(feature = "postgres")]
            Pool::Postgres($inner) => {
                #[allow(unused_imports, reason = "not all need it")]
                use postgres as $module;
                $then
            }
            #[cfg(feature = "mysql")]
            Pool::MySql($inner) => {
                #[allow(unused_imports, reason = "not all need it")]
                use mysql as $module;
                $then
            }
            #[cfg(feature = "sqlite")]
            Pool::Sqlite($inner) => {
                #[allow(unused_imports, reason = "not all need it")]
                use sqlite as $module;
                $then
            }
        }
    };
}

impl Pool {
    /// What a statement finds.
    pub(crate) async fn lines(&self, sql: &Sql, arguments: &[Argument]) -> Result<Vec<Line>, Error> {
        on_each!(self, pool, database => {
            let mut connection = pool.acquire().await?;
            database::lines(&mut connection, sql, arguments).await
        })
    }

    /// How many rows a statement changes.
    pub(crate) async fn change(&self, sql: &Sql, arguments: &[Argument]) -> Result<u64, Error> {
        on_each!(self, pool, database => {
            let mut connection = pool.acquire().await?;
            database::change(&mut connection, sql, arguments).await
        })
    }

    /// Statements as they stand, such as definitions, without arguments.
    pub(crate) async fn run(&self, sql: &str) -> Result<(), Error> {
        on_each!(self, pool, _database => {
            let mut connection = pool.acquire().await?;
            let raw = sqlx::raw_sql(AssertSqlSafe(sql.to_owned()));
            sqlx::Executor::execute(&mut *connection, raw).await.map(drop).map_err(Error::from)
        })
    }

    pub(crate) async fn close(&self) {
        on_each!(self, pool, _database => pool.close().await);
    }
}

macro_rules! database {
    ($feature:literal, $module:ident, $connection:ty, $database:ty, $row:ty, $cell:path) => {
        #[cfg(feature = $feature)]
        pub(crate) mod $module {
            use super::*;

            pub(crate) async fn lines(
                connection: &mut $connection,
                sql: &Sql,
                arguments: &[Argument],
            ) -> Result<Vec<Line>, Error> {
                let found = bound(sql, arguments).fetch_all(connection).await?;
                found.iter().map(line).collect()
            }

            pub(crate) async fn change(
                connection: &mut $connection,
                sql: &Sql,
                arguments: &[Argument],
            ) -> Result<u64, Error> {
                Ok(bound(sql, arguments).execute(connection).await?.rows_affected())
            }

            fn bound(
                sql: &Sql,
                arguments: &[Argument],
            ) -> sqlx::query::Query<'static, $database, <$database as sqlx::Database>::Arguments> {
                let mut query = sqlx::query::<$database>(AssertSqlSafe(Arc::clone(sql)));
                for argument in arguments {
                    query = match argument {
                        Argument::Text(text) => query.bind(text.clone()),
                        Argument::Number(number) => query.bind(*number),
                    };
                }
                query
            }

            fn line(row: &$row) -> Result<Line, Error> {
                (0..row.columns().len())
                    .map(|at| {
                        let raw = row.try_get_raw(at)?;
                        if raw.is_null() {
                            return Ok(Cell::Nothing);
                        }
                        let kind = raw.type_info().name().to_owned();
                        $cell(row, at, &kind).map_err(|error| {
                            let name = row.column(at).name();
                            Error::Declined(format!("the column {name}, of the type {kind}: {error}"))
                        })
                    })
                    .collect()
            }
        }
    };
}

database!("postgres", postgres, sqlx::PgConnection, sqlx::Postgres, sqlx::postgres::PgRow, cell_of_postgres);
database!("mysql", mysql, sqlx::MySqlConnection, sqlx::MySql, sqlx::mysql::MySqlRow, cell_of_mysql);
database!("sqlite", sqlite, sqlx::SqliteConnection, sqlx::Sqlite, sqlx::sqlite::SqliteRow, cell_of_sqlite);

#[cfg(feature = "postgres")]
fn cell_of_postgres(row: &sqlx::postgres::PgRow, at: usize, kind: &str) -> Result<Cell, sqlx::Error> {
    Ok(match kind {
        "INT8" => Cell::Number(row.try_get::<i64, _>(at)?),
        "INT4" => Cell::Number(row.try_get::<i32, _>(at)?.into()),
        "FLOAT8" => Cell::Real(row.try_get(at)?),
        "BYTEA" => Cell::Bytes(row.try_get(at)?),
        _ => Cell::Bytes(row.try_get::<String, _>(at)?.into_bytes()),
    })
}

#[cfg(feature = "mysql")]
fn cell_of_mysql(row: &sqlx::mysql::MySqlRow, at: usize, kind: &str) -> Result<Cell, sqlx::Error> {
    Ok(match kind {
        "DOUBLE" => Cell::Real(row.try_get(at)?),
        unsigned if unsigned.ends_with("INT UNSIGNED") => {
            Cell::Number(i64::try_from(row.try_get_unchecked::<u64, _>(at)?).unwrap_or(i64::MAX))
        }
        signed if signed.ends_with("INT") => Cell::Number(row.try_get_unchecked(at)?),
        _ => Cell::Bytes(row.try_get_unchecked(at)?),
    })
}

#[cfg(feature = "sqlite")]
fn cell_of_sqlite(row: &sqlx::sqlite::SqliteRow, at: usize, kind: &str) -> Result<Cell, sqlx::Error> {
    Ok(match kind {
        "INTEGER" | "BOOLEAN" => Cell::Number(row.try_get_unchecked(at)?),
        "REAL" => Cell::Real(row.try_get_unchecked(at)?),
        _ => Cell::Bytes(row.try_get_unchecked(at)?),
    })
}
