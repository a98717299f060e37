//! Users, their rights, and what administrators did; who one is oneself.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use overtake_access::{
    BadPassword, Deed, Hashing, Identity, NewPassword, NotChanged, PasswordHash, Patterns, Permission, Right,
    Tags, Unchangeable, User, UserLimits, UserPut,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::answer::rfc3339;
use crate::app::{Answer, App, done, json};
use crate::decode::Json;
use crate::login::Who;
use crate::path::{UserName, VhostName};
use crate::problem::Problem;

/// The paths of users.
pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(whoami))
        .routes(routes!(list_users))
        .routes(routes!(put_user, show_user, delete_user))
        .routes(routes!(set_permission, clear_permission))
        .routes(routes!(audit))
}

/// Who sends the request.
#[derive(Serialize, ToSchema)]
#[schema(as = Whoami)]
pub(crate) struct WhoamiOut<'a> {
    /// The name.
    name: &'a str,
    /// The tags that count.
    tags: Vec<String>,
    /// The number of the token that the request shows, if it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<&'a str>,
}

impl<'a> WhoamiOut<'a> {
    pub(crate) fn of(who: &'a Identity) -> Self {
        Self { name: who.user(), tags: who.tags(), token: who.token().map(|id| &**id) }
    }
}

/// A user as an administrator wants it. What is missing stays as it is; for a new user it is nothing.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
#[schema(as = UserIn)]
struct UserIn {
    /// The password. Kept by Argon2id.
    password: Option<String>,
    /// In its place: the hash of one. Empty: nobody logs in by a password, only by a certificate or a token.
    password_hash: Option<String>,
    /// How that hash was made: `argon2id`, in PHC form, or RabbitMQ's `rabbit_password_hashing_sha256` (what it is if nothing is
    /// said) and `rabbit_password_hashing_sha512`, in base64.
    #[schema(value_type = Option<String>)]
    hashing_algorithm: Option<Hashing>,
    /// `administrator`, `monitoring`, `policymaker`, `management`, `impersonator`. Others are refused, unless the user has them already.
    tags: Option<Vec<String>>,
    /// How much the user may have at once.
    limits: Option<LimitsOut>,
}

/// How much a user may have at once; what is missing has no limit.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
#[schema(as = UserLimits)]
struct LimitsOut {
    /// AMQP connections.
    #[serde(skip_serializing_if = "Option::is_none")]
    max_connections: Option<u32>,
    /// Channels of all AMQP connections.
    #[serde(skip_serializing_if = "Option::is_none")]
    max_channels: Option<u32>,
}

/// A user.
#[derive(Serialize, ToSchema)]
#[schema(as = User)]
struct UserOut<'a> {
    /// The name.
    name: &'a str,
    /// The tags.
    tags: Vec<&'a str>,
    /// Whether the user may log in by a password.
    has_password: bool,
    /// How much the user may have at once.
    limits: LimitsOut,
    /// The rights in each virtual host that the user may enter.
    permissions: Vec<PermissionOut<'a>>,
}

/// Rights in a virtual host: regular expressions over names of queues and exchanges, which match anywhere unless they are anchored;
/// an empty one matches no name. The default exchange is `amq.default`.
#[derive(Serialize, ToSchema)]
#[schema(as = UserPermission)]
struct PermissionOut<'a> {
    /// The virtual host.
    vhost: &'a str,
    /// What may be declared and deleted.
    configure: &'a str,
    /// What may be written.
    write: &'a str,
    /// What may be read.
    read: &'a str,
}

/// All users, by name.
#[derive(Serialize, ToSchema)]
#[schema(as = Users)]
struct UserList<'a> {
    /// By name.
    users: Vec<UserOut<'a>>,
}

/// Rights to set.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Permission)]
struct PermissionIn {
    /// What may be declared and deleted.
    configure: String,
    /// What may be written.
    write: String,
    /// What may be read.
    read: String,
}

/// What administrators did last, the newest first, since the server was started.
#[derive(Serialize, ToSchema)]
#[schema(as = Audit)]
struct AuditList {
    /// At most 1,000.
    deeds: Vec<DeedOut>,
}

/// An administrative action.
#[derive(Serialize, ToSchema)]
#[schema(as = Deed)]
struct DeedOut {
    /// When.
    at: String,
    /// The rest: `user`, `token`, `from`, `action`, `vhost`, `object`, `before`, `after`.
    #[serde(flatten)]
    #[schema(value_type = Object)]
    deed: Deed,
}

