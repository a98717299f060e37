//! Secrets by reference: where they are, and never what they are.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::tls::Tls;

/// Longest secret, bytes.
const LEN_MAX: u64 = 64 << 10;
/// What variables are called that may be named over the API.
const PREFIX: &str = "OVERTAKE_SECRET_";

/// Where a secret is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Secret {
    /// In a variable of the server's environment.
    Env(String),
    /// In a file that the server can read; a line break at its end is not part of it.
    File(PathBuf),
}

/// Which secrets may be named: whoever configures the server may name any, whoever asks over the API those that are meant for it. Else the API
/// would be a way to read the server's environment and files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vault {
    /// All.
    Any,
    /// All, and none of them is there to be read: a definition is looked at only.
    Closed,
    /// Variables that begin with `OVERTAKE_SECRET_`.
    OfApi,
}

impl Vault {
    /// Whether a secret may be named.
    ///
    /// # Errors
    /// Why not, as a phrase.
    pub fn check(self, secret: &Secret) -> Result<(), String> {
        match (self, secret) {
            (Self::Any | Self::Closed, _) => Ok(()),
            (Self::OfApi, Secret::Env(name)) if name.starts_with(PREFIX) => Ok(()),
            (Self::OfApi, _) => {
                Err(format!("over the API a secret is {{\"env\": \"{PREFIX}…\"}}, a variable of the server"))
            }
        }
    }
}

impl Vault {
    /// Whether files of the server may be named for TLS.
    ///
    /// # Errors
    /// Why not, as a phrase.
    pub fn check_tls(self, tls: &Tls) -> Result<(), String> {
        if self != Self::OfApi || tls.is_plain() {
            return Ok(());
        }
        Err("`tls` names files of the server: say it in its configuration, not over the API".to_owned())
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
