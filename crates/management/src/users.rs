//! Users, their rights and their limits; who asks.

use std::collections::BTreeSet;
use std::sync::Arc;

use overtake_access::{Account, Change, Hashing, PasswordHash, Patterns, Permission, Tag, User, UserLimits};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::answer::{Answer, done, put, seen};
use crate::ask::Ask;
use crate::lenient;
use crate::paging;
use crate::problem::Problem;
use crate::routes::Routes;

pub(crate) fn routes(routes: Routes) -> Routes {
    routes
        .get(Tag::Management, "/api/whoami", who_am_i)
        .get(Tag::Administrator, "/api/users", list)
        .get(Tag::Administrator, "/api/users/without-permissions", without_permissions)
        .post(Tag::Administrator, "/api/users/bulk-delete", delete_all)
        .get(Tag::Administrator, "/api/users/{user}", show)
        .put(Tag::Administrator, "/api/users/{user}", put_user)
        .delete(Tag::Administrator, "/api/users/{user}", delete)
        .get(Tag::Administrator, "/api/users/{user}/permissions", permissions_of_user)
        .get(Tag::Administrator, "/api/users/{user}/topic-permissions", no_topic_permissions_of_user)
        .get(Tag::Administrator, "/api/permissions", permissions)
        .get(Tag::Administrator, "/api/permissions/{vhost}/{user}", permission)
        .put(Tag::Administrator, "/api/permissions/{vhost}/{user}", set_permission)
        .delete(Tag::Administrator, "/api/permissions/{vhost}/{user}", clear_permission)
        .get(Tag::Administrator, "/api/topic-permissions", no_topic_permissions)
        .get(Tag::Administrator, "/api/user-limits", all_limits)
        .get(Tag::Administrator, "/api/user-limits/{user}", limits)
        .put(Tag::Administrator, "/api/user-limits/{user}/{limit}", set_limit)
        .delete(Tag::Administrator, "/api/user-limits/{user}/{limit}", clear_limit)
}

async fn who_am_i(ask: Ask) -> Answer {
    seen(&json!({ "name": ask.who.user(), "tags": ask.who.tags(), "is_internal_user": true }))
}

// ---- users ----

pub(crate) fn shown(name: &str, account: &Account) -> Value {
    let (hash, hashing) = match &account.password {
        Some(password) => (password.as_str(), json!(password.hashing())),
        None => ("", json!(Hashing::Sha256)),
    };
    json!({
        "name": name,
        "password_hash": hash,
        "hashing_algorithm": hashing,
        "tags": account.tags,
        "limits": account.limits,
    })
}

async fn list(ask: Ask) -> Answer {
    let directory = ask.app.desks.gate().roll().now();
    paging::list(&ask, directory.users().map(|(name, user)| shown(name, &user.account)).collect())
}

async fn without_permissions(ask: Ask) -> Answer {
    let directory = ask.app.desks.gate().roll().now();
    let without = directory.users().filter(|(_, user)| user.permissions.is_empty());
    paging::list(&ask, without.map(|(name, user)| shown(name, &user.account)).collect())
}

/// Somebody who is there.
fn user(ask: &Ask) -> Result<User, Problem> {
    let directory = ask.app.desks.gate().roll().now();
    directory.user(ask.named("user")).cloned().ok_or_else(Problem::not_found)
}

async fn show(ask: Ask) -> Answer {
    seen(&shown(ask.named("user"), &user(&ask)?.account))
}

/// Somebody as a tool wants it.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct UserPut {
    #[serde(default)]
    pub(crate) password: Option<String>,
    #[serde(default)]
    pub(crate) password_hash: Option<String>,
    #[serde(default)]
    pub(crate) hashing_algorithm: Option<Hashing>,
    #[serde(deserialize_with = "lenient::words")]
    pub(crate) tags: Vec<String>,
    #[serde(default)]
    pub(crate) limits: Option<UserLimits>,
}

impl UserPut {
    /// The password as a hash says it; empty: there is none.
    pub(crate) fn imported(&self) -> Result<Option<PasswordHash>, Problem> {
        let Some(hash) = self.password_hash.as_deref().filter(|hash| !hash.is_empty()) else {
            return Ok(None);
        };
        let hashing = self.hashing_algorithm.unwrap_or_else(|| Hashing::of(hash));
        Ok(Some(PasswordHash::imported(hashing, hash)?))
    }
}

async fn put_user(ask: Ask) -> Answer {
    let wanted: UserPut = ask.body()?;
    let (gate, name) = (ask.app.desks.gate(), ask.named("user"));
    let before = gate.roll().now().user(name).map(|user| user.account.clone());
    let password = match &wanted.password {
        Some(password) if !password.is_empty() => Some(gate.hashed(password.clone()).await?),
        _ => wanted.imported()?,
    };
    let limits = wanted.limits.or_else(|| Some(before.as_ref()?.limits)).unwrap_or_default();
    let account = Account { password, tags: wanted.tags.iter().collect(), limits };
    change(&ask, vec![Change::PutUser { name: name.into(), account }]).await?;
    put(before.is_none())
}

async fn change(ask: &Ask, changes: Vec<Change>) -> Result<(), Problem> {
    Ok(ask.office()?.change(changes).await?)
}

