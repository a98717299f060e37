//! What an endpoint is: a queue, a receiver, and how to send.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use overtake_access::Desk;
use overtake_engine::{Connection, Failure};
use overtake_forward::{ForwarderView, Terms};
use overtake_lane::{Given, Priority, Refusal, Scheme, Time};
use serde::{Deserialize, Serialize, Serializer};
use tokio::sync::mpsc;

use crate::connector::{
    Connector, Flaw, NotConfigured, Pending, Place, Running, Site, WORDS_MAX, Words, must_name_a_queue,
};
use crate::epochs::Epochs;
use crate::priority::PriorityTo;
use crate::runner::{Post, Runner};
use crate::sink::Sink;
use crate::sink::amqp::AmqpReceiver;
use crate::sink::kafka::Kafka;
#[cfg(feature = "mqtt")]
use crate::sink::mqtt::MqttReceiver;
use crate::sink::queue::QueueReceiver;
#[cfg(feature = "redis")]
use crate::sink::redis::RedisReceiver;
use crate::sink::webhook::{SharedSink, Webhook};

/// A queue whose messages are sent to another system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Endpoint {
    /// The queue; by default the one of its own name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// The receiver.
    pub to: Receiver,
    /// The receiver only starts work with a message: a source hears how that ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub starts: Option<Starts>,
    /// How to send.
    #[serde(default, skip_serializing_if = "is_usual", serialize_with = "unusual")]
    pub send: Terms,
    /// How the receiver says how urgent a message is; by default in the words of the queue's scheme, or, where that has the smaller number first or AMQP has no
    /// words for it, as `max-9`. Not for a queue of this broker, which has a scheme itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<PriorityTo>,
    /// The least urgent priority, in the words of the queue's scheme, that may use the reserve of a day (`send.reserve_bytes`).
    #[serde(default, skip_serializing_if = "is_missing")]
    pub reserve_from: Given,
}

/// Work that the receiver starts with a message. The message stays leased, and keeps its slot, until an event settles it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Starts {
    /// So long after its lease a message that nothing has settled counts as failed and goes again, or to the dead letters, ms.
    pub deadline_ms: u64,
}

impl Starts {
    /// # Errors
    /// The flaw, as a phrase.
    fn check(&self, endpoint: &Endpoint) -> Result<(), String> {
        if matches!(endpoint.to, Receiver::Queue(_)) {
            return Err(
                "`to.queue` moves a message, which ends it here: name a receiver elsewhere".to_owned()
            );
        }
        if self.deadline_ms <= endpoint.send.batch_ms {
            let batch_ms = endpoint.send.batch_ms;
            return Err(format!("`deadline_ms` must be more than `send.batch_ms` ({batch_ms})"));
        }
        Ok(())
    }
}

fn is_usual(terms: &Terms) -> bool {
    *terms == Terms::default()
}

/// Only what is not as usual: so is it read again.
fn unusual<S: Serializer>(terms: &Terms, serializer: S) -> Result<S::Ok, S::Error> {
    let as_json = |terms: &Terms| serde_json::to_value(terms).unwrap_or_default();
    let usual = as_json(&Terms::default());
    let all = as_json(terms);
    let said = all.as_object().into_iter().flatten().filter(|(key, value)| usual.get(key) != Some(value));
    serializer.collect_map(said)
}

fn is_missing(given: &Given) -> bool {
    *given == Given::Missing
}

/// Where messages go.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Receiver {
    /// A queue or an exchange of this broker.
    Queue(QueueReceiver),
    /// An HTTP webhook.
    Webhook(Webhook),
    /// Another broker over AMQP 0-9-1.
    Amqp(AmqpReceiver),
    /// Topics of Kafka.
    Kafka(Kafka),
    /// Topics of an MQTT 5 server.
    #[cfg(feature = "mqtt")]
    Mqtt(MqttReceiver),
    /// A stream of Redis or Valkey.
    #[cfg(feature = "redis")]
    Redis(RedisReceiver),
}

impl Receiver {
    /// What kind it is: the key under `to`.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Queue(_) => "queue",
            Self::Webhook(_) => "webhook",
            Self::Amqp(_) => "amqp",
            Self::Kafka(_) => "kafka",
            #[cfg(feature = "mqtt")]
            Self::Mqtt(_) => "mqtt",
            #[cfg(feature = "redis")]
            Self::Redis(_) => "redis",
        }
    }
}

impl Endpoint {
    /// The queue of the endpoint of this name.
    #[must_use]
    pub fn queue_of(&self, name: &str) -> Arc<str> {
        self.queue.as_deref().unwrap_or(name).into()
    }

