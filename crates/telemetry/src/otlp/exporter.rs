//! The client of a collector: one body, one answer. Whatever the signal.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::header::{self, HeaderValue};
use hyper::{Method, Request, StatusCode};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use rustls::{ClientConfig, RootCertStore};

use super::endpoint::{Endpoint, Headers};

/// How long one request may take: what the specification gives where nothing else is said.
const PATIENCE: Duration = Duration::from_secs(10);
/// Longest answer that is read, bytes: there is a number and a sentence in it.
const ANSWER_MAX: usize = 64 << 10;

/// A client of one collector. Clones share its connections.
#[derive(Clone)]
pub struct Exporter {
    endpoint: Endpoint,
    headers: Headers,
    http: legacy::Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
}

/// Why there is no client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoExporter;

impl fmt::Display for NoExporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("this system names no authorities that sign certificates: install its ca-certificates")
    }
}

impl Error for NoExporter {}

/// Why a body did not arrive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotPosted {
    /// The collector cannot be reached, or did not answer in time.
    Unreachable(String),
    /// It answered with this status, and perhaps a reason.
    Refused(StatusCode, String),
}

impl fmt::Display for NotPosted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable(why) => write!(f, "it cannot be reached: {why}"),
            Self::Refused(status, why) if why.is_empty() => write!(f, "it answers {status}"),
            Self::Refused(status, why) => write!(f, "it answers {status}: {why}"),
        }
    }
}

impl Error for NotPosted {}

impl Exporter {
    /// For the collector at this address. Under TLS the authorities of the system are believed.
    ///
    /// # Errors
    /// [`NoExporter`] when there are none.
    pub fn new(endpoint: Endpoint, headers: Headers) -> Result<Self, NoExporter> {
        let mut roots = RootCertStore::empty();
        if endpoint.is_secure() {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            if roots.is_empty() {
                return Err(NoExporter);
            }
        }
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let tls = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("the provider knows the versions that are safe")
            .with_root_certificates(roots)
            .with_no_client_auth();
        let mut connector = HttpConnector::new();
        connector.set_connect_timeout(Some(PATIENCE / 2));
        connector.enforce_http(false);
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_or_http()
            .enable_http1()
            .wrap_connector(connector);
        let http = legacy::Client::builder(TokioExecutor::new()).build(connector);
        Ok(Self { endpoint, headers, http })
    }

    /// Where the collector is.
    #[must_use]
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Posts a message in protobuf to a path, such as `/v1/metrics`, and answers what came back, which is one, too.
    ///
    /// # Errors
    /// [`NotPosted`], after ten seconds at the latest. Nothing is tried again.
    pub async fn post(&self, path: &str, body: impl Into<Bytes>) -> Result<Bytes, NotPosted> {
        let request = self.request(path, body.into()).map_err(unreachable)?;
        let answered = async {
            let response = self.http.request(request).await.map_err(unreachable)?;
            let status = response.status();
            let body = Limited::new(response.into_body(), ANSWER_MAX).collect().await;
            let body = body.map_err(|error| NotPosted::Unreachable(error.to_string()))?.to_bytes();
            if status.is_success() { Ok(body) } else { Err(NotPosted::Refused(status, excerpt(&body))) }
        };
        let in_time = tokio::time::timeout(PATIENCE, answered).await;
        in_time.unwrap_or_else(|_| Err(NotPosted::Unreachable(format!("no answer within {PATIENCE:?}"))))
    }

    fn request(&self, path: &str, body: Bytes) -> Result<Request<Full<Bytes>>, hyper::http::Error> {
        let mut request = Request::builder()
            .method(Method::POST)
            .uri(format!("{}{path}", self.endpoint.as_str()))
            .header(header::USER_AGENT, concat!("overtake/", env!("CARGO_PKG_VERSION")));
        if let Some(headers) = request.headers_mut() {
            headers.extend(self.headers.map().clone());
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/x-protobuf"));
        }
        request.body(Full::from(body))
    }
}

fn unreachable(error: impl Error + 'static) -> NotPosted {
    let mut deepest: &(dyn Error + 'static) = &error;
    while let Some(source) = deepest.source() {
        deepest = source;
    }
    NotPosted::Unreachable(deepest.to_string())
}

/// What of an answer can be told in a line. An error is a `google.rpc.Status` in protobuf, whose text is readable all the same.
fn excerpt(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let readable = text.chars().map(|char| if char.is_control() || char == '\u{fffd}' { ' ' } else { char });
    readable.take(200).collect::<String>().trim().to_owned()
}
