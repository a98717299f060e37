//! Where people log in, and where it is written down who there is.
//!
//! ```text
//!   name, password, address ─▶ Checks: remembered, or compared ─▶ Identity
//!   change ─▶ Directory::entries ─▶ Engine::set_metadata (durable) ─▶ Roll      one change after the other
//! ```
//!
//! Whoever is wrong learns nothing: an unknown name, a wrong password and a guest from elsewhere get the same answer after the
//! same time.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use overtake_engine::{Engine, Failure};
use overtake_lane::Time;

use crate::audit::{Audit, Deed};
use crate::checks::{Checked, Checks};
use crate::directory::{Account, Change, Directory, TokenDigest, Unchangeable, Unreadable};
use crate::identity::{Identity, Roll};
use crate::password::PasswordHash;
use crate::right::{Permission, Tag};
use crate::token::{Digested, Scope, Secret, Token};
use crate::web_session::{Login, WebSessions};

/// Who is there where nobody was made yet, with this name as password; only from this machine.
pub const GUEST: &str = "guest";
/// The virtual host that is always there.
pub const DEFAULT_VHOST: &str = "/";

/// Where people log in.
pub struct Gate {
    roll: Roll,
    engine: Arc<dyn Engine>,
    clock: fn() -> Time,
    audit: Arc<Audit>,
    writing: tokio::sync::Mutex<()>,
    checks: Checks,
    web_sessions: WebSessions,
}

/// Why somebody does not come in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoginRefused {
    /// The name or the password is wrong, or the token: it is not said which.
    Wrong,
    /// The password was not looked at: too many logins wait, of all or from this address.
    Crowded,
}

impl fmt::Display for LoginRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Wrong => "the user or the password is wrong, or the token",
            Self::Crowded => "too many logins wait for their passwords to be checked; try again in a second, or log in by a token",
        })
    }
}

impl std::error::Error for LoginRefused {}

/// Why there is no gate.
#[derive(Clone, Debug)]
pub enum NoGate {
    /// The engine does not answer.
    Engine(Failure),
    /// What is written of users cannot be read.
    Unreadable(Unreadable),
}

impl fmt::Display for NoGate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Engine(failure) => failure.fmt(f),
            Self::Unreadable(unreadable) => unreadable.fmt(f),
        }
    }
}

impl std::error::Error for NoGate {}

impl From<NoGate> for Failure {
    fn from(not: NoGate) -> Self {
        match not {
            NoGate::Engine(failure) => failure,
            NoGate::Unreadable(unreadable) => Self::Unavailable(unreadable.to_string().into()),
        }
    }
}

/// Why something was not changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotChanged {
    /// It cannot be.
    Unchangeable(Unchangeable),
    /// The engine did not do it.
    Failed(Failure),
}

impl fmt::Display for NotChanged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unchangeable(why) => why.fmt(f),
            Self::Failed(failure) => failure.fmt(f),
        }
    }
}

impl std::error::Error for NotChanged {}

impl Gate {
    /// Everybody whom the engine remembers; where that is nobody yet, [`GUEST`].
    ///
    /// # Errors
    /// [`NoGate`].
    pub async fn open(engine: Arc<dyn Engine>, clock: fn() -> Time) -> Result<Self, NoGate> {
        let directory = read(&*engine).await?;
        let has_begun = directory.has_begun();
        let roll = Roll::default();
        roll.replace(directory);
        let gate = Self {
            roll,
            engine,
            clock,
            audit: Arc::default(),
            writing: tokio::sync::Mutex::default(),
            checks: Checks::new(random(), Arc::new(PasswordHash::is_of)),
            web_sessions: WebSessions::default(),
        };
        if !has_begun {
            gate.begin().await.map_err(|not| match not {
                NotChanged::Failed(failure) => NoGate::Engine(failure),
                NotChanged::Unchangeable(why) => unreachable!("guest can be made: {why}"),
            })?;
        }
        Ok(gate)
    }

    /// The first one is here.
    async fn begin(&self) -> Result<(), NotChanged> {
        let password = self.hashed(GUEST.to_owned()).await.expect("it is a password");
        let tags = [Tag::Administrator.as_str()].into_iter().collect();
        let account = Account { password: Some(password), tags, ..Account::default() };
        let rights = Change::SetPermission {
            user: GUEST.into(),
            vhost: DEFAULT_VHOST.into(),
            permission: Permission::everything(),
        };
        self.change(None, vec![Change::PutUser { name: GUEST.into(), account }, rights]).await
    }

    /// Takes up what other processes on the same servers change of users, permissions and tokens, for as long as the engine
    /// goes on; ends at once where there are none.
    pub async fn follow(&self) {
        let Some(mut versions) = self.engine.metadata_versions() else { return };
        loop {
            // The first time, too: something may have changed since the gate was opened.
            if let Err(why) = self.take_up().await {
                tracing::warn!(%why, "what other processes change of users and permissions is not known here");
            }
            if versions.changed().await.is_err() {
                return;
            }
        }
    }

