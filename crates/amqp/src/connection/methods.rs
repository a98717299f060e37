//! What a client asks for on a channel, method by method: one line of the grammar, one thing asked of the broker.

use overtake_lane::{ConsumerId, Outcome};
use overtake_properties::{Short, TableRef, Value};

use super::asks::{
    Ask, Consume, DeclareExchange, DeclareQueue, Destination, Link, Operation, Publish, Token,
};
use super::channel::{Channel, Consumer, LOOKED_AT_EVERY, set_qos};
use super::outgoing::InFlight;
use super::refusal::Subject;
use super::unacked::Held;
use super::{Connection, FAILED, Stage};
use crate::frame::{Frame, FrameKind};
use crate::incoming::{Incoming, unexpected};
use crate::method::{Method, MethodId, access, basic, channel, confirm, exchange, queue, tx};
use crate::reply::ReplyCode;
use crate::violation::Violation;

/// An operation that is not answered: of which channel, and what the client waits for.
#[derive(Clone, Debug)]
pub(super) struct Expect {
    pub(super) channel: u16,
    pub(super) life: u64,
    pub(super) method: MethodId,
    /// The client does not wait.
    pub(super) no_wait: bool,
    pub(super) wants: Wants,
    pub(super) subject: Subject,
}

/// What a client waits for.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Wants {
    ExchangeDeclared,
    ExchangeDeleted,
    ExchangeBound,
    ExchangeUnbound,
    QueueDeclared,
    QueueBound,
    QueueUnbound,
    QueuePurged,
    QueueDeleted,
    Consumer {
        tag: String,
        consume: Box<Consume>,
    },
    Cancelled {
        tag: String,
        consumer: ConsumerId,
    },
    /// One message, to be settled later,
    One,
    /// or as it is sent.
    OneSettled,
    Committed {
        /// The publishes that are returned when no queue gets them.
        mandatory: Vec<Option<Publish>>,
        /// What is out again if it is refused.
        taken: Vec<Held>,
    },
    ChannelClosed,
}

impl Connection {
    /// A channel that is open.
    pub(super) fn channel(&mut self, number: u16) -> &mut Channel {
        self.channels.get_mut(&number).expect("the channel is open")
    }

    pub(super) fn take_on_channel(&mut self, number: u16, method: &Method<'_>) -> Result<(), Violation> {
        match self.stage {
            Stage::Running => {}
            Stage::Closing => return Ok(()),
            _ => return Err(Violation::of(ReplyCode::ChannelError, "the connection is not open")),
        }
        let Some(open) = self.channels.get_mut(&number) else { return self.open_channel(number, method) };
        match method {
            Method::ChannelCloseOk(_) if open.is_closing => drop(self.channels.remove(&number)),
            Method::ChannelClose(_) if open.is_closing => self.say(number, channel::CloseOk {}),
            _ if open.is_closing => {}
            _ if open.incoming.is_some() => {
                return Err(unexpected("expected content, got a method"));
            }
            Method::ChannelOpen(_) => {
                return Err(Violation::of(ReplyCode::ChannelError, "second 'channel.open' seen"));
            }
            Method::ChannelClose(_) => self.close_channel(number),
            _ => return self.do_on_channel(number, method),
        }
        Ok(())
    }

    fn open_channel(&mut self, number: u16, method: &Method<'_>) -> Result<(), Violation> {
        match method {
            Method::ChannelOpen(_) if number > self.channel_max => {
                let text = format!("channel {number} is beyond the maximum allowed ({})", self.channel_max);
                return Err(Violation::of(ReplyCode::NotAllowed, text));
            }
            Method::ChannelOpen(_) => {
                let life = self.next_life();
                self.channels.insert(number, Box::new(Channel::new(self.heard_at(), life)));
                self.say(number, channel::OpenOk { channel_id: b"" });
            }
            // Both have closed it at once.
            Method::ChannelCloseOk(_) => {}
            _ => return Err(Violation::of(ReplyCode::ChannelError, "expected 'channel.open'")),
        }
        Ok(())
    }

