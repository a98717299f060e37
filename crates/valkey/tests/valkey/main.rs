//! Real servers, alone and in clusters, and everything that can happen to them.

#![expect(clippy::print_stdout, reason = "a test that is skipped says so")]

mod calls;
mod story;
mod world;
