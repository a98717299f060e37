//! What the machine must have besides Rust, git and a C compiler: fetched where we may, else named to the letter.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::backports;
use crate::shell::{read, run, works};

/// A part of the toolchain, such as `clippy` for `cargo clippy`.
pub(crate) fn component(name: &str, subcommand: &str) -> Result<()> {
    if works("cargo", &[subcommand, "--version"]) {
        return Ok(());
    }
    let how = format!("rustup component add {name}");
    run(Command::new("rustup").args(["component", "add", name]))
        .with_context(|| format!("{name} is missing; `{how}`"))
}

/// A C++ compiler: libFuzzer is written in it.
///
/// `Ok(Some(why))` when there is none and none may be installed.
pub(crate) fn cxx() -> Result<Option<String>> {
    if std::env::var_os("CXX").is_some() {
        return Ok(None);
    }
    debian("no C++ compiler", &["g++"], || works("c++", &["--version"]))
}

/// Python 3.11 with venv: most clients' programs are written in it.
pub(crate) fn python() -> Result<Option<String>> {
    let asked = "import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))";
    debian("no Python 3.11 with venv", &["python3", "python3-venv"], || works("python3", &["-c", asked]))
}

/// Node 18 with npm, for amqplib.
pub(crate) fn node() -> Result<Option<String>> {
    let asked = "process.exit(process.versions.node.split('.')[0] < 18 ? 1 : 0)";
    debian("no Node 18 with npm", &["nodejs", "npm"], || {
        works("node", &["-e", asked]) && works("npm", &["--version"])
    })
}

/// A Chromium, for the page.
pub(crate) fn chromium() -> Result<Option<String>> {
    debian("no Chromium", &["chromium"], || works("chromium", &["--version"]))
}

/// Prometheus and its tool, for the tests of what is deployed beside a broker.
pub(crate) fn prometheus() -> Result<Option<String>> {
    debian("no Prometheus", &["prometheus"], || {
        works("prometheus", &["--version"]) && works("promtool", &["--version"])
    })
}

/// systemd's own reader of units.
pub(crate) fn systemd() -> Result<Option<String>> {
    debian("no systemd-analyze", &["systemd"], || works("systemd-analyze", &["--version"]))
}

/// What finds out on which packages a binary depends.
pub(crate) fn dpkg() -> Result<Option<String>> {
    debian("no dpkg-shlibdeps", &["dpkg-dev"], || works("dpkg-shlibdeps", &["--version"]))
}

/// What reads a package for Debian.
pub(crate) fn lintian() -> Result<Option<String>> {
    debian("no lintian", &["lintian"], || works("lintian", &["--version"]))
}

/// The servers that endpoints send to and sources take from, and the databases that a relay reads.
pub(crate) fn peers() -> Result<Option<String>> {
    let packages = ["rabbitmq-server", "redis-server", "mosquitto", "postgresql", "mariadb-server"];
    debian("no RabbitMQ, Redis, Mosquitto, PostgreSQL or MariaDB", &packages, || {
        // RabbitMQ's own command would start one.
        Path::new("/usr/lib/rabbitmq/bin/rabbitmq-server").exists()
            && works("redis-server", &["--version"])
            && Path::new("/usr/sbin/mosquitto").exists()
            && Path::new("/usr/lib/postgresql").exists()
            && Path::new("/usr/sbin/mariadbd").exists()
    })
}

/// The other server on which queues are kept, beside Redis. Debian 12 has it in its backports.
pub(crate) fn valkey() -> Result<Option<String>> {
    let (missing, package) = ("no Valkey", "valkey-server");
    let is_there = || works("valkey-server", &["--version"]);
    if !is_there() && is_root() && works("apt-get", &["--version"]) && !is_known(package) {
        apt(&["update"])?;
        if !is_known(package) && !backports::add()? {
            return Ok(Some(format!("{missing}: apt knows no {package}, and no source with bookworm")));
        }
    }
    debian(missing, &[package], is_there)
}

/// What lays a cable to a network of one broker's own; whether we may is for who tries to find out.
pub(crate) fn iproute2() -> Result<Option<String>> {
    debian("no ip", &["iproute2"], || works("ip", &["-Version"]))
}

/// Whether apt could install it.
fn is_known(package: &str) -> bool {
    let policy = read(Command::new("apt-cache").args(["policy", package])).unwrap_or_default();
    policy.lines().any(|line| line.trim().starts_with("Candidate:") && !line.contains("(none)"))
}

/// The servers that our own library for Python writes to and reads from in its tests.
pub(crate) fn databases() -> Result<Option<String>> {
    debian("no Redis, PostgreSQL or MariaDB", &["redis-server", "postgresql", "mariadb-server"], || {
        works("redis-server", &["--version"])
            && Path::new("/usr/lib/postgresql").is_dir()
            && Path::new("/usr/sbin/mariadbd").exists()
    })
}

/// Debian's packages, fetched where they are missing and we are root; `Ok(Some(why))` where we are not.
fn debian(missing: &str, packages: &[&str], is_there: impl Fn() -> bool) -> Result<Option<String>> {
    if is_there() {
        return Ok(None);
    }
    let names = packages.join(" ");
    if !is_root() || !works("apt-get", &["--version"]) {
        return Ok(Some(format!(
            "{missing}; on Debian: sudo apt-get update && sudo apt-get install {names}"
        )));
    }
    apt(&["update"])?;
    apt(&[&["install", "--yes", "--no-install-recommends"], packages].concat())?;
    if !is_there() {
        bail!("{names} was installed, and there is still {missing}");
    }
    Ok(None)
}

fn is_root() -> bool {
    crate::shell::read(Command::new("id").arg("-u")).is_ok_and(|id| id.trim() == "0")
}

fn apt(args: &[&str]) -> Result<()> {
    run(Command::new("apt-get").args(args).env("DEBIAN_FRONTEND", "noninteractive"))
}
