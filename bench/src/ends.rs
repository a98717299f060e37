//! What the end of many consumers costs everybody else: the longest wait of a publish to another queue meanwhile, beside the longest of
//! those before.

use std::sync::Arc;
use std::time::{Duration, Instant};

use overtake_engine::core::Request;
use overtake_engine::{
    Ask, ConsumeRequest, Content, Engine, Event, LocalEngine, NewMessage, Session, Target,
};
use overtake_lane::Settings;

use crate::Plan;
use crate::report::Row;

/// Connections that end at once, consumers of each, and messages that each consumer holds.
const CROWDS: [(usize, usize, usize); 3] = [(20, 2_000, 0), (20, 2_000, 5), (1, 10_000, 10)];
/// Publishes before anything ends.
const BEFORE: usize = 200;

pub(crate) fn run(plan: Plan) -> Vec<Row> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let crowds = CROWDS.into_iter().map(|(connections, consumers, each)| match plan.quick {
        true => (connections, consumers / 10, each),
        false => (connections, consumers, each),
    });
    crowds.flat_map(|crowd| runtime.block_on(measure(crowd))).collect()
}

fn message(queue: &str) -> NewMessage {
    let content = Content { body: "x".into(), ..Content::default() };
    NewMessage { to: Target::Queue(queue.into()), content, ..NewMessage::default() }
}

/// Publishes a message to the other queue, and returns how long that took.
async fn publish(engine: &LocalEngine) -> Duration {
    let start = Instant::now();
    engine.publish(vec![message("other")]).await.map(drop).expect("there is room");
    start.elapsed()
}

/// Messages leased from the queue, and its consumers.
async fn left(engine: &LocalEngine) -> u64 {
    let queue = engine.queue("crowded").await.expect("it is there");
    queue.consumers + queue.lanes.iter().map(|lane| lane.leased).sum::<u64>()
}

/// A connection with so many consumers, which hold so many messages each.
async fn connect(engine: &LocalEngine, consumers: usize, each: usize) -> Session {
    let mut session = engine.session();
    let (mut wanted, mut asked) = (consumers * (1 + each), 0);
    while wanted > 0 {
        let batch: Vec<Ask> = (asked..consumers.min(asked + 100))
            .map(|number| {
                let window = Some(each.max(1) as u32);
                let consume = ConsumeRequest { window, ..ConsumeRequest::new(Arc::from("crowded")) };
                let request = Request::Consume { consumer: session.asks.next_consumer(), consume };
                Ask { token: Some(number as u64), request }
            })
            .collect();
        asked += batch.len();
        session.asks.ask(batch).await;
        for event in session.events.next().await.expect("the engine is there") {
            if let Event::Answer { result, .. } = &event {
                result.as_ref().expect("there may be so many");
            }
            wanted -= 1;
        }
    }
    session
}

async fn measure((connections, consumers, each): (usize, usize, usize)) -> [Row; 2] {
    let dir = tempfile::tempdir().expect("a directory for the store");
    let engine = LocalEngine::open(dir.path()).expect("a new store");
    for queue in ["crowded", "other"] {
        engine.declare_queue(queue, Settings::default()).await.expect("a new queue");
    }
    for _ in 0..connections * consumers * each / 1_000 {
        engine.publish(vec![message("crowded"); 1_000]).await.map(drop).expect("there is room");
    }
    let mut crowd = Vec::new();
    for _ in 0..connections {
        crowd.push(connect(&engine, consumers, each).await);
    }
    let mut before = Duration::ZERO;
    for _ in 0..BEFORE {
        before = before.max(publish(&engine).await);
    }
    drop(crowd);
    let mut meanwhile = publish(&engine).await;
    while left(&engine).await > 0 {
        meanwhile = meanwhile.max(publish(&engine).await);
    }
    engine.close();
    let what = format!("{connections} × {consumers} consumers that hold {each} each");
    let row =
        |when, wait| Row::new(format!("longest publish to another queue, {when}"), "publishes", 1, wait);
    let ratio = before.as_secs_f64() / meanwhile.as_secs_f64();
    [
        row(format!("{BEFORE} before: {what}"), before).reference(),
        row("while they end".to_owned(), meanwhile).beside(ratio),
    ]
}
