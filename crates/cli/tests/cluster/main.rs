//! The proof that brokers on a cluster keep what they promise, whatever falls: real processes, real servers, and a checker that is told what their clients saw.
//!
//! `cargo xtask test cluster` runs it; it has the machine for itself, and so is no part of the suite, of which the checker's own tests are.

#![expect(clippy::print_stdout, reason = "the proof says what it saw")]

mod cast;
mod checker;
mod consumer;
mod history;
mod leaser;
mod network;
mod outage;
mod proof;
mod publisher;
mod stage;
#[path = "../cli/support/mod.rs"]
mod support;
mod wire;
#[allow(dead_code, reason = "the tests of the engine use what these do not")]
#[path = "../../../valkey/tests/valkey/world/mod.rs"]
mod world;
