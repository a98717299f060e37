//! Topics of an MQTT 5 server, under a session that it remembers.
//!
//! A message is acknowledged when it is settled here, whatever became of it, and in the order in which they came (4.6). Until then the server has
//! it, and sends it again to whoever connects with our client id before the session expires. At most [`RECEIVE_MAX`] of them it sends ahead.
//!
//! A publish has no id of its own, and the number of its packet is used again. So it gets one here, and what comes again before it was settled,
//! which it says, gets the same as long as this broker runs. What comes again after a restart, or because an acknowledgement was lost, gets another
//! id, and is there twice.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use overtake_engine::Clock;
use overtake_peer::{Named, Secret, Tls, Vault};
use rumqttc::v5::mqttbytes::v5::{
    Filter, Packet, PubAck, Publish, RetainForwardRule, SubAck, Subscribe, SubscribeReasonCode, Unsubscribe,
};
use rumqttc::v5::mqttbytes::{QoS, valid_filter};
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, timeout_at};

use self::levels::Levels;
use super::{Fate, Incoming, Inlet, Origin};
use crate::mqtt::wire::Wire;
use crate::mqtt::{MqttServer, message, qos};
use crate::sink::{LinkError, Work};

/// Most messages that the server sends before one is acknowledged.
const RECEIVE_MAX: u16 = 1_000;
/// Topics that the server does not let us subscribe to are asked for again after so long.
const AGAIN: Duration = Duration::from_secs(5);
/// Most topics of a source.
const TOPICS_MAX: usize = 100;

/// Topics of an MQTT 5 server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MqttSource {
    /// Where: `mqtt://HOST:1883`, or `mqtts://HOST:8883` for TLS.
    pub url: String,
    /// Topics, with `+` for a level and `#` for all below; `$share/GROUP/TOPIC` shares them with others.
    pub topics: Vec<String>,
    /// The meaning of the levels of a topic: `devices/{device}/messages/{path}`. `{device}` and `{module}` are a level each, and the user that conditions of routes see;
    /// `{path}` is all that follows. A message whose topic does not fit is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub template: Option<String>,
    /// 1: the server sends again what was not acknowledged, by default; 0: what is on its way when a connection ends is lost.
    pub qos: u8,
    /// Under this name the server remembers us. It is nobody else's.
    pub client_id: String,
    /// So long the server remembers us without a connection, seconds.
    pub session_expiry_s: u32,
    /// The user; by default that of the URL.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub username: Option<String>,
    /// Its password.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password: Option<Secret>,
    /// Under `mqtts://`.
    #[serde(skip_serializing_if = "Tls::is_plain")]
    pub tls: Tls,
}

impl Default for MqttSource {
    fn default() -> Self {
        Self {
            url: String::new(),
            topics: Vec::new(),
            template: None,
            qos: 1,
            client_id: String::new(),
            session_expiry_s: 86_400,
            username: None,
            password: None,
            tls: Tls::default(),
        }
    }
}

impl MqttSource {
    /// # Errors
    /// What is wrong with it, as a phrase.
    pub(crate) fn origin(&self, vault: Vault, clock: &dyn Clock) -> Result<MqttOrigin, String> {
        if !(1..=TOPICS_MAX).contains(&self.topics.len()) {
            return Err(format!("`topics` must be 1 to {TOPICS_MAX} topics"));
        }
        if let Some(wrong) = self.topics.iter().find(|topic| !valid_filter(topic) || !message::fits(topic)) {
            return Err(format!(
                "`topics`: `{wrong}` must have `+` for whole levels only, and `#` for the last one only"
            ));
        }
        if self.client_id.is_empty() {
            return Err("`client_id` must be a name of its own: under it the server keeps what we have not \
                        acknowledged"
                .to_owned());
        }
        if self.session_expiry_s == 0 {
            return Err("`session_expiry_s` must be at least 1: with 0 whatever comes while there is no \
                        connection is lost"
                .to_owned());
        }
        let named = Named {
            url: &self.url,
            username: self.username.as_deref(),
            password: self.password.as_ref(),
            tls: &self.tls,
        };
        let server = MqttServer::new(vault, &named, &self.client_id)?;
        let tried = MqttServer::new(vault, &named, &format!("{}-test", self.client_id))?;
        Ok(MqttOrigin {
            server: server.remembered_for(self.session_expiry_s, RECEIVE_MAX),
            tried,
            topics: self.topics.clone(),
            qos: qos(self.qos)?,
            levels: self.levels()?.map(Arc::new),
            ids: Arc::new(Mutex::new(Ids::new(&self.client_id, clock))),
        })
    }
}

impl MqttSource {
    fn levels(&self) -> Result<Option<Levels>, String> {
        self.template.as_deref().map(Levels::parse).transpose()
    }

