//! Clients: little machines that publish, take, settle, forget, resend and misbehave.

use std::sync::Arc;

use bytes::Bytes;
use overtake_engine::core::{Answer, Request};
use overtake_engine::{Browse, ConsumeRequest, Content, Filter, LeaseRequest, NewMessage, Select, Target};
use overtake_lane::{
    Binding, BrowseOrder, Command, ConsumerId, ExchangeKind, Given, HeaderValue, Outcome, Priority, Receipt,
    Refusal, Settings, Status, UrgentCredit,
};

use crate::book::Letter;
use crate::draw;
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

    pub(crate) fn answered(&mut self, ticket: u64, request: Request, result: Result<Answer, Refusal>) {
        self.no_longer_waits(ticket);
        match (request, result) {
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
        match request {
            Request::Publish { messages, settlements } if settlements.is_empty() => {
                self.doubts.extend(messages.clone())
            }
            Request::Do(Command::Settle { receipts, .. }) => self.old.extend(receipts),
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
        if self.makes_queue(at) {
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
        let settings = draw::settings(&mut self.chance.workload, &names.queues, &names.exchanges);
        self.asks(
            at,
            Request::Do(Command::DeclareQueue { name: Arc::clone(&name), settings: Box::new(settings) }),
        );
        let exchanges = self.names.exchanges.clone();
        for exchange in exchanges {
            let kind = self.kind_of(&exchange);
            self.asks(at, Request::Do(Command::DeclareExchange { name: Arc::clone(&exchange), kind }));
            self.binds(at, exchange, Arc::clone(&name));
        }
        true
    }

    fn kind_of(&self, exchange: &str) -> ExchangeKind {
        let kinds = [ExchangeKind::Topic, ExchangeKind::Fanout, ExchangeKind::Direct, ExchangeKind::Headers];
        kinds[exchange.bytes().map(usize::from).sum::<usize>() % kinds.len()]
    }

    fn binds(&mut self, at: usize, exchange: Arc<str>, queue: Arc<str>) {
        let routing_key = draw::pattern(self.rng());
        let headers = vec![("n".to_owned(), self.rng().below(3).to_string())];
        let binding = Binding { exchange, queue, routing_key, headers, any: false };
        self.asks(at, Request::Do(Command::Bind(Box::new(binding))));
    }

    pub(crate) fn settings_of(&self, name: &str) -> Option<&Settings> {
        let (id, _) = self.audit.queues.iter().find(|(_, seen)| &*seen.name == name)?;
        self.book.settings.get(id)
    }

    fn some_queue(&mut self) -> Arc<str> {
        let names = &self.names.queues;
        self.chance.workload.one_of(names)
    }

    // ---- publishing ----

    fn publisher(&mut self, at: usize) {
        if self.clients[at].open > 8 {
            return;
        }
        if !self.clients[at].doubts.is_empty() && self.rng().below(3) < 2 {
            let message = self.clients[at].doubts.remove(0);
            let messages = vec![self.stamp(message)];
            self.asks(at, Request::Publish { messages, settlements: Vec::new() });
            return;
        }
        let messages = self.new_messages();
        self.asks(at, Request::Publish { messages, settlements: Vec::new() });
    }

    fn new_messages(&mut self) -> Vec<NewMessage> {
        let exchanges = self.names.exchanges.clone();
        if !exchanges.is_empty() && self.rng().once_in(5) {
            let name = self.rng().one_of(&exchanges);
            let routing_key = draw::routing_key(self.rng()).into();
            let mandatory = self.rng().once_in(2);
            return vec![self.new_message(Target::Exchange { name, routing_key, mandatory })];
        }
        let count = if self.rng().once_in(4) { self.rng().within(2, 6) } else { 1 };
        (0..count)
            .map(|_| {
                let queue = self.some_queue();
                self.new_message(Target::Queue(queue))
            })
            .collect()
    }

    fn new_message(&mut self, to: Target) -> NewMessage {
        let scheme = match &to {
            Target::Queue(name) => self.settings_of(name).map(|settings| settings.scheme).unwrap_or_default(),
            Target::Exchange { .. } => overtake_lane::Scheme::TenLevel,
        };
        let body_max = self.plan.body_max;
        let rng = self.rng();
        let priority = if rng.once_in(40) { draw::wrong_priority(rng) } else { draw::priority(rng, scheme) };
        let id = match rng.below(5) {
            0 => Some(format!("id{}", rng.below(12))),
            1 => Some(format!("u{}", rng.next())),
            _ => None,
        };
        let key = (!rng.once_in(3)).then(|| format!("k{}", rng.below(4)));
        let len = match rng.below(60) {
            0 => 15_000,
            1 => 40_000,
            2..=9 => 0,
            _ => rng.below(body_max),
        };
        let fill = rng.next() as u8;
        let headers = [("n".to_owned(), HeaderValue::Int(rng.below(3) as i64))].into();
        let message = NewMessage {
            to,
            priority,
            id,
            key,
            ttl_ms: if rng.once_in(6) { rng.one_of(&[1, 30, 200, 2_000]) } else { 0 },
            delay_ms: if rng.once_in(6) { rng.one_of(&[1, 10, 100, 1_500]) } else { 0 },
            content: Content { headers, content_type: None, body: Bytes::from(vec![fill; len as usize]) },
        };
        self.stamp(message)
    }

    /// Gives a message a mark of its own.
    fn stamp(&mut self, mut message: NewMessage) -> NewMessage {
        let mark = self.book.letters.len();
        message.content.content_type = Some(format!("m/{mark}"));
        self.book.letters.push(Letter { message: message.clone() });
        message
    }

    // ---- taking ----

    fn puller(&mut self, at: usize) {
        if let Some((_, consumer)) = self.clients[at].waits {
            if self.rng().once_in(12) {
                self.clients[at].waits = None;
                self.asks(at, Request::GiveUp { consumer });
            }
            return;
        }
        if !self.clients[at].holds.is_empty() && self.rng().below(3) < 2 {
            return self.settles(at);
        }
        let consumer = self.new_consumer();
        let queue = self.some_queue();
        let rng = self.rng();
        let lease = LeaseRequest {
            queue,
            max: rng.one_of(&[1, 1, 1, 3, 10, 65_535]),
            wait_ms: rng.one_of(&[0, 0, 20, 300, 5_000]),
            visibility_ms: rng.one_of(&[None, None, Some(30), Some(200), Some(2_000), Some(0)]),
        };
        let ticket = self.asks(at, Request::Lease { consumer, lease });
        if self.asked.contains_key(&ticket) {
            self.clients[at].waits = Some((ticket, consumer));
        }
    }

    fn new_consumer(&mut self) -> ConsumerId {
        self.next_consumer += 1;
        ConsumerId(self.next_consumer)
    }

    fn consumer(&mut self, at: usize) {
        let Some(consumer) = self.clients[at].consumer else { return self.consumes(at) };
        if self.rng().once_in(40) {
            self.clients[at].disconnected();
            self.asks(at, Request::Do(Command::Cancel { consumer }));
            return;
        }
        self.settles(at);
    }

    fn consumes(&mut self, at: usize) {
        let consumer = self.new_consumer();
        let queue = self.some_queue();
        let rng = self.rng();
        let urgent = rng
            .once_in(3)
            .then(|| UrgentCredit { at: Priority(rng.below(10) as i32), extra: rng.within(1, 3) as u32 });
        let consume = ConsumeRequest {
            queue,
            window: rng.one_of(&[None, Some(1), Some(2), Some(5), Some(65_535)]),
            urgent,
            priority: rng.one_of(&[0, 0, 1, -1]),
        };
        if self.life.is_some() {
            self.clients[at].consumer = Some(consumer);
            self.asks(at, Request::Consume { consumer, consume });
        }
    }

    /// Settles some of what it holds, in its manner.
    fn settles(&mut self, at: usize) {
        let manners = self.clients[at].manners;
        let rng = &mut self.chance.workload;
        let idles = match manners {
            Manners::Good | Manners::Nacks => false,
            Manners::Slow => !rng.once_in(5),
            Manners::Dead => !rng.once_in(40),
        };
        let client = &mut self.clients[at];
        if idles {
            // What it forgets comes back to others, sooner or later.
            if rng.once_in(10) && client.consumer.is_none() {
                client.holds.clear();
            }
            return;
        }
        if !client.old.is_empty() && rng.once_in(12) {
            let receipts = vec![rng.one_of(&client.old)];
            self.asks(at, Request::Do(Command::Settle { receipts, outcome: Outcome::Ack }));
            return;
        }
        if client.holds.is_empty() {
            return;
        }
        if rng.once_in(8) {
            let receipts = vec![rng.one_of(&client.holds)];
            let visibility_ms = rng.one_of(&[1, 50, 500]);
            self.asks(at, Request::Do(Command::Extend { receipts, visibility_ms }));
            return;
        }
        let receipts = some_of(rng, &mut client.holds);
        client.old.extend(receipts.iter().take(2));
        let outcome = outcome(rng, manners);
        if rng.once_in(6) {
            let settlements = receipts.into_iter().map(|receipt| (receipt, outcome)).collect();
            let messages = if self.rng().once_in(4) { Vec::new() } else { self.new_messages() };
            self.asks(at, Request::Publish { messages, settlements });
        } else {
            self.asks(at, Request::Do(Command::Settle { receipts, outcome }));
        }
    }

    // ---- administration ----

    fn admin(&mut self, at: usize) {
        let queue = self.some_queue();
        let request = match self.rng().below(16) {
            0..=2 => self.redeclares(&queue),
            3 if self.rng().once_in(6) => {
                let (if_empty, if_unused) = (self.rng().once_in(2), self.rng().once_in(2));
                Some(Request::Do(Command::DeleteQueue { name: queue, if_empty, if_unused }))
            }
            4 | 5 => {
                let select = self.selects(&queue);
                let scheme = self.settings_of(&queue).map(|settings| settings.scheme).unwrap_or_default();
                let priority = draw::priority(self.rng(), scheme);
                Some(Request::Reprioritise { queue, select, priority })
            }
            6 => {
                let select = self.selects(&queue);
                Some(Request::Remove { queue, select })
            }
            7 if self.rng().once_in(3) => {
                let status = self.rng().one_of(&[
                    None,
                    Some(Status::Dead),
                    Some(Status::Delayed),
                    Some(Status::Leased),
                ]);
                Some(Request::Do(Command::Purge { queue, status }))
            }
            8..=10 => {
                let select = self.selects(&queue);
                let promote = self.rng().once_in(3).then_some(Given::Number(3));
                Some(Request::Replay { queue, select, promote })
            }
            11 => {
                let browse = Browse {
                    filter: self.filter(),
                    order: self.rng().one_of(&[BrowseOrder::Dispatch, BrowseOrder::Published]),
                    limit: 50,
                    cursor: None,
                };
                Some(Request::Browse { queue, browse })
            }
            12 => Some(Request::Queues),
            13 => Some(Request::Message { queue, id: format!("id{}", self.rng().below(12)) }),
            14 => self.rebinds(queue),
            _ => None,
        };
        if let Some(request) = request {
            self.asks(at, request);
        }
    }

    fn redeclares(&mut self, queue: &Arc<str>) -> Option<Request> {
        let mut settings = self.settings_of(queue)?.clone();
        let names = &self.names;
        if self.chance.workload.once_in(4) {
            settings = draw::settings(&mut self.chance.workload, &names.queues, &names.exchanges);
        } else {
            draw::vary(&mut self.chance.workload, &mut settings, &names.queues, &names.exchanges);
        }
        Some(Request::Do(Command::DeclareQueue { name: Arc::clone(queue), settings: Box::new(settings) }))
    }

    fn rebinds(&mut self, queue: Arc<str>) -> Option<Request> {
        let exchanges = self.names.exchanges.clone();
        let exchange = exchanges.first()?.clone();
        let rng = self.rng();
        let binding = Box::new(Binding {
            exchange,
            queue,
            routing_key: draw::pattern(rng),
            headers: vec![("n".to_owned(), rng.below(3).to_string())],
            any: false,
        });
        Some(Request::Do(if rng.once_in(2) { Command::Bind(binding) } else { Command::Unbind(binding) }))
    }

    fn selects(&mut self, queue: &str) -> Select {
        let some_seq = self.some_seq(queue);
        match self.rng().below(4) {
            0 => Select::Id(format!("id{}", self.rng().below(12))),
            1 | 2 => some_seq.map_or(Select::Id("seq-1".to_owned()), |seq| Select::Id(format!("seq-{seq}"))),
            _ => Select::Matching(self.filter()),
        }
    }

    fn some_seq(&mut self, queue: &str) -> Option<u64> {
        let seen = self.audit.queues.values().find(|seen| &*seen.name == queue)?;
        let count = seen.messages.len() as u64;
        let at = self.chance.workload.below(count.max(1)) as usize;
        seen.messages.get(at).map(|message| message.seq.0)
    }

    fn filter(&mut self) -> Filter {
        let rng = self.rng();
        Filter {
            status: rng
                .once_in(4)
                .then(|| rng.one_of(&[Status::Ready, Status::Delayed, Status::Leased, Status::Dead])),
            priority: rng.once_in(4).then(|| Given::Number(rng.below(10) as i64)),
            key: rng.once_in(3).then(|| format!("k{}", rng.below(4))),
            headers: if rng.once_in(2) {
                vec![("n".to_owned(), rng.below(3).to_string())]
            } else {
                Vec::new()
            },
        }
    }
}

/// Takes some out, the first, or all.
fn some_of(rng: &mut Rng, holds: &mut Vec<Receipt>) -> Vec<Receipt> {
    let count = match rng.below(3) {
        0 => holds.len(),
        _ => rng.within(1, holds.len() as u64) as usize,
    };
    let from = rng.below((holds.len() - count + 1) as u64) as usize;
    let mut taken: Vec<Receipt> = holds.drain(from..from + count).collect();
    if rng.once_in(15) {
        taken.push(taken[0]);
    }
    taken
}

fn outcome(rng: &mut Rng, manners: Manners) -> Outcome {
    let bad = [
        Outcome::Nack { delay_ms: None },
        Outcome::Nack { delay_ms: Some(0) },
        Outcome::Nack { delay_ms: Some(40) },
        Outcome::Release,
        Outcome::Reject,
    ];
    let mostly_fails = manners == Manners::Nacks;
    if rng.below(10) < if mostly_fails { 8 } else { 3 } { rng.one_of(&bad) } else { Outcome::Ack }
}
