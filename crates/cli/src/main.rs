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

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;

use crate::args::Cli;
use crate::failure::{Exit, Failure};

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        // There is nothing to ask about `--json` but the words as they stand.
        Err(wrong) if wrong.use_stderr() && std::env::args_os().any(|word| word == "--json") => {
            return ends(&usage(&wrong), true);
        }
        Err(wrong) if wrong.use_stderr() => {
            // Without a stderr there is nobody to tell.
            let _ = write!(anstream::stderr(), "{}", plain(&wrong.render().ansi().to_string()));
            return Exit::Usage.into();
        }
        Err(shown) => shown.exit(),
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
    let text = plain(&wrong.to_string());
    let first = text.split("\n\n").next().unwrap_or_default();
    Failure::usage(first.trim_start_matches("error: "))
}

/// What the standard library says of a number that cannot be read, and what a person can do about it.
const NUMBERS: [(&str, &str); 4] = [
    ("invalid digit found in string", "give a whole number, such as 10"),
    ("cannot parse integer from empty string", "give a whole number, such as 10"),
    ("number too large to fit in target type", "give a smaller number"),
    ("number too small to fit in target type", "give a larger number"),
];

fn plain(text: &str) -> String {
    NUMBERS.iter().fold(text.to_owned(), |text, (said, plain)| text.replace(said, plain))
}