    /// Whether its template says which device published, which module, and what a message is about.
    pub(crate) fn names(&self) -> [bool; 3] {
        self.levels().ok().flatten().map_or([false; 3], |levels| levels.names())
    }
}

/// Topics, once their settings are read.
pub(crate) struct MqttOrigin {
    server: MqttServer,
    /// The same for a test, under another client id: a server ends the connection that it has of one that comes again.
    tried: MqttServer,
    topics: Vec<String>,
    qos: QoS,
    levels: Option<Arc<Levels>>,
    ids: Arc<Mutex<Ids>>,
}

impl Origin for MqttOrigin {
    fn connect(&self) -> Work<'_, Result<Box<dyn Inlet>, LinkError>> {
        Box::pin(async {
            let (wire, limits) = self.server.connect().await?;
            if !limits.knows_us {
                // Its numbers begin anew, and mean other messages.
                self.ids.lock().unwrap_or_else(PoisonError::into_inner).given.clear();
            }
            Ok(Box::new(self.subscribed(wire, self.topics.clone()).await?) as Box<dyn Inlet>)
        })
    }

    fn try_out(&self) -> Work<'_, Result<(), LinkError>> {
        Box::pin(async {
            let (wire, _) = self.tried.connect().await?;
            // A member of a group would be given what is meant for the others.
            let is_shared = |topic: &&String| topic.starts_with("$share/");
            let topics: Vec<String> = self.topics.iter().filter(|topic| !is_shared(topic)).cloned().collect();
            if !topics.is_empty() {
                self.subscribed(wire, topics).await?;
            }
            Ok(())
        })
    }
}

impl MqttOrigin {
    /// Subscribes to these topics. The server lets us read one of them at least.
    async fn subscribed(&self, wire: Wire, topics: Vec<String>) -> Result<MqttInlet, LinkError> {
        let count = topics.len();
        let mut inlet = MqttInlet {
            wire,
            levels: self.levels.clone(),
            ids: Arc::clone(&self.ids),
            qos: self.qos,
            asked: Vec::new(),
            aside: topics,
            again_at: Instant::now(),
            known: String::new(),
            fault: None,
            here: VecDeque::new(),
            handed: Vec::new(),
        };
        inlet.subscribe().await?;
        while !inlet.asked.is_empty() {
            // Messages that waited for us may come before the answer.
            let packet = inlet.wire.next().await?;
            inlet.keep(packet)?;
        }
        if inlet.aside.len() == count {
            return Err(inlet.known.into());
        }
        Ok(inlet)
    }
}

struct MqttInlet {
    wire: Wire,
    levels: Option<Arc<Levels>>,
    ids: Arc<Mutex<Ids>>,
    qos: QoS,
    /// Topics in a subscription that the server has not answered.
    asked: Vec<String>,
    /// Topics without a subscription.
    aside: Vec<String>,
    /// When those are asked for again.
    again_at: Instant,
    /// Why they have none, as the server said last.
    known: String,
    /// The same, until the intake asks for it.
    fault: Option<String>,
    /// What is here and was not handed over.
    here: VecDeque<Publish>,
    /// Packets that were handed over and are not settled; those of `qos = 0` have no number.
    handed: Vec<Option<u16>>,
}

impl Inlet for MqttInlet {
    fn receive(&mut self, max: usize) -> Work<'_, Result<Vec<Incoming>, LinkError>> {
        Box::pin(async move {
            while self.here.is_empty() {
                if self.fault.is_some() {
                    return Ok(Vec::new());
                }
                if self.aside.is_empty() || !self.asked.is_empty() {
                    let packet = self.wire.next().await?;
                    self.keep(packet)?;
                } else if let Ok(packet) = timeout_at(self.again_at, self.wire.next()).await {
                    self.keep(packet?)?;
                } else {
                    self.subscribe().await?;
                }
            }
            while self.here.len() < max
                && let Some(packet) = self.wire.at_hand()?
            {
                self.keep(packet)?;
            }
            let taken: Vec<Publish> = self.here.drain(..max.min(self.here.len())).collect();
            Ok(taken.into_iter().map(|publish| self.hand_over(publish)).collect())
        })
    }

    fn fault(&mut self) -> Option<String> {
        self.fault.take()
    }

    fn lost(&mut self) -> Work<'_, LinkError> {
        Box::pin(self.wire.lost())
    }

    fn settle(&mut self, fates: Vec<Fate>) -> Work<'_, Result<(), LinkError>> {
        Box::pin(async move {
            assert_eq!(fates.len(), self.handed.len(), "all that was handed over is settled together");
            for number in std::mem::take(&mut self.handed).into_iter().flatten() {
                // Before the server may use the number again: a message that comes twice is better than one that is taken for another.
                self.ids.lock().unwrap_or_else(PoisonError::into_inner).given.remove(&number);
                self.wire.write_later(&Packet::PubAck(PubAck::new(number, None)))?;
            }
            self.wire.flush().await
        })
    }

    fn close(&mut self) -> Work<'_, ()> {
        Box::pin(self.wire.close())
    }
}

