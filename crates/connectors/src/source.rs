//! What a source is: another system, where its messages go, and how urgent they are.

use std::fmt;
use std::sync::Arc;

use overtake_access::Desk;
use overtake_engine::{Content, NewMessage, ROUTES_EXCHANGE, Sender, Target};
use overtake_lane::{Given, HeaderValue, Refusal, Scheme, Time};
use overtake_properties::Properties;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use crate::connector::{
    Connector, Flaw, NotConfigured, Pending, Place, Running, Site, WORDS_MAX, Words, must_name_a_queue,
};
use crate::inlet::amqp::AmqpUpstream;
use crate::inlet::kafka::KafkaTopics;
#[cfg(feature = "mqtt")]
use crate::inlet::mqtt::MqttSource;
#[cfg(feature = "redis")]
use crate::inlet::redis::RedisSource;
use crate::inlet::{Incoming, Origin, Parts};
use crate::intake::{CONNECT, Intake, IntakeState, IntakeView};
use crate::priority::{PriorityFrom, Said};
use crate::settling::Settles;
use crate::template::Template;
use crate::texts::{in_body, in_header};

/// Most messages that are taken in at once, where nothing is said.
const BATCH: u32 = 500;
/// Most there may be.
const BATCH_MAX: u32 = 10_000;

/// Another system whose messages are taken in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// Where they come from.
    pub from: Upstream,
    /// Where they go.
    pub to: Destination,
    /// How urgent they are; by default as each says itself: over AMQP in its property, else in its header, user property or field `priority`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<PriorityFrom>,
    /// Where the id of a message stands; by default, and where there is none, it is the message's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<TextFrom>,
    /// Where it says whose it is; by default, and where it does not, it is as its property `user_id` says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_id: Option<TextFrom>,
    /// Into this queue goes what can never be taken, with the reason in the header `x-refused`. Without it, it is left to the other system where
    /// that has a place for it (AMQP: dead-lettered), else it is dropped and counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused_to: Option<String>,
    /// Most messages that are taken in at once, 1 to 10,000.
    #[serde(default = "batch")]
    pub batch: u32,
}

fn batch() -> u32 {
    BATCH
}

/// Where messages come from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Upstream {
    /// A queue of another broker over AMQP 0-9-1.
    Amqp(AmqpUpstream),
    /// Topics of Kafka.
    Kafka(KafkaTopics),
    /// Topics of an MQTT 5 server.
    #[cfg(feature = "mqtt")]
    Mqtt(MqttSource),
    /// Streams of Redis or Valkey.
    #[cfg(feature = "redis")]
    Redis(RedisSource),
}

/// Where messages go, in the virtual host of the source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Destination {
    /// A queue.
    Queue(String),
    /// An exchange, by this routing key, or by where each message came from.
    Exchange {
        /// Its name.
        name: String,
        /// The routing key.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        routing_key: Option<String>,
    },
    /// The routes, which also say how urgent each copy is: the path they see. In it `{topic}` is where each message came from (a topic, a stream, a routing key),
    /// and `{device}`, `{module}` and `{path}` what the template of `from.mqtt` says.
    Routes(String),
    /// No queue: the messages are events, and settle messages of a queue.
    Settle(Settles),
}

/// Where a text stands in a message that came in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TextFrom {
    /// A header: a text or a whole number.
    Header(String),
    /// A value in a JSON body, a text or a whole number, by its JSON pointer (RFC 6901), as `/execution_id`.
    Body(String),
}

impl TextFrom {
    /// # Errors
    /// The flaw, as a phrase that begins with `key`.
    pub(crate) fn check(&self, key: &str) -> Result<(), String> {
        match self {
            Self::Body(pointer) if !pointer.starts_with('/') => Err(format!(
                "`{key}.body` must be a JSON pointer, as \"/{}\"",
                pointer.trim_start_matches("$.")
            )),
            Self::Header(name) if name.is_empty() => {
                Err(format!("`{key}.header` must be the name of a header"))
            }
            _ => Ok(()),
        }
    }

