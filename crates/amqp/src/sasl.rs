//! Logging in: what the mechanisms' responses say (4.5.3, RFC 4616, RFC 4422 appendix A).

use overtake_properties::{Limits, TableRef};

/// Who says to be there.
#[derive(Clone, PartialEq, Eq)]
pub enum Credentials {
    /// A name and a password.
    Password {
        /// The name.
        user: String,
        /// The password.
        password: String,
    },
    /// Who the client certificate says.
    Certificate,
}

impl Credentials {
    /// How a client logs in with these, and what it says to do so.
    pub(crate) fn response(&self) -> (Mechanism, Vec<u8>) {
        match self {
            Self::Password { user, password } => {
                (Mechanism::Plain, [b"\0", user.as_bytes(), b"\0", password.as_bytes()].concat())
            }
            Self::Certificate => (Mechanism::External, Vec::new()),
        }
    }
}

impl std::fmt::Debug for Credentials {
    /// Without the password.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Password { user, .. } => {
                f.debug_struct("Password").field("user", user).finish_non_exhaustive()
            }
            Self::Certificate => f.write_str("Certificate"),
        }
    }
}

/// What a client may log in with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mechanism {
    /// `\0user\0password`
    Plain,
    /// A table with LOGIN and PASSWORD, without its length.
    AmqPlain,
    /// The certificate of the TLS connection.
    External,
}

impl Mechanism {
    pub(crate) fn of(name: &str) -> Option<Self> {
        match name {
            "PLAIN" => Some(Self::Plain),
            "AMQPLAIN" => Some(Self::AmqPlain),
            "EXTERNAL" => Some(Self::External),
            _ => None,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Plain => "PLAIN",
            Self::AmqPlain => "AMQPLAIN",
            Self::External => "EXTERNAL",
        }
    }

    /// `None`: the response makes no sense.
    pub(crate) fn read(self, response: &[u8]) -> Option<Credentials> {
        match self {
            Self::Plain => plain(response),
            Self::AmqPlain => amqplain(response),
            Self::External => Some(Credentials::Certificate),
        }
    }
}

fn plain(response: &[u8]) -> Option<Credentials> {
    let mut parts = response.split(|byte| *byte == 0);
    let (_acting_for, user, password) = (parts.next()?, parts.next()?, parts.next()?);
    parts.next().is_none().then_some(())?;
    password_of(user, password)
}

fn amqplain(response: &[u8]) -> Option<Credentials> {
    let table = TableRef::check(response, &Limits::default()).ok()?;
    let text = |name| table.get(name).and_then(|value| value.text());
    password_of(text("LOGIN")?.as_bytes(), text("PASSWORD")?.as_bytes())
}

fn password_of(user: &[u8], password: &[u8]) -> Option<Credentials> {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).ok();
    Some(Credentials::Password { user: text(user)?, password: text(password)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ann() -> Credentials {
        Credentials::Password { user: "ann".into(), password: "secret".into() }
    }

    #[test]
    fn each_mechanism_says_who_it_is() {
        assert_eq!(Mechanism::Plain.read(b"\0ann\0secret"), Some(ann()));
        assert_eq!(
            Mechanism::Plain.read(b"bob\0ann\0secret"),
            Some(ann()),
            "acting for somebody changes nothing"
        );
        let table = b"\x05LOGINS\0\0\0\x03ann\x08PASSWORDS\0\0\0\x06secret";
        assert_eq!(Mechanism::AmqPlain.read(table), Some(ann()));
        assert_eq!(Mechanism::External.read(b""), Some(Credentials::Certificate));
    }

    #[test]
    fn what_a_client_says_is_understood() {
        for credentials in [ann(), Credentials::Certificate] {
            let (mechanism, response) = credentials.response();
            assert_eq!(mechanism.read(&response), Some(credentials));
        }
    }

    #[test]
    fn what_makes_no_sense_is_nobody() {
        for response in [&b""[..], b"ann", b"\0ann", b"\0ann\0secret\0more", b"\0\xff\0secret"] {
            assert_eq!(Mechanism::Plain.read(response), None, "{response:?}");
        }
        for response in [&b""[..], b"\x05LOGINS\0\0\0\x03ann", b"\x05LOGINS\0\0"] {
            assert_eq!(Mechanism::AmqPlain.read(response), None, "{response:?}");
        }
    }

    #[test]
    fn a_password_is_not_shown() {
        assert_eq!(format!("{:?}", ann()), "Password { user: \"ann\", .. }");
    }
}
