//! The broker under systemd: what it is given, and what it says to it.

use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};

use rustix::process::Signal;
use tempfile::TempDir;

use crate::support::{Broker, PATIENCE, overtake};

fn unit() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/systemd/overtake.service")
}

/// The words of the next message, one a line.
fn next(socket: &UnixDatagram) -> Vec<String> {
    let mut bytes = [0; 4096];
    let len = socket.recv(&mut bytes).expect("it says something");
    String::from_utf8_lossy(&bytes[..len]).lines().map(str::to_owned).collect()
}

#[test]
fn it_says_when_it_is_ready_reloads_and_stops() {
    let dir = TempDir::new().expect("a directory");
    let path = dir.path().join("notify");
    let socket = UnixDatagram::bind(&path).expect("a socket");
    socket.set_read_timeout(Some(PATIENCE)).expect("a time");
    let mut command = overtake();
    command.env("NOTIFY_SOCKET", &path);
    let broker = Broker::start_as(command, &dir.path().join("data"), &[]);

    let ready = next(&socket);
    let status = format!("STATUS=serving {}, amqp://{}", broker.url, broker.amqp);
    assert_eq!(ready, ["READY=1", &status]);
    broker.signal(Signal::HUP);
    let reloading = next(&socket);
    assert_eq!(reloading[0], "RELOADING=1");
    assert!(reloading[1].starts_with("MONOTONIC_USEC="), "{reloading:?}");
    assert_eq!(next(&socket), ready);
    broker.signal(Signal::TERM);
    assert_eq!(next(&socket)[0], "STOPPING=1");
    assert!(broker.end().0.success());
}

/// As the unit runs it, with the directories that systemd makes and names.
#[test]
fn the_unit_starts_what_there_is_with_what_it_gives() {
    let unit = std::fs::read_to_string(unit()).expect("the unit");
    let start =
        unit.lines().find_map(|line| line.strip_prefix("ExecStart=/usr/bin/overtake ")).expect("a command");
    assert_eq!(start, "serve");
    let given = ["StateDirectory=overtake", "ConfigurationDirectory=overtake", "Type=notify"];
    assert!(given.iter().all(|line| unit.lines().any(|its| its == *line)), "{unit}");

    let dir = TempDir::new().expect("a directory");
    let (etc, state) = (dir.path().join("etc"), dir.path().join("state"));
    std::fs::create_dir(&etc).expect("a directory");
    std::fs::write(etc.join("overtake.toml"), "[http]\nlisten = \"127.0.0.1:7\"\n").expect("a file");
    let output = overtake()
        .args(["config", "show"])
        .env("CONFIGURATION_DIRECTORY", &etc)
        .env("STATE_DIRECTORY", &state)
        .output()
        .expect("it runs");
    let said = String::from_utf8(output.stdout).expect("text");
    let has = |key: &str, value: &str| said.lines().any(|line| line.starts_with(key) && line.contains(value));
    assert!(has("listen", "127.0.0.1:7"), "{said}");
    assert!(has("data_dir", &state.display().to_string()), "{said}");
}
