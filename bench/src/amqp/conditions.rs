//! Under which conditions it was measured: a figure without them says nothing.

use std::fs;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::peer::{Broker, Peer};

/// Open files for idle connections, on either side.
const FILES: u64 = 20_000;

pub(super) struct Conditions {
    lines: Vec<(String, String)>,
}

impl Conditions {
    pub(super) fn now() -> Self {
        let read = |path| fs::read_to_string(path).unwrap_or_default().trim().to_owned();
        let cpu = read("/proc/cpuinfo");
        let model = cpu.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
        let cores = std::thread::available_parallelism().map_or(0, usize::from);
        let mut this = Self { lines: Vec::new() };
        this.say(
            "cores, for clients and broker together",
            &format!("{cores} of {}", model.map_or("?", |of| of.1)),
        );
        this.say("kernel", &read("/proc/sys/kernel/osrelease"));
        this.say("load at the beginning", &load());
        this.say(
            "messages",
            "256 bytes, persistent, ten levels at random, confirms, at most 1,000 unconfirmed",
        );
        this
    }

    pub(super) fn saw(&mut self, peer: Peer, broker: &Broker) {
        if self.lines.iter().all(|(name, _)| name != peer.name()) {
            self.say(peer.name(), &format!("{}; {}", broker.version(), peer.durability()));
        }
    }

    pub(super) fn end(&mut self) {
        self.say("load at the end", &load());
    }

    pub(super) fn into_lines(self) -> Vec<(String, String)> {
        self.lines
    }

    fn say(&mut self, name: &str, value: &str) {
        self.lines.push((name.to_owned(), value.to_owned()));
    }
}

/// Over 1, 5 and 15 minutes.
pub(super) fn load() -> String {
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    load.split(' ').take(3).collect::<Vec<_>>().join(" ")
}

/// This thread and all it starts get the first two cores.
pub(super) fn two_cores(notes: &mut Vec<String>) {
    let Ok(may) = sched_getaffinity(None) else { return };
    let mut two = CpuSet::new();
    (0..CpuSet::MAX_CPU).filter(|core| may.is_set(*core)).take(2).for_each(|core| two.set(core));
    if let Err(error) = sched_setaffinity(None, &two) {
        notes.push(format!("not on two cores only: {error}"));
    }
}

/// As many open files as idle connections need.
pub(super) fn raise_files(notes: &mut Vec<String>) {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current.is_none_or(|current| current >= FILES) {
        return;
    }
    let maximum = maximum.map(|maximum| maximum.max(FILES));
    let raised = setrlimit(Resource::Nofile, Rlimit { current: Some(FILES), maximum });
    if let Err(error) = raised {
        notes.push(format!("not more than {current:?} open files: {error}"));
    }
}
