//! Packets over a socket, with pings where nothing else is said.
//!
//! Whatever waits here may be given up at any time: bytes that came or are still to go stay in a buffer, for whoever comes next.

use std::time::Duration;

use bytes::{Buf, BytesMut};
use overtake_peer::Socket;
use rumqttc::v5::mqttbytes::Error;
use rumqttc::v5::mqttbytes::v5::{Disconnect, DisconnectReasonCode, Packet, PingReq, check};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{Instant, sleep_until};

use super::reason::{self, Reason};
use crate::sink::LinkError;

/// Room for what comes in, bytes.
const READ_LEN: usize = 64 << 10;
/// The types of packets that end a connection or keep it from being (2.1.2).
const CONNACK: u8 = 2;
const DISCONNECT: u8 = 14;

/// A connection.
pub(crate) struct Wire {
    authority: String,
    socket: Box<dyn Socket>,
    came: BytesMut,
    to_go: BytesMut,
    keep_alive: Option<Duration>,
    /// When something went last.
    went: Instant,
    /// When a ping went that has no answer.
    pinged: Option<Instant>,
}

impl Wire {
    pub(crate) fn new(authority: String, socket: Box<dyn Socket>) -> Self {
        let [came, to_go] = [BytesMut::with_capacity(READ_LEN), BytesMut::new()];
        Self { authority, socket, came, to_go, keep_alive: None, went: Instant::now(), pinged: None }
    }

    /// The server hears from us so often at least; zero: it does not care.
    pub(crate) fn keep_alive(&mut self, time: Duration) {
        self.keep_alive = (!time.is_zero()).then_some(time);
    }

    pub(crate) fn says(&self, what: impl std::fmt::Display) -> LinkError {
        LinkError::Lost(format!("{}: {what}", self.authority))
    }

    /// # Errors
    /// The connection is lost.
    pub(crate) async fn write(&mut self, packet: &Packet) -> Result<(), LinkError> {
        packet.write(&mut self.to_go, None).map_err(|error| self.says(error))?;
        self.flush().await
    }

    /// As [`Wire::write`], when the next flush comes.
    ///
    /// # Errors
    /// It cannot be written.
    pub(crate) fn write_later(&mut self, packet: &Packet) -> Result<(), LinkError> {
        packet.write(&mut self.to_go, None).map(drop).map_err(|error| self.says(error))
    }

    /// # Errors
    /// The connection is lost.
    pub(crate) async fn flush(&mut self) -> Result<(), LinkError> {
        while self.to_go.has_remaining() {
            let written = self.socket.write_buf(&mut self.to_go).await;
            if written.map_err(|error| self.says(error))? == 0 {
                return Err(self.says("it takes no more bytes"));
            }
            self.went = Instant::now();
        }
        self.socket.flush().await.map_err(|error| self.says(error))
    }

    /// Says that it ends, and waits until the server has closed the connection: then it has read all that was said before. A socket that is
    /// dropped while something waits in it to be read takes that from the server.
    pub(crate) async fn close(&mut self) {
        let disconnect = Packet::Disconnect(Disconnect::new(DisconnectReasonCode::NormalDisconnection));
        if self.write(&disconnect).await.is_err() {
            return;
        }
        while matches!(self.socket.read_buf(&mut self.came).await, Ok(1..)) {
            self.came.clear();
        }
    }

    /// Waits for a packet; pings meanwhile, and does not tell of their answers.
    ///
    /// # Errors
    /// The connection is lost, or the server ends it.
    pub(crate) async fn next(&mut self) -> Result<Packet, LinkError> {
        loop {
            self.flush().await?;
            if let Some(packet) = self.at_hand()? {
                return Ok(packet);
            }
            let wakes_at = self.wakes_at();
            tokio::select! {
                read = self.socket.read_buf(&mut self.came) => {
                    if read.map_err(|error| self.says(error))? == 0 {
                        return Err(self.says("it closed the connection"));
                    }
                }
                () = until(wakes_at) => self.ping()?,
            }
        }
    }

    /// Pings, and reads nothing: what comes waits in the socket. Ends when the connection is lost.
    pub(crate) async fn lost(&mut self) -> LinkError {
        loop {
            // Whether it is answered shows when somebody reads again.
            self.pinged = None;
            if let Err(error) = self.flush().await {
                return error;
            }
            until(self.wakes_at()).await;
            if let Err(error) = self.write_later(&Packet::PingReq(PingReq)) {
                return error;
            }
        }
    }

    /// A packet that is here already.
    ///
    /// # Errors
    /// The server ends the connection, or says what no packet is.
    pub(crate) fn at_hand(&mut self) -> Result<Option<Packet>, LinkError> {
        loop {
            let len = match check(self.came.iter(), None) {
                Ok(header) => header.frame_length(),
                Err(Error::InsufficientBytes(_)) => {
                    self.came.reserve(READ_LEN);
                    return Ok(None);
                }
                Err(error) => return Err(self.says(error)),
            };
            let mut frame = self.came.split_to(len);
            let ending = Ending::of(&frame);
            let packet = Packet::read(&mut frame, None);
            if let Some(ending) = ending {
                return Err(ending.told(packet.ok().as_ref(), &self.authority));
            }
            match packet.map_err(|error| self.says(error))? {
                Packet::PingResp(_) => self.pinged = None,
                packet => return Ok(Some(packet)),
            }
        }
    }

    /// When to ping; and when a ping has no answer, until when to wait for one.
    fn wakes_at(&self) -> Option<Instant> {
        let keep_alive = self.keep_alive?;
        Some(self.pinged.unwrap_or(self.went) + keep_alive)
    }

