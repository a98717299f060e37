//! Says of what is held that it is being worked on, so that nobody takes it over.

use std::sync::Arc;
use std::time::Duration;

use redis::Value;

use super::Shared;
use crate::scripts;

/// So many entries are spoken of at once.
pub(super) const PAGE: usize = 200;
/// It is tried again so soon where the server does not hear it.
const SOON: Duration = Duration::from_secs(1);

pub(super) async fn run(shared: Arc<Shared>) {
    let turn = shared.options.claim_idle / 3;
    let (mut wait, mut is_told) = (turn, false);
    loop {
        tokio::time::sleep(wait).await;
        (wait, is_told) = match keep(&shared).await {
            Ok(()) => (turn, false),
            Err(why) => {
                if !is_told {
                    tracing::warn!(%why, "the server does not hear what is being worked on");
                }
                (turn.min(SOON), true)
            }
        };
    }
}

async fn keep(shared: &Shared) -> Result<(), String> {
    let (options, mut declined) = (&shared.options, Ok(()));
    let streams = shared.held().streams();
    for stream in streams {
        let ids = shared.held().ids(&stream);
        for some in ids.chunks(PAGE) {
            let keep = scripts::keep(&stream, &options.group, &options.consumer, some);
            let gone = match shared.settling.ask(&keep).await? {
                Ok(Value::Array(gone)) => gone,
                Ok(_) => continue,
                // A fault of one stream must not keep the entries of another from being kept.
                Err(fault) => {
                    declined = declined.and(Err(format!("{stream}: {fault}")));
                    break;
                }
            };
            for id in gone {
                // It may have been settled meanwhile, which is the same.
                if let Value::BulkString(id) = id {
                    shared.held().forget(&stream, &String::from_utf8_lossy(&id));
                }
            }
        }
    }
    declined
}
