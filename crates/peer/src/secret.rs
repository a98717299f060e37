//! Secrets by reference: where they are, and never what they are.

use std::fmt;
use std::path::{Path, PathBuf};

use overtake_redact::MASK;
use serde::{Deserialize, Serialize};

use crate::address::Address;
use crate::reach::LinkLocal;
use crate::tls::Tls;

/// Longest secret, bytes.
const LEN_MAX: u64 = 64 << 10;
/// How a configuration file says where a secret is. The messages of [`Secret`] and [`Text`] have it, too.
const FORMS: &str = "{ env = \"VARIABLE\" } or { file = \"PATH\" }";
/// How a definition over the API does.
const FORM_OF_API: &str = "{\"env\": \"OVERTAKE_SECRET_…\"}, a variable of the server";
/// What variables are called that may be named over the API.
const PREFIX: &str = "OVERTAKE_SECRET_";

/// Where a secret is: `{"env": "VARIABLE"}` or `{"file": "PATH"}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", from = "Named")]
pub enum Secret {
    /// In a variable of the server's environment.
    Env(String),
    /// In a file that the server can read; a line break at its end is not part of it.
    File(PathBuf),
}

/// What may stand where a secret is named. Of anything else nothing is repeated, as it may be the secret itself.
#[derive(Deserialize)]
#[serde(
    untagged,
    deny_unknown_fields,
    expecting = "a secret is not said itself: say where it is, as { env = \"VARIABLE\" } or { file = \"PATH\" }"
)]
enum Named {
    Env { env: String },
    File { file: PathBuf },
}

impl From<Named> for Secret {
    fn from(named: Named) -> Self {
        match named {
            Named::Env { env } => Self::Env(env),
            Named::File { file } => Self::File(file),
        }
    }
}

/// What a definition may name: secrets and files of the server, and addresses. Whoever configures the server may name any secret, whoever
/// asks over the API those that are meant for it. Else the API would be a way to read the server's environment and files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vault {
    secrets: Secrets,
    link_local: LinkLocal,
}

/// Which secrets may be named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Secrets {
    Any,
    Closed,
    OfApi,
}

impl Vault {
    /// Everything.
    pub const ANY: Self = Self { secrets: Secrets::Any, link_local: LinkLocal::Allowed };
    /// Everything, and no secret is there to be read: a definition is looked at only.
    pub const CLOSED: Self = Self { secrets: Secrets::Closed, link_local: LinkLocal::Allowed };
    /// Variables that begin with `OVERTAKE_SECRET_`, no files, and no link-local addresses.
    pub const OF_API: Self = Self { secrets: Secrets::OfApi, link_local: LinkLocal::Refused };

    /// The same with another rule for link-local addresses.
    #[must_use]
    pub const fn with_link_local(self, link_local: LinkLocal) -> Self {
        Self { link_local, ..self }
    }

    /// Whether a definition comes over the API.
    #[must_use]
    pub fn is_of_api(self) -> bool {
        self.secrets == Secrets::OfApi
    }

    /// Whether none of the secrets is there to be read.
    #[must_use]
    pub fn is_closed(self) -> bool {
        self.secrets == Secrets::Closed
    }

