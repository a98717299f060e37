//! The programs and permissions that steps need beyond Rust, git and a C compiler.
//!
//! [`gather`] checks the needs of a whole run at once, before anything is built. Root on Debian gets missing packages with one
//! call of apt; everybody else gets one list, and the command that installs it.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::apt;
use crate::shell::{read, target_dir, works};

/// A program or a permission that a step uses.
pub(crate) struct Need {
    /// Its name in the list of what is missing.
    pub(crate) name: &'static str,
    source: Source,
    is_there: fn() -> bool,
}

/// The way to get a missing need.
enum Source {
    /// These packages of Debian.
    Debian(&'static [&'static str]),
    /// A hint for the user, who gets it by hand.
    Hint(&'static str),
}

/// The needs of a step. Without one of `must` the step cannot run; without one of `part` some of its tests cannot.
#[derive(Clone, Copy)]
pub(crate) struct Needs {
    pub(crate) must: &'static [&'static Need],
    pub(crate) part: &'static [&'static Need],
}

/// A step, and a need of it that this machine does not have.
struct Missing {
    step: &'static str,
    need: &'static Need,
    is_part: bool,
}

/// rustfmt, a component of the toolchain.
pub(crate) static RUSTFMT: Need = Need {
    name: "rustfmt",
    source: Source::Hint("rustup component add rustfmt"),
    is_there: || works("cargo", &["fmt", "--version"]),
};

/// Clippy, a component of the toolchain.
pub(crate) static CLIPPY: Need = Need {
    name: "clippy",
    source: Source::Hint("rustup component add clippy"),
    is_there: || works("cargo", &["clippy", "--version"]),
};

/// librdkafka's build system. The feature `kafka` is off by default, and on in packages and wherever all features are checked.
pub(crate) static MAKE: Need =
    Need { name: "make", source: Source::Debian(&["make"]), is_there: || works("make", &["--version"]) };

/// OpenSSL for librdkafka. From source it would take two minutes.
pub(crate) static OPENSSL: Need = Need {
    name: "OpenSSL with pkg-config",
    source: Source::Debian(&["libssl-dev", "pkg-config"]),
    is_there: || works("pkg-config", &["--exists", "openssl"]),
};

/// A C++ compiler: libFuzzer is written in C++, and librdkafka's configure wants one.
pub(crate) static CXX: Need = Need {
    name: "a C++ compiler",
    source: Source::Debian(&["g++"]),
    is_there: || {
        let chosen = std::env::var("CXX").unwrap_or_else(|_| "c++".to_owned());
        works(&chosen, &["--version"])
    },
};

/// Python 3.11 with venv, for clients and for the files under `deploy`.
pub(crate) static PYTHON: Need = Need {
    name: "Python 3.11 with venv",
    source: Source::Debian(&["python3", "python3-venv"]),
    is_there: || {
        works("python3", &["-c", "import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))"])
    },
};

/// Node 18 with npm, for amqplib.
pub(crate) static NODE: Need = Need {
    name: "Node 18 with npm",
    source: Source::Debian(&["nodejs", "npm"]),
    is_there: || {
        works("node", &["-e", "process.exit(process.versions.node.split('.')[0] < 18 ? 1 : 0)"])
            && works("npm", &["--version"])
    },
};

/// Chromium, for the web page.
pub(crate) static CHROMIUM: Need = Need {
    name: "Chromium",
    source: Source::Debian(&["chromium"]),
    is_there: || works("chromium", &["--version"]),
};

/// Prometheus with promtool, for metrics, alerts and the dashboard.
pub(crate) static PROMETHEUS: Need = Need {
    name: "Prometheus with promtool",
    source: Source::Debian(&["prometheus"]),
    is_there: || works("prometheus", &["--version"]) && works("promtool", &["--version"]),
};

/// systemd-analyze, which checks the unit.
pub(crate) static SYSTEMD: Need = Need {
    name: "systemd-analyze",
    source: Source::Debian(&["systemd"]),
    is_there: || works("systemd-analyze", &["--version"]),
};

/// dpkg-shlibdeps, which finds the packages that a binary depends on.
pub(crate) static DPKG: Need = Need {
    name: "dpkg-shlibdeps",
    source: Source::Debian(&["dpkg-dev"]),
    is_there: || works("dpkg-shlibdeps", &["--version"]),
};

/// Lintian, which checks Debian packages.
pub(crate) static LINTIAN: Need = Need {
    name: "lintian",
    source: Source::Debian(&["lintian"]),
    is_there: || works("lintian", &["--version"]),
};

/// debootstrap, which makes the root directory of a new Debian.
pub(crate) static DEBOOTSTRAP: Need = Need {
    name: "debootstrap",
    source: Source::Debian(&["debootstrap"]),
    is_there: || Path::new("/usr/sbin/debootstrap").exists(),
};

