//! The store from outside: what is written, what is damaged, what fails.

mod common;
mod damage;
mod faults;
mod format;
mod ids;
mod ids_faults;
mod journal;
mod roundtrip;
mod segment;
mod segment_damage;
mod segment_faults;
mod snapshot;
mod stats;
