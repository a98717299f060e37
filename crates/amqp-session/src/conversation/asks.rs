//! What a client asks: each of its wishes as a request.

use std::sync::Arc;

use overtake_amqp::ReplyCode;
use overtake_amqp::connection::{self as amqp, Answer, Ask, Credentials, Operation, Refused, Token};
use overtake_engine::core::Request;
use overtake_engine::{Ask as Asked, NewMessage, Target};
use overtake_lane::{Binding, Command, ConsumerId, Existing, Get, Refusal};

use super::{Conversation, PUBLISH, REPLIES, RESERVED, Wish};
use crate::control::{self, Reply};
use crate::message::{self, Publisher, REPLY_TO};
use crate::pending::{Ordered, Pending, Transaction};
use crate::{arguments, own};

impl Conversation {
    pub(super) fn ask(&mut self, ask: Ask, next_consumer: &mut dyn FnMut() -> ConsumerId) {
        match ask {
            Ask::Login(credentials) => self.log_in(credentials),
            Ask::Open { vhost } => self.wish = Some(Wish::Enter { vhost }),
            Ask::Publish { token, channel, publish } => self.publish(token, channel, publish),
            Ask::Settle { receipts, outcome } => self.tell(Command::Settle { receipts, outcome }),
            Ask::Leave { consumer } => {
                self.replies.retain(|_, (replies, _)| *replies != Some(consumer));
                self.tell(Command::Leave { consumer });
            }
            Ask::Took { consumer, messages } => self.tell(Command::Took { consumer, messages }),
            Ask::Share { channel, messages, joining } => {
                let request = Request::SetWindow { number: channel.into(), size: messages.into(), joining };
                self.requests.push(Asked { token: None, request });
            }
            Ask::Do { token, channel, operation } => {
                if let Err(refused) = self.operate(token, channel, operation, next_consumer) {
                    self.connection.answer(token, Err(refused));
                }
            }
        }
    }

    fn log_in(&mut self, credentials: Credentials) {
        self.wish = match credentials {
            Credentials::Password { user, password } => Some(Wish::LogIn { user, password }),
            // Whoever signs certificates of clients has said who that is.
            Credentials::Certificate => self.certificate.take().map(|user| Wish::Certificate { user }),
        };
        if self.wish.is_none() {
            self.connection.logged_in(false);
        }
    }

    pub(super) fn publish(&mut self, token: Token, channel: u16, publish: amqp::Publish) {
        let replies = self.replies.get(&channel).map(|(_, queue)| queue.as_str());
        if *publish.exchange == *control::EXCHANGE.as_bytes() {
            let reply = Reply::of(&publish, replies);
            let may = reply.as_ref().map_or(Ok(()), |reply| reply.judge(&self.here));
            let order = may.and_then(|()| control::order(&publish));
            match order.and_then(|request| self.here.judge(&request).map(|()| request)) {
                Ok(request) => {
                    self.publishes.order(token);
                    self.order(Ordered::Begun(token, reply), request);
                }
                Err(refused) => self.refuse(token, refused),
            }
            return;
        }
        let publisher = Publisher { here: &self.here, replies };
        let message = match message::message(publish, &publisher, &mut self.ways) {
            Ok(message) => Box::new(message),
            Err(refused) => return self.refuse(token, refused),
        };
        if let Err(refused) = self.judge_publish(&message) {
            return self.refuse(token, refused);
        }
        self.publishes.message(token);
        self.requests.push(Asked { token: Some(PUBLISH), request: Request::PublishOne(message) });
    }

    fn judge_publish(&mut self, message: &NewMessage) -> Result<(), Refused> {
        match &message.to {
            Target::Exchange { name, .. } => self.here.judge_publish(name),
            to @ Target::Queue(_) => self.here.judge(to),
        }
    }

    pub(super) fn refuse(&mut self, token: Token, refused: Refused) {
        self.publishes.refused(token, refused);
        self.tell_published();
    }