/// RabbitMQ, which endpoints send to and sources take from. Its own command would start a server.
pub(crate) static RABBITMQ: Need = Need {
    name: "RabbitMQ",
    source: Source::Debian(&["rabbitmq-server"]),
    is_there: || Path::new("/usr/lib/rabbitmq/bin/rabbitmq-server").exists(),
};

/// Mosquitto, for MQTT.
pub(crate) static MOSQUITTO: Need = Need {
    name: "Mosquitto",
    source: Source::Debian(&["mosquitto"]),
    is_there: || Path::new("/usr/sbin/mosquitto").exists(),
};

/// Redis.
pub(crate) static REDIS: Need = Need {
    name: "Redis",
    source: Source::Debian(&["redis-server"]),
    is_there: || works("redis-server", &["--version"]),
};

/// Valkey. Debian 12 has it in its backports.
pub(crate) static VALKEY: Need = Need {
    name: "Valkey",
    source: Source::Debian(&["valkey-server"]),
    is_there: || works("valkey-server", &["--version"]),
};

/// PostgreSQL, a database of the relay.
pub(crate) static POSTGRESQL: Need = Need {
    name: "PostgreSQL",
    source: Source::Debian(&["postgresql"]),
    is_there: || Path::new("/usr/lib/postgresql").is_dir(),
};

/// MariaDB, a database of the relay.
pub(crate) static MARIADB: Need = Need {
    name: "MariaDB",
    source: Source::Debian(&["mariadb-server"]),
    is_there: || Path::new("/usr/sbin/mariadbd").exists(),
};

/// `ip`, which connects network namespaces.
pub(crate) static IPROUTE2: Need =
    Need { name: "ip", source: Source::Debian(&["iproute2"]), is_there: || works("ip", &["-Version"]) };

/// Root, who makes the root directory of another system.
pub(crate) static ROOT: Need =
    Need { name: "root", source: Source::Hint("run as root"), is_there: apt::is_root };

/// Programs that make filesystems, in images that are mounted for tests of full disks.
pub(crate) static FILESYSTEMS: Need = Need {
    name: "mkfs for btrfs, ext4 and xfs",
    source: Source::Debian(&["btrfs-progs", "e2fsprogs", "xfsprogs"]),
    is_there: || {
        let is_there = |name: &&str| Path::new("/usr/sbin").join(name).exists();
        ["mkfs.btrfs", "mkfs.ext4", "mkfs.xfs"].iter().all(is_there)
    },
};

/// A mount namespace, for disks that are small enough to fill.
pub(crate) static MOUNT_NAMESPACE: Need = Need {
    name: "permission to create a mount namespace",
    source: Source::Hint("run as root; in a container, add CAP_SYS_ADMIN"),
    is_there: || {
        works("unshare", &["--mount", "true"])
            || works("unshare", &["--user", "--map-root-user", "--mount", "true"])
    },
};

/// A network namespace, for a broker that is cut off.
pub(crate) static NETWORK_NAMESPACE: Need = Need {
    name: "permission to create a network namespace",
    source: Source::Hint("run as root; in a container, add CAP_SYS_ADMIN and CAP_NET_ADMIN"),
    is_there: || works("unshare", &["--net", "true"]),
};

impl Needs {
    /// Nothing.
    pub(crate) const NONE: Self = Self { must: &[], part: &[] };

    /// The names of what the step cannot run without and this machine does not have.
    pub(crate) fn lacking(self) -> Option<String> {
        missing_of(self.must)
    }
}

/// The names of what is missing, joined by commas.
pub(crate) fn missing_of(needs: &[&Need]) -> Option<String> {
    let names: Vec<_> = needs.iter().filter(|need| !(need.is_there)()).map(|need| need.name).collect();
    (!names.is_empty()).then(|| names.join(", "))
}

