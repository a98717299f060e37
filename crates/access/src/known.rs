//! Passwords that were right a moment ago, so that a request over HTTP does not cost an Argon2 each.
//!
//! By a digest with a key that only this process has, and only until anybody changes.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use sha2::{Digest, Sha256};

/// Most that are remembered.
const KNOWN_MAX: usize = 1_000;

/// Passwords that were right.
pub(crate) struct Known {
    key: [u8; 32],
    right: Mutex<Right>,
}

/// Those that were right while the roll had this version.
#[derive(Default)]
struct Right {
    version: u64,
    digests: HashSet<Shown>,
}

/// A name and a password.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Shown([u8; 32]);

impl Known {
    pub(crate) fn new(key: [u8; 32]) -> Self {
        Self { key, right: Mutex::default() }
    }

    /// What is shown, so that it can be remembered.
    pub(crate) fn shown(&self, user: &str, password: &str) -> Shown {
        let len = (user.len() as u64).to_le_bytes();
        let digest = Sha256::new().chain_update(self.key).chain_update(len);
        Shown(digest.chain_update(user).chain_update(password).finalize().into())
    }

    /// Whether it was right, and nobody has changed since.
    pub(crate) fn has(&self, version: u64, shown: &Shown) -> bool {
        let right = self.right();
        right.version == version && right.digests.contains(shown)
    }

    /// It was right at this version.
    pub(crate) fn remember(&self, version: u64, shown: Shown) {
        let mut right = self.right();
        if right.version != version || right.digests.len() >= KNOWN_MAX {
            *right = Right { version, ..Right::default() };
        }
        right.digests.insert(shown);
    }

    fn right(&self) -> MutexGuard<'_, Right> {
        self.right.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_right_is_known_until_anybody_changes() {
        let known = Known::new([1; 32]);
        let shown = known.shown("ann", "secret");
        assert!(!known.has(0, &shown));
        known.remember(7, shown);
        assert!(known.has(7, &shown));
        assert!(!known.has(8, &shown));
        assert!(!known.has(7, &known.shown("anns", "ecret")));
        assert!(Known::new([2; 32]).shown("ann", "secret") != shown);
    }

    #[test]
    fn no_more_are_remembered_than_there_is_room_for() {
        let known = Known::new([1; 32]);
        for at in 0..=KNOWN_MAX {
            known.remember(0, known.shown("ann", &at.to_string()));
        }
        assert!(known.has(0, &known.shown("ann", &KNOWN_MAX.to_string())));
        assert!(!known.has(0, &known.shown("ann", "0")));
    }
}
