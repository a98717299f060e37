//! What the system says about this process and this machine: proc(5).

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Bytes of memory this process has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Memory {
    /// What is in memory now, pages of files included.
    pub(crate) resident: u64,
    /// The most there ever was.
    pub(crate) peak: u64,
    /// Without pages of files, which the system can take back.
    pub(crate) own: u64,
}

impl Memory {
    pub(crate) fn now() -> Self {
        let status = read("/proc/self/status");
        let field = |name| kib(&status, name).expect("status has it");
        Self { resident: field("VmRSS:"), peak: field("VmHWM:"), own: field("RssAnon:") + field("RssShmem:") }
    }
}

/// Bytes a new process could take without pushing others out.
pub(crate) fn memory_available() -> u64 {
    kib(&read("/proc/meminfo"), "MemAvailable:").expect("meminfo has it")
}

/// Processor time that the threads of this process have had so far, by their names: s.
#[derive(Clone, Debug, Default)]
pub(crate) struct Busy(BTreeMap<String, f64>);

impl Busy {
    /// Threads that have ended are not in it.
    pub(crate) fn now() -> Self {
        /// What the kernel tells processor time in, as every program sees it (`USER_HZ`).
        const TICKS_PER_SECOND: f64 = 100.0;
        let mut all = BTreeMap::new();
        for task in fs::read_dir("/proc/self/task").expect("proc is there").flatten() {
            let Ok(stat) = fs::read_to_string(task.path().join("stat")) else { continue };
            // The name stands in brackets, and may hold some.
            let (Some(from), Some(to)) = (stat.find('('), stat.rfind(')')) else { continue };
            let words: Vec<&str> = stat[to + 1..].split_whitespace().collect();
            let ticks: f64 = words[11..13].iter().filter_map(|ticks| ticks.parse::<f64>().ok()).sum();
            *all.entry(stat[from + 1..to].to_owned()).or_default() += ticks / TICKS_PER_SECOND;
        }
        Self(all)
    }

    pub(crate) fn since(&self, before: &Self) -> Self {
        let spent = |(name, all): (&String, &f64)| (name.clone(), all - before.0.get(name).unwrap_or(&0.0));
        Self(self.0.iter().map(spent).collect())
    }

    /// That of threads whose names begin so.
    pub(crate) fn of(&self, name: &str) -> f64 {
        self.0.iter().filter(|(its, _)| its.starts_with(name)).map(|(_, spent)| spent).sum()
    }
}

/// Bytes written, by two counters that only grow.
///
/// Not `write_bytes` of `/proc/self/io`: where the page cache has large folios, that counts a whole one, up to 2 MiB,
/// for each small write over what was there before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Written {
    /// What this process gave to the system to write.
    pub(crate) handed: u64,
    /// What reached the device, from all processes of the machine; `None` where the directory is on no single device.
    pub(crate) device: Option<u64>,
}

impl Written {
    pub(crate) fn now(dir: &Path) -> Self {
        let io = read("/proc/self/io");
        let line = io.lines().find_map(|line| line.strip_prefix("wchar: "));
        let handed = line.and_then(|bytes| bytes.parse().ok()).expect("io has it");
        let dev = fs::metadata(dir).expect("the directory is there").dev();
        Self { handed, device: of_device(&read("/proc/diskstats"), dev) }
    }
}

/// Sectors of 512 bytes, in the tenth column; devices are named by two numbers packed as in makedev(3).
fn of_device(stats: &str, dev: u64) -> Option<u64> {
    let major = (dev >> 8 & 0xfff) | (dev >> 32 & 0xffff_f000);
    let minor = (dev & 0xff) | (dev >> 12 & 0xffff_ff00);
    let (major, minor) = (major.to_string(), minor.to_string());
    let mut devices = stats.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let device = devices.find(|words| words.len() > 9 && words[0] == major && words[1] == minor)?;
    device[9].parse::<u64>().ok().map(|sectors| sectors * 512)
}

/// Time on a processor of all threads there are, ns.
pub(crate) fn busy_ns() -> u64 {
    let tasks = fs::read_dir("/proc/self/task").expect("a process has threads");
    let busy = |path: &Path| -> Option<u64> {
        fs::read_to_string(path.join("schedstat")).ok()?.split(' ').next()?.parse().ok()
    };
    // A thread may end while this looks.
    tasks.filter_map(|task| busy(&task.ok()?.path())).sum()
}

/// When memory is short the system is to end this process and none of its neighbours.
pub(crate) fn volunteer() {
    // Where the system does not let us, all is as it was.
    let _ = fs::write("/proc/self/oom_score_adj", "1000");
}

/// Whether files there are really in memory.
pub(crate) fn is_in_memory(dir: &Path) -> bool {
    let mounts = read("/proc/mounts");
    let mounts = mounts.lines().filter_map(|line| {
        let mut words = line.split(' ').skip(1);
        Some((Path::new(words.next()?), words.next()?))
    });
    let above = mounts.filter(|(point, _)| dir.starts_with(point));
    let nearest = above.max_by_key(|(point, _)| point.components().count());
    nearest.is_some_and(|(_, kind)| ["tmpfs", "ramfs"].contains(&kind))
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{path} tells what is to be measured: {error}"))
}

/// `Name:   1234 kB`, in bytes.
pub(crate) fn kib(text: &str, name: &str) -> Option<u64> {
    let value = text.lines().find_map(|line| line.strip_prefix(name))?;
    value.trim().strip_suffix(" kB")?.parse::<u64>().ok().map(|kib| kib << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_found_and_told_in_bytes() {
        let text = "VmHWM:\t     300 kB\nVmRSS:\t     200 kB\n";
        assert_eq!(kib(text, "VmRSS:"), Some(200 << 10));
        assert_eq!(kib(text, "VmSwap:"), None);
    }

    #[test]
    fn a_device_is_found_by_its_numbers() {
        let stats = "   8 0 sda 1 2 3 4 5 6 70 8 9\n 259 1 nvme0n1p1 1 2 3 4 5 6 80 8 9\n";
        assert_eq!(of_device(stats, 0x800), Some(70 * 512));
        assert_eq!(of_device(stats, 259 << 8 | 1), Some(80 * 512));
        assert_eq!(of_device(stats, 0x2a), None);
    }
}
