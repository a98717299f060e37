//! Whether the system gives this process the threads that it needs. The runtime and the engine panic where it does not, so it is asked before
//! they start.

use std::io;
use std::num::NonZero;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Builder, JoinHandle, available_parallelism};

use crate::ServeError;
use crate::config::Config;

/// Of the embedded store, for each shard: broker, commits, journal files, segments, and freeing memory.
const OF_A_SHARD: usize = 5;
/// For what blocks: files, names of hosts, passwords.
const BLOCKING: usize = 4;

/// Starts as many threads as a broker with this configuration has at least, all at a time, and ends them.
///
/// # Errors
/// [`ServeError::Threads`] when the system starts fewer.
pub(crate) fn check(config: &Config) -> Result<(), ServeError> {
    // As the runtime counts its workers.
    let workers = available_parallelism().map_or(1, NonZero::get);
    let shards = config.store.shards.value.0 as usize;
    start(workers + OF_A_SHARD * shards + BLOCKING)
}

fn start(needed: usize) -> Result<(), ServeError> {
    let (release, wait): (SyncSender<()>, Receiver<()>) = sync_channel(0);
    let wait = std::sync::Arc::new(std::sync::Mutex::new(wait));
    let parked = || -> io::Result<JoinHandle<()>> {
        let wait = std::sync::Arc::clone(&wait);
        // Nothing is ever sent: waiting ends when the sender is gone.
        Builder::new().name("overtake-probe".to_owned()).spawn(move || {
            let _ = wait.lock().map(|wait| wait.recv());
        })
    };
    let mut started = Vec::with_capacity(needed);
    let refused = (0..needed).find_map(|_| parked().map(|thread| started.push(thread)).err());
    drop(release);
    let count = started.len();
    for thread in started {
        thread.join().expect("it only waits");
    }
    refused.map_or(Ok(()), |error| Err(ServeError::Threads { started: count, needed, error }))
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_system_that_gives_them_is_asked_for_all_at_a_time() {
        assert!(super::start(16).is_ok());
    }
}
