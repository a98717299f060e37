//! Every "no" of the management API, in RabbitMQ's shape: `{"error":"…","reason":"…"}`.
//!
//! What the broker refuses has the status that follows from its AMQP reply code, as there; so a new refusal does not compile
//! until AMQP has a code for it.

use std::fmt::Display;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use overtake_access::{BadPassword, Denied, LoginRefused, NotChanged, NotDone, Unchangeable};
use overtake_amqp::ReplyCode;
use overtake_amqp::connection::Refused;
use overtake_engine::Failure;
use overtake_lane::BadPattern;
use serde_json::json;

/// Why a request is not answered as hoped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) status: StatusCode,
    pub(crate) error: &'static str,
    pub(crate) reason: String,
}

impl Problem {
    pub(crate) fn new(status: StatusCode, error: &'static str, reason: impl Display) -> Self {
        Self { status, error, reason: reason.to_string() }
    }

    /// Nothing of that name is there, in the words that clients compare.
    pub(crate) fn not_found() -> Self {
        Self::new(StatusCode::NOT_FOUND, "Object Not Found", "Not Found")
    }

    /// What was sent cannot be.
    pub(crate) fn bad(reason: impl Display) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "bad_request", reason)
    }

    /// Somebody who is known may not.
    pub(crate) fn denied(reason: impl Display) -> Self {
        Self::new(StatusCode::FORBIDDEN, "not_authorized", reason)
    }

    /// It is not known who asks.
    pub(crate) fn unknown_user() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "not_authorized", "Login failed")
    }
}

impl From<Denied> for Problem {
    fn from(denied: Denied) -> Self {
        Self::denied(denied)
    }
}

impl From<LoginRefused> for Problem {
    fn from(refused: LoginRefused) -> Self {
        match refused {
            LoginRefused::Wrong => Self::unknown_user(),
            LoginRefused::Crowded => Self::new(StatusCode::TOO_MANY_REQUESTS, "too_many_requests", refused),
        }
    }
}

impl From<NotDone> for Problem {
    fn from(not_done: NotDone) -> Self {
        match not_done {
            NotDone::Denied(denied) => denied.into(),
            NotDone::Failed(failure) => failure.into(),
        }
    }
}

impl From<Failure> for Problem {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Refused(refused) => Refused::Declined(refused.refusal).into(),
            Failure::Unavailable(why) => {
                let reason =
                    format!("the broker is not available: {why}; it is not known whether it was done");
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "service_unavailable", reason)
            }
        }
    }
}

impl From<Refused> for Problem {
    fn from(refused: Refused) -> Self {
        let code = refused.code();
        if code == ReplyCode::NotFound {
            return Self::not_found();
        }
        let reason = match refused {
            Refused::Declined(refusal) => format!("{refusal}; {}", refusal.hint()),
            Refused::Because { text, .. } => text,
        };
        match code {
            ReplyCode::AccessRefused => Self::denied(reason),
            ReplyCode::InternalError => {
                Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal_server_error", reason)
            }
            _ => Self::bad(reason),
        }
    }
}

impl From<NotChanged> for Problem {
    fn from(not_changed: NotChanged) -> Self {
        match not_changed {
            NotChanged::Unchangeable(
                Unchangeable::NoSuchUser(_) | Unchangeable::NoSuchPermission | Unchangeable::NoSuchToken,
            ) => Self::not_found(),
            NotChanged::Unchangeable(why) => Self::bad(why),
            NotChanged::Failed(failure) => failure.into(),
        }
    }
}

impl From<BadPassword> for Problem {
    fn from(bad: BadPassword) -> Self {
        Self::bad(bad)
    }
}

impl From<BadPattern> for Problem {
    fn from(bad: BadPattern) -> Self {
        Self::bad(bad)
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response =
            crate::answer::json(self.status, &json!({"error": self.error, "reason": self.reason}));
        if self.status == StatusCode::UNAUTHORIZED {
            let realm = HeaderValue::from_static("Basic realm=\"Overtake Management\"");
            response.headers_mut().insert(header::WWW_AUTHENTICATE, realm);
        }
        if self.status == StatusCode::TOO_MANY_REQUESTS {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}
