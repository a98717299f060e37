//! What the session answers, told to the client.

use overtake_amqp::ReplyCode;
use overtake_amqp::connection::{Answer, Refused, Token};
use overtake_engine::core::{Answer as Told, Request};
use overtake_engine::{Ask as Asked, Failure, JobState, Started};
use overtake_lane::{Command, ConsumerId, Outcome, Part, Refusal};

use super::Conversation;
use crate::control::Reply;
use crate::pending::{Ordered, Pending, Transaction};
use crate::{arguments, delivery, differs, message};

impl Conversation {
    pub(super) fn published(&mut self, result: Result<Told, Failure>) {
        let told = result.map(|told| copies(&told)).map_err(|failure| match failure {
            Failure::Refused(refused) => Refused::Declined(refused.refusal),
            // A confirm says it of the one message; the connection may yet be good for others.
            Failure::Unavailable(why) => Refused::because(ReplyCode::InternalError, why.to_string()),
        });
        self.publishes.message_told(told);
        self.tell_published();
    }

    /// Whether it was an order that is answered. One that goes on as a job is confirmed when it has begun; who wants its answer as a message
    /// gets that when it is over.
    pub(super) fn ordered(
        &mut self,
        number: u64,
        result: Result<Told, Failure>,
    ) -> Option<Result<Told, Failure>> {
        let Some(ordered) = self.orders.remove(&number) else { return Some(result) };
        let result = result.map_err(|failure| self.failed(failure));
        match (ordered, result) {
            (Ordered::Begun(token, reply), Ok(Told::Started(Started::Job(job)))) => {
                if let Some(reply) = reply {
                    self.order(Ordered::Over(reply), Request::Job { id: job.id, waits: true });
                }
                self.publishes.order_told(token, Ok(1));
            }
            (Ordered::Begun(token, None), result) => {
                self.publishes.order_told(token, result.map(|told| copies(&told)));
            }
            (Ordered::Begun(token, Some(reply)), result) => {
                self.reply(reply, &result.map(|told| copies(&told)));
                self.publishes.order_told(token, Ok(1));
            }
            (Ordered::Over(reply), result) => self.reply(reply, &result.and_then(|told| changed(&told))),
        }
        self.tell_published();
        None
    }

    /// Asks for what a client orders.
    pub(super) fn order(&mut self, ordered: Ordered, request: Request) {
        self.next_token += 1;
        self.orders.insert(self.next_token, ordered);
        self.requests.push(Asked { token: Some(self.next_token), request });
    }

    /// Answers an order with a message. Nobody waits for that one, and nobody gets it if the client may not publish it any more.
    pub(super) fn reply(&mut self, reply: Reply, result: &Result<u64, Refused>) {
        if reply.judge(&self.here).is_err() {
            return;
        }
        let body = match result {
            Ok(count) => serde_json::json!({ "count": count }),
            Err(Refused::Declined(refusal)) => serde_json::json!({
                "error": refusal.code(),
                "detail": format!("{refusal}; {}", refusal.hint()),
            }),
            Err(Refused::Because { text, .. }) => serde_json::json!({ "error": "failed", "detail": text }),
        };
        let request = Request::PublishOne(Box::new(reply.message(&body)));
        self.requests.push(Asked { token: None, request });
    }

