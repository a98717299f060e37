//! The HTTP interface, asked as clients ask.

mod categories;
mod connectors;
mod executions;
mod faults;
mod jobs;
mod login;
mod metrics;
mod openapi;
mod overview;
mod paths;
mod refusals;
mod routes;
mod schedules;
mod snapshot;
mod waiting;
mod web_session;
mod world;
