//! One connection and one session, each told what the other says.

use std::collections::BTreeMap;

use bytes::BytesMut;
use overtake_amqp::ReplyCode;
use overtake_amqp::connection::{
    self as amqp, Answer, Ask, Connection, Credentials, NoVhost, Operation, Refused, Token,
};
use overtake_engine::core::{Answer as Told, Request};
use overtake_engine::{Ask as Asked, Event, Failure};
use overtake_lane::{Command, ConsumerId, Existing, Get, Refusal, Time};

use crate::control::{self, Reply};
use crate::message::{self, Publisher, REPLY_TO, Ways};
use crate::names::Names;
use crate::pending::{Answered, Pending, Publishes};
use crate::{arguments, delivery, differs};

/// The only virtual host.
const VHOST: &str = "/";
/// What clients log in with where nobody was set up.
const GUEST: &str = "guest";
/// What names that belong to the broker begin with.
const RESERVED: &str = "amq.";
/// What the names of the queues of replies begin with.
const REPLIES: &str = "amq.rabbitmq.reply-to.";
/// What a publish is called that nobody waits for by name.
const PUBLISH: u64 = 0;

/// What a conversation is told once.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// What the connection may do.
    pub connection: amqp::Options,
    /// The client may be the user guest.
    pub is_guest_welcome: bool,
    /// Whom the certificate names that the client showed.
    pub certificate: Option<String>,
    /// At random, so that nobody guesses the names made up for it.
    pub seed: [u64; 2],
}

/// A client, from its first byte to its last.
#[derive(Debug)]
pub struct Conversation {
    connection: Connection,
    is_guest_welcome: bool,
    certificate: Option<String>,
    user: String,
    names: Names,
    ways: Ways,
    pending: BTreeMap<u64, Pending>,
    next_token: u64,
    publishes: Publishes,
    /// The queues of channels' replies.
    replies: BTreeMap<u16, (ConsumerId, String)>,
    /// Consumers whose queue is gone, to be told so.
    ended: Vec<ConsumerId>,
    requests: Vec<Asked>,
}

impl Options {
    /// For a client that showed a certificate of this name, or none.
    #[must_use]
    pub fn with_certificate(mut self, name: Option<String>) -> Self {
        self.connection.has_certificate = name.is_some();
        Self { certificate: name, ..self }
    }
}

impl Conversation {
    /// With somebody who has just connected.
    #[must_use]
    pub fn new(now: Time, options: Options) -> Self {
        Self {
            connection: Connection::new(now, options.connection),
            is_guest_welcome: options.is_guest_welcome,
            certificate: options.certificate,
            user: String::new(),
            names: Names::new(options.seed),
            ways: Ways::default(),
            pending: BTreeMap::new(),
            next_token: PUBLISH,
            publishes: Publishes::default(),
            replies: BTreeMap::new(),
            ended: Vec::new(),
            requests: Vec::new(),
        }
    }

    /// The connection: its bytes out, its time, whether it is over.
    pub fn connection(&mut self) -> &mut Connection {
        &mut self.connection
    }

    /// Takes what can be taken of these bytes, as [`Connection::receive`].
    pub fn receive(&mut self, now: Time, bytes: &mut BytesMut) {
        self.connection.receive(now, bytes);
    }

    /// What is to be asked of the session, in order. Numbers for consumers come from there ([`overtake_engine::Asks::next_consumer`]).
    pub fn take_requests(&mut self, mut next_consumer: impl FnMut() -> ConsumerId) -> Vec<Asked> {
        loop {
            let asks = self.connection.take_asks();
            if asks.is_empty() {
                return std::mem::take(&mut self.requests);
            }
            for ask in asks {
                self.ask(ask, &mut next_consumer);
            }
        }
    }

