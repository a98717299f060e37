//! The lanes of a category, and which of them a priority takes: as the broker has them.

pub use overtake_lane::{PriorityLanes as Lanes, StreamLane as Lane};
