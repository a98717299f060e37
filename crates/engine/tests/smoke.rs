//! The local engine, once round.

use std::sync::Arc;

use overtake_engine::{Content, Engine, LeaseRequest, LocalEngine, NewMessage, Target};
use overtake_lane::{Given, Outcome, Settings};

fn message(priority: i64, body: &str) -> NewMessage {
    NewMessage {
        to: Target::Queue("q".into()),
        priority: Given::Number(priority),
        content: Content { body: body.to_owned().into(), ..Content::default() },
        ..NewMessage::default()
    }
}

fn pull(max: u32, wait_ms: u64) -> LeaseRequest {
    LeaseRequest { wait_ms, ..LeaseRequest::new(Arc::from("q"), max) }
}

#[tokio::test]
async fn urgent_work_overtakes_and_survives_a_restart() {
    let dir = tempfile::tempdir().expect("a directory");
    let engine = LocalEngine::open(dir.path()).expect("a new store opens");
    engine.declare_queue("q", Settings::default()).await.expect("declared");
    engine
        .publish(vec![message(1, "bulk"), message(9, "urgent"), message(5, "middle")])
        .await
        .expect("published");
    let first = engine.lease(pull(1, 0)).await.expect("leased");
    assert_eq!(first[0].content.body, "urgent");
    assert_eq!(engine.settle(vec![first[0].receipt], Outcome::Ack).await, Ok(vec![Ok(())]));
    drop(engine);

    let engine = LocalEngine::open(dir.path()).expect("the store opens again");
    assert_eq!(engine.recovered().messages, 2);
    let rest = engine.lease(pull(9, 0)).await.expect("leased");
    let bodies: Vec<_> = rest.iter().map(|message| message.content.body.clone()).collect();
    assert_eq!(bodies, ["middle", "bulk"]);
    let (waited, published) =
        tokio::join!(engine.lease(pull(1, 60_000)), engine.publish(vec![message(2, "late")]));
    published.expect("published");
    assert_eq!(waited.expect("woken")[0].content.body, "late");
}