    async fn take_up(&self) -> Result<(), NoGate> {
        let _one = self.writing.lock().await;
        self.read_again().await
    }

    /// Whoever calls it has the turn to write.
    async fn read_again(&self) -> Result<(), NoGate> {
        let directory = read(&*self.engine).await?;
        if directory != *self.roll.now() {
            self.roll.replace(directory);
        }
        Ok(())
    }

    // ---- coming in ----

    /// Somebody with a name and a password, from an address. Slow by intent where it was not asked before.
    ///
    /// # Errors
    /// [`LoginRefused`].
    pub async fn log_in(&self, user: &str, password: &str, from: IpAddr) -> Result<Identity, LoginRefused> {
        let from = from.to_canonical();
        // Nobody's password is right who may not come from there: not even by the time it takes.
        let roll = may_come(user, from).then_some(&self.roll);
        match self.checks.check(roll, user, password, from).await {
            Checked::Right => self.admit(user.into(), None, from),
            Checked::Wrong(failures) => {
                let why = if roll.is_some() { "no such user, or a wrong password" } else { FROM_HERE_ONLY };
                tracing::warn!(user, %from, failures, "login refused: {why}");
                Err(LoginRefused::Wrong)
            }
            Checked::Crowded => {
                tracing::warn!(user, %from, "login refused: too many logins wait for their passwords to be checked");
                Err(LoginRefused::Crowded)
            }
        }
    }

    /// Lets in a user whose credentials are right. Passwords, tokens, certificates and web sessions all end here, so that no way in
    /// leaves out a rule: the user exists, and [`GUEST`] comes from this machine.
    fn admit(&self, user: Arc<str>, token: Option<Arc<str>>, from: IpAddr) -> Result<Identity, LoginRefused> {
        if self.roll.now().user(&user).is_none() {
            tracing::warn!(user = &*user, %from, "login refused: no such user");
            return Err(LoginRefused::Wrong);
        }
        if !may_come(&user, from) {
            tracing::warn!(user = &*user, %from, "login refused: {FROM_HERE_ONLY}");
            return Err(LoginRefused::Wrong);
        }
        Ok(Identity::new(user, token, Some(from), self.roll.clone()))
    }

    /// Somebody with a token.
    ///
    /// # Errors
    /// [`LoginRefused`].
    pub fn log_in_by_token(&self, shown: &str, from: IpAddr) -> Result<Identity, LoginRefused> {
        let from = from.to_canonical();
        let directory = self.roll.now();
        let (id, token) = directory.shown(shown).ok_or_else(|| {
            tracing::warn!(%from, "login refused: no such token");
            LoginRefused::Wrong
        })?;
        if token.is_over((self.clock)()) {
            tracing::warn!(user = &*token.user, token = &**id, %from, "login refused: the token is over");
            return Err(LoginRefused::Wrong);
        }
        self.admit(Arc::clone(&token.user), Some(Arc::clone(id)), from)
    }

    /// Somebody whom a client certificate names, which was checked. The certificate stands for the password, and for nothing else: the
    /// user's tags, permissions and limits hold, and [`GUEST`] comes from this machine only.
    ///
    /// # Errors
    /// [`LoginRefused`] when there is no such user, or it may not come from there.
    pub fn log_in_by_certificate(&self, user: &str, from: IpAddr) -> Result<Identity, LoginRefused> {
        self.admit(user.into(), None, from.to_canonical())
    }

    /// A web session of somebody who has logged in by name and password, or by a token: what the browser is to show from now on.
    /// It is over after 12 hours without use, after a week, and when the password changes; a restart forgets it.
    #[must_use]
    pub fn begin_web_session(&self, who: &Identity) -> Secret {
        let secret = Secret::of(random());
        let login = Login { user: Arc::clone(who.user()), token: who.token().cloned() };
        self.web_sessions.begin(&secret, login, (self.clock)(), &self.roll.now());
        secret
    }

    /// Ends a web session, if it is one.
    pub fn end_web_session(&self, shown: &str) {
        self.web_sessions.end(shown);
    }

    /// Whether a web session goes on. To ask this is no use of it, so a page that is left open ends as others do.
    #[must_use]
    pub fn has_web_session(&self, shown: &str) -> bool {
        self.web_sessions.goes_on(shown, (self.clock)(), &self.roll.now())
    }

    /// Somebody with a web session.
    ///
    /// # Errors
    /// [`LoginRefused`].
    pub fn log_in_by_web_session(&self, shown: &str, from: IpAddr) -> Result<Identity, LoginRefused> {
        let from = from.to_canonical();
        let now = (self.clock)();
        let login = self.web_sessions.find(shown, now, &self.roll.now()).ok_or(LoginRefused::Wrong)?;
        let who = self.admit(login.user, login.token, from)?;
        if who.is_there(now) { Ok(who) } else { Err(LoginRefused::Wrong) }
    }

    /// A user for whom the broker itself does something that was asked for earlier: whatever rights that one has then count, none where
    /// there is no such user any more.
    #[must_use]
    pub fn on_behalf_of(&self, user: &str) -> Identity {
        Identity::new(user.into(), None, None, self.roll.clone())
    }

