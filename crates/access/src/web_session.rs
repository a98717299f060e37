//! Web sessions: a browser that has logged in once, and shows a cookie from then on.
//!
//! They are remembered in memory only: a restart, a logout, another password, or a user who is deleted ends them. What the cookie
//! says is 32 bytes at random, kept by its digest as a token is.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use overtake_lane::Time;

use crate::directory::Directory;
use crate::password::PasswordHash;
use crate::token::{Digested, Secret};

/// A session that nobody has used for so long is over, ms: a night's sleep.
pub(crate) const IDLE_MS: u64 = 12 * 60 * 60 * 1_000;
/// A session is over after so long, however much it is used, ms.
pub(crate) const AGE_MS: u64 = 7 * 24 * 60 * 60 * 1_000;
/// Most sessions at once; beyond that the one that was not used for longest gives way.
const SESSIONS_MAX: usize = 10_000;

/// How somebody logged in when the session began.
#[derive(Clone)]
pub(crate) struct Login {
    /// Who.
    pub(crate) user: Arc<str>,
    /// By this token, if it was one: what it does not let its bearer do, the session does not either.
    pub(crate) token: Option<Arc<str>>,
}

struct WebSession {
    login: Login,
    /// The password as it was then, by its hash: with another one nobody is logged in any more.
    password: Option<PasswordHash>,
    begun: Time,
    seen: Time,
}

impl WebSession {
    fn is_over(&self, now: Time, directory: &Directory) -> bool {
        let late = |since: Time, ms: u64| now.0.saturating_sub(since.0) >= ms;
        let user = directory.user(&self.login.user);
        late(self.seen, IDLE_MS)
            || late(self.begun, AGE_MS)
            || user.is_none_or(|user| user.account.password != self.password)
    }
}

/// All of them, by digest.
#[derive(Default)]
pub(crate) struct WebSessions(Mutex<HashMap<Digested, WebSession>>);

impl WebSessions {
    /// One that begins.
    pub(crate) fn begin(&self, secret: &Secret, login: Login, now: Time, directory: &Directory) {
        let mut sessions = self.lock();
        if sessions.len() >= SESSIONS_MAX {
            sessions.retain(|_, session| !session.is_over(now, directory));
        }
        if sessions.len() >= SESSIONS_MAX {
            let oldest = sessions.iter().min_by_key(|(_, session)| session.seen).map(|(digest, _)| *digest);
            oldest.and_then(|oldest| sessions.remove(&oldest));
        }
        let password = directory.user(&login.user).and_then(|user| user.account.password.clone());
        let session = WebSession { login, password, begun: now, seen: now };
        sessions.insert(Digested::of(secret.reveal()), session);
    }

    /// Whose it is, if it goes on.
    pub(crate) fn find(&self, shown: &str, now: Time, directory: &Directory) -> Option<Login> {
        let mut sessions = self.lock();
        let digest = Digested::of(shown);
        let session = sessions.get_mut(&digest)?;
        if session.is_over(now, directory) {
            sessions.remove(&digest);
            return None;
        }
        session.seen = session.seen.max(now);
        Some(session.login.clone())
    }

    /// Whether a session goes on. To ask this is no use of it.
    pub(crate) fn goes_on(&self, shown: &str, now: Time, directory: &Directory) -> bool {
        self.lock().get(&Digested::of(shown)).is_some_and(|session| !session.is_over(now, directory))
    }

    /// It is over.
    pub(crate) fn end(&self, shown: &str) {
        self.lock().remove(&Digested::of(shown));
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Digested, WebSession>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::directory::{Account, Change};

    fn directory(password: &str) -> Directory {
        let mut directory = Directory::default();
        let account =
            Account { password: Some(PasswordHash::of(password).expect("a password")), ..Account::default() };
        for entry in
            directory.entries(&[Change::PutUser { name: "ann".into(), account }]).expect("it can be made")
        {
            directory.fold(&entry.key, entry.value.as_deref()).expect("it can be read");
        }
        directory
    }

    #[test]
    fn a_session_ends_by_time_by_word_and_with_the_password() {
        let there = directory("right");
        let secret = Secret::of([1; 32]);
        let began = || {
            let sessions = WebSessions::default();
            sessions.begin(&secret, Login { user: "ann".into(), token: None }, Time(1_000), &there);
            sessions
        };
        let finds = |sessions: &WebSessions, at: u64, directory: &Directory| {
            sessions.find(secret.reveal(), Time(at), directory).is_some()
        };
        let used = began();
        assert!(finds(&used, 1_000 + IDLE_MS - 1, &there));
        assert!(finds(&used, 1_000 + 2 * IDLE_MS - 2, &there), "it was used meanwhile");
        assert!(!finds(&used, 1_000 + 3 * IDLE_MS - 2, &there));
        assert!(!finds(&used, 1_000, &there), "what is over is forgotten");

        let kept_awake = began();
        let mut at = 1_000;
        while at + IDLE_MS / 2 < 1_000 + AGE_MS {
            at += IDLE_MS / 2;
            assert!(finds(&kept_awake, at, &there));
        }
        assert!(!finds(&kept_awake, 1_000 + AGE_MS, &there));

        assert!(!finds(&began(), 1_001, &directory("another")));
        assert!(!finds(&began(), 1_001, &Directory::default()));
        let ended = began();
        ended.end(secret.reveal());
        assert!(!finds(&ended, 1_001, &there));
        assert!(began().find("ovt_", Time(1_001), &there).is_none());
    }

    #[test]
    fn the_one_longest_unused_gives_way() {
        let there = directory("right");
        let sessions = WebSessions::default();
        let secret = |number: usize| {
            let mut bytes = [0; 32];
            bytes[..8].copy_from_slice(&(number as u64).to_le_bytes());
            Secret::of(bytes)
        };
        let begin = |number: usize, at: u64| {
            let login = Login { user: "ann".into(), token: None };
            sessions.begin(&secret(number), login, Time(at), &there);
        };
        for number in 0..SESSIONS_MAX {
            begin(number, number as u64);
        }
        let finds =
            |number: usize, at: u64| sessions.find(secret(number).reveal(), Time(at), &there).is_some();
        let now = SESSIONS_MAX as u64;
        assert!(finds(0, now), "the first is used once more");
        begin(SESSIONS_MAX, now);
        assert_eq!(sessions.lock().len(), SESSIONS_MAX);
        assert!(!finds(1, now) && finds(0, now) && finds(2, now) && finds(SESSIONS_MAX, now));
        // What is over goes before anybody has to give way.
        begin(SESSIONS_MAX + 1, now + IDLE_MS);
        assert_eq!(sessions.lock().len(), 1);
    }
}
