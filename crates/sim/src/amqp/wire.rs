//! One connection: bytes on their way in both directions, and the broker's end of it, driven as a socket drives it.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::BytesMut;
use overtake_amqp::FrameWriter;
use overtake_amqp::connection as machine;
use overtake_amqp::method::Method;
use overtake_amqp_session::{Conversation, Everything, Options, Wish};
use overtake_engine::core::Request;
use overtake_engine::{Ask, Event};
use overtake_lane::{Asker, Command, ConsumerId, SessionId};

use super::side::Side;
use super::{Habits, Peer};
use crate::failure::Checked;
use crate::rng::Rng;
use crate::sabotage::Sabotage;
use crate::world::{Who, World};

/// The longest frame the broker takes, bytes.
pub(super) const FRAME_MAX: u32 = 131_072;

/// A connection.
#[derive(Debug)]
pub(super) struct Wire {
    pub(super) session: SessionId,
    /// Whose it is; `None`: the client is gone, and what it said before is still taken.
    pub(super) peer: Option<usize>,
    pub(super) habits: Habits,
    conversation: Conversation,
    pub(super) side: Side,
    /// On its way to the broker.
    pub(super) up: Vec<u8>,
    /// Bytes that have arrived there.
    arrived: u64,
    /// Of those, what was not taken yet.
    input: BytesMut,
    /// Messages that have not arrived, each with where its last byte is.
    letters: VecDeque<(u64, u64)>,
    /// What the session has to tell.
    pub(super) heard: Vec<Event>,
    /// On its way to the client.
    down: Vec<u8>,
    pub(super) wakes_at: Option<u64>,
}

impl Wire {
    /// The client says something.
    pub(super) fn say<'m>(&mut self, channel: u16, method: impl Into<Method<'m>>) {
        let frame_max = self.side.frame_max;
        FrameWriter::new(&mut self.up, frame_max).method(channel, method);
    }

    /// The message that was put on its way last is this one.
    pub(super) fn note_letter(&mut self, mark: u64) {
        self.letters.push_back((self.arrived + self.up.len() as u64, mark));
    }

    /// So much of it arrives, and nothing more ever.
    fn breaks_after(&mut self, len: usize) -> Vec<u64> {
        self.up.truncate(len);
        let last = self.arrived + len as u64;
        self.letters.drain(..).filter(|(end, _)| *end > last).map(|(_, mark)| mark).collect()
    }

    /// Whether everything has been said and taken.
    pub(super) fn is_quiet(&self) -> bool {
        self.up.is_empty() && self.down.is_empty() && self.heard.is_empty() && self.side.is_content()
    }

    fn is_over(&mut self) -> bool {
        if self.peer.is_none() {
            let is_taken = self.input.is_empty() || !self.conversation.is_waiting();
            let takes_no_more = self.conversation.connection().is_over() || (self.up.is_empty() && is_taken);
            return takes_no_more && self.heard.is_empty();
        }
        let connection = self.conversation.connection();
        connection.is_over() && connection.output().is_empty() && self.down.is_empty()
    }
}

/// How many bytes arrive together.
fn piece(rng: &mut Rng, dribbles: bool, len: usize) -> usize {
    let most = match rng.below(if dribbles { 5 } else { 12 }) {
        0 => 1 + rng.below(8),
        1 if dribbles => 1,
        2 => 1 + rng.below(300),
        3 => 1 + rng.below(len as u64 + 1),
        _ => len as u64,
    };
    len.min(most as usize)
}

/// Everybody may do everything.
fn grant(conversation: &mut Conversation, wish: Wish) {
    match wish {
        Wish::LogIn { user, .. } | Wish::Certificate { user } => {
            conversation.logged_in(Some(Arc::new(Everything(user))));
        }
        Wish::Enter { vhost } => conversation.entered(Ok(vhost)),
    }
}

