//! beanstalkd, as Debian packs it.

use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::process::Process;
use overtake_free_port::free_port;

use super::{Broker, Dial};

const PROGRAM: &str = "beanstalkd";

/// `sync` is its own option that says how often it syncs.
pub(super) fn start(sync: &str) -> Result<Broker> {
    let said =
        Command::new(PROGRAM).arg("-v").output().context("not installed: apt-get install beanstalkd")?;
    let dir = tempfile::tempdir()?;
    let (port, binlog) = (free_port(), dir.path().display().to_string());
    let args = ["-l", "127.0.0.1", "-p", &port.to_string(), "-b", &binlog, sync];
    let mut process = Process::start(Path::new(PROGRAM), &args, &[], dir.path().join("log"))?;
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    process.wait_for(|| TcpStream::connect(address).ok())?;
    let version = String::from_utf8_lossy(&said.stdout).trim().to_owned();
    Ok(Broker { dial: Dial::Tube(address), http: None, version, process: Some(process), _dir: Some(dir) })
}
