//! Queues on servers whose definition was lost.

use std::sync::Arc;

use overtake_lane::QueueId;

/// A queue of which the servers have messages and no definition, as they lost that, or went back to an older one. Nobody is given its messages before it is adopted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Orphan {
    /// Its number.
    pub queue: QueueId,
    /// The name of the virtual host that it was in; `None`: a version put it there that did not say.
    pub vhost: Option<Arc<str>>,
    /// Its name.
    pub name: Arc<str>,
    /// Partitions of it that were found.
    pub partitions: u64,
    /// Messages in them, whatever their status.
    pub messages: u64,
}
