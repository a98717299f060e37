//! Looks at a deep queue: how long a publish to another queue and a lease of it take meanwhile, and how many messages go through it, beside the same
//! while nobody looks.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use overtake_engine::{
    Browse, Content, DeleteOnly, Engine, Filter, JobState, LeaseRequest, LocalEngine, NewMessage, Options,
    Pending, Select, Started, SystemClock, Target,
};
use overtake_lane::{BrowseOrder, Given, Outcome, Scheme, Settings};

use crate::Plan;
use crate::report::Row;
use crate::spread::Spread;

const DEEP: &str = "deep";
const BUSY: &str = "busy";
const LANES: u16 = 64;
/// Bytes of a body, and how many messages of these wait in the deep queue.
const BODIES: [(usize, usize); 2] = [(100, 3_000_000), (1_024, 1_000_000)];
/// How many of each wait there when there is time.
const MESSAGES_LONG: usize = 10_000_000;
/// Of 100 bytes, as many as wait in memory alone.
const IN_MEMORY: usize = 300_000;
/// Messages that go through the other queue, and as many of them at once.
const TRAFFIC: usize = 100_000;
const TRAFFIC_AT_ONCE: usize = 100;
/// Publishes and leases while nobody looks.
const QUIET: usize = 2_000;
/// A commit that takes longer is slow, µs. The engine counts by this bound.
const SLOW_US: u64 = 5_000;

pub(crate) fn run(plan: Plan) -> Vec<Row> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let measure_one = |(body_len, messages): (usize, usize)| {
        let messages = if plan.long { MESSAGES_LONG } else { messages };
        let messages = if plan.quick { messages / 10 } else { messages };
        let rows = runtime.block_on(measure(plan, messages, body_len));
        rows.into_iter().map(move |row| Row { what: format!("{body_len} bytes: {}", row.what), ..row })
    };
    BODIES.into_iter().flat_map(measure_one).chain(runtime.block_on(in_memory(plan))).collect()
}

/// Looks at messages that are all in memory, while nothing else happens.
async fn in_memory(plan: Plan) -> Vec<Row> {
    let dir = tempfile::tempdir().expect("a directory for the store");
    let options = Options { memory_bytes: 1 << 30, ..Options::default() };
    let engine = LocalEngine::open_with(dir.path(), options, Arc::new(SystemClock)).expect("a new store");
    let deep = Settings { scheme: Scheme::Max((LANES - 1) as u8), ..Settings::default() };
    engine.declare_queue(DEEP, deep).await.expect("a new queue");
    fill(&engine, IN_MEMORY, 100).await;
    let mut rows = Vec::new();
    let looks = looks().into_iter().map(|(what, browse)| (format!("{what}, in memory"), browse));
    for (what, browse) in looks.filter(|(what, _)| plan.wants(what)) {
        let start = Instant::now();
        engine.browse(DEEP, browse).await.map(drop).expect("it is answered");
        let what = format!("100 bytes: messages looked at, alone, {what}");
        rows.push(Row::new(what, "messages", IN_MEMORY, start.elapsed()));
    }
    assert_eq!(engine.health().memory.spilled, 0, "all of them are in memory");
    engine.close();
    rows
}

fn message(queue: &str, priority: usize, key: Option<String>, body_len: usize) -> NewMessage {
    NewMessage {
        to: Target::Queue(queue.into()),
        priority: (priority as i64).into(),
        key,
        content: Content { body: vec![b'x'; body_len].into(), ..Content::default() },
        ..NewMessage::default()
    }
}

/// Changes after which memory is given back later.
const CLEARED: [&str; 2] = ["a purge", "the deletion of the queue"];

/// A change of the deep queue.
type Change = fn(&LocalEngine) -> Pending<u64>;

