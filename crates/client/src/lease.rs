//! Messages that are leased over HTTP: for as long as it takes, whatever connections there are.

use std::ops::Deref;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use hyper::Method;
use overtake_amqp::client;
use overtake_properties::{Fields, Short, ShortText, TableBuilder, Value};
use serde_json::{Value as Json, json};
use tokio::runtime::Handle;
use tokio::task::AbortHandle;

use crate::client::Client;
use crate::delivery::reply;
use crate::error::Error;
use crate::handler::{IntoOutcome, how};
use crate::http::encoded;
use crate::line::How;
use crate::message::{Message, PRIORITY};
use crate::panics::{caught, said};
use crate::priority::{Priority, of_message};
use crate::received::Received;

/// What is wanted of a queue.
#[derive(Clone, Debug)]
pub struct LeaseOptions {
    max: u16,
    wait: Duration,
    length: Duration,
    worker: Option<String>,
}

impl LeaseOptions {
    /// At most so many messages, up to 1,000: those that are there, without waiting.
    #[must_use]
    pub fn max(max: u16) -> Self {
        Self { max: max.max(1), wait: Duration::ZERO, length: Duration::from_secs(30), worker: None }
    }

    /// If there is none, waits for the first so long, up to a minute.
    #[must_use]
    pub fn wait(self, wait: Duration) -> Self {
        Self { wait, ..self }
    }

    /// How long a lease lasts after its client is gone; else 30 s. While the client is there, leases are extended.
    #[must_use]
    pub fn lease(self, length: Duration) -> Self {
        Self { length: length.max(Duration::from_millis(10)), ..self }
    }

    /// What this worker calls itself, for people who ask who works on it.
    #[must_use]
    pub fn worker(self, worker: impl Into<String>) -> Self {
        Self { worker: Some(worker.into()), ..self }
    }
}

/// One message.
impl Default for LeaseOptions {
    fn default() -> Self {
        Self::max(1)
    }
}

impl Client {
    /// Leases messages over HTTP, most urgent first. An empty answer: none came.
    ///
    /// # Errors
    /// [`Error::Refused`] with a status of HTTP; [`Error::ConnectionLost`], [`Error::TimedOut`].
    pub async fn lease(&self, queue: &str, options: LeaseOptions) -> Result<Vec<Lease>, Error> {
        let LeaseOptions { max, wait, length, worker } = options;
        let path = format!("/v1/queues/{}", encoded(queue));
        let body =
            json!({"max": max, "wait_ms": ms(wait), "visibility_timeout_ms": ms(length), "worker": worker});
        let answer =
            self.http().ask(Method::POST, &format!("{path}/leases"), Some(text(&body)), wait).await?;
        let messages = answer["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
        Ok(messages.iter().map(|message| Lease::begin(self, &path, length, message)).collect())
    }
}

/// A message that is leased over HTTP. It reads as a [`Received`]. As long as it is there, the lease is extended. A lease that is dropped, such as by a task that is
/// aborted or panics, is put back as by [`Lease::nack`], without waiting; outside of a runtime it ends by itself.
#[must_use = "a lease that is dropped is put back"]
pub struct Lease {
    received: Received,
    held: Held,
    extending: AbortHandle,
    /// A settlement was sent.
    is_told: bool,
}

#[derive(Clone)]
struct Held {
    client: Client,
    /// Of the queue.
    path: String,
    receipt: String,
    is_over: Arc<AtomicBool>,
}

impl Lease {
    fn begin(client: &Client, path: &str, length: Duration, message: &Json) -> Self {
        let receipt = message["receipt"].as_str().unwrap_or_default().to_owned();
        let held = Held { client: client.clone(), path: path.to_owned(), receipt, is_over: Arc::default() };
        let extending = tokio::spawn(held.clone().keep(length)).abort_handle();
        Self { received: received(message), held, extending, is_told: false }
    }

    /// It is done: the broker forgets it, durably.
    ///
    /// # Errors
    /// [`Error::LeaseOver`]; as [`Client::lease`].
    pub async fn ack(self) -> Result<(), Error> {
        self.settle("ack", None).await
    }

    /// It failed and is put back: to its own place, or aside for as long as the queue's backoff says.
    ///
    /// # Errors
    /// As [`Lease::ack`].
    pub async fn nack(self) -> Result<(), Error> {
        self.settle("nack", None).await
    }

    /// It failed and is put back aside, for so long.
    ///
    /// # Errors
    /// As [`Lease::ack`].
    pub async fn nack_for(self, delay: Duration) -> Result<(), Error> {
        self.settle("nack", Some(delay)).await
    }

    /// It will never succeed: it is dead-lettered.
    ///
    /// # Errors
    /// As [`Lease::ack`].
    pub async fn reject(self) -> Result<(), Error> {
        self.settle("reject", None).await
    }

    /// Nothing was done: it is put back at once, and that is no failure.
    ///
    /// # Errors
    /// As [`Lease::ack`].
    pub async fn release(self) -> Result<(), Error> {
        self.settle("release", None).await
    }

    /// Sends a settlement. A lease whose settlement was sent is not put back when it is dropped, since the broker may have done it.
    async fn settle(mut self, how: &str, delay: Option<Duration>) -> Result<(), Error> {
        self.is_told = true;
        self.held.settle(how, delay).await
    }

    /// Lets the lease last so long from now. It is extended by itself besides.
    ///
    /// # Errors
    /// As [`Lease::ack`].
    pub async fn extend(&self, length: Duration) -> Result<(), Error> {
        self.held.extend(length).await
    }

    /// Whether the broker has said that it is over: the message was removed, or given to somebody else.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.held.is_over.load(Ordering::Relaxed)
    }

