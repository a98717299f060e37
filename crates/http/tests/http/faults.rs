//! What clients are told when the store fails, is full, or the broker stops.

use overtake_store::MemoryDisk;
use serde_json::json;

use crate::world::World;

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
async fn a_low_disk_refuses_publishes_and_says_what_to_do() {
    let disk = MemoryDisk::new(1);
    // Room that nobody has yet: it is low from the start.
    disk.set_capacity(Some(100 << 20));
    disk.put("others", vec![0; 98 << 20]);
    let world = World::on(&disk);
    world.put("/v1/queues/q", "").await.expect(201);
    let why = "the disk has 1.9 MiB free and was below the low watermark of 5.0 MiB; they are taken again above 7.5 MiB";
    let message = r#"{"body":"a"}"#;
    for (path, body) in [
        ("/v1/queues/q/messages", message.to_owned()),
        ("/v1/queues/q/messages", format!(r#"{{"messages":[{message},{message}]}}"#)),
        ("/v1/transactions", r#"{"publish":[{"queue":"q","body":"a"}]}"#.to_owned()),
    ] {
        let refused = world.post(path, &body).await;
        assert_eq!(refused.code(), "507 store-full", "{path} {body}: {}", refused.text);
        assert_eq!(refused.json["detail"], format!("the store is full: {why}"));
        let hint = refused.json["hint"].as_str().expect("a hint");
        assert!(
            hint.starts_with("free disk space, or lower the watermark, store.disk_low_bytes; consume"),
            "{hint}"
        );
    }
    let ready = world.get("/readyz").await.expect(200);
    assert_eq!(ready.json["warning"], format!("publishes are refused: {why}"));
    let metrics = world.get("/metrics").await.expect(200).text;
    for sample in ["engine_full 1", "disk_low 1", "disk_low_watermark_bytes 5242880"] {
        assert!(metrics.contains(&format!("\novertake_{sample}\n")), "{sample} in {metrics}");
    }
}

#[tokio::test]
async fn a_broker_that_stopped_is_unavailable() {
    let world = World::with_queue("").await;
    world.engine.close();
    assert_eq!(world.post("/v1/queues/q/leases", "").await.code(), "503 unavailable");
    assert_eq!(world.get("/v1/queues").await.code(), "503 unavailable");
}