    // ---- changing who there is ----

    /// Everybody there is.
    #[must_use]
    pub fn roll(&self) -> &Roll {
        &self.roll
    }

    /// Where it is written what administrators do.
    #[must_use]
    pub fn audit(&self) -> &Arc<Audit> {
        &self.audit
    }

    /// What administrators do is written down.
    pub fn record(&self, deed: Deed) {
        self.audit.record((self.clock)(), deed);
    }

    /// Changes who there is, all or nothing; durable once it answers. Whether somebody may is not asked here.
    ///
    /// # Errors
    /// [`NotChanged`].
    pub async fn change(&self, by: Option<&Identity>, changes: Vec<Change>) -> Result<(), NotChanged> {
        let _one = self.writing.lock().await;
        if self.engine.metadata_versions().is_some() {
            self.read_again().await.map_err(|not| NotChanged::Failed(not.into()))?;
        }
        let before = self.roll.now();
        let entries = before.entries(&changes).map_err(NotChanged::Unchangeable)?;
        self.engine.set_metadata(entries.clone()).await.map_err(NotChanged::Failed)?;
        let mut after = (*before).clone();
        for entry in &entries {
            after.fold(&entry.key, entry.value.as_deref()).expect("what is written can be read");
        }
        for change in &changes {
            self.record(Deed::of_change(by, change, &before, &after));
            if let Change::ForgetVhost { vhost } = change {
                self.roll.delete_vhost(vhost);
            }
        }
        self.roll.replace(after);
        Ok(())
    }

    /// Keeps a password. Takes a while.
    ///
    /// # Errors
    /// [`BadPassword`](crate::BadPassword).
    pub async fn hashed(&self, password: String) -> Result<PasswordHash, crate::BadPassword> {
        self.checks.hashed(password).await
    }

    /// Makes a token: its number, and what is shown once.
    ///
    /// # Errors
    /// [`NotChanged`].
    pub async fn make_token(
        &self,
        by: &Identity,
        user: &str,
        label: &str,
        scope: Scope,
        expires: Option<Time>,
    ) -> Result<(Arc<str>, Secret), NotChanged> {
        let directory = self.roll.now();
        let has = |tag: &str| {
            directory.user(user).is_some_and(|user| user.account.tags.iter().any(|has| has == tag))
        };
        if let Some(tag) = scope.tags.unknown().find(|tag| !has(tag)) {
            return Err(NotChanged::Unchangeable(Unchangeable::UnknownTag(Arc::clone(tag))));
        }
        let secret = Secret::of(random());
        let number: [u8; 8] = random();
        let id: Arc<str> = number.iter().map(|byte| format!("{byte:02x}")).collect::<String>().into();
        let created = (self.clock)();
        let token = Token { label: label.into(), user: user.into(), scope, created, expires };
        let digest = TokenDigest(Digested::of(secret.reveal()));
        self.change(Some(by), vec![Change::PutToken { id: Arc::clone(&id), digest, token }]).await?;
        Ok((id, secret))
    }

    /// Revokes a token.
    ///
    /// # Errors
    /// [`NotChanged`].
    pub async fn revoke_token(&self, by: &Identity, id: &str) -> Result<(), NotChanged> {
        self.change(Some(by), vec![Change::DeleteToken { id: id.into() }]).await
    }

    /// What time it is here.
    #[must_use]
    pub fn now(&self) -> Time {
        (self.clock)()
    }

    /// Whether [`GUEST`] still has the password that everybody knows. As slow as a login.
    #[must_use]
    pub fn has_default_user(&self) -> bool {
        let directory = self.roll.now();
        let hash = directory.user(GUEST).and_then(|user| user.account.password.as_ref());
        hash.is_some_and(|hash| PasswordHash::is_of(Some(hash), GUEST))
    }

    /// Whether there is an administrator who may come from elsewhere.
    #[must_use]
    pub fn has_administrator_from_elsewhere(&self) -> bool {
        let directory = self.roll.now();
        directory.users().any(|(name, user)| **name != *GUEST && user.account.tags.cover(Tag::Administrator))
    }
}

/// Everybody whom the engine remembers.
async fn read(engine: &dyn Engine) -> Result<Directory, NoGate> {
    let mut directory = Directory::default();
    for (key, value) in engine.metadata().await.map_err(NoGate::Engine)? {
        directory.fold(&key, Some(&value)).map_err(NoGate::Unreadable)?;
    }
    Ok(directory)
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Gate")
    }
}

/// What the log says of a user who may not come from elsewhere.
const FROM_HERE_ONLY: &str = "this user comes from this machine only";

/// Whether a user of this name may come from this address.
fn may_come(user: &str, from: IpAddr) -> bool {
    user != GUEST || from.is_loopback()
}

fn random<const LEN: usize>() -> [u8; LEN] {
    let mut bytes = [0; LEN];
    getrandom::fill(&mut bytes).expect("the system gives random bytes");
    bytes
}
