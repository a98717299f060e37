//! Many queues: how long publishes and leases elsewhere take while somebody imports, changes or lists thousands of them; and how soon
//! a deep backlog serves after a start.
//!
//! A publish waits for the disk and a lease does not, so the leases show what the broker thread itself holds up.

use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use overtake_engine::{
    Content, DeleteOnly, Engine, LeaseRequest, LocalEngine, NewMessage, QUEUES_AT_ONCE, Target, every_queue,
};
use overtake_lane::{
    ApplyTo, Binding, Definition, Destination, ExchangeKind, ExchangeSettings, Pattern, Policy, PolicyKind,
    Settings, VhostSettings,
};
use overtake_telemetry::{Broker, Registry, text};
use tokio::task::JoinSet;

use crate::Plan;
use crate::report::Row;
use crate::spread::Spread;

/// Queues in each of the two virtual hosts.
const QUEUES: usize = 10_000;
/// As many exchanges, each with one binding; and one exchange with a binding to each queue.
const EXCHANGES: usize = 1_000;
const POLICIES: usize = 100;
/// Messages in each queue of `/`, in lanes of their own.
const LANES: i64 = 3;
/// How long is measured while nothing else goes on.
const QUIET: Duration = Duration::from_secs(3);
/// Between two leases: often enough to see a step of a ms, and seldom enough to leave the core to others.
const LEASE_EVERY: Duration = Duration::from_micros(200);
/// The virtual host into which is imported, and that is deleted.
const VHOST: &str = "imported";
const FANOUT: &str = "to-all";
/// A queue with many bindings.
const BOUND: &str = "bound";
const DEEP: &str = "deep";
const DEEP_MESSAGES: usize = 3_000_000;
const BODY_LEN: usize = 100;
/// By so much the journal is shorter once a file of it was given back.
const GIVEN_BACK: u64 = 32 << 20;

type Work = Pin<Box<dyn Future<Output = ()> + Send>>;
/// Something that is asked of the engine, which has so many queues in each virtual host.
type Ask = fn(Arc<LocalEngine>, usize) -> Work;

/// What goes on beside publishes and leases, in this order.
const ASKS: [(&str, Ask); 18] = [
    ("import: policies", |engine, _| Box::pin(import_policies(engine))),
    ("import: exchanges", |engine, _| Box::pin(import_exchanges(engine))),
    ("import: queues", |engine, queues| Box::pin(import_queues(engine, queues))),
    ("import: bindings", |engine, queues| Box::pin(import_bindings(engine, queues))),
    ("list: metrics", |engine, _| Box::pin(metrics(engine))),
    ("list: queues", |engine, _| Box::pin(list_queues(engine))),
    ("list: one queue, 1,000 times", |engine, _| Box::pin(look_at_one(engine))),
    ("list: exchanges, 10 times", |engine, _| Box::pin(list_exchanges(engine))),
    ("list: bindings of one exchange, 10 times", |engine, _| Box::pin(list_bindings(engine))),
    ("policy: set for all queues", |engine, _| Box::pin(set_policy(engine, 1_000))),
    ("policy: changed for all queues", |engine, _| Box::pin(set_policy(engine, 2_000))),
    ("policy: removed from all queues", |engine, _| Box::pin(remove_policy(engine))),
    ("policy: set for no queue", |engine, _| Box::pin(set_policy_for_none(engine))),
    ("policy: set for exchanges", |engine, _| Box::pin(set_policy_for_exchanges(engine))),
    ("delete: the exchange with a binding to each queue", |engine, _| Box::pin(delete_exchange(engine))),
    ("delete: a queue with as many bindings", |engine, _| Box::pin(delete_bound(engine))),
    ("delete: the virtual host", |engine, _| Box::pin(delete_vhost(engine))),
    ("journal: its files given back", |engine, _| Box::pin(churn(engine))),
];

pub(crate) fn run(plan: Plan) -> Vec<Row> {
    let dir = tempfile::tempdir().expect("a directory for the store");
    let mut rows = Vec::new();
    if ASKS.iter().any(|(what, _)| plan.wants(what)) {
        rows.extend(with_many_queues(plan, &dir.path().join("many")));
    }
    if plan.wants("start") {
        rows.extend(cold_start(plan, &dir.path().join("deep")));
    }
    rows
}

/// How long others took meanwhile.
#[derive(Default)]
struct Others {
    publishes: Spread,
    leases: Spread,
}

