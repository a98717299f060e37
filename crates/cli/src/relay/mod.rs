//! The relay as a process: until a signal ends it, with what is counted for whoever asks.

mod metrics;

use std::net::SocketAddr;

use overtake_outbox::Config;

use crate::commands::Ended;
use crate::commands::relay::{banner, failed};
use crate::failure::{Exit, Failure};
use crate::signals::Ending;
use metrics::Served;

/// Relays until a signal ends it; the second ends it at once.
pub(crate) async fn run(config: &Config, metrics: Option<SocketAddr>, for_people: bool) -> Ended {
    let mut signals = Ending::listen()?;
    let relay = tokio::select! {
        relay = config.relay() => relay.map_err(failed)?,
        () = signals.wait() => return Ok(Exit::Done),
    };
    let served = match metrics {
        Some(address) => Some(Served::start(address, relay.watch()).await.map_err(|error| {
            Failure::new(Exit::Error, format!("cannot listen on {address}: {error}"))
                .hint("name another with --metrics")
        })?),
        None => None,
    };
    let address = served.as_ref().map(|served| served.address);
    if for_people {
        banner(config, address);
    } else {
        tracing::info!(metrics = address.map(tracing::field::display), "ready");
    }
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let mut relaying = tokio::spawn(relay.run(async {
        // Who would say so is gone: the same.
        let _ = stopped.await;
    }));
    signals.wait().await;
    tracing::info!("stopping");
    drop(stop);
    let ended = tokio::select! {
        _ = &mut relaying => Ok(Exit::Done),
        () = signals.wait() => {
            let what = "stopped at the second signal";
            Err(Failure::new(Exit::Error, what).hint("what was claimed comes back when its lock is over"))
        }
    };
    drop(served);
    ended
}
