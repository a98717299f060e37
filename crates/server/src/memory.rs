//! The memory for messages on their way: how much there is, what it is shared out to, and how much of each share is in use.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use overtake_connections::Budget;
use overtake_telemetry::{Collected, Family, Kind, Source, process};

use crate::config::Config;

/// The bounds of what is taken where nothing is configured.
const LEAST: u64 = 32 << 20;
const MOST: u64 = 512 << 20;

/// The memory for messages on their way, shared out.
#[derive(Clone, Debug)]
pub(crate) struct Shares {
    /// What connections send and have not sent whole.
    pub(crate) connections: Budget,
    /// Messages that wait in line to be stored.
    pub(crate) inbox: u64,
    /// Messages that were pushed to connections and not taken by them.
    pub(crate) pushed: u64,
}

impl Shares {
    /// As configured: half for what comes in, of which a quarter waits in line, and half for what goes out.
    pub(crate) fn of(config: &Config) -> Self {
        let configured = config.server.connection_memory_bytes.value.bytes();
        let all = configured.unwrap_or_else(|| (allowed() / 4).clamp(LEAST, MOST)).max(LEAST);
        // Two of the largest fit whatever is configured, else none of them could ever come.
        let largest = config.max_request_bytes().max(config.max_message_bytes());
        Self { connections: Budget::new((all / 8 * 3).max(2 * largest)), inbox: all / 8, pushed: all / 2 }
    }
}

/// Bytes of memory that the process may have: what its control groups allow, at most what the machine has.
fn allowed() -> u64 {
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let limits = limit_files(&groups).into_iter().filter_map(|file| limit(&fs::read_to_string(file).ok()?));
    let machine = Some(process::machine_memory()).filter(|bytes| *bytes > 0);
    limits.chain(machine).min().unwrap_or(u64::MAX)
}

/// The files with the limits of the control groups, of version 2 or 1, that `/proc/self/cgroup` names, from each up to the root. In a container
/// they are named as from outside, but mounted as the root.
fn limit_files(groups: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (fields.next(), fields.next(), fields.next()) else {
            continue;
        };
        let (root, file) = match controllers {
            "" => ("/sys/fs/cgroup", "memory.max"),
            _ if controllers.split(',').any(|one| one == "memory") => {
                ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
            }
            _ => continue,
        };
        let path = path.trim_start_matches('/');
        let above = std::path::Path::new(path).ancestors();
        files.extend(above.map(|group| PathBuf::from(root).join(group).join(file)));
    }
    files
}

/// What such a file says; `None`: no limit.
fn limit(text: &str) -> Option<u64> {
    text.trim().parse().ok()
}

/// How much of what connections may hold is in use, as metrics.
#[derive(Debug)]
pub(crate) struct HeldMemory(Budget);

impl HeldMemory {
    pub(crate) fn of(shares: &Shares) -> Arc<dyn Source> {
        Arc::new(Self(shares.connections.clone()))
    }
}

impl Source for HeldMemory {
    fn collect(&self) -> Collected<'_> {
        Box::pin(async {
            let held = self.0.held();
            let bytes = "Bytes of contents, transactions and bodies of requests that have not come whole.";
            let limit = "The most there may be of them, about.";
            let waits = "How often a connection was not read because they were too many.";
            let refused = "How often one was refused because that did not help.";
            vec![
                Family::new("overtake.connections.memory", Kind::UpDownCounter, "By", bytes).of(held.bytes),
                Family::new("overtake.connections.memory_limit", Kind::UpDownCounter, "By", limit)
                    .of(held.limit),
                Family::new("overtake.connections.memory_waits", Kind::Counter, "{wait}", waits)
                    .of(held.waits),
                Family::new("overtake.connections.memory_refused", Kind::Counter, "{refusal}", refused)
                    .of(held.refused),
            ]
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{ByteSize, Watermark};

    #[test]
    fn the_limit_of_a_control_group_and_of_all_above_it_is_found() {
        let two = limit_files("0::/system.slice/overtake.service\n");
        let files = ["/system.slice/overtake.service/memory.max", "/system.slice/memory.max", "/memory.max"];
        assert_eq!(two, files.map(|file| PathBuf::from(format!("/sys/fs/cgroup{file}"))));
        let one = limit_files("9:name=systemd:/\n4:memory:/a\n1:cpu:/\n");
        assert_eq!(
            one,
            ["a/", ""]
                .map(|group| PathBuf::from(format!("/sys/fs/cgroup/memory/{group}memory.limit_in_bytes")))
        );
        assert_eq!((limit("max\n"), limit("536870912\n")), (None, Some(512 << 20)));
    }

    #[test]
    fn a_quarter_of_a_small_machine_is_shared_out() {
        let mut config = Config::default();
        config.http.max_request_bytes.value = ByteSize(8 << 20);
        config.limits.max_message_bytes.value = ByteSize(8 << 20);
        let all = |config: &Config| {
            let shares = Shares::of(config);
            (shares.connections.held().limit, shares.inbox, shares.pushed)
        };
        let (held, inbox, pushed) = all(&config);
        assert!((LEAST..=MOST).contains(&(held + inbox + pushed)), "{held} {inbox} {pushed}");
        config.server.connection_memory_bytes.value = Watermark(Some(ByteSize(128 << 20)));
        assert_eq!(all(&config), (48 << 20, 16 << 20, 64 << 20));
        config.http.max_request_bytes.value = ByteSize(64 << 20);
        assert_eq!(all(&config).0, 128 << 20, "requests that are allowed fit");
    }
}
