//! What operations on a deep queue cost its server: how many calls each takes and how long they are, and how long publishes to another queue on the same server take meanwhile.
//!
//! The times of calls are the server's own (its `SLOWLOG`, of 50 µs and more); those of publishes are seen by the broker.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use overtake_engine::{
    BROWSE_LOOKS_MAX, Browse, Change, Content, Engine, Filter, NewMessage, PageCursor, Select, Target,
};
use overtake_lane::{Band, BrowseOrder, Given, Order, Settings};
use overtake_valkey::engine::ClusterEngine;
use redis::Value;
use redis::aio::MultiplexedConnection;
use tokio::time::{MissedTickBehavior, interval};

use crate::Plan;
use crate::report::{Cell, Grid, Line};
use crate::shards::{Durability, Shards};
use crate::spread::Spread;

const DEEP: &str = "deep";
/// Messages that wait in it, and keys that they have.
const MESSAGES: usize = 1_000_000;
const KEYS: usize = MESSAGES / 10;
const BODY_LEN: usize = 256;
/// Messages of a publish that fills the queue.
const BATCH: usize = 1_000;
/// Publishes while nothing else is done.
const QUIET: usize = 2_000;
/// Between two publishes, unless the one before takes longer.
const TICK: Duration = Duration::from_millis(2);
/// Messages of a page.
const PAGE: usize = 100;
/// Calls that the server remembers.
const CALLS_MAX: usize = 1_000_000;
/// It remembers those that take as long as this, µs: a call of a function that touches messages does, what functions do there one by one does not.
const CALL_US: usize = 50;
/// Between two looks at whether a server has gone on to the end.
const LOOK: Duration = Duration::from_millis(20);
/// Fields of a partition on the server that are there while messages or keys are on their way to new lanes and limits.
const GOING_ON: [&str; 2] = ["left", "rules"];

const COLUMNS: [&str; 8] =
    ["calls", "median", "99 %", "longest", "in all", "publish, median", "publish, 99 %", "publish, longest"];

/// A server with a deep queue, and a broker on it.
struct Setting {
    broker: Arc<ClusterEngine>,
    server: MultiplexedConnection,
    /// The key by which functions know the queue.
    base: String,
    messages: usize,
    lines: Vec<Line>,
    _shards: Shards,
}

pub(crate) fn run(plan: Plan) -> Grid {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let messages = if plan.quick { MESSAGES / 10 } else { MESSAGES };
    let lines = runtime.block_on(measure(plan, messages)).unwrap_or_else(|why| panic!("{why:#}"));
    Grid { columns: COLUMNS.map(ToOwned::to_owned).into(), lines, ..Grid::default() }
}

fn message(queue: &str, number: usize) -> NewMessage {
    NewMessage {
        to: Target::Queue(queue.into()),
        priority: Given::Number((number % 10) as i64),
        key: Some(format!("k{}", number / 10 % KEYS)),
        content: Content { body: vec![b'x'; BODY_LEN].into(), ..Content::default() },
        ..NewMessage::default()
    }
}

/// A filter that takes none.
fn none() -> Filter {
    Filter { key: Some("none".to_owned()), ..Filter::default() }
}

fn page(filter: Filter, cursor: Option<PageCursor>) -> Browse {
    let looks = Some(BROWSE_LOOKS_MAX);
    Browse { filter, order: BrowseOrder::Dispatch, limit: PAGE, cursor, looks, ..Browse::default() }
}

fn two_lanes() -> Settings {
    let band = |name: &str, from: Option<i64>| Band { name: name.to_owned(), from: from.map(Given::Number) };
    Settings { order: Order::Lanes(vec![band("high", Some(5)), band("low", None)]), ..Settings::default() }
}

async fn measure(plan: Plan, messages: usize) -> Result<Vec<Line>> {
    let mut setting = Setting::start(messages).await?;
    setting.quiet().await?;
    for (what, work) in OPERATIONS.into_iter().filter(|(what, _)| plan.wants(what)) {
        setting.beside(what, work).await?;
    }
    setting.broker.close().await;
    Ok(setting.lines)
}

/// What an operation is done with.
#[derive(Clone)]
struct Hands {
    broker: Arc<ClusterEngine>,
    server: MultiplexedConnection,
    base: String,
}

type Work = fn(Hands) -> std::pin::Pin<Box<dyn Future<Output = Result<()>> + Send>>;

