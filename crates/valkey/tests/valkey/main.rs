//! Real servers, alone and in clusters, and everything that can happen to them.

#![expect(clippy::print_stdout, reason = "a test that is skipped says so")]

mod calls;
mod certificates;
mod doubts;
mod facts;
mod falls;
mod moves;
mod places;
mod pushes;
mod rights;
mod settings;
mod story;
mod world;
