//! What the broker tells, on its way to the client: answers, confirms, deliveries.

use std::collections::VecDeque;

use bytes::Bytes;
use overtake_lane::{ConsumerId, Outcome, Receipt, Refusal};
use overtake_properties::{Short, ShortText};

use super::Connection;
use super::asks::{Answer, Ask, Consume, Delivery, Publish, Refused, Token};
use super::channel::{Channel, Consumer};
use super::methods::{Expect, Wants};
use super::refusal::{self, Subject};
use crate::method::{basic, exchange, queue, tx};
use crate::reply::ReplyCode;
use crate::violation::Violation;
use crate::writer::FrameWriter;

/// Where the messages of a consumer go.
#[derive(Clone, Debug)]
pub(super) struct Feed {
    pub(super) channel: u16,
    pub(super) tag: Box<str>,
    /// What the client asked for.
    pub(super) consume: Box<Consume>,
    /// Messages it was sent.
    pub(super) delivered: u64,
}

/// A publish that is not answered.
#[derive(Debug)]
pub(super) struct InFlight {
    pub(super) token: Token,
    pub(super) channel: u16,
    pub(super) life: u64,
    /// Its number among the channel's, where they are confirmed.
    pub(super) number: Option<u64>,
    /// What is returned when no queue gets it.
    pub(super) mandatory: Option<Box<Publish>>,
    /// Where it was published to.
    pub(super) exchange: Bytes,
    /// Bytes that it takes.
    pub(super) bytes: u64,
}

impl Connection {
    // ---- operations ----

    /// What came of an [`Ask::Do`].
    pub fn answer(&mut self, token: Token, result: Result<Answer, Refused>) {
        let Some(expect) = self.expected.remove(&token) else { return };
        let number = expect.channel;
        if !self.is_live(number, expect.life) {
            return self.drop_late(&expect, result);
        }
        self.channel(number).waits = None;
        if expect.wants == Wants::ChannelClosed {
            return self.channel_closed(number);
        }
        let outcome = result.map_err(|refused| refusal::violation(refused, &expect.subject, &self.vhost));
        if let Err(violation) = outcome.and_then(|answer| self.tell(&expect, answer)) {
            self.undo(number, &expect.wants);
            self.violated(number, violation.by(expect.method));
        }
    }

    /// It was refused: nothing has happened.
    fn undo(&mut self, number: u16, wants: &Wants) {
        let channel = self.channel(number);
        match wants {
            Wants::Consumer { tag, .. } => drop(channel.consumers.remove(tag)),
            Wants::Committed { taken, .. } => channel.unacked.restore(taken.iter().copied()),
            _ => {}
        }
    }

    /// The channel that asked is closed: what it would have got is given back.
    fn drop_late(&mut self, expect: &Expect, result: Result<Answer, Refused>) {
        if let (Wants::Consumer { .. }, Ok(Answer::Consuming(consumer))) = (&expect.wants, result) {
            self.asks.push(Ask::Leave { consumer });
        }
    }

