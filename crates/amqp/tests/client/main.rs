//! The client machine: against a server that is scripted frame by frame, and against our own.

mod begins;
mod consumes;
mod ends;
mod pair;
mod publishes;
mod server;
mod together;
