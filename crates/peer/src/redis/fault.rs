//! What Redis says against a command.

use std::fmt;

use redis::ServerError;

/// Errors of a server that cannot do now what it will do later.
const BUSY: [&str; 9] =
    ["LOADING", "READONLY", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "BUSY", "NOREPLICAS", "MISCONF", "OOM"];

/// An error that a server answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
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
    /// One with a code and what follows it.
    #[must_use]
    pub fn new(code: impl Into<String>, details: impl Into<String>) -> Self {
        Self { code: code.into(), details: details.into() }
    }

    /// As it is told to whoever sees to the settings.
    #[must_use]
    pub fn at_login(&self) -> String {
        match self.code.as_str() {
            "WRONGPASS" | "NOAUTH" => format!("{self}; see to `username` and `password`"),
            _ => self.to_string(),
        }
    }

    /// The user may not do this.
    #[must_use]
    pub fn is_forbidden(&self) -> bool {
        self.code == "NOPERM"
    }

    /// The server cannot do now what it will do later.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        BUSY.contains(&self.code.as_str())
    }

    /// The group of consumers is there already.
    #[must_use]
    pub fn is_group_there(&self) -> bool {
        self.code == "BUSYGROUP"
    }

    /// Its first word, such as `OOM`.
    #[must_use]
    pub fn code(&self) -> &str {
        &self.code
    }

    /// What follows that.
    #[must_use]
    pub fn details(&self) -> &str {
        &self.details
    }
}