impl<'a> UserOut<'a> {
    fn of((name, user): (&'a Arc<str>, &'a User)) -> Self {
        let UserLimits { max_connections, max_channels } = user.account.limits;
        Self {
            name,
            tags: user.account.tags.iter().collect(),
            has_password: user.account.password.is_some(),
            limits: LimitsOut { max_connections, max_channels },
            permissions: user.permissions.iter().map(PermissionOut::of).collect(),
        }
    }
}

impl<'a> PermissionOut<'a> {
    fn of((vhost, permission): (&'a Arc<str>, &'a Permission)) -> Self {
        let text = |right| permission.pattern(right).as_str();
        Self { vhost, configure: text(Right::Configure), write: text(Right::Write), read: text(Right::Read) }
    }
}

impl UserIn {
    fn into_put(self) -> Result<UserPut, Problem> {
        let password = match (self.password, self.password_hash) {
            (Some(_), Some(_)) => {
                return Err(Problem::bad_value("password_hash", "say a password or its hash, not both"));
            }
            (Some(text), None) => NewPassword::Text(text),
            (None, Some(hash)) if hash.is_empty() => NewPassword::None,
            (None, Some(hash)) => {
                let hashing = self.hashing_algorithm.unwrap_or(Hashing::Sha256);
                let hash = PasswordHash::imported(hashing, &hash);
                NewPassword::Hash(hash.map_err(|bad| Problem::bad_value("password_hash", bad.to_string()))?)
            }
            (None, None) => NewPassword::Same,
        };
        let limits =
            |LimitsOut { max_connections, max_channels }| UserLimits { max_connections, max_channels };
        let tags = self.tags.map(|tags| tags.iter().collect::<Tags>());
        Ok(UserPut { password, tags, limits: self.limits.map(limits) })
    }
}

impl From<BadPassword> for Problem {
    fn from(bad: BadPassword) -> Self {
        Self::bad_value("password", bad.to_string())
    }
}

impl From<NotChanged> for Problem {
    fn from(not: NotChanged) -> Self {
        match not {
            NotChanged::Failed(failure) => failure.into(),
            NotChanged::Unchangeable(why) => unchangeable(&why),
        }
    }
}

fn unchangeable(why: &Unchangeable) -> Problem {
    let (status, code, title, hint) = match why {
        Unchangeable::NoSuchUser(_) => (
            StatusCode::NOT_FOUND,
            "no-such-user",
            "there is no such user",
            "make the user first, or use another name",
        ),
        Unchangeable::NoSuchPermission => (
            StatusCode::NOT_FOUND,
            "no-such-permission",
            "the user has no rights in this virtual host",
            "there is nothing to take away",
        ),
        Unchangeable::NoSuchToken => (
            StatusCode::NOT_FOUND,
            "no-such-token",
            "there is no such token",
            "list the tokens: it may have been revoked",
        ),
        Unchangeable::BadName => (
            StatusCode::UNPROCESSABLE_ENTITY,
            "name-invalid",
            "a name cannot be used",
            "use 1 to 200 bytes of text without control characters",
        ),
        Unchangeable::TooManyTokens => (
            StatusCode::CONFLICT,
            "too-many-tokens",
            "the user has too many tokens",
            "revoke those that nobody uses",
        ),
        Unchangeable::LastAdministrator => (
            StatusCode::CONFLICT,
            "last-administrator",
            "nobody would be left who can change anything",
            "make another user with the tag `administrator` first",
        ),
        Unchangeable::UnknownTag(_) => (
            StatusCode::UNPROCESSABLE_ENTITY,
            "tag-unknown",
            "there is no such tag",
            "the tags are `administrator`, `monitoring`, `policymaker`, `management` and `impersonator`",
        ),
        Unchangeable::AdministratorWithoutPassword(_) => (
            StatusCode::UNPROCESSABLE_ENTITY,
            "administrator-without-password",
            "an administrator would have no password",
            "send a `password`, or an empty `password_hash` for a user who logs in by a certificate or a token only (overtake user put: --new-password, or --no-password)",
        ),
    };
    Problem::new(status, code, title, hint).detail(why.to_string())
}

/// Who sends the request.
#[utoipa::path(get, path = "/v1/whoami", tag = "users", responses((status = 200, description = "You", body = WhoamiOut)))]
async fn whoami(Who(who): Who) -> Answer {
    json(StatusCode::OK, &WhoamiOut::of(&who))
}

/// All users. For administrators.
#[utoipa::path(get, path = "/v1/users", tag = "users", responses((status = 200, description = "All", body = UserList)))]
async fn list_users(State(app): State<Arc<App>>, Who(who): Who) -> Answer {
    let directory = app.desks.office(who)?.directory();
    json(StatusCode::OK, &UserList { users: directory.users().map(UserOut::of).collect() })
}

