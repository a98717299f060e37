//! What the engine reaches on a server beside a minimal client that calls the same functions: publishes, leases and acknowledgements in batches, and single leases.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use overtake_engine::{Content, Engine, LeaseRequest, NewMessage, Target};
use overtake_lane::{LeaseId, Original, Outcome, Priority, Receipt, Seq, Settings, State};
use overtake_valkey::engine::ClusterEngine;
use overtake_valkey::functions::{Admission, Admit, Asked, Call, Choice, How, Leasing, Settle, Shown, Told};
use redis::Value;
use redis::aio::MultiplexedConnection;
use tokio::sync::Barrier;
use tokio::task::JoinSet;

use crate::Plan;
use crate::report::Row;
use crate::shards::{Durability, Shards};

/// Messages of a batch.
const BATCH: usize = 100;
/// Bytes of a message.
const BODY_LEN: usize = 256;
/// Callers on one primary, each with a queue of its own.
const CALLERS: u32 = 4;
/// Callers where what several primaries take is compared with what one does.
const CALLERS_OF_MORE: u32 = 12;
/// So many primaries.
const MORE: usize = 3;
/// What each primary then has of a core at most, in hundredths: three of them leave more than half of two cores to whoever asks.
const PART_OF_CORE: u32 = 25;
/// How often both are measured, one after the other.
const ROUNDS: usize = 5;
/// How long a lease lasts, ms.
const TERM_MS: u64 = 600_000;

/// How long each of the three took, for all callers, and the waits of single leases.
#[derive(Default)]
struct Figures {
    publish: Vec<Duration>,
    lease: Vec<Duration>,
    ack: Vec<Duration>,
    single: Vec<Duration>,
}

/// Calls functions over a connection of its own, one at a time.
struct Bare {
    connection: MultiplexedConnection,
    base: String,
    calls: u64,
}

impl Bare {
    async fn ask<A: Asked>(&mut self, ask: &A) -> Result<A::Answer> {
        self.calls += 1;
        let call = Call { of: "", caller: "bare", number: Some(64 + self.calls) };
        let mut command = redis::cmd("FCALL");
        command.arg(A::FUNCTION).arg(1).arg(&self.base);
        for argument in ask.all_arguments(call) {
            command.arg(argument);
        }
        let value: Value = command.query_async(&mut self.connection).await?;
        match Told::read(&value, |what| ask.read(what)) {
            Ok(Told::Done { what, .. }) => Ok(what),
            _ => bail!("{} is not done", A::FUNCTION),
        }
    }
}

fn queue(number: u32) -> String {
    format!("rates-{number}")
}

fn admit() -> Admit {
    let content = Content { body: vec![b'x'; BODY_LEN].into(), ..Content::default() };
    let bytes = content.size() as u32;
    let mut written = Vec::new();
    content.encode(&mut written);
    let message = Admission {
        priority: Priority(4),
        original: Original::Number(4),
        id: None,
        key: None,
        key_weight: None,
        ttl_ms: None,
        base_ttl_ms: None,
        delay_ms: 0,
        bytes,
        content: written.into(),
        origin: None,
        at: None,
        arrival: None,
    };
    Admit { messages: vec![message; BATCH], tells: false }
}

fn leasing(max: usize) -> Leasing {
    let (choice, granted) = (Choice::default(), Vec::new());
    Leasing { max: max as u32, max_bytes: 1 << 30, term_ms: TERM_MS, holder: None, choice, granted }
}

fn lease_of(shown: &Shown) -> (Seq, LeaseId) {
    let message = &shown.stored.message;
    let State::Leased { lease, .. } = message.state else { unreachable!("it was leased") };
    (message.seq, lease)
}

async fn bare(shards: Arc<Shards>, place: u32, batches: usize, together: Arc<Barrier>) -> Result<Figures> {
    let base = format!("{{{place}:0}}");
    let mut bare = Bare { connection: shards.of(&base).await?, base, calls: 0 };
    let mut figures = Figures::default();
    let admit = admit();
    together.wait().await;
    let begun = Instant::now();
    for _ in 0..batches {
        bare.ask(&admit).await?;
    }
    figures.publish.push(begun.elapsed());
    let mut leases = Vec::new();
    together.wait().await;
    let begun = Instant::now();
    for _ in 0..batches {
        leases.push(bare.ask(&leasing(BATCH)).await?.iter().map(lease_of).collect::<Vec<_>>());
    }
    figures.lease.push(begun.elapsed());
    together.wait().await;
    let begun = Instant::now();
    for leases in leases {
        bare.ask(&Settle { how: How::By(Outcome::Ack), leases }).await?;
    }
    figures.ack.push(begun.elapsed());
    bare.ask(&admit).await?;
    together.wait().await;
    for _ in 0..BATCH {
        let begun = Instant::now();
        let leased = bare.ask(&leasing(1)).await?;
        figures.single.push(begun.elapsed());
        let leases = leased.iter().map(lease_of).collect();
        bare.ask(&Settle { how: How::By(Outcome::Ack), leases }).await?;
    }
    Ok(figures)
}