    /// The text in an event; `None`: there is none, or it is empty.
    ///
    /// # Errors
    /// The value should stand in the body, and the body is no JSON: as a phrase.
    pub(crate) fn of_event(&self, incoming: &Incoming) -> Result<Option<String>, String> {
        let text = self.of(incoming);
        match self {
            Self::Body(pointer)
                if text.is_none() && serde_json::from_slice::<IgnoredAny>(&incoming.body).is_err() =>
            {
                Err(format!("its body is no JSON, so nothing is at `{pointer}`"))
            }
            _ => Ok(text),
        }
    }

    /// The text, or any other value of the body as the JSON that it is; `None`: the value is missing, empty, or null.
    pub(crate) fn of_any(&self, incoming: &Incoming) -> Option<String> {
        self.of(incoming).or_else(|| {
            let Self::Body(pointer) = self else { return None };
            let json: serde_json::Value = serde_json::from_slice(&incoming.body).ok()?;
            let value = json.pointer(pointer)?;
            (!value.is_null() && !value.is_string()).then(|| value.to_string())
        })
    }

    /// The text; `None`: there is none, or it is empty.
    pub(crate) fn of(&self, incoming: &Incoming) -> Option<String> {
        let value = match self {
            Self::Header(name) => in_header(name, incoming.properties.view()),
            Self::Body(pointer) => in_body(pointer, &incoming.body),
        };
        let text = match value? {
            HeaderValue::Int(number) => number.to_string(),
            HeaderValue::Text(text) => text,
            _ => return None,
        };
        (!text.is_empty()).then_some(text)
    }
}

impl fmt::Display for TextFrom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Header(name) => write!(f, "the header `{name}`"),
            Self::Body(pointer) => write!(f, "`{pointer}` of the JSON body"),
        }
    }
}

impl Upstream {
    /// What kind it is: the key under `from`.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Amqp(_) => "amqp",
            Self::Kafka(_) => "kafka",
            #[cfg(feature = "mqtt")]
            Self::Mqtt(_) => "mqtt",
            #[cfg(feature = "redis")]
            Self::Redis(_) => "redis",
        }
    }

    /// Whether it is told which device published a message, which module, and what it is about.
    fn names(&self) -> [bool; 3] {
        match self {
            #[cfg(feature = "mqtt")]
            Self::Mqtt(source) => source.names(),
            _ => [false; 3],
        }
    }

    fn origin(&self, place: &Place) -> Result<Arc<dyn Origin>, String> {
        Ok(match self {
            Self::Amqp(upstream) => Arc::new(upstream.origin(place)?),
            Self::Kafka(topics) => topics.origin(place.vault, &place.known_as())?,
            #[cfg(feature = "mqtt")]
            Self::Mqtt(source) => Arc::new(source.origin(place.vault, &*place.clock)?),
            #[cfg(feature = "redis")]
            Self::Redis(source) => Arc::new(source.origin(place.vault, &place.known_as(), &place.clock)?),
        })
    }
}

impl Source {
    /// What it takes from, as far as that can be known without a connection.
    ///
    /// # Errors
    /// The first flaw.
    fn origin(&self, place: &Place) -> Result<Arc<dyn Origin>, Flaw> {
        if !(1..=BATCH_MAX).contains(&self.batch) {
            return Err(Flaw::of("", format_args!("`batch` must be 1 to {BATCH_MAX}")));
        }
        if let Destination::Queue(name) = &self.to {
            must_name_a_queue("to.queue", name)?;
        }
        for (key, from) in [("id", &self.id), ("user_id", &self.user_id)] {
            from.iter().try_for_each(|from| from.check(key)).map_err(|why| Flaw::of("", why))?;
        }
        if let Destination::Settle(settles) = &self.to {
            settles.check(self.id.as_ref())?;
        }
        self.refused_to.iter().try_for_each(|name| must_name_a_queue("refused_to", name))?;
        self.priority.as_ref().map_or(Ok(()), PriorityFrom::check)?;
        self.check_path()?;
        self.from.origin(place).map_err(|why| Flaw::of(format!("from.{}", self.from.kind()), why))
    }

