//! AMQP connections: sockets, time and the session of each conversation.
//!
//! ```text
//!  socket ─▶ Conversation::receive ─▶ take_requests ─▶ Asks      one task each; nothing here waits for one thing alone
//!  socket ◀─ Connection::output  ◀── hear ◀───────── Events
//! ```
//!
//! # Back-pressure
//! Nothing is read while requests wait for room in the engine, or while the client does not take what it asked for; nothing
//! is taken from the session while much waits to be written. So a client that reads slowly is sent no more than its
//! windows, and one that writes fast is slowed by TCP.

use std::cell::RefCell;
use std::future::Future;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::BytesMut;
use overtake_amqp::connection::{self as amqp, Farewell};
use overtake_amqp_session::{Conversation, Options};
use overtake_engine::session::BATCH_MAX;
use overtake_engine::{Ask, Asks, Events, Full, Session, SystemClock};
use overtake_lane::Time;
use overtake_management::{Connections, Question};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::accept::{Accepting, Ended, Place, Protocol, Term, accept};
use crate::budget::{Budget, Holding, PATIENCE};
use crate::descriptors::Descriptors;
use crate::door::{Door, Doors};
use crate::output::{self, Output, UNWRITTEN_MAX};
use crate::seen::Seen;
use crate::socket::{Got, Socket};
use crate::tls::{HANDSHAKE, Presented, common_name};

/// How long a client may take to end its side of a connection that is over.
const PARTING: Duration = Duration::from_secs(10);
/// With more waiting to be read nothing is read: a frame is no longer.
const UNREAD_MAX: usize = 256 << 10;
/// So many bytes that are read and cannot be taken yet are kept in room of their own.
const REST_MAX: usize = 4 << 10;

/// Why a connection is refused that holds more than its share of too little memory.
const NO_MEMORY: &str = "the memory for unfinished contents and uncommitted publishes of all connections is used up; \
     finish or commit them sooner, or raise server.connection_memory_bytes";

/// What bounds what connections hold, and for how long.
#[derive(Clone, Debug)]
pub struct Bounds {
    /// The memory that all connections share.
    pub budget: Budget,
    /// How long a client may take no byte although some wait for it; `None`: for ever. One that reads slowly is never cut.
    pub send_timeout: Option<Duration>,
}

/// How AMQP is served.
pub struct Amqp {
    full: watch::Receiver<Option<Full>>,
    tls: Option<Presented>,
    options: amqp::Options,
    connections: Connections,
    doors: Doors,
    bounds: Bounds,
    draining: CancellationToken,
    accepted: AtomicU64,
}

impl Amqp {
    /// Serves AMQP, under TLS if certificates are given. `full` says whether the store takes publishes. Once `draining` is cancelled, each
    /// client is asked to leave when it holds no messages.
    #[must_use]
    pub fn new(
        options: amqp::Options,
        tls: Option<Presented>,
        full: watch::Receiver<Option<Full>>,
        connections: Connections,
        doors: Doors,
        bounds: Bounds,
        draining: CancellationToken,
    ) -> Self {
        Self { full, tls, options, doors, connections, bounds, draining, accepted: AtomicU64::new(0) }
    }

    /// Accepts connections, at most `most` at a time, and no more than there are descriptors for.
    #[must_use]
    pub fn accept(self, listener: TcpListener, most: u32, descriptors: Descriptors, term: Term) -> Accepting {
        Box::pin(accept(listener, self, most, descriptors, term))
    }
}

impl Protocol for Amqp {
    const RESERVE: usize = 0;

    fn serve(
        &self,
        stream: TcpStream,
        peer: SocketAddr,
        _: Place,
        stop: CancellationToken,
    ) -> impl Future<Output = Result<(), Ended>> + Send + use<> {
        let number = self.accepted.fetch_add(1, Ordering::Relaxed);
        let random = RandomState::new();
        let options = Options {
            connection: amqp::Options { number, ..self.options.clone() },
            seed: [random.hash_one(number), random.hash_one(!number)],
            certificate: None,
            name: None,
        };
        let draining = self.draining.clone();
        let engine = Arc::clone(&self.doors.engine);
        let around = Around {
            full: self.full.clone(),
            holding: self.bounds.budget.hold(),
            send_timeout: self.bounds.send_timeout,
        };
        let tls = self.tls.as_ref().map(Presented::now);
        let seen = Seen::enter(&self.connections, &stream, peer, tls.is_some());
        let door = Door::new(self.doors.clone(), peer.ip());
        async move {
            let seen = seen?;
            let (socket, said) = match tls {
                None => (Socket::plain(stream), BytesMut::new()),
                Some(tls) => {
                    let secure = Socket::secure(stream, rustls::ServerConnection::new(tls)?);
                    stop.run_until_cancelled(tokio::time::timeout(HANDSHAKE, secure))
                        .await
                        .ok_or("stopped")???
                }
            };
            let certificate = socket.certificate().and_then(common_name);
            let options = Options { name: Some(seen.name()), ..options.with_certificate(certificate) };
            let session = engine.session();
            let mut wire = Wire::new(socket, said, session, around, options, door, seen);
            wire.run(&draining, &stop).await
        }
    }
}

