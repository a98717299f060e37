//! The binary `overtake`: the broker, and everything a person or a script asks of one.

mod address;
mod args;
mod body;
mod client;
mod commands;
mod confirm;
mod connector;
mod dlq;
mod doctor;
mod failure;
mod flags;
mod gauges;
mod holder;
mod login;
mod look_bar;
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

use crate::failure::Failure;

fn main() -> ExitCode {
    let cli = match args::parse(std::env::args_os()) {
        Ok(cli) => cli,
        // There is nothing to ask about `--json` but the words as they stand.
        Err(wrong) if wrong.use_stderr() && std::env::args_os().any(|word| word == "--json") => {
            return ends(&usage(&wrong), true);
        }
        Err(wrong) => wrong.exit(),
    };
    let as_json = cli.global.json;
    commands::run(cli).map_or_else(|failure| ends(&failure, as_json), ExitCode::from)
}

fn ends(failure: &Failure, as_json: bool) -> ExitCode {
    failure.print(as_json);
    failure.exit().into()
}

/// A command line that cannot be read, as a failure: its first paragraph, without `error: `.
fn usage(wrong: &clap::Error) -> Failure {
    let text = wrong.to_string();
    let first = text.split("\n\n").next().unwrap_or_default();
    Failure::usage(first.trim_start_matches("error: "))
}
