//! What is asked of the table, in the words of a row's life: claim, mark, put back, clean; and what people ask.

mod address;
mod catalog;
mod changes;
mod grammar;
mod looking;
mod pool;
pub(crate) mod schema;
mod statements;

use std::fmt::Write as _;
use std::time::Duration;

use overtake_client::outbox::Dialect;
use serde_json::{Value, json};

pub use self::address::Address;
use self::catalog::Catalog;
pub use self::changes::Changes;
use self::grammar::Grammar;
pub use self::looking::{Filter, Held, Lag, Reason, Shown};
use self::pool::{Argument, Pool, Sql};
pub(crate) use self::pool::{Cell, Line};
pub use self::schema::Init;
pub(crate) use self::statements::PUT_BACK_MAX;
use self::statements::{Statements, limited};
use crate::error::Error;
use crate::row::{Key, Marks, Row};
use crate::table::{Status, Table};

/// Longest reason that is written down, characters.
const REASON_LEN_MAX: usize = 2_000;

/// An outbox in a database.
#[derive(Clone, Debug)]
pub struct Database {
    /// Claims have their own connection: in PostgreSQL one whose commits need not be on the disk.
    claims: Pool,
    others: Pool,
    grammar: Grammar,
    statements: Statements,
    batch: usize,
    keeps_key_order: bool,
}

/// Which relay claims, which claim of it this is, and how much.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The relay, a slash, and the number of the claim: nobody else's.
    pub token: String,
    /// How long nobody else may have the rows.
    pub lock: Duration,
}

impl Database {
    /// Connects and looks at the table, if it is there. `batch` is how many rows a claim takes at most.
    ///
    /// # Errors
    /// [`Error::Invalid`]: the settings. [`Error::Lost`], [`Error::Declined`]: the database.
    pub async fn connect(
        address: &Address,
        table: Table,
        batch: usize,
        keeps_key_order: bool,
    ) -> Result<Self, Error> {
        table.check().map_err(|(key, why)| Error::Invalid(format!("database.{key}: {why}")))?;
        if keeps_key_order && table.columns.partition_key.is_none() {
            return Err(Error::Invalid("an order by key needs the column `partition_key`".to_owned()));
        }
        let (claims, others) = address.open().await?;
        let dialect = address.dialect();
        let catalog = Catalog::read(&others, dialect, &table).await?;
        let grammar = Grammar { dialect, table, catalog };
        let statements = Statements::of(&grammar, batch, keeps_key_order);
        Ok(Self { claims, others, grammar, statements, batch, keeps_key_order })
    }

    /// Looks at the table once more.
    pub(crate) async fn look_again(&mut self) -> Result<(), Error> {
        let Grammar { dialect, table, .. } = &self.grammar;
        self.grammar.catalog = Catalog::read(&self.others, *dialect, table).await?;
        self.statements = Statements::of(&self.grammar, self.batch, self.keeps_key_order);
        Ok(())
    }

    /// As [`Database::connect`], and the table must be there, with all that is named.
    ///
    /// # Errors
    /// [`Error::Invalid`] also says what is missing, all in one go.
    pub async fn connect_checked(
        address: &Address,
        table: Table,
        batch: usize,
        keeps_key_order: bool,
    ) -> Result<Self, Error> {
        let database = Self::connect(address, table, batch, keeps_key_order).await?;
        let wrong = database.wrong();
        if wrong.is_empty() { Ok(database) } else { Err(Error::Invalid(wrong.join("; "))) }
    }

    /// What keeps the table from being an outbox, a phrase each.
    #[must_use]
    pub fn wrong(&self) -> Vec<String> {
        if self.grammar.catalog.columns.is_empty() {
            let table = &self.grammar.table.name;
            return vec![format!("there is no table `{table}`: `overtake relay init` makes it")];
        }
        self.grammar.catalog.wrong(&self.grammar.table)
    }

    /// Whose SQL it speaks.
    #[must_use]
    pub fn dialect(&self) -> Dialect {
        self.grammar.dialect
    }

    /// What the table is called, and all in it.
    #[must_use]
    pub fn table(&self) -> &Table {
        &self.grammar.table
    }

    /// The statement of a claim, for whoever wants to see how the database goes about it.
    #[must_use]
    pub fn claim_statement(&self) -> &str {
        &self.statements.claim
    }

    /// Tells when something may have come. It is a hint: what is to be relied on is looking again.
    #[must_use]
    pub fn changes(&self) -> Changes {
        Changes::of(self.others.clone(), schema::channel(&self.grammar))
    }

    /// Ends all connections.
    pub async fn close(&self) {
        self.claims.close().await;
        self.others.close().await;
    }

    // ---- claiming ----

