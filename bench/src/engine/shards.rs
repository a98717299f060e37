//! Several loops and journals in one process: the same work of four virtual hosts on one, two and four shards, and who had the processors meanwhile.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use overtake_engine::{Connection, Engine, Options, ShardedEngine, SystemClock};
use overtake_lane::{Settings, VhostSettings};

use super::{QUEUE, Shape, drain, fill};
use crate::Plan;
use crate::proc::Busy;
use crate::report::Row;

const VHOSTS: usize = 4;
const SHAPE: Shape = Shape { batch: 100, calls: 16 };

/// Each beside one shard.
pub(super) fn run(dir: &Path, plan: Plan) -> Vec<Row> {
    let runtime = tokio::runtime::Builder::new_multi_thread().build().expect("a runtime");
    let mut rows: Vec<Row> = Vec::new();
    let mut alone = [0.0; 2];
    for shards in [1, 2, 4] {
        let dir = dir.join(shards.to_string());
        let measured = runtime.block_on(measure(&dir, shards, plan.times(400_000)));
        for ((what, per_second, busy), alone) in measured.into_iter().zip(&mut alone) {
            let label = format!("{what}, durable: {VHOSTS} virtual hosts, {shards} shards ({busy})");
            let row = Row::of_rate(label, "messages", per_second);
            if shards == 1 {
                *alone = per_second;
                rows.push(row.reference());
            } else {
                rows.push(row.beside(per_second / *alone));
            }
        }
    }
    rows
}

async fn measure(dir: &Path, shards: usize, messages: usize) -> [(&'static str, f64, String); 2] {
    let engine = ShardedEngine::open_with(dir, shards, Options::default(), Arc::new(SystemClock))
        .expect("a new store");
    let mut all = Vec::new();
    for number in 0..VHOSTS {
        let vhost = engine.declare_vhost(&format!("v{number}"), VhostSettings::default());
        let there = engine.in_vhost(vhost.await.expect("a new one"));
        there.declare_queue(QUEUE, Settings::default()).await.expect("a new queue");
        all.push(there);
    }
    let each = messages / VHOSTS;
    let (published, busy) = at_once(&all, |there| async move { fill(&there, SHAPE, each).await }).await;
    let published = ("publish", messages as f64 / published, busy);
    let (drained, busy) = at_once(&all, |there| async move { drain(&there, SHAPE).await }).await;
    engine.close();
    [published, ("lease + ack", messages as f64 / drained, busy)]
}

/// Does it in all virtual hosts; how long it took, s, and who had the processors.
async fn at_once<F>(all: &[Connection], work: impl Fn(Connection) -> F) -> (f64, String)
where
    F: Future<Output = ()>,
{
    let (start, busy) = (Instant::now(), Busy::now());
    let mut works: Vec<_> = all.iter().map(|there| Box::pin(work(Arc::clone(there)))).collect();
    let mut is_over = vec![false; works.len()];
    std::future::poll_fn(|context| {
        for (work, is_over) in works.iter_mut().zip(&mut is_over) {
            *is_over = *is_over || work.as_mut().poll(context).is_ready();
        }
        if is_over.iter().all(|over| *over) { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
    let took = start.elapsed().as_secs_f64();
    let spent = Busy::now().since(&busy);
    let share = |name: &str| (100.0 * spent.of(name) / took).round();
    let loops = share("overtake-broker");
    (took, format!("% of a core: loops {loops}, disk threads {}, all {}", share("overtake-disk"), share("")))
}
