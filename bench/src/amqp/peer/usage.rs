//! Processor time and memory of a broker's process, whoever started it: proc(5).

use std::fs;
use std::net::SocketAddr;
use std::path::Path;

use anyhow::{Context, Result};

/// A process by its id.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Usage {
    id: u32,
}

impl Usage {
    pub(super) fn of(id: u32) -> Self {
        Self { id }
    }

    /// Of the process that listens on this port of the loopback; `None` of one elsewhere, or of one that we may not look at.
    pub(super) fn listening(address: SocketAddr) -> Option<Self> {
        let tables =
            ["/proc/net/tcp", "/proc/net/tcp6"].map(|path| fs::read_to_string(path).unwrap_or_default());
        let sockets = tables.iter().find_map(|table| inode(table, address.port()));
        let socket = format!("socket:[{}]", sockets.filter(|_| address.ip().is_loopback())?);
        let processes = fs::read_dir("/proc").ok()?.flatten();
        let mut ids = processes.filter_map(|process| process.file_name().to_str()?.parse().ok());
        ids.find(|id| has_open(*id, Path::new(&socket))).map(Self::of)
    }

    /// Whether it is this process.
    pub(super) fn is_own(self) -> bool {
        self.id == std::process::id()
    }

    /// Bytes in memory, pages of files included.
    pub(crate) fn resident(self) -> Result<u64> {
        let status = self.read("status")?;
        crate::proc::kib(&status, "VmRSS:").context("it has no memory")
    }

    /// Time on a processor so far, of all its threads, ns. In ticks of 10 ms (`utime` and `stime`).
    pub(crate) fn busy_ns(self) -> Result<u64> {
        let stat = self.read("stat")?;
        // The name, in brackets, may hold anything.
        let (_, fields) = stat.rsplit_once(')').context("it has a name")?;
        let ticks = fields.split_whitespace().skip(11).take(2).map(str::parse::<u64>);
        Ok(ticks.sum::<Result<u64, _>>()? * 10_000_000)
    }

    fn read(self, file: &str) -> Result<String> {
        let path = format!("/proc/{}/{file}", self.id);
        fs::read_to_string(&path).context("the broker is gone")
    }
}

/// The socket that listens on a port, by the number under which processes have it.
fn inode(table: &str, port: u16) -> Option<u64> {
    /// As the kernel writes it.
    const LISTEN: &str = "0A";
    let of_line = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (_, its) = words.get(1)?.rsplit_once(':')?;
        let is_it = u16::from_str_radix(its, 16) == Ok(port) && words.get(3) == Some(&LISTEN);
        is_it.then(|| words.get(9)?.parse().ok())?
    };
    table.lines().find_map(of_line)
}

fn has_open(id: u32, file: &Path) -> bool {
    let open = fs::read_dir(format!("/proc/{id}/fd")).into_iter().flatten().flatten();
    open.filter_map(|entry| fs::read_link(entry.path()).ok()).any(|its| its == file)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn whoever_listens_is_found_by_the_port() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address");
        let usage = Usage::listening(address).expect("this process");
        assert_eq!(usage.id, std::process::id());
        assert!(usage.resident().expect("it has memory") > 0);
        assert!(Usage::listening(SocketAddr::from(([192, 0, 2, 1], address.port()))).is_none(), "elsewhere");
    }

    #[test]
    fn only_a_socket_that_listens_counts() {
        let line = |state| {
            format!("  0: 0100007F:1628 00000000:0000 {state} 0:0 0:0 0 106 0 123017 1 0 100 0 0 10 0\n")
        };
        assert_eq!(inode(&line("0A"), 0x1628), Some(123_017));
        assert_eq!(inode(&line("01"), 0x1628), None);
        assert_eq!(inode(&line("0A"), 0x1629), None);
    }
}
