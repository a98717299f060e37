//! Endpoints and sources at work, with real sockets: claims about what arrives, and what people are told.

#![expect(clippy::print_stderr, reason = "a test that is skipped says why")]

mod admin;
mod amqp;
mod moves;
mod rabbit;
mod receiver;
mod webhook;
mod world;