    /// What the session says.
    pub fn hear(&mut self, events: Vec<Event>, mut next_consumer: impl FnMut() -> ConsumerId) {
        for event in events {
            match event {
                Event::Deliver { consumer, message } => {
                    delivery::delivered(&message, |delivery| self.connection.deliver(consumer, delivery));
                }
                Event::Answer { token: PUBLISH, result } => self.published(result),
                Event::Answer { token, result } => self.answered(token, result, &mut next_consumer),
                Event::TimedOut { consumer, .. } => self.connection.timed_out(consumer),
                Event::Ended { consumer } => self.ended.push(consumer),
            }
        }
        self.tell_ended();
    }

    /// Whether an operation of a channel is not answered, so that what the channel said after it waits.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Consumers whose queue is gone. Who deletes it hears that first.
    fn tell_ended(&mut self) {
        if self.pending.values().any(|pending| matches!(pending, Pending::CountOrGone(_))) {
            return;
        }
        for consumer in std::mem::take(&mut self.ended) {
            self.replies.retain(|_, (replies, _)| *replies != consumer);
            self.connection.ended(consumer);
        }
    }

    // ---- the client asks ----

    fn ask(&mut self, ask: Ask, next_consumer: &mut dyn FnMut() -> ConsumerId) {
        match ask {
            Ask::Login(credentials) => self.log_in(credentials),
            Ask::Open { vhost } => {
                self.connection.opened(if vhost == VHOST { Ok(()) } else { Err(NoVhost::Unknown) });
            }
            Ask::Publish { token, channel, publish } => self.publish(token, channel, publish),
            Ask::Settle { receipts, outcome } => self.tell(Command::Settle { receipts, outcome }),
            Ask::Leave { consumer } => {
                self.replies.retain(|_, (replies, _)| *replies != consumer);
                self.tell(Command::Leave { consumer });
            }
            Ask::Took { consumer, messages } => self.tell(Command::Took { consumer, messages }),
            Ask::Share { channel, messages } => {
                let request = Request::SetWindow { number: channel.into(), size: messages.into() };
                self.requests.push(Asked { token: None, request });
            }
            Ask::Do { token, channel, operation } => {
                if let Err(refused) = self.operate(token, channel, operation, next_consumer) {
                    self.connection.answer(token, Err(refused));
                }
            }
        }
    }

    /// Users come with the next version: until then there is the one whom clients expect.
    fn log_in(&mut self, credentials: Credentials) {
        let is_right = match credentials {
            Credentials::Password { user, password } => {
                let is_guest = self.is_guest_welcome && user == GUEST && password == GUEST;
                self.user = user;
                is_guest
            }
            // Whoever signs certificates of clients has said who that is.
            Credentials::Certificate => match self.certificate.take() {
                Some(name) => {
                    self.user = name;
                    true
                }
                None => false,
            },
        };
        self.connection.logged_in(is_right);
    }

    fn publish(&mut self, token: Token, channel: u16, publish: amqp::Publish) {
        let replies = self.replies.get(&channel).map(|(_, queue)| queue.as_str());
        if *publish.exchange == *control::EXCHANGE.as_bytes() {
            let reply = Reply::of(&publish, replies);
            match control::order(&publish) {
                Ok(request) => {
                    self.publishes.order(token, reply);
                    self.requests.push(Asked { token: Some(PUBLISH), request });
                }
                Err(refused) => self.refuse(token, refused),
            }
            return;
        }
        let publisher = Publisher { user: &self.user, replies };
        match message::message(publish, &publisher, &mut self.ways) {
            Ok(message) => {
                self.publishes.message(token);
                let request = Request::PublishOne(message);
                self.requests.push(Asked { token: Some(PUBLISH), request });
            }
            Err(refused) => self.refuse(token, refused),
        }
    }

    fn refuse(&mut self, token: Token, refused: Refused) {
        self.publishes.refused(token, refused);
        self.tell_refused();
    }

    fn tell_refused(&mut self) {
        while let Some((token, refused)) = self.publishes.next_refused() {
            self.connection.published(token, Err(refused));
        }
    }

