//! Names in the path, percent-decoded, so that they may hold slashes as `%2F`.

use std::sync::Arc;

use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::StatusCode;
use axum::http::request::Parts;
use overtake_api::name::{checked, checked_id};
use overtake_engine::Failure;
use overtake_lane::{QueueId, Refusal};

use crate::problem::Problem;

/// The queue in the path.
pub(crate) struct QueueName(pub(crate) Arc<str>);

/// The exchange in the path.
pub(crate) struct ExchangeName(pub(crate) Arc<str>);

/// The category in the path.
pub(crate) struct CategoryName(pub(crate) String);

/// The group of a category in the path.
pub(crate) struct GroupName(pub(crate) String);

/// The user in the path.
pub(crate) struct UserName(pub(crate) Arc<str>);

/// The virtual host in the path.
pub(crate) struct VhostName(pub(crate) Arc<str>);

/// The number of a queue in the path.
pub(crate) struct QueueNumber(pub(crate) QueueId);

/// The token in the path.
pub(crate) struct TokenId(pub(crate) String);

/// The path of a topic in the path, as it stands there.
pub(crate) struct TopicPath(pub(crate) String);

/// The schedule in the path.
pub(crate) struct ScheduleName(pub(crate) String);

/// The endpoint in the path.
pub(crate) struct EndpointName(pub(crate) String);

/// The source in the path.
pub(crate) struct SourceName(pub(crate) String);

/// The message in the path.
pub(crate) struct MessageId(pub(crate) String);

impl<S: Send + Sync> FromRequestParts<S> for QueueName {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let name = param(parts, state, "queue").await?;
        Ok(Self(Arc::from(checked(&name, "queue")?)))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for ExchangeName {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let name = param(parts, state, "exchange").await?;
        Ok(Self(Arc::from(checked(&name, "exchange")?)))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for CategoryName {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let name = param(parts, state, "category").await?;
        Ok(Self(checked(&name, "category")?.to_owned()))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for GroupName {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let name = param(parts, state, "group").await?;
        Ok(Self(checked(&name, "group")?.to_owned()))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for TopicPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        Ok(Self(param(parts, state, "path").await?))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for UserName {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let name = param(parts, state, "user").await?;
        Ok(Self(Arc::from(checked(&name, "user")?)))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for VhostName {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let name = param(parts, state, "vhost").await?;
        Ok(Self(Arc::from(checked(&name, "vhost")?)))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for QueueNumber {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let number = param(parts, state, "number").await?;
        let number = number.parse().map_err(|_| Failure::from(Refusal::NoSuchOrphan))?;
        Ok(Self(QueueId(number)))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for TokenId {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        Ok(Self(param(parts, state, "token").await?))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for ScheduleName {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        Ok(Self(param(parts, state, "schedule").await?))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for EndpointName {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        Ok(Self(param(parts, state, "endpoint").await?))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for SourceName {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        Ok(Self(param(parts, state, "source").await?))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for MessageId {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        Ok(Self(checked_id(param(parts, state, "id").await?)?))
    }
}

pub(crate) async fn param<S: Send + Sync>(
    parts: &mut Parts,
    state: &S,
    name: &str,
) -> Result<String, Problem> {
    let params = RawPathParams::from_request_parts(parts, state).await;
    let found = params
        .ok()
        .and_then(|params| params.iter().find(|(key, _)| *key == name).map(|(_, value)| value.to_owned()));
    found.ok_or_else(|| {
        Problem::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "name-invalid",
            "a name in the path is not text",
            "percent-encode the name as UTF-8",
        )
        .key(name)
    })
}
