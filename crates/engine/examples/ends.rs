//! What the end of many consumers costs everybody else: the longest wait of a publish to another queue meanwhile.
//!
//! Run it with `cargo run --profile dist -p overtake-engine --example ends`.

#![allow(clippy::print_stdout, reason = "a program that prints what it measured")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use overtake_engine::core::Request;
use overtake_engine::{
    Ask, ConsumeRequest, Content, Engine, Event, LocalEngine, NewMessage, Session, Target,
};
use overtake_lane::Settings;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Connections that end at once, consumers of each, and messages that each consumer holds.
const CROWDS: [(usize, usize, usize); 3] = [(20, 2_000, 0), (20, 2_000, 5), (1, 10_000, 10)];
/// Publishes before anything ends.
const BEFORE: usize = 200;

fn message(queue: &str) -> NewMessage {
    let content = Content { body: "x".into(), ..Content::default() };
    NewMessage { to: Target::Queue(queue.into()), content, ..NewMessage::default() }
}

/// Publishes a message to the other queue, and returns how long that took.
async fn publish(engine: &LocalEngine) -> Result<Duration> {
    let start = Instant::now();
    engine.publish(vec![message("other")]).await?;
    Ok(start.elapsed())
}

/// Messages leased from the queue, and its consumers.
async fn left(engine: &LocalEngine) -> Result<u64> {
    let queue = engine.queue("crowded").await?;
    Ok(queue.consumers + queue.lanes.iter().map(|lane| lane.leased).sum::<u64>())
}

/// A connection with so many consumers, which hold so many messages each.
async fn connect(engine: &LocalEngine, consumers: usize, each: usize) -> Result<Session> {
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
        for event in session.events.next().await.ok_or("the engine is gone")? {
            if let Event::Answer { result, .. } = &event {
                result.as_ref().map_err(|why| format!("{why:?}"))?;
            }
            wanted -= 1;
        }
    }
    Ok(session)
}

async fn measure(connections: usize, consumers: usize, each: usize) -> Result<()> {
    let dir = tempfile::tempdir()?;
    let engine = LocalEngine::open(dir.path())?;
    for queue in ["crowded", "other"] {
        engine.declare_queue(queue, Settings::default()).await?;
    }
    for _ in 0..connections * consumers * each / 1_000 {
        engine.publish(vec![message("crowded"); 1_000]).await?;
    }
    let mut crowd = Vec::new();
    for _ in 0..connections {
        crowd.push(connect(&engine, consumers, each).await?);
    }
    let mut before = Duration::ZERO;
    for _ in 0..BEFORE {
        before = before.max(publish(&engine).await?);
    }
    let start = Instant::now();
    drop(crowd);
    let mut longest = publish(&engine).await?;
    while left(&engine).await? > 0 {
        longest = longest.max(publish(&engine).await?);
    }
    let took = start.elapsed();
    println!(
        "{connections} × {consumers} consumers that hold {each} each: before {before:.1?}, meanwhile {longest:.1?}, all ended after {took:.1?}"
    );
    engine.close();
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    for (connections, consumers, each) in CROWDS {
        measure(connections, consumers, each).await?;
    }
    Ok(())
}
