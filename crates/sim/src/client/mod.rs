//! Clients: little machines that publish, take, settle, forget, resend and misbehave.

pub(crate) mod admin;
mod connected;
mod publisher;
pub(crate) mod router;
mod taker;
mod vhosts;
mod wirer;

use std::sync::Arc;

use overtake_engine::core::{Answer, Request};
use overtake_engine::{NewMessage, Refused};
use overtake_lane::{
    Binding, Command, ConsumerId, Destination, ExchangeKind, ExchangeSettings, HeaderValue, Receipt,
    SessionId, Settings, VhostId,
};

use crate::book::asked_by;
use crate::draw;
use crate::endpoint;
use crate::plan::Plan;
use crate::rng::Rng;
use crate::world::{Event, World};

/// What a client is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Publisher,
    Puller,
    Consumer,
    Admin,
}

/// How a client settles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manners {
    /// Mostly acknowledges.
    Good,
    /// Mostly fails.
    Nacks,
    /// Settles late or never.
    Slow,
    /// Never settles.
    Dead,
}

/// One client.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    role: Role,
    manners: Manners,
    /// Requests that are not answered.
    open: u32,
    /// Publishes of which it does not know whether they were done.
    doubts: Vec<NewMessage>,
    pub(crate) holds: Vec<Receipt>,
    /// Leases it has settled, or thinks it has lost.
    old: Vec<Receipt>,
    /// The consumer it is, when it stays.
    pub(crate) consumer: Option<ConsumerId>,
    /// Who it is, once it is connected.
    pub(crate) session: Option<SessionId>,
    /// Where it asks.
    vhost: VhostId,
    /// The lease it waits for.
    waits: Option<(u64, ConsumerId)>,
}

impl Client {
    pub(crate) fn all(plan: &Plan, rng: &mut Rng) -> Vec<Self> {
        let mut client = |role| Self {
            role,
            manners: rng.one_of(&[
                Manners::Good,
                Manners::Good,
                Manners::Good,
                Manners::Nacks,
                Manners::Slow,
                Manners::Dead,
            ]),
            open: 0,
            doubts: Vec::new(),
            holds: Vec::new(),
            old: Vec::new(),
            consumer: None,
            session: None,
            vhost: VhostId::DEFAULT,
            waits: None,
        };
        let mut all = Vec::new();
        for (role, count) in [
            (Role::Publisher, plan.publishers),
            (Role::Puller, plan.pullers),
            (Role::Consumer, plan.consumers),
            (Role::Admin, plan.admins),
        ] {
            all.extend((0..count).map(|_| client(role)));
        }
        all
    }

    // ---- what it hears ----

    pub(crate) fn answered(&mut self, ticket: u64, request: Request, result: Result<Answer, Refused>) {
        self.no_longer_waits(ticket);
        let request = if let Request::By { request, .. } = request { *request } else { request };
        match (request, result) {
            (Request::Get { .. }, Ok(Answer::Got(Some(got)))) => self.holds.push(got.message.receipt),
            (Request::Lease { .. }, Ok(Answer::Leased(messages))) => {
                self.holds.extend(messages.iter().map(|message| message.receipt));
            }
            (Request::Consume { .. }, Err(_)) => self.consumer = None,
            _ => {}
        }
    }

    /// The answer will never come.
    pub(crate) fn left_in_doubt(&mut self, ticket: u64, request: &Request) {
        self.no_longer_waits(ticket);
        match asked_by(request).1 {
            Request::Publish { messages, settlements } if settlements.is_empty() => {
                self.doubts.extend(messages.clone())
            }
            Request::PublishOne(message) => self.doubts.push((**message).clone()),
            Request::Do(Command::Settle { receipts, .. }) => self.old.extend(receipts),
            Request::Do(Command::Finish { receipt, .. }) => self.old.push(*receipt),
            _ => {}
        }
    }

    /// Nobody listens.
    pub(crate) fn refused_connection(&mut self, ticket: u64, request: &Request) {
        self.open += 1;
        self.left_in_doubt(ticket, request);
    }

    /// Its connection is gone, and with it what was pushed to it.
    pub(crate) fn disconnected(&mut self) {
        if self.consumer.take().is_some() {
            self.old.append(&mut self.holds);
        }
        self.old.truncate(20);
    }

    /// What it held is another's.
    fn forgets(&mut self) {
        self.old.append(&mut self.holds);
        self.old.truncate(20);
    }

    fn no_longer_waits(&mut self, ticket: u64) {
        self.open = self.open.saturating_sub(1);
        if self.waits.is_some_and(|(waited, _)| waited == ticket) {
            self.waits = None;
        }
    }
}

impl World {
    // ---- what it does ----

