//! Clients and a broker, without sockets: what is said on an AMQP connection, and what comes of it.

mod arguments;
mod broker;
mod changes;
mod client;
mod consumers;
mod control;
mod deaths;
mod drain;
mod exchanges;
mod full;
mod holes;
mod inequivalent;
mod lives;
mod messages;
mod refusals;
mod replies;
mod rights;
mod routes;
mod saying;
mod strictness;
mod transactions;
mod words;
mod wrong_arguments;