impl Others {
    fn rows(mut self, what: &str, quiet: Option<&mut Self>) -> Vec<Row> {
        let mut quiet = quiet;
        let mut rows = Vec::new();
        for (of, part, name) in
            [("publish", 0.99, ": p99"), ("publish", 1.0, ""), ("lease", 0.99, ": p99"), ("lease", 1.0, "")]
        {
            let ns = |others: &mut Self| {
                let spread = if of == "publish" { &mut others.publishes } else { &mut others.leases };
                spread.percentile(part).expect("some were measured")
            };
            let busy = ns(&mut self);
            let row = Row::new(
                format!("longest {of} elsewhere, {what}{name}"),
                "times",
                1,
                Duration::from_nanos(busy),
            );
            rows.push(match quiet.as_deref_mut() {
                Some(quiet) => row.beside(ns(quiet) as f64 / busy as f64),
                None => row.reference(),
            });
        }
        rows
    }
}

fn message(queue: &str, priority: i64) -> NewMessage {
    NewMessage {
        to: Target::Queue(queue.into()),
        priority: priority.into(),
        content: Content { body: vec![b'x'; BODY_LEN].into(), ..Content::default() },
        ..NewMessage::default()
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime")
}

/// Does the work on a thread of its own, as others of a server would. Answers how long it took, and how long publishes and leases elsewhere
/// took meanwhile.
fn beside(engine: &Arc<LocalEngine>, work: Work) -> (Duration, Others) {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|threads| {
        let working = threads.spawn(|| {
            // Also where it panics: else nobody would hear of it.
            let _over = Over(&is_over);
            let start = Instant::now();
            runtime().block_on(work);
            start.elapsed()
        });
        let leasing = threads.spawn(|| runtime().block_on(lease_until(engine, &is_over)));
        let publishes = runtime().block_on(publish_until(engine, &is_over));
        let leases = leasing.join().expect("no panic");
        (working.join().expect("no panic"), Others { publishes, leases })
    })
}

/// Says when it is dropped that the work is over.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

async fn publish_until(engine: &LocalEngine, is_over: &AtomicBool) -> Spread {
    let mut spread = Spread::default();
    loop {
        let start = Instant::now();
        engine.publish(vec![message("other", 9)]).await.map(drop).expect("there is room");
        spread.saw(start.elapsed().as_nanos() as u64);
        if is_over.load(Ordering::Relaxed) {
            return spread;
        }
    }
}

/// Leases from a queue in which nothing is, so that no disk is waited for.
async fn lease_until(engine: &LocalEngine, is_over: &AtomicBool) -> Spread {
    let mut spread = Spread::default();
    loop {
        let start = Instant::now();
        engine.lease(LeaseRequest::new("empty".into(), 1)).await.map(drop).expect("it is answered");
        spread.saw(start.elapsed().as_nanos() as u64);
        if is_over.load(Ordering::Relaxed) {
            return spread;
        }
        std::thread::sleep(LEASE_EVERY);
    }
}

fn with_many_queues(plan: Plan, dir: &Path) -> Vec<Row> {
    let queues = if plan.quick { QUEUES / 10 } else { QUEUES };
    let engine = Arc::new(LocalEngine::open(dir).expect("a new store"));
    runtime().block_on(fill(&engine, queues));
    let quiet: Work = Box::pin(async { tokio::time::sleep(QUIET).await });
    let mut quiet = beside(&engine, quiet).1;
    let mut rows = Others {
        publishes: Spread::of(quiet.publishes.all().to_vec()),
        leases: Spread::of(quiet.leases.all().to_vec()),
    }
    .rows("nothing", None);
    for (what, ask) in ASKS.into_iter().filter(|(what, _)| plan.wants(what)) {
        if what.starts_with("delete") {
            runtime().block_on(import_what_is_missing(&engine, queues));
        }
        let (took, others) = beside(&engine, ask(Arc::clone(&engine), queues));
        rows.extend(others.rows(what, Some(&mut quiet)));
        rows.push(Row::new(format!("{what}, with {queues} queues"), "times", 1, took));
    }
    engine.close();
    rows
}

/// Does them all at once: for what is not measured.
async fn all_at_once(asks: impl Iterator<Item = impl Future<Output = ()> + Send + 'static>) {
    let mut all: JoinSet<()> = asks.collect();
    while let Some(done) = all.join_next().await {
        done.expect("no panic");
    }
}

fn queue_name(number: usize) -> String {
    format!("queue-{number:05}")
}

