//! What a socket has brought and nobody has taken apart yet.

use std::io::{ErrorKind, Read};
use std::net::{SocketAddr, TcpStream};

use anyhow::{Context, Result, bail};

use super::PATIENCE;

/// Room for many deliveries at prefetch 100, or a thousand confirms one by one.
const LEN: usize = 256 << 10;

pub(crate) struct Input {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

impl Input {
    pub(crate) fn new() -> Self {
        Self { bytes: vec![0; LEN], start: 0, end: 0 }
    }

    pub(crate) fn unread(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    pub(crate) fn consume(&mut self, len: usize) {
        self.start += len;
        assert!(self.start <= self.end, "only what is there is consumed");
    }

    /// Reads once, whatever comes.
    pub(crate) fn fill(&mut self, socket: &mut TcpStream) -> Result<()> {
        if self.start > 0 {
            self.bytes.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        if self.end == self.bytes.len() {
            bail!("something longer than {LEN} bytes came in one piece");
        }
        match socket.read(&mut self.bytes[self.end..]) {
            Ok(0) => bail!("the broker hung up"),
            Ok(len) => self.end += len,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                bail!("nothing came for {} s", PATIENCE.as_secs())
            }
            Err(error) => return Err(error).context("reading from the broker"),
        }
        Ok(())
    }
}

/// A socket that says when it was waited for in vain.
pub(crate) fn connect(address: SocketAddr) -> Result<TcpStream> {
    let socket = TcpStream::connect(address).with_context(|| format!("connecting to {address}"))?;
    socket.set_nodelay(true)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    socket.set_write_timeout(Some(PATIENCE))?;
    Ok(socket)
}
