//! An exchange or a queue of another broker over AMQP 0-9-1, with publisher confirms.
//!
//! | what the server says | means |
//! |---|---|
//! | `basic.ack` | accepted |
//! | `basic.return`, then `basic.ack` | no queue gets it: failed, and tried again |
//! | `basic.nack` | no room there: the lane is left alone for a second |
//! | the channel or the connection ends | lost: what has no confirm is sent again, with the same `message_id` |
//!
//! `message_id` is the message's id, `expiration` what is left of its time to live when it is sent, and `priority` as it was given, where AMQP
//! can say it.

use std::collections::VecDeque;
use std::sync::Arc;

use overtake_amqp::client::Event;
use overtake_amqp::method::{basic, confirm, exchange, queue};
use overtake_forward::Answer;
use overtake_lane::Time;
use overtake_peer::{Secret, Tls};
use overtake_properties::{Fields, Properties, Short, ShortText, Table, TableRef, Value};
use serde::{Deserialize, Serialize};

use super::{Link, LinkError, Sink, Work};
use crate::amqp::{
    AmqpServer, AmqpWay, CHANNEL, PRIORITY, PRIORITY_NONE, PRIORITY_SCHEME, Wire, short, unsent,
};
use crate::connector::Place;
use crate::outbox::Outbox;
use crate::outgoing::Outgoing;
use crate::priority::{Said, in_numbers};
use crate::texts::NONE_OF_ROUTES;

/// So many messages are on their way at most: what is written already cannot be stopped for something more urgent.
const WINDOW: usize = 16;
/// A lane for which there is no room is left alone for so long, ms.
const BUSY_MS: u64 = 1_000;

/// An exchange or a queue of another broker.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AmqpReceiver {
    /// `amqp://HOST:PORT/VHOST` or `amqps://…`; the virtual host percent-encoded, by default `/`.
    pub url: String,
    /// The user; without one, and with a certificate in `tls`, whoever that names.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub user: String,
    /// The user's password.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password: Option<Secret>,
    /// Seconds between signs of life; the server may want them more often.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heartbeat_s: Option<u16>,
    /// Under `amqps://`.
    #[serde(skip_serializing_if = "Tls::is_plain")]
    pub tls: Tls,
    /// The exchange; by default the one that leads to each queue by its name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub exchange: String,
    /// The routing key; by default each message's own, and without an exchange the name of the queue it is from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub routing_key: Option<String>,
    /// Messages are transient there: they need no disk, and are lost with the server.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub transient: bool,
}

pub(crate) struct AmqpSink {
    way: AmqpWay,
    receiver: AmqpReceiver,
    queue: String,
}

impl AmqpReceiver {
    /// # Errors
    /// What is wrong with it, as a phrase.
    pub(crate) fn sink(&self, place: &Place, queue: &str) -> Result<AmqpSink, String> {
        short(&self.exchange)?;
        short(self.routing_key.as_deref().unwrap_or_default())?;
        let way = self.server().way(place.vault, &place.name, Arc::clone(&place.clock))?;
        Ok(AmqpSink { way, receiver: self.clone(), queue: queue.to_owned() })
    }

    fn server(&self) -> AmqpServer {
        let Self { url, user, password, heartbeat_s, tls, .. } = self.clone();
        AmqpServer { url, user, password, heartbeat_s, tls }
    }
}

impl Sink for AmqpSink {
    fn is_numbered(&self) -> bool {
        true
    }

    fn connect(&self) -> Work<'_, Result<Box<dyn Link>, LinkError>> {
        Box::pin(async {
            let mut wire = self.way.connect().await?;
            let exchange = short(&self.receiver.exchange)?;
            // A passive declaration of what is not there closes the channel, and says so in words.
            if !self.receiver.exchange.is_empty() {
                wire.ask(exchange::Declare { exchange, passive: true, ..Default::default() }).await?;
            } else {
                let name = self.receiver.routing_key.as_deref().unwrap_or(&self.queue);
                wire.ask(queue::Declare { queue: short(name)?, passive: true, ..Default::default() }).await?;
            }
            wire.ask(confirm::Select::default()).await?;
            let link = AmqpLink {
                wire,
                receiver: self.receiver.clone(),
                queue: self.queue.clone(),
                unconfirmed: VecDeque::new(),
            };
            Ok(Box::new(link) as Box<dyn Link>)
        })
    }
}

struct AmqpLink {
    wire: Wire,
    receiver: AmqpReceiver,
    queue: String,
    /// By its number there: its number in the outbox, its bytes, and why no queue gets it.
    unconfirmed: VecDeque<(u64, usize, u64, Option<String>)>,
}

impl AmqpLink {
    fn publish(&mut self, outbox: &Outbox<'_>, at: usize) -> Result<(), LinkError> {
        let message = outbox.get(at);
        let mut properties = properties(message, outbox.now(), self.receiver.transient, self.wire.is_of_ours);
        if self.wire.is_of_ours {
            properties = for_ours(message, &properties);
        }
        let own = if self.receiver.exchange.is_empty() { self.queue.as_str() } else { message.route().1 };
        let routing_key = self.receiver.routing_key.as_deref().unwrap_or(own);
        let publish = basic::Publish {
            exchange: short(&self.receiver.exchange)?.into(),
            routing_key: short(routing_key)?.into(),
            mandatory: true,
            ..Default::default()
        };
        let body = message.body();
        let bytes = (properties.as_bytes().len() + body.len()) as u64;
        let tag = self.wire.client.publish(CHANNEL, publish, properties.view(), body).map_err(unsent)?;
        let tag = tag.expect("publishes are confirmed");
        self.unconfirmed.push_back((tag, at, bytes, None));
        Ok(())
    }

