//! Error responses of the HTTP API: `application/problem+json` (RFC 9457) with a stable code and a hint.
//!
//! One exhaustive match maps each refusal of the broker to a status, so a new refusal does not compile without one.

use std::borrow::Cow;
use std::fmt;

use axum_core::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use overtake_engine::Failure;
use overtake_lane::Refusal;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

/// `Retry-After` of 429 and 503, seconds.
const RETRY_AFTER_S: u16 = 1;

/// `Retry-After` of the code `logins-crowded`, seconds: as long as a login waits for its turn.
const LOGINS_RETRY_AFTER_S: u16 = 10;

/// The reason why a request fails, and the response that says so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem(Box<ProblemBody>);

/// What an error says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = Problem)]
pub struct ProblemBody {
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
    /// Of `queue-differs`: the settings that the request names and that are others in the queue.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    differences: Vec<Difference>,
}

/// A setting of a queue that a declaration names with another value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct Difference {
    /// Its key, with a point before the part of a table: `max_active`, `backoff.max_ms`, `lanes.high`.
    pub setting: String,
    /// Its value in the queue; `null`: not set.
    pub here: Value,
    /// Its value in the request; `null`: not set.
    pub asked: Value,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is {} and {} was asked", self.setting, self.here, self.asked)
    }
}

/// A place in a body, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct At {
    /// The line.
    pub(crate) line: usize,
    /// The byte in the line.
    pub(crate) column: usize,
}

impl Problem {
    /// A problem whose detail is its title. [`detail`](Self::detail) replaces the detail.
    pub fn new(status: StatusCode, code: &'static str, title: &'static str, hint: &'static str) -> Self {
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
            differences: Vec::new(),
        }))
    }

    /// A value that is not valid: 422. `key` is the field, parameter or header of the value.
    pub fn bad_value(key: impl Into<String>, detail: impl Into<Cow<'static, str>>) -> Self {
        Self::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "value-invalid",
            "a value cannot be used",
            "send a valid value; nothing was done",
        )
        .key(key)
        .detail(detail)
    }

    /// A body that is too large, or a message that is: 413. `what` is the title, `limit` is in bytes.
    pub fn too_large(code: &'static str, what: &'static str, limit: u64, hint: &'static str) -> Self {
        let mut problem = Self::new(StatusCode::PAYLOAD_TOO_LARGE, code, what, hint);
        problem.0.limit = Some(limit);
        problem.detail(format!("{what}: at most {limit} bytes are taken"))
    }

    /// The same place and key, as a value that is not valid.
    pub(crate) fn into_bad_value(self, detail: &'static str) -> Self {
        let mut problem = Self::bad_value(self.0.key.unwrap_or_default(), detail);
        problem.0.at = self.0.at;
        problem
    }

    /// Replaces the detail: what happened this time.
    #[must_use]
    pub fn detail(mut self, detail: impl Into<Cow<'static, str>>) -> Self {
        self.0.detail = detail.into();
        self
    }

    /// Puts the value that the request gives under the key before the detail: ``"`limit` is `0`: it must be …"``.
    #[must_use]
    pub fn with_value(mut self, value: &str) -> Self {
        let (Some(key), detail) = (&self.0.key, &*self.0.detail) else { return self };
        if !detail.contains(&format!("`{value}`")) {
            let of_key = detail.strip_prefix(&format!("`{key}` "));
            if value.is_empty() && of_key.is_some() {
                // The detail says already that there is none.
                return self;
            }
            let why = of_key.unwrap_or(detail);
            // What kind of value was found need not be said beside the value.
            let why = why.rsplit_once(", found ").map_or(why, |(why, _)| why);
            let it = if of_key.is_some() || why.starts_with("must ") { "it " } else { "" };
            self.0.detail = format!("`{key}` is `{value}`: {it}{why}").into();
        }
        self
    }

    /// Replaces the hint: what to do.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<Cow<'static, str>>) -> Self {
        self.0.hint = hint.into();
        self
    }

    /// Replaces the key: the field, parameter or header at fault. An empty key means the whole request.
    #[must_use]
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.0.key = Some(key.into()).filter(|key| !key.is_empty());
        self
    }

    /// Sets the place in the body.
    #[must_use]
    pub(crate) fn at(mut self, at: At) -> Self {
        self.0.at = Some(at);
        self
    }

    /// Takes the place in the body away.
    #[must_use]
    pub fn without_place(mut self) -> Self {
        self.0.at = None;
        self
    }

    /// A queue that exists with other settings than a declaration names: 409.
    pub fn differs(queue: &str, differences: Vec<Difference>) -> Self {
        let list: Vec<String> = differences.iter().map(ToString::to_string).collect();
        let mut problem = Self::from(Refusal::QueueDiffers).detail(format!(
            "queue `{queue}` exists with other settings: {}; nothing was changed",
            list.join(", ")
        ));
        if let [one] = &differences[..] {
            problem = problem.key(one.setting.clone());
        }
        problem.0.differences = differences;
        problem.hint(
            "declare the queue as it is; `overtake queue set` (PATCH) changes what it names, `--replace` (`?replace=true`) all settings",
        )
    }

    /// Puts `outer` before the key: `priority` inside `messages[3]` is `messages[3].priority`.
    #[must_use]
    pub fn inside(mut self, outer: &str) -> Self {
        self.0.key = Some(match self.0.key.take() {
            Some(inner) => format!("{outer}.{inner}"),
            None => outer.to_owned(),
        });
        self
    }

    /// Whether the problem has an error status and says what is wrong and what to do.
    #[must_use]
    pub fn is_helpful(&self) -> bool {
        let said = [self.0.code, &*self.0.title, &*self.0.detail, &*self.0.hint];
        said.iter().all(|text| !text.is_empty()) && (400..600).contains(&self.0.status)
    }

    /// Puts `text`, which names things of the request, where the detail says what the title says.
    #[must_use]
    pub fn specify(mut self, text: &str) -> Self {
        self.0.detail = self.0.detail.replace(&*self.0.title, text).into();
        self
    }

    /// The body of the response.
    #[must_use]
    pub fn body(&self) -> &ProblemBody {
        &self.0
    }
}