    /// The client closes a channel. It is answered once its consumers have left: a message that was on its way to one of them then is put back
    /// before the answer.
    fn close_channel(&mut self, number: u16) {
        self.gather_settlements();
        let mut consumers = self.take_feeds(number);
        let unacked = self.channel(number).take_all();
        self.channel(number).consumers.clear();
        match consumers.pop() {
            Some(last) => {
                self.asks.extend(consumers.into_iter().map(|consumer| Ask::Leave { consumer }));
                let operation = Operation::Cancel { consumer: last };
                self.ask(number, channel::Close::ID, false, Wants::ChannelClosed, operation);
                self.put_back(unacked, FAILED);
            }
            None => {
                self.put_back(unacked, FAILED);
                self.channel_closed(number);
            }
        }
    }

    /// A channel that the client closes is over.
    pub(super) fn channel_closed(&mut self, number: u16) {
        self.channels.remove(&number);
        self.say(number, channel::CloseOk {});
        self.has_parted = true;
    }

    fn do_on_channel(&mut self, number: u16, method: &Method<'_>) -> Result<(), Violation> {
        match method {
            Method::ExchangeDeclare(declare) => self.exchange_declare(number, declare),
            Method::ExchangeDelete(delete) => {
                let operation = Operation::DeleteExchange {
                    name: without_line_ends(delete.exchange.as_str()),
                    if_unused: delete.if_unused,
                };
                self.ask(number, exchange::Delete::ID, delete.no_wait, Wants::ExchangeDeleted, operation);
            }
            Method::ExchangeBind(bind) => {
                let to = Destination::Exchange(bind.destination.as_str().to_owned());
                let link = link(bind.source.as_str(), to, bind.routing_key.as_str(), bind.arguments);
                let operation = Operation::Bind(link);
                self.ask(number, exchange::Bind::ID, bind.no_wait, Wants::ExchangeBound, operation);
            }
            Method::ExchangeUnbind(unbind) => {
                let to = Destination::Exchange(unbind.destination.as_str().to_owned());
                let link = link(unbind.source.as_str(), to, unbind.routing_key.as_str(), unbind.arguments);
                let operation = Operation::Unbind(link);
                self.ask(number, exchange::Unbind::ID, unbind.no_wait, Wants::ExchangeUnbound, operation);
            }
            Method::QueueDeclare(declare) => self.queue_declare(number, declare)?,
            Method::QueueBind(bind) => {
                let queue = self.channel(number).queue(&bind.queue)?;
                // RabbitMQ: both empty means the queue's name.
                let key = match (bind.queue.as_str(), bind.routing_key.as_str()) {
                    ("", "") => queue.clone(),
                    (_, key) => key.to_owned(),
                };
                let to = Destination::Queue(queue);
                let operation = Operation::Bind(link(bind.exchange.as_str(), to, &key, bind.arguments));
                self.ask(number, queue::Bind::ID, bind.no_wait, Wants::QueueBound, operation);
            }
            Method::QueueUnbind(unbind) => {
                let to = Destination::Queue(self.channel(number).queue(&unbind.queue)?);
                let link = link(unbind.exchange.as_str(), to, unbind.routing_key.as_str(), unbind.arguments);
                self.ask(number, queue::Unbind::ID, false, Wants::QueueUnbound, Operation::Unbind(link));
            }
            Method::QueuePurge(purge) => {
                let operation = Operation::PurgeQueue { name: self.channel(number).queue(&purge.queue)? };
                self.ask(number, queue::Purge::ID, purge.no_wait, Wants::QueuePurged, operation);
            }
            Method::QueueDelete(delete) => {
                let operation = Operation::DeleteQueue {
                    name: without_line_ends(&self.channel(number).queue(&delete.queue)?),
                    if_unused: delete.if_unused,
                    if_empty: delete.if_empty,
                };
                self.ask(number, queue::Delete::ID, delete.no_wait, Wants::QueueDeleted, operation);
            }
            _ => return self.do_basic(number, method),
        }
        Ok(())
    }