    fn hear(&mut self, outbox: &Outbox<'_>, event: Event) {
        match event {
            Event::Returned { tag: Some(tag), code, text, .. } => {
                let back = self.unconfirmed.iter_mut().find(|(sent, ..)| *sent == tag);
                if let Some((.., why)) = back {
                    *why = Some(format!("no queue gets it there: {code} {}", String::from_utf8_lossy(&text)));
                }
            }
            Event::Confirmed { tags, is_accepted, .. } => {
                let (done, rest) = self.unconfirmed.drain(..).partition(|(tag, ..)| tags.contains(tag));
                self.unconfirmed = rest;
                let done: VecDeque<_> = done;
                for (_, at, bytes, why) in done {
                    let answer = match why {
                        Some(why) => Answer::Failed { busy_ms: None, why: why.into() },
                        None if is_accepted => Answer::Accepted { bytes },
                        None => Answer::Failed {
                            busy_ms: Some(BUSY_MS),
                            why: "the server has no room for it now (basic.nack)".into(),
                        },
                    };
                    outbox.answer(at, answer);
                }
            }
            // While it is blocked nothing is confirmed, and the batch is given up in its time.
            _ => {}
        }
    }
}

impl Link for AmqpLink {
    fn send<'a>(&'a mut self, outbox: &'a mut Outbox<'_>) -> Work<'a, Result<(), LinkError>> {
        Box::pin(async move {
            self.unconfirmed.clear();
            loop {
                while self.unconfirmed.len() < WINDOW
                    && let Some(at) = outbox.next()
                {
                    self.publish(outbox, at)?;
                    self.wire.flush().await?;
                    while let Some(event) = self.wire.heard() {
                        self.hear(outbox, event);
                    }
                }
                if self.unconfirmed.is_empty() {
                    return Ok(());
                }
                let event = self.wire.next().await?;
                self.hear(outbox, event);
            }
        })
    }

    fn lost(&mut self) -> Work<'_, LinkError> {
        Box::pin(async {
            loop {
                if let Err(error) = self.wire.next().await {
                    return error;
                }
            }
        })
    }
}

/// What only an Overtake understands: one that comes again is known, its id is its id, and its key is its key.
fn for_ours(message: &Outgoing, properties: &Properties) -> Properties {
    let view = properties.view();
    let headers = view.headers().map(|headers| headers.to_table()).unwrap_or_default();
    let id = message.id();
    let mut headers = headers.view().with(Short::literal("x-overtake-id"), Value::String(id.as_bytes()));
    if let Some(key) = message.key() {
        headers = headers.view().with(Short::literal("x-overtake-key"), Value::String(key.as_bytes()));
    }
    let number = |number: u64| Value::I64(i64::try_from(number).unwrap_or(i64::MAX));
    if let Some(weight) = message.key_weight() {
        headers = headers.view().with(Short::literal("x-overtake-key-weight"), number(weight.into()));
    }
    if let Some(origin) = message.origin() {
        let name = Value::String(origin.producer().as_bytes());
        headers = headers.view().with(Short::literal("x-overtake-producer"), name);
        headers = headers.view().with(Short::literal("x-overtake-sequence"), number(origin.sequence()));
        headers = headers.view().with(Short::literal("x-overtake-floor"), number(origin.floor()));
    }
    view.with_headers(Some(headers.view()))
}

/// The properties of a message there. Another Overtake gets the priority in the words of the queue here, since each queue there takes what is as urgent.
fn properties(message: &Outgoing, now: Time, transient: bool, is_of_ours: bool) -> Properties {
    let id = message.id();
    let left = message.expires().some().map(|at| at.since(now).to_string());
    let said = Fields::of(message.properties().view());
    let priority = message.priority_said(|scheme| if is_of_ours { scheme } else { in_numbers(scheme) });
    let headers = headers(said.headers, &priority, message.is_last_of_routes());
    Fields {
        headers: headers.as_ref().map(Table::view),
        message_id: Some(Short::from(ShortText::cut(&id))),
        expiration: left.as_deref().map(|left| Short::from(ShortText::cut(left))),
        priority: priority.byte(),
        delivery_mode: Some(if transient { 1 } else { 2 }),
        timestamp: said.timestamp.or(Some(message.published().0 / 1_000)),
        // It is checked against whoever is connected, which is this endpoint.
        user_id: None,
        ..said
    }
    .encode()
}

/// The headers of a message, with its priority where the property has no room for it, and the scheme that the priority is of. Those of an earlier hop go.
fn headers(own: Option<TableRef<'_>>, priority: &Said, is_last_of_routes: bool) -> Option<Table> {
    let without = own.unwrap_or(TableRef::EMPTY).without(PRIORITY);
    let mut headers = without.view().without(PRIORITY_SCHEME).view().without(PRIORITY_NONE);
    if let Some(text) = priority.text().filter(|_| priority.byte().is_none()) {
        headers = headers.view().with(Short::literal(PRIORITY), Value::String(text.as_bytes()));
    }
    if let Some(scheme) = priority.scheme {
        let scheme = scheme.to_string();
        headers = headers.view().with(Short::literal(PRIORITY_SCHEME), Value::String(scheme.as_bytes()));
    }
    if is_last_of_routes {
        let none = Value::String(NONE_OF_ROUTES.as_bytes());
        headers = headers.view().with(Short::literal(PRIORITY_NONE), none);
    }
    (own.is_some() || headers != Table::default()).then_some(headers)
}
