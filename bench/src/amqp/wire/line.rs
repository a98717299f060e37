//! A connection whose ends speak in lines of text with bodies between them, as beanstalkd, NATS and Redis do.

use std::io::Write;
use std::net::{SocketAddr, TcpStream};

use anyhow::{Context, Result, bail};

use super::input::{Input, connect};

pub(super) struct Line {
    pub(super) socket: TcpStream,
    pub(super) input: Input,
    pub(super) out: Vec<u8>,
}

impl Line {
    pub(super) fn open(address: SocketAddr) -> Result<Self> {
        Ok(Self { socket: connect(address)?, input: Input::new(), out: Vec::new() })
    }

    /// Appends a line to what is to be sent.
    pub(super) fn say(&mut self, line: std::fmt::Arguments<'_>) {
        self.out.write_fmt(line).expect("a vector takes all");
        self.out.extend_from_slice(b"\r\n");
    }

    /// Appends a body and the end of its line.
    pub(super) fn body(&mut self, body: &[u8]) {
        self.out.extend_from_slice(body);
        self.out.extend_from_slice(b"\r\n");
    }

    /// Sends what was appended.
    pub(super) fn flush(&mut self) -> Result<()> {
        self.socket.write_all(&self.out).context("writing to the broker")?;
        self.out.clear();
        Ok(())
    }

    /// Sends what was appended, and waits for the next answer, which `read` finds with its length once it is all there.
    pub(super) fn answer<T>(&mut self, read: impl Fn(&[u8]) -> Result<Option<(T, usize)>>) -> Result<T> {
        self.flush()?;
        loop {
            if let Some((answer, len)) = read(self.input.unread())? {
                self.input.consume(len);
                return Ok(answer);
            }
            self.input.fill(&mut self.socket)?;
        }
    }
}

/// The first line without its end, and its length with it.
pub(super) fn line(bytes: &[u8]) -> Option<(&[u8], usize)> {
    let end = bytes.windows(2).position(|pair| pair == b"\r\n")?;
    Some((&bytes[..end], end + 2))
}

/// The body of `len` bytes that begins at `start`, and where its line ends, once it is all there.
pub(super) fn body(bytes: &[u8], start: usize, len: usize) -> Option<(&[u8], usize)> {
    let body = bytes[start..].get(..len + 2)?;
    Some((&body[..len], start + len + 2))
}

pub(super) fn number(word: Option<&[u8]>) -> Result<u64> {
    let digits = word.context("a number is missing")?;
    digits.iter().try_fold(0, |number, digit| match digit {
        b'0'..=b'9' => Ok(number * 10 + u64::from(digit - b'0')),
        _ => bail!("{} is no number", digits.escape_ascii()),
    })
}