    fn do_basic(&mut self, number: u16, method: &Method<'_>) -> Result<(), Violation> {
        match method {
            Method::BasicPublish(publish) => return self.publish(number, publish),
            Method::BasicAck(ack) => {
                return self.settle(number, ack.delivery_tag, ack.multiple, Outcome::Ack);
            }
            Method::BasicNack(nack) => {
                return self.settle(number, nack.delivery_tag, nack.multiple, refused(nack.requeue));
            }
            Method::BasicReject(reject) => {
                return self.settle(number, reject.delivery_tag, false, refused(reject.requeue));
            }
            Method::BasicConsume(consume) => return self.consume(number, consume),
            Method::BasicCancel(cancel) => self.cancel(number, cancel),
            Method::BasicCancelOk(_) => {}
            Method::BasicGet(get) => {
                self.check_not_draining()?;
                let queue = self.channel(number).queue(&get.queue)?;
                let wants = if get.no_ack { Wants::OneSettled } else { Wants::One };
                let operation = Operation::Get { queue, no_ack: get.no_ack };
                self.ask(number, basic::Get::ID, false, wants, operation);
            }
            Method::BasicQos(qos) => {
                let joining = set_qos(self.channel(number), qos)?;
                if qos.global {
                    self.asks.push(Ask::Share { channel: number, messages: qos.prefetch_count, joining });
                }
                self.say(number, basic::QosOk {});
            }
            Method::BasicRecover(recover) => {
                self.recover(number, recover.requeue)?;
                self.say(number, basic::RecoverOk {});
            }
            Method::BasicRecoverAsync(recover) => return self.recover(number, recover.requeue),
            Method::ConfirmSelect(select) => {
                self.channel(number).select_confirms()?;
                if !select.no_wait {
                    self.say(number, confirm::SelectOk {});
                }
            }
            Method::TxSelect(_) => {
                self.channel(number).select_transactions()?;
                self.say(number, tx::SelectOk {});
            }
            Method::TxCommit(_) => return self.commit(number),
            Method::TxRollback(_) => {
                let transaction = self.channel(number).end_transaction()?;
                self.channel(number).unacked.restore(transaction.taken);
                self.say(number, tx::RollbackOk {});
            }
            Method::ChannelFlow(flow) if flow.active => self.say(number, channel::FlowOk { active: true }),
            Method::ChannelFlow(_) => return Err(Violation::of(ReplyCode::NotImplemented, "active=false")),
            Method::ChannelFlowOk(_) => {}
            Method::AccessRequest(_) => self.say(number, access::RequestOk { ticket: 1 }),
            method => {
                let text = format!("{} does not come from a client", method.name());
                return Err(Violation::of(ReplyCode::CommandInvalid, text));
            }
        }
        Ok(())
    }

    // ---- exchanges and queues ----

    fn exchange_declare(&mut self, number: u16, declare: &exchange::Declare<'_>) {
        let operation = Operation::DeclareExchange(DeclareExchange {
            name: without_line_ends(declare.exchange.as_str()),
            kind: declare.kind.as_str().to_owned(),
            passive: declare.passive,
            durable: declare.durable,
            auto_delete: declare.auto_delete,
            internal: declare.internal,
            arguments: declare.arguments.to_table(),
        });
        self.ask(number, exchange::Declare::ID, declare.no_wait, Wants::ExchangeDeclared, operation);
    }

    fn queue_declare(&mut self, number: u16, declare: &queue::Declare<'_>) -> Result<(), Violation> {
        let name = match declare.passive {
            // Without a name there is nothing to look for but the one declared last.
            true => self.channel(number).queue(&declare.queue)?,
            false => declare.queue.as_str().to_owned(),
        };
        let operation = Operation::DeclareQueue(DeclareQueue {
            name: without_line_ends(&name),
            passive: declare.passive,
            durable: declare.durable,
            exclusive: declare.exclusive,
            auto_delete: declare.auto_delete,
            arguments: declare.arguments.to_table(),
        });
        self.ask(number, queue::Declare::ID, declare.no_wait, Wants::QueueDeclared, operation);
        Ok(())
    }

    // ---- messages in ----

    fn publish(&mut self, number: u16, publish: &basic::Publish<'_>) -> Result<(), Violation> {
        if publish.immediate {
            return Err(Violation::of(ReplyCode::NotImplemented, "immediate=true"));
        }
        self.is_publisher = true;
        let channel = self.channel(number);
        channel.names.hear(Short::default(), publish.exchange, publish.routing_key);
        channel.incoming = Some(Incoming::begin(publish.mandatory));
        Ok(())
    }

