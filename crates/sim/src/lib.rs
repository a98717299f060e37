//! The simulator: whole brokers on a faulty disk, judged by what their clients saw.
//!
//! One thread and one seed make a *world*: the real model, store and engine core; simulated are only the doors: disk, clock
//! and clients. While it runs, a checker for each promise of the broker looks on. The same seed is the same story.

mod amqp;
mod audit;
mod book;
mod calm;
mod check;
mod client;
mod draw;
mod endpoint;
mod failure;
mod fault;
mod keys;
mod life;
mod plan;
mod post;
mod refold;
mod rng;
mod round;
mod routed;
mod rules;
mod sabotage;
mod shelf;
mod single;
mod step;
mod tally;
mod tell;
mod trace;
mod world;

pub use failure::{Failure, Promise};
pub use plan::Fault;
pub use sabotage::Sabotage;
pub use tally::Tally;
pub use world::{Config, Outcome, run};