    fn operate(
        &mut self,
        token: Token,
        channel: u16,
        operation: Operation,
        next_consumer: &mut dyn FnMut() -> ConsumerId,
    ) -> Result<(), Refused> {
        match operation {
            Operation::DeclareExchange(declare) => self.declare_exchange(token, declare)?,
            Operation::DeleteExchange { name, .. } if name.starts_with(RESERVED) => {
                let text = format!("deletion of system exchange '{name}' in vhost '{VHOST}' not allowed");
                return Err(Refused::because(ReplyCode::AccessRefused, text));
            }
            Operation::DeleteExchange { name, if_unused } => {
                let command = Command::DeleteExchange { name: name.into(), if_unused };
                self.request(Pending::DoneOrGone(token), Request::Do(command));
            }
            Operation::DeclareQueue(declare) => self.declare_queue(token, declare)?,
            Operation::DeleteQueue { name, if_unused, if_empty } => {
                let command = Command::DeleteQueue { name: name.into(), if_empty, if_unused };
                self.request(Pending::CountOrGone(token), Request::Do(command));
            }
            Operation::PurgeQueue { name } => {
                let command = Command::Purge { queue: name.into(), status: None };
                self.request(Pending::Count(token), Request::Do(command));
            }
            Operation::Bind(link) => {
                let binding = Box::new(arguments::binding(&link, VHOST)?);
                self.request(Pending::Done(token), Request::Do(Command::Bind(binding)));
            }
            Operation::Unbind(link) => {
                let binding = Box::new(arguments::binding(&link, VHOST)?);
                self.request(Pending::DoneOrGone(token), Request::Do(Command::Unbind(binding)));
            }
            Operation::Consume(consume) => self.consume(token, channel, consume, next_consumer)?,
            Operation::Cancel { consumer } => {
                self.replies.retain(|_, (replies, _)| *replies != consumer);
                self.request(Pending::Done(token), Request::Do(Command::Leave { consumer }));
            }
            Operation::Get { queue, no_ack } => {
                let get = Get { consumer: next_consumer(), queue: queue.into(), no_ack };
                self.request(Pending::Got(token), Request::Get(get));
            }
            Operation::Transact { publishes, settlements } => {
                let replies = self.replies.get(&channel).map(|(_, queue)| queue.as_str());
                let publisher = Publisher { user: &self.user, replies };
                let ways = &mut self.ways;
                let messages = publishes.into_iter().map(|one| message::message(one, &publisher, ways));
                let messages = messages.collect::<Result<Vec<_>, _>>()?;
                let pending = Pending::Committed(token, messages.len());
                self.request(pending, Request::Publish { messages, settlements });
            }
        }
        Ok(())
    }

    fn declare_exchange(&mut self, token: Token, declare: amqp::DeclareExchange) -> Result<(), Refused> {
        if declare.name == control::EXCHANGE {
            if declare.passive {
                self.connection.answer(token, Ok(Answer::Done));
                return Ok(());
            }
            return Err(Refused::because(
                ReplyCode::AccessRefused,
                "operation not permitted on overtake.control",
            ));
        }
        if declare.name.is_empty() {
            return Err(Refusal::ExchangeReserved.into());
        }
        if declare.passive {
            let request = Request::Exchange(declare.name.as_str().into());
            self.request(Pending::Done(token), request);
            return Ok(());
        }
        let settings = Box::new(arguments::exchange(&declare, VHOST)?);
        let command = Command::DeclareExchange { name: declare.name.as_str().into(), settings };
        self.request(Pending::Exchange(token, Box::new(declare)), Request::Do(command));
        Ok(())
    }

