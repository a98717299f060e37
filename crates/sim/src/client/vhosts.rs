//! In some worlds there are virtual hosts: clients ask in one or another, and those who come first, and administrators, make and
//! delete them. Drawn from a stream of its own, so that worlds without them are what they were.

use std::sync::Arc;

use overtake_engine::core::Request;
use overtake_lane::{Asker, Command, VHOST_TEXT_LEN_MAX, VhostId, VhostSettings};

use super::Role;
use crate::rng::Rng;
use crate::world::World;

impl World {
    /// Whoever acts is somewhere, mostly where it was before; and goes elsewhere when there is no such place any more.
    pub(super) fn goes_somewhere(&mut self, at: usize) {
        if self.plan.vhosts > 0 {
            let rng = &mut self.chance.vhosts;
            let is_gone = !self.audit.vhosts.contains_key(&self.clients[at].vhost);
            if rng.once_in(if is_gone { 2 } else { 30 }) {
                let all: Vec<VhostId> = self.audit.vhosts.keys().copied().collect();
                self.clients[at].vhost = if all.is_empty() { VhostId::DEFAULT } else { rng.one_of(&all) };
            }
        }
        self.here = self.clients[at].vhost;
    }

    /// The request as it is asked where whoever acts is.
    pub(super) fn said_here(&self, request: Request) -> Request {
        match request {
            request @ Request::By { .. } => request,
            request if self.here == VhostId::DEFAULT => request,
            request => Request::By { asker: Asker::in_vhost(self.here), request: Box::new(request) },
        }
    }

    /// False: not now, or never in this world.
    pub(super) fn makes_vhosts(&mut self, at: usize) -> bool {
        let may = at == 0 || self.clients[at].role == Role::Admin;
        if !may || self.plan.vhosts == 0 || !self.chance.vhosts.once_in(6) {
            return false;
        }
        let rng = &mut self.chance.vhosts;
        let name: Arc<str> = match rng.below(self.plan.vhosts + 1) {
            0 if rng.once_in(4) => "/".into(),
            n => format!("v{n}").into(),
        };
        let request = match rng.below(20) {
            0..=2 => Request::Do(Command::DeleteVhost { name }),
            3 => Request::Vhosts,
            4 => Request::Vhost(name),
            _ => Request::Do(Command::DeclareVhost {
                name,
                settings: Box::new(settings(rng, self.plan.queues)),
            }),
        };
        self.asks(at, request);
        true
    }
}

/// Mostly what it is by default, and sometimes too much to be said.
fn settings(rng: &mut Rng, queues: u64) -> VhostSettings {
    let len = match rng.below(20) {
        0 => VHOST_TEXT_LEN_MAX as u64 + 1,
        1 => VHOST_TEXT_LEN_MAX as u64,
        2..=6 => rng.within(1, 300),
        _ => 0,
    };
    let max_queues = rng.once_in(6).then(|| rng.below(queues + 1));
    let max_connections = rng.once_in(6).then(|| rng.below(3));
    let tags = if rng.once_in(10) { vec!["prod".to_owned()] } else { Vec::new() };
    let tags = tags.into_iter().filter(|_| len < 1_000).collect();
    VhostSettings { description: "d".repeat(len as usize), tags, max_queues, max_connections }
}
