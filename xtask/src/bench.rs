//! `cargo xtask bench`: the benchmarks, printed as a table beside the machine's raw limit. Never a timed test.

use std::process::ExitCode;

use anyhow::{Result, bail};

use crate::clients;
use crate::shell::{cargo, run, unknown_option};

/// Other people's work is built only where it is measured: SQLite is half a minute of C.
const WITH_REFERENCES: [&str; 3] = ["codec", "deep", "client"];
/// They measure the broker as it is shipped.
const WITH_BROKER: [&str; 4] = ["amqp", "client", "outbox", "places"];

/// The benchmarks and their options. The program reads them itself, but building it takes minutes.
const NAMES: [&str; 21] = [
    "lane",
    "merge",
    "routes",
    "codec",
    "journal",
    "engine",
    "executions",
    "ends",
    "looks",
    "waves",
    "many",
    "scrape",
    "watched",
    "forward",
    "deep",
    "client",
    "servers",
    "calls",
    "places",
    "outbox",
    "amqp",
];
const OPTIONS: [&str; 6] = ["--long", "--quick", "--only", "--peers", "--url", "--json"];

/// It measures our library for Python beside those below it, in Python.
const PYTHON: &str = "python";

/// `cargo xtask bench [NAME…] [OPTION…]`: the arguments are the benchmark's own.
pub(crate) fn command(args: &[String]) -> Result<ExitCode> {
    if let [PYTHON, ..] = args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        return clients::bench_python(&args[1..]);
    }
    // What follows an option may be its value.
    let names = args.iter().take_while(|arg| !arg.starts_with('-'));
    if let Some(unknown) = names.map(|name| &**name).find(|name| !NAMES.contains(name)) {
        bail!("there is no benchmark `{unknown}`; the benchmarks: {} {PYTHON}", NAMES.join(" "));
    }
    if let Some(unknown) = unknown_option(args, &OPTIONS) {
        bail!("bench has no option `{unknown}`; the options: {}", OPTIONS.join(" "));
    }
    if args.iter().any(|arg| WITH_BROKER.contains(&arg.as_str())) {
        run(&mut cargo(["build", "--profile", "dist", "--package", "overtake"]))?;
    }
    let mut command = cargo(["run", "--profile", "dist", "--package", "overtake-bench"]);
    if args.iter().any(|arg| WITH_REFERENCES.contains(&arg.as_str())) {
        command.args(["--features", "references"]);
    }
    run(command.arg("--").args(args))?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_options_are_those_that_the_program_reads() {
        let main = include_str!("../../bench/src/main.rs");
        let (_, table) = main.split_once("const BENCHES").expect("the table");
        let table = table.split_once("];").expect("its end").0;
        let is_name = |word: &&str| !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase());
        let names: Vec<_> = table.split('"').skip(1).step_by(2).filter(is_name).collect();
        assert_eq!(names, NAMES);
        let read = include_str!("../../bench/src/options.rs");
        let read: Vec<_> = read.lines().filter_map(|line| line.trim().split_once("\" => ")).collect();
        let read: Vec<_> = read.into_iter().filter_map(|(name, _)| name.strip_prefix('"')).collect();
        assert_eq!(read, OPTIONS);
    }
}