    /// What it sends to, as far as that can be known without a connection.
    ///
    /// # Errors
    /// The first flaw.
    fn outlet(&self, place: &Place) -> Result<Outlet, Flaw> {
        let queue = self.queue_of(&place.name);
        must_name_a_queue("queue", &queue)?;
        self.send.check().map_err(|bad| Flaw::of("send", bad))?;
        if self.priority.is_some() && matches!(self.to, Receiver::Queue(_)) {
            return Err(Flaw::of(
                "priority",
                "a queue of this broker has a scheme itself, and takes what is as urgent in it",
            ));
        }
        self.priority.as_ref().map_or(Ok(()), PriorityTo::check)?;
        let starts = self.starts.iter().try_for_each(|starts| starts.check(self));
        starts.map_err(|why| Flaw::of("starts", why))?;
        let within = |why: String| Flaw::of(format!("to.{}", self.to.kind()), why);
        #[cfg(feature = "mqtt")]
        if let Receiver::Mqtt(receiver) = &self.to {
            receiver.check_lines(self.send.fan_out).map_err(within)?;
        }
        self.to.outlet(place, &queue).map_err(within)
    }

    /// The least urgent priority that may use the reserve, as the scheme of the queue has it.
    async fn reserve(&self, engine: &Connection, queue: &str) -> Result<Option<Priority>, Flaw> {
        let scheme =
            engine.queue(queue).await.map_or_else(|_| Scheme::default(), |view| view.settings.scheme);
        self.reserve_in(scheme)
    }

    fn reserve_in(&self, scheme: Scheme) -> Result<Option<Priority>, Flaw> {
        if self.send.reserve_bytes == 0 {
            return Ok(None);
        }
        let why = |refusal: Refusal| format!("`{}`: {refusal}, which is {scheme}", self.reserve_from);
        scheme.map(&self.reserve_from).map(Some).map_err(|refusal| Flaw::of("reserve_from", why(refusal)))
    }

    async fn begin(&self, site: Site) -> Result<Running<ForwarderView>, NotConfigured> {
        let (post, budget) = self.post(site).await?;
        let (control, controlled) = mpsc::channel(WORDS_MAX);
        let task = tokio::spawn(Runner::new(post, budget).run(controlled));
        Ok(Running { control, task })
    }

    /// All that a runner needs, and what of a day is used. Nothing is written or sent.
    async fn post(&self, site: Site) -> Result<(Post, Option<(u64, u64)>), NotConfigured> {
        let Site { place, engine, life, is_paused } = site;
        let sink = self.outlet(&place)?.sink(&engine);
        let queue = self.queue_of(&place.name);
        let reserve_from = self.reserve(&engine, &queue).await?;
        // A queue that is made later may have any scheme; until then nothing is sent.
        if let (Some(priority), Ok(view)) = (&self.priority, engine.queue(&queue).await) {
            priority.check_with(view.settings.scheme)?;
        }
        let priority = self.priority.clone().map(Arc::new);
        let terms = Terms { reserve_from, ..self.send.clone() };
        let budget_key = budget_key(&place.ours());
        let budget = budget(&engine, &budget_key).await?;
        let deadline_ms = self.starts.as_ref().map(|starts| starts.deadline_ms);
        // A receiver that knows a message by its number would not start another attempt at it.
        let epochs = if sink.is_numbered() && deadline_ms.is_none() {
            Some(epochs(&engine, epochs_key(&place.ours()), &life, &queue).await?)
        } else {
            None
        };
        let Place { name, clock, .. } = place;
        let seed = clock.nanos();
        let post = Post {
            name,
            queue,
            priority,
            terms,
            sink,
            deadline_ms,
            engine,
            clock,
            epochs,
            budget_key,
            seed,
            is_paused,
        };
        Ok((post, budget))
    }

    async fn connect(&self, site: Site) -> Result<Result<(), String>, NotConfigured> {
        let sink = self.outlet(&site.place)?.sink(&site.engine);
        let queue = self.queue_of(&site.place.name);
        if let Err(failure) = site.engine.check_queue(&queue).await {
            return Ok(Err(format!("the queue {queue}: {failure}")));
        }
        let connect_ms = self.send.connect_ms;
        Ok(match tokio::time::timeout(Duration::from_millis(connect_ms), sink.connect()).await {
            Ok(connected) => connected.map(drop).map_err(|error| error.to_string()),
            Err(_) => Err(format!("no connection within {connect_ms} ms")),
        })
    }
}

