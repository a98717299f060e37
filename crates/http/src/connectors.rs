//! What endpoints and sources have in common over HTTP: how they are shown, tested and refused.

use std::time::Duration;

use axum::http::StatusCode;
use overtake_connectors::{Connector, ConnectorView, NotConfigured, Provenance, Vault};
use overtake_engine::Leader;
use overtake_lane::{Refusal, Time};
use overtake_redact::{Strict, json_reason};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::answer::rfc3339;
use crate::app::{Answer, json};
use crate::problem::Problem;

/// What went wrong last.
#[derive(Serialize, ToSchema)]
#[schema(as = LastError)]
pub(crate) struct LastErrorOut {
    /// When.
    #[schema(format = DateTime)]
    at: String,
    /// What, in words.
    why: String,
}

impl LastErrorOut {
    pub(crate) fn of(error: Option<&(Time, std::sync::Arc<str>)>) -> Option<Self> {
        error.map(|(at, why)| Self { at: rfc3339(*at), why: why.to_string() })
    }
}

/// What to test.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Test)]
pub(crate) struct TestIn {
    /// A definition to test in place of the one that is there.
    #[schema(value_type = Option<Object>)]
    pub(crate) definition: Option<Value>,
}

/// What came of a test.
#[derive(Serialize, ToSchema)]
#[schema(as = Tested)]
pub(crate) struct TestedOut {
    /// It connected.
    ok: bool,
    /// How long that took, ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    took_ms: Option<u64>,
    /// What is wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
}

pub(crate) fn tested(tested: Result<Duration, String>) -> Answer {
    let out = match tested {
        Ok(took) => TestedOut {
            ok: true,
            took_ms: Some(u64::try_from(took.as_millis()).unwrap_or(u64::MAX)),
            why: None,
        },
        Err(why) => TestedOut { ok: false, took_ms: None, why: Some(why) },
    };
    json(StatusCode::OK, &out)
}

/// Reads a definition; its types are those of the configuration file. What it says in place of a secret is not repeated.
pub(crate) fn definition<C: DeserializeOwned>(value: Value) -> Result<C, Problem> {
    serde_path_to_error::deserialize(Strict(value)).map_err(|error| {
        let path = error.path().to_string();
        let path = if path == "." { String::new() } else { path };
        let why = Vault::OF_API.phrase(&json_reason(&error.into_inner().to_string()));
        // Keys of a cluster stand among others, and its reader names them.
        match why.strip_prefix('`').and_then(|rest| rest.split_once("`: ")) {
            Some((key, why)) if !key.contains(['`', ' ']) => {
                Problem::bad_value(format!("{path}.{key}"), why.to_owned())
            }
            _ => Problem::bad_value(path, why),
        }
    })
}

pub(crate) fn as_value<C: Connector>(view: &ConnectorView<C>) -> Value {
    overtake_connectors::shown(&*view.definition)
}

/// What a connector does, in a word: paused, elsewhere, or what it does here.
pub(crate) fn state_of<C: Connector>(
    view: &ConnectorView<C>,
    paused: &'static str,
    here: &'static str,
) -> &'static str {
    match &view.leader {
        _ if view.is_paused => paused,
        Leader::Us { .. } => here,
        Leader::Other { .. } => "elsewhere",
        Leader::Unknown => "unknown",
    }
}

pub(crate) fn provenance(provenance: Provenance) -> &'static str {
    match provenance {
        Provenance::File => "file",
        Provenance::Api => "api",
    }
}

impl From<NotConfigured> for Problem {
    fn from(not: NotConfigured) -> Self {
        let told = not.to_string();
        match not {
            NotConfigured::BadName => {
                Self::from(Refusal::NameInvalid).key("name").detail(told.clone()).hint(told)
            }
            NotConfigured::NoSuch => Self::new(
                StatusCode::NOT_FOUND,
                "no-such-connector",
                "there is no endpoint or source of this name",
                "list them, and say in which virtual host it is; those of queues one may not see are not shown",
            ),
            NotConfigured::TooMany => Self::new(
                StatusCode::CONFLICT,
                "too-many-connectors",
                "there are too many",
                "delete those that nobody needs",
            )
            .detail(told),
            NotConfigured::Bad(why) => match why.split_once(": ").filter(|(key, _)| !key.contains(' ')) {
                Some((key, why)) => Self::bad_value(key.trim_matches('`').to_owned(), why.to_owned()),
                None => Self::bad_value(String::new(), why),
            },
            NotConfigured::OfFile => Self::new(
                StatusCode::CONFLICT,
                "configured-in-file",
                "it stands in the server's configuration file",
                "change it there, and start the server again",
            ),
            NotConfigured::NotDone(not) => not.into(),
        }
    }
}
