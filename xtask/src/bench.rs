//! `cargo xtask bench`: the benchmarks, printed as a table beside the machine's raw limit. Never a timed test.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Result, bail};

use crate::clients;
use crate::shell::{cargo, run};

/// Other people's work is built only where it is measured: SQLite is half a minute of C.
const WITH_REFERENCES: [&str; 3] = ["codec", "deep", "client"];
/// They measure the broker as it is shipped.
const WITH_BROKER: [&str; 4] = ["amqp", "client", "outbox", "places"];

/// It measures our library for Python beside those below it, in Python.
const PYTHON: &str = "python";

/// `cargo xtask bench [NAME…] [OPTION…]`: the arguments are the benchmark's own.
pub(crate) fn command(args: &[String]) -> Result<ExitCode> {
    if let [PYTHON, ..] = args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        return clients::bench_python(&args[1..]);
    }
    if !Path::new("bench/Cargo.toml").exists() {
        bail!("there are no benchmarks yet: the package `overtake-bench` belongs into bench/");
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
