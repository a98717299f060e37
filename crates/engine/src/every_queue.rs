//! All queues, a few at a time: the engine does nothing else while it tells of them.

use std::sync::Arc;

use overtake_lane::{QueueView, VhostView};

use crate::api::{Engine, Failure};

/// Queues that are asked for at once where all are wanted.
pub const QUEUES_AT_ONCE: usize = 64;

/// Shows every queue of the engine's virtual host, by name. A queue that is made or deleted meanwhile is shown or is not, and moves no
/// other.
pub async fn every_queue(engine: &dyn Engine, mut show: impl FnMut(QueueView) + Send) -> Result<(), Failure> {
    let mut after: Option<Arc<str>> = None;
    loop {
        let page = engine.queues(after.as_deref(), QUEUES_AT_ONCE).await?;
        page.queues.into_iter().for_each(&mut show);
        after = page.next;
        if after.is_none() {
            return Ok(());
        }
    }
}

/// Shows every queue of every virtual host. One that is deleted meanwhile is not shown, or not whole.
pub async fn every_queue_everywhere(
    engine: &dyn Engine,
    mut show: impl FnMut(&VhostView, QueueView) + Send,
) -> Result<(), Failure> {
    for vhost in engine.vhosts().await? {
        match every_queue(&*engine.in_vhost(vhost.vhost), |queue| show(&vhost, queue)).await {
            Ok(()) | Err(Failure::Refused(_)) => {}
            Err(failure) => return Err(failure),
        }
    }
    Ok(())
}
