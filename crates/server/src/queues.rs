//! Queues of the configuration, declared at start.

use overtake_engine::{Engine, Failure, Refused};

use crate::ServeError;
use crate::config::ConfiguredQueue;

/// Declares every queue. One that is there gets the settings of the configuration.
pub(crate) async fn declare(engine: &dyn Engine, queues: &[ConfiguredQueue]) -> Result<(), ServeError> {
    for queue in queues {
        match engine.declare_queue(&queue.name, queue.settings.clone()).await {
            Ok(declared) if declared.made => tracing::info!(queue = queue.name, "declared"),
            Ok(_) => {}
            Err(Failure::Refused(Refused { refusal, .. })) => {
                return Err(ServeError::Queue {
                    queue: queue.name.clone(),
                    place: queue.origin.clone(),
                    refusal,
                });
            }
            Err(Failure::Unavailable(why)) => return Err(ServeError::Stopped { why: why.to_string() }),
        }
    }
    Ok(())
}