/// Makes sure that steps have what they need, installing Debian packages where we may. Returns the list of what is still missing, and
/// how to get it.
pub(crate) fn gather(steps: &[(&'static str, Needs)]) -> Option<String> {
    let packages = packages(&look(steps));
    let mut why = String::new();
    if !packages.is_empty()
        && apt::may_install()
        && let Err(error) = apt::install(&packages)
    {
        why = format!("{error:#}\n");
    }
    let missing = look(steps);
    (!missing.is_empty()).then(|| why + &list(&missing))
}

/// The same for a command that cannot do without.
///
/// # Errors
/// The list of what is missing.
pub(crate) fn require(command: &'static str, needs: Needs) -> Result<()> {
    gather(&[(command, needs)]).map_or(Ok(()), |missing| bail!("{missing}"))
}

/// Those of the steps that have all they need, as words of the command line.
pub(crate) fn ready(steps: &[(&'static str, Needs)]) -> String {
    let missing = look(steps);
    let lacks = |name: &str| missing.iter().any(|one| one.step == name);
    let ready: Vec<_> = steps.iter().map(|(name, _)| *name).filter(|name| !lacks(name)).collect();
    ready.join(" ")
}

/// Every need that is not there. A need of several steps is looked for once.
fn look(steps: &[(&'static str, Needs)]) -> Vec<Missing> {
    let mut known: Vec<(&'static Need, bool)> = Vec::new();
    let mut is_there = |need: &'static Need| {
        if let Some((_, is_there)) = known.iter().find(|(one, _)| std::ptr::eq(*one, need)) {
            return *is_there;
        }
        let is_there = (need.is_there)();
        known.push((need, is_there));
        is_there
    };
    let mut missing = Vec::new();
    for (step, needs) in steps {
        let must = needs.must.iter().map(|need| (*need, false));
        for (need, is_part) in must.chain(needs.part.iter().map(|need| (*need, true))) {
            if !is_there(need) {
                missing.push(Missing { step, need, is_part });
            }
        }
    }
    missing
}

/// The packages that bring what is missing, each once.
fn packages(missing: &[Missing]) -> Vec<&'static str> {
    let mut packages = Vec::new();
    for one in missing {
        if let Source::Debian(its) = one.need.source {
            packages.extend(its);
        }
    }
    packages.sort_unstable();
    packages.dedup();
    packages
}

/// A line for each need with the steps that have it, and how to get all.
fn list(missing: &[Missing]) -> String {
    let mut text = "missing on this machine:".to_owned();
    let mut listed: Vec<&str> = Vec::new();
    for Missing { need, .. } in missing {
        if listed.contains(&need.name) {
            continue;
        }
        listed.push(need.name);
        let of_need = missing.iter().filter(|one| std::ptr::eq(one.need, *need));
        let steps: Vec<_> = of_need
            .map(|one| if one.is_part { format!("a part of {}", one.step) } else { one.step.to_owned() })
            .collect();
        text.push_str(&format!("\n  {}, for {}", need.name, steps.join(", ")));
        if let Source::Hint(hint) = need.source {
            text.push_str(&format!(": {hint}"));
        }
    }
    let packages = packages(missing);
    if !packages.is_empty() {
        if packages.contains(&"valkey-server")
            && let Some(command) = apt::backports_command(&["valkey-server"])
        {
            text.push_str(&format!("\non Debian 12, add its backports first: {command}"));
        }
        text.push_str(&format!(
            "\non Debian: sudo apt-get update && sudo apt-get install --no-install-recommends {}",
            packages.join(" ")
        ));
    }
    text
}

/// Refuses to begin on a disk that the build would fill.
///
/// # Errors
/// Where the target directory is, what is free there, and what is needed.
pub(crate) fn room(wanted_gib: u64) -> Result<()> {
    let target = std::path::absolute(target_dir())?;
    let existing = target.ancestors().find(|dir| dir.exists()).context("the root directory exists")?;
    let printed = read(Command::new("df").args(["--block-size=1", "--output=avail"]).arg(existing))?;
    let free: u64 = printed.lines().last().unwrap_or_default().trim().parse().context("what df prints")?;
    // What an earlier run has built is there already, and is written over.
    if free + size(&target) < wanted_gib << 30 {
        bail!(
            "{:.1} GiB are free for {}, and these steps write about {wanted_gib} GiB: free some, or name another directory in CARGO_TARGET_DIR",
            free as f64 / f64::from(1 << 30),
            target.display()
        );
    }
    Ok(())
}

/// Bytes of a directory on its disk; 0 where it is not.
fn size(dir: &Path) -> u64 {
    let printed =
        read(Command::new("du").args(["--block-size=1", "--summarize"]).arg(dir)).unwrap_or_default();
    printed.split_whitespace().next().and_then(|bytes| bytes.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    static ABSENT: Need =
        Need { name: "a thing", source: Source::Debian(&["bash", "coreutils"]), is_there: || false };
    static FORBIDDEN: Need = Need { name: "leave", source: Source::Hint("ask for it"), is_there: || false };
    static PRESENT: Need = Need { name: "air", source: Source::Hint(""), is_there: || true };

    const STEPS: [(&str, Needs); 3] = [
        ("one", Needs { must: &[&PRESENT, &ABSENT], part: &[] }),
        ("two", Needs { must: &[], part: &[&ABSENT, &FORBIDDEN] }),
        ("three", Needs { must: &[&PRESENT], ..Needs::NONE }),
    ];

    #[test]
    fn the_list_names_each_need_once_with_its_steps_and_how_to_get_it() {
        assert_eq!(
            list(&look(&STEPS)),
            "missing on this machine:\n  \
             a thing, for one, a part of two\n  \
             leave, for a part of two: ask for it\n\
             on Debian: sudo apt-get update && sudo apt-get install --no-install-recommends bash coreutils"
        );
        assert_eq!(ready(&STEPS), "three");
    }

    #[test]
    fn only_what_a_step_must_have_keeps_it_from_running() {
        let lacking: Vec<_> = STEPS.iter().map(|(_, needs)| needs.lacking()).collect();
        assert_eq!(lacking, [Some("a thing".to_owned()), None, None]);
    }
}
