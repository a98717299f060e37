//! Where the database is, and how connections to it are set up.

use std::str::FromStr;
use std::time::Duration;

use overtake_client::outbox::Dialect;
use overtake_peer::Tls;
use sqlx::pool::PoolOptions;

use super::pool::Pool;
use crate::error::Error;

/// How long a connection may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// Connections beside that of the claims: marks, upkeep, people, and one that hears of changes.
const CONNECTIONS: u32 = 4;

/// Planner settings of our own sessions: all that is asked goes through an index, also where statistics are missing or older than a backlog of millions; and a
/// plan that was made for an empty table is kept for a full one. Nothing is worth compiling.
#[cfg(feature = "postgres")]
const BY_INDEX: &str = "SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off; SET enable_hashjoin = off; \
                        SET enable_mergejoin = off; SET jit = off";
/// A claim that a crash of the database forgets was none: rows may be published twice then, and are not lost.
#[cfg(feature = "postgres")]
const UNSYNCED: &str = "SET synchronous_commit = off";
/// No gaps are locked, into which applications want to insert.
#[cfg(feature = "mysql")]
const READ_COMMITTED: &str = "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED";

/// Where a database is.
#[derive(Clone, Debug)]
pub struct Address(Options);

#[derive(Clone, Debug)]
enum Options {
    #[cfg(feature = "postgres")]
    Postgres(Box<sqlx::postgres::PgConnectOptions>),
    #[cfg(feature = "mysql")]
    MySql(Box<sqlx::mysql::MySqlConnectOptions>),
    #[cfg(feature = "sqlite")]
    Sqlite(Box<sqlx::sqlite::SqliteConnectOptions>),
}

impl Address {
    /// `postgres://…`, `mysql://…` or `mariadb://…`, `sqlite:PATH`. A password goes before the URL's. Where `tls` says anything, the server must show a certificate that
    /// is believed.
    ///
    /// # Errors
    /// What is wrong with it, as a phrase without secrets.
    #[cfg_attr(
        not(any(feature = "postgres", feature = "mysql")),
        expect(unused_variables, reason = "a file has neither")
    )]
    pub fn new(url: &str, password: Option<&str>, tls: &Tls) -> Result<Self, String> {
        let scheme = url.split(':').next().unwrap_or_default();
        let options = match scheme {
            #[cfg(feature = "postgres")]
            "postgres" | "postgresql" => Options::Postgres(Box::new(postgres(url, password, tls)?)),
            #[cfg(feature = "mysql")]
            "mysql" | "mariadb" => Options::MySql(Box::new(mysql(url, password, tls)?)),
            #[cfg(feature = "sqlite")]
            "sqlite" => Options::Sqlite(Box::new(sqlite(url)?)),
            _ => {
                return Err("the URL of a database begins with postgres://, mysql://, mariadb:// or sqlite:, if this program was built \
                            for it"
                    .to_owned());
            }
        };
        Ok(Self(options))
    }

    pub(crate) fn dialect(&self) -> Dialect {
        match &self.0 {
            #[cfg(feature = "postgres")]
            Options::Postgres(_) => Dialect::Postgres,
            #[cfg(feature = "mysql")]
            Options::MySql(_) => Dialect::MySql,
            #[cfg(feature = "sqlite")]
            Options::Sqlite(_) => Dialect::Sqlite,
        }
    }

    /// Connections for claims, and for all else.
    pub(super) async fn open(&self) -> Result<(Pool, Pool), Error> {
        Ok(match &self.0 {
            #[cfg(feature = "postgres")]
            Options::Postgres(options) => {
                let pool = |size, set: &'static str| {
                    let pool = pool_options(size).after_connect(move |connection, _| {
                        Box::pin(async move {
                            sqlx::Executor::execute(&mut *connection, sqlx::raw_sql(set)).await.map(drop)?;
                            sqlx::Executor::execute(connection, sqlx::raw_sql(BY_INDEX)).await.map(drop)
                        })
                    });
                    pool.connect_with((**options).clone())
                };
                let claims = pool(1, UNSYNCED).await?;
                (Pool::Postgres(claims), Pool::Postgres(pool(CONNECTIONS, "").await?))
            }
            #[cfg(feature = "mysql")]
            Options::MySql(options) => {
                let pool = |size| {
                    let pool = pool_options(size).after_connect(|connection, _| {
                        Box::pin(async move {
                            sqlx::Executor::execute(connection, sqlx::raw_sql(READ_COMMITTED)).await.map(drop)
                        })
                    });
                    pool.connect_with((**options).clone())
                };
                let claims = pool(1).await?;
                (Pool::MySql(claims), Pool::MySql(pool(CONNECTIONS).await?))
            }
            #[cfg(feature = "sqlite")]
            Options::Sqlite(options) => {
                use sqlx::sqlite::SqliteSynchronous::{Full, Normal};
                let file = options.get_filename();
                if file.to_str().is_some_and(|name| !name.starts_with(':')) && !file.exists() {
                    let why = format!(
                        "there is no database {}: the application makes it, or `overtake relay init` does",
                        file.display()
                    );
                    return Err(Error::Invalid(why));
                }
                let pool = |size, how| pool_options(size).connect_with((**options).clone().synchronous(how));
                let claims = pool(1, Normal).await?;
                (Pool::Sqlite(claims), Pool::Sqlite(pool(CONNECTIONS, Full).await?))
            }
        })
    }
}