    /// Takes the most urgent rows of the table, and of those the oldest, in that order; nobody else takes them until the lock is over.
    ///
    /// # Errors
    /// Of the database. Rows may have been claimed all the same; they come back when their lock is over.
    pub async fn claim(&self, claim: &Claim) -> Result<Vec<Row>, Error> {
        let lock_ms = Argument::from(millis(claim.lock));
        let token = Argument::from(claim.token.as_str());
        let lines = match &self.claims {
            #[cfg(feature = "postgres")]
            Pool::Postgres(pool) => self.claim_postgres(pool, [token, lock_ms]).await?,
            #[cfg(feature = "mysql")]
            Pool::MySql(pool) => self.claim_mysql(pool, token, lock_ms).await?,
            #[cfg(feature = "sqlite")]
            Pool::Sqlite(pool) => self.claim_sqlite(pool, token, lock_ms).await?,
        };
        Ok(lines.into_iter().filter_map(|line| Row::read(&self.grammar.table, line)).collect())
    }

    #[cfg(feature = "postgres")]
    async fn claim_postgres(
        &self,
        pool: &sqlx::PgPool,
        arguments: [Argument; 2],
    ) -> Result<Vec<Line>, Error> {
        use pool::postgres::lines;
        let mut found = if self.keeps_key_order {
            let mut transaction = pool.begin().await?;
            // One after the other: what another relay is about to claim is not seen yet. A statement of its own, so that the next one sees what that did.
            let turn = Sql::from("SELECT pg_advisory_xact_lock($1)::text");
            lines(&mut transaction, &turn, &[Argument::Number(turn_number(&self.grammar.table.name))])
                .await?;
            let found = lines(&mut transaction, &self.statements.claim, &arguments).await?;
            transaction.commit().await?;
            found
        } else {
            let mut connection = pool.acquire().await?;
            lines(&mut connection, &self.statements.claim, &arguments).await?
        };
        // What is returned has no order of its own; its place stands last.
        found.sort_by_key(|line| line.last().and_then(Cell::number));
        Ok(found)
    }

    #[cfg(feature = "mysql")]
    async fn claim_mysql(
        &self,
        pool: &sqlx::MySqlPool,
        token: Argument,
        lock_ms: Argument,
    ) -> Result<Vec<Line>, Error> {
        use pool::mysql::{change, lines};
        let mut connection = pool.acquire().await?;
        if !self.keeps_key_order {
            return self.claim_in_two(sqlx::Connection::begin(&mut *connection).await?, token, lock_ms).await;
        }
        let name = format!("overtake {}", turn_number(&self.grammar.table.name));
        let turn = lines(&mut connection, &"SELECT GET_LOCK(?, 10)".into(), &[name.as_str().into()]).await?;
        if turn.first().and_then(|line| line[0].number()) != Some(1) {
            return Err(Error::Declined("another relay has been claiming for 10 s".to_owned()));
        }
        let found = match sqlx::Connection::begin(&mut *connection).await {
            Ok(transaction) => self.claim_in_two(transaction, token, lock_ms).await,
            Err(error) => Err(error.into()),
        };
        let given_back = change(&mut connection, &"DO RELEASE_LOCK(?)".into(), &[name.as_str().into()]).await;
        if given_back.is_err() {
            // The lock goes with the connection, and must not stay with it.
            drop(connection.detach());
        }
        found
    }

    #[cfg(feature = "mysql")]
    async fn claim_in_two(
        &self,
        mut transaction: sqlx::Transaction<'_, sqlx::MySql>,
        token: Argument,
        lock_ms: Argument,
    ) -> Result<Vec<Line>, Error> {
        let found = pool::mysql::lines(&mut transaction, &self.statements.claim, &[]).await?;
        if let Some(batch) = batch_of_lines(&found) {
            pool::mysql::change(&mut transaction, &self.statements.lock, &[batch, lock_ms, token]).await?;
        }
        transaction.commit().await?;
        Ok(found)
    }

    #[cfg(feature = "sqlite")]
    async fn claim_sqlite(
        &self,
        pool: &sqlx::SqlitePool,
        token: Argument,
        lock_ms: Argument,
    ) -> Result<Vec<Line>, Error> {
        let mut connection = pool.acquire().await?;
        // Whether there is anything is seen without keeping writers away.
        if pool::sqlite::lines(&mut connection, &self.statements.claim, &[]).await?.is_empty() {
            return Ok(Vec::new());
        }
        let mut transaction = sqlx::Connection::begin_with(&mut *connection, "BEGIN IMMEDIATE").await?;
        let found = pool::sqlite::lines(&mut transaction, &self.statements.claim, &[]).await?;
        if let Some(batch) = batch_of_lines(&found) {
            pool::sqlite::change(&mut transaction, &self.statements.lock, &[batch, lock_ms, token]).await?;
        }
        transaction.commit().await?;
        Ok(found)
    }

    // ---- marking ----

