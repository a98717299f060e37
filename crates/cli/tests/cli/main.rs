//! The command line, and the broker that it starts, as people and scripts run them.

mod amqp;
mod brokers;
mod cameras;
mod categories;
mod client;
mod commands;
mod crowds;
#[allow(dead_code, reason = "the tests of the relay's library use what these do not")]
#[path = "../../../outbox/tests/outbox/servers.rs"]
mod databases;
mod definitions;
mod doctor;
mod dpkg;
mod exactly_once;
mod exec;
mod exits;
mod full_disk;
mod help;
mod hostile;
mod job;
mod lifecycle;
mod management;
mod memory;
mod move_queue;
mod otlp;
mod pages;
mod peek;
mod permissions;
mod prometheus;
mod relay;
mod routes;
mod schedule;
#[allow(dead_code, reason = "the tests of endpoints use what these do not")]
#[path = "../../../connectors/tests/connectors/servers.rs"]
mod servers;
mod shards;
mod slots;
mod store_snapshot;
mod store_stats;
mod streams;
mod support;
mod systemd;
mod top;
mod traces;
mod users;
#[allow(clippy::print_stdout, dead_code, reason = "the tests of the functions use what these do not")]
#[path = "../../../valkey/tests/valkey/world/server.rs"]
mod valkey;
mod watch;
mod work;
mod work_answers;
mod work_ends;
mod work_history;
