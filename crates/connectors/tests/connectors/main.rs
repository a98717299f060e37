//! Endpoints and sources at work, with real sockets: claims about what arrives, and what people are told.

#![expect(clippy::print_stderr, reason = "a test that is skipped says why")]

mod admin;
mod amqp;
#[cfg(all(feature = "mqtt", feature = "redis"))]
mod certificates;
mod moves;
#[cfg(any(feature = "mqtt", feature = "redis"))]
mod outward;
mod rabbit;
mod receiver;
#[cfg(all(feature = "mqtt", feature = "redis"))]
mod senders;
#[cfg(any(feature = "mqtt", feature = "redis"))]
mod servers;
#[cfg(all(feature = "mqtt", feature = "redis"))]
mod there_and_back;
#[cfg(feature = "mqtt")]
mod to_mqtt;
#[cfg(feature = "redis")]
mod to_redis;
#[cfg(all(feature = "mqtt", feature = "redis"))]
mod under_tls;
#[cfg(all(feature = "mqtt", feature = "redis"))]
mod urgency;
mod webhook;
mod world;