    /// Writes down what became of rows of a claim, a statement for each kind of outcome. Rows that the claim has no more stay as they are: the answer is how many were its.
    /// The same again does no harm.
    ///
    /// # Errors
    /// Of the database; some may be written down.
    pub async fn mark(&self, token: &str, marks: &Marks) -> Result<u64, Error> {
        let ids = |keys: &[Key]| keys.iter().map(|key| json!({ "id": key.json() })).collect::<Vec<_>>();
        let failed = marks.failed.iter().map(|(key, why, wait)| {
            json!({ "id": key.json(), "error": reason(why), "wait": i64::try_from(wait.as_millis()).unwrap_or(i64::MAX) })
        });
        let abandoned =
            marks.abandoned.iter().map(|(key, why)| json!({ "id": key.json(), "error": reason(why) }));
        let all = [
            (&self.statements.publish, ids(&marks.published)),
            (&self.statements.fail, failed.collect()),
            (&self.statements.abandon, abandoned.collect()),
            (&self.statements.release, ids(&marks.released)),
        ];
        let mut changed = 0;
        for (statement, rows) in all {
            if !rows.is_empty() {
                let batch = Argument::Text(Value::Array(rows).to_string());
                changed += self.others.change(statement, &[batch, token.into()]).await?;
            }
        }
        Ok(changed)
    }

    // ---- putting back ----

    /// Lets rows be claimed again whose lock is over, a thousand at most: how many.
    ///
    /// # Errors
    /// Of the database.
    pub async fn return_expired(&self) -> Result<u64, Error> {
        self.others.change(&self.statements.put_back_expired, &[]).await
    }

    /// Lets failed rows be claimed whose time has come, a thousand at most: how many.
    ///
    /// # Errors
    /// Of the database.
    pub async fn return_due(&self) -> Result<u64, Error> {
        self.others.change(&self.statements.put_back_due, &[]).await
    }

    /// Lets rows be claimed that another program left without a time: being processed without a lock, or failed without a next attempt.
    ///
    /// # Errors
    /// Of the database.
    pub async fn return_undated(&self) -> Result<u64, Error> {
        let unlocked = self.others.change(&self.statements.put_back_unlocked, &[]).await?;
        Ok(unlocked + self.others.change(&self.statements.put_back_undated, &[]).await?)
    }

    // ---- cleaning ----

    /// Deletes so many rows at most that were published, or given up, longer ago than this: how many.
    ///
    /// # Errors
    /// Of the database.
    pub async fn clean(&self, status: Status, older_than: Duration, limit: usize) -> Result<u64, Error> {
        let c = &self.grammar.table.columns;
        let time = match status {
            Status::Abandoned => c.abandoned_at.as_ref().or(c.created_at.as_ref()),
            _ => c.published_at.as_ref(),
        };
        let Some(time) = time else { return Ok(0) };
        let sql = self.cleaning(status, time, limit);
        self.others.change(&sql, &[millis(older_than).into()]).await
    }

    fn cleaning(&self, status: Status, time: &str, limit: usize) -> Sql {
        let g = &self.grammar;
        let placeholder = g.dialect.placeholder(1);
        let mut to = g.is(status);
        let quoted = g.quote(time);
        let _ = match g.dialect {
            Dialect::Postgres => {
                write!(
                    to,
                    " AND {quoted} <= {} - {placeholder}::bigint * interval '1 millisecond'",
                    g.since(time)
                )
            }
            Dialect::MySql => {
                write!(to, " AND {quoted} <= UTC_TIMESTAMP(6) - INTERVAL ({placeholder} * 1000) MICROSECOND")
            }
            Dialect::Sqlite => write!(
                to,
                " AND {quoted} <= strftime('%Y-%m-%d %H:%M:%f000', 'now', printf('-%.3f seconds', {placeholder} / 1000.0))"
            ),
        };
        limited(g, &format!("DELETE FROM {}", g.table()), &to, limit).into()
    }
}

/// The keys of what was found, for the statement that takes it.
#[cfg(any(feature = "mysql", feature = "sqlite"))]
fn batch_of_lines(found: &[Line]) -> Option<Argument> {
    let ids = found.iter().map(|line| match &line[0] {
        Cell::Number(number) => json!({ "id": number }),
        other => json!({ "id": other.text() }),
    });
    (!found.is_empty()).then(|| Argument::Text(Value::Array(ids.collect()).to_string()))
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// No column of text takes a zero, and none should have to take a book.
fn reason(why: &str) -> String {
    why.chars().filter(|c| *c != '\0').take(REASON_LEN_MAX).collect()
}

/// The number of the lock under which relays claim one after the other: FNV-1a over the table's name.
#[cfg(any(feature = "postgres", feature = "mysql"))]
fn turn_number(table: &str) -> i64 {
    let hash = table.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    i64::from_ne_bytes(hash.to_ne_bytes())
}