    fn ping(&mut self) -> Result<(), LinkError> {
        if self.pinged.is_some() {
            return Err(self.says("it does not answer a ping"));
        }
        self.pinged = Some(Instant::now());
        self.write_later(&Packet::PingReq(PingReq))
    }
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// A packet that ends a connection. Its reason is read from its bytes: it may be shorter than the codec has it (3.14.2.1), or be of MQTT 3.1.1.
enum Ending {
    Refused(u8),
    OlderVersion,
    Disconnected(u8),
}

impl Ending {
    fn of(frame: &[u8]) -> Option<Self> {
        let (kind, after) =
            (frame.first()? >> 4, frame.iter().skip(1).position(|byte| byte & 0x80 == 0)? + 2);
        let said = frame.get(after..)?;
        match (kind, said) {
            (CONNACK, [_, 0, _, ..]) => None,
            (CONNACK, [_, code, _, ..]) => Some(Self::Refused(*code)),
            (CONNACK, _) => Some(Self::OlderVersion),
            (DISCONNECT, _) => Some(Self::Disconnected(said.first().copied().unwrap_or(0))),
            _ => None,
        }
    }

    fn told(&self, packet: Option<&Packet>, authority: &str) -> LinkError {
        let said = packet.map(Reason::of).unwrap_or_default();
        match self {
            Self::OlderVersion => {
                LinkError::Lost(format!("{authority}: it answers as MQTT 3.1.1 has it; MQTT 5 is wanted"))
            }
            Self::Refused(code) => reason::ending(*code, &said, &format!("{authority}: no connection")),
            Self::Disconnected(code) => reason::ending(*code, &said, &format!("{authority}: it disconnects")),
        }
    }
}

#[cfg(test)]
mod tests {
    use rumqttc::v5::mqttbytes::v5::PingResp;
    use tokio::io::{DuplexStream, duplex};

    use super::*;

    fn pair() -> (Wire, DuplexStream) {
        let (here, there) = duplex(1 << 16);
        let mut wire = Wire::new("s:1883".to_owned(), Box::new(here));
        wire.keep_alive(Duration::from_secs(30));
        (wire, there)
    }

    async fn ended_by(bytes: &[u8]) -> String {
        let (mut wire, mut there) = pair();
        there.write_all(bytes).await.expect("written");
        wire.next().await.expect_err("an end").to_string()
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_hears_from_us_while_nothing_is_sent_and_one_that_is_silent_is_lost() {
        let (mut wire, mut there) = pair();
        let began = Instant::now();
        let answering = async {
            let mut ping = [0; 2];
            there.read_exact(&mut ping).await.expect("a ping");
            let mut answer = BytesMut::new();
            PingResp::write(&mut answer).expect("written");
            there.write_all(&answer).await.expect("written");
            there.read_exact(&mut ping).await.expect("another ping");
            ping
        };
        let (lost, ping) = tokio::join!(wire.next(), answering);
        assert_eq!(ping, [0xC0, 0]);
        assert_eq!(lost.expect_err("lost").to_string(), "s:1883: it does not answer a ping");
        assert_eq!(began.elapsed().as_secs(), 90);
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_hears_from_us_while_nothing_is_read_and_what_it_says_is_not_lost() {
        let (mut wire, mut there) = pair();
        there.write_all(&[0x40, 2, 0, 7]).await.expect("written");
        let began = Instant::now();
        let mut pings = [0; 20];
        tokio::select! {
            lost = wire.lost() => panic!("{lost}"),
            heard = there.read_exact(&mut pings) => assert_eq!(heard.expect("pings"), 20),
        }
        assert_eq!((pings, began.elapsed().as_secs()), ([0xC0, 0].repeat(10).try_into().expect("20"), 300));
        let Ok(Packet::PubAck(ack)) = wire.next().await else { panic!("an acknowledgement") };
        assert_eq!(ack.pkid, 7);
        drop(there);
        assert!(wire.lost().await.to_string().starts_with("s:1883: "), "it is lost");
    }

    #[tokio::test]
    async fn an_end_says_why_however_short_it_is() {
        assert_eq!(ended_by(&[0xE0, 0]).await, "s:1883: it disconnects: without a reason");
        assert!(ended_by(&[0xE0, 1, 0x8E]).await.contains("another client has taken over"));
        assert!(ended_by(&[0xE0, 2, 0x8B, 0]).await.contains("it is shutting down"));
        let why = [&[0xE0, 7, 0x97, 5, 31, 0, 2][..], b"no"].concat();
        assert_eq!(ended_by(&why).await, "s:1883: it disconnects: a quota is used up (no)");
        assert!(ended_by(&[0x20, 3, 0, 0x86, 0]).await.contains("see to `username` and `password`"));
        assert!(ended_by(&[0x20, 2, 0, 1]).await.contains("MQTT 5 is wanted"));
    }

    #[tokio::test]
    async fn a_wait_that_is_given_up_loses_no_bytes() {
        let (mut wire, mut there) = pair();
        there.write_all(&[0x40, 2]).await.expect("written");
        tokio::select! {
            biased;
            _ = wire.next() => panic!("that is no packet yet"),
            () = tokio::task::yield_now() => {}
        }
        there.write_all(&[0, 7]).await.expect("written");
        let Ok(Packet::PubAck(ack)) = wire.next().await else { panic!("an acknowledgement") };
        assert_eq!(ack.pkid, 7);
    }
}