async fn delete(ask: Ask) -> Answer {
    ask.office()?.delete_user(ask.named("user")).await?;
    done()
}

/// Deletes several; who is not there is not there already.
async fn delete_all(ask: Ask) -> Answer {
    #[derive(Deserialize)]
    struct Users {
        users: BTreeSet<Arc<str>>,
    }
    let Users { users } = ask.body()?;
    let directory = ask.app.desks.gate().roll().now();
    let there = users.into_iter().filter(|name| directory.user(name).is_some());
    let changes: Vec<Change> = there.map(|name| Change::DeleteUser { name }).collect();
    if !changes.is_empty() {
        change(&ask, changes).await?;
    }
    done()
}

// ---- rights ----

pub(crate) fn permission_shown(user: &str, vhost: &str, permission: &Permission) -> Value {
    let Patterns { configure, write, read } = permission.clone().into();
    json!({ "user": user, "vhost": vhost, "configure": configure, "write": write, "read": read })
}

/// The rights of everybody, in every virtual host or one.
pub(crate) fn every_permission(ask: &Ask, vhost: Option<&str>) -> Vec<Value> {
    let directory = ask.app.desks.gate().roll().now();
    let mut all = Vec::new();
    for (name, user) in directory.users() {
        let here = user.permissions.iter().filter(|(there, _)| vhost.is_none_or(|vhost| vhost == &***there));
        all.extend(here.map(|(vhost, permission)| permission_shown(name, vhost, permission)));
    }
    all
}

async fn permissions(ask: Ask) -> Answer {
    seen(&every_permission(&ask, None).into())
}

async fn permissions_of_user(ask: Ask) -> Answer {
    let (name, user) = (ask.named("user"), user(&ask)?);
    let all = user.permissions.iter().map(|(vhost, permission)| permission_shown(name, vhost, permission));
    seen(&all.collect::<Vec<_>>().into())
}

async fn permission(ask: Ask) -> Answer {
    let (name, vhost) = (ask.named("user"), ask.named("vhost"));
    let user = user(&ask)?;
    let permission = user.permissions.get(vhost).ok_or_else(Problem::not_found)?;
    seen(&permission_shown(name, vhost, permission))
}

/// The three patterns, all of which must be there.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct PermissionPut {
    configure: String,
    write: String,
    read: String,
}

impl PermissionPut {
    pub(crate) fn permission(&self) -> Result<Permission, Problem> {
        Ok(Permission::new(&self.configure, &self.write, &self.read)?)
    }
}

async fn set_permission(ask: Ask) -> Answer {
    let is_new = !user(&ask)?.permissions.contains_key(ask.named("vhost"));
    ask.must_be_vhost(ask.named("vhost")).await?;
    let permission = ask.body::<PermissionPut>()?.permission()?;
    ask.office()?.set_permission(ask.named("user"), ask.named("vhost"), permission).await?;
    put(is_new)
}

async fn clear_permission(ask: Ask) -> Answer {
    ask.office()?.clear_permission(ask.named("user"), ask.named("vhost")).await?;
    done()
}

/// There are no rights to topics: there are none to be listed.
async fn no_topic_permissions(_: Ask) -> Answer {
    seen(&json!([]))
}

async fn no_topic_permissions_of_user(ask: Ask) -> Answer {
    user(&ask)?;
    seen(&json!([]))
}

// ---- limits ----

fn limits_shown(name: &str, limits: UserLimits) -> Value {
    json!({ "user": name, "value": limits })
}

async fn all_limits(ask: Ask) -> Answer {
    let directory = ask.app.desks.gate().roll().now();
    let with = directory.users().filter(|(_, user)| user.account.limits != UserLimits::default());
    seen(&with.map(|(name, user)| limits_shown(name, user.account.limits)).collect::<Vec<_>>().into())
}

async fn limits(ask: Ask) -> Answer {
    let limits = user(&ask)?.account.limits;
    let is_limited = limits != UserLimits::default();
    let all: Vec<Value> = is_limited.then(|| limits_shown(ask.named("user"), limits)).into_iter().collect();
    seen(&all.into())
}

/// The account with another limit; as in RabbitMQ a number below 0 is none.
fn limited(ask: &Ask, value: Option<i64>) -> Result<Account, Problem> {
    let mut account = user(ask)?.account;
    let limit = value.filter(|value| *value >= 0).map(u32::try_from).transpose().map_err(Problem::bad)?;
    match ask.named("limit") {
        "max-connections" => account.limits.max_connections = limit,
        "max-channels" => account.limits.max_channels = limit,
        other => {
            return Err(Problem::bad(format_args!(
                "there is no limit `{other}`: max-connections, max-channels"
            )));
        }
    }
    Ok(account)
}

async fn set_limit(ask: Ask) -> Answer {
    user(&ask)?;
    let lenient::Limit { value } = ask.body()?;
    let account = limited(&ask, Some(value))?;
    change(&ask, vec![Change::PutUser { name: ask.named("user").into(), account }]).await?;
    done()
}

async fn clear_limit(ask: Ask) -> Answer {
    let account = limited(&ask, None)?;
    change(&ask, vec![Change::PutUser { name: ask.named("user").into(), account }]).await?;
    done()
}