impl World {
    pub(super) fn connect(&mut self, at: usize) {
        let habits = self.peers.all[at].habits;
        self.next_session += 1;
        let session = SessionId(self.next_session);
        let options = Options {
            connection: machine::Options {
                frame_max: FRAME_MAX,
                heartbeat_s: habits.heartbeat_s,
                channel_max: 100,
                number: session.0,
                ..machine::Options::default()
            },
            certificate: None,
            name: None,
            seed: [self.options.seed, session.0],
        };
        self.tally.wires += 1;
        self.tell(|| format!("peer {at} connects as {session:?} with {habits:?}"));
        let wire = Wire {
            session,
            peer: Some(at),
            habits,
            conversation: Conversation::new(self.clock(), options),
            side: Side::new(habits),
            up: overtake_amqp::PROTOCOL_HEADER.to_vec(),
            arrived: 0,
            input: BytesMut::new(),
            letters: VecDeque::new(),
            heard: Vec::new(),
            down: Vec::new(),
            wakes_at: None,
        };
        self.peers.wires.insert(session, wire);
        self.peers.all[at].wire = Some(session);
        self.wake(session, habits.lag_us);
    }

    /// Something moves.
    pub(crate) fn carry(&mut self, session: SessionId) -> Checked {
        let is_time = |wire: &Wire| wire.wakes_at.is_some_and(|at| at <= self.now_us);
        if !self.peers.wires.get(&session).is_some_and(is_time) {
            return Ok(());
        }
        let mut wire = self.peers.wires.remove(&session).expect("it was just seen");
        wire.wakes_at = None;
        self.serve(&mut wire);
        let heard = self.bring(&mut wire);
        if wire.is_over() {
            self.tell(|| format!("{session:?} is over"));
            self.hang_up(wire, 0);
            return heard;
        }
        let breaks = wire.habits.breaks;
        if breaks > 0 && wire.peer.is_some() && !self.is_calm && self.chance.amqp.once_in(breaks) {
            self.cut(wire);
            return heard;
        }
        self.go_on(wire);
        heard
    }

    /// Puts a wire back, which moves on as long as there is something to be moved.
    pub(super) fn go_on(&mut self, mut wire: Wire) {
        let (session, lag_us) = (wire.session, wire.habits.lag_us);
        let connection = wire.conversation.connection();
        let takes = connection.wants_bytes() && !wire.up.is_empty();
        let moves = takes || !wire.down.is_empty() || !wire.heard.is_empty() || wire.is_over();
        let deadline = wire.conversation.connection().next_deadline();
        self.peers.wires.insert(session, wire);
        if moves {
            let after = self.chance.amqp.heavy(lag_us);
            self.wake(session, after);
        }
        if let Some(deadline) = deadline {
            let after = deadline.since(self.clock()).saturating_mul(1_000).saturating_add(1_000);
            self.wake(session, after.min(60_000_000));
        }
    }

    // ---- the broker's end ----

    fn serve(&mut self, wire: &mut Wire) {
        let now = self.clock();
        let full = self.life.as_ref().and_then(|life| life.core.full()).map(|full| full.to_string());
        let connection = wire.conversation.connection();
        connection.block(full.as_deref());
        if connection.next_deadline().is_some_and(|when| when <= now) {
            connection.tick(now);
        }
        if connection.wants_bytes() {
            let len = piece(&mut self.chance.amqp, wire.habits.dribbles, wire.up.len());
            wire.input.extend(wire.up.drain(..len));
            wire.arrived += len as u64;
            while wire.letters.front().is_some_and(|(end, _)| *end <= wire.arrived) {
                wire.letters.pop_front();
            }
        }
        if !wire.heard.is_empty() && (self.is_calm || !self.chance.amqp.once_in(4)) {
            let heard = std::mem::take(&mut wire.heard);
            let next = &mut self.next_consumer;
            wire.conversation.hear(heard, || next_of(next));
        }
        if !wire.input.is_empty() {
            wire.conversation.receive(now, &mut wire.input);
        }
        self.pass_on(wire);
        wire.down.append(wire.conversation.connection().output());
        wire.conversation.connection().written(now);
        self.pass_on(wire);
    }

