//! Where administrators change who there is.

use std::sync::Arc;

use overtake_lane::Time;

use crate::directory::{Account, Change, Directory, UserLimits};
use crate::gate::{Gate, NotChanged};
use crate::identity::Identity;
use crate::password::{BadPassword, PasswordHash};
use crate::right::{Permission, Tags};
use crate::token::{Scope, Secret};

/// What administrators may do to users. Whoever has one is one.
#[derive(Clone, Debug)]
pub struct Office {
    who: Identity,
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
    pub(crate) fn new(who: Identity, gate: Arc<Gate>) -> Self {
        Self { who, gate }
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