    /// # Errors
    /// The path of the routes has a place that nothing fills.
    fn check_path(&self) -> Result<(), Flaw> {
        let Destination::Routes(path) = &self.to else { return Ok(()) };
        let names = self.from.names();
        for place in template(path).map_err(|why| Flaw::of("to.routes", why))?.fields() {
            let (is_named, name) = match place {
                PathPart::Topic => continue,
                PathPart::Device => (names[0], "device"),
                PathPart::Module => (names[1], "module"),
                PathPart::Path => (names[2], "path"),
            };
            if !is_named {
                return Err(Flaw::of(
                    "to.routes",
                    format!("{{{name}}} must be a level of `from.mqtt.template`"),
                ));
            }
        }
        Ok(())
    }

    /// The queue or exchange that messages go to.
    pub(crate) fn destination(&self) -> &str {
        match &self.to {
            Destination::Queue(name) | Destination::Exchange { name, .. } => name,
            Destination::Settle(settles) => &settles.queue,
            Destination::Routes(_) => ROUTES_EXCHANGE,
        }
    }

    /// An incoming message, as it is published here; and why it cannot be taken, where that is known already.
    pub(crate) fn message(&self, incoming: Incoming) -> (NewMessage, Result<(), String>) {
        let said = |from: &Option<TextFrom>| from.as_ref().and_then(|from| from.of(&incoming));
        let (named, user) = (said(&self.id), said(&self.user_id));
        let Incoming {
            id,
            key,
            key_weight,
            path,
            place: _,
            parts,
            priority,
            scheme,
            is_last_of_routes,
            properties,
            ttl_ms,
            body,
        } = incoming;
        let (parts, known) = match parts {
            Ok(parts) => (parts, Ok(())),
            Err(why) => (Parts::default(), Err(why)),
        };
        let scheme = scheme.map(|text| text.parse().map_err(|_| Refusal::PriorityUnknown)).transpose();
        let usual = PriorityFrom::default();
        let from = self.priority.as_ref().unwrap_or(&usual);
        let read = match &self.priority {
            None if is_last_of_routes => Ok(Given::of_route(None)),
            _ => scheme
                .and_then(|scheme| from.read(Said { given: priority, scheme }, properties.view(), &body)),
        };
        let (priority, known) = match read {
            Ok(priority) => (priority, known),
            Err(refusal) => (Given::Missing, known.and(Err(refusal.to_string()))),
        };
        let to = self.target(&path, &parts);
        let module = parts.module.as_deref().map(|module| format!("/{module}"));
        let device = |device: &String| format!("{device}{}", module.unwrap_or_default()).into();
        let sender = Sender::believed(parts.device.as_ref().map(device));
        let content = Content { properties, body, ..Content::default() };
        let content = match user {
            Some(user) => content.with_user_id(&user),
            None => content,
        };
        let id = named.unwrap_or(id);
        let id = (!id.is_empty()).then_some(id);
        let message = NewMessage {
            to,
            sender,
            priority,
            id,
            key,
            key_weight,
            ttl_ms,
            content,
            ..NewMessage::default()
        };
        (message, known)
    }

    fn target(&self, path: &str, parts: &Parts) -> Target {
        let exchange = |name: &str, routing_key: &str| Target::Exchange {
            name: name.into(),
            routing_key: routing_key.into(),
            more_keys: Vec::new(),
            mandatory: true,
        };
        match &self.to {
            Destination::Queue(name) => Target::Queue(name.as_str().into()),
            Destination::Settle(settles) => Target::Queue(settles.queue.as_str().into()),
            Destination::Exchange { name, routing_key } => {
                exchange(name, routing_key.as_deref().unwrap_or(path))
            }
            Destination::Routes(routes) => exchange(ROUTES_EXCHANGE, &routed(routes, path, parts)),
        }
    }

