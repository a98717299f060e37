//! What a server says on a channel, method by method.

use super::channel::{Carrier, Channel, Closing};
use super::{Answer, Client, Event, Stage};
use crate::incoming::{Incoming, unexpected};
use crate::method::{Method, MethodId, basic, channel, confirm, exchange, queue};
use crate::reply::ReplyCode;
use crate::violation::Violation;

impl Client {
    pub(super) fn take_on_channel(&mut self, number: u16, method: &Method<'_>) -> Result<(), Violation> {
        let Some(channel) = self.open_one(number)? else { return Ok(()) };
        match (channel.closing, method) {
            (Closing::Broken, Method::ChannelCloseOk(_)) => drop(self.channels.remove(&number)),
            (Closing::Broken, Method::ChannelClose(_)) => self.say(number, channel::CloseOk {}),
            (Closing::Broken, _) => {}
            _ if channel.incoming.is_some() => return Err(unexpected("expected content, got a method")),
            (_, Method::ChannelClose(close)) => self.channel_closed(number, close),
            _ => return self.hear(number, method),
        }
        Ok(())
    }

    /// The channel, if anything counts that the server says now.
    pub(super) fn open_one(&mut self, number: u16) -> Result<Option<&mut Channel>, Violation> {
        match self.stage {
            Stage::Running | Stage::Closing => match self.channels.get_mut(&number) {
                None => Err(Violation::of(ReplyCode::ChannelError, format!("channel {number} is not open"))),
                open => Ok(open),
            },
            Stage::Broken => Ok(None),
            _ => Err(Violation::of(ReplyCode::ChannelError, "the connection is not open")),
        }
    }

    fn channel_closed(&mut self, number: u16, close: &channel::Close<'_>) {
        self.say(number, channel::CloseOk {});
        let (code, text) = (close.reply_code, close.reply_text.as_str().to_owned());
        self.events.push(Event::ChannelClosed { channel: number, code, text });
        let is_asked = self.channels.remove(&number).is_some_and(|channel| channel.closing == Closing::Asked);
        if is_asked {
            // The server is to answer our close, too.
            let broken = Channel { closing: Closing::Broken, ..Channel::default() };
            self.channels.insert(number, broken);
        }
    }

    fn hear(&mut self, number: u16, method: &Method<'_>) -> Result<(), Violation> {
        match method {
            Method::BasicDeliver(_) | Method::BasicReturn(_) | Method::BasicGetOk(_) => {
                self.begin_content(number, method)
            }
            Method::BasicAck(ack) => self.confirmed(number, ack.delivery_tag, ack.multiple, true),
            Method::BasicNack(nack) => self.confirmed(number, nack.delivery_tag, nack.multiple, false),
            Method::BasicCancel(cancel) => {
                let consumer_tag = cancel.consumer_tag.as_str().to_owned();
                self.events.push(Event::ConsumerCancelled { channel: number, consumer_tag });
                if !cancel.no_wait {
                    self.say(number, basic::CancelOk { consumer_tag: cancel.consumer_tag });
                }
                Ok(())
            }
            Method::ChannelFlow(flow) => {
                self.channel(number).is_halted = !flow.active;
                self.say(number, channel::FlowOk { active: flow.active });
                self.events.push(Event::Flow { channel: number, is_active: flow.active });
                Ok(())
            }
            method => self.answered(number, method),
        }
    }

    fn answered(&mut self, number: u16, method: &Method<'_>) -> Result<(), Violation> {
        let Some((request, answer)) = answer(method) else {
            let text = format!("{} does not come from a server", method.name());
            return Err(Violation::of(ReplyCode::CommandInvalid, text));
        };
        self.check_awaited(number, request, method)?;
        if request == channel::Close::ID {
            self.channels.remove(&number);
        }
        self.events.push(Event::Answered { channel: number, request, answer });
        Ok(())
    }

    fn check_awaited(
        &mut self,
        number: u16,
        request: MethodId,
        method: &Method<'_>,
    ) -> Result<(), Violation> {
        if self.channel(number).answered(request) {
            return Ok(());
        }
        let text = format!("{} answers nothing that was asked", method.name());
        Err(Violation::of(ReplyCode::CommandInvalid, text))
    }