/// What a connection has in common with others.
struct Around {
    /// Whether the store takes publishes.
    full: watch::Receiver<Option<Full>>,
    /// What it holds of the memory that all share.
    holding: Holding,
    /// How long it may take no byte although some wait for it; `None`: for ever.
    send_timeout: Option<Duration>,
}

/// One connection: its socket, its conversation, its session.
struct Wire {
    socket: Socket,
    conversation: Conversation,
    seen: Seen,
    door: Door,
    asks: Asks,
    events: Events,
    full: watch::Receiver<Option<Full>>,
    /// What it holds of the memory that all connections share.
    holding: Holding,
    /// Read and not taken.
    input: BytesMut,
    /// To be asked, as soon as there is room.
    requests: Vec<Ask>,
    /// Being written.
    output: Output,
    /// It is not read for want of memory, and is refused then.
    crowded_until: Option<Instant>,
    /// The client says no more.
    is_deaf: bool,
    /// The client is to go once it holds nothing.
    is_draining: bool,
    /// When time was last told.
    ticked_at: Time,
    /// When the connection is over whatever is unwritten.
    gone_at: Option<Time>,
}

/// What has happened.
enum Happened {
    Room,
    Heard(Option<Vec<overtake_engine::Event>>),
    Readable(io::Result<()>),
    Writable(io::Result<()>),
    Time,
    Full,
    Asked(Question),
    Rights,
    Memory,
    Stalled,
    Drain,
    Stop,
}

thread_local! {
    /// What connections read into, one after the other: an idle one holds no memory for it, a busy one finds it warm.
    static SPARE: RefCell<BytesMut> = RefCell::default();
}

/// Gives back the room that was read into, and keeps what could not be taken yet: a socket that looked readable and was not, or the first
/// bytes of a frame, must not hold the room for as long as the client is silent.
fn spare(input: &mut BytesMut) {
    if input.len() > REST_MAX || input.capacity() == input.len() {
        return;
    }
    let rest = BytesMut::from(&**input);
    let mut room = std::mem::replace(input, rest);
    room.clear();
    SPARE.set(room);
}

/// Takes the room to read into, with what was kept at its beginning.
fn take_spare(input: &mut BytesMut) {
    if input.len() <= REST_MAX {
        let mut room = SPARE.take();
        room.extend_from_slice(input);
        *input = room;
    }
}

/// What has passed, whatever the wall clock shows: a connection knows no dates, and one that is set is no sign of life and none that
/// is missing.
fn now() -> Time {
    SystemClock.steady().running()
}

/// What is waited for, if anything is.
async fn if_any(future: Option<impl Future<Output = ()>>) {
    match future {
        Some(future) => future.await,
        None => std::future::pending().await,
    }
}

async fn cancelled(token: Option<&CancellationToken>) {
    match token {
        Some(token) => token.cancelled().await,
        None => std::future::pending().await,
    }
}

/// The output of a future that is ready at once.
fn at_once<T>(future: impl Future<Output = T>) -> Option<T> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}

/// The requests that are handed over next.
fn batch(requests: &[Ask]) -> &[Ask] {
    &requests[..requests.len().min(BATCH_MAX)]
}

fn take_batch(requests: &mut Vec<Ask>) -> Vec<Ask> {
    let rest = requests.split_off(batch(requests).len());
    std::mem::replace(requests, rest)
}

impl Wire {
    fn new(
        socket: Socket,
        input: BytesMut,
        session: Session,
        around: Around,
        options: Options,
        door: Door,
        seen: Seen,
    ) -> Self {
        let Session { asks, events } = session;
        Self {
            socket,
            conversation: Conversation::new(now(), options),
            seen,
            door,
            asks,
            events,
            full: around.full,
            holding: around.holding,
            input,
            requests: Vec::new(),
            output: Output::new(around.send_timeout),
            crowded_until: None,
            is_deaf: false,
            is_draining: false,
            ticked_at: Time(0),
            gone_at: None,
        }
    }

