//! What works beside the broker, and is seen and changed over HTTP.

use std::sync::Arc;

use overtake_categories::Categories;
use overtake_connectors::{Endpoints, Sources};
use overtake_overview::Overview;
use overtake_schedules::Schedules;

/// What works beside the broker.
#[derive(Clone)]
pub struct Services {
    /// Categories of streams, with the lanes of their groups.
    pub categories: Arc<Categories>,
    /// Messages by cron line.
    pub schedules: Arc<Schedules>,
    /// Queues whose messages are sent to other systems.
    pub endpoints: Arc<Endpoints>,
    /// Other systems whose messages are taken in.
    pub sources: Arc<Sources>,
    /// How all queues stand and have stood.
    pub overview: Arc<Overview>,
}