    /// How a definition says where a secret is: in TOML in the server's configuration, in JSON over the API.
    #[must_use]
    pub fn forms(self) -> &'static str {
        if self.is_of_api() { FORM_OF_API } else { FORMS }
    }

    /// How a header says where its value is.
    pub(crate) fn header_form(self) -> &'static str {
        if self.is_of_api() {
            "{\"authorization\": {\"env\": \"OVERTAKE_SECRET_…\"}}, a variable of the server"
        } else {
            "{ authorization = { env = \"VARIABLE\" } }"
        }
    }

    /// What is wrong with a definition, with the [`forms`](Self::forms) that are allowed here: who reads a [`Secret`] does not know where it stands.
    #[must_use]
    pub fn phrase(self, why: &str) -> String {
        why.replace(FORMS, self.forms())
    }

    /// The address as it may be connected to: what its name leads to is looked at with each connection.
    ///
    /// # Errors
    /// It is the text of an address that is refused, as a phrase.
    pub fn admit(self, address: Address) -> Result<Address, String> {
        self.check_host(&address.host)?;
        Ok(Address { link_local: self.link_local, ..address })
    }

    /// Whether a host may be named, as far as its text says: a name may, until it is seen where it leads.
    ///
    /// # Errors
    /// Why not, as a phrase.
    pub fn check_host(self, host: &str) -> Result<(), String> {
        host.parse().map_or(Ok(()), |literal| self.link_local.check(literal))
    }

    /// Whether a secret may be named at this key of a definition.
    ///
    /// # Errors
    /// Why not, as a phrase that names the key.
    pub fn check(self, key: &str, secret: &Secret) -> Result<(), String> {
        match (self.secrets, secret) {
            (Secrets::Any | Secrets::Closed, _) => Ok(()),
            (Secrets::OfApi, Secret::Env(name)) if name.starts_with(PREFIX) => Ok(()),
            (Secrets::OfApi, _) => Err(format!("`{key}`: over the API a secret is {FORM_OF_API}")),
        }
    }

    /// Whether files of the server may be named for TLS.
    ///
    /// # Errors
    /// Why not, as a phrase.
    pub fn check_tls(self, tls: &Tls) -> Result<(), String> {
        if !self.is_of_api() || tls.is_plain() {
            return Ok(());
        }
        Err("`tls` names files of the server: say it in its configuration, not over the API".to_owned())
    }
}

/// A text that may be secret: the text itself, or where it is. It is shown masked.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    untagged,
    expecting = "neither a text nor a secret, which is { env = \"VARIABLE\" } or { file = \"PATH\" }"
)]
pub enum Text {
    /// The text itself.
    Plain(String),
    /// Where it is.
    Secret(Secret),
}

impl Text {
    /// What it says.
    ///
    /// # Errors
    /// Why it cannot be read, as a phrase.
    pub fn read(&self) -> Result<String, String> {
        match self {
            Self::Plain(text) => Ok(text.clone()),
            Self::Secret(secret) => secret.read(),
        }
    }
}

impl Default for Text {
    fn default() -> Self {
        Self::Plain(String::new())
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self::Plain(text.to_owned())
    }
}

/// Never what it says.
impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plain(_) => f.write_str(MASK),
            Self::Secret(secret) => secret.fmt(f),
        }
    }
}

impl Secret {
    /// What it is.
    ///
    /// # Errors
    /// Why it cannot be read, as a phrase.
    pub fn read(&self) -> Result<String, String> {
        match self {
            Self::Env(name) => std::env::var(name)
                .map_err(|_| format!("the variable {name} is not set to text where the server runs")),
            Self::File(path) => read_file(path).map_err(|why| format!("{}: {why}", path.display())),
        }
    }
}

fn read_file(path: &Path) -> Result<String, String> {
    let len = std::fs::metadata(path).map_err(|error| error.to_string())?.len();
    if len > LEN_MAX {
        return Err(format!("it has {len} bytes, which is no secret"));
    }
    let mut text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    if text.ends_with('\n') {
        text.pop();
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn what_is_said_in_place_of_a_secret_is_not_repeated() {
        let refused =
            |said: Value| serde_json::from_value::<Secret>(said).expect_err("no reference").to_string();
        for said in [
            json!("hunter2"),
            json!({"env": 2}),
            json!({"env": "A", "file": "hunter2"}),
            json!({"hunter2": "x"}),
        ] {
            let why = refused(said);
            assert!(why.contains(FORMS) && !why.contains("hunter2"), "{why}");
            let why = Vault::OF_API.phrase(&why);
            assert!(why.contains(FORM_OF_API) && !why.contains("file"), "{why}");
        }
        for (said, expect) in [
            (json!({"env": "A"}), Secret::Env("A".to_owned())),
            (json!({"file": "/a"}), Secret::File("/a".into())),
        ] {
            assert_eq!(serde_json::to_value(&expect).expect("JSON"), said);
            assert_eq!(serde_json::from_value::<Secret>(said).expect("a reference"), expect);
        }
    }
}