/// In this order, since each finds what the ones before left.
const OPERATIONS: [(&str, Work); 10] = [
    ("a page of 100, the first", |hands| Box::pin(hands.page(None))),
    ("a page of 100, after nine tenths", |hands| Box::pin(hands.page_far_back())),
    ("a page of a key that none has, all of it", |hands| Box::pin(hands.all_by_key())),
    ("how many have a key", |hands| Box::pin(hands.total())),
    ("a message by its id", |hands| Box::pin(hands.one())),
    ("a removal by key that takes none", |hands| Box::pin(hands.remove_none())),
    ("two lanes in place of ten", |hands| Box::pin(hands.change(two_lanes()))),
    ("the first group_limit", |hands| Box::pin(hands.change(Settings { group_limit: 10, ..two_lanes() }))),
    ("another group_limit", |hands| Box::pin(hands.change(Settings { group_limit: 5, ..two_lanes() }))),
    ("a purge", |hands| Box::pin(hands.purge())),
];

impl Hands {
    async fn page(self, cursor: Option<PageCursor>) -> Result<()> {
        let page = self.broker.browse(DEEP, page(Filter::default(), cursor)).await?;
        ensure!(page.messages.len() == PAGE, "{} messages", page.messages.len());
        Ok(())
    }

    /// A page from where nine tenths of the messages were looked at. Only the page itself is counted.
    async fn page_far_back(mut self) -> Result<()> {
        let (mut cursor, mut looked_at) = (None, 0);
        let in_queue = loop {
            let passed = self.broker.browse(DEEP, page(none(), cursor)).await?;
            looked_at += passed.looked_at;
            cursor = passed.next;
            if cursor.is_none() || looked_at >= passed.in_queue / 10 * 9 {
                break passed.in_queue;
            }
        };
        // What ends with the queue has no page behind it.
        let cursor = cursor.filter(|_| in_queue > BROWSE_LOOKS_MAX as u64);
        forget_calls(&mut self.server).await?;
        self.page(cursor).await
    }

    /// Pages until the end of the queue.
    async fn all_by_key(self) -> Result<()> {
        let mut browse = page(none(), None);
        loop {
            browse.cursor = self.broker.browse(DEEP, browse.clone()).await?.next;
            if browse.cursor.is_none() {
                return Ok(());
            }
        }
    }

    async fn total(self) -> Result<()> {
        let browse =
            Browse { with_total: true, order: BrowseOrder::Newest, looks: None, ..page(none(), None) };
        let page = self.broker.browse(DEEP, Browse { limit: 1, ..browse }).await?;
        ensure!(page.total == Some(0), "{:?}", page.total);
        Ok(())
    }

    async fn one(self) -> Result<()> {
        let newest = Browse { order: BrowseOrder::Newest, limit: 1, ..page(Filter::default(), None) };
        let page = self.broker.browse(DEEP, newest).await?;
        let id = &page.messages.first().context("there is one")?.message.id;
        forget_calls(&mut self.server.clone()).await?;
        self.broker.message(DEEP, id).await?;
        Ok(())
    }

    async fn remove_none(self) -> Result<()> {
        let removed = self.broker.change(DEEP, Select::Matching(none()), Change::Remove).await?;
        ensure!(removed == 0, "{removed} messages");
        Ok(())
    }

