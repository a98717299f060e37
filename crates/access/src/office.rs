//! Where administrators change who there is.

use std::sync::Arc;

use overtake_engine::{Engine, Orphan};
use overtake_lane::{QueueId, Time, VhostSettings};
use serde_json::{Value, json};

use crate::audit::Deed;
use crate::directory::{Account, Change, Directory, Unchangeable, UserLimits};
use crate::gate::{DEFAULT_VHOST, Gate, NotChanged};
use crate::identity::Identity;
use crate::password::{BadPassword, PasswordHash};
use crate::right::{Permission, Tag, Tags};
use crate::token::{Scope, Secret};

/// What administrators may do to users. Whoever has one is one.
#[derive(Clone)]
pub struct Office {
    who: Identity,
    engine: Arc<dyn Engine>,
    gate: Arc<Gate>,
}

/// Somebody as an administrator wants it. What is not said stays as it is, or is nothing for somebody new.
#[derive(Clone, Debug, Default)]
pub struct UserPut {
    /// The password.
    pub password: NewPassword,
    /// All tags.
    pub tags: Option<Tags>,
    /// All limits.
    pub limits: Option<UserLimits>,
}

/// What becomes of a password.
#[derive(Clone, Default)]
pub enum NewPassword {
    /// It stays.
    #[default]
    Same,
    /// There is none: one comes in by a certificate or a token.
    None,
    /// This one.
    Text(String),
    /// The one of this hash.
    Hash(PasswordHash),
}

/// Never what it says.
impl std::fmt::Debug for NewPassword {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("NewPassword")
    }
}

impl Office {
    pub(crate) fn new(who: Identity, engine: Arc<dyn Engine>, gate: Arc<Gate>) -> Self {
        Self { who, engine, gate }
    }

    /// Everybody there is.
    #[must_use]
    pub fn directory(&self) -> Arc<Directory> {
        self.gate.roll().now()
    }

    /// Somebody is there, and is so. Answers whether it is somebody new.
    ///
    /// # Errors
    /// The password cannot be one; inside, [`NotChanged`].
    pub async fn put_user(&self, name: &str, put: UserPut) -> Result<Result<bool, NotChanged>, BadPassword> {
        let UserPut { password, tags, limits } = put;
        let directory = self.directory();
        let before = directory.user(name).map(|user| &user.account);
        let is_password_said = !matches!(password, NewPassword::Same);
        let password = match password {
            NewPassword::Same => before.and_then(|account| account.password.clone()),
            NewPassword::None => None,
            NewPassword::Text(text) => Some(self.gate.hashed(text).await?),
            NewPassword::Hash(hash) => Some(hash),
        };
        let account = Account {
            password,
            tags: tags.or_else(|| Some(before?.tags.clone())).unwrap_or_default(),
            limits: limits.or_else(|| Some(before?.limits)).unwrap_or_default(),
        };
        let is_new = before.is_none();
        if let Some(why) = not_meant(name, before, &account, is_password_said) {
            return Ok(Err(NotChanged::Unchangeable(why)));
        }
        Ok(self.change(vec![Change::PutUser { name: name.into(), account }]).await.map(|()| is_new))
    }

    /// Somebody is gone, with rights and tokens.
    ///
    /// # Errors
    /// [`NotChanged`]; the same holds below.
    pub async fn delete_user(&self, name: &str) -> Result<(), NotChanged> {
        self.change(vec![Change::DeleteUser { name: name.into() }]).await
    }

    /// Somebody has these rights in a virtual host.
    pub async fn set_permission(
        &self,
        user: &str,
        vhost: &str,
        permission: Permission,
    ) -> Result<(), NotChanged> {
        let (user, vhost) = (user.into(), vhost.into());
        self.change(vec![Change::SetPermission { user, vhost, permission }]).await
    }

    /// Somebody has no rights in a virtual host.
    pub async fn clear_permission(&self, user: &str, vhost: &str) -> Result<(), NotChanged> {
        self.change(vec![Change::ClearPermission { user: user.into(), vhost: vhost.into() }]).await
    }

    // ---- virtual hosts ----

