//! The application: five tables and an outbox. A migration writes an event for each customer, and meanwhile orders come.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Result;
use overtake_client::outbox::{Event, Outbox};
use overtake_client::{Priority, with_priority};
use sqlx::{PgPool, postgres::PgPoolOptions};

/// Customers of one transaction of the migration.
const AT_ONCE: usize = 100;
/// Of the application's tables; the outbox is the relay's to make.
const TABLES: &str = "\
CREATE TABLE customers (id bigint PRIMARY KEY, name text NOT NULL, loyalty_tier text);
CREATE TABLE addresses (id bigint PRIMARY KEY, customer_id bigint NOT NULL REFERENCES customers, city text NOT NULL);
CREATE TABLE orders (id bigint PRIMARY KEY, customer_id bigint NOT NULL REFERENCES customers, placed_at timestamptz NOT NULL DEFAULT now());
CREATE TABLE order_lines (order_id bigint NOT NULL REFERENCES orders, sku text NOT NULL, pieces int NOT NULL, PRIMARY KEY (order_id, sku));
CREATE TABLE payments (order_id bigint PRIMARY KEY REFERENCES orders, cents bigint NOT NULL)";

/// The category of all events.
pub(super) const CATEGORY: &str = "shop";

/// When each event was committed, by its id, and how often it was handled.
#[derive(Clone, Default)]
pub(super) struct Ledger(Arc<Mutex<HashMap<String, Told>>>);

#[derive(Clone, Copy)]
pub(super) struct Told {
    pub(super) committed: Instant,
    pub(super) handled: Option<Instant>,
    pub(super) times: u32,
    pub(super) is_order: bool,
}

impl Ledger {
    fn all(&self) -> MutexGuard<'_, HashMap<String, Told>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn commits(&self, ids: &[String], is_order: bool) {
        let committed = Instant::now();
        let mut all = self.all();
        for id in ids {
            let told = Told { committed, handled: None, times: 0, is_order };
            all.insert(id.clone(), told);
        }
    }

    /// An event was handled.
    pub(super) fn handled(&self, id: &str) {
        if let Some(told) = self.all().get_mut(id) {
            told.handled.get_or_insert_with(Instant::now);
            told.times += 1;
        }
    }

    pub(super) fn told(&self) -> Vec<Told> {
        self.all().values().copied().collect()
    }

    /// How many are there, and how many of them were handled.
    pub(super) fn counts(&self) -> (usize, usize) {
        let all = self.all();
        (all.len(), all.values().filter(|told| told.times > 0).count())
    }
}

pub(super) struct App {
    pool: PgPool,
    pub(super) ledger: Ledger,
}

impl App {
    /// With its tables, and so many customers.
    pub(super) async fn start(url: &str, customers: usize) -> Result<Self> {
        let pool = PgPoolOptions::new().max_connections(4).connect(url).await?;
        sqlx::raw_sql(TABLES).execute(&pool).await?;
        sqlx::query("INSERT INTO customers SELECT n, 'customer ' || n FROM generate_series(1, $1) n")
            .bind(i64::try_from(customers)?)
            .execute(&pool)
            .await?;
        sqlx::query("INSERT INTO addresses SELECT id, id, 'Ulm' FROM customers").execute(&pool).await?;
        sqlx::query("ANALYZE").execute(&pool).await?;
        Ok(Self { pool, ledger: Ledger::default() })
    }

    /// Sets a tier on each customer, under a low priority.
    pub(super) async fn migrate(&self, customers: usize) -> Result<()> {
        with_priority(Priority::LOW, async {
            for from in (0..customers).step_by(AT_ONCE) {
                let to = customers.min(from + AT_ONCE);
                self.migrate_some(from + 1, to).await?;
            }
            Ok(())
        })
        .await
    }

    async fn migrate_some(&self, from: usize, to: usize) -> Result<()> {
        let mut transaction = self.pool.begin().await?;
        sqlx::query("UPDATE customers SET loyalty_tier = 'silver' WHERE id BETWEEN $1 AND $2")
            .bind(i64::try_from(from)?)
            .bind(i64::try_from(to)?)
            .execute(&mut *transaction)
            .await?;
        let event = |id| {
            Event::new(CATEGORY, "CustomerUpdated", format!(r#"{{"customer":{id},"loyalty_tier":"silver"}}"#))
        };
        let events: Vec<Event> = (from..=to).map(event).collect();
        Outbox::new().write_all(&mut *transaction, &events).await?;
        let ids: Vec<String> = events.iter().map(|event| event.message_id().to_owned()).collect();
        // Before the commit: what it takes counts, and nothing is handled that the ledger does not know.
        self.ledger.commits(&ids, false);
        transaction.commit().await?;
        Ok(())
    }

    /// An order, with its lines and its payment.
    pub(super) async fn order(&self, number: usize) -> Result<()> {
        let id = i64::try_from(number)?;
        let mut transaction = self.pool.begin().await?;
        sqlx::query("INSERT INTO orders (id, customer_id) VALUES ($1, 1)")
            .bind(id)
            .execute(&mut *transaction)
            .await?;
        sqlx::query("INSERT INTO order_lines VALUES ($1, 'book', 1), ($1, 'pen', 3)")
            .bind(id)
            .execute(&mut *transaction)
            .await?;
        sqlx::query("INSERT INTO payments VALUES ($1, 4200)").bind(id).execute(&mut *transaction).await?;
        let event = Event::new(CATEGORY, "OrderPlaced", format!(r#"{{"order":{number}}}"#));
        let message_id = Outbox::new().write(&mut *transaction, event).await?;
        self.ledger.commits(&[message_id], true);
        transaction.commit().await?;
        Ok(())
    }

    /// Rows of the outbox that are not in the sink, as far as the table says.
    pub(super) async fn unpublished(&self) -> Result<i64> {
        let count = "SELECT count(*) FROM outbox WHERE status IN ('pending', 'processing', 'failed')";
        Ok(sqlx::query_scalar(count).fetch_one(&self.pool).await?)
    }

    /// So many orders a second, each at its time, until there is enough.
    pub(super) async fn take_orders(&self, a_second: u32, until: &tokio::sync::Notify) -> Result<usize> {
        let mut clock = tokio::time::interval(Duration::from_secs(1) / a_second);
        let mut number = 0;
        loop {
            tokio::select! {
                () = until.notified() => return Ok(number),
                _ = clock.tick() => {
                    number += 1;
                    self.order(number).await?;
                }
            }
        }
    }
}
