//! Many messages expire, come due or are evicted at once: how long publishes to another queue take meanwhile, beside publishes while nothing happens.

use std::time::{Duration, Instant};

use overtake_engine::{Content, Engine, LocalEngine, NewMessage, Target};
use overtake_lane::{
    ApplyTo, Binding, DeadLetterTo, Definition, Destination, ExchangeKind, ExchangeSettings, Order, Overflow,
    Pattern, Policy, PolicyKind, QueueView, Scheme, Settings,
};

use crate::Plan;
use crate::report::Row;
use crate::spread::Spread;

const DEEP: &str = "deep";
/// Messages that wait in it.
const MESSAGES: usize = 1_000_000;
const BODY_LEN: usize = 100;
/// Publishes while nothing happens.
const QUIET: usize = 2_000;
/// Queues that all dead-letter to one exchange, which all of them are bound to: a message that expires in each goes through them in every order.
const STORM_QUEUES: usize = 8;
const STORM: &str = "a storm of dead letters";
/// Until a message expires in one of them.
const STORM_MS: u64 = 50;
/// Messages that begin it.
const STORM_BEGINS: usize = 4;
/// Until the wave begins, longer than it takes to publish it.
const WAVE_MS: u64 = 30_000;

/// Something that comes over all messages of a queue.
struct Wave {
    what: &'static str,
    settings: fn() -> Settings,
    /// Makes a message one of the wave, which begins in so many ms.
    message: fn(NewMessage, u64) -> NewMessage,
    /// The policy that begins it, where it does not begin by itself.
    policy: Option<fn() -> Policy>,
    is_over: fn(&QueueView, u64) -> bool,
}

fn waves() -> Vec<Wave> {
    let as_it_is: fn(NewMessage, u64) -> NewMessage = |message, _| message;
    let is_empty: fn(&QueueView, u64) -> bool = |view, _| ready(view) == 0;
    let expiring: fn(NewMessage, u64) -> NewMessage =
        |message, ms| NewMessage { ttl_ms: Some(ms), ..message };
    vec![
        Wave {
            what: "all expire and are dropped",
            settings: || Settings { dead_letter: DeadLetterTo::Drop, ..Settings::default() },
            message: expiring,
            policy: None,
            is_over: is_empty,
        },
        Wave {
            what: "all expire and go to another queue",
            settings: || Settings {
                dead_letter: DeadLetterTo::Queue("dead".into()),
                dead_letter_expired: true,
                ..Settings::default()
            },
            message: expiring,
            policy: None,
            is_over: is_empty,
        },
        Wave {
            what: "the delay of all is over",
            settings: Settings::default,
            message: |message, ms| NewMessage { delay_ms: ms, ..message },
            policy: None,
            is_over: |view, messages| ready(view) == messages,
        },
        Wave {
            what: "a policy leaves ten of them",
            settings: Settings::default,
            message: as_it_is,
            policy: Some(|| {
                policy(|definition| {
                    definition.max_length = Some(10);
                    definition.overflow = Some(Overflow::Evict);
                })
            }),
            is_over: |view, _| ready(view) <= 10,
        },
        Wave {
            what: "a policy gives them other lanes",
            settings: || Settings { scheme: Scheme::Max(255), order: Order::Fifo, ..Settings::default() },
            message: as_it_is,
            policy: Some(|| policy(|definition| definition.max_priority = Some(9))),
            is_over: |view, _| view.lanes.len() == 10 && view.lanes.iter().all(|lane| lane.moving == 0),
        },
    ]
}

fn policy(say: impl FnOnce(&mut Definition)) -> Policy {
    let mut definition = Definition::default();
    say(&mut definition);
    let pattern = Pattern::new("^deep$").expect("a pattern");
    Policy { pattern, definition, priority: 0, apply_to: ApplyTo::Queues }
}

fn ready(view: &QueueView) -> u64 {
    view.lanes.iter().map(|lane| lane.ready).sum()
}

fn message(queue: &str, priority: usize) -> NewMessage {
    NewMessage {
        to: Target::Queue(queue.into()),
        priority: (priority as i64).into(),
        content: Content { body: vec![b'x'; BODY_LEN].into(), ..Content::default() },
        ..NewMessage::default()
    }
}

pub(crate) fn run(plan: Plan) -> Vec<Row> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    let messages = if plan.quick { MESSAGES / 10 } else { plan.times(MESSAGES) };
    let mut rows = Vec::new();
    for wave in waves().into_iter().filter(|wave| plan.wants(wave.what)) {
        rows.extend(runtime.block_on(rush(&wave, messages)));
    }
    if plan.wants(STORM) {
        rows.extend(runtime.block_on(storm()));
    }
    rows
}

