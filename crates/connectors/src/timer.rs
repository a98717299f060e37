//! Waiting for a time that may not be set.

use std::time::Duration;

/// Ends after `time`; without one, never.
pub(crate) async fn sleep(time: Option<Duration>) {
    match time {
        Some(time) => tokio::time::sleep(time).await,
        None => std::future::pending().await,
    }
}
