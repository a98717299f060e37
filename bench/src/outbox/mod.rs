//! The outbox of an application, relayed while a migration floods it: how late orders are handled, with priority lanes and without; how many rows a second are relayed; how soon
//! after its commit an event is handled when there is nothing else.
//!
//! PostgreSQL, the relay, the broker or Redis, and the application with its handlers share the machine.

mod app;
mod chart;
mod handlers;
mod servers;

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use tokio::sync::Notify;

use crate::Plan;
use crate::report::{Cell, Grid, Line};
use crate::spread::Spread;
use app::App;
use handlers::Handlers;
use servers::{PASSWORD, Postgres, Relay, To};

/// Orders that come meanwhile.
const ORDERS_A_SECOND: u32 = 50;
/// After the last event of the migration is handled orders go on for so long.
const AFTERWARDS: Duration = Duration::from_secs(2);
/// Rows of a claim while orders are timed: an urgent row waits for the claims that are under way.
const STORY_BATCH: usize = 100;
/// Rows of a claim where only how many are relayed counts.
const RATE_BATCH: usize = 500;
/// Orders that are timed when there is nothing else.
const IDLE_ORDERS: usize = 200;

/// A way to run the story.
#[derive(Clone, Copy)]
struct Case {
    to: To,
    lanes: bool,
    /// Relay and sink are each killed twice.
    kills: bool,
}

impl Case {
    fn name(self) -> &'static str {
        match (self.to, self.lanes, self.kills) {
            (To::Broker, true, false) => "overtake, lanes",
            (To::Broker, true, true) => "overtake, lanes, killed",
            (To::Broker, false, _) => "overtake, one lane",
            (To::Redis, true, false) => "redis, lanes",
            (To::Redis, true, true) => "redis, lanes, killed",
            (To::Redis, false, _) => "redis, one lane",
        }
    }
}

const CASES: [Case; 6] = [
    Case { to: To::Broker, lanes: true, kills: false },
    Case { to: To::Broker, lanes: false, kills: false },
    Case { to: To::Redis, lanes: true, kills: false },
    Case { to: To::Redis, lanes: false, kills: false },
    Case { to: To::Broker, lanes: true, kills: true },
    Case { to: To::Redis, lanes: true, kills: true },
];

/// An order: when it was committed, from the beginning of the story, and how long until it was handled, seconds.
#[derive(Clone, Copy)]
struct Order {
    at: f64,
    took: f64,
}

/// What came of the story.
struct Told {
    case: Case,
    orders: Vec<Order>,
    /// From the first event of the migration until the last of them was handled, seconds.
    migration: f64,
    events: usize,
    repeats: u64,
    lost: usize,
    relay_busy: f64,
}

pub(crate) fn run(plan: Plan) -> Grid {
    let customers = if plan.quick { 20_000 } else { 500_000 };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.expect("a runtime");
    let columns = ["count", "median", "99 %", "longest"].map(str::to_owned).to_vec();
    let mut grid = Grid { columns, ..Grid::default() };
    let mut all = Vec::new();
    for case in CASES.into_iter().filter(|case| plan.wants(case.name())) {
        match runtime.block_on(story(case, customers)) {
            Ok(told) => {
                grid.notes.push(note(&told));
                all.push(told);
            }
            Err(error) => grid.notes.push(format!("{}: {error:#}", case.name())),
        }
    }
    for told in &all {
        grid.lines.push(line(
            "orders through the migration",
            told.case.name(),
            !told.case.lanes,
            &told.orders,
        ));
    }
    for to in [To::Broker, To::Redis] {
        if plan.wants("idle") {
            match runtime.block_on(idle(to)) {
                Ok(orders) => {
                    grid.lines.push(line("orders when there is nothing else", to.name(), false, &orders))
                }
                Err(error) => grid.notes.push(format!("idle, {}: {error:#}", to.name())),
            }
        }
        if plan.wants("rate") {
            match runtime.block_on(rate(to, customers)) {
                Ok(rate) => grid.notes.push(format!(
                    "rate: {} rows a second relayed from PostgreSQL to {}, batches of 500, nobody consuming",
                    rate as u64,
                    to.name()
                )),
                Err(error) => grid.notes.push(format!("rate, {}: {error:#}", to.name())),
            }
        }
    }
    if !all.is_empty() {
        match chart::write(&all) {
            Ok(path) => grid.notes.push(format!("the chart is in {}", path.display())),
            Err(error) => grid.notes.push(format!("no chart: {error}")),
        }
    }
    grid
}

fn note(told: &Told) -> String {
    format!(
        "{}: {} events of the migration and {} orders in {:.1} s ({:.0} a second); {} handled again, {} lost; the relay was {:.0} % of a core",
        told.case.name(),
        told.events - told.orders.len(),
        told.orders.len(),
        told.migration,
        told.events as f64 / told.migration,
        told.repeats,
        told.lost,
        told.relay_busy / told.migration * 100.0,
    )
}

