//! MQTT 5: a connection to a server, and what both directions write and read there.
//!
//! The packets are those of the crate `rumqttc`; how they go is ours (OASIS, MQTT Version 5.0).

pub(crate) mod message;
pub(crate) mod reason;
pub(crate) mod wire;

use std::time::Duration;

use overtake_peer::{Named, Peer, Vault};
use rumqttc::v5::mqttbytes::QoS;
use rumqttc::v5::mqttbytes::v5::{ConnAck, ConnAckProperties, Connect, ConnectProperties, Login, Packet};

use self::wire::Wire;
use crate::sink::LinkError;

/// How its URLs begin.
const SCHEMES: [(&str, u16, bool); 2] = [("mqtt", 1883, false), ("mqtts", 8883, true)];
/// A server hears from us so often at least, seconds, unless it wants to more often.
const KEEP_ALIVE_S: u16 = 30;
/// So many publishes at once a server takes that does not say (3.2.2.3.3).
const RECEIVE_MAX: u16 = u16::MAX;

/// A server, and who we are there.
pub(crate) struct MqttServer {
    peer: Peer,
    /// Empty: the server gives one.
    client_id: String,
    /// So long the server remembers what we subscribed to and did not acknowledge, seconds; `None`: not at all.
    session_expiry_s: Option<u32>,
    /// Most publishes that it may send before we acknowledge one.
    receive_max: Option<u16>,
}

/// What a server takes and has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Publishes without an answer.
    pub(crate) receive_max: u16,
    /// Bytes of a packet.
    pub(crate) packet_max: Option<u32>,
    /// The most certain quality of service.
    pub(crate) qos_max: u8,
    /// Whether it keeps messages for those who subscribe later.
    pub(crate) retains: bool,
    /// It remembers us.
    pub(crate) knows_us: bool,
}

impl MqttServer {
    /// # Errors
    /// What is wrong with it, as a phrase.
    pub(crate) fn new(vault: Vault, named: &Named<'_>, client_id: &str) -> Result<Self, String> {
        let peer = Peer::new(vault, named, &SCHEMES)?;
        if !matches!(peer.url.path(), "" | "/") {
            return Err(format!(
                "`{}` must end with the port: a topic is said in a key of its own",
                named.url
            ));
        }
        if !message::fits(client_id) {
            return Err("`client_id` must be text without control characters".to_owned());
        }
        Ok(Self { peer, client_id: client_id.to_owned(), session_expiry_s: None, receive_max: None })
    }

    /// With a session that outlives connections.
    pub(crate) fn remembered_for(self, seconds: u32, receive_max: u16) -> Self {
        Self { session_expiry_s: Some(seconds), receive_max: Some(receive_max), ..self }
    }

    /// # Errors
    /// Why there is no connection.
    pub(crate) async fn connect(&self) -> Result<(Wire, Limits), LinkError> {
        let (login, socket) = (self.login()?, self.peer.connect().await?);
        let mut wire = Wire::new(self.peer.address.authority(), socket);
        let connect = Connect {
            keep_alive: KEEP_ALIVE_S,
            client_id: self.client_id.clone(),
            clean_start: self.session_expiry_s.is_none(),
            properties: Some(ConnectProperties {
                session_expiry_interval: self.session_expiry_s,
                receive_maximum: self.receive_max,
                ..ConnectProperties::new()
            }),
        };
        wire.write(&Packet::Connect(connect, None, login)).await?;
        let Packet::ConnAck(ConnAck { session_present, properties, .. }) = wire.next().await? else {
            return Err(wire.says("it does not answer as MQTT 5 has it"));
        };
        let keep_alive_s = properties.as_ref().and_then(|said| said.server_keep_alive);
        // Well before it is due: what is late is lost.
        wire.keep_alive(Duration::from_secs(keep_alive_s.unwrap_or(KEEP_ALIVE_S).into()) * 3 / 4);
        Ok((wire, Limits { knows_us: session_present, ..Limits::of(properties.as_ref()) }))
    }

    fn login(&self) -> Result<Option<Login>, String> {
        let (username, password) = (self.peer.username.clone(), self.peer.password()?);
        let is_said = username.is_some() || password.is_some();
        Ok(is_said.then(|| Login::new(username.unwrap_or_default(), password.unwrap_or_default())))
    }
}

/// What is said of a quality of service, as the codec has it.
///
/// # Errors
/// There is none such here.
pub(crate) fn qos(number: u8) -> Result<QoS, String> {
    match number {
        0 => Ok(QoS::AtMostOnce),
        1 => Ok(QoS::AtLeastOnce),
        _ => Err("`qos` must be 0 or 1: what comes twice is known by its id".to_owned()),
    }
}

impl Limits {
    fn of(said: Option<&ConnAckProperties>) -> Self {
        Self {
            receive_max: said.and_then(|said| said.receive_max).unwrap_or(RECEIVE_MAX),
            packet_max: said.and_then(|said| said.max_packet_size),
            qos_max: said.and_then(|said| said.max_qos).unwrap_or(2),
            retains: said.and_then(|said| said.retain_available) != Some(0),
            knows_us: false,
        }
    }
}