/// Makes a user, or changes one. For administrators.
///
/// What the body does not say stays as it is. A new user may enter no virtual host until there are rights. To make an administrator
/// without a password, who logs in by a certificate or a token, send an empty `password_hash`.
#[utoipa::path(
    put, path = "/v1/users/{user}", tag = "users",
    params(("user" = String, Path, description = "Name, percent-encoded; 1 to 200 bytes")),
    request_body = UserIn,
    responses(
        (status = 201, description = "Made", body = UserOut),
        (status = 200, description = "It was there", body = UserOut),
    )
)]
async fn put_user(
    State(app): State<Arc<App>>,
    Who(who): Who,
    UserName(name): UserName,
    Json(user): Json<UserIn>,
) -> Answer {
    let office = app.desks.office(who)?;
    let is_new = office.put_user(&name, user.into_put()?).await??;
    let directory = office.directory();
    let user = directory.user(&name).ok_or_else(|| unchangeable(&Unchangeable::NoSuchUser(name.clone())))?;
    json(if is_new { StatusCode::CREATED } else { StatusCode::OK }, &UserOut::of((&name, user)))
}

/// One user. For administrators.
#[utoipa::path(
    get, path = "/v1/users/{user}", tag = "users",
    params(("user" = String, Path, description = "Name, percent-encoded")),
    responses((status = 200, description = "The user", body = UserOut))
)]
async fn show_user(State(app): State<Arc<App>>, Who(who): Who, UserName(name): UserName) -> Answer {
    let directory = app.desks.office(who)?.directory();
    let user = directory.user(&name).ok_or_else(|| unchangeable(&Unchangeable::NoSuchUser(name.clone())))?;
    json(StatusCode::OK, &UserOut::of((&name, user)))
}

/// Deletes a user with all rights and tokens. For administrators. Open connections of the user may do nothing any more.
#[utoipa::path(
    delete, path = "/v1/users/{user}", tag = "users",
    params(("user" = String, Path, description = "Name, percent-encoded")),
    responses((status = 204, description = "Gone"))
)]
async fn delete_user(State(app): State<Arc<App>>, Who(who): Who, UserName(name): UserName) -> Answer {
    app.desks.office(who)?.delete_user(&name).await?;
    done()
}

/// Gives a user rights in a virtual host, in place of those that were. For administrators.
#[utoipa::path(
    put, path = "/v1/users/{user}/permissions/{vhost}", tag = "users",
    params(
        ("user" = String, Path, description = "Name, percent-encoded"),
        ("vhost" = String, Path, description = "Name of the virtual host, percent-encoded: `%2F` is `/`"),
    ),
    request_body = PermissionIn,
    responses((status = 204, description = "They hold, also for connections that are open"))
)]
async fn set_permission(
    State(app): State<Arc<App>>,
    Who(who): Who,
    UserName(user): UserName,
    VhostName(vhost): VhostName,
    Json(permission): Json<PermissionIn>,
) -> Answer {
    let office = app.desks.office(who)?;
    let PermissionIn { configure, write, read } = permission;
    let permission = Permission::try_from(Patterns { configure, write, read });
    let permission = permission.map_err(|bad| Problem::bad_value("", bad.to_string()))?;
    office.set_permission(&user, &vhost, permission).await?;
    done()
}

/// Takes all rights of a user in a virtual host away. For administrators.
#[utoipa::path(
    delete, path = "/v1/users/{user}/permissions/{vhost}", tag = "users",
    params(
        ("user" = String, Path, description = "Name, percent-encoded"),
        ("vhost" = String, Path, description = "Name of the virtual host, percent-encoded: `%2F` is `/`"),
    ),
    responses((status = 204, description = "Gone"))
)]
async fn clear_permission(
    State(app): State<Arc<App>>,
    Who(who): Who,
    UserName(user): UserName,
    VhostName(vhost): VhostName,
) -> Answer {
    app.desks.office(who)?.clear_permission(&user, &vhost).await?;
    done()
}

/// What administrators did last. For administrators.
///
/// Each deed is an event of the log, too, and a line of the audit file where one is configured.
#[utoipa::path(get, path = "/v1/audit", tag = "users", responses((status = 200, description = "The newest first", body = AuditList)))]
async fn audit(State(app): State<Arc<App>>, Who(who): Who) -> Answer {
    app.desks.office(who)?;
    let deeds = app.desks.gate().audit().recent();
    let deeds = deeds.into_iter().map(|deed| DeedOut { at: rfc3339(deed.at), deed }).collect();
    json(StatusCode::OK, &AuditList { deeds })
}
