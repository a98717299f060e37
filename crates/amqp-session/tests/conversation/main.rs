//! Clients and a broker, without sockets: what is said on an AMQP connection, and what comes of it.

mod broker;
mod client;
mod holes;
mod saying;
mod words;
