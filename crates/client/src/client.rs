//! What an application asks.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::consumer::{ConsumeOptions, Consumer};
use crate::error::Error;
use crate::handler::{HandleOptions, Handling, IntoOutcome};
use crate::line::{Flight, Line, Numbers, REPLY_TO, Told, Way};
use crate::message::{Message, To};
use crate::options::ConnectOptions;
use crate::priority::{MadeIn, Priority, of_message};
use crate::received::Received;
use crate::topology::Topology;

/// A client of one broker. Clones share its connection, which is made again whenever it is lost; when the last clone is gone, with all that came of it, it is
/// closed.
///
/// While there is no connection, publishers wait as soon as [`ConnectOptions::unconfirmed_max`] is full; publishes that are not confirmed are sent again.
/// Consumers go on. A login that the broker refuses later, such as after a change of the password, is tried again, too: see
/// [`ConnectOptions::login_retry`].
#[derive(Clone)]
pub struct Client {
    line: Line,
    #[cfg(feature = "http")]
    topology: Arc<Topology>,
}

impl Client {
    /// Connects. The first attempt must succeed; a connection that is lost later is made again.
    ///
    /// # Errors
    /// [`Error::Invalid`], [`Error::LoginRefused`], [`Error::ConnectionLost`].
    pub async fn connect(options: impl Into<ConnectOptions>) -> Result<Self, Error> {
        let options = options.into();
        let address = options.address()?;
        #[cfg(feature = "http")]
        let topology = Topology::new(crate::http::Http::new(&options, &address)?);
        #[cfg(not(feature = "http"))]
        let topology = Topology {};
        let topology = Arc::new(topology);
        let way = Way {
            tls: if address.is_secure { Some(options.tls.config()?) } else { None },
            options: options.client_options(&address),
            host: address.host,
            port: address.port,
            patience: options.patience,
            login_retry: options.login_retry,
            topology: Arc::clone(&topology),
        };
        let numbers =
            options.exactly_once.then(|| drawn().map(|producer| Numbers { producer })).transpose()?;
        let line = Line::open(way, options.unconfirmed_max, numbers).await?;
        Ok(Self {
            line,
            #[cfg(feature = "http")]
            topology,
        })
    }

    // ---- what is there ----

    /// Makes a queue by its settings as JSON, such as `{"scheme": "signed"}`; `docs/queues.md` says which there are. A queue that is there is
    /// not changed: the settings that are named must be its own. After a connection was lost it is declared again if it is gone. Over HTTP,
    /// in the virtual host of the URL.
    ///
    /// # Errors
    /// [`Error::Refused`] with a status of HTTP: the settings make no sense, the user has no right to the queue, or it has other settings (409).
    #[cfg(feature = "http")]
    pub async fn declare_queue(&self, queue: &str, settings: &str) -> Result<(), Error> {
        self.topology.declare_queue(queue, settings).await
    }

    /// Makes an exchange by its settings as JSON: `{"kind": "topic"}`.
    ///
    /// # Errors
    /// As [`Client::declare_queue`].
    #[cfg(feature = "http")]
    pub async fn declare_exchange(&self, exchange: &str, settings: &str) -> Result<(), Error> {
        self.topology.declare_exchange(exchange, settings).await
    }

    /// Lets a queue have what comes to an exchange with this routing key, or this pattern.
    ///
    /// # Errors
    /// As [`Client::declare_queue`].
    #[cfg(feature = "http")]
    pub async fn bind_queue(&self, queue: &str, exchange: &str, routing_key: &str) -> Result<(), Error> {
        self.topology.bind_queue(queue, exchange, routing_key).await
    }

    /// Deletes a queue with what is in it.
    ///
    /// # Errors
    /// As [`Client::declare_queue`].
    #[cfg(feature = "http")]
    pub async fn delete_queue(&self, queue: &str) -> Result<(), Error> {
        self.topology.delete_queue(queue).await
    }

