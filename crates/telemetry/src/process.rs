//! What the system says of this process (proc(5)). Nothing where it does not say so.

use std::fs;

use overtake_engine::{Clock, ClockSteps, SystemClock};

use crate::family::Family;
use crate::family::Kind::{Counter, Gauge, UpDownCounter};
use crate::family::{Value, labels};
use crate::registry::{Collected, Source};

/// Bytes of memory that are in use.
#[must_use]
pub fn memory() -> u64 {
    kib("/proc/self/status", "VmRSS:")
}

/// Files and sockets that are open.
#[must_use]
pub fn open_files() -> usize {
    fs::read_dir("/proc/self/fd").map_or(0, Iterator::count)
}

/// Most files and sockets that may be open.
#[must_use]
pub fn open_files_max() -> u64 {
    number("/proc/self/limits", "Max open files").unwrap_or_default()
}

/// Threads of the process.
#[must_use]
pub fn threads() -> u64 {
    number("/proc/self/status", "Threads:").unwrap_or_default()
}

/// Most threads that there may be: of the user, or of the machine if that is less.
#[must_use]
pub fn threads_max() -> u64 {
    let of_machine = number("/proc/sys/kernel/threads-max", "").unwrap_or_default();
    number("/proc/self/limits", "Max processes").unwrap_or(of_machine).min(of_machine)
}

/// Bytes of memory that the machine has.
#[must_use]
pub fn machine_memory() -> u64 {
    kib("/proc/meminfo", "MemTotal:")
}

fn kib(file: &str, field: &str) -> u64 {
    number(file, field).unwrap_or_default() * 1_024
}

/// The number behind the name of a field. `None` where there is no such field, or it has no number, as `unlimited`.
fn number(file: &str, field: &str) -> Option<u64> {
    let text = fs::read_to_string(file).ok()?;
    let rest = text.lines().find_map(|line| line.strip_prefix(field))?;
    rest.split_whitespace().next()?.parse().ok()
}

/// A number from `/proc/self/stat`, counted from 1 as in proc(5), which is after the name: 3 or more.
fn stat(field: usize) -> Option<u64> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // The name may hold anything, also brackets.
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(field - 3)?.parse().ok()
}

fn ticks_as_seconds(ticks: u64) -> f64 {
    ticks as f64 / rustix::param::clock_ticks_per_second() as f64
}

/// Seconds of processor time it took so far.
fn cpu_seconds() -> Option<f64> {
    Some(ticks_as_seconds(stat(14)? + stat(15)?))
}

/// When it was started, seconds since 1970.
fn start_seconds() -> Option<f64> {
    let machine = fs::read_to_string("/proc/stat").ok()?;
    let booted = machine.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse::<u64>().ok()?;
    Some(booted as f64 + ticks_as_seconds(stat(22)?))
}

/// The families that Prometheus's client libraries have of every process
/// (<https://prometheus.io/docs/instrumenting/writing_clientlibs/#process-metrics>).
#[derive(Clone, Copy, Debug, Default)]
pub struct Process;

impl Source for Process {
    fn collect(&self) -> Collected<'_> {
        Box::pin(async {
            let known = |family: Family, number: u64| if number == 0 { family } else { family.of(number) };
            let real = |family: Family, number: Option<f64>| match number {
                Some(number) => family.with(labels([]), Value::Real(number)),
                None => family,
            };
            let resident = "Bytes of memory that the process has in use.";
            let cpu = "Seconds of processor time that the process took.";
            let start = "When the process was started, seconds since 1970.";
            let ahead =
                "Seconds by which the broker's time is ahead of the wall clock, because that was set back.";
            let stepped = "How often the wall clock was set by more than a second.";
            let ClockSteps { forwards, back } = SystemClock.steady().steps();
            let steps = [("forwards", forwards), ("back", back)].into_iter().fold(
                Family::new("overtake.clock.steps", Counter, "{step}", stepped),
                |family, (direction, count)| {
                    family.with(labels([("direction", direction)]), Value::Whole(count))
                },
            );
            vec![
                known(Family::new("process.resident_memory", UpDownCounter, "By", resident), memory()),
                real(Family::new("process.cpu", Counter, "s", cpu), cpu_seconds()),
                known(
                    Family::new("process.open_fds", UpDownCounter, "{file}", "Files and sockets open."),
                    open_files() as u64,
                ),
                known(
                    Family::new("process.max_fds", UpDownCounter, "{file}", "Most files and sockets open."),
                    open_files_max(),
                ),
                real(Family::new("process.start_time", Gauge, "s", start), start_seconds()),
                steps,
                Family::new("overtake.clock.ahead", Gauge, "s", ahead)
                    .with(labels([]), Value::Real(SystemClock.ahead_ms() as f64 / 1_000.0)),
            ]
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn this_process_takes_memory_time_and_files_and_began_before_now() {
        assert!(memory() > 1 << 16 && machine_memory() > memory());
        assert!(open_files() > 2 && open_files_max() > 2);
        assert!(threads() > 0 && threads_max() > threads());
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970");
        let started = start_seconds().expect("it is told");
        // The boot is told in whole seconds.
        assert!(started > 1e9 && started < now.as_secs_f64() + 2.0, "{started}");
        assert!(cpu_seconds().is_some_and(|seconds| seconds >= 0.0));
    }
}