/// Changes of the deep queue, each with how many of its messages it changes.
fn changes(messages: u64) -> [(&'static str, Change, u64); 5] {
    fn all() -> Select {
        Select::Matching(Filter::default())
    }
    let none = |engine: &LocalEngine| {
        engine.remove(DEEP, Select::Matching(Filter { key: Some("nope".into()), ..Filter::default() }))
    };
    [
        ("a removal by key that takes none", none, 0),
        ("another priority for all", |engine| engine.reprioritise(DEEP, all(), Given::Number(3)), messages),
        ("a removal of all by a filter", |engine| engine.remove(DEEP, all()), messages),
        (CLEARED[0], |engine| engine.purge(DEEP, None), messages),
        (CLEARED[1], |engine| engine.delete_queue(DEEP, DeleteOnly::default()), messages),
    ]
}

/// Looks that take no message, so that each looks at all there are.
fn looks() -> Vec<(&'static str, Browse)> {
    let header = Filter { headers: vec![("nope".into(), "1".into())], ..Filter::default() };
    let key = Filter { key: Some("nope".into()), ..Filter::default() };
    let page = |filter: &Filter, order, with_total| Browse {
        filter: filter.clone(),
        order,
        with_total,
        limit: 1,
        ..Browse::default()
    };
    vec![
        ("by key, as published", page(&key, BrowseOrder::Published, false)),
        ("by key, the newest first", page(&key, BrowseOrder::Newest, false)),
        ("by key, and how many", page(&key, BrowseOrder::Newest, true)),
        ("by a header, as published", page(&header, BrowseOrder::Published, false)),
        ("by key, in dispatch order", page(&key, BrowseOrder::Dispatch, false)),
    ]
}

/// How long publishes to another queue took, and leases of it.
#[derive(Default)]
struct Others {
    publishes: Spread,
    leases: Spread,
    commits: Commits,
}

/// How long commits to the disk took, by the bounds that the engine counts by: a publish waits for one of its own, and for the one that is
/// under way before it.
#[derive(Clone, Default)]
struct Commits {
    /// Upper bounds, µs, each with how many took no longer.
    within: Vec<(u64, u64)>,
    all: u64,
}

impl Commits {
    /// Commits of an engine so far.
    fn of(engine: &LocalEngine) -> Self {
        let took = engine.health().work.commits_us;
        Self { within: took.buckets, all: took.count }
    }

    fn since(self, before: &Self) -> Self {
        let earlier = |bound: u64| before.within.iter().find(|(other, _)| *other == bound);
        let within = self.within.into_iter();
        let within = within.map(|(bound, n)| (bound, n - earlier(bound).map_or(0, |(_, earlier)| *earlier)));
        Self { within: within.collect(), all: self.all - before.all }
    }
}

impl std::fmt::Display for Commits {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let fast = self.within.iter().find(|(bound, _)| *bound == SLOW_US).map_or(0, |(_, fast)| *fast);
        let longest = self.within.iter().find(|(_, n)| *n == self.all);
        let longest = longest
            .map_or("longer than counted".into(), |(bound, _)| format!("at most {} ms", *bound as f64 / 1e3));
        let (slow, all) = (self.all - fast, self.all);
        write!(f, "of {all} commits {slow} took over {} ms, the longest {longest}", SLOW_US / 1_000)
    }
}

impl Others {
    /// Publishes a message to the other queue, leases it and acknowledges it.
    async fn pass(&mut self, engine: &LocalEngine) {
        let start = Instant::now();
        engine.publish(vec![message("other", 9, None, 100)]).await.map(drop).expect("there is room");
        self.publishes.saw(start.elapsed().as_nanos() as u64);
        let start = Instant::now();
        let leased = engine.lease(LeaseRequest::new("other".into(), 1)).await.expect("a lease");
        self.leases.saw(start.elapsed().as_nanos() as u64);
        let receipts = leased.iter().map(|message| message.receipt).collect();
        engine.settle(receipts, Outcome::Ack).await.map(drop).expect("an acknowledgement");
    }