    pub(super) fn answered(
        &mut self,
        token: u64,
        result: Result<Told, Failure>,
        next_consumer: &mut dyn FnMut() -> ConsumerId,
    ) {
        let Some(pending) = self.pending.remove(&token) else { return };
        let pending = match (pending, &result) {
            (Pending::Committed(token, transaction), Err(Failure::Refused(refused))) => {
                return self.not_committed(token, transaction, refused);
            }
            (pending, _) => pending,
        };
        let result = result.map_err(|failure| self.failed(failure));
        match pending {
            Pending::Done(token) => self.connection.answer(token, result.map(|_| Answer::Done)),
            Pending::DoneOrGone(token) => {
                let result = result.map(|_| Answer::Done).or_else(|refused| match refused {
                    Refused::Declined(
                        Refusal::NoSuchBinding | Refusal::NoSuchExchange | Refusal::NoSuchConsumer,
                    ) => Ok(Answer::Done),
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
            Pending::Committed(token, transaction) => self.committed(token, *transaction, result),
            Pending::StillThere(token, transaction, at_fault) => {
                self.is_still_there(token, transaction, at_fault, result);
            }
            Pending::Got(token) => {
                self.requests.extend(self.gets.answered());
                self.got(token, result);
            }
            Pending::Consumer(token, consumer) => {
                if result.is_err() {
                    self.replies.retain(|_, (replies, _)| *replies != Some(consumer));
                }
                self.connection.answer(token, result.map(|_| Answer::Consuming(consumer)));
                // Rights may have changed since it was asked for.
                let queue = self.connection.queue_of(consumer);
                if queue.is_some_and(|queue| self.here.judge_consumer(queue).is_err()) {
                    self.deny(consumer);
                }
            }
            Pending::Scheme(token, consume, urgent) => {
                let consumer = next_consumer();
                let credit = result.and_then(|told| match told {
                    Told::Queue(view) => urgent.credit(view.effective_settings().scheme, &consume.queue),
                    told => Err(misunderstood(&told)),
                });
                match credit {
                    Ok(credit) => {
                        let mut request = arguments::consume(&consume, &consume.queue, self.holder());
                        request.urgent = Some(credit);
                        let request = Request::Consume { consumer, consume: request };
                        if let Err(refused) = self.request(Pending::Consumer(token, consumer), request) {
                            self.connection.answer(token, Err(refused));
                        }
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

    fn committed(&mut self, token: Token, transaction: Transaction, result: Result<Told, Refused>) {
        let Transaction { messages, gone, .. } = transaction;
        if result.is_ok() && !gone.is_empty() {
            self.tell(Command::Settle { receipts: gone, outcome: Outcome::Ack });
        }
        let answer = result.map(|told| Answer::Committed { unrouted: unrouted(&told, messages.len()) });
        self.connection.answer(token, answer);
    }

    /// A transaction is refused; unless it is for a lease that is over because its message is.
    fn not_committed(
        &mut self,
        token: Token,
        transaction: Box<Transaction>,
        refused: &overtake_engine::Refused,
    ) {
        let refused = match (&refused.refusal, refused.part) {
            (Refusal::StaleReceipt, Some(Part::Settlement(at))) => {
                let request = Request::StillThere(transaction.receipts());
                return self.ask_for(Pending::StillThere(token, transaction, at), request);
            }
            (Refusal::NoSuchExchange, Some(Part::Publish(at))) => {
                let name = transaction.messages.get(at).map(message::exchange).unwrap_or_default();
                let text = format!("no exchange '{name}' in vhost '{}'", self.here.vhost);
                Refused::because(ReplyCode::NotFound, text)
            }
            (refusal, _) => Refused::Declined(*refusal),
        };
        self.connection.answer(token, Err(refused));
    }

    /// A message that ended while the client held it counts as settled: the rest of the transaction is asked for again, as
    /// RabbitMQ does it. What is still there is somebody else's, or will be, and the transaction is refused.
    fn is_still_there(
        &mut self,
        token: Token,
        mut transaction: Box<Transaction>,
        at_fault: usize,
        result: Result<Told, Refused>,
    ) {
        let asked = match result {
            Ok(Told::Each(told)) if transaction.leave_out_gone(&told, at_fault) => {
                self.transact(token, transaction)
            }
            Ok(Told::Each(_)) => Err(Refused::Declined(Refusal::StaleReceipt)),
            Ok(told) => Err(misunderstood(&told)),
            Err(refused) => Err(refused),
        };
        if let Err(refused) = asked {
            self.connection.answer(token, Err(refused));
        }
    }

    /// What came of a declaration.
    pub(super) fn declared(&mut self, pending: Pending, result: Result<Told, Refused>) {
        match (pending, result) {
            (Pending::Queue(token, declare), Err(Refused::Declined(Refusal::QueueDiffers))) => {
                let request = Request::Queue(declare.name.as_str().into());
                self.ask_for(Pending::OtherQueue(token, declare), request);
            }
            (Pending::Queue(token, declare), result) => self.queue_there(token, declare.name, result),
            (Pending::QueueThere(token, name), result) => self.queue_there(token, name, result),
            (Pending::RepliesThere(token, name), result) => {
                self.replies_there(token, name, result.map(|_| ()));
            }
            (Pending::Exchange(token, declare), Err(Refused::Declined(Refusal::ExchangeDiffers(key)))) => {
                let request = Request::Exchange(declare.name.as_str().into());
                self.ask_for(Pending::OtherExchange(token, declare, key), request);
            }
            (Pending::Exchange(token, _), result) => {
                self.connection.answer(token, result.map(|_| Answer::Done));
            }
            (Pending::OtherQueue(token, declare), result) => {
                let refused = match result {
                    Ok(Told::Queue(is)) => differs::queue(&declare, &is, &self.here.vhost),
                    Ok(told) => misunderstood(&told),
                    Err(refused) => refused,
                };
                self.connection.answer(token, Err(refused));
            }
            (Pending::OtherExchange(token, declare, key), result) => {
                let refused = match result {
                    Ok(Told::Exchange(is)) => differs::exchange(key, &declare, &is, &self.here.vhost),
                    Ok(told) => misunderstood(&told),
                    Err(refused) => refused,
                };
                self.connection.answer(token, Err(refused));
            }
            (pending, _) => unreachable!("{pending:?} is no declaration"),
        }
    }

    pub(super) fn queue_there(&mut self, token: Token, name: String, result: Result<Told, Refused>) {
        let answer = result.and_then(|told| match told {
            Told::Declared(queue) => {
                Ok(Answer::Queue { name, messages: queue.ready, consumers: queue.consumers })
            }
            told => Err(misunderstood(&told)),
        });
        self.connection.answer(token, answer);
    }

    /// Whether somebody waits for replies, which whoever answers may ask (RabbitMQ). It is somebody else's queue, mostly.
    pub(super) fn replies_there(&mut self, token: Token, name: String, result: Result<(), Refused>) {
        let answer = match result {
            Ok(()) | Err(Refused::Declined(Refusal::QueueLocked)) => {
                Ok(Answer::Queue { name, messages: 0, consumers: 1 })
            }
            Err(refused) => Err(refused),
        };
        self.connection.answer(token, answer);
    }

    pub(super) fn got(&mut self, token: Token, result: Result<Told, Refused>) {
        match result {
            Ok(Told::Got(Some(got))) => delivery::leased(&got.message, |delivery| {
                self.connection.got(token, Ok(Some((*delivery, got.ready))));
            }),
            Ok(Told::Got(None)) => self.connection.got(token, Ok(None)),
            Ok(told) => self.connection.got(token, Err(misunderstood(&told))),
            Err(refused) => self.connection.got(token, Err(refused)),
        }
    }
}

/// How many messages an answer speaks of.
fn copies(told: &Told) -> u64 {
    match told {
        Told::Count(count) | Told::Started(Started::Done(count)) => *count,
        _ => 0,
    }
}

/// How many messages a job has changed, that is over.
fn changed(told: &Told) -> Result<u64, Refused> {
    let Told::Job(Some(job)) = told else { return Err(misunderstood(told)) };
    match (job.state, job.refusal) {
        (JobState::Done, _) => Ok(job.changed),
        (_, Some(refusal)) => Err(Refused::Declined(refusal)),
        (state, None) => {
            let text = format!("job {} is {}: {} messages were changed", job.id, state.name(), job.changed);
            Err(Refused::because(ReplyCode::PreconditionFailed, text))
        }
    }
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
