//! Writing over a connection of sqlx.

use sqlx::AssertSqlSafe;

use super::{Argument, Dialect, Event, Insert, Outbox};

/// How many events go into one statement.
const AT_ONCE: usize = 500;

/// A connection of sqlx, on which maybe a transaction is open: `PgConnection`, `MySqlConnection`, `SqliteConnection`.
#[expect(async_fn_in_trait, reason = "it is sealed, and what its futures borrow is Send")]
pub trait Connection: sealed::Sealed {
    #[doc(hidden)]
    const DIALECT: Dialect;
    #[doc(hidden)]
    async fn run(&mut self, insert: Insert<'_>) -> Result<(), sqlx::Error>;
}

mod sealed {
    pub trait Sealed {}
}

impl Outbox {
    /// Writes an event in the transaction that is open on this connection, and answers with its id. In a transaction `tx`: `outbox.write(&mut *tx, event)`.
    ///
    /// # Errors
    /// What the database says; the transaction is to be rolled back.
    pub async fn write<C: Connection>(
        &self,
        connection: &mut C,
        event: Event,
    ) -> Result<String, sqlx::Error> {
        connection.run(self.insert(C::DIALECT, std::slice::from_ref(&event))).await?;
        Ok(event.message_id)
    }

    /// Writes events, in this order, hundreds in a statement.
    ///
    /// # Errors
    /// As [`Outbox::write`].
    pub async fn write_all<C: Connection>(
        &self,
        connection: &mut C,
        events: &[Event],
    ) -> Result<(), sqlx::Error> {
        for some in events.chunks(AT_ONCE) {
            connection.run(self.insert(C::DIALECT, some)).await?;
        }
        Ok(())
    }
}

macro_rules! connection {
    ($feature:literal, $connection:ty, $database:ty, $dialect:ident) => {
        #[cfg(feature = $feature)]
        impl sealed::Sealed for $connection {}

        #[cfg(feature = $feature)]
        impl Connection for $connection {
            const DIALECT: Dialect = Dialect::$dialect;

            async fn run(&mut self, insert: Insert<'_>) -> Result<(), sqlx::Error> {
                let is_usual = insert.arguments.len() <= 7;
                let mut query = sqlx::query::<$database>(AssertSqlSafe(insert.sql)).persistent(is_usual);
                for argument in &insert.arguments {
                    query = match argument {
                        Argument::Text(text) => query.bind((*text).to_owned()),
                        Argument::Number(number) => query.bind(*number),
                        Argument::Null => query.bind(None::<String>),
                    };
                }
                query.execute(&mut *self).await.map(drop)
            }
        }
    };
}

connection!("outbox-postgres", sqlx::PgConnection, sqlx::Postgres, Postgres);
connection!("outbox-mysql", sqlx::MySqlConnection, sqlx::MySql, MySql);
connection!("outbox-sqlite", sqlx::SqliteConnection, sqlx::Sqlite, Sqlite);
