//! Queues that are declared at start: `[queues.NAME]` with the same keys as over HTTP.

use std::collections::BTreeMap;

use overtake_lane::Settings;

use super::Origin;

/// The flag that declares one queue: `--queue NAME` or `--queue 'NAME={ key = value, … }'`.
pub const QUEUE_FLAG: &str = "queue";

/// The queues of one source, by name.
pub(super) type QueueTables = BTreeMap<String, Settings>;

/// A queue that is declared at start. A later source replaces the table of an earlier one as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfiguredQueue {
    /// Its name.
    pub name: String,
    /// Its settings.
    pub settings: Settings,
    /// Where it is declared.
    pub origin: Origin,
}
