//! Passwords as they are kept: never themselves.
//!
//! Ours are Argon2id (RFC 9106) in PHC form, with the parameters OWASP gives for it: 19 MiB, two passes, one lane. What people
//! bring from RabbitMQ is a salted digest in base64: four bytes of salt, then the digest of salt and password.

use std::fmt;
use std::sync::LazyLock;

use argon2::Argon2;
use argon2::password_hash::phc::PasswordHash as Phc;
use argon2::password_hash::{PasswordHasher, PasswordVerifier};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256, Sha512};
use subtle::ConstantTimeEq;

/// Longest password, bytes.
pub const PASSWORD_LEN_MAX: usize = 1_024;
/// Most memory that a hash from elsewhere may ask for, KiB.
const MEMORY_KIB_MAX: u32 = 256 << 10;
/// Most passes that a hash from elsewhere may ask for.
const PASSES_MAX: u32 = 16;
/// Bytes of salt in RabbitMQ's hashes.
const SALT_LEN: usize = 4;

/// How a password is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Hashing {
    /// Argon2id, in PHC form.
    #[serde(rename = "argon2id")]
    Argon2id,
    /// RabbitMQ's, with SHA-256: what it does by itself since 3.6.
    #[serde(rename = "rabbit_password_hashing_sha256")]
    Sha256,
    /// RabbitMQ's, with SHA-512.
    #[serde(rename = "rabbit_password_hashing_sha512")]
    Sha512,
}

impl Hashing {
    /// How a hash was made that does not say it, by its form: RabbitMQ's tell by their length.
    #[must_use]
    pub fn of(text: &str) -> Self {
        let sha512 = (SALT_LEN + 64).div_ceil(3) * 4;
        match text.len() {
            _ if text.starts_with("$argon2id$") => Self::Argon2id,
            len if len == sha512 => Self::Sha512,
            _ => Self::Sha256,
        }
    }
}

/// A password that is kept as a hash.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PasswordHash {
    /// How it was made.
    #[serde(rename = "hashing_algorithm")]
    hashing: Hashing,
    /// What was made.
    #[serde(rename = "password_hash")]
    text: Box<str>,
}

/// A hash that nobody can have made so, or a password that cannot be one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadPassword(pub(crate) String);

impl fmt::Display for BadPassword {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BadPassword {}

/// Never what it says.
impl fmt::Debug for PasswordHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PasswordHash({:?})", self.hashing)
    }
}

/// What a password is compared with where there is none, so that it takes as long.
static NOBODY: LazyLock<PasswordHash> =
    LazyLock::new(|| PasswordHash::of("nobody has this password").expect("it is one"));

impl PasswordHash {
    /// Keeps a password. Takes tens of milliseconds and 19 MiB.
    ///
    /// # Errors
    /// [`BadPassword`] when it is empty or too long.
    pub fn of(password: &str) -> Result<Self, BadPassword> {
        if password.is_empty() {
            return Err(BadPassword("a password has one character at least".into()));
        }
        if password.len() > PASSWORD_LEN_MAX {
            return Err(BadPassword(format!("a password has at most {PASSWORD_LEN_MAX} bytes")));
        }
        let hash = Argon2::default().hash_password(password.as_bytes());
        let hash = hash.map_err(|error| BadPassword(format!("the password cannot be kept: {error}")))?;
        Ok(Self { hashing: Hashing::Argon2id, text: hash.to_string().into() })
    }

    /// A hash that was made elsewhere.
    ///
    /// # Errors
    /// [`BadPassword`] when it has not the form of one, or costs more than we give.
    pub fn imported(hashing: Hashing, text: &str) -> Result<Self, BadPassword> {
        let hash = Self { hashing, text: text.into() };
        match hashing {
            Hashing::Argon2id => {
                let phc =
                    hash.phc().ok_or_else(|| BadPassword("the hash is no Argon2 in PHC form".into()))?;
                let cost = |name| phc.params.get_decimal(name).unwrap_or(0);
                let is_dear = cost("m") > MEMORY_KIB_MAX || cost("t") > PASSES_MAX || cost("p") > PASSES_MAX;
                if phc.algorithm.as_str() != "argon2id" || is_dear {
                    let why = format!(
                        "the hash must be argon2id with at most {} MiB and {PASSES_MAX} passes",
                        MEMORY_KIB_MAX >> 10
                    );
                    return Err(BadPassword(why));
                }
            }
            Hashing::Sha256 | Hashing::Sha512 => {
                let len = SALT_LEN + if hashing == Hashing::Sha256 { 32 } else { 64 };
                if hash.salted().is_none_or(|bytes| bytes.len() != len) {
                    return Err(BadPassword(format!("the hash must be base64 of {len} bytes")));
                }
            }
        }
        Ok(hash)
    }

