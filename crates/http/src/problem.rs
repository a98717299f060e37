//! Every "no" of the HTTP interface: `application/problem+json` (RFC 9457) with a stable code and a hint.
//!
//! The broker's refusals are mapped here in one exhaustive match, so a new one does not compile until it has a status.

use std::borrow::Cow;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use overtake_access::{Denied, NotDone};
use overtake_engine::Failure;
use overtake_lane::Refusal;
use serde::Serialize;
use utoipa::ToSchema;

/// Seconds after which a refused client may try again.
const RETRY_AFTER_S: u16 = 1;

/// Why a request is not answered as hoped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem(Box<ProblemBody>);

/// What an error says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = Problem)]
pub(crate) struct ProblemBody {
    /// `urn:overtake:problem:` and the code.
    #[serde(rename = "type")]
    kind: String,
    /// What happened, the same for every problem of this code.
    title: Cow<'static, str>,
    /// The status of the answer.
    status: u16,
    /// What happened this time.
    detail: Cow<'static, str>,
    /// A stable word for programs.
    code: &'static str,
    /// What to do.
    hint: Cow<'static, str>,
    /// The field, parameter or header it is about, as far as it is known. In a batch it begins with the part that is at
    /// fault, counted from 0: `messages[3].priority`, `publish[0]`, `settle[1].receipts[2]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    /// Where in the body, as far as it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<At>,
    /// The limit that was passed, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<u64>,
}

/// A place in a body, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct At {
    /// The line.
    pub(crate) line: usize,
    /// The byte in the line.
    pub(crate) column: usize,
}

impl Problem {
    /// A problem whose detail is its title, until it is told more.
    pub(crate) fn new(
        status: StatusCode,
        code: &'static str,
        title: &'static str,
        hint: &'static str,
    ) -> Self {
        Self(Box::new(ProblemBody {
            kind: format!("urn:overtake:problem:{code}"),
            title: Cow::Borrowed(title),
            status: status.as_u16(),
            detail: Cow::Borrowed(title),
            code,
            hint: Cow::Borrowed(hint),
            key: None,
            at: None,
            limit: None,
        }))
    }

    /// A value that cannot be: 422, with the field, parameter or header it is about.
    pub(crate) fn bad_value(key: impl Into<String>, detail: impl Into<Cow<'static, str>>) -> Self {
        Self::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "value-invalid",
            "a value cannot be used",
            "correct the value under `key` as `detail` says; nothing was done",
        )
        .key(key)
        .detail(detail)
    }

    /// A body, or a message in it, that is too large.
    pub(crate) fn too_large(code: &'static str, what: &'static str, limit: u64, hint: &'static str) -> Self {
        let mut problem = Self::new(StatusCode::PAYLOAD_TOO_LARGE, code, what, hint);
        problem.0.limit = Some(limit);
        problem.detail(format!("{what}: at most {limit} bytes are taken"))
    }

    /// What happened this time.
    pub(crate) fn detail(mut self, detail: impl Into<Cow<'static, str>>) -> Self {
        self.0.detail = detail.into();
        self
    }

    /// What to do.
    pub(crate) fn hint(mut self, hint: impl Into<Cow<'static, str>>) -> Self {
        self.0.hint = hint.into();
        self
    }

    /// What it is about; empty: the whole.
    pub(crate) fn key(mut self, key: impl Into<String>) -> Self {
        self.0.key = Some(key.into()).filter(|key| !key.is_empty());
        self
    }

    /// Where in the body it is.
    pub(crate) fn at(mut self, at: At) -> Self {
        self.0.at = Some(at);
        self
    }

    /// The same about something that stands inside `outer`, for example `messages[3]`.
    pub(crate) fn inside(mut self, outer: &str) -> Self {
        self.0.key = Some(match self.0.key.take() {
            Some(inner) => format!("{outer}.{inner}"),
            None => outer.to_owned(),
        });
        self
    }

    /// Whether it says what is wrong and what to do.
    #[cfg(any(test, feature = "fuzzing"))]
    pub(crate) fn is_helpful(&self) -> bool {
        let said = [self.0.code, &*self.0.title, &*self.0.detail, &*self.0.hint];
        said.iter().all(|text| !text.is_empty()) && (400..600).contains(&self.0.status)
    }

    /// What it says.
    #[cfg(test)]
    pub(crate) fn body(&self) -> &ProblemBody {
        &self.0
    }
}