/// Queues in `/`, with messages; one exchange with a binding to each, and others.
async fn fill(engine: &Arc<LocalEngine>, queues: usize) {
    for queue in ["other", "empty", "churn"] {
        engine.declare_queue(queue, Settings::default()).await.expect("a new queue");
    }
    let declared = (0..queues).map(|queue| engine.declare_queue(&queue_name(queue), Settings::default()));
    all_at_once(declared.map(|asked| async { _ = asked.await.expect("a new queue") })).await;
    for first in (0..queues).step_by(100) {
        let some = first..queues.min(first + 100);
        let messages = some.flat_map(|queue| (0..LANES).map(move |lane| message(&queue_name(queue), lane)));
        engine.publish(messages.collect()).await.map(drop).expect("there is room");
    }
    let exchange = |name: &str, kind| engine.declare_exchange(name, ExchangeSettings::new(kind));
    exchange(FANOUT, ExchangeKind::Fanout).await.expect("a new exchange");
    let made = (0..queues).map(|number| exchange(&exchange_name(number), ExchangeKind::Topic));
    all_at_once(made.map(|asked| async { asked.await.expect("a new exchange") })).await;
    let bound = (0..queues).map(|queue| engine.bind(binding(FANOUT, queue)));
    all_at_once(bound.map(|asked| async { asked.await.expect("it can be bound") })).await;
}

fn exchange_name(number: usize) -> String {
    format!("exchange-{number:05}")
}

fn binding(exchange: &str, queue: usize) -> Binding {
    Binding::new(exchange, Destination::Queue(queue_name(queue).as_str().into()), "a.*.#")
}

/// The engine in the virtual host into which is imported.
async fn imported(engine: &LocalEngine) -> overtake_engine::Connection {
    let vhost = engine.declare_vhost(VHOST, VhostSettings::default()).await.expect("a virtual host");
    engine.in_vhost(vhost)
}

fn policy(pattern: &str, max_length: u64, apply_to: ApplyTo) -> Policy {
    Policy {
        pattern: Pattern::new(pattern).expect("a pattern"),
        definition: Definition { max_length: Some(max_length), ..Definition::default() },
        priority: 0,
        apply_to,
    }
}

// As `Plan::carry_out` of the crate `overtake-management`: one by one, each confirmed.

async fn import_policies(engine: Arc<LocalEngine>) {
    let inside = imported(&engine).await;
    for number in 0..POLICIES {
        let policy = policy(&format!("^queue-{number:02}"), 1_000, ApplyTo::Queues);
        inside.set_policy(PolicyKind::User, &format!("policy-{number}"), policy).await.expect("a new policy");
    }
}

async fn import_exchanges(engine: Arc<LocalEngine>) {
    let inside = imported(&engine).await;
    for number in 0..EXCHANGES {
        let settings = ExchangeSettings::new(ExchangeKind::Topic);
        inside.declare_exchange(&exchange_name(number), settings).await.expect("a new exchange");
    }
    inside
        .declare_exchange(FANOUT, ExchangeSettings::new(ExchangeKind::Topic))
        .await
        .expect("a new exchange");
}

async fn import_queues(engine: Arc<LocalEngine>, queues: usize) {
    let inside = imported(&engine).await;
    for queue in 0..queues {
        inside.declare_queue(&queue_name(queue), Settings::default()).await.expect("a new queue");
    }
}

async fn import_bindings(engine: Arc<LocalEngine>, queues: usize) {
    let inside = imported(&engine).await;
    for queue in 0..queues {
        inside.bind(binding(FANOUT, queue)).await.expect("it can be bound");
    }
}

/// So that there is something to delete.
async fn import_what_is_missing(engine: &LocalEngine, queues: usize) {
    let inside = imported(engine).await;
    let declared = (0..queues).map(|queue| inside.declare_queue(&queue_name(queue), Settings::default()));
    all_at_once(declared.map(|asked| async { _ = asked.await.expect("it is there, or new") })).await;
    inside
        .declare_exchange(FANOUT, ExchangeSettings::new(ExchangeKind::Topic))
        .await
        .expect("it is there, or new");
    let bound = (0..queues).map(|queue| inside.bind(binding(FANOUT, queue)));
    all_at_once(bound.map(|asked| async { asked.await.expect("it can be bound") })).await;
    engine.declare_queue(BOUND, Settings::default()).await.map(drop).expect("it is there, or new");
    let to = || Destination::Queue(BOUND.into());
    let bound = (0..queues).map(|key| engine.bind(Binding::new("amq.topic", to(), &format!("a.{key}.#"))));
    all_at_once(bound.map(|asked| async { asked.await.expect("it can be bound") })).await;
}

async fn metrics(engine: Arc<LocalEngine>) {
    let registry = Registry::default();
    registry.add(Arc::new(Broker::new(engine, "1.0.0")));
    let families = registry.collect().await;
    assert!(!text::render(&families).is_empty(), "there is something to tell");
}

async fn list_queues(engine: Arc<LocalEngine>) {
    let mut seen = 0;
    every_queue(&*engine, |_| seen += 1).await.expect("they are listed");
    assert!(seen > QUEUES_AT_ONCE, "more than one page");
}

