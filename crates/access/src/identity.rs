//! Somebody who has logged in, and what that one may do now: rights that change count at once, for whoever is there already.

use std::collections::VecDeque;
use std::fmt;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use overtake_engine::Sender;
use overtake_engine::rights::{Need, Right};
use overtake_lane::{Pattern, Time};
use tokio::sync::watch;

use crate::directory::{Directory, User, UserLimits};
use crate::right::{Permission, Tag};

/// How many deleted virtual hosts are remembered. Connections look at every change at once, so the last ones are enough.
const DELETED_VHOSTS_MAX: usize = 1_000;

/// Everybody there is at the moment, for all who must know. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Roll(Arc<Current>);

#[derive(Debug, Default)]
struct Current {
    version: AtomicU64,
    directory: RwLock<Arc<Directory>>,
    /// The virtual hosts that were deleted last, each with the version from which on nobody has permissions there.
    deleted_vhosts: Mutex<VecDeque<(u64, Arc<str>)>>,
    changes: watch::Sender<()>,
}

impl Roll {
    /// Everybody there is now.
    #[must_use]
    pub fn now(&self) -> Arc<Directory> {
        Arc::clone(&self.0.directory.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Another number after every change: what was found out under the same one still holds.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.0.version.load(Ordering::Acquire)
    }

    pub(crate) fn replace(&self, directory: Directory) {
        *self.0.directory.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(directory);
        self.0.version.fetch_add(1, Ordering::Release);
        self.0.changes.send_replace(());
    }

    /// Remembers that the next version has no permissions in a virtual host because it is deleted.
    pub(crate) fn delete_vhost(&self, vhost: &Arc<str>) {
        let mut deleted = self.0.deleted_vhosts.lock().unwrap_or_else(PoisonError::into_inner);
        deleted.truncate(DELETED_VHOSTS_MAX - 1);
        deleted.push_front((self.version() + 1, Arc::clone(vhost)));
    }

    /// Hears of every change.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<()> {
        self.0.changes.subscribe()
    }
}

/// Somebody who has logged in.
#[derive(Clone, Debug)]
pub struct Identity {
    user: Arc<str>,
    /// By this token, if not by name and password.
    token: Option<Arc<str>>,
    from: Option<IpAddr>,
    roll: Roll,
}

/// Why somebody may not do something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Denied {
    /// Without rights to the virtual host.
    Vhost {
        /// Who.
        user: Arc<str>,
        /// Where.
        vhost: Arc<str>,
    },
    /// Without this right.
    Right {
        /// Who.
        user: Arc<str>,
        /// Where.
        vhost: Arc<str>,
        /// Which one it takes.
        right: Right,
        /// `queue` or `exchange`.
        what: &'static str,
        /// To what.
        name: Arc<str>,
    },
    /// Without this tag.
    Tag {
        /// Who.
        user: Arc<str>,
        /// Which one it takes.
        tag: Tag,
    },
    /// To lead messages elsewhere by a policy, without the right to everything that its pattern matches.
    Pattern {
        /// Who.
        user: Arc<str>,
        /// Where.
        vhost: Arc<str>,
        /// Of the policy.
        pattern: Arc<str>,
        /// The key of the policy that leads messages elsewhere.
        key: &'static str,
    },
    /// To publish as somebody else.
    UserId {
        /// Who.
        user: Arc<str>,
        /// As whom.
        said: Arc<str>,
    },
}

/// As RabbitMQ says it, so that people find what it means.
impl fmt::Display for Denied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Vhost { user, vhost } => write!(f, "access to vhost '{vhost}' refused for user '{user}'"),
            Self::Right { user, vhost, right, what, name } => {
                write!(f, "{right} access to {what} '{name}' in vhost '{vhost}' refused for user '{user}'")
            }
            Self::Pattern { user, vhost, pattern, key } => write!(
                f,
                "a policy with {key} takes the right to read everything that its pattern matches: the pattern for reading of user \
                 '{user}' in vhost '{vhost}' does not cover '{pattern}'; set the policy for names that the user may read, or let an \
                 administrator set it"
            ),
            Self::UserId { user, said } => {
                write!(f, "user_id property set to '{said}' but authenticated user was '{user}'")
            }
            Self::Tag { user, tag } => write!(f, "user '{user}' does not have the tag '{tag}'"),
        }
    }
}

