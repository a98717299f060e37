//! A database of its own for each test, in one of the three.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use overtake_client::outbox::{Dialect, Event, Outbox};
use overtake_outbox::{Address, Claim, Database, Init, Key, Row, Table};
use sqlx::{AssertSqlSafe, Row as _};
use tempfile::TempDir;

use crate::servers;

/// Longer than any test takes.
pub(crate) const LOCK: Duration = Duration::from_secs(600);

/// A database, and a connection of an application to it.
pub(crate) struct World {
    pub(crate) url: String,
    pub(crate) dialect: Dialect,
    pub(crate) application: Application,
    _dir: Option<TempDir>,
}

pub(crate) enum Application {
    Postgres(sqlx::PgPool),
    MySql(sqlx::MySqlPool),
    Sqlite(sqlx::SqlitePool),
}

macro_rules! on_each {
    ($application:expr, $pool:ident => $then:expr) => {
        match $application {
            Application::Postgres($pool) => $then,
            Application::MySql($pool) => $then,
            Application::Sqlite($pool) => $then,
        }
    };
}

fn name() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    format!("t{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

impl World {
    /// `None` where there is no PostgreSQL.
    pub(crate) async fn postgres() -> Option<Self> {
        let server = servers::shared_postgres()?;
        Some(Self::postgres_of(server).await)
    }

    pub(crate) async fn postgres_of(server: &servers::Server) -> Self {
        let name = name();
        let admin = sqlx::PgPool::connect(&server.url("postgres")).await.expect("it answers");
        sqlx::raw_sql(AssertSqlSafe(format!("CREATE DATABASE {name}")))
            .execute(&admin)
            .await
            .expect("a database");
        admin.close().await;
        let url = server.url(&name);
        let application = Application::Postgres(sqlx::PgPool::connect(&url).await.expect("it answers"));
        Self { url, dialect: Dialect::Postgres, application, _dir: None }
    }

    /// `None` where there is no MariaDB.
    pub(crate) async fn mysql() -> Option<Self> {
        let server = servers::shared_mariadb()?;
        let name = name();
        let admin = sqlx::MySqlPool::connect(&server.url("mysql")).await.expect("it answers");
        sqlx::raw_sql(AssertSqlSafe(format!("CREATE DATABASE {name}")))
            .execute(&admin)
            .await
            .expect("a database");
        admin.close().await;
        let url = server.url(&name);
        let application = Application::MySql(sqlx::MySqlPool::connect(&url).await.expect("it answers"));
        Some(Self { url, dialect: Dialect::MySql, application, _dir: None })
    }

    pub(crate) async fn sqlite() -> Option<Self> {
        let dir = tempfile::tempdir().expect("a directory");
        let url = format!("sqlite:{}", dir.path().join("shop.sqlite").display());
        let pool = sqlx::SqlitePool::connect(&format!("{url}?mode=rwc")).await.expect("a file");
        sqlx::raw_sql("PRAGMA journal_mode = WAL").execute(&pool).await.expect("it can");
        let application = Application::Sqlite(pool);
        Some(Self { url, dialect: Dialect::Sqlite, application, _dir: Some(dir) })
    }

    pub(crate) fn address(&self) -> Address {
        Address::new(&self.url, None, &overtake_peer::Tls::default()).expect("an address")
    }

    /// The outbox as the relay makes it.
    pub(crate) async fn outbox(&self) -> Database {
        self.outbox_with(500, false).await
    }

    pub(crate) async fn outbox_with(&self, batch: usize, keeps_key_order: bool) -> Database {
        let mut database = self.mapped(Table::default(), batch, keeps_key_order).await;
        assert_eq!(database.init(true).await, Ok(Init::Made));
        database
    }

    pub(crate) async fn mapped(&self, table: Table, batch: usize, keeps_key_order: bool) -> Database {
        Database::connect(&self.address(), table, batch, keeps_key_order).await.expect("it connects")
    }

    /// A second relay's view of the same.
    pub(crate) async fn again(&self) -> Database {
        Database::connect_checked(&self.address(), Table::default(), 500, false)
            .await
            .expect("it is an outbox")
    }

    /// An application writes these, in one transaction.
    pub(crate) async fn write(&self, events: &[Event]) {
        self.try_write(events).await.expect("it is written");
    }

    async fn try_write(&self, events: &[Event]) -> Result<(), sqlx::Error> {
        let outbox = Outbox::new();
        on_each!(&self.application, pool => {
            let mut transaction = pool.begin().await?;
            outbox.write_all(&mut *transaction, events).await?;
            transaction.commit().await
        })
    }

    /// As [`World::rows`], where the database may be away.
    pub(crate) async fn try_rows(&self, picture: &str) -> Result<(), sqlx::Error> {
        self.try_write(&events(picture)).await
    }

    /// As `id:priority id:priority:key`, each as a row.
    pub(crate) async fn rows(&self, picture: &str) {
        self.write(&events(picture)).await;
    }

    /// Anything else.
    pub(crate) async fn run(&self, sql: &str) {
        on_each!(&self.application, pool => {
            sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(pool).await.expect(sql);
        });
    }

    /// The texts that a statement finds, with spaces between columns and between rows.
    pub(crate) async fn find(&self, sql: &str) -> String {
        let sql = sql.to_owned();
        on_each!(&self.application, pool => {
            let rows = sqlx::raw_sql(AssertSqlSafe(sql.clone())).fetch_all(pool).await.expect(&sql);
            let rows: Vec<String> = rows.iter().map(|row| {
                let cells = (0..row.len()).map(|at| {
                    let text = row.try_get_unchecked::<Option<String>, _>(at).unwrap_or_else(|_| {
                        row.try_get_unchecked::<Option<i64>, _>(at).expect("text or a number").map(|number| number.to_string())
                    });
                    text.unwrap_or_else(|| "-".to_owned())
                });
                cells.collect::<Vec<_>>().join(" ")
            }).collect();
            rows.join("\n")
        })
    }

    /// Each row as `message_id:status`, in the order in which they were written.
    pub(crate) async fn states(&self) -> String {
        let found = self.find("SELECT message_id, status FROM outbox ORDER BY id").await;
        found.lines().map(|line| line.replace(' ', ":")).collect::<Vec<_>>().join(" ")
    }
}

pub(crate) fn events(picture: &str) -> Vec<Event> {
    let event = |word: &str| {
        let parts: Vec<&str> = word.split(':').collect();
        let event =
            Event::new("customer", "CustomerUpdated", format!(r#"{{"id": "{}"}}"#, parts[0])).id(parts[0]);
        let event =
            event.priority(parts.get(1).map_or(0, |priority| priority.parse::<i32>().expect("a number")));
        match parts.get(2) {
            Some(key) => event.key(*key),
            None => event,
        }
    };
    picture.split_whitespace().map(event).collect()
}

/// A claim with this token.
pub(crate) fn claim(token: &str) -> Claim {
    Claim { token: token.to_owned(), lock: LOCK }
}

/// Message ids, in order.
pub(crate) fn ids(rows: &[Row]) -> String {
    rows.iter().map(|row| row.message_id.as_str()).collect::<Vec<_>>().join(" ")
}

pub(crate) fn keys(rows: &[Row]) -> Vec<Key> {
    rows.iter().map(|row| row.key.clone()).collect()
}