    fn tell(&mut self, expect: &Expect, answer: Answer) -> Result<(), Violation> {
        let number = expect.channel;
        match (&expect.wants, answer) {
            (Wants::ExchangeDeclared, _) => self.say_unless(expect, exchange::DeclareOk {}),
            (Wants::ExchangeDeleted, _) => self.say_unless(expect, exchange::DeleteOk {}),
            (Wants::ExchangeBound, _) => self.say_unless(expect, exchange::BindOk {}),
            (Wants::ExchangeUnbound, _) => self.say_unless(expect, exchange::UnbindOk {}),
            (Wants::QueueBound, _) => self.say_unless(expect, queue::BindOk {}),
            (Wants::QueueUnbound, _) => self.say_unless(expect, queue::UnbindOk {}),
            (Wants::QueueDeclared, Answer::Queue { name, messages, consumers }) => {
                let (message_count, consumer_count) = (count(messages), count(consumers));
                let name_text = ShortText::cut(&name);
                let declare_ok = queue::DeclareOk { queue: name_text, message_count, consumer_count };
                self.say_unless(expect, declare_ok);
                self.channel(number).last_queue = name;
            }
            (Wants::QueuePurged, Answer::Count(messages)) => {
                self.say_unless(expect, queue::PurgeOk { message_count: count(messages) });
            }
            (Wants::QueueDeleted, Answer::Count(messages)) => {
                self.say_unless(expect, queue::DeleteOk { message_count: count(messages) });
            }
            (Wants::Consumer { tag, consume }, Answer::Consuming(consumer)) => {
                let (named, consume) = (tag.as_str().into(), consume.clone());
                let feed = Feed { channel: number, tag: named, consume, delivered: 0 };
                self.feeds.insert(consumer, feed);
                self.channel(number).consumers.insert(tag.clone(), Consumer::Here(consumer));
                self.say_unless(expect, basic::ConsumeOk { consumer_tag: ShortText::cut(tag) });
            }
            (Wants::Cancelled { tag, consumer }, _) => {
                self.feeds.remove(consumer);
                self.say_unless(expect, basic::CancelOk { consumer_tag: ShortText::cut(tag) });
            }
            (Wants::Committed { mandatory, .. }, Answer::Committed { unrouted }) => {
                self.channel(number).counts.published += mandatory.len() as u64;
                for at in unrouted {
                    self.unrouted(number, mandatory.get(at).and_then(Option::as_ref));
                }
                self.say(number, tx::CommitOk {});
            }
            (wants, answer) => {
                let text = format!("{wants:?} was answered {answer:?}");
                return Err(Violation::of(ReplyCode::InternalError, text));
            }
        }
        Ok(())
    }

