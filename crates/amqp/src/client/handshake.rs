//! The beginning of a connection: greeting, login, limits, virtual host (4.4, 1.4).
//!
//! ```text
//!   AMQP0091 ─▶ start ─▶ start-ok ─▶ (secure ─▶ secure-ok)* ─▶ tune ─▶ tune-ok, open ─▶ open-ok ─▶ [Event::Opened]
//! ```

use bytes::BytesMut;
use overtake_lane::Time;
use overtake_properties::ShortText;

use super::{Client, Ending, Event, Stage, Terms};
use crate::frame::{FRAME_MIN_SIZE, PROTOCOL_HEADER};
use crate::method::Method;
use crate::method::connection::{Open, SecureOk, Start, StartOk, Tune, TuneOk};
use crate::reply::ReplyCode;
use crate::violation::Violation;

/// What `connection.start`, the only thing that may come first, begins with: a method on channel 0.
const FIRST: [u8; 3] = [1, 0, 0];

impl Client {
    /// Looks at the first bytes: whoever speaks another version says so with eight of them. False: more must come, or it is over.
    pub(super) fn check_protocol(&mut self, bytes: &mut BytesMut) -> bool {
        let looks_like = |first: &[u8]| bytes.iter().zip(first).all(|(came, expected)| came == expected);
        if looks_like(&FIRST) {
            return true;
        }
        let ending = match bytes.first_chunk() {
            _ if !looks_like(&PROTOCOL_HEADER[..4]) => Ending::OtherProtocol,
            Some(header) => Ending::OtherVersion(*header),
            None => return false,
        };
        bytes.clear();
        self.finish(ending);
        false
    }

    /// A method before the connection is open.
    pub(super) fn begin(&mut self, now: Time, method: &Method<'_>) -> Result<(), Violation> {
        match (self.stage, method) {
            (Stage::Greeting, Method::ConnectionStart(start)) => self.log_in(start),
            (Stage::LoggingIn, Method::ConnectionSecure(_)) => {
                let (_, response) = self.options.credentials.response();
                self.say(0, SecureOk { response: &response });
            }
            (Stage::LoggingIn, Method::ConnectionTune(tune)) => return self.agree(now, tune),
            (Stage::Opening, Method::ConnectionOpenOk(_)) => self.opened(),
            (_, method) => {
                let text = format!("{} does not come at this time", method.name());
                return Err(Violation::of(ReplyCode::CommandInvalid, text));
            }
        }
        Ok(())
    }

    fn log_in(&mut self, start: &Start<'_>) {
        if (start.version_major, start.version_minor) != (0, 9) {
            let [a, m, q, p, ..] = PROTOCOL_HEADER;
            let version = [a, m, q, p, 0, start.version_major, start.version_minor, 0];
            return self.finish(Ending::OtherVersion(version));
        }
        let (mechanism, response) = self.options.credentials.response();
        let name = mechanism.name();
        if !start.mechanisms.split(u8::is_ascii_whitespace).any(|offered| offered == name.as_bytes()) {
            let offered = String::from_utf8_lossy(start.mechanisms).into_owned();
            return self.finish(Ending::NoMechanism { offered });
        }
        self.server_properties = start.server_properties.to_table();
        let client_properties = self.options.client_properties();
        let start_ok = StartOk {
            client_properties: client_properties.view(),
            mechanism: ShortText::cut(name),
            response: &response,
            locale: ShortText::literal("en_US"),
        };
        self.say(0, start_ok);
        self.stage = Stage::LoggingIn;
    }

    /// Takes the lower of both sides' limits.
    fn agree(&mut self, now: Time, tune: &Tune) -> Result<(), Violation> {
        let frame_max = lower(self.frame_max, tune.frame_max);
        if frame_max < FRAME_MIN_SIZE {
            let text = format!("frame_max = {frame_max} is lower than the minimum ({FRAME_MIN_SIZE})");
            return Err(Violation::of(ReplyCode::NotAllowed, text));
        }
        let vhost = self.options.vhost.clone();
        let Some(virtual_host) = ShortText::new(&vhost) else {
            return Err(Violation::of(ReplyCode::NotAllowed, "no vhost has a name of more than 255 bytes"));
        };
        let channel_max = lower(self.options.channel_max.into(), tune.channel_max.into()) as u16;
        // Whoever wants none gets none.
        let heartbeat = self.options.heartbeat_s.min(tune.heartbeat);
        self.frame_max = frame_max;
        self.channel_max = if channel_max == 0 { u16::MAX } else { channel_max };
        self.say(0, TuneOk { channel_max, frame_max, heartbeat });
        self.say(0, Open { virtual_host, capabilities: ShortText::default(), insist: false });
        self.pulse.agree(now, heartbeat);
        self.stage = Stage::Opening;
        Ok(())
    }

    fn opened(&mut self) {
        self.stage = Stage::Running;
        let terms = Terms {
            server_properties: self.server_properties.clone(),
            channel_max: self.channel_max,
            frame_max: self.frame_max,
            heartbeat_s: self.pulse.interval_s() as u16,
        };
        self.events.push(Event::Opened(Box::new(terms)));
    }
}

/// The lower of two limits, of which 0 is none.
fn lower(ours: u32, theirs: u32) -> u32 {
    match (ours, theirs) {
        (0, limit) | (limit, 0) => limit,
        (ours, theirs) => ours.min(theirs),
    }
}
