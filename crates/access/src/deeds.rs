//! What is written down of a change of who there is: how it was and how it is, and no secret.

use serde_json::{Value, json};

use crate::audit::Deed;
use crate::directory::{Account, Change, Directory};
use crate::identity::Identity;

impl Deed {
    /// A change that was made.
    pub(crate) fn of_change(
        by: Option<&Identity>,
        change: &Change,
        before: &Directory,
        after: &Directory,
    ) -> Self {
        let account = |directory: &Directory, name: &str| {
            directory.user(name).map(|user| {
            let Account { password, tags, limits } = &user.account;
            json!({"tags": tags, "limits": limits, "password": password.as_ref().map(|hash| hash.hashing())})
        })
        };
        let rights = |directory: &Directory, user: &str, vhost: &str| {
            directory.user(user).and_then(|user| user.permissions.get(vhost).cloned())
        };
        match change {
            Change::PutUser { name, .. } => {
                let is_new_password = before.user(name).map(|user| &user.account.password)
                    != after.user(name).map(|user| &user.account.password);
                let mut now = account(after, name).unwrap_or_default();
                if let Value::Object(fields) = &mut now
                    && before.user(name).is_some()
                {
                    fields.insert("password_changed".into(), is_new_password.into());
                }
                Deed::of(by, "user.put", &**name).from_to(account(before, name), now)
            }
            Change::DeleteUser { name } => {
                Deed::of(by, "user.delete", &**name).from_to(account(before, name), Value::Null)
            }
            Change::SetPermission { user, vhost, .. } => Deed::of(by, "permission.set", &**user)
                .within(vhost)
                .from_to(rights(before, user, vhost), rights(after, user, vhost)),
            Change::ClearPermission { user, vhost } => Deed::of(by, "permission.clear", &**user)
                .within(vhost)
                .from_to(rights(before, user, vhost), Value::Null),
            Change::ForgetVhost { vhost } => {
                let who = before.users().filter(|(_, user)| user.permissions.contains_key(vhost));
                let who: Vec<&str> = who.map(|(name, _)| &**name).collect();
                Deed::of(by, "permission.forget", &**vhost).within(vhost).from_to(who, Value::Null)
            }
            Change::PutToken { id, token, .. } => {
                Deed::of(by, "token.put", &**id).from_to(before.token(id), Some(token))
            }
            Change::DeleteToken { id } => {
                Deed::of(by, "token.delete", &**id).from_to(before.token(id), Value::Null)
            }
        }
    }
}
