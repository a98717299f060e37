//! Web sessions: logging a browser in and out.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use overtake_access::{Credentials, Peer, web_session, web_session_cookie};
use serde::Deserialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::{Answer, App, done, json};
use crate::decode::Json;
use crate::login::{Sender, login_refused};
use crate::problem::Problem;
use crate::users::WhoamiOut;

/// Seconds after which a browser forgets the cookie: a week, as the session.
const MAX_AGE_S: u32 = 7 * 24 * 3_600;

/// The paths of web sessions.
pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(begin_session, end_session))
}

/// Who logs in: by name and password, or by a token.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = SessionIn)]
struct SessionIn {
    /// The name.
    user: Option<String>,
    /// The password.
    password: Option<String>,
    /// In place of both.
    token: Option<String>,
}

impl SessionIn {
    fn credentials(self) -> Result<Credentials, Problem> {
        match (self.user, self.password, self.token) {
            (Some(user), Some(password), None) => Ok(Credentials::Basic { user, password }),
            (None, None, Some(token)) => Ok(Credentials::Bearer(token)),
            _ => Err(Problem::bad_value("user", "there must be `user` and `password`, or else `token`")),
        }
    }
}

/// Logs a browser in: answers with a cookie that counts in place of `Authorization`.
///
/// No script reads the cookie (`HttpOnly`), and no page of others makes a browser send it (`SameSite=Strict`). With it, a request that
/// changes something must have the header `Overtake-Page`. The session is over after 12 hours without use, after a week, with another
/// password, and when the broker is restarted.
#[utoipa::path(
    post, path = "/v1/session", tag = "users", request_body = SessionIn,
    responses((status = 200, description = "Who one is from now on", body = WhoamiOut))
)]
async fn begin_session(
    State(app): State<Arc<App>>,
    Sender(peer): Sender,
    headers: HeaderMap,
    Json(session): Json<SessionIn>,
) -> Answer {
    let who =
        app.desks.who(&session.credentials()?, &peer).await.map_err(|refused| login_refused(&refused))?;
    let secret = app.desks.gate().begin_web_session(&who);
    let mut response = json(StatusCode::OK, &WhoamiOut::of(&who))?;
    response.headers_mut().insert(header::SET_COOKIE, cookie(&headers, &peer, secret.reveal(), MAX_AGE_S));
    Ok(response)
}

/// Logs a browser out. Nothing happens where none was logged in.
#[utoipa::path(delete, path = "/v1/session", tag = "users", responses((status = 204, description = "It is over")))]
async fn end_session(State(app): State<Arc<App>>, Sender(peer): Sender, headers: HeaderMap) -> Answer {
    if let Some(shown) = web_session(&headers) {
        app.desks.gate().end_web_session(&shown);
    }
    let mut response = done()?;
    response.headers_mut().insert(header::SET_COOKIE, cookie(&headers, &peer, "", 0));
    Ok(response)
}

fn cookie(headers: &HeaderMap, peer: &Peer, value: &str, max_age_s: u32) -> HeaderValue {
    let name = web_session_cookie(headers);
    let secure = if peer.is_secure() { "; Secure" } else { "" };
    let text = format!("{name}={value}; Path=/; HttpOnly; SameSite=Strict; Max-Age={max_age_s}{secure}");
    HeaderValue::from_str(&text).expect("a name of ours and base64url")
}
