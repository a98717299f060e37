//! Endpoints and sources at work, with real sockets: claims about what arrives, and what people are told.

mod admin;
mod moves;
mod receiver;
mod webhook;
mod world;