    /// Serves it to its end. What the client asked for before it went is done.
    async fn run(&mut self, draining: &CancellationToken, stop: &CancellationToken) -> Result<(), Ended> {
        let mut is_stopping = false;
        self.look_at_room();
        loop {
            self.take_in();
            while let Some(wish) = self.conversation.take_wish() {
                let granted = self.door.grant(&mut self.conversation, wish);
                if stop.run_until_cancelled(granted).await.is_none() {
                    return Ok(());
                }
                if let Some(Session { asks, events }) = self.door.take_session() {
                    (self.asks, self.events) = (asks, events);
                }
                self.take_in();
            }
            self.write()?;
            if self.is_over() {
                if !self.is_deaf {
                    self.part(stop).await?;
                }
                return Ok(());
            }
            let asked = [(!self.is_draining).then_some(draining), (!is_stopping).then_some(stop)];
            let happened = self.next(asked).await;
            self.conversation.connection().lend_room(output::take_spare);
            match happened {
                Happened::Room => {}
                Happened::Heard(Some(events)) => self.conversation.hear(events, || self.asks.next_consumer()),
                Happened::Heard(None) => {
                    // Nothing that is asked now would be done.
                    self.requests.clear();
                    self.input.clear();
                    let why = self.events.unavailable().to_string();
                    self.conversation.connection().force_close(&why);
                    self.write()?;
                    self.is_deaf = true;
                }
                Happened::Readable(ready) => ready.and_then(|()| self.read())?,
                Happened::Writable(ready) => ready?,
                Happened::Time => {
                    self.ticked_at = now();
                    self.conversation.connection().tick(self.ticked_at);
                }
                Happened::Full => self.look_at_room(),
                Happened::Asked(question) => self.seen.answer(question, &mut self.conversation),
                Happened::Rights => {
                    if self.door.look(self.conversation.connection()) {
                        self.conversation.look_at_rights();
                    }
                }
                Happened::Memory => self.look_at_memory(),
                Happened::Stalled => {
                    return Err("the client takes no bytes, although some wait for it".into());
                }
                Happened::Drain => self.is_draining = true,
                Happened::Stop => {
                    is_stopping = true;
                    self.conversation.connection().stop("the broker is being stopped");
                }
            }
        }
    }

    /// Nothing more is said. What the client still says is read, so that it is not cut off while it does: a reset would take
    /// the last words from it, too.
    async fn part(&mut self, stop: &CancellationToken) -> io::Result<()> {
        let farewell = self.conversation.connection().farewell();
        if farewell == Farewell::Nobody {
            return Ok(());
        }
        if farewell == Farewell::Broker {
            self.socket.close().await?;
        }
        let gone = async {
            while self.socket.read(&mut self.input)? == Got::Some {
                self.input.clear();
                self.socket.readable().await?;
            }
            Ok(())
        };
        let patient = tokio::time::timeout(PARTING, stop.run_until_cancelled(gone)).await;
        patient.ok().flatten().unwrap_or(Ok(()))
    }

    /// Takes what was read, and gathers what it asks for.
    fn take_in(&mut self) {
        if !self.input.is_empty() {
            self.conversation.receive(now(), &mut self.input);
        }
        spare(&mut self.input);
        if self.is_draining {
            self.conversation.connection().drain();
        }
        let mut requests = self.conversation.take_requests(|| self.asks.next_consumer());
        if self.requests.is_empty() {
            self.requests = requests;
        } else {
            self.requests.append(&mut requests);
        }
        self.look_at_memory();
        self.door.count(self.conversation.connection());
    }

    fn is_over(&mut self) -> bool {
        if self.is_deaf {
            // What it said last may wait for the answer to what it said before.
            return self.requests.is_empty() && (self.input.is_empty() || !self.conversation.is_waiting());
        }
        if !self.conversation.connection().is_over() || !self.requests.is_empty() {
            return false;
        }
        let patience = PARTING.as_millis().try_into().unwrap_or(u64::MAX);
        let gone_at = *self.gone_at.get_or_insert_with(|| now().after(patience));
        let is_lost = self.conversation.connection().farewell() == Farewell::Nobody || gone_at <= now();
        is_lost || (self.unwritten() == 0 && !self.socket.holds_back())
    }

    fn unwritten(&mut self) -> usize {
        self.output.unwritten() + self.conversation.connection().output().len()
    }

