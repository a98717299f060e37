//! The beginning of a connection: greeting, login, limits, virtual host (4.4, 1.4).
//!
//! ```text
//!   AMQP0091 ─▶ start ─▶ start-ok ─▶ [Ask::Login] ─▶ tune ─▶ tune-ok, open ─▶ [Ask::Open] ─▶ open-ok
//! ```

use overtake_lane::Time;
use overtake_properties::{Limits, Short, ShortText, Table, TableBuilder, TableRef, Value};

use super::asks::Ask;
use super::{Connection, Options, Stage};
use crate::frame::FRAME_MIN_SIZE;
use crate::method::Method;
use crate::method::connection::{Open, OpenOk, Start, Tune};
use crate::reply::ReplyCode;
use crate::sasl::Mechanism;
use crate::violation::Violation;

/// RabbitMQ's capabilities, by which clients know what they may use.
const CAPABILITIES: [Short<'static>; 9] = [
    Short::literal("publisher_confirms"),
    Short::literal("exchange_exchange_bindings"),
    Short::literal("basic.nack"),
    Short::literal("consumer_cancel_notify"),
    Short::literal("connection.blocked"),
    Short::literal("consumer_priorities"),
    Short::literal("authentication_failure_close"),
    Short::literal("per_consumer_qos"),
    Short::literal("direct_reply_to"),
];

/// What the client says it understands.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Understands {
    pub(super) cancel_notify: bool,
    pub(super) blocked: bool,
    pub(super) failure_close: bool,
}

impl Understands {
    fn of(client: TableRef<'_>) -> Self {
        let Some(Value::Table(capabilities)) = client.get("capabilities") else { return Self::default() };
        let has = |name| capabilities.get(name).and_then(Value::bool).unwrap_or_default();
        Self {
            cancel_notify: has("consumer_cancel_notify"),
            blocked: has("connection.blocked"),
            failure_close: has("authentication_failure_close"),
        }
    }
}

fn server_properties(options: &Options) -> Table {
    let capabilities =
        CAPABILITIES.iter().fold(TableBuilder::new(), |table, name| table.entry(*name, Value::Bool(true)));
    let text = |text: &'static str| Value::String(text.as_bytes());
    TableBuilder::new()
        .entry(Short::literal("capabilities"), Value::Table(capabilities.view()))
        .entry(Short::literal("product"), text("Overtake"))
        .entry(Short::literal("version"), Value::String(options.version.as_bytes()))
        .entry(Short::literal("platform"), text("Rust"))
        .entry(Short::literal("copyright"), text("The Overtake authors"))
        .entry(Short::literal("information"), text("Licensed under Apache 2.0"))
        .finish()
}

impl Connection {
    pub(super) fn greet(&mut self) {
        let properties = server_properties(&self.options);
        let mechanisms: &[u8] =
            if self.options.has_certificate { b"PLAIN AMQPLAIN EXTERNAL" } else { b"PLAIN AMQPLAIN" };
        let server_properties = properties.view();
        let start =
            Start { version_major: 0, version_minor: 9, server_properties, mechanisms, locales: b"en_US" };
        self.say(0, start);
        self.stage = Stage::StartOk;
    }

    /// A method before the connection is open.
    pub(super) fn begin(&mut self, now: Time, method: &Method<'_>) -> Result<(), Violation> {
        match (self.stage, method) {
            (Stage::StartOk, Method::ConnectionStartOk(start_ok)) => {
                self.understands = Understands::of(start_ok.client_properties);
                self.client_properties = start_ok.client_properties.to_table();
                let known = Mechanism::of(start_ok.mechanism.as_str())
                    .filter(|mechanism| *mechanism != Mechanism::External || self.options.has_certificate);
                let Some(mechanism) = known else {
                    let text = format!("unknown authentication mechanism '{}'", start_ok.mechanism.as_str());
                    return Err(Violation::of(ReplyCode::CommandInvalid, text));
                };
                self.mechanism = mechanism.name();
                match mechanism.read(start_ok.response) {
                    Some(credentials) => self.asks.push(Ask::Login(credentials)),
                    None => {
                        return Err(Violation::of(
                            ReplyCode::SyntaxError,
                            "the response to log in makes no sense",
                        ));
                    }
                }
                self.stage = Stage::LoggingIn;
                Ok(())
            }
            (Stage::TuneOk, Method::ConnectionTuneOk(tune_ok)) => {
                self.tune(now, tune_ok.channel_max, tune_ok.frame_max, tune_ok.heartbeat)
            }
            (Stage::Open, Method::ConnectionOpen(open)) => {
                self.vhost = open.virtual_host.as_str().to_owned();
                self.asks.push(Ask::Open { vhost: self.vhost.clone() });
                self.stage = Stage::Opening;
                Ok(())
            }
            (_, method) => {
                let text = format!("{} does not come at this time", method.name());
                Err(Violation::of(ReplyCode::CommandInvalid, text))
            }
        }
    }

