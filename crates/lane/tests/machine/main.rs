//! Worlds too large to try all of: hundreds of commands, drawn and shrunk by proptest.

#[path = "../elsewhere/mod.rs"]
mod elsewhere;
#[path = "../model/mod.rs"]
mod model;
#[path = "../model/twin.rs"]
mod twin;
#[path = "../watch/mod.rs"]
mod watch;

mod anything;
mod one_queue;
mod remote;
mod routes;