impl ProblemBody {
    /// The stable word.
    #[cfg(test)]
    pub(crate) fn code(&self) -> &'static str {
        self.code
    }

    /// The field it is about.
    #[cfg(test)]
    pub(crate) fn about(&self) -> Option<&str> {
        self.key.as_deref()
    }

    fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }
}

/// Bad values are 422, names of nothing 404, what the state forbids 409; 429 and 503 pass by themselves.
pub(crate) fn status_of(refusal: Refusal) -> StatusCode {
    match refusal {
        Refusal::NoSuchQueue
        | Refusal::NoSuchExchange
        | Refusal::NoSuchBinding
        | Refusal::NoSuchMessage
        | Refusal::NoSuchVhost
        | Refusal::NoSuchConsumer
        | Refusal::NoSuchPolicy => StatusCode::NOT_FOUND,
        Refusal::ExchangeDiffers(_)
        | Refusal::ExchangeInUse
        | Refusal::ExchangeInternal
        | Refusal::SettingFixed(_)
        | Refusal::NotEmpty
        | Refusal::InUse
        | Refusal::TooManyLanes
        | Refusal::IdPending
        | Refusal::StaleReceipt
        | Refusal::CancelAsked
        | Refusal::Leased
        | Refusal::Dead
        | Refusal::NotDead
        | Refusal::ConsumerKnown
        | Refusal::ConsumerExclusive
        | Refusal::QueueLocked
        | Refusal::QueueDiffers
        | Refusal::TooManyQueues
        | Refusal::VhostReserved
        | Refusal::VhostQueuesMax
        | Refusal::TooManyVhosts
        | Refusal::MetadataFull
        | Refusal::TooManyPolicies => StatusCode::CONFLICT,
        Refusal::NameInvalid
        | Refusal::ExchangeReserved
        | Refusal::WeightInvalid
        | Refusal::ArgumentsInvalid
        | Refusal::PriorityOutOfRange
        | Refusal::PriorityUnknown
        | Refusal::IdInvalid
        | Refusal::KeyInvalid
        | Refusal::KeyMissing
        | Refusal::MetadataInvalid
        | Refusal::VhostInvalid
        | Refusal::PolicyInvalid
        | Refusal::TooManyCopies
        | Refusal::Unroutable => StatusCode::UNPROCESSABLE_ENTITY,
        Refusal::MessageTooLarge | Refusal::ReportTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        Refusal::QueueFull | Refusal::BelowPriority => StatusCode::TOO_MANY_REQUESTS,
        Refusal::StoreFull => StatusCode::INSUFFICIENT_STORAGE,
    }
}

/// The field of a request a refusal is about, where there is only one it can be.
fn key_of(refusal: Refusal) -> Option<&'static str> {
    match refusal {
        Refusal::SettingFixed(key) => Some(key),
        Refusal::PriorityOutOfRange | Refusal::PriorityUnknown => Some("priority"),
        Refusal::IdInvalid | Refusal::IdPending => Some("id"),
        Refusal::KeyInvalid | Refusal::KeyMissing => Some("key"),
        Refusal::ExchangeDiffers(key) => Some(key),
        Refusal::WeightInvalid => Some("routing_key"),
        _ => None,
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        let problem = Self::new(status_of(refusal), refusal.code(), "", refusal.hint());
        let mut problem = problem.detail(refusal.to_string());
        // The title is the same for every problem of a code; only this refusal says more than its code does.
        problem.0.title = match refusal {
            Refusal::SettingFixed(_) => "a setting cannot change now".into(),
            Refusal::ExchangeDiffers(_) => "the exchange is there and differs".into(),
            _ => refusal.to_string().into(),
        };
        match key_of(refusal) {
            Some(key) => problem.key(key),
            None => problem,
        }
    }
}

impl From<Failure> for Problem {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Refused(refused) => refused.refusal.into(),
            Failure::Unavailable(why) => Self::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "unavailable",
                "the broker cannot answer, and the outcome of the request is unknown",
                "when the broker is back, ask what is there before repeating a change; a publish with an `id` can be repeated as it is",
            )
            .detail(format!("{why}; if the request was to change something, it is not known whether it did")),
        }
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
        let status = self.0.status();
        // Only a map with keys that are no text fails to serialise, and there is none in here.
        let body = serde_json::to_vec(&*self.0).unwrap_or_default();
        let mut response = (status, body).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if status == StatusCode::UNAUTHORIZED {
            let basic = HeaderValue::from_static("Basic realm=\"Overtake\", charset=\"UTF-8\"");
            headers.insert(header::WWW_AUTHENTICATE, basic);
            headers.append(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(RETRY_AFTER_S));
        }
        response
    }
}