    /// Takes the limits the client agrees to, which must not be beyond ours.
    fn tune(&mut self, now: Time, channels: u16, frame: u32, heartbeat: u16) -> Result<(), Violation> {
        let refuse = |what: &str, wanted: u32, most: u32| {
            let text =
                format!("negotiated {what} = {wanted} is higher than the maximum allowed value ({most})");
            Err(Violation::of(ReplyCode::NotAllowed, text))
        };
        let (channel_max, frame_max) = (self.options.channel_max, self.options.frame_max);
        if channels > channel_max {
            return refuse("channel_max", channels.into(), channel_max.into());
        }
        if frame != 0 && (frame > frame_max || frame < FRAME_MIN_SIZE) {
            return refuse("frame_max", frame, frame_max);
        }
        self.channel_max = if channels == 0 { channel_max } else { channels };
        self.frame_max = if frame == 0 { frame_max } else { frame };
        self.pulse.agree(now, heartbeat);
        self.stage = Stage::Open;
        Ok(())
    }

    /// What came of [`Ask::Login`]: the client is who it says to be, or not.
    pub fn logged_in(&mut self, is_right: bool) {
        if self.stage != Stage::LoggingIn {
            return;
        }
        if is_right {
            let Options { channel_max, frame_max, heartbeat_s, .. } = self.options;
            self.say(0, Tune { channel_max, frame_max, heartbeat: heartbeat_s });
            self.stage = Stage::TuneOk;
        } else {
            let text = format!("login refused ({}); the log of the broker says why", self.mechanism);
            self.end_login(ReplyCode::AccessRefused, &text);
        }
    }

    /// The broker could not check the login: why, for the client. The reply code is RESOURCE_ERROR and not ACCESS_REFUSED, so that a client can tell a login to
    /// try again in a second from a wrong password.
    pub fn not_logged_in(&mut self, why: &str) {
        if self.stage == Stage::LoggingIn {
            self.end_login(
                ReplyCode::ResourceError,
                &format!("login not checked ({}); {why}", self.mechanism),
            );
        }
    }

    fn end_login(&mut self, code: ReplyCode, text: &str) {
        if self.understands.failure_close {
            self.end(Violation::of(code, text));
        } else {
            // Older clients know by the closed socket (1.4.3).
            self.stage = Stage::Over;
        }
    }

    /// What came of [`Ask::Open`]; an error says why not.
    pub fn opened(&mut self, result: Result<(), NoVhost>) {
        if self.stage != Stage::Opening {
            return;
        }
        match result {
            Ok(()) => {
                self.say(0, OpenOk { known_hosts: ShortText::cut("") });
                self.stage = Stage::Running;
                if self.blocked.is_some() {
                    self.tell_blocked();
                }
            }
            Err(why) => {
                let text = match why {
                    NoVhost::Unknown => format!("vhost '{}' not found", self.vhost),
                    NoVhost::Because(text) => text,
                };
                self.end(Violation::of(ReplyCode::NotAllowed, text).by(Open::ID));
            }
        }
    }

    pub(super) fn limits() -> Limits {
        Limits::default()
    }
}

/// Why a virtual host cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoVhost {
    /// There is none.
    Unknown,
    /// The user may not, or not now: why, for the client.
    Because(String),
}
