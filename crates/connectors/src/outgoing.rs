//! A message on its way out, as every protocol asks for it.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use overtake_engine::LeasedMessage;
use overtake_forward::Item;
use overtake_lane::{Given, Headers, Origin, Receipt, Time};
use overtake_properties::{Properties, Short};

/// A message on its way out.
#[derive(Clone, Debug)]
pub(crate) struct Outgoing {
    leased: LeasedMessage,
    queue: Arc<str>,
    origin: Option<Origin>,
}

impl Outgoing {
    pub(crate) fn new(leased: LeasedMessage, queue: Arc<str>) -> Self {
        Self { leased, queue, origin: None }
    }

    /// The same, numbered.
    pub(crate) fn numbered(self, origin: Option<Origin>) -> Self {
        Self { origin, ..self }
    }

    /// By what a receiver that numbers producers' messages knows it.
    pub(crate) fn origin(&self) -> Option<&Origin> {
        self.origin.as_ref()
    }

    /// As the forwarder sees it.
    pub(crate) fn item(&self) -> Item {
        let message = &self.leased.message;
        Item {
            receipt: self.leased.receipt,
            lane: Arc::clone(&message.lane),
            level: message.level,
            bytes: self.leased.content.size() as u64,
            expires: self.expires(),
            count: message.count,
        }
    }

    pub(crate) fn receipt(&self) -> Receipt {
        self.leased.receipt
    }

    /// When it expires, or [`Time::NEVER`].
    pub(crate) fn expires(&self) -> Time {
        self.leased.message.expires.unwrap_or(Time::NEVER)
    }

    /// The same at every attempt, and another one for each message: its publisher's id, else its property `message_id`, else where and when it
    /// was published.
    pub(crate) fn id(&self) -> Cow<'_, str> {
        let message = &self.leased.message;
        let own = (!message.id.starts_with("seq-")).then_some(message.id.as_str());
        let said = || self.properties().view().message_id().and_then(Short::text);
        match own.or_else(said) {
            Some(id) => Cow::Borrowed(id),
            None => Cow::Owned(format!("{}-{}-{}", self.queue, message.seq.0, message.since.0)),
        }
    }

    /// When its lease ends, or [`Time::NEVER`].
    pub(crate) fn held_until(&self) -> Time {
        self.leased.deadline.unwrap_or(Time::NEVER)
    }

    /// The queue it is from.
    pub(crate) fn queue(&self) -> &str {
        &self.queue
    }

    /// Its priority, as it was given.
    pub(crate) fn priority(&self) -> &Given {
        &self.leased.message.priority
    }

    pub(crate) fn key(&self) -> Option<&str> {
        self.leased.message.key.as_deref()
    }

    /// How often it was on its way, this time included.
    pub(crate) fn attempt(&self) -> u32 {
        self.leased.message.count
    }

    /// When it was published.
    pub(crate) fn published(&self) -> Time {
        self.leased.message.since
    }

    pub(crate) fn body(&self) -> &Bytes {
        &self.leased.content.body
    }

    pub(crate) fn properties(&self) -> &Properties {
        &self.leased.content.properties
    }

    pub(crate) fn content_type(&self) -> Option<&str> {
        self.leased.content.content_type()
    }

    pub(crate) fn headers(&self) -> Headers {
        self.leased.content.headers()
    }

    /// By which exchange and first routing key it came.
    pub(crate) fn route(&self) -> (&str, &str) {
        let route = self.leased.route();
        (&route.exchange, route.keys.first().map_or("", |key| key))
    }

    /// It with what it says, for a queue of this broker.
    pub(crate) fn leased(&self) -> &LeasedMessage {
        &self.leased
    }
}