    /// Deletes an exchange.
    ///
    /// # Errors
    /// As [`Client::declare_queue`].
    #[cfg(feature = "http")]
    pub async fn delete_exchange(&self, exchange: &str) -> Result<(), Error> {
        self.topology.delete_exchange(exchange).await
    }

    // ---- publishing ----

    /// Publishes a message and waits until the broker has it on its disk. Its priority is what it says, else the scope's in which the future is first
    /// polled, else the scope's in which this is called, else none. The same holds for whatever publishes.
    ///
    /// When the connection is lost meanwhile, it is published again; with [`ConnectOptions::exactly_once`] it is there once all the same.
    ///
    /// # Errors
    /// [`Error::NotConfirmed`], [`Error::Unroutable`], [`Error::Refused`]; [`Error::Invalid`]; [`Error::Closed`], and without [`ConnectOptions::login_retry`]
    /// [`Error::LoginRefused`]: there will be no connection, and it may be there or not.
    pub fn publish<'a>(
        &'a self,
        to: impl Into<To<'a>>,
        message: Message,
    ) -> impl Future<Output = Result<(), Error>> + Send + 'a {
        let (to, made_in) = (to.into(), MadeIn::here());
        async move { send(&self.line, to, message, made_in.scope()).await?.wait().await }
    }

    /// Publishes messages and waits until all are confirmed. They go out together, and are in their queue in this order.
    ///
    /// # Errors
    /// The first one's that failed, once all are told. The others may be there.
    pub fn publish_all<'a>(
        &'a self,
        to: impl Into<To<'a>>,
        messages: impl IntoIterator<Item = Message, IntoIter: Send + 'a>,
    ) -> impl Future<Output = Result<(), Error>> + Send + 'a {
        let (to, made_in, messages) = (to.into(), MadeIn::here(), messages.into_iter());
        async move {
            let scope = made_in.scope();
            // The iterator may make its messages here, in scopes of their own.
            let sending = async {
                let mut confirms = Vec::new();
                for message in messages {
                    confirms.push(send(&self.line, to, message, scope).await?);
                }
                Ok::<_, Error>(confirms)
            };
            let mut result = Ok(());
            for confirm in of_message(scope, sending).await? {
                let told = confirm.wait().await;
                result = result.and(told);
            }
            result
        }
    }

    /// Publishes a message and waits for room only: until fewer than [`ConnectOptions::unconfirmed_max`] are unconfirmed. The [`Confirm`] tells what became of it.
    ///
    /// # Errors
    /// [`Error::Invalid`]. What the broker says comes with the confirm.
    pub fn send<'a>(
        &'a self,
        to: impl Into<To<'a>>,
        message: Message,
    ) -> impl Future<Output = Result<Confirm, Error>> + Send + 'a {
        let (to, made_in) = (to.into(), MadeIn::here());
        async move { send(&self.line, to, message, made_in.scope()).await }
    }

    // ---- consuming ----

    /// Consumes from a queue, most urgent first. See [`Consumer`]. `client.consume("jobs", 100)` has a window of 100.
    ///
    /// # Errors
    /// [`Error::Refused`]: no such queue, no right to it.
    pub async fn consume(&self, queue: &str, options: impl Into<ConsumeOptions>) -> Result<Consumer, Error> {
        Consumer::begin(&self.line, queue, options.into()).await
    }

    /// Hands each message to a function, in tasks of their own, each in a scope of the message's priority: what it publishes inherits that.
    /// What it returns says what becomes of the message: see [`IntoOutcome`]. A message whose handler panics is put back, and the others go on; the panic is
    /// logged at ERROR.
    ///
    /// `client.handle("jobs", 4, …)` handles four at a time, and no others are out.
    ///
    /// # Errors
    /// As [`Client::consume`].
    pub async fn handle<H, F>(
        &self,
        queue: &str,
        options: impl Into<HandleOptions>,
        handler: H,
    ) -> Result<Handling, Error>
    where
        H: Fn(Received) -> F + Send + 'static,
        F: Future<Output: IntoOutcome> + Send + 'static,
    {
        let HandleOptions { concurrency, consume } = options.into();
        let consumer = self.consume(queue, consume).await?;
        Ok(Handling::begin(queue, consumer, concurrency, handler))
    }

    /// Publishes a message and waits for a reply, so long. Whoever handles it answers with [`Delivery::reply`](crate::Delivery::reply), or by what the handler
    /// returns. The reply of a connection that is lost does not come any more.
    ///
    /// # Errors
    /// [`Error::TimedOut`]; [`Error::ConnectionLost`]; as [`Client::publish`].
    pub fn request<'a>(
        &'a self,
        to: impl Into<To<'a>>,
        message: Message,
        timeout: Duration,
    ) -> impl Future<Output = Result<Received, Error>> + Send + 'a {
        let (to, made_in) = (to.into(), MadeIn::here());
        async move {
            let scope = made_in.scope();
            let correlation_id = drawn()?;
            let asking = Asking { line: &self.line, correlation_id: &correlation_id };
            let reply = self.line.expect_reply(&correlation_id)?;
            let message = message.correlation_id(&correlation_id).reply_to(REPLY_TO);
            let asked = async {
                send(&self.line, to, message, scope).await?.wait().await?;
                let lost = |_| Error::ConnectionLost("it was lost while the reply was awaited".to_owned());
                reply.await.map_err(lost)
            };
            let answer = tokio::time::timeout(timeout, asked).await.unwrap_or(Err(Error::TimedOut));
            drop(asking);
            answer
        }
    }

    /// Closes the connection, once everything that was published is told. Clones, consumers and handlers end, too.
    pub async fn close(self) {
        self.line.close().await;
    }

    #[cfg(feature = "http")]
    pub(crate) fn http(&self) -> &crate::http::Http {
        &self.topology.http
    }

    #[cfg(feature = "http")]
    pub(crate) fn line(&self) -> &Line {
        &self.line
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").finish_non_exhaustive()
    }
}