    /// What could not be taken, for the queue that is named for it.
    pub(crate) fn set_aside(queue: &str, refused: &NewMessage, why: &str) -> NewMessage {
        let mut headers = refused.content.headers();
        headers.insert("x-refused".to_owned(), HeaderValue::Text(why.to_owned()));
        let described = Content::new(refused.content.content_type(), &headers, refused.content.body.clone());
        let properties: Properties = described.properties;
        let is_possible = overtake_lane::check_key(refused.key.as_deref(), refused.key_weight).is_ok();
        NewMessage {
            to: Target::Queue(queue.into()),
            id: refused.id.clone(),
            key: refused.key.clone().filter(|_| is_possible),
            key_weight: refused.key_weight.filter(|_| is_possible),
            content: Content { properties, body: refused.content.body.clone(), ..Content::default() },
            ..NewMessage::default()
        }
    }
}

/// A place in the path that routes see, which each message fills.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PathPart {
    Topic,
    Device,
    Module,
    Path,
}

const PATH_PARTS: [(&str, PathPart); 4] = [
    ("topic", PathPart::Topic),
    ("device", PathPart::Device),
    ("module", PathPart::Module),
    ("path", PathPart::Path),
];

fn template(path: &str) -> Result<Template<PathPart>, String> {
    Template::parse(path, &PATH_PARTS)
}

/// The path that routes see; `path` is where the message came from.
fn routed(routes: &str, path: &str, parts: &Parts) -> String {
    let said = |place| {
        let said = match place {
            PathPart::Topic => Some(path),
            PathPart::Device => parts.device.as_deref(),
            PathPart::Module => parts.module.as_deref(),
            PathPart::Path => parts.path.as_deref(),
        };
        Ok::<_, String>(said.unwrap_or_default().to_owned())
    };
    template(routes).and_then(|template| template.fill(said)).unwrap_or_else(|_| routes.to_owned())
}

impl Connector for Source {
    type View = IntakeView;
    const WORDS: Words = Words {
        noun: "source",
        room: "sources",
        deeds: ["source.put", "source.delete", "source.pause", "source.resume"],
    };

    fn check(&self, place: &Place) -> Result<(), Flaw> {
        self.origin(place).map(drop)
    }

    fn at_rest(last_error: Option<(Time, Arc<str>)>) -> IntakeView {
        IntakeView::of_nothing(IntakeState::Down, last_error)
    }

    fn check_beside(&self, _name: &str, scheme: &dyn Fn(&str) -> Option<Scheme>) -> Result<(), Flaw> {
        let Destination::Queue(queue) = &self.to else { return Ok(()) };
        let both = scheme(queue).zip(self.priority.as_ref());
        both.map_or(Ok(()), |(scheme, priority)| priority.check_with(scheme))
    }