    /// Waits for something to do. What it is asked for is heard once.
    async fn next(&mut self, [draining, stop]: [Option<&CancellationToken>; 2]) -> Happened {
        let (unwritten, holds_back) = (self.unwritten(), self.socket.holds_back());
        // What is asked may have to wait for room until answers are heard.
        let is_held_back = self.is_held_back();
        let may_hear = unwritten < UNWRITTEN_MAX || is_held_back;
        let may_write = (unwritten > 0 || holds_back) && !self.is_deaf && !is_held_back;
        let connection = self.conversation.connection();
        let deadline = connection.next_deadline().or(self.gone_at);
        let wants_bytes = !self.is_deaf
            && connection.wants_bytes()
            && self.requests.is_empty()
            && self.input.len() < UNREAD_MAX
            && unwritten < UNWRITTEN_MAX;
        // Asked for before it is looked whether there is memory, so that nothing is missed.
        let freed = self.crowded_until.map(|_| self.holding.freed());
        if freed.is_some() && self.holding.may_grow() {
            return Happened::Memory;
        }
        let until = deadline.map(|when| Duration::from_millis(when.since(now())));
        if deadline.is_some_and(|when| when <= now()) && self.ticked_at < now() {
            return Happened::Time;
        }
        tokio::select! {
            biased;
            // However much comes and goes, these have their turn.
            () = cancelled(stop) => Happened::Stop,
            () = cancelled(draining) => Happened::Drain,
            Ok(()) = self.full.changed() => Happened::Full,
            question = self.seen.question() => Happened::Asked(question),
            () = self.door.changed() => Happened::Rights,
            room = self.asks.room_for(batch(&self.requests)), if !self.requests.is_empty() => {
                room.ask(take_batch(&mut self.requests));
                Happened::Room
            }
            () = if_any(freed) => Happened::Memory,
            () = if_any(self.crowded_until.map(tokio::time::sleep_until)) => Happened::Memory,
            events = self.events.next(), if may_hear => Happened::Heard(events),
            ready = self.socket.writable(), if may_write => Happened::Writable(ready),
            () = self.output.stalled(), if may_write => Happened::Stalled,
            ready = self.socket.readable(), if wants_bytes => Happened::Readable(ready),
            () = tokio::time::sleep(until.unwrap_or_default()), if until.is_some() => Happened::Time,
        }
    }

    fn read(&mut self) -> io::Result<()> {
        take_spare(&mut self.input);
        let before = self.input.len();
        self.is_deaf = self.socket.read(&mut self.input)? == Got::End;
        self.seen.received(self.input.len() - before);
        Ok(())
    }

    /// Asks for as much as there is room for at once.
    fn hand_over(&mut self) {
        while !self.requests.is_empty() {
            let Some(room) = at_once(self.asks.room_for(batch(&self.requests))) else { return };
            room.ask(take_batch(&mut self.requests));
        }
    }

    /// Whether the output waits for requests: the last words, of the connection or of a channel, come after what was asked before them is on
    /// its way.
    fn is_held_back(&mut self) -> bool {
        !self.requests.is_empty() && self.conversation.connection().has_last_words()
    }

    /// Writes what the socket takes. What was asked before goes first if it can.
    fn write(&mut self) -> io::Result<()> {
        self.hand_over();
        if self.is_deaf || self.is_held_back() {
            return Ok(());
        }
        let Self { output, socket, conversation, seen, .. } = self;
        output.write(now, socket, conversation.connection(), seen)
    }

    /// Counts what the connection holds of what the client sends. Where that is more than its share of too little, it is not read for a while,
    /// and refused if that does not help.
    fn look_at_memory(&mut self) {
        let connection = self.conversation.connection();
        self.holding.set(connection.held_bytes());
        if self.holding.may_grow() {
            self.crowded_until = None;
            return connection.pause(false);
        }
        let until = *self.crowded_until.get_or_insert_with(|| {
            self.holding.count_wait();
            Instant::now() + PATIENCE
        });
        if Instant::now() < until {
            return connection.pause(true);
        }
        self.holding.count_refusal();
        self.crowded_until = None;
        connection.exhaust(NO_MEMORY);
        self.holding.set(0);
    }

    /// Tells the client whether publishes are taken.
    fn look_at_room(&mut self) {
        let reason = self.full.borrow_and_update().as_ref().map(ToString::to_string);
        self.conversation.connection().block(reason.as_deref());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_holds_no_room_for_what_it_may_read_later() {
        for rest in [0, 1, REST_MAX] {
            let kept = vec![b'x'; rest];
            let mut input = BytesMut::with_capacity(64 << 10);
            input.extend_from_slice(&kept);
            spare(&mut input);
            assert_eq!((input.len(), input.capacity()), (rest, rest));
            let held = input.as_ptr();
            spare(&mut input);
            assert_eq!(input.as_ptr(), held, "what is held already is not copied again");
            take_spare(&mut input);
            assert_eq!(input, kept);
            assert!(input.capacity() >= 64 << 10, "it reads into the room of before");
        }
        let mut much = BytesMut::with_capacity(64 << 10);
        much.extend_from_slice(&[b'x'; REST_MAX + 1]);
        spare(&mut much);
        assert_eq!((much.len(), much.capacity()), (REST_MAX + 1, 64 << 10), "nothing is copied");
    }
}
