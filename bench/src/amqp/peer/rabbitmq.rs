//! RabbitMQ, as Debian packs it: no plugins, its own settings but for where it listens and writes.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

use anyhow::{Result, bail};

use super::process::Process;
use overtake_free_port::free_port;

use super::{Broker, Dial};
use crate::amqp::wire::amqp::{Address, Connection};

/// Not the one in the path, which insists on the system's user and directories.
const PROGRAM: &str = "/usr/lib/rabbitmq/bin/rabbitmq-server";
/// In which Erlang's nodes ask each other for their ports.
const NAMES: &str = "epmd";

pub(super) fn start() -> Result<Broker> {
    if !Path::new(PROGRAM).exists() {
        bail!("not installed: apt-get install rabbitmq-server");
    }
    let dir = tempfile::tempdir()?;
    let path = |name: &str| dir.path().join(name).display().to_string();
    fs::write(path("plugins"), "[].")?;
    fs::write(path("rabbitmq.conf"), "")?;
    let (port, names) = (free_port(), free_port());
    let vars = [
        ("HOME", path("")),
        ("ERL_EPMD_ADDRESS", "127.0.0.1".to_owned()),
        ("ERL_EPMD_PORT", names.to_string()),
        ("RABBITMQ_NODENAME", format!("bench{port}@localhost")),
        ("RABBITMQ_NODE_IP_ADDRESS", "127.0.0.1".to_owned()),
        ("RABBITMQ_NODE_PORT", port.to_string()),
        ("RABBITMQ_DIST_PORT", free_port().to_string()),
        ("RABBITMQ_MNESIA_BASE", path("data")),
        ("RABBITMQ_LOG_BASE", path("logs")),
        ("RABBITMQ_ENABLED_PLUGINS_FILE", path("plugins")),
        ("RABBITMQ_CONFIG_FILE", path("rabbitmq.conf")),
        ("RABBITMQ_CONF_ENV_FILE", path("no-such-file")),
        // So that the script becomes the broker, and is the process that is measured and stopped; but it has no input.
        ("RABBITMQ_ALLOW_INPUT", "true".to_owned()),
        ("RABBITMQ_SERVER_START_ARGS", "-noinput".to_owned()),
    ];
    let names = ["-port", &names.to_string(), "-address", "127.0.0.1"];
    let names = Process::start(Path::new(NAMES), &names, &[], dir.path().join("names.log"))?;
    let mut process = Process::start(Path::new(PROGRAM), &[], &vars, dir.path().join("log"))?;
    process.helped_by(names);
    let socket = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let version = process.wait_for(|| {
        // It listens before its users are there.
        let address = Address::guest(socket);
        Connection::open(&address).ok()?.close().ok()?;
        Connection::product(socket).ok()
    })?;
    Ok(Broker {
        dial: Dial::Amqp(Address::guest(socket)),
        http: None,
        version,
        process: Some(process),
        _dir: Some(dir),
    })
}
