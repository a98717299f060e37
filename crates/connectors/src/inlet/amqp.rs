//! A queue of another broker over AMQP 0-9-1: consumed with acknowledgements, which are given when the messages are durable here.
//!
//! What can never be taken is rejected, so that it is dead-lettered there, or dropped if the queue says nothing of dead letters.

use std::sync::Arc;

use overtake_amqp::client::{Event, Message};
use overtake_amqp::method::{basic, queue};
use overtake_lane::Given;
use overtake_peer::{Secret, Tls};
use overtake_properties::{Fields, Properties, PropertiesRef, Short, TableRef};
use serde::{Deserialize, Serialize};

use super::{Fate, Incoming, Inlet, Origin};
use crate::amqp::{
    AmqpServer, AmqpWay, CHANNEL, PRIORITY, PRIORITY_NONE, PRIORITY_SCHEME, Wire, short, unsent,
};
use crate::connector::Place;
use crate::sink::{LinkError, Work};
use crate::texts::{self, NONE_OF_ROUTES};

/// Most messages on their way here, where nothing is said.
const PREFETCH: u16 = 500;

/// A queue of another broker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AmqpUpstream {
    /// `amqp://HOST:PORT/VHOST` or `amqps://…`; the virtual host percent-encoded, by default `/`.
    pub url: String,
    /// The user; without one, and with a certificate in `tls`, whoever that names.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub user: String,
    /// The user's password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<Secret>,
    /// Seconds between signs of life; the server may want them more often.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heartbeat_s: Option<u16>,
    /// Under `amqps://`.
    #[serde(default, skip_serializing_if = "Tls::is_plain")]
    pub tls: Tls,
    /// The queue.
    pub queue: String,
    /// Most messages that are on their way here and not durable yet, 1 or more.
    #[serde(default = "prefetch")]
    pub prefetch: u16,
    /// Their `message_id` names a message, and no other ever: one that comes again while it waits here is known. Many publishers use one id for
    /// several messages; then all but one would be lost.
    #[serde(default)]
    pub unique_message_ids: bool,
}

fn prefetch() -> u16 {
    PREFETCH
}

pub(crate) struct AmqpOrigin {
    way: AmqpWay,
    upstream: AmqpUpstream,
}

impl AmqpUpstream {
    /// # Errors
    /// What is wrong with it, as a phrase.
    pub(crate) fn origin(&self, place: &Place) -> Result<AmqpOrigin, String> {
        if self.prefetch == 0 {
            return Err(
                "`prefetch` must be at least 1: with 0 the server sends all it has, and it would wait in \
                        memory here"
                    .to_owned(),
            );
        }
        let way = self.server().way(place.vault, &place.name, Arc::clone(&place.clock))?;
        Ok(AmqpOrigin { way, upstream: self.clone() })
    }

    fn server(&self) -> AmqpServer {
        let Self { url, user, password, heartbeat_s, tls, .. } = self.clone();
        AmqpServer { url, user, password, heartbeat_s, tls }
    }
}

impl Origin for AmqpOrigin {
    fn connect(&self) -> Work<'_, Result<Box<dyn Inlet>, LinkError>> {
        Box::pin(async {
            let mut wire = self.way.connect().await?;
            let name = &self.upstream.queue;
            let queue = short(name)?;
            wire.ask(queue::Declare { queue, passive: true, ..Default::default() }).await?;
            wire.ask(basic::Qos { prefetch_count: self.upstream.prefetch, ..Default::default() }).await?;
            wire.ask(basic::Consume { queue, ..Default::default() }).await?;
            let inlet = AmqpInlet { wire, has_ids: self.upstream.unique_message_ids, taken: Vec::new() };
            Ok(Box::new(inlet) as Box<dyn Inlet>)
        })
    }
}

struct AmqpInlet {
    wire: Wire,
    has_ids: bool,
    /// What was handed over and is not settled, by its delivery tag.
    taken: Vec<u64>,
}

impl AmqpInlet {
    fn incoming(&self, message: Message) -> Incoming {
        let Message { exchange, routing_key, properties, body } = message;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let view = properties.view();
        let id = view.message_id().and_then(Short::text).filter(|_| self.has_ids);
        let header =
            |name: &str| view.headers().and_then(|headers| headers.get(name)?.text().map(str::to_owned));
        let weight = view.headers().and_then(|headers| headers.get("x-overtake-key-weight"));
        let weight =
            weight.map(|weight| weight.int().and_then(|weight| weight.try_into().ok()).unwrap_or(u32::MAX));
        let ttl_ms = view.expiration().and_then(Short::text).and_then(|text| text.parse().ok());
        Incoming {
            id: id.unwrap_or_default().to_owned(),
            key: header("x-overtake-key"),
            key_weight: weight,
            path: if routing_key.is_empty() { text(&exchange) } else { text(&routing_key) },
            priority: priority(view),
            scheme: header(PRIORITY_SCHEME),
            is_last_of_routes: header(PRIORITY_NONE).as_deref() == Some(NONE_OF_ROUTES),
            ttl_ms,
            properties: without_what_is_told(view),
            body,
            ..Incoming::default()
        }
    }
}

