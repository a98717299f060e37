//! The step `fresh`: both commands of the README, in a Debian 12 that has nothing but what the README names.
//!
//! debootstrap makes the root directory; the toolchain that runs xtask is copied into it, and the committed tree is cloned there. In it
//! the first command must build a broker that answers, the second must refuse without root before it builds anything, and as root
//! must hold to its end. The directory is kept below the target directory when something failed, and removed otherwise.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, ensure};

use crate::apt;
use crate::clients::broker::Broker;
use crate::needs::{self, Needs};
use crate::report::Done;
use crate::shell::{read, run, run_hearing, say, target_dir};
use crate::test::Run;

/// A root directory is made and entered by root.
pub(crate) const NEEDS: Needs = Needs {
    must: &[&needs::ROOT, &needs::DEBOOTSTRAP, &needs::MOUNT_NAMESPACE, &needs::NETWORK_NAMESPACE],
    ..Needs::NONE
};

/// The Debian packages that the README names.
const PACKAGES: &str = "git,gcc,libc6-dev,curl,ca-certificates";
/// In the new root: the toolchain, cargo's home, and the clone.
const RUST: &str = "opt/rust";
const CARGO_HOME: &str = "srv/cargo";
const CLONE: &str = "srv/overtake";

/// The script that mounts what programs expect, enters the root `$1` and runs the rest there. It is kept beside the root.
const ENTER: &str = r#"set -e
root=$1; shift
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys"
mount --rbind /dev "$root/dev"
exec chroot "$root" sh -c 'cd /srv/overtake && exec "$@"' sh "$@"
"#;

/// Variables that programs in the new root inherit: they say how to reach package registries.
const KEPT: [&str; 10] = [
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "PIP_INDEX_URL",
    "NPM_CONFIG_REGISTRY",
    "TERM",
    "LANG",
];

/// Both commands, from an empty root to the end of the second.
pub(crate) fn step(run: &mut Run) -> Result<Done> {
    let root = std::path::absolute(target_dir().join("fresh"))?;
    remove(&root)?;
    make(&root)?;
    first_command(&root)?;
    second_command_without_root(&root)?;
    second_command(&root, run)?;
    remove(&root)?;
    Ok(Done::Ok)
}

/// A Debian 12 with the toolchain, the crates that this cargo has downloaded, and a clone of what is committed.
fn make(root: &Path) -> Result<()> {
    std::fs::create_dir_all(root)?;
    std::fs::write(root.with_extension("enter"), ENTER)?;
    let mut debootstrap = Command::new("debootstrap");
    debootstrap.args(["--variant=minbase", &format!("--include={PACKAGES}"), "bookworm"]);
    // Its output is a line for each package.
    say("   $ debootstrap --variant=minbase bookworm");
    read(debootstrap.arg(root).args(apt::mirror()))?;
    // How this machine reaches others, and whom it trusts.
    for file in ["etc/resolv.conf", "etc/hosts", "etc/ssl/certs/ca-certificates.crt"] {
        let from = Path::new("/").join(file);
        if from.exists() {
            std::fs::copy(from, root.join(file)).with_context(|| file.to_owned())?;
        }
    }
    let toolchain = PathBuf::from(read(Command::new("rustc").args(["--print", "sysroot"]))?.trim());
    copy(&toolchain, &root.join(RUST))?;
    let registry = cargo_home()?.join("registry");
    for part in ["cache", "index"] {
        if registry.join(part).exists() {
            copy(&registry.join(part), &root.join(CARGO_HOME).join("registry").join(part))?;
        }
    }
    // As in a container, packages do not start the servers they bring.
    let policy = root.join("usr/sbin/policy-rc.d");
    std::fs::write(&policy, "#!/bin/sh\nexit 101\n")?;
    std::fs::set_permissions(policy, PermissionsExt::from_mode(0o755))?;
    let dirty = read(Command::new("git").args(["status", "--porcelain"]))?;
    if !dirty.is_empty() {
        say("   what is not committed is not in the clone");
    }
    run(Command::new("git").args(["clone", "--quiet", "--no-local", "."]).arg(root.join(CLONE)))?;
    // Another user downloads into the same home of cargo.
    run(Command::new("chmod").args(["-R", "a+rwX"]).arg(root.join(CARGO_HOME)))
}

/// `cargo run --release -- serve`, until it answers; then it must end well.
fn first_command(root: &Path) -> Result<()> {
    let start = Instant::now();
    run(&mut inside(root, "root", &["cargo", "build", "--release"]))?;
    say(&format!("   built from nothing in {:.0} s", start.elapsed().as_secs_f64()));
    let serve = inside(root, "root", &["cargo", "run", "--quiet", "--release", "--", "serve"]);
    Broker::start_by(serve, root.join("tmp/broker"), Path::new("/tmp/broker"))?.stop(false)
}

/// `cargo xtask test` by a user who may install nothing names what to install, and builds nothing but xtask.
fn second_command_without_root(root: &Path) -> Result<()> {
    let mut test = inside(root, "nobody", &["cargo", "xtask", "test"]);
    let output = test.env("CARGO_TARGET_DIR", "/tmp/nobody").output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    say(said.trim_end());
    ensure!(!output.status.success(), "without root and without packages the second command must refuse");
    ensure!(said.contains("apt-get install") && said.contains(" make "), "it must name what to install");
    ensure!(!String::from_utf8_lossy(&output.stdout).contains("── fmt"), "it must not begin a step");
    Ok(())
}

/// `cargo xtask test` by root, to its end.
fn second_command(root: &Path, run: &mut Run) -> Result<()> {
    let mut test = inside(root, "root", &["cargo", "xtask", "test"]);
    let mut last = String::new();
    let end = run_hearing(test.env("CI", "true"), |line| last = line.to_owned());
    run.counts.hear_closing(&last);
    end.with_context(|| format!("cargo xtask test in {}", root.display()))
}

/// A command in the new root, by a user of it, in the clone.
fn inside(root: &Path, user: &str, words: &[&str]) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--mount", "--", "sh"]).arg(root.with_extension("enter")).arg(root);
    if user != "root" {
        command.args(["setpriv", "--reuid", user, "--regid", "nogroup", "--clear-groups"]);
    }
    command.args(words).env_clear();
    command.envs(KEPT.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
    command
        .env("HOME", if user == "root" { "/root" } else { "/tmp" })
        .env("CARGO_HOME", format!("/{CARGO_HOME}"));
    command.env("PATH", format!("/{RUST}/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"));
    command
}

fn cargo_home() -> Result<PathBuf> {
    if let Some(home) = std::env::var_os("CARGO_HOME") {
        return Ok(home.into());
    }
    Ok(Path::new(&std::env::var_os("HOME").context("HOME is not set")?).join(".cargo"))
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    std::fs::create_dir_all(to.parent().context("a directory in the new root")?)?;
    run(Command::new("cp").args([OsStr::new("-a"), from.as_ref(), to.as_ref()]))
}

/// Mounts are of namespaces that are gone with their programs, so nothing but files is left here.
fn remove(root: &Path) -> Result<()> {
    if root.exists() {
        std::fs::remove_dir_all(root).with_context(|| format!("removing {}", root.display()))?;
    }
    Ok(())
}
