//! The connection machine, as a client and a broker see it.

mod begins;
mod blocked;
mod consumes;
mod ends;
mod peer;
mod publishes;
mod seen;
mod transacts;