    /// A client does something, and will again.
    pub(crate) fn act(&mut self, at: usize) {
        if self.is_calm {
            return;
        }
        self.acts += 1;
        let after = self.chance.schedule.heavy(self.plan.pace_us);
        self.at(after, Event::Act(at));
        self.goes_somewhere(at);
        if self.makes_vhosts(at) {
            return;
        }
        if self.makes_queue(at)
            || self.makes_forwarded(at)
            || self.wires(at)
            || self.remembers(at)
            || self.rules(at)
            || self.sets_routes(at)
            || self.wants_back(at)
            || self.ends_late(at)
            || self.connected(at)
        {
            return;
        }
        match self.clients[at].role {
            Role::Publisher => self.publisher(at),
            Role::Puller => self.puller(at),
            Role::Consumer => self.consumer(at),
            Role::Admin => self.admin(at),
        }
    }

    fn asks(&mut self, at: usize, request: Request) -> u64 {
        self.clients[at].open += 1;
        let request = self.said_here(request);
        self.ask(at, request)
    }

    fn rng(&mut self) -> &mut Rng {
        &mut self.chance.workload
    }

    /// Whoever misses a queue makes it.
    fn makes_queue(&mut self, at: usize) -> bool {
        let known = |world: &Self, name: &Arc<str>| world.settings_of(name).is_some();
        let missing: Vec<Arc<str>> =
            self.names.queues.iter().filter(|name| !known(self, name)).cloned().collect();
        if missing.is_empty() || self.life.is_none() || !self.rng().once_in(2) {
            return false;
        }
        let name = self.rng().one_of(&missing);
        let names = &self.names;
        let mut settings = draw::settings(&mut self.chance.workload, &names.queues, &names.exchanges);
        if self.plan.is_deadly {
            draw::dying(&mut self.chance.deaths, &mut settings, &names.exchanges);
        }
        if self.plan.is_deep {
            draw::without_limits(&mut settings);
        }
        if self.plan.has_keys {
            draw::keyed(&mut self.chance.keys, &mut settings);
        }
        if self.plan.has_work {
            let (queues, is_deep) = (&self.names.queues, self.plan.is_deep);
            draw::working(&mut self.chance.work, &mut settings, &name, queues, is_deep);
        }
        if self.plan.has_policies {
            draw::numbered(&mut self.chance.policies, &mut settings);
        }
        self.asks(at, Request::Do(Command::declare(Arc::clone(&name), Box::new(settings))));
        let exchanges = self.names.exchanges.clone();
        for exchange in exchanges {
            let settings = Box::new(ExchangeSettings::new(self.kind_of(&exchange)));
            self.asks(at, Request::Do(Command::DeclareExchange { name: Arc::clone(&exchange), settings }));
            self.binds(at, exchange, Arc::clone(&name));
        }
        true
    }

    /// The same of a queue that has an endpoint.
    fn makes_forwarded(&mut self, at: usize) -> bool {
        if self.life.is_none() || self.here != VhostId::DEFAULT {
            return false;
        }
        let missing = self.endpoints.queues().find(|name| self.settings_of(name).is_none()).cloned();
        let Some(name) = missing.filter(|_| self.chance.endpoints.once_in(2)) else { return false };
        let (rng, names) = (&mut self.chance.endpoints, &self.names);
        let settings = endpoint::queue_settings(rng, &self.plan, &name, &names.queues, &names.exchanges);
        self.asks(at, Request::Do(Command::declare(name, Box::new(settings))));
        true
    }

    fn kind_of(&self, exchange: &str) -> ExchangeKind {
        let kinds = [ExchangeKind::Topic, ExchangeKind::Fanout, ExchangeKind::Direct, ExchangeKind::Headers];
        kinds[exchange.bytes().map(usize::from).sum::<usize>() % kinds.len()]
    }

    fn binds(&mut self, at: usize, exchange: Arc<str>, queue: Arc<str>) {
        let routing_key = draw::pattern(self.rng());
        let headers = vec![("n".to_owned(), HeaderValue::Int(self.rng().below(3) as i64))];
        let binding = Binding { headers, ..Binding::new(&exchange, Destination::Queue(queue), &routing_key) };
        self.asks(at, Request::Do(Command::Bind(Box::new(binding))));
    }

    pub(crate) fn settings_of(&self, name: &str) -> Option<&Settings> {
        let (id, _) = self.audit.named(self.here, name)?;
        self.book.settings.get(&id)
    }

    /// What a queue was declared with.
    fn own_settings_of(&self, name: &str) -> Option<&Settings> {
        let (id, _) = self.audit.named(self.here, name)?;
        self.book.own.get(&id).map(|own| &own.settings)
    }

    fn some_queue(&mut self) -> Arc<str> {
        if self.plan.is_meddled
            && let Some(queue) = self.some_forwarded(5)
        {
            return queue;
        }
        if let Some(endpoint) = self.some_endpoint() {
            return endpoint;
        }
        let names = &self.names.queues;
        self.chance.workload.one_of(names)
    }
}
