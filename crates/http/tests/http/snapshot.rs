//! A snapshot over HTTP: a tar that ends with a manifest, one at a time, and cut where it cannot be finished.

use std::io::Read;

use axum::body::Body;
use axum::http::{Request, StatusCode};
use http_body_util::BodyExt;
use overtake_engine::{Engine, LocalEngine};
use overtake_store::{Intake, Manifest, MemoryDisk};

use crate::world::World;

const PATH: &str = "/v1/store/snapshot";

/// With more in its store than may wait for a client.
async fn large() -> World {
    let world = World::with_queue("").await;
    let message = serde_json::json!({ "body": "x".repeat(50_000) }).to_string();
    for _ in 0..60 {
        world.post("/v1/queues/q/messages", &message).await.expect(201);
    }
    world
}

/// The answer, as far as its head.
async fn begin(world: &World) -> axum::response::Response {
    let request = Request::get(PATH).body(Body::empty()).expect("a request");
    world.begin(request).await
}

/// A disk with what is in a tar.
fn unpacked(tar: &[u8]) -> MemoryDisk {
    let disk = MemoryDisk::new(2);
    let mut intake = Intake::begin(disk.clone()).expect("it is empty");
    let mut manifest = Vec::new();
    for entry in tar::Archive::new(tar).entries().expect("a tar") {
        let mut entry = entry.expect("an entry");
        assert_eq!(entry.header().mode().expect("a mode"), 0o600);
        let name = String::from_utf8(entry.path_bytes().into_owned()).expect("text");
        assert!(manifest.is_empty(), "{name} comes after the manifest");
        if name == "snapshot.json" {
            entry.read_to_end(&mut manifest).expect("it is whole");
        } else {
            intake.take(&name, &mut entry).expect("it is whole");
        }
    }
    intake.finish(&Manifest::parse(&manifest).expect("it is right"), false).expect("it is whole");
    disk
}

#[tokio::test]
async fn a_snapshot_is_a_tar_of_the_store_with_a_manifest_at_its_end() {
    let world = World::with_queue("").await;
    world.publish("before").await;
    let response = begin(&world).await;
    assert_eq!(response.status(), StatusCode::OK);
    let header = |name: &str| response.headers()[name].to_str().expect("text").to_owned();
    assert_eq!(header("content-type"), "application/x-tar");
    assert_eq!(header("content-disposition"), "attachment; filename=\"overtake-snapshot.tar\"");
    assert_eq!(header("cache-control"), "no-store");
    // It was taken when the answer began.
    world.publish("after").await;
    let tar = response.into_body().collect().await.expect("whole").to_bytes();
    let disk = unpacked(&tar);
    assert!(overtake_store::check(&disk).expect("a store").is_clean());
    let clock = std::sync::Arc::new(overtake_engine::SystemClock);
    let options = overtake_engine::Options { segment_bytes: 1 << 20, ..Default::default() };
    let again = LocalEngine::open_on(disk, options, clock).expect("it opens");
    assert_eq!(again.recovered().messages, 1);
    assert_eq!(again.queue("q").await.expect("there").lanes.iter().map(|lane| lane.ready).sum::<u64>(), 1);
}

#[tokio::test]
async fn there_is_one_at_a_time_until_its_body_is_dropped() {
    let world = large().await;
    let first = begin(&world).await;
    let refused = begin(&world).await;
    assert_eq!(refused.status(), StatusCode::CONFLICT);
    let refused = refused.into_body().collect().await.expect("whole").to_bytes();
    let refused: serde_json::Value = serde_json::from_slice(&refused).expect("JSON");
    assert_eq!(refused["code"], "snapshot-running");
    assert_eq!(refused["hint"], "wait until it is finished; one is copied at a time");
    // The client is gone.
    drop(first);
    loop {
        let next = begin(&world).await;
        if next.status() == StatusCode::OK {
            unpacked(&next.into_body().collect().await.expect("whole").to_bytes());
            return;
        }
        assert_eq!(next.status(), StatusCode::CONFLICT);
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_snapshot_is_cut_when_the_server_stops() {
    let world = large().await;
    let response = begin(&world).await;
    world.options.shutdown.cancel();
    let error = response.into_body().collect().await.expect_err("it cannot be finished");
    assert!(error.to_string().contains("stopping"), "{error}");
}

#[tokio::test]
async fn a_snapshot_is_cut_when_the_engine_stops() {
    let world = large().await;
    let response = begin(&world).await;
    world.engine.close();
    let error = response.into_body().collect().await.expect_err("it cannot be finished");
    assert!(error.to_string().contains("the snapshot was given up: it is stopping"), "{error}");
    assert_eq!(world.get(PATH).await.code(), "503 unavailable");
}

#[tokio::test]
async fn pages_of_others_get_none() {
    let world = World::with_queue("").await;
    for (site, status) in [("cross-site", 403), ("same-site", 403), ("none", 200), ("same-origin", 200)] {
        let request =
            Request::get(PATH).header("sec-fetch-site", site).body(Body::empty()).expect("a request");
        let response = world.begin(request).await;
        assert_eq!(response.status(), status, "{site}");
        response.into_body().collect().await.expect("whole");
        // The last chunk is read a moment before it is over.
        while world.engine.snapshot().is_err() {
            tokio::task::yield_now().await;
        }
    }
}
