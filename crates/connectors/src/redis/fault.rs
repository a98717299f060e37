//! What Redis says against a command.
//!
//! | error | means for a message |
//! |---|---|
//! | `LOADING`, `READONLY`, `MASTERDOWN`, `CLUSTERDOWN`, `TRYAGAIN`, `BUSY`, `NOREPLICAS`, `MISCONF` | busy: the server cannot write now |
//! | `OOM`, `WRONGTYPE` | busy: it is the stream that is in the way, and no message |
//! | `ERR Elements are too large …` | refused for good: no stream holds so much in one entry |
//! | anything else, `NOAUTH` and `NOPERM` among it | failed: tried again |

use std::fmt;

use overtake_forward::Answer;
use redis::ServerError;

/// So long a server is left alone that cannot write, ms.
const BUSY_MS: u64 = 1_000;
/// Errors that are of the server or of the stream and not of what is written.
const BUSY: [&str; 10] = [
    "LOADING",
    "READONLY",
    "MASTERDOWN",
    "CLUSTERDOWN",
    "TRYAGAIN",
    "BUSY",
    "NOREPLICAS",
    "MISCONF",
    "OOM",
    "WRONGTYPE",
];

/// An error that a server answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    code: String,
    details: String,
}

impl From<&ServerError> for Fault {
    fn from(error: &ServerError) -> Self {
        Self { code: error.code().to_owned(), details: error.details().unwrap_or_default().to_owned() }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { code, details } = self;
        write!(f, "it answers {code}")?;
        if !details.is_empty() {
            write!(f, " {details}")?;
        }
        match code.as_str() {
            "WRONGTYPE" => f.write_str("; the key is no stream: name another"),
            "MOVED" => f.write_str("; it is a node of a cluster: name the one that holds the stream"),
            "NOPERM" => {
                f.write_str("; the user must have the right to this command and this key (ACL SETUSER)")
            }
            _ => Ok(()),
        }
    }
}

impl Fault {
    /// As it is told to whoever sees to the settings.
    pub(crate) fn at_login(&self) -> String {
        match self.code.as_str() {
            "WRONGPASS" | "NOAUTH" => format!("{self}; see to `username` and `password`"),
            _ => self.to_string(),
        }
    }

    /// The user may not do this.
    pub(crate) fn is_forbidden(&self) -> bool {
        self.code == "NOPERM"
    }

    /// The group of consumers is there already.
    pub(crate) fn is_group_there(&self) -> bool {
        self.code == "BUSYGROUP"
    }

    /// What it means for the message that was sent.
    pub(crate) fn answer(&self) -> Answer {
        let why = self.to_string().into();
        if self.code == "ERR" && self.details.starts_with("Elements are too large") {
            return Answer::Refused { why };
        }
        let busy_ms = BUSY.contains(&self.code.as_str()).then_some(BUSY_MS);
        Answer::Failed { busy_ms, why }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(code: &str, details: &str) -> Answer {
        Fault { code: code.to_owned(), details: details.to_owned() }.answer()
    }

    #[test]
    fn an_error_means_what_the_table_says() {
        for code in BUSY {
            assert!(matches!(answer(code, ""), Answer::Failed { busy_ms: Some(BUSY_MS), .. }), "{code}");
        }
        for code in ["NOAUTH", "NOPERM", "ERR", "MOVED"] {
            assert!(matches!(answer(code, "no"), Answer::Failed { busy_ms: None, .. }), "{code}");
        }
        let why = "it answers ERR Elements are too large to be stored".into();
        assert_eq!(answer("ERR", "Elements are too large to be stored"), Answer::Refused { why });
    }
}
