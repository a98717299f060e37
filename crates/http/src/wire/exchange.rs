//! Exchanges and bindings.

use std::sync::Arc;

use overtake_lane::{Binding, ExchangeKind};
use serde::Deserialize;
use utoipa::ToSchema;

use super::{HeadersIn, check_headers};
use crate::problem::Problem;
use crate::schema::ExchangeKindSchema;

/// What an exchange is.
#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ExchangeSettings)]
pub(crate) struct ExchangeIn {
    /// How it chooses queues.
    #[schema(value_type = ExchangeKindSchema)]
    pub(crate) kind: ExchangeKind,
}

/// A binding of a queue to the exchange in the path.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Binding)]
pub(crate) struct BindingIn {
    /// The queue.
    queue: String,
    /// The routing key, or for a topic exchange a pattern of words between dots: `*` is one word, `#` any number.
    #[serde(default)]
    routing_key: String,
    /// For a headers exchange: what must be there, compared as text.
    #[serde(default)]
    #[schema(value_type = Object)]
    headers: HeadersIn,
    /// For a headers exchange: one of them is enough.
    #[serde(default)]
    any: bool,
}

impl BindingIn {
    /// The binding as the model has it.
    ///
    /// # Errors
    /// 422 for a queue's name, routing key or headers that cannot be.
    pub(crate) fn into_binding(self, exchange: Arc<str>) -> Result<Binding, Problem> {
        let queue = Arc::from(crate::path::checked(&self.queue, "queue")?);
        super::message::check_short("routing_key", &self.routing_key)?;
        check_headers(&self.headers.0)?;
        let headers = self.headers.into_texts();
        Ok(Binding { exchange, queue, routing_key: self.routing_key, headers, any: self.any })
    }
}