    pub(super) fn take_content(&mut self, frame: &Frame<'_>) -> Result<(), Violation> {
        let body_max = self.options.body_max;
        let Some(channel) = self.channels.get_mut(&frame.channel).filter(|_| self.stage == Stage::Running)
        else {
            return match self.stage {
                Stage::Closing => Ok(()),
                _ => Err(Violation::of(ReplyCode::ChannelError, "expected 'channel.open'")),
            };
        };
        if channel.is_closing {
            return Ok(());
        }
        let Some(incoming) = &mut channel.incoming else {
            return Err(unexpected("expected method frame, got content"));
        };
        let is_whole = match frame.kind {
            FrameKind::Header => incoming.header(frame.payload, body_max),
            _ => incoming.body(frame.payload),
        };
        let len = incoming.len();
        if is_whole.map_err(|violation| violation.by(basic::Publish::ID))? {
            let incoming = channel.incoming.take().expect("it is whole");
            let publish = incoming.finish(&channel.names).into();
            return self.published_whole(frame.channel, publish);
        }
        if frame.kind == FrameKind::Header && len >= LOOKED_AT_EVERY { self.check_held() } else { Ok(()) }
    }

    /// Whether the contents that are being received and the publishes that wait for a commit, of all channels, are within bounds. Else
    /// the channel that asks for more is closed, and what it holds is gone.
    fn check_held(&self) -> Result<(), Violation> {
        let most = self.options.held_max.max(2 * self.options.body_max);
        let held: u64 = self.channels.values().map(|channel| channel.held_bytes()).sum();
        if held <= most {
            return Ok(());
        }
        let text = format!(
            "unfinished contents and uncommitted publishes of this connection would take {held} bytes, more than the maximum \
             ({most}); commit or finish some first"
        );
        Err(Violation::of(ReplyCode::PreconditionFailed, text).by(basic::Publish::ID))
    }

    fn published_whole(&mut self, number: u16, publish: Publish) -> Result<(), Violation> {
        let channel = self.channel(number);
        if let Some(transaction) = &mut channel.transaction {
            return if transaction.add(publish) { self.check_held() } else { Ok(()) };
        }
        let life = channel.life;
        if self.defers(number) {
            return self.defer(number, life, publish);
        }
        self.submit(number, life, publish);
        Ok(())
    }

    /// Asks the broker for a publish. Its channel may be closed since it came: then nobody is told what became of it.
    pub(super) fn submit(&mut self, number: u16, life: u64, publish: Publish) {
        let token = self.next_token();
        let channel = self.channels.get_mut(&number).filter(|channel| channel.life == life);
        let confirm = channel.and_then(|channel| {
            channel.in_flight += 1;
            channel.may_return += u32::from(publish.mandatory);
            channel.confirms.as_mut().map(super::confirms::Confirms::publish)
        });
        let mandatory = publish.mandatory.then(|| Box::new(publish.clone()));
        let exchange = publish.exchange.clone();
        let bytes = publish.len();
        self.unanswered_bytes += bytes;
        self.in_flight.push_back(InFlight {
            token,
            channel: number,
            life,
            number: confirm,
            mandatory,
            exchange,
            bytes,
        });
        // What was acknowledged before is asked for before.
        self.gather_settlements();
        self.asks.push(Ask::Publish { token, channel: number, publish });
    }

    // ---- messages out ----

    fn check_not_draining(&self) -> Result<(), Violation> {
        let text = "the broker is being drained and gives out no more messages; connect to another";
        if self.is_draining { Err(Violation::of(ReplyCode::PreconditionFailed, text)) } else { Ok(()) }
    }

    fn consume(&mut self, number: u16, consume: &basic::Consume<'_>) -> Result<(), Violation> {
        self.check_not_draining()?;
        let most = self.options.consumer_max as usize;
        if self.channels.values().map(|channel| channel.consumers.len()).sum::<usize>() >= most {
            let text = format!("reached maximum ({most}) of consumers per connection");
            return Err(Violation::of(ReplyCode::NotAllowed, text));
        }
        let prefix = self.options.number;
        let channel = self.channel(number);
        let queue = channel.queue(&consume.queue)?;
        let tag = channel.consumer_tag(&consume.consumer_tag, prefix)?;
        channel.consumers.insert(tag.clone(), Consumer::Asked);
        let shared = channel.is_shared.then_some(number);
        let wanted = Consume {
            queue,
            tag: tag.clone(),
            prefetch: channel.prefetch,
            shared,
            no_ack: consume.no_ack,
            exclusive: consume.exclusive,
            priority: consumer_priority(consume.arguments)?,
            arguments: consume.arguments.to_table(),
        };
        let wants = Wants::Consumer { tag, consume: Box::new(wanted.clone()) };
        let operation = Operation::Consume(wanted);
        self.ask(number, basic::Consume::ID, consume.no_wait, wants, operation);
        Ok(())
    }