    fn declare_queue(&mut self, token: Token, mut declare: amqp::DeclareQueue) -> Result<(), Refused> {
        if declare.name == REPLY_TO {
            self.replies_there(token, declare.name, Ok(()));
            return Ok(());
        }
        if declare.name.starts_with(REPLIES) {
            let command = Command::CheckQueue { name: declare.name.as_str().into() };
            self.request(Pending::RepliesThere(token, declare.name), Request::Do(command));
            return Ok(());
        }
        if declare.passive {
            let command = Command::CheckQueue { name: declare.name.as_str().into() };
            self.request(Pending::QueueThere(token, declare.name), Request::Do(command));
            return Ok(());
        }
        if declare.name.is_empty() {
            declare.name = self.names.make("amq.gen-");
        } else if declare.name.starts_with(RESERVED) {
            let text = format!("queue name '{}' contains reserved prefix '{RESERVED}*'", declare.name);
            return Err(Refused::because(ReplyCode::AccessRefused, text));
        }
        let command = declaration(&declare)?;
        self.request(Pending::Queue(token, Box::new(declare)), command);
        Ok(())
    }

    // ---- consumers ----

    fn consume(
        &mut self,
        token: Token,
        channel: u16,
        consume: amqp::Consume,
        next_consumer: &mut dyn FnMut() -> ConsumerId,
    ) -> Result<(), Refused> {
        if consume.queue == REPLY_TO {
            return self.consume_replies(token, channel, consume);
        }
        if let Some(urgent) = arguments::urgent(&consume, VHOST)? {
            let request = Request::Queue(consume.queue.as_str().into());
            self.request(Pending::Scheme(token, Box::new(consume), urgent), request);
            return Ok(());
        }
        let consumer = next_consumer();
        let request = Request::Consume { consumer, consume: arguments::consume(&consume, &consume.queue) };
        self.request(Pending::Consumer(token, consumer), request);
        Ok(())
    }

    /// Replies to a channel come through a queue of its own, which goes with its consumer.
    fn consume_replies(&mut self, token: Token, channel: u16, consume: amqp::Consume) -> Result<(), Refused> {
        let wrong = |why| Err(Refused::because(ReplyCode::PreconditionFailed, why));
        if !consume.no_ack {
            return wrong("reply consumer cannot acknowledge");
        }
        if self.replies.contains_key(&channel) {
            return wrong("reply consumer already set");
        }
        let name = self.names.make(REPLIES);
        let declare = amqp::DeclareQueue {
            name: name.clone(),
            passive: false,
            durable: false,
            exclusive: true,
            auto_delete: true,
            arguments: overtake_properties::Table::default(),
        };
        // So that the answer finds which channel it is of.
        self.replies.insert(channel, (ConsumerId(u64::MAX), name.clone()));
        self.request(Pending::Replies(token, Box::new(consume), name), declaration(&declare)?);
        Ok(())
    }

    fn start_replies(&mut self, token: Token, consume: &amqp::Consume, queue: &str, consumer: ConsumerId) {
        let channel = self.replies.values_mut().find(|(_, name)| name == queue);
        if let Some(replies) = channel {
            replies.0 = consumer;
        }
        let request = Request::Consume { consumer, consume: arguments::consume(consume, queue) };
        self.request(Pending::Consumer(token, consumer), request);
    }

    // ---- the session answers ----

    fn published(&mut self, result: Result<Told, Failure>) {
        let (token, reply) = match self.publishes.answered() {
            Answered::Message(token) => (token, None),
            Answered::Order(token, reply) => (token, reply),
        };
        match (result.map_err(|failure| self.failed(failure)), reply) {
            (Ok(told), None) => self.connection.published(token, Ok(copies(&told))),
            (Err(refused), None) => self.connection.published(token, Err(refused)),
            (result, Some(reply)) => {
                self.reply(reply, &result);
                self.connection.published(token, Ok(1));
            }
        }
        self.tell_refused();
    }

    /// Answers an order with a message. Nobody waits for that one.
    fn reply(&mut self, reply: Reply, result: &Result<Told, Refused>) {
        let body = match result {
            Ok(told) => serde_json::json!({ "count": copies(told) }),
            Err(Refused::Declined(refusal)) => serde_json::json!({
                "error": refusal.code(),
                "detail": format!("{refusal}; {}", refusal.hint()),
            }),
            Err(Refused::Because { text, .. }) => serde_json::json!({ "error": "failed", "detail": text }),
        };
        let request = Request::PublishOne(reply.message(&body));
        self.requests.push(Asked { token: None, request });
    }

