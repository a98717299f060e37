//! What it costs that somebody looks at the page: every second all queues, with their rates, waits, troubles and an hour of history.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use overtake_engine::{Engine, LocalEngine, SystemClock};
use overtake_overview::Overview;
use rustix::time::{ClockId, clock_gettime};

use crate::Plan;
use crate::report::Row;
use crate::scrape::fill;

/// Each a second after the other.
const LOOKS: usize = 10;

pub(crate) fn run(plan: Plan) -> Vec<Row> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    let dir = tempfile::tempdir().expect("a directory for the store");
    let all = [100, 5_000].map(|queues| {
        runtime.block_on(watched(&dir.path().join(queues.to_string()), queues, plan.times(LOOKS)))
    });
    all.into()
}

/// Of all threads: the one that looks, and the engine's, which tells.
async fn watched(dir: &Path, queues: usize, looks: usize) -> Row {
    let engine = Arc::new(LocalEngine::open(dir).expect("a new store"));
    fill(&engine, queues).await;
    let overview = Arc::new(Overview::new(Arc::clone(&engine) as Arc<dyn Engine>, Arc::new(SystemClock)));
    let looking = Arc::clone(&overview);
    let looking = tokio::spawn(async move { looking.run().await });
    let mut watch = overview.watch();
    let mut look = async || watch.changed().await.expect("it looks for ever");
    // The first has nothing to compare with.
    look().await;
    look().await;
    let before = on_cpu();
    for _ in 0..looks {
        look().await;
    }
    let busy = on_cpu() - before;
    looking.abort();
    engine.close();
    Row::new(format!("{queues} queues: a look"), "looks", looks, busy)
}

/// How long cores were busy with this process.
fn on_cpu() -> Duration {
    clock_gettime(ClockId::ProcessCPUTime).try_into().expect("no time is negative")
}
