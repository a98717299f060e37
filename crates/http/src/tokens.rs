//! Tokens: everybody's own, and for administrators all.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use overtake_access::{Identity, Patterns, Permission, Scope, Tag, Token};
use overtake_api::body::DurationMs;
use overtake_api::name::checked;
use overtake_lane::Time;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::answer::rfc3339;
use crate::app::{Answer, App, done, json};
use crate::decode::Json;
use crate::login::Who;
use crate::path::TokenId;
use crate::problem::Problem;

/// The paths of tokens.
pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(list_tokens, make_token)).routes(routes!(revoke_token))
}

/// A token to make.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = TokenIn)]
struct TokenIn {
    /// Whose it is, if not the sender's own; only administrators make others'.
    user: Option<String>,
    /// What it is for, at most 200 bytes.
    #[serde(default)]
    label: String,
    /// It ends after so long, ms; missing: never.
    #[schema(value_type = Option<u64>, maximum = 315_360_000_000_u64)]
    expires_in_ms: Option<DurationMs>,
    /// Only in this virtual host.
    vhost: Option<String>,
    /// Only what this matches may be declared and deleted; missing: what the user may.
    configure: Option<String>,
    /// Only what this matches may be written; missing: what the user may.
    write: Option<String>,
    /// Only what this matches may be read; missing: what the user may.
    read: Option<String>,
    /// Of the user's tags these; none unless it says so.
    #[serde(default)]
    tags: Vec<String>,
}

/// A token, without what it says.
#[derive(Serialize, ToSchema)]
#[schema(as = Token)]
struct TokenOut<'a> {
    /// Its number.
    id: &'a str,
    /// Whose it is.
    user: &'a str,
    /// What it is for.
    label: &'a str,
    /// When it was made.
    created_at: String,
    /// When it ends; missing: never.
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<String>,
    /// Only in this virtual host.
    #[serde(skip_serializing_if = "Option::is_none")]
    vhost: Option<&'a str>,
    /// Only for what these match.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    permission: Option<&'a Permission>,
    /// Of the user's tags these.
    tags: Vec<&'a str>,
}

/// A token that was made.
#[derive(Serialize, ToSchema)]
#[schema(as = NewToken)]
struct NewTokenOut<'a> {
    /// What to show, as `Authorization: Bearer`. It is not told again.
    secret: &'a str,
    /// What it is.
    #[serde(flatten)]
    token: TokenOut<'a>,
}

/// Tokens, by number.
#[derive(Serialize, ToSchema)]
#[schema(as = Tokens)]
struct TokenList<'a> {
    /// Those one may see: one's own, and for administrators all.
    tokens: Vec<TokenOut<'a>>,
}

impl<'a> TokenOut<'a> {
    fn of(id: &'a str, token: &'a Token) -> Self {
        let Token { label, user, scope, created, expires } = token;
        Self {
            id,
            user,
            label,
            created_at: rfc3339(*created),
            expires_at: expires.map(rfc3339),
            vhost: scope.vhost.as_deref(),
            permission: scope.permission.as_ref(),
            tags: scope.tags.iter().collect(),
        }
    }
}

impl TokenIn {
    fn scope(&self) -> Result<Scope, Problem> {
        let patterns = [&self.configure, &self.write, &self.read];
        let permission = patterns.iter().any(|pattern| pattern.is_some()).then(|| {
            let [configure, write, read] =
                patterns.map(|pattern| pattern.as_deref().unwrap_or(".*").to_owned());
            Permission::try_from(Patterns { configure, write, read })
        });
        let permission = permission.transpose().map_err(|bad| Problem::bad_value("", bad.to_string()))?;
        let vhost = self.vhost.as_deref().map(|vhost| checked(vhost, "vhost")).transpose()?;
        Ok(Scope { vhost: vhost.map(Arc::from), permission, tags: self.tags.iter().collect() })
    }
}

/// A token cannot make another: it would outlive its own end.
fn must_be_no_token(who: &Identity) -> Result<(), Problem> {
    if who.token().is_none() {
        return Ok(());
    }
    Err(Problem::new(
        StatusCode::FORBIDDEN,
        "access-refused",
        "a token makes no tokens",
        "log in with name and password to make one",
    ))
}

/// Tokens that are there: one's own, and for administrators all.
#[utoipa::path(get, path = "/v1/tokens", tag = "users", responses((status = 200, description = "By number", body = TokenList)))]
async fn list_tokens(State(app): State<Arc<App>>, Who(who): Who) -> Answer {
    let directory = app.desks.gate().roll().now();
    let sees_all = who.must_have(Tag::Administrator).is_ok();
    let seen = directory.tokens().filter(|(_, token)| sees_all || token.user == *who.user());
    json(StatusCode::OK, &TokenList { tokens: seen.map(|(id, token)| TokenOut::of(id, token)).collect() })
}

/// Makes a token. What it says is told this once, and never again.
///
/// Whoever shows it may do what the user may at that time, within its scope, until it ends, is revoked, or the user goes.
#[utoipa::path(
    post, path = "/v1/tokens", tag = "users",
    request_body = TokenIn,
    responses((status = 201, description = "Made", body = NewTokenOut))
)]
async fn make_token(State(app): State<Arc<App>>, Who(who): Who, Json(ask): Json<TokenIn>) -> Answer {
    must_be_no_token(&who)?;
    let scope = ask.scope()?;
    let user: Arc<str> = ask.user.as_deref().map_or_else(|| Arc::clone(who.user()), Arc::from);
    if user != *who.user() {
        who.must_have(Tag::Administrator)?;
    }
    let gate = app.desks.gate();
    let expires = ask.expires_in_ms.map(|ms| gate.now().after(ms.0)).filter(|end| *end != Time::NEVER);
    let (id, secret) = gate.make_token(&who, &user, &ask.label, scope, expires).await?;
    let directory = gate.roll().now();
    let Some(token) = directory.token(&id) else {
        return Err(Problem::from(overtake_access::NotChanged::Unchangeable(
            overtake_access::Unchangeable::NoSuchToken,
        )));
    };
    json(StatusCode::CREATED, &NewTokenOut { secret: secret.reveal(), token: TokenOut::of(&id, token) })
}

/// Revokes a token: from now on nobody may do anything with it. One's own, and for administrators any.
#[utoipa::path(
    delete, path = "/v1/tokens/{token}", tag = "users",
    params(("token" = String, Path, description = "Its number")),
    responses((status = 204, description = "Gone"))
)]
async fn revoke_token(State(app): State<Arc<App>>, Who(who): Who, TokenId(id): TokenId) -> Answer {
    let is_own = app.desks.gate().roll().now().token(&id).is_some_and(|token| token.user == *who.user());
    if !is_own {
        who.must_have(Tag::Administrator)?;
    }
    app.desks.gate().revoke_token(&who, &id).await?;
    done()
}