    fn answered(
        &mut self,
        token: u64,
        result: Result<Told, Failure>,
        next_consumer: &mut dyn FnMut() -> ConsumerId,
    ) {
        let Some(pending) = self.pending.remove(&token) else { return };
        let result = result.map_err(|failure| self.failed(failure));
        match pending {
            Pending::Done(token) => self.connection.answer(token, result.map(|_| Answer::Done)),
            Pending::DoneOrGone(token) => {
                let result = result.map(|_| Answer::Done).or_else(|refused| match refused {
                    Refused::Declined(Refusal::NoSuchBinding | Refusal::NoSuchExchange) => Ok(Answer::Done),
                    other => Err(other),
                });
                self.connection.answer(token, result);
            }
            Pending::Count(token) => {
                let result = result.map(|told| Answer::Count(copies(&told)));
                self.connection.answer(token, result);
            }
            Pending::CountOrGone(token) => {
                let result = match result {
                    Err(Refused::Declined(Refusal::NoSuchQueue)) => Ok(Answer::Count(0)),
                    result => result.map(|told| Answer::Count(copies(&told))),
                };
                self.connection.answer(token, result);
            }
            Pending::Committed(token, publishes) => {
                let result = result.map(|told| Answer::Committed { unrouted: unrouted(&told, publishes) });
                self.connection.answer(token, result);
            }
            Pending::Got(token) => self.got(token, result),
            Pending::Consumer(token, consumer) => {
                if result.is_err() {
                    self.replies.retain(|_, (replies, _)| *replies != consumer);
                }
                self.connection.answer(token, result.map(|_| Answer::Consuming(consumer)));
            }
            Pending::Scheme(token, consume, urgent) => {
                let consumer = next_consumer();
                let credit = result.and_then(|told| match told {
                    Told::Queue(view) => urgent.credit(view.settings.scheme, &consume.queue),
                    told => Err(misunderstood(&told)),
                });
                match credit {
                    Ok(credit) => {
                        let mut request = arguments::consume(&consume, &consume.queue);
                        request.urgent = Some(credit);
                        let request = Request::Consume { consumer, consume: request };
                        self.request(Pending::Consumer(token, consumer), request);
                    }
                    Err(refused) => self.connection.answer(token, Err(refused)),
                }
            }
            Pending::Replies(token, consume, name) => match result {
                Ok(_) => self.start_replies(token, &consume, &name, next_consumer()),
                Err(refused) => {
                    self.replies.retain(|_, (_, replies)| *replies != name);
                    self.connection.answer(token, Err(refused));
                }
            },
            declared => self.declared(declared, result),
        }
    }

    /// What came of a declaration.
    fn declared(&mut self, pending: Pending, result: Result<Told, Refused>) {
        match (pending, result) {
            (Pending::Queue(token, declare), Err(Refused::Declined(Refusal::QueueDiffers))) => {
                let request = Request::Queue(declare.name.as_str().into());
                self.request(Pending::OtherQueue(token, declare), request);
            }
            (Pending::Queue(token, declare), result) => self.queue_there(token, declare.name, result),
            (Pending::QueueThere(token, name), result) => self.queue_there(token, name, result),
            (Pending::RepliesThere(token, name), result) => {
                self.replies_there(token, name, result.map(|_| ()));
            }
            (Pending::Exchange(token, declare), Err(Refused::Declined(Refusal::ExchangeDiffers(key)))) => {
                let request = Request::Exchange(declare.name.as_str().into());
                self.request(Pending::OtherExchange(token, declare, key), request);
            }
            (Pending::Exchange(token, _), result) => {
                self.connection.answer(token, result.map(|_| Answer::Done));
            }
            (Pending::OtherQueue(token, declare), result) => {
                let refused = match result {
                    Ok(Told::Queue(is)) => differs::queue(&declare, &is, VHOST),
                    Ok(told) => misunderstood(&told),
                    Err(refused) => refused,
                };
                self.connection.answer(token, Err(refused));
            }
            (Pending::OtherExchange(token, declare, key), result) => {
                let refused = match result {
                    Ok(Told::Exchange(is)) => differs::exchange(key, &declare, &is, VHOST),
                    Ok(told) => misunderstood(&told),
                    Err(refused) => refused,
                };
                self.connection.answer(token, Err(refused));
            }
            (pending, _) => unreachable!("{pending:?} is no declaration"),
        }
    }

