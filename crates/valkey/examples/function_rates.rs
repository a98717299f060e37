//! How many calls of a small function go through, one at a time, from many callers, and with many items in a call.
//!
//! `cargo run --profile dist -p overtake-valkey --example function_rates -- cluster redis://127.0.0.1:7000 [REPLICAS_ACKED]`, or `redis` for one server.

#![expect(clippy::print_stdout, reason = "figures are what it is for")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use overtake_peer::Vault;
use overtake_valkey::cluster::{Call, Cluster, Kind, Library, Nodes};
use tokio::task::JoinSet;

/// Puts each of its arguments into a field of a hash.
const LIBRARY: Library = Library {
    name: "rates",
    version: 1,
    source: "redis.register_function('rates_put', function(keys, args)\n  for at = 1, #args do redis.call('HSET', keys[1], at, args[at]) end\n  return #args\nend)",
};
/// How long each figure is taken.
const TIME: Duration = Duration::from_secs(4);
/// Bytes of an item.
const ITEM_LEN: usize = 256;

#[tokio::main]
async fn main() -> Result<(), String> {
    let mut words = std::env::args().skip(1);
    let kind = match words.next().as_deref() {
        Some("cluster") => Kind::Cluster,
        Some("redis") => Kind::Redis,
        _ => return Err("say cluster or redis, a URL, and how many replicas acknowledge".to_owned()),
    };
    let url = words.next().ok_or("say the URL of a server")?;
    let mut nodes = Nodes::new(kind, vec![url]);
    nodes.durability.replicas_acked = words.next().and_then(|word| word.parse().ok()).unwrap_or(0);
    let cluster = Cluster::connect(nodes, Vault::ANY, LIBRARY).await?;
    for (callers, items, tags) in
        [(1, 1, 1), (32, 1, 1), (32, 1, 32), (256, 1, 32), (2, 100, 2), (8, 100, 8), (32, 100, 32)]
    {
        let before = cluster.counts();
        let (calls, mut waits) = measure(&cluster, callers, items, tags).await?;
        let counts = cluster.counts();
        waits.sort_unstable();
        let at = |part: f64| waits[((waits.len() - 1) as f64 * part) as usize].as_micros();
        println!(
            "{callers:>4} callers, {items:>3} items a call, {tags:>2} keys: {:>7.0} calls/s {:>8.0} items/s, p50 {:>6} µs, p99 {:>6} µs, {:>5.1} calls a pipeline",
            calls as f64 / TIME.as_secs_f64(),
            (calls * items) as f64 / TIME.as_secs_f64(),
            at(0.5),
            at(0.99),
            (counts.calls - before.calls) as f64 / (counts.batches - before.batches) as f64,
        );
    }
    Ok(())
}

/// Calls that were answered, and how long each took.
async fn measure(
    cluster: &Arc<Cluster>,
    callers: usize,
    items: usize,
    tags: usize,
) -> Result<(usize, Vec<Duration>), String> {
    let until = Instant::now() + TIME;
    let mut all = JoinSet::new();
    let body = Bytes::from(vec![b'x'; ITEM_LEN]);
    for caller in 0..callers {
        let (cluster, body) = (Arc::clone(cluster), body.clone());
        all.spawn(async move {
            let mut waits = Vec::new();
            let key = Bytes::from(format!("{{{}}}", caller % tags));
            while Instant::now() < until {
                let call = Call::write("rates_put", vec![key.clone()], vec![body.clone(); items]);
                let asked = Instant::now();
                let deadline = tokio::time::Instant::now() + Duration::from_secs(30);
                cluster.call(deadline, call).await.map_err(|error| error.to_string())?;
                waits.push(asked.elapsed());
            }
            Ok::<_, String>(waits)
        });
    }
    let mut waits = Vec::new();
    for found in all.join_all().await {
        waits.extend(found?);
    }
    Ok((waits.len(), waits))
}