/// Whoever gives up waiting for a reply is forgotten.
struct Asking<'a> {
    line: &'a Line,
    correlation_id: &'a str,
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        self.line.forget_reply(self.correlation_id);
    }
}

/// Sends a message where this scope holds.
pub(crate) async fn send(
    line: &Line,
    to: To<'_>,
    message: Message,
    scope: Option<Priority>,
) -> Result<Confirm, Error> {
    let To { exchange, routing_key, mandatory } = to;
    if exchange.len() > 255 || routing_key.len() > 255 {
        return Err(Error::Invalid("names and routing keys have at most 255 bytes".to_owned()));
    }
    let properties = message.properties(message.resolved(scope))?;
    let told = line
        .send(|told| Flight {
            exchange: exchange.into(),
            routing_key: routing_key.into(),
            mandatory,
            properties,
            body: message.body,
            told,
        })
        .await;
    Ok(Confirm(told))
}

/// A name that nobody else has.
pub(crate) fn drawn() -> Result<String, Error> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)
        .map_err(|error| Error::Invalid(format!("the system has no chance to give: {error}")))?;
    Ok(format!("{:032x}", u128::from_be_bytes(bytes)))
}

/// What becomes of a message that was sent: a future. Not awaiting it changes nothing for the message.
#[must_use = "only who awaits it knows that the message is safe"]
#[derive(Debug)]
pub struct Confirm(Told);

impl Confirm {
    /// Waits until the broker has it on its disk.
    ///
    /// # Errors
    /// As [`Client::publish`].
    pub async fn wait(self) -> Result<(), Error> {
        self.await
    }
}

impl Future for Confirm {
    type Output = Result<(), Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(cx).map(|told| told.unwrap_or(Err(Error::Closed)))
    }
}
