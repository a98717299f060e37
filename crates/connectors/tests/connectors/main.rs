//! Endpoints against real servers: what is published into a queue is looked for at the other side.

mod certificates;
mod servers;
#[cfg(feature = "mqtt")]
mod to_mqtt;
#[cfg(feature = "redis")]
mod to_redis;
#[cfg(all(feature = "mqtt", feature = "redis"))]
mod under_tls;
mod world;