    fn confirmed(
        &mut self,
        number: u16,
        tag: u64,
        multiple: bool,
        is_accepted: bool,
    ) -> Result<(), Violation> {
        let channel = self.channels.get_mut(&number).expect("the channel is open");
        let Some(unconfirmed) = &mut channel.unconfirmed else {
            return Err(Violation::of(ReplyCode::CommandInvalid, "nobody asked for confirms"));
        };
        let events = &mut self.events;
        let tell = |tags| events.push(Event::Confirmed { channel: number, tags, is_accepted });
        if unconfirmed.confirm(tag, multiple, tell) {
            return Ok(());
        }
        Err(Violation::of(ReplyCode::PreconditionFailed, format!("unknown delivery tag {tag}")))
    }

    fn begin_content(&mut self, number: u16, method: &Method<'_>) -> Result<(), Violation> {
        let (carrier, word, exchange, routing_key) = match *method {
            Method::BasicReturn(basic::Return { reply_code: code, reply_text, exchange, routing_key }) => {
                (Carrier::Return { code }, reply_text, exchange, routing_key)
            }
            Method::BasicDeliver(basic::Deliver {
                consumer_tag,
                delivery_tag,
                redelivered,
                exchange,
                routing_key,
            }) => (Carrier::Deliver { delivery_tag, redelivered }, consumer_tag, exchange, routing_key),
            Method::BasicGetOk(ok) => {
                self.check_awaited(number, basic::Get::ID, method)?;
                let basic::GetOk { delivery_tag, redelivered, exchange, routing_key, message_count } = ok;
                let carrier = Carrier::GetOk { delivery_tag, redelivered, message_count };
                (carrier, Default::default(), exchange, routing_key)
            }
            _ => return Err(unexpected("expected a method with content")),
        };
        let channel = self.channel(number);
        channel.names.hear(word, exchange, routing_key);
        channel.incoming = Some(Incoming::begin(carrier));
        Ok(())
    }

    /// A channel that is open.
    pub(super) fn channel(&mut self, number: u16) -> &mut Channel {
        self.channels.get_mut(&number).expect("the channel is open")
    }
}

/// What a method answers, and how.
fn answer(method: &Method<'_>) -> Option<(MethodId, Answer)> {
    Some(match method {
        Method::ChannelOpenOk(_) => (channel::Open::ID, Answer::Done),
        Method::ChannelCloseOk(_) => (channel::Close::ID, Answer::Done),
        Method::ConfirmSelectOk(_) => (confirm::Select::ID, Answer::Done),
        Method::ExchangeDeclareOk(_) => (exchange::Declare::ID, Answer::Done),
        Method::ExchangeDeleteOk(_) => (exchange::Delete::ID, Answer::Done),
        Method::ExchangeBindOk(_) => (exchange::Bind::ID, Answer::Done),
        Method::ExchangeUnbindOk(_) => (exchange::Unbind::ID, Answer::Done),
        Method::QueueDeclareOk(ok) => {
            let (messages, consumers) = (ok.message_count, ok.consumer_count);
            (queue::Declare::ID, Answer::Queue { name: ok.queue.as_str().to_owned(), messages, consumers })
        }
        Method::QueueBindOk(_) => (queue::Bind::ID, Answer::Done),
        Method::QueueUnbindOk(_) => (queue::Unbind::ID, Answer::Done),
        Method::QueuePurgeOk(ok) => (queue::Purge::ID, Answer::Count(ok.message_count)),
        Method::QueueDeleteOk(ok) => (queue::Delete::ID, Answer::Count(ok.message_count)),
        Method::BasicQosOk(_) => (basic::Qos::ID, Answer::Done),
        Method::BasicConsumeOk(ok) => {
            (basic::Consume::ID, Answer::Consuming(ok.consumer_tag.as_str().to_owned()))
        }
        Method::BasicCancelOk(ok) => {
            (basic::Cancel::ID, Answer::Cancelled(ok.consumer_tag.as_str().to_owned()))
        }
        Method::BasicGetEmpty(_) => (basic::Get::ID, Answer::Empty),
        Method::BasicRecoverOk(_) => (basic::Recover::ID, Answer::Done),
        _ => return None,
    })
}
