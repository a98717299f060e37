//! RabbitMQ's management API, asked as its clients ask.

mod definitions;
mod every_route;
mod policies;
mod shapes;
mod tools;
mod world;