impl MqttInlet {
    /// Asks for the topics that have no subscription.
    async fn subscribe(&mut self) -> Result<(), LinkError> {
        let filter = |topic: &String| Filter {
            // What is retained comes when a subscription is new, and not at every connection.
            retain_forward_rule: RetainForwardRule::OnNewSubscribe,
            ..Filter::new(topic, self.qos)
        };
        let subscribe = Subscribe { pkid: 1, ..Subscribe::new_many(self.aside.iter().map(filter), None) };
        self.again_at = Instant::now() + AGAIN;
        self.asked = std::mem::take(&mut self.aside);
        self.wire.write(&Packet::Subscribe(subscribe)).await
    }

    /// The server has answered a subscription: each topic is alone in what becomes of it.
    ///
    /// # Errors
    /// A packet cannot be written.
    fn subscribed(&mut self, codes: Vec<SubscribeReasonCode>) -> Result<(), LinkError> {
        let asked = std::mem::take(&mut self.asked);
        let mut faults = Vec::new();
        for (topic, code) in asked.into_iter().zip(codes) {
            let Err(why) = self.judge(&topic, code) else { continue };
            if matches!(code, SubscribeReasonCode::Success(_)) {
                // Messages that the server sends with a lower `qos` than we ask for could be lost.
                let unsubscribe = Unsubscribe { pkid: 2, ..Unsubscribe::new(&topic, None) };
                self.wire.write_later(&Packet::Unsubscribe(unsubscribe))?;
            }
            faults.push(why.to_string());
            self.aside.push(topic);
        }
        let found = faults.join("; ");
        if self.known != found {
            self.known.clone_from(&found);
            self.fault = (!found.is_empty()).then_some(found);
        }
        Ok(())
    }

    fn judge(&self, topic: &str, code: SubscribeReasonCode) -> Result<(), LinkError> {
        let why = match code {
            SubscribeReasonCode::Success(granted) if granted >= self.qos => return Ok(()),
            SubscribeReasonCode::Success(_) => "it is sent with `qos = 0` only: say so",
            SubscribeReasonCode::NotAuthorized => "not authorised; see to what the user may read",
            SubscribeReasonCode::TopicFilterInvalid => "the server does not take such a filter",
            SubscribeReasonCode::QuotaExceeded => "a quota of the server is used up",
            SubscribeReasonCode::SharedSubscriptionsNotSupported => "the server shares no subscriptions",
            SubscribeReasonCode::WildcardSubscriptionsNotSupported => "the server knows no wildcards",
            _ => "the server does not say why",
        };
        Err(self.wire.says(format!("no subscription to `{topic}`: {why}")))
    }

    fn keep(&mut self, packet: Packet) -> Result<(), LinkError> {
        match packet {
            Packet::Publish(publish) => self.here.push_back(publish),
            Packet::SubAck(SubAck { return_codes, .. }) => self.subscribed(return_codes)?,
            _ => {}
        }
        Ok(())
    }

    fn hand_over(&mut self, publish: Publish) -> Incoming {
        let (number, is_again) = ((publish.qos != QoS::AtMostOnce).then_some(publish.pkid), publish.dup);
        self.handed.push(number);
        let ids = &self.ids;
        let id = || ids.lock().unwrap_or_else(PoisonError::into_inner).of(number, is_again);
        let mut incoming = message::incoming(publish, id);
        if let Some(levels) = &self.levels {
            incoming.parts = levels.read(&incoming.path);
        }
        incoming
    }
}

/// The ids of what was handed over and is not settled, by the numbers of packets.
struct Ids {
    /// Another one whenever the source begins.
    before: String,
    count: u64,
    given: HashMap<u16, String>,
}

impl Ids {
    fn new(client_id: &str, clock: &dyn Clock) -> Self {
        let before = format!("{client_id}-{}", clock.nanos());
        Self { before, count: 0, given: HashMap::new() }
    }

    fn of(&mut self, number: Option<u16>, is_again: bool) -> String {
        if let (Some(number), true) = (number, is_again)
            && let Some(id) = self.given.get(&number)
        {
            return id.clone();
        }
        self.count += 1;
        let id = format!("{}-{}", self.before, self.count);
        if let Some(number) = number {
            self.given.insert(number, id.clone());
        }
        id
    }
}

mod levels;
#[cfg(test)]
mod tests;