    fn cancel(&mut self, number: u16, cancel: &basic::Cancel<'_>) {
        let tag = cancel.consumer_tag.as_str().to_owned();
        match self.channel(number).consumers.remove(&tag) {
            Some(Consumer::Here(consumer)) => {
                let wants = Wants::Cancelled { tag, consumer };
                self.ask(number, basic::Cancel::ID, cancel.no_wait, wants, Operation::Cancel { consumer });
            }
            // One that is not there is cancelled already (RabbitMQ).
            _ if !cancel.no_wait => {
                self.say(number, basic::CancelOk { consumer_tag: cancel.consumer_tag });
            }
            _ => {}
        }
    }

    fn settle(&mut self, number: u16, tag: u64, multiple: bool, outcome: Outcome) -> Result<(), Violation> {
        let receipts = self.channel(number).settle(tag, multiple, outcome)?;
        if self.settling.1 != outcome {
            self.gather_settlements();
            self.settling.1 = outcome;
        }
        self.settling.0.extend(receipts);
        Ok(())
    }

    /// Hands on what was settled, as many at once as came together.
    pub(super) fn gather_settlements(&mut self) {
        let receipts = std::mem::take(&mut self.settling.0);
        if !receipts.is_empty() {
            self.asks.push(Ask::Settle { receipts, outcome: self.settling.1 });
        }
    }

    fn recover(&mut self, number: u16, requeue: bool) -> Result<(), Violation> {
        if !requeue {
            return Err(Violation::of(ReplyCode::NotImplemented, "requeue=false"));
        }
        let held = self.channel(number).unacked.take_all();
        self.gather_settlements();
        self.put_back(held.iter().map(|held| held.receipt).collect(), FAILED);
        Ok(())
    }

    fn commit(&mut self, number: u16) -> Result<(), Violation> {
        let transaction = self.channel(number).end_transaction()?;
        let mandatory = transaction.publishes.iter().map(|one| one.mandatory.then(|| one.clone())).collect();
        let operation =
            Operation::Transact { publishes: transaction.publishes, settlements: transaction.settlements };
        let wants = Wants::Committed { mandatory, taken: transaction.taken };
        self.ask(number, tx::Commit::ID, false, wants, operation);
        Ok(())
    }

    // ---- asking ----

    fn ask(&mut self, number: u16, method: MethodId, no_wait: bool, wants: Wants, operation: Operation) {
        self.gather_settlements();
        let token: Token = self.next_token();
        let channel = self.channel(number);
        channel.waits = Some(token);
        let life = channel.life;
        let subject = Subject::of(&operation);
        self.expected.insert(token, Expect { channel: number, life, method, no_wait, wants, subject });
        self.asks.push(Ask::Do { token, channel: number, operation });
    }
}

/// A name without its carriage returns and line feeds: RabbitMQ takes them out of the names of queues and exchanges that are declared or
/// deleted.
fn without_line_ends(name: &str) -> String {
    name.replace(['\r', '\n'], "")
}

/// How a nack or a reject ends a delivery.
fn refused(requeue: bool) -> Outcome {
    if requeue { FAILED } else { Outcome::Reject }
}

fn link(source: &str, destination: Destination, routing_key: &str, arguments: TableRef<'_>) -> Link {
    Link {
        source: source.to_owned(),
        destination,
        routing_key: routing_key.to_owned(),
        arguments: arguments.to_table(),
    }
}

/// `x-priority`, RabbitMQ's consumer priority.
fn consumer_priority(arguments: TableRef<'_>) -> Result<i32, Violation> {
    let Some(value) = arguments.get("x-priority") else { return Ok(0) };
    let priority = Value::int(value).and_then(|priority| i32::try_from(priority).ok());
    priority.ok_or_else(|| {
        Violation::of(ReplyCode::PreconditionFailed, "invalid arg 'x-priority': a whole number is expected")
    })
}