    fn queue_there(&mut self, token: Token, name: String, result: Result<Told, Refused>) {
        let answer = result.and_then(|told| match told {
            Told::Declared(queue) => {
                Ok(Answer::Queue { name, messages: queue.ready, consumers: queue.consumers })
            }
            told => Err(misunderstood(&told)),
        });
        self.connection.answer(token, answer);
    }

    /// Whether somebody waits for replies, which whoever answers may ask (RabbitMQ). It is somebody else's queue, mostly.
    fn replies_there(&mut self, token: Token, name: String, result: Result<(), Refused>) {
        let answer = match result {
            Ok(()) | Err(Refused::Declined(Refusal::QueueLocked)) => {
                Ok(Answer::Queue { name, messages: 0, consumers: 1 })
            }
            Err(refused) => Err(refused),
        };
        self.connection.answer(token, answer);
    }

    fn got(&mut self, token: Token, result: Result<Told, Refused>) {
        match result {
            Ok(Told::Got(Some(got))) => delivery::leased(&got.message, |delivery| {
                self.connection.got(token, Ok(Some((*delivery, got.ready))));
            }),
            Ok(Told::Got(None)) => self.connection.got(token, Ok(None)),
            Ok(told) => self.connection.got(token, Err(misunderstood(&told))),
            Err(refused) => self.connection.got(token, Err(refused)),
        }
    }

    // ---- asking ----

    fn request(&mut self, pending: Pending, request: Request) {
        self.next_token += 1;
        self.pending.insert(self.next_token, pending);
        self.requests.push(Asked { token: Some(self.next_token), request });
    }

    /// Something that nobody waits for.
    fn tell(&mut self, command: Command) {
        self.requests.push(Asked { token: None, request: Request::Do(command) });
    }

    /// Why there is no answer. A broker that cannot serve ends the connection.
    fn failed(&mut self, failure: Failure) -> Refused {
        match failure {
            Failure::Refused(refused) => Refused::Declined(refused.refusal),
            Failure::Unavailable(why) => {
                self.connection.force_close(&format!("the broker is not available: {why}"));
                Refused::because(ReplyCode::InternalError, why.to_string())
            }
        }
    }
}

fn declaration(declare: &amqp::DeclareQueue) -> Result<Request, Refused> {
    let queue = arguments::queue(declare, VHOST)?;
    Ok(Request::Do(Command::DeclareQueue {
        name: declare.name.as_str().into(),
        settings: Box::new(queue.settings),
        identity: queue.identity,
        existing: Existing::Same,
    }))
}

/// How many messages an answer speaks of.
fn copies(told: &Told) -> u64 {
    if let Told::Count(count) = told { *count } else { 0 }
}

/// The publishes, counted from 0, of which there is no copy.
fn unrouted(told: &Told, publishes: usize) -> Vec<usize> {
    let Told::Copies(copies) = told else { return Vec::new() };
    let routed: std::collections::BTreeSet<usize> = copies.iter().map(|copy| copy.publish).collect();
    (0..publishes).filter(|publish| !routed.contains(publish)).collect()
}

fn misunderstood(told: &Told) -> Refused {
    Refused::because(ReplyCode::InternalError, format!("the broker answered {told:?}"))
}
