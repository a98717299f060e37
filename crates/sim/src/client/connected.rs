//! Clients that are connected: they get, make queues of their own and queues that end by themselves, and go. Drawn from a
//! stream of their own, so that worlds without sessions are what they were.

use std::sync::Arc;

use overtake_engine::LeaseRequest;
use overtake_engine::core::Request;
use overtake_lane::{Asker, Command, Existing, Get, Identity, LeaseTerm, SessionId};

use crate::draw;
use crate::world::World;

impl World {
    /// Does what only somebody who is connected does, now and then.
    pub(super) fn connected(&mut self, at: usize) -> bool {
        if !self.plan.has_sessions || self.life.is_none() || !self.chance.sessions.once_in(4) {
            return false;
        }
        match self.chance.sessions.below(12) {
            0 => self.ends_session(at),
            1..=3 => self.makes_passing_queue(at),
            4 => {
                let name = self.chance.sessions.one_of(&self.names.queues);
                let request = self.as_connected(at, Request::Do(Command::CheckQueue { name }));
                self.asks(at, request);
            }
            _ if self.plan.has_choosers && self.chance.lanes.once_in(2) => self.pulls_and_holds(at),
            _ => {
                let queue = self.chance.sessions.one_of(&self.names.queues);
                let get = Get { consumer: self.new_consumer(), queue, no_ack: false };
                let request = self.as_connected(at, Request::Get { get, holder: None });
                self.asks(at, request);
            }
        }
        true
    }

    /// The request as somebody's who is connected, in a world that knows sessions.
    pub(super) fn as_connected(&mut self, at: usize, request: Request) -> Request {
        if !self.plan.has_sessions {
            return request;
        }
        let next = self.next_session + 1;
        let session = *self.clients[at].session.get_or_insert(SessionId(next));
        self.next_session = self.next_session.max(session.0);
        Request::By { asker: Asker { session: Some(session), vhost: self.here }, request: Box::new(request) }
    }

    /// Leases from some lanes for as long as it is connected.
    fn pulls_and_holds(&mut self, at: usize) {
        let consumer = self.new_consumer();
        let settings = |name: &Arc<str>| self.settings_of(name).cloned();
        let all: Vec<_> = self.names.queues.iter().map(|name| (name.clone(), settings(name))).collect();
        let rng = &mut self.chance.lanes;
        let (queue, settings) = rng.one_of(&all);
        let (max, wait_ms) = (rng.one_of(&[1, 2, 5, 65_535]), rng.one_of(&[0, 0, 20, 300]));
        let lanes = draw::lanes(rng, &settings.unwrap_or_default());
        let term = LeaseTerm::Session;
        let lease = LeaseRequest { wait_ms, term, lanes, ..LeaseRequest::new(queue, max) };
        let request = self.as_connected(at, Request::Lease { consumer, lease });
        self.asks(at, request);
    }

    fn ends_session(&mut self, at: usize) {
        let client = &mut self.clients[at];
        let Some(session) = client.session.take() else { return };
        client.disconnected();
        client.forgets();
        self.asks(at, Request::Do(Command::EndSession { session }));
    }

    fn makes_passing_queue(&mut self, at: usize) {
        let known = |world: &Self, name: &Arc<str>| world.settings_of(name).is_some();
        let missing = self.names.queues.iter().find(|name| !known(self, name)).cloned();
        let names = &self.names;
        let rng = &mut self.chance.sessions;
        let Some(name) = missing.or_else(|| rng.once_in(6).then(|| rng.one_of(&names.queues))) else {
            return;
        };
        let mut settings = draw::settings(rng, &names.queues, &names.exchanges);
        settings.expires_ms = if rng.once_in(2) { rng.one_of(&[5, 60, 400, 3_000]) } else { 0 };
        let identity = Identity {
            durable: rng.once_in(2),
            exclusive: rng.once_in(2),
            auto_delete: rng.once_in(2),
            arguments: [rng.below(3) as u8].into(),
        };
        if self.plan.is_deep {
            draw::without_limits(&mut settings);
        }
        let (settings, existing) = (Box::new(settings), Existing::Same);
        let declare = Command::DeclareQueue { name, settings, identity, existing };
        let request = self.as_connected(at, Request::Do(declare));
        self.asks(at, request);
    }
}
