//! Tokens: what a program shows instead of a name and a password.
//!
//! As text `ovt_` and 32 bytes at random in base64url: so many that nobody guesses one, so a digest is enough to keep it by.
//! It belongs to a user, is shown once, and lets its bearer do what the user may, within its scope.

use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use overtake_lane::Time;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::right::{Permission, Tags};

/// What the text of a token begins with.
pub const TOKEN_PREFIX: &str = "ovt_";

/// A token as it is shown, once.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

/// Never what it says.
impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

impl Secret {
    /// Of bytes at random.
    #[must_use]
    pub(crate) fn of(random: [u8; 32]) -> Self {
        Self(format!("{TOKEN_PREFIX}{}", URL_SAFE_NO_PAD.encode(random)))
    }

    /// As it is shown.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

/// By what a token is kept and found.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Digested([u8; 32]);

impl Digested {
    /// Of what a client shows.
    pub(crate) fn of(text: &str) -> Self {
        Self(Sha256::digest(text.as_bytes()).into())
    }
}

impl Serialize for Digested {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&URL_SAFE_NO_PAD.encode(self.0))
    }
}

impl<'de> Deserialize<'de> for Digested {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'_, str>>::deserialize(deserializer)?;
        let bytes = URL_SAFE_NO_PAD.decode(&*text).ok().and_then(|bytes| bytes.try_into().ok());
        bytes.map(Self).ok_or_else(|| serde::de::Error::custom("no digest"))
    }
}

/// What a token lets its bearer do of what its user may.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Scope {
    /// Only in this virtual host; unset: in all that the user may enter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vhost: Option<Arc<str>>,
    /// Only what these match, too; unset: what the user's rights say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permission: Option<Permission>,
    /// Of the user's tags these; none unless it says so.
    pub tags: Tags,
}

/// A token as it is listed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Token {
    /// Its name for people: what it is for.
    pub label: Arc<str>,
    /// Whose it is.
    pub user: Arc<str>,
    /// What it lets its bearer do.
    pub scope: Scope,
    /// When it was made.
    pub created: Time,
    /// From when on it is no good; `None`: never.
    pub expires: Option<Time>,
}

impl Token {
    /// Whether it is good no more.
    #[must_use]
    pub fn is_over(&self, now: Time) -> bool {
        self.expires.is_some_and(|expires| expires <= now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_has_a_prefix_and_is_found_by_what_it_says() {
        let secret = Secret::of([7; 32]);
        assert_eq!(secret.reveal().len(), TOKEN_PREFIX.len() + 43);
        assert!(secret.reveal().starts_with("ovt_BwcH"));
        assert_eq!(format!("{secret:?}"), "Secret");
        assert!(Digested::of(secret.reveal()) == Digested::of(secret.reveal()));
        assert!(Digested::of(secret.reveal()) != Digested::of("ovt_"));
    }

    #[test]
    fn a_token_ends_when_it_says() {
        let token = |expires| Token {
            label: "ci".into(),
            user: "u".into(),
            scope: Scope::default(),
            created: Time(0),
            expires,
        };
        assert!(!token(None).is_over(Time(u64::MAX)));
        assert!(!token(Some(Time(5))).is_over(Time(4)));
        assert!(token(Some(Time(5))).is_over(Time(5)));
    }
}
