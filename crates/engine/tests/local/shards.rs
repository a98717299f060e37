//! Several shards in one directory: where virtual hosts are, what another number of shards makes of them, and a snapshot of all.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use overtake_engine::conformance::refused;
use overtake_engine::{
    Clock, Connection, Engine, LocalEngine, NoShards, SHARDS_MAX, ShardedEngine, Snapshot, shard_dir,
    shards_in,
};
use overtake_lane::{Outcome, Refusal, Settings, VhostId, VhostSettings};
use overtake_store::{Intake, MANIFEST_NAME, Manifest, RealDisk};
use tempfile::TempDir;

use crate::support::{TINY, bodies, clock, message, options, pull};

fn open(dir: &Path, shards: usize) -> Result<ShardedEngine, NoShards> {
    let clock: Arc<dyn Clock> = clock();
    ShardedEngine::open_with(dir, shards, options(TINY), clock)
}

/// One of this name, with a queue in which a message of the same name waits.
async fn make(engine: &ShardedEngine, name: &str) -> VhostId {
    let vhost = engine.declare_vhost(name, VhostSettings::default()).await.expect("declared");
    let there = engine.in_vhost(vhost);
    there.declare_queue("q", Settings::default()).await.expect("declared");
    there.publish(vec![message(name, 5)]).await.expect("published");
    vhost
}

/// How many virtual hosts have their queues in each shard, as the shards alone say it.
async fn queues(dir: &Path, shards: usize) -> Vec<usize> {
    let mut counts = Vec::new();
    for shard in 0..shards {
        let alone = LocalEngine::open(shard_dir(dir, shard)).expect("it opens");
        counts.push(alone.recovered().queues);
    }
    counts
}

async fn waiting(engine: &ShardedEngine) -> Vec<String> {
    let mut all = Vec::new();
    for vhost in engine.vhosts().await.expect("shown") {
        let there = engine.in_vhost(vhost.vhost);
        let leased = there.lease(pull("q", 9)).await.unwrap_or_default();
        let receipts = leased.iter().map(|message| message.receipt).collect();
        all.push(format!("{}:{}", vhost.name, bodies(&leased)));
        there.settle(receipts, Outcome::Release).await.expect("released");
    }
    all
}

#[tokio::test]
async fn virtual_hosts_go_where_there_are_fewest_and_stay_there() {
    let dir = TempDir::new().expect("a directory");
    let engine = open(dir.path(), 3).expect("new");
    for name in ["a", "b", "c", "d"] {
        make(&engine, name).await;
    }
    let all = ["/:", "a:a", "b:b", "c:c", "d:d"];
    assert_eq!(waiting(&engine).await, all);
    engine.close();
    assert_eq!(queues(dir.path(), 3).await, [1, 2, 1]);
    // One that is there is found wherever it is, and made nowhere else.
    let engine = open(dir.path(), 3).expect("as it was");
    for name in ["a", "b", "c", "d"] {
        engine.declare_vhost(name, VhostSettings::default()).await.expect("declared");
    }
    assert_eq!(waiting(&engine).await, all);
}

#[tokio::test]
async fn a_store_of_one_shard_gets_more_and_none_is_left_out() {
    let dir = TempDir::new().expect("a directory");
    assert_eq!(shards_in(dir.path()).expect("read"), 1);
    let engine = open(dir.path(), 1).expect("new");
    make(&engine, "a").await;
    engine.close();
    let engine = open(dir.path(), 2).expect("one more");
    let vhost = make(&engine, "b").await;
    assert_eq!(waiting(&engine).await, ["/:", "a:a", "b:b"]);
    engine.close();
    assert_eq!(shards_in(dir.path()).expect("read"), 2);
    let error = open(dir.path(), 1).err().expect("b would be gone").to_string();
    assert_eq!(error, "the store has 2 shards; open it with 2 or more");
    assert!(matches!(open(dir.path(), 0), Err(NoShards::Count)));
    assert!(matches!(open(dir.path(), SHARDS_MAX + 1), Err(NoShards::Count)));
    let engine = open(dir.path(), 2).expect("as it was");
    // What was in it goes with it.
    engine.delete_vhost("b").await.expect("deleted");
    assert_eq!(waiting(&engine).await, ["/:", "a:a"]);
    assert_eq!(refused(engine.in_vhost(vhost).check_queue("q").await), Refusal::NoSuchVhost);
}