    /// A virtual host is there, and is so. Whoever makes one has all rights in it. Answers whether it is a new one.
    ///
    /// # Errors
    /// What the engine refuses.
    pub async fn put_vhost(&self, name: &str, settings: VhostSettings) -> Result<bool, NotChanged> {
        let before = self.engine.vhost(name).await.ok().map(|vhost| json!(vhost.settings));
        let after = json!(settings);
        self.engine.declare_vhost(name, settings).await.map_err(NotChanged::Failed)?;
        let is_new = before.is_none();
        if before.as_ref() != Some(&after) {
            let deed = Deed::of(Some(&self.who), "vhost.put", name).from_to(before, after);
            self.gate.record(deed);
        }
        if is_new {
            self.set_permission(self.who.user(), name, Permission::everything()).await?;
        }
        Ok(is_new)
    }

    /// A virtual host is gone with all that is in it, and all rights in it.
    ///
    /// # Errors
    /// What the engine refuses.
    pub async fn delete_vhost(&self, name: &str) -> Result<(), NotChanged> {
        let before = self.engine.vhost(name).await.map_err(NotChanged::Failed)?;
        if name != DEFAULT_VHOST {
            // First, so that nobody has rights of before in one that is made later under this name, whatever happens between.
            self.change(vec![Change::ForgetVhost { vhost: name.into() }]).await?;
        }
        self.engine.delete_vhost(name).await.map_err(NotChanged::Failed)?;
        let before = json!({"queues": before.queues, "settings": before.settings});
        self.gate.record(Deed::of(Some(&self.who), "vhost.delete", name).from_to(before, Value::Null));
        Ok(())
    }

    // ---- queues whose definition was lost ----

    /// Queues on servers whose definition was lost, by number.
    ///
    /// # Errors
    /// The servers cannot say it.
    pub async fn orphans(&self) -> Result<Vec<Orphan>, NotChanged> {
        self.engine.orphans().await.map_err(NotChanged::Failed)
    }

    /// Such a queue is defined again as it was, or by another name. Answers the queue as it is then.
    ///
    /// # Errors
    /// There is no such queue, or its name is taken.
    pub async fn adopt_orphan(&self, queue: QueueId, name: Option<&str>) -> Result<Orphan, NotChanged> {
        let adopted = self.engine.adopt_orphan(queue, name).await.map_err(NotChanged::Failed)?;
        let after = json!({"name": adopted.name, "vhost": adopted.vhost, "messages": adopted.messages});
        let deed = Deed::of(Some(&self.who), "orphan.adopt", queue.0.to_string());
        self.gate.record(deed.from_to(Value::Null, after));
        Ok(adopted)
    }

    /// Such a queue is gone with its messages. Answers how many those were.
    ///
    /// # Errors
    /// There is no such queue.
    pub async fn remove_orphan(&self, queue: QueueId) -> Result<u64, NotChanged> {
        let messages = self.engine.remove_orphan(queue).await.map_err(NotChanged::Failed)?;
        let before = json!({"messages": messages});
        self.gate.record(
            Deed::of(Some(&self.who), "orphan.remove", queue.0.to_string()).from_to(before, Value::Null),
        );
        Ok(messages)
    }

    /// Changes all of these or none.
    pub async fn change(&self, changes: Vec<Change>) -> Result<(), NotChanged> {
        self.gate.change(Some(&self.who), changes).await
    }

    /// Makes a token for anybody: its number, and what is shown once.
    pub async fn make_token(
        &self,
        user: &str,
        label: &str,
        scope: Scope,
        expires: Option<Time>,
    ) -> Result<(Arc<str>, Secret), NotChanged> {
        self.gate.make_token(&self.who, user, label, scope, expires).await
    }
}

/// Why this cannot be what an administrator means: a tag that means nothing here and that the user did not have before (definitions
/// of RabbitMQ may bring some), or a new administrator about whose password nothing is said.
fn not_meant(
    name: &str,
    before: Option<&Account>,
    after: &Account,
    is_password_said: bool,
) -> Option<Unchangeable> {
    let had = |tag: &str| before.is_some_and(|account| account.tags.iter().any(|had| had == tag));
    if let Some(tag) = after.tags.unknown().find(|tag| !had(tag)) {
        return Some(Unchangeable::UnknownTag(Arc::clone(tag)));
    }
    let was = before.is_some_and(|account| account.tags.cover(Tag::Administrator));
    let becomes = after.tags.cover(Tag::Administrator) && !was;
    let without = after.password.is_none() && !is_password_said;
    (becomes && without).then(|| Unchangeable::AdministratorWithoutPassword(name.into()))
}
