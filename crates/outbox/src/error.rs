//! Why a database or a sink did not do what it was asked.

use std::fmt;

/// Why not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// There is no connection. It is made again.
    Lost(String),
    /// It declines: a right, a table, a lock that somebody holds.
    Declined(String),
    /// The settings, or the table, are not as they must be. Nothing will come of asking again.
    Invalid(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lost(why) => write!(f, "there is no connection: {why}"),
            Self::Declined(why) => write!(f, "the database declines: {why}"),
            Self::Invalid(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for Error {}

impl From<sqlx::Error> for Error {
    fn from(error: sqlx::Error) -> Self {
        match &error {
            sqlx::Error::Database(said) => {
                let code = said.code().unwrap_or_default();
                // Connection exceptions, too many connections, and a server that starts or stops (PostgreSQL, appendix A).
                let is_lost = code.starts_with("08") || code.starts_with("57P") || code == "53300";
                let text = said.to_string();
                if is_lost { Self::Lost(text) } else { Self::Declined(text) }
            }
            sqlx::Error::Io(_)
            | sqlx::Error::Tls(_)
            | sqlx::Error::Protocol(_)
            | sqlx::Error::PoolTimedOut
            | sqlx::Error::PoolClosed
            | sqlx::Error::WorkerCrashed => Self::Lost(error.to_string()),
            sqlx::Error::Configuration(_) => Self::Invalid(error.to_string()),
            _ => Self::Declined(error.to_string()),
        }
    }
}