    fn start(self: Arc<Self>, site: Site) -> Pending<'static, Result<Running<IntakeView>, NotConfigured>> {
        Box::pin(async move {
            let origin = self.origin(&site.place)?;
            let (control, controlled) = tokio::sync::mpsc::channel(WORDS_MAX);
            let task = tokio::spawn(Intake::new(site, self, origin).run(controlled));
            Ok(Running { control, task })
        })
    }

    fn could_start(self: Arc<Self>, site: Site) -> Pending<'static, Result<(), NotConfigured>> {
        Box::pin(async move { Ok(self.origin(&site.place).map(drop)?) })
    }

    fn try_out(self: Arc<Self>, site: Site) -> Pending<'static, Result<Result<(), String>, NotConfigured>> {
        Box::pin(async move {
            let origin = self.origin(&site.place)?;
            let there = match &self.to {
                Destination::Queue(name) => site.engine.check_queue(name).await.map(drop),
                Destination::Settle(settles) => site.engine.check_queue(&settles.queue).await.map(drop),
                Destination::Exchange { name, .. } => site.engine.exchange(name).await.map(drop),
                Destination::Routes(_) => Ok(()),
            };
            if let Err(failure) = there {
                return Ok(Err(format!("{}: {failure}", self.destination())));
            }
            Ok(match tokio::time::timeout(CONNECT, origin.try_out()).await {
                Ok(connected) => connected.map_err(|error| error.to_string()),
                Err(_) => Err(format!("no connection within {CONNECT:?}")),
            })
        })
    }

    fn is_seen_by(&self, by: &Desk, _name: &str) -> bool {
        by.who().sees(by.vhost(), self.destination())
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use overtake_lane::{Headers, Priority, Scheme};
    use serde_json::json;

    use super::*;

    /// What a source says of a message with the property 3 and the header `urgency`, which says itself that it is `high`.
    fn priority(said: serde_json::Value) -> Given {
        let mut source = json!({"from": {"amqp": {"url": "amqp://h", "queue": "q"}}, "to": {"queue": "in"}});
        if !said.is_null() {
            source["priority"] = said;
        }
        let source: Source = serde_json::from_value(source).expect("a source");
        let headers: Headers = [("urgency".to_owned(), HeaderValue::Text("low".to_owned()))].into();
        let body = Bytes::from(r#"{"level": "-7"}"#);
        let content = Content::new(None, &headers, body.clone());
        let properties = content.properties.view().with_priority(Some(3));
        let own = Given::Name("high".to_owned());
        source.message(Incoming { priority: own, properties, body, ..Incoming::default() }).0.priority
    }

    #[test]
    fn a_message_is_as_urgent_as_it_says_itself_unless_the_source_says_otherwise() {
        let name = |name: &str| Given::Name(name.to_owned());
        assert_eq!(priority(serde_json::Value::Null), name("high"));
        assert_eq!(priority(json!({"header": "urgency"})), name("low"));
        assert_eq!(priority(json!({"header": "none"})), Given::Missing);
        assert_eq!(priority(json!({"body": "/level"})), Given::Number(-7));
        assert_eq!(priority(json!({"value": "mid"})), name("mid"));
        let of_table = json!({"header": "urgency", "table": {"LOW": 3, "default": 7}});
        assert_eq!(priority(of_table), Given::Number(3));
        assert_eq!(priority(json!({"header": "none", "table": {"low": 3, "default": 7}})), Given::Number(7));
        let of_scheme = json!({"header": "urgency", "scheme": "named"});
        assert_eq!(priority(of_scheme), Given::Of(Scheme::Named, Priority(1)));
        let of_nothing = json!({"header": "none", "scheme": "route"});
        assert_eq!(priority(of_nothing), Given::Of(Scheme::Route, Priority(0)));
    }

    /// Why a message with this priority and scheme, or a source with this `priority`, cannot be taken.
    fn refusal(own: &str, scheme: Option<&str>, said: serde_json::Value) -> Option<String> {
        let source = json!({"from": {"amqp": {"url": "amqp://h", "queue": "q"}}, "to": {"queue": "in"}, "priority": said});
        let source: Source = serde_json::from_value(source).expect("a source");
        let own = crate::texts::given(own);
        let incoming = Incoming { priority: own, scheme: scheme.map(str::to_owned), ..Incoming::default() };
        source.message(incoming).1.err()
    }

    #[test]
    fn a_word_that_its_scheme_or_the_table_does_not_have_is_refused() {
        assert_eq!(refusal("9", Some("max-9"), json!({})), None);
        assert_eq!(refusal("9", Some("loudness"), json!({})), Some(Refusal::PriorityUnknown.to_string()));
        assert_eq!(refusal("10", Some("route"), json!({})), Some(Refusal::PriorityOutOfRange.to_string()));
        assert_eq!(refusal("9", Some("named"), json!({"scheme": "max-9"})), None, "the source knows better");
        assert_eq!(refusal("9", None, json!({"table": {"09": 1}})), None, "the same number");
        assert_eq!(
            refusal("9", None, json!({"table": {"8": 1}})),
            Some(Refusal::PriorityUnknown.to_string())
        );
    }

    #[test]
    fn what_cannot_be_said_of_a_priority_is_named() {
        let check = |said: serde_json::Value| {
            let from: PriorityFrom = serde_json::from_value(said).expect("of its form");
            from.check().expect_err("it cannot be").to_string()
        };
        assert!(check(json!({"header": "a", "body": "/b"})).contains("one of `header`, `body` and `value`"));
        assert!(check(json!({"scheme": "named", "table": {}})).contains("one of `scheme` and `table`"));
        assert!(check(json!({"scheme": "named", "value": "urgent"})).contains("which is named"));
        let twice = check(json!({"header": "p", "table": {"0": 1, "00": 2}}));
        assert_eq!(twice, "priority.table: `0` and `00` are the same priority: name it once");
    }

    /// The id and the user of a message that has the id `own` itself, as a source makes them of its body.
    fn id_and_user(body: &str) -> (Option<String>, Option<String>) {
        let source: Source = serde_json::from_value(json!({
            "from": {"amqp": {"url": "amqp://h", "queue": "q"}},
            "to": {"queue": "in"},
            "id": {"body": "/execution_id"},
            "user_id": {"body": "/user/id"},
        }))
        .expect("a source");
        let body = Bytes::copy_from_slice(body.as_bytes());
        let message = source.message(Incoming { id: "own".to_owned(), body, ..Incoming::default() }).0;
        (message.id.clone(), message.content.user_id().map(ToOwned::to_owned))
    }

    #[test]
    fn a_message_has_the_id_and_the_user_that_its_body_names_and_else_its_own() {
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(id_and_user(r#"{"execution_id": "e-1", "user": {"id": 7}}"#), (text("e-1"), text("7")));
        assert_eq!(id_and_user(r#"{"execution_id": ""}"#), (text("own"), None));
        assert_eq!(id_and_user("no JSON"), (text("own"), None));
    }

    #[test]
    fn what_cannot_be_said_of_events_is_refused_by_its_key() {
        let check = |more: serde_json::Value| {
            let mut source =
                json!({"from": {"amqp": {"url": "amqp://h", "queue": "q"}}, "to": {"queue": "in"}});
            source.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
            let source: Source = serde_json::from_value(source).expect("a source");
            source.check(&Place::in_file("s")).map_err(|flaw| flaw.to_string())
        };
        let settle = json!({"settle": {"queue": "q"}});
        assert_eq!(check(json!({"to": settle, "id": {"body": "/id"}})), Ok(()));
        for (more, why) in [
            (
                json!({"id": {"body": "execution_id"}}),
                "`id.body` must be a JSON pointer, as \"/execution_id\"",
            ),
            (json!({"user_id": {"header": ""}}), "`user_id.header`"),
            (json!({"to": settle}), "`id` must say"),
            (json!({"to": {"settle": {"queue": ""}}, "id": {"body": "/id"}}), "`to.settle.queue`"),
            (json!({"to": {"settle": {"queue": "q", "extend_ms": 0}}, "id": {"body": "/id"}}), "`extend_ms`"),
            (
                json!({"to": {"settle": {"queue": "q", "event": {"body": "x"}}}, "id": {"body": "/id"}}),
                "`event.body`",
            ),
        ] {
            let said = check(more.clone());
            assert!(said.as_ref().is_err_and(|said| said.contains(why)), "{more}: {said:?}");
        }
    }
}
