//! What clients are told when the store fails, is full, or the broker stops.

mod world;

use overtake_store::MemoryDisk;
use serde_json::json;
use world::World;

#[tokio::test]
async fn a_failed_store_says_that_the_outcome_is_unknown() {
    let disk = MemoryDisk::new(1);
    let world = World::on(&disk);
    world.put("/v1/queues/q", "").await.expect(201);
    disk.fail_next_sync();
    let failed = world.post("/v1/queues/q/messages", r#"{"body":"a"}"#).await;
    assert_eq!((failed.code().as_str(), failed.header("retry-after")), ("503 unavailable", "1"));
    assert!(failed.json["title"].as_str().expect("a title").contains("outcome of the request is unknown"));
    let later = world.get("/v1/queues/q").await;
    assert_eq!(later.code(), "503 unavailable", "nothing is served from a store that failed");
    let not_ready = world.get("/readyz").await;
    assert_eq!(not_ready.code(), "503 not-ready");
    assert!(not_ready.json["detail"].as_str().expect("a detail").starts_with("the engine is down: "));
    world.get("/livez").await.expect(200);
    assert!(world.get("/metrics").await.expect(200).text.contains("\novertake_engine_up 0\n"));
}

#[tokio::test]
async fn a_full_disk_refuses_publishes_and_takes_acks() {
    let disk = MemoryDisk::new(1);
    let world = World::on(&disk);
    world.put("/v1/queues/q", "").await.expect(201);
    world.publish("a").await;
    let (_, receipts) = world.lease(1).await;
    disk.set_capacity(Some(disk.used()));
    let message = json!({"body": "x".repeat(4_000)}).to_string();
    let refused = loop {
        let reply = world.post("/v1/queues/q/messages", &message).await;
        if reply.status != 201 {
            break reply;
        }
    };
    assert_eq!(refused.code(), "507 store-full");
    let ack = json!({"receipts": receipts, "how": "ack"}).to_string();
    world.post("/v1/queues/q/settle", &ack).await.expect(200);
}

#[tokio::test]
async fn a_broker_that_stopped_is_unavailable() {
    let world = World::with_queue("").await;
    world.engine.close();
    assert_eq!(world.post("/v1/queues/q/leases", "").await.code(), "503 unavailable");
    assert_eq!(world.get("/v1/queues").await.code(), "503 unavailable");
}
