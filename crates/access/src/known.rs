//! Passwords that were right before, so that a request over HTTP does not cost an Argon2 each; and who logged in from where.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::password::PasswordHash;

/// Most users whose password is remembered, and most regulars.
const REMEMBERED_MAX: usize = 10_000;

/// The last right password of each user, by a digest with a key that only this process has. It counts as long as the user's hash is the one
/// that it was compared with: it is forgotten when that user gets another password or is deleted, and not when anybody else changes.
pub(crate) struct Known {
    key: [u8; 32],
    right: Mutex<HashMap<Arc<str>, Right>>,
}

struct Right {
    shown: Shown,
    hash: PasswordHash,
}

/// A name and a password.
#[derive(Clone, Copy)]
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

    /// Whether it was right, and the user's hash is still this one.
    pub(crate) fn has(&self, user: &str, shown: &Shown, hash: &PasswordHash) -> bool {
        let right = lock(&self.right);
        right.get(user).is_some_and(|right| right.shown.0.ct_eq(&shown.0).into() && right.hash == *hash)
    }

    /// It was right for this hash.
    pub(crate) fn remember(&self, user: &Arc<str>, shown: Shown, hash: PasswordHash) {
        let mut right = lock(&self.right);
        make_room(&mut right, user);
        right.insert(Arc::clone(user), Right { shown, hash });
    }
}

/// Who logged in well since the start of this process. Only a right password adds one, so strangers push nobody out.
pub(crate) struct Regulars<K>(Mutex<HashMap<K, ()>>);

impl<K> Default for Regulars<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Clone + Eq + Hash> Regulars<K> {
    pub(crate) fn has(&self, who: &K) -> bool {
        lock(&self.0).contains_key(who)
    }

    pub(crate) fn remember(&self, who: K) {
        let mut all = lock(&self.0);
        make_room(&mut all, &who);
        all.insert(who, ());
    }
}

/// Any one gives way: the order of a map that nobody outside can foresee.
fn make_room<K: Clone + Eq + Hash, V>(all: &mut HashMap<K, V>, newcomer: &K) {
    if all.len() >= REMEMBERED_MAX && !all.contains_key(newcomer) {
        let any = all.keys().next().cloned();
        any.and_then(|any| all.remove(&any));
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::password::Hashing;

    /// The hash that a number stands for.
    fn hash(number: u8) -> PasswordHash {
        let digest = [[number; 36]].concat();
        let text = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, digest);
        PasswordHash::imported(Hashing::Sha256, &text).expect("a hash")
    }

    #[test]
    fn what_was_right_is_known_until_its_user_changes() {
        let known = Known::new([1; 32]);
        let shown = known.shown("ann", "secret");
        assert!(!known.has("ann", &shown, &hash(1)));
        known.remember(&"ann".into(), shown, hash(1));
        known.remember(&"bob".into(), known.shown("bob", "other"), hash(2));
        assert!(known.has("ann", &shown, &hash(1)));
        assert!(!known.has("ann", &shown, &hash(3)), "another password");
        assert!(!known.has("bob", &shown, &hash(2)));
        assert!(!known.has("ann", &known.shown("anns", "ecret"), &hash(1)));
        assert!(!known.has("ann", &known.shown("ann", "wrong"), &hash(1)));
        assert!(Known::new([2; 32]).shown("ann", "secret").0 != shown.0);
    }

    #[test]
    fn no_more_are_remembered_than_there_is_room_for() {
        let known = Known::new([1; 32]);
        for at in 0..=REMEMBERED_MAX {
            let user: Arc<str> = at.to_string().into();
            known.remember(&user, known.shown(&user, "secret"), hash(1));
            assert!(known.has(&user, &known.shown(&user, "secret"), &hash(1)));
        }
        assert_eq!(lock(&known.right).len(), REMEMBERED_MAX);
    }
}
