//! The holder of a leased message and the progress of the work, for people; and the receipt of the lease, for whoever hears by the
//! message's id how the work went.
//!
//! But for the receipt none of it is durable: after a restart nobody is known to hold what is still leased.

use std::sync::Arc;

use overtake_lane::{Progress, Receipt, Time};

/// Longest name that a worker may give itself, bytes.
pub const WORKER_LEN_MAX: usize = 200;

/// Who leased a message, as far as it was said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Holder {
    /// The user.
    pub user: Option<Arc<str>>,
    /// The connection by which messages come to it, as the management API calls it.
    pub connection: Option<Arc<str>>,
    /// The tag of the consumer on that connection.
    pub consumer_tag: Option<Arc<str>>,
    /// The address that it asked from, where each lease is asked for.
    pub address: Option<Arc<str>>,
    /// The name that it gives itself, at most [`WORKER_LEN_MAX`] bytes.
    pub worker: Option<Arc<str>>,
}

/// What is known of the lease of a message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// The receipt of the lease.
    pub receipt: Option<Receipt>,
    /// Who holds it.
    pub by: Option<Arc<Holder>>,
    /// When it was leased.
    pub since: Option<Time>,
    /// How far the work is.
    pub progress: Option<Arc<Progress>>,
}
