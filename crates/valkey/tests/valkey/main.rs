//! Real servers, alone and in clusters, and everything that can happen to them.

#![expect(clippy::print_stdout, reason = "a test that is skipped says so")]

mod attending;
mod calls;
mod certificates;
mod conformance;
mod deep;
mod doubts;
mod endpoints;
mod facts;
mod falls;
mod history;
mod leading;
mod memory;
mod moves;
mod places;
mod processes;
mod pushes;
mod replicas;
mod rights;
mod schedules;
mod settings;
mod signs;
mod starts;
mod story;
mod unheard;
mod world;