fn line(what: &'static str, who: &'static str, is_reference: bool, orders: &[Order]) -> Line {
    let mut spread = Spread::of(orders.iter().map(|order| (order.took * 1e9) as u64).collect());
    let parts = [0.5, 0.99, 1.0].map(|part| spread.percentile_ms(part));
    let cells = [Some(orders.len() as f64)].into_iter().chain(parts);
    let cells = cells.map(|value| value.map(|value| Cell { value, times_better: None })).collect();
    Line { what, unit: "ms from commit to handler", who, is_reference, cells }
}

/// The relay's file.
fn config(postgres: &Postgres, handlers: &Handlers, case: Case, batch: usize) -> String {
    let (database, url) = (postgres.url(), handlers.sink_url());
    let sink = match case.to {
        To::Broker => format!("[sink.overtake]\nurl = \"{url}\"\npassword = {{ env = \"{PASSWORD}\" }}\n"),
        To::Redis => format!("[sink.redis]\nurl = \"{url}\"\n[lanes]\nenabled = {}\n", case.lanes),
    };
    format!("[database]\nurl = \"{database}\"\n[relay]\nbatch = {batch}\n{sink}")
}

async fn story(case: Case, customers: usize) -> Result<Told> {
    let postgres = Postgres::start()?;
    let app = Arc::new(App::start(&postgres.url(), customers).await?);
    let mut handlers = Handlers::start(case, &app.ledger).await?;
    let mut relay = Relay::start(&config(&postgres, &handlers, case, STORY_BATCH))?;
    let (began, enough) = (Instant::now(), Arc::new(Notify::new()));
    let orders = tokio::spawn({
        let (app, enough) = (Arc::clone(&app), Arc::clone(&enough));
        async move { app.take_orders(ORDERS_A_SECOND, &enough).await }
    });
    let migrating = tokio::spawn({
        let app = Arc::clone(&app);
        async move { app.migrate(customers).await }
    });
    let mut busy = 0;
    if case.kills {
        // Each twice, while most of the migration is on its way.
        for (part, is_relay) in [(0.15, true), (0.3, false), (0.45, true), (0.6, false)] {
            until(&app, (customers as f64 * part) as usize).await;
            if is_relay {
                busy += relay.busy_ns()?;
                relay.kill()?;
            } else {
                handlers.kill_sink()?;
            }
        }
    }
    migrating.await??;
    until(&app, customers).await;
    let migration = began.elapsed().as_secs_f64();
    tokio::time::sleep(AFTERWARDS).await;
    enough.notify_one();
    orders.await??;
    let all = app.ledger.counts().0;
    until(&app, all).await;
    busy += relay.busy_ns()?;
    let told = app.ledger.told();
    let orders = told.iter().filter(|told| told.is_order).filter_map(|told| {
        let took = told.handled?.saturating_duration_since(told.committed).as_secs_f64();
        Some(Order { at: told.committed.saturating_duration_since(began).as_secs_f64(), took })
    });
    Ok(Told {
        case,
        orders: orders.collect(),
        migration,
        events: told.len(),
        repeats: told.iter().map(|told| u64::from(told.times.saturating_sub(1))).sum(),
        lost: told.iter().filter(|told| told.times == 0).count(),
        relay_busy: busy as f64 / 1e9,
    })
}

/// Waits until so many events were handled, or nothing has come for a while: what is missing then is lost.
async fn until(app: &App, enough: usize) {
    let (mut seen, mut since) = (0, Instant::now());
    loop {
        let handled = app.ledger.counts().1;
        if handled >= enough || since.elapsed() > Duration::from_secs(60) {
            return;
        }
        if handled > seen {
            (seen, since) = (handled, Instant::now());
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Orders one by one, each once the one before is handled.
async fn idle(to: To) -> Result<Vec<Order>> {
    let case = Case { to, lanes: true, kills: false };
    let postgres = Postgres::start()?;
    let app = App::start(&postgres.url(), 1).await?;
    let handlers = Handlers::start(case, &app.ledger).await?;
    let relay = Relay::start(&config(&postgres, &handlers, case, STORY_BATCH))?;
    for number in 1..=IDLE_ORDERS {
        app.order(number).await?;
        while app.ledger.counts().1 < number {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        // Longer than the relay looks again by itself at first.
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    drop(relay);
    let took =
        |told: &app::Told| told.handled.map(|at| at.saturating_duration_since(told.committed).as_secs_f64());
    let orders = app.ledger.told().iter().filter_map(took).map(|took| Order { at: 0.0, took }).collect();
    Ok(orders)
}

/// Rows a second, of a table that was full before the relay began.
async fn rate(to: To, rows: usize) -> Result<f64> {
    let case = Case { to, lanes: true, kills: false };
    let postgres = Postgres::start()?;
    let app = App::start(&postgres.url(), rows).await?;
    let mut handlers = Handlers::start(case, &app.ledger).await?;
    handlers.rest().await;
    let config = config(&postgres, &handlers, case, RATE_BATCH);
    // The table is there once a relay was; what is written while none runs waits.
    drop(Relay::start(&config)?);
    app.migrate(rows).await?;
    let relay = Relay::start(&config)?;
    let began = Instant::now();
    while app.unpublished().await? > 0 {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let took = began.elapsed().as_secs_f64();
    drop(relay);
    Ok(rows as f64 / took)
}
