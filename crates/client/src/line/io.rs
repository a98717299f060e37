//! Bytes between a socket and the state; and another socket when that one is gone.

use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use overtake_amqp::client::{Client, Ending, Event};
use overtake_lane::Time;
use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadHalf, WriteHalf, split};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, sleep_until, timeout_at};

use super::Shared;
use super::way::{Socket, Way};
use crate::error::Error;

/// Read at once, bytes.
const PIECE: usize = 64 << 10;
/// The first wait before connecting again, and the longest; each is twice the one before, and up to half of it is left to chance.
const BACKOFF: Duration = Duration::from_millis(50);
const BACKOFF_MAX: Duration = Duration::from_secs(10);

/// Time as the protocol is told of it.
#[derive(Clone, Copy)]
struct Clock(Instant);

impl Clock {
    fn now(self) -> Time {
        Time(u64::try_from(self.0.elapsed().as_millis()).unwrap_or(u64::MAX))
    }

    fn at(self, time: Option<Time>) -> Instant {
        const DAY: Duration = Duration::from_secs(86_400);
        time.map_or(self.0 + self.0.elapsed() + DAY, |Time(ms)| self.0 + Duration::from_millis(ms))
    }
}

/// A socket, and the bytes on their way.
struct Wire {
    reader: ReadHalf<Box<dyn Socket>>,
    writer: WriteHalf<Box<dyn Socket>>,
    input: BytesMut,
    output: Vec<u8>,
    /// Bytes of it that are in the socket.
    written: usize,
    /// The socket has passed on all that it was given: one under TLS may keep something back.
    is_flushed: bool,
}

/// Keeps a connection until nobody wants one. The first one that opens, or does not, is told.
///
/// Once it was logged in, the client tries again whatever ends a connection: a refused login after [`Way::login_retry`], everything else after the backoff.
pub(super) async fn run(shared: Arc<Shared>, way: Way, opened: oneshot::Sender<Result<(), Error>>) {
    let clock = Clock(Instant::now());
    let mut opened = Some(opened);
    let mut backoff = BACKOFF;
    let mut was_refused = false;
    let why = loop {
        let lost = match begin(clock, &way).await {
            Err(error) => error,
            Ok((amqp, mut wire)) => {
                shared.with(|state| state.begin(amqp));
                (backoff, was_refused) = (BACKOFF, false);
                if let Some(opened) = opened.take() {
                    // Who does not wait any more drops the line, too.
                    let _ = opened.send(Ok(()));
                }
                carry(&shared, clock, &mut wire).await
            }
        };
        shared.with(super::state::State::lost);
        if let Some(opened) = opened.take() {
            let _ = opened.send(Err(lost.clone()));
            break lost;
        }
        if shared.lock().is_closing {
            break Error::Closed;
        }
        let wait = match (&lost, way.login_retry) {
            (Error::Invalid(_), _) | (Error::LoginRefused(_), None) => {
                tracing::error!(why = %lost, "the client ends: no connection is tried again");
                break lost;
            }
            (Error::LoginRefused(_), Some(every)) => {
                let again_in_ms = every.as_millis() as u64;
                match std::mem::replace(&mut was_refused, true) {
                    false => {
                        tracing::error!(why = %lost, again_in_ms, "the login is refused now; it is tried again")
                    }
                    true => tracing::warn!(why = %lost, again_in_ms, "the login is still refused"),
                }
                every
            }
            _ => {
                let wait = backoff;
                backoff = (backoff * 2).min(BACKOFF_MAX);
                tracing::warn!(why = %lost, again_in_ms = wait.as_millis() as u64, "the connection is lost");
                wait
            }
        };
        if pause(&shared, wait).await {
            break Error::Closed;
        }
    };
    shared.with(|state| state.end(why));
    shared.room.close();
    shared.is_over.send_replace(true);
}

/// Waits; true: nobody wants another connection meanwhile.
async fn pause(shared: &Shared, backoff: Duration) -> bool {
    let mut chance = [0; 1];
    // Without chance all clients come back at the same moment, which is no worse than slow.
    let _ = getrandom::fill(&mut chance);
    let until = Instant::now() + backoff / 2 + backoff / 2 * u32::from(chance[0]) / 256;
    loop {
        tokio::select! {
            () = sleep_until(until) => return false,
            () = shared.wake.notified() => if shared.lock().is_closing { return true },
        }
    }
}

/// A connection that is open, and finds what was declared.
async fn begin(clock: Clock, way: &Way) -> Result<(Client, Wire), Error> {
    let socket = way.connect().await?;
    let (reader, writer) = split(socket);
    let input = BytesMut::with_capacity(PIECE);
    let mut wire = Wire { reader, writer, input, output: Vec::new(), written: 0, is_flushed: true };
    let mut amqp = Client::new(clock.now(), way.options.clone());
    while !amqp.is_open() {
        wire.say(&mut amqp).await?;
        let deadline = clock.at(amqp.next_deadline());
        wire.input.reserve(PIECE);
        match timeout_at(deadline, wire.reader.read_buf(&mut wire.input)).await {
            Ok(Ok(len)) if len > 0 => amqp.receive(clock.now(), &mut wire.input),
            Ok(_) => amqp.hung_up(),
            Err(_) => {}
        }
        amqp.tick(clock.now());
        for event in amqp.take_events() {
            if let Event::Closed(ending) = event {
                return Err(unopened(&ending));
            }
        }
    }
    way.topology.restore().await?;
    Ok((amqp, wire))
}