    /// Answers whoever published it and waits for a reply, over AMQP. Acknowledge it then.
    ///
    /// # Errors
    /// As [`Delivery::reply`](crate::Delivery::reply).
    pub async fn reply(&self, message: Message) -> Result<(), Error> {
        reply(self.held.client.line(), &self.received, message).await
    }

    /// Handles the message in a scope of its priority, and settles it by what the function returns: see [`IntoOutcome`]. When the function panics, the message
    /// is put back, and the panic goes on.
    ///
    /// # Errors
    /// As [`Lease::ack`].
    pub async fn handle<F>(self, handler: impl FnOnce(Received) -> F) -> Result<(), Error>
    where
        F: Future<Output: IntoOutcome>,
    {
        let handled = async { handler(self.received.clone()).await.into_outcome() };
        let outcome = match caught(of_message(self.received.priority(), handled)).await {
            Ok(outcome) => outcome,
            Err(panic) => {
                let why = said(&*panic);
                tracing::error!(panic = why, "a handler panicked; its message is put back");
                if let Err(error) = self.nack().await {
                    tracing::warn!(%error, "a message could not be put back; its lease ends by itself");
                }
                resume_unwind(panic)
            }
        };
        match how(self.held.client.line(), &self.received, outcome).await {
            How::Ack => self.ack().await,
            How::Nack => self.nack().await,
            How::Reject => self.reject().await,
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.extending.abort();
        if self.is_told || self.is_over() {
            return;
        }
        if let Ok(runtime) = Handle::try_current() {
            let held = self.held.clone();
            runtime.spawn(async move {
                if let Err(error) = held.settle("nack", None).await {
                    tracing::warn!(%error, "a message could not be put back; its lease ends by itself");
                }
            });
        }
    }
}

impl Deref for Lease {
    type Target = Received;

    fn deref(&self) -> &Received {
        &self.received
    }
}

impl std::fmt::Debug for Lease {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.received.fmt(f)
    }
}

impl Held {
    /// Extends the lease at each third of its length until it is over.
    async fn keep(self, length: Duration) {
        loop {
            tokio::time::sleep(length / 3).await;
            match self.extend(length).await {
                Err(Error::LeaseOver) => return,
                Err(error) => tracing::warn!(%error, "a lease could not be extended; it is tried again"),
                Ok(()) => {}
            }
        }
    }

    async fn extend(&self, length: Duration) -> Result<(), Error> {
        self.ask("extend", &json!({"receipts": [self.receipt], "visibility_timeout_ms": ms(length)})).await
    }

    async fn settle(&self, how: &str, delay: Option<Duration>) -> Result<(), Error> {
        let body = json!({"receipts": [self.receipt], "how": how, "delay_ms": delay.map(ms)});
        self.ask("settle", &body).await
    }

    async fn ask(&self, what: &str, body: &Json) -> Result<(), Error> {
        let path = format!("{}/{what}", self.path);
        let asked = self.client.http().ask(Method::POST, &path, Some(text(body)), Duration::ZERO).await;
        match asked {
            // One receipt: a conflict is about it (docs/queues.md).
            Err(Error::Refused { code: 409, .. }) => {
                self.is_over.store(true, Ordering::Relaxed);
                Err(Error::LeaseOver)
            }
            other => other.map(drop),
        }
    }
}

fn ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn text(json: &Json) -> Bytes {
    json.to_string().into()
}

/// A message as HTTP has it, as if it had come over AMQP.
fn received(message: &Json) -> Received {
    let said = |name: &str| message[name].as_str();
    let property = |name: &str| message["properties"][name].as_str().map(ShortText::cut).map(Short::from);
    let short = |name: &str| said(name).map(ShortText::cut).map(Short::from);
    let priority =
        message["given_priority"].as_i64().and_then(|number| i32::try_from(number).ok()).map(Priority);
    let byte = priority.and_then(|Priority(number)| u8::try_from(number).ok());
    let mut headers = TableBuilder::new();
    for (name, value) in message["headers"].as_object().into_iter().flatten() {
        let Some(name) = Short::new(name.as_bytes()) else { continue };
        headers = match value {
            Json::String(text) => headers.entry(name, Value::from(text)),
            Json::Bool(is) => headers.entry(name, Value::Bool(*is)),
            number => headers.entry(name, number.as_i64().map_or(Value::Void, Value::I64)),
        };
    }
    let count = message["delivery_count"].as_i64().unwrap_or_default();
    if count > 1 {
        headers = headers.entry(Short::literal("x-delivery-count"), Value::I64(count - 1));
    }
    if let Some(Priority(number)) = priority.filter(|_| byte.is_none()) {
        headers = headers.entry(Short::literal(PRIORITY), Value::I32(number));
    }
    let properties = Fields {
        content_type: short("content_type"),
        headers: (!headers.view().is_empty()).then(|| headers.view()),
        priority: byte,
        correlation_id: property("correlation_id"),
        reply_to: property("reply_to"),
        message_id: property("message_id").or(short("id")),
        kind: property("type"),
        app_id: property("app_id"),
        ..Fields::default()
    }
    .encode();
    let decoded = || said("body_base64").and_then(|text| STANDARD.decode(text).ok()).unwrap_or_default();
    let body = said("body").map_or_else(decoded, |text| text.as_bytes().to_vec());
    let exchange = Bytes::copy_from_slice(said("exchange").unwrap_or_default().as_bytes());
    let routing_key = message["routing_keys"][0].as_str().unwrap_or_default();
    let routing_key = Bytes::copy_from_slice(routing_key.as_bytes());
    Received::new(client::Message { exchange, routing_key, properties, body: body.into() }, count > 1)
}
