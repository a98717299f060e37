//! The ports file: where a program that started the server on port 0 finds it.
//!
//! `{"pid":4711,"http":{"address":"127.0.0.1:41234","url":"http://127.0.0.1:41234"}}`, and `amqp` and `amqps` likewise where
//! those are served. It appears whole, once the server is ready, and goes when the server does.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// A ports file that is removed when this is dropped.
pub(crate) struct PortsFile(PathBuf);

impl PortsFile {
    /// Writes it beside its place and moves it there, so that nobody reads half of it.
    pub(crate) fn write(path: &Path, http: SocketAddr, amqp: [Option<SocketAddr>; 2]) -> io::Result<Self> {
        let pid = std::process::id();
        let mut content =
            serde_json::json!({ "pid": pid, "http": { "address": http, "url": format!("http://{http}") } });
        for (scheme, address) in ["amqp", "amqps"].into_iter().zip(amqp) {
            if let Some(address) = address {
                let url = format!("{scheme}://{address}/%2f");
                content[scheme] = serde_json::json!({ "address": address, "url": url });
            }
        }
        let mut beside = path.as_os_str().to_owned();
        beside.push(format!(".{pid}"));
        let beside = PathBuf::from(beside);
        std::fs::write(&beside, format!("{content}\n"))?;
        std::fs::rename(&beside, path)?;
        Ok(Self(path.to_owned()))
    }
}

impl Drop for PortsFile {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_file(&self.0) {
            tracing::warn!("cannot remove the ports file {}: {error}", self.0.display());
        }
    }
}
