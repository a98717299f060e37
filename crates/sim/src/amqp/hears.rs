//! What a client hears, and what it makes of it: every answer is the one it waits for, every tag the next.

use overtake_amqp::method::{channel as wire_channel, connection};
use overtake_amqp::{ContentHeader, Frame, FrameKind, Method, PROTOCOL_HEADER};
use overtake_properties::{Limits, Short, ShortText, TableBuilder, Value};

use super::channel::{Channel, Expect, Incoming, Sent, Taking, What};
use super::side::Stage;
use super::wire::{FRAME_MAX, Wire};
use crate::failure::{Checked, Promise, broken, hold};
use crate::world::World;

/// The highest reply code that costs a channel only; what is above is an error of the client or of the broker.
const SOFT_MAX: u16 = 406;
/// A connection that may be closed so: the operator ends it, or the store is full.
const ALLOWED: [u16; 2] = [320, 506];

fn text(text: &'static str) -> ShortText<'static> {
    ShortText::literal(text)
}

fn wrong<T>(wire: &Wire, what: impl std::fmt::Display) -> Checked<T> {
    broken(Promise::Alive, format!("the client of {:?} hears {what}", wire.session))
}

impl World {
    /// The client understands what has come.
    pub(super) fn listen(&mut self, wire: &mut Wire) -> Checked {
        loop {
            let bytes = wire.side.unread.split().freeze();
            let parsed = Frame::parse(&bytes, 0);
            let Ok(frame) = parsed else { return wrong(wire, format_args!("{parsed:?}")) };
            let Some(frame) = frame else {
                wire.side.unread.extend_from_slice(&bytes);
                return hold(!bytes.starts_with(&PROTOCOL_HEADER), Promise::Alive, || {
                    "the broker does not speak AMQP 0-9-1".to_owned()
                });
            };
            wire.side.unread.extend_from_slice(&bytes[frame.len()..]);
            let most = if wire.side.frame_max == 0 { FRAME_MAX } else { wire.side.frame_max };
            hold(frame.len() <= most as usize, Promise::Alive, || {
                format!("{:?} brings a frame of {} bytes, {most} were agreed on", wire.session, frame.len())
            })?;
            self.take(wire, &frame)?;
            if let Some(at) = wire.peer {
                let lost = wire.side.take_lost();
                self.peers.all[at].doubts.extend(lost);
            }
        }
    }

    fn take(&mut self, wire: &mut Wire, frame: &Frame<'_>) -> Checked {
        if wire.side.stage == Stage::Over {
            let method = Method::decode(frame.payload, &Limits::default());
            return wrong(wire, format_args!("a {:?} after the end: {method:?}", frame.kind));
        }
        match frame.kind {
            FrameKind::Heartbeat => Ok(()),
            FrameKind::Method => {
                let method = Method::decode(frame.payload, &Limits::default());
                let Ok(method) = method else { return wrong(wire, format_args!("{method:?}")) };
                self.tell(|| {
                    let text = format!("{method:?}");
                    format!(
                        "{:?} on {} hears {}",
                        wire.session,
                        frame.channel,
                        &text[..text.floor_char_boundary(300)]
                    )
                });
                self.trace.mix(&[
                    u64::from(frame.channel),
                    method.id().class.into(),
                    method.id().method.into(),
                ]);
                match frame.channel {
                    0 => self.on_connection(wire, &method),
                    number => self.on_channel(wire, number, &method),
                }
            }
            FrameKind::Header | FrameKind::Body => self.take_content(wire, frame),
        }
    }

    // ---- the connection ----

    fn on_connection(&mut self, wire: &mut Wire, method: &Method<'_>) -> Checked {
        match (wire.side.stage, method) {
            (Stage::Start, Method::ConnectionStart(_)) => {
                let yes = Value::Bool(wire.side.wants_notice);
                let capabilities = TableBuilder::new()
                    .entry(Short::literal("consumer_cancel_notify"), yes)
                    .entry(Short::literal("connection.blocked"), yes)
                    .entry(Short::literal("authentication_failure_close"), Value::Bool(true));
                let client = TableBuilder::new()
                    .entry(Short::literal("capabilities"), Value::Table(capabilities.view()));
                wire.say(
                    0,
                    connection::StartOk {
                        client_properties: client.view(),
                        mechanism: text("PLAIN"),
                        response: b"\0guest\0guest",
                        locale: text("en_US"),
                    },
                );
                wire.side.stage = Stage::Tune;
            }
            (Stage::Tune, Method::ConnectionTune(tune)) => {
                let frame_max = wire.habits.frame_max;
                let heartbeat = tune.heartbeat;
                wire.say(0, connection::TuneOk { channel_max: 0, frame_max, heartbeat });
                wire.side.frame_max = if frame_max == 0 { tune.frame_max } else { frame_max };
                let (virtual_host, capabilities) = (text("/"), text(""));
                wire.say(0, connection::Open { virtual_host, capabilities, insist: false });
                wire.side.stage = Stage::Open;
            }
            (Stage::Open, Method::ConnectionOpenOk(_)) => wire.side.stage = Stage::Running,
            (Stage::Closing, Method::ConnectionCloseOk(_)) => wire.side.stage = Stage::Over,
            (Stage::Running, Method::ConnectionBlocked(_)) if !wire.side.is_blocked => {
                wire.side.is_blocked = true;
                self.tally.blocked += 1;
            }
            (Stage::Running, Method::ConnectionUnblocked(_)) if wire.side.is_blocked => {
                wire.side.is_blocked = false;
            }
            (Stage::Closing, Method::ConnectionBlocked(_) | Method::ConnectionUnblocked(_)) => {}
            (_, Method::ConnectionClose(close)) => {
                wire.say(0, connection::CloseOk {});
                wire.side.stage = Stage::Over;
                if !ALLOWED.contains(&close.reply_code) {
                    return wrong(wire, format_args!("{close:?}"));
                }
            }
            (stage, method) => return wrong(wire, format_args!("{method:?} in {stage:?}")),
        }
        Ok(())
    }

    // ---- a channel ----

    fn on_channel(&mut self, wire: &mut Wire, number: u16, method: &Method<'_>) -> Checked {
        let Some(channel) = wire.side.channels.get_mut(&number) else {
            return wrong(wire, format_args!("{method:?} on channel {number}, which is not open"));
        };
        if channel.content.is_some() {
            return wrong(wire, format_args!("{method:?} within a content"));
        }
        match method {
            Method::ChannelClose(close) => return self.channel_closed(wire, number, close),
            Method::ChannelCloseOk(_) if channel.is_closing => {
                wire.side.end_channel(number);
                return Ok(());
            }
            Method::BasicAck(ack) if channel.unconfirmed.contains_key(&ack.delivery_tag) => {
                return self.confirmed(wire, number, ack.delivery_tag, ack.multiple, true);
            }
            Method::BasicNack(nack) if channel.unconfirmed.contains_key(&nack.delivery_tag) => {
                return self.confirmed(wire, number, nack.delivery_tag, nack.multiple, false);
            }
            Method::BasicDeliver(deliver) => {
                let taker = deliver.consumer_tag.text().unwrap_or("").to_owned();
                let (tag, redelivered) = (deliver.delivery_tag, deliver.redelivered);
                let what = What::Deliver { taker, tag, redelivered };
                channel.content = Some(Incoming::new(what, deliver.exchange, deliver.routing_key));
            }
            Method::BasicReturn(returned) => {
                let (exchange, key) = (returned.exchange, returned.routing_key);
                channel.content = Some(Incoming::new(What::Returned, exchange, key));
            }
            Method::BasicCancel(cancel) if wire.side.wants_notice => {
                let gone = channel.takers.remove(cancel.consumer_tag.as_str());
                if gone.is_none() {
                    return wrong(wire, format_args!("{cancel:?}, and knows no such consumer"));
                }
            }
            answer => return self.answered_by(wire, number, answer),
        }
        Ok(())
    }

    fn channel_closed(&mut self, wire: &mut Wire, number: u16, close: &wire_channel::Close<'_>) -> Checked {
        let is_closing = wire.side.channels[&number].is_closing;
        self.tally.channel_errors += 1;
        wire.say(number, wire_channel::CloseOk {});
        if is_closing {
            // Both have closed it: the answer to ours is still to come.
            let channel = wire.side.channels.get_mut(&number).expect("it is closing");
            channel.expects.clear();
        } else {
            wire.side.end_channel(number);
        }
        if close.reply_code > SOFT_MAX {
            return wrong(wire, format_args!("{close:?}"));
        }
        Ok(())
    }

    /// An answer, which must be the next that is waited for.
    fn answered_by(&mut self, wire: &mut Wire, number: u16, method: &Method<'_>) -> Checked {
        let session = wire.session;
        let channel = wire.side.channels.get_mut(&number).expect("it was just seen");
        let Some((said, expect)) = channel.expects.pop_front() else {
            return wrong(wire, format_args!("{method:?}, and waits for nothing"));
        };
        let mut is_durable = false;
        match (&expect, method) {
            (Expect::ChannelOpen, Method::ChannelOpenOk(_))
            | (Expect::ConfirmSelect, Method::ConfirmSelectOk(_))
            | (Expect::TxSelect, Method::TxSelectOk(_))
            | (Expect::Qos, Method::BasicQosOk(_))
            | (Expect::Recover, Method::BasicRecoverOk(_)) => {}
            (Expect::Declare, Method::QueueDeclareOk(_))
            | (Expect::Bind, Method::QueueBindOk(_))
            | (Expect::Purge, Method::QueuePurgeOk(_))
            | (Expect::Delete, Method::QueueDeleteOk(_)) => is_durable = true,
            (Expect::Consume(tag), Method::BasicConsumeOk(ok)) if ok.consumer_tag.as_str() == tag => {}
            (Expect::Cancel(tag), Method::BasicCancelOk(ok)) if ok.consumer_tag.as_str() == tag => {
                channel.takers.remove(tag);
            }
            (Expect::Get { .. }, Method::BasicGetEmpty(_)) => {}
            (Expect::Get { no_ack, queue }, Method::BasicGetOk(got)) => {
                let (tag, redelivered) = (got.delivery_tag, got.redelivered);
                let what = What::Got { queue: queue.clone(), no_ack: *no_ack, tag, redelivered };
                channel.content = Some(Incoming::new(what, got.exchange, got.routing_key));
            }
            (Expect::Commit(transaction), Method::TxCommitOk(_)) => {
                is_durable = true;
                for mark in &transaction.marks {
                    hold(self.peers.taken.contains(mark), Promise::Kept, || {
                        format!("{session:?} is told that m/{mark} is committed, and it is not")
                    })?;
                }
                for out in &transaction.acked {
                    self.check_gone(out)?;
                }
            }
            (Expect::Rollback, Method::TxRollbackOk(_)) => {}
            _ => return wrong(wire, format_args!("{method:?}, and waits for {expect:?}")),
        }
        if is_durable { self.is_done(wire, number, said) } else { Ok(()) }
    }

    /// Publishes are confirmed, or refused.
    fn confirmed(
        &mut self,
        wire: &mut Wire,
        number: u16,
        tag: u64,
        multiple: bool,
        is_taken: bool,
    ) -> Checked {
        let channel = wire.side.channels.get_mut(&number).expect("it was just seen");
        let first = if multiple { 0 } else { tag };
        let told: Vec<u64> = channel.unconfirmed.range(first..=tag).map(|(number, _)| *number).collect();
        let mut said_before = 0;
        for at in told {
            let Sent { said, message } = channel.unconfirmed.remove(&at).expect("it was just seen");
            said_before = said;
            let Some(message) = message else { continue };
            let mark = super::letters::mark(&message);
            let marks = if is_taken { &self.peers.taken } else { &self.peers.refused };
            hold(marks.contains(&mark), Promise::Kept, || {
                let what = if is_taken { "confirmed" } else { "refused" };
                format!("{:?} is told that m/{mark} is {what}, and it is not durably so", wire.session)
            })?;
            if !is_taken && let Some(at) = wire.peer.filter(|_| self.chance.amqp.once_in(2)) {
                self.peers.all[at].doubts.push(message);
            }
        }
        self.tally.confirms += 1;
        self.is_done(wire, number, said_before)
    }

    // ---- contents ----

    fn take_content(&mut self, wire: &mut Wire, frame: &Frame<'_>) -> Checked {
        let number = frame.channel;
        let channel = wire.side.channels.get_mut(&number);
        let Some(incoming) = channel.and_then(|channel| channel.content.as_mut()) else {
            return wrong(wire, format_args!("a content on channel {number} that nothing announced"));
        };
        match (frame.kind, &incoming.properties) {
            (FrameKind::Header, None) => {
                let Ok(header) = ContentHeader::decode(frame.payload, &Limits::default()) else {
                    return wrong(wire, "a header that makes no sense");
                };
                incoming.properties = Some(header.properties.to_properties());
                incoming.body_len = header.body_len;
            }
            (FrameKind::Body, Some(_)) => incoming.body.extend_from_slice(frame.payload),
            _ => return wrong(wire, "header and body in no order"),
        }
        if (incoming.body.len() as u64) < incoming.body_len {
            return Ok(());
        }
        let channel = wire.side.channels.get_mut(&number).expect("it was just seen");
        let incoming = channel.content.take().expect("it is whole");
        self.has_come(wire, number, &incoming)
    }
}

impl Incoming {
    fn new(what: What, exchange: Short<'_>, routing_key: Short<'_>) -> Self {
        Self {
            what,
            exchange: exchange.as_bytes().to_vec(),
            routing_key: routing_key.as_bytes().to_vec(),
            properties: None,
            body_len: 0,
            body: Vec::new(),
        }
    }
}

/// A delivery, by its method alone: the next tag, of a consumer that is there, within its window.
pub(super) fn check_tag(channel: &Channel, tag: u64, taking: Option<&Taking>) -> Result<(), String> {
    if tag != channel.last + 1 {
        return Err(format!("delivery {tag} after {}", channel.last));
    }
    if taking.is_none() {
        return Err(format!("delivery {tag} for a consumer that it does not have"));
    }
    Ok(())
}