impl std::error::Error for Denied {}

impl Identity {
    pub(crate) fn new(user: Arc<str>, token: Option<Arc<str>>, from: Option<IpAddr>, roll: Roll) -> Self {
        Self { user, token, from, roll }
    }

    /// Somebody of this name who may do everything: for a place where nobody else is.
    ///
    /// # Panics
    /// When this is no name.
    #[must_use]
    pub fn almighty(user: &str) -> Self {
        use crate::directory::{Account, Change};
        let mut directory = Directory::default();
        let account =
            Account { tags: [Tag::Administrator.as_str()].into_iter().collect(), ..Account::default() };
        let put = Change::PutUser { name: user.into(), account };
        let rights = Change::SetPermission {
            user: user.into(),
            vhost: "/".into(),
            permission: Permission::everything(),
        };
        for entry in directory.entries(&[put, rights]).expect("it is a name") {
            directory.fold(&entry.key, entry.value.as_deref()).expect("what is written can be read");
        }
        let roll = Roll::default();
        roll.replace(directory);
        Self::new(user.into(), None, None, roll)
    }

    /// The name.
    #[must_use]
    pub fn user(&self) -> &Arc<str> {
        &self.user
    }

    /// The number of the token by which somebody came in.
    #[must_use]
    pub fn token(&self) -> Option<&Arc<str>> {
        self.token.as_ref()
    }

    /// Where somebody logged in from; `None`: this process itself.
    #[must_use]
    pub fn from(&self) -> Option<IpAddr> {
        self.from
    }