/// Publishes a message to the other queue, and notes how long that took.
async fn publish(engine: &LocalEngine, spread: &mut Spread) {
    let start = Instant::now();
    engine.publish(vec![message("other", 9)]).await.map(drop).expect("there is room");
    spread.saw(start.elapsed().as_nanos() as u64);
}

async fn quiet(engine: &LocalEngine) -> Spread {
    let mut spread = Spread::default();
    for _ in 0..QUIET {
        publish(engine, &mut spread).await;
    }
    spread
}

async fn open() -> (tempfile::TempDir, LocalEngine) {
    let dir = tempfile::tempdir().expect("a directory for the store");
    let engine = LocalEngine::open(dir.path()).expect("a new store");
    let dead = Settings { dead_letter: DeadLetterTo::Drop, ..Settings::default() };
    for (queue, settings) in [("other", Settings::default()), ("dead", dead)] {
        engine.declare_queue(queue, settings).await.expect("a new queue");
    }
    (dir, engine)
}

fn rows(what: &str, mut quiet: Spread, mut meanwhile: Spread, messages: usize, took: Duration) -> Vec<Row> {
    let mut rows = Vec::new();
    for (name, part) in [("99 % of", 0.99), ("longest of", 1.0)] {
        let quiet = quiet.percentile(part).expect("some were measured");
        let busy = meanwhile.percentile(part).expect("some were measured");
        let row = |when: &str, ns| {
            Row::new(
                format!("{name} publishes to another queue, {when}"),
                "publishes",
                1,
                Duration::from_nanos(ns),
            )
        };
        rows.push(row(&format!("before: {what}"), quiet).reference());
        rows.push(row(what, busy).beside(quiet as f64 / busy as f64));
    }
    rows.push(Row::new(format!("messages, {what}"), "messages", messages, took));
    rows
}

async fn rush(wave: &Wave, messages: usize) -> Vec<Row> {
    let (_dir, engine) = open().await;
    engine.declare_queue(DEEP, (wave.settings)()).await.expect("a new queue");
    let filling = Instant::now();
    for _ in 0..messages / 1_000 {
        let left = Duration::from_millis(WAVE_MS).saturating_sub(filling.elapsed()).as_millis() as u64;
        let batch = (0..1_000).map(|at| (wave.message)(message(DEEP, at % 10), left)).collect();
        engine.publish(batch).await.map(drop).expect("there is room");
    }
    let quiet = quiet(&engine).await;
    let wait = Duration::from_millis(WAVE_MS).saturating_sub(filling.elapsed());
    match wave.policy {
        // By itself: the first of it is then over.
        None => {
            assert!(!wait.is_zero(), "{}: it began before all was published", wave.what);
            tokio::time::sleep(wait).await;
        }
        Some(policy) => {
            let set = engine.set_policy(PolicyKind::User, "p", policy());
            tokio::spawn(async move { set.await.expect("the policy is set") });
            // The policy is asked for before the first publish.
            tokio::task::yield_now().await;
        }
    }
    let start = Instant::now();
    let mut meanwhile = Spread::default();
    loop {
        publish(&engine, &mut meanwhile).await;
        if (wave.is_over)(&engine.queue(DEEP).await.expect("it is there"), messages as u64) {
            break;
        }
    }
    engine.close();
    rows(wave.what, quiet, meanwhile, messages, start.elapsed())
}

/// Queues each of which gives what expires in it to all.
async fn storm() -> Vec<Row> {
    let (_dir, engine) = open().await;
    let fanout = ExchangeSettings { kind: ExchangeKind::Fanout, ..ExchangeSettings::default() };
    engine.declare_exchange("all", fanout).await.expect("a new exchange");
    let queues: Vec<String> = (0..STORM_QUEUES).map(|n| format!("s{n}")).collect();
    for name in &queues {
        let settings = Settings {
            ttl_ms: STORM_MS,
            dead_letter: DeadLetterTo::Exchange { name: "all".into(), routing_key: None },
            dead_letter_expired: true,
            ..Settings::default()
        };
        engine.declare_queue(name, settings).await.expect("a new queue");
        let to = Destination::Queue(name.as_str().into());
        engine.bind(Binding::new("all", to, "")).await.expect("a new binding");
    }
    let quiet = quiet(&engine).await;
    let start = Instant::now();
    let begins = (0..STORM_BEGINS).map(|_| message(&queues[0], 9)).collect();
    engine.publish(begins).await.map(drop).expect("there is room");
    let (mut meanwhile, mut came) = (Spread::default(), 0);
    loop {
        publish(&engine, &mut meanwhile).await;
        let (mut left, mut all) = (0, 0);
        for name in &queues {
            let view = engine.queue(name).await.expect("it is there");
            left += ready(&view);
            all += view.next_seq.0;
        }
        if left == 0 {
            break;
        }
        came = all;
    }
    engine.close();
    rows(STORM, quiet, meanwhile, came as usize, start.elapsed())
}
