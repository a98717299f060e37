//! The binary `overtake`: the broker, and everything a person or a script asks of one.

mod address;
mod args;
mod body;
mod client;
mod commands;
mod confirm;
mod dlq;
mod doctor;
mod failure;
mod flags;
mod gauges;
mod holder;
mod login;
mod moving;
mod out;
mod redis;
mod relay;
mod selection;
mod signals;
mod table;
mod tls;
mod top;
mod watch;
mod words;
mod work;
mod worker_name;

use std::process::ExitCode;

use clap::Parser;

use crate::args::Cli;

fn main() -> ExitCode {
    let cli = Cli::parse();
    match commands::run(cli) {
        Ok(exit) => exit.into(),
        Err(failure) => {
            failure.print();
            failure.exit().into()
        }
    }
}
