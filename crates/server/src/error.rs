//! Why the server does not start, or stops by itself.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::{fmt, io};

use overtake_connections::BadFile;
use overtake_lane::Refusal;
use overtake_store::StoreError;

use crate::config::{CONNECTORS_HINT, Origin};

/// The server cannot run.
#[derive(Debug)]
pub enum ServeError {
    /// The data directory cannot be made or used.
    Directory {
        /// The directory.
        dir: PathBuf,
        /// Who said so.
        place: Origin,
        /// What the system says.
        error: io::Error,
    },
    /// The store cannot be opened.
    Store {
        /// Its directory.
        dir: PathBuf,
        /// Why.
        error: StoreError,
    },
    /// The store holds something this version does not know.
    Record {
        /// Its directory.
        dir: PathBuf,
        /// What and where.
        why: String,
    },
    /// The store has more shards than are configured.
    Shards {
        /// Its directory.
        dir: PathBuf,
        /// How many.
        why: String,
    },
    /// A segment of the store is gone or damaged.
    Segment {
        /// Its directory.
        dir: PathBuf,
        /// What and where.
        why: String,
    },
    /// Messages cannot be kept on the servers that the configuration names.
    Servers {
        /// Why not, with what to do.
        why: String,
    },
    /// The address cannot be listened on.
    Listen {
        /// The address.
        address: SocketAddr,
        /// Who said so.
        place: Origin,
        /// The flag that says another one.
        flag: &'static str,
        /// What the system says.
        error: io::Error,
    },
    /// A certificate or key cannot be used.
    Tls {
        /// The file.
        path: PathBuf,
        /// Why not.
        why: String,
    },
    /// What the store says of users cannot be read.
    Users {
        /// What.
        why: String,
    },
    /// The password of the first administrator cannot be used.
    AdminPassword {
        /// The file it is to be in.
        path: PathBuf,
        /// Why not.
        why: String,
    },
    /// It would be reached from other machines, and nobody could log in from there.
    NoAdministrator {
        /// Where it would be reached.
        address: SocketAddr,
    },
    /// The definitions to load cannot be.
    Definitions {
        /// Their file.
        path: PathBuf,
        /// Why not, with the place.
        why: String,
    },
    /// The routes of the configuration cannot be set.
    Routes {
        /// Their file.
        path: PathBuf,
        /// Why not.
        why: String,
    },
    /// The audit file cannot be written.
    AuditFile {
        /// Its path.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// Queues of the configuration cannot be as it says. There is at least one.
    Queues(Vec<RefusedQueue>),
    /// An endpoint or a source of the configuration cannot be.
    Connector {
        /// Its table.
        name: String,
        /// Who said so.
        place: Origin,
        /// Why not.
        why: String,
    },
    /// Nothing can be pushed to the collector that is configured.
    Collector {
        /// Why not.
        why: String,
    },
    /// The ports file cannot be written.
    PortsFile {
        /// Its path.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// The broker stopped by itself: its store failed.
    Stopped {
        /// Why.
        why: String,
    },
    /// The system gives this process fewer threads than it needs.
    Threads {
        /// How many it started.
        started: usize,
        /// How many a broker with this configuration needs at least.
        needed: usize,
        /// What the system says to one more.
        error: io::Error,
    },
    /// The system refuses something every process needs.
    System(io::Error),
}

/// A queue that cannot be as the configuration says.
#[derive(Debug)]
pub struct RefusedQueue {
    /// Its name.
    pub queue: String,
    /// Where the configuration says so.
    pub place: Origin,
    /// Why it cannot be.
    pub refusal: Refusal,
}

impl RefusedQueue {
    /// What to do.
    fn hint(&self) -> String {
        let Self { queue, refusal, .. } = self;
        match refusal {
            Refusal::ImportPriorityMissing { .. } => format!(
                "write order = \"fifo\" into [queues.{queue}] to leave the queue in publish order; or start without that table, say the priority with `overtake queue set {queue} order=priority --import-priority most-urgent`, and start with the table; no queue was changed"
            ),
            refusal => refusal.hint().to_owned(),
        }
    }
}

impl fmt::Display for RefusedQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot declare queue `{}` ({}): {}", self.queue, self.place, self.refusal)
    }
}

