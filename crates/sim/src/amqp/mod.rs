//! Clients that speak AMQP: as bytes, over a network that dribbles and breaks, to the machine that real sockets talk to.
//!
//! ```text
//!  Side ── up ──▶ Conversation ─▶ inbox, as a session      Side: what a client knows and expects
//!       ◀─ down ──     ▲───── heard ◀─ answers, deliveries, in the order an engine promises
//! ```
//!
//! A client checks all that it hears by itself: contents, tags, windows, which answer comes next. What it hears of publishes and
//! acknowledgements is held against what the engine said was durable.

mod acts;
mod channel;
mod hears;
mod hush;
mod letters;
mod queues;
mod settles;
mod side;
mod wire;

use std::collections::{BTreeMap, BTreeSet};

use overtake_engine::core::{Answer, Request};
use overtake_engine::{Event, Failure as Failed, NewMessage, Refused};
use overtake_lane::{Asker, ConsumerId, Receipt, SessionId};

use crate::book::asked_by;
use crate::failure::{Checked, Failure};
use crate::life::Life;
use crate::plan::Plan;
use crate::refold::mark_of;
use crate::rng::Rng;
use crate::world::{self, World};
use wire::Wire;

/// Everybody who speaks AMQP.
#[derive(Debug, Default)]
pub(crate) struct Peers {
    all: Vec<Peer>,
    wires: BTreeMap<SessionId, Wire>,
    /// Whose consumers are whose.
    feeds: BTreeMap<ConsumerId, SessionId>,
    /// Publishes that were answered, by their marks: taken, and refused.
    taken: BTreeSet<u64>,
    refused: BTreeSet<u64>,
    /// What was wrong in what a client heard when nobody could be told.
    broken: Option<Failure>,
    /// Publishes are not taken.
    was_full: bool,
}

/// One client.
#[derive(Clone, Debug)]
struct Peer {
    habits: Habits,
    /// Its connection, while it has one.
    wire: Option<SessionId>,
    /// Publishes of which it does not know whether they were done.
    doubts: Vec<NewMessage>,
}

/// What a client is like.
#[derive(Clone, Copy, Debug)]
struct Habits {
    frame_max: u32,
    /// Seconds between signs of life; 0: none.
    heartbeat_s: u16,
    /// It wants to be told of consumers that end, and whether publishes are taken.
    wants_notice: bool,
    /// Its bytes come in small pieces.
    dribbles: bool,
    /// One in so many times that bytes move the connection breaks; 0: never.
    breaks: u64,
    /// How long bytes are on their way, µs.
    lag_us: u64,
    /// One in so many deliveries is not acknowledged.
    nacks: u64,
    /// It acknowledges now and then.
    is_slow: bool,
}

impl Habits {
    fn draw(rng: &mut Rng) -> Self {
        Self {
            frame_max: rng.one_of(&[0, 4_096, 4_096, 131_072]),
            heartbeat_s: rng.one_of(&[0, 0, 1, 5]),
            wants_notice: !rng.once_in(4),
            dribbles: rng.once_in(3),
            breaks: rng.one_of(&[0, 30, 150, 600]),
            lag_us: rng.one_of(&[5, 50, 500, 3_000]),
            nacks: rng.one_of(&[2, 5, 5, 1_000]),
            is_slow: rng.once_in(4),
        }
    }
}

impl Peers {
    pub(crate) fn draw(plan: &Plan, rng: &mut Rng) -> Self {
        let peer = |_| Peer { habits: Habits::draw(rng), wire: None, doubts: Vec::new() };
        Self { all: (0..plan.peers).map(peer).collect(), ..Self::default() }
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// A consumer that is gone, if one is, is nobody's.
    pub(crate) fn forget(&mut self, consumer: Option<ConsumerId>) {
        if let Some(consumer) = consumer {
            self.feeds.remove(&consumer);
        }
    }

    /// Says what was wrong when nobody could be told.
    pub(crate) fn complain(&mut self) -> Checked {
        self.broken.take().map_or(Ok(()), Err)
    }
}

impl World {
    /// A session that starts a consumer hears what it gets.
    pub(crate) fn learn_consumer(&mut self, life: &Life, request: &Request) {
        if let (Asker { session: Some(session), .. }, Request::Consume { consumer, .. }) = asked_by(request)
            && self.peers.wires.contains_key(&session)
            && life.core.broker().has_consumer(*consumer)
        {
            self.peers.feeds.insert(*consumer, session);
        }
    }

    /// Something for whoever has this consumer.
    pub(crate) fn hear(&mut self, consumer: ConsumerId, event: Event) {
        let Some(session) = self.peers.feeds.get(&consumer).copied() else { return };
        if let Event::Ended { .. } = event {
            self.peers.feeds.remove(&consumer);
        }
        self.tell_session(session, event);
    }

    /// A session hears that a consumer, or a `get`, held something for too long.
    pub(crate) fn times_out(&mut self, consumer: ConsumerId, session: Option<SessionId>, receipt: Receipt) {
        if let Some(session) = self.peers.feeds.get(&consumer).copied().or(session) {
            self.tell_session(session, Event::TimedOut { consumer, receipt });
        }
    }

    /// An answer for a session.
    pub(crate) fn told_session(
        &mut self,
        (session, token): (SessionId, Option<u64>),
        ticket: u64,
        request: Request,
        result: Result<Answer, Refused>,
    ) {
        self.note_told(ticket, &result);
        if let Some(endpoint) = self.endpoints.of(session) {
            return self.tell_endpoint(endpoint, token, result);
        }
        let marks = if result.is_ok() { &mut self.peers.taken } else { &mut self.peers.refused };
        let mark = |message: &NewMessage| mark_of(message.content.content_type());
        match asked_by(&request).1 {
            Request::PublishOne(message) => marks.extend(mark(message)),
            Request::Publish { messages, .. } => marks.extend(messages.iter().filter_map(mark)),
            _ => {}
        }
        if let Some(token) = token {
            let result = result.map_err(Failed::Refused);
            self.tell_session(session, Event::Answer { token, result });
        }
    }

    fn tell_session(&mut self, session: SessionId, event: Event) {
        let Some(wire) = self.peers.wires.get_mut(&session) else { return };
        wire.heard.push(event);
        let after = self.chance.amqp.heavy(20);
        self.wake(session, after);
    }

    /// Something will move on a wire so many µs from now, or before.
    fn wake(&mut self, session: SessionId, after_us: u64) {
        let at = self.now_us + after_us;
        let Some(wire) = self.peers.wires.get_mut(&session) else { return };
        if wire.wakes_at.is_none_or(|planned| planned > at) {
            wire.wakes_at = Some(at);
            self.at(after_us, world::Event::Wire(session));
        }
    }
}
