//! What the log says about room: one line when publishes begin to be refused, one when they are taken again.

use std::time::Duration;

use overtake_engine::Full;
use tokio::sync::watch::Receiver;
use tokio::time::timeout;

/// Publishes must be taken so long before it is said that they are: near the end of the room there is a little now and then.
const CALM: Duration = Duration::from_secs(5);

/// Writes the lines, as long as there is an engine.
pub(crate) async fn watch(mut full: Receiver<Option<Full>>) {
    while let Some(Some(why)) = next(&mut full, true).await {
        warn(&why);
        if !has_room(&mut full).await {
            return;
        }
        tracing::info!("there is room again: publishes are taken");
    }
}

fn warn(why: &Full) {
    tracing::warn!("publishes are refused: {why}; {}", why.hint());
}

/// Waits until there has been room for a while; false when nobody says anything any more.
async fn has_room(full: &mut Receiver<Option<Full>>) -> bool {
    while next(full, false).await.is_some() {
        match timeout(CALM, next(full, true)).await {
            Err(_) => return true,
            Ok(None) => return false,
            Ok(Some(_)) => {}
        }
    }
    false
}

/// What is said as soon as it is, or is not, full; `None` when nobody says anything any more.
async fn next(full: &mut Receiver<Option<Full>>, is_full: bool) -> Option<Option<Full>> {
    full.wait_for(|full| full.is_some() == is_full).await.ok().map(|full| full.clone())
}