    /// Asks what the client wants.
    fn pass_on(&mut self, wire: &mut Wire) {
        let next = &mut self.next_consumer;
        let mut asked = wire.conversation.take_requests(|| next_of(next));
        while let Some(wish) = wire.conversation.take_wish() {
            grant(&mut wire.conversation, wish);
            asked.extend(wire.conversation.take_requests(|| next_of(next)));
        }
        for Ask { token, request } in asked {
            let session = wire.session;
            if let Some(made_up) = self.swallowed(&request) {
                wire.heard.extend(token.map(|token| Event::Answer { token, result: Ok(made_up) }));
                continue;
            }
            let request = Request::By { asker: Asker::connected(session), request: Box::new(request) };
            self.ask_as(Who::Session(session, token), request);
        }
    }

    /// A planted bug: what is asked is not, and the answer made up.
    fn swallowed(&mut self, request: &Request) -> Option<overtake_engine::core::Answer> {
        use overtake_engine::core::Answer;
        let made_up = match (self.config.sabotage, request) {
            (Some(Sabotage::SwallowsPublish), Request::PublishOne(_)) => Answer::Count(1),
            (Some(Sabotage::SwallowsAck), Request::Do(Command::Settle { .. })) => Answer::Done,
            _ => return None,
        };
        self.chance.amqp.once_in(5).then_some(made_up)
    }

    // ---- the way down ----

    /// Brings some of what was sent to the client, who listens.
    fn bring(&mut self, wire: &mut Wire) -> Checked {
        if wire.peer.is_none() {
            wire.down.clear();
            return Ok(());
        }
        let len = piece(&mut self.chance.amqp, wire.habits.dribbles, wire.down.len());
        if self.config.sabotage == Some(Sabotage::BendsBytes) && len > 500 && self.chance.amqp.once_in(4) {
            wire.down[len - 20] ^= 4;
        }
        wire.side.unread.extend(wire.down.drain(..len));
        self.listen(wire)
    }

    // ---- the end ----

    /// The connection breaks: at once, or the client is gone and some of what it said arrives.
    fn cut(&mut self, mut wire: Wire) {
        let arrives = self.chance.amqp.below(wire.up.len() as u64 + 1) as usize;
        self.tally.cuts += 1;
        let (session, up, down) = (wire.session, wire.up.len(), wire.down.len());
        self.tell(|| {
            format!("{session:?} breaks: {arrives} of {up} bytes arrive, {down} were on the way down")
        });
        if self.chance.amqp.once_in(2) {
            return self.hang_up(wire, 0);
        }
        for mark in wire.breaks_after(arrives) {
            self.checks.denied.never_sent(mark);
        }
        let doubts = wire.side.doubts();
        self.leave_peer(&mut wire, doubts);
        self.go_on(wire);
        self.wake(session, 1);
    }

    fn leave_peer(&mut self, wire: &mut Wire, doubts: Vec<overtake_engine::NewMessage>) {
        let Some(Peer { wire: its, doubts: all, .. }) = wire.peer.take().map(|at| &mut self.peers.all[at])
        else {
            return;
        };
        *its = None;
        all.extend(doubts);
        all.truncate(60);
    }

    /// The connection is gone, and its session with it. So many of the bytes on the way up arrived.
    fn hang_up(&mut self, mut wire: Wire, arrives: usize) {
        for mark in wire.breaks_after(arrives) {
            self.checks.denied.never_sent(mark);
        }
        let doubts = wire.side.doubts();
        self.leave_peer(&mut wire, doubts);
        let session = wire.session;
        self.peers.feeds.retain(|_, its| *its != session);
        if self.life.is_some() {
            let end = Request::Do(Command::EndSession { session });
            self.ask_as(Who::Session(session, None), end);
        }
    }

    /// The broker is gone: some of what it said last is still heard.
    pub(crate) fn cut_all(&mut self) {
        for (_, mut wire) in std::mem::take(&mut self.peers.wires) {
            let heard = self.chance.amqp.below(wire.down.len() as u64 + 1) as usize;
            wire.down.truncate(heard);
            if wire.peer.is_some() {
                wire.side.unread.extend(wire.down.drain(..));
                if let Err(failure) = self.listen(&mut wire) {
                    self.peers.broken.get_or_insert(failure);
                }
            }
            self.hang_up(wire, 0);
        }
    }
}

fn next_of(next: &mut u64) -> ConsumerId {
    *next += 1;
    ConsumerId(*next)
}
