//! The repository's own commands, run as `cargo xtask COMMAND`.
//!
//! One module per command; [`mod@test`] is the list of steps everything else serves. Depends on no crate of ours, so a
//! broken tree can still be examined, and compiles in seconds.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command for people prints")]

mod apt;
mod bench;
mod clients;
mod cluster;
mod counts;
mod deploy;
mod fresh;
mod fuzz;
mod needs;
mod package;
mod python;
mod report;
mod seed;
mod semver;
mod shell;
mod sim;
mod slowest;
mod suite;
mod test;
mod tidy;

use std::process::ExitCode;

const HELP: &str = "\
The repository's own commands.

  cargo xtask test [--long] [--skip-missing] [STEP…]   everything; or only the steps named
  cargo xtask test --list                              the steps
  cargo xtask tidy                                     the guards: direction, dependencies, bans, links, …
  cargo xtask sim --seeds N [--start S]                run N seeds of the simulator from S on
  cargo xtask sim --seed X                             replay one seed
  cargo xtask fuzz [TARGET…] [--seconds N] [--keep]    run the fuzz targets; add new inputs to the corpus
  cargo xtask clients [--url URL] [--skip-missing] [NAME…]
                                                       other people's AMQP clients against our broker, or another
  cargo xtask bench [NAME…] [--long]                   the benchmarks, as a table; amqp: beside other brokers; python: our library
  cargo xtask deb                                      a package for Debian
  cargo xtask semver REV                               whether programs that use the Rust client of REV still compile

What a step needs and this machine lacks is installed (root on Debian) or named before anything is built; with
--skip-missing the steps that need it are skipped. Where CI is set, a step that is skipped counts as failed.";

fn main() -> ExitCode {
    match dispatch() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch() -> anyhow::Result<ExitCode> {
    let mut args = std::env::args().skip(1);
    let command = args.next().unwrap_or_default();
    let args: Vec<String> = args.collect();
    shell::enter_root()?;
    if args.iter().any(|arg| arg == "--help" || arg == "-h") {
        println!("{HELP}");
        return Ok(ExitCode::SUCCESS);
    }
    match command.as_str() {
        "test" => test::command(&args),
        "tidy" => tidy::command(&args),
        "sim" => sim::command(&args),
        "fuzz" => fuzz::command(&args),
        "clients" => clients::command(&args),
        "bench" => bench::command(&args),
        "deb" => package::command(&args),
        "semver" => semver::command(&args),
        "" | "help" | "-h" | "--help" => {
            println!("{HELP}");
            Ok(ExitCode::SUCCESS)
        }
        other => anyhow::bail!("there is no command `{other}`\n\n{HELP}"),
    }
}
