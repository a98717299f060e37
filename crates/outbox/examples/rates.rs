//! How fast an outbox is relayed, and how soon when there is little to do.
//!
//! `cargo run --profile dist -p overtake-outbox --example rates -- DATABASE-URL ROWS [SINK-URL]`: writes rows into a table of its own, `outbox_rates`, relays them, then writes one
//! after the other and waits for each. Without a sink they go nowhere, which is what claims and marks alone cost. A broker must
//! have a queue `customer`.

#![expect(clippy::print_stdout, reason = "it is for people")]

use std::error::Error;
use std::time::{Duration, Instant};

use overtake_client::outbox::{Dialect, Event, Outbox};
use overtake_outbox::sink::{Answer, BrokerSettings, BrokerSink, Sink, StreamsSettings, StreamsSink};
use overtake_outbox::{Address, Database, Outcome, Relay, Row, Settings, Table};
use overtake_peer::redis::RedisServer;
use overtake_peer::{Named, Tls, Vault};
use sqlx::AssertSqlSafe;
use tokio::sync::{mpsc, oneshot};

const TABLE: &str = "outbox_rates";
/// Written one after the other.
const SINGLE: usize = 500;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Tells of each row when it is published.
struct Telling {
    sink: Option<Box<dyn Sink>>,
    told: mpsc::Sender<Instant>,
}

impl Sink for Telling {
    fn ready(&mut self) -> Answer<'_, std::result::Result<(), String>> {
        Box::pin(async {
            match &mut self.sink {
                Some(sink) => sink.ready().await,
                None => Ok(()),
            }
        })
    }

    fn publish<'a>(&'a mut self, rows: &'a [&'a Row], until: Instant) -> Answer<'a, Vec<Outcome>> {
        Box::pin(async move {
            let outcomes = match &mut self.sink {
                Some(sink) => sink.publish(rows, until).await,
                None => vec![Outcome::Published; rows.len()],
            };
            let now = Instant::now();
            for outcome in &outcomes {
                match outcome {
                    Outcome::Published => self.told.try_send(now).expect("there is room for all"),
                    other => println!("{other:?}"),
                }
            }
            outcomes
        })
    }
}

fn sink(url: &str) -> Result<Box<dyn Sink>> {
    if url.starts_with("amqp") {
        let settings = BrokerSettings { exchange: String::new(), ..BrokerSettings::default() };
        return Ok(Box::new(BrokerSink::new(url.into(), settings)));
    }
    let named = Named { url, username: None, password: None, tls: &Tls::default() };
    Ok(Box::new(StreamsSink::new(RedisServer::new(Vault::ANY, &named)?, StreamsSettings::default())))
}

/// The application.
enum Shop {
    Postgres(sqlx::PgPool),
    MySql(sqlx::MySqlPool),
    Sqlite(sqlx::SqlitePool),
}

impl Shop {
    async fn open(url: &str, dialect: Dialect) -> Result<Self> {
        Ok(match dialect {
            Dialect::Postgres => Self::Postgres(sqlx::PgPool::connect(url).await?),
            Dialect::MySql => Self::MySql(sqlx::MySqlPool::connect(url).await?),
            Dialect::Sqlite => Self::Sqlite(sqlx::SqlitePool::connect(url).await?),
        })
    }

    async fn drop_table(&self) -> Result<()> {
        let sql = AssertSqlSafe(format!("DROP TABLE IF EXISTS {TABLE}"));
        match self {
            Self::Postgres(pool) => sqlx::raw_sql(sql).execute(pool).await.map(|_| ())?,
            Self::MySql(pool) => sqlx::raw_sql(sql).execute(pool).await.map(|_| ())?,
            Self::Sqlite(pool) => sqlx::raw_sql(sql).execute(pool).await.map(|_| ())?,
        }
        Ok(())
    }

    async fn write(&self, events: &[Event]) -> Result<()> {
        let outbox = Outbox::new().table(TABLE);
        match self {
            Self::Postgres(pool) => {
                let mut transaction = pool.begin().await?;
                outbox.write_all(&mut *transaction, events).await?;
                transaction.commit().await?;
            }
            Self::MySql(pool) => {
                let mut transaction = pool.begin().await?;
                outbox.write_all(&mut *transaction, events).await?;
                transaction.commit().await?;
            }
            Self::Sqlite(pool) => {
                let mut transaction = pool.begin().await?;
                outbox.write_all(&mut *transaction, events).await?;
                transaction.commit().await?;
            }
        }
        Ok(())
    }
}

fn event() -> Event {
    let body = format!(r#"{{"customer": 7, "tier": "gold", "note": "{}"}}"#, "x".repeat(200));
    Event::new("customer", "CustomerUpdated", body).metadata(r#"{"trace": "none"}"#).priority(-50)
}

#[tokio::main]
async fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [url, rows, rest @ ..] = &words[..] else {
        return Err("say DATABASE-URL ROWS [SINK-URL]".into());
    };
    let rows: usize = rows.parse()?;
    let table = Table { name: TABLE.to_owned(), ..Table::default() };
    let address = Address::new(url, None, &Tls::default())?;
    let mut database = Database::connect(&address, table.clone(), 500, false).await?;
    let shop = Shop::open(url, database.dialect()).await?;
    shop.drop_table().await?;
    database = Database::connect(&address, table, 500, false).await?;
    database.init(true).await?;
    let mut left = rows;
    while left > 0 {
        let some = left.min(10_000);
        shop.write(&vec![(); some].into_iter().map(|()| event()).collect::<Vec<_>>()).await?;
        left -= some;
    }
    println!("{rows} rows are written");

    let (told, mut heard) = mpsc::channel(rows.max(SINGLE));
    let telling = Telling { sink: rest.first().map(|url| sink(url)).transpose()?, told };
    let relay = Relay::new(database, Box::new(telling), Settings::default());
    let watch = relay.watch();
    let (stop, stopped) = oneshot::channel::<()>();
    let began = Instant::now();
    let running = tokio::spawn(relay.run(async move { stopped.await.unwrap_or_default() }));
    let mut last = began;
    for _ in 0..rows {
        last = heard.recv().await.ok_or("the relay ended")?;
    }
    let took = last - began;
    #[expect(clippy::cast_precision_loss, reason = "for people")]
    let rate = rows as f64 / took.as_secs_f64();
    let claims = watch.seen().claims;
    let count: u64 = claims.counts.iter().sum();
    #[expect(clippy::cast_precision_loss, reason = "for people")]
    let claim_ms = claims.seconds * 1_000.0 / count as f64;
    println!("{rows} rows in {took:.2?}: {rate:.0} rows/s; {count} claims, {claim_ms:.2} ms each");

    let mut waits = Vec::new();
    for _ in 0..SINGLE {
        shop.write(&[event()]).await?;
        let committed = Instant::now();
        let published = heard.recv().await.ok_or("the relay ended")?;
        waits.push(published.saturating_duration_since(committed));
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    waits.sort();
    println!(
        "one by one, commit to sink: p50 {:.2?}, p99 {:.2?}",
        waits[SINGLE / 2],
        waits[SINGLE * 99 / 100]
    );
    stop.send(()).map_err(|()| "the relay ended")?;
    running.await?;
    shop.drop_table().await
}
