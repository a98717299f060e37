//! Endpoints and sources at work, with real sockets: claims about what arrives, and what people are told.

mod admin;
mod amqp;
mod moves;
mod rabbit;
mod receiver;
mod webhook;
mod world;
