//! Clients and a broker, without sockets: what is said on an AMQP connection, and what comes of it.

mod arguments;
mod broker;
mod client;
mod control;
mod deaths;
mod exchanges;
mod holes;
mod inequivalent;
mod messages;
mod refusals;
mod saying;
mod strictness;
mod words;
mod wrong_arguments;
