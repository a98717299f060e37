//! Draining: clients of AMQP go, leases come back, up to a bound.

use std::sync::Arc;
use std::time::Duration;

use overtake_connections::Term;
use overtake_engine::{Engine, every_queue_everywhere};
use overtake_http::{Drain, Drained};
use overtake_lane::QueueView;
use tokio_util::sync::CancellationToken;

/// How often it is looked whether what is leased has come back.
const LOOK: Duration = Duration::from_millis(50);

/// Waits for a drain to begin, and carries it out: `amqp` closes by itself then, and its clients go as they hold nothing any more.
/// Ends at `shutdown` whatever is left.
pub(crate) async fn carry_out(
    drain: Drain,
    amqp: Term,
    engine: Arc<dyn Engine>,
    shutdown: CancellationToken,
) {
    let work = async {
        drain.begun().cancelled().await;
        tracing::info!("draining: no more messages are given out, and AMQP connections are not accepted");
        amqp.open.close();
        let bound = drain.bound();
        let empty = async {
            amqp.open.wait().await;
            while leased(&*engine).await > 0 {
                tokio::time::sleep(LOOK).await;
            }
        };
        let drained = tokio::time::timeout(bound, empty).await.is_ok();
        let unacknowledged = leased(&*engine).await;
        if drained {
            tracing::info!("drained: nothing is leased, and no AMQP connection is open");
        } else {
            let open = amqp.open.len();
            tracing::warn!(unacknowledged, open, "not drained in {bound:?}; AMQP connections are closed");
            amqp.stop.cancel();
            amqp.open.wait().await;
        }
        drain.finish(Drained { drained, unacknowledged });
    };
    let _ = shutdown.run_until_cancelled(work).await;
}

/// Messages that are leased; none where nobody can say.
async fn leased(engine: &dyn Engine) -> u64 {
    let mut leased = 0;
    let of = |queue: &QueueView| queue.lanes.iter().map(|lane| lane.leased).sum::<u64>();
    let all = every_queue_everywhere(engine, |_, queue| leased += of(&queue)).await;
    if all.is_ok() { leased } else { 0 }
}
