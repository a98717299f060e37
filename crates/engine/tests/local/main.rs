//! What is true of the local engine only: its directory, its disk, its threads.

mod cleaning;
mod clock;
mod closing;
mod damage;
mod damaged_segment;
mod dropping;
mod full;
mod load;
mod low;
mod opening;
mod poison;
mod session;
mod shards;
mod snapshot;
#[path = "../support/mod.rs"]
mod support;
mod traces;