async fn engine(
    engine: Arc<ClusterEngine>,
    number: u32,
    batches: usize,
    together: Arc<Barrier>,
) -> Result<Figures> {
    let name: Arc<str> = queue(number).into();
    let content = Content { body: vec![b'x'; BODY_LEN].into(), ..Content::default() };
    let to = Target::Queue(Arc::clone(&name));
    let message = NewMessage { to, content, ..NewMessage::default() };
    let batch = vec![message; BATCH];
    let ask = |max: usize| LeaseRequest::new(Arc::clone(&name), max as u32);
    let mut figures = Figures::default();
    together.wait().await;
    let begun = Instant::now();
    for _ in 0..batches {
        engine.publish(batch.clone()).await?;
    }
    figures.publish.push(begun.elapsed());
    let mut receipts: Vec<Vec<Receipt>> = Vec::new();
    together.wait().await;
    let begun = Instant::now();
    for _ in 0..batches {
        receipts.push(engine.lease(ask(BATCH)).await?.iter().map(|leased| leased.receipt).collect());
    }
    figures.lease.push(begun.elapsed());
    together.wait().await;
    let begun = Instant::now();
    for receipts in receipts {
        engine.settle(receipts, Outcome::Ack).await?;
    }
    figures.ack.push(begun.elapsed());
    engine.publish(batch).await?;
    together.wait().await;
    for _ in 0..BATCH {
        let begun = Instant::now();
        let leased = engine.lease(ask(1)).await?;
        figures.single.push(begun.elapsed());
        engine.settle(leased.iter().map(|one| one.receipt).collect(), Outcome::Ack).await?;
    }
    Ok(figures)
}

/// Of all callers at once.
async fn all(callers: Vec<impl Future<Output = Result<Figures>> + Send + 'static>) -> Result<Figures> {
    let mut running: JoinSet<_> = callers.into_iter().collect();
    let mut sum = Figures::default();
    while let Some(figures) = running.join_next().await {
        let Figures { publish, lease, ack, single } = figures??;
        sum.publish.extend(publish);
        sum.lease.extend(lease);
        sum.ack.extend(ack);
        sum.single.extend(single);
    }
    Ok(sum)
}

/// Messages a second, of so many callers with so many batches.
fn rate(took: &[Duration], batches: usize) -> f64 {
    let longest = took.iter().max().copied().unwrap_or_default();
    (took.len() * batches * BATCH) as f64 / longest.as_secs_f64()
}

fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}

type Of = fn(&Figures) -> &Vec<Duration>;
const KINDS: [(&str, Of); 3] =
    [("publish", |all| &all.publish), ("lease", |all| &all.lease), ("acknowledge", |all| &all.ack)];

/// Of the minimal client and the engine, messages a second.
fn rates(rounds: &[(Figures, Figures)], of: Of, batches: usize) -> (f64, f64) {
    let of_all = |which: fn(&(Figures, Figures)) -> &Figures| {
        median(rounds.iter().map(|round| rate(of(which(round)), batches)).collect())
    };
    (of_all(|round| &round.0), of_all(|round| &round.1))
}

