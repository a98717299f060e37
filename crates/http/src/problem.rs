//! Problems as the errors of handlers.

use std::borrow::Cow;

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use overtake_access::{Denied, NotDone};
use overtake_api::problem;
use overtake_engine::Failure;
use overtake_lane::Refusal;

/// A problem of the API. It is a type of this crate so that the errors of every crate which handlers call convert to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem(pub(crate) problem::Problem);

impl Problem {
    /// A problem whose detail is its title. [`detail`](Self::detail) replaces the detail.
    pub(crate) fn new(
        status: StatusCode,
        code: &'static str,
        title: &'static str,
        hint: &'static str,
    ) -> Self {
        Self(problem::Problem::new(status, code, title, hint))
    }

    /// A value that is not valid: 422. `key` is the field, parameter or header of the value.
    pub(crate) fn bad_value(key: impl Into<String>, detail: impl Into<Cow<'static, str>>) -> Self {
        Self(problem::Problem::bad_value(key, detail))
    }

    /// A body that is too large, or a message that is: 413. `what` is the title, `limit` is in bytes.
    pub(crate) fn too_large(code: &'static str, what: &'static str, limit: u64, hint: &'static str) -> Self {
        Self(problem::Problem::too_large(code, what, limit, hint))
    }

    /// Replaces the detail: what happened this time.
    pub(crate) fn detail(self, detail: impl Into<Cow<'static, str>>) -> Self {
        Self(self.0.detail(detail))
    }

    /// Puts `text`, which names things of the request, where the detail says what the title says.
    pub(crate) fn specify(self, text: &str) -> Self {
        Self(self.0.specify(text))
    }

    /// Replaces the hint: what to do.
    pub(crate) fn hint(self, hint: impl Into<Cow<'static, str>>) -> Self {
        Self(self.0.hint(hint))
    }

    /// Replaces the key: the field, parameter or header at fault. An empty key means the whole request.
    pub(crate) fn key(self, key: impl Into<String>) -> Self {
        Self(self.0.key(key))
    }

    /// Puts `outer` before the key: `priority` inside `messages[3]` is `messages[3].priority`.
    pub(crate) fn inside(self, outer: &str) -> Self {
        Self(self.0.inside(outer))
    }
}

impl From<problem::Problem> for Problem {
    fn from(problem: problem::Problem) -> Self {
        Self(problem)
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        Self(refusal.into())
    }
}

impl From<Failure> for Problem {
    fn from(failure: Failure) -> Self {
        Self(failure.into())
    }
}

impl From<Denied> for Problem {
    fn from(denied: Denied) -> Self {
        Self::new(
            StatusCode::FORBIDDEN,
            "access-refused",
            "the user may not do this",
            "ask an administrator for the right or the tag (`overtake user --help`)",
        )
        .detail(denied.to_string())
    }
}

impl From<NotDone> for Problem {
    fn from(not: NotDone) -> Self {
        match not {
            NotDone::Denied(denied) => denied.into(),
            NotDone::Failed(failure) => failure.into(),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        self.0.into_response()
    }
}
