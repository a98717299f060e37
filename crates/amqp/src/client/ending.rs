//! Why a connection is over.

use std::fmt;

use crate::frame::PROTOCOL_HEADER;
use crate::reply::ReplyCode;

/// Why a connection is over. [`Ending::is_refusal`] says whether the server refused the login; `Display` says the reason to people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It was asked for, and the server agreed, or was gone before it could.
    Asked,
    /// The server closed it.
    Server {
        /// Why, as a [`ReplyCode`] if it is one.
        code: u16,
        /// Why, for people.
        text: String,
    },
    /// The server said that the login is refused. A server that only hangs up has said nothing: that is [`Ending::HungUp`].
    LoginRefused {
        /// What the server says.
        text: String,
    },
    /// The server does not know the mechanism to log in with.
    NoMechanism {
        /// What it knows.
        offered: String,
    },
    /// It speaks another version, and said which (4.2.2).
    OtherVersion([u8; 8]),
    /// It speaks something else.
    OtherProtocol,
    /// It did what the protocol forbids, and was told so.
    Violation {
        /// What it was told.
        code: ReplyCode,
        /// Why, for people.
        text: String,
    },
    /// Nothing was heard for two intervals of signs of life.
    Silent,
    /// It was not open in time.
    Late,
    /// The server hung up.
    HungUp(Moment),
}

/// How far the connection was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// The server had said nothing.
    Greeting,
    /// The login was sent, and the server had not answered it.
    LoggingIn,
    /// It was logged in, and the virtual host was asked for.
    Opening,
    /// It was open.
    Open,
}

impl Ending {
    /// Whether the server said no to the user, the mechanism or the virtual host while the connection was made. The same login is refused until somebody
    /// changes one of them. A server that hangs up without a word has refused nothing: it may be stopping, or a proxy in front of it.
    #[must_use]
    pub fn is_refusal(&self) -> bool {
        match self {
            Self::LoginRefused { .. } | Self::NoMechanism { .. } => true,
            Self::Server { code, .. } => {
                [ReplyCode::NotAllowed, ReplyCode::AccessRefused, ReplyCode::InvalidPath]
                    .iter()
                    .any(|refusal| refusal.code() == *code)
            }
            Self::Asked
            | Self::OtherVersion(_)
            | Self::OtherProtocol
            | Self::Violation { .. }
            | Self::Silent
            | Self::Late
            | Self::HungUp(_) => false,
        }
    }
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Asked => f.write_str("it was closed as asked"),
            Self::Server { code, text } => write!(f, "the server closed the connection: {code} {text}"),
            Self::LoginRefused { text } => write!(f, "the server refused the login: {text}"),
            Self::NoMechanism { offered } => {
                write!(f, "the server lets nobody log in like this, only with: {offered}")
            }
            Self::OtherVersion(header) => write!(
                f,
                "the server speaks another version: it was sent {} and answered {}",
                PROTOCOL_HEADER.escape_ascii(),
                header.escape_ascii()
            ),
            Self::OtherProtocol => {
                f.write_str("what answers there does not speak AMQP; it may expect TLS, or HTTP")
            }
            Self::Violation { code, text } => {
                write!(f, "the server broke the protocol: {} {}", code.code(), code.text(text))
            }
            Self::Silent => f.write_str("the server gave no sign of life for two intervals"),
            Self::Late => f.write_str("the server did not open the connection in time"),
            Self::HungUp(Moment::Greeting) => f.write_str(
                "the server hung up before it said anything: it may expect TLS, or let nobody in now",
            ),
            Self::HungUp(Moment::LoggingIn) => f.write_str(
                "the server hung up after the login and did not say why: it may be stopping, or not know the user",
            ),
            Self::HungUp(Moment::Opening) => f.write_str(
                "the server hung up when the virtual host was asked for and did not say why: it may be stopping",
            ),
            Self::HungUp(Moment::Open) => f.write_str("the server hung up"),
        }
    }
}

impl std::error::Error for Ending {}
