//! Requests over HTTP, with answers in JSON.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::header::HeaderValue;
use hyper::{Method, Request, header};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use crate::error::Error;
use crate::options::{Address, ConnectOptions};

/// What stands in a path as it is.
const IN_PATH: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// One broker's HTTP.
#[derive(Debug)]
pub(crate) struct Http {
    base: String,
    vhost: String,
    login: HeaderValue,
    patience: Duration,
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
}

impl Http {
    /// # Errors
    /// [`Error::Invalid`]: a certificate cannot be read.
    pub(crate) fn new(options: &ConnectOptions, address: &Address) -> Result<Self, Error> {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        connector.set_connect_timeout(Some(options.patience));
        connector.enforce_http(false);
        let tls = options.tls.config()?;
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(std::sync::Arc::unwrap_or_clone(tls))
            .https_or_http()
            .enable_http1()
            .wrap_connector(connector);
        let base = options.http_url(address).trim_end_matches('/').to_owned();
        Ok(Self {
            base,
            vhost: utf8_percent_encode(&address.vhost, IN_PATH).to_string(),
            login: login(address)?,
            patience: options.patience,
            client: Client::builder(TokioExecutor::new()).build(connector),
        })
    }

    /// Asks; waits for the answer as long as the client does for everything, and `wait` more.
    ///
    /// # Errors
    /// [`Error::Refused`] with the status; [`Error::ConnectionLost`], [`Error::TimedOut`].
    pub(crate) async fn ask(
        &self,
        method: Method,
        path: &str,
        body: Option<Bytes>,
        wait: Duration,
    ) -> Result<Value, Error> {
        let asked = self.exchange(method, path, body);
        match tokio::time::timeout(self.patience.saturating_add(wait), asked).await {
            Ok(answer) => answer,
            Err(_) => Err(Error::TimedOut),
        }
    }

    async fn exchange(&self, method: Method, path: &str, body: Option<Bytes>) -> Result<Value, Error> {
        let uri = format!("{}{path}?vhost={}", self.base, self.vhost);
        let mut request =
            Request::builder().method(method).uri(&uri).header(header::AUTHORIZATION, &self.login);
        if body.is_some() {
            request = request.header(header::CONTENT_TYPE, "application/json");
        }
        let request = request
            .body(Full::new(body.unwrap_or_default()))
            .map_err(|error| Error::Invalid(format!("{uri}: {error}")))?;
        let lost =
            |error: &dyn std::error::Error| Error::ConnectionLost(format!("{}: {}", self.base, chain(error)));
        let response = self.client.request(request).await.map_err(|error| lost(&error))?;
        let status = response.status();
        let bytes = response.into_body().collect().await.map_err(|error| lost(&error))?.to_bytes();
        let answer: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        if status.is_success() { Ok(answer) } else { Err(refused(status.as_u16(), &answer)) }
    }
}

/// A name as it stands in a path.
pub(crate) fn encoded(name: &str) -> impl std::fmt::Display + '_ {
    utf8_percent_encode(name, IN_PATH)
}

/// What a problem says (RFC 9457).
fn refused(code: u16, problem: &Value) -> Error {
    let said = ["detail", "hint"].map(|name| problem[name].as_str().unwrap_or_default());
    let text = match said {
        ["", ""] => "it does not say why: is this the HTTP port of Overtake?".to_owned(),
        [detail, ""] => detail.to_owned(),
        [detail, hint] => format!("{detail}: {hint}"),
    };
    Error::Refused { code, text }
}

/// An error and what is behind it.
fn chain(error: &dyn std::error::Error) -> String {
    std::iter::successors(Some(error), |error| error.source())
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(": ")
}

/// Basic (RFC 7617); nobody is `guest`, as over AMQP.
fn login(address: &Address) -> Result<HeaderValue, Error> {
    use base64::Engine;
    let pair = match (&*address.user, &*address.password) {
        ("", _) => "guest:guest".to_owned(),
        (user, password) => format!("{user}:{password}"),
    };
    let value = format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(pair));
    let mut value = HeaderValue::try_from(value).map_err(|error| Error::Invalid(error.to_string()))?;
    value.set_sensitive(true);
    Ok(value)
}