pub(crate) fn run(plan: Plan) -> Vec<Row> {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let batches = plan.times(if plan.quick { 10 } else { 100 });
    let mut rows = Vec::new();
    let one = runtime.block_on(alone(batches)).unwrap_or_else(|why| panic!("{why:#}"));
    for (what, of) in KINDS {
        let (bare, engine) = rates(&one, of, batches);
        rows.push(Row::of_rate(format!("{what}: a minimal client"), "messages", bare).reference());
        rows.push(Row::of_rate(format!("{what}: the engine"), "messages", engine).beside(engine / bare));
    }
    for (what, part) in [("median", 0.5), ("99 %", 0.99)] {
        let single = |of: fn(&(Figures, Figures)) -> &Figures| {
            let mut all: Vec<_> = one.iter().flat_map(|round| of(round).single.clone()).collect();
            all.sort_unstable();
            all[((all.len() - 1) as f64 * part) as usize]
        };
        let (bare, engine) = (single(|round| &round.0), single(|round| &round.1));
        let row = |who, took| Row::new(format!("a single lease, {what}: {who}"), "leases", 1, took);
        rows.push(row("a minimal client", bare).reference());
        rows.push(row("the engine", engine));
    }
    let batches = batches.div_ceil(3);
    let [one, more] = runtime.block_on(in_turn(batches)).unwrap_or_else(|why| panic!("{why:#}"));
    for (what, of) in KINDS {
        let (of_one, of_more) = (rates(&one, of, batches), rates(&more, of, batches));
        let row =
            |who, rate| Row::of_rate(format!("{what}, one and three primaries: {who}"), "messages", rate);
        rows.push(row("a minimal client on one", of_one.0).reference());
        rows.push(row("a minimal client on three", of_more.0).beside(of_more.0 / of_one.0));
        rows.push(row("the engine on one", of_one.1).reference());
        rows.push(row("the engine on three", of_more.1).beside(of_more.1 / of_one.1));
    }
    rows
}

/// Primaries, a broker on them, and a queue for each caller.
struct Setting {
    shards: Arc<Shards>,
    broker: Arc<ClusterEngine>,
    /// Each with the number by which the functions know it.
    queues: Vec<(u32, u32)>,
}

impl Setting {
    async fn start(shards: Shards, callers: u32) -> Result<Self> {
        let broker = shards.engine().await?;
        // As many queues on each primary, else the fullest one alone would be measured.
        let (mut queues, mut left) = (Vec::new(), vec![callers as usize / shards.count(); shards.count()]);
        for number in 0.. {
            if left.iter().all(|left| *left == 0) {
                break;
            }
            broker.declare_queue(&queue(number), Settings::default()).await?;
            let place = broker.queue(&queue(number)).await?.queue.0;
            let left = &mut left[shards.owner(&format!("{{{place}:0}}"))];
            if *left > 0 {
                *left -= 1;
                queues.push((number, place));
            }
        }
        Ok(Self { shards: Arc::new(shards), broker: Arc::new(broker), queues })
    }

    /// Both, one after the other.
    async fn round(&self, batches: usize) -> Result<(Figures, Figures)> {
        // Who is done with one kind waits until all are, or what is quick would be counted as time of what is not.
        let together = Arc::new(Barrier::new(self.queues.len()));
        let bares = self
            .queues
            .iter()
            .map(|(_, place)| bare(Arc::clone(&self.shards), *place, batches, Arc::clone(&together)));
        let bare = all(bares.collect()).await?;
        let engines = self
            .queues
            .iter()
            .map(|(number, _)| engine(Arc::clone(&self.broker), *number, batches, Arc::clone(&together)));
        Ok((bare, all(engines.collect()).await?))
    }
}

/// Rounds of a single primary.
async fn alone(batches: usize) -> Result<Vec<(Figures, Figures)>> {
    let setting = Setting::start(Shards::start(1, Durability::Always).await?, CALLERS).await?;
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        rounds.push(setting.round(batches).await?);
    }
    setting.broker.close().await;
    Ok(rounds)
}

/// Rounds of one primary and of several, in turn: whatever else the machine does is as much beside the ones as beside the others. Each has a part of a core if it can be so: then one that is slower than it
/// could be is not because others have the cores.
async fn in_turn(batches: usize) -> Result<[Vec<(Figures, Figures)>; 2]> {
    let mut settings = Vec::new();
    for count in [1, MORE] {
        let mut shards = Shards::start(count, Durability::Always).await?;
        if let Err(why) = shards.limit(PART_OF_CORE) {
            eprintln!("servers: primaries and clients have all cores together: {why:#}");
        }
        settings.push(Setting::start(shards, CALLERS_OF_MORE).await?);
    }
    let mut found = [Vec::new(), Vec::new()];
    for _ in 0..ROUNDS {
        for (setting, rounds) in settings.iter().zip(&mut found) {
            rounds.push(setting.round(batches).await?);
        }
    }
    for setting in settings {
        setting.broker.close().await;
    }
    Ok(found)
}