impl Address {
    /// Makes the file of a database that is a file and is not there yet.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn make(&self) -> Result<(), Error> {
        match &self.0 {
            #[cfg(feature = "sqlite")]
            Options::Sqlite(options) => {
                let file = options.get_filename();
                let made = std::fs::File::options().append(true).create(true).open(file);
                made.map(drop).map_err(|error| Error::Invalid(format!("{}: {error}", file.display())))
            }
            #[cfg(any(feature = "postgres", feature = "mysql"))]
            _ => Ok(()),
        }
    }
}

fn pool_options<D: sqlx::Database>(size: u32) -> PoolOptions<D> {
    // A connection that is lost is found so by whoever asks over it, and who asks does so again.
    PoolOptions::new().max_connections(size).acquire_timeout(PATIENCE).test_before_acquire(false)
}

/// What a parser says of a URL may have the password in it.
fn wrong(scheme: &str) -> String {
    format!("the URL of the database is not understood: it must be like {scheme}")
}

#[cfg(feature = "postgres")]
fn postgres(
    url: &str,
    password: Option<&str>,
    tls: &Tls,
) -> Result<sqlx::postgres::PgConnectOptions, String> {
    let options = sqlx::postgres::PgConnectOptions::from_str(url)
        .map_err(|_| wrong("postgres://USER@HOST:5432/DATABASE"))?;
    let mut options = options.application_name("overtake relay");
    if let Some(password) = password {
        options = options.password(password);
    }
    if !tls.is_plain() {
        options = options.ssl_mode(sqlx::postgres::PgSslMode::VerifyFull);
    }
    if let Some(file) = &tls.ca_file {
        options = options.ssl_root_cert(file);
    }
    if let (Some(cert), Some(key)) = (&tls.cert_file, &tls.key_file) {
        options = options.ssl_client_cert(cert).ssl_client_key(key);
    }
    Ok(options)
}

#[cfg(feature = "mysql")]
fn mysql(url: &str, password: Option<&str>, tls: &Tls) -> Result<sqlx::mysql::MySqlConnectOptions, String> {
    let mut options = sqlx::mysql::MySqlConnectOptions::from_str(url)
        .map_err(|_| wrong("mysql://USER@HOST:3306/DATABASE"))?;
    if let Some(password) = password {
        options = options.password(password);
    }
    if !tls.is_plain() {
        options = options.ssl_mode(sqlx::mysql::MySqlSslMode::VerifyIdentity);
    }
    if let Some(file) = &tls.ca_file {
        options = options.ssl_ca(file);
    }
    if let (Some(cert), Some(key)) = (&tls.cert_file, &tls.key_file) {
        options = options.ssl_client_cert(cert).ssl_client_key(key);
    }
    Ok(options)
}

#[cfg(feature = "sqlite")]
fn sqlite(url: &str) -> Result<sqlx::sqlite::SqliteConnectOptions, String> {
    let options = sqlx::sqlite::SqliteConnectOptions::from_str(url)
        .map_err(|_| wrong("sqlite:/path/to/file.sqlite"))?;
    Ok(options.journal_mode(sqlx::sqlite::SqliteJournalMode::Wal).busy_timeout(PATIENCE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_of_a_url_has_no_password_in_it() {
        for url in ["http://a:secret@b", "postgres://a:secret@b:port", "mysql://a:secret@:x/"] {
            let why = Address::new(url, None, &Tls::default()).expect_err("it is wrong");
            assert!(!why.contains("secret"), "{why}");
        }
    }
}