/// How urgent it says it is: by the header where there is one, as another Overtake and its clients say what the property has no room for.
fn priority(view: PropertiesRef<'_>) -> Given {
    let header = view.headers().and_then(|headers| headers.get(PRIORITY));
    let said =
        header.and_then(|value| value.int().map(Given::Number).or_else(|| value.text().map(texts::given)));
    let property = || view.priority().map(|priority| Given::Number(priority.into()));
    said.or_else(property).unwrap_or_default()
}

fn without_what_is_told(view: PropertiesRef<'_>) -> Properties {
    let told = [PRIORITY, PRIORITY_SCHEME, PRIORITY_NONE];
    let headers = view.headers().filter(|headers| told.iter().any(|name| headers.get(name).is_some()));
    let without = |headers: TableRef<'_>| {
        headers.without(PRIORITY).view().without(PRIORITY_SCHEME).view().without(PRIORITY_NONE)
    };
    match headers.map(without) {
        None => view.with_expiration(None),
        Some(headers) => {
            let headers = Some(headers.view());
            Fields { headers, expiration: None, ..Fields::of(view) }.encode()
        }
    }
}

impl Inlet for AmqpInlet {
    fn receive(&mut self, max: usize) -> Work<'_, Result<Vec<Incoming>, LinkError>> {
        Box::pin(async move {
            let mut all = Vec::new();
            let mut event = Some(self.wire.next().await?);
            loop {
                match event {
                    Some(Event::Delivered { delivery_tag, message, .. }) => {
                        self.taken.push(delivery_tag);
                        all.push(self.incoming(message));
                    }
                    Some(Event::ConsumerCancelled { .. }) => {
                        return Err("the server ended the consumer: the queue is gone".to_owned().into());
                    }
                    _ => {}
                }
                // From here on nothing is waited for, so nothing is lost when the wait is given up.
                event = if all.len() < max { self.wire.heard() } else { None };
                if event.is_none() && !all.is_empty() {
                    return Ok(all);
                }
                if event.is_none() {
                    event = Some(self.wire.next().await?);
                }
            }
        })
    }

    /// What comes meanwhile is kept, which is no more than `prefetch` allows.
    fn lost(&mut self) -> Work<'_, LinkError> {
        Box::pin(self.wire.lost())
    }

    fn settle(&mut self, fates: Vec<Fate>) -> Work<'_, Result<(), LinkError>> {
        Box::pin(async move {
            let taken = std::mem::take(&mut self.taken);
            for (at, (delivery_tag, fate)) in taken.iter().copied().zip(&fates).enumerate() {
                // One word for a run of them.
                let is_run = *fate == Fate::Taken && fates.get(at + 1) == Some(&Fate::Taken);
                match fate {
                    Fate::Taken if is_run => Ok(()),
                    Fate::Taken => self.wire.client.ask(CHANNEL, basic::Ack { delivery_tag, multiple: true }),
                    Fate::Refused => {
                        self.wire.client.ask(CHANNEL, basic::Reject { delivery_tag, requeue: false })
                    }
                }
                .map_err(unsent)?;
            }
            self.wire.flush().await
        })
    }

    fn close(&mut self) -> Work<'_, ()> {
        Box::pin(self.wire.close("the source ends"))
    }
}

#[cfg(test)]
mod tests {
    use overtake_properties::{Table, TableBuilder, Value};

    use super::*;

    fn check(property: Option<u8>, header: Option<Value<'_>>, expected: &Given) {
        let more = TableBuilder::new().entry(Short::literal("more"), Value::I32(1)).finish();
        let headers = header.map_or(more.clone(), |value| more.view().with(Short::literal(PRIORITY), value));
        let headers = Some(headers.view());
        let said = Fields { priority: property, headers, expiration: Short::new(b"7"), ..Fields::default() }
            .encode();
        assert_eq!(priority(said.view()), *expected);
        let kept = without_what_is_told(said.view());
        assert_eq!(kept.view().headers().map(|headers| headers.to_table()), Some::<Table>(more));
        assert_eq!((kept.view().priority(), kept.view().expiration()), (property, None));
    }

    #[test]
    fn the_header_goes_before_the_property_and_no_further() {
        check(None, None, &Given::Missing);
        check(Some(7), None, &Given::Number(7));
        check(Some(7), Some(Value::I32(-50)), &Given::Number(-50));
        check(None, Some(Value::from("high")), &Given::Name("high".to_owned()));
        check(None, Some(Value::from("300")), &Given::Number(300));
        check(Some(7), Some(Value::Void), &Given::Number(7));
    }
}