    /// p99 and longest, ns, of each.
    fn told(&mut self) -> [(&'static str, u64, u64); 2] {
        let each = [("publish to", &mut self.publishes), ("lease of", &mut self.leases)];
        each.map(|(what, spread)| {
            let of = |part, spread: &mut Spread| spread.percentile(part).expect("some were measured");
            (what, of(0.99, spread), of(1.0, spread))
        })
    }
}

async fn fill(engine: &LocalEngine, messages: usize, body_len: usize) {
    for batch in 0..messages / 1_000 {
        let message = |at| message(DEEP, at % usize::from(LANES), Some(format!("k{batch}")), body_len);
        let batch = (0..1_000).map(message);
        engine.publish(batch.collect()).await.map(drop).expect("there is room");
    }
}

/// How long it took, and what others did meanwhile. The last of them waited for its end.
async fn beside(engine: &LocalEngine, work: impl Future<Output = ()> + Send + 'static) -> (Duration, Others) {
    let (start, commits) = (Instant::now(), Commits::of(engine));
    let work = tokio::spawn(async move {
        work.await;
        start.elapsed()
    });
    let mut meanwhile = Others::default();
    while !work.is_finished() {
        meanwhile.pass(engine).await;
    }
    meanwhile.commits = Commits::of(engine).since(&commits);
    (work.await.expect("no panic"), meanwhile)
}

/// How long it took until the work was done, and until the memory of what it took was given back; and what others did meanwhile.
async fn beside_until_cleared(
    engine: &LocalEngine,
    work: impl Future<Output = ()> + Send + 'static,
) -> (Duration, Duration, Others) {
    let (start, bytes, commits) = (Instant::now(), engine.health().memory.bytes, Commits::of(engine));
    let (took, mut meanwhile) = beside(engine, work).await;
    while engine.health().memory.bytes > bytes / 10 {
        meanwhile.pass(engine).await;
    }
    meanwhile.commits = Commits::of(engine).since(&commits);
    (took, start.elapsed(), meanwhile)
}

/// How long it took to publish the traffic, and to lease and acknowledge it.
async fn go_through(engine: &LocalEngine) -> (Duration, Duration) {
    let start = Instant::now();
    for _ in 0..TRAFFIC / TRAFFIC_AT_ONCE {
        let batch = (0..TRAFFIC_AT_ONCE).map(|at| message(BUSY, at % 10, None, 100)).collect();
        engine.publish(batch).await.map(drop).expect("there is room");
    }
    let (published, start) = (start.elapsed(), Instant::now());
    for _ in 0..TRAFFIC / TRAFFIC_AT_ONCE {
        let lease = LeaseRequest::new(BUSY.into(), TRAFFIC_AT_ONCE as u32);
        let leased = engine.lease(lease).await.expect("a lease");
        let receipts = leased.iter().map(|message| message.receipt).collect();
        engine.settle(receipts, Outcome::Ack).await.map(drop).expect("an acknowledgement");
    }
    (published, start.elapsed())
}

/// How much goes through another queue while somebody always looks at the deep one, and while all in it get another priority, beside how much does
/// while nobody looks.
async fn traffic(engine: &Arc<LocalEngine>) -> Vec<Row> {
    let quiet = go_through(engine).await;
    let (what, browse) = looks().swap_remove(0);
    let (is_over, looking) = (Arc::new(AtomicBool::new(false)), Arc::clone(engine));
    let over = Arc::clone(&is_over);
    let look = tokio::spawn(async move {
        while !over.load(Ordering::Relaxed) {
            looking.browse(DEEP, browse.clone()).await.map(drop).expect("it is answered");
        }
    });
    tokio::task::yield_now().await;
    let busy = go_through(engine).await;
    is_over.store(true, Ordering::Relaxed);
    look.await.expect("no panic");
    let change = overtake_engine::Change::Reprioritise(Given::Number(3));
    let started = engine.start_change(DEEP, Select::Matching(Filter::default()), change).await;
    let Ok(Started::Job(job)) = started else { panic!("a job, not {started:?}") };
    let changing = go_through(engine).await;
    let ended = engine.cancel_job(job.id).await.expect("it is answered").expect("it is known");
    assert_eq!(ended.state, JobState::Cancelled, "it went on until then");
    let rows = [
        ("published to", quiet.0, busy.0, changing.0),
        ("leased and acknowledged of", quiet.1, busy.1, changing.1),
    ];
    let rows = rows.into_iter().flat_map(|(done, quiet, busy, changing)| {
        let row = |what: &str, took: Duration| {
            let row = Row::new(format!("{done} another queue, {what}"), "messages", TRAFFIC, took);
            row.beside(quiet.as_secs_f64() / took.as_secs_f64())
        };
        let looking = format!("a look {what} goes on");
        let reference =
            Row::new(format!("{done} another queue, nobody looks"), "messages", TRAFFIC, quiet).reference();
        [reference, row(&looking, busy), row("all in the deep queue get another priority", changing)]
    });
    rows.collect()
}

async fn measure(plan: Plan, messages: usize, body_len: usize) -> Vec<Row> {
    let dir = tempfile::tempdir().expect("a directory for the store");
    let engine = Arc::new(LocalEngine::open(dir.path()).expect("a new store"));
    let deep = Settings { scheme: Scheme::Max((LANES - 1) as u8), ..Settings::default() };
    engine.declare_queue(DEEP, deep).await.expect("a new queue");
    for queue in ["other", BUSY] {
        engine.declare_queue(queue, Settings::default()).await.expect("a new queue");
    }
    fill(&engine, messages, body_len).await;
    let (mut quiet, commits) = (Others::default(), Commits::of(&engine));
    for _ in 0..QUIET {
        quiet.pass(&engine).await;
    }
    quiet.commits = Commits::of(&engine).since(&commits);
    let mut rows = Vec::new();
    let longest =
        |what: String, ns: u64| Row::new(format!("longest {what}"), "requests", 1, Duration::from_nanos(ns));
    let commits = quiet.commits.clone();
    let quiet = quiet.told();
    for (request, p99, most) in quiet {
        let what = format!("{request} another queue, nobody looks");
        rows.push(longest(format!("{what}: p99 of {QUIET}"), p99).reference());
        rows.push(longest(format!("{what} ({commits})"), most).reference());
    }
    let others = |what: &str, mut meanwhile: Others| {
        let commits = meanwhile.commits.clone();
        let rows = meanwhile.told().into_iter().zip(quiet).flat_map(|((request, p99, most), quiet)| {
            let what = format!("{request} another queue, {what}");
            let ratio = |quiet: u64, busy: u64| quiet as f64 / busy as f64;
            [
                longest(format!("{what}: p99"), p99).beside(ratio(quiet.1, p99)),
                longest(format!("{what} ({commits})"), most).beside(ratio(quiet.2, most)),
            ]
        });
        rows.collect::<Vec<_>>()
    };
    if plan.wants("traffic") {
        rows.extend(traffic(&engine).await);
    }
    for (what, browse) in looks().into_iter().filter(|(what, _)| plan.wants(what)) {
        let look = engine.browse(DEEP, browse);
        let (took, meanwhile) = beside(&engine, async move {
            let page = look.await.expect("it is answered");
            assert!(page.messages.is_empty(), "nothing matches");
        })
        .await;
        rows.extend(others(what, meanwhile));
        rows.push(Row::new(
            format!("messages looked at, beside publishes, {what}"),
            "messages",
            messages,
            took,
        ));
        let start = Instant::now();
        let alone = looks().into_iter().find(|(other, _)| *other == what).expect("it is one of them").1;
        engine.browse(DEEP, alone).await.map(drop).expect("it is answered");
        rows.push(Row::new(
            format!("messages looked at, alone, {what}"),
            "messages",
            messages,
            start.elapsed(),
        ));
    }
    for (what, change, expected) in changes(messages as u64).into_iter().filter(|(what, ..)| plan.wants(what))
    {
        if engine.queue(DEEP).await.expect("it is there").lanes.iter().all(|lane| lane.ready == 0) {
            fill(&engine, messages, body_len).await;
        }
        let change = change(&engine);
        let work = async move {
            assert_eq!(change.await.expect("it is answered"), expected, "{what}");
        };
        let (took, meanwhile) = if CLEARED.contains(&what) {
            let (took, cleared, meanwhile) = beside_until_cleared(&engine, work).await;
            let what = format!("messages, {what}, until all memory is given back");
            rows.push(Row::new(what, "messages", messages, cleared));
            (took, meanwhile)
        } else {
            beside(&engine, work).await
        };
        rows.extend(others(what, meanwhile));
        rows.push(Row::new(format!("messages, {what}"), "messages", messages, took));
    }
    engine.close();
    rows
}