    /// Whether this is the password. Whatever the hash, and where there is none, it takes as long as ours do.
    pub(crate) fn is_of(hash: Option<&Self>, password: &str) -> bool {
        let password = if password.len() > PASSWORD_LEN_MAX { "" } else { password };
        match hash {
            Some(hash) if hash.hashing == Hashing::Argon2id => hash.fits(password),
            Some(hash) => NOBODY.fits(password) | hash.fits(password),
            None => {
                std::hint::black_box(NOBODY.fits(password));
                false
            }
        }
    }

    fn fits(&self, password: &str) -> bool {
        match self.hashing {
            Hashing::Argon2id => {
                let matches = |phc: Phc| Argon2::default().verify_password(password.as_bytes(), &phc).is_ok();
                self.phc().is_some_and(matches)
            }
            Hashing::Sha256 => self.is_salted(|salt| {
                Sha256::new().chain_update(salt).chain_update(password).finalize().to_vec()
            }),
            Hashing::Sha512 => self.is_salted(|salt| {
                Sha512::new().chain_update(salt).chain_update(password).finalize().to_vec()
            }),
        }
    }

    fn is_salted(&self, digest: impl Fn(&[u8]) -> Vec<u8>) -> bool {
        let Some(bytes) = self.salted() else { return false };
        let Some((salt, made)) = bytes.split_at_checked(SALT_LEN) else { return false };
        digest(salt).ct_eq(made).into()
    }

    fn phc(&self) -> Option<Phc> {
        Phc::new(&self.text).ok()
    }

    fn salted(&self) -> Option<Vec<u8>> {
        STANDARD.decode(&*self.text).ok()
    }

    /// How it was made.
    #[must_use]
    pub fn hashing(&self) -> Hashing {
        self.hashing
    }

    /// What was made: to be exported, and never shown otherwise.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_known_by_its_hash_and_no_other_is() {
        let hash = PasswordHash::of("ünder cover").expect("a password");
        assert!(hash.as_str().starts_with("$argon2id$v=19$m=19456,t=2,p=1$"));
        assert!(PasswordHash::is_of(Some(&hash), "ünder cover"));
        assert!(!PasswordHash::is_of(Some(&hash), "under cover"));
        assert!(!PasswordHash::is_of(Some(&hash), ""));
        let again = PasswordHash::of("ünder cover").expect("a password");
        assert_ne!(hash.as_str(), again.as_str(), "each has a salt of its own");
        assert!(!format!("{hash:?}").contains('$'), "it is not shown by mistake");
    }

    /// From the documentation of RabbitMQ: salt 908DC60A, password test12.
    #[test]
    fn a_hash_of_rabbitmq_moves_over() {
        let hash = "kI3GCqW5JLMJa4iX1lo7X4D6XbYqlLgxIs30+P6tENUV2POR";
        let hash = PasswordHash::imported(Hashing::Sha256, hash).expect("a hash");
        assert!(PasswordHash::is_of(Some(&hash), "test12"));
        assert!(!PasswordHash::is_of(Some(&hash), "test13"));

        let made = [&[1, 2, 3, 4][..], &Sha512::digest(b"\x01\x02\x03\x04secret")].concat();
        let made = STANDARD.encode(made);
        assert_eq!(Hashing::of(&made), Hashing::Sha512);
        let hash = PasswordHash::imported(Hashing::Sha512, &made).expect("a hash");
        assert!(PasswordHash::is_of(Some(&hash), "secret"));
        assert!(!PasswordHash::is_of(Some(&hash), "secret "));
    }

    #[test]
    fn what_is_no_hash_is_refused() {
        let why = |hashing, text| PasswordHash::imported(hashing, text).expect_err("no hash").0;
        assert_eq!(why(Hashing::Sha256, "kI3G"), "the hash must be base64 of 36 bytes");
        assert_eq!(why(Hashing::Sha256, "no base64!"), "the hash must be base64 of 36 bytes");
        assert_eq!(why(Hashing::Argon2id, "$1$x"), "the hash is no Argon2 in PHC form");
        let dear = "$argon2id$v=19$m=4194304,t=2,p=1$c29tZXNhbHQ$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
        assert_eq!(
            why(Hashing::Argon2id, dear),
            "the hash must be argon2id with at most 256 MiB and 16 passes"
        );
    }

    #[test]
    fn nobody_has_the_password_of_nobody() {
        assert!(!PasswordHash::is_of(None, "nobody has this password"));
        assert!(PasswordHash::of("").is_err());
        assert!(PasswordHash::of(&"x".repeat(PASSWORD_LEN_MAX + 1)).is_err());
    }
}
