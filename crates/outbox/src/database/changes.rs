//! A hint that something came: PostgreSQL tells, SQLite counts, MySQL says nothing.

use std::time::Duration;

use super::pool::Pool;

/// How often SQLite is asked whether its file was written: it looks into shared memory for that.
#[cfg(feature = "sqlite")]
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// How long it takes to try again where there is no connection to hear over.
const TRY_AGAIN: Duration = Duration::from_secs(1);

/// Hints, one after the other.
pub struct Changes {
    pool: Pool,
    #[cfg_attr(not(feature = "postgres"), expect(dead_code, reason = "only PostgreSQL has channels"))]
    channel: String,
    #[cfg(feature = "postgres")]
    listener: Option<sqlx::postgres::PgListener>,
    #[cfg(feature = "sqlite")]
    seen: Option<(sqlx::pool::PoolConnection<sqlx::Sqlite>, i64)>,
}

impl Changes {
    pub(super) fn of(pool: Pool, channel: String) -> Self {
        Self {
            pool,
            channel,
            #[cfg(feature = "postgres")]
            listener: None,
            #[cfg(feature = "sqlite")]
            seen: None,
        }
    }

    /// Waits until something may have come since the last time. It may not have; and what came while there was no connection is told as soon as there is one.
    pub async fn next(&mut self) {
        loop {
            match self.heard().await {
                Ok(()) => return,
                Err(error) => {
                    tracing::debug!(%error, "nothing is heard of the outbox");
                    tokio::time::sleep(TRY_AGAIN).await;
                }
            }
        }
    }

    async fn heard(&mut self) -> Result<(), sqlx::Error> {
        match &self.pool {
            #[cfg(feature = "postgres")]
            Pool::Postgres(pool) => {
                let Some(listener) = &mut self.listener else {
                    let mut listener = sqlx::postgres::PgListener::connect_with(pool).await?;
                    listener.listen(&self.channel).await?;
                    self.listener = Some(listener);
                    // What came before is not told.
                    return Ok(());
                };
                // Nothing: the connection was lost and is made again, and in between nobody told anything.
                let heard = listener.try_recv().await;
                if heard.is_err() {
                    self.listener = None;
                } else {
                    while listener.next_buffered().is_some() {}
                }
                heard.map(drop)
            }
            #[cfg(feature = "mysql")]
            Pool::MySql(_) => std::future::pending().await,
            #[cfg(feature = "sqlite")]
            Pool::Sqlite(pool) => {
                let Some((connection, version)) = &mut self.seen else {
                    let mut connection = pool.acquire().await?;
                    let version = version(&mut connection).await?;
                    self.seen = Some((connection, version));
                    return Ok(());
                };
                loop {
                    tokio::time::sleep(LOOK_EVERY).await;
                    match self::version(connection).await {
                        Ok(now) if now == *version => (),
                        Ok(now) => {
                            *version = now;
                            return Ok(());
                        }
                        Err(error) => {
                            self.seen = None;
                            return Err(error);
                        }
                    }
                }
            }
        }
    }
}

/// It changes whenever another connection writes (<https://www.sqlite.org/pragma.html#pragma_data_version>).
#[cfg(feature = "sqlite")]
async fn version(connection: &mut sqlx::SqliteConnection) -> Result<i64, sqlx::Error> {
    sqlx::query_scalar("PRAGMA data_version").fetch_one(connection).await
}