impl Receiver {
    fn outlet(&self, place: &Place, queue: &str) -> Result<Outlet, String> {
        Ok(Outlet::There(match self {
            Self::Queue(receiver) => {
                receiver.check(queue)?;
                return Ok(Outlet::Here(receiver.clone()));
            }
            Self::Webhook(webhook) => {
                Arc::new(SharedSink(webhook.sink(place.vault, &place.vhost_name, queue)?))
            }
            Self::Amqp(receiver) => Arc::new(receiver.sink(place, queue)?),
            Self::Kafka(kafka) => kafka.sink(place.vault)?,
            #[cfg(feature = "mqtt")]
            Self::Mqtt(receiver) => Arc::new(receiver.sink(place.vault)?),
            #[cfg(feature = "redis")]
            Self::Redis(receiver) => Arc::new(receiver.sink(place.vault)?),
        }))
    }
}

/// What an endpoint sends to, once its settings are read.
enum Outlet {
    /// This broker.
    Here(QueueReceiver),
    /// Another system.
    There(Arc<dyn Sink>),
}

impl Outlet {
    fn sink(self, engine: &Connection) -> Arc<dyn Sink> {
        match self {
            Self::Here(receiver) => Arc::new(receiver.sink(engine)),
            Self::There(sink) => sink,
        }
    }
}

impl Connector for Endpoint {
    type View = ForwarderView;
    const WORDS: Words = Words {
        noun: "endpoint",
        room: "endpoints",
        deeds: ["endpoint.put", "endpoint.delete", "endpoint.pause", "endpoint.resume"],
    };

    fn check(&self, place: &Place) -> Result<(), Flaw> {
        if self.send.reserve_bytes == 0 && !is_missing(&self.reserve_from) {
            let why = "nothing is reserved: set `send.reserve_bytes`, or leave `reserve_from` out";
            return Err(Flaw::of("reserve_from", why));
        }
        self.outlet(place).map(drop)
    }

    fn check_beside(&self, name: &str, scheme: &dyn Fn(&str) -> Option<Scheme>) -> Result<(), Flaw> {
        let Some(scheme) = scheme(&self.queue_of(name)) else { return Ok(()) };
        self.priority.as_ref().map_or(Ok(()), |priority| priority.check_with(scheme))?;
        self.reserve_in(scheme).map(drop)
    }

    fn start(self: Arc<Self>, site: Site) -> Pending<'static, Result<Running<ForwarderView>, NotConfigured>> {
        Box::pin(async move { self.begin(site).await })
    }

    fn could_start(self: Arc<Self>, site: Site) -> Pending<'static, Result<(), NotConfigured>> {
        Box::pin(async move { self.post(site).await.map(drop) })
    }

    fn try_out(self: Arc<Self>, site: Site) -> Pending<'static, Result<Result<(), String>, NotConfigured>> {
        Box::pin(async move { self.connect(site).await })
    }

    fn is_seen_by(&self, by: &Desk, name: &str) -> bool {
        by.who().sees(by.vhost(), &self.queue_of(name))
    }

    fn at_rest(last_error: Option<(Time, Arc<str>)>) -> ForwarderView {
        ForwarderView {
            state: overtake_forward::State::Down,
            connections: 0,
            next_attempt: None,
            last_error,
            lanes: BTreeMap::new(),
            breakers: BTreeMap::new(),
            budget: None,
        }
    }

    fn kept_besides(ours: &str) -> Vec<String> {
        vec![budget_key(ours), epochs_key(ours)]
    }
}

/// Where is kept by which names receivers know messages.
fn epochs_key(ours: &str) -> String {
    format!("endpoint-epochs/{ours}")
}

/// By which names a receiver knows the messages of the queue.
async fn epochs(engine: &Connection, key: String, life: &str, queue: &str) -> Result<Epochs, Failure> {
    let kept = kept(engine, &key).await?;
    let view = engine.queue(queue).await.ok();
    Ok(Epochs::new(key, life, kept.as_deref(), view.as_ref()))
}

/// Where is kept what went on a day.
fn budget_key(ours: &str) -> String {
    format!("endpoint-budgets/{ours}")
}

/// A day, since 1970, and the bytes that went on it.
async fn budget(engine: &Connection, key: &str) -> Result<Option<(u64, u64)>, Failure> {
    let kept = kept(engine, key).await?;
    let text = kept.as_deref().and_then(|value| std::str::from_utf8(value).ok());
    Ok(text.and_then(|text| {
        let (day, used) = text.split_once(' ')?;
        Some((day.parse().ok()?, used.parse().ok()?))
    }))
}

/// The value of a key.
async fn kept(engine: &Connection, key: &str) -> Result<Option<Arc<[u8]>>, Failure> {
    let all = engine.metadata().await?;
    Ok(all.iter().find(|(name, _)| **name == *key).map(|(_, value)| Arc::clone(value)))
}
