//! What is claimed of streams, with a Redis of the test's own.

mod dead_letters;
mod failing;
mod lag;
mod losing;
mod reading;
mod sharing;
mod world;
mod writing;