    /// Tells the client of the publishes of which it is to be told now.
    pub(super) fn tell_published(&mut self) {
        while let Some((token, told)) = self.publishes.next() {
            self.connection.published(token, told);
        }
    }

    pub(super) fn operate(
        &mut self,
        token: Token,
        channel: u16,
        operation: Operation,
        next_consumer: &mut dyn FnMut() -> ConsumerId,
    ) -> Result<(), Refused> {
        match operation {
            Operation::DeclareExchange(declare) => self.declare_exchange(token, declare)?,
            Operation::DeleteExchange { name, .. } if name.starts_with(RESERVED) => {
                let vhost = &self.here.vhost;
                let text = format!("deletion of system exchange '{name}' in vhost '{vhost}' not allowed");
                return Err(Refused::because(ReplyCode::AccessRefused, text));
            }
            Operation::DeleteExchange { name, if_unused } => {
                own::check_not_own(&name)?;
                let command = Command::DeleteExchange { name: name.into(), if_unused };
                self.request(Pending::DoneOrGone(token), Request::Do(command))?;
            }
            Operation::DeclareQueue(declare) => self.declare_queue(token, declare)?,
            Operation::DeleteQueue { name, if_unused, if_empty } => {
                let command = Command::DeleteQueue { name: name.into(), if_empty, if_unused };
                self.request(Pending::CountOrGone(token), Request::Do(command))?;
            }
            Operation::PurgeQueue { name } => {
                let command = Command::Purge { queue: name.into(), status: None, expect: None };
                self.request(Pending::Count(token), Request::Do(command))?;
            }
            Operation::Bind(link) => {
                let binding = Box::new(self.binding(&link)?);
                self.request(Pending::Done(token), Request::Do(Command::Bind(binding)))?;
            }
            Operation::Unbind(link) => {
                let binding = Box::new(self.binding(&link)?);
                self.request(Pending::DoneOrGone(token), Request::Do(Command::Unbind(binding)))?;
            }
            Operation::Consume(consume) => self.consume(token, channel, consume, next_consumer)?,
            Operation::Cancel { consumer } => {
                self.replies.retain(|_, (replies, _)| *replies != Some(consumer));
                // One whose queue went at the same moment is gone already.
                self.request(Pending::DoneOrGone(token), Request::Do(Command::Leave { consumer }))?;
            }
            Operation::Get { queue, no_ack } => {
                let get = Get { consumer: next_consumer(), queue: queue.into(), no_ack };
                let holder = Some(Arc::new(self.holder()));
                self.request_get(Pending::Got(token), Request::Get { get, holder })?;
            }
            Operation::Transact { publishes, settlements } => {
                let replies = self.replies.get(&channel).map(|(_, queue)| queue.as_str());
                let publisher = Publisher { here: &self.here, replies };
                let ways = &mut self.ways;
                let messages = publishes.into_iter().map(|one| message::message(one, &publisher, ways));
                let messages = messages.collect::<Result<Vec<_>, _>>()?;
                self.transact(token, Box::new(Transaction { messages, settlements, gone: Vec::new() }))?;
            }
        }
        Ok(())
    }

    /// Asks for all of a transaction or nothing of it.
    pub(super) fn transact(&mut self, token: Token, transaction: Box<Transaction>) -> Result<(), Refused> {
        let request = transaction.request();
        self.request(Pending::Committed(token, transaction), request)
    }

    /// What a binding is, if it may be made and taken away.
    fn binding(&self, link: &amqp::Link) -> Result<Binding, Refused> {
        own::check_not_own(&link.source)?;
        if let amqp::Destination::Exchange(name) = &link.destination {
            own::check_not_own(name)?;
        }
        arguments::binding(link, &self.here.vhost)
    }