    fn say_unless<'m>(&mut self, expect: &Expect, method: impl Into<crate::method::Method<'m>>) {
        if !expect.no_wait {
            self.say(expect.channel, method);
        }
    }

    // ---- publishes ----

    /// What came of an [`Ask::Publish`]: in so many queues it is now, or why it is not.
    pub fn published(&mut self, token: Token, result: Result<u64, Refused>) {
        let Some(publish) = self.in_flight.pop_front() else { return };
        give_back(&mut self.in_flight);
        assert_eq!(publish.token, token, "publishes are answered in the order in which they were asked");
        let InFlight { channel: number, life, number: confirm, mandatory, exchange, bytes, .. } = publish;
        self.unanswered_bytes -= bytes;
        if !self.is_live(number, life) {
            return;
        }
        let channel = self.channel(number);
        channel.counts.published += 1;
        channel.in_flight -= 1;
        channel.may_return -= u32::from(mandatory.is_some());
        let is_taken = match result {
            Ok(0) | Err(Refused::Declined(Refusal::Unroutable)) => {
                self.unrouted(number, mandatory.as_deref());
                true
            }
            Ok(_) => true,
            Err(Refused::Declined(refusal)) if refusal::is_for_now(refusal) => false,
            // The broker cannot do it now, or does not know whether it is done.
            Err(Refused::Because { code: ReplyCode::InternalError, .. }) if confirm.is_some() => false,
            Err(refused) => {
                let exchange = String::from_utf8_lossy(&exchange).into_owned();
                let subject = Subject { exchange, ..Subject::default() };
                let violation = refusal::violation(refused, &subject, &self.vhost);
                return self.violated(number, violation.by(basic::Publish::ID));
            }
        };
        if let Some(confirm) = confirm {
            self.confirm(number, confirm, is_taken);
        }
    }

    fn confirm(&mut self, number: u16, publish: u64, is_taken: bool) {
        let Some(channel) = self.channels.get_mut(&number) else { return };
        let Some(confirms) = &mut channel.confirms else { return };
        if is_taken {
            channel.counts.confirmed += 1;
            confirms.ack(publish);
            if self.to_confirm.last() != Some(&number) {
                self.to_confirm.push(number);
            }
        } else {
            let mut writer = FrameWriter::new(&mut self.out, self.frame_max);
            confirms.nack(publish).for_each(|method| writer.method(number, method));
        }
    }

    /// Says what has gathered, of as many publishes at once as can be.
    pub(super) fn tell_confirms(&mut self) {
        for number in std::mem::take(&mut self.to_confirm) {
            let confirms = self.channels.get_mut(&number).and_then(|channel| channel.confirms.as_mut());
            if let Some(method) = confirms.and_then(super::confirms::Confirms::flush) {
                self.say(number, method);
            }
        }
    }

    /// No queue got a publish, which goes back if it is mandatory.
    fn unrouted(&mut self, number: u16, mandatory: Option<&Publish>) {
        let counts = &mut self.channel(number).counts;
        let Some(publish) = mandatory else { return counts.dropped += 1 };
        counts.returned += 1;
        self.give_back(number, publish);
    }

    /// A message that no queue got (1.8.3.8).
    fn give_back(&mut self, number: u16, publish: &Publish) {
        let short = |bytes| Short::new(bytes).expect("it came as a short string");
        let method = basic::Return {
            reply_code: ReplyCode::NoRoute.code(),
            reply_text: Short::literal("NO_ROUTE"),
            exchange: short(&publish.exchange),
            routing_key: short(&publish.routing_key),
        };
        self.write_on(number);
        let mut writer = FrameWriter::new(&mut self.out, self.frame_max);
        // It came in a frame of that length, so it fits.
        let _ = writer.content(number, method, publish.properties.view(), &publish.body);
    }

    // ---- deliveries ----

    /// A message for a consumer.
    pub fn deliver(&mut self, consumer: ConsumerId, delivery: &Delivery<'_>) {
        let receipts = vec![delivery.receipt];
        let Some(feed) = self.feeds.get_mut(&consumer) else {
            return self.asks.push(Ask::Settle { receipts, outcome: Outcome::Release });
        };
        feed.delivered += 1;
        let number = feed.channel;
        let channel = self.channels.get_mut(&number).expect("a feed goes to an open channel");
        channel.counts.redelivered += u64::from(delivery.redelivered);
        let delivery_tag = if feed.consume.no_ack {
            *self.taken.entry(consumer).or_default() += 1;
            channel.counts.delivered_no_ack += 1;
            channel.next_tag()
        } else {
            channel.counts.delivered += 1;
            channel.lend(delivery.receipt, Some(consumer))
        };
        if self.written_on.last() != Some(&number) {
            self.written_on.push(number);
        }
        let method = basic::Deliver {
            consumer_tag: ShortText::cut(&feed.tag).into(),
            delivery_tag,
            redelivered: delivery.redelivered,
            exchange: cut(delivery.exchange),
            routing_key: cut(delivery.routing_key),
        };
        let mut writer = FrameWriter::new(&mut self.out, self.frame_max);
        if writer.content(number, method, delivery.properties, delivery.body).is_err() {
            self.does_not_fit(number, delivery_tag, delivery.receipt);
        }
    }

    /// What came of an [`Operation::Get`](super::Operation::Get): a message, and how many are ready behind it; or none.
    pub fn got(&mut self, token: Token, result: Result<Option<(Delivery<'_>, u64)>, Refused>) {
        let Some(expect) = self.expected.remove(&token) else { return };
        let number = expect.channel;
        if !self.is_live(number, expect.life) {
            if let Ok(Some((delivery, _))) = result {
                self.put_back(vec![delivery.receipt], Outcome::Release);
            }
            return;
        }
        self.channel(number).waits = None;
        match result {
            Err(refused) => {
                let violation = refusal::violation(refused, &expect.subject, &self.vhost);
                self.violated(number, violation.by(expect.method));
            }
            Ok(None) => {
                self.channel(number).counts.got_nothing += 1;
                self.say(number, basic::GetEmpty { cluster_id: ShortText::cut("") });
            }
            Ok(Some((delivery, behind))) => self.give(&expect, &delivery, behind),
        }
    }

    fn give(&mut self, expect: &Expect, delivery: &Delivery<'_>, behind: u64) {
        let number = expect.channel;
        self.write_on(number);
        let channel = self.channel(number);
        channel.counts.redelivered += u64::from(delivery.redelivered);
        let delivery_tag = if expect.wants == Wants::One {
            channel.counts.got += 1;
            channel.lend(delivery.receipt, None)
        } else {
            channel.counts.got_no_ack += 1;
            channel.next_tag()
        };
        let method = basic::GetOk {
            delivery_tag,
            redelivered: delivery.redelivered,
            exchange: cut(delivery.exchange),
            routing_key: cut(delivery.routing_key),
            message_count: count(behind),
        };
        let mut writer = FrameWriter::new(&mut self.out, self.frame_max);
        if writer.content(number, method, delivery.properties, delivery.body).is_err() {
            self.does_not_fit(number, delivery_tag, delivery.receipt);
        }
    }

    /// A message whose properties no frame of this connection takes. The attempt has failed, so that a delivery limit ends it: put back as if nothing had been, it
    /// would close the channel of whoever gets it for ever.
    fn does_not_fit(&mut self, number: u16, delivery_tag: u64, receipt: Receipt) {
        let is_out =
            self.channel(number).unacked.take(delivery_tag, false).is_some_and(|taken| !taken.is_empty());
        if is_out {
            self.put_back(vec![receipt], Outcome::Nack { delay_ms: None });
        }
        self.violated(number, too_large());
    }

    /// The broker has ended a consumer: its queue is gone.
    pub fn ended(&mut self, consumer: ConsumerId) {
        let Some(feed) = self.feeds.remove(&consumer) else { return };
        if let Some(channel) = self.channels.get_mut(&feed.channel) {
            channel.consumers.remove(&*feed.tag);
        }
        if self.understands.cancel_notify {
            let cancel = basic::Cancel { consumer_tag: ShortText::cut(&feed.tag), no_wait: true };
            self.say(feed.channel, cancel);
        }
    }

    /// The broker has stopped a consumer that held a message for too long, or taken back what came of a `basic.get` or to a
    /// consumer that was cancelled; RabbitMQ closes the channel.
    pub fn timed_out(&mut self, consumer: ConsumerId, receipt: Receipt) {
        let of_feed = self.feeds.get(&consumer).map(|feed| feed.channel);
        let Some(number) = of_feed.or_else(|| self.holder_of(receipt)) else { return };
        let text = format!(
            "delivery acknowledgement on channel {number} timed out; settle messages sooner, or raise x-consumer-timeout of the queue"
        );
        self.violated(number, Violation::of(ReplyCode::PreconditionFailed, text));
    }

    /// The channel that this is out to, or that waits for a `tx.commit` to settle it.
    fn holder_of(&self, receipt: Receipt) -> Option<u16> {
        let is_holder = |channel: &Channel| {
            let of_transaction = channel.transaction.iter().flat_map(|transaction| &transaction.taken);
            channel.unacked.iter().chain(of_transaction).any(|held| held.receipt == receipt)
        };
        self.channels.iter().find(|(_, channel)| is_holder(channel)).map(|(number, _)| *number)
    }

    pub(super) fn feeds_of(&self, number: u16) -> Vec<ConsumerId> {
        let feeds = self.feeds.iter().filter(|(_, feed)| feed.channel == number);
        let mut consumers: Vec<ConsumerId> = feeds.map(|(consumer, _)| *consumer).collect();
        consumers.sort_unstable();
        consumers
    }

    /// As [`Self::feeds_of`]; whatever still comes for one of them is put back.
    pub(super) fn take_feeds(&mut self, number: u16) -> Vec<ConsumerId> {
        let consumers = self.feeds_of(number);
        for consumer in &consumers {
            self.feeds.remove(consumer);
        }
        consumers
    }

    fn is_live(&self, number: u16, life: u64) -> bool {
        self.channels.get(&number).is_some_and(|channel| channel.life == life && !channel.is_closing)
    }
}

/// Gives the room of a queue back that has nothing left, but for a little: an idle connection holds no memory for what it once had much of.
pub(super) fn give_back<T>(queue: &mut VecDeque<T>) {
    const KEPT_MAX: usize = 4;
    if queue.is_empty() {
        queue.shrink_to(KEPT_MAX);
    }
}

/// A count as the wire has it.
fn count(messages: u64) -> u32 {
    u32::try_from(messages).unwrap_or(u32::MAX)
}

/// A name that came from elsewhere may be longer than a short string.
fn cut(bytes: &[u8]) -> Short<'_> {
    Short::new(&bytes[..bytes.len().min(overtake_properties::SHORT_LEN_MAX)]).expect("it was cut")
}

fn too_large() -> Violation {
    let text = "the properties of the next message do not fit the frame that was agreed on; reconnect with a larger frame_max";
    Violation::of(ReplyCode::PreconditionFailed, text)
}