impl ServeError {
    /// What to do.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        use io::ErrorKind::{AlreadyExists, NotADirectory};
        Some(match self {
            Self::Directory { error, .. } if matches!(error.kind(), AlreadyExists | NotADirectory) => {
                "that is a file, or below one: name a directory with --data-dir".to_owned()
            }
            Self::Directory { place: Origin::Default, .. } => {
                "name a directory this user may write to with --data-dir".to_owned()
            }
            Self::Directory { dir, .. } => {
                format!(
                    "give {} to the user the server runs as, or name another directory with --data-dir",
                    dir.display()
                )
            }
            Self::Store { dir, error } => return store_hint(dir, error),
            Self::Segment { dir, .. } => damaged_hint(&dir.display()),
            Self::Shards { .. } => "set store.shards (--shards) to as many".to_owned(),
            Self::Servers { .. } => "see what they are like with `overtake doctor`, and correct [engine]".to_owned(),
            Self::Record { .. } => "start the version of overtake that wrote it, or a later one".to_owned(),
            Self::Listen { error, flag, .. } if error.kind() == io::ErrorKind::AddrInUse => {
                let other =
                    if *flag == "--amqp" { "RabbitMQ or another overtake" } else { "another overtake" };
                format!("stop what listens there (perhaps {other}), or choose another port with {flag}")
            }
            Self::Listen { error, flag, .. } if error.kind() == io::ErrorKind::PermissionDenied => {
                format!("ports below 1024 need a privilege; choose a higher one with {flag}")
            }
            Self::Listen { address, .. } => {
                format!("use an address of this machine, such as 127.0.0.1:{}", address.port())
            }
            Self::Tls { .. } => {
                "use PEM files that this user may read: a certificate chain, its key, and perhaps authorities of clients".to_owned()
            }
            Self::Users { .. } => "start the version of overtake that wrote it, or a later one".to_owned(),
            Self::AdminPassword { .. } => {
                "write the password into the file, alone, and let the user the server runs as read it".to_owned()
            }
            Self::NoAdministrator { .. } => {
                "name one with --admin-user and --admin-password-file, or listen on 127.0.0.1 and make one: overtake user put NAME --new-password --tag administrator".to_owned()
            }
            Self::Definitions { .. } => {
                "nothing of it was declared: correct the file, or leave --load-definitions out".to_owned()
            }
            Self::Routes { .. } => {
                "no route was changed: correct the file (overtake routes fmt shows what is wrong), or leave --routes-file out".to_owned()
            }
            Self::AuditFile { .. } => "name a file in a directory this user may write to".to_owned(),
            Self::Queues(refused) => {
                let mut hints: Vec<String> = refused.iter().map(RefusedQueue::hint).collect();
                hints.dedup();
                hints.join("\n")
            }
            Self::Connector { .. } => CONNECTORS_HINT.to_owned(),
            Self::Collector { .. } => {
                "repair that, use an http:// address in otlp_endpoint, or set it to off".to_owned()
            }
            Self::PortsFile { .. } => "name a file in a directory this user may write to".to_owned(),
            Self::Stopped { .. } => {
                "remove the cause, then start the server again: what it confirmed is in the data directory, as long as that is there"
                    .to_owned()
            }
            Self::Threads { .. } => {
                "raise the limit of processes and threads: `ulimit -u`, TasksMax= of the systemd unit, or the pids limit of the container".to_owned()
            }
            Self::System(_) => return None,
        })
    }
}

fn damaged_hint(dir: &dyn fmt::Display) -> String {
    format!(
        "see all of it with `overtake store check {dir}`, and with `overtake store repair {dir}` what can be saved; restore a backup, or start with --on-damage skip to go on without what is damaged"
    )
}

fn store_hint(dir: &std::path::Path, error: &StoreError) -> Option<String> {
    let dir = dir.display();
    Some(match error {
        StoreError::Locked => {
            "stop the other process, or give this one its own directory with --data-dir".to_owned()
        }
        StoreError::Corrupt { .. } => damaged_hint(&dir),
        StoreError::JournalMissing { .. } => {
            format!(
                "put the journal files of {dir} back, or restore a backup; see with `overtake store repair {dir}` what can be taken from the segments alone; for a new store name another directory with --data-dir"
            )
        }
        StoreError::Newer { .. } => "start the version of overtake that wrote it, or a later one".to_owned(),
        StoreError::OtherStore { .. } => {
            format!("take the file out of {dir}: it was copied there from another store")
        }
        StoreError::BadSegmentBytes { .. } => "correct store.segment_bytes (--segment-bytes)".to_owned(),
        error if error.is_full() => "free space on its disk".to_owned(),
        StoreError::Io { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
            format!("give {dir} and what is in it to the user the server runs as")
        }
        error if error.is_of_its_file() => {
            format!(
                "put the right file back, or start with --on-damage skip to go on without it; see all such files with `overtake store check {dir}`"
            )
        }
        _ => return None,
    })
}

