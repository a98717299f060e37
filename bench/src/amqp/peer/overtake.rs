//! Our own broker, from beside this program.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;

use anyhow::{Context, Result};
use tempfile::TempDir;

use super::process::{Process, overtake};
use super::{Broker, Dial};
use crate::amqp::wire::amqp::{Address, Connection};

pub(super) fn start() -> Result<Broker> {
    start_with(&overtake()?, &[], tempfile::tempdir()?)
}

/// Under another program, which takes these words before the command that it is to run.
pub(super) fn start_under(program: &Path, words: &[&str], dir: TempDir) -> Result<Broker> {
    let overtake = overtake()?.display().to_string();
    start_with(program, &[words, &[&overtake]].concat(), dir)
}

fn start_with(program: &Path, before: &[&str], dir: TempDir) -> Result<Broker> {
    let path = |name: &str| dir.path().join(name).display().to_string();
    let (data, ports) = (path("data"), path("ports.json"));
    let serve = ["serve", "--http", "127.0.0.1:0", "--amqp", "127.0.0.1:0"];
    let files = ["--data-dir", &data, "--ports-file", &ports];
    let args = [before, &serve, &files].concat();
    let mut process = Process::start(program, &args, &[], dir.path().join("log"))?;
    let json: serde_json::Value =
        process.wait_for(|| serde_json::from_str(&fs::read_to_string(&ports).ok()?).ok())?;
    let address = json["amqp"]["address"].as_str().context("it says no address for AMQP")?;
    let socket: SocketAddr = address.parse()?;
    let http = json["http"]["address"].as_str().context("it says no address for HTTP")?.parse()?;
    let version = Connection::product(socket)?;
    let dial = Dial::Amqp(Address::guest(socket));
    Ok(Broker { dial, http: Some(http), version, process: Some(process), _dir: Some(dir) })
}
