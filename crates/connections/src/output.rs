//! Bytes on their way to a client over AMQP, and how long the client may leave them.
//!
//! A client that reads slowly is never cut. One that takes not one byte for as long as it may, although some wait for it, is given up: a client
//! that asked for no heartbeats could hold them for ever.

use std::cell::RefCell;
use std::io;
use std::time::Duration;

use overtake_amqp::connection::Connection;
use overtake_lane::Time;
use tokio::time::Instant;

use crate::seen::Seen;
use crate::socket::Socket;

/// With more waiting to be written nothing is heard.
pub(crate) const UNWRITTEN_MAX: usize = 256 << 10;

thread_local! {
    /// What connections say is written into this, one after the other: an idle one holds no memory for it, a busy one finds it warm.
    static SPARE: RefCell<Vec<u8>> = RefCell::default();
}

/// Room to write into.
pub(crate) fn take_spare() -> Vec<u8> {
    SPARE.take()
}

/// Gives room back, in which nothing is left: the larger is kept, within bounds.
fn spare(room: Vec<u8>) {
    SPARE.with_borrow_mut(|spare| {
        if room.capacity() > spare.capacity() && room.capacity() <= UNWRITTEN_MAX {
            *spare = room;
        }
    });
}

/// Bytes on their way to a client.
#[derive(Debug)]
pub(crate) struct Output {
    bytes: Vec<u8>,
    written: usize,
    /// How long the client may take no byte; `None`: for ever.
    timeout: Option<Duration>,
    /// When the client is given up unless it takes a byte.
    stalls_at: Option<Instant>,
    /// Bytes that the client had taken when that was decided.
    sent: u64,
}

impl Output {
    pub(crate) fn new(timeout: Option<Duration>) -> Self {
        Self { bytes: Vec::new(), written: 0, timeout, stalls_at: None, sent: 0 }
    }

    /// Bytes that wait here.
    pub(crate) fn unwritten(&self) -> usize {
        self.bytes.len() - self.written
    }

    /// Writes what the socket takes of what waits here and then of what the connection says.
    pub(crate) fn write(
        &mut self,
        now: impl Fn() -> Time,
        socket: &mut Socket,
        connection: &mut Connection,
        seen: &mut Seen,
    ) -> io::Result<()> {
        if !socket.flush()? {
            self.wait_for_client(socket);
            return Ok(());
        }
        loop {
            if self.written == self.bytes.len() {
                self.bytes.clear();
                self.written = 0;
                let output = connection.output();
                if output.is_empty() {
                    if !socket.holds_back() {
                        self.stalls_at = None;
                    }
                    spare(std::mem::take(output));
                    spare(std::mem::take(&mut self.bytes));
                    return Ok(());
                }
                std::mem::swap(&mut self.bytes, output);
            }
            let written = socket.write(&self.bytes[self.written..])?;
            if written == 0 {
                self.wait_for_client(socket);
                return Ok(());
            }
            self.written += written;
            seen.sent(written);
            if self.written == self.bytes.len() {
                connection.written(now());
            }
        }
    }

    /// The client takes nothing more for now. How long it may do so counts from the last byte that it took.
    fn wait_for_client(&mut self, socket: &Socket) {
        let sent = socket.sent();
        if self.stalls_at.is_none() || sent != self.sent {
            (self.stalls_at, self.sent) = (self.timeout.map(|timeout| Instant::now() + timeout), sent);
        }
    }

    /// Ready when the client has taken nothing for too long.
    pub(crate) async fn stalled(&self) {
        match self.stalls_at {
            Some(when) => tokio::time::sleep_until(when).await,
            None => std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_that_is_given_back_is_lent_to_the_next_and_the_larger_is_kept_within_bounds() {
        let given = Vec::with_capacity(100);
        let at = given.as_ptr();
        spare(given);
        spare(Vec::with_capacity(50));
        let lent = take_spare();
        assert_eq!((lent.as_ptr(), lent.len()), (at, 0));
        assert_eq!(take_spare().capacity(), 0, "it is lent once");
        spare(Vec::with_capacity(UNWRITTEN_MAX + 1));
        assert_eq!(take_spare().capacity(), 0);
    }
}