    /// Where to see whether rights have changed since.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.roll.version()
    }

    /// Whether a virtual host was deleted after this [`version`](Self::version), also where another one has its name since.
    #[must_use]
    pub fn is_vhost_deleted(&self, vhost: &str, since: u64) -> bool {
        let deleted = self.roll.0.deleted_vhosts.lock().unwrap_or_else(PoisonError::into_inner);
        deleted.iter().any(|(version, name)| *version > since && **name == *vhost)
    }

    /// Whether somebody is still there: not deleted, the token not revoked or over.
    #[must_use]
    pub fn is_there(&self, now: Time) -> bool {
        let directory = self.roll.now();
        let token = self.token.as_ref().map(|id| directory.token(id));
        let holds = token.is_none_or(|token| token.is_some_and(|token| !token.is_over(now)));
        holds && directory.user(&self.user).is_some()
    }

    /// What somebody may have at once.
    #[must_use]
    pub fn limits(&self) -> UserLimits {
        self.with_user(|user| Some(user.account.limits)).unwrap_or_default()
    }

    /// The tags that count here: those of the user; of a token those that it names and the user's cover.
    #[must_use]
    pub fn tags(&self) -> Vec<String> {
        let Some(scope) = self.scope_tags() else {
            let all = |user: &User| user.account.tags.iter().map(str::to_owned).collect();
            return self.with_user(|user| Some(all(user))).unwrap_or_default();
        };
        let has = |user: &User, tag: &str| {
            let means = tag.parse::<Tag>().is_ok_and(|tag| user.account.tags.cover(tag));
            means || user.account.tags.iter().any(|has| has == tag)
        };
        self.with_user(|user| Some(scope.into_iter().filter(|tag| has(user, tag)).collect()))
            .unwrap_or_default()
    }

    /// Whether somebody has this tag, or one that covers it.
    ///
    /// # Errors
    /// [`Denied::Tag`].
    pub fn must_have(&self, tag: Tag) -> Result<(), Denied> {
        let tags: crate::right::Tags = self.tags().into_iter().collect();
        tags.cover(tag).then_some(()).ok_or_else(|| Denied::Tag { user: Arc::clone(&self.user), tag })
    }

    /// Whether somebody may publish what says it is of this user: the own name, for administrators any.
    ///
    /// # Errors
    /// [`Denied::UserId`].
    pub fn must_be(&self, said: &str) -> Result<(), Denied> {
        let may = *self.user == *said || self.must_have(Tag::Administrator).is_ok();
        may.then_some(()).ok_or_else(|| Denied::UserId { user: Arc::clone(&self.user), said: said.into() })
    }

    /// The sender of a message that names this user. A user may name only itself; an administrator may name anybody.
    pub(crate) fn sender(&self, said: Option<&str>) -> Sender {
        let user = said.map_or_else(|| Arc::clone(&self.user), Into::into);
        if self.must_have(Tag::Administrator).is_ok() {
            Sender::believed(Some(user))
        } else {
            Sender::user(user)
        }
    }

    /// Whether somebody has any rights in this virtual host.
    ///
    /// # Errors
    /// [`Denied::Vhost`].
    pub fn must_enter(&self, vhost: &str) -> Result<(), Denied> {
        let may = self.permission_in(vhost, |_| true);
        may.then_some(()).ok_or_else(|| Denied::Vhost { user: Arc::clone(&self.user), vhost: vhost.into() })
    }

    /// Whether somebody has this right there.
    ///
    /// # Errors
    /// [`Denied::Vhost`], [`Denied::Right`].
    pub fn must(&self, vhost: &str, need: Need<'_>) -> Result<(), Denied> {
        self.must_enter(vhost)?;
        let (right, name) = (need.right, need.to.name());
        let may = self.permission_in(vhost, |permission| permission.gives(right, name));
        may.then_some(()).ok_or_else(|| Denied::Right {
            user: Arc::clone(&self.user),
            vhost: vhost.into(),
            right,
            what: need.to.kind(),
            name: if name.is_empty() { crate::DEFAULT_EXCHANGE.into() } else { name.into() },
        })
    }

    /// Whether somebody has this right there to every name that a pattern matches, also to names that nothing has yet
    /// ([`Permission::gives_all`]).
    #[must_use]
    pub fn has_for_all(&self, vhost: &str, right: Right, names: &Pattern) -> bool {
        self.permission_in(vhost, |permission| permission.gives_all(right, names))
    }

    /// Whether somebody may see this name there: with any right to it, or a tag by which one sees everything.
    #[must_use]
    pub fn sees(&self, vhost: &str, name: &str) -> bool {
        self.must_have(Tag::Monitoring).is_ok()
            || self.permission_in(vhost, |permission| permission.gives_any(name))
    }

    fn with_user<T>(&self, look: impl FnOnce(&User) -> Option<T>) -> Option<T> {
        self.roll.now().user(&self.user).and_then(look)
    }

    fn scope_tags(&self) -> Option<Vec<String>> {
        let id = self.token.as_ref()?;
        let directory = self.roll.now();
        let tags = directory.token(id).map(|token| token.scope.tags.iter().map(str::to_owned).collect());
        Some(tags.unwrap_or_default())
    }

    /// Whether the user's rights there, and those of the token's scope, are so.
    fn permission_in(&self, vhost: &str, is_so: impl Fn(&Permission) -> bool) -> bool {
        let directory = self.roll.now();
        let of_user = directory.user(&self.user).and_then(|user| user.permissions.get(vhost));
        if !of_user.is_some_and(&is_so) {
            return false;
        }
        let Some(id) = &self.token else { return true };
        let Some(token) = directory.token(id) else { return false };
        let reaches = token.scope.vhost.as_ref().is_none_or(|only| &**only == vhost);
        reaches && token.scope.permission.as_ref().is_none_or(is_so)
    }
}