impl ProblemBody {
    /// The code of the problem, which never changes.
    #[must_use]
    pub fn code(&self) -> &'static str {
        self.code
    }

    /// The field, parameter or header at fault.
    #[must_use]
    pub fn about(&self) -> Option<&str> {
        self.key.as_deref()
    }

    /// Whether the request has a value that cannot be: 422.
    #[must_use]
    pub fn is_unprocessable(&self) -> bool {
        self.status() == StatusCode::UNPROCESSABLE_ENTITY
    }

    fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }
}

/// 422 for values that are not valid, 404 for names of nothing, 409 for what the state forbids, 429 for what may succeed later.
fn status_of(refusal: Refusal) -> StatusCode {
    match refusal {
        Refusal::NoSuchQueue
        | Refusal::NoSuchOrphan
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
        | Refusal::CountDiffers { .. }
        | Refusal::ImportPriorityMissing { .. }
        | Refusal::QueueExists
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
        | Refusal::KeyWeightInvalid
        | Refusal::KeyWeightAlone
        | Refusal::KeyMissing
        | Refusal::MetadataInvalid
        | Refusal::VhostInvalid
        | Refusal::PolicyInvalid
        | Refusal::HistoryCircular
        | Refusal::TooManyCopies
        | Refusal::Unroutable => StatusCode::UNPROCESSABLE_ENTITY,
        Refusal::MessageTooLarge | Refusal::TooLargeAtOnce | Refusal::ReportTooLarge => {
            StatusCode::PAYLOAD_TOO_LARGE
        }
        Refusal::QueueFull | Refusal::BelowPriority | Refusal::TooManyConsumers => {
            StatusCode::TOO_MANY_REQUESTS
        }
        Refusal::StoreFull => StatusCode::INSUFFICIENT_STORAGE,
    }
}

/// The field at fault, for a refusal that only one field can cause.
fn key_of(refusal: Refusal) -> Option<&'static str> {
    match refusal {
        Refusal::SettingFixed(key) => Some(key),
        Refusal::PriorityOutOfRange | Refusal::PriorityUnknown => Some("priority"),
        Refusal::IdInvalid | Refusal::IdPending => Some("id"),
        Refusal::KeyInvalid | Refusal::KeyMissing => Some("key"),
        Refusal::KeyWeightInvalid | Refusal::KeyWeightAlone => Some("key_weight"),
        Refusal::ExchangeDiffers(key) => Some(key),
        Refusal::HistoryCircular => Some("history"),
        Refusal::WeightInvalid => Some("routing_key"),
        Refusal::CountDiffers { .. } => Some("expect"),
        Refusal::ImportPriorityMissing { .. } => Some("import_priority"),
        _ => None,
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        let problem = Self::new(status_of(refusal), refusal.code(), "", refusal.hint());
        let mut problem = problem.detail(refusal.to_string());
        // All problems of a code have the same title, but the text of these two refusals names a setting or a number.
        problem.0.title = match refusal {
            Refusal::SettingFixed(_) => "a setting cannot change now".into(),
            Refusal::ExchangeDiffers(_) => "the exchange is there and differs".into(),
            Refusal::CountDiffers { .. } => "another number of messages was expected".into(),
            Refusal::ImportPriorityMissing { .. } => "messages wait without a priority".into(),
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

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = self.0.status();
        // Serialising fails only for a map whose keys are not text, and the body has no map.
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
            let seconds = if self.0.code == "logins-crowded" { LOGINS_RETRY_AFTER_S } else { RETRY_AFTER_S };
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        // For a layer that knows more of the request than the handler did.
        response.extensions_mut().insert(self);
        response
    }
}