    /// Gives the queue these settings, until they hold for all that is there.
    async fn change(mut self, settings: Settings) -> Result<()> {
        self.broker.declare_queue(DEEP, settings).await?;
        let key = format!("{}:c", self.base);
        loop {
            let going_on: Vec<Option<Vec<u8>>> =
                redis::cmd("HMGET").arg(&key).arg(&GOING_ON).query_async(&mut self.server).await?;
            if going_on.iter().all(Option::is_none) {
                return Ok(());
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    async fn purge(self) -> Result<()> {
        self.broker.purge(DEEP, None).await?;
        Ok(())
    }
}

impl Setting {
    async fn start(messages: usize) -> Result<Self> {
        let shards = Shards::start(1, Durability::EverySecond).await?;
        let broker = Arc::new(shards.engine().await?);
        for queue in [DEEP, "other"] {
            broker.declare_queue(queue, Settings::default()).await?;
        }
        let base = format!("{{{}:0}}", broker.queue(DEEP).await?.queue.0);
        for from in (0..messages).step_by(BATCH) {
            broker.publish((from..from + BATCH).map(|number| message(DEEP, number)).collect()).await?;
        }
        let mut server = shards.of(&base).await?;
        for (name, value) in [("slowlog-log-slower-than", CALL_US), ("slowlog-max-len", CALLS_MAX)] {
            let () = redis::cmd("CONFIG").arg("SET").arg(name).arg(value).query_async(&mut server).await?;
        }
        Ok(Self { broker, server, base, messages, lines: Vec::new(), _shards: shards })
    }

    /// Publishes while nothing else is done.
    async fn quiet(&mut self) -> Result<()> {
        let (mut publishes, mut ticks) = (Spread::default(), interval(TICK));
        for _ in 0..QUIET {
            ticks.tick().await;
            publish(&self.broker, &mut publishes).await?;
        }
        let cells = [&[None; 5][..], &spread_ms(&mut publishes)].concat();
        let line = self.line("nothing", cells);
        self.lines.push(Line { is_reference: true, ..line });
        Ok(())
    }

    /// Does an operation, and publishes to the other queue until it is done.
    async fn beside(&mut self, what: &'static str, work: Work) -> Result<()> {
        let hands =
            Hands { broker: Arc::clone(&self.broker), server: self.server.clone(), base: self.base.clone() };
        forget_calls(&mut self.server).await?;
        let work = tokio::spawn(async move {
            let start = Instant::now();
            work(hands).await.map(|()| start.elapsed())
        });
        let (mut publishes, mut ticks) = (Spread::default(), interval(TICK));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while !work.is_finished() {
            ticks.tick().await;
            publish(&self.broker, &mut publishes).await?;
        }
        let took = work.await?.context(what)?;
        eprintln!("calls: {what}: {:.1} s", took.as_secs_f64());
        let mut calls = calls(&mut self.server, &self.base).await.context(what)?;
        let in_all = calls.all().iter().sum::<u64>() as f64 / 1e6;
        let count = calls.len() as f64;
        let cell = |value| Some(Cell { value, times_better: None });
        let cells = [&[cell(count)], &spread_ms(&mut calls)[..], &[cell(in_all)], &spread_ms(&mut publishes)]
            .concat();
        let line = self.line(what, cells);
        self.lines.push(line);
        Ok(())
    }

    fn line(&self, who: &'static str, cells: Vec<Option<Cell>>) -> Line {
        let what =
            if self.messages == MESSAGES { "1,000,000 messages wait" } else { "100,000 messages wait" };
        Line { what, unit: "calls, and ms", who, is_reference: false, cells }
    }
}

/// Publishes a message to the other queue, and notes how long that took.
async fn publish(broker: &ClusterEngine, spread: &mut Spread) -> Result<()> {
    let start = Instant::now();
    broker.publish(vec![message("other", 0)]).await?;
    spread.saw(start.elapsed().as_nanos() as u64);
    Ok(())
}

/// The median, 99 % and the longest.
fn spread_ms(spread: &mut Spread) -> [Option<Cell>; 3] {
    [0.5, 0.99, 1.0].map(|part| {
        let value = spread.percentile_ms(part)?;
        Some(Cell { value, times_better: None })
    })
}

async fn forget_calls(server: &mut MultiplexedConnection) -> Result<()> {
    Ok(redis::cmd("SLOWLOG").arg("RESET").query_async(server).await?)
}

/// How long the calls took that the server has done for a queue since they were forgotten.
async fn calls(server: &mut MultiplexedConnection, base: &str) -> Result<Spread> {
    let entries: Vec<Vec<Value>> = redis::cmd("SLOWLOG").arg("GET").arg(-1).query_async(server).await?;
    ensure!(entries.len() < CALLS_MAX, "the server has forgotten calls");
    let mut calls = Spread::default();
    for entry in entries {
        let [_, _, Value::Int(us), Value::Array(arguments), ..] = &entry[..] else {
            anyhow::bail!("an entry of SLOWLOG is {entry:?}");
        };
        let text = |at: usize| match arguments.get(at) {
            Some(Value::BulkString(text)) => text.as_slice(),
            _ => &[],
        };
        if text(0).eq_ignore_ascii_case(b"FCALL") && text(3) == base.as_bytes() {
            calls.saw(us.unsigned_abs() * 1_000);
        }
    }
    Ok(calls)
}
