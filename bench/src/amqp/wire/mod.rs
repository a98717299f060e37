//! What a load generator asks of a connection to a broker, and the protocols in which it does.
//!
//! Cheap on purpose: what is written is gathered until it is flushed, what is read is borrowed, and each read is one call
//! of the system however much it brings. The sockets block; who must not wait looks first with [`ready`].

pub(super) mod amqp;
mod confirms;
pub(super) mod http;
pub(super) mod input;
mod line;
pub(super) mod nats;
pub(super) mod readiness;
pub(super) mod redis;
pub(super) mod tube;

use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// How long a broker may say nothing that was waited for.
pub(super) const PATIENCE: Duration = Duration::from_secs(120);

/// A connection by which messages go in.
pub(super) trait Source: Send {
    /// Appends a message to what is to be sent. Answers its number; the first is number 0.
    fn put(&mut self, level: u8, body: &[u8]) -> u64;

    /// Sends what was appended.
    fn flush(&mut self) -> Result<()>;

    /// Reads once, and tells the number of each message that is safe now.
    fn hear(&mut self, confirmed: &mut dyn FnMut(u64)) -> Result<()>;

    fn socket(&self) -> &TcpStream;
}

/// A connection by which messages come out.
pub(super) trait Taker: Send {
    /// Reads once, and tells of each message that is there whole.
    fn take(&mut self, each: &mut dyn FnMut(Delivery<'_>)) -> Result<()>;

    /// Appends an acknowledgement to what is to be sent.
    fn ack(&mut self, tag: u64);

    /// Sends what was appended.
    fn flush(&mut self) -> Result<()>;

    /// So many more messages will come. Only a protocol in which a consumer asks for each must know.
    fn expect(&mut self, _more: u64) {}

    /// Whether a message is there in part.
    fn holds_part(&self) -> bool;

    /// Ends when the broker has heard every acknowledgement.
    fn close(self: Box<Self>) -> Result<()>;

    fn socket(&self) -> &TcpStream;
}

/// A message, borrowed from what was read.
#[derive(Default)]
pub(super) struct Delivery<'a> {
    /// With which it is acknowledged.
    pub(super) tag: u64,
    /// The priority it says it has; `None` where the protocol does not tell.
    pub(super) level: Option<u8>,
    pub(super) redelivered: bool,
    /// The queue that a reply goes to; empty where none is wanted.
    pub(super) reply_to: &'a [u8],
    pub(super) body: &'a [u8],
}

/// Which of these sockets have something to be read, after at most so long.
pub(super) fn ready<const N: usize>(sockets: [&TcpStream; N], wait: Duration) -> Result<[bool; N]> {
    let wait = Timespec { tv_sec: wait.as_secs().try_into()?, tv_nsec: wait.subsec_nanos().into() };
    let mut fds = sockets.map(|socket| PollFd::new(socket, PollFlags::IN));
    match poll(&mut fds, Some(&wait)) {
        Err(rustix::io::Errno::INTR) => Ok([false; N]),
        polled => polled
            .map(|_| fds.map(|fd| !fd.revents().is_empty()))
            .context("looking whether there is something to be read"),
    }
}
