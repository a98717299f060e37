//! A message on its way out, as every protocol asks for it.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use overtake_engine::LeasedMessage;
use overtake_forward::Item;
use overtake_lane::{Given, Headers, MessageView, Origin, Receipt, Scheme, Time};
use overtake_properties::{Properties, Short};

use crate::priority::{PriorityTo, Said, in_text, said};

/// A message on its way out.
#[derive(Clone, Debug)]
pub(crate) struct Outgoing {
    leased: LeasedMessage,
    queue: Arc<str>,
    /// How the receiver says how urgent it is, where the endpoint is told.
    priority: Option<Arc<PriorityTo>>,
    origin: Option<Origin>,
    /// Whether the receiver may have the message.
    is_out: Arc<AtomicBool>,
}

impl Outgoing {
    pub(crate) fn new(leased: LeasedMessage, queue: Arc<str>) -> Self {
        Self { leased, queue, priority: None, origin: None, is_out: Arc::default() }
    }

    /// The same, for a receiver that says so how urgent it is.
    pub(crate) fn said(self, priority: Option<Arc<PriorityTo>>) -> Self {
        Self { priority, ..self }
    }

    /// The same, numbered.
    pub(crate) fn numbered(self, origin: Option<Origin>) -> Self {
        Self { origin, ..self }
    }

    /// Whether the receiver may have the message: a link got it, and has not said that it did not arrive.
    pub(crate) fn is_out(&self) -> bool {
        self.is_out.load(Ordering::Acquire)
    }

    pub(crate) fn set_out(&self, is_out: bool) {
        self.is_out.store(is_out, Ordering::Release);
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

    /// Its priority for a queue of this broker: each takes what is as urgent in its scheme.
    pub(crate) fn priority(&self) -> Given {
        let MessageView { scheme, level, priority, .. } = &self.leased.message;
        scheme.map_or_else(|| priority.clone(), |scheme| Given::Of(scheme, *level))
    }

    /// Its priority as the receiver says it; where the endpoint is not told, in the words of this scheme for one of its queue.
    pub(crate) fn priority_said(&self, usual: impl Fn(Scheme) -> Scheme) -> Said {
        said(self.priority.as_deref(), &self.leased.message, usual)
    }

    /// The same as text, and the scheme it is of; `None`: no priority.
    pub(crate) fn priority_text(&self) -> Option<(String, Option<Scheme>)> {
        let said = self.priority_said(in_text);
        Some((said.text()?, said.scheme))
    }

    /// Whether it says no priority in a queue of routes, where that is less urgent than 9: no scheme has a number for it, so it is said beside the priority.
    pub(crate) fn is_last_of_routes(&self) -> bool {
        let MessageView { scheme, level, .. } = &self.leased.message;
        let is_told_otherwise = matches!(self.priority.as_deref(), Some(PriorityTo::Table(_)));
        *scheme == Some(Scheme::Route) && level.0 == 0 && !is_told_otherwise
    }

    pub(crate) fn key(&self) -> Option<&str> {
        self.leased.message.key.as_deref()
    }

    /// The weight that its publisher gave its key.
    pub(crate) fn key_weight(&self) -> Option<u32> {
        self.leased.message.key_weight
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