#[tokio::test]
async fn only_what_a_shard_would_be_is_taken_for_one() {
    let dir = TempDir::new().expect("a directory");
    for name in ["shard-32", "shard-18446744073709551615", "shard-02", "shard-x"] {
        fs::create_dir(dir.path().join(name)).expect("made");
    }
    fs::write(dir.path().join("shard-3"), "a note").expect("written");
    assert_eq!(shards_in(dir.path()).expect("read"), 1);
    open(dir.path(), 1).expect("nothing is in the way");
    let error = shards_in(&dir.path().join("shard-3")).expect_err("no directory");
    assert_eq!(error.kind(), ErrorKind::NotADirectory);
}

#[tokio::test]
async fn a_receipt_of_one_shard_is_none_of_anothers() {
    let dir = TempDir::new().expect("a directory");
    let engine = open(dir.path(), 2).expect("new");
    let (a, b) = (make(&engine, "a").await, make(&engine, "b").await);
    let lease = async |there: Connection| there.lease(pull("q", 1)).await.expect("leased")[0].receipt;
    let (of_a, of_b) = (lease(engine.in_vhost(a)).await, lease(engine.in_vhost(b)).await);
    let crossed = engine.in_vhost(a).settle(vec![of_b], Outcome::Ack).await.expect("answered");
    assert_eq!(crossed, [Err(Refusal::StaleReceipt)]);
    for (vhost, receipt) in [(a, of_a), (b, of_b)] {
        assert_eq!(
            engine.in_vhost(vhost).settle(vec![receipt], Outcome::Ack).await.expect("answered"),
            [Ok(())]
        );
    }
}

/// Writes each shard's files where they belong. Answers the names in their order.
fn copy(mut snapshot: Snapshot, to: &Path) -> Vec<String> {
    let begin = |dir: &Path| Intake::begin(RealDisk::create(dir).expect("made")).expect("it is empty");
    let (mut names, mut intake) = (Vec::new(), None);
    while let Some((name, _)) = snapshot.next_file().expect("there is one") {
        let (dir, file) = name.split_once('/').unwrap_or(("", &name));
        let there = intake.get_or_insert_with(|| begin(&to.join(dir)));
        if file == MANIFEST_NAME {
            let mut json = Vec::new();
            std::io::Read::read_to_end(&mut snapshot, &mut json).expect("read");
            let manifest = Manifest::parse(&json).expect("it is right");
            intake.take().expect("it began").finish(&manifest, true).expect("it is whole");
        } else {
            there.take(file, &mut snapshot).expect("it is read");
        }
        names.push(name);
    }
    let manifest = Manifest::parse(&snapshot.manifest().expect("all was read")).expect("it is right");
    intake.take().expect("it began").finish(&manifest, true).expect("it is whole");
    names
}

#[tokio::test]
async fn a_snapshot_is_of_all_shards_the_first_one_last() {
    let (dir, copied) = (TempDir::new().expect("a directory"), TempDir::new().expect("another"));
    let engine = open(dir.path(), 3).expect("new");
    for name in ["a", "b", "c"] {
        make(&engine, name).await;
    }
    let names = copy(engine.snapshot().expect("taken"), copied.path());
    let manifests: Vec<_> = names.iter().filter(|name| name.ends_with(MANIFEST_NAME)).collect();
    assert_eq!(manifests, ["shard-1/snapshot.json", "shard-2/snapshot.json"]);
    assert!(!names.last().expect("there are some").contains('/'), "{names:?}");
    assert_eq!(shards_in(copied.path()).expect("read"), 3);
    let copy = open(copied.path(), 3).expect("it opens");
    assert_eq!(waiting(&copy).await, ["/:", "a:a", "b:b", "c:c"]);
}
