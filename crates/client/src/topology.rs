//! What was declared, so that it is there again after a connection was lost.

#[cfg(feature = "http")]
use std::sync::{Mutex, PoisonError};
#[cfg(feature = "http")]
use std::time::Duration;

#[cfg(feature = "http")]
use bytes::Bytes;
#[cfg(feature = "http")]
use hyper::Method;

use crate::error::Error;
#[cfg(feature = "http")]
use crate::http::{Http, encoded};

/// What was declared, in order.
#[derive(Debug)]
pub(crate) struct Topology {
    #[cfg(feature = "http")]
    pub(crate) http: Http,
    #[cfg(feature = "http")]
    declared: Mutex<Vec<Declared>>,
}

/// A request that declares something. To ask it again changes nothing.
#[cfg(feature = "http")]
#[derive(Clone, Debug, PartialEq, Eq)]
struct Declared {
    method: Method,
    path: String,
    body: Bytes,
}

#[cfg(not(feature = "http"))]
impl Topology {
    /// Nothing can be declared.
    #[allow(clippy::unused_async, reason = "with the feature `http` it waits")]
    pub(crate) async fn restore(&self) -> Result<(), Error> {
        Ok(())
    }
}

#[cfg(feature = "http")]
impl Topology {
    pub(crate) fn new(http: Http) -> Self {
        Self { http, declared: Mutex::default() }
    }

    pub(crate) async fn declare_queue(&self, queue: &str, settings: &str) -> Result<(), Error> {
        self.declare(Method::PUT, format!("/v1/queues/{}", encoded(queue)), settings).await
    }

    pub(crate) async fn declare_exchange(&self, exchange: &str, settings: &str) -> Result<(), Error> {
        self.declare(Method::PUT, format!("/v1/exchanges/{}", encoded(exchange)), settings).await
    }

    pub(crate) async fn bind_queue(
        &self,
        queue: &str,
        exchange: &str,
        routing_key: &str,
    ) -> Result<(), Error> {
        let binding = serde_json::json!({"queue": queue, "routing_key": routing_key}).to_string();
        self.declare(Method::POST, format!("/v1/exchanges/{}/bindings", encoded(exchange)), &binding).await
    }

    pub(crate) async fn delete_queue(&self, queue: &str) -> Result<(), Error> {
        self.delete(format!("/v1/queues/{}", encoded(queue))).await
    }

    pub(crate) async fn delete_exchange(&self, exchange: &str) -> Result<(), Error> {
        self.delete(format!("/v1/exchanges/{}", encoded(exchange))).await
    }

    async fn declare(&self, method: Method, path: String, body: &str) -> Result<(), Error> {
        if let Err(error) = serde_json::from_str::<serde_json::Value>(body) {
            return Err(Error::Invalid(format!("the settings are no JSON: {error}")));
        }
        let declared = Declared { method, path, body: body.to_owned().into() };
        self.ask(&declared).await?;
        let mut all = self.declared.lock().unwrap_or_else(PoisonError::into_inner);
        // The last word on a queue is what holds.
        all.retain(|other| {
            *other != declared && !(declared.method == Method::PUT && other.path == declared.path)
        });
        all.push(declared);
        Ok(())
    }

    async fn delete(&self, path: String) -> Result<(), Error> {
        self.http.ask(Method::DELETE, &path, None, Duration::ZERO).await?;
        let bindings = format!("{path}/bindings");
        let mut all = self.declared.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|declared| declared.path != path && declared.path != bindings);
        Ok(())
    }

    async fn ask(&self, declared: &Declared) -> Result<(), Error> {
        let Declared { method, path, body } = declared;
        self.http.ask(method.clone(), path, Some(body.clone()), Duration::ZERO).await.map(drop)
    }

    /// What is there stays as it is: somebody may have changed it meanwhile.
    async fn declare_if_gone(&self, declared: &Declared) -> Result<(), Error> {
        if declared.method == Method::PUT {
            match self.http.ask(Method::GET, &declared.path, None, Duration::ZERO).await {
                Err(Error::Refused { code: 404, .. }) => {}
                other => return other.map(drop),
            }
        }
        self.ask(declared).await
    }

    /// Declares again what is gone.
    ///
    /// # Errors
    /// There is no connection. What is refused now is logged: whoever needs it will hear.
    pub(crate) async fn restore(&self) -> Result<(), Error> {
        let all = self.declared.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for declared in all {
            match self.declare_if_gone(&declared).await {
                Err(Error::Refused { code, text }) => {
                    tracing::warn!(path = declared.path, code, text, "it cannot be declared again");
                }
                other => other?,
            }
        }
        Ok(())
    }
}