impl fmt::Display for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Directory { dir, place, error } => {
                write!(f, "cannot keep data in {} ({place}): {error}", dir.display())
            }
            Self::Store { dir, error } => write!(f, "cannot open the store in {}: {error}", dir.display()),
            Self::Record { dir, why } | Self::Segment { dir, why } | Self::Shards { dir, why } => {
                write!(f, "cannot open the store in {}: {why}", dir.display())
            }
            Self::Servers { why } => write!(f, "cannot keep messages on the servers of [engine]: {why}"),
            Self::Listen { address, place, error, .. } => {
                write!(f, "cannot listen on {address} ({place}): {error}")
            }
            Self::Tls { path, why } => write!(f, "cannot use {} for TLS: {why}", path.display()),
            Self::Users { why } => write!(f, "cannot read who may come in: {why}"),
            Self::AdminPassword { path, why } => {
                write!(
                    f,
                    "cannot take the password of the first administrator from {}: {why}",
                    path.display()
                )
            }
            Self::NoAdministrator { address } => write!(
                f,
                "{address} can be reached from other machines, and the only administrator, guest, comes from this one only"
            ),
            Self::Definitions { path, why } => {
                write!(f, "cannot load the definitions in {}: {why}", path.display())
            }
            Self::Routes { path, why } => write!(f, "cannot set the routes in {}: {why}", path.display()),
            Self::AuditFile { path, error } => {
                write!(f, "cannot write the audit file {}: {error}", path.display())
            }
            Self::Queues(refused) => {
                let all: Vec<String> = refused.iter().map(ToString::to_string).collect();
                f.write_str(&all.join("\n"))
            }
            Self::Connector { name, place, why } => write!(f, "`{name}` ({place}): {why}"),
            Self::Collector { why } => write!(f, "cannot push to the collector: {why}"),
            Self::PortsFile { path, error } => {
                write!(f, "cannot write the ports file {}: {error}", path.display())
            }
            Self::Stopped { why } => write!(f, "the broker stopped: {why}"),
            Self::Threads { started, needed, error } => write!(
                f,
                "a broker needs {needed} threads at least, and the system gave this process {started}: {error}"
            ),
            Self::System(error) => write!(f, "the system refuses: {error}"),
        }
    }
}

impl std::error::Error for ServeError {}

impl From<BadFile> for ServeError {
    fn from(BadFile { path, why }: BadFile) -> Self {
        Self::Tls { path, why }
    }
}

impl From<io::Error> for ServeError {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(error: ServeError, expect: &str) {
        let hint = error.hint().map_or_else(String::new, |hint| format!(" / {hint}"));
        assert_eq!(format!("{error}{hint}"), expect);
    }

    fn store(error: StoreError) -> ServeError {
        ServeError::Store { dir: "/data".into(), error }
    }

    #[test]
    fn what_a_store_refuses_comes_with_what_to_do() {
        check(
            store(StoreError::Newer { file: "journal-1".into(), found: 9, known: 1 }),
            "cannot open the store in /data: journal-1 has format 9, this program knows formats up to 1: use a newer one / \
             start the version of overtake that wrote it, or a later one",
        );
        check(
            store(StoreError::Locked),
            "cannot open the store in /data: another process has this store open / \
             stop the other process, or give this one its own directory with --data-dir",
        );
        let full = io::Error::from(io::ErrorKind::StorageFull);
        check(
            store(StoreError::Io { op: "write to", file: "journal-1".into(), source: full }),
            "cannot open the store in /data: cannot write to journal-1: no storage space / free space on its disk",
        );
    }

    #[test]
    fn a_port_says_why_it_cannot_be_had() {
        let listen = |kind| ServeError::Listen {
            flag: "--http",
            address: SocketAddr::from(([127, 0, 0, 1], 80)),
            place: Origin::Default,
            error: io::Error::from(kind),
        };
        check(
            listen(io::ErrorKind::PermissionDenied),
            "cannot listen on 127.0.0.1:80 (default): permission denied / \
             ports below 1024 need a privilege; choose a higher one with --http",
        );
    }
}
