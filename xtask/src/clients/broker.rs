//! Our broker, started for one program: free ports, a directory of its own, and a clean end by its pid.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::shell::{run, say};
use crate::suite;

/// Guards against hanging; it takes a tenth of a second.
const START_MAX: Duration = Duration::from_secs(60);
const STOP_MAX: Duration = Duration::from_secs(60);

/// How often we look.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// How much of what a broker said is shown when its program failed.
const LOG_LINES: usize = 60;

/// The binary that the suite has built.
pub(crate) fn build() -> Result<PathBuf> {
    Ok(suite::build(&["--bin", "overtake", "--test", "cli"])?.join("overtake"))
}

/// A broker that runs. It does not outlive this.
pub(crate) struct Broker {
    child: Child,
    dir: PathBuf,
    ports: Ports,
}

/// Where it listens.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Ports {
    /// AMQP.
    pub(super) amqp: String,
    /// HTTP.
    pub(super) http: String,
}

impl Broker {
    /// Starts one for this program and waits until it says where it listens.
    pub(crate) fn start(binary: &Path, program: &str) -> Result<Self> {
        let dir = std::env::temp_dir().join(format!("overtake-clients-{}-{program}", std::process::id()));
        let mut command = Command::new(binary);
        command.arg("serve");
        Self::start_by(command, dir.clone(), &dir)
    }

    /// Starts one by a command that ends with `serve`; `its_dir` is what the broker calls `dir`.
    pub(crate) fn start_by(mut command: Command, dir: PathBuf, its_dir: &Path) -> Result<Self> {
        if dir.exists() {
            std::fs::remove_dir_all(&dir)?;
        }
        std::fs::create_dir_all(&dir)?;
        let log = File::create(dir.join("log"))?;
        command.args(["--http", "127.0.0.1:0", "--amqp", "127.0.0.1:0", "--data-dir"]);
        command.arg(its_dir.join("data")).arg("--ports-file").arg(its_dir.join("ports.json"));
        let child = command
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .with_context(|| format!("starting {}", command.get_program().to_string_lossy()))?;
        let ports = dir.join("ports.json");
        let mut broker = Self { child, dir, ports: Ports::default() };
        broker.ports = broker.await_ports(&ports)?;
        Ok(broker)
    }

    /// Where it listens.
    pub(super) fn ports(&self) -> &Ports {
        &self.ports
    }

    /// Ends it as an operator would. It must end well and must not have panicked; what it said is shown if not, or if
    /// its program failed.
    pub(crate) fn stop(mut self, program_failed: bool) -> Result<()> {
        run(Command::new("kill").args(["-TERM", &self.child.id().to_string()]))?;
        let ended = wait(STOP_MAX, || Ok(self.child.try_wait()?));
        let said = self.said();
        let end = match ended {
            Ok(status) => judge(status, &said),
            Err(error) => Err(error.context("the broker does not end")),
        };
        if program_failed || end.is_err() {
            let lines: Vec<_> = said.lines().collect();
            say("   the broker said:");
            lines[lines.len().saturating_sub(LOG_LINES)..]
                .iter()
                .for_each(|line| say(&format!("   | {line}")));
        }
        end
    }

    fn await_ports(&mut self, ports: &Path) -> Result<Ports> {
        wait(START_MAX, || {
            if let Some(status) = self.child.try_wait()? {
                bail!("the broker ended with {status}:\n{}", self.said());
            }
            Ok(std::fs::read_to_string(ports).ok().and_then(|text| read_ports(&text)))
        })
        .context("waiting for the broker's ports")
    }

    fn said(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(self.dir.join("log")).unwrap_or_default()).into_owned()
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        // Both fail only when there is nothing left to do.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

fn judge(status: ExitStatus, said: &str) -> Result<()> {
    ensure!(!said.contains("panicked at"), "the broker panicked");
    ensure!(status.success(), "the broker ended with {status}");
    Ok(())
}

/// The URLs of the ports file.
fn read_ports(ports: &str) -> Option<Ports> {
    Some(Ports { amqp: url_of("amqp", ports)?, http: url_of("http", ports)? })
}

fn url_of(protocol: &str, ports: &str) -> Option<String> {
    let (_, its) = ports.split_once(&format!("\"{protocol}\":"))?;
    let (_, url) = its.split_once("\"url\":\"")?;
    Some(url.split_once('"')?.0.to_owned())
}

fn wait<T>(limit: Duration, mut look: impl FnMut() -> Result<Option<T>>) -> Result<T> {
    let start = Instant::now();
    loop {
        if let Some(found) = look()? {
            return Ok(found);
        }
        ensure!(start.elapsed() < limit, "nothing after {} s", limit.as_secs());
        std::thread::sleep(LOOK_EVERY);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_urls_are_found_beside_others() {
        let ports =
            r#"{"amqp":{"address":"127.0.0.1:1","url":"amqp://127.0.0.1:1/%2f"},"http":{"url":"http://x"}}"#;
        let found = Ports { amqp: "amqp://127.0.0.1:1/%2f".into(), http: "http://x".into() };
        assert_eq!(read_ports(ports), Some(found));
        assert_eq!(read_ports("{\"http\":{\"url\":\"http://x\"}}"), None);
        assert_eq!(read_ports("{\"amqp\":{\"addr"), None);
    }
}
