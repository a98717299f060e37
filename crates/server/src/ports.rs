//! The ports file: where a program that started the server on port 0 finds it.
//!
//! `{"pid":4711,"http":{"address":"127.0.0.1:41234","url":"http://127.0.0.1:41234"}}`, and `https`, `amqp` and `amqps`
//! likewise where those are served. It appears whole, once the server is ready, and goes when the server does.

use std::io;
use std::path::{Path, PathBuf};

use crate::Addresses;

/// A ports file that is removed when this is dropped.
pub(crate) struct PortsFile(PathBuf);

impl PortsFile {
    /// Writes it beside its place and moves it there, so that nobody reads half of it.
    pub(crate) fn write(path: &Path, addresses: &Addresses) -> io::Result<Self> {
        let pid = std::process::id();
        let mut content = serde_json::json!({ "pid": pid });
        for (scheme, address) in addresses.served() {
            let path = if scheme.starts_with("amqp") { "/%2f" } else { "" };
            let url = format!("{scheme}://{address}{path}");
            content[scheme] = serde_json::json!({ "address": address, "url": url });
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
