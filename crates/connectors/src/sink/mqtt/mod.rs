//! Topics of an MQTT 5 server: one PUBLISH for each message.
//!
//! How a message looks is said in [`crate::mqtt::message`], and what answers mean in [`crate::mqtt::reason`]. With `qos = 0` nobody answers: a
//! message counts as accepted when the socket has it, and is lost with the connection.

mod link;
mod topic;

use overtake_peer::{Named, Secret, Tls, Vault};
use rumqttc::v5::mqttbytes::QoS;
use serde::{Deserialize, Serialize};

use self::link::MqttLink;
use self::topic::Topic;
use super::{Link, LinkError, Sink, Work};
use crate::mqtt::{MqttServer, message};
use crate::outgoing::Outgoing;

/// Topics of an MQTT 5 server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MqttReceiver {
    /// Where: `mqtt://HOST:1883`, or `mqtts://HOST:8883` for TLS.
    pub url: String,
    /// The topic; in it `{priority}`, `{lane}`, `{key}`, `{queue}` and `{routing_key}` are what the message has there.
    pub topic: String,
    /// By default the server gives one. One that is said allows one connection only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
    /// The user; by default that of the URL.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub username: Option<String>,
    /// Its password.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password: Option<Secret>,
    /// 1: the server acknowledges each message, by default; 0: it does not.
    pub qos: u8,
    /// The server keeps the last message of each topic for those who subscribe later.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub retain: bool,
    /// Under `mqtts://`.
    #[serde(skip_serializing_if = "Tls::is_plain")]
    pub tls: Tls,
}

impl Default for MqttReceiver {
    fn default() -> Self {
        Self {
            url: String::new(),
            topic: String::new(),
            client_id: None,
            username: None,
            password: None,
            qos: 1,
            retain: false,
            tls: Tls::default(),
        }
    }
}

/// Topics, once their settings are read.
pub(crate) struct MqttSink {
    server: MqttServer,
    topic: Topic,
    qos: QoS,
    retain: bool,
}

impl MqttReceiver {
    /// Whether there may be so many connections.
    ///
    /// # Errors
    /// Why not, as a phrase.
    pub(crate) fn check_lines(&self, lines: u16) -> Result<(), String> {
        if lines > 1 && self.client_id.is_some() {
            return Err(
                "with a `fan_out` of more than 1 connections of one `client_id` would push each other \
                        out: leave it out"
                    .to_owned(),
            );
        }
        Ok(())
    }

    /// # Errors
    /// What is wrong with it, as a phrase.
    pub(crate) fn sink(&self, vault: Vault) -> Result<MqttSink, String> {
        let server = MqttServer::new(
            vault,
            &Named {
                url: &self.url,
                username: self.username.as_deref(),
                password: self.password.as_ref(),
                tls: &self.tls,
            },
            self.client_id.as_deref().unwrap_or_default(),
        )?;
        let (topic, qos) = (Topic::parse(&self.topic)?, crate::mqtt::qos(self.qos)?);
        Ok(MqttSink { server, topic, qos, retain: self.retain })
    }
}

impl Sink for MqttSink {
    fn left_out(&self, message: &Outgoing) -> Vec<String> {
        message::left_out(message)
    }

    fn connect(&self) -> Work<'_, Result<Box<dyn Link>, LinkError>> {
        Box::pin(async {
            let (wire, limits) = self.server.connect().await?;
            if self.qos as u8 > limits.qos_max {
                return Err(wire.says("it acknowledges nothing: say `qos = 0`"));
            }
            if self.retain && !limits.retains {
                return Err(wire.says("it retains no messages: say `retain = false`"));
            }
            let link = MqttLink::new(wire, limits, self.topic.clone(), self.qos, self.retain);
            Ok(Box::new(link) as Box<dyn Link>)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_that_would_push_each_other_out_are_refused() {
        let named = MqttReceiver { client_id: Some("c".to_owned()), ..MqttReceiver::default() };
        assert!(named.check_lines(2).expect_err("refused").contains("leave it out"));
        assert_eq!((named.check_lines(1), MqttReceiver::default().check_lines(64)), (Ok(()), Ok(())));
    }
}
