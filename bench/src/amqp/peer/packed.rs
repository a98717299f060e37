//! beanstalkd, NATS and Redis from Debian's packages, with their own settings but for where they listen and write and how they
//! sync; Redis without snapshots.

use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use overtake_free_port::free_port;

use super::process::Process;
use super::{Broker, Dial};

/// Arguments that stand for the port and for the directory.
const PORT: &str = "PORT";
const DIR: &str = "DIR";

/// `sync` is the option that says how often it syncs.
pub(super) fn beanstalkd(sync: &str) -> Result<Broker> {
    start("beanstalkd", "-v", &["-l", "127.0.0.1", "-p", PORT, "-b", DIR, sync], Dial::Tube)
}

pub(super) fn nats() -> Result<Broker> {
    start("nats-server", "--version", &["-a", "127.0.0.1", "-p", PORT, "-js", "-sd", DIR], Dial::Nats)
}

/// `sync` is the value of `appendfsync`.
pub(super) fn redis(sync: &str) -> Result<Broker> {
    let place = ["--bind", "127.0.0.1", "--port", PORT, "--dir", DIR, "--save", ""];
    let args = [&place[..], &["--appendonly", "yes", "--appendfsync", sync]].concat();
    start("redis-server", "--version", &args, Dial::Redis)
}

/// Starts a program whose package has its name, and waits until it listens.
fn start(program: &str, version: &str, args: &[&str], dial: fn(SocketAddr) -> Dial) -> Result<Broker> {
    let said = Command::new(program).arg(version).output();
    let said = said.with_context(|| format!("not installed: apt-get install {program}"))?;
    let version =
        String::from_utf8_lossy(&said.stdout).split_whitespace().take(3).collect::<Vec<_>>().join(" ");
    let dir = tempfile::tempdir()?;
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()));
    let (port, path) = (address.port().to_string(), dir.path().display().to_string());
    let fill = |word: &&str| match *word {
        PORT => port.clone(),
        DIR => path.clone(),
        word => word.to_owned(),
    };
    let args: Vec<String> = args.iter().map(fill).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let mut process = Process::start(Path::new(program), &args, &[], dir.path().join("log"))?;
    process.wait_for(|| TcpStream::connect(address).ok())?;
    Ok(Broker { dial: dial(address), http: None, version, process: Some(process), _dir: Some(dir) })
}
