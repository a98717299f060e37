//! One connection to a broker that is made again when it is lost.
//!
//! ```text
//!  publish, settle ─▶ State ─▶ output ─▶ io ─▶ socket
//!  confirms, inboxes ◀─ State ◀─ input ◀─┘
//! ```
//!
//! What is asked is written into the output of the connection at once, under a lock that is held for no longer; the task in [`io`] carries
//! bytes. Invariant: what was published and is not confirmed is in [`flights`], whatever becomes of connections, until it is told.

mod flights;
mod inbox;
mod io;
mod seats;
mod state;
mod way;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, Semaphore, oneshot, watch};

pub(crate) use self::flights::{Flight, Numbers};
pub(crate) use self::inbox::{Inbox, Incoming};
pub(crate) use self::seats::{SeatId, Wanted};
pub(crate) use self::state::REPLY_TO;
use self::state::State;
pub(crate) use self::way::Way;
use crate::error::Error;
use crate::received::Received;

/// How a message is settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// It is done.
    Ack,
    /// It goes back to its place.
    Nack,
    /// It never will be: it is dead-lettered.
    Reject,
}

/// What becomes of a publish.
pub(crate) type Told = oneshot::Receiver<Result<(), Error>>;

/// A connection, shared by all who use it. When nobody does, it is closed.
#[derive(Clone)]
pub(crate) struct Line(Arc<Owner>);

struct Owner(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    /// There is something to be written, or the end is near.
    wake: Notify,
    /// Publishes that may still be on their way.
    room: Semaphore,
    /// Whether the connection is over for good.
    is_over: watch::Sender<bool>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Nobody leaves the state half-changed: what panics there is a bug, and has changed nothing before.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something with the state; what it has to say goes out, and room it made is given.
    fn with<R>(&self, does: impl FnOnce(&mut State) -> R) -> R {
        let mut state = self.lock();
        let was_quiet = state.is_quiet();
        let result = does(&mut state);
        let has_news = was_quiet && !state.is_quiet();
        let made = state.take_room();
        drop(state);
        if made > 0 {
            self.room.add_permits(made);
        }
        if has_news {
            self.wake.notify_one();
        }
        result
    }
}

impl Line {
    /// Connects. The first time it must succeed; from then on it is made again whenever it is lost.
    ///
    /// # Errors
    /// Why there is no connection.
    pub(crate) async fn open(way: Way, room_max: usize, numbers: Option<Numbers>) -> Result<Self, Error> {
        let shared = Arc::new(Shared {
            state: Mutex::new(State::new(numbers)),
            wake: Notify::new(),
            room: Semaphore::new(room_max),
            is_over: watch::Sender::new(false),
        });
        let (opened, is_open) = oneshot::channel();
        tokio::spawn(io::run(Arc::clone(&shared), way, opened));
        match is_open.await {
            Ok(result) => result.map(|()| Self(Arc::new(Owner(shared)))),
            Err(_) => Err(Error::Closed),
        }
    }

    /// Publishes. Waits for room only.
    pub(crate) async fn send(
        &self,
        flight: impl FnOnce(oneshot::Sender<Result<(), Error>>) -> Flight,
    ) -> Told {
        let shared = &self.0.0;
        // It is given back when the message is confirmed. Closed: what is sent hears why.
        if let Ok(permit) = shared.room.acquire().await {
            permit.forget();
        }
        let (told, hears) = oneshot::channel();
        let flight = flight(told);
        shared.with(|state| state.publish(flight));
        hears
    }

    /// Consumes. Messages come into the inbox.
    ///
    /// # Errors
    /// The broker refuses; or the line is over.
    pub(crate) async fn sit_down(&self, wanted: Wanted) -> Result<(SeatId, Arc<Inbox>), Error> {
        let (started, has_started) = oneshot::channel();
        let (seat, inbox) = self.0.0.with(|state| state.sit_down(wanted, started))?;
        let abandoned = Abandoned { line: self, seat: Some(seat) };
        has_started.await.unwrap_or(Err(Error::Closed))?;
        abandoned.keep();
        Ok((seat, inbox))
    }

    /// No more messages for this seat; what it was given may still be settled.
    pub(crate) fn cancel(&self, seat: SeatId) {
        self.0.0.with(|state| state.cancel(seat));
    }

    /// Nothing of this seat will be settled any more.
    pub(crate) fn stand_up(&self, seat: SeatId) {
        self.0.0.with(|state| state.stand_up(seat));
    }

    /// Settles what came over the connection of that number.
    ///
    /// # Errors
    /// [`Error::LeaseOver`]: that connection is gone, or its channel.
    pub(crate) fn settle(&self, seat: SeatId, life: u64, tag: u64, how: How) -> Result<(), Error> {
        self.0.0.with(|state| state.settle(seat, life, tag, how))
    }

    /// Whoever asks under this correlation id hears the answer.
    ///
    /// # Errors
    /// The line is over.
    pub(crate) fn expect_reply(&self, correlation_id: &str) -> Result<oneshot::Receiver<Received>, Error> {
        let (answer, hears) = oneshot::channel();
        self.0.0.with(|state| state.expect_reply(correlation_id, answer)).map(|()| hears)
    }

    /// Nobody waits for it any more.
    pub(crate) fn forget_reply(&self, correlation_id: &str) {
        self.0.0.with(|state| state.forget_reply(correlation_id));
    }

    /// Ends it once everything that was published is told, or there is no connection to tell it.
    pub(crate) async fn close(&self) {
        let mut is_over = self.0.0.is_over.subscribe();
        self.0.0.begin_to_close();
        // The sender is in `shared`, which is here.
        let _ = is_over.wait_for(|is_over| *is_over).await;
    }
}

impl Shared {
    fn begin_to_close(&self) {
        self.lock().is_closing = true;
        self.wake.notify_one();
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.0.begin_to_close();
    }
}

/// Whoever gives up waiting for a seat leaves it.
struct Abandoned<'l> {
    line: &'l Line,
    seat: Option<SeatId>,
}

impl Abandoned<'_> {
    fn keep(mut self) {
        self.seat = None;
    }
}

impl Drop for Abandoned<'_> {
    fn drop(&mut self) {
        if let Some(seat) = self.seat {
            self.line.cancel(seat);
            self.line.stand_up(seat);
        }
    }
}