    pub(super) fn declare_exchange(
        &mut self,
        token: Token,
        declare: amqp::DeclareExchange,
    ) -> Result<(), Refused> {
        if declare.passive && own::is_own(&declare.name) {
            self.connection.answer(token, Ok(Answer::Done));
            return Ok(());
        }
        own::check_not_own(&declare.name)?;
        if declare.name.is_empty() {
            return Err(Refusal::ExchangeReserved.into());
        }
        if declare.passive {
            let request = Request::Exchange(declare.name.as_str().into());
            self.request(Pending::Done(token), request)?;
            return Ok(());
        }
        let settings = Box::new(arguments::exchange(&declare, &self.here.vhost)?);
        let command = Command::DeclareExchange { name: declare.name.as_str().into(), settings };
        self.request(Pending::Exchange(token, Box::new(declare)), Request::Do(command))?;
        Ok(())
    }

    pub(super) fn declare_queue(
        &mut self,
        token: Token,
        mut declare: amqp::DeclareQueue,
    ) -> Result<(), Refused> {
        if declare.name == REPLY_TO {
            self.replies_there(token, declare.name, Ok(()));
            return Ok(());
        }
        if declare.name.starts_with(REPLIES) {
            let command = Command::CheckQueue { name: declare.name.as_str().into() };
            self.request(Pending::RepliesThere(token, declare.name), Request::Do(command))?;
            return Ok(());
        }
        if declare.passive {
            let command = Command::CheckQueue { name: declare.name.as_str().into() };
            self.request(Pending::QueueThere(token, declare.name), Request::Do(command))?;
            return Ok(());
        }
        if declare.name.is_empty() {
            declare.name = self.names.make("amq.gen-");
        } else if declare.name.starts_with(RESERVED) {
            let text = format!("queue name '{}' contains reserved prefix '{RESERVED}*'", declare.name);
            return Err(Refused::because(ReplyCode::AccessRefused, text));
        }
        let command = declaration(&declare, &self.here.vhost)?;
        self.request(Pending::Queue(token, Box::new(declare)), command)?;
        Ok(())
    }

    // ---- consumers ----

    pub(super) fn consume(
        &mut self,
        token: Token,
        channel: u16,
        consume: amqp::Consume,
        next_consumer: &mut dyn FnMut() -> ConsumerId,
    ) -> Result<(), Refused> {
        if consume.queue == REPLY_TO {
            return self.consume_replies(token, channel, consume);
        }
        if let Some(urgent) = arguments::urgent(&consume, &self.here.vhost)? {
            let request = Request::Queue(consume.queue.as_str().into());
            self.request(Pending::Scheme(token, Box::new(consume), urgent), request)?;
            return Ok(());
        }
        let consumer = next_consumer();
        let consume = arguments::consume(&consume, &consume.queue, self.holder());
        let request = Request::Consume { consumer, consume };
        self.request(Pending::Consumer(token, consumer), request)?;
        Ok(())
    }

    /// Replies to a channel come through a queue of its own, which goes with its consumer.
    pub(super) fn consume_replies(
        &mut self,
        token: Token,
        channel: u16,
        consume: amqp::Consume,
    ) -> Result<(), Refused> {
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
        self.replies.insert(channel, (None, name.clone()));
        let declaration = declaration(&declare, &self.here.vhost)?;
        self.ask_for(Pending::Replies(token, Box::new(consume), name), declaration);
        Ok(())
    }

    pub(super) fn start_replies(
        &mut self,
        token: Token,
        consume: &amqp::Consume,
        queue: &str,
        consumer: ConsumerId,
    ) {
        let channel = self.replies.values_mut().find(|(_, name)| name == queue);
        if let Some(replies) = channel {
            replies.0 = Some(consumer);
        }
        let consume = arguments::consume(consume, queue, self.holder());
        let request = Request::Consume { consumer, consume };
        // Nobody else's, so it takes no right.
        self.ask_for(Pending::Consumer(token, consumer), request);
    }
}

fn declaration(declare: &amqp::DeclareQueue, vhost: &str) -> Result<Request, Refused> {
    let queue = arguments::queue(declare, vhost)?;
    Ok(Request::Do(Command::DeclareQueue {
        name: declare.name.as_str().into(),
        settings: Box::new(queue.settings),
        identity: queue.identity,
        existing: Existing::Same,
    }))
}
