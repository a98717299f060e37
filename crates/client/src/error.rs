//! Why something did not happen.

use std::fmt;

/// Why something did not happen, and what may be done about it. `Display` says it to people.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// An option makes no sense: a URL, a certificate, a message that is too long. Nothing was sent.
    Invalid(String),
    /// The broker said that it does not let this user in, or not into this virtual host. A connection that is cut during the login is
    /// [`Error::ConnectionLost`]. The first login has this error at once; a later one is tried again unless
    /// [`ConnectOptions::login_retry`](crate::ConnectOptions::login_retry) says otherwise.
    LoginRefused(String),
    /// There is no connection, and where the client makes them by itself, it goes on trying.
    ConnectionLost(String),
    /// The broker declines: no such queue, no right to it, a priority that its scheme does not know. The same again is declined again.
    Refused {
        /// A reply code of AMQP, or a status of HTTP.
        code: u16,
        /// Why, for people.
        text: String,
    },
    /// The broker could not take a message now: the queue is full, or the disk. It may be published again later.
    NotConfirmed,
    /// No queue gets the message: there is none of that name, or none is bound so.
    Unroutable(String),
    /// The lease is over: it ran out, or its connection was lost. The message goes to somebody else, or has.
    LeaseOver,
    /// The broker has ended the consumer: its queue was deleted, or the right to read it was taken away. The broker does not say which.
    ConsumerCancelled,
    /// The time that was given is over. What was asked may happen still.
    TimedOut,
    /// The client was closed.
    Closed,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(text) => f.write_str(text),
            Self::LoginRefused(text) => write!(f, "the login is refused: {text}"),
            Self::ConnectionLost(text) => write!(f, "there is no connection: {text}"),
            Self::Refused { code, text } => write!(f, "the broker declines: {code} {text}"),
            Self::NotConfirmed => {
                f.write_str("the broker could not take the message: the queue or the disk is full; publish it again later")
            }
            Self::Unroutable(text) => write!(f, "no queue gets the message: {text}"),
            Self::LeaseOver => f.write_str("the lease is over; the message goes to somebody else"),
            Self::ConsumerCancelled => f.write_str(
                "the broker ended the consumer: its queue was deleted, or the right to read it was taken away",
            ),
            Self::TimedOut => f.write_str("nothing came in time"),
            Self::Closed => f.write_str("the client is closed"),
        }
    }
}

impl std::error::Error for Error {}
