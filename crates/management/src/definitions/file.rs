//! What a file of definitions holds. Fields that mean nothing here are passed over, as RabbitMQ does; a value that cannot be
//! is not.

use overtake_redact::strict;
use serde::Deserialize;
use serde_json::Value;

use crate::ask::read_json;
use crate::bindings::BindingPut;
use crate::exchanges::ExchangePut;
use crate::policies::PolicyPut;
use crate::problem::Problem;
use crate::queues::QueuePut;
use crate::users::{PermissionPut, UserPut};
use crate::vhosts::VhostPut;

/// All that a file declares.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Definitions {
    pub(crate) vhosts: Vec<Named<VhostPut>>,
    pub(crate) users: Vec<Named<UserPut>>,
    pub(crate) permissions: Vec<PermissionDefined>,
    pub(crate) topic_permissions: Vec<Value>,
    pub(crate) global_parameters: Vec<GlobalDefined>,
    pub(crate) parameters: Vec<ParameterDefined>,
    pub(crate) policies: Vec<Placed<PolicyPut>>,
    pub(crate) exchanges: Vec<Placed<ExchangePut>>,
    pub(crate) queues: Vec<Placed<QueuePut>>,
    pub(crate) bindings: Vec<BindingDefined>,
}

/// Something with a name.
#[derive(Clone, Debug, Deserialize)]
#[serde(bound(deserialize = "T: Deserialize<'de>"))]
pub(crate) struct Named<T> {
    pub(crate) name: String,
    #[serde(flatten, deserialize_with = "strict")]
    pub(crate) what: T,
}

/// Something with a name in a virtual host, which the file of one virtual host does not say.
#[derive(Clone, Debug, Deserialize)]
#[serde(bound(deserialize = "T: Deserialize<'de>"))]
pub(crate) struct Placed<T> {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) vhost: Option<String>,
    #[serde(flatten, deserialize_with = "strict")]
    pub(crate) what: T,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct PermissionDefined {
    pub(crate) user: String,
    pub(crate) vhost: String,
    #[serde(flatten, deserialize_with = "strict")]
    pub(crate) patterns: PermissionPut,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct GlobalDefined {
    pub(crate) name: String,
    pub(crate) value: Value,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct ParameterDefined {
    pub(crate) component: String,
    #[serde(default)]
    pub(crate) vhost: Option<String>,
    pub(crate) name: String,
    pub(crate) value: Value,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct BindingDefined {
    pub(crate) source: String,
    #[serde(default)]
    pub(crate) vhost: Option<String>,
    pub(crate) destination: String,
    pub(crate) destination_type: DestinationType,
    #[serde(flatten, deserialize_with = "strict")]
    pub(crate) what: BindingPut,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum DestinationType {
    Queue,
    Exchange,
}

impl Definitions {
    /// Reads a file.
    ///
    /// # Errors
    /// What cannot be, with its place: `queues[3].durable`.
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, Problem> {
        read_json(bytes)
    }
}