impl Wire {
    /// Has all that the connection says in the socket. It is little: the login.
    async fn say(&mut self, amqp: &mut Client) -> Result<(), Error> {
        let output = std::mem::take(amqp.output());
        let said = async {
            self.writer.write_all(&output).await?;
            self.writer.flush().await
        };
        said.await.map_err(|error: std::io::Error| Error::ConnectionLost(error.to_string()))
    }
}

/// Carries bytes until the connection is over. Answers why it is.
async fn carry(shared: &Shared, clock: Clock, wire: &mut Wire) -> Error {
    loop {
        if wire.written == wire.output.len() {
            wire.output.clear();
            wire.written = 0;
        }
        let deadline = shared.lock().take_output(clock.now(), &mut wire.output);
        let Wire { reader, writer, input, output, written, is_flushed } = wire;
        let rest = &output[*written..];
        input.reserve(PIECE);
        tokio::select! {
            read = reader.read_buf(input) => shared.with(|state| match read {
                Ok(len) if len > 0 => state.receive(clock.now(), input),
                _ => state.hung_up(),
            }),
            given = give(writer, rest), if !rest.is_empty() || !*is_flushed => match given {
                Ok(0) => *is_flushed = true,
                Ok(len) => {
                    *is_flushed = false;
                    *written += len;
                    shared.lock().written(clock.now());
                }
                Err(_) => shared.lock().hung_up(),
            },
            () = shared.wake.notified() => continue,
            () = sleep_until(clock.at(deadline)) => {}
        }
        let ending = shared.with(|state| {
            state.tick(clock.now());
            state.hear_all()
        });
        if let Some(ending) = ending {
            finish(shared, wire).await;
            return lost(&ending);
        }
    }
}

/// Gives the socket a part of these bytes; of none, has it pass on all that it was given. Answers how many it took.
async fn give(writer: &mut (impl AsyncWrite + Unpin), rest: &[u8]) -> std::io::Result<usize> {
    match rest {
        [] => writer.flush().await.map(|()| 0),
        rest => match writer.write(rest).await? {
            0 => Err(std::io::ErrorKind::WriteZero.into()),
            len => Ok(len),
        },
    }
}

/// Says the last word, for as long as the peer takes it.
async fn finish(shared: &Shared, wire: &mut Wire) {
    let mut last = Vec::new();
    shared.lock().take_output(Time(0), &mut last);
    let mut bytes = wire.output.split_off(wire.written);
    bytes.append(&mut last);
    let said = async {
        // There is nobody to whom it would matter that this fails.
        let _ = wire.writer.write_all(&bytes).await;
        let _ = wire.writer.shutdown().await;
    };
    tokio::select! {
        () = said => {}
        () = sleep(Duration::from_secs(1)) => {}
    }
}

/// Why a connection was not opened.
fn unopened(ending: &Ending) -> Error {
    if ending.is_refusal() { Error::LoginRefused(ending.to_string()) } else { lost(ending) }
}

/// Why a connection that was open is over. Only the next login tells whether the server still lets this user in, so no ending is a refusal here.
fn lost(ending: &Ending) -> Error {
    match ending {
        Ending::Asked => Error::Closed,
        ending => Error::ConnectionLost(ending.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use overtake_amqp::client::ClientOptions;
    use tokio::io::{BufWriter, duplex};
    use tokio::sync::{Notify, Semaphore, watch};

    use super::super::state::State;
    use super::*;

    /// As TLS does when its socket is full.
    #[tokio::test]
    async fn what_the_socket_keeps_back_goes_although_nothing_follows() {
        let (near, mut far) = duplex(1_000);
        let (reader, writer) = split(Box::new(BufWriter::new(near)) as Box<dyn Socket>);
        let mut wire =
            Wire { reader, writer, input: BytesMut::new(), output: Vec::new(), written: 0, is_flushed: true };
        let clock = Clock(Instant::now());
        let shared = Shared {
            state: std::sync::Mutex::new(State::new(None)),
            wake: Notify::new(),
            room: Semaphore::new(1),
            is_over: watch::Sender::new(false),
        };
        shared.with(|state| state.begin(Client::new(clock.now(), ClientOptions::default())));
        let mut header = [0; 8];
        tokio::select! {
            error = carry(&shared, clock, &mut wire) => panic!("{error}"),
            read = far.read_exact(&mut header) => assert_eq!(read.unwrap(), 8),
        }
        assert_eq!(&header, b"AMQP\0\0\x09\x01");
    }
}