async fn look_at_one(engine: Arc<LocalEngine>) {
    for _ in 0..1_000 {
        engine.queue(&queue_name(7)).await.map(drop).expect("it is there");
    }
}

async fn list_exchanges(engine: Arc<LocalEngine>) {
    for _ in 0..10 {
        engine.exchanges().await.map(drop).expect("they are listed");
    }
}

async fn list_bindings(engine: Arc<LocalEngine>) {
    for _ in 0..10 {
        engine.bindings(FANOUT).await.map(drop).expect("they are listed");
    }
}

async fn set_policy(engine: Arc<LocalEngine>, max_length: u64) {
    let policy = policy("", max_length, ApplyTo::Queues);
    engine.set_policy(PolicyKind::User, "all", policy).await.expect("a new policy");
}

async fn remove_policy(engine: Arc<LocalEngine>) {
    if engine.policies(PolicyKind::User).await.expect("they are listed").is_empty() {
        set_policy(Arc::clone(&engine), 1_000).await;
    }
    engine.remove_policy(PolicyKind::User, "all").await.expect("it is there");
}

async fn set_policy_for_none(engine: Arc<LocalEngine>) {
    let policy = policy("^nobody$", 10, ApplyTo::Queues);
    engine.set_policy(PolicyKind::User, "none", policy).await.expect("a new policy");
}

async fn set_policy_for_exchanges(engine: Arc<LocalEngine>) {
    let definition = Definition { alternate_exchange: Some("amq.fanout".into()), ..Definition::default() };
    let policy = Policy { definition, ..policy("", 1, ApplyTo::Exchanges) };
    engine.set_policy(PolicyKind::User, "exchanges", policy).await.expect("a new policy");
}

async fn delete_exchange(engine: Arc<LocalEngine>) {
    engine.delete_exchange(FANOUT, false).await.expect("it is there");
}

async fn delete_bound(engine: Arc<LocalEngine>) {
    engine.delete_queue(BOUND, DeleteOnly::default()).await.map(drop).expect("it is there");
}

async fn delete_vhost(engine: Arc<LocalEngine>) {
    engine.delete_vhost(VHOST).await.expect("it is there");
}

/// Publishes and purges until the journal has given files back, for which it writes all definitions again.
async fn churn(engine: Arc<LocalEngine>) {
    let large = || NewMessage {
        content: Content { body: vec![b'x'; 16 << 10].into(), ..Content::default() },
        ..message("churn", 1)
    };
    let mut longest = 0;
    for _ in 0..4_000 {
        engine.publish((0..16).map(|_| large()).collect()).await.map(drop).expect("there is room");
        engine.purge("churn", None).await.expect("it is there");
        let bytes = engine.health().journal_bytes;
        if bytes + GIVEN_BACK < longest {
            return;
        }
        longest = bytes.max(longest);
    }
    panic!("the journal of {longest} bytes gives nothing back");
}

/// How long from a start to the first publish and the first lease of a deep backlog, and what others wait for after it.
fn cold_start(plan: Plan, dir: &Path) -> Vec<Row> {
    let messages = if plan.quick { DEEP_MESSAGES / 10 } else { DEEP_MESSAGES };
    let engine = LocalEngine::open(dir).expect("a new store");
    runtime().block_on(async {
        for queue in [DEEP, "other", "empty"] {
            engine.declare_queue(queue, Settings::default()).await.expect("a new queue");
        }
        for _ in 0..messages / 1_000 {
            let some = (0..1_000).map(|at| message(DEEP, at % 10)).collect();
            engine.publish(some).await.map(drop).expect("there is room");
        }
    });
    engine.close();
    drop(engine);
    let start = Instant::now();
    let engine = Arc::new(LocalEngine::open(dir).expect("it is there"));
    let opened = start.elapsed();
    let (published, leased) = runtime().block_on(async {
        engine.publish(vec![message("other", 9)]).await.map(drop).expect("there is room");
        let published = start.elapsed();
        let leased = engine.lease(LeaseRequest::new(DEEP.into(), 1)).await.expect("it is answered");
        assert_eq!(leased.len(), 1, "it is there");
        (published, start.elapsed())
    });
    let row = |what: &str, took| Row::new(format!("start: {messages} messages, {what}"), "times", 1, took);
    let mut rows = vec![
        row("until it is open", opened),
        row("until the first publish is confirmed", published),
        row("until the first is leased", leased),
    ];
    let (_, others) = beside(&engine, Box::pin(async { tokio::time::sleep(QUIET).await }));
    rows.extend(others.rows("in the seconds after the start", None));
    runtime()
        .block_on(async { engine.delete_queue(DEEP, DeleteOnly::default()).await.map(drop) })
        .expect("it goes");
    engine.close();
    rows
}
